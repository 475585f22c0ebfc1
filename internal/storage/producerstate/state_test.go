package producerstate

import (
	"errors"
	"math"
	"testing"

	"samsa/internal/base/kerr"
)

// append is one batch through both steps.
func (s *State) append(t testing.TB, b Batch, o Origin) error {
	t.Helper()
	var u Update
	u.Begin(s)
	if err := u.Add(&b, o, false); err != nil {
		return err
	}
	u.Apply(b.LastOffset+1, nil)
	return nil
}

func data(id int64, epoch int16, seq, n int32, offset int64) Batch {
	return Batch{ProducerID: id, ProducerEpoch: epoch, BaseSequence: seq, LastSequence: incrementSequence(seq, n-1),
		BaseOffset: offset, LastOffset: offset + int64(n) - 1, MaxTimestamp: 1000 + offset}
}

func txnData(id int64, epoch int16, seq, n int32, offset int64) Batch {
	b := data(id, epoch, seq, n, offset)
	b.Transactional = true
	return b
}

func marker(id int64, epoch int16, offset int64, abort bool, coordinator int32, version int16) Batch {
	return Batch{ProducerID: id, ProducerEpoch: epoch, BaseSequence: none, LastSequence: none, BaseOffset: offset, LastOffset: offset,
		MaxTimestamp: 1000 + offset, Transactional: true, Control: true, Abort: abort, CoordinatorEpoch: coordinator, TransactionVersion: version}
}

// TestSequences: D-90, D-91, D-93, D-24.
func TestSequences(t *testing.T) {
	known := []Batch{data(1, 5, 0, 10, 0)} // producer 1, epoch 5, last sequence 9
	cases := map[string]struct {
		before []Batch
		b      Batch
		origin Origin
		want   *kerr.Error
	}{
		"next":                              {known, data(1, 5, 10, 3, 10), OriginClient, nil},
		"gap":                               {known, data(1, 5, 11, 3, 10), OriginClient, kerr.OutOfOrderSequenceNumber},
		"partial_overlap":                   {known, data(1, 5, 8, 3, 10), OriginClient, kerr.OutOfOrderSequenceNumber},
		"higher_epoch_from_zero":            {known, data(1, 6, 0, 3, 10), OriginClient, nil},
		"higher_epoch_not_from_zero":        {known, data(1, 6, 10, 3, 10), OriginClient, kerr.OutOfOrderSequenceNumber},
		"lower_epoch":                       {known, data(1, 4, 10, 3, 10), OriginClient, kerr.InvalidProducerEpoch},
		"lower_epoch_by_coordinator":        {known, data(1, 4, 10, 3, 10), OriginCoordinator, kerr.InvalidProducerEpoch},
		"lower_epoch_replicated":            {known, data(1, 4, 10, 3, 10), OriginReplication, nil},
		"gap_by_coordinator":                {known, data(1, 5, 77, 3, 10), OriginCoordinator, nil},
		"gap_replicated":                    {known, data(1, 5, 77, 3, 10), OriginReplication, nil},
		"unknown_producer_any_sequence":     {nil, data(1, 5, 77, 3, 10), OriginClient, nil},
		"after_a_marker_only_from_zero":     {[]Batch{marker(1, 5, 0, false, 1, 0)}, data(1, 5, 0, 1, 1), OriginClient, nil},
		"after_a_marker_only_not_from_zero": {[]Batch{marker(1, 5, 0, false, 1, 0)}, data(1, 5, 1, 1, 1), OriginClient, kerr.OutOfOrderSequenceNumber},
		"after_a_marker_the_next": {[]Batch{txnData(1, 5, 0, 3, 0), marker(1, 5, 3, false, 1, 0)}, data(1, 5, 3, 1, 4),
			OriginClient, nil},
		"wrap":                        {[]Batch{data(1, 5, math.MaxInt32-1, 2, 0)}, data(1, 5, 0, 1, 2), OriginClient, nil},
		"wrap_inside_the_batch":       {[]Batch{data(1, 5, math.MaxInt32-1, 4, 0)}, data(1, 5, 2, 1, 4), OriginClient, nil},
		"no_wrap_before_the_end":      {[]Batch{data(1, 5, math.MaxInt32-2, 2, 0)}, data(1, 5, 0, 1, 2), OriginClient, kerr.OutOfOrderSequenceNumber},
		"plain_in_open_transaction":   {[]Batch{txnData(1, 5, 0, 3, 0)}, data(1, 5, 3, 1, 3), OriginClient, kerr.InvalidTxnState},
		"epoch_minus_one_is_accepted": {nil, data(1, -1, 4, 1, 0), OriginClient, nil},
		"negative_id_has_no_state":    {nil, data(-7, 3, 4, 1, 0), OriginClient, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s State
			for _, b := range c.before {
				if err := s.append(t, b, OriginReplication); err != nil {
					t.Fatal(err)
				}
			}
			before := s.Producers()
			err := s.append(t, c.b, c.origin)
			if kerr.Of(err) != c.want {
				t.Fatalf("got %v, expected %v", err, c.want)
			}
			if err != nil && len(s.Producers()) != len(before) {
				t.Error("a refused batch changed the state")
			}
		})
	}
}

