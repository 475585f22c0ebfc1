package partlog_test

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/storage/producerstate"
)

// BenchmarkCreate: what a new partition costs: its directory, .log and first epoch.
func BenchmarkCreate(b *testing.B) {
	fs, root := vfs.OS(), b.TempDir()
	env := &partlog.Env{Files: partlog.NewFiles(512)}
	before := cpuTime()
	defer func() { b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op") }()
	for i := 0; b.Loop(); i++ {
		d := fmt.Sprintf("%s/t-%d", root, i)
		if err := fs.Mkdir(d, 0o755); err != nil {
			b.Fatal(err)
		}
		l, _, err := partlog.Open(partlog.Options{FS: fs, Dir: d, Env: env, New: true})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.AssignEpoch(0, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoadClean and BenchmarkLoadCrashed load 5,000 logs that hold a little data each; B/log is the heap they keep.
func BenchmarkLoadClean(b *testing.B)   { load(b, true) }
func BenchmarkLoadCrashed(b *testing.B) { load(b, false) }

const manyLogs = 5000

func load(b *testing.B, clean bool) {
	fs, root := vfs.OS(), b.TempDir()
	env := &partlog.Env{Files: partlog.NewFiles(512)}
	opts := make([]partlog.Options, manyLogs)
	for i := range opts {
		opts[i] = partlog.Options{FS: fs, Dir: fmt.Sprintf("%s/t-%d", root, i), Env: env, Partition: model.TopicPartition{Topic: "t", Partition: int32(i)}, New: true}
		if err := os.Mkdir(opts[i].Dir, 0o755); err != nil {
			b.Fatal(err)
		}
		l, _, err := partlog.Open(opts[i])
		if err != nil {
			b.Fatal(err)
		}
		if err := l.AssignEpoch(0, 0); err != nil {
			b.Fatal(err)
		}
		if _, err := l.AppendAsLeader(partlog.LeaderAppend{Records: producerBatch(3, 1000, 7, 0, 0, false), Now: 1}); err != nil {
			b.Fatal(err)
		}
		if clean {
			if err := l.Close(1); err != nil {
				b.Fatal(err)
			}
		} else {
			l.Abandon()
		}
		opts[i].New, opts[i].Clean, opts[i].RecoveryPoint = false, clean, 3
		if !clean {
			opts[i].RecoveryPoint = 0
		}
	}
	logs := make([]*partlog.Log, manyLogs)
	var cpu int64
	for b.Loop() {
		before := cpuTime()
		for i, o := range opts {
			l, _, err := partlog.Open(o)
			if err != nil {
				b.Fatal(err)
			}
			logs[i] = l
		}
		b.StopTimer()
		cpu += cpuTime() - before
		b.ReportMetric(perLog(), "B/log")
		for _, l := range logs {
			l.Abandon()
		}
		b.StartTimer()
	}
	runtime.KeepAlive(logs)
	b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ns/op")
}

// cpuTime is what this process has used, which a busy machine does not change.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func perLog() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / manyLogs
}

// BenchmarkAppend appends batches of 64 KiB and of one small record.
func BenchmarkAppend(b *testing.B) {
	for name, batch := range map[string][]byte{"64KiB": batchOf(1, 1000, "x", 64<<10), "small": batchOf(1, 1000, "x", 100)} {
		b.Run(name, func(b *testing.B) {
			fs, d := vfs.OS(), b.TempDir()
			env := &partlog.Env{Files: partlog.NewFiles(512)}
			cfg := *partlog.DefaultConfig()
			cfg.SegmentBytes = 256 << 20
			cfg.RetentionBytes, cfg.RetentionMs = 0, -1
			l, _, err := partlog.Open(partlog.Options{FS: fs, Dir: d, Env: env, Config: &cfg, New: true})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				info, err := l.AppendAsLeader(partlog.LeaderAppend{Records: batch, Origin: producerstate.OriginClient, Now: 1})
				if err != nil {
					b.Fatal(err)
				}
				l.SetHighWatermark(info.LogEndOffset)
				if l.ActiveSegmentBase() == info.BaseOffset && info.BaseOffset > 0 {
					b.StopTimer()
					del, _ := l.DeletableSegments(1)
					if _, err := l.DeleteOldSegments(del, 1); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkRead reads at the tail, as a waiting consumer does, and at random in a log with many segments.
func BenchmarkRead(b *testing.B) {
	fs, d := vfs.OS(), b.TempDir()
	env := &partlog.Env{Files: partlog.NewFiles(512)}
	cfg := *partlog.DefaultConfig()
	cfg.SegmentBytes = 8 << 20
	l, _, err := partlog.Open(partlog.Options{FS: fs, Dir: d, Env: env, Config: &cfg, New: true})
	if err != nil {
		b.Fatal(err)
	}
	batch := batchOf(1, 1000, "x", 1000)
	for range 64 << 10 {
		if _, err := l.AppendAsLeader(partlog.LeaderAppend{Records: batch, Origin: producerstate.OriginClient, Now: 1}); err != nil {
			b.Fatal(err)
		}
	}
	end := l.LogEndOffset()
	l.SetHighWatermark(end)
	read := func(b *testing.B, offset int64) {
		res, err := l.Read(partlog.ReadRequest{Offset: offset, UpTo: end, MaxBytes: 1 << 20, MinOneBatch: true})
		if err != nil || res.Records == nil {
			b.Fatal(err)
		}
		res.Records.Release()
	}
	b.Run("tail", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			read(b, end-1)
		}
	})
	b.Run("random", func(b *testing.B) {
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			read(b, i*7919%end)
		}
	})
}
