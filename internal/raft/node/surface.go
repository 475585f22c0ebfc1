package node

import (
	"errors"
	"log/slog"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
)

// Record is one framed metadata record value: uvarint frame version 1, api key, record version, body (K-76).
// The raft layer never looks inside.
type Record = []byte

// Batch is one committed batch of metadata records. Records alias memory that nobody writes again.
type Batch struct {
	BaseOffset      int64
	LastOffset      int64
	Epoch           int32
	AppendTimestamp int64 // ms
	SizeInBytes     int
	// Control batches carry raft's own records (leader change, voters); Records is nil, the offsets count.
	Control bool
	Records []Record
}

// LeaderAndEpoch names the leader of an epoch; Leader is -1 while nobody is known.
type LeaderAndEpoch struct {
	Leader model.NodeID
	Epoch  int32
}

// Listener is told what the quorum decided. All calls come from one goroutine (for all listeners), in log order;
// a listener that has work to do queues it and returns.
type Listener interface {
	// HandleCommit hands over committed batches, in order, without gaps (K-172). Control batches are included so
	// that offsets can be followed; they never carry records.
	HandleCommit(batches []Batch)
	// HandleSnapshot replaces everything seen so far: the next commit starts at r.ID().Offset (K-175).
	// The reader is closed by the node when the call returns. The 0-0 bootstrap checkpoint never comes here
	// (see Node.Bootstrap).
	HandleSnapshot(r *SnapshotReader) error
	// HandleLeaderChange: a change to oneself comes only after every committed record of earlier epochs, and
	// the leader change record of this one, went through HandleCommit (K-25).
	HandleLeaderChange(l LeaderAndEpoch)
	// BeginShutdown is the last call.
	BeginShutdown()
}

// Errors of Append besides kerr.NotLeaderOrFollower.
var (
	// ErrBatchTooLarge is returned when the records of one batch exceed 8 MiB (K-57).
	ErrBatchTooLarge = errors.New("the records of one atomic operation exceed the 8 MiB of a metadata batch")
	// ErrBacklog is returned when 80 MiB wait to be written: the disk does not keep up (K-57).
	ErrBacklog = errors.New("too many metadata records wait to be written")
	// ErrMoved is returned by AppendAt when the log grew in between.
	ErrMoved = errors.New("the metadata log does not end where the records expect it")
	// ErrStopped is returned by calls on a node that was stopped or failed.
	ErrStopped = errors.New("the metadata log is closed")
)

// Options say where the log is and who the node is.
type Options struct {
	// Dir is the metadata log directory; the log is Dir/__cluster_metadata-0.
	Dir string
	FS  vfs.FS
	// ClusterID, NodeID and Directory come from Dir's meta.properties. Directory is never zero (K-07).
	ClusterID string
	NodeID    model.NodeID
	Directory model.DirectoryID
	// Controller: the node has the controller role, so it may vote, and it syncs before it acknowledges (K-50).
	Controller bool
	// StaticVoters is controller.quorum.voters; empty with a dynamic quorum (K-02).
	StaticVoters kraft.VoterSet
	// BootstrapServers is controller.quorum.bootstrap.servers; empty: the static voters serve as such (K-02).
	BootstrapServers []kraft.Endpoint
	// Listeners are the node's own advertised controller listeners, the first is the default one (K-04).
	Listeners kraft.Endpoints
	// DefaultListener names the controller listener of the voters; a node with Listeners need not set it (K-03).
	DefaultListener string
	// Lock takes Dir/.lock: set when nobody else locks the directory (K-09).
	Lock      bool
	Config    Config
	Transport Transport // nil: a node that talks to nobody (a single voter)
	Log       *slog.Logger
	// Now is the clock of record timestamps; nil means time.Now.
	Now func() time.Time
	// Fatal is called once, from the loop, when the node cannot go on (K-34); the process should end.
	Fatal func(error)
}

// Config holds the controller.quorum.* and metadata.* properties the raft layer reads (K-12, K-62, K-68, K-69).
type Config struct {
	ElectionTimeout       time.Duration // controller.quorum.election.timeout.ms
	FetchTimeout          time.Duration // controller.quorum.fetch.timeout.ms
	ElectionBackoffMax    time.Duration // controller.quorum.election.backoff.max.ms
	RequestTimeout        time.Duration // controller.quorum.request.timeout.ms
	RetryBackoff          time.Duration // controller.quorum.retry.backoff.ms
	FetchMaxBytes         int32         // controller.quorum.fetch.max.bytes
	FetchSnapshotMaxBytes int32         // controller.quorum.fetch.snapshot.max.bytes
	SegmentBytes          int           // metadata.log.segment.bytes
	SegmentAge            time.Duration // metadata.log.segment.ms
	MaxRetentionBytes     int64         // metadata.max.retention.bytes
	MaxRetention          time.Duration // metadata.max.retention.ms; negative: never
	// ShutdownTimeout bounds the resignation of a stopping leader.
	ShutdownTimeout time.Duration
}

// DefaultConfig returns Kafka 4.4's defaults.
func DefaultConfig() Config {
	return Config{
		ElectionTimeout:       1000 * time.Millisecond,
		FetchTimeout:          2000 * time.Millisecond,
		ElectionBackoffMax:    1000 * time.Millisecond,
		RequestTimeout:        2000 * time.Millisecond,
		RetryBackoff:          20 * time.Millisecond,
		FetchMaxBytes:         1 << 20,
		FetchSnapshotMaxBytes: 1 << 20,
		SegmentBytes:          1 << 30,
		SegmentAge:            7 * 24 * time.Hour,
		MaxRetentionBytes:     100 << 20,
		MaxRetention:          7 * 24 * time.Hour,
		ShutdownTimeout:       5 * time.Second,
	}
}
