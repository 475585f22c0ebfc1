package partlog_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"samsa/internal/base/kerr"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/storage/producerstate"
	"samsa/internal/wire/record"
)

// bases are the base offsets of all segments.
func (r *rig) bases(tb testing.TB) (list []int64) {
	tb.Helper()
	all, err := r.log.Segments()
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range all {
		list = append(list, s.Base)
	}
	return list
}

func exists(tb testing.TB, fs vfs.FS, name string) bool {
	tb.Helper()
	ok, err := vfs.Exists(fs, dir+"/"+name)
	if err != nil {
		tb.Fatal(err)
	}
	return ok
}

// follow appends a batch with an offset of its own, as a follower.
func (r *rig) follow(tb testing.TB, base int64, epoch int32, b []byte) partlog.AppendInfo {
	tb.Helper()
	record.Batch(b).SetBaseOffset(base)
	record.Batch(b).SetLeaderEpoch(epoch)
	info, err := r.log.AppendAsFollower(partlog.FollowerAppend{Records: b, Epoch: -1, Now: r.now})
	if err != nil {
		tb.Fatal(err)
	}
	return info
}

// TestRoll: D-56, D-57, D-58: when a new segment begins, and at which offset.
func TestRoll(t *testing.T) {
	day := int64(24 * 3600 * 1000)
	size := int64(len(batchOf(1, 0, "x", 1000)))
	cases := map[string]struct {
		cfg  func(*partlog.Config)
		run  func(t *testing.T, r *rig)
		want []int64
	}{
		"exactly_full_does_not_roll": {
			func(c *partlog.Config) { c.SegmentBytes = 2 * size },
			func(t *testing.T, r *rig) {
				r.append(t, batchOf(1, 0, "x", 1000))
				r.append(t, batchOf(1, 0, "x", 1000))
			},
			[]int64{0}},
		"one_byte_too_many": {
			func(c *partlog.Config) { c.SegmentBytes = 2*size - 1 },
			func(t *testing.T, r *rig) {
				r.append(t, batchOf(1, 0, "x", 1000))
				r.append(t, batchOf(1, 0, "x", 1000))
			},
			[]int64{0, 1}},
		"record_time_eight_days_apart": {nil,
			func(t *testing.T, r *rig) {
				r.append(t, batchOf(2, 1, "x", 10))
				r.append(t, batchOf(1, 1+8*day, "x", 10))
			},
			[]int64{0, 2}},
		"record_time_exactly_segment_ms": {nil,
			func(t *testing.T, r *rig) {
				r.append(t, batchOf(1, 1, "x", 10))
				r.append(t, batchOf(1, 1+7*day, "x", 10))
			},
			[]int64{0}},
		"clock_does_not_count_with_timestamps": {nil,
			func(t *testing.T, r *rig) {
				r.append(t, batchOf(1, 1, "x", 10))
				r.now += 8 * day
				r.append(t, batchOf(1, 2, "x", 10))
			},
			[]int64{0}},
		"clock_counts_without_timestamps": {nil,
			func(t *testing.T, r *rig) {
				r.append(t, batchOf(1, -1, "x", 10))
				r.now += 8 * day
				r.append(t, batchOf(1, -1, "x", 10))
			},
			[]int64{0, 1}},
		"empty_never_rolls_by_time": {nil,
			func(t *testing.T, r *rig) { r.now += 80 * day; r.append(t, batchOf(1, -1, "x", 10)) },
			[]int64{0}},
		"max_compaction_lag_counts_when_compacted": {
			func(c *partlog.Config) { c.Compact, c.MaxCompactionLagMs = true, day },
			func(t *testing.T, r *rig) {
				r.append(t, batchOf(1, 1, "x", 10))
				r.append(t, batchOf(1, 2+day, "x", 10))
			},
			[]int64{0, 1}},
		"max_compaction_lag_does_not_otherwise": {
			func(c *partlog.Config) { c.MaxCompactionLagMs = day },
			func(t *testing.T, r *rig) {
				r.append(t, batchOf(1, 1, "x", 10))
				r.append(t, batchOf(1, 2+day, "x", 10))
			},
			[]int64{0}},
		"offset_index_full": {
			func(c *partlog.Config) { c.SegmentIndexBytes, c.IndexIntervalBytes = 3*8, 1 },
			func(t *testing.T, r *rig) {
				for range 8 { // the first batch gets no entry: 4 batches make 3 entries; without times no time entries
					r.append(t, batchOf(1, -1, "x", 10))
				}
			},
			[]int64{0, 4}},
		"time_index_full": {
			func(c *partlog.Config) { c.SegmentIndexBytes, c.IndexIntervalBytes = 3*12, 1 },
			func(t *testing.T, r *rig) {
				for i := range 6 { // one slot is reserved: two entries fill it
					r.append(t, batchOf(1, int64(7+i), "x", 10))
				}
			},
			[]int64{0, 3}},
		"offset_overflow": {nil,
			func(t *testing.T, r *rig) {
				r.follow(t, 0, 0, batchOf(1, 7, "x", 10))
				r.follow(t, math.MaxInt32, 0, batchOf(1, 7, "x", 10))
				r.follow(t, math.MaxInt32+1, 0, batchOf(1, 7, "x", 10))
			},
			[]int64{0, math.MaxInt32 + 1}},
		"jitter": {
			func(c *partlog.Config) { c.SegmentJitterMs = 2 * day },
			func(t *testing.T, r *rig) {
				r.append(t, batchOf(1, 1, "x", 10))
				r.append(t, batchOf(1, 1+7*day, "x", 10))
			},
			[]int64{0, 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, vfs.NewMem())
			r.env.Rand = func() uint64 { return uint64(day) }
			if c.cfg != nil {
				c.cfg(r.cfg)
			}
			r.open(t, false)
			c.run(t, r)
			if got := r.bases(t); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Fatalf("segments at %v, expected %v", got, c.want)
			}
			// A closed segment has its indexes and the new base a snapshot (D-49, D-58).
			for _, base := range c.want[1:] {
				if !exists(t, r.fs, fmt.Sprintf("%020d.snapshot", base)) {
					t.Errorf("no snapshot at %d", base)
				}
			}
			if len(c.want) > 1 && (!exists(t, r.fs, "00000000000000000000.index") || !exists(t, r.fs, "00000000000000000000.timeindex")) {
				t.Error("the closed segment lacks an index")
			}
		})
	}
}

