package manager

import (
	"errors"
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/storage/partlog"
	"samsa/internal/storage/producerstate"
	"samsa/internal/wire/record"
)

// Append appends each entry to its partition's log, in order, and answers them all together.
//
// done is called exactly once, with one result per entry at the same index; the results are the callee's
// afterwards. With acks 0 or 1, or when nothing has to be waited for, it runs before Append returns.
// A refused entry never fails another. Bytes are written but not synced on success (unless flush.messages says so).
func (m *Manager) Append(req AppendRequest, done func([]AppendResult)) {
	results := slices.Grow(req.Results[:0], len(req.Entries))[:len(req.Entries)]
	var op *produceOp
	now := m.nowMs()
	for i := range req.Entries {
		e := &req.Entries[i]
		r, v := m.appendEntry(&req, e, now, &results[i])
		if r == nil {
			continue
		}
		if req.Acks == -1 && results[i].LastOffset >= v.log.HighWatermark() {
			if op == nil {
				op = &produceOp{m: m, results: results, done: done}
			}
			op.pending = append(op.pending, pendingAck{r, i, results[i].LastOffset + 1})
		} else if req.Acks == -1 {
			results[i].settle(r.acked(results[i].LastOffset + 1))
		}
	}
	// Whoever begins to wait after this looks at the log once more himself.
	var woken []model.TopicIDPartition
	if m.someoneWaits() {
		for i := range results {
			if results[i].LastOffset >= 0 {
				woken = append(woken, req.Entries[i].Partition)
			}
		}
	}
	if op == nil {
		done(results)
	} else {
		keys := make([]model.TopicIDPartition, len(op.pending))
		for i := range op.pending {
			keys[i] = op.pending[i].replica.tp
		}
		m.produces.Add(op, req.Timeout, keys...)
	}
	// The producer is answered before those whom its records wake.
	for _, tp := range woken {
		m.wake(tp)
	}
}

func (m *Manager) someoneWaits() bool {
	return m.fetches.Delayed() > 0 || m.produces.Delayed() > 0 || m.deletes.Delayed() > 0
}

// wake looks at everything that waits for a partition.
func (m *Manager) wake(tp model.TopicIDPartition) {
	if m.someoneWaits() {
		m.fetches.Check(tp)
		m.produces.Check(tp)
		m.deletes.Check(tp)
	}
}

// appendEntry appends one entry and fills its result; on success it returns the replica and the view it was appended under.
func (m *Manager) appendEntry(req *AppendRequest, e *AppendEntry, now int64, res *AppendResult) (*replica, *view) {
	*res = AppendResult{BaseOffset: -1, LastOffset: -1, LogAppendTime: -1, LogStartOffset: -1, Leader: noLeader}
	r, v, err := m.mayAppend(req, e)
	if err != nil {
		m.refused(e, res, nil, err)
		return nil, nil
	}
	info, valid, err := m.write(req, e, r, v, now)
	if err != nil {
		m.refused(e, res, v.log, err)
		return nil, nil
	}
	res.BaseOffset, res.LastOffset, res.LogStartOffset = info.BaseOffset, info.LastOffset, info.LogStartOffset
	res.LogAppendTime = valid.LogAppendTime
	if info.Duplicate {
		res.LogAppendTime = info.MaxTimestamp // also on CreateTime topics (D-21)
	} else {
		m.stats.appended(e.Topic, int(info.Records), info.Bytes, &valid)
	}
	return r, v
}

