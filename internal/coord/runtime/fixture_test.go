package runtime

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/metric"
	"samsa/internal/base/model"
	"samsa/internal/coord/group"
	"samsa/internal/meta/image"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

// fakeReplicas is the partitions of __consumer_offsets in memory.
type fakeReplicas struct {
	mu       sync.Mutex
	listener manager.LeaderListener
	logs     map[int32][]byte // whole batches
	ends     map[int32]int64
	epochs   map[int32]model.LeaderEpoch // led here
	refuse   func(batches int) error     // of the next appends
	park     bool                        // commits wait for release
	parked   []func(error)
	reading  chan struct{} // if not nil a load waits until it is closed
	loadErr  error
	appends  int
}

func newFakeReplicas() *fakeReplicas {
	return &fakeReplicas{logs: map[int32][]byte{}, ends: map[int32]int64{}, epochs: map[int32]model.LeaderEpoch{}}
}

func (f *fakeReplicas) OnLeader(topic string, l manager.LeaderListener) {
	if topic != OffsetsTopic {
		panic(topic)
	}
	f.listener = l
}

func (f *fakeReplicas) AppendCoordinator(a manager.CoordinatorAppend, committed func(error)) (manager.CoordinatorOffsets, error) {
	f.mu.Lock()
	f.appends++
	n := 0
	for b, err := range record.Split(a.Records) {
		if err != nil || !b.ValidCRC() || b.ProducerID() != -1 || b.ProducerEpoch() != -1 || b.BaseSequence() != 0 || b.BaseOffset() != 0 { // D-174
			panic(fmt.Sprintf("a batch of the coordinator is not as it should be: %v %v", b, err))
		}
		n++
	}
	none := manager.CoordinatorOffsets{Base: -1, Last: -1}
	epoch, led := f.epochs[a.Partition.Partition]
	switch {
	case !led || epoch != a.Epoch:
		f.mu.Unlock()
		return none, kerr.NotLeaderOrFollower
	case f.refuse != nil:
		if err := f.refuse(n); err != nil {
			f.mu.Unlock()
			return none, err
		}
	}
	own := bytes.Clone(a.Records)
	base := f.ends[a.Partition.Partition]
	for b := range record.Split(own) {
		b.SetBaseOffset(f.ends[a.Partition.Partition])
		f.ends[a.Partition.Partition] = b.NextOffset()
	}
	f.logs[a.Partition.Partition] = append(f.logs[a.Partition.Partition], own...)
	last := f.ends[a.Partition.Partition] - 1
	if f.park {
		f.parked = append(f.parked, committed)
		f.mu.Unlock()
		return manager.CoordinatorOffsets{Base: base, Last: last}, nil
	}
	f.mu.Unlock()
	committed(nil) // inline, as with one replica
	return manager.CoordinatorOffsets{Base: base, Last: last}, nil
}

func (f *fakeReplicas) release(err error) {
	f.mu.Lock()
	parked := f.parked
	f.parked, f.park = nil, false
	f.mu.Unlock()
	for _, c := range parked {
		c(err)
	}
}

func (f *fakeReplicas) ReadAll(ctx context.Context, tp model.TopicIDPartition, from int64, _ int, fn func([]byte) error) (int64, error) {
	f.mu.Lock()
	wait, err, b, end := f.reading, f.loadErr, bytes.Clone(f.logs[tp.Partition]), f.ends[tp.Partition]
	f.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return from, context.Cause(ctx)
		}
	}
	if err != nil {
		return from, err
	}
	for len(b) > 0 {
		batch, rest, err := record.Next(b)
		if err != nil {
			return from, err
		}
		if err := fn(batch); err != nil {
			return from, err
		}
		b = rest
	}
	return end, nil
}

// broker is one coordinator over fake partitions.
type broker struct {
	t    *testing.T
	r    *fakeReplicas
	g    *Groups
	mu   sync.Mutex
	img  *image.Image
	log  bytes.Buffer
	next int64
	reg  *metric.Registry
}

var offsetsID = model.TopicID{1}

