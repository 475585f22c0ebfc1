package producerstate

import (
	"slices"
	"sort"

	"samsa/internal/base/kerr"
)

// none marks an absent epoch, sequence, offset or timestamp.
const none = -1

// entry is what the state holds per producer: a value, so that copying it is copying it.
type entry struct {
	epoch            int16
	n                uint8
	coordinatorEpoch int32
	lastTimestamp    int64
	txnFirst         int64
	batches          [WindowSize]BatchMetadata // oldest first
}

func emptyEntry() entry {
	return entry{epoch: none, coordinatorEpoch: none, lastTimestamp: none, txnFirst: none}
}

func (e *entry) lastSequence() int32 {
	if e.n == 0 {
		return none
	}
	return e.batches[e.n-1].LastSequence
}

// setEpoch forgets the batches of another epoch.
func (e *entry) setEpoch(epoch int16) {
	if e.epoch != epoch {
		e.epoch, e.n = epoch, 0
	}
}

func (e *entry) add(epoch int16, b BatchMetadata) {
	e.setEpoch(epoch)
	if e.n == WindowSize {
		copy(e.batches[:], e.batches[1:])
		e.n--
	}
	e.batches[e.n] = b
	e.n++
	e.lastTimestamp = b.Timestamp
}

func (e *entry) find(b *Batch) (BatchMetadata, bool) {
	if e.epoch != b.ProducerEpoch {
		return BatchMetadata{}, false
	}
	for i := range e.batches[:e.n] {
		if m := e.batches[i]; m.LastSequence == b.LastSequence && m.BaseSequence() == b.BaseSequence {
			return m, true
		}
	}
	return BatchMetadata{}, false
}

func (e *entry) producer(id int64) Producer {
	return Producer{
		ID: id, Epoch: e.epoch, CoordinatorEpoch: e.coordinatorEpoch, LastTimestamp: e.lastTimestamp,
		TxnFirstOffset: e.txnFirst, Batches: slices.Clone(e.batches[:e.n]),
	}
}

// txn is an open transaction, or one that has ended: then last is the marker's offset.
type txn struct {
	first, last int64
	producer    int64
}

// State is what one partition knows of its producers. The zero value is empty and ready.
type State struct {
	producers map[int64]*entry
	// open and unreplicated are ordered by first offset. Completed transactions stay in unreplicated until their
	// marker is below the high watermark (D-97).
	open         []txn
	unreplicated []txn
	end          int64
}

// End is the offset up to which (exclusive) the state is built.
func (s *State) End() int64 { return s.end }

// SetEnd says that batches without a producer, or none at all, lie between End and end.
func (s *State) SetEnd(end int64) { s.end = end }

// Len is the number of producers.
func (s *State) Len() int { return len(s.producers) }

// Reset forgets everything.
func (s *State) Reset(end int64) { *s = State{end: end} }

// Duplicate finds a batch that was appended before: same epoch, same first and last sequence (D-89).
func (s *State) Duplicate(b *Batch) (BatchMetadata, bool) {
	if e := s.producers[b.ProducerID]; e != nil {
		return e.find(b)
	}
	return BatchMetadata{}, false
}

// Producer is the state of one producer.
func (s *State) Producer(id int64) (Producer, bool) {
	e := s.producers[id]
	if e == nil {
		return Producer{}, false
	}
	return e.producer(id), true
}

// Producers lists all, ordered by id.
func (s *State) Producers() []Producer {
	all := make([]Producer, 0, len(s.producers))
	for id, e := range s.producers {
		all = append(all, e.producer(id))
	}
	sort.Slice(all, func(i, j int) bool { return all[i].ID < all[j].ID })
	return all
}

// Load replaces the state with producers read from a snapshot that ends at end. Those idle since before
// now-expirationMs are left out, unless they have an open transaction (D-94).
func (s *State) Load(producers []Producer, end, now, expirationMs int64) {
	s.Reset(end)
	for i := range producers {
		p := &producers[i]
		if expired(p.TxnFirstOffset, p.LastTimestamp, now, expirationMs) {
			continue
		}
		e := entry{epoch: p.Epoch, coordinatorEpoch: p.CoordinatorEpoch, lastTimestamp: p.LastTimestamp, txnFirst: p.TxnFirstOffset}
		for _, b := range p.Batches[max(0, len(p.Batches)-WindowSize):] {
			e.batches[e.n] = b
			e.n++
		}
		s.put(p.ID, &e)
		if e.txnFirst >= 0 {
			s.open = insert(s.open, txn{first: e.txnFirst, last: none, producer: p.ID})
		}
	}
}

