package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/protocol"
)

// ListOffsets, versions 1-11 (D-131 to D-133)
//
//	v2   isolation level
//	v4   leader epochs
//	v5   OFFSET_NOT_AVAILABLE after an election
//	v7   -3, the record with the greatest time
//	v8   -4, the earliest local offset
//	v9   -5, the latest offset in tiered storage
//	v10  a timeout for remote look-ups
//	v11  -6, the earliest offset not uploaded yet

func serveListOffsets(c *call, req *protocol.ListOffsetsRequest) {
	resp := protocol.Make[protocol.ListOffsetsResponse]()
	twice := map[model.TopicPartition]int{}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			twice[model.TopicPartition{Topic: req.Topics[i].Name, Partition: req.Topics[i].Partitions[j].PartitionIndex}]++
		}
	}
	ask := manager.ListOffsetsRequest{
		ReplicaID: model.NodeID(req.ReplicaId), Isolation: manager.Isolation(req.IsolationLevel), APIVersion: c.Version,
	}
	var places []answerPlace
	for i := range req.Topics {
		t := &req.Topics[i]
		_, id, err := c.topicOf(t.Name, model.UUID{}, false)
		answers := make([]protocol.ListOffsetsResponseListOffsetsPartitionResponse, 0, len(t.Partitions))
		for j := range t.Partitions {
			q := &t.Partitions[j]
			key := model.TopicPartition{Topic: t.Name, Partition: q.PartitionIndex}
			a := protocol.Make[protocol.ListOffsetsResponseListOffsetsPartitionResponse]()
			a.PartitionIndex = q.PartitionIndex
			switch {
			case twice[key] == 0:
				continue // named twice and answered already
			case twice[key] > 1:
				twice[key] = 0
				a.ErrorCode = kerr.InvalidRequest.Code
			case err != nil:
				a.ErrorCode = kerr.Code(err)
			case req.IsolationLevel != 0 && req.IsolationLevel != 1:
				a.ErrorCode = kerr.InvalidRequest.Code // Kafka: UNKNOWN_SERVER_ERROR (D-222)
			default:
				ask.Partitions = append(ask.Partitions, manager.ListOffsetsPartition{
					Partition: model.TopicIDPartition{Topic: id, Partition: q.PartitionIndex}, Topic: t.Name,
					CurrentLeaderEpoch: model.LeaderEpoch(q.CurrentLeaderEpoch), Timestamp: q.Timestamp,
				})
				places = append(places, answerPlace{len(resp.Topics), len(answers)})
			}
			answers = append(answers, a)
		}
		resp.Topics = append(resp.Topics, protocol.ListOffsetsResponseListOffsetsTopicResponse{Name: t.Name, Partitions: answers})
	}
	for i, r := range c.server.Replicas.ListOffsets(ask) {
		a := &resp.Topics[places[i].topic].Partitions[places[i].partition]
		a.ErrorCode = kerr.Code(r.Err)
		if r.Err == nil {
			a.Offset, a.Timestamp, a.LeaderEpoch = r.Offset, r.Timestamp, int32(r.LeaderEpoch)
		}
	}
	if c.Version < 4 {
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				resp.Topics[i].Partitions[j].LeaderEpoch = -1
			}
		}
	}
	c.Reply(&resp)
}
