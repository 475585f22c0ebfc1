package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"samsa/internal/base/config"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/edge/api"
	"samsa/internal/edge/network"
	"samsa/internal/meta/loader"
	"samsa/internal/meta/quorum"
	"samsa/internal/raft/kraft"
	"samsa/internal/raft/node"
	"samsa/internal/wire/peer"
	"samsa/internal/wire/protocol"
)

// metadata is the part of a node that both roles stand on: the metadata log, and on controllers
// the controller with its listener.
type metadata struct {
	node       *Node
	raft       *node.Node
	peers      *peer.Client
	loader     *loader.Loader
	snapshots  *loader.Snapshots
	controller *quorum.Controller // nil without the controller role
	channel    *peer.Controller   // controller registrations
	listener   *network.Server    // nil without the controller role
}

func (n *Node) startMetadata() error {
	cfg := n.options.Config
	m := &metadata{node: n}
	n.metadata = m
	m.peers = peer.New(n.peerOptions("raft"))
	var err error
	if m.raft, err = node.Open(m.raftOptions()); err != nil {
		return err
	}
	if cfg.Controller && len(m.raft.Voters()) == 0 {
		n.log.Warn("no voter of the metadata quorum is known: waiting for one of controller.quorum.bootstrap.servers to say who they are", "dir", cfg.MetadataLogDir,
			"servers", cfg.Quorum.BootstrapServers, "next", "the first controller of a new cluster is formatted with --standalone or --initial-controllers; "+
				"if this one ran before, its __cluster_metadata-0 was lost: restore it from a backup")
	}
	n.api = api.New(n.apiOptions())
	m.loader = loader.New(loader.Options{HighWatermark: m.raft.HighWatermark, Fatal: m.loaderFatal(), Logger: n.log, Now: n.now})
	m.snapshots = loader.NewSnapshots(loader.SnapshotOptions{ // every node writes its own, brokers too (K-68)
		Log: m.raft, MaxBytes: cfg.Quorum.SnapshotMaxBytes, MaxInterval: cfg.Quorum.SnapshotMaxInterval,
		Faulty: func() bool { return m.loader.Stats().LoadErrors.Load() > 0 }, Logger: n.log, Now: n.now,
	})
	m.loader.Add(m.snapshots)
	m.raft.Start()
	if cfg.Controller {
		m.startController()
	}
	m.raftMetrics()
	m.loader.Start()
	m.raft.Register(m.loader)
	return nil
}

// loaderFatal: a controller must not go on with metadata it cannot read; a broker leaves the record out.
func (m *metadata) loaderFatal() func(error) {
	if m.node.options.Config.Controller {
		return m.node.fail
	}
	return nil
}

func (m *metadata) startController() {
	n, cfg := m.node, m.node.options.Config
	m.channel = peer.NewController(n.peerOptions("controller-registration"), n.locateController)
	m.controller = quorum.New(quorum.Options{
		NodeID: cfg.NodeID, ClusterID: n.ClusterID(), Config: cfg, Log: m.raft,
		Voters:         func() []model.NodeID { return m.raft.Voters().IDs() },
		OwnIncarnation: n.incarnation,
		Registration:   m.registration(), Forward: m.forwardRegistration,
		Logger: n.log, Now: n.now, Fatal: n.fail,
	})
	n.api.Quorum = m.controller
	m.controller.Start()
	m.raft.Register(m.controller)
	m.listener = network.New(n.networkOptions(n.api.Controller()))
	n.networkMetrics("controller", m.listener)
	m.controllerMetrics()
	for _, name := range cfg.ControllerListenerNames {
		if ln := n.sockets.take(name); ln != nil {
			m.listener.Start(name, ln)
		}
	}
}

// settle waits until the metadata known to be committed has been applied.
func (m *metadata) settle(ctx context.Context) error {
	hw, known := m.raft.HighWatermark()
	if !known {
		return nil
	}
	return m.loader.WaitApplied(ctx, hw-1)
}

