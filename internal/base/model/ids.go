package model

import "strconv"

// NodeID is the node.id of a broker or controller; -1 is nobody.
type NodeID int32

// NoNode stands where Kafka writes -1 for "no leader" or "no node".
const NoNode NodeID = -1

// LeaderEpoch counts the leaders of a partition (or of the metadata quorum); -1 is unknown.
type LeaderEpoch int32

// NoEpoch stands where Kafka writes -1 for "no leader epoch known".
const NoEpoch LeaderEpoch = -1

// PartitionEpoch counts every change of a partition's registration (KIP-497).
type PartitionEpoch int32

// TopicIDPartition is the key of everything inside samsa: names are labels for people.
type TopicIDPartition struct {
	Topic     TopicID
	Partition int32
}

// TopicPartition is a partition by name, for file names, logs and old requests.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is topic-partition, which is also the name of the directory on disk.
func (p TopicPartition) String() string {
	return p.Topic + "-" + strconv.FormatInt(int64(p.Partition), 10)
}

func (p TopicIDPartition) String() string {
	return p.Topic.String() + "-" + strconv.FormatInt(int64(p.Partition), 10)
}