func (s *State) put(id int64, e *entry) {
	if s.producers == nil {
		s.producers = map[int64]*entry{}
	}
	s.producers[id] = e
}

func insert(list []txn, t txn) []txn {
	at := sort.Search(len(list), func(i int) bool { return list[i].first >= t.first })
	if at < len(list) && list[at].first == t.first {
		list[at] = t
		return list
	}
	return slices.Insert(list, at, t)
}

func expired(txnFirst, lastTimestamp, now, expirationMs int64) bool {
	return txnFirst < 0 && now-lastTimestamp >= expirationMs
}

// Expire forgets producers idle for expirationMs or longer, never one with an open transaction (D-94).
// It returns how many went.
func (s *State) Expire(now, expirationMs int64) int {
	gone := 0
	for id, e := range s.producers {
		if expired(e.txnFirst, e.lastTimestamp, now, expirationMs) {
			delete(s.producers, id)
			gone++
		}
	}
	return gone
}

// FirstUnstable is the first offset of the earliest transaction that is open, or whose marker the high watermark has
// not passed; -1 when there is none (D-97).
func (s *State) FirstUnstable() int64 {
	first := int64(none)
	if len(s.open) > 0 {
		first = s.open[0].first
	}
	if len(s.unreplicated) > 0 && (first < 0 || s.unreplicated[0].first < first) {
		first = s.unreplicated[0].first
	}
	return first
}

// FirstUndecided is the first offset of the earliest open transaction; -1 when there is none.
func (s *State) FirstUndecided() int64 {
	if len(s.open) == 0 {
		return none
	}
	return s.open[0].first
}

// OldestOpenTimestamp is the last timestamp of the producer whose transaction has been open longest; -1 when none (D-101).
func (s *State) OldestOpenTimestamp() int64 {
	if len(s.open) == 0 {
		return none
	}
	if e := s.producers[s.open[0].producer]; e != nil {
		return e.lastTimestamp
	}
	return none
}

// HighWatermark says that everything below hw is replicated; it reports whether FirstUnstable may have changed.
func (s *State) HighWatermark(hw int64) bool {
	if len(s.unreplicated) == 0 {
		return false
	}
	before := len(s.unreplicated)
	s.unreplicated = slices.DeleteFunc(s.unreplicated, func(t txn) bool { return t.last < hw })
	return len(s.unreplicated) != before
}

// Update is the effect of batches that are about to be appended. Reset it and use it again.
type Update struct {
	state     *State
	staged    []staged
	started   []txn
	completed []CompletedTxn
	one       [1]staged
}

type staged struct {
	id    int64
	entry entry
}

// Begin empties u for an append to s.
func (u *Update) Begin(s *State) {
	u.state = s
	if u.staged == nil {
		u.staged = u.one[:0]
	}
	u.staged, u.started, u.completed = u.staged[:0], u.started[:0], u.completed[:0]
}

func (u *Update) stage(id int64) (*staged, bool) {
	for i := range u.staged {
		if u.staged[i].id == id {
			return &u.staged[i], u.staged[i].entry.epoch != none
		}
	}
	s := staged{id: id, entry: emptyEntry()}
	known := false
	if e := u.state.producers[id]; e != nil {
		s.entry, known = *e, true
	}
	u.staged = append(u.staged, s)
	return &u.staged[len(u.staged)-1], known
}

// Add checks b, which follows the batches added before it, and stages its effect. Batches without a producer
// (id below 0) have none. An error leaves u unusable and the state untouched.
//
// requireZero refuses a first sequence other than 0 from a producer that is not known here (D-111).
func (u *Update) Add(b *Batch, origin Origin, requireZero bool) error {
	if b.ProducerID < 0 {
		return nil
	}
	s, known := u.stage(b.ProducerID)
	if b.Control {
		return u.marker(s, b, origin)
	}
	e := &s.entry
	if err := checkEpoch(e, b, origin, 0); err != nil {
		return err
	}
	if origin == OriginClient {
		if err := checkSequence(e, b, known, requireZero); err != nil {
			return err
		}
	}
	if e.txnFirst >= 0 && !b.Transactional {
		return kerr.InvalidTxnState.With("Expected transactional write from producer %d at offset %d", b.ProducerID, b.BaseOffset)
	}
	e.add(b.ProducerEpoch, BatchMetadata{
		LastSequence: b.LastSequence, LastOffset: b.LastOffset, OffsetDelta: int32(b.LastOffset - b.BaseOffset), Timestamp: b.MaxTimestamp,
	})
	if e.txnFirst < 0 && b.Transactional {
		e.txnFirst = b.BaseOffset
		u.started = append(u.started, txn{first: b.BaseOffset, last: none, producer: b.ProducerID})
	}
	return nil
}

