package manager

import (
	"time"

	"samsa/internal/base/model"
	"samsa/internal/storage/partlog"
)

// Origin says who appends: clients are held to every check of a produce request, coordinators are not (D-24).
type Origin uint8

const (
	OriginClient Origin = iota
	OriginCoordinator
)

// AppendRequest is one produce request, or one write of a coordinator.
//
// Acks is -1, 0 or 1; anything else answers INVALID_REQUIRED_ACKS for every entry.
// With Acks -1 the answer waits until every entry's high watermark has passed it, at most Timeout.
type AppendRequest struct {
	Acks       int16
	Timeout    time.Duration
	Origin     Origin
	APIVersion int16 // of the Produce request: zstd before 7 (D-11), error shapes
	// AllowInternal lets a client write to internal topics (client id __admin_client, D-12).
	AllowInternal bool
	// RequireZeroSequence: a transactional Produce v12+ (D-111).
	RequireZeroSequence bool
	// Entries are appended in order. Slice and records are borrowed until Append returns or done runs.
	Entries []AppendEntry
	// Results is room for the results if it is large enough; done gives it back.
	Results []AppendResult
}

// AppendEntry is the records for one partition. Records may be rewritten in place (offset, epoch,
// timestamp type), so it must be the caller's own memory, such as the request's frame.
type AppendEntry struct {
	Partition model.TopicIDPartition
	Topic     string // for messages and metrics
	Records   []byte // exactly one v2 batch from clients; nil is refused with INVALID_RECORD
	// ByID: the request named the topic by id (v13+), so a log of another id is UNKNOWN_TOPIC_ID;
	// by name it is UNKNOWN_TOPIC_OR_PARTITION (T-65, T-67).
	ByID bool
}

// AppendResult answers one entry, at the same index. Error nil is success.
type AppendResult struct {
	Err            error  // a *kerr.Error or something wrapping one
	Message        string // ErrorMessage of the protocol; "" is null
	BaseOffset     int64  // -1 on failure, except REQUEST_TIMED_OUT (D-21)
	LastOffset     int64  // -1 on failure
	LogAppendTime  int64  // -1 unless the topic is LogAppendTime, or for a duplicate (D-21)
	LogStartOffset int64
	RecordErrors   []RecordError
	Leader         CurrentLeader // set with NOT_LEADER_OR_FOLLOWER
}

// RecordError is one record a batch was refused for (KIP-467).
type RecordError struct {
	BatchIndex int32
	Message    string
}

// CurrentLeader is the leader hint of Produce v10+ and Fetch v16+ (KIP-951). Epoch -1 means no hint.
type CurrentLeader struct {
	Leader model.NodeID
	Epoch  model.LeaderEpoch
}

// Isolation is what a reader may see (KIP-98).
type Isolation int8

const (
	ReadUncommitted Isolation = 0
	ReadCommitted   Isolation = 1
)

// FetchRequest is one fetch after its session has been resolved (replica/fetchsession): Partitions in the
// order they are to be read.
type FetchRequest struct {
	// ReplicaID is -1 for consumers, -2 for debugging consumers, a broker's id for followers.
	ReplicaID    model.NodeID
	ReplicaEpoch int64 // broker epoch of a follower; -1 is unknown
	APIVersion   int16
	MaxWait      time.Duration
	MinBytes     int32
	MaxBytes     int32 // capped to fetch.max.bytes here
	Isolation    Isolation
	Rack         string // client.rack, for preferred read replicas (KIP-392)
	ClientID     string
	ClientHost   string
	// NoWait answers at once whatever MinBytes says: the session layer sets it when an entry already failed
	// in a way that must be told now.
	NoWait     bool
	Partitions []FetchPartition // borrowed until done has run
}

