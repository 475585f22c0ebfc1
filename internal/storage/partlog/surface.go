package partlog

import (
	"samsa/internal/base/model"
	"samsa/internal/storage/epochs"
	"samsa/internal/storage/producerstate"
)

// Log is one partition's log. Its methods may be called from any goroutine, unless they say otherwise.
type Log struct{}

// Open loads the log in o.Dir, or begins one at o.LogStartOffset when there is no segment.
//
// Damage is repaired where Kafka repairs it: leftovers of deletes and swaps (D-64, D-65), indexes (D-66), the tail after an
// unclean stop (D-67), epoch file and producer state (D-70, D-71). An error names the path and what to do.
func Open(o Options) (*Log, LoadInfo, error) { panic("pending") }

// Dir is the partition's directory now; it changes with RenameDir.
func (l *Log) Dir() string                     { panic("pending") }
func (l *Log) Partition() model.TopicPartition { panic("pending") }
func (l *Log) TopicID() model.TopicID          { panic("pending") }
func (l *Log) Config() *Config                 { panic("pending") }

// SetConfig replaces the configuration, from the next append on.
func (l *Log) SetConfig(c *Config) { panic("pending") }

// LeaderAppend is one append of a leader.
type LeaderAppend struct {
	// Records is one or more whole v2 batches back to back. Base offsets and leader epochs in it are rewritten in
	// place; the memory is the caller's again when AppendAsLeader returns.
	Records []byte
	Epoch   model.LeaderEpoch
	Origin  producerstate.Origin
	// TransactionVersion of the request that writes a marker (D-100); 0 otherwise.
	TransactionVersion int16
	// RequireZeroSequence refuses a first sequence other than 0 from a producer unknown here (transactional
	// Produce v12, D-111).
	RequireZeroSequence bool
	Now                 int64
}

// FollowerAppend is what a follower fetched: offsets and epochs are the leader's and are kept.
type FollowerAppend struct {
	// Records may end in a part of a batch, which is ignored. It is only read.
	Records []byte
	// Epoch is the leader epoch the fetch was made in: a batch of a later epoch is refused (K-56, D-138). -1: not checked.
	Epoch model.LeaderEpoch
	// Contiguous demands that every batch begins at the log end (the metadata log); otherwise gaps are allowed.
	Contiguous bool
	Now        int64
}

// AppendInfo tells where records went.
type AppendInfo struct {
	BaseOffset     int64 // first offset of the first batch; -1 when nothing was appended
	LastOffset     int64
	MaxTimestamp   int64
	LogStartOffset int64
	LogEndOffset   int64 // after the append
	Batches        int
	Records        int64 // by offsets: control records count
	Bytes          int
	// Duplicate: the batch was appended before (D-89). Offsets and MaxTimestamp are the stored batch's and
	// nothing was written.
	Duplicate bool
	// Refused is why a follower's append stopped before the end of its records: a damaged batch or one of a later
	// epoch. What came before it was appended.
	Refused error
}

// AppendAsLeader checks producer state, assigns offsets and the leader epoch, and writes with one call.
//
// On return the bytes are in the file, not synced, unless flush.messages says so.
// Errors: kerr.CorruptMessage and kerr.InvalidRecord for records that are not whole batches, kerr.RecordListTooLarge (D-15),
// kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch, kerr.InvalidTxnState,
// kerr.TransactionCoordinatorFenced (D-90, D-91, D-93, D-100), kerr.KafkaStorageError when the log is closed,
// *vfs.DirError when the directory is offline.
func (l *Log) AppendAsLeader(a LeaderAppend) (AppendInfo, error) { panic("pending") }

// AppendAsFollower appends what was fetched. An error means that nothing was appended:
// kerr.CorruptMessage when the first batch is damaged, ErrOffsetOrder when the records begin below the log end.
func (l *Log) AppendAsFollower(a FollowerAppend) (AppendInfo, error) { panic("pending") }

// Offsets are all bounds at one moment.
func (l *Log) Offsets() Offsets        { panic("pending") }
func (l *Log) LogStartOffset() int64   { panic("pending") }
func (l *Log) LogEndOffset() int64     { panic("pending") }
func (l *Log) HighWatermark() int64    { panic("pending") }
func (l *Log) LastStableOffset() int64 { panic("pending") }

// FirstUnstableOffset is the first offset of an open transaction, or of one whose marker is not below the high watermark; -1 none.
func (l *Log) FirstUnstableOffset() int64 { panic("pending") }

