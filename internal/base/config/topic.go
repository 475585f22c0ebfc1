package config

// Topic is the effective configuration of one topic. It never changes.
type Topic struct {
	Compact bool // cleanup.policy has compact
	Delete  bool // cleanup.policy has delete

	CompressionType string // producer, uncompressed, gzip, snappy, lz4, zstd
	GzipLevel       int32
	Lz4Level        int32
	ZstdLevel       int32

	SegmentBytes       int32
	SegmentMs          int64
	SegmentJitterMs    int64
	SegmentIndexBytes  int32
	IndexIntervalBytes int32
	FileDeleteDelayMs  int64
	FlushMessages      int64
	FlushMs            int64
	Preallocate        bool

	RetentionBytes      int64 // negative is no limit
	RetentionMs         int64 // -1 is no limit
	LocalRetentionBytes int64 // -2 already replaced by RetentionBytes
	LocalRetentionMs    int64

	MaxMessageBytes             int32
	MaxDecompressedMessageBytes int32
	LogAppendTime               bool // message.timestamp.type
	TimestampBeforeMaxMs        int64
	TimestampAfterMaxMs         int64

	DeleteRetentionMs      int64
	MinCompactionLagMs     int64
	MaxCompactionLagMs     int64
	MinCleanableDirtyRatio float64

	MinInSyncReplicas         int32
	UncleanLeaderElection     bool
	LeaderThrottledReplicas   Throttled
	FollowerThrottledReplicas Throttled
	RemoteStorage             bool
	RemoteLogCopyDisable      bool
	RemoteLogDeleteOnDisable  bool
	RemoteCopyLagMs           int64
	RemoteCopyLagBytes        int64
	DeadLetterQueueGroups     bool
}

// Throttled is the value of leader. or follower.replication.throttled.replicas.
type Throttled struct {
	All      bool
	Replicas map[ThrottledReplica]struct{}
}

// ThrottledReplica is one partition:broker pair.
type ThrottledReplica struct {
	Partition int32
	Broker    int32
}

// Topic resolves a topic's settings from its overrides, as they are in the metadata image, and
// from the node. Overrides that do not parse are left out.
func (n *Node) Topic(overrides map[string]string) *Topic { panic("pending") }

// DefaultTopic is a topic without overrides on a node without settings; for tests.
func DefaultTopic() *Topic { panic("pending") }
