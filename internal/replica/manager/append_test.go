package manager

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

// D-26, D-27 with one replica, D-191, D-135: a topic is served as soon as it is published.
func TestProduceAndFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.apply(topic(1, "a"), part(1, 0), part(1, 1))
		for i, acks := range []int16{0, 1, -1} {
			r := w.produce(tp(1, 0), "a", acks, "x", "y")
			if r.Err != nil || r.BaseOffset != int64(2*i) || r.LastOffset != int64(2*i+1) || r.LogStartOffset != 0 || r.LogAppendTime != -1 {
				t.Fatalf("acks %d: %+v", acks, r)
			}
		}
		got := w.fetch(consumer(tp(1, 0), "a", 0))
		if r := got[0]; r.Err != nil || r.HighWatermark != 6 || r.LastStableOffset != 6 || r.LogStartOffset != 0 {
			t.Fatalf("%+v", r)
		}
		if v := values(t, &got[0]); len(v) != 6 || v[0] != "x" || v[5] != "y" {
			t.Fatal(v)
		}
		if n := w.m.hosted.count(); n != 2 {
			t.Fatal(n)
		}
	})
}

// The order of refusals and what they carry: D-10, D-11, D-12, D-13, D-21, T-65, T-67.
func TestProduceRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		elsewhere := part(2, 0, 2)
		w.apply(topic(1, "a"), part(1, 0), topic(2, "b"), elsewhere, topic(3, "__consumer_offsets"), part(3, 0),
			topic(4, "follower"), part(4, 0, 2, 1))
		good := batch("v")
		flipped := batch("v")
		flipped[len(flipped)-1] ^= 1
		for _, tc := range []struct {
			name    string
			tp      model.TopicIDPartition
			topic   string
			records []byte
			acks    int16
			version int16
			byID    bool
			want    *kerr.Error
			start   int64
		}{
			{"null records", tp(1, 0), "a", nil, 1, 11, true, kerr.InvalidRecord, -1},
			{"two batches", tp(1, 0), "a", append(batch("v"), batch("v")...), 1, 11, true, kerr.InvalidRecord, -1},
			{"cut batch", tp(1, 0), "a", good[:len(good)-1], 1, 11, true, kerr.InvalidRecord, -1},
			{"zstd before version 7", tp(1, 0), "a", zstd("v"), 1, 6, true, kerr.UnsupportedCompressionType, -1},
			{"acks 2", tp(1, 0), "a", good, 2, 11, true, kerr.InvalidRequiredAcks, -1},
			{"internal topic", tp(3, 0), "__consumer_offsets", good, 1, 11, true, kerr.InvalidTopicException, -1},
			{"checksum", tp(1, 0), "a", flipped, 1, 11, true, kerr.CorruptMessage, -1},
			{"a codec that does not exist", tp(1, 0), "a", coded(5), 1, 11, true, kerr.InvalidRecord, 0},
			{"base offset", tp(1, 0), "a", based(5), 1, 11, true, kerr.InvalidRecord, 0},
			{"no such partition", tp(1, 9), "a", good, 1, 11, true, kerr.UnknownTopicOrPartition, -1},
			{"no such topic", tp(8, 0), "zzz", good, 1, 11, true, kerr.UnknownTopicOrPartition, -1},
			{"held by others", tp(2, 0), "b", good, 1, 11, true, kerr.NotLeaderOrFollower, -1},
			{"follower", tp(4, 0), "follower", good, 1, 11, true, kerr.NotLeaderOrFollower, -1},
			{"old incarnation by id", tp(7, 0), "a", good, 1, 13, true, kerr.UnknownTopicId, -1},
			{"old incarnation by name", tp(7, 0), "a", good, 1, 12, false, kerr.UnknownTopicOrPartition, -1},
		} {
			var got []AppendResult
			w.m.Append(AppendRequest{Acks: tc.acks, APIVersion: tc.version, Entries: []AppendEntry{{Partition: tc.tp, Topic: tc.topic, Records: tc.records, ByID: tc.byID}}},
				func(r []AppendResult) { got = r })
			r := got[0]
			if !errors.Is(r.Err, tc.want) || r.BaseOffset != -1 || r.LogAppendTime != -1 || r.LogStartOffset != tc.start {
				t.Errorf("%s: %+v, want %v", tc.name, r, tc.want.Name)
			}
			if tc.want == kerr.NotLeaderOrFollower && (r.Leader != CurrentLeader{2, 0}) {
				t.Errorf("%s: leader %+v", tc.name, r.Leader)
			}
		}
		if o, _ := w.m.Offsets(tp(1, 0)); o.LogEnd != 0 {
			t.Error("something was written:", o)
		}
		// One refused entry never fails another (and D-12 for the admin client).
		var got []AppendResult
		w.m.Append(AppendRequest{Acks: 1, APIVersion: 11, AllowInternal: true, Entries: []AppendEntry{{Partition: tp(2, 0), Topic: "b", Records: batch("v")},
			{Partition: tp(3, 0), Topic: "__consumer_offsets", Records: batch("v")}, {Partition: tp(1, 0), Topic: "a", Records: batch("v")}}}, func(r []AppendResult) { got = r })
		if got[0].Err == nil || got[1].Err != nil || got[2].Err != nil {
			t.Errorf("%+v", got)
		}
	})
}

