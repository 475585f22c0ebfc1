package group

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

func ignoreDeleted([]protocol.DeleteGroupsResponseDeletableGroupResult) {}

// call is one request of a simulated client.
type call struct {
	what    string
	answers int
}

// TestGroupsSimulated lets clients of one group join, sync, beat, commit, leave and die at random while appends fail,
// are held back, and the coordinator moves. After every step the group's books balance; in the end every request
// has had exactly one answer, and no two members ever held an assignment of one generation that another had not been given by its leader.
func TestGroupsSimulated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.quiet = true
		var calls []*call
		ask := func(what string) *call {
			c := &call{what: what}
			calls = append(calls, c)
			return c
		}
		type client struct {
			id         string
			instance   *string
			generation int32
		}
		clients := make([]client, 4)
		static := "i3"
		clients[3].instance = &static
		assigned := map[int32]map[string]string{} // generation to member to what it was given
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			i := rapid.IntRange(0, 3).Draw(t, "client")
			c := &clients[i]
			switch rapid.IntRange(0, 13).Draw(t, "what") {
			case 0, 1, 2:
				k := ask("join")
				version := int16(rapid.SampledFrom([]int{3, 8, 9}).Draw(t, "version"))
				protocols := []string{"range:t"}
				if rapid.Bool().Draw(t, "more") {
					protocols = append(protocols, "sticky:t")
				}
				req := &protocol.JoinGroupRequest{GroupId: "g", MemberId: c.id, GroupInstanceId: c.instance, ProtocolType: "consumer", SessionTimeoutMs: 10000, RebalanceTimeoutMs: 20000}
				for _, p := range protocols {
					req.Protocols = append(req.Protocols, protocol.JoinGroupRequestJoinGroupRequestProtocol{Name: p[:len(p)-2], Metadata: subscription("t")})
				}
				w.core.Join(w.now, Caller{version, "c", "/h"}, req, func(r *protocol.JoinGroupResponse) {
					k.answers++
					switch kerr.ForCode(r.ErrorCode) {
					case nil, kerr.MemberIdRequired:
						c.id, c.generation = r.MemberId, r.GenerationId
					case kerr.UnknownMemberId, kerr.FencedInstanceId:
						c.id = ""
					}
				})
			case 3, 4, 5:
				k := ask("sync")
				req := &protocol.SyncGroupRequest{GroupId: "g", MemberId: c.id, GroupInstanceId: c.instance, GenerationId: c.generation}
				if g := w.core.groups["g"]; g != nil {
					for _, m := range g.members {
						req.Assignments = append(req.Assignments, protocol.SyncGroupRequestSyncGroupRequestAssignment{MemberId: m.id, Assignment: fmt.Append(nil, req.GenerationId, m.id, m.instance != nil)})
					}
				}
				generation := c.generation
				w.core.Sync(w.now, req, func(r *protocol.SyncGroupResponse) {
					k.answers++
					if r.ErrorCode == kerr.UnknownMemberId.Code {
						c.id = ""
					}
					if r.ErrorCode == 0 && len(r.Assignment) > 0 {
						if assigned[generation] == nil {
							assigned[generation] = map[string]string{}
						}
						who := req.MemberId
						if c.instance != nil {
							who = *c.instance
						}
						if had := assigned[generation][who]; had != "" && had != string(r.Assignment) {
							t.Fatalf("generation %d gave %s first %q, then %q", generation, who, had, r.Assignment)
						}
						assigned[generation][who] = string(r.Assignment)
					}
				})
			case 6:
				k := ask("heartbeat")
				w.core.Heartbeat(w.now, &protocol.HeartbeatRequest{GroupId: "g", MemberId: c.id, GroupInstanceId: c.instance, GenerationId: c.generation}, func(*protocol.HeartbeatResponse) { k.answers++ })
			case 7:
				k := ask("leave")
				w.core.Leave(w.now, &protocol.LeaveGroupRequest{GroupId: "g", Members: []protocol.LeaveGroupRequestMemberIdentity{{MemberId: c.id, GroupInstanceId: c.instance}}}, func(*protocol.LeaveGroupResponse) { k.answers++ })
				c.id = ""
			case 8:
				k := ask("commit")
				req := &protocol.OffsetCommitRequest{GroupId: "g", MemberId: c.id, GroupInstanceId: c.instance, GenerationIdOrMemberEpoch: c.generation, RetentionTimeMs: -1,
					Topics: []protocol.OffsetCommitRequestOffsetCommitRequestTopic{{Name: "t", Partitions: []protocol.OffsetCommitRequestOffsetCommitRequestPartition{{CommittedOffset: 1}}}}}
				w.core.Commit(w.now, Caller{Version: 9}, req, func(*protocol.OffsetCommitResponse) { k.answers++ })
			case 9:
				w.pass(rapid.Int64Range(0, 12000).Draw(t, "ms"))
			case 10:
				w.hold = rapid.Bool().Draw(t, "hold")
			case 11:
				w.release(rapid.SampledFrom([]error{nil, nil, kerr.NotLeaderOrFollower}).Draw(t, "outcome"))
			case 12:
				w.refuse = rapid.SampledFrom([]error{nil, nil, kerr.NotEnoughReplicas}).Draw(t, "refuse")
			case 13:
				if rapid.IntRange(0, 4).Draw(t, "move") == 0 {
					w.reload()
				} else {
					k := ask("delete")
					w.core.DeleteGroups(w.now, []string{"g"}, func([]protocol.DeleteGroupsResponseDeletableGroupResult) { k.answers++ })
				}
			}
			w.settle()
			checkGroups(t, w.core)
			checkOffsets(t, w.core)
			if g := w.core.groups["g"]; g == nil || g.generation == 0 {
				clear(assigned)
			}
			for _, k := range calls {
				if k.answers > 1 {
					t.Fatalf("%s was answered %d times", k.what, k.answers)
				}
			}
		}
		w.core.Unload(w.now)
		w.settle()
		for _, k := range calls {
			if k.answers != 1 {
				t.Fatalf("%s was answered %d times", k.what, k.answers)
			}
		}
	})
}

