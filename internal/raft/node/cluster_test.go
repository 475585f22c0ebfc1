package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
)

// wire joins nodes of one process. Every request and response goes through its bytes at the version the receiver speaks.
type wire struct {
	mu       sync.Mutex
	nodes    map[string]*Node // by host
	cut      map[string]bool  // hosts nobody reaches
	versions map[int16]int16  // the newest version of each key the receivers speak; absent: the newest there is
	seen     map[int16]int    // requests by key
}

func newWire() *wire {
	return &wire{nodes: map[string]*Node{}, cut: map[string]bool{}, versions: map[int16]int16{}, seen: map[int16]int{}}
}

func (w *wire) set(host string, n *Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[host] = n
}

func (w *wire) isolate(host string, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[host] = cut
}

func (w *wire) count(key int16) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[key]
}

type port struct {
	w    *wire
	from string
}

func (p port) Send(to kraft.Peer, req protocol.Request, done func(protocol.Response, error)) {
	p.w.mu.Lock()
	p.w.seen[req.ApiKey()]++
	target := p.w.nodes[to.Host]
	lost := target == nil || p.w.cut[to.Host] || p.w.cut[p.from]
	_, version, _ := protocol.Versions(req.ApiKey())
	if v, ok := p.w.versions[req.ApiKey()]; ok {
		version = v
	}
	p.w.mu.Unlock()
	go func() {
		time.Sleep(time.Millisecond)
		if lost {
			done(nil, errors.New("no connection"))
			return
		}
		resp, err := serve(target, req, version)
		p.w.mu.Lock()
		lost = p.w.cut[to.Host] || p.w.cut[p.from]
		p.w.mu.Unlock()
		time.Sleep(time.Millisecond)
		if lost {
			done(nil, errors.New("connection lost"))
			return
		}
		done(resp, err)
	}()
}

// serve is what an API file does: decode, call the handler, encode; and back.
func serve(n *Node, req protocol.Request, version int16) (protocol.Response, error) {
	req, err := kraft.FitVersion(req, version)
	if err != nil {
		return nil, err
	}
	b, err := req.Append(nil, version)
	if err != nil {
		return nil, err
	}
	in := protocol.NewRequest(req.ApiKey())
	if rest, err := in.Read(b, version); err != nil || len(rest) != 0 {
		return nil, fmt.Errorf("request %T: %d bytes left, %w", req, len(rest), err)
	}
	ctx := context.Background()
	var out protocol.Response
	switch in := in.(type) {
	case *protocol.VoteRequest:
		out, err = n.Vote(ctx, "CONTROLLER", version, in)
	case *protocol.BeginQuorumEpochRequest:
		out, err = n.BeginQuorumEpoch(ctx, "CONTROLLER", version, in)
	case *protocol.EndQuorumEpochRequest:
		out, err = n.EndQuorumEpoch(ctx, "CONTROLLER", version, in)
	case *protocol.FetchRequest:
		out, err = n.Fetch(ctx, "CONTROLLER", version, in)
	case *protocol.FetchSnapshotRequest:
		out, err = n.FetchSnapshot(ctx, "CONTROLLER", version, in)
	case *protocol.DescribeQuorumRequest:
		out, err = n.DescribeQuorum(ctx, version, in)
	}
	if err != nil {
		return nil, err
	}
	if b, err = out.Append(nil, version); err != nil {
		return nil, err
	}
	back := protocol.NewResponse(req.ApiKey())
	if _, err := back.Read(b, version); err != nil {
		return nil, err
	}
	return back, nil
}

type quorum struct {
	t     testing.TB
	w     *wire
	disks map[model.NodeID]vfs.FS
	nodes map[model.NodeID]*Node
	seen  map[model.NodeID]*recorder
	tune  func(*Options)
}

func newQuorum(t testing.TB, ids ...model.NodeID) *quorum {
	q := &quorum{t: t, w: newWire(), disks: map[model.NodeID]vfs.FS{}, nodes: map[model.NodeID]*Node{}, seen: map[model.NodeID]*recorder{}}
	for _, id := range ids {
		q.disks[id] = vfs.NewMem()
		format(t, q.disks[id], voterSet(t, ids...))
	}
	return q
}

func (q *quorum) start(id model.NodeID) {
	q.t.Helper()
	o := options(q.disks[id], id)
	for _, v := range []model.NodeID{1, 2, 3} {
		o.BootstrapServers = append(o.BootstrapServers, testVoter(v).Endpoints[0])
	}
	host := fmt.Sprintf("n%d", id)
	o.Transport = port{q.w, host}
	if q.tune != nil {
		q.tune(&o)
	}
	n, err := Open(o)
	must(q.t, err)
	q.seen[id] = &recorder{}
	n.Register(q.seen[id])
	q.nodes[id] = n
	q.w.set(host, n)
	n.Start()
}

