package producerstate

// WindowSize is how many batches of a producer are recognised as duplicates (D-88).
const WindowSize = 5

// Origin says who appends, and so how much is checked (D-24, D-91).
type Origin uint8

const (
	OriginClient      Origin = iota // epoch and sequence
	OriginCoordinator               // epoch only
	OriginReplication               // nothing: the leader has checked
)

// Batch is what the state needs to know of one record batch.
type Batch struct {
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	LastSequence  int32
	BaseOffset    int64
	LastOffset    int64
	MaxTimestamp  int64
	Transactional bool
	// Control and the fields after it describe an end-of-transaction marker.
	Control          bool
	Abort            bool
	CoordinatorEpoch int32
	// TransactionVersion is the request's: 2 demands a strictly higher epoch (D-100). 0 for replicated markers.
	TransactionVersion int16
}

// BatchMetadata is one remembered batch.
type BatchMetadata struct {
	LastSequence int32
	LastOffset   int64
	OffsetDelta  int32
	Timestamp    int64
}

// BaseOffset is the first offset of the batch.
func (b BatchMetadata) BaseOffset() int64 { return b.LastOffset - int64(b.OffsetDelta) }

// BaseSequence is the first sequence of the batch.
func (b BatchMetadata) BaseSequence() int32 { return decrementSequence(b.LastSequence, b.OffsetDelta) }

// Producer is what is known of one producer.
type Producer struct {
	ID               int64
	Epoch            int16
	CoordinatorEpoch int32 // -1 unknown
	LastTimestamp    int64
	TxnFirstOffset   int64           // first offset of the open transaction, -1 none
	Batches          []BatchMetadata // oldest first, at most WindowSize
}

// CompletedTxn is a transaction that a marker has ended.
type CompletedTxn struct {
	ProducerID  int64
	FirstOffset int64
	LastOffset  int64 // the marker's
	Abort       bool
}
