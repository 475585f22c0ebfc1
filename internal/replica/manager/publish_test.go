package manager

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// ls lists a directory's replicas by name; random suffixes are cut.
func (w *world) ls(dir string) string {
	w.t.Helper()
	entries, err := w.mem.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() {
			continue
		}
		if a, b, c := strings.Cut(name, "."); c {
			if i := strings.LastIndex(b, "-"); i > 0 {
				name = a + b[i:]
			}
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func assigned(r *protocol.PartitionRecord, dir model.DirectoryID) *protocol.PartitionRecord {
	r.Directories[0] = model.UUID(dir)
	return r
}

// D-191, D-192, T-89, J-108: created in the least loaded directories and reported, deleted by a rename, created again at once.
func TestCreateAndDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.apply(topic(1, "a"), part(1, 0), part(1, 1), part(1, 2))
		if w.ls("/d1") != "a-0 a-2" || w.ls("/d2") != "a-1" {
			t.Errorf("%s | %s", w.ls("/d1"), w.ls("/d2"))
		}
		if got := w.reports.take(); got != "1-0 in d1 urgent=false; 1-1 in d2 urgent=false; 1-2 in d1 urgent=false" {
			t.Error(got)
		}
		w.produce(tp(1, 0), "a", 1, "old")
		w.apply(&protocol.RemoveTopicRecord{TopicId: model.UUID(id(1))}, topic(2, "a"), part(2, 0))
		if got := w.ls("/d1") + " " + w.ls("/d2"); strings.Count(got, "-delete") != 3 || !strings.Contains(got, "a-0 ") && !strings.HasSuffix(got, "a-0") {
			t.Error(got)
		}
		if o, err := w.m.Offsets(tp(2, 0)); err != nil || o.LogEnd != 0 {
			t.Error(o, err) // T-69: nothing of the old incarnation
		}
		if r := w.fetch(consumer(tp(1, 0), "a", 0))[0]; !errors.Is(r.Err, kerr.InconsistentTopicId) {
			t.Errorf("%+v", r)
		}
		if w.m.hosted.count() != 1 {
			t.Error(w.m.hosted.count())
		}
		if !w.m.Holds(tp(2, 0)) || w.m.Holds(tp(1, 0)) {
			t.Error("Holds")
		}
	})
}

// D-151, T-106: reassigned away while up: the directory is renamed, requests get 6; J-97: reassigned here: created and reported.
func TestReassigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.apply(topic(1, "a"), part(1, 0, 1, 2), part(1, 1, 2))
		w.reports.take()
		c := changed(1, 0)
		c.Replicas, c.Isr, c.Leader, c.Directories = []int32{2}, []int32{2}, 2, []model.UUID{{0: 0x40, 15: 2}}
		d := changed(1, 1)
		d.Replicas, d.Directories = []int32{2, 1}, []model.UUID{{0: 0x40, 15: 2}, model.UUID(model.DirUnassigned)}
		w.apply(c, d)
		if got := w.ls("/d1") + " " + w.ls("/d2"); !strings.Contains(got, "a-0-delete") || !strings.Contains(got, "a-1") {
			t.Error(got)
		}
		if r := w.fetch(consumer(tp(1, 0), "a", 0))[0]; !errors.Is(r.Err, kerr.NotLeaderOrFollower) {
			t.Errorf("%+v", r)
		}
		if got := w.reports.take(); !strings.HasPrefix(got, "1-1 in d") {
			t.Error(got)
		}
		if got := w.fetchers.take(); !strings.Contains(got, "unfollow 1-0") || !strings.Contains(got, "follow a-1 from 2 at 0") {
			t.Error(got)
		}
	})
}

// D-221, J-96, J-128: everything is there after a restart, in its directories; the epoch of a new leadership begins at the end.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.apply(topic(1, "a"), assigned(part(1, 0), dirID(1)), assigned(part(1, 1), dirID(2)))
		w.produce(tp(1, 1), "a", 1, "x", "y")
		w.reports.take()
		w.restart(nil)
		if got := w.reports.take(); got != "" {
			t.Error("reported although nothing moved:", got)
		}
		if r := w.fetch(consumer(tp(1, 1), "a", 0))[0]; r.HighWatermark != 2 || len(values(t, &r)) != 2 {
			t.Errorf("%+v", r)
		}
		c := changed(1, 1)
		c.Leader = 1
		w.apply(c)
		w.produce(tp(1, 1), "a", 1, "z")
		got := w.m.OffsetForLeaderEpoch([]EpochEndRequest{{Partition: tp(1, 1), CurrentLeaderEpoch: -1, LeaderEpoch: 0}, {Partition: tp(1, 1), CurrentLeaderEpoch: -1, LeaderEpoch: 1}})
		if (got[0] != EpochEndResult{nil, 0, 2}) || (got[1] != EpochEndResult{nil, 1, 3}) {
			t.Errorf("%+v", got)
		}
	})
}

