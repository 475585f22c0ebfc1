package quorum

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/controller"
	"samsa/internal/meta/image"
	"samsa/internal/raft/node"
	"samsa/internal/wire/protocol"
)

// Log is what the controller needs of the metadata log; *node.Node is one.
type Log interface {
	// AppendAt writes batches that begin at base, or node.ErrMoved.
	AppendAt(epoch int32, base int64, batches [][]node.Record) (lastOffset int64, err error)
	NextOffset(epoch int32) (int64, error)
	Resign(epoch int32)
	// Bootstrap returns the records that format left for the first activation.
	Bootstrap() (records []node.Record, source string, err error)
	KRaftVersion() int16
}

// Options say who the controller is and what it stands on.
type Options struct {
	NodeID    model.NodeID
	ClusterID string
	Config    *config.Node
	Log       Log
	// Voters of the quorum; nil: this node alone.
	Voters func() []model.NodeID
	// OwnIncarnation is the incarnation id of the broker in this process; zero: there is none. See controller.Options.
	OwnIncarnation model.UUID
	// Registration is how this controller is reached; nil: it does not register (K-145).
	Registration *protocol.ControllerRegistrationRequest
	// Forward sends a registration to the active controller when that is another node; nil: nobody is asked.
	Forward func(context.Context, *protocol.ControllerRegistrationRequest) (*protocol.ControllerRegistrationResponse, error)

	Logger *slog.Logger
	Now    func() time.Time // nil means time.Now
	Rand   *rand.Rand       // placement; nil draws a seed
	NewID  func() model.UUID
	// Fatal is called at most once when the node cannot go on: the metadata does not add up (K-128).
	Fatal func(error)
}

// Controller is a standby or the active controller.
type Controller struct {
	opts  Options
	log   *slog.Logger
	image atomic.Pointer[image.Image] // the newest committed image
	stats Stats

	mu       sync.Mutex
	queue    []func() // guarded by mu
	closed   bool     // guarded by mu; nothing is queued any more
	contacts map[model.NodeID]contact
	watch    chan struct{} // guarded by mu; closed and replaced when the image or the role changes
	fatal    bool          // guarded by mu

	wake chan struct{}
	stop chan struct{}
	done sync.WaitGroup

	loopState
}

// contact is a heartbeat noted before the loop gets to it (K-140).
type contact struct {
	epoch int64
	ms    int64
}

// Stats are counters for metrics; read them with Load.
type Stats struct {
	Active               atomic.Bool
	Epoch                atomic.Int32 // of the leadership claimed last
	NewActive            atomic.Int64 // NewActiveControllersCount
	OperationsStarted    atomic.Int64 // EventQueueOperationsStartedCount
	OperationsTimedOut   atomic.Int64 // EventQueueOperationsTimedOutCount
	HeartbeatsTimedOut   atomic.Int64 // TimedOutBrokerHeartbeatCount
	MetadataErrors       atomic.Int64 // MetadataErrorCount
	LastAppliedOffset    atomic.Int64
	LastAppliedTimestamp atomic.Int64
	LastCommittedOffset  atomic.Int64
	UncleanElections     atomic.Int64
	ELRElections         atomic.Int64
}

// New makes a controller. Register it with the node after Start.
func New(o Options) *Controller {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if o.NewID == nil {
		o.NewID = model.RandomUUID
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Controller{
		opts: o, log: o.Logger, contacts: map[model.NodeID]contact{}, watch: make(chan struct{}),
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	empty := image.Empty()
	c.image.Store(empty)
	c.stats.LastAppliedOffset.Store(-1)
	c.stats.LastCommittedOffset.Store(-1)
	c.loopState = loopState{
		decide: controller.New(controller.Options{
			NodeID: o.NodeID, ClusterID: o.ClusterID, Config: o.Config, Rand: o.Rand, NewID: o.NewID, Voters: o.Voters,
			KRaft: kraftVersion{o.Log}, OwnIncarnation: o.OwnIncarnation,
		}),
		standby: image.NewAssembler(empty), committed: empty, leader: model.NoNode,
	}
	return c
}

// kraftVersion reaches the feature that lives in the raft log.
type kraftVersion struct{ log Log }

func (k kraftVersion) KRaftVersion() int16 { return k.log.KRaftVersion() }

func (k kraftVersion) UpgradeKRaftVersion(level int16, validateOnly bool) error {
	if level == k.log.KRaftVersion() {
		return nil
	}
	if u, ok := k.log.(interface {
		UpgradeKRaftVersion(level int16, validateOnly bool) error
	}); ok {
		return u.UpgradeKRaftVersion(level, validateOnly)
	}
	return kerr.InvalidUpdateVersion.With("Invalid update version %d for feature kraft.version. This controller cannot change it while it runs.", level)
}

// Start runs the loop. Call node.Register(c) afterwards.
func (c *Controller) Start() {
	c.done.Go(c.run)
	if c.opts.Registration != nil {
		c.done.Go(c.registrar)
	}
}

// Close answers everything that waits with NOT_CONTROLLER, ends the goroutines and waits for them.
func (c *Controller) Close() {
	c.mu.Lock()
	already := c.closed
	c.closed = true
	c.mu.Unlock()
	if !already {
		close(c.stop)
	}
	c.done.Wait()
}

// Image is the newest committed image.
func (c *Controller) Image() *image.Image { return c.image.Load() }

// Stats are the counters of this controller.
func (c *Controller) Stats() *Stats { return &c.stats }

// Active reports whether this node is the active controller.
func (c *Controller) Active() bool { return c.stats.Active.Load() }

// Changed returns a channel that is closed at the next change of image or role.
func (c *Controller) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch
}

func (c *Controller) notify() {
	c.mu.Lock()
	close(c.watch)
	c.watch = make(chan struct{})
	c.mu.Unlock()
}

// push queues an event for the loop; false after Close.
func (c *Controller) push(event func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.queue = append(c.queue, event)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return true
}

func (c *Controller) fail(err error) {
	c.stats.MetadataErrors.Add(1)
	c.mu.Lock()
	first := !c.fatal
	c.fatal = true
	c.mu.Unlock()
	c.log.Error("controller cannot go on", "err", err)
	if first && c.opts.Fatal != nil {
		c.opts.Fatal(err)
	}
}

func (c *Controller) nowMs() int64 { return c.opts.Now().UnixMilli() }
