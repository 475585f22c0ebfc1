package group

import (
	"slices"
	"strings"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// Join serves JoinGroup (D-155..D-159, D-163). CheckJoin has passed. The Core keeps req and its bytes.
func (c *Core) Join(now int64, who Caller, req *protocol.JoinGroupRequest, reply func(*protocol.JoinGroupResponse)) {
	refuse := func(memberID string, err error) {
		r := JoinError(memberID, err)
		c.reply(func() { reply(r) })
	}
	protocols := protocolsOf(req)
	g := c.groups[req.GroupId]
	known := req.MemberId != ""
	switch {
	case c.foreign[req.GroupId] != "":
		refuse("", kerr.InconsistentGroupProtocol)
		return
	case g == nil && known:
		refuse(req.MemberId, kerr.UnknownMemberId)
		return
	case g == nil:
		if req.ProtocolType == "" || len(protocols) == 0 {
			refuse("", kerr.InconsistentGroupProtocol) // and no group comes of it
			return
		}
		g = c.add(now, req.GroupId)
		g.creating = true
		c.joinNew(now, who, req, protocols, g, c.onceCreated(now, g, reply))
		return
	case !c.accepts(g, req.MemberId):
		g.remove(c, req.MemberId)
		refuse("", kerr.GroupMaxSizeReached)
		return
	case !g.fits(req.ProtocolType, protocols):
		refuse(req.MemberId, kerr.InconsistentGroupProtocol)
		return
	}
	if known {
		c.joinKnown(now, who, req, protocols, g, reply)
		return
	}
	c.joinNew(now, who, req, protocols, g, reply)
}

// onceCreated stores a new group (generation 0, no members) and holds answers of its first join back until it is stored,
// so that an id given out is good for something.
func (c *Core) onceCreated(now int64, g *classic, reply func(*protocol.JoinGroupResponse)) func(*protocol.JoinGroupResponse) {
	var settled bool
	var failed *kerr.Error
	var early *protocol.JoinGroupResponse
	c.write(now, []Record{groupRecord(g, nil)}, func(now int64, err error) {
		settled = true
		g.creating = false
		if err != nil {
			failed = appendError(err)
			c.warn("group could not be created", "group", g.id, "err", err)
			c.dissolve(g, failed)
			if early != nil {
				c.reply(func() { reply(JoinError("", failed)) })
			}
			return
		}
		if early != nil {
			c.reply(func() { reply(early) })
		}
	})
	return func(r *protocol.JoinGroupResponse) {
		switch {
		case failed != nil:
			reply(JoinError("", failed))
		case settled:
			reply(r)
		default:
			early = r
		}
	}
}

// protocolsOf takes each name once, the first time it comes.
func protocolsOf(req *protocol.JoinGroupRequest) []protocolMetadata {
	out := make([]protocolMetadata, 0, len(req.Protocols))
	seen := make(map[string]bool, len(req.Protocols))
	for i := range req.Protocols {
		if p := &req.Protocols[i]; !seen[p.Name] {
			seen[p.Name] = true
			out = append(out, protocolMetadata{p.Name, p.Metadata})
		}
	}
	return out
}

// accepts says whether a group has room for a joiner.
func (c *Core) accepts(g *classic, id string) bool {
	limit := c.o.Settings().MaxSize
	m := g.byID[id]
	switch g.state {
	case PreparingRebalance: // those who wait count: members that have not come back may lose their place
		return m != nil && m.join != nil || g.awaiting < limit
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < limit
	}
	return true
}

// memberID makes an id, short enough for a string of the protocol.
func (c *Core) memberID(base string) string {
	const longest = 32000
	if len(base) > longest {
		base = strings.ToValidUTF8(base[:longest], "")
	}
	return base + "-" + c.o.UUID()
}

// joinNew is a join without a member id.
func (c *Core) joinNew(now int64, who Caller, req *protocol.JoinGroupRequest, ps []protocolMetadata, g *classic, reply func(*protocol.JoinGroupResponse)) {
	if req.GroupInstanceId != nil {
		id := c.memberID(*req.GroupInstanceId)
		if old, ok := g.static[*req.GroupInstanceId]; ok {
			c.note("static member is back under a new id", "group", g.id, "instance", *req.GroupInstanceId, "member", id, "was", old)
			c.replaceStatic(now, who, req, ps, g, g.byID[old], id, reply)
			return
		}
		c.addMember(now, who, req, ps, g, id, reply)
		return
	}
	id := c.memberID(who.ClientID)
	if who.Version < 4 {
		c.addMember(now, who, req, ps, g, id, reply)
		return
	}
	t := &timer{}
	t.fire = func(now int64) { c.pendingExpired(now, g, id) }
	g.pendingJoin[id] = t
	c.timers.set(t, now+int64(req.SessionTimeoutMs))
	r := JoinError(id, kerr.MemberIdRequired)
	c.reply(func() { reply(r) })
}

// joinKnown is a join with a member id into a group that exists and whose protocols it fits.
func (c *Core) joinKnown(now int64, who Caller, req *protocol.JoinGroupRequest, ps []protocolMetadata, g *classic, reply func(*protocol.JoinGroupResponse)) {
	refuse := func(err error) {
		r := JoinError(req.MemberId, err)
		c.reply(func() { reply(r) })
	}
	if g.pendingJoin[req.MemberId] != nil {
		if req.GroupInstanceId != nil { // ids are given out to dynamic members only
			refuse(kerr.UnknownMemberId)
			return
		}
		c.addMember(now, who, req, ps, g, req.MemberId, reply)
		return
	}
	m, err := g.check(req.MemberId, req.GroupInstanceId)
	if err != nil {
		refuse(err)
		return
	}
	same := m.sameProtocols(ps)
	switch {
	case g.state == PreparingRebalance,
		g.state == CompletingRebalance && !same,
		g.state == Stable && (g.isLeader(m.id) || !same):
		g.setProtocols(m, ps)
		m.rebalance, m.timeout = req.RebalanceTimeoutMs, req.SessionTimeoutMs
		g.awaitJoin(c, m, reply)
		c.rebalanceOrComplete(now, g, "member "+m.id+" joins in "+g.state.String())
	case g.state == CompletingRebalance, g.state == Stable: // it may have missed the answer to its join
		r := g.joined(m)
		c.reply(func() { reply(r) })
	default:
		refuse(kerr.UnknownMemberId)
	}
}

// joined is the answer to a member of the present generation.
func (g *classic) joined(m *member) *protocol.JoinGroupResponse {
	r := protocol.Make[protocol.JoinGroupResponse]()
	r.MemberId = m.id
	r.GenerationId = g.generation
	r.ProtocolType, r.ProtocolName = g.protocolType, g.protocol
	if g.leader != nil {
		r.Leader = *g.leader
	}
	if g.isLeader(m.id) {
		r.Members = g.roll()
	}
	return &r
}

// roll is the list of members that the leader assigns to.
func (g *classic) roll() []protocol.JoinGroupResponseJoinGroupResponseMember {
	out := make([]protocol.JoinGroupResponseJoinGroupResponseMember, len(g.members))
	for i, m := range g.members {
		out[i].MemberId, out[i].GroupInstanceId = m.id, m.instance
		if g.protocol != nil {
			out[i].Metadata = m.metadata(*g.protocol)
		}
	}
	return out
}

// addMember takes a new member in.
func (c *Core) addMember(now int64, who Caller, req *protocol.JoinGroupRequest, ps []protocolMetadata, g *classic, id string, reply func(*protocol.JoinGroupResponse)) {
	m := &member{id: id, instance: req.GroupInstanceId, clientID: who.ClientID, host: who.Host,
		rebalance: req.RebalanceTimeoutMs, timeout: req.SessionTimeoutMs, protocols: ps, join: reply, isNew: true}
	c.hookSession(g, m)
	if g.state == PreparingRebalance && g.previous == Empty {
		g.newMemberAdded = true
	}
	if t := g.pendingJoin[id]; t != nil {
		c.timers.stop(t)
		delete(g.pendingJoin, id)
	}
	g.add(m, req.ProtocolType)
	c.timers.set(&m.session, now+c.o.Settings().NewMemberJoinTimeout)
	c.rebalanceOrComplete(now, g, "member "+id+" is new")
}

func (c *Core) hookSession(g *classic, m *member) {
	m.session.fire = func(now int64) { c.sessionExpired(now, g, m) }
}

func (c *Core) hookTimers(g *classic) {
	g.joinTimer.fire = func(now int64) { c.joinTimeout(now, g) }
	g.syncTimer.fire = func(now int64) { c.syncTimeout(now, g) }
}

// renew gives a member a whole session from now.
func (c *Core) renew(now int64, m *member) { c.timers.set(&m.session, now+int64(m.timeout)) }

// rebalanceOrComplete begins a rebalance, or ends the join phase if that was what it waited for.
func (c *Core) rebalanceOrComplete(now int64, g *classic, reason string) {
	if g.state == PreparingRebalance {
		c.maybeComplete(now, g)
		return
	}
	if g.state != Dead {
		c.rebalance(now, g, reason)
	}
}

// maybeComplete ends a join phase that all members have come to; an initial one waits its time out (D-157).
func (c *Core) maybeComplete(now int64, g *classic) {
	if g.state == PreparingRebalance && g.previous != Empty && g.allJoined() {
		c.completeJoin(now, g)
	}
}

// rebalance asks all members to join again.
func (c *Core) rebalance(now int64, g *classic, reason string) {
	if g.state == CompletingRebalance {
		c.resetAssignments(now, g, kerr.RebalanceInProgress)
	}
	clear(g.pendingSync)
	c.timers.stop(&g.syncTimer)
	initial := g.state == Empty
	c.note("group prepares a rebalance", "group", g.id, "state", g.state.String(), "generation", g.generation, "reason", reason)
	g.to(PreparingRebalance, now)
	switch {
	case initial:
		g.newMemberAdded = false
		g.joinDelay = c.o.Settings().InitialDelayMs
		g.joinRemaining = max(g.rebalanceTimeout()-g.joinDelay, 0)
		c.timers.set(&g.joinTimer, now+g.joinDelay)
	case g.allJoined():
		c.completeJoin(now, g)
	default:
		c.timers.set(&g.joinTimer, now+g.rebalanceTimeout())
	}
}

// joinTimeout: the join phase has lasted long enough, unless newcomers extend an initial one (D-157).
func (c *Core) joinTimeout(now int64, g *classic) {
	if g.state != PreparingRebalance {
		return
	}
	if g.previous == Empty && g.newMemberAdded && g.joinRemaining != 0 {
		g.newMemberAdded = false
		delay := min(c.o.Settings().InitialDelayMs, g.joinRemaining)
		g.joinRemaining = max(g.joinRemaining-g.joinDelay, 0)
		g.joinDelay = delay
		c.timers.set(&g.joinTimer, now+delay)
		return
	}
	c.completeJoin(now, g)
}

// completeJoin ends the join phase: dynamic members that did not come back go, the generation begins.
func (c *Core) completeJoin(now int64, g *classic) {
	c.timers.stop(&g.joinTimer)
	for _, m := range slices.Clone(g.members) {
		if m.join == nil && m.instance == nil {
			c.note("member did not rejoin in time", "group", g.id, "member", m.id)
			g.remove(c, m.id)
		}
	}
	if len(g.members) > 0 && !g.electJoined() { // only static ones are left: their sessions decide
		c.warn("group cannot complete its rebalance: no member has rejoined", "group", g.id)
		c.timers.set(&g.joinTimer, now+max(g.rebalanceTimeout(), 1000))
		return
	}
	g.nextGeneration(now)
	if g.state == Empty {
		c.note("group is empty", "group", g.id, "generation", g.generation)
		c.write(now, []Record{groupRecord(g, nil)}, func(now int64, err error) {
			if err != nil {
				c.warn("an empty group could not be stored", "group", g.id, "err", err)
			}
		})
		return
	}
	c.note("group begins a generation", "group", g.id, "generation", g.generation, "members", len(g.members), "protocol", *g.protocol, "leader", *g.leader)
	for _, m := range g.members {
		g.answerJoin(c, m, g.joined(m))
		c.renew(now, m)
		m.isNew = false
		g.pendingSync[m.id] = true
	}
	c.timers.set(&g.syncTimer, now+g.rebalanceTimeout())
}

// sessionExpired: nothing was heard of a member for its session timeout.
func (c *Core) sessionExpired(now int64, g *classic, m *member) {
	if g.byID[m.id] != m || !m.isNew && (m.join != nil || m.sync != nil) {
		return
	}
	c.note("member has failed", "group", g.id, "member", m.id)
	g.remove(c, m.id)
	switch g.state {
	case Stable, CompletingRebalance:
		c.rebalance(now, g, "member "+m.id+" has failed")
	case PreparingRebalance:
		if g.allJoined() {
			c.completeJoin(now, g)
		}
	}
}

// pendingExpired: an id was given out and not used.
func (c *Core) pendingExpired(now int64, g *classic, id string) {
	if g.pendingJoin[id] == nil {
		return
	}
	c.note("member id was not used in time", "group", g.id, "member", id)
	g.remove(c, id)
	if g.state == PreparingRebalance && g.allJoined() {
		c.completeJoin(now, g)
	}
}
