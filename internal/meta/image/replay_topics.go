package image

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"samsa/internal/base/model"
	"samsa/internal/base/pmap"
	"samsa/internal/wire/protocol"
)

// topicsEditor changes the topics of a Builder. Topics in edits are its own until done.
type topicsEditor struct {
	byID       *pmap.Editor[model.TopicID, *Topic]
	byName     *pmap.Editor[string, *Topic]
	colliding  *pmap.Editor[string, []string]
	partitions int
	edits      map[model.TopicID]*topicEdit
	deleted    map[model.TopicID]bool
}

type topicEdit struct {
	topic   *Topic
	parts   vectorEditor
	changed map[int32]bool
}

func (b *Builder) editTopics() *topicsEditor {
	if b.topics == nil {
		t := b.base.topics
		b.topics = &topicsEditor{
			byID: t.byID.Edit(), byName: t.byName.Edit(), colliding: t.colliding.Edit(), partitions: t.partitions,
			edits: map[model.TopicID]*topicEdit{}, deleted: map[model.TopicID]bool{},
		}
	}
	return b.topics
}

// edit opens a live topic for change.
func (t *topicsEditor) edit(id model.TopicID) (*topicEdit, error) {
	if e := t.edits[id]; e != nil {
		return e, nil
	}
	topic, ok := t.byID.Get(id)
	if !ok {
		return nil, fmt.Errorf("no topic has the id %v", id)
	}
	own := &Topic{Name: topic.Name, ID: id, parts: topic.parts}
	e := &topicEdit{topic: own, parts: topic.parts.edit(), changed: map[int32]bool{}}
	t.edits[id] = e
	t.byID.Set(id, own)
	t.byName.Set(own.Name, own)
	return e, nil
}

func (b *Builder) topic(r *protocol.TopicRecord) error {
	t := b.editTopics()
	id := model.TopicID(r.TopicId)
	if other, ok := t.byName.Get(r.Name); ok {
		return fmt.Errorf("topic %s exists already with the id %v, a second one would have %v", r.Name, other.ID, id)
	}
	if other, ok := t.byID.Get(id); ok {
		return fmt.Errorf("the id %v of topic %s belongs to topic %s", id, r.Name, other.Name)
	}
	topic := &Topic{Name: r.Name, ID: id}
	t.edits[id] = &topicEdit{topic: topic, parts: topic.parts.edit(), changed: map[int32]bool{}}
	delete(t.deleted, id)
	t.byID.Set(id, topic)
	t.byName.Set(r.Name, topic)
	if collides(r.Name) {
		key := CollisionKey(r.Name)
		names, _ := t.colliding.Get(key)
		t.colliding.Set(key, append(slices.Clone(names), r.Name))
	}
	return nil
}

func (b *Builder) partition(r *protocol.PartitionRecord) error {
	if r.PartitionId < 0 || r.PartitionId >= maxPartitionIndex {
		return fmt.Errorf("partition index %d is not between 0 and %d", r.PartitionId, maxPartitionIndex-1)
	}
	p := &Partition{
		Replicas: nodes(r.Replicas), ISR: nodes(r.Isr), Removing: nodes(r.RemovingReplicas), Adding: nodes(r.AddingReplicas),
		ELR: nodes(r.EligibleLeaderReplicas), LastKnownELR: nodes(r.LastKnownElr),
		Leader: model.NodeID(r.Leader), LeaderEpoch: model.LeaderEpoch(r.LeaderEpoch),
		PartitionEpoch: model.PartitionEpoch(r.PartitionEpoch), LeaderRecoveryState: r.LeaderRecoveryState,
	}
	var err error
	if p.Directories, err = directoriesFor(dirs(r.Directories), len(p.Replicas)); err != nil {
		return fmt.Errorf("partition %v-%d: %w", model.TopicID(r.TopicId), r.PartitionId, err)
	}
	if err := checkPartition(p); err != nil {
		return fmt.Errorf("partition %v-%d: %w", model.TopicID(r.TopicId), r.PartitionId, err)
	}
	t := b.editTopics()
	e, err := t.edit(model.TopicID(r.TopicId))
	if err != nil {
		return err
	}
	if e.parts.get(r.PartitionId) == nil {
		t.partitions++
	}
	e.parts.set(r.PartitionId, p)
	e.changed[r.PartitionId] = true
	return nil
}

