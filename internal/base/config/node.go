package config

import (
	"strings"
	"time"

	"samsa/internal/base/model"
)

// Node is a node's whole configuration, resolved and checked. It never changes; WithDynamic makes
// another one. Fields hold what the assembly and the hot paths need; everything else is read by
// name with Bool, Int, Long, Double, String, List and Millis.
type Node struct {
	*view

	Broker     bool // process.roles has broker
	Controller bool // process.roles has controller
	NodeID     model.NodeID
	Rack       string // "" when not set

	Listeners                     []Listener // all that this node binds
	AdvertisedListeners           []Listener // broker listeners as clients and brokers are told them
	AdvertisedControllerListeners []Listener // controller listeners of this node, the default one first
	ControllerListenerNames       []string   // normalised; the first one is used for outgoing traffic
	ControllerProtocol            SecurityProtocol
	InterBrokerListenerName       string
	InterBrokerProtocol           SecurityProtocol

	LogDirs         []string // as written, without duplicates
	MetadataLogDir  string   // where __cluster_metadata-0 lives
	CordonedLogDirs []string // entries of LogDirs; all of them when it says *

	Quorum  Quorum
	Network Network
	Log     Log
	Replica Replica
	Group   Group
	Txn     Txn
	Quota   Quota
	Samsa   Samsa

	NumPartitions            int32
	DefaultReplicationFactor int16
	AutoCreateTopics         bool
	DeleteTopics             bool
	AutoLeaderRebalance      bool
	LeaderImbalanceCheck     time.Duration
	ControlledShutdown       bool
	BrokerHeartbeatInterval  time.Duration
	BrokerSessionTimeout     time.Duration
	InitialRegistration      time.Duration // initial.broker.registration.timeout.ms
	RequestTimeout           time.Duration
	MaxRequestPartitionSize  int32 // max.request.partition.size.limit
	UnstableApiVersions      bool
	UnstableFeatureVersions  bool
	BackgroundThreads        int
	NumIOThreads             int
}

// Quorum is controller.quorum.* and the metadata log.
type Quorum struct {
	Voters               []Voter
	BootstrapServers     []HostPort
	ElectionTimeout      time.Duration
	ElectionBackoffMax   time.Duration
	FetchTimeout         time.Duration
	RequestTimeout       time.Duration
	RetryBackoff         time.Duration
	AppendLinger         time.Duration
	FetchMaxBytes        int32
	FetchSnapshotBytes   int32
	AutoJoin             bool
	SegmentBytes         int32 // metadata.log.segment.bytes, or the internal override
	SegmentMs            int64
	MaxRetentionBytes    int64
	MaxRetentionMs       int64
	MaxBatchBytes        int32
	DeleteDelayMs        int64
	SnapshotMaxBytes     int64         // metadata.log.max.record.bytes.between.snapshots
	SnapshotMaxInterval  time.Duration // 0 is never
	MaxIdleInterval      time.Duration // 0 is no no-op records
	UncleanCheckInterval time.Duration
}

// Network is everything about sockets.
type Network struct {
	RequestMaxBytes          int32
	QueuedMaxRequests        int32
	QueuedMaxBytes           int64 // -1 is no limit
	SendBufferBytes          int32
	ReceiveBufferBytes       int32
	ListenBacklog            int32
	MaxConnections           int32
	MaxConnectionsPerIP      int32
	MaxConnectionsPerIPOver  map[string]int32
	MaxConnectionRate        int32
	MaxIdle                  time.Duration // negative is never
	FailedAuthenticationWait time.Duration
	FetchMaxBytes            int32
	FetchSessionSlots        int32
	NumNetworkThreads        int32
}

// Log is everything about log directories and the broker-wide part of logs.
type Log struct {
	RecoveryThreadsPerDir     int32
	DirFailureTimeout         time.Duration
	RetentionCheckInterval    time.Duration
	FlushSchedulerIntervalMs  int64 // max int64 is never
	FlushOffsetCheckpoint     time.Duration
	FlushStartCheckpoint      time.Duration
	InitialTaskDelay          time.Duration
	ProducerIDExpiration      time.Duration
	ProducerIDExpirationCheck time.Duration
	CleanerEnable             bool
	CleanerThreads            int32
	CleanerDedupeBufferBytes  int64
	CleanerIOBufferBytes      int32
	CleanerLoadFactor         float64
	CleanerMaxBytesPerSecond  float64
	CleanerBackoff            time.Duration
	RemoteStorageSystemEnable bool
	AlterLogDirsThreads       int32
}

