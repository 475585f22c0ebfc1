package group

import (
	"bytes"
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// State of a classic group (D-154).
type State uint8

// The states, from which each may be entered: PreparingRebalance from Stable, CompletingRebalance and
// Empty; CompletingRebalance and Empty from PreparingRebalance; Stable from CompletingRebalance; Dead from all.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead
)

func (s State) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}[s]
}

// consumerProtocol is the protocol type of consumers, whose subscriptions the coordinator can read.
const consumerProtocol = "consumer"

// protocolMetadata is one way of assigning that a member knows, and what it says about itself in it.
type protocolMetadata struct {
	name     string
	metadata []byte
}

// member of a classic group.
type member struct {
	id        string
	instance  *string // static members
	clientID  string
	host      string
	rebalance int32 // ms
	timeout   int32 // of the session, ms

	protocols  []protocolMetadata
	assignment []byte

	join  func(*protocol.JoinGroupResponse) // waiting for the join phase to end
	sync  func(*protocol.SyncGroupResponse) // waiting for its assignment
	isNew bool                              // its first join waits: it has no id to send heartbeats with

	session timer
}

func (m *member) metadata(name string) []byte {
	for i := range m.protocols {
		if m.protocols[i].name == name {
			return m.protocols[i].metadata
		}
	}
	return nil
}

func (m *member) sameProtocols(ps []protocolMetadata) bool {
	return slices.EqualFunc(m.protocols, ps, func(a, b protocolMetadata) bool { return a.name == b.name && bytes.Equal(a.metadata, b.metadata) })
}

// classic is a classic group, or a simple one: offsets without members.
type classic struct {
	id       string
	state    State
	previous State
	since    int64 // when it came into its state; -1 unknown (old records)

	generation   int32
	protocolType *string
	protocol     *string
	leader       *string

	members     []*member // in the order they came
	byID        map[string]*member
	static      map[string]string // instance id to member id
	pendingJoin map[string]*timer // ids given out and not yet used
	pendingSync map[string]bool
	supported   map[string]int // how many members know a protocol
	awaiting    int            // members that wait for the join phase to end

	newMemberAdded bool // the initial delay may be extended
	joinTimer      timer
	syncTimer      timer
	joinDelay      int64 // of the initial delay under way
	joinRemaining  int64

	subscribed map[string]bool // topics of all members; nil when that cannot be told
	creating   bool            // its first record is not committed yet
	tally      *Tally          // counts the group while it has its place
}

func newClassic(id string, now int64) *classic {
	return &classic{id: id, previous: Dead, since: now, byID: map[string]*member{}, static: map[string]string{},
		pendingJoin: map[string]*timer{}, pendingSync: map[string]bool{}, supported: map[string]int{}}
}

func (g *classic) to(s State, now int64) {
	g.become(s)
	g.since = now
}

// become changes the state, and the count of groups in it.
func (g *classic) become(s State) {
	if g.tally != nil {
		g.tally.States[g.state]--
		g.tally.States[s]++
	}
	g.previous, g.state = g.state, s
}

// simple: only offsets are known of it.
func (g *classic) simple() bool {
	return g.protocolType == nil && g.state == Empty && len(g.pendingJoin) == 0
}

func (g *classic) isLeader(id string) bool { return g.leader != nil && *g.leader == id }

func (g *classic) add(m *member, protocolType string) {
	if len(g.members) == 0 {
		g.protocolType = &protocolType
	}
	if m.instance != nil {
		g.static[*m.instance] = m.id
	}
	if g.leader == nil {
		g.leader = &m.id
	}
	g.members = append(g.members, m)
	g.byID[m.id] = m
	g.count(m, 1)
	if m.join != nil {
		g.awaiting++
	}
}

func (g *classic) count(m *member, n int) {
	for i := range m.protocols {
		name := m.protocols[i].name
		if g.supported[name] += n; g.supported[name] <= 0 {
			delete(g.supported, name)
		}
	}
}

// remove takes a member, or an id given out, away. Whoever waits in its name is told.
func (g *classic) remove(c *Core, id string) {
	if m := g.byID[id]; m != nil {
		g.answerJoin(c, m, JoinError("", kerr.UnknownMemberId))
		g.answerSync(c, m, SyncError(kerr.UnknownMemberId))
		delete(g.byID, id)
		g.members = slices.DeleteFunc(g.members, func(x *member) bool { return x == m })
		g.count(m, -1)
		if m.instance != nil {
			delete(g.static, *m.instance)
		}
		c.timers.stop(&m.session)
	}
	if g.isLeader(id) {
		g.leader = nil
		if len(g.members) > 0 {
			g.leader = &g.members[0].id
		}
	}
	if t := g.pendingJoin[id]; t != nil {
		c.timers.stop(t)
		delete(g.pendingJoin, id)
	}
	delete(g.pendingSync, id)
}

