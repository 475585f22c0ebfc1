package partlog

import (
	"io"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/epochs"
	"samsa/internal/storage/producerstate"
)

// Log is one partition's log. Its methods may be called from any goroutine, unless they say otherwise.
//
// Lock order: sync, write, names, mu.
type Log struct {
	fs        vfs.FS
	env       *Env
	partition model.TopicPartition
	topicID   model.TopicID
	dir       atomic.Pointer[string]
	config    atomic.Pointer[Config]
	closed    atomic.Bool

	sync  sync.Mutex   // one flush, truncation, deletion or close at a time
	write sync.Mutex   // one change at a time, across its I/O
	names sync.RWMutex // held shared to open a file by name, exclusively to rename files
	mu    sync.Mutex   // never held across I/O

	// Set under write and mu, so either lock is enough to read.
	segments []*segment // by base, never empty after Open; replaced, not changed
	end      int64      // log end offset
	// producers: its producers as above, its transactions under mu alone.
	producers producerstate.State

	// Guarded by mu.
	logStart      int64
	hw            int64
	recoveryPoint int64
	epochs        epochs.Cache
	savedEpochs   []epochs.Entry // what the file on disk says
	generation    int            // counts truncations: a reader that saw it change looks again
	suspects      bool           // some segment is suspect
	recent        [recentAppends]end

	// Guarded by write.
	snapshots         []int64 // offsets of the .snapshot files, ascending
	unsyncedSnapshots []int64
	dirDirty          bool  // files were created or renamed since the directory was synced
	deletesPending    bool  // segments were deleted since the directory was synced
	parentDirty       bool  // the directory itself is new
	lastFlush         int64 // ms
	failed            error // a sync failed: what is on disk is unknown
}

// recentAppends is how many places of the active segment are remembered, so that readers at the tail need no lookup.
const recentAppends = 4

// end is an offset of the active segment and the position where it begins; pos -1 is unused.
type end struct{ offset, pos int64 }

func (l *Log) log() *slog.Logger {
	return l.env.logger().With("partition", l.partition.String(), "dir", l.Dir())
}

var discardLog = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 100}))

func (e *Env) logger() *slog.Logger {
	if e.Log == nil {
		return discardLog
	}
	return e.Log
}

// defaultProducerExpirationMs is Kafka's producer.id.expiration.ms.
const defaultProducerExpirationMs = 86400000

func (e *Env) producerExpirationMs() int64 {
	if ms := e.ProducerExpirationMs.Load(); ms > 0 {
		return ms
	}
	return defaultProducerExpirationMs
}

// jitter is random below limit (D-56).
func (e *Env) jitter(c *Config) int64 {
	limit := min(c.SegmentJitterMs, c.SegmentMs)
	if limit <= 0 || e.Rand == nil {
		return 0
	}
	return int64(e.Rand() % uint64(limit))
}

// Dir is the partition's directory now; it changes with RenameDir.
func (l *Log) Dir() string { return *l.dir.Load() }

func (l *Log) parentDir() string {
	dir := l.Dir()
	if i := strings.LastIndexByte(dir, '/'); i > 0 {
		return dir[:i]
	}
	return "/"
}

// Partition is the topic's name and the partition's number, as Open was told.
func (l *Log) Partition() model.TopicPartition { return l.partition }

// TopicID is the topic's id, as Open was told.
func (l *Log) TopicID() model.TopicID { return l.topicID }

// Config is the configuration in force.
func (l *Log) Config() *Config { return l.config.Load() }

// SetConfig replaces the configuration, from the next append on.
func (l *Log) SetConfig(c *Config) { l.config.Store(c) }

// usable says why the log may not be written to; under write.
func (l *Log) usable() error {
	if l.closed.Load() {
		return kerr.KafkaStorageError.With("the log %s is closed", l.Dir())
	}
	return l.failed
}

func (l *Log) active() *segment { return l.segments[len(l.segments)-1] }

// floor is the index of the segment with the greatest base <= offset, or -1.
func floor(segments []*segment, offset int64) int {
	return sort.Search(len(segments), func(i int) bool { return segments[i].base > offset }) - 1
}

// setSegments publishes a new list; under write.
func (l *Log) setSegments(list []*segment) {
	l.mu.Lock()
	l.segments = list
	l.mu.Unlock()
}

// --- offsets

func (l *Log) offsetsLocked() Offsets {
	return Offsets{LogStart: l.logStart, LastStable: l.lsoLocked(), HighWatermark: l.hw, LogEnd: l.end}
}

// lsoLocked is D-97; a transaction that began below the log start counts from there.
func (l *Log) lsoLocked() int64 {
	if first := l.producers.FirstUnstable(); first >= 0 {
		return min(l.hw, max(first, l.logStart))
	}
	return l.hw
}

