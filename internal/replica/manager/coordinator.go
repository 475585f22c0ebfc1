package manager

import (
	"context"
	"slices"
	"sync"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/storage/partlog"
	"samsa/internal/storage/producerstate"
)

// LeaderListener hears of leaderships of this broker in one topic, such as __consumer_offsets.
// Calls come in metadata order, one at a time per listener, on the metadata loader's goroutine (or, for a
// failed directory, on the directory failure handler's): hand work to your own goroutine.
type LeaderListener interface {
	// Elected: this broker leads the partition from epoch on. Also called for a new epoch of the same leadership.
	Elected(tp model.TopicIDPartition, epoch model.LeaderEpoch)
	// Resigned: it does not any more: another leads at epoch, or the partition was deleted or its directory
	// failed (epoch -1).
	Resigned(tp model.TopicIDPartition, epoch model.LeaderEpoch)
}

// PartitionListener hears of one partition. Calls must not block; they may come from any goroutine, but high
// watermarks come in rising order.
type PartitionListener interface {
	HighWatermark(tp model.TopicIDPartition, offset int64)
	// Gone: not leader any more, deleted, or its directory failed. Nothing comes afterwards.
	Gone(tp model.TopicIDPartition, err error)
}

// CoordinatorAppend is one write of a coordinator to a partition it leads.
type CoordinatorAppend struct {
	Partition model.TopicIDPartition
	// Epoch is the leadership the coordinator was loaded for; when it is not the current one the write is
	// refused with NOT_LEADER_OR_FOLLOWER. -1 skips the check.
	Epoch model.LeaderEpoch
	// Records is one or more whole v2 batches with offsets from 0; patched in place, and borrowed until AppendCoordinator
	// returns.
	Records []byte
	// TransactionVersion of the request that writes a transaction marker (D-100); 0 otherwise.
	TransactionVersion int16
}

// CoordinatorOffsets is where a coordinator's write went.
type CoordinatorOffsets struct {
	Base, Last int64
}

// AppendCoordinator appends locally, without the checks that hold for clients (D-24) but with min.insync.replicas
// (NOT_ENOUGH_REPLICAS before anything is written), and returns at once with the offsets. committed, if not nil,
// runs exactly once when the high watermark has passed Last (nil), or when it never will from this leadership
// (NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION). It may run before AppendCoordinator returns,
// and does so, unless somebody else appends to the same partition, while there is one replica. There is no timeout: the
// coordinator has its own. When an error is returned committed is never called.
func (m *Manager) AppendCoordinator(a CoordinatorAppend, committed func(error)) (CoordinatorOffsets, error) {
	none := CoordinatorOffsets{-1, -1}
	r := m.hosted.get(a.Partition)
	if r == nil {
		return none, m.notHosted(a.Partition, "", kerr.UnknownTopicOrPartition)
	}
	now := m.nowMs()
	r.role.RLock()
	r.mu.Lock()
	v := r.view.Load()
	err := v.err
	if err == nil {
		if a.Epoch != model.NoEpoch && a.Epoch != v.epoch {
			err = kerr.NotLeaderOrFollower
		} else {
			err = r.core.MayAppend(-1)
		}
	}
	r.mu.Unlock()
	var info partlog.AppendInfo
	if err == nil {
		info, err = v.log.AppendAsLeader(partlog.LeaderAppend{Records: a.Records, Epoch: v.epoch,
			Origin: producerstate.OriginCoordinator, TransactionVersion: a.TransactionVersion, Now: now})
	}
	if err != nil {
		r.role.RUnlock()
		return none, storageError(err)
	}
	r.mu.Lock()
	closed := r.view.Load().err // a directory may fail at any time; nobody would call committed then
	r.mu.Unlock()
	tell := false
	if closed == nil {
		tell = r.appended(m, now, info.LogEndOffset, hwWaiter{info.LastOffset + 1, committed})
	}
	r.role.RUnlock()
	switch {
	case closed != nil && committed != nil:
		committed(closed)
	case tell:
		r.tell()
	}
	m.stats.appended(r.topic, int(info.Records), info.Bytes, nil)
	m.wake(a.Partition)
	return CoordinatorOffsets{info.BaseOffset, info.LastOffset}, nil
}

