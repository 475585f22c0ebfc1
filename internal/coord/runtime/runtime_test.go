package runtime

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/coord/group"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

func want(t *testing.T, what string, got, want int16) {
	t.Helper()
	if got != want {
		t.Errorf("%s: code %d, want %d", what, got, want)
	}
}

// D-153: not led NOT_COORDINATOR, loading COORDINATOR_LOAD_IN_PROGRESS (heartbeats: none), resigned NOT_COORDINATOR.
func TestOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.g.Close()
		g := groupOn(2, 0)
		want(t, "not led", <-b.commit(g, 1), kerr.NotCoordinator.Code)

		b.r.reading = make(chan struct{})
		b.elect(2, 5)
		synctest.Wait()
		want(t, "loading", <-b.commit(g, 1), kerr.CoordinatorLoadInProgress.Code)
		want(t, "join while loading", (<-b.join(g, "", 3)).ErrorCode, kerr.CoordinatorLoadInProgress.Code)
		beat := make(chan int16, 1)
		b.g.Heartbeat(&protocol.HeartbeatRequest{GroupId: g, MemberId: "m"}, func(r *protocol.HeartbeatResponse) { beat <- r.ErrorCode })
		want(t, "heartbeat while loading", <-beat, 0)
		close(b.r.reading)
		synctest.Wait()
		want(t, "loaded", <-b.commit(g, 7), 0)
		want(t, "another partition", <-b.commit(groupOn(1, 0), 1), kerr.NotCoordinator.Code)

		b.resign(2)
		want(t, "resigned", <-b.commit(g, 8), kerr.NotCoordinator.Code)
		if got := b.fetch(g); got != -1000-int64(kerr.NotCoordinator.Code) {
			t.Errorf("fetch after resignation: %d", got)
		}
		b.elect(2, 7)
		synctest.Wait()
		if got := b.fetch(g); got != 7 {
			t.Errorf("after another load: %d, want 7", got)
		}
	})
}

// D-155, D-162: group ids that cannot be are refused before anybody looks for a coordinator.
func TestGroupIDs(t *testing.T) {
	b := start(t)
	want(t, "join", (<-b.join("", "", 3)).ErrorCode, kerr.InvalidGroupId.Code)
	want(t, "sync", (<-b.sync("", "m", 1, nil)).ErrorCode, kerr.InvalidGroupId.Code)
	b.g.Heartbeat(&protocol.HeartbeatRequest{}, func(r *protocol.HeartbeatResponse) { want(t, "heartbeat", r.ErrorCode, kerr.InvalidGroupId.Code) })
	b.g.Leave(&protocol.LeaveGroupRequest{}, func(r *protocol.LeaveGroupResponse) { want(t, "leave", r.ErrorCode, kerr.InvalidGroupId.Code) })
	b.g.DeleteOffsets(&protocol.OffsetDeleteRequest{}, func(r *protocol.OffsetDeleteResponse) {
		want(t, "offset delete", r.ErrorCode, kerr.InvalidGroupId.Code)
	})
	req := &protocol.JoinGroupRequest{GroupId: "g", SessionTimeoutMs: 1}
	b.g.Join(group.Caller{}, req, func(r *protocol.JoinGroupResponse) { want(t, "session", r.ErrorCode, kerr.InvalidSessionTimeout.Code) })
}

