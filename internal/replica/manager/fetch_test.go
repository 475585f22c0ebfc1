package manager

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// parked is a fetch that waits.
type parked struct {
	at     time.Time
	took   time.Duration
	got    []FetchResult
	cancel func() bool
}

func (w *world) park(req FetchRequest) *parked {
	w.t.Helper()
	p := &parked{at: time.Now()}
	p.cancel = w.m.Fetch(req, func(r []FetchResult) {
		if p.got != nil {
			w.t.Error("answered twice")
		}
		p.got, p.took = r, time.Since(p.at)
	})
	return p
}

// D-119, D-29: a fetch at the end waits, and is answered by the append that brings enough, or at its deadline.
func TestLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0), part(1, 1))
		req := consumer(tp(1, 0), "a", 0)
		req.MaxWait = 500 * time.Millisecond
		p := w.park(req)
		w.produce(tp(1, 1), "a", 1, "another partition")
		if p.got != nil {
			t.Fatal("answered with nothing")
		}
		w.produce(tp(1, 0), "a", 1, "v")
		if p.got == nil || p.took != 0 || len(values(t, &p.got[0])) != 1 || p.got[0].HighWatermark != 1 {
			t.Fatalf("%+v", p)
		}
		req.Partitions = consumer(tp(1, 0), "a", 1).Partitions
		p = w.park(req)
		time.Sleep(time.Second)
		synctest.Wait()
		if p.got == nil || p.took != 500*time.Millisecond || p.got[0].Records != nil || p.got[0].Err != nil || p.got[0].HighWatermark != 1 {
			t.Fatalf("%+v", p)
		}
		// min.bytes: several appends.
		req.MinBytes, req.MaxWait = 1000, time.Hour
		p = w.park(req)
		n := 0
		for p.got == nil {
			w.produce(tp(1, 0), "a", 1, "0123456789012345678901234567890123456789")
			n++
		}
		if n < 5 || n > 15 {
			t.Errorf("answered after %d appends", n)
		}
		if got := len(values(t, &p.got[0])); got != n {
			t.Errorf("%d records of %d", got, n)
		}
		// Given up: never answered.
		req.Partitions = consumer(tp(1, 0), "a", 1+int64(n)).Partitions
		p = w.park(req)
		if !p.cancel() || p.cancel() {
			t.Error("cancel tells whether it was in time, once")
		}
		w.produce(tp(1, 0), "a", 1, "v")
		if p.got != nil {
			t.Error("answered after it was given up")
		}
	})
}

// D-118, D-60: limits.
func TestFetchLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, "fetch.max.bytes", "2000")
		w.apply(topic(1, "a"), part(1, 0), part(1, 1), part(1, 2))
		for i := range int32(3) {
			for range 10 {
				w.produce(tp(1, i), "a", 1, "v")
			}
		}
		one := int32(len(batch("v")))
		fetch := func(max int32, partMax ...int32) string {
			req := FetchRequest{ReplicaID: -1, APIVersion: 17, MinBytes: 1, MaxBytes: max}
			for i, m := range partMax {
				req.Partitions = append(req.Partitions, consumer(tp(1, int32(i)), "a", 0).Partitions[0])
				req.Partitions[i].MaxBytes = m
			}
			var out []int
			for _, r := range w.fetch(req) {
				if r.Err != nil {
					out = append(out, -int(kerr.Code(r.Err)))
					continue
				}
				out = append(out, len(values(t, &r)))
			}
			return fmt.Sprint(out)
		}
		for _, tc := range []struct {
			name string
			got  string
			want string
		}{
			{"partition limit", fetch(1<<20, one*3, one*2, one*2), "[3 2 2]"},
			{"response limit", fetch(one*4, one*3, one*3, one*3), "[3 1 0]"},
			{"zero gives the first batch", fetch(0, 0, 0, 0), "[1 0 0]"},
			{"zero for the first only", fetch(1<<20, 0, one*2, one), "[1 2 1]"},
			{"one byte gives the first batch", fetch(1<<20, 1, 1), "[1 0]"},
			{"negative partition limit", fetch(1<<20, -1, one), "[1 1]"},
			{"negative response limit", fetch(-5, one), "[1]"},
		} {
			if tc.name == "negative partition limit" {
				tc.want = "[1 1]" // UNKNOWN_SERVER_ERROR is code -1, shown as 1
			}
			if tc.got != tc.want {
				t.Errorf("%s: %s, want %s", tc.name, tc.got, tc.want)
			}
		}
		// fetch.max.bytes caps what a client asks for, and min.bytes with it: the answer does not wait for more.
		req := consumer(tp(1, 0), "a", 0)
		req.MinBytes, req.MaxWait = 1<<30, time.Hour
		for range 30 {
			w.produce(tp(1, 0), "a", 1, "0123456789012345678901234567890123456789")
		}
		r := w.fetch(req)
		if n := r[0].Records.Len(); n > 2000 {
			t.Errorf("%d bytes", n)
		}
		values(t, &r[0])
	})
}

