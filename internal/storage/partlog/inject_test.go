package partlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// workload is a fixed history that touches every operation a log makes. It goes on after errors, as a node does
// with other partitions, and returns the batches that were acknowledged and not deleted since.
func workload(r *rig) (acked []stored, end int64, start int64) {
	r.cfg.SegmentBytes, r.cfg.IndexIntervalBytes, r.cfg.RetentionMs, r.cfg.RetentionBytes = 1500, 100, -1, 3000
	opened := false
	for range 3 { // the first attempt may meet the fault
		if r.tryOpen(opened) == nil {
			break
		}
	}
	if r.log == nil {
		return nil, 0, 0
	}
	seq := int32(0)
	appendOne := func(b []byte) {
		if info, err := r.tryAppend(b); err == nil {
			acked = append(acked, stored{info.BaseOffset, info.LastOffset, b})
			end = info.LastOffset + 1
		}
	}
	_ = r.log.AssignEpoch(3, 0)
	for i := range 14 {
		r.now += 10
		appendOne(batchOf(2, r.now, fmt.Sprint(i), 150))
		if p, ok := r.log.Producer(1); ok && len(p.Batches) > 0 {
			seq = p.Batches[len(p.Batches)-1].LastSequence + 1
		}
		appendOne(producerBatch(2, r.now, 1, 0, seq, true))
		switch i {
		case 3, 9:
			_ = r.log.Flush(r.now)
		case 5:
			_ = r.log.AssignEpoch(4, r.log.LogEndOffset())
		case 7:
			if _, err := r.log.TruncateTo(r.log.LogEndOffset()-4, r.now); err == nil {
				end = r.log.LogEndOffset()
				for len(acked) > 0 && acked[len(acked)-1].last >= end {
					acked = acked[:len(acked)-1]
				}
			} else {
				return nil, -1, 0 // half truncated: only a reload tells
			}
		case 11:
			r.log.SetHighWatermark(r.log.LogEndOffset())
			d, _ := r.log.DeletableSegments(r.now)
			_, _ = r.log.DeleteOldSegments(d, r.now)
		}
	}
	start = r.log.LogStartOffset()
	_ = r.log.Close(r.now)
	return acked, end, start
}

// TestInjectedErrors: D-22, D-23, D-86 in part: every file operation of a log's life fails once, whole or in part. No panic; what
// was acknowledged is there after the next start, whatever the fault hit.
func TestInjectedErrors(t *testing.T) {
	for _, fault := range []struct {
		name string
		err  error
	}{{"EIO", syscall.EIO}, {"ENOSPC_after_some_bytes", &vfs.Partial{N: 7, Err: syscall.ENOSPC}}, {"EMFILE", syscall.EMFILE}} {
		t.Run(fault.name, func(t *testing.T) {
			hit := map[vfs.OpKind]int{}
			for k := 0; ; k++ {
				n, fired := 0, vfs.Op{}
				disk := vfs.NewMem()
				r := newRig(t, vfs.Inject(disk, func(op vfs.Op) error {
					if op.Kind == vfs.OpMkdir {
						return nil
					}
					if n++; n-1 == k {
						fired = op
						return fault.err
					}
					return nil
				}))
				r.env.Files = partlog.NewFiles(8)
				acked, end, start := workload(r)
				if n <= k {
					t.Logf("%d operations: %v", k, hit)
					for _, kind := range []vfs.OpKind{vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpSyncDir, vfs.OpRename, vfs.OpRemove, vfs.OpTruncate, vfs.OpRead, vfs.OpReadDir} {
						if hit[kind] == 0 {
							t.Errorf("no %v was ever reached", kind)
						}
					}
					return
				}
				hit[fired.Kind]++
				if r.log != nil {
					r.log.Abandon()
				}
				r.fs = disk
				r.open(t, false, 0, start)
				if end < 0 {
					continue
				}
				if got := r.log.LogEndOffset(); got < end {
					t.Fatalf("operation %d (%v) failed: the log ends at %d, acknowledged up to %d", k, fired, got, end)
				}
				checkStored(t, r, acked, max(start, r.log.LogStartOffset()), fmt.Sprintf("operation %d (%v) failed", k, fired))
			}
		})
	}
}

// checkStored demands that every batch at or after start reads back.
func checkStored(t *testing.T, r *rig, batches []stored, start int64, when string) {
	t.Helper()
	for _, b := range batches {
		if b.base < start {
			continue
		}
		got, _, err := r.log.ReadBatches(make([]byte, 0, len(b.bytes)), b.base, r.log.LogEndOffset())
		if err != nil || !bytes.Equal(got, b.bytes) {
			t.Fatalf("%s: the batch at %d reads as %d bytes, %v; expected %d", when, b.base, len(got), err, len(b.bytes))
		}
	}
}

// TestOfflineDirectory: D-23, J-116: the error of a failed directory comes through every call, and nothing touches the disk again.
func TestOfflineDirectory(t *testing.T) {
	fail := false
	ops := 0
	disk := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind != vfs.OpClose {
			ops++
		}
		if fail && op.Kind == vfs.OpWrite {
			return syscall.EIO
		}
		return nil
	})
	if err := disk.MkdirAll("/data", 0o755); err != nil {
		t.Fatal(err)
	}
	offline := 0
	r := newRig(t, vfs.Dir(disk, "/data", func(*vfs.DirError) { offline++ }))
	r.open(t, false)
	r.append(t, batchOf(1, 0, "x", 10))
	fail = true
	_, err := r.tryAppend(batchOf(1, 0, "x", 10))
	var de *vfs.DirError
	if !errors.As(err, &de) || de.Dir != "/data" || offline != 1 {
		t.Fatalf("got %v, told %d times", err, offline)
	}
	fail, ops = false, 0
	_, err1 := r.tryAppend(batchOf(1, 0, "x", 10))
	err2 := r.log.Flush(0)
	_, err3 := r.log.Read(partlog.ReadRequest{Offset: 0, UpTo: 1, MaxBytes: 100})
	err4 := r.log.Close(0)
	for i, err := range []error{err1, err2, err4} {
		if !errors.As(err, &de) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	_ = err3 // a file that is open may still be read from memory
	if ops > 0 {
		t.Errorf("%d operations after the directory failed", ops)
	}
	r.log.Abandon()
}

// TestFailedSync: decision 8: after a failed sync nothing is written to the log any more, even when the disk seems well again.
func TestFailedSync(t *testing.T) {
	fail := false
	r := newRig(t, vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if fail && op.Kind == vfs.OpSync {
			return syscall.EIO
		}
		return nil
	}))
	r.open(t, false)
	r.append(t, batchOf(1, 0, "x", 10))
	fail = true
	if err := r.log.Flush(0); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	fail = false
	if r.log.RecoveryPoint() != 0 {
		t.Error("the recovery point moved")
	}
	if _, err := r.tryAppend(batchOf(1, 0, "x", 10)); !errors.Is(err, syscall.EIO) {
		t.Errorf("append after a failed sync: %v", err)
	}
	if err := r.log.Flush(0); !errors.Is(err, syscall.EIO) {
		t.Errorf("flush after a failed sync: %v", err)
	}
	if err := r.log.Close(0); err == nil {
		t.Error("a log whose sync failed closed clean")
	}
}
