package manager

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// DeleteRecords raises log starts and calls done when the lowest log start of the live replicas has reached
// every offset asked for, or Timeout is over (D-78). done runs exactly once, before DeleteRecords returns where there is
// nothing to wait for.
func (m *Manager) DeleteRecords(req DeleteRecordsRequest, done func([]DeleteRecordsResult)) {
	op := &deleteOp{m: m, results: make([]DeleteRecordsResult, len(req.Partitions)), done: done}
	var keys []model.TopicIDPartition
	for i := range req.Partitions {
		p := &req.Partitions[i]
		res := &op.results[i]
		r, offset, low, err := m.deleteRecords(p)
		switch {
		case err != nil:
			*res = DeleteRecordsResult{Err: storageError(err), LowWatermark: -1}
		case low >= offset:
			res.LowWatermark = low
		default:
			res.LowWatermark = low
			op.pending = append(op.pending, pendingDelete{r, i, offset})
			keys = append(keys, p.Partition)
		}
	}
	if len(op.pending) == 0 {
		done(op.results)
	} else {
		m.deletes.Add(op, req.Timeout, keys...)
	}
	for i := range req.Partitions {
		if op.results[i].Err == nil {
			m.wake(req.Partitions[i].Partition) // followers learn the log start from their next answer
		}
	}
}

// deleteRecords raises one partition's log start and returns the low watermark now.
func (m *Manager) deleteRecords(p *DeleteRecordsPartition) (r *replica, offset, low int64, err error) {
	if isInternal(p.Topic) {
		return nil, 0, 0, kerr.InvalidTopicException
	}
	r = m.hosted.get(p.Partition)
	if r == nil {
		return nil, 0, 0, m.notHosted(p.Partition, p.Topic, kerr.UnknownTopicOrPartition)
	}
	r.role.RLock()
	defer r.role.RUnlock()
	v := r.view.Load()
	switch {
	case v.err != nil:
		return nil, 0, 0, m.viewError(r, v, kerr.UnknownTopicOrPartition)
	case !v.leader:
		return nil, 0, 0, kerr.NotLeaderOrFollower
	case v.settings.topic.Compact && !v.settings.topic.Delete:
		return nil, 0, 0, kerr.PolicyViolation
	}
	if offset = p.Offset; offset == -1 {
		offset = v.log.HighWatermark()
	}
	if offset < 0 {
		return nil, 0, 0, kerr.OffsetOutOfRange
	}
	if _, err := v.log.IncrementLogStartOffset(offset); err != nil {
		return nil, 0, 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.core == nil {
		return nil, 0, 0, errOffline
	}
	r.core.LogStarted(v.log.LogStartOffset())
	return r, offset, r.core.LowWatermark(m.brokers.Load()), nil
}

// deleteOp is a DeleteRecords request that waits for followers.
type deleteOp struct {
	m       *Manager
	results []DeleteRecordsResult
	pending []pendingDelete
	done    func([]DeleteRecordsResult)
}

type pendingDelete struct {
	replica *replica
	result  int
	offset  int64
}

func (o *deleteOp) TryComplete() bool {
	left := o.pending[:0]
	for _, p := range o.pending {
		low, err := o.m.lowWatermark(p.replica)
		res := &o.results[p.result]
		switch {
		case err != nil:
			*res = DeleteRecordsResult{Err: err, LowWatermark: -1}
		default:
			res.LowWatermark = low
			if low < p.offset {
				left = append(left, p)
			}
		}
	}
	o.pending = left
	return len(left) == 0
}

func (o *deleteOp) Complete(bool) {
	for _, p := range o.pending { // with the low watermark so far
		o.results[p.result].Err = kerr.RequestTimedOut
	}
	o.done(o.results)
}

func (m *Manager) lowWatermark(r *replica) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.view.Load()
	switch {
	case v.err == errGone:
		return -1, m.notHosted(r.tp, r.topic, kerr.UnknownTopicOrPartition)
	case v.err != nil:
		return -1, v.err
	case !v.leader || r.core == nil:
		return -1, kerr.NotLeaderOrFollower
	}
	return r.core.LowWatermark(m.brokers.Load()), nil
}
