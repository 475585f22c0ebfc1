package partlog

import (
	"fmt"
	"math"
	"sync"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/storage/producerstate"
	"samsa/internal/wire/record"
)

// LeaderAppend is one append of a leader.
type LeaderAppend struct {
	// Records is one or more whole v2 batches back to back. Base offsets and leader epochs in it are rewritten in
	// place; the memory is the caller's again when AppendAsLeader returns.
	Records []byte
	Epoch   model.LeaderEpoch
	Origin  producerstate.Origin
	// TransactionVersion of the request that writes a marker (D-100); 0 otherwise.
	TransactionVersion int16
	// RequireZeroSequence refuses a first sequence other than 0 from a producer unknown here (transactional
	// Produce v12, D-111).
	RequireZeroSequence bool
	Now                 int64
}

// FollowerAppend is what a follower fetched: offsets and epochs are the leader's and are kept.
type FollowerAppend struct {
	// Records may end in a part of a batch, which is ignored. It is only read.
	Records []byte
	// Epoch is the leader epoch the fetch was made in: a batch of a later epoch is refused (K-56, D-138). -1: not checked.
	Epoch model.LeaderEpoch
	// Contiguous demands that every batch begins at the log end (the metadata log); otherwise gaps are allowed.
	Contiguous bool
	Now        int64
}

// AppendInfo tells where records went.
type AppendInfo struct {
	BaseOffset     int64 // first offset of the first batch; -1 when nothing was appended
	LastOffset     int64
	MaxTimestamp   int64
	LogStartOffset int64
	LogEndOffset   int64 // after the append
	Batches        int
	Records        int64 // by offsets: control records count
	Bytes          int
	// Duplicate: the batch was appended before (D-89). Offsets and MaxTimestamp are the stored batch's and
	// nothing was written.
	Duplicate bool
	// Refused is why a follower's append stopped before the end of its records: a damaged batch or one of a later
	// epoch. What came before it was appended.
	Refused error
}

// incoming is a batch about to be written.
type incoming struct {
	batch record.Batch
	base  int64
	last  int64
	maxTS int64
}

// scratch is what an append needs besides the log; pooled, so that an idle log holds none.
type scratch struct {
	in        []incoming
	update    producerstate.Update
	completed []producerstate.Completed
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) release() {
	clear(s.in)
	s.in = s.in[:0]
	s.update.Begin(nil)
	scratches.Put(s)
}

// AppendAsLeader checks producer state, assigns offsets and the leader epoch, and writes with one call.
//
// On return the bytes are in the file, not synced, unless flush.messages says so.
// Errors: kerr.CorruptMessage and kerr.InvalidRecord for records that are not whole batches, kerr.RecordListTooLarge (D-15),
// kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch, kerr.InvalidTxnState,
// kerr.TransactionCoordinatorFenced (D-90, D-91, D-93, D-100), kerr.KafkaStorageError when the log is closed,
// *vfs.DirError when the directory is offline. After an error nothing was appended, unless it is the flush that
// flush.messages asked for which failed.
func (l *Log) AppendAsLeader(a LeaderAppend) (AppendInfo, error) {
	sc := scratches.Get().(*scratch)
	defer sc.release()
	none := AppendInfo{BaseOffset: -1, LastOffset: -1, MaxTimestamp: -1}
	for rest := a.Records; len(rest) > 0; {
		b, more, err := record.Next(rest)
		if err != nil {
			return none, err
		}
		if b == nil || b.Magic() < 2 || b.LastOffsetDelta() < 0 {
			return none, kerr.InvalidRecord.With("%s: expected whole batches of format 2", l.partition)
		}
		sc.in = append(sc.in, incoming{batch: b})
		rest = more
	}
	if len(sc.in) == 0 {
		return none, kerr.InvalidRecord.With("%s: no record batch", l.partition)
	}

	info, rolled, err := l.appendLeader(&a, sc)
	return info, l.afterAppend(a.Now, rolled, err)
}