// D-119..D-121, D-129, T-52, T-58: errors of single partitions, all -1 beside them; which of them cut the wait.
func TestFetchErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0), topic(2, "b"), part(2, 0, 2), topic(4, "f"), part(4, 0, 2, 1))
		c := changed(1, 0)
		c.Leader = 1
		w.apply(c) // epoch 1
		w.produce(tp(1, 0), "a", 1, "v")
		for _, tc := range []struct {
			name   string
			change func(p *FetchPartition, r *FetchRequest)
			want   *kerr.Error
			waits  bool
		}{
			{"known to the caller", func(p *FetchPartition, _ *FetchRequest) { p.Known = kerr.UnknownTopicId }, kerr.UnknownTopicId, true},
			{"no such topic", func(p *FetchPartition, _ *FetchRequest) { p.Partition, p.Topic = tp(9, 0), "zzz" }, kerr.UnknownTopicOrPartition, true},
			{"no such partition", func(p *FetchPartition, _ *FetchRequest) { p.Partition = tp(1, 9) }, kerr.UnknownTopicOrPartition, true},
			{"held by others", func(p *FetchPartition, _ *FetchRequest) { p.Partition, p.Topic = tp(2, 0), "b" }, kerr.NotLeaderOrFollower, false},
			{"re-created here", func(p *FetchPartition, _ *FetchRequest) { p.Partition = tp(9, 0) }, kerr.InconsistentTopicId, false},
			{"re-created here, by name", func(p *FetchPartition, _ *FetchRequest) { p.Partition, p.ByID = tp(9, 0), false }, kerr.UnknownTopicOrPartition, true},
			{"re-created elsewhere", func(p *FetchPartition, _ *FetchRequest) { p.Partition, p.Topic = tp(9, 0), "b" }, kerr.NotLeaderOrFollower, false},
			{"old epoch", func(p *FetchPartition, _ *FetchRequest) { p.CurrentLeaderEpoch = 0 }, kerr.FencedLeaderEpoch, false},
			{"new epoch", func(p *FetchPartition, _ *FetchRequest) { p.CurrentLeaderEpoch = 2 }, kerr.UnknownLeaderEpoch, false},
			{"beyond the end", func(p *FetchPartition, _ *FetchRequest) { p.FetchOffset = 2 }, kerr.OffsetOutOfRange, false},
			{"before the start", func(p *FetchPartition, _ *FetchRequest) { p.FetchOffset = -1 }, kerr.OffsetOutOfRange, false},
			{"epoch unknown here", func(p *FetchPartition, _ *FetchRequest) { p.LastFetchedEpoch = 7 }, kerr.OffsetOutOfRange, false},
			{"follower, before version 11", func(p *FetchPartition, r *FetchRequest) {
				p.Partition, p.Topic = tp(4, 0), "f"
				r.APIVersion = 10
			}, kerr.NotLeaderOrFollower, false},
			{"not a replica", func(p *FetchPartition, r *FetchRequest) { r.ReplicaID = 3 }, kerr.NotLeaderOrFollower, false},
			{"not a replica, with an epoch", func(p *FetchPartition, r *FetchRequest) { r.ReplicaID, p.CurrentLeaderEpoch = 3, 1 }, kerr.UnknownLeaderEpoch, false},
		} {
			req := consumer(tp(1, 0), "a", 1)
			req.MaxWait = time.Hour
			req.Partitions = append(req.Partitions, req.Partitions[0]) // one that would wait
			tc.change(&req.Partitions[0], &req)
			p := w.park(req)
			if waits := p.got == nil; waits != tc.waits {
				t.Errorf("%s: waits %v", tc.name, waits)
			}
			if p.got == nil {
				w.m.fetches.CompleteAll(tp(1, 0))
			}
			r := p.got[0]
			if !errors.Is(r.Err, tc.want) || r.HighWatermark != -1 || r.LastStableOffset != -1 || r.LogStartOffset != -1 || r.Records != nil {
				t.Errorf("%s: %+v, want %v", tc.name, r, tc.want.Name)
			}
			if r := p.got[1]; r.Err != nil && req.ReplicaID < 0 && req.APIVersion > 10 {
				t.Errorf("%s spoils the other: %v", tc.name, r.Err)
			}
			switch tc.want {
			case kerr.FencedLeaderEpoch: // D-122
				if (r.Leader != CurrentLeader{1, 1}) {
					t.Errorf("%s: leader %+v", tc.name, r.Leader)
				}
			}
		}
		// Only unknown ones: at once.
		req := consumer(tp(9, 0), "zzz", 0)
		req.MaxWait = time.Hour
		w.fetch(req)
	})
}

