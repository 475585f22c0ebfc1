package api

import "samsa/internal/wire/protocol"

// Heartbeat, versions 0-4
//
//	v3  group instance id (KIP-345)

func serveHeartbeat(c *call, req *protocol.HeartbeatRequest) {
	c.server.Groups.Heartbeat(req, func(resp *protocol.HeartbeatResponse) { c.Reply(resp) })
}
