package manager

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

func timed(ts ...int64) []byte {
	b := record.NewBuilder(record.NewBatchOptions())
	for _, t := range ts {
		b.Append(t, []byte("k"), nil, nil)
	}
	return b.Build(nil)
}

// D-131, D-132, D-222: the special timestamps, by time, and what is refused.
func TestListOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0), topic(2, "empty"), part(2, 0), topic(3, "f"), part(3, 0, 2, 1))
		c := changed(1, 0)
		c.Leader = 1
		w.apply(c)
		now := time.Now().UnixMilli()
		w.m.Append(AppendRequest{Acks: 1, APIVersion: 11, Entries: []AppendEntry{{Partition: tp(1, 0), Topic: "a", Records: timed(now-10, now, now-5)}}}, func(r []AppendResult) {
			if r[0].Err != nil {
				t.Fatal(r[0].Err)
			}
		})
		for _, tc := range []struct {
			name    string
			tp      model.TopicIDPartition
			ts      int64
			version int16
			change  func(*ListOffsetsRequest)
			want    string // offset timestamp epoch error
		}{
			{"latest", tp(1, 0), -1, 10, nil, "3 -1 1 <nil>"},
			{"latest committed", tp(1, 0), -1, 10, func(r *ListOffsetsRequest) { r.Isolation = ReadCommitted }, "3 -1 1 <nil>"},
			{"earliest", tp(1, 0), -2, 10, nil, "0 -1 1 <nil>"},
			{"earliest local", tp(1, 0), -4, 10, nil, "0 -1 1 <nil>"},
			{"max timestamp", tp(1, 0), -3, 10, nil, fmt.Sprintf("1 %d 1 <nil>", now)},
			{"latest tiered", tp(1, 0), -5, 10, nil, "-1 -1 -1 <nil>"},
			{"earliest pending upload", tp(1, 0), -6, 11, nil, "-1 -1 -1 <nil>"},
			{"by time", tp(1, 0), now - 7, 10, nil, fmt.Sprintf("1 %d 1 <nil>", now)},
			{"by time, the first", tp(1, 0), 0, 10, nil, fmt.Sprintf("0 %d 1 <nil>", now-10)},
			{"by time, none", tp(1, 0), now + 1, 10, nil, "-1 -1 -1 <nil>"},
			{"max timestamp before its version", tp(1, 0), -3, 6, nil, "-1 -1 -1 UNSUPPORTED_VERSION"},
			{"earliest local before its version", tp(1, 0), -4, 7, nil, "-1 -1 -1 UNSUPPORTED_VERSION"},
			{"latest tiered before its version", tp(1, 0), -5, 8, nil, "-1 -1 -1 UNSUPPORTED_VERSION"},
			{"pending upload before its version", tp(1, 0), -6, 10, nil, "-1 -1 -1 UNSUPPORTED_VERSION"},
			{"no such special", tp(1, 0), -7, 11, nil, "-1 -1 -1 UNSUPPORTED_VERSION"},
			{"isolation 2", tp(1, 0), -1, 10, func(r *ListOffsetsRequest) { r.Isolation = 2 }, "-1 -1 -1 UNKNOWN_SERVER_ERROR"},
			{"twice", tp(1, 0), -1, 10, func(r *ListOffsetsRequest) { r.Partitions = append(r.Partitions, r.Partitions[0]) }, "-1 -1 -1 INVALID_REQUEST"},
			{"old epoch", tp(1, 0), -1, 10, func(r *ListOffsetsRequest) { r.Partitions[0].CurrentLeaderEpoch = 0 }, "-1 -1 -1 FENCED_LEADER_EPOCH"},
			{"new epoch", tp(1, 0), -1, 10, func(r *ListOffsetsRequest) { r.Partitions[0].CurrentLeaderEpoch = 2 }, "-1 -1 -1 UNKNOWN_LEADER_EPOCH"},
			{"not leader", tp(3, 0), -1, 10, nil, "-1 -1 -1 NOT_LEADER_OR_FOLLOWER"},
			{"not leader, debugging", tp(3, 0), -1, 10, func(r *ListOffsetsRequest) { r.ReplicaID = -2 }, "0 -1 0 <nil>"},
			{"unknown", tp(9, 0), -1, 10, nil, "-1 -1 -1 UNKNOWN_TOPIC_OR_PARTITION"},
			{"empty, max timestamp", tp(2, 0), -3, 10, nil, "-1 -1 -1 <nil>"},
			{"empty, by time", tp(2, 0), 5, 10, nil, "-1 -1 -1 <nil>"},
			{"by time, version 3", tp(1, 0), 0, 3, nil, fmt.Sprintf("0 %d -1 <nil>", now-10)},
		} {
			req := ListOffsetsRequest{ReplicaID: -1, APIVersion: tc.version, Partitions: []ListOffsetsPartition{{Partition: tc.tp, Topic: "x", CurrentLeaderEpoch: -1, Timestamp: tc.ts}}}
			if tc.change != nil {
				tc.change(&req)
			}
			r := w.m.ListOffsets(req)[0]
			text := "<nil>"
			if r.Err != nil {
				text = kerr.Of(r.Err).Name
			}
			if got := fmt.Sprintf("%d %d %d %s", r.Offset, r.Timestamp, r.LeaderEpoch, text); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
			}
		}
	})
}