func (b *Builder) partitionChange(r *protocol.PartitionChangeRecord) error {
	t := b.editTopics()
	e, err := t.edit(model.TopicID(r.TopicId))
	if err != nil {
		return err
	}
	old := e.parts.get(r.PartitionId)
	if old == nil {
		return fmt.Errorf("topic %s has no partition %d", e.topic.Name, r.PartitionId)
	}
	p, err := MergePartition(old, r)
	if err != nil {
		return fmt.Errorf("partition %s-%d: %w", e.topic.Name, r.PartitionId, err)
	}
	e.parts.set(r.PartitionId, p)
	e.changed[r.PartitionId] = true
	return nil
}

// NoLeaderChange in a PartitionChangeRecord keeps the leader; naming the same leader again bumps its epoch (K-83).
const NoLeaderChange int32 = -2

// MergePartition is old after a PartitionChangeRecord (K-83).
func MergePartition(old *Partition, r *protocol.PartitionChangeRecord) (*Partition, error) {
	p := *old
	p.PartitionEpoch++
	set := func(to *[]model.NodeID, from []int32) {
		if from != nil {
			*to = nodes(from)
		}
	}
	set(&p.ISR, r.Isr)
	set(&p.Replicas, r.Replicas)
	set(&p.Removing, r.RemovingReplicas)
	set(&p.Adding, r.AddingReplicas)
	set(&p.ELR, r.EligibleLeaderReplicas)
	set(&p.LastKnownELR, r.LastKnownElr)
	if r.Leader != NoLeaderChange {
		p.Leader = model.NodeID(r.Leader)
		p.LeaderEpoch++
	}
	if r.LeaderRecoveryState >= 0 {
		p.LeaderRecoveryState = r.LeaderRecoveryState
	}
	if r.Directories != nil {
		p.Directories = dirs(r.Directories)
	}
	var err error
	if p.Directories, err = directoriesFor(p.Directories, len(p.Replicas)); err != nil {
		return nil, err
	}
	return &p, checkPartition(&p)
}

// directoriesFor gives every replica a directory: a list that is absent or all MIGRATING says nothing,
// so it fits any number of replicas; any other must have one entry per replica (J-06, J-101).
func directoriesFor(d []model.DirectoryID, replicas int) ([]model.DirectoryID, error) {
	if len(d) == replicas && len(d) > 0 {
		return d, nil
	}
	for _, id := range d {
		if id != model.DirMigrating {
			return nil, fmt.Errorf("%d directories for %d replicas", len(d), replicas)
		}
	}
	return make([]model.DirectoryID, replicas), nil
}

func checkPartition(p *Partition) error {
	for i, r := range p.Replicas {
		if slices.Contains(p.Replicas[:i], r) {
			return fmt.Errorf("broker %d is twice among the replicas %v", r, p.Replicas)
		}
	}
	if p.LeaderRecoveryState != RecoveryRecovered && p.LeaderRecoveryState != RecoveryRecovering {
		return fmt.Errorf("leader recovery state %d is unknown", p.LeaderRecoveryState)
	}
	return nil
}