// D-168: an answer waits for the commit, whether it comes inline or from another goroutine, and at most offsets.commit.timeout.ms.
func TestCommitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.g.Close()
		b.elect(2, 5)
		synctest.Wait()
		g := groupOn(2, 0)
		want(t, "inline", <-b.commit(g, 1), 0)

		b.r.park = true
		answer := b.commit(g, 2)
		synctest.Wait()
		if len(answer) != 0 {
			t.Fatal("answered before it was committed")
		}
		if got := b.fetch(g); got != 1 {
			t.Fatalf("an uncommitted offset is seen: %d", got)
		}
		go b.r.release(nil)
		want(t, "committed", <-answer, 0)
		if got := b.fetch(g); got != 2 {
			t.Fatalf("committed offset: %d, want 2", got)
		}

		b.r.park = true
		begin := time.Now()
		want(t, "late", <-b.commit(g, 3), kerr.CoordinatorNotAvailable.Code)
		if took := time.Since(begin); took != 5*time.Second {
			t.Fatalf("given up after %v, want offsets.commit.timeout.ms", took)
		}
		b.r.release(nil)
		synctest.Wait()
		if got := b.fetch(g); got != 3 {
			t.Fatalf("committed after all: %d, want 3", got)
		}

		b.r.park = true
		answer = b.commit(g, 4)
		synctest.Wait()
		b.resign(2) // D-175
		want(t, "resigned meanwhile", <-answer, kerr.NotCoordinator.Code)
		b.r.release(kerr.NotLeaderOrFollower)
		synctest.Wait()
		if len(answer) != 0 {
			t.Fatal("answered twice")
		}
	})
}

// Commits that come together are written together; when one of them is refused only that one fails (D-174).
func TestAppendsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.g.Close()
		b.elect(2, 5)
		synctest.Wait()
		s := b.g.shards[2]
		many := func() []chan int16 { // all in one go: the mailbox is held closed meanwhile
			s.mu.Lock()
			s.running = true
			s.mu.Unlock()
			var answers []chan int16
			for i := range 5 {
				answers = append(answers, b.commit(groupOn(2, i), int64(10+i)))
			}
			s.mu.Lock()
			s.running = false
			s.start()
			s.mu.Unlock()
			return answers
		}
		before := b.r.appends
		for _, a := range many() {
			want(t, "together", <-a, 0)
		}
		if n := b.r.appends - before; n != 1 {
			t.Errorf("%d appends, want 1", n)
		}
		calls := 0
		b.r.refuse = func(batches int) error {
			if calls++; batches > 1 || calls == 4 { // the whole, then the third by itself
				return kerr.MessageTooLarge
			}
			return nil
		}
		var got []int16
		for _, a := range many() {
			got = append(got, <-a)
		}
		if want := []int16{0, 0, kerr.InvalidCommitOffsetSize.Code, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("codes %v, want %v", got, want)
		}
	})
}

// D-157, D-160, D-161 with the runtime's timer: initial delay, session end; the timer rests when nothing is due.
func TestMembersInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.g.Close()
		b.elect(2, 5)
		synctest.Wait()
		g := groupOn(2, 0)
		first := <-b.join(g, "", 9)
		want(t, "first join", first.ErrorCode, kerr.MemberIdRequired.Code)
		if len(first.MemberId) != len("c-")+36 || !strings.HasPrefix(first.MemberId, "c-") {
			t.Errorf("member id %q", first.MemberId)
		}
		begin := time.Now()
		joined := <-b.join(g, first.MemberId, 9)
		want(t, "join", joined.ErrorCode, 0)
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("the first generation began after %v", took)
		}
		synced := <-b.sync(g, first.MemberId, 1, []byte("mine"))
		want(t, "sync", synced.ErrorCode, 0)
		if string(synced.Assignment) != "mine" {
			t.Errorf("assignment %q", synced.Assignment)
		}
		state := func() string {
			out := make(chan string, 1)
			b.g.Describe([]string{g}, 6, func(d []protocol.DescribeGroupsResponseDescribedGroup) { out <- d[0].GroupState })
			return <-out
		}
		time.Sleep(9 * time.Second)
		if s := state(); s != "Stable" {
			t.Errorf("state %s", s)
		}
		time.Sleep(2 * time.Second)
		if s := state(); s != "Empty" {
			t.Errorf("state %s after the session's end", s)
		}
	})
}

