package api

import "samsa/internal/wire/protocol"

// DescribeGroups, versions 0-6: classic groups only
//
//	v3  authorized operations (KIP-430)
//	v4  group instance id (KIP-345)
//	v6  GROUP_ID_NOT_FOUND and a message, where older versions show a dead group (KIP-1043)

func serveDescribeGroups(c *call, req *protocol.DescribeGroupsRequest) {
	c.server.Groups.Describe(req.Groups, c.Version, func(groups []protocol.DescribeGroupsResponseDescribedGroup) {
		resp := protocol.Make[protocol.DescribeGroupsResponse]()
		resp.Groups = groups
		if req.IncludeAuthorizedOperations {
			for i := range groups {
				if groups[i].ErrorCode == 0 {
					groups[i].AuthorizedOperations = groupOperations
				}
			}
		}
		c.Reply(&resp)
	})
}