// RecoveryPoint is the offset below which everything is synced.
func (l *Log) RecoveryPoint() int64 { panic("pending") }

// ActiveSegmentBase is the base offset of the segment being written: a fetch below it need not wait (D-119).
func (l *Log) ActiveSegmentBase() int64 { panic("pending") }

// Size is the bytes of all segments' .log files.
func (l *Log) Size() int64 { panic("pending") }

// SetHighWatermark moves the high watermark, clamped to [log start, log end], and returns where it is now and the last stable offset.
// It may go down (a new leader's first fetch).
func (l *Log) SetHighWatermark(hw int64) (highWatermark, lastStable int64) { panic("pending") }

// IncrementLogStartOffset raises the log start (DeleteRecords, a leader's log start, a snapshot); it reports whether
// it moved. Above the high watermark is kerr.OffsetOutOfRange (D-78); at or below the current is a no-op.
// Segments below it go with DeleteOldSegments.
func (l *Log) IncrementLogStartOffset(offset int64) (bool, error) { panic("pending") }

// ReadRequest says what to read.
type ReadRequest struct {
	Offset int64
	// UpTo is the exclusive bound: high watermark, last stable offset or log end. Above the log end means the log end.
	UpTo     int64
	MaxBytes int
	// MinOneBatch returns the first batch whole even if it is larger than MaxBytes (D-60).
	MinOneBatch bool
	// Aborted collects the aborted transactions of the range (read_committed).
	Aborted bool
}

// ReadResult is what was read.
type ReadResult struct {
	Records *Slice // nil when there is nothing; Release it
	// Aborted is nil unless asked for.
	Aborted []AbortedTxn
	// FirstBatchIncomplete: MaxBytes cut the first batch.
	FirstBatchIncomplete bool
	Offsets              Offsets // at the time of the read
}

// AbortedTxn is one entry of a transaction index.
type AbortedTxn struct {
	ProducerID       int64
	FirstOffset      int64
	LastOffset       int64 // of the marker
	LastStableOffset int64
}

// Read finds the bytes from the batch that holds Offset on, within one segment (D-59, D-60).
// Errors: kerr.OffsetOutOfRange below the log start or above the log end.
func (l *Log) Read(r ReadRequest) (ReadResult, error) { panic("pending") }

// ReadBatches copies whole batches from offset on, below upTo, into buf (grown when the first batch is larger), and
// returns them with the offset to go on at. Empty when there is none. The first batch may begin below offset.
func (l *Log) ReadBatches(buf []byte, offset, upTo int64) (batches []byte, next int64, err error) {
	panic("pending")
}

// BytesBetween says how many bytes of the log lie between two offsets (fetch purgatory, D-119). It is exact at
// batch boundaries and counts whole segments in between; 0 when from >= to.
func (l *Log) BytesBetween(from, to int64) (int64, error) { panic("pending") }

// TimestampOffset is a record found by time.
type TimestampOffset struct {
	Timestamp int64
	Offset    int64
	Epoch     model.LeaderEpoch // of its batch
}

// OffsetForTimestamp finds the first record at or after the log start whose timestamp is at least ts (D-61).
func (l *Log) OffsetForTimestamp(ts int64) (TimestampOffset, bool, error) { panic("pending") }

// MaxTimestamp finds the first record with the greatest timestamp of the log (ListOffsets -3).
func (l *Log) MaxTimestamp() (TimestampOffset, bool, error) { panic("pending") }

// AbortedTransactions lists the aborted transactions that overlap [from, to).
func (l *Log) AbortedTransactions(from, to int64) ([]AbortedTxn, error) { panic("pending") }

// AssignEpoch records that epoch begins at start (a new leader passes its log end, D-135). It is in memory on return.
func (l *Log) AssignEpoch(epoch model.LeaderEpoch, start int64) error { panic("pending") }

// LatestEpoch is the newest epoch of the log; -1 when there is none.
func (l *Log) LatestEpoch() model.LeaderEpoch { panic("pending") }

// EndOffsetForEpoch answers OffsetForLeaderEpoch (D-134): -1, -1 when unknown.
func (l *Log) EndOffsetForEpoch(epoch model.LeaderEpoch) (model.LeaderEpoch, int64) {
	panic("pending")
}

// EpochForOffset is the epoch in which offset was written; -1 when unknown.
func (l *Log) EpochForOffset(offset int64) model.LeaderEpoch { panic("pending") }

