package interop

import (
	"fmt"

	"samsa/internal/wire/protocol"
)

// versionQuestions are about keys and versions themselves, on both listeners.
func versionQuestions() (all []question) {
	// What samsa does not serve yet it does not advertise.
	later := map[string]string{`ApiKeys\[\d+\]\.(ApiKey|MinVersion|MaxVersion)`: laterKeys}
	for _, at := range []listener{broker, controller} {
		add := func(name, versions, body string, differs map[string]string) {
			all = append(all, question{name: name + []string{" on the broker", " on the controller"}[at], key: protocol.KeyApiVersions, versions: versions, body: body, at: at, differs: differs})
		}
		add("plain", "0-2", `{}`, later)
		add("plain", "3-5", `{"ClientSoftwareName":"samsa-test","ClientSoftwareVersion":"1.0"}`, later)
		for _, name := range []string{"", "-a", "a b", "a-", "ä"} {
			add(fmt.Sprintf("software %q", name), "3-5", fmt.Sprintf(`{"ClientSoftwareName":%q,"ClientSoftwareVersion":"1.0"}`, name), nil)
			add(fmt.Sprintf("software version %q", name), "3", fmt.Sprintf(`{"ClientSoftwareName":"a","ClientSoftwareVersion":%q}`, name), nil)
		}
		add("too new", "6,100", "hex:", nil)
		add("a body that is none", "3", "hex:ff", nil)
		add("a body that is none", "0", "hex:ff", later)
		add("cluster and node", "5", `{"ClientSoftwareName":"a","ClientSoftwareVersion":"1","ClusterId":"SamsaTestCluster000000","NodeId":1}`, later)
		if at == broker {
			add("another cluster", "5", `{"ClientSoftwareName":"a","ClientSoftwareVersion":"1","ClusterId":"another","NodeId":1}`, nil)
			add("another node", "5", `{"ClientSoftwareName":"a","ClientSoftwareVersion":"1","ClusterId":"SamsaTestCluster000000","NodeId":2}`, nil)
		} else {
			add("another cluster", "5", `{"ClientSoftwareName":"a","ClientSoftwareVersion":"1","ClusterId":"another","NodeId":1}`, later)
		}
		add("a cluster alone", "5", `{"ClientSoftwareName":"a","ClientSoftwareVersion":"1","ClusterId":"SamsaTestCluster000000"}`, nil)
		add("a node alone", "5", `{"ClientSoftwareName":"a","ClientSoftwareVersion":"1","NodeId":1}`, nil)
	}
	// Keys and versions that nobody serves end the connection.
	for _, q := range []question{
		{name: "too new", key: protocol.KeyMetadata, versions: "14", body: "hex:00"},
		{name: "a version below 0", key: protocol.KeyMetadata, versions: "-1", body: "hex:00"},
		{name: "too old", key: protocol.KeyListOffsets, versions: "0", body: "hex:ffffffff00000000"},
		{name: "a key that is gone", key: 4, versions: "0", body: "hex:00"},
		{name: "a key nobody knows", key: 95, versions: "0", body: "hex:00"},
		{name: "a key beyond", key: 1000, versions: "0", body: "hex:00"},
		{name: "a key below 0", key: -1, versions: "0", body: "hex:00"},
		{name: "a voter's on the broker", key: protocol.KeyVote, versions: "0", body: `{"Topics":[]}`},
		{name: "produce on the controller", key: protocol.KeyProduce, versions: "9", at: controller, body: byName("orders", 0, "$plain")},
		{name: "telemetry without a receiver", key: protocol.KeyGetTelemetrySubscriptions, versions: "0", body: `{"ClientInstanceId":"AAAAAAAAAAAAAAAAAAAAAA"}`, differs: map[string]string{`.*`: telemetry}},
	} {
		all = append(all, q)
	}
	return all
}