// raftOptions say where the metadata log is. With both roles its directory is one of the log
// directories, whose seam and lock it shares.
func (m *metadata) raftOptions() node.Options {
	n, cfg := m.node, m.node.options.Config
	id, _ := n.ensemble.DirectoryID(cfg.MetadataLogDir)
	o := node.Options{
		Dir: cfg.MetadataLogDir, ClusterID: n.ClusterID(), NodeID: cfg.NodeID, Directory: id,
		Controller: cfg.Controller, StaticVoters: staticVoters(cfg), BootstrapServers: bootstrapServers(cfg),
		Listeners: m.endpoints(), Config: raftConfig(cfg), Transport: &transport{m.peers},
		Log: n.log, Now: n.now, Fatal: n.fail,
	}
	if len(cfg.ControllerListenerNames) > 0 {
		o.DefaultListener = cfg.ControllerListenerNames[0]
	}
	if n.broker != nil {
		if d, ok := n.broker.logs.DirectoryAt(cfg.MetadataLogDir); ok {
			o.FS = d.FS()
			return o
		}
	}
	abs, err := filepath.Abs(cfg.MetadataLogDir)
	if err != nil {
		abs = cfg.MetadataLogDir
	}
	o.FS = vfs.Dir(n.fs, abs, func(e *vfs.DirError) {
		go n.fail(fmt.Errorf("the metadata directory failed: %w", e))
	})
	o.Lock = true
	return o
}

func raftConfig(cfg *config.Node) node.Config {
	q, c := cfg.Quorum, node.DefaultConfig()
	c.ElectionTimeout, c.FetchTimeout, c.ElectionBackoffMax = q.ElectionTimeout, q.FetchTimeout, q.ElectionBackoffMax
	c.RequestTimeout, c.RetryBackoff = q.RequestTimeout, q.RetryBackoff
	c.FetchMaxBytes, c.FetchSnapshotMaxBytes = q.FetchMaxBytes, q.FetchSnapshotBytes
	c.SegmentBytes, c.SegmentAge = int(q.SegmentBytes), time.Duration(q.SegmentMs)*time.Millisecond
	c.MaxRetentionBytes, c.MaxRetention = q.MaxRetentionBytes, time.Duration(q.MaxRetentionMs)*time.Millisecond
	return c
}

func staticVoters(cfg *config.Node) kraft.VoterSet {
	var set kraft.VoterSet
	for _, v := range cfg.Quorum.Voters {
		set = append(set, kraft.Voter{
			ReplicaKey: kraft.ReplicaKey{ID: v.ID},
			Endpoints:  kraft.Endpoints{{Name: cfg.ControllerListenerNames[0], Host: v.Host, Port: uint16(v.Port)}},
		})
	}
	return set
}

func bootstrapServers(cfg *config.Node) []kraft.Endpoint {
	var out []kraft.Endpoint
	for _, s := range cfg.Quorum.BootstrapServers {
		out = append(out, kraft.Endpoint{Name: cfg.ControllerListenerNames[0], Host: s.Host, Port: uint16(s.Port)})
	}
	return out
}

// endpoints are this node's controller listeners as other controllers are told them.
func (m *metadata) endpoints() kraft.Endpoints {
	if !m.node.options.Config.Controller {
		return nil
	}
	var out kraft.Endpoints
	for _, l := range m.node.sockets.advertised(m.node.options.Config.AdvertisedControllerListeners) {
		out = append(out, kraft.Endpoint{Name: l.Name, Host: l.Host, Port: uint16(l.Port)})
	}
	return out
}