// D-133: a new leader whose watermark is below the start of its epoch. D-224: the watermark hides the newest times.
func TestFreshLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0, 2, 1))
		now := time.Now().UnixMilli()
		if _, err := w.m.AppendFollower(FollowerAppend{Partition: tp(1, 0), Records: timed(now-9, now-5, now), HighWatermark: 1}); err != nil {
			t.Fatal(err)
		}
		c := changed(1, 0)
		c.Leader = 1
		w.apply(c)
		ask := func(ts int64, version int16) ListOffsetsResult {
			return w.m.ListOffsets(ListOffsetsRequest{ReplicaID: -1, APIVersion: version, Partitions: []ListOffsetsPartition{{Partition: tp(1, 0), CurrentLeaderEpoch: -1, Timestamp: ts}}})[0]
		}
		if r := ask(-1, 5); !errors.Is(r.Err, kerr.OffsetNotAvailable) {
			t.Errorf("%+v", r)
		}
		if r := ask(-1, 4); !errors.Is(r.Err, kerr.LeaderNotAvailable) {
			t.Errorf("%+v", r)
		}
		if r := ask(now, 5); !errors.Is(r.Err, kerr.OffsetNotAvailable) {
			t.Errorf("%+v", r)
		}
		if r := ask(now-9, 5); r.Err != nil || r.Offset != 0 {
			t.Errorf("%+v", r)
		}
		if r := ask(-2, 5); r.Err != nil || r.Offset != 0 {
			t.Errorf("%+v", r)
		}
		f := consumer(tp(1, 0), "a", 3)
		f.ReplicaID, f.ReplicaEpoch = 2, 102
		w.fetch(f)
		if r := ask(-1, 5); r.Err != nil || r.Offset != 3 {
			t.Errorf("%+v", r)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		w.produce(tp(1, 0), "a", 1, "v") // newer than everything, not replicated
		if r := ask(-3, 8); r.Err != nil || r.Offset != -1 || r.Timestamp != -1 {
			t.Errorf("%+v", r)
		}
	})
}