func zstd(v string) []byte {
	o := record.NewBatchOptions()
	o.Codec = record.Zstd
	b := record.NewBuilder(o)
	b.Append(time.Now().UnixMilli(), nil, []byte(v), nil)
	return b.Build(nil)
}

// coded is a batch that names a codec by its number.
func coded(codec byte) []byte {
	b := batch("v")
	b[22] = codec
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func based(offset int64) []byte {
	b := record.Batch(batch("v"))
	b.SetBaseOffset(offset)
	return b
}

// D-21: a duplicate tells the original offsets and the stored time. D-89.
func TestDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), part(1, 0))
		idempotent := func() []byte {
			o := record.NewBatchOptions()
			o.ProducerID, o.ProducerEpoch, o.BaseSequence = 9, 0, 0
			b := record.NewBuilder(o)
			b.Append(time.Now().UnixMilli(), nil, []byte("v"), nil)
			return b.Build(nil)
		}
		records := idempotent()
		w.produce(tp(1, 0), "a", 1, "before")
		var got []AppendResult
		done := func(r []AppendResult) { got = r }
		w.m.Append(AppendRequest{Acks: -1, APIVersion: 11, Entries: []AppendEntry{{Partition: tp(1, 0), Topic: "a", Records: append([]byte(nil), records...)}}}, done)
		first := got[0]
		time.Sleep(time.Second)
		synctest.Wait()
		w.m.Append(AppendRequest{Acks: -1, APIVersion: 11, Entries: []AppendEntry{{Partition: tp(1, 0), Topic: "a", Records: records}}}, done)
		if r := got[0]; r.Err != nil || r.BaseOffset != 1 || first.BaseOffset != 1 || first.LogAppendTime != -1 || r.LogAppendTime != record.Batch(records).MaxTimestamp() {
			t.Errorf("first %+v\nagain %+v", first, r)
		}
		ps, err := w.m.DescribeProducers(tp(1, 0)) // D-88
		if err != nil || len(ps) != 1 || ps[0].ProducerID != 9 || ps[0].LastSequence != 0 || ps[0].TxnStartOffset != -1 {
			t.Errorf("%+v %v", ps, err)
		}
	})
}

