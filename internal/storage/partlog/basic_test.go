package partlog_test

import (
	"bytes"
	"testing"

	"samsa/internal/base/vfs"
	"samsa/internal/wire/record"
)

func TestAppendReadReopen(t *testing.T) {
	for _, fs := range map[string]vfs.FS{"mem": vfs.NewMem()} {
		r := newRig(t, fs)
		r.cfg.SegmentBytes = 4096
		r.open(t, false)
		var want []byte
		for i := range 100 {
			b := batchOf(1+i%3, int64(1000+i), "x", 100)
			r.append(t, b)
			want = append(want, b...)
			if i%10 == 9 {
				if got := r.all(t); !bytes.Equal(got, want) {
					t.Fatalf("after %d appends: read %d bytes, want %d", i, len(got), len(want))
				}
			}
		}
		if err := r.log.Close(r.now); err != nil {
			t.Fatal(err)
		}
		end := r.log.LogEndOffset()
		r.open(t, true, end)
		if r.log.LogEndOffset() != end || !bytes.Equal(r.all(t), want) {
			t.Fatal("clean reopen: differs")
		}
		r.log.Abandon()
		r.open(t, false)
		if r.log.LogEndOffset() != end || !bytes.Equal(r.all(t), want) || r.info.SegmentsRecovered < 2 {
			t.Fatalf("unclean reopen: differs %d %+v", r.log.LogEndOffset(), r.info)
		}
		n := 0
		for b, err := range record.Split(r.all(t)) {
			if err != nil || !b.ValidCRC() {
				t.Fatal("bad batch")
			}
			n++
		}
	}
}