// A request's bytes are borrowed: what a group keeps is a copy.
func TestBytesAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "group.initial.rebalance.delay.ms", "0")
		defer b.g.Close()
		b.elect(2, 5)
		synctest.Wait()
		g := groupOn(2, 0)
		metadata := []byte{0, 0, 0, 0, 0, 1, 0, 1, 't'}
		req := &protocol.JoinGroupRequest{GroupId: g, ProtocolType: "consumer", SessionTimeoutMs: 10000, RebalanceTimeoutMs: 60000,
			Protocols: []protocol.JoinGroupRequestJoinGroupRequestProtocol{{Name: "range", Metadata: metadata}}}
		joined := make(chan *protocol.JoinGroupResponse, 1)
		b.g.Join(group.Caller{Version: 3, ClientID: "c"}, req, func(r *protocol.JoinGroupResponse) { joined <- r })
		clear(metadata)
		r := <-joined
		if len(r.Members) != 1 || r.Members[0].Metadata[8] != 't' {
			t.Fatalf("members %+v", r.Members)
		}
		assignment := []byte("mine")
		synced := b.sync(g, r.MemberId, 1, assignment)
		clear(assignment)
		if s := <-synced; string(s.Assignment) != "mine" {
			t.Fatalf("assignment %q", s.Assignment)
		}
	})
}

// Requests about many groups: each shard answers for its own.
func TestManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.g.Close()
		b.elect(1, 5)
		b.elect(2, 5)
		synctest.Wait()
		here, there, away := groupOn(1, 0), groupOn(2, 0), groupOn(3, 0)
		<-b.commit(here, 1)
		<-b.commit(there, 1)
		list := func() (ids []string, err error) {
			done := make(chan struct{})
			b.g.List(nil, nil, func(gs []protocol.ListGroupsResponseListedGroup, e error) {
				for _, g := range gs {
					ids = append(ids, g.GroupId)
				}
				err = e
				close(done)
			})
			<-done
			slices.Sort(ids)
			return ids, err
		}
		if ids, err := list(); err != nil || len(ids) != 2 {
			t.Errorf("listed %v, %v", ids, err)
		}
		described := make(chan []protocol.DescribeGroupsResponseDescribedGroup, 1)
		b.g.Describe([]string{there, away, here, "x" + here}, 6, func(d []protocol.DescribeGroupsResponseDescribedGroup) { described <- d })
		d := <-described
		if d[0].GroupState != "Empty" || d[0].GroupId != there || d[1].ErrorCode != kerr.NotCoordinator.Code || d[2].GroupId != here || d[2].GroupState != "Empty" {
			t.Errorf("described %+v", d)
		}
		deleted := make(chan []protocol.DeleteGroupsResponseDeletableGroupResult, 1)
		b.g.DeleteGroups([]string{away, here, there}, func(r []protocol.DeleteGroupsResponseDeletableGroupResult) { deleted <- r })
		if r := <-deleted; r[0].ErrorCode != kerr.NotCoordinator.Code || r[1].ErrorCode != 0 || r[2].ErrorCode != 0 || r[2].GroupId != there {
			t.Errorf("deleted %+v", r)
		}
		b.g.Describe(nil, 6, func(d []protocol.DescribeGroupsResponseDescribedGroup) { described <- d })
		if d := <-described; len(d) != 0 {
			t.Errorf("nothing asked, %d described", len(d))
		}

		b.r.reading = make(chan struct{})
		b.elect(3, 5)
		synctest.Wait()
		if _, err := list(); !errors.Is(err, kerr.CoordinatorLoadInProgress) { // D-165 as Kafka has it: all or nothing
			t.Errorf("listing while a shard loads: %v", err)
		}
		close(b.r.reading)
	})
}