// D-78: the table of DeleteRecords on a single replica; D-101 etc. apart.
func TestDeleteRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0), topic(2, "c"), setTopic("c", "cleanup.policy", "compact"), part(2, 0), topic(3, "cd"), setTopic("cd", "cleanup.policy", "compact,delete"),
			part(3, 0), topic(4, "__consumer_offsets"), part(4, 0), topic(5, "f"), part(5, 0, 2, 1))
		for _, n := range []byte{1, 3} {
			for range 5 {
				w.produce(tp(n, 0), map[byte]string{1: "a", 3: "cd"}[n], 1, "v")
			}
		}
		del := func(p model.TopicIDPartition, topic string, offset int64) DeleteRecordsResult {
			var got []DeleteRecordsResult
			w.m.DeleteRecords(DeleteRecordsRequest{Timeout: time.Second, Partitions: []DeleteRecordsPartition{{p, topic, offset}}}, func(r []DeleteRecordsResult) { got = r })
			if got == nil {
				t.Fatal("it waits")
			}
			return got[0]
		}
		for _, tc := range []struct {
			name   string
			got    DeleteRecordsResult
			low    int64
			want   *kerr.Error
			offset int64
		}{
			{"raise", del(tp(1, 0), "a", 2), 2, nil, 0},
			{"below is a no-op", del(tp(1, 0), "a", 1), 2, nil, 0},
			{"above the watermark", del(tp(1, 0), "a", 6), -1, kerr.OffsetOutOfRange, 0},
			{"negative", del(tp(1, 0), "a", -2), -1, kerr.OffsetOutOfRange, 0},
			{"everything", del(tp(1, 0), "a", -1), 5, nil, 0},
			{"compacted", del(tp(2, 0), "c", 0), -1, kerr.PolicyViolation, 0},
			{"compact and delete", del(tp(3, 0), "cd", 3), 3, nil, 0},
			{"internal", del(tp(4, 0), "__consumer_offsets", 0), -1, kerr.InvalidTopicException, 0},
			{"follower", del(tp(5, 0), "f", 0), -1, kerr.NotLeaderOrFollower, 0},
			{"unknown", del(tp(9, 0), "zzz", 0), -1, kerr.UnknownTopicOrPartition, 0},
		} {
			if (tc.want == nil) != (tc.got.Err == nil) || tc.want != nil && !errors.Is(tc.got.Err, tc.want) || tc.got.LowWatermark != tc.low {
				t.Errorf("%s: %+v", tc.name, tc.got)
			}
		}
		if r := w.fetch(consumer(tp(1, 0), "a", 4))[0]; !errors.Is(r.Err, kerr.OffsetOutOfRange) {
			t.Errorf("%+v", r)
		}
		if o, _ := w.m.Offsets(tp(3, 0)); o.LogStart != 3 {
			t.Errorf("%+v", o)
		}
	})
}

// D-78, D-29: it waits for the followers' log starts, or answers REQUEST_TIMED_OUT with the low watermark so far.
func TestDeleteRecordsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0, 1, 2))
		w.produce(tp(1, 0), "a", 1, "v", "v", "v")
		follow := func(start int64) {
			f := consumer(tp(1, 0), "a", 3)
			f.ReplicaID, f.ReplicaEpoch, f.Partitions[0].LogStartOffset = 2, 102, start
			w.fetch(f)
		}
		follow(0)
		var got []DeleteRecordsResult
		del := func(offset int64) {
			got = nil
			w.m.DeleteRecords(DeleteRecordsRequest{Timeout: 5 * time.Second, Partitions: []DeleteRecordsPartition{{tp(1, 0), "a", offset}}}, func(r []DeleteRecordsResult) { got = r })
		}
		del(2)
		if got != nil {
			t.Fatalf("%+v", got)
		}
		follow(2)
		if got == nil || got[0].Err != nil || got[0].LowWatermark != 2 {
			t.Fatalf("%+v", got)
		}
		del(3)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if got == nil || !errors.Is(got[0].Err, kerr.RequestTimedOut) || got[0].LowWatermark != 2 {
			t.Fatalf("%+v", got)
		}
		// A fenced broker does not hold anybody up.
		del(3)
		fence := &protocol.FenceBrokerRecord{Id: 2, Epoch: 102}
		w.apply(fence)
		if got == nil || got[0].Err != nil || got[0].LowWatermark != 3 {
			t.Fatalf("%+v", got)
		}
	})
}

// notes collects what a coordinator hears.
type notes struct{ log []string }

func (n *notes) Elected(p model.TopicIDPartition, e model.LeaderEpoch) {
	n.log = append(n.log, fmt.Sprintf("elected %d at %d", p.Partition, e))
}
func (n *notes) Resigned(p model.TopicIDPartition, e model.LeaderEpoch) {
	n.log = append(n.log, fmt.Sprintf("resigned %d at %d", p.Partition, e))
}
func (n *notes) HighWatermark(p model.TopicIDPartition, o int64) {
	n.log = append(n.log, fmt.Sprintf("hw %d", o))
}
func (n *notes) Gone(p model.TopicIDPartition, err error) {
	n.log = append(n.log, fmt.Sprintf("gone %s", kerr.Of(err).Name))
}
func (n *notes) take() string { s := fmt.Sprint(n.log); n.log = nil; return s }

