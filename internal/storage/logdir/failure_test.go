package logdir

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"samsa/internal/base/kerr"
	"samsa/internal/base/metric"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// J-113, J-114, J-120, J-121, J-123, J-127, J-42: one write error takes one directory down, at once and once.
func TestDirectoryFails(t *testing.T) {
	mem := vfs.NewMem()
	var armed atomic.Bool
	fsys := failing(mem, errDisk, func(op vfs.Op) bool { return armed.Load() && op.Kind == vfs.OpWrite && under("/d2")(op) })
	s := setup{fs: fsys, dirs: formatN(t, mem, 3), out: &logs{}}
	m := s.start(t)
	for i := range 9 {
		mustCreate(t, m, tip(1, int32(i)), "foo")
	}
	events := make(chan DirFailed, 3)
	m.OnOffline(func(e DirFailed) {
		for _, tp := range e.Partitions {
			if _, ok := m.Get(tp); ok {
				t.Errorf("%v is still served", tp)
			}
		}
		events <- e
	})
	var victim *Replica
	for _, r := range m.Replicas() {
		if r.Dir.Path() == "/d2" {
			victim = r
		}
	}
	armed.Store(true)
	_, err := victim.Log.AppendAsLeader(partlog.LeaderAppend{Records: batchOf(1, "x"), Now: 1})
	var dirErr *vfs.DirError
	if !errors.As(err, &dirErr) || dirErr.Dir != "/d2" {
		t.Errorf("append: %v", err)
	}
	if _, ok := m.Get(victim.Partition); ok {
		t.Error("the replica is served after the error was returned")
	}
	e := <-events
	if e.ID != dirID(2) || e.Path != "/d2" || len(e.Partitions) != 3 || e.Last || e.Metadata || !errors.Is(e.Err, errDisk) {
		t.Errorf("event: %+v", e)
	}
	armed.Store(false) // the disk is well again, which nobody may believe (J-113)
	if _, err := victim.Log.AppendAsLeader(partlog.LeaderAppend{Records: batchOf(1, "x"), Now: 1}); err == nil {
		t.Error("the directory came back to life")
	}
	if _, err := m.Create(victim.Partition, "foo", model.DirUnassigned, nil, true); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("the replica was made anew elsewhere: %v", err)
	}
	// J-110: another topic of that name is another topic.
	if r, err := m.Create(tip(2, victim.Partition.Partition), "foo", model.DirUnassigned, nil, true); err == nil && r.Dir.Path() == "/d2" {
		t.Error("a new log in the dead directory")
	}
	// J-111: nothing is deleted in it, and that is no error.
	if err := m.Delete(victim.Partition); err != nil {
		t.Error(err)
	}
	for _, r := range m.Replicas() {
		appendTo(t, r, 1)
	}
	st := m.Dirs()
	if st[1].Err == nil || len(st[1].Logs) != 0 || st[0].Err != nil || st[2].Err != nil {
		t.Errorf("status: %+v", st)
	}
	select {
	case e := <-events:
		t.Errorf("a second event: %+v", e)
	default:
	}
	mustClose(t, m, 11)
	for d, want := range map[string]bool{"/d1": true, "/d2": false, "/d3": true} {
		if got := slices.Contains(list(t, mem, d), CleanShutdownFile); got != want {
			t.Errorf("marker of %s: %v", d, got)
		}
	}
	s.fs = mem
	m = s.start(t)
	if m.PreviousBrokerEpoch() != NoBrokerEpoch {
		t.Error("the epoch is believed although a directory failed (J-43)")
	}
	if _, ok := m.Get(victim.Partition); !ok {
		t.Error("after the repair the replica is not there (J-128)")
	}
}

