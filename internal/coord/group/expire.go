package group

import (
	"cmp"
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// visible are a group's offsets that others can see, in order; when only stable ones count those in doubt are among them.
func (o *offsets) visible(g *groupOffsets, stable bool) []offsetID {
	var out []offsetID
	for _, t := range g.topics {
		for _, s := range t.parts {
			if s.has || stable && s.open > 0 {
				out = append(out, s.id())
			}
		}
	}
	slices.SortFunc(out, compareIDs)
	return out
}

// DeleteOffsets serves OffsetDelete for topics that exist (D-166).
func (c *Core) DeleteOffsets(now int64, req *protocol.OffsetDeleteRequest, reply func(*protocol.OffsetDeleteResponse)) {
	resp := protocol.Make[protocol.OffsetDeleteResponse]()
	g := c.groups[req.GroupId]
	foreign := c.foreign[req.GroupId] != ""
	switch {
	case foreign:
	case g == nil || g.creating:
		resp.ErrorCode = kerr.GroupIdNotFound.Code
	case g.state != Empty && (g.protocolType == nil || *g.protocolType != consumerProtocol):
		resp.ErrorCode = kerr.NonEmptyGroup.Code
	}
	if resp.ErrorCode != 0 {
		c.reply(func() { reply(&resp) })
		return
	}
	var w writing
	resp.Topics = make([]protocol.OffsetDeleteResponseOffsetDeleteResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, out := &req.Topics[i], &resp.Topics[i]
		out.Name = t.Name
		subscribed := foreign || g.subscribes(t.Name)
		for _, p := range t.Partitions {
			r := protocol.OffsetDeleteResponseOffsetDeleteResponsePartition{PartitionIndex: p.PartitionIndex}
			if subscribed {
				r.ErrorCode = kerr.GroupSubscribedToTopic.Code
			} else if s := c.offsets.find(req.GroupId, t.Name, p.PartitionIndex); s != nil {
				if _, ok := s.latest(); ok || s.open > 0 {
					w.tombstone(s.id())
				}
			}
			out.Partitions = append(out.Partitions, r)
		}
	}
	c.flush(now, &w, func(_ int64, err error) {
		if err != nil {
			resp.ErrorCode, resp.Topics = appendError(err).Code, nil
		}
		c.reply(func() { reply(&resp) })
	})
}

// TopicsDeleted removes the offsets of topics that are gone: those stored under the deleted id or under none, not those
// of a newer topic of that name (D-172, T-83).
func (c *Core) TopicsDeleted(now int64, topics []DeletedTopic) {
	var stale []offsetID
	for _, g := range c.offsets.groups {
		for _, gone := range topics {
			if t := g.topics[gone.Name]; t != nil {
				for _, s := range t.parts {
					if c.offsets.of(s, model.UUID(gone.ID)) {
						stale = append(stale, s.id())
					}
				}
			}
		}
	}
	c.removeOffsets(now, stale, "topics deleted")
}

// of says whether an offset, or one in an open transaction, was committed for a topic id, or before there were ids.
func (o *offsets) of(s *slot, id model.UUID) bool {
	if v, ok := s.latest(); ok {
		return v.TopicID.IsZero() || v.TopicID == id
	}
	for _, t := range o.txns {
		if v, ok := t.values[s]; ok && (v.TopicID.IsZero() || v.TopicID == id) {
			return true
		}
	}
	return false
}

// removeOffsets writes tombstones on the shard's own account.
func (c *Core) removeOffsets(now int64, ids []offsetID, reason string) {
	if len(ids) == 0 {
		return
	}
	var w writing
	w.tombstones(ids)
	c.note("removing offsets", "reason", reason, "records", len(ids))
	c.flush(now, &w, func(_ int64, err error) {
		if err != nil {
			c.warn("offsets could not be removed", "reason", reason, "err", err)
		}
	})
}

// expire removes offsets nobody has used for their retention, and groups without any (D-171).
func (c *Core) expire(now int64) {
	s := c.o.Settings()
	var stale []offsetID
	var empty []*classic
	for id, g := range c.groups {
		if g.creating || c.foreign[id] != "" {
			continue
		}
		var none bool
		stale, none = c.expireGroup(now, g, s.OffsetsRetentionMs, stale)
		if none && g.state == Empty && len(g.pendingJoin) == 0 && !c.offsets.open(id) {
			empty = append(empty, g)
		}
	}
	slices.SortFunc(empty, func(a, b *classic) int { return cmp.Compare(a.id, b.id) })
	var w writing
	w.tombstones(stale)
	for _, g := range empty {
		w.group(tombstone(groupKey(g.id)))
		c.drop(g)
	}
	if len(w.batches) > 0 {
		c.note("removing what has expired", "offsets", len(stale), "groups", len(empty))
		c.flush(now, &w, func(now int64, err error) {
			if err == nil {
				return
			}
			c.warn("what has expired could not be removed", "err", err)
			for _, g := range empty {
				c.restore(now, g)
			}
		})
	}
	if len(c.groups) > 0 {
		c.timers.set(&c.expiry, now+s.RetentionCheckMs)
	}
}

// expireGroup adds the expired offsets of one group to stale. all: none is left.
func (c *Core) expireGroup(now int64, g *classic, retention int64, stale []offsetID) (_ []offsetID, all bool) {
	o := c.offsets.groups[g.id]
	if o == nil {
		return stale, true
	}
	var base func(v *Offset) int64 // from when retention counts
	switch {
	case g.protocolType == nil && g.state == Empty: // offsets only
		base = func(v *Offset) int64 { return v.CommitMs }
	case g.state == Empty:
		base = func(v *Offset) int64 {
			if g.since >= 0 {
				return g.since
			}
			return v.CommitMs
		}
	case g.state == Stable && g.subscribed != nil:
		base = func(v *Offset) int64 { return v.CommitMs }
	default:
		return stale, false
	}
	all = true
	for _, t := range o.topics {
		subscribed := g.subscribes(t.name)
		for _, s := range t.parts {
			v, ok := s.latest()
			if !ok && s.open == 0 {
				continue
			}
			expired := !subscribed && ok && s.open == 0 && len(s.changes) == 0
			if expired && v.ExpireMs != noExpiry {
				expired = now >= v.ExpireMs
			} else if expired {
				expired = now-base(&v) >= retention
			}
			if !expired {
				all = false
				continue
			}
			stale = append(stale, s.id())
		}
	}
	return stale, all
}
