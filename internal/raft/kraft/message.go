package kraft

import (
	"time"

	"samsa/internal/base/model"
)

// The raft RPCs as the core sees them, after the checks that need no state (cluster id, topic: K-38, K-48) and without
// the envelopes of arrays around one partition. wire_*.go turns protocol messages into these and back.

// VoteRequest asks for a vote, or for a pre-vote at the sender's current epoch (KIP-996).
type VoteRequest struct {
	Voter     ReplicaKey // whom the sender means to ask; NoReplica when it does not say (v0)
	Candidate ReplicaKey
	Epoch     int32
	LastEpoch int32
	LastEnd   int64 // log end offset, exclusive (K-39)
	PreVote   bool
}

// VoteResponse answers a vote.
type VoteResponse struct {
	Status
	Granted bool
}

// BeginQuorumEpochRequest is the leader's announcement and heartbeat (K-28).
type BeginQuorumEpochRequest struct {
	Voter     ReplicaKey
	Leader    model.NodeID
	Epoch     int32
	Endpoints Endpoints // of the leader; empty in v0
}

// BeginQuorumEpochResponse answers it.
type BeginQuorumEpochResponse struct{ Status }

// EndQuorumEpochRequest is a leader's resignation (K-27, K-29).
type EndQuorumEpochRequest struct {
	Leader    model.NodeID
	Epoch     int32
	Preferred []ReplicaKey // best successor first
	Endpoints Endpoints
}

// EndQuorumEpochResponse answers it.
type EndQuorumEpochResponse struct{ Status }

// FetchRequest asks for the log from Offset on; for a voter it acknowledges everything before (K-40, K-50).
type FetchRequest struct {
	Replica       ReplicaKey
	Epoch         int32
	Offset        int64
	LastEpoch     int32
	HighWatermark int64 // as the sender knows it: -1 unknown, 2^63-1 does not care
	MaxWait       time.Duration
	MaxBytes      int32
}

// FetchResponse answers it.
type FetchResponse struct {
	Status
	HighWatermark int64 // -1 unknown
	LogStart      int64
	Diverging     *EpochEnd
	Snapshot      *SnapshotID
	// Batches came from the leader, in order, whole and checked (ParseBatches). On the way out they are nil and the Reply effect
	// says what to read.
	Batches []Batch
	// Cut says why the records after Batches were dropped, if any were (K-56).
	Cut string
}

// FetchSnapshotRequest asks for a piece of a snapshot.
type FetchSnapshotRequest struct {
	Replica  ReplicaKey
	Epoch    int32
	ID       SnapshotID
	Position int64
	MaxBytes int32
}

// FetchSnapshotResponse answers it; on the way out Bytes is nil and the Reply effect says what to read.
type FetchSnapshotResponse struct {
	Status
	ID       SnapshotID
	Size     int64
	Position int64
	Bytes    []byte
}

// Status is what every response carries: an error and the sender's view of the quorum.
type Status struct {
	// TopLevel is set when the response holds nothing else: 35 for a version the peer lacks, 104, 42, -1 …
	TopLevel  int16
	Error     int16
	Epoch     int32
	Leader    model.NodeID
	Endpoints Endpoints // of Leader, those the response names
}

func (s *Status) status() *Status { return s }

type response interface{ status() *Status }

// EpochEnd is the end offset (exclusive) of an epoch.
type EpochEnd struct {
	Epoch int32
	End   int64
}

// Batch is one record batch of the log.
type Batch struct {
	Base, Last int64
	Epoch      int32
	Control    []ControlRecord // the control records the quorum reads; nil for data
	IsControl  bool
	Data       []byte // the whole batch as it is on disk
}

// ControlRecord is one control record the quorum cares about: LeaderChange is only written, the other two are also read.
type ControlRecord struct {
	Offset       int64
	LeaderChange *LeaderChangeRecord
	KRaftVersion *int16
	Voters       VoterSet
}

// LeaderChangeRecord opens every epoch (K-24, K-78).
type LeaderChangeRecord struct {
	Leader   model.NodeID
	Voters   []model.NodeID
	Granting []model.NodeID
}
