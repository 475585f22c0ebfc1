package kraft

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"samsa/internal/base/model"
)

// Scenes: command, ----, what happened. Rewrite with -rewrite and read the diff.
//
//	new voters=3 [kraft=1] [observers=1]   members 1..n, observers 9, 10 …; all stopped
//	disk n=1 epochs=(1:0,2:5) end=9 [snapshot=5-1] [state=(epoch,leader,vote])   what a member starts from
//	start [n=(1,2])                          all by default
//	run 500ms                              lets time pass, printing what happens
//	quietly 4s                             the same without printing
//	timeout n=1                            its election or fetch timeout ends now
//	elect n=1                              its election timeout ends now; 100 ms pass quietly
//	crash n=1 · cut a=1 b=2 [oneway] · isolate n=1 · heal
//	propose n=1 [count=2] · snapshot n=1 [clean] · resign n=1 · shutdown n=1
//	vote to=1 from=2 epoch=3 log=1/4 [pre] [voter=1] · begin to=1 leader=2 epoch=3 [endpoints] · end to=1 leader=2 epoch=3 preferred=(2,3)
//	fetch to=1 from=2 epoch=3 offset=4 last=1 [hw=3] [wait=500ms] · fetchsnapshot to=1 from=2 epoch=3 id=5-1 position=0
//	describe to=1 · status
func TestScenes(t *testing.T) {
	datadriven.Walk(t, "testdata/scenes", func(t *testing.T, path string) {
		var s scene
		datadriven.RunTest(t, path, s.do)
	})
}

type scene struct {
	w   *world
	out strings.Builder
	cut map[[2]model.NodeID]bool
}

func (s *scene) do(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	s.command(t, d)
	if s.w.judge.err != nil && d.Cmd != "new" {
		fmt.Fprintf(&s.out, "JUDGE: %v\n", s.w.judge.err)
	}
	if s.out.Len() == 0 {
		return "ok\n"
	}
	return s.out.String()
}

func (s *scene) member(t *testing.T, d *datadriven.TestData, key string) *member {
	var id int
	d.ScanArgs(t, key, &id)
	m := s.w.member(model.NodeID(id))
	if m == nil {
		d.Fatalf(t, "no member %d", id)
	}
	return m
}

func intArg(t *testing.T, d *datadriven.TestData, key string, def int64) int64 {
	if !d.HasArg(key) {
		return def
	}
	var v int64
	d.ScanArgs(t, key, &v)
	return v
}

func pair(t *testing.T, d *datadriven.TestData, key, sep string) (a, b int64) {
	var v string
	d.ScanArgs(t, key, &v)
	x, y, _ := strings.Cut(v, sep)
	a, err1 := strconv.ParseInt(x, 10, 64)
	b, err2 := strconv.ParseInt(y, 10, 64)
	if err1 != nil || err2 != nil {
		d.Fatalf(t, "%s=%s", key, v)
	}
	return a, b
}

