package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/protocol"
)

// OffsetForLeaderEpoch, versions 2-4: where a leader epoch ends (KIP-101, KIP-320, D-134).

func serveOffsetForLeaderEpoch(c *call, req *protocol.OffsetForLeaderEpochRequest) {
	resp := protocol.Make[protocol.OffsetForLeaderEpochResponse]()
	var ask []manager.EpochEndRequest
	var places []answerPlace
	for i := range req.Topics {
		t := &req.Topics[i]
		_, id, err := c.topicOf(t.Topic, model.UUID{}, false)
		answers := make([]protocol.OffsetForLeaderEpochResponseEpochEndOffset, len(t.Partitions))
		for j := range t.Partitions {
			q := &t.Partitions[j]
			answers[j].Default()
			answers[j].Partition = q.Partition
			if err != nil {
				answers[j].ErrorCode = kerr.Code(err)
				continue
			}
			ask = append(ask, manager.EpochEndRequest{
				Partition: model.TopicIDPartition{Topic: id, Partition: q.Partition}, Topic: t.Topic,
				CurrentLeaderEpoch: model.LeaderEpoch(q.CurrentLeaderEpoch), LeaderEpoch: model.LeaderEpoch(q.LeaderEpoch),
			})
			places = append(places, answerPlace{i, j})
		}
		resp.Topics = append(resp.Topics, protocol.OffsetForLeaderEpochResponseOffsetForLeaderTopicResult{Topic: t.Topic, Partitions: answers})
	}
	for i, r := range c.server.Replicas.OffsetForLeaderEpoch(ask) {
		a := &resp.Topics[places[i].topic].Partitions[places[i].partition]
		a.ErrorCode, a.LeaderEpoch, a.EndOffset = kerr.Code(r.Err), int32(r.LeaderEpoch), r.EndOffset
	}
	c.Reply(&resp)
}