// A coordinator's life on a partition: told of its leaderships, loads, appends (D-24), hears of commits, resigns.
func TestCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "__consumer_offsets"), part(1, 0), part(1, 1, 2, 1))
		n := &notes{}
		w.m.OnLeader("__consumer_offsets", n)
		if got := n.take(); got != "[elected 0 at 0]" {
			t.Error(got)
		}
		stop, err := w.m.Watch(tp(1, 0), n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.m.Watch(tp(1, 1), n); !errors.Is(err, kerr.NotLeaderOrFollower) {
			t.Error(err)
		}
		var committed []string
		for i := range 3 {
			o, err := w.m.AppendCoordinator(CoordinatorAppend{Partition: tp(1, 0), Epoch: 0, Records: batch("a", "b")}, func(err error) { committed = append(committed, fmt.Sprint(i, err)) })
			if err != nil || o.Base != int64(2*i) || o.Last != int64(2*i+1) {
				t.Fatal(o, err)
			}
		}
		if fmt.Sprint(committed) != "[0 <nil> 1 <nil> 2 <nil>]" || n.take() != "[hw 2 hw 4 hw 6]" {
			t.Error(committed, n.log)
		}
		if _, err := w.m.AppendCoordinator(CoordinatorAppend{Partition: tp(1, 0), Epoch: 5, Records: batch("a")}, nil); !errors.Is(err, kerr.NotLeaderOrFollower) {
			t.Error(err)
		}
		for _, buf := range []int{0, 1, 200} {
			var read int
			next, err := w.m.ReadAll(context.Background(), tp(1, 0), 2, buf, func(b []byte) error {
				for bt, err := range record.Split(b) {
					if err != nil {
						t.Fatal(err)
					}
					read += int(bt.Count())
				}
				return nil
			})
			if err != nil || next != 6 || read != 4 {
				t.Errorf("buffer %d: read %d, next %d, %v", buf, read, next, err)
			}
		}
		// A new epoch of the same leadership, then another leader.
		c := changed(1, 0)
		c.Leader = 1
		w.apply(c)
		if got := n.take(); got != "[elected 0 at 1]" {
			t.Error(got)
		}
		c = changed(1, 0)
		c.Leader, c.Replicas, c.Isr = 2, []int32{1, 2}, []int32{2}
		c.Directories = []model.UUID{model.UUID(dirID(1)), {0: 0x40, 15: 2}}
		w.apply(c)
		if got := n.take(); got != "[gone NOT_LEADER_OR_FOLLOWER resigned 0 at 2]" {
			t.Error(got)
		}
		stop()
		if _, err := w.m.AppendCoordinator(CoordinatorAppend{Partition: tp(1, 0), Epoch: -1, Records: batch("a")}, nil); !errors.Is(err, kerr.NotLeaderOrFollower) {
			t.Error(err)
		}
	})
}

// Commits wait for the followers, in order; a coordinator may append from within its callbacks.
func TestCoordinatorCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "__consumer_offsets"), part(1, 0, 1, 2))
		var log []string
		add := func(name string, then func()) {
			t.Helper()
			if _, err := w.m.AppendCoordinator(CoordinatorAppend{Partition: tp(1, 0), Epoch: -1, Records: batch("v")}, func(err error) {
				if err != nil {
					name += " " + kerr.Of(err).Name
				}
				log = append(log, name)
				if then != nil {
					then()
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		add("first", nil)
		add("second", func() { add("nested", nil) })
		follow := func(o int64) {
			f := consumer(tp(1, 0), "a", o)
			f.ReplicaID, f.ReplicaEpoch = 2, 102
			for _, r := range w.fetch(f) {
				values(t, &r)
			}
		}
		follow(1)
		if fmt.Sprint(log) != "[first]" {
			t.Error(log)
		}
		follow(2)
		if fmt.Sprint(log) != "[first second]" {
			t.Error(log)
		}
		c := changed(1, 0)
		c.Leader, c.Isr = 2, []int32{2}
		w.apply(c)
		if fmt.Sprint(log) != "[first second nested NOT_LEADER_OR_FOLLOWER]" {
			t.Error(log)
		}
		// NOT_ENOUGH_REPLICAS comes before anything is written.
		c = changed(1, 0)
		c.Leader, c.Isr = 1, []int32{1}
		w.apply(c, setTopic("__consumer_offsets", "min.insync.replicas", "2"))
		if _, err := w.m.AppendCoordinator(CoordinatorAppend{Partition: tp(1, 0), Epoch: -1, Records: batch("v")}, func(error) { t.Error("called") }); !errors.Is(err, kerr.NotEnoughReplicas) {
			t.Error(err)
		}
	})
}