func (l *Log) appendLeader(a *LeaderAppend, sc *scratch) (info AppendInfo, rolled bool, err error) {
	l.write.Lock()
	defer l.write.Unlock()
	info = AppendInfo{BaseOffset: -1, LastOffset: -1, MaxTimestamp: -1, LogStartOffset: l.LogStartOffset(), LogEndOffset: l.end}
	if err := l.usable(); err != nil {
		return info, false, err
	}
	if limit := l.Config().SegmentBytes; int64(len(a.Records)) > limit {
		return info, false, kerr.RecordListTooLarge.With("%s: %d bytes do not fit a segment of segment.bytes=%d", l.partition, len(a.Records), limit)
	}
	next := l.end
	sc.update.Begin(&l.producers)
	for i := range sc.in {
		in := &sc.in[i]
		in.base, in.last, in.maxTS = next, next+int64(in.batch.LastOffsetDelta()), in.batch.MaxTimestamp()
		if in.last < next {
			return info, false, kerr.InvalidRecord.With("%s: offset %d is the last one possible", l.partition, int64(math.MaxInt64))
		}
		next = in.last + 1
		if !in.batch.HasProducerID() {
			continue
		}
		pb, ok, err := producerBatch(in)
		if err != nil {
			return info, false, err
		}
		if !ok {
			continue
		}
		pb.TransactionVersion = a.TransactionVersion
		if a.Origin == producerstate.OriginClient {
			if m, dup := l.producers.Duplicate(&pb); dup {
				info.BaseOffset, info.LastOffset, info.MaxTimestamp, info.Duplicate = m.BaseOffset(), m.LastOffset, m.Timestamp, true
				return info, false, nil
			}
		}
		if err := sc.update.Add(&pb, a.Origin, a.RequireZeroSequence); err != nil {
			return info, false, fmt.Errorf("%s: %w", l.partition, err)
		}
	}
	for i := range sc.in {
		sc.in[i].batch.SetBaseOffset(sc.in[i].base)
		sc.in[i].batch.SetLeaderEpoch(int32(a.Epoch))
	}
	rolled, err = l.maybeRoll(sc.in, len(a.Records), a.Now)
	if err == nil {
		err = l.put(sc, a.Records, &info)
	}
	return info, rolled, err
}

// producerBatch is what producer state needs to know of a batch; ok is false when it has no effect there: a marker that
// compaction emptied, or a control batch that is not a marker.
func producerBatch(in *incoming) (pb producerstate.Batch, ok bool, err error) {
	b := in.batch
	pb = producerstate.Batch{
		ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
		BaseOffset: in.base, LastOffset: in.last, MaxTimestamp: in.maxTS, Transactional: b.IsTransactional(), Control: b.IsControl(),
	}
	if !pb.Control {
		return pb, true, nil
	}
	if b.Count() == 0 {
		return pb, false, nil
	}
	commit, epoch, err := record.EndTxnMarker(b)
	if err != nil {
		return pb, false, err
	}
	pb.Abort, pb.CoordinatorEpoch = !commit, epoch
	return pb, true, nil
}

// AppendAsFollower appends what was fetched. An error means that nothing was appended:
// kerr.CorruptMessage when the first batch is damaged, ErrOffsetOrder when the records begin below the log end.
//
// An empty log whose end lies inside the first batch (the leader's log start is not a batch boundary) begins
// again at that batch, with its log start kept.
func (l *Log) AppendAsFollower(a FollowerAppend) (AppendInfo, error) {
	sc := scratches.Get().(*scratch)
	defer sc.release()
	none := AppendInfo{BaseOffset: -1, LastOffset: -1, MaxTimestamp: -1}
	refused := l.split(&a, sc)
	if len(sc.in) == 0 {
		off := l.Offsets()
		none.LogStartOffset, none.LogEndOffset = off.LogStart, off.LogEnd
		return none, refused
	}
	if err := l.maybeRestart(&sc.in[0], a.Now); err != nil {
		return none, err
	}
	info, rolled, err := l.appendFollower(&a, sc)
	if err == nil && info.Refused == nil {
		info.Refused = refused
	}
	if info.Batches > 0 && err != nil {
		info.Refused, err = err, nil // an earlier piece is in the log already
	}
	return info, l.afterAppend(a.Now, rolled, err)
}

