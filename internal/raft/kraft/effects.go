package kraft

import "samsa/internal/base/model"

// Effect is one thing the caller does for the core. See the package doc for what their order promises.
type Effect interface{ effect() }

type (
	// SaveState writes the quorum-state file durably (K-14, K-61).
	SaveState struct{ State QuorumState }
	// AppendLog appends batches at the log end.
	AppendLog struct{ Batches []Batch }
	// TruncateLog cuts the log to end at End.
	TruncateLog struct{ End int64 }
	// SyncLog makes the log durable up to End; Core.Synced says when it is.
	SyncLog struct{ End int64 }
	// Send sends a request; its response, or nil, comes back with Core.Response.
	Send struct {
		To          Peer
		Correlation uint64
		Message     any
	}
	// Reply answers a request. Read and ReadSnapshot, when set, say which bytes belong into it.
	Reply struct {
		Token        uint64
		Message      any
		Read         *ReadLog
		ReadSnapshot *ReadSnapshot
	}
	// WriteSnapshot appends a downloaded piece; Position 0 starts over.
	WriteSnapshot struct {
		ID       SnapshotID
		Position int64
		Bytes    []byte
	}
	// InstallSnapshot: the download is complete. Check it, make it durable under its name, drop the whole log and let it start at
	// the snapshot's offset, then call Core.Installed (or Core.InstallFailed) (K-45).
	InstallSnapshot struct{ ID SnapshotID }
	// DropSnapshot forgets an unfinished download.
	DropSnapshot struct{ ID SnapshotID }
	// HighWatermark: everything below Offset is committed.
	HighWatermark struct{ Offset int64 }
	// LeaderChange: the leader of the epoch became known, unknown, or is this node; then EpochStart is the offset of its first
	// record and the state machine hears of it only after that record is committed (K-25).
	LeaderChange struct {
		Leader     model.NodeID
		Epoch      int32
		EpochStart int64
	}
	// Note is a line for the log: one per change of state.
	Note struct {
		Warn bool
		Text string
		Args []any // key, value …
	}
	// Fatal: the replica cannot go on (K-32, K-34).
	Fatal struct{ Err error }
)

func (SaveState) effect()       {}
func (AppendLog) effect()       {}
func (TruncateLog) effect()     {}
func (SyncLog) effect()         {}
func (Send) effect()            {}
func (Reply) effect()           {}
func (WriteSnapshot) effect()   {}
func (InstallSnapshot) effect() {}
func (DropSnapshot) effect()    {}
func (HighWatermark) effect()   {}
func (LeaderChange) effect()    {}
func (Note) effect()            {}
func (Fatal) effect()           {}

// ReadLog is a range of the log for a fetch response: whole batches from Offset on, at least one, about MaxBytes.
type ReadLog struct {
	Offset   int64
	MaxBytes int32
}

// ReadSnapshot is a range of a snapshot file.
type ReadSnapshot struct {
	ID       SnapshotID
	Position int64
	MaxBytes int32
}