// registration is how the active controller is told of this one (K-145).
func (m *metadata) registration() *protocol.ControllerRegistrationRequest {
	n := m.node
	r := protocol.Make[protocol.ControllerRegistrationRequest]()
	r.ControllerId, r.IncarnationId = int32(n.nodeID()), model.RandomUUID()
	for _, l := range n.sockets.advertised(n.options.Config.AdvertisedControllerListeners) {
		r.Listeners = append(r.Listeners, protocol.ControllerRegistrationRequestListener{
			Name: l.Name, Host: l.Host, Port: uint16(l.Port), SecurityProtocol: int16(l.Protocol),
		})
	}
	for _, f := range model.Features() {
		r.Features = append(r.Features, protocol.ControllerRegistrationRequestFeature{
			Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max,
		})
	}
	return &r
}

func (m *metadata) forwardRegistration(ctx context.Context, r *protocol.ControllerRegistrationRequest) (*protocol.ControllerRegistrationResponse, error) {
	resp, err := m.channel.Send(ctx, r)
	if err != nil {
		return nil, err
	}
	return resp.(*protocol.ControllerRegistrationResponse), nil
}

// locateController is the address of the active controller as the raft log knows it.
func (n *Node) locateController() (string, bool) {
	names := n.options.Config.ControllerListenerNames
	if len(names) == 0 || n.metadata == nil || n.metadata.raft == nil {
		return "", false
	}
	_, e, ok := n.metadata.raft.LeaderEndpoint(names[0])
	if !ok {
		return "", false
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), true
}

func (n *Node) peerOptions(purpose string) peer.Options {
	return peer.Options{
		ClientID:       strconv.Itoa(int(n.nodeID())) + "-" + purpose,
		RequestTimeout: n.options.Config.RequestTimeout,
		Log:            n.log,
	}
}

func (n *Node) networkOptions(h network.Handler) network.Options {
	c := n.options.Config.Network
	over := map[string]int{}
	for ip, limit := range c.MaxConnectionsPerIPOver {
		over[ip] = int(limit)
	}
	queued := c.QueuedMaxBytes
	if queued <= 0 {
		queued = n.options.Config.Samsa.RequestMemoryBytes
	}
	return network.Options{
		Handler: h, Log: n.log, Now: n.now, Overlaps: api.Overlaps, Answered: n.api.Answered,
		MaxRequestBytes: int(c.RequestMaxBytes), QueuedBytes: queued, IdleTimeout: c.MaxIdle,
		MaxConnections: int(c.MaxConnections), MaxConnectionsPerIP: int(c.MaxConnectionsPerIP), PerIPOverrides: over,
		ReceiveBuffer: n.socketBuffer("socket.receive.buffer.bytes"), SendBuffer: n.socketBuffer("socket.send.buffer.bytes"),
	}
}

// socketBuffer is the size of a socket's buffer if somebody asked for one. Kafka's default of 100 KiB would
// end the kernel's own sizing (docs/decisions/0020-socket-buffers.md).
func (n *Node) socketBuffer(key string) int {
	if cfg := n.options.Config; cfg.IsSet(key) {
		return int(cfg.Int(key))
	}
	return -1
}

func (m *metadata) stop(ctx context.Context) error {
	var errs []error
	if m.raft != nil {
		errs = append(errs, m.raft.Stop(ctx)) // resigns while the sockets are open
	}
	if m.controller != nil {
		m.controller.Close()
	}
	if m.loader != nil {
		m.loader.Close()
	}
	if m.snapshots != nil {
		m.snapshots.Close()
	}
	if m.listener != nil {
		m.listener.Close()
	}
	if m.channel != nil {
		m.channel.Close()
	}
	if m.peers != nil {
		m.peers.Close()
	}
	return errors.Join(errs...)
}

// transport sends raft's requests.
type transport struct{ peers *peer.Client }

// Send carries a request to a voter or a bootstrap server; done gets the answer on a goroutine of its own.
func (t *transport) Send(to kraft.Peer, request protocol.Request, done func(protocol.Response, error)) {
	go func() {
		done(t.peers.Send(context.Background(), net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))), request))
	}()
}
