package image

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"samsa/internal/base/model"
	"samsa/internal/base/pmap"
)

// Topics are the live topics, by id and by name. The two views are of one moment (T-15).
type Topics struct {
	byID   pmap.Map[model.TopicID, *Topic]
	byName pmap.Map[string, *Topic]
	// colliding holds the names with '.' or '_' under their form with '_' only, so that a new
	// name finds the ones it would collide with (T-30). Names made by Kafka may collide already.
	colliding  pmap.Map[string, []string]
	partitions int
}

func compareTopicIDs(a, b model.TopicID) int { return bytes.Compare(a[:], b[:]) }

func newTopics() Topics {
	return Topics{
		byID:      pmap.New[model.TopicID, *Topic](compareTopicIDs),
		byName:    pmap.New[string, *Topic](strings.Compare),
		colliding: pmap.New[string, []string](strings.Compare),
	}
}

// ByName finds a live topic.
func (t Topics) ByName(name string) (*Topic, bool) { return t.byName.Get(name) }

// ByID finds a live topic.
func (t Topics) ByID(id model.TopicID) (*Topic, bool) { return t.byID.Get(id) }

// Partition finds a partition by the id of its topic.
func (t Topics) Partition(p model.TopicIDPartition) (*Topic, *Partition, bool) {
	topic, ok := t.byID.Get(p.Topic)
	if !ok {
		return nil, nil, false
	}
	part, ok := topic.Partition(p.Partition)
	return topic, part, ok
}

// Len is the number of topics.
func (t Topics) Len() int { return t.byID.Len() }

// PartitionCount is the number of partitions of all topics.
func (t Topics) PartitionCount() int { return t.partitions }

// All walks the topics in name order.
func (t Topics) All() iter.Seq[*Topic] { return t.byName.Values() }

// From walks the topics whose name is name or later, in name order.
func (t Topics) From(name string) iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, topic := range t.byName.From(name) {
			if !yield(topic) {
				return
			}
		}
	}
}

// Collision returns the live topic whose name equals name once '.' and '_' are taken as one
// character, if there is one with another spelling.
func (t Topics) Collision(name string) (string, bool) {
	if !collides(name) {
		return "", false
	}
	names, _ := t.colliding.Get(CollisionKey(name))
	for _, n := range names {
		if n != name {
			return n, true
		}
	}
	return "", false
}

func collides(name string) bool { return strings.ContainsAny(name, "._") }

// CollisionKey is what two colliding topic names have in common.
func CollisionKey(name string) string { return strings.ReplaceAll(name, ".", "_") }

// Topic is one incarnation of a name.
type Topic struct {
	Name  string
	ID    model.TopicID
	parts vector
}

// Partition returns partition index.
func (t *Topic) Partition(index int32) (*Partition, bool) {
	p := t.parts.get(index)
	return p, p != nil
}

// Count is the number of partitions, which are numbered 0 to Count-1.
func (t *Topic) Count() int32 { return int32(t.parts.count) }

// Partitions walks the partitions in index order.
func (t *Topic) Partitions() iter.Seq2[int32, *Partition] {
	return func(yield func(int32, *Partition) bool) { t.parts.each(yield) }
}

// Partition is the registration of one partition: who holds it and who leads it.
// Replicas and Directories are parallel: the i-th directory is that of the i-th replica (J-06).
type Partition struct {
	Replicas            []model.NodeID
	Directories         []model.DirectoryID
	ISR                 []model.NodeID
	Removing            []model.NodeID // leaving in a reassignment
	Adding              []model.NodeID // joining in a reassignment
	ELR                 []model.NodeID // eligible leaders outside the ISR (KIP-966)
	LastKnownELR        []model.NodeID
	Leader              model.NodeID // NoNode when leaderless
	LeaderEpoch         model.LeaderEpoch
	PartitionEpoch      model.PartitionEpoch
	LeaderRecoveryState int8 // RecoveryRecovered or RecoveryRecovering
}

// The leader recovery states of a partition (K-82).
const (
	RecoveryRecovered  int8 = 0
	RecoveryRecovering int8 = 1 // elected uncleanly and not yet settled
)

// HasLeader reports whether somebody leads the partition.
func (p *Partition) HasLeader() bool { return p.Leader != model.NoNode }

// Preferred is the first replica, NoNode if there is none.
func (p *Partition) Preferred() model.NodeID {
	if len(p.Replicas) == 0 {
		return model.NoNode
	}
	return p.Replicas[0]
}

// Reassigning reports whether a reassignment is under way.
func (p *Partition) Reassigning() bool { return len(p.Removing) > 0 || len(p.Adding) > 0 }

// IsReplica reports whether a node holds a replica.
func (p *Partition) IsReplica(n model.NodeID) bool { return slices.Contains(p.Replicas, n) }

// Directory returns the directory of a replica's node; ok is false if the node holds none.
func (p *Partition) Directory(n model.NodeID) (dir model.DirectoryID, ok bool) {
	i := slices.Index(p.Replicas, n)
	if i < 0 {
		return dir, false
	}
	if i >= len(p.Directories) {
		return model.DirMigrating, true
	}
	return p.Directories[i], true
}

// Equal reports whether two registrations say the same.
func (p *Partition) Equal(q *Partition) bool {
	return p.Leader == q.Leader && p.LeaderEpoch == q.LeaderEpoch && p.PartitionEpoch == q.PartitionEpoch &&
		p.LeaderRecoveryState == q.LeaderRecoveryState &&
		slices.Equal(p.Replicas, q.Replicas) && slices.Equal(p.Directories, q.Directories) && slices.Equal(p.ISR, q.ISR) &&
		slices.Equal(p.Removing, q.Removing) && slices.Equal(p.Adding, q.Adding) &&
		slices.Equal(p.ELR, q.ELR) && slices.Equal(p.LastKnownELR, q.LastKnownELR)
}
