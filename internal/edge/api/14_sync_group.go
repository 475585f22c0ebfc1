package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/coord/group"
	"samsa/internal/wire/protocol"
)

// SyncGroup, versions 0-5
//
//	v3  group instance id (KIP-345)
//	v5  protocol type and name, without which it is refused (KIP-559)

func serveSyncGroup(c *call, req *protocol.SyncGroupRequest) {
	if c.Version >= 5 && (req.ProtocolType == nil || req.ProtocolName == nil) {
		c.Reply(group.SyncError(kerr.InconsistentGroupProtocol))
		return
	}
	c.server.Groups.Sync(req, func(resp *protocol.SyncGroupResponse) { c.Reply(resp) })
}