func start(t *testing.T, settings ...string) *broker {
	b := &broker{t: t, r: newFakeReplicas(), img: image.Empty()}
	values := map[string]string{"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER",
		"listeners": "PLAINTEXT://127.0.0.1:9092", "controller.quorum.bootstrap.servers": "127.0.0.1:9093", "log.dirs": "/d"}
	for i := 0; i+1 < len(settings); i += 2 {
		values[settings[i]] = settings[i+1]
	}
	cfg, err := config.FromMap(values)
	if err != nil {
		t.Fatal(err)
	}
	records := []image.Record{&protocol.TopicRecord{Name: OffsetsTopic, TopicId: model.UUID(offsetsID)}}
	for p := range int32(4) {
		records = append(records, &protocol.PartitionRecord{TopicId: model.UUID(offsetsID), PartitionId: p, Replicas: []int32{1}, Isr: []int32{1}, Leader: 1, LeaderEpoch: 5})
	}
	b.reg = metric.New(time.Now)
	b.g = New(Options{Replicas: b.r, Metrics: b.reg, Config: func() *config.Node { return cfg }, NodeID: 1, Random: rand.NewChaCha8([32]byte{}),
		Log: slog.New(slog.NewTextHandler(&lockedWriter{b: b}, nil)), Image: b.image})
	b.apply(records...)
	b.apply(&protocol.TopicRecord{Name: "t", TopicId: model.UUID{2}}, &protocol.PartitionRecord{TopicId: model.UUID{2}, Replicas: []int32{1}, Isr: []int32{1}, Leader: 1})
	t.Cleanup(b.g.Close)
	return b
}

type lockedWriter struct{ b *broker }

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	return w.b.log.Write(p)
}

func (b *broker) image() *image.Image {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.img
}

func (b *broker) apply(records ...image.Record) {
	b.t.Helper()
	img, delta, err := b.img.Apply(records, b.next, 1, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	b.next += int64(len(records))
	b.mu.Lock()
	b.img = img
	b.mu.Unlock()
	if err := b.g.Publish(delta, img); err != nil {
		b.t.Fatal(err)
	}
}

func (b *broker) elect(p int32, epoch model.LeaderEpoch) {
	b.r.mu.Lock()
	b.r.epochs[p] = epoch
	b.r.mu.Unlock()
	b.r.listener.Elected(model.TopicIDPartition{Topic: offsetsID, Partition: p}, epoch)
}

func (b *broker) resign(p int32) {
	b.r.mu.Lock()
	delete(b.r.epochs, p)
	b.r.mu.Unlock()
	b.r.listener.Resigned(model.TopicIDPartition{Topic: offsetsID, Partition: p}, 9)
}

// groupOn is a group id that belongs to a partition.
func groupOn(p int32, n int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprintf("g%d-%d", n, i); PartitionFor(id, 4) == p {
			return id
		}
	}
}

// commit asks for one offset and gives where the code will be.
func (b *broker) commit(groupID string, offset int64) chan int16 {
	out := make(chan int16, 2)
	req := &protocol.OffsetCommitRequest{GroupId: groupID, GenerationIdOrMemberEpoch: -1, RetentionTimeMs: -1,
		Topics: []protocol.OffsetCommitRequestOffsetCommitRequestTopic{{Name: "t", TopicId: model.UUID{2},
			Partitions: []protocol.OffsetCommitRequestOffsetCommitRequestPartition{{CommittedOffset: offset, CommittedLeaderEpoch: -1}}}}}
	b.g.Commit(group.Caller{Version: 9}, req, func(r *protocol.OffsetCommitResponse) { out <- r.Topics[0].Partitions[0].ErrorCode })
	return out
}

// fetch is the offset, or the error's code below -1000.
func (b *broker) fetch(groupID string) int64 {
	out := make(chan int64, 1)
	req := &protocol.OffsetFetchRequestOffsetFetchRequestGroup{GroupId: groupID,
		Topics: []protocol.OffsetFetchRequestOffsetFetchRequestTopics{{Name: "t", PartitionIndexes: []int32{0}}}}
	b.g.Fetch(req, false, func(r *protocol.OffsetFetchResponseOffsetFetchResponseGroup) {
		if r.ErrorCode != 0 {
			out <- -1000 - int64(r.ErrorCode)
			return
		}
		out <- r.Topics[0].Partitions[0].CommittedOffset
	})
	return <-out
}

func (b *broker) join(groupID, member string, version int16) chan *protocol.JoinGroupResponse {
	out := make(chan *protocol.JoinGroupResponse, 2)
	req := &protocol.JoinGroupRequest{GroupId: groupID, MemberId: member, ProtocolType: "consumer", SessionTimeoutMs: 10000, RebalanceTimeoutMs: 60000,
		Protocols: []protocol.JoinGroupRequestJoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 0}}}}
	b.g.Join(group.Caller{Version: version, ClientID: "c", Host: "/127.0.0.1"}, req, func(r *protocol.JoinGroupResponse) { out <- r })
	return out
}

func (b *broker) sync(groupID, member string, generation int32, assignment []byte) chan *protocol.SyncGroupResponse {
	out := make(chan *protocol.SyncGroupResponse, 2)
	req := &protocol.SyncGroupRequest{GroupId: groupID, MemberId: member, GenerationId: generation,
		Assignments: []protocol.SyncGroupRequestSyncGroupRequestAssignment{{MemberId: member, Assignment: assignment}}}
	b.g.Sync(req, func(r *protocol.SyncGroupResponse) { out <- r })
	return out
}
