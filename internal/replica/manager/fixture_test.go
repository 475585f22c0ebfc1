package manager

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"samsa/internal/base/config"
	"samsa/internal/base/model"
	"samsa/internal/base/purgatory"
	"samsa/internal/base/vfs"
	"samsa/internal/meta/image"
	"samsa/internal/replica/partition"
	"samsa/internal/storage/logdir"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a broker's replicas over memory disks, and the metadata they follow.
type world struct {
	t     testing.TB
	mem   *vfs.Mem
	sick  [4]atomic.Bool // directory n fails every call from now on
	dirs  []string
	logs  *logdir.Manager
	timer *purgatory.Timer
	m     *Manager
	img   *image.Image
	next  int64 // metadata offset

	reports  reports
	inSync   *inSync
	fetchers *fetchers
}

const self model.NodeID = 1

func dirID(n int) model.DirectoryID { return model.DirectoryID{0: 0x20, 15: byte(n)} }

func id(n byte) model.TopicID { return model.TopicID{0: 0x30, 15: n} }

func tp(topic byte, p int32) model.TopicIDPartition {
	return model.TopicIDPartition{Topic: id(topic), Partition: p}
}

// reports notes what the controller is told about directories.
type reports struct {
	mu  sync.Mutex
	all []string
}

func (r *reports) Report(tp model.TopicIDPartition, dir model.DirectoryID, urgent bool, done func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf("%d-%d in %s urgent=%v", tp.Topic[15], tp.Partition, dirName(dir), urgent))
}

func (r *reports) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := strings.Join(r.all, "; ")
	r.all = nil
	return s
}

func dirName(d model.DirectoryID) string {
	if d == model.DirLost {
		return "LOST"
	}
	return fmt.Sprintf("d%d", d[15])
}

// inSync notes proposals.
type inSync struct {
	mu  sync.Mutex
	all []*partition.Proposal
	ans []func(partition.Answer)
}

func (s *inSync) Propose(_ model.TopicIDPartition, p *partition.Proposal, done func(partition.Answer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.ans = append(s.all, p), append(s.ans, done)
}

func (s *inSync) take(t testing.TB) (*partition.Proposal, func(partition.Answer)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		t.Fatal("no proposal")
	}
	p, a := s.all[0], s.ans[0]
	s.all, s.ans = s.all[1:], s.ans[1:]
	return p, a
}

// fetchers notes who follows whom.
type fetchers struct {
	mu  sync.Mutex
	log []string
}

func (f *fetchers) Follow(tp model.TopicIDPartition, topic string, leader model.NodeID, epoch model.LeaderEpoch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf("follow %s-%d from %d at %d", topic, tp.Partition, leader, epoch))
}

func (f *fetchers) Unfollow(tps ...model.TopicIDPartition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, tp := range tps {
		f.log = append(f.log, fmt.Sprintf("unfollow %d-%d", tp.Topic[15], tp.Partition))
	}
}

func (f *fetchers) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := strings.Join(f.log, "; ")
	f.log = nil
	return s
}

// newWorld formats n directories and starts a broker on them without any topic; settings are properties of the node.
func newWorld(t testing.TB, n int, settings ...string) *world {
	w := &world{t: t, mem: vfs.NewMem(), img: image.Empty()}
	for i := range n {
		d := fmt.Sprintf("/d%d", i+1)
		w.dirs = append(w.dirs, d)
		w.put(d+"/meta.properties", fmt.Sprintf("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=%s\n", dirID(i+1)))
	}
	w.begin(settings...)
	w.apply(&protocol.FeatureLevelRecord{Name: "metadata.version", FeatureLevel: 33}, w.broker(1), w.broker(2), w.broker(3))
	return w
}