// D-13, D-27, D-28, D-31: acks=-1 with a second replica.
func TestAcksAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), setTopic("a", "min.insync.replicas", "2"), part(1, 0, 1, 2))
		var got []AppendResult
		produce := func() {
			got = nil
			w.m.Append(AppendRequest{Acks: -1, Timeout: 10 * time.Second, APIVersion: 11, Entries: []AppendEntry{{Partition: tp(1, 0), Topic: "a", Records: batch("v")}}},
				func(r []AppendResult) { got = r })
		}
		follow := func(offset int64) {
			t.Helper()
			req := consumer(tp(1, 0), "a", offset)
			req.ReplicaID, req.ReplicaEpoch = 2, 102
			for _, r := range w.fetch(req) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				values(t, &r)
			}
		}
		produce()
		if got != nil {
			t.Fatal("acknowledged without the follower")
		}
		if r := w.fetch(consumer(tp(1, 0), "a", 0)); r[0].HighWatermark != 0 || r[0].Records != nil {
			t.Fatalf("not committed, but visible: %+v", r[0])
		}
		follow(1)
		if got == nil || got[0].Err != nil || got[0].BaseOffset != 0 {
			t.Fatalf("%+v", got)
		}
		// At the deadline: REQUEST_TIMED_OUT with the offsets; the data stays.
		produce()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got == nil || !errors.Is(got[0].Err, kerr.RequestTimedOut) || got[0].BaseOffset != 1 || got[0].LogStartOffset != 0 {
			t.Fatalf("%+v", got)
		}
		// The set shrinks: nothing is written with acks=-1, and the watermark does not move.
		c := changed(1, 0)
		c.Isr = []int32{1}
		w.apply(c)
		produce()
		if got == nil || !errors.Is(got[0].Err, kerr.NotEnoughReplicas) {
			t.Fatalf("%+v", got)
		}
		if r := w.produce(tp(1, 0), "a", 1, "v"); r.Err != nil {
			t.Fatal(r.Err)
		}
		if o, _ := w.m.Offsets(tp(1, 0)); o.HighWatermark != 1 || o.LogEnd != 3 {
			t.Fatalf("%+v", o)
		}
		// D-193: the setting changes under a living log, and the watermark goes on.
		w.apply(setTopic("a", "min.insync.replicas", "1"))
		if o, _ := w.m.Offsets(tp(1, 0)); o.HighWatermark != 3 {
			t.Fatalf("%+v", o)
		}
	})
}

// A waiting produce ends when its leadership does: D-28, D-148, T-68.
func TestWaitingProduceEnds(t *testing.T) {
	again := topic(2, "a")
	lost := changed(1, 0)
	lost.Leader, lost.Isr = 2, []int32{2}
	elsewhere := part(2, 0, 2, 3)
	for _, tc := range []struct {
		name   string
		change []any
		want   *kerr.Error
	}{
		{"another leads", []any{lost}, kerr.NotLeaderOrFollower},
		{"deleted", []any{&protocol.RemoveTopicRecord{TopicId: model.UUID(id(1))}}, kerr.UnknownTopicOrPartition},
		{"deleted and re-created elsewhere", []any{&protocol.RemoveTopicRecord{TopicId: model.UUID(id(1))}, again, elsewhere}, kerr.NotLeaderOrFollower},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.apply(topic(1, "a"), part(1, 0, 1, 2))
			var got []AppendResult
			w.m.Append(AppendRequest{Acks: -1, Timeout: time.Hour, APIVersion: 11, Entries: []AppendEntry{{Partition: tp(1, 0), Topic: "a", Records: batch("v")}}},
				func(r []AppendResult) { got = r })
			w.apply(recordsOf(tc.change)...)
			if got == nil || !errors.Is(got[0].Err, tc.want) || got[0].BaseOffset != -1 {
				t.Errorf("%s: %+v", tc.name, got)
			}
		})
	}
}

// min.insync.replicas above the replication factor does not matter (D-13).
func TestEffectiveMinISR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), setTopic("a", "min.insync.replicas", "3"), part(1, 0))
		if r := w.produce(tp(1, 0), "a", -1, "v"); r.Err != nil {
			t.Fatal(r.Err)
		}
	})
}

// D-18, D-193: the topic's policy decides about keys, and record errors come through.
func TestRecordErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.apply(topic(1, "a"), setTopic("a", "cleanup.policy", "compact"), part(1, 0))
		b := record.NewBuilder(record.NewBatchOptions())
		b.Append(time.Now().UnixMilli(), []byte("k"), nil, nil)
		b.Append(time.Now().UnixMilli(), nil, []byte("v"), nil)
		var got []AppendResult
		w.m.Append(AppendRequest{Acks: 1, APIVersion: 11, Entries: []AppendEntry{{Partition: tp(1, 0), Topic: "a", Records: b.Build(nil)}}}, func(r []AppendResult) { got = r })
		r := got[0]
		if !errors.Is(r.Err, kerr.InvalidRecord) || len(r.RecordErrors) != 1 || r.RecordErrors[0].BatchIndex != 1 || r.Message == "" || r.LogStartOffset != 0 {
			t.Errorf("%+v", r)
		}
	})
}
