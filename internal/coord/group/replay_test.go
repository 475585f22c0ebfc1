package group

import (
	"strings"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

func offsetRecordOf(group, topic string, partition int32, v protocol.OffsetCommitValue, version int16) Record {
	return Record{offsetKey(offsetID{group, topic, partition}), must(protocol.AppendVersioned(nil, version, &v))}
}

func value(offset int64) protocol.OffsetCommitValue {
	v := protocol.Make[protocol.OffsetCommitValue]()
	v.Offset = offset
	return v
}

// replayAll puts records at offsets from 0 on.
func replayAll(t *testing.T, c *Core, producer int64, records ...Record) {
	t.Helper()
	for i, r := range records {
		if err := c.Replay(int64(i), producer, r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}
}

func committed(c *Core, group, topic string, partition int32, stable bool) (int64, string) {
	r := c.Fetch(&protocol.OffsetFetchRequestOffsetFetchRequestGroup{GroupId: group,
		Topics: []protocol.OffsetFetchRequestOffsetFetchRequestTopics{{Name: topic, PartitionIndexes: []int32{partition}}}}, stable)
	p := r.Topics[0].Partitions[0]
	return p.CommittedOffset, code(p.ErrorCode)
}

// T-81, D-173: every version of the value is read; 0 to 3 carry no id, 1 an expiry.
func TestReplayOffsetVersions(t *testing.T) {
	for version := int16(0); version <= 4; version++ {
		w := newWorld()
		v := value(5)
		v.LeaderEpoch, v.Metadata, v.CommitTimestamp, v.ExpireTimestamp, v.TopicId = 7, "note", 11, 99, topicID(3)
		replayAll(t, w.core, -1, offsetRecordOf("g", "t", 0, v, version))
		s := w.core.offsets.find("g", "t", 0)
		want := Offset{Offset: 5, LeaderEpoch: -1, Metadata: "note", CommitMs: 11, ExpireMs: noExpiry}
		switch version {
		case 1:
			want.ExpireMs = 99
		case 3:
			want.LeaderEpoch = 7
		case 4:
			want.LeaderEpoch, want.TopicID = 7, topicID(3)
		}
		if s == nil || s.committed != want {
			t.Errorf("version %d: read %+v, want %+v", version, s.committed, want)
		}
	}
}

// D-173: type 0 is an offset as well; a tombstone removes.
func TestReplayLegacyKeyAndTombstone(t *testing.T) {
	w := newWorld()
	r := offsetRecordOf("g", "t", 0, value(5), 3)
	r.Key[1] = 0
	replayAll(t, w.core, -1, r)
	if o, _ := committed(w.core, "g", "t", 0, false); o != 5 {
		t.Fatalf("offset %d, want 5", o)
	}
	replayAll(t, w.core, -1, tombstone(r.Key))
	if o, _ := committed(w.core, "g", "t", 0, false); o != -1 {
		t.Fatalf("offset %d after its tombstone", o)
	}
	if n := len(w.core.offsets.groups); n != 0 {
		t.Fatalf("%d groups of offsets are kept", n)
	}
}

// D-170, D-175: offsets of an open transaction are in doubt until its marker; the newest by log order wins.
func TestReplayTransactions(t *testing.T) {
	begin := func(t *testing.T) *world {
		w := newWorld()
		k := offsetRecordOf("g", "t", 0, value(1), 3)
		must0(t, w.core.Replay(0, -1, k.Key, k.Value))
		tx := offsetRecordOf("g", "t", 0, value(2), 3)
		must0(t, w.core.Replay(1, 9, tx.Key, tx.Value))
		w.core.Loaded(w.now)
		return w
	}
	check := func(t *testing.T, w *world, stable bool, want int64, wantCode string) {
		t.Helper()
		if o, c := committed(w.core, "g", "t", 0, stable); o != want || c != wantCode {
			t.Fatalf("got %d %s, want %d %s", o, c, want, wantCode)
		}
	}
	t.Run("open", func(t *testing.T) {
		w := begin(t)
		check(t, w, true, -1, "UNSTABLE_OFFSET_COMMIT")
		check(t, w, false, 1, "NONE")
	})
	t.Run("committed", func(t *testing.T) {
		w := begin(t)
		w.core.EndTransaction(9, true)
		check(t, w, true, 2, "NONE")
	})
	t.Run("aborted", func(t *testing.T) {
		w := begin(t)
		w.core.EndTransaction(9, false)
		check(t, w, true, 1, "NONE")
	})
	t.Run("another producer ends", func(t *testing.T) {
		w := begin(t)
		w.core.EndTransaction(8, true)
		check(t, w, true, -1, "UNSTABLE_OFFSET_COMMIT")
	})
	t.Run("a plain commit came later", func(t *testing.T) {
		w := begin(t)
		k := offsetRecordOf("g", "t", 0, value(3), 3)
		must0(t, w.core.Replay(2, -1, k.Key, k.Value))
		w.core.EndTransaction(9, true)
		check(t, w, true, 3, "NONE")
	})
	t.Run("a tombstone takes it along", func(t *testing.T) {
		w := begin(t)
		w.core.TopicsDeleted(w.now, []DeletedTopic{{Name: "t", ID: model.TopicID(topicID(1))}})
		w.settle()
		check(t, w, true, -1, "NONE")
		w.core.EndTransaction(9, true)
		check(t, w, true, -1, "NONE")
	})
	t.Run("expiry leaves it", func(t *testing.T) {
		w := begin(t)
		w.pass(w.settings.OffsetsRetentionMs * 2)
		check(t, w, true, -1, "UNSTABLE_OFFSET_COMMIT")
		if _, ok := w.core.groups["g"]; !ok {
			t.Fatal("the group is gone")
		}
	})
	t.Run("deleting the group drops it", func(t *testing.T) {
		w := begin(t)
		w.core.DeleteGroups(w.now, []string{"g"}, func([]protocol.DeleteGroupsResponseDeletableGroupResult) {})
		w.settle()
		w.core.EndTransaction(9, true)
		check(t, w, true, -1, "NONE")
	})
}

func must0(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// D-189, D-175: records of groups of other kinds are left alone, and classic requests for such a group refused.
func TestReplayForeignGroups(t *testing.T) {
	w := newWorld()
	k := &protocol.ConsumerGroupMetadataKey{GroupId: "new"}
	key := must(protocol.AppendRecordKey(nil, k))
	replayAll(t, w.core, -1, Record{key, []byte{0, 0, 0, 0, 0, 1, 0}}, offsetRecordOf("new", "t", 0, value(4), 4),
		Record{[]byte{0, 22, 1, 2, 3}, []byte{9}}, Record{[]byte{0x7f, 0, 1}, nil})
	w.core.Loaded(w.now)
	w.settle()
	if got := len(w.notes); got != 3 {
		t.Errorf("%d lines of log, want one per type", got)
	}
	w.join("A", joinArgs{group: "new", kind: "consumer", protocols: []string{"range:t"}, session: 10000, version: 9})
	w.describe("new", 6)
	w.describe("new", 5)
	w.commitOffsets("B", commitArgs{group: "new", generation: 3, member: "m", retention: -1, offsets: []string{"t-0=5"}})
	w.fetch("C", "new", []string{"t-0"}, 0, false)
	if n := len(w.core.List(nil, nil)); n != 0 {
		t.Errorf("%d groups listed", n)
	}
	w.pass(w.settings.OffsetsRetentionMs * 2) // and its offsets do not expire
	w.fetch("D", "new", []string{"t-0"}, 0, false)
	want := `A: INCONSISTENT_GROUP_PROTOCOL generation=-1 type=null protocol=null leader= member=
new: GROUP_ID_NOT_FOUND Dead type="" protocol="" "Group new is not a classic group."
new: NONE Dead type="" protocol=""
B: UNKNOWN_MEMBER_ID
C: NONE t-0=4
D: NONE t-0=4
`
	if got := w.out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	c := w.newCore()
	replayAll(t, c, -1, Record{key, []byte{0, 0, 0, 0, 0, 1, 0}}, tombstone(key))
	if len(c.foreign) != 0 {
		t.Error("a group that was removed is still known")
	}
}

// D-175: a damaged record is an error with its place, never a panic; the rest is read.
func TestReplayDamaged(t *testing.T) {
	good := offsetRecordOf("g", "t", 0, value(1), 4)
	group := groupRecord(newClassic("g", 1), nil)
	for _, c := range []struct {
		name string
		r    Record
	}{
		{"no key", Record{nil, good.Value}},
		{"a key of one byte", Record{[]byte{0}, good.Value}},
		{"a cut offset key", Record{good.Key[:5], good.Value}},
		{"a cut offset value", Record{good.Key, good.Value[:7]}},
		{"an offset value of another version", Record{good.Key, append([]byte{0, 9}, good.Value[2:]...)}},
		{"an empty value", Record{good.Key, []byte{}}},
		{"a cut group key", Record{group.Key[:4], group.Value}},
		{"a cut group value", Record{group.Key, group.Value[:9]}},
	} {
		w := newWorld()
		err := w.core.Replay(42, -1, c.r.Key, c.r.Value)
		if err == nil || !strings.Contains(err.Error(), "offset 42") {
			t.Errorf("%s: error %v", c.name, err)
		}
		w.core.Loaded(w.now)
	}
}

// A group record that says less than ours does: no members' protocol, unknown rebalance timeout, no timestamp, a
// leader that is no member, one member twice.
func TestReplayOddGroup(t *testing.T) {
	w := newWorld()
	leader := "gone"
	v := protocol.Make[protocol.GroupMetadataValue]()
	v.ProtocolType, v.Generation, v.Leader, v.CurrentStateTimestamp = "consumer", 4, &leader, -1
	m := protocol.Make[protocol.GroupMetadataValueMemberMetadata]()
	m.MemberId, m.RebalanceTimeout, m.SessionTimeout = "m", -1, 10000
	v.Members = append(v.Members, m, m)
	r := Record{groupKey("g"), must(protocol.AppendVersioned(nil, 3, &v))}
	replayAll(t, w.core, -1, r)
	w.core.Loaded(w.now)
	w.describe("g", 6)
	w.join("B", joinArgs{group: "g", kind: "consumer", protocols: []string{":t"}, session: 10000, rebalance: 60000, version: 3})
	w.join("M", joinArgs{group: "g", member: "m", kind: "consumer", protocols: []string{":t"}, session: 10000, rebalance: 60000, version: 3})
	want := "g: NONE Stable type=\"consumer\" protocol=\"\" m=\n" +
		"M: NONE generation=5 type=consumer protocol= leader=m member=m members=m,c-1\n" +
		"B: NONE generation=5 type=consumer protocol= leader=m member=-1\n"
	want = strings.ReplaceAll(want, "c-1", "-1")
	if got := w.out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// No bytes of a log make a Core panic, and it serves afterwards.
func FuzzReplay(f *testing.F) {
	g := newClassic("g", 1)
	f.Add(int64(-1), offsetKey(offsetID{"g", "t", 0}), offsetRecordOf("g", "t", 0, value(1), 4).Value)
	f.Add(int64(9), offsetKey(offsetID{"g", "t", 0}), offsetRecordOf("g", "t", 0, value(1), 1).Value)
	f.Add(int64(-1), groupKey("g"), groupRecord(g, nil).Value)
	f.Add(int64(-1), []byte{0, 3, 0, 1, 'g'}, []byte{0, 0, 0, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, producer int64, key, value []byte) {
		w := newWorld()
		w.quiet = true
		if err := w.core.Replay(1, producer, key, value); err != nil {
			return
		}
		_ = w.core.Replay(2, producer, key, value)
		w.core.EndTransaction(producer, true)
		w.core.Loaded(w.now)
		w.settle()
		for id := range w.core.groups {
			w.join("A", joinArgs{group: id, kind: "consumer", protocols: []string{"range:t"}, session: 10000, rebalance: 1000, version: 3})
			w.describe(id, 6)
		}
		w.pass(3600_000)
		w.core.Unload(w.now)
	})
}