// split checks what a follower fetched, batch by batch, and stops at the first that is not to be appended.
func (l *Log) split(a *FollowerAppend, sc *scratch) error {
	for rest := a.Records; ; {
		b, more, err := record.Next(rest)
		if err != nil {
			return fmt.Errorf("%s: %w", l.partition, err)
		}
		if b == nil {
			return nil
		}
		if !b.ValidCRC() {
			return kerr.CorruptMessage.With("%s: checksum of the batch at offset %d is wrong", l.partition, b.BaseOffset())
		}
		if b.LastOffset() < b.BaseOffset() || b.BaseOffset() < 0 {
			return kerr.CorruptMessage.With("%s: the batch at offset %d ends at %d", l.partition, b.BaseOffset(), b.LastOffset())
		}
		if a.Epoch >= 0 && model.LeaderEpoch(b.LeaderEpoch()) > a.Epoch {
			return fmt.Errorf("%s: the batch at offset %d is of leader epoch %d, later than the fetch's %d", l.partition, b.BaseOffset(), b.LeaderEpoch(), a.Epoch)
		}
		first := b.BaseOffset()
		if b.Magic() < 2 {
			if first, err = record.FirstOffset(b); err != nil {
				return err
			}
		}
		sc.in = append(sc.in, incoming{batch: b, base: first, last: b.LastOffset(), maxTS: b.MaxTimestamp()})
		rest = more
	}
}

func (l *Log) appendFollower(a *FollowerAppend, sc *scratch) (info AppendInfo, rolled bool, err error) {
	l.write.Lock()
	defer l.write.Unlock()
	info = AppendInfo{BaseOffset: -1, LastOffset: -1, MaxTimestamp: -1, LogStartOffset: l.LogStartOffset(), LogEndOffset: l.end}
	if err := l.usable(); err != nil {
		return info, false, err
	}
	all := sc.in
	defer func() { sc.in = all }()
	next := l.end
	for i := range all {
		if all[i].base < next || a.Contiguous && all[i].base != next {
			err = fmt.Errorf("%s: the batch at offset %d does not follow %d: %w", l.partition, all[i].base, next, ErrOffsetOrder)
			if i == 0 {
				return info, false, err
			}
			info.Refused = err
			all = all[:i]
			break
		}
		next = all[i].last + 1
	}
	// A fetch may be larger than a segment: it is appended in pieces that are not.
	limit := l.Config().SegmentBytes
	bytes := a.Records // the batches lie in it back to back from its start
	for rest := all; len(rest) > 0; {
		n, size := 1, len(rest[0].batch)
		for n < len(rest) && int64(size+len(rest[n].batch)) <= limit && rest[n].last-rest[0].base <= math.MaxInt32 {
			size += len(rest[n].batch)
			n++
		}
		sc.in = rest[:n]
		sc.update.Begin(&l.producers)
		for i := range sc.in {
			if !sc.in[i].batch.HasProducerID() {
				continue
			}
			pb, ok, err := producerBatch(&sc.in[i])
			if err == nil && ok {
				err = sc.update.Add(&pb, producerstate.OriginReplication, false)
			}
			if err != nil {
				return info, rolled, fmt.Errorf("%s: %w", l.partition, err)
			}
		}
		r, err := l.maybeRoll(sc.in, size, a.Now)
		rolled = rolled || r
		if err == nil {
			err = l.put(sc, bytes[:size:size], &info)
		}
		if err != nil {
			return info, rolled, err
		}
		rest, bytes = rest[n:], bytes[size:]
	}
	return info, rolled, nil
}

