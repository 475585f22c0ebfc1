package api

import "samsa/internal/wire/protocol"

// JoinGroup, versions 0-9
//
//	v1  rebalance timeout; before, it is the session timeout
//	v4  MEMBER_ID_REQUIRED (KIP-394)
//	v5  group instance id (KIP-345)
//	v7  protocol type; a protocol name that may be null (KIP-559)
//	v8  reason (KIP-800)
//	v9  skip assignment (KIP-814)

func serveJoinGroup(c *call, req *protocol.JoinGroupRequest) {
	if c.Version == 0 {
		req.RebalanceTimeoutMs = req.SessionTimeoutMs
	}
	c.server.Groups.Join(c.caller(), req, func(resp *protocol.JoinGroupResponse) {
		if c.Version < 7 && resp.ProtocolName == nil {
			resp.ProtocolName = new(string)
		}
		c.Reply(resp)
	})
}
