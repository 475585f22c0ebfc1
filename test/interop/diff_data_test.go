package interop

import (
	"fmt"

	"samsa/internal/wire/protocol"
)

// byName is a produce request of one batch by topic name, byID one by topic id.
func byName(topic string, partition int, batch string) string {
	return fmt.Sprintf(`{"Acks":-1,"TimeoutMs":5000,"TopicData":[{"Name":%q,"PartitionData":[{"Index":%d,"Records":%q}]}]}`, topic, partition, batch)
}

func byID(topic string, partition int, batch string) string {
	return fmt.Sprintf(`{"Acks":-1,"TimeoutMs":5000,"TopicData":[{"TopicId":%q,"PartitionData":[{"Index":%d,"Records":%q}]}]}`, topic, partition, batch)
}

var produceQuestions = func() (all []question) {
	add := func(name, versions, body string) {
		all = append(all, question{name: name, key: protocol.KeyProduce, versions: versions, body: body})
	}
	add("two records", "3-12", byName("orders", 0, "$plain"))
	add("two records", "13", byID("orders", 0, "$plain"))
	add("gzip", "3,9", byName("orders", 0, "$gzip"))
	add("zstd", "3-7,9", byName("orders", 0, "$zstd"))
	add("a log append time topic", "3,9,12", byName("stamped", 0, "$plain"))
	for _, v := range []string{"0", "1", "2", "14"} {
		add("a version that is not served", v, "hex:0001000003e800000000")
	}
	add("an unknown topic", "3,9-12", byName("nobody", 0, "$plain"))
	add("an illegal name", "9", byName("a b", 0, "$plain"))
	add("an unknown id", "13", byID(unknownID, 0, "$plain"))
	add("no id", "13", byID("AAAAAAAAAAAAAAAAAAAAAA", 0, "$plain"))
	add("an unknown partition", "3,9,12", byName("orders", 99, "$plain"))
	add("an unknown partition", "13", byID("orders", 99, "$plain"))
	add("a negative partition", "9,12", byName("orders", -1, "$plain"))
	add("the coordinator's topic", "9", byName("__consumer_offsets", 0, "$plain"))
	add("no topics", "9", `{"Acks":-1,"TimeoutMs":1000,"TopicData":[]}`)
	add("no partitions", "9", `{"Acks":-1,"TimeoutMs":1000,"TopicData":[{"Name":"orders","PartitionData":[]}]}`)
	add("no records", "3,9", `{"Acks":-1,"TimeoutMs":1000,"TopicData":[{"Name":"orders","PartitionData":[{"Index":0,"Records":null}]}]}`)
	add("acks 2", "3,9,12", `{"Acks":2,"TimeoutMs":1000,"TopicData":[{"Name":"orders","PartitionData":[{"Index":0,"Records":"$plain"},{"Index":7,"Records":"$plain"}]},{"Name":"nobody","PartitionData":[{"Index":0,"Records":"$plain"}]}]}`)
	add("acks -2", "9", `{"Acks":-2,"TimeoutMs":1000,"TopicData":[{"Name":"orders","PartitionData":[{"Index":0,"Records":"$plain"}]}]}`)
	add("acks 2", "13", `{"Acks":2,"TimeoutMs":1000,"TopicData":[{"TopicId":"orders","PartitionData":[{"Index":0,"Records":"$plain"}]}]}`)
	add("a partition twice", "9", `{"Acks":-1,"TimeoutMs":1000,"TopicData":[{"Name":"orders","PartitionData":[{"Index":1,"Records":"$plain"},{"Index":1,"Records":"$plain"}]}]}`)
	add("good and bad partitions", "9", `{"Acks":-1,"TimeoutMs":1000,"TopicData":[{"Name":"orders","PartitionData":[{"Index":0,"Records":"$plain"},{"Index":1,"Records":"$broken"},{"Index":9,"Records":"$plain"}]}]}`)
	add("no key for a compacted topic", "3,9", byName("compacted", 0, "$no key"))
	for _, batch := range []string{"two", "empty", "broken", "offset 5", "magic 3", "magic -1", "magic 0", "magic 1", "control", "transactional", "count 3", "count 1", "count 0", "count -1",
		"delta 7", "delta -1", "length 5", "length -1", "length 2^30", "cut", "header only", "11 bytes", "codec 5", "codec 7", "not gzip", "not snappy", "not lz4", "not zstd", "trailing",
		"attributes", "append time", "time 2^60", "time 4102", "time -1", "time -2", "time 0", "large", "epoch 3"} {
		add(batch, "7,9", byName("orders", 0, "$"+batch))
	}
	for _, batch := range []string{"pid 0 seq 0", "pid 0 seq 2", "pid 0 seq 9", "pid 0 seq 2", "pid 0 seq 0", "pid 0 epoch 1", "pid 0 old", "pid new seq 5", "seq -1"} {
		add("producer: "+batch, "9", byName("orders", 2, "$"+batch))
	}
	for i := range all {
		switch q := &all[i]; q.name {
		case "no records":
			q.silent, q.differs = true, map[string]string{`.*`: noRecords}
		case "codec 5", "codec 7":
			q.differs = map[string]string{`Responses\[orders\]\.PartitionResponses\[0\]\.ErrorCode`: tripsOver}
		case "not gzip", "not snappy", "not lz4", "not zstd":
			q.differs = map[string]string{`Responses\[orders\]\.PartitionResponses\[0\]\.ErrorCode`: notPacked}
		}
	}
	add("a transactional id", "9", `{"TransactionalId":"tx","Acks":-1,"TimeoutMs":1000,"TopicData":[{"Name":"orders","PartitionData":[{"Index":0,"Records":"$plain"}]}]}`)
	return all
}()

