package partlog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"samsa/internal/base/vfs"
	"samsa/internal/wire/record"
)

// cleaned writes <base>.log.cleaned and its indexes, as a cleaner would.
func cleaned(t *testing.T, fs vfs.FS, base int64, batches ...[]byte) {
	t.Helper()
	var content []byte
	maxTS, last := int64(-1), base
	for _, b := range batches {
		content = append(content, b...)
		if ts := record.Batch(b).MaxTimestamp(); ts > maxTS {
			maxTS, last = ts, record.Batch(b).LastOffset()
		}
	}
	times := make([]byte, 12)
	for i := range 8 {
		times[i] = byte(maxTS >> (56 - 8*i))
	}
	for i := range 4 {
		times[8+i] = byte((last - base) >> (24 - 8*i))
	}
	for suffix, b := range map[string][]byte{".log": content, ".index": nil, ".timeindex": times} {
		f, err := fs.OpenFile(fmt.Sprintf("%s/%020d%s.cleaned", dir, base, suffix), 0x42, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

// TestReplaceSegments: D-86, D-64, D-65: two segments merged to one; and the same with a crash before every operation: what
// is there afterwards is either the old segments or the new one, and nothing else of the log is touched.
func TestReplaceSegments(t *testing.T) {
	stop := fmt.Errorf("power is gone")
	for k := -1; ; k++ {
		disk := vfs.NewMem()
		n := -1 << 30
		r := newRig(t, vfs.Inject(disk, func(op vfs.Op) error {
			if n++; k >= 0 && n > k {
				return stop
			}
			return nil
		}))
		for _, d := range []string{"/", "/data"} {
			if err := disk.SyncDir(d); err != nil {
				t.Fatal(err)
			}
		}
		r.cfg.Compact = true
		r.open(t, false)
		var batches [][]byte
		for i := range 4 {
			b := batchOf(2, 1000+int64(i), fmt.Sprint(i), 50)
			r.append(t, b)
			batches = append(batches, b)
			if err := r.log.Roll(r.now); err != nil {
				t.Fatal(err)
			}
		}
		r.log.SetHighWatermark(r.log.LogEndOffset())
		if err := r.log.Flush(r.now); err != nil {
			t.Fatal(err)
		}
		cleaned(t, disk, 0, batches[1]) // the first batch's keys were written again in the second
		n = 0
		err := r.log.ReplaceSegments([]int64{0}, []int64{0, 2})
		old := bytes.Join(batches, nil)
		merged := bytes.Join(batches[1:], nil)
		if k < 0 {
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(r.bases(t)); got != "[0 4 6 8]" {
				t.Fatalf("segments at %s", got)
			}
			if !bytes.Equal(r.all(t), merged) {
				t.Fatal("the log differs from what was swapped in")
			}
			if err := r.log.Close(r.now); err != nil {
				t.Fatal(err)
			}
			r.open(t, true, 8)
			if !bytes.Equal(r.all(t), merged) {
				t.Fatal("after a clean restart the log differs")
			}
			continue
		}
		if err == nil {
			t.Logf("%d crashes", k)
			return
		}
		for seed := range uint64(4) {
			after := newRig(t, disk.CrashClone(rand.New(rand.NewPCG(seed, uint64(k)))))
			if seed == 3 { // at last a crash of the process alone
				after = newRig(t, disk)
			}
			after.cfg.Compact = true
			after.open(t, false, r.log.RecoveryPoint())
			if got := after.all(t); !bytes.Equal(got, old) && !bytes.Equal(got, merged) {
				t.Fatalf("crash before operation %d, seed %d: neither the old segments nor the new one: %v, %d bytes", k, seed, after.bases(t), len(got))
			}
			after.log.Abandon()
		}
	}
}

// TestReplaceRefuses: only closed, adjacent segments of this log.
func TestReplaceRefuses(t *testing.T) {
	r := newRig(t, vfs.NewMem())
	r.open(t, false)
	for range 3 {
		r.append(t, batchOf(1, 0, "x", 10))
		if err := r.log.Roll(0); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ cleaned, old []int64 }{
		"nothing": {nil, nil}, "not_adjacent": {[]int64{0}, []int64{0, 2}}, "active": {[]int64{2}, []int64{2, 3}}, "unknown": {[]int64{7}, []int64{7}},
		"no_file": {[]int64{0}, []int64{0}},
	} {
		if err := r.log.ReplaceSegments(c.cleaned, c.old); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if got := fmt.Sprint(r.bases(t)); got != "[0 1 2 3]" {
		t.Errorf("segments at %s", got)
	}
}