func (q *quorum) stop(id model.NodeID) {
	q.w.set(fmt.Sprintf("n%d", id), nil)
	stop(q.t, q.nodes[id])
	delete(q.nodes, id)
}

func (q *quorum) stopAll() {
	for id := range q.nodes {
		q.stop(id)
	}
	time.Sleep(5 * time.Second) // what is still on the wire
}

func (q *quorum) leader() *Node {
	q.t.Helper()
	var l *Node
	eventually(q.t, "a leader", func() bool {
		for id, n := range q.nodes {
			if _, _, seen := q.seen[id].state(); isLeader(n) && seen.Leader == id && seen.Epoch == n.State().Epoch {
				l = n
				return true
			}
		}
		return false
	})
	return l
}

// commit appends to whoever leads and waits until every running node has seen it.
func (q *quorum) commit(texts ...string) {
	q.t.Helper()
	l := q.leader()
	for _, s := range texts {
		if _, err := l.Append(l.State().Epoch, [][]Record{{frame("%s", s)}}); err != nil {
			q.t.Fatal(err)
		}
	}
	end := l.EndOffset()
	_ = end
	eventually(q.t, "commit everywhere", func() bool {
		for id := range q.nodes {
			got, _, _ := q.seen[id].state()
			if len(got) == 0 || got[len(got)-1] != texts[len(texts)-1] {
				return false
			}
		}
		return true
	})
}

// K-18..K-25, K-28, K-35..K-43, K-49..K-55: three nodes elect, replicate, lose their leader, elect again and bring the old one back, all through
// encoded messages.
func TestThreeVoters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuorum(t, 1, 2, 3)
		for _, id := range []model.NodeID{1, 2, 3} {
			q.start(id)
		}
		q.commit("a", "b")
		old := q.leader()
		oldID := old.opts.NodeID
		q.w.isolate(fmt.Sprintf("n%d", oldID), true)
		// K-26: within 1.5 fetch timeouts it gives up; the others elect.
		eventually(t, "the cut off leader resigns", func() bool { return !isLeader(old) })
		eventually(t, "another leader", func() bool {
			for id, n := range q.nodes {
				if id != oldID && isLeader(n) {
					return true
				}
			}
			return false
		})
		q.w.isolate(fmt.Sprintf("n%d", oldID), false)
		q.commit("c")
		for id := range q.nodes {
			if texts, _, _ := q.seen[id].state(); !reflect.DeepEqual(texts, []string{"a", "b", "c"}) {
				t.Errorf("node %d has %q", id, texts)
			}
		}
		// K-34, K-27, K-29: a leader that is stopped hands over before anybody's fetch timeout.
		l := q.leader()
		begin := time.Now()
		q.stop(l.opts.NodeID)
		q.leader()
		if took := time.Since(begin); took > 1500*time.Millisecond {
			t.Errorf("handing over took %v", took)
		}
		q.commit("d")
		q.stopAll()
	})
}

// K-28: an idle quorum sends one BeginQuorumEpoch to each voter and then only fetches.
func TestIdleQuorumIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuorum(t, 1, 2, 3)
		for _, id := range []model.NodeID{1, 2, 3} {
			q.start(id)
		}
		q.commit("a")
		time.Sleep(2 * time.Second)
		begun, votes := q.w.count(53), q.w.count(52)
		time.Sleep(time.Minute)
		if q.w.count(53) != begun || q.w.count(52) != votes {
			t.Errorf("an idle minute cost %d BeginQuorumEpoch and %d Vote", q.w.count(53)-begun, q.w.count(52)-votes)
		}
		q.stopAll()
	})
}