// fetch is a request that does not wait.
func fetch(rest string) string {
	return `{"MaxWaitMs":0,"MinBytes":0,"MaxBytes":1048576,` + rest + `}`
}

var fetchQuestions = func() (all []question) {
	add := func(name, versions, body string) {
		all = append(all, question{name: name, key: protocol.KeyFetch, versions: versions, body: body})
	}
	const part = `{"Partition":0,"FetchOffset":0,"PartitionMaxBytes":4096}`
	name := func(topic, partition string) string {
		return fetch(`"Topics":[{"Topic":"` + topic + `","Partitions":[` + partition + `]}]`)
	}
	id := func(topic, partition string) string {
		return fetch(`"Topics":[{"TopicId":"` + topic + `","Partitions":[` + partition + `]}]`)
	}
	add("from the beginning", "4-12", name("orders", part))
	add("from the beginning", "13-18", id("orders", part))
	add("read committed", "4,11", fetch(`"IsolationLevel":1,"Topics":[{"Topic":"orders","Partitions":[`+part+`]}]`))
	add("one byte", "4,12", name("orders", `{"Partition":0,"FetchOffset":0,"PartitionMaxBytes":1}`))
	add("no bytes", "12", name("orders", `{"Partition":0,"FetchOffset":0,"PartitionMaxBytes":0}`))
	add("from the middle of a batch", "12", name("orders", `{"Partition":0,"FetchOffset":1,"PartitionMaxBytes":200}`))
	add("a stamped topic", "12", name("stamped", `{"Partition":0,"FetchOffset":100,"PartitionMaxBytes":200}`))
	add("beyond the end", "4,11,12", name("orders", `{"Partition":0,"FetchOffset":100000,"PartitionMaxBytes":4096}`))
	add("a negative offset", "4,12", name("orders", `{"Partition":0,"FetchOffset":-1,"PartitionMaxBytes":4096}`))
	add("an unknown topic", "4-12", name("nobody", part))
	add("an unknown id", "13-18", id(unknownID, part))
	add("no id", "13,17", id("AAAAAAAAAAAAAAAAAAAAAA", part))
	add("a known and an unknown id", "17", fetch(`"Topics":[{"TopicId":"orders","Partitions":[{"Partition":0,"FetchOffset":0,"PartitionMaxBytes":100}]},{"TopicId":"`+unknownID+`","Partitions":[`+part+`]}]`))
	add("an unknown partition", "4-12", name("orders", `{"Partition":99,"FetchOffset":0,"PartitionMaxBytes":4096}`))
	add("an unknown partition", "13,17", id("orders", `{"Partition":99,"FetchOffset":0,"PartitionMaxBytes":4096}`))
	add("a negative partition", "12", name("orders", `{"Partition":-1,"FetchOffset":0,"PartitionMaxBytes":4096}`))
	add("a leader epoch to come", "9-12", name("orders", `{"Partition":0,"CurrentLeaderEpoch":7,"FetchOffset":0,"PartitionMaxBytes":4096}`))
	add("this leader epoch", "9,12", name("orders", `{"Partition":0,"CurrentLeaderEpoch":0,"FetchOffset":0,"PartitionMaxBytes":100}`))
	add("a last fetched epoch to come", "12", name("orders", `{"Partition":0,"FetchOffset":2,"LastFetchedEpoch":5,"PartitionMaxBytes":4096}`))
	add("nothing", "4-6", fetch(`"Topics":[]`))
	add("nothing, in a new session", "7,12,17", fetch(`"SessionEpoch":0,"Topics":[]`))
	add("no session", "12,17", fetch(`"SessionId":0,"SessionEpoch":-1,"Topics":[]`))
	add("a session nobody made", "7,12,17", fetch(`"SessionId":1234,"SessionEpoch":5,"Topics":[]`))
	add("an epoch of no session", "7,12,17", fetch(`"SessionId":0,"SessionEpoch":3,"Topics":[]`))
	add("ending a session nobody made", "12,17", fetch(`"SessionId":1234,"SessionEpoch":-1,"Topics":[]`))
	add("a new session", "12", fetch(`"SessionEpoch":0,"Topics":[{"Topic":"orders","Partitions":[{"Partition":0,"FetchOffset":0,"PartitionMaxBytes":100}]}]`))
	add("a new session", "17", fetch(`"SessionEpoch":0,"Topics":[{"TopicId":"orders","Partitions":[{"Partition":0,"FetchOffset":0,"PartitionMaxBytes":100}]}]`))
	add("as a follower that is none", "11", fetch(`"ReplicaId":5,"Topics":[{"Topic":"orders","Partitions":[`+part+`]}]`))
	add("as a follower that is none", "17", fetch(`"ReplicaState":{"ReplicaId":5,"ReplicaEpoch":1},"Topics":[{"TopicId":"orders","Partitions":[`+part+`]}]`))
	add("as a debugging consumer", "11", fetch(`"ReplicaId":-2,"Topics":[{"Topic":"orders","Partitions":[`+part+`]}]`))
	add("another cluster's id", "12,17", fetch(`"ClusterId":"another","SessionEpoch":-1,"Topics":[]`))
	add("a version that is not served", "3,19", "hex:ffffffff00000000000000000010000000000000")
	return all
}()

