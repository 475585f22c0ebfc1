package logdir

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs f in fake time, with a manager over two directories in memory whose clock is that time.
func bubble(t *testing.T, change func(*Options), f func(t *testing.T, mem *vfs.Mem, s setup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		f(t, mem, setup{fs: mem, dirs: formatN(t, mem, 2), out: &logs{}, change: func(o *Options) {
			o.Now = time.Now
			if change != nil {
				change(o)
			}
		}})
	})
}

func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func hasDir(t *testing.T, mem *vfs.Mem, suffix string) bool {
	t.Helper()
	for _, d := range []string{"/d1", "/d2"} {
		for _, name := range list(t, mem, d) {
			if strings.HasSuffix(name, suffix) {
				return true
			}
		}
	}
	return false
}

// T-92, T-93: the delay is the broker's, counts from the rename or the start, and not before log.initial.task.delay.ms.
func TestDeleteDelay(t *testing.T) {
	bubble(t, func(o *Options) { o.Live.FileDeleteDelay = 5 * time.Second }, func(t *testing.T, mem *vfs.Mem, s setup) {
		m := s.start(t)
		cfg := partlog.DefaultConfig()
		cfg.FileDeleteDelayMs = 600_000 // the topic's own does not count
		if _, err := m.Create(tip(1, 0), "foo", model.DirUnassigned, cfg, true); err != nil {
			t.Fatal(err)
		}
		later(time.Minute)
		if err := m.Delete(tip(1, 0)); err != nil {
			t.Fatal(err)
		}
		later(4900 * time.Millisecond)
		if !hasDir(t, mem, "-delete") {
			t.Error("removed before the delay")
		}
		later(200 * time.Millisecond)
		if hasDir(t, mem, "-delete") {
			t.Error("not removed after the delay")
		}
		mustCreate(t, m, tip(2, 0), "bar")
		if err := m.Delete(tip(2, 0)); err != nil {
			t.Fatal(err)
		}
		mustClose(t, m, 1)
		m = s.start(t)
		later(29 * time.Second)
		if !hasDir(t, mem, "-delete") {
			t.Error("removed before log.initial.task.delay.ms")
		}
		later(2 * time.Second)
		if hasDir(t, mem, "-delete") {
			t.Error("a deleted directory found at start stays")
		}
		mustClose(t, m, 1)
	})
}

// T-92: the live value counts, also for what waits already; with 0 it is removed at once.
func TestDeleteDelayChanges(t *testing.T) {
	bubble(t, func(o *Options) { o.Live.FileDeleteDelay = -1 }, func(t *testing.T, mem *vfs.Mem, s setup) {
		m := s.start(t)
		mustCreate(t, m, tip(1, 0), "foo")
		later(31 * time.Second)
		m.Delete(tip(1, 0))
		later(50 * time.Second)
		if !hasDir(t, mem, "-delete") {
			t.Error("removed before Kafka's minute")
		}
		m.Reconfigure(Live{})
		synctest.Wait()
		later(2 * time.Millisecond)
		if hasDir(t, mem, "-delete") {
			t.Error("still there")
		}
		mustClose(t, m, 1)
	})
}

// T-109: only strays whose topic is gone, only after the delay, and through -delete.
func TestStaleStrays(t *testing.T) {
	gone := func(f Found) Verdict {
		if f.Topic == "gone" || f.Topic == "old" {
			return Verdict{Stray: "unknown id", Gone: true}
		}
		return Verdict{Stray: "moved away"}
	}
	bubble(t, func(o *Options) { o.DeleteStaleTopicDelay, o.Live.FileDeleteDelay = 10*time.Second, -1 }, func(t *testing.T, mem *vfs.Mem, s setup) {
		m := s.start(t)
		mustCreate(t, m, tip(1, 0), "gone")
		mustCreate(t, m, tip(2, 0), "moved")
		mustClose(t, m, 1)
		put(t, mem, "/d1/old-0."+hex1+"-stray/partition.metadata", metadataText(3))
		s.decide = gone
		m = s.start(t)
		later(41 * time.Second)
		if hasDir(t, mem, "gone-0") || !hasDir(t, mem, "-delete") {
			t.Error("the stray of a deleted topic was not set aside for removal")
		}
		later(2 * time.Minute)
		for _, d := range s.dirs {
			for _, name := range list(t, mem, d) {
				if strings.HasPrefix(name, "gone") || strings.HasPrefix(name, "old") {
					t.Errorf("%s is still there", name)
				}
			}
		}
		if !hasDir(t, mem, "-stray") {
			t.Error("a stray for another reason was removed")
		}
		mustClose(t, m, 1)
	})
	bubble(t, nil, func(t *testing.T, mem *vfs.Mem, s setup) { // off by default
		m := s.start(t)
		mustCreate(t, m, tip(1, 0), "gone")
		mustClose(t, m, 1)
		s.decide = gone
		m = s.start(t)
		later(24 * time.Hour)
		if !hasDir(t, mem, "-stray") {
			t.Error("a stray was removed by default")
		}
		mustClose(t, m, 1)
	})
}

