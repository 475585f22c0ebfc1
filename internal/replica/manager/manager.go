package manager

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/base/config"
	"samsa/internal/base/metric"
	"samsa/internal/base/model"
	"samsa/internal/base/purgatory"
	"samsa/internal/meta/image"
	"samsa/internal/replica/partition"
	"samsa/internal/storage/logdir"
)

// Reporter tells the controller where a replica's log is (replica/dirassign).
type Reporter interface {
	Report(tp model.TopicIDPartition, dir model.DirectoryID, urgent bool, done func(error))
}

// InSync carries proposals of in-sync sets to the controller (AlterPartition). done may run on any goroutine, once.
type InSync interface {
	Propose(tp model.TopicIDPartition, p *partition.Proposal, done func(partition.Answer))
}

// Fetchers copy from leaders into followers' logs (replica/fetcher).
type Fetchers interface {
	// Follow begins to fetch from leader, or goes on with the new epoch.
	Follow(tp model.TopicIDPartition, topic string, leader model.NodeID, epoch model.LeaderEpoch)
	// Unfollow stops; on return nothing of these partitions is appended any more.
	Unfollow(tps ...model.TopicIDPartition)
}

// Options is what a Manager needs.
type Options struct {
	NodeID model.NodeID
	Logs   *logdir.Manager
	Timer  *purgatory.Timer // shared with others; the manager does not close it
	// Config gives topics their settings; see also Reconfigure.
	Config *config.Node

	Reporter Reporter // nil: nobody is told (tests, a single directory at format time)
	InSync   InSync   // nil: the in-sync set is never changed from here
	Fetchers Fetchers // nil: followers stay as they are

	Now     func() time.Time // nil: time.Now
	Metrics *metric.Registry // nil: not shown
	Log     *slog.Logger     // nil: discarded
}

// Manager hosts the replicas of one broker.
type Manager struct {
	o    Options
	self model.NodeID
	logs *logdir.Manager
	log  *slog.Logger
	now  func() time.Time

	hosted  hosted
	img     atomic.Pointer[image.Image]
	brokers atomic.Pointer[brokers]
	node    atomic.Pointer[config.Node]

	produces *purgatory.Purgatory[model.TopicIDPartition]
	fetches  *purgatory.Purgatory[model.TopicIDPartition]
	deletes  *purgatory.Purgatory[model.TopicIDPartition]

	publishing sync.Mutex // Publish, Reconfigure: one at a time
	published  bool       // guarded by publishing: the first image was applied
	settings   map[string]*settings

	listening listeners
	lag       lagTimer
	stats     stats
	telling   sync.WaitGroup // goroutines of failed directories that wait for publishing
	closed    atomic.Bool
}

// New makes a manager without replicas. Load opens the logs, the first Publish brings the replicas up.
func New(o Options) *Manager {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Manager{o: o, self: o.NodeID, logs: o.Logs, log: o.Log, now: o.Now, settings: map[string]*settings{}}
	m.hosted.init()
	m.img.Store(image.Empty())
	m.brokers.Store(&brokers{image.Empty()})
	m.node.Store(o.Config)
	m.produces = purgatory.New[model.TopicIDPartition](o.Timer)
	m.fetches = purgatory.New[model.TopicIDPartition](o.Timer)
	m.deletes = purgatory.New[model.TopicIDPartition](o.Timer)
	m.lag.m = m
	m.stats.init(m, o.Metrics)
	m.logs.OnOffline(m.dirFailed)
	return m
}

// Load opens the logs of every online directory, with the first image at hand to tell which of them belong here (T-98).
// Call it once, before the first Publish.
func (m *Manager) Load(ctx context.Context, img *image.Image) error {
	return m.logs.Load(ctx, logdir.LoadOptions{Decide: func(f logdir.Found) logdir.Verdict { return m.decide(img, f) }})
}

// Close answers every waiter, as at its deadline, and ends the timer of in-sync sets. Logs stay open: they belong to logdir,
// which also checkpoints their high watermarks. Requests after Close do not wait any more.
func (m *Manager) Close() {
	m.closed.Store(true)
	m.lag.close()
	m.produces.Close()
	m.fetches.Close()
	m.deletes.Close()
	m.telling.Wait()
}

func (m *Manager) nowMs() int64 { return m.now().UnixMilli() }

// brokers is an image as partition.Core looks at it.
type brokers struct{ img *image.Image }

func (b *brokers) Broker(id model.NodeID) (epoch int64, alive, mayJoin bool) {
	r, ok := b.img.Brokers().ByID(id)
	if !ok || r.Fenced {
		return -1, false, false
	}
	return r.Epoch, true, !r.InControlledShutdown
}

func (b *brokers) rack(id model.NodeID) string {
	if r, ok := b.img.Brokers().ByID(id); ok && r.Rack != nil {
		return *r.Rack
	}
	return ""
}