func (b *Builder) removeTopic(r *protocol.RemoveTopicRecord) error {
	t := b.editTopics()
	id := model.TopicID(r.TopicId)
	topic, ok := t.byID.Get(id)
	if !ok {
		return fmt.Errorf("no topic has the id %v", id)
	}
	if e := t.edits[id]; e != nil {
		topic = &Topic{Name: topic.Name, ID: id, parts: e.parts.v}
		delete(t.edits, id)
	}
	for range topic.Partitions() {
		t.partitions--
	}
	t.byID.Delete(id)
	t.byName.Delete(topic.Name)
	t.deleted[id] = true
	if collides(topic.Name) {
		key := CollisionKey(topic.Name)
		names, _ := t.colliding.Get(key)
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == topic.Name })
		if len(names) == 0 {
			t.colliding.Delete(key)
		} else {
			t.colliding.Set(key, names)
		}
	}
	// Its configs go with it (T-14); the record alone says so (T-11).
	res := ConfigResource{ResourceTopic, topic.Name}
	if configs := open(&b.configs, b.base.configs.m); configs.Has(res) {
		configs.delete(res)
	}
	return nil
}

// clearELR empties ELR and last known ELR, as a change record of each such partition would.
func (b *Builder) clearELR(r *protocol.ClearElrRecord) error {
	t := b.editTopics()
	if r.TopicName != "" {
		topic, ok := t.byName.Get(r.TopicName)
		if !ok {
			return fmt.Errorf("no topic is named %s", r.TopicName)
		}
		return t.clear(topic)
	}
	for topic := range t.byID.Map().Values() {
		if err := t.clear(topic); err != nil {
			return err
		}
	}
	return nil
}

func (t *topicsEditor) clear(topic *Topic) error {
	parts := topic.parts
	if e := t.edits[topic.ID]; e != nil {
		parts = e.parts.v
	}
	var err error
	parts.each(func(i int32, p *Partition) bool {
		if len(p.ELR) == 0 && len(p.LastKnownELR) == 0 {
			return true
		}
		var e *topicEdit
		if e, err = t.edit(topic.ID); err != nil {
			return false
		}
		q := *p
		q.ELR, q.LastKnownELR = nil, nil
		q.PartitionEpoch++
		e.parts.set(i, &q)
		e.changed[i] = true
		return true
	})
	return err
}

// done puts the edited topics in place and says what changed against base.
func (t *topicsEditor) done(into *Topics, base *Image) []TopicChange {
	var deleted, changed []TopicChange
	for id := range t.deleted {
		if old, ok := base.topics.ByID(id); ok {
			c := TopicChange{ID: id, Old: old}
			for i, p := range old.Partitions() {
				c.Partitions = append(c.Partitions, PartitionChange{Index: i, Old: p})
			}
			deleted = append(deleted, c)
		}
	}
	for id, e := range t.edits {
		e.topic.parts = e.parts.v
		old, _ := base.topics.ByID(id)
		c := TopicChange{ID: id, Old: old, New: e.topic}
		for _, i := range slices.Sorted(maps.Keys(e.changed)) {
			pc := PartitionChange{Index: i, New: e.parts.get(i)}
			if old != nil {
				pc.Old, _ = old.Partition(i)
			}
			c.Partitions = append(c.Partitions, pc)
		}
		if old != nil && len(c.Partitions) == 0 {
			continue
		}
		changed = append(changed, c)
	}
	byName := func(s []TopicChange) {
		sort.Slice(s, func(i, j int) bool { return strings.Compare(s[i].Name(), s[j].Name()) < 0 })
	}
	byName(deleted)
	byName(changed)
	*into = Topics{byID: t.byID.Map(), byName: t.byName.Map(), colliding: t.colliding.Map(), partitions: t.partitions}
	return append(deleted, changed...)
}

func nodes(ids []int32) []model.NodeID {
	if len(ids) == 0 {
		return nil
	}
	out := make([]model.NodeID, len(ids))
	for i, id := range ids {
		out[i] = model.NodeID(id)
	}
	return out
}

func dirs(ids []model.UUID) []model.DirectoryID {
	if len(ids) == 0 {
		return nil
	}
	out := make([]model.DirectoryID, len(ids))
	for i, id := range ids {
		out[i] = model.DirectoryID(id)
	}
	return out
}