// D-121: where histories part. A follower of an earlier leader has more than this leader's epoch 0.
func TestDivergence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0))
		w.produce(tp(1, 0), "a", 1, "v", "v")
		c := changed(1, 0)
		c.Leader = 1
		w.apply(c)
		w.produce(tp(1, 0), "a", 1, "v")
		at := func(offset int64, epoch model.LeaderEpoch) FetchResult {
			req := consumer(tp(1, 0), "a", offset)
			req.Partitions[0].LastFetchedEpoch = epoch
			r := w.fetch(req)[0]
			values(t, &r)
			return r
		}
		if r := at(3, 0); r.Err != nil || (r.Diverging != DivergingEpoch{0, 2}) || r.Records != nil || r.HighWatermark != 3 {
			t.Errorf("%+v", r)
		}
		if r := at(2, 0); r.Err != nil || r.Diverging.Epoch != -1 {
			t.Errorf("%+v", r)
		}
		if r := at(3, 1); r.Err != nil || r.Diverging.Epoch != -1 {
			t.Errorf("%+v", r)
		}
		// D-134, D-135.
		ends := w.m.OffsetForLeaderEpoch([]EpochEndRequest{{Partition: tp(1, 0), CurrentLeaderEpoch: -1, LeaderEpoch: 0}, {Partition: tp(1, 0), CurrentLeaderEpoch: -1, LeaderEpoch: 1},
			{Partition: tp(1, 0), CurrentLeaderEpoch: -1, LeaderEpoch: 2}, {Partition: tp(1, 0), CurrentLeaderEpoch: 0, LeaderEpoch: 0}, {Partition: tp(9, 0), Topic: "z"}})
		want := []EpochEndResult{{nil, 0, 2}, {nil, 1, 3}, {nil, -1, -1}, {kerr.FencedLeaderEpoch, -1, -1}, {kerr.UnknownTopicOrPartition, -1, -1}}
		if !slices.Equal(ends, want) {
			t.Errorf("%+v", ends)
		}
	})
}

// T-61, D-119: a parked fetch is answered at once when its topic is deleted, or its leadership moves.
func TestParkedFetchEnds(t *testing.T) {
	lost := changed(1, 0)
	lost.Leader, lost.Isr = 2, []int32{2}
	for _, tc := range []struct {
		name   string
		change []any
		want   *kerr.Error
	}{
		{"deleted", []any{&protocol.RemoveTopicRecord{TopicId: model.UUID(id(1))}}, kerr.UnknownTopicOrPartition},
		{"re-created elsewhere", []any{&protocol.RemoveTopicRecord{TopicId: model.UUID(id(1))}, topic(2, "a"), part(2, 0, 2)}, kerr.NotLeaderOrFollower},
		{"another leads, fenced epoch", []any{lost}, kerr.FencedLeaderEpoch},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.apply(topic(1, "a"), part(1, 0, 1, 2))
			req := consumer(tp(1, 0), "a", 0)
			req.MaxWait = time.Hour
			req.Partitions[0].CurrentLeaderEpoch = 0
			p := w.park(req)
			w.apply(recordsOf(tc.change)...)
			if p.got == nil || p.took != 0 || !errors.Is(p.got[0].Err, tc.want) {
				t.Errorf("%s: %+v", tc.name, p.got)
			}
		})
	}
}

// D-128: a consumer in another rack is sent there, at once and with no records; one in the leader's rack is served.
func TestPreferredReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, "replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector")
		w.apply(topic(1, "a"), part(1, 0, 1, 2))
		w.produce(tp(1, 0), "a", 1, "v")
		f := consumer(tp(1, 0), "a", 1)
		f.ReplicaID, f.ReplicaEpoch, f.Partitions[0].LogStartOffset = 2, 102, 0
		w.fetch(f)
		req := consumer(tp(1, 0), "a", 1)
		req.Rack, req.MaxWait = "b", time.Hour
		if r := w.fetch(req)[0]; r.PreferredReadReplica != 2 || r.Records != nil || r.HighWatermark != 1 {
			t.Errorf("%+v", r)
		}
		req = consumer(tp(1, 0), "a", 0)
		req.Rack = "a"
		if r := w.fetch(req)[0]; r.PreferredReadReplica != -1 || len(values(t, &r)) != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// D-143, D-145, D-146: a follower outside the in-sync set is proposed, and joins with the controller's answer.
func TestFollowerJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := part(1, 0, 1, 2)
		p.Isr = []int32{1}
		w.apply(topic(1, "a"), p)
		w.produce(tp(1, 0), "a", 1, "v")
		req := consumer(tp(1, 0), "a", 1)
		req.ReplicaID, req.ReplicaEpoch = 2, 101
		if r := w.fetch(req)[0]; !errors.Is(r.Err, kerr.NotLeaderOrFollower) {
			t.Errorf("an older incarnation was served: %+v", r)
		}
		req.ReplicaEpoch = 102
		w.fetch(req)
		pr, answer := w.inSync.take(t)
		if pr.Added != 2 || len(pr.ISR) != 2 || pr.ISR[1].BrokerEpoch != 102 {
			t.Fatalf("%+v", pr)
		}
		w.produce(tp(1, 0), "a", 1, "v")
		if o, _ := w.m.Offsets(tp(1, 0)); o.HighWatermark != 1 {
			t.Errorf("a pending member does not count: %+v", o)
		}
		c := changed(1, 0)
		c.Isr = []int32{1, 2}
		w.apply(c)
		answer(partitionAnswer(0, 1, 1, 2)) // late: metadata was first
		req.Partitions[0].FetchOffset = 2
		w.fetch(req)
		if o, _ := w.m.Offsets(tp(1, 0)); o.HighWatermark != 2 {
			t.Errorf("%+v", o)
		}
		// D-144: it stops fetching while records come: dropped after 30 to 45 seconds.
		w.produce(tp(1, 0), "a", 1, "v")
		time.Sleep(46 * time.Second)
		synctest.Wait()
		pr, answer = w.inSync.take(t)
		if len(pr.Removed) != 1 || pr.Removed[0] != 2 {
			t.Fatalf("%+v", pr)
		}
		if o, _ := w.m.Offsets(tp(1, 0)); o.HighWatermark != 2 {
			t.Errorf("moved before the controller agreed: %+v", o)
		}
		answer(partitionAnswer(0, 2, 1))
		if o, _ := w.m.Offsets(tp(1, 0)); o.HighWatermark != 3 {
			t.Errorf("%+v", o)
		}
	})
}

// D-138, D-139: this broker as a follower; D-128: it serves consumers up to its own watermark.
func TestAppendFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0, 2, 1))
		if got := w.fetchers.take(); got != "follow a-0 from 2 at 0" {
			t.Error(got)
		}
		next, err := w.m.AppendFollower(FollowerAppend{Partition: tp(1, 0), Epoch: 0, Records: batch("v", "v", "v"), HighWatermark: 2})
		if err != nil || next != 3 {
			t.Fatal(next, err)
		}
		if r := w.fetch(consumer(tp(1, 0), "a", 0))[0]; r.Err != nil || r.HighWatermark != 2 {
			t.Errorf("%+v", r)
		} else {
			values(t, &r)
		}
		if next, err = w.m.AppendFollower(FollowerAppend{Partition: tp(1, 0), Epoch: 0, HighWatermark: 9, LogStart: 1}); err != nil || next != 3 {
			t.Fatal(next, err)
		}
		if o, _ := w.m.Offsets(tp(1, 0)); o.HighWatermark != 3 || o.LogStart != 1 || o.Leader {
			t.Errorf("%+v", o)
		}
		if _, err := w.m.AppendFollower(FollowerAppend{Partition: tp(1, 0), Epoch: 1, Records: based(3)}); !errors.Is(err, kerr.NotLeaderOrFollower) {
			t.Error(err)
		}
		if _, err := w.m.AppendFollower(FollowerAppend{Partition: tp(1, 0), Epoch: 0, Records: based(1)}); err == nil {
			t.Error("records below the log end were taken")
		}
		// Elected: the epoch begins at the log end, fetching stops.
		c := changed(1, 0)
		c.Leader = 1
		w.apply(c)
		if got := w.fetchers.take(); got != "unfollow 1-0" {
			t.Error(got)
		}
		if r := w.produce(tp(1, 0), "a", 1, "v"); r.Err != nil || r.BaseOffset != 3 {
			t.Errorf("%+v", r)
		}
	})
}