// Epochs is a copy of the epoch cache.
func (l *Log) Epochs() []epochs.Entry { panic("pending") }

// Producers is a copy of the producer state (DescribeProducers).
func (l *Log) Producers() []producerstate.Producer { panic("pending") }

// Producer is the state of one producer.
func (l *Log) Producer(id int64) (producerstate.Producer, bool) { panic("pending") }

// ProducerCount is the number of producers known.
func (l *Log) ProducerCount() int { panic("pending") }

// ExpireProducers forgets producers that were idle longer than Env.ProducerExpirationMs (D-94).
func (l *Log) ExpireProducers(now int64) { panic("pending") }

// OldestOpenTxnTimestamp is the last timestamp of the producer with the oldest open transaction; -1 none (D-101).
func (l *Log) OldestOpenTxnTimestamp() int64 { panic("pending") }

// TruncateTo drops everything from offset on; it reports whether anything was dropped. High watermark and recovery
// point go down with the log end. Below the log start it is TruncateFullyAndStartAt.
func (l *Log) TruncateTo(offset int64, now int64) (bool, error) { panic("pending") }

// TruncateFullyAndStartAt drops everything and begins again, empty, at offset (follower behind the leader's log
// start, snapshot of the metadata log).
func (l *Log) TruncateFullyAndStartAt(offset int64, now int64) error { panic("pending") }

// DeleteReason says why a segment may go.
type DeleteReason uint8

const (
	BelowLogStart DeleteReason = iota + 1
	RetentionBytes
	RetentionMs
)

// Deletable is a decision of retention: a prefix of the segments.
type Deletable struct {
	Segments []DeletableSegment
}

// DeletableSegment is one segment that may go.
type DeletableSegment struct {
	Base   int64
	Next   int64 // log start after it went
	Bytes  int64
	Reason DeleteReason
}

// DeletableSegments applies log start, size and time to the segments (D-74..D-77). With a policy of compact alone
// only the log start counts.
func (l *Log) DeletableSegments(now int64) (Deletable, error) { panic("pending") }

// DeleteOldSegments carries a decision out as far as it still holds, and returns what went. An active segment in it is rolled first.
func (l *Log) DeleteOldSegments(d Deletable, now int64) (Deletable, error) { panic("pending") }

// Flush syncs everything up to the log end and moves the recovery point.
func (l *Log) Flush(now int64) error { panic("pending") }

// FlushTo syncs everything below offset, a segment boundary: the background flush after a roll.
func (l *Log) FlushTo(offset int64, now int64) error { panic("pending") }

// FlushDue says whether flush.ms has passed with something unflushed (D-79).
func (l *Log) FlushDue(now int64) bool { panic("pending") }

// Unflushed is the number of offsets above the recovery point.
func (l *Log) Unflushed() int64 { panic("pending") }

// Roll begins a new segment at the log end, unless the active one is empty (forced rolls of tools and tests).
func (l *Log) Roll(now int64) error { panic("pending") }

// Close flushes and closes so that the next Open can trust everything (D-72): final time entry, indexes, producer
// snapshot at the log end, epoch file. After it RecoveryPoint is the log end. A closed log answers
// kerr.KafkaStorageError. Close is idempotent.
func (l *Log) Close(now int64) error { panic("pending") }

// Abandon closes without writing anything: the directory is offline, or the partition is deleted.
func (l *Log) Abandon() { panic("pending") }

// RenameDir renames the partition's directory (-delete, -stray, future to current) and goes on in the new one.
func (l *Log) RenameDir(dir string) error { panic("pending") }

// SegmentInfo describes one segment.
type SegmentInfo struct {
	Base         int64
	Next         int64 // base of the next segment, or the log end
	Bytes        int64
	MaxTimestamp int64 // -1 none
	Active       bool
}

// Segments lists all segments, oldest first.
func (l *Log) Segments() ([]SegmentInfo, error) { panic("pending") }

// ReplaceSegments swaps a cleaner's output in (D-86). cleaned are the base offsets of finished <base>.log.cleaned files (with
// .timeindex.cleaned, .index.cleaned, .txnindex.cleaned beside them; missing index files are built), in order; old
// are the bases of the closed segments they stand for. Every crash in between is repaired by Open.
func (l *Log) ReplaceSegments(cleaned, old []int64) error { panic("pending") }
