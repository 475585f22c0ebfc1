package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// ListGroups, versions 0-5: the groups this broker coordinates
//
//	v4  states, and a filter on them (KIP-518)
//	v5  types, and a filter on them (KIP-848)

func serveListGroups(c *call, req *protocol.ListGroupsRequest) {
	c.server.Groups.List(req.StatesFilter, req.TypesFilter, func(groups []protocol.ListGroupsResponseListedGroup, err error) {
		resp := protocol.Make[protocol.ListGroupsResponse]()
		resp.Groups, resp.ErrorCode = groups, kerr.Code(err)
		c.Reply(&resp)
	})
}
