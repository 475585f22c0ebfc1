package group

import (
	"math"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// Commit serves OffsetCommit (D-167, D-168). The topics and partitions exist; each topic has its name and its id, and both
// are in the answer.
func (c *Core) Commit(now int64, who Caller, req *protocol.OffsetCommitRequest, reply func(*protocol.OffsetCommitResponse)) {
	m, err := c.mayCommit(who, req)
	if err != nil {
		r := CommitError(req, err)
		c.reply(func() { reply(r) })
		return
	}
	if m != nil {
		c.renew(now, m)
	}
	expire := noExpiry
	if req.RetentionTimeMs != -1 {
		expire = now + req.RetentionTimeMs
		if req.RetentionTimeMs > 0 && expire < now {
			expire = math.MaxInt64
		}
		expire = max(expire, 0)
	}
	longest := c.o.Settings().OffsetMetadataMax
	resp := protocol.Make[protocol.OffsetCommitResponse]()
	resp.Topics = make([]protocol.OffsetCommitResponseOffsetCommitResponseTopic, len(req.Topics))
	var records []Record
	var ids []offsetID
	var values []*Offset
	for i := range req.Topics {
		t, out := &req.Topics[i], &resp.Topics[i]
		out.Name, out.TopicId = t.Name, t.TopicId
		out.Partitions = make([]protocol.OffsetCommitResponseOffsetCommitResponsePartition, len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			out.Partitions[j].PartitionIndex = p.PartitionIndex
			metadata := ""
			if p.CommittedMetadata != nil {
				metadata = *p.CommittedMetadata
			}
			if utf16Len(metadata) > longest {
				out.Partitions[j].ErrorCode = kerr.OffsetMetadataTooLarge.Code
				continue
			}
			o := &Offset{Offset: p.CommittedOffset, LeaderEpoch: p.CommittedLeaderEpoch, Metadata: metadata, CommitMs: now, ExpireMs: expire, TopicID: t.TopicId, at: math.MaxInt64}
			if expire != noExpiry { // value version 1 holds neither
				o.LeaderEpoch, o.TopicID = -1, noTopic
			}
			k := offsetID{req.GroupId, t.Name, p.PartitionIndex}
			ids, values = append(ids, k), append(values, o)
			records = append(records, offsetRecord(k, o))
		}
	}
	if len(records) == 0 {
		c.reply(func() { reply(&resp) })
		return
	}
	var created *classic
	if c.groups[req.GroupId] == nil && c.foreign[req.GroupId] == "" {
		created = c.add(now, req.GroupId) // a simple group: offsets without members
	}
	p := c.write(now, records, func(now int64, err error) {
		if err != nil {
			if created != nil && created.simple() && c.offsets.groups[created.id] == nil && c.groups[created.id] == created {
				c.displace(created.id)
			}
			failed := CommitError(req, commitAppendError(err))
			c.reply(func() { reply(failed) })
			return
		}
		c.reply(func() { reply(&resp) })
	})
	for i, k := range ids {
		s := c.offsets.slot(k)
		c.offsets.change(s, c.lastID(), values[i])
		p.slots = append(p.slots, s)
	}
}

// mayCommit checks who commits; the member, if it is one of a classic group, has its session renewed.
func (c *Core) mayCommit(who Caller, req *protocol.OffsetCommitRequest) (*member, error) {
	generation := req.GenerationIdOrMemberEpoch
	g := c.groups[req.GroupId]
	if c.foreign[req.GroupId] != "" {
		if generation >= 0 || req.MemberId != "" {
			return nil, kerr.UnknownMemberId
		}
		return nil, nil
	}
	if g == nil {
		switch {
		case generation < 0:
			return nil, nil
		case who.Version >= 9:
			return nil, kerr.GroupIdNotFound
		}
		return nil, kerr.IllegalGeneration
	}
	if generation < 0 && g.state == Empty {
		return nil, nil
	}
	if generation < 0 && req.MemberId == "" && req.GroupInstanceId == nil {
		return nil, kerr.UnknownMemberId
	}
	m, err := g.check(req.MemberId, req.GroupInstanceId)
	switch {
	case err != nil:
		return nil, err
	case generation != g.generation:
		return nil, kerr.IllegalGeneration
	case g.state == CompletingRebalance:
		return nil, kerr.RebalanceInProgress
	}
	return m, nil
}

// Fetch answers one group of an OffsetFetch from what is committed (D-169). Topics have names; where the version has ids, ids too,
// and an offset committed under another id is none (T-82).
func (c *Core) Fetch(req *protocol.OffsetFetchRequestOffsetFetchRequestGroup, requireStable bool) *protocol.OffsetFetchResponseOffsetFetchResponseGroup {
	resp := protocol.Make[protocol.OffsetFetchResponseOffsetFetchResponseGroup]()
	resp.GroupId = req.GroupId
	one := func(s *slot, partition int32, asked *protocol.OffsetFetchRequestOffsetFetchRequestTopics) protocol.OffsetFetchResponseOffsetFetchResponsePartitions {
		p := protocol.Make[protocol.OffsetFetchResponseOffsetFetchResponsePartitions]()
		none := ""
		p.PartitionIndex, p.CommittedOffset, p.CommittedLeaderEpoch, p.Metadata = partition, -1, -1, &none
		switch {
		case s == nil:
		case requireStable && s.open > 0:
			p.ErrorCode = kerr.UnstableOffsetCommit.Code
		case !s.has:
		case asked != nil && !asked.TopicId.IsZero() && !s.committed.TopicID.IsZero() && asked.TopicId != s.committed.TopicID:
		default:
			v := &s.committed
			metadata := v.Metadata
			p.CommittedOffset, p.CommittedLeaderEpoch, p.Metadata = v.Offset, v.LeaderEpoch, &metadata
		}
		return p
	}
	if req.Topics != nil {
		resp.Topics = make([]protocol.OffsetFetchResponseOffsetFetchResponseTopics, len(req.Topics))
		for i := range req.Topics {
			t, out := &req.Topics[i], &resp.Topics[i]
			out.Name, out.TopicId = t.Name, t.TopicId
			out.Partitions = make([]protocol.OffsetFetchResponseOffsetFetchResponsePartitions, len(t.PartitionIndexes))
			for j, partition := range t.PartitionIndexes {
				out.Partitions[j] = one(c.offsets.find(req.GroupId, t.Name, partition), partition, t)
			}
		}
		return &resp
	}
	g := c.offsets.groups[req.GroupId]
	if g == nil {
		return &resp
	}
	for _, k := range c.offsets.visible(g, requireStable) {
		n := len(resp.Topics)
		if n == 0 || resp.Topics[n-1].Name != k.topic {
			resp.Topics = append(resp.Topics, protocol.OffsetFetchResponseOffsetFetchResponseTopics{Name: k.topic})
			n++
		}
		out := &resp.Topics[n-1]
		out.Partitions = append(out.Partitions, one(g.topics[k.topic].parts[k.partition], k.partition, nil))
	}
	return &resp
}