// Replica is everything about replication.
type Replica struct {
	NumFetchers           int32
	LagTimeMax            time.Duration
	FetchMaxBytes         int32
	FetchResponseMaxBytes int32
	FetchWaitMax          time.Duration
	FetchMinBytes         int32
	FetchBackoff          time.Duration
	SocketTimeout         time.Duration
	SocketReceiveBuffer   int32
	HighWatermarkInterval time.Duration // replica.high.watermark.checkpoint.interval.ms
	SelectorClass         string
}

// Group is everything about the group coordinator and __consumer_offsets.
type Group struct {
	MinSessionTimeout       time.Duration
	MaxSessionTimeout       time.Duration
	InitialRebalanceDelay   time.Duration
	MaxSize                 int32
	OffsetMetadataMaxBytes  int32
	OffsetsLoadBufferBytes  int32
	OffsetsRetention        time.Duration
	OffsetsRetentionCheck   time.Duration
	OffsetsCommitTimeout    time.Duration
	OffsetsTopicPartitions  int32
	OffsetsTopicReplication int16
	OffsetsTopicSegment     int32
	OffsetsTopicCodec       int8
	Protocols               []string // lower case
	AppendLinger            time.Duration
}

// Txn is everything about transactions.
type Txn struct {
	MaxTimeout              time.Duration
	IDExpiration            time.Duration
	AbortTimedOutInterval   time.Duration
	RemoveExpiredInterval   time.Duration
	StateTopicPartitions    int32
	StateTopicReplication   int16
	StateTopicMinISR        int32
	StateTopicSegment       int32
	LoadBufferBytes         int32
	PartitionVerification   bool
	AddPartitionsBackoff    time.Duration
	AddPartitionsBackoffMax time.Duration
	TwoPhaseCommit          bool
}

// Quota is the measuring of quotas: samples and their length.
type Quota struct {
	Samples             int
	Window              time.Duration
	ReplicationSamples  int
	ReplicationWindow   time.Duration
	AlterLogDirsSamples int
	AlterLogDirsWindow  time.Duration
	ControllerSamples   int
	ControllerWindow    time.Duration
	LeaderThrottledRate int64
	FollowThrottledRate int64
	AlterLogDirsRate    int64
}

// Samsa is what only samsa has.
type Samsa struct {
	HTTPListener             string        // host:port of /metrics, /healthz, /readyz; "" is none
	DeleteStaleTopicDelayMs  int64         // -1 is never
	PartitionMetadataDetails bool          // partition.metadata.details.enable
	RequestReceiveTimeout    time.Duration // a frame must be complete by then
	ResponseSendTimeout      time.Duration
	ConnectionAuthTimeout    time.Duration
	RequestMemoryBytes       int64 // budget for request bytes in flight
}

// Bool, Int, Long, Double, Text, List, Millis and Seconds read any broker property by name: the
// effective value. Asking for a name the tables do not know, or with another type, is a bug and
// panics. A null is the zero value; IsNull tells.
func (n *Node) Bool(name string) bool { return n.boolean(name) }

// Int reads an INT or SHORT.
func (n *Node) Int(name string) int32 { return n.int(name) }

// Long reads a LONG, INT or SHORT.
func (n *Node) Long(name string) int64 { return n.long(name) }

// Double reads a DOUBLE.
func (n *Node) Double(name string) float64 { return n.double(name) }

// Text reads a STRING, CLASS or PASSWORD.
func (n *Node) Text(name string) string { return n.text(name) }

// List reads a LIST. Not to be changed.
func (n *Node) List(name string) []string { return n.list(name) }

// Millis reads a number of milliseconds, cut at the longest duration.
func (n *Node) Millis(name string) time.Duration { return n.duration(name, time.Millisecond) }

// Seconds reads a number of seconds, cut at the longest duration.
func (n *Node) Seconds(name string) time.Duration { return n.duration(name, time.Second) }

// IsNull reports whether the property has no value.
func (n *Node) IsNull(name string) bool { return n.isNull(name) }

// IsSet reports whether any layer sets the property itself.
func (n *Node) IsSet(name string) bool { return n.isSet(name) }

// ForListener is the text of a property for one listener: listener.name.<listener>.<name> when it
// is set, with mechanism listener.name.<listener>.<mechanism>.<name>, else the plain property (S-02).
func (n *Node) ForListener(listener, mechanism, name string) (string, bool) {
	prefix := "listener.name." + strings.ToLower(listener) + "."
	if mechanism != "" {
		if s, ok := n.props[prefix+strings.ToLower(mechanism)+"."+name]; ok {
			return javaTrim(s), true
		}
	}
	if s, ok := n.props[prefix+name]; ok {
		return javaTrim(s), true
	}
	if v, ok := n.vals[name]; ok && v != nil {
		return Text(v), true
	}
	return "", false
}