// Offsets are all bounds at one moment.
func (l *Log) Offsets() Offsets {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offsetsLocked()
}

// LogStartOffset is the first offset readers may ask for.
func (l *Log) LogStartOffset() int64 { return l.Offsets().LogStart }

// LogEndOffset is the offset of the next record.
func (l *Log) LogEndOffset() int64 { return l.Offsets().LogEnd }

// HighWatermark is where SetHighWatermark put it.
func (l *Log) HighWatermark() int64 { return l.Offsets().HighWatermark }

// LastStableOffset bounds read_committed readers.
func (l *Log) LastStableOffset() int64 { return l.Offsets().LastStable }

// FirstUnstableOffset is the first offset of an open transaction, or of one whose marker is not below the high
// watermark; -1 none.
func (l *Log) FirstUnstableOffset() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.producers.FirstUnstable(); first >= 0 {
		return max(first, l.logStart)
	}
	return -1
}

// RecoveryPoint is the offset below which everything is synced.
func (l *Log) RecoveryPoint() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recoveryPoint
}

// ActiveSegmentBase is the base offset of the segment being written: a fetch below it need not wait (D-119).
func (l *Log) ActiveSegmentBase() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active().base
}

// Size is the bytes of all segments' .log files.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum int64
	for _, s := range l.segments {
		sum += s.size
	}
	return sum
}

// SetHighWatermark moves the high watermark, clamped to [log start, log end], and returns where it is now and the last stable offset.
// It may go down (a new leader's first fetch).
func (l *Log) SetHighWatermark(hw int64) (highWatermark, lastStable int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hw = min(max(hw, l.logStart), l.end)
	l.producers.HighWatermark(l.hw)
	return l.hw, l.lsoLocked()
}

// IncrementLogStartOffset raises the log start (DeleteRecords, a leader's log start, a snapshot); it reports whether
// it moved. Above the high watermark is kerr.OffsetOutOfRange (D-78); at or below the current is a no-op.
// Segments below it go with DeleteOldSegments.
func (l *Log) IncrementLogStartOffset(offset int64) (bool, error) {
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.usable(); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset > l.hw {
		return false, kerr.OffsetOutOfRange.With("%s: the log start cannot move to %d, above the high watermark %d", l.partition, offset, l.hw)
	}
	if offset <= l.logStart {
		return false, nil
	}
	l.startLocked(offset)
	return true, nil
}

// startLocked moves the log start up; under write and mu.
func (l *Log) startLocked(offset int64) {
	l.logStart = offset
	l.hw = max(l.hw, offset)
	l.recoveryPoint = max(l.recoveryPoint, offset)
	l.producers.HighWatermark(min(offset, l.hw))
	l.epochs.TruncateFromStart(offset)
}

// --- epochs

// AssignEpoch records that epoch begins at start (a new leader passes its log end, D-135). It is in memory on return.
func (l *Log) AssignEpoch(epoch model.LeaderEpoch, start int64) error {
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	l.mu.Lock()
	l.epochs.Assign(epoch, start)
	l.mu.Unlock()
	return nil
}

// LatestEpoch is the newest epoch of the log; -1 when there is none.
func (l *Log) LatestEpoch() model.LeaderEpoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, _ := l.epochs.Latest()
	return e.Epoch
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch (D-134): -1, -1 when unknown.
func (l *Log) EndOffsetForEpoch(epoch model.LeaderEpoch) (model.LeaderEpoch, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.EndOffset(epoch, l.end)
}

// EpochForOffset is the epoch in which offset was written; -1 when unknown.
func (l *Log) EpochForOffset(offset int64) model.LeaderEpoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, _ := l.epochs.EpochFor(offset)
	return e
}

// Epochs is a copy of the epoch cache.
func (l *Log) Epochs() []epochs.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.Entries()
}

// --- producers

// Producers is a copy of the producer state (DescribeProducers).
func (l *Log) Producers() []producerstate.Producer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.Producers()
}

// Producer is the state of one producer.
func (l *Log) Producer(id int64) (producerstate.Producer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.Producer(id)
}

// ProducerCount is the number of producers known.
func (l *Log) ProducerCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.Len()
}

// ExpireProducers forgets producers that were idle longer than Env.ProducerExpirationMs (D-94).
func (l *Log) ExpireProducers(now int64) {
	l.write.Lock()
	defer l.write.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.producers.Expire(now, l.env.producerExpirationMs())
}

// OldestOpenTxnTimestamp is the last timestamp of the producer with the oldest open transaction; -1 none (D-101).
func (l *Log) OldestOpenTxnTimestamp() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.OldestOpenTimestamp()
}