// Offsets of orders-0 and its kin are those the produce questions left, the same on both sides.
var offsetQuestions = func() (all []question) {
	add := func(name string, key int16, versions, body string) {
		all = append(all, question{name: name, key: key, versions: versions, body: body})
	}
	list := func(partition int, timestamp int64) string {
		return fmt.Sprintf(`{"ReplicaId":-1,"Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":%d,"Timestamp":%d}]}]}`, partition, timestamp)
	}
	lo := int16(protocol.KeyListOffsets)
	for _, ts := range []int64{-1, -2, 0, 1_760_000_000_001, 4_000_000_000_000} {
		add(fmt.Sprintf("time %d", ts), lo, "1-11", list(0, ts))
	}
	for _, ts := range []int64{-3, -4, -5, -6} {
		add(fmt.Sprintf("time %d", ts), lo, "1-11", list(0, ts))
	}
	add("time -7", lo, "1,7,11", list(0, -7))
	add("time -100", lo, "11", list(0, -100))
	add("the end of a partition without records", lo, "7", list(3, -3))
	add("an unknown topic", lo, "1-11", `{"ReplicaId":-1,"Topics":[{"Name":"nobody","Partitions":[{"PartitionIndex":0,"Timestamp":-1}]},{"Name":"a b","Partitions":[{"PartitionIndex":0,"Timestamp":-1}]}]}`)
	add("an unknown partition", lo, "1-11", list(99, -1))
	add("a negative partition", lo, "7", list(-1, -1))
	add("a partition twice", lo, "7", `{"ReplicaId":-1,"Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0,"Timestamp":-1},{"PartitionIndex":0,"Timestamp":-2}]}]}`)
	add("read committed", lo, "2,7,11", `{"ReplicaId":-1,"IsolationLevel":1,"Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0,"Timestamp":-1}]}]}`)
	add("isolation 5", lo, "7", `{"ReplicaId":-1,"IsolationLevel":5,"Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0,"Timestamp":-1}]}]}`)
	add("a leader epoch to come", lo, "4-11", `{"ReplicaId":-1,"Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0,"CurrentLeaderEpoch":9,"Timestamp":-1}]}]}`)
	add("this leader epoch", lo, "4-11", `{"ReplicaId":-1,"Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0,"CurrentLeaderEpoch":0,"Timestamp":-1}]}]}`)
	add("as a debugging consumer", lo, "7", `{"ReplicaId":-2,"Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0,"Timestamp":-1}]}]}`)
	add("as a follower", lo, "7", `{"ReplicaId":1,"Topics":[{"Name":"orders","Partitions":[{"PartitionIndex":0,"Timestamp":-1}]}]}`)

	ofle := int16(protocol.KeyOffsetForLeaderEpoch)
	epoch := func(topic string, partition, current, of int) string {
		return fmt.Sprintf(`{"Topics":[{"Topic":%q,"Partitions":[{"Partition":%d,"CurrentLeaderEpoch":%d,"LeaderEpoch":%d}]}]}`, topic, partition, current, of)
	}
	add("epoch 0", ofle, "2-4", epoch("orders", 0, -1, 0))
	add("epoch 5", ofle, "2-4", epoch("orders", 0, -1, 5))
	add("epoch -1", ofle, "2-4", epoch("orders", 0, -1, -1))
	add("a leader epoch to come", ofle, "2-4", epoch("orders", 0, 3, 0))
	add("an unknown topic", ofle, "2-4", epoch("nobody", 0, -1, 0))
	add("an unknown partition", ofle, "2-4", epoch("orders", 99, -1, 0))
	add("as a follower", ofle, "4", `{"ReplicaId":1,"Topics":[{"Topic":"orders","Partitions":[{"Partition":0,"LeaderEpoch":0}]}]}`)

	dr := int16(protocol.KeyDeleteRecords)
	del := func(topic string, partition int, offset int64) string {
		return fmt.Sprintf(`{"TimeoutMs":5000,"Topics":[{"Name":%q,"Partitions":[{"PartitionIndex":%d,"Offset":%d}]}]}`, topic, partition, offset)
	}
	add("before 2", dr, "0-2", del("orders", 1, 2))
	add("before 1, which is gone", dr, "0-2", del("orders", 1, 1))
	add("beyond the end", dr, "0-2", del("orders", 1, 1000))
	add("before -2", dr, "0-2", del("orders", 1, -2))
	add("everything", dr, "2", del("orders", 1, -1))
	add("of nobody", dr, "0-2", del("nobody", 0, 1))
	add("of an illegal name", dr, "2", del("a b", 0, 1))
	add("of an unknown partition", dr, "0-2", del("orders", 99, 1))
	add("of the coordinator's topic", dr, "2", del("__consumer_offsets", 0, 0))
	add("of a compacted topic", dr, "2", del("compacted", 0, 0))
	add("nothing", dr, "0-2", `{"Topics":[]}`)

	dp := int16(protocol.KeyDescribeProducers)
	add("of a partition", dp, "0", `{"Topics":[{"Name":"orders","PartitionIndexes":[2,0]}]}`)
	add("of nobody", dp, "0", `{"Topics":[{"Name":"nobody","PartitionIndexes":[0]},{"Name":"orders","PartitionIndexes":[99]}]}`)
	for i := range all {
		switch q := &all[i]; {
		case q.name == "isolation 5":
			q.differs = map[string]string{`.*ErrorCode`: isolation}
		case q.name == "of nobody" && q.key == dp:
			q.differs = map[string]string{`.*ErrorMessage`: ownWords}
		}
	}
	return all
}()