// TestRequireZeroSequence: D-111, the part of it that is the log's.
func TestRequireZeroSequence(t *testing.T) {
	var s State
	var u Update
	u.Begin(&s)
	b := txnData(1, 0, 5, 1, 0)
	if err := u.Add(&b, OriginClient, true); !errors.Is(err, kerr.OutOfOrderSequenceNumber) {
		t.Fatalf("got %v", err)
	}
	u.Begin(&s)
	b = txnData(1, 0, 0, 1, 0)
	if err := u.Add(&b, OriginClient, true); err != nil {
		t.Fatal(err)
	}
}

// TestMarkers: D-96, D-98, D-100.
func TestMarkers(t *testing.T) {
	open := []Batch{txnData(1, 5, 0, 3, 10)}
	cases := map[string]struct {
		before []Batch
		m      Batch
		want   *kerr.Error
	}{
		"commit":                               {open, marker(1, 5, 13, false, 2, 0), nil},
		"abort_higher_epoch":                   {open, marker(1, 6, 13, true, 2, 0), nil},
		"old_epoch":                            {open, marker(1, 4, 13, true, 2, 0), kerr.InvalidProducerEpoch},
		"unknown_producer":                     {nil, marker(9, 0, 13, true, 2, 0), nil},
		"old_coordinator":                      {[]Batch{marker(1, 5, 0, false, 7, 0)}, marker(1, 5, 13, false, 6, 0), kerr.TransactionCoordinatorFenced},
		"same_coordinator":                     {[]Batch{marker(1, 5, 0, false, 7, 0)}, marker(1, 5, 13, false, 7, 0), nil},
		"version_2_same_epoch_open":            {open, marker(1, 5, 13, false, 2, 2), kerr.InvalidProducerEpoch},
		"version_2_higher_epoch":               {open, marker(1, 6, 13, false, 2, 2), nil},
		"version_2_retry":                      {[]Batch{marker(1, 5, 0, false, 2, 2)}, marker(1, 5, 13, false, 2, 2), nil},
		"version_2_lower_epoch_after_the_end":  {[]Batch{marker(1, 5, 0, false, 2, 2)}, marker(1, 4, 13, false, 2, 2), kerr.InvalidProducerEpoch},
		"version_2_same_greatest_epoch_passes": {[]Batch{txnData(1, math.MaxInt16, 0, 1, 0)}, marker(1, math.MaxInt16, 13, false, 2, 2), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s State
			for _, b := range c.before {
				if err := s.append(t, b, OriginCoordinator); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.append(t, c.m, OriginCoordinator); kerr.Of(err) != c.want {
				t.Fatalf("got %v, expected %v", err, c.want)
			}
			if c.want == nil {
				if p, _ := s.Producer(c.m.ProducerID); p.TxnFirstOffset != -1 || p.Epoch != c.m.ProducerEpoch || p.CoordinatorEpoch != c.m.CoordinatorEpoch {
					t.Fatalf("producer is %+v", p)
				}
			}
		})
	}
}