// T-98, T-101, T-106, T-28: what belongs to nobody at a start is set aside as stray, and nothing else.
func TestStrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "gone"), part(1, 0), topic(2, "moved"), part(2, 0), topic(3, "stays"), part(3, 0), part(3, 1), topic(4, "again"), part(4, 0))
		w.produce(tp(3, 0), "stays", 1, "v")
		w.restart(func() {
			c := changed(2, 0)
			c.Replicas, c.Isr, c.Leader, c.Directories = []int32{2}, []int32{2}, 2, []model.UUID{{0: 0x40, 15: 2}}
			img, _, err := w.img.Apply([]recordT{&protocol.RemoveTopicRecord{TopicId: model.UUID(id(1))}, c,
				&protocol.RemoveTopicRecord{TopicId: model.UUID(id(4))}, topic(5, "again"), part(5, 0)}, w.next, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			w.img, w.next = img, w.next+5
		})
		if got := w.ls("/d1"); got != "again-0 again-0-stray gone-0-stray moved-0-stray stays-0 stays-1" && got != "again-0-stray again-0 gone-0-stray moved-0-stray stays-0 stays-1" {
			t.Error(got)
		}
		if o, err := w.m.Offsets(tp(3, 0)); err != nil || o.LogEnd != 1 {
			t.Error(o, err)
		}
		if o, err := w.m.Offsets(tp(5, 0)); err != nil || o.LogEnd != 0 { // T-102
			t.Error(o, err)
		}
	})
}

// J-105 through a whole broker: rows with a dead directory (P2b, P8, P9, P13), moved by hand (P12), directory removed (P16).
func TestPlacementRows(t *testing.T) {
	t.Run("dead directory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 3)
			w.apply(topic(1, "a"), assigned(part(1, 0), dirID(1)), assigned(part(1, 1), dirID(2)), part(1, 2), part(1, 3))
			w.reports.take()
			w.restart(func() {
				w.put("/d2/meta.properties", "version=1\nnonsense\n")
				w.mem.RemoveAll("/d1/a-0")
			})
			if got := w.reports.take(); !strings.Contains(got, "1-0 in LOST urgent=true") { // P9: it may be on the dead one
				t.Error(got)
			}
			if _, err := w.m.Offsets(tp(1, 0)); !errors.Is(err, kerr.KafkaStorageError) {
				t.Error(err)
			}
			if _, err := w.m.Offsets(tp(1, 1)); !errors.Is(err, kerr.KafkaStorageError) { // on the dead one
				t.Error(err)
			}
			// J-107: one that cannot be placed stops nobody; P8: a new one is made.
			w.apply(topic(2, "b"), assigned(part(2, 0), dirID(3)), part(2, 1))
			if r := w.produce(tp(2, 0), "b", 1, "v"); r.Err != nil {
				t.Error(r.Err)
			}
			if r := w.produce(tp(2, 1), "b", 1, "v"); r.Err != nil {
				t.Error(r.Err)
			}
			// J-105, T-105: later changes of the lost one make nothing.
			c := changed(1, 0)
			c.Leader = 1
			w.apply(c)
			if _, err := w.m.Offsets(tp(1, 0)); !errors.Is(err, kerr.KafkaStorageError) {
				t.Error(err)
			}
		})
	})
	t.Run("moved by hand", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			w.apply(topic(1, "a"), assigned(part(1, 0), dirID(1)))
			w.produce(tp(1, 0), "a", 1, "v")
			w.reports.take()
			w.restart(func() {
				if err := w.mem.Rename("/d1/a-0", "/d2/a-0"); err != nil {
					t.Fatal(err)
				}
			})
			if got := w.reports.take(); got != "1-0 in d2 urgent=false" {
				t.Error(got)
			}
			if o, err := w.m.Offsets(tp(1, 0)); err != nil || o.LogEnd != 1 {
				t.Error(o, err)
			}
		})
	})
	t.Run("directory removed from config", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			w.apply(topic(1, "a"), assigned(part(1, 0), dirID(2)))
			w.reports.take()
			w.restart(func() { w.dirs = w.dirs[:1] })
			if got := w.reports.take(); got != "1-0 in d1 urgent=false" {
				t.Error(got)
			}
			if _, err := w.m.Offsets(tp(1, 0)); err != nil {
				t.Error(err)
			}
		})
	})
}

