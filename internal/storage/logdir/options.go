package logdir

import (
	"log/slog"
	"math"
	"time"

	"samsa/internal/base/metric"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// Options is what a Manager needs. Open fills zero values with Kafka's defaults.
type Options struct {
	// FS is the file system below the directories; each gets its own vfs.Dir around it.
	FS vfs.FS
	// Dirs is log.dirs in configured order, as written.
	Dirs []string
	// MetadataDir is metadata.log.dir, or "" for the first of Dirs. Where it is none of Dirs it
	// is read and checked but not locked, loaded or placed into: it is the raft node's.
	MetadataDir string
	NodeID      model.NodeID
	// Ensemble is the result of Prepare; nil lets Open call it.
	Ensemble *Ensemble

	// DefaultConfig is for logs whose topic is not told by Load; nil: partlog.DefaultConfig.
	DefaultConfig *partlog.Config
	// Files is the node's cache of open files; nil: one of 1024 descriptors of its own.
	Files *partlog.Files
	// MetadataDetails adds the topic's name to partition.metadata: partition.metadata.details.enable (T-26).
	MetadataDetails bool

	RetentionCheckInterval time.Duration // log.retention.check.interval.ms
	// FlushInterval is log.flush.scheduler.interval.ms; 0 or less: never, Kafka's default.
	FlushInterval           time.Duration
	RecoveryPointInterval   time.Duration // log.flush.offset.checkpoint.interval.ms
	LogStartInterval        time.Duration // log.flush.start.offset.checkpoint.interval.ms
	HighWatermarkInterval   time.Duration // replica.high.watermark.checkpoint.interval.ms
	InitialTaskDelay        time.Duration // log.initial.task.delay.ms
	ProducerExpirationCheck time.Duration // producer.id.expiration.check.interval.ms
	ProducerExpiration      time.Duration // producer.id.expiration.ms
	DeleteStaleTopicDelay   time.Duration // delete.stale.topic.delay.ms; 0 or less: never (T-109)
	Live                    Live
	Now                     func() time.Time
	Random                  func() model.UUID
	Log                     *slog.Logger
	Metrics                 *metric.Registry // nil: none
}

// Live is the part of the options that may change while the node runs; see Manager.Reconfigure.
type Live struct {
	// RecoveryThreadsPerDir is num.recovery.threads.per.data.dir, for loading and closing.
	RecoveryThreadsPerDir int
	// FileDeleteDelay is the broker's log.segment.delete.delay.ms: how long a deleted replica's
	// directory stays. A topic's own file.delete.delay.ms does not change it (T-92). Negative: Kafka's minute.
	FileDeleteDelay time.Duration
	// Cordoned lists entries of Dirs that get no new logs (KIP-1066).
	Cordoned []string
}

// forever is an interval that never ends.
const forever = time.Duration(math.MaxInt64)

// withDefaults fills in Kafka 4.4's defaults.
func (o Options) withDefaults() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&o.RetentionCheckInterval, 5*time.Minute)
	set(&o.RecoveryPointInterval, time.Minute)
	set(&o.LogStartInterval, time.Minute)
	set(&o.HighWatermarkInterval, 5*time.Second)
	set(&o.InitialTaskDelay, 30*time.Second)
	set(&o.ProducerExpirationCheck, 10*time.Minute)
	set(&o.ProducerExpiration, 24*time.Hour)
	if o.FlushInterval <= 0 {
		o.FlushInterval = forever
	}
	if o.MetadataDir == "" && len(o.Dirs) > 0 {
		o.MetadataDir = o.Dirs[0]
	}
	if o.DefaultConfig == nil {
		o.DefaultConfig = partlog.DefaultConfig()
	}
	if o.Files == nil {
		o.Files = partlog.NewFiles(1024)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = model.RandomUUID
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Live = o.Live.withDefaults()
	return o
}

func (l Live) withDefaults() Live {
	if l.RecoveryThreadsPerDir <= 0 {
		l.RecoveryThreadsPerDir = 2
	}
	if l.FileDeleteDelay < 0 {
		l.FileDeleteDelay = time.Minute
	}
	return l
}