// D-172, T-83, T-84: deletions are heard while active and while loading; what was deleted while nobody coordinated is
// found at load, but only with an image that knows this leadership.
func TestTopicDeletion(t *testing.T) {
	deleted := &protocol.RemoveTopicRecord{TopicId: model.UUID{2}}
	g := groupOn(2, 0)
	begin := func(t *testing.T) *broker {
		b := start(t)
		b.elect(2, 5)
		synctest.Wait()
		want(t, "commit", <-b.commit(g, 5), 0)
		return b
	}
	t.Run("active", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t)
			defer b.g.Close()
			b.apply(deleted)
			synctest.Wait()
			if got := b.fetch(g); got != -1 {
				t.Errorf("offset %d of a deleted topic", got)
			}
		})
	})
	t.Run("loading", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t)
			defer b.g.Close()
			b.resign(2)
			b.r.reading = make(chan struct{})
			b.elect(2, 5)
			synctest.Wait()
			b.apply(deleted)
			close(b.r.reading)
			synctest.Wait()
			if got := b.fetch(g); got != -1 {
				t.Errorf("offset %d of a deleted topic", got)
			}
		})
	})
	t.Run("nobody coordinated", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t)
			defer b.g.Close()
			b.resign(2)
			b.apply(deleted)
			b.elect(2, 5)
			synctest.Wait()
			if got := b.fetch(g); got != -1 {
				t.Errorf("offset %d of a deleted topic", got)
			}
		})
	})
	t.Run("an old image is not believed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t)
			defer b.g.Close()
			b.resign(2)
			b.apply(deleted)
			b.elect(2, 6) // the image says 5
			synctest.Wait()
			if got := b.fetch(g); got != 5 {
				t.Errorf("offset %d, want 5 still", got)
			}
			b.apply(&protocol.PartitionChangeRecord{TopicId: model.UUID(offsetsID), PartitionId: 2, Leader: 1})
			synctest.Wait()
			if got := b.fetch(g); got != -1 {
				t.Errorf("offset %d of a deleted topic", got)
			}
		})
	})
}

// A new epoch of the same leadership only changes the epoch of later appends.
func TestNewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.g.Close()
		b.elect(2, 5)
		synctest.Wait()
		g := groupOn(2, 0)
		joined := b.join(g, "", 3)
		synctest.Wait()
		b.elect(2, 6)
		want(t, "commit at the new epoch", <-b.commit(groupOn(2, 1), 1), 0)
		want(t, "the join that waited", (<-joined).ErrorCode, 0)
	})
}

// D-175: a load that fails, or that is overtaken, leaves nothing behind.
func TestLoadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.g.Close()
		g := groupOn(2, 0)
		b.r.loadErr = kerr.KafkaStorageError
		b.elect(2, 5)
		synctest.Wait()
		want(t, "after a failed load", <-b.commit(g, 1), kerr.NotCoordinator.Code)
		b.r.loadErr = nil
		b.r.reading = make(chan struct{})
		b.elect(2, 6)
		synctest.Wait()
		b.elect(2, 7) // overtaken while loading
		synctest.Wait()
		close(b.r.reading)
		synctest.Wait()
		want(t, "after the second load", <-b.commit(g, 1), 0)
		if !strings.Contains(b.log.String(), "loading groups and offsets failed") {
			t.Error("nothing in the log about the failed load")
		}
	})
}

// D-175: control batches other than markers, damaged records and transactions while loading.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.g.Close()
		b.elect(2, 5)
		synctest.Wait()
		g := groupOn(2, 0)
		want(t, "commit", <-b.commit(g, 5), 0)
		b.resign(2)
		// The same commit again inside a transaction, with another value, and its marker.
		var key, value []byte
		for batch := range record.Split(b.r.logs[2]) {
			for r := range record.Records(batch) {
				key, value = append([]byte{}, r.Key...), append([]byte{}, r.Value...)
			}
		}
		value[9] = 6 // version, offset
		opt := record.NewBatchOptions()
		opt.ProducerID, opt.ProducerEpoch, opt.BaseSequence, opt.Transactional, opt.BaseOffset = 77, 0, 0, true, 1
		build := record.NewBuilder(opt)
		build.Append(1, key, value, nil)
		build.Append(1, []byte{1}, nil, nil) // no key of any kind
		b.r.logs[2] = build.Build(b.r.logs[2])
		b.elect(2, 5)
		synctest.Wait()
		if got := b.fetch(g); got != 5 {
			t.Errorf("offset %d in an open transaction, want 5", got)
		}
		if !strings.Contains(b.log.String(), "records that cannot be read were left out") {
			t.Error("nothing in the log about the damaged record")
		}
		b.resign(2)
		b.r.logs[2] = record.AppendEndTxnMarker(b.r.logs[2], 3, 0, 1, 77, 0, true, 0)
		b.elect(2, 5)
		synctest.Wait()
		if got := b.fetch(g); got != 6 {
			t.Errorf("offset %d after the marker, want 6", got)
		}
	})
}