// TestWindow: D-88, D-89, D-92.
func TestWindow(t *testing.T) {
	var s State
	for i := range int32(6) {
		if err := s.append(t, data(1, 0, i*10, 10, int64(i)*10), OriginClient); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int32(6) {
		b := data(1, 0, i*10, 10, 1000)
		m, dup := s.Duplicate(&b)
		if want := i > 0; dup != want {
			t.Errorf("batch %d: duplicate is %t, expected %t", i, dup, want)
		}
		if dup && (m.BaseOffset() != int64(i)*10 || m.LastOffset != int64(i)*10+9) {
			t.Errorf("batch %d: original is %+v", i, m)
		}
	}
	for name, b := range map[string]Batch{"other_length": data(1, 0, 50, 9, 0), "other_epoch": data(1, 1, 50, 10, 0), "other_producer": data(2, 0, 50, 10, 0)} {
		if _, dup := s.Duplicate(&b); dup {
			t.Errorf("%s is taken for a duplicate", name)
		}
	}
	// A batch that wraps is found again.
	var w State
	b := data(1, 0, math.MaxInt32-1, 4, 7)
	if err := w.append(t, b, OriginClient); err != nil {
		t.Fatal(err)
	}
	if m, dup := w.Duplicate(&b); !dup || m.BaseSequence() != math.MaxInt32-1 {
		t.Errorf("wrapping batch: %v %+v", dup, m)
	}
}

// TestStableOffset: D-97, D-98.
func TestStableOffset(t *testing.T) {
	var s State
	var u Update
	step := func(b Batch) []Completed {
		t.Helper()
		u.Begin(&s)
		if err := u.Add(&b, OriginCoordinator, false); err != nil {
			t.Fatal(err)
		}
		return u.Apply(b.LastOffset+1, nil)
	}
	expect := func(unstable, undecided int64) {
		t.Helper()
		if s.FirstUnstable() != unstable || s.FirstUndecided() != undecided {
			t.Fatalf("unstable %d, undecided %d; expected %d, %d", s.FirstUnstable(), s.FirstUndecided(), unstable, undecided)
		}
	}
	expect(-1, -1)
	step(txnData(1, 0, 0, 2, 0))
	step(txnData(2, 0, 0, 2, 2))
	step(txnData(1, 0, 2, 2, 4))
	expect(0, 0)
	if done := step(marker(1, 0, 6, true, 1, 0)); len(done) != 1 || done[0].LastStableOffset != 2 || done[0].FirstOffset != 0 || done[0].LastOffset != 6 || !done[0].Abort {
		t.Fatalf("completed %+v", done)
	}
	expect(0, 2) // decided, but the marker is not replicated yet
	s.HighWatermark(6)
	expect(0, 2)
	s.HighWatermark(7)
	expect(2, 2)
	if done := step(marker(2, 0, 7, true, 1, 0)); len(done) != 1 || done[0].LastStableOffset != 8 {
		t.Fatalf("completed %+v", done)
	}
	expect(2, -1)
	s.HighWatermark(8)
	expect(-1, -1)
	if done := step(marker(3, 0, 8, true, 1, 0)); len(done) != 0 {
		t.Fatalf("a marker without a transaction completed %+v", done)
	}
}

// TestManyBatchesInOneAppend: a follower's append holds batches of several producers.
func TestManyBatchesInOneAppend(t *testing.T) {
	var s State
	var u Update
	u.Begin(&s)
	for _, b := range []Batch{txnData(1, 0, 0, 1, 0), data(2, 0, 0, 1, 1), txnData(1, 0, 1, 1, 2), marker(1, 0, 3, true, 1, 0), txnData(1, 0, 2, 1, 4)} {
		if err := u.Add(&b, OriginReplication, false); err != nil {
			t.Fatal(err)
		}
	}
	if s.Len() != 0 {
		t.Fatal("state changed before Apply")
	}
	done := u.Apply(5, nil)
	if len(done) != 1 || done[0].FirstOffset != 0 || done[0].LastOffset != 3 {
		t.Fatalf("completed %+v", done)
	}
	if p, _ := s.Producer(1); p.TxnFirstOffset != 4 || len(p.Batches) != 3 || s.End() != 5 {
		t.Fatalf("producer is %+v", p)
	}
	if s.FirstUndecided() != 4 {
		t.Fatalf("undecided is %d", s.FirstUndecided())
	}
}

// TestExpire: D-94, D-101.
func TestExpire(t *testing.T) {
	var s State
	for _, b := range []Batch{data(1, 0, 0, 1, 0), txnData(2, 0, 0, 1, 1), data(3, 0, 0, 1, 2000)} {
		if err := s.append(t, b, OriginClient); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.OldestOpenTimestamp(); got != 1001 {
		t.Errorf("oldest open timestamp %d", got)
	}
	if n := s.Expire(1999, 1000); n != 0 {
		t.Errorf("%d expired too early", n)
	}
	if n := s.Expire(2000, 1000); n != 1 {
		t.Errorf("%d expired, expected producer 1", n)
	}
	if s.Expire(1<<40, 1000) != 1 || s.Len() != 1 {
		t.Error("a producer with an open transaction must stay, the others go")
	}
	b := data(1, 0, 77, 1, 5000)
	if err := s.append(t, b, OriginClient); err != nil {
		t.Errorf("after expiry any sequence is accepted: %v", err)
	}
}
