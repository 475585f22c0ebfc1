package partlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"samsa/internal/base/kerr"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/storage/producerstate"
	"samsa/internal/wire/record"
)

// TestFewDescriptors: many segments and few descriptors; held slices survive the closing, the renaming and the deletion
// of their segment.
func TestFewDescriptors(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, fs)
	r.env.Files = partlog.NewFiles(8)
	r.cfg.SegmentBytes, r.cfg.RetentionBytes, r.cfg.RetentionMs = 300, 0, -1
	r.open(t, false)
	var want []byte
	var slices []*partlog.Slice
	for i := range 60 {
		b := batchOf(2, 1000, fmt.Sprint(i), 100)
		info := r.append(t, b)
		want = append(want, b...)
		res, err := r.log.Read(partlog.ReadRequest{Offset: info.BaseOffset, UpTo: info.LogEndOffset, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		slices = append(slices, res.Records)
	}
	if !bytes.Equal(r.all(t), want) {
		t.Fatal("read back differs")
	}
	if n := r.env.Files.Open(); n > 8 {
		t.Errorf("%d descriptors open, limit 8", n)
	}
	r.log.SetHighWatermark(r.log.LogEndOffset())
	d, _ := r.log.DeletableSegments(r.now)
	if _, err := r.log.DeleteOldSegments(d, r.now); err != nil {
		t.Fatal(err)
	}
	if err := r.log.RenameDir("/data/t-0.0123-delete"); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, s := range slices {
		if _, err := s.WriteTo(&got); err != nil {
			t.Fatal(err)
		}
		s.Release()
		s.Release()
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("slices of deleted segments differ")
	}
	// The log goes on under its new name.
	r.append(t, batchOf(1, 0, "x", 10))
	if err := r.log.Close(r.now); err != nil {
		t.Fatal(err)
	}
	if ok, _ := vfs.Exists(fs, "/data/t-0.0123-delete/00000000000000000120.log"); !ok {
		t.Error("the log did not move")
	}
}

// TestConcurrent: readers, flushes, retention and a writer at once, on a disk whose syncs take their time: a reader never waits for a sync or
// an append, and never sees a byte that is not the log's. Run it with -race.
func TestConcurrent(t *testing.T) {
	block := make(chan struct{})
	var blocked atomic.Bool
	fs := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && blocked.Load() {
			<-block
		}
		return nil
	})
	r := newRig(t, fs)
	r.env.Files = partlog.NewFiles(8)
	r.cfg.SegmentBytes, r.cfg.RetentionBytes, r.cfg.RetentionMs, r.cfg.IndexIntervalBytes = 4000, 20000, -1, 200
	r.open(t, false)

	stop := make(chan struct{})
	var wg sync.WaitGroup
	run := func(f func(rng *rand.Rand)) {
		seed := rand.Uint64()
		wg.Go(func() {
			for rng := rand.New(rand.NewPCG(seed, 1)); ; {
				select {
				case <-stop:
					return
				default:
					f(rng)
				}
			}
		})
	}
	read := func(rng *rand.Rand) {
		off := r.log.Offsets()
		at := off.LogStart + rng.Int64N(off.LogEnd-off.LogStart+1)
		res, err := r.log.Read(partlog.ReadRequest{Offset: at, UpTo: off.LogEnd, MaxBytes: 3000, MinOneBatch: true, Aborted: true})
		if err != nil {
			if !errors.Is(err, kerr.OffsetOutOfRange) {
				t.Error(err)
			}
			return
		}
		if res.Records == nil {
			return
		}
		defer res.Records.Release()
		var buf bytes.Buffer
		if _, err := res.Records.WriteTo(&buf); err != nil {
			t.Error(err)
			return
		}
		first := true
		for b, err := range record.Split(buf.Bytes()) {
			if err != nil || !b.ValidCRC() || first && (b.LastOffset() < at) {
				t.Errorf("reading at %d: %v %v", at, b, err)
				return
			}
			first = false
		}
	}
	run(read)
	run(read)
	run(func(*rand.Rand) {
		if err := r.log.Flush(0); err != nil {
			t.Error(err)
		}
	})
	run(func(rng *rand.Rand) {
		off := r.log.Offsets()
		if _, _, err := r.log.OffsetForTimestamp(rng.Int64N(2000)); err != nil {
			t.Error(err)
		}
		if _, err := r.log.BytesBetween(off.LogStart, off.LogEnd); err != nil {
			t.Error(err)
		}
		_, _ = r.log.Segments()
		r.log.Producers()
	})
	run(func(*rand.Rand) {
		r.log.SetHighWatermark(r.log.LogEndOffset())
		d, err := r.log.DeletableSegments(0)
		if err == nil {
			_, err = r.log.DeleteOldSegments(d, 0)
		}
		if err != nil {
			t.Error(err)
		}
	})
	seq := int32(0)
	for i := range 2000 {
		b := producerBatch(2, int64(i), 1, 0, seq, false)
		if _, err := r.log.AppendAsLeader(partlog.LeaderAppend{Records: b, Origin: producerstate.OriginClient, Now: int64(i)}); err != nil {
			t.Fatal(err)
		}
		seq += 2
	}
	close(stop)
	wg.Wait()

	// A sync that hangs stops neither appends nor reads.
	blocked.Store(true)
	r.append(t, batchOf(1, 0, "x", 10))
	done := make(chan error)
	go func() { done <- r.log.Flush(0) }()
	r.append(t, batchOf(1, 0, "x", 10))
	read(rand.New(rand.NewPCG(1, 1)))
	select {
	case err := <-done:
		t.Fatal("the flush did not hang:", err)
	default:
	}
	blocked.Store(false)
	close(block)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := r.log.Close(0); err != nil {
		t.Fatal(err)
	}
}