func (s *scene) command(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "new":
		s.w = newWorld(uint64(intArg(t, d, "seed", 1)))
		s.cut = map[[2]model.NodeID]bool{}
		s.w.trace = func(f string, a ...any) {
			fmt.Fprintf(&s.out, "%6.3f ", s.w.now.Sub(epoch0).Seconds())
			fmt.Fprintf(&s.out, f+"\n", a...)
		}
		s.w.delay = func(from, to model.NodeID) (time.Duration, bool) {
			return time.Millisecond, !s.cut[[2]model.NodeID{from, to}]
		}
		version := int16(intArg(t, d, "kraft", 1))
		s.w.addVoters(int(intArg(t, d, "voters", 3)), version)
		for i := range intArg(t, d, "observers", 0) {
			o := s.w.addMember(model.NodeID(9+i), s.w.members[0].cfg.StaticVoters, 0)
			o.cfg.Controller = false
			o.cfg.Bootstrap = s.w.members[0].cfg.Bootstrap
		}
	case "disk":
		s.disk(t, d)
	case "start":
		var ids []model.NodeID
		if d.HasArg("n") {
			for _, a := range d.CmdArgs {
				for _, v := range a.Vals {
					id, _ := strconv.Atoi(v)
					ids = append(ids, model.NodeID(id))
				}
			}
		}
		for _, m := range s.w.members {
			if !m.up && (ids == nil || slices.Contains(ids, m.key.ID)) {
				s.w.start(m)
			}
		}
	case "run":
		dur, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.w.run(dur)
	case "quietly": // run without printing
		trace := s.w.trace
		s.w.trace = func(string, ...any) {}
		dur, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.w.run(dur)
		s.w.trace = trace
	case "timeout":
		m := s.member(t, d, "n")
		m.core.election, m.core.follow.deadline = s.w.now, s.w.now
		m.core.Tick(s.w.now)
		s.w.effects(m)
	case "elect": // quietly, whoever would have been first
		trace := s.w.trace
		s.w.trace = func(string, ...any) {}
		m := s.member(t, d, "n")
		m.core.election = s.w.now
		m.core.Tick(s.w.now)
		s.w.effects(m)
		s.w.run(100 * time.Millisecond)
		s.w.trace = trace
		fmt.Fprintf(&s.out, "n%d %v epoch=%d end=%d\n", m.key.ID, m.core.Role(), m.core.Epoch(), m.core.LogEnd())
	case "crash":
		s.w.crash(s.member(t, d, "n"))
	case "cut":
		a, b := model.NodeID(intArg(t, d, "a", 0)), model.NodeID(intArg(t, d, "b", 0))
		s.cut[[2]model.NodeID{a, b}] = true
		if !d.HasArg("oneway") {
			s.cut[[2]model.NodeID{b, a}] = true
		}
	case "isolate":
		n := s.member(t, d, "n").key.ID
		for _, m := range s.w.members {
			s.cut[[2]model.NodeID{n, m.key.ID}], s.cut[[2]model.NodeID{m.key.ID, n}] = true, true
		}
	case "heal":
		clear(s.cut)
	case "propose":
		s.w.propose(s.member(t, d, "n"), int(intArg(t, d, "count", 1)))
	case "snapshot":
		if !s.w.snapshot(s.member(t, d, "n"), d.HasArg("clean")) {
			fmt.Fprintln(&s.out, "no snapshot possible")
		}
	case "resign":
		m := s.member(t, d, "n")
		m.core.Resign(s.w.now, m.core.Epoch())
		s.w.effects(m)
	case "shutdown":
		m := s.member(t, d, "n")
		m.core.Shutdown(s.w.now)
		s.w.effects(m)
		fmt.Fprintf(&s.out, "complete=%t\n", m.core.ShutdownComplete())
	case "vote":
		e, end := pair(t, d, "log", "/")
		r := &VoteRequest{Voter: NoReplica, Candidate: s.key(t, d, "from"), Epoch: int32(intArg(t, d, "epoch", 0)), LastEpoch: int32(e), LastEnd: end, PreVote: d.HasArg("pre")}
		if d.HasArg("voter") {
			r.Voter = s.key(t, d, "voter")
		}
		s.ask(t, d, r)
	case "begin":
		r := &BeginQuorumEpochRequest{Voter: NoReplica, Leader: model.NodeID(intArg(t, d, "leader", 0)), Epoch: int32(intArg(t, d, "epoch", 0))}
		if d.HasArg("voter") {
			r.Voter = s.key(t, d, "voter")
		}
		if d.HasArg("endpoints") {
			r.Endpoints = testVoter(r.Leader).Endpoints
		}
		s.ask(t, d, r)
	case "end":
		r := &EndQuorumEpochRequest{Leader: model.NodeID(intArg(t, d, "leader", 0)), Epoch: int32(intArg(t, d, "epoch", 0))}
		for _, a := range d.CmdArgs {
			if a.Key == "preferred" {
				for _, v := range a.Vals {
					id, _ := strconv.Atoi(v)
					r.Preferred = append(r.Preferred, ReplicaKey{model.NodeID(id), dirOf(model.NodeID(id))})
				}
			}
		}
		s.ask(t, d, r)
		fmt.Fprintf(&s.out, "        next deadline in %v\n", s.member(t, d, "to").core.follow.deadline.Sub(s.w.now))
	case "fetch":
		r := &FetchRequest{Replica: s.key(t, d, "from"), Epoch: int32(intArg(t, d, "epoch", 0)), Offset: intArg(t, d, "offset", 0),
			LastEpoch: int32(intArg(t, d, "last", 0)), HighWatermark: intArg(t, d, "hw", -1), MaxBytes: 1 << 20}
		if d.HasArg("wait") {
			var v string
			d.ScanArgs(t, "wait", &v)
			r.MaxWait, _ = time.ParseDuration(v)
		}
		s.ask(t, d, r)
	case "fetchsnapshot":
		off, epoch := pair(t, d, "id", "-")
		s.ask(t, d, &FetchSnapshotRequest{Replica: s.key(t, d, "from"), Epoch: int32(intArg(t, d, "epoch", 0)), ID: SnapshotID{off, int32(epoch)},
			Position: intArg(t, d, "position", 0), MaxBytes: 10})
	case "describe":
		m := s.member(t, d, "to")
		s.w.ask(m, &DescribeRequest{}, func(r any) {
			o := r.(*DescribeResponse)
			fmt.Fprintf(&s.out, "error=%d leader=%d epoch=%d highWatermark=%d\n", o.Error, o.Leader, o.Epoch, o.HighWatermark)
			line := func(kind string, v ReplicaView) {
				ago := func(ms int64) string {
					if ms < 0 {
						return "never"
					}
					return fmt.Sprintf("%dms ago", s.w.now.UnixMilli()-ms)
				}
				fmt.Fprintf(&s.out, "  %s %d end=%d fetched %s, caught up %s\n", kind, v.ID, v.LogEnd, ago(v.LastFetch), ago(v.LastCaughtUp))
			}
			for _, v := range o.Voters {
				line("voter", v)
			}
			for _, v := range o.Observers {
				line("observer", v)
			}
		})
	case "status":
		for _, m := range s.w.members {
			if !m.up {
				fmt.Fprintf(&s.out, "n%d down log=%s\n", m.key.ID, logText(&m.disk))
				continue
			}
			hw, _ := m.core.HighWatermark()
			fmt.Fprintf(&s.out, "n%d %v epoch=%d leader=%d voted=%d hw=%d log=%s\n", m.key.ID, m.core.Role(), m.core.Epoch(), m.core.Leader(), m.core.Voted().ID, hw, logText(&m.disk))
		}
	default:
		d.Fatalf(t, "no command %s", d.Cmd)
	}
}