// K-44, K-45, K-53, K-96: a voter that lost its disk fetches the leader's snapshot in pieces, then the log behind it; a broker without any
// checkpoint does too, and learns the voters from the snapshot.
func TestSnapshotFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuorum(t, 1, 2, 3)
		q.tune = func(o *Options) {
			o.Config.FetchSnapshotMaxBytes = 300
			o.Config.MaxRetentionBytes = 0
			o.Config.SegmentBytes = 1024
		}
		for _, id := range []model.NodeID{1, 2, 3} {
			q.start(id)
		}
		var want []string
		for i := range 40 {
			want = append(want, fmt.Sprintf("t%d", i))
		}
		q.commit(want...)
		l := q.leader()
		id := snapshotNow(t, l, q.seen[l.opts.NodeID])
		time.Sleep(2 * time.Minute) // the cleaner deletes what the snapshot stands for, at first only the bootstrap checkpoint
		if start := l.store.log.LogStartOffset(); start != id.Offset {
			t.Fatalf("the log starts at %d, want %d", start, id.Offset)
		}
		var gone model.NodeID
		for n := range q.nodes {
			if n != l.opts.NodeID {
				gone = n
			}
		}
		q.stop(gone)
		q.disks[gone] = vfs.NewMem()
		format(t, q.disks[gone], voterSet(t, 1, 2, 3))
		q.start(gone)
		q.disks[9] = vfs.NewMem()
		must(t, q.disks[9].MkdirAll("/d", 0o755))
		q.tune = func(o *Options) { o.Controller = false; o.Listeners = nil; o.DefaultListener = "CONTROLLER" }
		q.start(9)
		q.commit("after")
		want = append(want, "after")
		for _, n := range []model.NodeID{gone, 9} {
			texts, _, _ := q.seen[n].state()
			if !reflect.DeepEqual(texts, want) || q.seen[n].snapshot != id {
				t.Errorf("node %d: %d texts, snapshot %v, want %v", n, len(texts), q.seen[n].snapshot, id)
			}
			if got := q.nodes[n].Voters(); !reflect.DeepEqual(got.IDs(), []model.NodeID{1, 2, 3}) || q.nodes[n].KRaftVersion() != 1 {
				t.Errorf("node %d: voters %v", n, got)
			}
			data, err := vfs.ReadFile(q.disks[n], "/d/__cluster_metadata-0/leader-epoch-checkpoint")
			if err == nil && !strings.HasSuffix(string(data), fmt.Sprintf(" %d\n", id.Offset)) {
				t.Errorf("node %d: epochs %q", n, data)
			}
		}
		if s := q.nodes[9].State(); !s.Observer || s.Role != kraft.Follower {
			t.Errorf("the broker is %+v", s)
		}
		// K-46, K-47: the leader's view.
		d, err := l.DescribeQuorum(context.Background(), 2, nil2())
		must(t, err)
		p := d.Topics[0].Partitions[0]
		if len(p.CurrentVoters) != 3 || len(p.Observers) != 1 || p.Observers[0].ReplicaId != 9 || len(d.Nodes) != 3 || *p.ErrorMessage != "" || p.LeaderId != int32(l.opts.NodeID) {
			t.Errorf("DescribeQuorum %+v", d)
		}
		q.stopAll()
	})
}

// K-19: voters that speak Vote 0 and 1 only: the election goes on without pre-votes.
func TestOldVotersWithoutPreVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuorum(t, 1, 2, 3)
		q.w.versions[52] = 1
		for _, id := range []model.NodeID{1, 2, 3} {
			q.start(id)
		}
		q.commit("a")
		q.stopAll()
	})
}

// Old peers speak the first versions of everything: no endpoints in answers, no directory ids (K-37, K-38, K-41, K-86: under
// kraft.version 0, where voters have none).
func TestOldestVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuorum(t, 1, 2, 3)
		var static kraft.VoterSet
		for _, v := range voterSet(t, 1, 2, 3) {
			v.Directory = model.DirectoryID{}
			static = append(static, v)
			q.disks[v.ID] = vfs.NewMem()
			must(t, q.disks[v.ID].MkdirAll("/d", 0o755))
		}
		q.tune = func(o *Options) { o.StaticVoters = static }
		q.w.versions = map[int16]int16{52: 0, 53: 0, 54: 0, 59: 0, 1: 13}
		for _, id := range []model.NodeID{1, 2, 3} {
			q.start(id)
		}
		q.commit("a")
		l := q.leader()
		q.stop(l.opts.NodeID)
		q.commit("b")
		q.stopAll()
	})
}