// J-95: below metadata.version 17 nothing is reported; J-52: everything is, in the moment it is reached.
func TestNoReportsBelowJBOD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.apply(&protocol.FeatureLevelRecord{Name: "metadata.version", FeatureLevel: 14}, topic(1, "a"), part(1, 0))
		if got := w.reports.take(); got != "" {
			t.Error(got)
		}
		w.apply(&protocol.FeatureLevelRecord{Name: "metadata.version", FeatureLevel: 33})
		if got := w.reports.take(); got != "1-0 in d1 urgent=false" {
			t.Error(got)
		}
	})
}

// J-113, J-120, J-124, J-125, J-127, D-23, D-129: one directory's failure is its partitions' problem, at once.
func TestDirectoryFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.apply(topic(1, "a"), assigned(part(1, 0, 1, 2), dirID(1)), assigned(part(1, 1), dirID(2)), topic(2, "__consumer_offsets"), assigned(part(2, 0), dirID(1)))
		n := &notes{}
		w.m.OnLeader("__consumer_offsets", n)
		if _, err := w.m.Watch(tp(2, 0), n); err != nil {
			t.Fatal(err)
		}
		n.take()
		// Waiters on the directory that will fail.
		var acked []AppendResult
		w.m.Append(AppendRequest{Acks: -1, Timeout: time.Hour, APIVersion: 11, Entries: []AppendEntry{{Partition: tp(1, 0), Topic: "a", Records: batch("v")}}}, func(r []AppendResult) { acked = r })
		req := consumer(tp(1, 0), "a", 0)
		req.MaxWait = time.Hour
		req.Partitions = append(req.Partitions, consumer(tp(1, 1), "a", 0).Partitions...)
		p := w.park(req)
		if acked != nil || p.got != nil {
			t.Fatal("nothing waits")
		}
		w.sick[0].Store(true)
		r := w.produce(tp(1, 0), "a", 1, "v")
		if !errors.Is(r.Err, kerr.KafkaStorageError) || r.BaseOffset != -1 {
			t.Errorf("%+v", r)
		}
		synctest.Wait()
		if acked == nil || !errors.Is(acked[0].Err, kerr.KafkaStorageError) {
			t.Errorf("the waiting produce: %+v", acked)
		}
		if p.got == nil || !errors.Is(p.got[0].Err, kerr.KafkaStorageError) || p.got[1].Err != nil {
			t.Errorf("the waiting fetch: %+v", p.got)
		}
		if got := n.take(); got != "[gone KAFKA_STORAGE_ERROR resigned 0 at -1]" { // J-126
			t.Error(got)
		}
		if got := w.fetchers.take(); !strings.Contains(got, "unfollow 1-0") {
			t.Error(got)
		}
		// Every request for it gets 56; the other directory goes on.
		if r := w.fetch(consumer(tp(1, 0), "a", 0))[0]; !errors.Is(r.Err, kerr.KafkaStorageError) {
			t.Errorf("%+v", r)
		}
		old := consumer(tp(1, 0), "a", 0)
		old.APIVersion = 5
		if r := w.fetch(old)[0]; !errors.Is(r.Err, kerr.NotLeaderOrFollower) {
			t.Errorf("%+v", r)
		}
		if r := w.m.ListOffsets(ListOffsetsRequest{ReplicaID: -1, APIVersion: 7, Partitions: []ListOffsetsPartition{{Partition: tp(1, 0), CurrentLeaderEpoch: -1, Timestamp: -1}}})[0]; !errors.Is(r.Err, kerr.KafkaStorageError) {
			t.Errorf("%+v", r)
		}
		if r := w.m.OffsetForLeaderEpoch([]EpochEndRequest{{Partition: tp(1, 0), CurrentLeaderEpoch: -1}})[0]; !errors.Is(r.Err, kerr.KafkaStorageError) {
			t.Errorf("%+v", r)
		}
		w.m.DeleteRecords(DeleteRecordsRequest{Partitions: []DeleteRecordsPartition{{tp(1, 0), "a", 0}}}, func(r []DeleteRecordsResult) {
			if !errors.Is(r[0].Err, kerr.KafkaStorageError) {
				t.Errorf("%+v", r)
			}
		})
		if _, err := w.m.DescribeProducers(tp(1, 0)); !errors.Is(err, kerr.KafkaStorageError) {
			t.Error(err)
		}
		if _, err := w.m.AppendCoordinator(CoordinatorAppend{Partition: tp(2, 0), Epoch: 0, Records: batch("v")}, nil); !errors.Is(err, kerr.KafkaStorageError) {
			t.Error(err)
		}
		if r := w.produce(tp(1, 1), "a", -1, "v"); r.Err != nil {
			t.Error(r.Err)
		}
		// J-158, D-195.
		dirs := w.m.DescribeLogDirs(t.Context(), nil)
		if len(dirs) != 2 || !errors.Is(dirs[0].Err, kerr.KafkaStorageError) || dirs[0].TotalBytes != -1 || len(dirs[0].Replicas) != 0 ||
			dirs[1].Err != nil || len(dirs[1].Replicas) != 1 || dirs[1].Replicas[0].Size == 0 || dirs[1].Replicas[0].OffsetLag != 0 {
			t.Errorf("%+v", dirs)
		}
		if got := w.m.DescribeLogDirs(t.Context(), func(string, int32) bool { return false }); len(got) != 2 || len(got[1].Replicas) != 0 { // J-157
			t.Errorf("%+v", got)
		}
		// J-110, J-121: whatever the metadata says, no empty copy elsewhere.
		for range 3 {
			c := changed(1, 0)
			c.Leader = 1
			w.apply(c, setTopic("a", "retention.ms", fmt.Sprint(w.next*1000)))
		}
		if got := w.ls("/d2"); got != "a-1" {
			t.Error(got)
		}
		// T-104: deleted and created again, it lives in the other directory.
		w.apply(&protocol.RemoveTopicRecord{TopicId: model.UUID(id(1))}, topic(3, "a"), part(3, 0))
		if r := w.produce(tp(3, 0), "a", 1, "v"); r.Err != nil {
			t.Error(r.Err)
		}
		w.sick[0].Store(false) // so that the end can tidy up; it stays offline
	})
}

