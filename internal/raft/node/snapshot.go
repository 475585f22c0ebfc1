package node

import (
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
)

// SnapshotReader reads one .checkpoint file, checking every batch.
type SnapshotReader struct{}

// OpenSnapshot opens a checkpoint file of any path; id names what it should hold.
func OpenSnapshot(fs vfs.FS, path string, id kraft.SnapshotID) (*SnapshotReader, error) {
	panic("pending")
}

func (r *SnapshotReader) ID() kraft.SnapshotID          { panic("pending") }
func (r *SnapshotReader) LastContainedTimestamp() int64 { panic("pending") }
func (r *SnapshotReader) SizeInBytes() int64            { panic("pending") }

// KRaftVersion and Voters are the control records of the header batch: 0 and nil when absent.
func (r *SnapshotReader) KRaftVersion() int16    { panic("pending") }
func (r *SnapshotReader) Voters() kraft.VoterSet { panic("pending") }

// Next returns the next data batch; io.EOF after the footer, an error that names the path when it is missing or damaged.
func (r *SnapshotReader) Next() (Batch, error) { panic("pending") }
func (r *SnapshotReader) Close() error         { panic("pending") }

// SnapshotWriter writes one .checkpoint file: header, records in batches, footer (K-65).
type SnapshotWriter struct{}

// CheckpointOptions say what the header batch holds.
type CheckpointOptions struct {
	LastContainedTimestamp int64
	KRaftVersion           int16 // 0: neither record is written
	Voters                 kraft.VoterSet
}

// NewCheckpoint starts a checkpoint file outside a running node (storage format): written to a .part file beside dir,
// visible under its name after Freeze.
func NewCheckpoint(fs vfs.FS, dir string, id kraft.SnapshotID, opts CheckpointOptions) (*SnapshotWriter, error) {
	panic("pending")
}

// Append adds records; they are cut into batches of at most 1024 records and 8 MiB.
func (w *SnapshotWriter) Append(records []Record) error { panic("pending") }

// Freeze writes the footer, syncs, makes the file read-only and gives it its name (K-64).
func (w *SnapshotWriter) Freeze() error { panic("pending") }

// Close drops a snapshot that was not frozen; after Freeze it does nothing.
func (w *SnapshotWriter) Close() error { panic("pending") }
