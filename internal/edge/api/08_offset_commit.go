package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// OffsetCommit, versions 2-10
//
//	v2-4  retention time of these offsets
//	v6    leader epoch
//	v7    group instance id (KIP-345)
//	v9    generation or member epoch (KIP-848); GROUP_ID_NOT_FOUND for a group that is not there
//	v10   topics by id (KIP-848)

func serveOffsetCommit(c *call, req *protocol.OffsetCommitRequest) {
	byID := c.Version >= 10
	resp := protocol.Make[protocol.OffsetCommitResponse]()
	ask := *req
	ask.Topics = make([]protocol.OffsetCommitRequestOffsetCommitRequestTopic, 0, len(req.Topics))
	var place []answerPlace // of each partition asked, in order
	for i := range req.Topics {
		t := &req.Topics[i]
		name, id, err := c.topicOf(t.Name, t.TopicId, byID)
		out := protocol.OffsetCommitResponseOffsetCommitResponseTopic{Name: t.Name, TopicId: t.TopicId,
			Partitions: make([]protocol.OffsetCommitResponseOffsetCommitResponsePartition, len(t.Partitions))}
		live := protocol.OffsetCommitRequestOffsetCommitRequestTopic{Name: name, TopicId: model.UUID(id)}
		for j := range t.Partitions {
			index := t.Partitions[j].PartitionIndex
			out.Partitions[j].PartitionIndex = index
			refusal := err
			if refusal == nil {
				if _, _, ok := c.img.Topics().Partition(model.TopicIDPartition{Topic: id, Partition: index}); !ok {
					refusal = kerr.UnknownTopicOrPartition
				}
			}
			if refusal != nil {
				out.Partitions[j].ErrorCode = kerr.Code(refusal)
				continue
			}
			live.Partitions = append(live.Partitions, t.Partitions[j])
			place = append(place, answerPlace{i, j})
		}
		resp.Topics = append(resp.Topics, out)
		if len(live.Partitions) > 0 {
			ask.Topics = append(ask.Topics, live)
		}
	}
	if len(place) == 0 {
		c.Reply(&resp)
		return
	}
	c.server.Groups.Commit(c.caller(), &ask, func(r *protocol.OffsetCommitResponse) {
		n := 0
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				resp.Topics[place[n].topic].Partitions[place[n].partition].ErrorCode = r.Topics[i].Partitions[j].ErrorCode
				n++
			}
		}
		c.Reply(&resp)
	})
}
