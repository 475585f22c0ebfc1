package interop

import "samsa/internal/wire/protocol"

var metadataQuestions = []question{
	{name: "all topics", key: protocol.KeyMetadata, versions: "0", body: `{}`},
	{name: "all topics", key: protocol.KeyMetadata, versions: "1-13", body: `{"Topics":null}`},
	{name: "no topics", key: protocol.KeyMetadata, versions: "1-13", body: `{"Topics":[]}`},
	{name: "one topic", key: protocol.KeyMetadata, versions: "0-13", body: `{"Topics":[{"Name":"orders"}]}`},
	{name: "a topic twice", key: protocol.KeyMetadata, versions: "4,12", body: `{"Topics":[{"Name":"orders"},{"Name":"orders"}]}`},
	{name: "an unknown topic", key: protocol.KeyMetadata, versions: "0-13", body: `{"Topics":[{"Name":"nobody"},{"Name":"orders"}]}`},
	{name: "illegal names", key: protocol.KeyMetadata, versions: "1,9,12", body: `{"Topics":[{"Name":"a b"},{"Name":""},{"Name":"."},{"Name":".."},{"Name":"repeat:250:x"}]}`},
	{name: "a name of 249", key: protocol.KeyMetadata, versions: "12", body: `{"Topics":[{"Name":"repeat:249:x"}]}`},
	{name: "authorized operations", key: protocol.KeyMetadata, versions: "8-10", body: `{"Topics":[{"Name":"orders"}],"IncludeTopicAuthorizedOperations":true,"IncludeClusterAuthorizedOperations":true}`},
	{name: "a topic's authorized operations", key: protocol.KeyMetadata, versions: "11-13", body: `{"Topics":[{"Name":"orders"}],"IncludeTopicAuthorizedOperations":true}`},
	{name: "by id too early", key: protocol.KeyMetadata, versions: "10-11", body: `{"Topics":[{"Name":null,"TopicId":"orders"},{"Name":"logs.a"}]}`},
	{name: "by name and id too early", key: protocol.KeyMetadata, versions: "10-11", body: `{"Topics":[{"Name":"orders","TopicId":"orders"}]}`},
	{name: "by id", key: protocol.KeyMetadata, versions: "12-13", body: `{"Topics":[{"Name":null,"TopicId":"orders"},{"Name":null,"TopicId":"` + unknownID + `"}]}`},
	{name: "by id, by name and by both", key: protocol.KeyMetadata, versions: "12-13", body: `{"Topics":[{"Name":null,"TopicId":"orders"},{"Name":"logs.a"},{"Name":"nobody","TopicId":"compacted"}]}`},
	{name: "an id twice", key: protocol.KeyMetadata, versions: "12", body: `{"Topics":[{"Name":null,"TopicId":"orders"},{"Name":null,"TopicId":"orders"}]}`},
	{name: "neither name nor id", key: protocol.KeyMetadata, versions: "12-13", body: `{"Topics":[{"Name":null}]}`, differs: map[string]string{`ErrorCode|Topics\[.*`: neitherNamed}},
	{name: "null for a name that cannot be null", key: protocol.KeyMetadata, versions: "9", body: "hex:02 00 01 00 00 00 00"},
	{name: "bytes behind the body", key: protocol.KeyMetadata, versions: "1", body: "hex:00000000 ffff"},
	{name: "a body cut short", key: protocol.KeyMetadata, versions: "1", body: "hex:000000"},
	{name: "a count beyond the body", key: protocol.KeyMetadata, versions: "1", body: "hex:7fffffff"},

	{name: "all", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[]}`},
	{name: "some", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[{"Name":"orders"},{"Name":"nobody"},{"Name":"a b"},{"Name":"orders"}]}`},
	{name: "a page", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[{"Name":"logs.a"},{"Name":"orders"}],"ResponsePartitionLimit":2}`},
	{name: "a limit of 0", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[{"Name":"orders"}],"ResponsePartitionLimit":0}`},
	{name: "a negative limit", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[{"Name":"orders"}],"ResponsePartitionLimit":-1}`},
	{name: "behind a cursor", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[{"Name":"logs.a"},{"Name":"orders"},{"Name":"aaa"}],"Cursor":{"TopicName":"orders","PartitionIndex":1}}`},
	{name: "a cursor of all", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[],"Cursor":{"TopicName":"orders","PartitionIndex":2}}`},
	{name: "a cursor beyond", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[{"Name":"orders"}],"Cursor":{"TopicName":"orders","PartitionIndex":9}}`},
	{name: "a cursor that is not listed", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[{"Name":"orders"}],"Cursor":{"TopicName":"logs.a","PartitionIndex":0}}`},
	{name: "a negative cursor", key: protocol.KeyDescribeTopicPartitions, versions: "0", body: `{"Topics":[{"Name":"orders"}],"Cursor":{"TopicName":"orders","PartitionIndex":-1}}`},
}
