package api

import "samsa/internal/wire/protocol"

// LeaveGroup, versions 0-5
//
//	v3  many members, also by instance id (KIP-345)
//	v5  reason (KIP-800)

func serveLeaveGroup(c *call, req *protocol.LeaveGroupRequest) {
	one := c.Version < 3
	if one {
		req.Members = []protocol.LeaveGroupRequestMemberIdentity{{MemberId: req.MemberId}}
	}
	c.server.Groups.Leave(req, func(resp *protocol.LeaveGroupResponse) {
		if one {
			if resp.ErrorCode == 0 && len(resp.Members) == 1 {
				resp.ErrorCode = resp.Members[0].ErrorCode
			}
			resp.Members = nil
		}
		c.Reply(resp)
	})
}
