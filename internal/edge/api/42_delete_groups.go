package api

import (
	"slices"

	"samsa/internal/wire/protocol"
)

// DeleteGroups, versions 0-3
//
//	v3  a message beside an error

func serveDeleteGroups(c *call, req *protocol.DeleteGroupsRequest) {
	var names []string
	seen := make(map[string]bool, len(req.GroupsNames))
	for _, n := range req.GroupsNames {
		if !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	c.server.Groups.DeleteGroups(names, func(results []protocol.DeleteGroupsResponseDeletableGroupResult) {
		resp := protocol.Make[protocol.DeleteGroupsResponse]()
		resp.Results = slices.Clip(results)
		c.Reply(&resp)
	})
}
