package group

import (
	"fmt"
	"maps"
	"slices"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// foreignTypes are the records that say a group of another kind exists.
var foreignTypes = map[int16]string{3: "consumer", 11: "share", 17: "streams"}

// Replay takes one record of the log, in order; value nil is a tombstone. producer is the batch's producer id if the
// batch is transactional, else -1; at is the record's offset. An error says that the record cannot be read; it is left out.
func (c *Core) Replay(at, producer int64, key, value []byte) error {
	kind, fields, err := protocol.RecordType(key)
	if err != nil {
		return fmt.Errorf("record at offset %d: %w", at, err)
	}
	switch kind {
	case 0, 1:
		err = c.replayOffset(at, producer, fields, value)
	case 2:
		err = c.replayGroup(fields, value)
	default:
		c.ignored[kind]++
		if t, ok := foreignTypes[kind]; ok {
			var k protocol.ConsumerGroupMetadataKey // all three are a group id alone
			if _, err = k.Read(fields, 0); err == nil {
				if value == nil {
					delete(c.foreign, k.GroupId)
				} else {
					c.foreign[k.GroupId] = t
				}
			}
		}
	}
	if err != nil {
		return fmt.Errorf("record of type %d at offset %d: %w", kind, at, err)
	}
	return nil
}

func (c *Core) replayOffset(at, producer int64, fields, value []byte) error {
	var k protocol.OffsetCommitKey
	if _, err := k.Read(fields, 0); err != nil {
		return err
	}
	id := offsetID{k.Group, k.Topic, k.Partition}
	if value == nil {
		if s := c.offsets.find(k.Group, k.Topic, k.Partition); s != nil {
			c.offsets.set(s, nil)
			c.offsets.tidy(s)
		}
		return nil
	}
	var v protocol.OffsetCommitValue
	if _, _, err := protocol.ReadVersioned(value, &v); err != nil {
		return err
	}
	o := Offset{Offset: v.Offset, LeaderEpoch: v.LeaderEpoch, Metadata: v.Metadata, CommitMs: v.CommitTimestamp, ExpireMs: v.ExpireTimestamp, TopicID: v.TopicId, at: at}
	s := c.offsets.slot(id)
	if producer >= 0 {
		c.offsets.begin(producer, s, o)
		return nil
	}
	c.offsets.set(s, &o)
	return nil
}

func (c *Core) replayGroup(fields, value []byte) error {
	var k protocol.GroupMetadataKey
	if _, err := k.Read(fields, 0); err != nil {
		return err
	}
	if value == nil {
		c.displace(k.Group)
		return nil
	}
	var v protocol.GroupMetadataValue
	if _, _, err := protocol.ReadVersioned(value, &v); err != nil {
		return err
	}
	g := newClassic(k.Group, v.CurrentStateTimestamp)
	g.generation, g.protocol, g.leader = v.Generation, v.Protocol, v.Leader
	if v.ProtocolType != "" {
		g.protocolType = &v.ProtocolType
	}
	for i := range v.Members {
		r := &v.Members[i]
		if g.byID[r.MemberId] != nil {
			continue
		}
		m := &member{id: r.MemberId, instance: r.GroupInstanceId, clientID: r.ClientId, host: r.ClientHost, rebalance: r.RebalanceTimeout, timeout: r.SessionTimeout}
		if m.rebalance == -1 {
			m.rebalance = m.timeout
		}
		m.assignment = append([]byte{}, r.Assignment...)
		name := ""
		if v.Protocol != nil {
			name = *v.Protocol
		}
		m.protocols = []protocolMetadata{{name, append([]byte{}, r.Subscription...)}}
		g.add(m, v.ProtocolType)
		g.state = Stable
	}
	if g.state == Stable && g.protocol == nil {
		none := ""
		g.protocol = &none
	}
	g.subscribed = g.subscriptions()
	c.place(g)
	return nil
}

// EndTransaction takes the marker of a producer's transaction.
func (c *Core) EndTransaction(producer int64, commit bool) { c.offsets.end(producer, commit) }

// TopicsGone removes offsets stored under ids of topics that gone reports, which were deleted while nobody coordinated (T-84).
func (c *Core) TopicsGone(now int64, gone func(id model.TopicID) bool) {
	var stale []offsetID
	for _, g := range c.offsets.groups {
		for _, t := range g.topics {
			for _, s := range t.parts {
				if v, ok := s.latest(); ok && !v.TopicID.IsZero() && gone(model.TopicID(v.TopicID)) {
					stale = append(stale, s.id())
				}
			}
		}
	}
	c.removeOffsets(now, stale, "their topics are gone")
}

// Loaded ends loading: members get a whole session (D-164).
func (c *Core) Loaded(now int64) {
	for id := range c.offsets.groups {
		if c.groups[id] == nil && c.foreign[id] == "" {
			c.place(newClassic(id, now)) // offsets only
		}
	}
	limit := c.o.Settings().MaxSize
	for _, g := range c.groups {
		c.hookTimers(g)
		for _, m := range g.members {
			c.hookSession(g, m)
			c.renew(now, m)
		}
		if len(g.members) > limit {
			c.rebalance(now, g, "more members than allowed")
		}
	}
	if len(c.groups) > 0 {
		c.wantExpiry(now)
	}
	for _, kind := range slices.Sorted(maps.Keys(c.ignored)) {
		c.note("records of groups of another kind are left alone", "type", kind, "records", c.ignored[kind])
	}
	clear(c.ignored)
}
