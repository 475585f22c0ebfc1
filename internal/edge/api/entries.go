package api

import (
	"slices"

	"samsa/internal/wire/protocol"
)

// entries are the keys this node serves with the versions Apache Kafka 4.4 serves (api-versions-4.4).
// A key both listeners have has the same range on both.
func entries() []entry {
	return slices.Concat(brokerEntries(), groupEntries(), forwardedEntries(), controllerEntries())
}

// brokerEntries are the keys a broker serves itself.
func brokerEntries() []entry {
	return []entry{
		{protocol.KeyProduce, 0, 13, brokerRole, serveProduce},
		{protocol.KeyFetch, 4, 18, brokerRole, decoding(serveFetch)},
		{protocol.KeyListOffsets, 1, 11, brokerRole, decoding(serveListOffsets)},
		{protocol.KeyMetadata, 0, 13, brokerRole, decoding(serveMetadata)},
		{protocol.KeyApiVersions, 0, 5, bothRoles, decoding(serveApiVersions)},
		{protocol.KeyDeleteRecords, 0, 2, brokerRole, decoding(serveDeleteRecords)},
		{protocol.KeyOffsetForLeaderEpoch, 2, 4, brokerRole, decoding(serveOffsetForLeaderEpoch)},
		{protocol.KeyDescribeConfigs, 1, 4, bothRoles, decoding(serveDescribeConfigs)},
		{protocol.KeyAlterConfigs, 0, 2, brokerRole, decoding(serveAlterConfigs)},
		{protocol.KeyDescribeLogDirs, 1, 5, brokerRole, decoding(serveDescribeLogDirs)},
		{protocol.KeyIncrementalAlterConfigs, 0, 1, brokerRole, decoding(serveIncrementalAlterConfigs)},
		{protocol.KeyDescribeCluster, 0, 2, bothRoles, decoding(serveDescribeCluster)},
		{protocol.KeyDescribeProducers, 0, 0, brokerRole, decoding(serveDescribeProducers)},
		{protocol.KeyListConfigResources, 0, 1, brokerRole, decoding(serveListConfigResources)},
		{protocol.KeyDescribeTopicPartitions, 0, 0, brokerRole, decoding(serveDescribeTopicPartitions)},
	}
}