// FetchPartition is one partition to read.
type FetchPartition struct {
	Partition          model.TopicIDPartition
	Topic              string
	FetchOffset        int64
	LogStartOffset     int64 // the follower's; -1 from consumers
	MaxBytes           int32
	CurrentLeaderEpoch model.LeaderEpoch // -1 skips the check
	LastFetchedEpoch   model.LeaderEpoch // -1 skips divergence detection (v12+)
	ByID               bool              // named by id: a log of another id is INCONSISTENT_TOPIC_ID (T-52, T-62)
	// Known is the error the caller has already found (UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, …):
	// the entry is not read, answers it, and does not cut the wait (D-119). When the topic's name is known and its id is
	// not in the image any more, leave it to Fetch, which tells deleted, re-created here and re-created elsewhere
	// apart (T-58).
	Known error
}

// FetchResult answers one entry, at the same index.
//
// Records (nil: none) keeps its segment file open until Release is called; the network layer does so after the bytes
// are sent, whether or not they went out. On any Err the offsets are -1.
type FetchResult struct {
	Err                  error
	Records              *partlog.Slice
	HighWatermark        int64
	LastStableOffset     int64
	LogStartOffset       int64
	Aborted              []AbortedTxn // nil is null: read_uncommitted
	PreferredReadReplica model.NodeID // -1 none
	Diverging            DivergingEpoch
	Leader               CurrentLeader
}

// AbortedTxn is one aborted transaction in the range read (read_committed).
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// DivergingEpoch tells a fetcher where its history leaves the leader's (KIP-595). Epoch -1 is absent.
type DivergingEpoch struct {
	Epoch     model.LeaderEpoch
	EndOffset int64
}

// ListOffsetsRequest asks for offsets by time. Results come at once: nothing here waits.
type ListOffsetsRequest struct {
	ReplicaID  model.NodeID // -1 consumer, -2 debug, else a follower
	Isolation  Isolation
	APIVersion int16
	Partitions []ListOffsetsPartition
}

// ListOffsetsPartition is one question. Timestamps below zero are the special values of D-131.
type ListOffsetsPartition struct {
	Partition          model.TopicIDPartition
	Topic              string
	CurrentLeaderEpoch model.LeaderEpoch
	Timestamp          int64
}

// ListOffsetsResult answers one question. Nothing found is offset -1 with no error.
type ListOffsetsResult struct {
	Err         error
	Offset      int64
	Timestamp   int64
	LeaderEpoch model.LeaderEpoch
	Leader      CurrentLeader
}

// DeleteRecordsRequest raises log start offsets (D-78).
type DeleteRecordsRequest struct {
	Timeout    time.Duration
	Partitions []DeleteRecordsPartition
}

// DeleteRecordsPartition: Offset -1 means the high watermark.
type DeleteRecordsPartition struct {
	Partition model.TopicIDPartition
	Topic     string
	Offset    int64
}

// DeleteRecordsResult: LowWatermark is -1 with an error, except REQUEST_TIMED_OUT.
type DeleteRecordsResult struct {
	Err          error
	LowWatermark int64
}

// EpochEndRequest is one question of OffsetForLeaderEpoch.
type EpochEndRequest struct {
	Partition          model.TopicIDPartition
	Topic              string
	CurrentLeaderEpoch model.LeaderEpoch
	LeaderEpoch        model.LeaderEpoch
}

// EpochEndResult: epoch and end are -1 when unknown (D-134).
type EpochEndResult struct {
	Err         error
	LeaderEpoch model.LeaderEpoch
	EndOffset   int64
}

// ProducerState is one row of DescribeProducers.
type ProducerState struct {
	ProducerID       int64
	ProducerEpoch    int32
	LastSequence     int32
	LastTimestamp    int64
	CoordinatorEpoch int32
	TxnStartOffset   int64 // -1 none
}

// DirDescription is one entry of log.dirs in DescribeLogDirs (J-156..J-160).
type DirDescription struct {
	Path        string
	ID          model.DirectoryID // zero when unknown
	Err         error             // KAFKA_STORAGE_ERROR when offline
	TotalBytes  int64             // -1 when offline
	UsableBytes int64
	Cordoned    bool
	Replicas    []ReplicaDescription
}

// ReplicaDescription is one log in a directory.
type ReplicaDescription struct {
	Partition model.TopicIDPartition
	Topic     string
	Size      int64
	OffsetLag int64
	Future    bool
}