// Close answers everybody and ends every goroutine; what comes later is refused.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.elect(2, 5)
		synctest.Wait()
		joined := b.join(groupOn(2, 0), "", 3)
		synctest.Wait()
		b.r.reading = make(chan struct{}) // a load that never ends by itself
		b.elect(3, 5)
		synctest.Wait()
		b.g.Close()
		want(t, "the join that waited", (<-joined).ErrorCode, kerr.NotCoordinator.Code)
		want(t, "afterwards", <-b.commit(groupOn(2, 0), 1), kerr.NotCoordinator.Code)
		b.elect(1, 5)
		want(t, "elected afterwards", <-b.commit(groupOn(1, 0), 1), kerr.NotCoordinator.Code)
	})
}

// Many clients, leaderships that come and go, commits from another goroutine: for the race detector. Every request is answered.
func TestConcurrent(t *testing.T) {
	b := start(t, "group.initial.rebalance.delay.ms", "0")
	for p := range int32(4) {
		b.elect(p, 5)
	}
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for k := range 200 {
				g := groupOn(int32(k%4), i)
				if c := <-b.commit(g, int64(k)); c != 0 && c != kerr.NotCoordinator.Code && c != kerr.CoordinatorLoadInProgress.Code && c != kerr.UnknownMemberId.Code {
					t.Errorf("commit: code %d", c)
				}
				b.fetch(g)
				if k%10 == 0 {
					own := fmt.Sprint(g, "-", k)
					if j := <-b.join(own, "", 3); j.ErrorCode == 0 {
						<-b.sync(own, j.MemberId, j.GenerationId, []byte("x"))
						done := make(chan struct{})
						b.g.Leave(&protocol.LeaveGroupRequest{GroupId: own, Members: []protocol.LeaveGroupRequestMemberIdentity{{MemberId: j.MemberId}}}, func(*protocol.LeaveGroupResponse) { close(done) })
						<-done
					}
				}
			}
		})
	}
	work.Go(func() {
		for k := range 40 {
			b.resign(int32(k % 4))
			b.elect(int32(k%4), model.LeaderEpoch(6+k))
			b.r.mu.Lock()
			b.r.park = true
			b.r.mu.Unlock()
			for range 100 {
				goruntime.Gosched()
			}
			b.r.release(nil)
		}
	})
	work.Wait()
}

func BenchmarkCommit(b *testing.B) {
	t := &testing.T{}
	k := start(t)
	k.elect(2, 5)
	for k.fetch(groupOn(2, 0)) < -1 {
	}
	g := groupOn(2, 0)
	for b.Loop() {
		<-k.commit(g, 1)
	}
}

// The gauges of metrics-4.4 follow the groups.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.g.Close()
		check := func(name string, want float64, labels ...string) {
			t.Helper()
			if got, ok := b.reg.Value(name, labels...); !ok || got != want {
				t.Errorf("%s %v = %v (%v), want %v", name, labels, got, ok, want)
			}
		}
		const object = "kafka.coordinator.group:type=GroupMetadataManager,name="
		const partitions = "kafka.server:type=group-coordinator-metrics,attribute=num-partitions"
		check(object+"NumGroups", 0)
		b.elect(2, 5)
		b.elect(1, 5)
		synctest.Wait()
		<-b.commit(groupOn(2, 0), 1)
		<-b.commit(groupOn(1, 0), 1)
		b.join(groupOn(2, 1), "", 3)
		synctest.Wait()
		check(object+"NumGroups", 3)
		check(object+"NumGroupsEmpty", 2)
		check(object+"NumGroupsPreparingRebalance", 1)
		check(object+"NumOffsets", 2)
		check(partitions, 2, "state", "active")
		b.resign(2)
		synctest.Wait()
		check(object+"NumGroups", 1)
		check(object+"NumGroupsPreparingRebalance", 0)
		b.r.loadErr = kerr.KafkaStorageError
		b.elect(3, 5)
		synctest.Wait()
		check(partitions, 1, "state", "failed")
	})
}
