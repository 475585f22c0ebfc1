package node

import (
	"context"

	"samsa/internal/base/model"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
)

// Node is one running replica of the metadata log.
type Node struct{}

// Open locks and loads the metadata log, its snapshots and quorum-state, and prepares the core. Nothing runs and
// nothing is sent before Start. A log that cannot be read is an error that says what to do; Open never starts
// from nothing when something was there.
func Open(opts Options) (*Node, error) { panic("pending") }

// Start runs the node. A single voter is leader when its first control batch is durable (K-17).
func (n *Node) Start() { panic("pending") }

// Stop resigns when leader (K-27, K-34), calls BeginShutdown on every listener, and closes the files. ctx bounds
// the wait for the resignation, not the closing.
func (n *Node) Stop(ctx context.Context) error { panic("pending") }

// Register adds a listener; it gets the newest snapshot and everything committed, then what follows.
func (n *Node) Register(l Listener) { panic("pending") }

// Unregister removes it; no call is running or coming when Unregister returns (do not call it from a listener).
func (n *Node) Unregister(l Listener) { panic("pending") }

// Append gives batches of framed records to the log of this leader; it returns the last offset they will have,
// before anything is durable. Each inner slice becomes exactly one batch, never split (K-58); the batches of one call are
// contiguous. Appends waiting at the same time share one fsync, and the high watermark covers them all.
//
// Errors: kerr.NotLeaderOrFollower when epoch is not the current leadership, ErrBatchTooLarge above 8 MiB (K-57),
// ErrBacklog when too much waits. The records' memory must not change until the batch is committed.
func (n *Node) Append(epoch int32, batches [][]Record) (lastOffset int64, err error) { panic("pending") }

// NextOffset is the offset the next Append of this epoch begins at, as far as known now.
func (n *Node) NextOffset(epoch int32) (int64, error) { panic("pending") }

// Resign gives leadership of epoch up (controller renounce, K-128); no effect in another epoch.
func (n *Node) Resign(epoch int32) { panic("pending") }

// LeaderAndEpoch is what this node believes now.
func (n *Node) LeaderAndEpoch() LeaderAndEpoch { panic("pending") }

// LeaderEndpoint is the address of the current leader for a listener name; the channel to the controller uses it (K-185).
func (n *Node) LeaderEndpoint(listener string) (model.NodeID, kraft.Endpoint, bool) { panic("pending") }

// HighWatermark is the end of the committed log (exclusive); false while unknown.
func (n *Node) HighWatermark() (int64, bool) { panic("pending") }

// EndOffset is the end of the local log (exclusive).
func (n *Node) EndOffset() int64 { panic("pending") }

// Voters is the voter set in force at the end of the local log.
func (n *Node) Voters() kraft.VoterSet { panic("pending") }

// KRaftVersion is the finalized kraft.version at the end of the local log (K-113).
func (n *Node) KRaftVersion() int16 { panic("pending") }

// LatestSnapshotID is the newest snapshot on disk, the bootstrap checkpoint included.
func (n *Node) LatestSnapshotID() (kraft.SnapshotID, bool) { panic("pending") }

// CreateSnapshot starts a snapshot that ends before offset id.Offset; nil and no error when it already exists.
// The offset must be a batch boundary, committed, and not below the log start (K-67).
func (n *Node) CreateSnapshot(id kraft.SnapshotID, lastContainedTimestamp int64) (*SnapshotWriter, error) {
	panic("pending")
}

// Bootstrap returns the data records format left for the first activation: those of the 0-0 checkpoint, else those
// of a legacy bootstrap.checkpoint in the metadata directory, else none and an empty source (K-105, K-106).
func (n *Node) Bootstrap() (records []Record, source string, err error) { panic("pending") }

// The raft RPCs. Each takes a decoded request as it came in on the named controller listener, at a version, and returns the response to encode;
// err is only ctx's or a stopped node's. They block while the protocol says so (a parked fetch).
func (n *Node) Vote(ctx context.Context, listener string, version int16, r *protocol.VoteRequest) (*protocol.VoteResponse, error) {
	panic("pending")
}
func (n *Node) BeginQuorumEpoch(ctx context.Context, listener string, version int16, r *protocol.BeginQuorumEpochRequest) (*protocol.BeginQuorumEpochResponse, error) {
	panic("pending")
}
func (n *Node) EndQuorumEpoch(ctx context.Context, listener string, version int16, r *protocol.EndQuorumEpochRequest) (*protocol.EndQuorumEpochResponse, error) {
	panic("pending")
}
func (n *Node) Fetch(ctx context.Context, listener string, version int16, r *protocol.FetchRequest) (*protocol.FetchResponse, error) {
	panic("pending")
}
func (n *Node) FetchSnapshot(ctx context.Context, listener string, version int16, r *protocol.FetchSnapshotRequest) (*protocol.FetchSnapshotResponse, error) {
	panic("pending")
}
func (n *Node) DescribeQuorum(ctx context.Context, version int16, r *protocol.DescribeQuorumRequest) (*protocol.DescribeQuorumResponse, error) {
	panic("pending")
}