// J-122, J-123: the metadata directory and the last directory are told apart in the event.
func TestLastAndMetadataDirectory(t *testing.T) {
	mem := vfs.NewMem()
	m := setup{fs: mem, dirs: formatN(t, mem, 2)}.start(t)
	events := make(chan DirFailed, 2)
	m.OnOffline(func(e DirFailed) { events <- e })
	for _, want := range []DirFailed{{Path: "/d2"}, {Path: "/d1", Last: true, Metadata: true}} {
		d, _ := m.DirectoryAt(want.Path)
		d.fs.TakeOffline(vfs.OpSync, want.Path, errDisk)
		if e := <-events; e.Path != want.Path || e.Last != want.Last || e.Metadata != want.Metadata {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
	if _, err := m.Create(tip(1, 0), "foo", model.DirUnassigned, nil, true); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("create: %v", err)
	}
}

// life does a bit of everything; it ignores errors, which is what a failing disk gives.
func life(m *Manager) {
	if m.Load(context.Background(), LoadOptions{}) != nil {
		return
	}
	var requests []CreateRequest
	for i := range int32(6) {
		requests = append(requests, CreateRequest{Partition: tip(1, i), Topic: "foo", Dir: model.DirUnassigned, IsNew: true})
	}
	for _, r := range m.CreateAll(requests) {
		if r.Err == nil {
			r.Replica.Log.AppendAsLeader(partlog.LeaderAppend{Records: batchOf(3, "x"), Now: 1})
			r.Replica.Log.SetHighWatermark(2)
			r.Replica.Log.Flush(1)
			r.Replica.Log.Roll(1)
		}
	}
	m.CheckpointHighWatermarks()
	m.Delete(tip(1, 0), tip(1, 1))
	m.Stray("test", tip(1, 2), tip(1, 3))
	m.CheckpointRecoveryPoints()
	m.CheckpointLogStartOffsets()
	for _, d := range m.dirs {
		if d.Online() {
			m.retain(d)
			m.watch(d)
			for _, name := range mustNames(d) {
				if strings.HasSuffix(name, "-delete") {
					m.removeNow(d, d.path+"/"+name)
				}
			}
		}
	}
}

func mustNames(d *Directory) (names []string) {
	entries, _ := d.fs.ReadDir(d.path)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// J-114, J-117, T-94: every file call of a directory fails once, at whatever it is in the middle of. The other directory
// never notices, nothing panics, the failure is told once, and after the repair everything starts.
func TestEveryCallFails(t *testing.T) {
	var calls atomic.Int64
	{
		mem := vfs.NewMem()
		dirs := formatN(t, mem, 2)
		m, err := setup{dirs: dirs, fs: vfs.Inject(mem, func(op vfs.Op) error {
			if under("/d2")(op) {
				calls.Add(1)
			}
			return nil
		})}.open()
		if err != nil {
			t.Fatal(err)
		}
		life(m)
		m.Close(context.Background(), 1)
	}
	total := int(calls.Load())
	step := max(total/400, 1) // about 400 of them
	for at := 0; at < total; at += step {
		mem := vfs.NewMem()
		dirs := formatN(t, mem, 2)
		var n atomic.Int64
		var hit atomic.Value
		m, err := setup{dirs: dirs, fs: failing(mem, errDisk, func(op vfs.Op) bool {
			if !under("/d2")(op) || op.Kind == vfs.OpClose || n.Add(1)-1 != int64(at) {
				return false
			}
			hit.Store(op.String())
			return true
		})}.open()
		what := fmt.Sprintf("call %d of /d2 (%v)", at, hit.Load())
		if err != nil {
			if !strings.Contains(err.Error(), "/d2") {
				t.Errorf("%s: %v does not name the directory", what, err)
			}
			continue
		}
		var events atomic.Int32
		m.OnOffline(func(e DirFailed) {
			events.Add(1)
			if e.Path != "/d2" {
				t.Errorf("%s: %s failed", what, e.Path)
			}
		})
		life(m)
		what = fmt.Sprintf("call %d of /d2 (%v)", at, hit.Load())
		if d, _ := m.DirectoryAt("/d1"); !d.Online() {
			t.Fatalf("%s: /d1 went offline: %v", what, d.Err())
		}
		m.Close(context.Background(), 1)
		if events.Load() > 1 {
			t.Errorf("%s: told %d times", what, events.Load())
		}
		if !slices.Contains(list(t, mem, "/d1"), CleanShutdownFile) {
			t.Errorf("%s: /d1 was not closed cleanly", what)
		}
		m, err = setup{dirs: dirs, fs: mem}.open()
		if err != nil {
			t.Fatalf("%s: start after the repair: %v", what, err)
		}
		if err := m.Load(context.Background(), LoadOptions{}); err != nil || m.HasOffline() {
			t.Fatalf("%s: load after the repair: %v %+v", what, err, m.Dirs())
		}
		m.Close(context.Background(), 2)
	}
}

// T-20, T-21, J-12: power is lost at a random call, with lost pages and names. Every partition.metadata is whole or
// missing with its log, what Create returned is there, what Delete returned is not served, and the node starts.
func TestCrashAnywhere(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for round := range rounds {
		seed := uint64(round)
		rng := rand.New(rand.NewPCG(seed, 77))
		mem := vfs.NewMem()
		dirs := formatN(t, mem, 2)
		var crashed *vfs.Mem
		created, deleted := map[model.TopicIDPartition]bool{}, map[model.TopicIDPartition]bool{}
		var wasCreated, wasDeleted map[model.TopicIDPartition]bool
		at, n := rng.IntN(700), 0
		var mu sync.Mutex
		fsys := vfs.Inject(mem, func(op vfs.Op) error {
			if op.Kind == vfs.OpRead || op.Kind == vfs.OpStat || op.Kind == vfs.OpSize || op.Kind == vfs.OpOpen {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if n == at {
				crashed = mem.CrashClone(rng)
				wasCreated, wasDeleted = copyOf(created), copyOf(deleted)
			}
			n++
			return nil
		})
		m, err := setup{dirs: dirs, fs: fsys}.open()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Load(context.Background(), LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		for i := range int32(12) {
			if r, err := m.Create(tip(byte(1+i%3), i), fmt.Sprint("t", i%3), model.DirUnassigned, nil, true); err == nil {
				created[r.Partition] = true
				appendTo(t, r, 2)
				r.Log.Flush(1)
			}
			if i > 4 && i%2 == 0 {
				tp := tip(byte(1+(i-4)%3), i-4)
				if err := m.Delete(tp); err != nil {
					t.Fatal(err)
				}
				deleted[tp] = true
			}
			if i%4 == 3 {
				m.CheckpointRecoveryPoints()
				m.CheckpointHighWatermarks()
			}
		}
		m.Close(context.Background(), 1)
		if crashed == nil {
			crashed, wasCreated, wasDeleted = mem.CrashClone(rng), created, deleted
		}
		s := setup{dirs: dirs, fs: crashed, out: &logs{}}
		m, err = s.open()
		if err != nil {
			t.Fatalf("seed %d, call %d: start: %v", seed, at, err)
		}
		if err := m.Load(context.Background(), LoadOptions{}); err != nil || m.HasOffline() {
			t.Fatalf("seed %d, call %d: load: %v\n%s", seed, at, err, s.out)
		}
		for tp := range wasCreated {
			r, ok := m.Get(tp)
			switch {
			case ok && wasDeleted[tp]:
				t.Errorf("seed %d, call %d: %v was deleted and is served", seed, at, tp)
			case !ok && !wasDeleted[tp] && !deleted[tp]:
				t.Errorf("seed %d, call %d: %v was created and is gone\n%s", seed, at, tp, s.out)
			case ok && r.Log.TopicID() != tp.Topic:
				t.Errorf("seed %d, call %d: %v has another id", seed, at, tp)
			}
		}
		m.Close(context.Background(), 2)
	}
}

func copyOf[K comparable](m map[K]bool) map[K]bool {
	out := map[K]bool{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// J-38, D-24: what operators see of the directories and their logs.
func TestMetrics(t *testing.T) {
	mem := vfs.NewMem()
	reg := metric.New(testClock)
	m := setup{fs: mem, dirs: formatN(t, mem, 2), change: func(o *Options) { o.Metrics, o.Live.Cordoned = reg, []string{"/d2"} }}.start(t)
	appendTo(t, mustCreate(t, m, tip(1, 3), "foo"), 4)
	check := func(want float64, object string, labels ...string) {
		t.Helper()
		if got, ok := reg.Value(object, labels...); !ok || got != want {
			t.Errorf("%s %v: %v %v, want %v", object, labels, got, ok, want)
		}
	}
	check(0, "kafka.log:type=LogManager,name=OfflineLogDirectoryCount")
	check(1, "kafka.log:type=LogManager,name=CordonedLogDirectoryCount")
	check(1, "kafka.log:type=LogManager,name=LogDirectoryCordoned", "logDirectory", "/d2")
	check(4, "kafka.log:type=Log,name=LogEndOffset", "topic", "foo", "partition", "3")
	d, _ := m.DirectoryAt("/d2")
	d.fs.TakeOffline(vfs.OpSync, "/d2", errDisk)
	check(1, "kafka.log:type=LogManager,name=OfflineLogDirectoryCount")
	check(1, "kafka.log:type=LogManager,name=LogDirectoryOffline", "logDirectory", "/d2")
	check(0, "kafka.log:type=LogManager,name=LogDirectoryOffline", "logDirectory", "/d1")
}