// J-108: the emptiest directory fails while logs are made: they go to the next one.
func TestCreateElsewhereWhenDirectoryFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.sick[0].Store(true)
		w.apply(topic(1, "a"), part(1, 0), part(1, 1), assigned(part(1, 2), dirID(1)))
		for i := range int32(2) {
			if r := w.produce(tp(1, i), "a", 1, "v"); r.Err != nil {
				t.Error(r.Err)
			}
		}
		if r := w.produce(tp(1, 2), "a", 1, "v"); !errors.Is(r.Err, kerr.KafkaStorageError) { // a fixed target is not replaced
			t.Errorf("%+v", r)
		}
		if got := w.reports.take(); got != "1-0 in d2 urgent=false; 1-1 in d2 urgent=false" {
			t.Error(got)
		}
		w.sick[0].Store(false)
	})
}

// D-193: a topic's settings change under its living log.
func TestSettingsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0))
		w.apply(setTopic("a", "max.message.bytes", "100"), setTopic("a", "retention.ms", "5"))
		if r := w.produce(tp(1, 0), "a", 1, strings.Repeat("v", 200)); !errors.Is(r.Err, kerr.MessageTooLarge) || r.LogStartOffset != -1 {
			t.Errorf("%+v", r)
		}
		l, _ := w.logs.Get(tp(1, 0))
		if l.Log.Config().RetentionMs != 5 {
			t.Errorf("%+v", l.Log.Config())
		}
		c := setTopic("a", "max.message.bytes", "")
		c.Value = nil
		w.apply(c)
		if r := w.produce(tp(1, 0), "a", 1, strings.Repeat("v", 200)); r.Err != nil {
			t.Error(r.Err)
		}
	})
}

// Thousands of partitions in one change.
func TestManyPartitions(t *testing.T) {
	w := newWorld(t, 2)
	const n = 3000
	records := []recordT{topic(1, "a")}
	for i := range int32(n) {
		records = append(records, part(1, i))
	}
	w.apply(records...)
	if w.m.hosted.count() != n {
		t.Fatal(w.m.hosted.count())
	}
	for i := range int32(n) {
		if r := w.produce(tp(1, i), "a", 1, "v"); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	w.apply(&protocol.RemoveTopicRecord{TopicId: model.UUID(id(1))})
	if w.m.hosted.count() != 0 {
		t.Fatal(w.m.hosted.count())
	}
}

func removeTopic(n byte) recordT { return &protocol.RemoveTopicRecord{TopicId: model.UUID(id(n))} }
