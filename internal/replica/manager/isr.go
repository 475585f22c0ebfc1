package manager

import (
	"sync"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/base/purgatory"
	"samsa/internal/replica/partition"
	"samsa/internal/storage/partlog"
)

// propose sends a proposal of an in-sync set, if there is one and somebody carries it.
func (m *Manager) propose(r *replica, p *partition.Proposal) {
	if p == nil || m.o.InSync == nil || m.closed.Load() {
		return
	}
	m.log.Info("proposing in-sync set", "topicID", r.tp.Topic, "topic", r.topic, "partition", r.tp.Partition,
		"leaderEpoch", p.LeaderEpoch, "partitionEpoch", p.Epoch, "added", p.Added, "removed", p.Removed)
	m.o.InSync.Propose(r.tp, p, func(a partition.Answer) { m.proposalAnswered(r, p, a) })
}

func (m *Manager) proposalAnswered(r *replica, p *partition.Proposal, a partition.Answer) {
	r.mu.Lock()
	if r.core == nil || r.view.Load().err != nil {
		r.mu.Unlock()
		return
	}
	ans := r.core.ProposalAnswered(m.nowMs(), p, a, m.brokers.Load())
	tell := ans.HighMoved && r.highMoved()
	r.mu.Unlock()
	if tell {
		r.tell()
	}
	switch {
	case ans.Committed && p.Added != model.NoNode:
		m.stats.isrExpands.Inc()
	case ans.Committed:
		m.stats.isrShrinks.Inc()
	case a.Err != nil:
		m.stats.isrFailures.Inc()
	}
	if a.Err != nil && !ans.Ignored {
		m.log.Warn("in-sync set was not changed", "topicID", r.tp.Topic, "topic", r.topic, "partition", r.tp.Partition, "err", a.Err, "retry", ans.Retry)
	}
	if ans.HighMoved {
		m.wake(r.tp)
	}
	if ans.Retry {
		m.propose(r, p)
	}
}

// lagTimer looks for followers that lag, every replica.lag.time.max.ms / 2, as long as this broker leads a partition with
// others. With a replication factor of one nothing ticks.
type lagTimer struct {
	m      *Manager
	mu     sync.Mutex
	task   *purgatory.Task // guarded by mu; nil: not needed
	closed bool            // guarded by mu
}

// need starts the timer.
func (l *lagTimer) need() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.task == nil && !l.closed {
		l.task = l.m.o.Timer.After(l.every(), l.run)
	}
}

func (l *lagTimer) every() time.Duration {
	return max(l.m.node.Load().Replica.LagTimeMax/2, time.Millisecond)
}

func (l *lagTimer) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.task.Cancel()
}

func (l *lagTimer) run() {
	others := false
	now := l.m.nowMs()
	l.m.hosted.all(func(r *replica) {
		if v := r.view.Load(); v.err != nil || !v.leader || !v.others {
			return
		}
		others = true
		r.mu.Lock()
		var p *partition.Proposal
		if r.core != nil {
			p = r.core.Shrink(now)
		}
		r.mu.Unlock()
		l.m.propose(r, p)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.task = nil
	if others && !l.closed {
		l.task = l.m.o.Timer.After(l.every(), l.run)
	}
}

// FollowerAppend is what a follower fetched from its leader.
type FollowerAppend struct {
	Partition model.TopicIDPartition
	Epoch     model.LeaderEpoch // the leadership it was fetched in
	Records   []byte
	// HighWatermark and LogStart are the leader's.
	HighWatermark, LogStart int64
}

// AppendFollower appends what was fetched and follows the leader's watermarks (D-138, D-139). next is where to go on.
// Errors: NOT_LEADER_OR_FOLLOWER when the role or epoch is another by now, partlog.ErrOffsetOrder, kerr.CorruptMessage,
// KAFKA_STORAGE_ERROR.
func (m *Manager) AppendFollower(a FollowerAppend) (next int64, err error) {
	r := m.hosted.get(a.Partition)
	if r == nil {
		return -1, m.notHosted(a.Partition, "", kerr.UnknownTopicOrPartition)
	}
	r.role.RLock()
	next, err = m.appendFollower(r, a)
	r.role.RUnlock()
	if err != nil {
		return next, storageError(err)
	}
	m.wake(a.Partition) // consumers that read here
	return next, nil
}

// appendFollower appends in the role of a follower. role is held shared.
func (m *Manager) appendFollower(r *replica, a FollowerAppend) (next int64, err error) {
	v := r.view.Load()
	switch {
	case v.err != nil:
		return -1, v.err
	case v.leader || v.epoch != a.Epoch:
		return -1, kerr.NotLeaderOrFollower
	}
	if len(a.Records) > 0 {
		info, err := v.log.AppendAsFollower(partlog.FollowerAppend{Records: a.Records, Epoch: a.Epoch, Now: m.nowMs()})
		if err == nil {
			err = info.Refused
		}
		if err != nil {
			return v.log.LogEndOffset(), err
		}
		m.stats.replicationIn.Add(int64(info.Bytes))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.core == nil {
		return -1, errOffline
	}
	o := v.log.Offsets()
	// The leader's log start is below its high watermark; ours may not have come that far.
	v.log.SetHighWatermark(r.core.FollowerAppended(max(a.HighWatermark, a.LogStart), o.LogStart, o.LogEnd))
	if start := min(a.LogStart, o.LogEnd); start > o.LogStart {
		if _, err := v.log.IncrementLogStartOffset(start); err != nil {
			return o.LogEnd, err
		}
		r.core.LogStarted(v.log.LogStartOffset())
	}
	return o.LogEnd, nil
}