var clusterQuestions = []question{
	{name: "brokers", key: protocol.KeyDescribeCluster, versions: "0-2", body: `{"EndpointType":1}`},
	{name: "controllers from a broker", key: protocol.KeyDescribeCluster, versions: "1-2", body: `{"EndpointType":2}`},
	{name: "endpoints of type 9", key: protocol.KeyDescribeCluster, versions: "1-2", body: `{"EndpointType":9}`},
	{name: "authorized operations", key: protocol.KeyDescribeCluster, versions: "0-2", body: `{"IncludeClusterAuthorizedOperations":true}`},
	{name: "fenced brokers", key: protocol.KeyDescribeCluster, versions: "2", body: `{"IncludeFencedBrokers":true}`},
	{name: "controllers", key: protocol.KeyDescribeCluster, versions: "1-2", at: controller, body: `{"EndpointType":2}`},
	{name: "brokers from a controller", key: protocol.KeyDescribeCluster, versions: "0-2", at: controller, body: `{"EndpointType":1}`},
	{name: "type 9 from a controller", key: protocol.KeyDescribeCluster, versions: "1", at: controller, body: `{"EndpointType":9}`},
	{name: "authorized operations on the controller", key: protocol.KeyDescribeCluster, versions: "1", at: controller, body: `{"EndpointType":2,"IncludeClusterAuthorizedOperations":true}`},

	{name: "all", key: protocol.KeyDescribeLogDirs, versions: "1-5", body: `{"Topics":null}`},
	{name: "some", key: protocol.KeyDescribeLogDirs, versions: "1-5", body: `{"Topics":[{"Topic":"orders","Partitions":[0,1,99]},{"Topic":"nobody","Partitions":[0]}]}`},
	{name: "none", key: protocol.KeyDescribeLogDirs, versions: "1-5", body: `{"Topics":[]}`},

	{name: "the quorum", key: protocol.KeyDescribeQuorum, versions: "0-2", body: `{"Topics":[{"TopicName":"__cluster_metadata","Partitions":[{"PartitionIndex":0}]}]}`},
	{name: "the quorum", key: protocol.KeyDescribeQuorum, versions: "0-2", at: controller, body: `{"Topics":[{"TopicName":"__cluster_metadata","Partitions":[{"PartitionIndex":0}]}]}`},
	{name: "another topic", key: protocol.KeyDescribeQuorum, versions: "0-1", body: `{"Topics":[{"TopicName":"orders","Partitions":[{"PartitionIndex":0}]}]}`},
	{name: "another topic", key: protocol.KeyDescribeQuorum, versions: "2", body: `{"Topics":[{"TopicName":"orders","Partitions":[{"PartitionIndex":0}]}]}`, differs: map[string]string{`.*ErrorMessage`: ownWords}},
	{name: "another partition", key: protocol.KeyDescribeQuorum, versions: "0-1", body: `{"Topics":[{"TopicName":"__cluster_metadata","Partitions":[{"PartitionIndex":1}]}]}`},
	{name: "another partition", key: protocol.KeyDescribeQuorum, versions: "2", body: `{"Topics":[{"TopicName":"__cluster_metadata","Partitions":[{"PartitionIndex":1}]}]}`, differs: map[string]string{`.*ErrorMessage`: ownWords}},
	{name: "two topics", key: protocol.KeyDescribeQuorum, versions: "2", body: `{"Topics":[{"TopicName":"__cluster_metadata","Partitions":[{"PartitionIndex":0}]},{"TopicName":"orders","Partitions":[{"PartitionIndex":0}]}]}`, differs: map[string]string{`.*ErrorMessage`: ownWords}},
	{name: "nothing", key: protocol.KeyDescribeQuorum, versions: "2", body: `{"Topics":[]}`},

	{name: "a feature nobody has", key: protocol.KeyUpdateFeatures, versions: "0-2", body: `{"FeatureUpdates":[{"Feature":"no.such","MaxVersionLevel":1}]}`},
	{name: "a level nobody has", key: protocol.KeyUpdateFeatures, versions: "0-2", body: `{"FeatureUpdates":[{"Feature":"metadata.version","MaxVersionLevel":999}]}`},
	{name: "a negative level", key: protocol.KeyUpdateFeatures, versions: "0-2", body: `{"FeatureUpdates":[{"Feature":"metadata.version","MaxVersionLevel":-1}]}`},
	{name: "a downgrade that is not asked for as one", key: protocol.KeyUpdateFeatures, versions: "0-2", body: `{"FeatureUpdates":[{"Feature":"group.version","MaxVersionLevel":0}]}`},
	{name: "the level there is", key: protocol.KeyUpdateFeatures, versions: "0-2", body: `{"FeatureUpdates":[{"Feature":"group.version","MaxVersionLevel":1}]}`},
	{name: "a kind of update that is none", key: protocol.KeyUpdateFeatures, versions: "1-2", body: `{"FeatureUpdates":[{"Feature":"group.version","MaxVersionLevel":1,"UpgradeType":9}]}`},
	{name: "nothing", key: protocol.KeyUpdateFeatures, versions: "0-2", body: `{"FeatureUpdates":[]}`},

	{name: "preferred", key: protocol.KeyElectLeaders, versions: "0", body: `{"TopicPartitions":[{"Topic":"orders","Partitions":[0,99]},{"Topic":"nobody","Partitions":[0]}]}`, differs: map[string]string{`.*ErrorMessage`: ownWords}},
	{name: "preferred", key: protocol.KeyElectLeaders, versions: "1-2", body: `{"ElectionType":0,"TopicPartitions":[{"Topic":"orders","Partitions":[0,99]},{"Topic":"nobody","Partitions":[0]}]}`, differs: map[string]string{`.*ErrorMessage`: ownWords}},
	{name: "unclean", key: protocol.KeyElectLeaders, versions: "1-2", body: `{"ElectionType":1,"TopicPartitions":[{"Topic":"orders","Partitions":[0]}]}`, differs: map[string]string{`.*ErrorMessage`: ownWords}},
	{name: "an election that is none", key: protocol.KeyElectLeaders, versions: "1-2", body: `{"ElectionType":7,"TopicPartitions":[{"Topic":"orders","Partitions":[0]}]}`},
	{name: "everywhere", key: protocol.KeyElectLeaders, versions: "0-2", body: `{"TopicPartitions":null}`},
	{name: "a broker nobody has", key: protocol.KeyUnregisterBroker, versions: "0", body: `{"BrokerId":9}`},
	{name: "a broker below 0", key: protocol.KeyUnregisterBroker, versions: "0", body: `{"BrokerId":-1}`},
	{name: "the broker itself, which lives", key: protocol.KeyUnregisterBroker, versions: "0", body: `{"BrokerId":9}`},

	{name: "without a transaction", key: protocol.KeyInitProducerId, versions: "0-5", body: `{"TransactionalId":null,"TransactionTimeoutMs":1000}`},
	{name: "an epoch without an id", key: protocol.KeyInitProducerId, versions: "3-5", body: `{"TransactionalId":null,"TransactionTimeoutMs":1000,"ProducerEpoch":3}`},
	{name: "an id without an epoch", key: protocol.KeyInitProducerId, versions: "3-5", body: `{"TransactionalId":null,"TransactionTimeoutMs":1000,"ProducerId":3}`},
	{name: "an id and an epoch", key: protocol.KeyInitProducerId, versions: "3-5", body: `{"TransactionalId":null,"TransactionTimeoutMs":1000,"ProducerId":7,"ProducerEpoch":1}`},
	{name: "an empty transactional id", key: protocol.KeyInitProducerId, versions: "0,4", body: `{"TransactionalId":"","TransactionTimeoutMs":1000}`},
}