// checkGroups: the books of every group balance.
func checkGroups(t interface{ Fatalf(string, ...any) }, c *Core) {
	var tally Tally
	for _, g := range c.groups {
		tally.States[g.state]++
	}
	tally.Offsets = c.offsets.n
	if tally != c.Tally() {
		t.Fatalf("counted %v, there are %v", c.Tally(), tally)
	}
	for id, g := range c.groups {
		if id != g.id || g.state == Dead {
			t.Fatalf("group %q stands under %q in state %v", g.id, id, g.state)
		}
		awaiting, supported := 0, map[string]int{}
		for _, m := range g.members {
			if g.byID[m.id] != m {
				t.Fatalf("member %q is not found by its id", m.id)
			}
			if m.join != nil {
				awaiting++
			}
			for _, p := range m.protocols {
				supported[p.name]++
			}
			if m.instance != nil && g.static[*m.instance] != m.id {
				t.Fatalf("static member %q is known as %q", m.id, g.static[*m.instance])
			}
			if !m.session.on() && m.join == nil && m.sync == nil {
				t.Fatalf("member %q waits for nothing and has no session", m.id)
			}
			if m.sync != nil && g.state != CompletingRebalance {
				t.Fatalf("member %q waits for an assignment in %v", m.id, g.state)
			}
		}
		if awaiting != g.awaiting || len(g.byID) != len(g.members) {
			t.Fatalf("awaiting %d of %d, counted %d of %d", awaiting, len(g.members), g.awaiting, len(g.byID))
		}
		for name, n := range g.supported {
			if supported[name] != n {
				t.Fatalf("protocol %q is known by %d, counted %d", name, supported[name], n)
			}
		}
		switch {
		case g.state == Empty && len(g.members) > 0, (g.state == Stable || g.state == CompletingRebalance) && len(g.members) == 0:
			t.Fatalf("%v with %d members", g.state, len(g.members))
		case g.leader != nil && g.byID[*g.leader] == nil:
			t.Fatalf("leader %q is no member", *g.leader)
		case g.state == PreparingRebalance && !g.joinTimer.on():
			t.Fatalf("a join phase without an end")
		case len(g.pendingSync) > 0 && !g.syncTimer.on():
			t.Fatalf("syncs are waited for without an end")
		case (g.state == Stable || g.state == CompletingRebalance) && (g.protocol == nil || g.supported[*g.protocol] != len(g.members)):
			t.Fatalf("protocol %v is not known by all members", g.protocol)
		}
		if g.state == CompletingRebalance {
			for _, m := range g.members {
				if m.sync == nil && !g.pendingSync[m.id] {
					t.Fatalf("nobody waits for the sync of %q", m.id)
				}
			}
		}
		if slices.ContainsFunc(g.members, func(m *member) bool { return g.pendingJoin[m.id] != nil }) {
			t.Fatalf("a member's id is still given out")
		}
	}
}
