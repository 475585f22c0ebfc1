package group

import (
	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// replaceStatic gives the place of a static member to its next incarnation (D-163). The old id is fenced at once.
func (c *Core) replaceStatic(now int64, who Caller, req *protocol.JoinGroupRequest, ps []protocolMetadata, g *classic, m *member, id string, reply func(*protocol.JoinGroupResponse)) {
	was := *m
	wasLeader := ""
	if g.leader != nil {
		wasLeader = *g.leader
	}
	g.answerJoin(c, m, JoinError(m.id, kerr.FencedInstanceId))
	g.answerSync(c, m, SyncError(kerr.FencedInstanceId))
	g.rename(m, id)
	m.isNew = false
	g.setProtocols(m, ps)
	m.rebalance, m.timeout = req.RebalanceTimeoutMs, req.SessionTimeoutMs
	c.timers.set(&m.session, now+int64(was.timeout))
	g.awaitJoin(c, m, reply)

	switch {
	case g.state == Stable && g.protocol != nil && g.vote() == *g.protocol:
		c.storeStatic(now, who.Version, g, m, &was, wasLeader)
	case g.state == Stable:
		c.rebalance(now, g, "static member "+id+" changes the protocol of the group")
	case g.state == CompletingRebalance: // the leader may be assigning to the old id
		c.rebalance(now, g, "static member "+id+" is back")
	default:
		c.maybeComplete(now, g)
	}
}

// rename changes a member's id everywhere.
func (g *classic) rename(m *member, id string) {
	old := m.id
	delete(g.byID, old)
	if g.pendingSync[old] {
		delete(g.pendingSync, old)
		g.pendingSync[id] = true
	}
	wasLeader := g.isLeader(old)
	m.id = id
	g.byID[id] = m
	g.static[*m.instance] = id
	if wasLeader {
		g.leader = &m.id
	}
}

// storeStatic writes the group with the new id; the member then goes on in the present generation.
func (c *Core) storeStatic(now int64, version int16, g *classic, m, was *member, wasLeader string) {
	id := m.id
	c.write(now, []Record{groupRecord(g, nil)}, func(now int64, err error) {
		if g.byID[id] != m {
			return
		}
		if err != nil {
			c.warn("a static member's new id could not be stored", "group", g.id, "member", id, "err", err)
			r := JoinError("", appendError(err))
			r.GenerationId, r.ProtocolType, r.ProtocolName, r.Leader = g.generation, g.protocolType, g.protocol, wasLeader
			g.answerJoin(c, m, r)
			g.rename(m, was.id)
			g.setProtocols(m, was.protocols)
			m.rebalance, m.timeout = was.rebalance, was.timeout
			c.renew(now, m)
			c.maybeComplete(now, g)
			return
		}
		if m.join == nil || g.state != Stable {
			return // a rebalance has begun and answers it
		}
		r := g.joined(m)
		if version >= 9 {
			r.SkipAssignment = g.isLeader(id)
		} else { // under the old leader's id it does not assign
			r.Leader, r.Members = wasLeader, nil
		}
		g.answerJoin(c, m, r)
		c.renew(now, m)
	})
}
