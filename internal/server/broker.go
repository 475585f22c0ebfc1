package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"samsa/internal/base/config"
	"samsa/internal/base/model"
	"samsa/internal/base/purgatory"
	"samsa/internal/coord/producerids"
	"samsa/internal/coord/runtime"
	"samsa/internal/edge/network"
	"samsa/internal/meta/image"
	"samsa/internal/meta/loader"
	"samsa/internal/replica/dirassign"
	"samsa/internal/replica/fetchsession"
	"samsa/internal/replica/lifecycle"
	"samsa/internal/replica/manager"
	"samsa/internal/storage/logdir"
	"samsa/internal/wire/peer"
	"samsa/internal/wire/protocol"
)

// broker is the broker role of a node.
type broker struct {
	node  *Node
	logs  *logdir.Manager
	timer *purgatory.Timer

	replicas  *manager.Manager
	groups    *runtime.Groups
	ids       *producerids.IDs
	dirs      *dirassign.Assigner
	lifecycle *lifecycle.Lifecycle
	network   *network.Server

	heartbeats, forwarding, directories *peer.Controller // channels of their own (K-185)

	published chan struct{} // closed when the first image has been applied
	unfenced  chan int64    // one slot: the offset of the first image in which this broker is unfenced
	shown     bool          // unfenced was told; owned by the loader's goroutine
}

// openDirs locks the log directories. No log is opened before the first metadata image.
func (n *Node) openDirs() error {
	cfg := n.options.Config
	b := &broker{node: n, published: make(chan struct{}), unfenced: make(chan int64, 1)}
	var err error
	b.logs, err = logdir.Open(logdir.Options{
		FS: n.fs, Dirs: cfg.LogDirs, MetadataDir: cfg.MetadataLogDir, NodeID: cfg.NodeID, Ensemble: n.ensemble,
		MetadataDetails:         cfg.Samsa.PartitionMetadataDetails,
		RetentionCheckInterval:  cfg.Log.RetentionCheckInterval,
		FlushInterval:           flushInterval(cfg.Log.FlushSchedulerIntervalMs),
		RecoveryPointInterval:   cfg.Log.FlushOffsetCheckpoint,
		LogStartInterval:        cfg.Log.FlushStartCheckpoint,
		HighWatermarkInterval:   cfg.Millis("replica.high.watermark.checkpoint.interval.ms"),
		InitialTaskDelay:        cfg.Log.InitialTaskDelay,
		ProducerExpirationCheck: cfg.Log.ProducerIDExpirationCheck,
		ProducerExpiration:      cfg.Log.ProducerIDExpiration,
		DeleteStaleTopicDelay:   time.Duration(cfg.Samsa.DeleteStaleTopicDelayMs) * time.Millisecond,
		Live:                    liveOptions(cfg),
		Now:                     n.now, Log: n.log, Metrics: n.metrics,
	})
	if err != nil {
		return err
	}
	b.logs.OnOffline(b.dirFailed)
	n.broker = b
	return nil
}

func liveOptions(cfg *config.Node) logdir.Live {
	return logdir.Live{
		RecoveryThreadsPerDir: int(cfg.Log.RecoveryThreadsPerDir),
		FileDeleteDelay:       cfg.Millis("log.segment.delete.delay.ms"),
		Cordoned:              cfg.CordonedLogDirs,
	}
}

