package api

import (
	"context"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/protocol"
)

// DescribeLogDirs, versions 1-5 (J-156 to J-160)
//
//	v4  total and usable bytes of the file system
//	v5  whether the directory is cordoned

func serveDescribeLogDirs(c *call, req *protocol.DescribeLogDirsRequest) {
	want := wantedPartitions(req)
	c.server.async(func(ctx context.Context) { // asks the file systems
		resp := protocol.Make[protocol.DescribeLogDirsResponse]()
		for _, d := range c.server.Replicas.DescribeLogDirs(ctx, want) {
			r := protocol.Make[protocol.DescribeLogDirsResponseDescribeLogDirsResult]()
			r.LogDir, r.ErrorCode, r.IsCordoned = d.Path, kerr.Code(d.Err), d.Cordoned
			r.TotalBytes, r.UsableBytes = d.TotalBytes, d.UsableBytes
			r.Topics = byTopic(d.Replicas)
			resp.Results = append(resp.Results, r)
		}
		c.Reply(&resp)
	})
}

// wantedPartitions is what the request names, nil for everything.
func wantedPartitions(req *protocol.DescribeLogDirsRequest) func(topic string, partition int32) bool {
	if req.Topics == nil {
		return nil
	}
	wanted := map[model.TopicPartition]bool{}
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			wanted[model.TopicPartition{Topic: req.Topics[i].Topic, Partition: p}] = true
		}
	}
	return func(topic string, partition int32) bool {
		return wanted[model.TopicPartition{Topic: topic, Partition: partition}]
	}
}

func byTopic(replicas []manager.ReplicaDescription) []protocol.DescribeLogDirsResponseDescribeLogDirsTopic {
	var topics []protocol.DescribeLogDirsResponseDescribeLogDirsTopic
	place := map[string]int{}
	for _, r := range replicas {
		i, ok := place[r.Topic]
		if !ok {
			i = len(topics)
			place[r.Topic] = i
			topics = append(topics, protocol.DescribeLogDirsResponseDescribeLogDirsTopic{Name: r.Topic})
		}
		topics[i].Partitions = append(topics[i].Partitions, protocol.DescribeLogDirsResponseDescribeLogDirsPartition{
			PartitionIndex: r.Partition.Partition, PartitionSize: r.Size, OffsetLag: r.OffsetLag, IsFutureKey: r.Future,
		})
	}
	return topics
}