func (s *scene) key(t *testing.T, d *datadriven.TestData, arg string) ReplicaKey {
	id := model.NodeID(intArg(t, d, arg, 0))
	k := ReplicaKey{ID: id}
	if id >= 0 {
		k.Directory = dirOf(id)
	}
	if d.HasArg("nodir") {
		k.Directory = model.DirectoryID{}
	}
	return k
}

func (s *scene) ask(t *testing.T, d *datadriven.TestData, message any) {
	m := s.member(t, d, "to")
	at := s.out.Len()
	s.w.ask(m, message, func(r any) {
		fmt.Fprintf(&s.out, "%6.3f n%d: %s\n", s.w.now.Sub(epoch0).Seconds(), m.key.ID, describeMessage(r))
	})
	if s.out.Len() == at {
		fmt.Fprintln(&s.out, "parked")
	}
}

// disk makes a log of one-record batches.
func (s *scene) disk(t *testing.T, d *datadriven.TestData) {
	m := s.member(t, d, "n")
	end := intArg(t, d, "end", 0)
	epochAt := map[int64]int32{}
	for _, a := range d.CmdArgs {
		if a.Key != "epochs" {
			continue
		}
		for _, v := range a.Vals {
			e, at, _ := strings.Cut(v, ":")
			epoch, _ := strconv.Atoi(e)
			off, _ := strconv.ParseInt(at, 10, 64)
			epochAt[off] = int32(epoch)
		}
	}
	if d.HasArg("snapshot") {
		off, epoch := pair(t, d, "snapshot", "-")
		id := SnapshotID{off, int32(epoch)}
		data := fmt.Appendf(nil, "%020d-%010d", off, epoch)
		boot := s.w.snapshots[BootstrapSnapshotID]
		s.w.snapshots[id] = simSnapshot{boot.version, boot.voters, data}
		m.disk.snaps = append(m.disk.snaps, SnapshotInfo{id, int64(len(data))})
	}
	m.disk.start = intArg(t, d, "start", 0)
	epoch := int32(0)
	for off := m.disk.start; off < end; off++ {
		if e, ok := epochAt[off]; ok {
			epoch = e
		}
		m.disk.batches = append(m.disk.batches, Batch{Base: off, Last: off, Epoch: epoch, Data: fmt.Appendf(nil, "e%d", epoch)})
	}
	m.disk.synced = len(m.disk.batches)
	if d.HasArg("state") {
		for _, a := range d.CmdArgs {
			if a.Key == "state" {
				n := func(i int) int32 { v, _ := strconv.Atoi(a.Vals[i]); return int32(v) }
				st := &QuorumState{Epoch: n(0), Leader: model.NodeID(n(1)), Voted: NoReplica, Version: 1}
				if v := n(2); v >= 0 {
					st.Voted = ReplicaKey{model.NodeID(v), dirOf(model.NodeID(v))}
				}
				m.disk.state = st
			}
		}
	}
}

// logText shows where epochs begin and where the log ends: 1@0 2@5 ..9
func logText(d *disk) string {
	var b strings.Builder
	if len(d.snaps) > 0 && !d.snaps[len(d.snaps)-1].ID.IsBootstrap() {
		id := d.snaps[len(d.snaps)-1].ID
		fmt.Fprintf(&b, "[%d-%d] ", id.Offset, id.Epoch)
	}
	epoch := int32(-1)
	for _, x := range d.batches {
		if x.Epoch != epoch {
			epoch = x.Epoch
			fmt.Fprintf(&b, "%d@%d ", epoch, x.Base)
		}
	}
	fmt.Fprintf(&b, "..%d", d.end())
	return b.String()
}