// TestLeaderErrors: D-09, D-15, D-20, D-89, D-90.
func TestLeaderErrors(t *testing.T) {
	old := func() []byte { b := batchOf(1, 0, "x", 10); b[16] = 1; return b }
	cut := batchOf(3, 0, "x", 10)
	cases := map[string]struct {
		records []byte
		want    *kerr.Error
	}{
		"nothing":       {nil, kerr.InvalidRecord},
		"cut":           {cut[:len(cut)-1], kerr.InvalidRecord},
		"trailing":      {append(batchOf(1, 0, "x", 10), 1, 2, 3), kerr.InvalidRecord},
		"old_magic":     {old(), kerr.InvalidRecord},
		"bad_length":    {make([]byte, 100), kerr.CorruptMessage},
		"too_large":     {batchOf(1, 0, "x", 5000), kerr.RecordListTooLarge},
		"out_of_order":  {producerBatch(1, 0, 1, 0, 7, false), kerr.OutOfOrderSequenceNumber},
		"too_old_epoch": {producerBatch(1, 0, 2, 3, 2, false), kerr.InvalidProducerEpoch},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, vfs.NewMem())
			r.cfg.SegmentBytes = 4096
			r.open(t, false)
			r.append(t, producerBatch(2, 0, 1, 0, 0, false))
			r.append(t, producerBatch(2, 0, 2, 4, 0, false))
			info, err := r.tryAppend(c.records)
			if !errors.Is(err, c.want) || info.BaseOffset != -1 || r.log.LogEndOffset() != 4 {
				t.Fatalf("got %+v, %v, end %d; expected %v", info, err, r.log.LogEndOffset(), c.want)
			}
			if info.LogStartOffset != 0 {
				t.Error("no log start in the answer")
			}
		})
	}
}

