package manager

import (
	"context"

	"samsa/internal/base/model"
)

// LeaderListener hears of leaderships of this broker in one topic, such as __consumer_offsets.
// Calls come in metadata order, one at a time per listener, on the metadata loader's goroutine (or, for a
// failed directory, on the directory failure handler's): hand work to your own goroutine.
type LeaderListener interface {
	// Elected: this broker leads the partition from epoch on. Also called for a new epoch of the same leadership.
	Elected(tp model.TopicIDPartition, epoch model.LeaderEpoch)
	// Resigned: it does not any more: another leads at epoch, or the partition was deleted or its directory
	// failed (epoch -1).
	Resigned(tp model.TopicIDPartition, epoch model.LeaderEpoch)
}

// PartitionListener hears of one partition. Calls must not block; they may come from any goroutine, but high
// watermarks come in rising order.
type PartitionListener interface {
	HighWatermark(tp model.TopicIDPartition, offset int64)
	// Gone: not leader any more, deleted, or its directory failed. Nothing comes afterwards.
	Gone(tp model.TopicIDPartition, err error)
}

// CoordinatorAppend is one write of a coordinator to a partition it leads.
type CoordinatorAppend struct {
	Partition model.TopicIDPartition
	// Epoch is the leadership the coordinator was loaded for; when it is not the current one the write is
	// refused with NOT_LEADER_OR_FOLLOWER. -1 skips the check.
	Epoch model.LeaderEpoch
	// Records is one or more whole v2 batches with offsets from 0; borrowed until AppendCoordinator returns.
	Records []byte
}

// CoordinatorOffsets is where a coordinator's write went.
type CoordinatorOffsets struct {
	Base, Last int64
}

// AppendCoordinator appends locally, without the checks that hold for clients (D-24) but with min.insync.replicas
// (NOT_ENOUGH_REPLICAS before anything is written), and returns at once with the offsets. committed, if not nil,
// runs exactly once when the high watermark has passed Last (nil), or when it never will from this leadership
// (NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION); with a replication factor of one that
// is before AppendCoordinator returns. There is no timeout: the coordinator has its own.
// When an error is returned committed is never called.
func (m *Manager) AppendCoordinator(a CoordinatorAppend, committed func(error)) (CoordinatorOffsets, error) {
	panic("pending")
}

// OnLeader registers l for every partition of topic, by name. Leaderships that exist already are told at
// once, before OnLeader returns.
func (m *Manager) OnLeader(topic string, l LeaderListener) { panic("pending") }

// Watch registers l for one hosted partition until the returned function is called.
func (m *Manager) Watch(tp model.TopicIDPartition, l PartitionListener) (stop func(), err error) {
	panic("pending")
}

// ReadAll hands over every whole batch of a partition this broker leads, from offset from (its log start if lower)
// to the log end at the time of the call, in order: how a coordinator loads. batches is one or more whole v2
// batches, borrowed until fn returns. next is the offset after the last batch read.
// It reads bufBytes (1 MiB if 0) at a time and returns early when ctx is done or fn fails.
func (m *Manager) ReadAll(ctx context.Context, tp model.TopicIDPartition, from int64, bufBytes int, fn func(batches []byte) error) (next int64, err error) {
	panic("pending")
}

// Offsets are the bounds of a hosted partition.
type Offsets struct {
	LogStart, LastStable, HighWatermark, LogEnd int64
	Leader                                      bool
	LeaderEpoch                                 model.LeaderEpoch
}

// Offsets returns the bounds of a hosted partition; the error is what any other request for it would get.
func (m *Manager) Offsets(tp model.TopicIDPartition) (Offsets, error) { panic("pending") }