// mayAppend makes the checks that come before a record is looked into, in Kafka's order (T-65, D-13).
func (m *Manager) mayAppend(req *AppendRequest, e *AppendEntry) (*replica, *view, error) {
	client := req.Origin == OriginClient
	if client {
		if err := oneBatch(e.Records, req.APIVersion); err != nil {
			return nil, nil, err
		}
		if isInternal(e.Topic) && !req.AllowInternal {
			return nil, nil, kerr.InvalidTopicException
		}
	}
	if req.Acks < -1 || req.Acks > 1 {
		return nil, nil, kerr.InvalidRequiredAcks
	}
	r := m.hosted.get(e.Partition)
	if r == nil {
		return nil, nil, m.notHosted(e.Partition, e.Topic, wrongID(e.ByID, kerr.UnknownTopicId))
	}
	v := r.view.Load()
	if v.err != nil {
		return nil, nil, m.viewError(r, v, wrongID(e.ByID, kerr.UnknownTopicId))
	}
	r.mu.Lock()
	err := r.core.MayAppend(req.Acks)
	r.mu.Unlock()
	return r, v, err
}

// oneBatch: a client sends exactly one batch of format 2 per partition, zstd only from version 7 on (D-11).
func oneBatch(records []byte, version int16) error {
	b, rest, err := record.Next(records)
	if err != nil || b == nil || len(rest) > 0 || b.Magic() < 2 {
		return kerr.InvalidRecord
	}
	if b.Compression() == record.Zstd && version < 7 {
		return kerr.UnsupportedCompressionType
	}
	return nil
}

// write validates outside every lock, then appends and moves the high watermark under the role it was appended in.
func (m *Manager) write(req *AppendRequest, e *AppendEntry, r *replica, v *view, now int64) (partlog.AppendInfo, record.Validated, error) {
	origin, state := record.FromClient, producerstate.OriginClient
	if req.Origin == OriginCoordinator {
		origin, state = record.FromCoordinator, producerstate.OriginCoordinator
	}
	valid, err := record.ValidateProduce(record.Produce{Records: e.Records, Origin: origin, APIVersion: req.APIVersion, NowMs: now,
		Topic: e.Topic, Partition: e.Partition.Partition}, &v.settings.produce)
	if err != nil {
		return partlog.AppendInfo{}, valid, err
	}
	r.role.RLock()
	info, tell, err := m.writeAs(req, e, r, v, valid.Batch, state, now)
	r.role.RUnlock()
	if tell {
		r.tell()
	}
	return info, valid, err
}

// writeAs appends in the role v, if that still holds. role is held shared.
func (m *Manager) writeAs(req *AppendRequest, e *AppendEntry, r *replica, v *view, batch record.Batch, origin producerstate.Origin, now int64) (info partlog.AppendInfo, tell bool, err error) {
	r.mu.Lock() // the role may have changed meanwhile
	if at := r.view.Load(); at.err != nil || at.epoch != v.epoch || at.log != v.log {
		err = kerr.NotLeaderOrFollower
		if at.err != nil {
			err = m.viewError(r, at, wrongID(e.ByID, kerr.UnknownTopicId))
		}
	} else {
		err = r.core.MayAppend(req.Acks)
	}
	r.mu.Unlock()
	if err != nil {
		return info, false, err
	}
	info, err = v.log.AppendAsLeader(partlog.LeaderAppend{Records: batch, Epoch: v.epoch, Origin: origin,
		RequireZeroSequence: req.RequireZeroSequence, Now: now})
	if err != nil {
		return info, false, err
	}
	return info, r.appended(m, now, info.LogEndOffset, hwWaiter{}), nil
}

// appended tells the core about a new log end. wait, if it has a callback, runs when the high watermark has reached it.
// tell: call r.tell when no lock is held.
func (r *replica) appended(m *Manager, now, end int64, wait hwWaiter) (tell bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wait.done != nil {
		i := len(r.waiting)
		for i > 0 && r.waiting[i-1].offset > wait.offset {
			i--
		}
		r.waiting = slices.Insert(r.waiting, i, wait)
		tell = wait.offset <= r.core.HighWatermark()
	}
	if r.core.Appended(now, end, m.brokers.Load()) {
		return r.highMoved()
	}
	return tell
}