// flushInterval: Kafka's default is the largest number there is, which means never.
func flushInterval(ms int64) time.Duration {
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	if ms > longest {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// dirFailed: the metadata directory or the last one takes the node down; any other is reported.
func (b *broker) dirFailed(e logdir.DirFailed) {
	switch {
	case e.Metadata:
		b.node.fail(fmt.Errorf("the metadata directory failed: %w", e.Err))
	case e.Last:
		b.node.fail(fmt.Errorf("no log directory is left: %w", e.Err))
	case b.lifecycle != nil:
		b.lifecycle.DirFailed(e.ID)
		b.dirs.DirFailed(e.ID)
	}
}

func (n *Node) startBroker(ctx context.Context) error {
	b, cfg := n.broker, n.options.Config
	b.timer = purgatory.NewTimer()
	b.heartbeats = peer.NewController(n.peerOptions("heartbeat"), n.locateController)
	b.forwarding = peer.NewController(n.peerOptions("forwarding"), n.locateController)
	b.directories = peer.NewController(n.peerOptions("directory-assignments"), n.locateController)
	b.dirs = dirassign.New(dirassign.Options{
		NodeID: cfg.NodeID, Epoch: b.publishedEpoch, Channel: b.directories, Log: n.log,
		Wanted:            func(tp model.TopicIDPartition) bool { return b.replicas.Holds(tp) },
		Stuck:             n.fail,
		DirFailureTimeout: cfg.Log.DirFailureTimeout,
	})
	b.replicas = manager.New(manager.Options{
		NodeID: cfg.NodeID, Logs: b.logs, Timer: b.timer, Config: cfg, Reporter: b.dirs,
		Now: n.now, Metrics: n.metrics, Log: n.log,
	})
	b.lifecycle = lifecycle.Start(b.lifecycleOptions())
	go b.watchLifecycle()
	b.groups = runtime.New(runtime.Options{
		NodeID: cfg.NodeID, Replicas: b.replicas, Config: n.Config, Image: n.Image, Metrics: n.metrics, Log: n.log, Now: n.now,
	})
	b.ids = producerids.New(producerids.Options{Allocate: b.allocateIDs, Now: n.now})
	n.api.Replicas, n.api.Groups, n.api.ProducerIDs = b.replicas, b.groups, b.ids
	n.api.Sessions = fetchsession.New(int(cfg.Network.FetchSessionSlots), rand.Uint32)
	n.api.ControllerChannel = b.forwarding

	if err := b.either(ctx, b.lifecycle.WaitCaughtUp); err != nil {
		return fmt.Errorf("registering with the controller: %w", err)
	}
	n.metadata.loader.Add(loader.Func("broker", b.publish))
	if err := b.either(ctx, b.waitPublished); err != nil {
		return fmt.Errorf("applying the first metadata image: %w", err)
	}
	b.network = network.New(n.networkOptions(n.api.Broker()))
	n.networkMetrics("broker", b.network)
	b.brokerMetrics()
	for _, l := range cfg.Listeners {
		if !isController(cfg, l.Name) {
			b.network.Start(l.Name, n.sockets.take(l.Name))
		}
	}
	b.lifecycle.Ready()
	if err := b.either(ctx, b.lifecycle.WaitUnfenced); err != nil {
		return fmt.Errorf("waiting to be unfenced: %w", err)
	}
	if err := b.either(ctx, b.waitServing); err != nil {
		return fmt.Errorf("applying the metadata in which this broker is unfenced: %w", err)
	}
	return nil
}

// waitServing waits for what the controller decided with the unfencing: its answer can be here before the
// records are, and until they are applied the partitions this broker leads have no leader in its image.
func (b *broker) waitServing(ctx context.Context) error {
	select {
	case offset := <-b.unfenced:
		if err := b.node.metadata.loader.WaitApplied(ctx, offset); err != nil {
			return err
		}
		return b.node.metadata.settle(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// either waits for one step of the start, or for the failure of the node.
func (b *broker) either(ctx context.Context, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-b.node.failed:
			cancel(b.node.failure())
		case <-stop:
		}
	}()
	return wait(ctx)
}

func isController(cfg *config.Node, listener string) bool {
	for _, name := range cfg.ControllerListenerNames {
		if name == listener {
			return true
		}
	}
	return false
}

func (b *broker) lifecycleOptions() lifecycle.Options {
	n, cfg := b.node, b.node.options.Config
	o := lifecycle.Options{
		NodeID: cfg.NodeID, ClusterID: n.ClusterID(), Incarnation: n.incarnation, PreviousEpoch: b.logs.PreviousBrokerEpoch(),
		OnlineDirs:     b.logs.OnlineIDs,
		CordonedDirs:   b.cordoned,
		MetadataOffset: func() int64 { return n.Image().Provenance().Offset },
		Unreported:     b.dirs.Pending,
		Channel:        b.heartbeats,
		Interval:       cfg.BrokerHeartbeatInterval, RegisterTimeout: cfg.InitialRegistration,
		DirFailureTimeout: cfg.Log.DirFailureTimeout, Log: n.log,
	}
	if cfg.Rack != "" {
		o.Rack = &cfg.Rack
	}
	for _, l := range n.sockets.advertised(cfg.AdvertisedListeners) {
		o.Listeners = append(o.Listeners, lifecycle.Listener{Name: l.Name, Host: l.Host, Port: uint16(l.Port), SecurityProtocol: int16(l.Protocol)})
	}
	for _, f := range model.Features() {
		o.Features = append(o.Features, lifecycle.Feature{Name: f.Name, Min: f.Min, Max: f.Max})
	}
	return o
}

// publishedEpoch is this broker's epoch in the metadata it has applied, -1 before any (J-94).
func (b *broker) publishedEpoch() int64 {
	if r, ok := b.node.Image().Brokers().ByID(b.node.nodeID()); ok && r.Incarnation == b.node.incarnation {
		return r.Epoch
	}
	return -1
}

// cordoned are the ids of cordoned directories, once the metadata version can carry them.
func (b *broker) cordoned() (ids []model.DirectoryID, ok bool) {
	if b.node.Image().Features().MetadataVersion() < image.MetadataVersionCordon {
		return nil, false
	}
	ids = []model.DirectoryID{}
	for _, path := range b.node.Config().CordonedLogDirs {
		if d, found := b.logs.DirectoryAt(path); found && !d.ID().IsZero() {
			ids = append(ids, d.ID())
		}
	}
	return ids, true
}

// watchLifecycle ends the node when its life as a broker has to end.
func (b *broker) watchLifecycle() {
	if err, ok := <-b.lifecycle.Fatal(); ok && err != nil {
		b.node.fail(err)
	}
}

// publish follows the metadata: settings first, then the logs and replicas, then what stands on them.
func (b *broker) publish(delta *image.Delta, img *image.Image) error {
	n := b.node
	if delta.From.Provenance().Offset < 0 {
		if err := b.replicas.Load(context.Background(), img); err != nil {
			n.fail(err)
			return err
		}
	}
	b.applyConfig(img)
	if before := delta.From.Features().MetadataVersion(); before > 0 && !before.DirectoryAssignment() && img.Features().MetadataVersion().DirectoryAssignment() {
		b.lifecycle.Reregister() // with directories, which the older level had no place for (J-51)
	}
	b.replicas.Publish(delta, img)
	b.groups.Publish(delta, img)
	if delta.From.Provenance().Offset < 0 {
		close(b.published)
	}
	if r, ok := img.Brokers().ByID(n.nodeID()); !b.shown && ok && r.Incarnation == n.incarnation && !r.Fenced {
		b.shown = true
		b.unfenced <- img.Offset()
	}
	return b.judgeDirectories(delta, img)
}

// judgeDirectories: below 3.7-IV2 the metadata has no place for the directories of a broker. It runs all the
// same, but the failure of one cannot be told (J-46): an error in the log and in metadata-apply-error-count.
func (b *broker) judgeDirectories(delta *image.Delta, img *image.Image) error {
	mv := img.Features().MetadataVersion()
	if !delta.MetadataVersionChanged() || mv.DirectoryAssignment() || len(b.node.options.Config.LogDirs) < 2 {
		return nil
	}
	return fmt.Errorf("Broker configuration does not support the cluster MetadataVersion: Multiple log directories (aka JBOD) are not supported in the current MetadataVersion %s. Need %s or higher", mv, image.MetadataVersionJBOD)
}

func (b *broker) waitPublished(ctx context.Context) error {
	select {
	case <-b.published:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// applyConfig takes over dynamic broker settings.
func (b *broker) applyConfig(img *image.Image) {
	n := b.node
	all := img.AllConfigs()
	own, cluster := all.Of(image.BrokerResource(n.nodeID())), all.Of(image.ClusterResource)
	next, warnings := n.options.Config.WithDynamic(own, cluster)
	for _, w := range warnings {
		n.log.Warn("dynamic broker setting ignored", "why", w)
	}
	n.config.Store(next)
	b.logs.Reconfigure(liveOptions(next))
	b.replicas.Reconfigure(next)
}

// allocateIDs asks the controller for a block of producer ids.
func (b *broker) allocateIDs(ctx context.Context) (producerids.Block, error) {
	req := protocol.Make[protocol.AllocateProducerIdsRequest]()
	req.BrokerId, req.BrokerEpoch = int32(b.node.nodeID()), b.lifecycle.Epoch()
	ctx, cancel := context.WithTimeout(ctx, b.node.options.Config.RequestTimeout)
	defer cancel()
	answer, err := b.forwarding.Send(ctx, &req)
	if err != nil {
		return producerids.Block{}, err
	}
	resp := answer.(*protocol.AllocateProducerIdsResponse)
	if resp.ErrorCode != 0 {
		return producerids.Block{}, errorOf(resp.ErrorCode)
	}
	return producerids.Block{First: resp.ProducerIdStart, Length: resp.ProducerIdLen}, nil
}

// stop takes the broker role down, all but the logs; see Node.Stop.
func (b *broker) stop(ctx context.Context, clean bool) {
	if b.lifecycle != nil {
		if clean && b.node.options.Config.ControlledShutdown {
			if err := b.lifecycle.ControlledShutdown(ctx); err != nil {
				b.node.log.Warn("the controlled shutdown did not complete", "err", err)
			}
		}
	}
	if b.network != nil {
		b.network.StopAccepting()
	}
	if b.groups != nil {
		b.groups.Close()
	}
	if b.ids != nil {
		b.ids.Close()
	}
	if b.replicas != nil {
		b.replicas.Close()
	}
	if b.network != nil {
		b.network.Close()
	}
	if b.dirs != nil {
		b.dirs.Close()
	}
	if b.lifecycle != nil {
		b.lifecycle.Close()
	}
	for _, ch := range []*peer.Controller{b.heartbeats, b.forwarding, b.directories} {
		if ch != nil {
			ch.Close()
		}
	}
	if b.timer != nil {
		b.timer.Close()
	}
}

// closeLogs flushes and closes the logs and unlocks the directories. It comes after the metadata
// log is closed, which may be in one of them.
func (b *broker) closeLogs(ctx context.Context) error {
	epoch := logdir.NoBrokerEpoch
	if b.lifecycle != nil {
		epoch = b.lifecycle.Epoch()
	}
	return b.logs.Close(ctx, epoch)
}