// answerJoin ends a member's wait for the join phase, if it waits.
func (g *classic) answerJoin(c *Core, m *member, r *protocol.JoinGroupResponse) bool {
	f := m.join
	if f == nil {
		return false
	}
	m.join = nil
	g.awaiting--
	c.reply(func() { f(r) })
	return true
}

// answerSync ends a member's wait for its assignment, if it waits.
func (g *classic) answerSync(c *Core, m *member, r *protocol.SyncGroupResponse) bool {
	f := m.sync
	if f == nil {
		return false
	}
	m.sync = nil
	c.reply(func() { f(r) })
	return true
}

// awaitJoin makes a member wait. A wait of the same member that is under way, whose client has given it up, ends.
func (g *classic) awaitJoin(c *Core, m *member, f func(*protocol.JoinGroupResponse)) {
	g.answerJoin(c, m, JoinError(m.id, kerr.RebalanceInProgress))
	m.join = f
	g.awaiting++
}

// setProtocols replaces what a member knows.
func (g *classic) setProtocols(m *member, ps []protocolMetadata) {
	g.count(m, -1)
	m.protocols = ps
	g.count(m, 1)
}

// check finds a member by id and, if given, instance id: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
func (g *classic) check(id string, instance *string) (*member, error) {
	if instance != nil {
		now, ok := g.static[*instance]
		if !ok {
			return nil, kerr.UnknownMemberId
		}
		if now != id {
			return nil, kerr.FencedInstanceId
		}
	}
	if m := g.byID[id]; m != nil {
		return m, nil
	}
	return nil, kerr.UnknownMemberId
}

// fits: a joiner with these protocols has one in common with all members (D-155).
func (g *classic) fits(protocolType string, ps []protocolMetadata) bool {
	if g.state == Empty {
		return protocolType != "" && len(ps) > 0
	}
	if g.protocolType == nil || *g.protocolType != protocolType {
		return false
	}
	return slices.ContainsFunc(ps, func(p protocolMetadata) bool { return g.supported[p.name] == len(g.members) })
}

func (g *classic) allJoined() bool { return len(g.members) == g.awaiting && len(g.pendingJoin) == 0 }

// rebalanceTimeout is the greatest of the members'.
func (g *classic) rebalanceTimeout() int64 {
	var t int32
	for _, m := range g.members {
		t = max(t, m.rebalance)
	}
	return int64(t)
}

// electJoined keeps the leader if it has rejoined, else takes the first member that has. False: none has.
func (g *classic) electJoined() bool {
	if g.leader != nil {
		if m := g.byID[*g.leader]; m != nil && m.join != nil {
			return true
		}
	}
	for _, m := range g.members {
		if m.join != nil {
			g.leader = &m.id
			return true
		}
	}
	return false
}

// vote is the protocol most members prefer among those all know (D-158); of two with as many votes
// the one voted for first.
func (g *classic) vote() string {
	votes := map[string]int{}
	var order []string
	for _, m := range g.members {
		for i := range m.protocols {
			name := m.protocols[i].name
			if g.supported[name] != len(g.members) {
				continue
			}
			if votes[name]++; votes[name] == 1 {
				order = append(order, name)
			}
			break
		}
	}
	best := ""
	for _, name := range order {
		if best == "" || votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// nextGeneration ends the join phase.
func (g *classic) nextGeneration(now int64) {
	g.generation++
	g.protocol = nil
	if len(g.members) > 0 {
		p := g.vote()
		g.protocol = &p
		g.to(CompletingRebalance, now)
	} else {
		g.to(Empty, now)
	}
	g.subscribed = g.subscriptions()
	clear(g.pendingSync)
}

// subscriptions reads what the members subscribe to, with the part that all versions of the consumer protocol begin with;
// nil when the group is not of consumers or a member's bytes cannot be read.
func (g *classic) subscriptions() map[string]bool {
	if g.protocolType == nil || *g.protocolType != consumerProtocol {
		return nil
	}
	topics := map[string]bool{}
	if len(g.members) == 0 {
		return topics
	}
	if g.protocol == nil {
		return nil
	}
	for _, m := range g.members {
		b := m.metadata(*g.protocol)
		if len(b) < 2 {
			return nil
		}
		var s protocol.ConsumerProtocolSubscription
		if _, err := s.Read(b[2:], 0); err != nil {
			return nil
		}
		for _, t := range s.Topics {
			topics[t] = true
		}
	}
	return topics
}

// subscribes: offsets of the topic are in use by a member, as far as can be told.
func (g *classic) subscribes(topic string) bool {
	if g.subscribed != nil {
		return g.subscribed[topic]
	}
	return g.protocolType != nil && *g.protocolType == consumerProtocol
}