// begin opens the directories; nothing is published yet.
func (w *world) begin(settings ...string) {
	w.t.Helper()
	values := map[string]string{"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER",
		"listeners": "PLAINTEXT://127.0.0.1:9092", "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
	for i := 0; i+1 < len(settings); i += 2 {
		values[settings[i]] = settings[i+1]
	}
	node, err := config.FromMap(values)
	if err != nil {
		w.t.Fatal(err)
	}
	fs := vfs.Inject(w.mem, func(op vfs.Op) error {
		for i, d := range w.dirs {
			if w.sick[i].Load() && (op.Path == d || strings.HasPrefix(op.Path, d+"/")) {
				return &os.PathError{Op: op.Kind.String(), Path: op.Path, Err: syscall.EIO}
			}
		}
		return nil
	})
	w.logs, err = logdir.Open(logdir.Options{FS: fs, Dirs: w.dirs, NodeID: 1, FlushInterval: 0})
	if err != nil {
		w.t.Fatal(err)
	}
	w.timer = purgatory.NewTimer()
	w.inSync, w.fetchers = &inSync{}, &fetchers{}
	w.m = New(Options{NodeID: self, Logs: w.logs, Timer: w.timer, Config: node, Reporter: &w.reports, InSync: w.inSync, Fetchers: w.fetchers})
	w.t.Cleanup(w.end)
	if err := w.m.Load(context.Background(), w.img); err != nil {
		w.t.Fatal(err)
	}
	if w.img.Offset() >= 0 {
		w.publishWhole()
	}
}

// publishWhole gives the manager its first image.
func (w *world) publishWhole() {
	d := &image.Delta{From: image.Empty(), To: w.img}
	for topic := range w.img.Topics().All() {
		c := image.TopicChange{ID: topic.ID, New: topic}
		for i, p := range topic.Partitions() {
			c.Partitions = append(c.Partitions, image.PartitionChange{Index: i, New: p})
		}
		d.Topics = append(d.Topics, c)
	}
	w.m.Publish(d, w.img)
}

func (w *world) end() {
	if w.m == nil {
		return
	}
	w.m.Close()
	w.logs.Close(context.Background(), 1)
	w.timer.Close()
	w.m = nil
}

// restart stops the broker cleanly and starts it on the same directories; change runs in between.
func (w *world) restart(change func(), settings ...string) {
	w.t.Helper()
	w.end()
	if change != nil {
		change()
	}
	w.begin(settings...)
}

func (w *world) put(path, text string) {
	w.t.Helper()
	dir := path[:strings.LastIndex(path, "/")]
	if err := w.mem.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	f, err := w.mem.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	f.WriteAt([]byte(text), 0)
	f.Sync()
	f.Close()
}

// apply commits records: the next image is published.
func (w *world) apply(records ...image.Record) {
	w.t.Helper()
	img, delta, err := w.img.Apply(records, w.next, 1, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	w.next += int64(len(records))
	w.img = img
	w.m.Publish(delta, img)
}

func (w *world) broker(n int32) *protocol.RegisterBrokerRecord {
	rack := string(rune('a' + n - 1))
	r := &protocol.RegisterBrokerRecord{BrokerId: n, BrokerEpoch: int64(100 + n), IncarnationId: model.UUID{byte(n)}, Rack: &rack}
	if n == int32(self) {
		for i := range w.dirs {
			r.LogDirs = append(r.LogDirs, model.UUID(dirID(i+1)))
		}
	} else {
		r.LogDirs = []model.UUID{{0: 0x40, 15: byte(n)}}
	}
	return r
}

func topic(n byte, name string) *protocol.TopicRecord {
	return &protocol.TopicRecord{Name: name, TopicId: model.UUID(id(n))}
}

// part is a partition led by its first replica, this broker's replica unassigned.
func part(n byte, p int32, replicas ...int32) *protocol.PartitionRecord {
	if len(replicas) == 0 {
		replicas = []int32{1}
	}
	r := &protocol.PartitionRecord{PartitionId: p, TopicId: model.UUID(id(n)), Replicas: replicas, Isr: replicas, Leader: replicas[0]}
	for range replicas {
		r.Directories = append(r.Directories, model.UUID(model.DirUnassigned))
	}
	return r
}

// change is a PartitionChange that leaves everything as it is.
func changed(n byte, p int32) *protocol.PartitionChangeRecord {
	r := protocol.Make[protocol.PartitionChangeRecord]()
	r.TopicId, r.PartitionId = model.UUID(id(n)), p
	return &r
}

func setTopic(name, key, value string) *protocol.ConfigRecord {
	return &protocol.ConfigRecord{ResourceType: image.ResourceTopic, ResourceName: name, Name: key, Value: &value}
}

// batch is a batch of records with the values given.
func batch(values ...string) []byte {
	b := record.NewBuilder(record.NewBatchOptions())
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), []byte("k"), []byte(v), nil)
	}
	return b.Build(nil)
}

// produce appends and returns the result; it fails the test when there is none at once.
func (w *world) produce(p model.TopicIDPartition, name string, acks int16, values ...string) AppendResult {
	w.t.Helper()
	var got []AppendResult
	w.m.Append(AppendRequest{Acks: acks, Timeout: time.Second, APIVersion: 11, Entries: []AppendEntry{{Partition: p, Topic: name, Records: batch(values...)}}},
		func(r []AppendResult) { got = r })
	if len(got) != 1 {
		w.t.Fatalf("%d results at once", len(got))
	}
	return got[0]
}

// consumer is a fetch of one partition without waiting.
func consumer(p model.TopicIDPartition, name string, offset int64) FetchRequest {
	return FetchRequest{ReplicaID: -1, ReplicaEpoch: -1, APIVersion: 17, MinBytes: 1, MaxBytes: 1 << 20,
		Partitions: []FetchPartition{{Partition: p, Topic: name, FetchOffset: offset, LogStartOffset: -1, MaxBytes: 1 << 20, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, ByID: true}}}
}

// fetch runs a request that must be answered at once.
func (w *world) fetch(req FetchRequest) []FetchResult {
	w.t.Helper()
	var got []FetchResult
	if cancel := w.m.Fetch(req, func(r []FetchResult) { got = r }); cancel != nil || got == nil {
		w.t.Fatal("the fetch was parked")
	}
	return got
}

// values reads the values of a result's records and releases it.
func values(t testing.TB, r *FetchResult) []string {
	t.Helper()
	if r.Records == nil {
		return nil
	}
	defer r.Records.Release()
	b := make([]byte, r.Records.Len())
	if _, err := r.Records.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	var out []string
	for bt, err := range record.Split(b) {
		if err != nil {
			t.Fatal(err)
		}
		for rec, err := range record.Records(bt) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(rec.Value))
		}
	}
	return out
}

func recordsOf(in []any) []image.Record {
	var out []image.Record
	for _, r := range in {
		out = append(out, r.(image.Record))
	}
	return out
}

func partitionAnswer(epoch model.LeaderEpoch, at model.PartitionEpoch, isr ...model.NodeID) partition.Answer {
	return partition.Answer{LeaderEpoch: epoch, Epoch: at, ISR: isr}
}

type recordT = image.Record