// put writes bytes, which are the batches of sc.in back to back, at the end of the active segment and publishes them; under write.
func (l *Log) put(sc *scratch, bytes []byte, info *AppendInfo) error {
	s := l.active()
	if err := l.mend(s); err != nil {
		return err
	}
	f, err := l.openLog(s)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(bytes, s.size)
	f.Release()
	if err != nil {
		s.torn = true
		return err
	}
	s.unsynced |= dirtyLog

	last := sc.in[len(sc.in)-1].last
	interval := int64(l.Config().IndexIntervalBytes)
	l.mu.Lock()
	sc.completed = sc.update.Apply(last+1, sc.completed[:0])
	l.mu.Unlock()
	txns := s.txns
	if len(sc.completed) > 0 {
		if txns, err = l.writeTxns(s, sc.completed); err != nil {
			// Producer state already holds what the log does not: only a reload may go on from here.
			s.torn, l.failed = true, err
			return err
		}
	}
	if s.size == 0 {
		s.firstTimestamp = sc.in[0].maxTS
	}

	l.mu.Lock()
	pos := s.size
	for i := range sc.in {
		in := &sc.in[i]
		if in.maxTS > s.max.Timestamp {
			s.max = stamp{in.maxTS, in.last}
		}
		if s.bytesSinceIndex > interval {
			s.addOffset(in.last, pos)
			s.addTime()
			s.bytesSinceIndex = 0
		}
		if epoch := in.batch.LeaderEpoch(); epoch >= 0 {
			l.epochs.Assign(model.LeaderEpoch(epoch), in.base)
		}
		pos += int64(len(in.batch))
		s.bytesSinceIndex += int64(len(in.batch))
	}
	s.size, s.txns, l.end = pos, txns, last+1
	copy(l.recent[1:], l.recent[:])
	l.recent[0] = end{l.end, pos}
	l.mu.Unlock()

	if info.BaseOffset < 0 {
		info.BaseOffset = sc.in[0].base
	}
	info.LastOffset, info.LogEndOffset = last, last+1
	info.Batches += len(sc.in)
	info.Bytes += len(bytes)
	info.Records = info.LastOffset - info.BaseOffset + 1
	for i := range sc.in {
		info.MaxTimestamp = max(info.MaxTimestamp, sc.in[i].maxTS)
	}
	if s.offsets.tailFull(offsetEntry) || s.times.tailFull(timeEntry) {
		// The records are appended: if an index cannot be written now its entries wait for the next time.
		for _, x := range s.indexes() {
			if err := l.writeTail(s, x.index, x.suffix, x.size); err != nil {
				l.log().Warn("cannot write index", "path", s.path(l.Dir(), x.suffix), "err", err)
			}
		}
	}
	return nil
}

func (x *index) tailFull(size int) bool { return len(x.tail) >= tailEntries*size }

// mend cuts off what a failed write left behind the last whole batch; under write.
func (l *Log) mend(s *segment) error {
	if !s.torn {
		return nil
	}
	f, err := l.openLog(s)
	if err != nil {
		return err
	}
	defer f.Release()
	if err := f.Truncate(s.size); err != nil {
		return err
	}
	s.torn = false
	return nil
}

// afterAppend does what must not happen under the write lock. err is the append's.
func (l *Log) afterAppend(now int64, rolled bool, err error) error {
	if rolled && l.env.Rolled != nil {
		l.env.Rolled(l, l.ActiveSegmentBase())
	}
	if err != nil {
		return err
	}
	if limit := l.Config().FlushMessages; limit < math.MaxInt64 && l.Unflushed() >= limit {
		return l.Flush(now)
	}
	return nil
}

// maybeRestart is the case of an empty log described at AppendAsFollower.
func (l *Log) maybeRestart(first *incoming, now int64) error {
	off := l.Offsets()
	if off.LogStart != off.LogEnd || first.base >= off.LogEnd || first.last < off.LogEnd {
		return nil
	}
	return l.startAt(first.base, off.LogStart, now)
}