// refused fills the result of an entry that was not appended. log is nil when it was refused before the log was reached.
func (m *Manager) refused(e *AppendEntry, res *AppendResult, log *partlog.Log, err error) {
	err = storageError(err)
	var why *record.Rejected
	if errors.As(err, &why) {
		if msg := why.ClientMessage(); msg != nil {
			res.Message = *msg
		}
		for _, f := range why.Records {
			res.RecordErrors = append(res.RecordErrors, RecordError(f))
		}
		if kerr.Of(err) == kerr.UnknownServerError { // what Kafka trips over is the client's mistake
			err = kerr.InvalidRecord.Wrap(err)
		}
	}
	res.Err = err
	k := kerr.Of(err)
	if log != nil {
		switch k {
		case kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch, kerr.InvalidTxnState,
			kerr.UnknownServerError: // D-21
			res.LogStartOffset = log.LogStartOffset()
		}
	}
	if k == kerr.NotLeaderOrFollower {
		res.Leader = m.currentLeader(e.Partition)
	}
	if k == kerr.InvalidRecord && log != nil && log.Config().Compact {
		m.stats.noKey.Add(int64(len(res.RecordErrors)))
	}
	m.stats.refused(e.Topic, m.hosted.get(e.Partition) != nil, k, len(e.Records))
	if k == kerr.UnknownServerError {
		m.log.Error("cannot append", "topicID", e.Partition.Topic, "topic", e.Topic, "partition", e.Partition.Partition, "err", err)
	}
}

// acked tells how a write that ends before offset stands.
func (r *replica) acked(offset int64) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.view.Load()
	switch {
	case v.err != nil:
		return true, v.err
	case !v.leader:
		return true, kerr.NotLeaderOrFollower
	case r.core == nil:
		return true, errOffline
	}
	return r.core.Acked(offset)
}

// settle ends an entry that waited.
func (res *AppendResult) settle(_ bool, err error) {
	if err != nil {
		res.Err = err
		res.BaseOffset, res.LastOffset, res.LogAppendTime, res.LogStartOffset = -1, -1, -1, -1
	}
}

// produceOp is a produce request with acks -1 in the purgatory (D-27).
type produceOp struct {
	m       *Manager
	results []AppendResult
	pending []pendingAck
	done    func([]AppendResult)
}

type pendingAck struct {
	replica *replica
	result  int
	offset  int64 // the high watermark that acknowledges it
}

// TryComplete forgets what is settled; the answer goes out when nothing is left.
func (o *produceOp) TryComplete() bool {
	left := o.pending[:0]
	for _, p := range o.pending {
		done, err := o.m.stillHosted(p.replica, p.offset)
		if !done {
			left = append(left, p)
			continue
		}
		o.settle(p, err)
	}
	o.pending = left
	return len(left) == 0
}

func (o *produceOp) settle(p pendingAck, err error) {
	res := &o.results[p.result]
	res.settle(true, err)
	if errors.Is(err, kerr.NotLeaderOrFollower) {
		res.Leader = o.m.currentLeader(p.replica.tp)
	}
}

func (o *produceOp) Complete(expired bool) {
	for _, p := range o.pending { // only at the deadline: the data stays, the offsets are told (D-21, D-27)
		o.results[p.result].Err = kerr.RequestTimedOut
		if !expired {
			done, err := o.m.stillHosted(p.replica, p.offset)
			if done {
				o.results[p.result].Err = nil
				o.settle(p, err)
			}
		}
	}
	o.done(o.results)
}

// stillHosted is acked for a replica that may have been deleted meanwhile (T-68).
func (m *Manager) stillHosted(r *replica, offset int64) (bool, error) {
	done, err := r.acked(offset)
	if err == errGone {
		err = m.notHosted(r.tp, r.topic, kerr.UnknownTopicOrPartition)
	}
	return done, err
}

// viewError is why a view cannot be used.
func (m *Manager) viewError(r *replica, v *view, wrongID *kerr.Error) error {
	if v.err == errGone {
		return m.notHosted(r.tp, r.topic, wrongID)
	}
	return v.err
}

// errGone marks a replica that was deleted; requests are told why by notHosted.
var errGone = kerr.UnknownTopicOrPartition.With("the replica was deleted")
