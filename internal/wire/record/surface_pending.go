package record

import "iter"

// Record is one record. Slices are borrowed: they are valid until the next one is read.
type Record struct {
	Offset     int64
	Timestamp  int64
	Sequence   int32 // NoSequence when the batch has none
	Attributes int8
	Key, Value []byte // nil is null, empty is not
	Headers    []Header
}

// Header is a record header.
type Header struct {
	Key   string
	Value []byte // nil is null
}

// Records iterates the records of one batch of any format, decompressing as it
// goes, and checks counts and bounds strictly (D-03, D-04). The record is
// borrowed: valid until the next iteration. After an error it stops. A malformed record is
// kerr.InvalidRecord, a payload that does not decompress kerr.CorruptMessage.
func Records(b Batch) iter.Seq2[*Record, error] { panic("pending") }

// FirstOffset is the offset of the first record; it decompresses a v0 or v1 wrapper.
func FirstOffset(b Batch) (int64, error) { panic("pending") }

// Builder makes one batch. Use: Reset, Append..., Build.
type Builder struct {
	opt BatchOptions
}

// BatchOptions are the header fields of a batch to build. Start from NewBatchOptions.
type BatchOptions struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Codec         Codec
	Levels        Levels
	TimestampType TimestampType
	AppendTime    int64 // for LogAppendTime
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
	DeleteHorizon int64 // -1 none
}

// NewBatchOptions: no compression, CreateTime, no producer, no leader epoch, base offset 0.
func NewBatchOptions() BatchOptions { panic("pending") }

// NewBuilder starts a batch.
func NewBuilder(opt BatchOptions) *Builder { panic("pending") }

// Reset starts another batch, keeping buffers.
func (b *Builder) Reset(opt BatchOptions) { panic("pending") }

// Append adds a record at the next offset. Key, value and headers are copied.
func (b *Builder) Append(timestamp int64, key, value []byte, headers []Header) { panic("pending") }

// AppendAt adds a record at an offset beyond the last one (compaction).
func (b *Builder) AppendAt(offset, timestamp int64, key, value []byte, headers []Header) {
	panic("pending")
}

// Count is the number of records so far.
func (b *Builder) Count() int { panic("pending") }

// UncompressedBytes is the size the batch would have now without a codec.
func (b *Builder) UncompressedBytes() int { panic("pending") }

// Build appends the finished batch to dst. lastOffset of the batch is that of the last record.
func (b *Builder) Build(dst []byte) []byte { panic("pending") }

// ControlType is the type in a control record's key (D-07).
type ControlType int16

const (
	ControlAbort          ControlType = 0
	ControlCommit         ControlType = 1
	ControlLeaderChange   ControlType = 2
	ControlSnapshotHeader ControlType = 3
	ControlSnapshotFooter ControlType = 4
	ControlKRaftVersion   ControlType = 5
	ControlKRaftVoters    ControlType = 6
)

// ControlKey is the key of a control record.
func ControlKey(t ControlType) []byte { panic("pending") }

// ParseControlKey reads a control record's key; false when it is too short. Unknown types are returned as they are.
func ParseControlKey(key []byte) (ControlType, bool) { panic("pending") }

// AppendEndTxnMarker appends the 78-byte batch of a transaction marker.
func AppendEndTxnMarker(dst []byte, offset int64, leaderEpoch int32, timestamp int64, producerID int64, producerEpoch int16,
	commit bool, coordinatorEpoch int32) []byte {
	panic("pending")
}

// EndTxnMarker reads a transaction marker batch.
func EndTxnMarker(b Batch) (commit bool, coordinatorEpoch int32, err error) { panic("pending") }

// Origin is who appends to a leader's log.
type Origin int8

const (
	FromClient Origin = iota
	FromCoordinator
)

// ProduceConfig is the part of a topic's configuration that decides about produced batches.
type ProduceConfig struct {
	Target                      Codec
	TargetProducer              bool // compression.type=producer: keep the codec; Target is not looked at
	Levels                      Levels
	TimestampType               TimestampType
	TimestampBeforeMaxMs        int64
	TimestampAfterMaxMs         int64
	MaxMessageBytes             int
	MaxDecompressedMessageBytes int
	Compacted                   bool
}

// DefaultProduceConfig are Kafka's topic defaults.
func DefaultProduceConfig() ProduceConfig { panic("pending") }

// Produce is one partition's part of a produce request.
type Produce struct {
	Records    []byte // changed in place by ValidateProduce
	Origin     Origin
	APIVersion int16 // of the produce request; 7 and up may carry zstd
	NowMs      int64
	Topic      string // for messages
	Partition  int32
}

// Validated is a batch ready to be appended once it has an offset.
type Validated struct {
	Batch             Batch // aliases Produce.Records unless Rebuilt
	MaxTimestamp      int64
	MaxTimestampDelta int32 // offset delta of the first record that has it
	LogAppendTime     int64 // -1 unless the topic is LogAppendTime
	Rebuilt           bool  // recompressed
	Stats             ConversionStats
}

// ConversionStats feed Kafka's message conversion metrics.
type ConversionStats struct {
	TemporaryMemoryBytes int64
	RecordsConverted     int32
}

// Assign gives the batch its place in the log; the checksum stays valid.
func (v *Validated) Assign(baseOffset int64, leaderEpoch int32) { panic("pending") }

// ValidateProduce checks and rewrites what a client or coordinator sent, everything that can be done
// without knowing the offset, so that it need not happen under the log's lock. Errors are *Rejected.
func ValidateProduce(p Produce, cfg *ProduceConfig) (Validated, error) { panic("pending") }

// RecordError is one entry of RecordErrors in a produce response (v8 and up).
type RecordError struct {
	BatchIndex int32
	Message    string
}
