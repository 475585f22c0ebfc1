package runtime

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"sync"
	"time"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/metric"
	"samsa/internal/base/model"
	"samsa/internal/coord/group"
	"samsa/internal/meta/image"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/protocol"
)

// OffsetsTopic holds groups and offsets.
const OffsetsTopic = "__consumer_offsets"

// Replicas is what the coordinator needs of the partitions of this broker. *manager.Manager is one.
type Replicas interface {
	OnLeader(topic string, l manager.LeaderListener)
	AppendCoordinator(a manager.CoordinatorAppend, committed func(error)) (manager.CoordinatorOffsets, error)
	ReadAll(ctx context.Context, tp model.TopicIDPartition, from int64, bufBytes int, fn func(batches []byte) error) (next int64, err error)
}

// Options is what Groups stand on.
type Options struct {
	Replicas Replicas
	Config   func() *config.Node // as it is now
	NodeID   model.NodeID
	Log      *slog.Logger     // nil: discarded
	Now      func() time.Time // nil: time.Now
	Metrics  *metric.Registry // nil: not shown
	Random   io.Reader        // of member ids; nil: the operating system's. Used from many goroutines, under a lock
	// Image is the newest image this broker has applied.
	Image func() *image.Image
}

// Groups is the group coordinator of one broker. Safe from any goroutine.
type Groups struct {
	o      Options
	log    *slog.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	loads  sync.WaitGroup

	random sync.Mutex // guards o.Random

	mu     sync.RWMutex
	shards map[int32]*shard // guarded by mu: partitions led here
	closed bool             // guarded by mu
}

// New makes a coordinator that leads nothing until Replicas say so.
func New(o Options) *Groups {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	g := &Groups{o: o, log: o.Log, shards: map[int32]*shard{}}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.show(o.Metrics)
	o.Replicas.OnLeader(OffsetsTopic, (*leadership)(g))
	return g
}

// Name is what the metadata loader calls this publisher.
func (g *Groups) Name() string { return "groups" }

// Publish tells every shard of deleted topics, whose offsets go (D-172, T-83).
func (g *Groups) Publish(delta *image.Delta, img *image.Image) error {
	var gone []group.DeletedTopic
	for _, c := range delta.Topics {
		if c.Old != nil && c.New == nil {
			gone = append(gone, group.DeletedTopic{Name: c.Old.Name, ID: c.ID})
		}
	}
	for _, s := range g.all() {
		if s.isUnchecked() {
			s.post(message{later: true, run: func(now int64, c *group.Core) { s.dropGone(now, c, img) }})
		}
		if len(gone) == 0 {
			continue
		}
		s.post(message{later: true, run: func(now int64, c *group.Core) { c.TopicsDeleted(now, gone) }})
	}
	return nil
}

// Close answers everybody who waits with NOT_COORDINATOR and waits for what runs.
func (g *Groups) Close() {
	g.cancel(kerr.NotCoordinator)
	g.mu.Lock()
	g.closed = true
	shards := g.shards
	g.shards = map[int32]*shard{}
	g.mu.Unlock()
	for _, s := range shards {
		s.unload("closing")
	}
	g.loads.Wait()
	for _, s := range shards {
		s.wait()
	}
}

// PartitionFor is the partition of __consumer_offsets that a group id belongs to, of as many as there are (D-153).
func PartitionFor(groupID string, partitions int32) int32 {
	if partitions <= 0 {
		return 0
	}
	return group.Hash(groupID) % partitions
}

// Partitions is how many partitions __consumer_offsets has, or will have.
func (g *Groups) Partitions() int32 {
	if t, ok := g.o.Image().Topics().ByName(OffsetsTopic); ok {
		return t.Count()
	}
	return g.o.Config().Group.OffsetsTopicPartitions
}

// Join serves JoinGroup. It keeps req, whose bytes are copied before it returns.
func (g *Groups) Join(who group.Caller, req *protocol.JoinGroupRequest, reply func(*protocol.JoinGroupResponse)) {
	fail := func(err error) { reply(group.JoinError(req.MemberId, err)) }
	if err := group.CheckJoin(g.settings(), req); err != nil {
		fail(err)
		return
	}
	for i := range req.Protocols {
		req.Protocols[i].Metadata = bytes.Clone(req.Protocols[i].Metadata)
	}
	g.ask(req.GroupId, fail, func(now int64, c *group.Core) { c.Join(now, who, req, reply) })
}

