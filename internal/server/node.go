package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/metric"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/edge/api"
	"samsa/internal/meta/image"
	"samsa/internal/storage/logdir"
)

// Options say what node to start.
type Options struct {
	Config *config.Node
	FS     vfs.FS // nil: the operating system's
	Log    *slog.Logger
	// LogLevel is that of Log, so that it can be changed while the node runs; nil: it cannot.
	LogLevel *slog.LevelVar
	Now      func() time.Time // nil: time.Now
}

// Node is a running node: a broker, a controller or both.
type Node struct {
	options Options
	fs      vfs.FS
	log     *slog.Logger
	now     func() time.Time
	started time.Time

	incarnation model.UUID                  // of the broker in this process; zero without one
	config      atomic.Pointer[config.Node] // with the dynamic settings of now
	ensemble    *logdir.Ensemble
	metrics     *metric.Registry
	sockets     *sockets

	metadata *metadata
	broker   *broker // nil without the broker role
	api      *api.Server
	http     *httpServer

	ready  atomic.Bool
	failMu sync.Mutex
	failed chan struct{} // closed by fail
	reason error
}

// Start brings a node up and returns when it serves: a broker when it is unfenced, a controller when
// its listener accepts. On an error everything that was started is stopped.
//
//  1. read and check meta.properties of all directories
//  2. lock the directories, bind every listener (nobody is accepted yet), open the HTTP listener
//  3. open the metadata log, start the quorum, the controller, its listener and the loader
//  4. register the broker and wait until it has read its own registration
//  5. with the first image: open the logs, bring the replicas up
//  6. accept clients, ask to be unfenced, wait for it
func Start(ctx context.Context, o Options) (*Node, error) {
	n := &Node{options: o, fs: o.FS, log: o.Log, now: o.Now, failed: make(chan struct{})}
	if n.fs == nil {
		n.fs = vfs.OS()
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.now == nil {
		n.now = time.Now
	}
	n.started = n.now()
	if o.Config.Broker {
		n.incarnation = model.RandomUUID()
	}
	n.config.Store(o.Config)
	n.metrics = metric.New(n.now)
	if err := n.start(ctx); err != nil {
		n.stop(context.WithoutCancel(ctx), false)
		if cause := n.failure(); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	cfg := n.options.Config
	var err error
	n.ensemble, err = logdir.Prepare(logdir.PrepareOptions{
		FS: n.fs, Dirs: logDirs(cfg), MetadataDir: cfg.MetadataLogDir, NodeID: cfg.NodeID, Now: n.now, Log: n.log,
	})
	if err != nil {
		return err
	}
	if cfg.Broker {
		if err := n.openDirs(); err != nil {
			return err
		}
	}
	if n.sockets, err = bind(cfg); err != nil {
		return err
	}
	if err := n.startHTTP(); err != nil {
		return err
	}
	if err := n.startMetadata(); err != nil {
		return err
	}
	if cfg.Broker {
		if err := n.startBroker(ctx); err != nil {
			return err
		}
	}
	n.ready.Store(true)
	n.log.Info("ready", "node", cfg.NodeID, "cluster", n.ensemble.ClusterID(), "broker", cfg.Broker, "controller", cfg.Controller, "after", n.now().Sub(n.started).Round(time.Millisecond))
	return nil
}

// logDirs are the directories a node's roles use: a node without the broker role has no business
// with log.dirs except as the default of the metadata directory.
func logDirs(cfg *config.Node) []string {
	if cfg.Broker {
		return cfg.LogDirs
	}
	return []string{cfg.MetadataLogDir}
}

// Config is the configuration with the dynamic settings of now.
func (n *Node) Config() *config.Node { return n.config.Load() }

// ClusterID is what the directories hold.
func (n *Node) ClusterID() string { return n.ensemble.ClusterID() }

// Image is the newest metadata image this node has applied.
func (n *Node) Image() *image.Image { return n.metadata.loader.Image() }

// Addr is the address a listener is bound to, "" if there is none of that name.
func (n *Node) Addr(listener string) string { return n.sockets.addr(listener) }

// HTTPAddr is where /metrics and its kin are served, "" if nowhere.
func (n *Node) HTTPAddr() string { return n.http.addr() }

// Ready reports whether the node serves.
func (n *Node) Ready() bool { return n.ready.Load() }

// Failed is closed when the node cannot go on; Failure then says why. The owner calls Stop.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Failure is why Failed was closed, nil before.
func (n *Node) Failure() error { return n.failure() }

func (n *Node) failure() error {
	n.failMu.Lock()
	defer n.failMu.Unlock()
	return n.reason
}

// fail records why the node has to stop; the first reason counts.
func (n *Node) fail(err error) {
	n.failMu.Lock()
	defer n.failMu.Unlock()
	if n.reason != nil {
		return
	}
	n.reason = err
	n.ready.Store(false)
	n.log.Error("this node has to stop", "err", err)
	close(n.failed)
}

// Stop takes the node down in an orderly way; ctx bounds the waiting, not the closing. After it
// the directories carry Kafka's clean-shutdown marker, unless the node had failed.
//
//  1. controlled shutdown: the controller moves leaderships away
//  2. stop accepting clients; answer or drop what waits; close coordinators and replicas
//  3. resign as raft leader while the sockets are open; close controller, loader, metadata log
//  4. close the logs with their markers, unlock the directories
func (n *Node) Stop(ctx context.Context) error { return n.stop(ctx, n.failure() == nil) }

func (n *Node) stop(ctx context.Context, clean bool) error {
	n.ready.Store(false)
	var errs []error
	if n.broker != nil {
		n.broker.stop(ctx, clean)
	}
	if n.metadata != nil {
		errs = append(errs, n.metadata.stop(ctx))
	}
	if n.broker != nil {
		errs = append(errs, n.broker.closeLogs(ctx))
	}
	if n.api != nil {
		n.api.Close()
	}
	if n.sockets != nil {
		n.sockets.close()
	}
	n.http.close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping node %d: %w", n.options.Config.NodeID, err)
	}
	n.log.Info("stopped", "node", n.options.Config.NodeID)
	return nil
}

// nodeID is this node's id.
func (n *Node) nodeID() model.NodeID { return n.options.Config.NodeID }

func errorOf(code int16) error {
	if e := kerr.ForCode(code); e != nil {
		return e
	}
	return nil
}

func (n *Node) apiOptions() api.Options {
	m := n.metadata
	return api.Options{
		ClusterID: n.ClusterID(), NodeID: n.nodeID(), Config: n.Config, Log: n.log, Now: n.now, Metrics: n.metrics, LogLevel: n.options.LogLevel,
		Image: n.Image, Settle: m.settle, KRaftVersion: m.raft.KRaftVersion, Raft: m.raft,
	}
}
