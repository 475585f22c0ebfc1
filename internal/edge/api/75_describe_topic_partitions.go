package api

import (
	"cmp"
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/controller"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// DescribeTopicPartitions, version 0 (KIP-966, T-41): topics in name order, cut after a number
// of partitions; NextCursor says where the next page begins.

type describedTopic = protocol.DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic

func serveDescribeTopicPartitions(c *call, req *protocol.DescribeTopicPartitionsRequest) {
	names, all := requestedNames(c, req)
	resp := protocol.Make[protocol.DescribeTopicPartitionsResponse]()
	from := int32(0)
	if req.Cursor != nil {
		first := 0
		if req.Cursor.TopicName != "" {
			first, _ = slices.BinarySearch(names, req.Cursor.TopicName)
		}
		listed := all || first < len(names) && names[first] == req.Cursor.TopicName
		if req.Cursor.PartitionIndex < 0 || !listed {
			for _, name := range names {
				resp.Topics = append(resp.Topics, failedTopic(name, kerr.InvalidRequest))
			}
			c.Reply(&resp)
			return
		}
		if first < len(names) && names[first] == req.Cursor.TopicName {
			from = req.Cursor.PartitionIndex
		}
		names = names[first:]
	}
	left := int(max(1, min(req.ResponsePartitionLimit, c.server.Config().MaxRequestPartitionSize)))
	for _, name := range names {
		if left == 0 {
			resp.NextCursor = &protocol.DescribeTopicPartitionsResponseCursor{TopicName: name, PartitionIndex: from}
			break
		}
		topic, ok := c.img.Topics().ByName(name)
		if !ok {
			err := kerr.UnknownTopicOrPartition
			if controller.CheckTopicName(name) != nil {
				err = kerr.InvalidTopicException
			}
			t := failedTopic(name, err)
			t.TopicAuthorizedOperations = topicOperations
			resp.Topics = append(resp.Topics, t)
			from = 0
			continue
		}
		t := c.describeTopic(topic, from, left)
		left -= len(t.Partitions)
		resp.Topics = append(resp.Topics, t)
		if next := from + int32(len(t.Partitions)); next < topic.Count() {
			resp.NextCursor = &protocol.DescribeTopicPartitionsResponseCursor{TopicName: name, PartitionIndex: next}
			break
		}
		from = 0
	}
	c.Reply(&resp)
}

// requestedNames are the names asked for, sorted, each once; all topics where none is named.
func requestedNames(c *call, req *protocol.DescribeTopicPartitionsRequest) (names []string, all bool) {
	if len(req.Topics) == 0 {
		for t := range c.img.Topics().All() {
			names = append(names, t.Name)
		}
		all = true
	}
	for i := range req.Topics {
		names = append(names, req.Topics[i].Name)
	}
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names), all
}

func failedTopic(name string, err *kerr.Error) describedTopic {
	t := protocol.Make[describedTopic]()
	t.ErrorCode, t.Name, t.IsInternal = err.Code, &name, internalTopic(name)
	return t
}

// describeTopic lists at most limit partitions of a topic, from one on.
func (c *call) describeTopic(topic *image.Topic, from int32, limit int) describedTopic {
	t := protocol.Make[describedTopic]()
	t.Name, t.TopicId, t.IsInternal = &topic.Name, model.UUID(topic.ID), internalTopic(topic.Name)
	t.TopicAuthorizedOperations = topicOperations
	for i, p := range topic.Partitions() {
		if i < from {
			continue
		}
		if len(t.Partitions) == limit {
			break
		}
		leader := p.Leader
		if p.HasLeader() && c.leaderGone(p) {
			leader = model.NoNode
		}
		t.Partitions = append(t.Partitions, protocol.DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition{
			PartitionIndex: i, LeaderId: int32(leader), LeaderEpoch: int32(p.LeaderEpoch),
			ReplicaNodes: image.IDs(p.Replicas), IsrNodes: image.IDs(p.ISR), OfflineReplicas: c.offlineReplicas(p),
			EligibleLeaderReplicas: image.IDs(p.ELR), LastKnownElr: image.IDs(p.LastKnownELR),
		})
	}
	return t
}
