package group

import (
	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// Sync serves SyncGroup (D-160). The Core keeps req and its bytes.
func (c *Core) Sync(now int64, req *protocol.SyncGroupRequest, reply func(*protocol.SyncGroupResponse)) {
	refuse := func(err error) {
		r := SyncError(err)
		c.reply(func() { reply(r) })
	}
	g := c.groups[req.GroupId]
	if g == nil || g.state == Empty {
		refuse(kerr.UnknownMemberId)
		return
	}
	m, err := g.check(req.MemberId, req.GroupInstanceId)
	switch {
	case err != nil:
		refuse(err)
		return
	case req.GenerationId != g.generation:
		refuse(kerr.IllegalGeneration)
		return
	case differs(req.ProtocolType, g.protocolType), differs(req.ProtocolName, g.protocol):
		refuse(kerr.InconsistentGroupProtocol)
		return
	}
	switch g.state {
	case PreparingRebalance:
		refuse(kerr.RebalanceInProgress)
	case CompletingRebalance:
		g.answerSync(c, m, SyncError(kerr.RebalanceInProgress)) // a wait its client has given up
		m.sync = reply
		c.synced(g, m)
		if g.isLeader(m.id) {
			c.storeAssignment(now, g, req.Assignments)
		}
	case Stable:
		c.synced(g, m)
		r := g.assigned(m)
		c.reply(func() { reply(r) })
	}
}

// differs: what the request names, if anything, is not what the group has.
func differs(asked, has *string) bool { return asked != nil && has != nil && *asked != *has }

// synced: the member has sent its sync; when all have, nobody is waited for any more.
func (c *Core) synced(g *classic, m *member) {
	delete(g.pendingSync, m.id)
	if len(g.pendingSync) == 0 {
		c.timers.stop(&g.syncTimer)
	}
}

func (g *classic) assigned(m *member) *protocol.SyncGroupResponse {
	r := protocol.Make[protocol.SyncGroupResponse]()
	r.ProtocolType, r.ProtocolName, r.Assignment = g.protocolType, g.protocol, m.assignment
	return &r
}

// storeAssignment writes what the leader has assigned; then the group is stable. Members it left out get nothing.
func (c *Core) storeAssignment(now int64, g *classic, list []protocol.SyncGroupRequestSyncGroupRequestAssignment) {
	assignment := make(map[string][]byte, len(g.members))
	for i := range list {
		assignment[list[i].MemberId] = list[i].Assignment
	}
	left := 0
	for _, m := range g.members {
		if assignment[m.id] == nil {
			assignment[m.id] = []byte{}
			left++
		}
	}
	if left > 0 {
		c.warn("the leader assigned nothing to some members", "group", g.id, "generation", g.generation, "members", left)
	}
	generation := g.generation
	c.write(now, []Record{groupRecord(g, assignment)}, func(now int64, err error) {
		if g.state != CompletingRebalance || g.generation != generation {
			return // a rebalance has begun since
		}
		if err != nil {
			e := appendError(err)
			c.warn("assignment could not be stored", "group", g.id, "generation", generation, "err", err)
			c.resetAssignments(now, g, e)
			c.rebalance(now, g, "the assignment could not be stored")
			return
		}
		for _, m := range g.members {
			m.assignment = assignment[m.id]
			if m.assignment == nil {
				m.assignment = []byte{}
			}
			if g.answerSync(c, m, g.assigned(m)) {
				c.renew(now, m)
			}
		}
		g.to(Stable, now)
		c.note("group is stable", "group", g.id, "generation", g.generation, "members", len(g.members))
	})
}

// resetAssignments takes all assignments back and tells those who wait for one why.
func (c *Core) resetAssignments(now int64, g *classic, e *kerr.Error) {
	for _, m := range g.members {
		m.assignment = []byte{}
		if g.answerSync(c, m, SyncError(e)) {
			c.renew(now, m)
		}
	}
}

// syncTimeout: members that did not ask for their assignment go (D-160).
func (c *Core) syncTimeout(now int64, g *classic) {
	if g.state != CompletingRebalance && g.state != Stable || len(g.pendingSync) == 0 {
		return
	}
	for id := range g.pendingSync {
		c.note("member did not ask for its assignment in time", "group", g.id, "member", id)
	}
	for _, m := range append([]*member(nil), g.members...) {
		if g.pendingSync[m.id] {
			g.remove(c, m.id)
		}
	}
	c.rebalance(now, g, "members did not ask for their assignment")
}