// K-42: a parked fetch is answered by the commit, by a resignation, and at its time; a caller that goes away is forgotten.
func TestParkedFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		format(t, mem, voterSet(t, 1))
		n, r := lead(t, options(mem, 1))
		fetch := func(ctx context.Context, offset, hw int64, wait int32) (*protocol.FetchResponse, time.Duration, error) {
			begin := time.Now()
			req := protocol.Make[protocol.FetchRequest]()
			req.ReplicaState.ReplicaId = 7
			req.MaxWaitMs, req.MaxBytes = wait, 1<<20
			p := protocol.Make[protocol.FetchRequestFetchPartition]()
			p.CurrentLeaderEpoch, p.FetchOffset, p.LastFetchedEpoch, p.HighWatermark = 1, offset, 1, hw
			req.Topics = []protocol.FetchRequestFetchTopic{{TopicId: model.UUID(model.MetadataTopicID), Partitions: []protocol.FetchRequestFetchPartition{p}}}
			o, err := n.Fetch(ctx, "CONTROLLER", 18, &req)
			return o, time.Since(begin), err
		}
		o, took, err := fetch(context.Background(), 3, 3, 500)
		if p := o.Responses[0].Partitions[0]; err != nil || took != 500*time.Millisecond || p.HighWatermark != 3 || len(p.Records) != 0 || len(o.NodeEndpoints) != 1 {
			t.Errorf("at its time: %v after %v, %v", o, took, err)
		}
		go func() {
			time.Sleep(100 * time.Millisecond)
			commit(t, n, r, "x")
		}()
		o, took, err = fetch(context.Background(), 3, 3, 500)
		if p := o.Responses[0].Partitions[0]; err != nil || took != 100*time.Millisecond || len(p.Records) == 0 {
			t.Errorf("records: %v after %v, %v", o, took, err)
		}
		o, took, _ = fetch(context.Background(), 4, 3, 500)
		if p := o.Responses[0].Partitions[0]; took != 0 || p.HighWatermark != 4 {
			t.Errorf("high watermark: %v after %v", o, took)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if _, took, err = fetch(ctx, 4, 4, 500); !errors.Is(err, context.DeadlineExceeded) || took != 50*time.Millisecond {
			t.Errorf("a caller that goes away: %v after %v", err, took)
		}
		go func() {
			time.Sleep(100 * time.Millisecond)
			n.Resign(1)
		}()
		o, took, _ = fetch(context.Background(), 4, 4, 500)
		if p := o.Responses[0].Partitions[0]; took != 100*time.Millisecond || p.ErrorCode != kerr.NotLeaderOrFollower.Code || p.HighWatermark != -1 {
			t.Errorf("resignation: %+v after %v", o, took)
		}
		stop(t, n)
	})
}

// K-48, K-38, K-41, K-44, K-46: the answers that need no state.
func TestRequestIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		format(t, mem, voterSet(t, 1))
		n, _ := lead(t, options(mem, 1))
		ctx := context.Background()
		other := "other"
		v, _ := n.Vote(ctx, "CONTROLLER", 2, &protocol.VoteRequest{ClusterId: &other})
		b, _ := n.BeginQuorumEpoch(ctx, "CONTROLLER", 1, &protocol.BeginQuorumEpochRequest{ClusterId: &other})
		e, _ := n.EndQuorumEpoch(ctx, "CONTROLLER", 1, &protocol.EndQuorumEpochRequest{ClusterId: &other})
		f, _ := n.Fetch(ctx, "CONTROLLER", 17, &protocol.FetchRequest{ClusterId: &other})
		s, _ := n.FetchSnapshot(ctx, "CONTROLLER", 1, &protocol.FetchSnapshotRequest{ClusterId: &other})
		for _, code := range []int16{v.ErrorCode, b.ErrorCode, e.ErrorCode, f.ErrorCode, s.ErrorCode} {
			if code != kerr.InconsistentClusterId.Code {
				t.Errorf("another cluster id: %d", code)
			}
		}
		v, _ = n.Vote(ctx, "CONTROLLER", 2, &protocol.VoteRequest{})
		b, _ = n.BeginQuorumEpoch(ctx, "CONTROLLER", 1, &protocol.BeginQuorumEpochRequest{})
		e, _ = n.EndQuorumEpoch(ctx, "CONTROLLER", 1, &protocol.EndQuorumEpochRequest{})
		f, _ = n.Fetch(ctx, "CONTROLLER", 17, &protocol.FetchRequest{})
		s, _ = n.FetchSnapshot(ctx, "CONTROLLER", 1, &protocol.FetchSnapshotRequest{})
		for _, code := range []int16{v.ErrorCode, b.ErrorCode, e.ErrorCode, f.ErrorCode, s.ErrorCode} {
			if code != kerr.InvalidRequest.Code {
				t.Errorf("no topic: %d", code)
			}
		}
		s, _ = n.FetchSnapshot(ctx, "CONTROLLER", 1, &protocol.FetchSnapshotRequest{Topics: []protocol.FetchSnapshotRequestTopicSnapshot{{Name: "t",
			Partitions: []protocol.FetchSnapshotRequestPartitionSnapshot{{Partition: 4}}}}})
		if p := s.Topics[0].Partitions[0]; s.ErrorCode != 0 || p.Index != 4 || p.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("snapshot of another partition: %+v", s)
		}
		d, _ := n.DescribeQuorum(ctx, 2, &protocol.DescribeQuorumRequest{Topics: []protocol.DescribeQuorumRequestTopicData{{TopicName: "t",
			Partitions: []protocol.DescribeQuorumRequestPartitionData{{PartitionIndex: 1}, {PartitionIndex: 2}}}}})
		if p := d.Topics[0].Partitions; len(p) != 2 || p[1].ErrorCode != kerr.UnknownTopicOrPartition.Code || p[1].PartitionIndex != 2 || p[1].LeaderId != 0 {
			t.Errorf("describe of another partition: %+v", d)
		}
		stop(t, n)
	})
}