// D-42, J-115: high watermarks are written within 5 s of a change and never without one; the other checkpoints every minute.
func TestCheckpointIntervals(t *testing.T) {
	bubble(t, nil, func(t *testing.T, mem *vfs.Mem, s setup) {
		tr := &trace{}
		s.fs = tr.wrap(mem)
		m := s.start(t)
		r := mustCreate(t, m, tip(1, 0), "foo")
		appendTo(t, r, 3)
		later(6 * time.Second)
		r.Log.SetHighWatermark(2)
		later(6 * time.Second)
		if got := get(t, mem, r.Dir.Path()+"/"+HighWatermarkFile); got != "0\n1\nfoo 0 2\n" {
			t.Errorf("high watermarks: %q", got)
		}
		tr.take()
		later(10 * time.Second)
		if got := tr.take(); got != "" {
			t.Errorf("an idle node wrote:\n%s", got)
		}
		later(2 * time.Minute)
		got := tr.take()
		if n := strings.Count(got, "rename "+r.Dir.Path()+"/"+RecoveryPointFile); n != 2 {
			t.Errorf("recovery points were written %d times in two minutes", n)
		}
		if strings.Contains(got, HighWatermarkFile) {
			t.Error("high watermarks were written without a change")
		}
		mustClose(t, m, 1)
	})
}

// J-115 (F1): an idle directory that was taken away is noticed within one interval of the high watermark checkpoint.
func TestVanishedDirectoryIsNoticed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, mem *vfs.Mem, s setup) {
		m := s.start(t)
		mustCreate(t, m, tip(1, 0), "foo")
		var failed atomic.Value
		m.OnOffline(func(e DirFailed) { failed.Store(e.Path) })
		later(10 * time.Second)
		if err := mem.Rename("/d2", "/away"); err != nil {
			t.Fatal(err)
		}
		put(t, mem, "/d2", "a file in its place")
		later(5100 * time.Millisecond)
		if failed.Load() != "/d2" {
			t.Errorf("failed: %v", failed.Load())
		}
		mustClose(t, m, 1)
	})
}

// D-74, D-75, J-153: retention runs every five minutes, first after 30 s, and logs what it did.
func TestRetentionRuns(t *testing.T) {
	bubble(t, nil, func(t *testing.T, mem *vfs.Mem, s setup) {
		m := s.start(t)
		cfg := partlog.DefaultConfig()
		cfg.RetentionMs, cfg.FileDeleteDelayMs = 1, 1000
		r, err := m.Create(tip(1, 0), "foo", model.DirUnassigned, cfg, true)
		if err != nil {
			t.Fatal(err)
		}
		appendTo(t, r, 3)
		r.Log.SetHighWatermark(3)
		later(29 * time.Second)
		if r.Log.LogStartOffset() != 0 {
			t.Error("retention ran before log.initial.task.delay.ms")
		}
		later(2 * time.Second)
		if r.Log.LogStartOffset() != 3 {
			t.Errorf("log start %d after the first run", r.Log.LogStartOffset())
		}
		mustContain(t, "log", s.out.String(), "old segments deleted", "retention.ms")
		later(5 * time.Second)
		for _, name := range list(t, mem, r.Dir.Path()+"/foo-0") {
			if strings.HasSuffix(name, ".deleted") {
				t.Errorf("%s is still there after file.delete.delay.ms", name)
			}
		}
		mustClose(t, m, 1)
	})
}