// Sync serves SyncGroup. It keeps req, whose bytes are copied before it returns.
func (g *Groups) Sync(req *protocol.SyncGroupRequest, reply func(*protocol.SyncGroupResponse)) {
	fail := func(err error) { reply(group.SyncError(err)) }
	if req.GroupId == "" {
		fail(kerr.InvalidGroupId)
		return
	}
	for i := range req.Assignments {
		req.Assignments[i].Assignment = bytes.Clone(req.Assignments[i].Assignment)
	}
	g.ask(req.GroupId, fail, func(now int64, c *group.Core) { c.Sync(now, req, reply) })
}

// Heartbeat serves Heartbeat. While a shard loads members are told that all is well, as Kafka does: they have the whole
// session from its end on.
func (g *Groups) Heartbeat(req *protocol.HeartbeatRequest, reply func(*protocol.HeartbeatResponse)) {
	fail := func(err error) {
		code := kerr.Code(err)
		if code == kerr.CoordinatorLoadInProgress.Code {
			code = 0
		}
		reply(&protocol.HeartbeatResponse{ErrorCode: code})
	}
	if req.GroupId == "" {
		fail(kerr.InvalidGroupId)
		return
	}
	g.ask(req.GroupId, fail, func(now int64, c *group.Core) { c.Heartbeat(now, req, reply) })
}

// Leave serves LeaveGroup of version 3 and later: older ones name their one member in Members as well.
func (g *Groups) Leave(req *protocol.LeaveGroupRequest, reply func(*protocol.LeaveGroupResponse)) {
	fail := func(err error) { reply(&protocol.LeaveGroupResponse{ErrorCode: kerr.Code(err)}) }
	if req.GroupId == "" {
		fail(kerr.InvalidGroupId)
		return
	}
	g.ask(req.GroupId, fail, func(now int64, c *group.Core) { c.Leave(now, req, reply) })
}

// Commit serves OffsetCommit for topics and partitions that exist; each topic has its name and its id.
func (g *Groups) Commit(who group.Caller, req *protocol.OffsetCommitRequest, reply func(*protocol.OffsetCommitResponse)) {
	fail := func(err error) { reply(group.CommitError(req, err)) }
	g.ask(req.GroupId, fail, func(now int64, c *group.Core) { c.Commit(now, who, req, reply) })
}

// Fetch serves one group of an OffsetFetch. Topics, if not null, have names, and ids where the version has them.
func (g *Groups) Fetch(req *protocol.OffsetFetchRequestOffsetFetchRequestGroup, requireStable bool, reply func(*protocol.OffsetFetchResponseOffsetFetchResponseGroup)) {
	fail := func(err error) {
		reply(&protocol.OffsetFetchResponseOffsetFetchResponseGroup{GroupId: req.GroupId, ErrorCode: kerr.Code(err)})
	}
	g.ask(req.GroupId, fail, func(_ int64, c *group.Core) { reply(c.Fetch(req, requireStable)) })
}

// DeleteOffsets serves OffsetDelete for topics that exist.
func (g *Groups) DeleteOffsets(req *protocol.OffsetDeleteRequest, reply func(*protocol.OffsetDeleteResponse)) {
	fail := func(err error) { reply(&protocol.OffsetDeleteResponse{ErrorCode: kerr.Code(err)}) }
	if req.GroupId == "" {
		fail(kerr.InvalidGroupId)
		return
	}
	g.ask(req.GroupId, fail, func(now int64, c *group.Core) { c.DeleteOffsets(now, req, reply) })
}

// settings are the core's part of the configuration.
func (g *Groups) settings() group.Settings {
	n := g.o.Config()
	c := &n.Group
	return group.Settings{
		MinSessionMs:         c.MinSessionTimeout.Milliseconds(),
		MaxSessionMs:         c.MaxSessionTimeout.Milliseconds(),
		InitialDelayMs:       c.InitialRebalanceDelay.Milliseconds(),
		MaxSize:              int(c.MaxSize),
		OffsetMetadataMax:    int(c.OffsetMetadataMaxBytes),
		OffsetsRetentionMs:   c.OffsetsRetention.Milliseconds(),
		RetentionCheckMs:     c.OffsetsRetentionCheck.Milliseconds(),
		CommitTimeoutMs:      c.OffsetsCommitTimeout.Milliseconds(),
		NewMemberJoinTimeout: group.NewMemberJoinTimeoutMs,
	}
}
