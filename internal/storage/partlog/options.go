package partlog

import (
	"log/slog"
	"math"
	"sync/atomic"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
)

// Config is the part of a topic's configuration that a log obeys. A Config is immutable once handed over: replace the
// whole with Log.SetConfig. Names and meanings are Kafka's; milliseconds and bytes.
type Config struct {
	SegmentBytes       int64
	SegmentMs          int64
	SegmentJitterMs    int64
	SegmentIndexBytes  int32
	IndexIntervalBytes int32
	FlushMessages      int64
	FlushMs            int64
	RetentionMs        int64 // negative: no limit
	RetentionBytes     int64 // negative: no limit
	FileDeleteDelayMs  int64 // obeyed by whoever implements Env.Discard
	MaxCompactionLagMs int64
	Compact            bool // cleanup.policy
	Delete             bool // cleanup.policy
}

// DefaultConfig is Kafka's defaults.
func DefaultConfig() *Config {
	return &Config{
		SegmentBytes:       1 << 30,
		SegmentMs:          7 * 24 * 3600 * 1000,
		SegmentIndexBytes:  10 << 20,
		IndexIntervalBytes: 4096,
		FlushMessages:      math.MaxInt64,
		FlushMs:            math.MaxInt64,
		RetentionMs:        7 * 24 * 3600 * 1000,
		RetentionBytes:     -1,
		FileDeleteDelayMs:  60000,
		MaxCompactionLagMs: math.MaxInt64,
		Delete:             true,
	}
}

// rollMs is how long a segment may be written to (D-56).
func (c *Config) rollMs() int64 {
	if c.Compact && c.MaxCompactionLagMs < c.SegmentMs {
		return c.MaxCompactionLagMs
	}
	return c.SegmentMs
}

// Env is what the logs of one directory, or of one node, share. Fields are set before the first Open.
type Env struct {
	Files *Files       // descriptors; required
	Log   *slog.Logger // nil: discarded
	Rand  func() uint64
	// ProducerExpirationMs is producer.id.expiration.ms; 0 means Kafka's default of a day. It may change at any time.
	ProducerExpirationMs atomic.Int64

	// Rolled is told, with no lock held, that l has a new active segment at newBase: everything below is to be
	// flushed in the background with l.FlushTo(newBase). nil: nobody does, until the next Flush.
	Rolled func(l *Log, newBase int64)
	// Discard is handed files of l that were renamed to .deleted, with no lock held, to be removed after
	// file.delete.delay.ms (names are full paths; they go stale if the directory is renamed). nil: they are removed at once.
	Discard func(l *Log, files []string)

	// SyncRolls syncs a segment before the one after it is made, so that a crash can damage the last segment only. For logs
	// whose damage nobody else can repair: the metadata log.
	SyncRolls bool

	Stats Stats
}

// Stats counts what happened over all logs of an Env.
type Stats struct {
	IndexesRebuilt    atomic.Int64 // index files missing or damaged and written again
	SegmentsRecovered atomic.Int64 // segments read whole after an unclean stop
	BytesTruncated    atomic.Int64 // bytes cut by recovery
	SnapshotsDamaged  atomic.Int64 // producer snapshots and windows that were ignored
	EpochFilesRebuilt atomic.Int64
	Flushes           atomic.Int64
}

// Options says which log to open and how it was left.
type Options struct {
	FS        vfs.FS
	Dir       string // the partition's directory, which exists
	Partition model.TopicPartition
	TopicID   model.TopicID
	Env       *Env
	Config    *Config // nil: DefaultConfig

	// LogStartOffset, RecoveryPoint and HighWatermark come from the directory's checkpoints; 0 where not listed.
	LogStartOffset int64
	RecoveryPoint  int64
	HighWatermark  int64
	// Clean says that the last stop was clean: files are trusted, nothing is scanned (D-45, D-69).
	Clean bool
	// New says that the directory was made just now and is empty, which saves looking.
	New bool
	Now int64
}

// LoadInfo tells what Open had to do.
type LoadInfo struct {
	SegmentsRecovered int
	BytesTruncated    int64
	SegmentsDropped   int // behind a cut, or behind a log start above the log end
	IndexesRebuilt    int
	LeftoversRemoved  int // .deleted, .cleaned and stray files
	SwapsFinished     int
}
