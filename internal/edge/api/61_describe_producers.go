package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// DescribeProducers, version 0 (KIP-664): the producers a partition's leader remembers.

func serveDescribeProducers(c *call, req *protocol.DescribeProducersRequest) {
	resp := protocol.Make[protocol.DescribeProducersResponse]()
	for i := range req.Topics {
		t := &req.Topics[i]
		_, id, err := c.topicOf(t.Name, model.UUID{}, false)
		answers := make([]protocol.DescribeProducersResponsePartitionResponse, len(t.PartitionIndexes))
		for j, index := range t.PartitionIndexes {
			answers[j].Default()
			answers[j].PartitionIndex = index
			if err != nil {
				answers[j].ErrorCode, answers[j].ErrorMessage = codeAndText(err)
				continue
			}
			producers, err := c.server.Replicas.DescribeProducers(model.TopicIDPartition{Topic: id, Partition: index})
			answers[j].ErrorCode, answers[j].ErrorMessage = codeAndText(err)
			if _, bare := err.(*kerr.Error); bare {
				answers[j].ErrorMessage = nil
			}
			for _, p := range producers {
				answers[j].ActiveProducers = append(answers[j].ActiveProducers, protocol.DescribeProducersResponseProducerState{
					ProducerId: p.ProducerID, ProducerEpoch: p.ProducerEpoch, LastSequence: p.LastSequence,
					LastTimestamp: p.LastTimestamp, CoordinatorEpoch: p.CoordinatorEpoch, CurrentTxnStartOffset: p.TxnStartOffset,
				})
			}
		}
		resp.Topics = append(resp.Topics, protocol.DescribeProducersResponseTopicResponse{Name: t.Name, Partitions: answers})
	}
	c.Reply(&resp)
}