// TestDuplicate: D-21, D-89, D-223, and samsa's window over every kind of restart.
func TestDuplicate(t *testing.T) {
	for name, restart := range map[string]func(t *testing.T, r *rig){
		"running": func(t *testing.T, r *rig) {},
		"clean": func(t *testing.T, r *rig) {
			if err := r.log.Close(r.now); err != nil {
				t.Fatal(err)
			}
			r.open(t, true, r.log.LogEndOffset())
		},
		"kill_9": func(t *testing.T, r *rig) { r.log.Abandon(); r.open(t, false) },
		"rolled": func(t *testing.T, r *rig) {
			if err := r.log.Roll(r.now); err != nil {
				t.Fatal(err)
			}
			r.log.Abandon()
			r.open(t, false, r.log.LogEndOffset())
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, vfs.NewMem())
			r.open(t, false)
			for i := range int32(6) {
				r.append(t, producerBatch(3, 1000+int64(i), 1, 0, i*3, false))
			}
			restart(t, r)
			end := r.log.LogEndOffset()
			for i := range int32(6) {
				info, err := r.tryAppend(producerBatch(3, 9999, 1, 0, i*3, false))
				if i == 0 {
					if !errors.Is(err, kerr.OutOfOrderSequenceNumber) {
						t.Errorf("the sixth last batch: %+v, %v", info, err)
					}
					continue
				}
				if err != nil || !info.Duplicate || info.BaseOffset != int64(i)*3 || info.LastOffset != int64(i)*3+2 || info.MaxTimestamp != 1002+int64(i) {
					t.Errorf("batch %d again: %+v, %v", i, info, err)
				}
			}
			if r.log.LogEndOffset() != end {
				t.Error("a duplicate was appended")
			}
			// Coordinators and replicas are not asked.
			if info, err := r.log.AppendAsLeader(partlog.LeaderAppend{Records: producerBatch(3, 0, 1, 0, 15, false), Origin: producerstate.OriginCoordinator}); err != nil || info.Duplicate {
				t.Errorf("a coordinator's batch: %+v, %v", info, err)
			}
		})
	}
}

// TestAssignedInPlace: D-01, D-20.
func TestAssignedInPlace(t *testing.T) {
	r := newRig(t, vfs.NewMem())
	r.open(t, false)
	r.append(t, batchOf(3, 0, "x", 10))
	two := append(batchOf(2, 5, "a", 10), batchOf(4, 6, "b", 10)...)
	info, err := r.log.AppendAsLeader(partlog.LeaderAppend{Records: two, Epoch: 9, Now: 1})
	if err != nil || info.BaseOffset != 3 || info.LastOffset != 8 || info.Batches != 2 || info.Records != 6 || info.Bytes != len(two) || info.MaxTimestamp != 9 || info.LogEndOffset != 9 {
		t.Fatalf("%+v, %v", info, err)
	}
	next := int64(3)
	for b, err := range record.Split(two) {
		if err != nil || b.BaseOffset() != next || b.LeaderEpoch() != 9 || !b.ValidCRC() {
			t.Fatalf("%v %v", b, err)
		}
		next = b.NextOffset()
	}
	if e := r.log.LatestEpoch(); e != 9 {
		t.Errorf("latest epoch %d", e)
	}
	if e := r.log.EpochForOffset(2); e != 3 {
		t.Errorf("offset 2 is of epoch %d", e)
	}
}

