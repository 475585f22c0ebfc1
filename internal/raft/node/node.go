package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/raft/kraft"
)

// Node is one running replica of the metadata log.
type Node struct {
	opts  Options
	log   *slog.Logger
	store *store
	lock  io.Closer

	wake    chan struct{} // the loop has something to do
	stopped chan struct{} // closed when the loop ended
	quit    chan struct{} // closed by Stop after the resignation
	started bool

	mu         sync.Mutex
	core       *kraft.Core // stepped under mu; its effects are carried out by the loop without it
	inbox      []func(now time.Time)
	appends    []pendingAppend
	backlog    int   // bytes in appends
	nextOffset int64 // where the next append of this leadership begins
	leader     kraft.LeaderChange
	hw         int64
	waiting    map[uint64]chan reply
	nextToken  uint64
	writing    map[kraft.SnapshotID]bool // snapshots under way
	failure    error
	stopping   bool
	stats      Stats

	dispatch *dispatcher
}

// Stats are counters for metrics (K-190).
type Stats struct {
	Appends       int64         // records appended by this leader
	Fetched       int64         // records fetched by this follower
	Syncs         int64         // fsyncs of the log
	StateWrites   int64         // writes of quorum-state
	Elections     int64         // times this node became a candidate
	CommitLatency time.Duration // of the last commit, append to high watermark
}

// Open locks and loads the metadata log, its snapshots and quorum-state, and prepares the core. Nothing runs and nothing is sent before
// Start. A log that cannot be read is an error that says what to do; Open never starts from nothing when something was there.
func Open(opts Options) (*Node, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Config == (Config{}) {
		opts.Config = DefaultConfig()
	}
	if opts.Directory.IsZero() {
		return nil, errors.New("the metadata log directory has no directory.id")
	}
	if len(opts.Listeners) == 0 && opts.Controller {
		return nil, errors.New("a controller needs a listener named in controller.listener.names")
	}
	n := &Node{opts: opts, log: opts.Log, wake: make(chan struct{}, 1), stopped: make(chan struct{}), quit: make(chan struct{}),
		hw: -1, waiting: map[uint64]chan reply{}, writing: map[kraft.SnapshotID]bool{}}
	n.leader = kraft.LeaderChange{Leader: model.NoNode, Epoch: -1}
	if opts.Lock {
		l, err := opts.FS.Lock(join(opts.Dir, ".lock"))
		if err != nil {
			return nil, fmt.Errorf("the metadata log directory %s is in use by another process: %w", opts.Dir, err)
		}
		n.lock = l
	}
	if err := n.load(); err != nil {
		if n.lock != nil {
			n.lock.Close()
		}
		return nil, err
	}
	n.dispatch = newDispatcher(n)
	return n, nil
}

func (n *Node) load() error {
	s, state, err := openStore(&n.opts, n.log, n.nowMs)
	if err != nil {
		return err
	}
	stored, err := readQuorumState(n.opts.FS, join(s.dir, quorumStateFile))
	if err != nil {
		s.log.Abandon()
		return err
	}
	n.store = s
	n.core = kraft.New(n.coreConfig(), state, stored, n.opts.Now())
	n.log.Info("raft: metadata log loaded", "dir", s.dir, "logStart", state.Start, "logEnd", state.End,
		"snapshots", len(state.Snapshots), "kraftVersion", n.core.KRaftVersion(), "voters", n.core.Voters().IDs())
	return nil
}

