package api

import (
	"sync/atomic"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// OffsetFetch, versions 1-10
//
//	v2   null topics are all; an error for the group
//	v5   leader epoch
//	v7   require stable (KIP-447)
//	v8   many groups
//	v9   member id and epoch (KIP-848)
//	v10  topics by id

type (
	fetchGroup      = protocol.OffsetFetchRequestOffsetFetchRequestGroup
	fetchTopics     = protocol.OffsetFetchRequestOffsetFetchRequestTopics
	fetchedGroup    = protocol.OffsetFetchResponseOffsetFetchResponseGroup
	fetchedTopics   = protocol.OffsetFetchResponseOffsetFetchResponseTopics
	fetchedOffset   = protocol.OffsetFetchResponseOffsetFetchResponsePartitions
	fetchedOffsetV7 = protocol.OffsetFetchResponseOffsetFetchResponsePartition
)

func serveOffsetFetch(c *call, req *protocol.OffsetFetchRequest) {
	if c.Version < 8 {
		serveOffsetFetchOne(c, req)
		return
	}
	resp := protocol.Make[protocol.OffsetFetchResponse]()
	resp.Groups = make([]fetchedGroup, len(req.Groups))
	if len(req.Groups) == 0 {
		c.Reply(&resp)
		return
	}
	var left atomic.Int64
	left.Store(int64(len(req.Groups)))
	for i := range req.Groups {
		c.fetchOffsets(&req.Groups[i], req.RequireStable, func(g *fetchedGroup) {
			resp.Groups[i] = *g
			if left.Add(-1) == 0 {
				c.Reply(&resp)
			}
		})
	}
}

// fetchOffsets asks for one group. Topics that are not there never reach it.
func (c *call) fetchOffsets(g *fetchGroup, stable bool, reply func(*fetchedGroup)) {
	byID := c.Version >= 10
	ask := *g
	var unknown []fetchedTopics
	if byID && g.Topics != nil {
		ask.Topics = make([]fetchTopics, 0, len(g.Topics))
		for i := range g.Topics {
			t := &g.Topics[i]
			name, _, err := c.topicOf("", t.TopicId, true)
			if err != nil {
				unknown = append(unknown, noOffsets(t, err))
				continue
			}
			t.Name = name
			ask.Topics = append(ask.Topics, *t)
		}
	}
	c.server.Groups.Fetch(&ask, stable, func(r *fetchedGroup) {
		if r.ErrorCode != 0 {
			reply(r)
			return
		}
		if byID && g.Topics == nil { // ids are those of now; what has none any more cannot be named
			live := r.Topics[:0]
			for _, t := range r.Topics {
				if topic, ok := c.img.Topics().ByName(t.Name); ok {
					t.TopicId = model.UUID(topic.ID)
					live = append(live, t)
				}
			}
			r.Topics = live
		}
		r.Topics = append(r.Topics, unknown...)
		reply(r)
	})
}

func noOffsets(t *fetchTopics, err error) fetchedTopics {
	out := fetchedTopics{Name: t.Name, TopicId: t.TopicId}
	for _, p := range t.PartitionIndexes {
		none := protocol.Make[fetchedOffset]()
		none.PartitionIndex, none.CommittedOffset, none.ErrorCode = p, -1, kerr.Code(err)
		out.Partitions = append(out.Partitions, none)
	}
	return out
}

// serveOffsetFetchOne is the form of versions 1-7, for one group.
func serveOffsetFetchOne(c *call, req *protocol.OffsetFetchRequest) {
	g := &fetchGroup{GroupId: req.GroupId, MemberEpoch: -1}
	if req.Topics != nil {
		g.Topics = make([]fetchTopics, len(req.Topics))
		for i := range req.Topics {
			g.Topics[i].Name, g.Topics[i].PartitionIndexes = req.Topics[i].Name, req.Topics[i].PartitionIndexes
		}
	}
	c.fetchOffsets(g, req.RequireStable, func(r *fetchedGroup) {
		resp := protocol.Make[protocol.OffsetFetchResponse]()
		topics := r.Topics
		switch {
		case r.ErrorCode == 0:
		case c.Version >= 2:
			resp.ErrorCode = r.ErrorCode
		default: // v1 has no place for it but the partitions
			topics = nil
			for i := range g.Topics {
				topics = append(topics, noOffsets(&g.Topics[i], kerr.ForCode(r.ErrorCode)))
			}
		}
		for i := range topics {
			t := protocol.OffsetFetchResponseOffsetFetchResponseTopic{Name: topics[i].Name}
			for _, p := range topics[i].Partitions {
				t.Partitions = append(t.Partitions, fetchedOffsetV7{PartitionIndex: p.PartitionIndex, CommittedOffset: p.CommittedOffset,
					CommittedLeaderEpoch: p.CommittedLeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode})
			}
			resp.Topics = append(resp.Topics, t)
		}
		c.Reply(&resp)
	})
}