// Watch registers l for one hosted partition until the returned function is called.
func (m *Manager) Watch(tp model.TopicIDPartition, l PartitionListener) (stop func(), err error) {
	r := m.hosted.get(tp)
	if r == nil {
		return nil, m.notHosted(tp, "", kerr.UnknownTopicOrPartition)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch v := r.view.Load(); {
	case v.err != nil:
		return nil, v.err
	case !v.leader:
		return nil, kerr.NotLeaderOrFollower
	}
	r.watchers = append(slices.Clone(r.watchers), l)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if i := slices.Index(r.watchers, l); i >= 0 {
			r.watchers = slices.Delete(slices.Clone(r.watchers), i, i+1)
		}
	}, nil
}

// ReadAll hands over every whole batch of a partition this broker leads, from offset from (its log start if lower)
// to the log end at the time of the call, in order: how a coordinator loads. batches is one or more whole v2
// batches, borrowed until fn returns; the first may begin below from. next is the offset after the last batch read.
// It reads bufBytes (1 MiB if 0) at a time and returns early when ctx is done, fn fails, or the leadership is lost.
func (m *Manager) ReadAll(ctx context.Context, tp model.TopicIDPartition, from int64, bufBytes int, fn func(batches []byte) error) (next int64, err error) {
	r := m.hosted.get(tp)
	if r == nil {
		return from, m.notHosted(tp, "", kerr.UnknownTopicOrPartition)
	}
	if bufBytes <= 0 {
		bufBytes = 1 << 20
	}
	first := r.view.Load()
	if first.err != nil {
		return from, first.err
	}
	o := first.log.Offsets()
	from = max(from, o.LogStart)
	buf := make([]byte, min(int64(bufBytes), max(first.log.Size(), 1<<10)))
	for from < o.LogEnd {
		if ctx.Err() != nil {
			return from, context.Cause(ctx)
		}
		switch v := r.view.Load(); {
		case v.err != nil:
			return from, v.err
		case !v.leader, v.epoch != first.epoch:
			return from, kerr.NotLeaderOrFollower
		}
		batches, n, err := first.log.ReadBatches(buf, from, o.LogEnd)
		if err != nil {
			return from, storageError(err)
		}
		if len(batches) == 0 {
			break
		}
		if cap(batches) > cap(buf) {
			buf = batches[:cap(batches)]
		}
		if err := fn(batches); err != nil {
			return from, err
		}
		from = n
	}
	return from, nil
}

// Offsets are the bounds of a hosted partition.
type Offsets struct {
	LogStart, LastStable, HighWatermark, LogEnd int64
	Leader                                      bool
	LeaderEpoch                                 model.LeaderEpoch
}

// Offsets returns the bounds of a hosted partition; the error is what any other request for it would get.
func (m *Manager) Offsets(tp model.TopicIDPartition) (Offsets, error) {
	r := m.hosted.get(tp)
	if r == nil {
		return Offsets{}, m.notHosted(tp, "", kerr.UnknownTopicOrPartition)
	}
	v := r.view.Load()
	if v.err != nil {
		return Offsets{}, v.err
	}
	o := v.log.Offsets()
	return Offsets{o.LogStart, o.LastStable, o.HighWatermark, o.LogEnd, v.leader, v.epoch}, nil
}

// listeners are those who hear of leaderships, by topic.
type listeners struct {
	mu      sync.Mutex
	byTopic map[string][]LeaderListener // guarded by mu
}

func (l *listeners) of(topic string) []LeaderListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byTopic[topic]
}

// OnLeader registers l for every partition of topic, by name. Leaderships that exist already are told at
// once, before OnLeader returns.
func (m *Manager) OnLeader(topic string, l LeaderListener) {
	m.publishing.Lock()
	defer m.publishing.Unlock()
	m.listening.mu.Lock()
	if m.listening.byTopic == nil {
		m.listening.byTopic = map[string][]LeaderListener{}
	}
	m.listening.byTopic[topic] = append(slices.Clone(m.listening.byTopic[topic]), l)
	m.listening.mu.Unlock()
	m.hosted.all(func(r *replica) {
		if r.topic == topic && r.told != model.NoEpoch {
			l.Elected(r.tp, r.told)
		}
	})
}

// tellLeader tells listeners what became of a replica's leadership. publishing is held.
func (m *Manager) tellLeader(r *replica) {
	v := r.view.Load()
	leads := v.err == nil && v.leader
	switch {
	case leads && r.told != v.epoch:
		r.told = v.epoch
		for _, l := range m.listening.of(r.topic) {
			l.Elected(r.tp, v.epoch)
		}
	case !leads && r.told != model.NoEpoch:
		r.told = model.NoEpoch
		epoch := v.epoch
		if v.err != nil {
			epoch = model.NoEpoch
		}
		for _, l := range m.listening.of(r.topic) {
			l.Resigned(r.tp, epoch)
		}
	}
}
