package group

import (
	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// Heartbeat serves Heartbeat (D-161).
func (c *Core) Heartbeat(now int64, req *protocol.HeartbeatRequest, reply func(*protocol.HeartbeatResponse)) {
	err := c.heartbeat(now, req)
	c.reply(func() { reply(&protocol.HeartbeatResponse{ErrorCode: kerr.Code(err)}) })
}

func (c *Core) heartbeat(now int64, req *protocol.HeartbeatRequest) error {
	g := c.groups[req.GroupId]
	if g == nil {
		return kerr.UnknownMemberId
	}
	m, err := g.check(req.MemberId, req.GroupInstanceId)
	if err != nil {
		return err
	}
	if req.GenerationId != g.generation {
		return kerr.IllegalGeneration
	}
	switch g.state {
	case PreparingRebalance:
		c.renew(now, m)
		return kerr.RebalanceInProgress
	case CompletingRebalance, Stable:
		c.renew(now, m)
		return nil
	}
	return kerr.UnknownMemberId
}

// Leave serves LeaveGroup, in the form of version 3 and later (D-162).
func (c *Core) Leave(now int64, req *protocol.LeaveGroupRequest, reply func(*protocol.LeaveGroupResponse)) {
	resp := protocol.Make[protocol.LeaveGroupResponse]()
	resp.Members = make([]protocol.LeaveGroupResponseMemberResponse, len(req.Members))
	g := c.groups[req.GroupId]
	left := 0
	for i := range req.Members {
		m, out := &req.Members[i], &resp.Members[i]
		out.MemberId, out.GroupInstanceId = m.MemberId, m.GroupInstanceId
		err := c.leave(g, m)
		if err == nil {
			left++
		}
		out.ErrorCode = kerr.Code(err)
	}
	if left > 0 {
		switch g.state {
		case Stable, CompletingRebalance:
			c.rebalance(now, g, "members have left")
		case PreparingRebalance:
			c.maybeComplete(now, g)
		}
	}
	c.reply(func() { reply(&resp) })
}

func (c *Core) leave(g *classic, who *protocol.LeaveGroupRequestMemberIdentity) error {
	if g == nil {
		return kerr.UnknownMemberId
	}
	id := who.MemberId
	if id == "" { // an administrator knows the instance id only
		if who.GroupInstanceId == nil {
			return kerr.UnknownMemberId
		}
		now, ok := g.static[*who.GroupInstanceId]
		if !ok {
			return kerr.UnknownMemberId
		}
		id = now
	} else if g.pendingJoin[id] == nil {
		if _, err := g.check(id, who.GroupInstanceId); err != nil {
			return err
		}
	}
	reason := "not provided"
	if who.Reason != nil {
		reason = *who.Reason
	}
	c.note("member leaves", "group", g.id, "member", id, "reason", reason)
	g.remove(c, id)
	return nil
}