func (u *Update) marker(s *staged, b *Batch, origin Origin) error {
	e := &s.entry
	if err := checkEpoch(e, b, origin, b.TransactionVersion); err != nil {
		return err
	}
	if e.coordinatorEpoch > b.CoordinatorEpoch && origin != OriginReplication {
		return kerr.TransactionCoordinatorFenced.With(
			"Invalid coordinator epoch for producerId %d at offset %d: %d (zombie), %d (current)",
			b.ProducerID, b.BaseOffset, b.CoordinatorEpoch, e.coordinatorEpoch)
	}
	if e.txnFirst >= 0 {
		u.completed = append(u.completed, CompletedTxn{ProducerID: b.ProducerID, FirstOffset: e.txnFirst, LastOffset: b.BaseOffset, Abort: b.Abort})
	}
	e.setEpoch(b.ProducerEpoch)
	e.coordinatorEpoch, e.lastTimestamp, e.txnFirst = b.CoordinatorEpoch, b.MaxTimestamp, none
	return nil
}

// checkEpoch is D-91 and, for markers of transaction version 2, D-100. maxEpoch is let through as Kafka does.
func checkEpoch(e *entry, b *Batch, origin Origin, version int16) error {
	const maxEpoch = 1<<15 - 1
	bad := b.ProducerEpoch < e.epoch
	relation := "smaller than"
	if version >= 2 {
		relation = "not above"
		bad = b.ProducerEpoch < e.epoch || b.ProducerEpoch == e.epoch && e.txnFirst >= 0 && b.ProducerEpoch != maxEpoch
	}
	if !bad || origin == OriginReplication {
		return nil
	}
	return kerr.InvalidProducerEpoch.With("Epoch of producer %d at offset %d is %d, which is %s the last seen epoch %d",
		b.ProducerID, b.BaseOffset, b.ProducerEpoch, relation, e.epoch)
}

// checkSequence is D-90.
func checkSequence(e *entry, b *Batch, known, requireZero bool) error {
	switch {
	case requireZero && !known && b.BaseSequence != 0:
		return kerr.OutOfOrderSequenceNumber.With(
			"Invalid sequence number for producer %d at offset %d: %d (incoming seq. number), expected 0 from a producer without state",
			b.ProducerID, b.BaseOffset, b.BaseSequence)
	case e.epoch == none:
		return nil // unknown here, or all its records are gone: any sequence
	case b.ProducerEpoch != e.epoch:
		if b.BaseSequence != 0 {
			return kerr.OutOfOrderSequenceNumber.With(
				"Invalid sequence number for new epoch of producer %d at offset %d: %d (request epoch), %d (seq. number), %d (current producer epoch)",
				b.ProducerID, b.BaseOffset, b.ProducerEpoch, b.BaseSequence, e.epoch)
		}
	case !follows(e.lastSequence(), b.BaseSequence):
		return kerr.OutOfOrderSequenceNumber.With(
			"Out of order sequence number for producer %d at offset %d: %d (incoming seq. number), %d (current end sequence number)",
			b.ProducerID, b.BaseOffset, b.BaseSequence, e.lastSequence())
	}
	return nil
}

// Completed is a transaction that an update ended, with the last stable offset for the transaction index (D-98).
type Completed struct {
	CompletedTxn
	LastStableOffset int64
}

// Apply makes the update part of the state, which then reaches to end. It appends the transactions that ended to dst.
func (u *Update) Apply(end int64, dst []Completed) []Completed {
	s := u.state
	for i := range u.staged {
		if e := s.producers[u.staged[i].id]; e != nil {
			*e = u.staged[i].entry
		} else {
			e := u.staged[i].entry
			s.put(u.staged[i].id, &e)
		}
	}
	for _, t := range u.started {
		s.open = insert(s.open, t)
	}
	for _, c := range u.completed {
		lso := c.LastOffset + 1
		for _, t := range s.open {
			if t.producer != c.ProducerID {
				lso = t.first
				break
			}
		}
		dst = append(dst, Completed{c, lso})
		s.open = slices.DeleteFunc(s.open, func(t txn) bool { return t.first == c.FirstOffset })
		s.unreplicated = insert(s.unreplicated, txn{first: c.FirstOffset, last: c.LastOffset, producer: c.ProducerID})
	}
	s.end = end
	return dst
}