// TestFollower: D-22, D-24, D-138; K-56.
func TestFollower(t *testing.T) {
	at := func(base int64, epoch int32, n int) []byte {
		b := batchOf(n, 5, "f", 10)
		record.Batch(b).SetBaseOffset(base)
		record.Batch(b).SetLeaderEpoch(epoch)
		return b
	}
	join := func(all ...[]byte) (out []byte) {
		for _, b := range all {
			out = append(out, b...)
		}
		return out
	}
	flip := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
	whole := at(2, 1, 2)
	cases := map[string]struct {
		a       partlog.FollowerAppend
		end     int64
		err     error
		refused bool
	}{
		"offsets_kept":              {partlog.FollowerAppend{Records: join(at(0, 1, 2), at(2, 1, 3)), Epoch: 1}, 5, nil, false},
		"gap_allowed":               {partlog.FollowerAppend{Records: join(at(0, 1, 2), at(7, 1, 3)), Epoch: 1}, 10, nil, false},
		"gap_refused_in_metadata":   {partlog.FollowerAppend{Records: join(at(0, 1, 2), at(7, 1, 3)), Epoch: 1, Contiguous: true}, 2, nil, true},
		"gap_first_in_metadata":     {partlog.FollowerAppend{Records: at(7, 1, 3), Epoch: 1, Contiguous: true}, 0, partlog.ErrOffsetOrder, false},
		"partial_tail_ignored":      {partlog.FollowerAppend{Records: join(at(0, 1, 2), whole[:len(whole)-5]), Epoch: 1}, 2, nil, false},
		"nothing":                   {partlog.FollowerAppend{Records: whole[:20], Epoch: 1}, 0, nil, false},
		"bad_checksum_first":        {partlog.FollowerAppend{Records: flip(at(0, 1, 2)), Epoch: 1}, 0, kerr.CorruptMessage, false},
		"bad_checksum_later":        {partlog.FollowerAppend{Records: join(at(0, 1, 2), flip(at(2, 1, 2))), Epoch: 1}, 2, nil, true},
		"later_epoch":               {partlog.FollowerAppend{Records: join(at(0, 1, 2), at(2, 2, 2)), Epoch: 1}, 2, nil, true},
		"overlapping_itself":        {partlog.FollowerAppend{Records: join(at(0, 1, 2), at(1, 1, 2)), Epoch: 1}, 2, nil, true},
		"larger_than_segment_bytes": {partlog.FollowerAppend{Records: join(at(0, 1, 50), at(50, 1, 50), at(100, 1, 50)), Epoch: 1}, 150, nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, vfs.NewMem())
			r.cfg.SegmentBytes = 2000
			r.open(t, false)
			info, err := r.log.AppendAsFollower(c.a)
			if !errors.Is(err, c.err) || (info.Refused != nil) != c.refused || r.log.LogEndOffset() != c.end {
				t.Fatalf("got %+v, %v, end %d", info, err, r.log.LogEndOffset())
			}
			if c.end > 0 && r.log.LatestEpoch() != 1 {
				t.Errorf("latest epoch %d", r.log.LatestEpoch())
			}
		})
	}
	t.Run("below_the_end", func(t *testing.T) {
		r := newRig(t, vfs.NewMem())
		r.open(t, false)
		r.follow(t, 0, 0, batchOf(5, 0, "x", 1))
		if _, err := r.log.AppendAsFollower(partlog.FollowerAppend{Records: at(3, 1, 5), Epoch: 1}); !errors.Is(err, partlog.ErrOffsetOrder) {
			t.Fatal(err)
		}
	})
	t.Run("empty_log_ends_inside_the_first_batch", func(t *testing.T) {
		r := newRig(t, vfs.NewMem())
		r.open(t, false, 0, 7)
		if _, err := r.log.AppendAsFollower(partlog.FollowerAppend{Records: at(5, 1, 5), Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		if off := r.log.Offsets(); off.LogEnd != 10 || off.LogStart != 7 || fmt.Sprint(r.bases(t)) != "[5]" {
			t.Fatalf("%+v %v", off, r.bases(t))
		}
	})
	t.Run("producers_are_followed", func(t *testing.T) { // D-88, D-100: never refused, applied from the data itself
		r := newRig(t, vfs.NewMem())
		r.open(t, false)
		r.follow(t, 0, 0, producerBatch(2, 0, 1, 5, 0, true))
		r.follow(t, 2, 0, producerBatch(2, 0, 1, 5, 40, true))
		r.follow(t, 4, 0, record.AppendEndTxnMarker(nil, 0, 0, 1, 1, 5, false, 2))
		r.follow(t, 5, 0, producerBatch(2, 0, 1, 4, 0, false))
		if p, ok := r.log.Producer(1); !ok || p.Epoch != 4 || p.CoordinatorEpoch != 2 {
			t.Fatalf("%+v", p)
		}
		if a, err := r.log.AbortedTransactions(0, 10); err != nil || len(a) != 1 || a[0] != (partlog.AbortedTxn{ProducerID: 1, FirstOffset: 0, LastOffset: 4, LastStableOffset: 5}) {
			t.Fatalf("%+v %v", a, err)
		}
	})
}

// TestClosed: a closed log refuses everything, with the error the protocol has for it.
func TestClosed(t *testing.T) {
	r := newRig(t, vfs.NewMem())
	r.open(t, false)
	r.append(t, batchOf(1, 0, "x", 10))
	if err := r.log.Close(r.now); err != nil {
		t.Fatal(err)
	}
	if err := r.log.Close(r.now); err != nil {
		t.Error("closing twice:", err)
	}
	if r.log.RecoveryPoint() != 1 {
		t.Error("recovery point after a clean close:", r.log.RecoveryPoint())
	}
	_, err1 := r.tryAppend(batchOf(1, 0, "x", 10))
	_, err2 := r.log.Read(partlog.ReadRequest{Offset: 0, UpTo: 1, MaxBytes: 10})
	_, err3 := r.log.TruncateTo(0, 0)
	err4 := r.log.Flush(0)
	_, err5 := r.log.DeleteOldSegments(partlog.Deletable{}, 0)
	for i, err := range []error{err1, err2, err3, err4, err5} {
		if !errors.Is(err, kerr.KafkaStorageError) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	if r.env.Files.Open() != 0 {
		t.Errorf("%d files are still open", r.env.Files.Open())
	}
}