func (n *Node) coreConfig() kraft.Config {
	o, c := &n.opts, &n.opts.Config
	cfg := kraft.Config{
		Self: kraft.ReplicaKey{ID: o.NodeID, Directory: o.Directory}, Controller: o.Controller,
		Endpoints: o.Listeners, Versions: kraft.VersionRange{Min: 0, Max: kraft.MaxKRaftVersion}, StaticVoters: o.StaticVoters,
		ElectionTimeout: c.ElectionTimeout, FetchTimeout: c.FetchTimeout, ElectionBackoffMax: c.ElectionBackoffMax,
		RequestTimeout: c.RequestTimeout, RetryBackoff: c.RetryBackoff,
		FetchMaxBytes: c.FetchMaxBytes, FetchSnapshotMaxBytes: c.FetchSnapshotMaxBytes,
		Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
	cfg.Listener = n.listener()
	for i, e := range o.BootstrapServers {
		own := false
		for _, l := range o.Listeners {
			own = own || l.Host == e.Host && l.Port == e.Port
		}
		if !own {
			cfg.Bootstrap = append(cfg.Bootstrap, kraft.Peer{ID: model.NodeID(-2 - i), Host: e.Host, Port: e.Port})
		}
	}
	if len(o.BootstrapServers) == 0 {
		for _, v := range o.StaticVoters {
			if e, ok := v.Endpoints.ByListener(cfg.Listener); ok {
				cfg.Bootstrap = append(cfg.Bootstrap, kraft.Peer{ID: v.ID, Host: e.Host, Port: e.Port})
			}
		}
	}
	return cfg
}

// listener is the default controller listener: this node's first, or for a broker the one its voters are listed with.
func (n *Node) listener() string {
	if len(n.opts.Listeners) > 0 {
		return n.opts.Listeners[0].Name
	}
	return n.opts.DefaultListener
}

// Start runs the node. A single voter is leader when its first control batch is durable (K-17).
func (n *Node) Start() {
	n.started = true
	n.wakeUp()
	go n.loop()
	go n.dispatch.run()
}

// Stop resigns when leader (K-27, K-34), calls BeginShutdown on every listener, and closes the files. ctx bounds the wait for the resignation,
// not the closing.
func (n *Node) Stop(ctx context.Context) error {
	n.mu.Lock()
	first := !n.stopping
	n.stopping = true
	n.mu.Unlock()
	if !n.started {
		if first {
			close(n.stopped)
			return n.close()
		}
		return nil
	}
	if first {
		n.push(func(now time.Time) { n.core.Shutdown(now) })
		ctx, cancel := context.WithTimeout(ctx, n.opts.Config.ShutdownTimeout)
		n.awaitHandover(ctx)
		cancel()
		close(n.quit)
	}
	<-n.stopped
	if !first {
		return nil
	}
	n.dispatch.stop()
	return n.close()
}

func (n *Node) awaitHandover(ctx context.Context) {
	for {
		n.mu.Lock()
		done := n.failure != nil || n.core.ShutdownComplete()
		changed := n.dispatch.changed()
		n.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-n.stopped:
			return
		case <-ctx.Done():
			n.log.Warn("raft: stopping without another leader in sight")
			return
		}
	}
}

func (n *Node) close() error {
	var err error
	if n.failure != nil {
		n.store.log.Abandon()
	} else {
		err = n.store.close()
	}
	if n.lock != nil {
		if lerr := n.lock.Close(); err == nil {
			err = lerr
		}
	}
	return err
}

func (n *Node) nowMs() int64 { return n.opts.Now().UnixMilli() }

// Resign gives leadership of epoch up (controller renounce, K-128); no effect in another epoch.
func (n *Node) Resign(epoch int32) {
	n.push(func(now time.Time) { n.core.Resign(now, epoch) })
}

// LeaderAndEpoch is what this node believes now.
func (n *Node) LeaderAndEpoch() LeaderAndEpoch {
	n.mu.Lock()
	defer n.mu.Unlock()
	return LeaderAndEpoch{n.leader.Leader, n.leader.Epoch}
}

// LeaderEndpoint is the address of the current leader for a listener name; the channel to the controller uses it (K-185).
func (n *Node) LeaderEndpoint(listener string) (model.NodeID, kraft.Endpoint, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	leader := n.leader.Leader
	if leader < 0 {
		return model.NoNode, kraft.Endpoint{}, false
	}
	e, ok := n.core.LeaderEndpoints().ByListener(listener)
	if !ok {
		if v, found := n.core.Voters().Find(leader); found {
			e, ok = v.Endpoints.ByListener(listener)
		}
	}
	return leader, e, ok
}

// HighWatermark is the end of the committed log (exclusive); false while unknown.
func (n *Node) HighWatermark() (int64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hw, n.hw >= 0
}

// EndOffset is the end of the local log (exclusive).
func (n *Node) EndOffset() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.core.LogEnd()
}

// Voters is the voter set in force at the end of the local log.
func (n *Node) Voters() kraft.VoterSet {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.core.Voters()
}

// KRaftVersion is the finalized kraft.version at the end of the local log (K-113).
func (n *Node) KRaftVersion() int16 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.core.KRaftVersion()
}

// State is one consistent view for metrics (K-190).
type State struct {
	Role          kraft.Role
	Observer      bool
	Leader        model.NodeID
	Epoch         int32
	Voted         kraft.ReplicaKey
	HighWatermark int64 // -1 unknown
	LogEnd        int64
	LogEndEpoch   int32
	Voters        int
	Stats         Stats
}

// State returns it.
func (n *Node) State() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.core
	self := kraft.ReplicaKey{ID: n.opts.NodeID, Directory: n.opts.Directory}
	return State{Role: c.Role(), Observer: !c.Voters().IsVoter(self), Leader: c.Leader(), Epoch: c.Epoch(), Voted: c.Voted(),
		HighWatermark: n.hw, LogEnd: c.LogEnd(), LogEndEpoch: c.LastEpoch(), Voters: len(c.Voters()), Stats: n.stats}
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }
