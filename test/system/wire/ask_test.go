package wire

import (
	"errors"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
	"samsa/test/harness"
)

// The tests that ask raw questions put them to samsa, or to Apache Kafka with SAMSA_JUDGE=kafka: the same
// question, so that what samsa answers can be held against what Kafka does. Where they differ on purpose
// the test says so with onKafka.
var onKafka = os.Getenv("SAMSA_JUDGE") == "kafka"

// serve formats and starts a node with both roles.
func serve(t *testing.T, dirs int, extra ...string) *harness.Node {
	t.Helper()
	n := harness.NewNode(t, dirs, extra...)
	if onKafka {
		n.FormatKafka()
	} else {
		n.Format()
	}
	launch(n)
	return n
}

// launch starts what is being judged on a formatted node.
func launch(n *harness.Node) {
	if onKafka {
		n.StartKafka("INFO")
	} else {
		n.Start()
	}
}

// ask sends a request and returns its answer, which must come.
func ask[R any](t *testing.T, c *harness.Conn, version int16, req protocol.Request) *R {
	t.Helper()
	resp, err := c.Ask(version, req)
	if err != nil {
		t.Fatalf("%s v%d: %v", protocol.ApiName(req.ApiKey()), version, err)
	}
	return any(resp).(*R)
}

// closes sends a body and wants the connection closed for it.
func closes(t *testing.T, addr string, key, version int16, body []byte) {
	t.Helper()
	c := harness.Dial(t, addr)
	if err := c.SendBody(key, version, body); err != nil {
		t.Fatal(err)
	}
	if got, err := c.AnswerBody(key, version); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("key %d v%d: answer %x, %v; want a closed connection", key, version, got, err)
	}
}

// create makes a topic through CreateTopics v7 and returns its id; it waits until the topic is led.
func create(t *testing.T, c *harness.Conn, name string, partitions int32, configs ...string) model.UUID {
	t.Helper()
	req := protocol.Make[protocol.CreateTopicsRequest]()
	topic := protocol.CreateTopicsRequestCreatableTopic{Name: name, NumPartitions: partitions, ReplicationFactor: 1}
	for i := 0; i+1 < len(configs); i += 2 {
		topic.Configs = append(topic.Configs, protocol.CreateTopicsRequestCreatableTopicConfig{Name: configs[i], Value: &configs[i+1]})
	}
	req.Topics = append(req.Topics, topic)
	resp := ask[protocol.CreateTopicsResponse](t, c, 7, &req)
	if resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("creating %s: error %d", name, resp.Topics[0].ErrorCode)
	}
	id := resp.Topics[0].TopicId
	led(t, c, id, partitions)
	return id
}

// led waits until every partition of a topic answers a fetch.
func led(t *testing.T, c *harness.Conn, id model.UUID, partitions int32) {
	t.Helper()
	eventually(t, "the topic is led", func() bool {
		req := fetchByID(id, 0)
		req.Topics[0].Partitions = nil
		for i := range partitions {
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetchPartition(i, 0))
		}
		resp := ask[protocol.FetchResponse](t, c, 13, req)
		for _, p := range resp.Responses[0].Partitions {
			if p.ErrorCode != 0 && p.ErrorCode != 1 {
				return false
			}
		}
		return true
	})
}

// remove deletes a topic by id.
func remove(t *testing.T, c *harness.Conn, id model.UUID) {
	t.Helper()
	req := protocol.Make[protocol.DeleteTopicsRequest]()
	req.TimeoutMs = 30000
	req.Topics = []protocol.DeleteTopicsRequestDeleteTopicState{{TopicId: id}}
	resp := ask[protocol.DeleteTopicsResponse](t, c, 6, &req)
	if resp.Responses[0].ErrorCode != 0 {
		t.Fatalf("deleting %s: error %d", id, resp.Responses[0].ErrorCode)
	}
}

// eventually polls a condition for a minute at most.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(2 * time.Millisecond) // a poll of a condition with a deadline
	}
}

// batch is one uncompressed batch of a record for each value.
func batch(values ...string) record.Batch {
	b := record.NewBuilder(record.NewBatchOptions())
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), []byte("key"), []byte(v), nil)
	}
	return record.Batch(b.Build(nil))
}

// produceByName is a Produce of one partition for versions up to 12.
func produceByName(name string, partition int32, acks int16, records []byte) *protocol.ProduceRequest {
	return &protocol.ProduceRequest{Acks: acks, TimeoutMs: 30000, TopicData: []protocol.ProduceRequestTopicProduceData{{
		Name: name, PartitionData: []protocol.ProduceRequestPartitionProduceData{{Index: partition, Records: records}},
	}}}
}

// produceByID is a Produce of one partition for version 13.
func produceByID(id model.UUID, partition int32, acks int16, records []byte) *protocol.ProduceRequest {
	req := produceByName("", partition, acks, records)
	req.TopicData[0].TopicId = id
	return req
}

// put produces by id and returns the base offset.
func put(t *testing.T, c *harness.Conn, id model.UUID, partition int32, values ...string) int64 {
	t.Helper()
	p := ask[protocol.ProduceResponse](t, c, 13, produceByID(id, partition, -1, batch(values...))).Responses[0].PartitionResponses[0]
	if p.ErrorCode != 0 {
		t.Fatalf("producing to %s-%d: error %d", id, partition, p.ErrorCode)
	}
	return p.BaseOffset
}

func fetchPartition(partition int32, offset int64) protocol.FetchRequestFetchPartition {
	p := protocol.Make[protocol.FetchRequestFetchPartition]()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	return p
}

// fetchByID reads partition 0 of a topic without a session and without waiting.
func fetchByID(id model.UUID, offset int64) *protocol.FetchRequest {
	req := protocol.Make[protocol.FetchRequest]()
	req.MinBytes, req.MaxBytes = 1, 1<<24
	req.Topics = []protocol.FetchRequestFetchTopic{{TopicId: id, Partitions: []protocol.FetchRequestFetchPartition{fetchPartition(0, offset)}}}
	return &req
}

// fetchByName is fetchByID for the versions before 13.
func fetchByName(name string, offset int64) *protocol.FetchRequest {
	req := fetchByID(model.UUID{}, offset)
	req.Topics[0].Topic = name
	return req
}

// values are the records of a record set.
func values(t *testing.T, set []byte) (out []string) {
	t.Helper()
	for b, err := range record.Split(set) {
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range record.Records(b) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(r.Value))
		}
	}
	return out
}

// metadata asks for topics by name, creating nothing.
func metadata(t *testing.T, c *harness.Conn, version int16, names ...string) *protocol.MetadataResponse {
	t.Helper()
	req := protocol.Make[protocol.MetadataRequest]()
	req.AllowAutoTopicCreation = version < 4 // which cannot forbid it
	for i := range names {
		req.Topics = append(req.Topics, protocol.MetadataRequestMetadataRequestTopic{Name: &names[i]})
	}
	return ask[protocol.MetadataResponse](t, c, version, &req)
}

// metadataRecords reads the node's metadata log from disk, all segments, data records alone.
func metadataRecords(t *testing.T, n *harness.Node) (out []image.Record) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(n.LogDirs[0], "__cluster_metadata-0", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(segments)
	for _, path := range segments {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for batch, err := range record.Split(b) {
			if err != nil {
				break // a torn tail of a running node
			}
			if batch.IsControl() {
				continue
			}
			for r, err := range record.Records(batch) {
				if err != nil {
					t.Fatal(err)
				}
				v, err := image.ReadFrame(r.Value)
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				out = append(out, v.Record)
			}
		}
	}
	return out
}

// replicaDirs are the sub-directories of a log directory, without the metadata log.
func replicaDirs(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), "__cluster_metadata") {
			out = append(out, e.Name())
		}
	}
	return out
}

func text(s string) *string { return &s }

// codes are the error codes of a list.
func codes[T any](list []T, code func(T) int16) (out []int16) {
	for _, x := range list {
		out = append(out, code(x))
	}
	return out
}
