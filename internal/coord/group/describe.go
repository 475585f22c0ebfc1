package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// Describe shows one group (D-165). version is that of DescribeGroups.
func (c *Core) Describe(id string, version int16) protocol.DescribeGroupsResponseDescribedGroup {
	d := protocol.Make[protocol.DescribeGroupsResponseDescribedGroup]()
	d.GroupId = id
	g := c.groups[id]
	if g == nil || g.creating || c.foreign[id] != "" {
		d.GroupState = Dead.String()
		if version >= 6 {
			d.ErrorCode = kerr.GroupIdNotFound.Code
			text := fmt.Sprintf("Group %s not found.", id)
			if c.foreign[id] != "" {
				text = fmt.Sprintf("Group %s is not a classic group.", id)
			}
			d.ErrorMessage = &text
		}
		return d
	}
	d.GroupState = g.state.String()
	if g.protocolType != nil {
		d.ProtocolType = *g.protocolType
	}
	stable := g.state == Stable && g.protocol != nil
	if stable {
		d.ProtocolData = *g.protocol
	}
	for _, m := range g.members {
		out := protocol.Make[protocol.DescribeGroupsResponseDescribedGroupMember]()
		out.MemberId, out.GroupInstanceId, out.ClientId, out.ClientHost, out.MemberAssignment = m.id, m.instance, m.clientID, m.host, m.assignment
		if stable {
			out.MemberMetadata = m.metadata(*g.protocol)
		}
		d.Members = append(d.Members, out)
	}
	return d
}

// List shows the groups in one of states and of one of types, each in any case; an empty list is no filter (D-165).
// Groups of other kinds are not served yet and not listed.
func (c *Core) List(states, types []string) []protocol.ListGroupsResponseListedGroup {
	if len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return strings.EqualFold(strings.TrimSpace(t), "classic") }) {
		return nil
	}
	var out []protocol.ListGroupsResponseListedGroup
	for _, g := range c.groups {
		if g.creating || c.foreign[g.id] != "" {
			continue
		}
		if len(states) > 0 && !slices.ContainsFunc(states, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), g.state.String()) }) {
			continue
		}
		l := protocol.ListGroupsResponseListedGroup{GroupId: g.id, GroupState: g.state.String(), GroupType: "classic"}
		if g.protocolType != nil {
			l.ProtocolType = *g.protocolType
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b protocol.ListGroupsResponseListedGroup) int { return cmp.Compare(a.GroupId, b.GroupId) })
	return out
}

// DeleteGroups removes groups that have no members, with tombstones for their offsets and themselves (D-166).
func (c *Core) DeleteGroups(now int64, ids []string, reply func([]protocol.DeleteGroupsResponseDeletableGroupResult)) {
	results := make([]protocol.DeleteGroupsResponseDeletableGroupResult, len(ids))
	var w writing
	removed := map[int]*classic{}
	for i, id := range ids {
		results[i].GroupId = id
		g := c.groups[id]
		switch {
		case c.foreign[id] != "":
			results[i].ErrorCode = kerr.NonEmptyGroup.Code
		case g == nil || g.creating:
			results[i].ErrorCode = kerr.GroupIdNotFound.Code
		case g.state != Empty:
			results[i].ErrorCode = kerr.NonEmptyGroup.Code
		default:
			for _, k := range c.offsets.keys(id) {
				w.tombstone(k)
			}
			w.group(tombstone(groupKey(id)))
			c.drop(g)
			removed[i] = g
		}
	}
	if len(removed) == 0 {
		c.reply(func() { reply(results) })
		return
	}
	c.flush(now, &w, func(now int64, err error) {
		for _, i := range slices.Sorted(maps.Keys(removed)) {
			g := removed[i]
			if err != nil {
				results[i].ErrorCode = appendError(err).Code
				c.restore(now, g)
				continue
			}
			c.note("group deleted", "group", g.id)
		}
		c.reply(func() { reply(results) })
	})
}

// drop takes an empty group out of sight; restore brings it back when its tombstone could not be written.
func (c *Core) drop(g *classic) {
	c.stopTimers(g)
	clear(g.pendingJoin)
	c.displace(g.id)
	g.become(Dead)
}

func (c *Core) restore(now int64, g *classic) {
	if c.unloaded || c.groups[g.id] != nil {
		return
	}
	g.become(Empty)
	c.place(g)
	c.wantExpiry(now)
}