// D-58: what lies below a new segment is flushed in the background and the recovery point moves. D-79: flush.ms.
func TestBackgroundFlush(t *testing.T) {
	bubble(t, func(o *Options) { o.FlushInterval = time.Second }, func(t *testing.T, mem *vfs.Mem, s setup) {
		m := s.start(t)
		cfg := partlog.DefaultConfig()
		cfg.FlushMs = 500
		plain := mustCreate(t, m, tip(1, 0), "foo")
		timed, err := m.Create(tip(2, 0), "bar", model.DirUnassigned, cfg, true)
		if err != nil {
			t.Fatal(err)
		}
		appendTo(t, plain, 3)
		if err := plain.Log.Roll(time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		appendTo(t, plain, 2)
		synctest.Wait()
		if got := plain.Log.RecoveryPoint(); got != 3 {
			t.Errorf("recovery point %d after a roll at 3", got)
		}
		timed.Log.AppendAsLeader(partlog.LeaderAppend{Records: batchOf(4, "x"), Now: time.Now().UnixMilli()})
		later(40 * time.Second)
		if got := timed.Log.RecoveryPoint(); got != 4 {
			t.Errorf("recovery point %d with flush.ms", got)
		}
		if got := plain.Log.RecoveryPoint(); got != 3 {
			t.Errorf("recovery point %d without flush.ms", got)
		}
		mustClose(t, m, 1)
	})
}

// Idle costs nothing: an hour of 500 idle logs is a few hundred file calls, all of them of the checkpoints.
func TestIdleCalls(t *testing.T) {
	bubble(t, nil, func(t *testing.T, mem *vfs.Mem, s setup) {
		count := vfs.Count(mem)
		s.fs = count
		m := s.start(t)
		var requests []CreateRequest
		for i := range int32(500) {
			requests = append(requests, CreateRequest{Partition: tip(1, i), Topic: "foo", Dir: model.DirUnassigned, IsNew: true})
		}
		m.CreateAll(requests)
		later(time.Minute)
		count.Reset()
		later(time.Hour)
		writes, syncs := count.Get(vfs.OpWrite), count.Get(vfs.OpSync)
		if writes > 250 || syncs > 250 { // 2 directories, 2 files, once a minute
			t.Errorf("%d writes and %d syncs in an idle hour", writes, syncs)
		}
		if opens := count.Get(vfs.OpOpen) + count.Get(vfs.OpReadDir); opens > 10 {
			t.Errorf("%d opens in an idle hour", opens)
		}
		if stats := count.Get(vfs.OpStat); stats > 2*3600/5+10 {
			t.Errorf("%d stats in an idle hour", stats)
		}
		mustClose(t, m, 1)
	})
}

// J-127, J-130: a disk that hangs holds up neither the other directory's work nor the stop.
func TestHangingDisk(t *testing.T) {
	bubble(t, nil, func(t *testing.T, mem *vfs.Mem, s setup) {
		release := make(chan struct{})
		var hang atomic.Bool
		s.fs = vfs.Inject(mem, func(op vfs.Op) error {
			if hang.Load() && op.Kind == vfs.OpSync && under("/d2")(op) {
				<-release
			}
			return nil
		})
		m := s.start(t)
		a, _ := m.Create(tip(1, 0), "foo", dirID(1), nil, true)
		mustCreate(t, m, tip(1, 1), "foo")
		later(10 * time.Second)
		hang.Store(true)
		appendTo(t, a, 3)
		a.Log.SetHighWatermark(3)
		later(10 * time.Minute)
		mustContain(t, "high watermarks of the healthy directory", get(t, mem, "/d1/"+HighWatermarkFile), "foo 0 3")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		mustContain(t, "log", s.out.String(), "a file call hangs", "dir=/d2")
		if n := strings.Count(s.out.String(), "a file call hangs"); n != 1 {
			t.Errorf("one hanging call is logged %d times", n)
		}
		begin := time.Now()
		if err := m.Close(ctx, 1); err == nil {
			t.Error("a stop that left a directory open is no success")
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("the stop took %v", took)
		}
		close(release)
		synctest.Wait()
	})
}

// Everything at once, for the race detector: creations, deletions, checkpoints, a failing directory, a stop.
func TestConcurrentUse(t *testing.T) {
	mem := vfs.NewMem()
	var armed atomic.Bool
	fsys := failing(mem, errDisk, func(op vfs.Op) bool { return armed.Load() && op.Kind == vfs.OpSync && under("/d3")(op) })
	m := setup{fs: fsys, dirs: formatN(t, mem, 3), change: func(o *Options) {
		o.InitialTaskDelay, o.HighWatermarkInterval, o.RecoveryPointInterval = time.Nanosecond, time.Millisecond, time.Millisecond
		o.RetentionCheckInterval, o.LogStartInterval, o.Now = time.Millisecond, time.Millisecond, time.Now
	}}.start(t)
	m.OnOffline(func(DirFailed) {})
	var wg sync.WaitGroup
	for g := range byte(4) {
		wg.Go(func() {
			for i := range int32(40) {
				tp := tip(g+1, i)
				if r, err := m.Create(tp, fmt.Sprint("t", g), model.DirUnassigned, nil, true); err == nil {
					r.Log.AppendAsLeader(partlog.LeaderAppend{Records: batchOf(2, "x"), Now: 1})
					r.Log.SetHighWatermark(1)
				}
				if i == 20 && g == 0 {
					armed.Store(true)
				}
				if i%3 == 0 {
					m.Delete(tp)
				}
				m.Get(tp)
				m.Dirs()
				m.Replicas()
			}
		})
	}
	wg.Wait()
	if d, _ := m.DirectoryAt("/d3"); d.Online() {
		t.Error("/d3 did not fail")
	}
	m.Close(context.Background(), 1)
}
