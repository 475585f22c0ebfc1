package manager

import (
	"maps"
	"sync/atomic"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// hosted is the map of the replicas of this broker. Readers take no lock: each shard is an immutable map behind a pointer.
// Only Publish changes it, one shard's copy at a time, so that creating a topic does not copy every partition.
type hosted struct {
	shard [hostedShards]atomic.Pointer[map[model.TopicIDPartition]*replica]
}

const hostedShards = 64

func (h *hosted) init() {
	for i := range h.shard {
		h.shard[i].Store(&map[model.TopicIDPartition]*replica{})
	}
}

func shardOf(tp model.TopicIDPartition) int {
	// Ids are random: any byte will do; the partition spreads the partitions of one topic.
	return int(uint32(tp.Topic[15])^uint32(tp.Partition)) % hostedShards
}

func (h *hosted) get(tp model.TopicIDPartition) *replica {
	return (*h.shard[shardOf(tp)].Load())[tp]
}

// change adds and removes many at once. One caller at a time.
func (h *hosted) change(add []*replica, remove []model.TopicIDPartition) {
	var touched [hostedShards]map[model.TopicIDPartition]*replica
	at := func(tp model.TopicIDPartition) map[model.TopicIDPartition]*replica {
		i := shardOf(tp)
		if touched[i] == nil {
			touched[i] = maps.Clone(*h.shard[i].Load())
		}
		return touched[i]
	}
	for _, tp := range remove {
		delete(at(tp), tp)
	}
	for _, r := range add {
		at(r.tp)[r.tp] = r
	}
	for i, changed := range touched {
		if changed != nil {
			h.shard[i].Store(&changed)
		}
	}
}

// all calls f for every replica, in no order.
func (h *hosted) all(f func(*replica)) {
	for i := range h.shard {
		for _, r := range *h.shard[i].Load() {
			f(r)
		}
	}
}

func (h *hosted) count() int {
	n := 0
	for i := range h.shard {
		n += len(*h.shard[i].Load())
	}
	return n
}

// notHosted is why a partition is not here (T-52, T-58, T-65): NOT_LEADER_OR_FOLLOWER when others hold it;
// wrongID when this broker holds another incarnation of the name; UNKNOWN_TOPIC_OR_PARTITION when there is no such
// partition. wrongID is what the request gets for that: INCONSISTENT_TOPIC_ID for Fetch, UNKNOWN_TOPIC_ID for Produce, and
// UNKNOWN_TOPIC_OR_PARTITION for both when they named the topic by name.
func (m *Manager) notHosted(tp model.TopicIDPartition, topic string, wrongID *kerr.Error) error {
	topics := m.img.Load().Topics()
	if _, _, ok := topics.Partition(tp); ok {
		return kerr.NotLeaderOrFollower
	}
	other, ok := topics.ByName(topic)
	if !ok {
		return kerr.UnknownTopicOrPartition
	}
	if _, ok := other.Partition(tp.Partition); !ok {
		return kerr.UnknownTopicOrPartition
	}
	if other.ID == tp.Topic {
		return kerr.NotLeaderOrFollower
	}
	if m.hosted.get(model.TopicIDPartition{Topic: other.ID, Partition: tp.Partition}) != nil {
		return wrongID
	}
	return kerr.NotLeaderOrFollower
}

func wrongID(byID bool, e *kerr.Error) *kerr.Error {
	if byID {
		return e
	}
	return kerr.UnknownTopicOrPartition
}

// Holds tells whether the metadata lists this broker among the replicas of a partition.
func (m *Manager) Holds(tp model.TopicIDPartition) bool {
	_, p, ok := m.img.Load().Topics().Partition(tp)
	return ok && p.IsReplica(m.self)
}

// currentLeader is the hint that goes with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH (D-13, D-122).
func (m *Manager) currentLeader(tp model.TopicIDPartition) CurrentLeader {
	if _, p, ok := m.img.Load().Topics().Partition(tp); ok {
		return CurrentLeader{p.Leader, p.LeaderEpoch}
	}
	return noLeader
}

var noLeader = CurrentLeader{model.NoNode, model.NoEpoch}
