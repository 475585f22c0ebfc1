package partition

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

type brokerState struct {
	epoch          int64
	alive, mayJoin bool
}

type brokerMap map[model.NodeID]brokerState

func (b brokerMap) Broker(id model.NodeID) (int64, bool, bool) {
	s, ok := b[id]
	if !ok {
		return -1, false, false
	}
	return s.epoch, s.alive, s.mayJoin
}

// scene is the vocabulary of testdata: one replica, the brokers it knows, a clock.
type scene struct {
	core     *Core
	brokers  brokerMap
	now      int64
	proposal *Proposal
}

func ids(s string) []model.NodeID {
	var out []model.NodeID
	for _, f := range strings.Split(s, ",") {
		if f != "" {
			n, _ := strconv.Atoi(f)
			out = append(out, model.NodeID(n))
		}
	}
	return out
}

func (s *scene) state() string {
	c := s.core
	var b strings.Builder
	role := "follower"
	if c.leader {
		role = "leader"
	}
	fmt.Fprintf(&b, "%s epoch=%d/%d isr=%v hw=%d leo=%d", role, c.reg.LeaderEpoch, c.reg.Epoch, c.reg.ISR, c.high, c.logEnd)
	for _, f := range c.followers {
		fmt.Fprintf(&b, " %d@%d", f.ID, f.LogEnd)
	}
	if c.pending != nil {
		b.WriteString(" pending")
	}
	return b.String() + "\n"
}

func (s *scene) propose(p *Proposal) string {
	if p == nil {
		return ""
	}
	s.proposal = p
	return fmt.Sprintf("propose isr=%v at %d/%d\n", p.ISR, p.LeaderEpoch, p.Epoch)
}

func (s *scene) run(t *testing.T, d *datadriven.TestData) string {
	num := func(key string, def int64) int64 {
		if !d.HasArg(key) {
			return def
		}
		var v int64
		d.ScanArgs(t, key, &v)
		return v
	}
	list := func(key string) []model.NodeID {
		if !d.HasArg(key) {
			return nil
		}
		var v string
		d.ScanArgs(t, key, &v)
		return ids(v)
	}
	var out strings.Builder
	flag := func(on bool, word string) {
		if on {
			out.WriteString(word + "\n")
		}
	}
	b := s.brokers
	switch d.Cmd {
	case "new":
		s.now, s.proposal = 1_000_000, nil
		s.brokers = brokerMap{1: {1, true, true}, 2: {2, true, true}, 3: {3, true, true}, 4: {4, true, true}}
		s.core = New(1, Settings{MinISR: int(num("min-isr", 1)), MaxLagMs: 30000}, num("start", 0), num("hw", 0), num("end", 0))
		return "ok\n"
	case "apply":
		ch := s.core.Apply(s.now, Registration{
			Leader: model.NodeID(num("leader", 1)), LeaderEpoch: model.LeaderEpoch(num("epoch", 0)),
			Epoch: model.PartitionEpoch(num("at", 0)), Replicas: list("replicas"), ISR: list("isr"),
			Recovering: d.HasArg("recovering"),
		}, b)
		flag(ch.Stale, "stale")
		flag(ch.Elected, "elected")
		flag(ch.Resigned, "resigned")
		flag(ch.NewEpoch, "new epoch")
		flag(ch.AssignEpoch, "assign epoch")
		flag(ch.HighMoved, "hw moved")
	case "append":
		if err := s.core.MayAppend(int16(num("acks", 1))); err != nil {
			out.WriteString(err.Error() + "\n")
			break
		}
		flag(s.core.Appended(s.now, s.core.logEnd+num("n", 1), b), "hw moved")
	case "fetch":
		id, epoch := model.NodeID(num("by", 2)), num("broker-epoch", num("by", 2))
		if err := s.core.CheckFollower(id, epoch, d.HasArg("leader-epoch"), b); err != nil {
			out.WriteString(err.Error() + "\n")
			break
		}
		f := s.core.FollowerFetched(s.now, FollowerFetch{ID: id, Offset: num("offset", 0), LogStart: num("start", 0), BrokerEpoch: epoch, LeaderEnd: s.core.logEnd}, b)
		flag(f.HighMoved, "hw moved")
		flag(f.LowMoved, "low watermark moved")
		out.WriteString(s.propose(f.Propose))
	case "shrink":
		out.WriteString(s.propose(s.core.Shrink(s.now)))
	case "answer":
		a := Answer{LeaderEpoch: model.LeaderEpoch(num("epoch", int64(s.core.reg.LeaderEpoch))), Epoch: model.PartitionEpoch(num("at", 0)), ISR: list("isr")}
		if d.HasArg("err") {
			a.Err = kerr.ForCode(int16(num("err", 0)))
		}
		r := s.core.ProposalAnswered(s.now, s.proposal, a, b)
		flag(r.Ignored, "ignored")
		flag(r.Retry, "retry")
		flag(r.Committed, "committed")
		flag(r.HighMoved, "hw moved")
	case "acked":
		done, err := s.core.Acked(num("offset", 0))
		return fmt.Sprintf("done=%v err=%v\n", done, err)
	case "low":
		return fmt.Sprintf("%d\n", s.core.LowWatermark(b))
	case "later":
		s.now += num("ms", 0)
		return ""
	case "broker":
		id := model.NodeID(num("id", 2))
		s.brokers[id] = brokerState{num("epoch", int64(id)), !d.HasArg("fenced"), !d.HasArg("fenced") && !d.HasArg("leaving")}
		flag(s.core.Recheck(s.now, b), "hw moved")
	case "follow":
		s.core.FollowerAppended(num("leader-hw", 0), s.core.logStart, num("end", s.core.logEnd))
	case "reader":
		racks := map[model.NodeID]string{1: "a", 2: "b", 3: "b", 4: "c"}
		var rack string
		d.ScanArgs(t, "rack", &rack)
		return fmt.Sprintf("%d\n", s.core.PreferredReader(rack, num("offset", 0), func(id model.NodeID) string { return racks[id] }, b))
	case "check-epoch":
		return fmt.Sprintf("%v\n", s.core.CheckEpoch(model.LeaderEpoch(num("epoch", 0))))
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return out.String() + s.state()
}

// Scenes: D-13, D-27, D-28, D-31, D-78, D-121, D-128, D-133, D-135, D-143..D-149, J-191.
func TestScenes(t *testing.T) {
	datadriven.Walk(t, "testdata/scenes", func(t *testing.T, path string) {
		s := &scene{}
		datadriven.RunTest(t, path, s.run)
	})
}