// TestNoAllocations: the produce path and a tail read (style 20).
func TestNoAllocations(t *testing.T) {
	r := newRig(t, vfs.OS())
	b := batchOf(1, 1000, "x", 100)
	l, _, err := partlog.Open(partlog.Options{FS: vfs.OS(), Dir: t.TempDir(), Env: r.env, New: true})
	if err != nil {
		t.Fatal(err)
	}
	appendOne := func() {
		if _, err := l.AppendAsLeader(partlog.LeaderAppend{Records: b, Epoch: 1, Origin: producerstate.OriginClient, Now: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2000 {
		appendOne() // index tails have grown
	}
	if n := testing.AllocsPerRun(500, appendOne); n > 0 {
		t.Errorf("an append allocates %.1f times", n)
	}
	if n := testing.AllocsPerRun(500, func() {
		end := l.LogEndOffset()
		res, err := l.Read(partlog.ReadRequest{Offset: end - 1, UpTo: end, MaxBytes: 1 << 20, MinOneBatch: true})
		if err != nil || res.Records == nil {
			t.Fatal(err)
		}
		res.Records.Release()
	}); n > 1 {
		t.Errorf("a read allocates %.1f times, expected the slice alone", n)
	}
}

// TestFlushRules: D-79.
func TestFlushRules(t *testing.T) {
	counter := vfs.Count(vfs.NewMem())
	r := newRig(t, counter)
	r.cfg.FlushMessages = 1
	r.open(t, false)
	r.append(t, batchOf(1, 0, "x", 10)) // names and the epoch file too
	counter.Reset()
	r.append(t, batchOf(1, 0, "x", 10))
	if n := counter.Get(vfs.OpSync); n != 1 || counter.Get(vfs.OpSyncDir) != 0 || counter.Get(vfs.OpWrite) != 1 {
		t.Errorf("flush.messages=1: %d syncs, %d directory syncs, %d writes for an append, expected 1, 0, 1", n, counter.Get(vfs.OpSyncDir), counter.Get(vfs.OpWrite))
	}
	if r.log.RecoveryPoint() != 2 {
		t.Errorf("recovery point %d", r.log.RecoveryPoint())
	}
	cfg := *r.cfg
	cfg.FlushMessages, cfg.FlushMs = 3, 100
	r.log.SetConfig(&cfg)
	counter.Reset()
	r.append(t, batchOf(2, 0, "x", 10))
	if counter.Get(vfs.OpSync) != 0 || r.log.Unflushed() != 2 {
		t.Error("flushed too early")
	}
	if r.log.FlushDue(r.now+99) || !r.log.FlushDue(r.now+100) {
		t.Error("flush.ms is not obeyed")
	}
	r.append(t, batchOf(1, 0, "x", 10))
	if counter.Get(vfs.OpSync) != 1 || r.log.FlushDue(r.now+1000) {
		t.Error("flush.messages=3 did not flush at 3")
	}
}

// TestCheapCreation: issue 3: a thousand topics are made in a moment. One file, no sync; an election adds nothing.
func TestCheapCreation(t *testing.T) {
	counter := vfs.Count(vfs.NewMem())
	r := newRig(t, counter)
	counter.Reset()
	l, _, err := partlog.Open(partlog.Options{FS: counter, Dir: dir, Env: r.env, New: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AssignEpoch(0, 0); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[vfs.OpKind]int64{vfs.OpCreate: 1, vfs.OpSync: 0, vfs.OpSyncDir: 0, vfs.OpReadDir: 0, vfs.OpWrite: 0, vfs.OpRename: 0, vfs.OpOpen: 0} {
		if n := counter.Get(kind); n != want {
			t.Errorf("%d times %v, expected %d", n, kind, want)
		}
	}
}
