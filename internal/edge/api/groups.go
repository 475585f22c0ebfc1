package api

import (
	"samsa/internal/coord/group"
	"samsa/internal/wire/protocol"
)

// groupEntries are the keys of groups, offsets and producer ids.
func groupEntries() []entry {
	return []entry{
		{protocol.KeyOffsetCommit, 2, 10, brokerRole, decoding(serveOffsetCommit)},
		{protocol.KeyOffsetFetch, 1, 10, brokerRole, decoding(serveOffsetFetch)},
		{protocol.KeyFindCoordinator, 0, 6, brokerRole, decoding(serveFindCoordinator)},
		{protocol.KeyJoinGroup, 0, 9, brokerRole, decoding(serveJoinGroup)},
		{protocol.KeyHeartbeat, 0, 4, brokerRole, decoding(serveHeartbeat)},
		{protocol.KeyLeaveGroup, 0, 5, brokerRole, decoding(serveLeaveGroup)},
		{protocol.KeySyncGroup, 0, 5, brokerRole, decoding(serveSyncGroup)},
		{protocol.KeyDescribeGroups, 0, 6, brokerRole, decoding(serveDescribeGroups)},
		{protocol.KeyListGroups, 0, 5, brokerRole, decoding(serveListGroups)},
		{protocol.KeyInitProducerId, 0, 5, brokerRole, decoding(serveInitProducerId)},
		{protocol.KeyDeleteGroups, 0, 3, brokerRole, decoding(serveDeleteGroups)},
		{protocol.KeyOffsetDelete, 0, 0, brokerRole, decoding(serveOffsetDelete)},
	}
}

// caller is who sends a group request. The host is written as Kafka writes addresses.
func (c *call) caller() group.Caller {
	return group.Caller{Version: c.Version, ClientID: c.ClientID, Host: "/" + c.peerHost()}
}
