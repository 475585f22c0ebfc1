package image

import (
	"samsa/internal/base/model"
)

// Delta says what changed from one image to another. It is immutable and complete: a publisher that
// has seen From and handles Delta stands at To. Everything is named by ids, and what was created and
// removed in between leaves no trace (T-16).
type Delta struct {
	From, To *Image
	// Snapshot: the change came as a whole image, not as records. Its content is the difference all the same (K-175).
	Snapshot bool

	// Topics that changed: the deleted ones first, so that a name is free before it is taken again;
	// within each group in name order.
	Topics      []TopicChange
	Brokers     []BrokerChange     // by id
	Controllers []ControllerChange // by id
	// Configs are the resources whose configs changed, those of deleted topics included, by type and name.
	Configs []ConfigResource
	// Features is true if a finalized feature changed, metadata.version included.
	Features    bool
	Quotas      []QuotaKey // the entities whose quotas changed
	ACLs        []ACLChange
	Scram       []ScramUser // credentials added, changed or removed
	Tokens      []string    // delegation tokens added, changed or removed
	ProducerIDs bool
}

// Empty reports whether nothing changed but the offset.
func (d *Delta) Empty() bool {
	return len(d.Topics) == 0 && len(d.Brokers) == 0 && len(d.Controllers) == 0 && len(d.Configs) == 0 && !d.Features &&
		len(d.Quotas) == 0 && len(d.ACLs) == 0 && len(d.Scram) == 0 && len(d.Tokens) == 0 && !d.ProducerIDs
}

// MetadataVersionChanged reports whether metadata.version is another one now.
func (d *Delta) MetadataVersionChanged() bool {
	return d.From.features.metadataVersion != d.To.features.metadataVersion
}

// TopicChange is one incarnation of a topic created, deleted or changed.
type TopicChange struct {
	ID  model.TopicID
	Old *Topic // nil if created
	New *Topic // nil if deleted
	// Partitions that changed, by index: all of them for a topic created or deleted.
	Partitions []PartitionChange
}

// Name is the topic's name.
func (c TopicChange) Name() string {
	if c.New != nil {
		return c.New.Name
	}
	return c.Old.Name
}

// PartitionChange is one partition created, deleted or changed.
type PartitionChange struct {
	Index int32
	Old   *Partition // nil if created
	New   *Partition // nil if deleted with its topic
}

// BrokerChange is one registration added (Old nil), removed (New nil) or changed.
type BrokerChange struct {
	ID       model.NodeID
	Old, New *Broker
}

// ControllerChange is one registration added (Old nil), removed (New nil) or changed.
type ControllerChange struct {
	ID       model.NodeID
	Old, New *Controller
}

// ACLChange is one entry added (Old nil), removed (New nil) or replaced.
type ACLChange struct {
	ID       model.UUID
	Old, New *ACL
}
