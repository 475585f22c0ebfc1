package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/protocol"
)

// DeleteRecords, versions 0-2: raises log start offsets (D-78); -1 means the high watermark.

func serveDeleteRecords(c *call, req *protocol.DeleteRecordsRequest) {
	resp := protocol.Make[protocol.DeleteRecordsResponse]()
	ask := manager.DeleteRecordsRequest{Timeout: ms(req.TimeoutMs)}
	var places []answerPlace
	for i := range req.Topics {
		t := &req.Topics[i]
		_, id, err := c.topicOf(t.Name, model.UUID{}, false)
		answers := make([]protocol.DeleteRecordsResponseDeleteRecordsPartitionResult, len(t.Partitions))
		for j := range t.Partitions {
			answers[j].PartitionIndex, answers[j].LowWatermark = t.Partitions[j].PartitionIndex, -1
			if err != nil {
				answers[j].ErrorCode = kerr.Code(err)
				continue
			}
			ask.Partitions = append(ask.Partitions, manager.DeleteRecordsPartition{
				Partition: model.TopicIDPartition{Topic: id, Partition: t.Partitions[j].PartitionIndex}, Topic: t.Name, Offset: t.Partitions[j].Offset,
			})
			places = append(places, answerPlace{i, j})
		}
		resp.Topics = append(resp.Topics, protocol.DeleteRecordsResponseDeleteRecordsTopicResult{Name: t.Name, Partitions: answers})
	}
	c.server.Replicas.DeleteRecords(ask, func(results []manager.DeleteRecordsResult) {
		for i, r := range results {
			a := &resp.Topics[places[i].topic].Partitions[places[i].partition]
			a.LowWatermark, a.ErrorCode = r.LowWatermark, kerr.Code(r.Err)
		}
		c.Reply(&resp)
	})
}
