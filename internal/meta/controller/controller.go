package controller

import (
	"maps"
	"math/rand/v2"

	"samsa/internal/base/config"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// The bounds of one operation (K-123).
const (
	MaxRecordsPerUserOp  = 10000
	MaxPartitionsPerOp   = 10000
	MaxRecordsPerBatch   = 10000
	MaxElectionsPerRun   = 1000
	producerIDBlockSize  = 1000
	maxConfigValueLength = 32767
)

// Controller decides. It is owned by one goroutine.
type Controller struct {
	nodeID         model.NodeID
	ownIncarnation model.UUID
	clusterID      string
	static         *config.Node
	rng            *rand.Rand
	newID          func() model.UUID
	beats          *Heartbeats
	voters         func() []model.NodeID
	kraft          KRaftVersion

	// The node's configs with the dynamic ones of the image laid over; see effective.
	effectiveNode    *config.Node
	effectiveOwn     map[string]string
	effectiveCluster map[string]string

	// The configs a new topic without own ones is described with, under plainTopicOf.
	plainTopicOf *config.Node
	plainTopic   []protocol.CreateTopicsResponseCreatableTopicConfigs
}

// KRaftVersion reaches the feature that lives in the raft log and not in metadata records.
type KRaftVersion interface {
	// KRaftVersion is the finalized kraft.version.
	KRaftVersion() int16
	// UpgradeKRaftVersion appends the upgrade, or says why not (K-94).
	UpgradeKRaftVersion(level int16, validateOnly bool) error
}

// Options say who the controller is and what it may use.
type Options struct {
	NodeID    model.NodeID
	ClusterID string
	Config    *config.Node
	Rand      *rand.Rand            // placement
	NewID     func() model.UUID     // ids of topics (T-04)
	Voters    func() []model.NodeID // the voters of the quorum; nil: this node alone
	KRaft     KRaftVersion          // nil: kraft.version cannot change
	// OwnIncarnation is the incarnation id of the broker in this very process, zero without one. Its forerunner is
	// gone, whatever its session says: this process holds the locks of its directories.
	OwnIncarnation model.UUID
}

// New returns a controller that has heard nobody yet.
func New(o Options) *Controller {
	c := &Controller{
		nodeID: o.NodeID, clusterID: o.ClusterID, static: o.Config, rng: o.Rand, newID: o.NewID,
		voters: o.Voters, kraft: o.KRaft, ownIncarnation: o.OwnIncarnation,
		beats: NewHeartbeats(o.Config.BrokerSessionTimeout.Milliseconds()),
	}
	if c.voters == nil {
		c.voters = func() []model.NodeID { return []model.NodeID{o.NodeID} }
	}
	return c
}

// Heartbeats is what the controller has heard of brokers.
func (c *Controller) Heartbeats() *Heartbeats { return c.beats }

// Activate begins a term as the active controller: every unfenced broker counts as just heard (K-125).
func (c *Controller) Activate(img *image.Image, nowMs int64) {
	c.beats.reset()
	for b := range img.Brokers().All() {
		if !b.Fenced {
			c.beats.contact(b.ID, b.Epoch, nowMs)
		}
	}
}

// effective is the node's configuration with the dynamic configs of the image: its own, then the
// cluster's (K-166).
func (c *Controller) effective(img *image.Image) *config.Node {
	own, cluster := img.Configs(image.BrokerResource(c.nodeID)), img.Configs(image.ClusterResource)
	if c.effectiveNode == nil || !maps.Equal(own, c.effectiveOwn) || !maps.Equal(cluster, c.effectiveCluster) {
		// What does not fit is left out: it must not fail anything (K-166).
		c.effectiveNode, _ = c.static.WithDynamic(own, cluster)
		c.effectiveOwn, c.effectiveCluster = own, cluster
	}
	return c.effectiveNode
}

// Caller is who asks, and how.
type Caller struct {
	Principal string
	Version   int16 // of the request
	Forwarded bool  // by a broker, which has made its own checks
	// Allowed answers for single items, in the bytes of ACLs; nil allows everything.
	Allowed func(operation, resourceType int8, name string) bool
	// MutationQuota takes partitions created or deleted from the caller's quota (D-202); nil is no quota.
	MutationQuota func(partitions int) error
}

// Bytes of ACLs that item checks use.
const (
	OpCreate          int8 = 5
	OpDelete          int8 = 6
	OpAlter           int8 = 7
	OpDescribe        int8 = 8
	OpDescribeConfigs int8 = 10
	OpAlterConfigs    int8 = 11

	OnTopic   int8 = 2
	OnGroup   int8 = 3
	OnCluster int8 = 4
)

// clusterName is the name of the one cluster resource.
const clusterName = "kafka-cluster"

func (c Caller) may(operation, resourceType int8, name string) bool {
	return c.Allowed == nil || c.Allowed(operation, resourceType, name)
}

func (c Caller) mutate(partitions int) error {
	if c.MutationQuota == nil {
		return nil
	}
	return c.MutationQuota(partitions)
}
