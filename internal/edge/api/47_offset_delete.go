package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// OffsetDelete, version 0: topics by name, partitions that exist (KIP-496)

func serveOffsetDelete(c *call, req *protocol.OffsetDeleteRequest) {
	ask := *req
	ask.Topics = nil
	type refused = protocol.OffsetDeleteResponseOffsetDeleteResponseTopic
	var refusals []refused
	for i := range req.Topics {
		t := &req.Topics[i]
		live := protocol.OffsetDeleteRequestOffsetDeleteRequestTopic{Name: t.Name}
		gone := refused{Name: t.Name}
		_, id, err := c.topicOf(t.Name, model.UUID{}, false)
		for _, p := range t.Partitions {
			_, _, ok := c.img.Topics().Partition(model.TopicIDPartition{Topic: id, Partition: p.PartitionIndex})
			if err != nil || !ok {
				gone.Partitions = append(gone.Partitions, protocol.OffsetDeleteResponseOffsetDeleteResponsePartition{
					PartitionIndex: p.PartitionIndex, ErrorCode: kerr.UnknownTopicOrPartition.Code})
				continue
			}
			live.Partitions = append(live.Partitions, p)
		}
		if len(live.Partitions) > 0 {
			ask.Topics = append(ask.Topics, live)
		}
		if len(gone.Partitions) > 0 {
			refusals = append(refusals, gone)
		}
	}
	c.server.Groups.DeleteOffsets(&ask, func(resp *protocol.OffsetDeleteResponse) {
		if resp.ErrorCode == 0 {
			resp.Topics = mergeDeleted(refusals, resp.Topics)
		}
		c.Reply(resp)
	})
}

// mergeDeleted puts the answers of a topic together.
func mergeDeleted(into, more []protocol.OffsetDeleteResponseOffsetDeleteResponseTopic) []protocol.OffsetDeleteResponseOffsetDeleteResponseTopic {
	at := make(map[string]int, len(into))
	for i := range into {
		at[into[i].Name] = i
	}
	for _, t := range more {
		if i, ok := at[t.Name]; ok {
			into[i].Partitions = append(into[i].Partitions, t.Partitions...)
			continue
		}
		into = append(into, t)
	}
	return into
}
