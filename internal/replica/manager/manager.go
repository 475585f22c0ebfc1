package manager

import (
	"context"
	"log/slog"

	"samsa/internal/base/model"
	"samsa/internal/meta/image"
)

// Options is what a Manager needs. Defaults are Kafka's; New fills zero values in.
type Options struct {
	NodeID model.NodeID
	Log    *slog.Logger
}

// Manager hosts the replicas of one broker.
type Manager struct{}

// New makes a manager without replicas; the first Publish brings them up.
func New(o Options) *Manager { panic("pending") }

// Publish follows the metadata: it creates, elects, resigns and deletes replicas. Called with every image, in order,
// from one goroutine; delta is what changed since the one before (everything, for the first). One partition's failure
// is logged and never stops the others (J-107).
func (m *Manager) Publish(delta *image.Delta, img *image.Image) { panic("pending") }

// Close fails every waiter, checkpoints high watermarks and ends the manager's goroutines. Logs stay open: they
// belong to logdir.
func (m *Manager) Close() { panic("pending") }

// Append appends each entry to its partition's log, in order, and answers them all together.
//
// done is called exactly once, with one result per entry at the same index; the results are the callee's
// afterwards. With acks 0 or 1, or when nothing has to be waited for, it runs before Append returns.
// A refused entry never fails another. Bytes are written but not synced on success (unless flush.messages says so).
func (m *Manager) Append(req AppendRequest, done func([]AppendResult)) { panic("pending") }

// Fetch reads partitions in order within the limits of D-118 and calls done exactly once: inline if D-119 says
// at once, else when enough has come, something changed, or MaxWait is over.
// The returned function gives up a parked request (its connection closed): done then runs at once, with whatever is
// there; after done it does nothing. It is nil when done has run before Fetch returned.
func (m *Manager) Fetch(req FetchRequest, done func([]FetchResult)) (cancel func()) { panic("pending") }

// ListOffsets answers offset questions, at the same index.
func (m *Manager) ListOffsets(req ListOffsetsRequest) []ListOffsetsResult { panic("pending") }

// DeleteRecords raises log starts and calls done when the lowest log start of the live replicas has reached
// every offset asked for, or Timeout is over.
func (m *Manager) DeleteRecords(req DeleteRecordsRequest, done func([]DeleteRecordsResult)) {
	panic("pending")
}

// OffsetForLeaderEpoch answers where epochs end (D-134).
func (m *Manager) OffsetForLeaderEpoch(reqs []EpochEndRequest) []EpochEndResult { panic("pending") }

// DescribeProducers lists the producers known to one partition, on leader and follower alike.
func (m *Manager) DescribeProducers(tp model.TopicIDPartition) ([]ProducerState, error) {
	panic("pending")
}

// DescribeLogDirs describes every entry of log.dirs. want selects replicas (nil: all).
func (m *Manager) DescribeLogDirs(ctx context.Context, want func(topic string, partition int32) bool) []DirDescription {
	panic("pending")
}
