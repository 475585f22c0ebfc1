package interop

import (
	"testing"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

// unknownID is the id of no topic.
const unknownID = "MTIzNDU2Nzg5MGFiY2RlZg"

// TestDifferences asks samsa and Apache Kafka the same questions (DIFF) and compares every field.
//
// ..A-10, D-10..D-18, D-190, D-195, D-197, T-32, T-35..T-45.
func TestDifferences(t *testing.T) {
	samsa, kafka := pair(t, "auto.create.topics.enable=false", "log.message.timestamp.after.max.ms=3600000", "log.retention.ms=-1")
	both(t, samsa, kafka, protocol.KeyCreateTopics, 7, `{"Topics":[
		{"Name":"orders","NumPartitions":3,"ReplicationFactor":1},
		{"Name":"logs.a","NumPartitions":1,"ReplicationFactor":1,"Configs":[{"Name":"retention.ms","Value":"86400000"}]},
		{"Name":"compacted","NumPartitions":1,"ReplicationFactor":1,"Configs":[{"Name":"cleanup.policy","Value":"compact"}]},
		{"Name":"stamped","NumPartitions":1,"ReplicationFactor":1,"Configs":[{"Name":"message.timestamp.type","Value":"LogAppendTime"}]}]}`)
	for _, s := range []*side{samsa, kafka} {
		s.coordinate(t)
	}
	settled(t, samsa, kafka, "orders", "logs.a", "compacted", "stamped", "__consumer_offsets")
	for _, group := range []struct {
		name      string
		questions []question
	}{
		{"versions", versionQuestions()}, {"metadata", metadataQuestions}, {"create topics", createTopicsQuestions}, {"create partitions", createPartitionsQuestions},
		{"delete topics", deleteTopicsQuestions}, {"configs", configQuestions}, {"produce", produceQuestions}, {"fetch", fetchQuestions},
		{"offsets", offsetQuestions}, {"cluster", clusterQuestions}, {"groups", groupQuestions},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, q := range group.questions {
				q.ask(t, samsa, kafka)
			}
		})
	}
}

// coordinate waits until the groups of the questions have a coordinator.
func (s *side) coordinate(t *testing.T) {
	t.Helper()
	s.node.Eventually("groups have a coordinator", 60*time.Second, func() error {
		for _, group := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "byhand", "nobody", "other"} {
			c := harness.Dial(t, s.node.Addr)
			resp, err := c.Ask(3, &protocol.FindCoordinatorRequest{Key: group})
			if err != nil {
				return err
			}
			if e := kerr.ForCode(resp.(*protocol.FindCoordinatorResponse).ErrorCode); e != nil {
				return e
			}
			resp, err = c.Ask(7, &protocol.OffsetFetchRequest{GroupId: group})
			c.Close()
			if err != nil {
				return err
			}
			if e := kerr.ForCode(resp.(*protocol.OffsetFetchResponse).ErrorCode); e != nil {
				return e
			}
			resp, err = harness.Dial(t, s.node.Addr).Ask(4, &protocol.InitProducerIdRequest{ProducerId: -1, ProducerEpoch: -1})
			if err != nil {
				return err
			}
			if e := kerr.ForCode(resp.(*protocol.InitProducerIdResponse).ErrorCode); e != nil {
				return e // the block of ids is being fetched
			}
		}
		return nil
	})
}

// Rows of docs/conformance/differences.md by their first column.
const (
	laterKeys    = "ApiVersions keys of requests that are not served yet (A-07)"
	validateOnly = "CreateTopics with validateOnly (T-43)"
	neitherNamed = "Metadata entry with neither name nor id (T-39)"
	ownWords     = "the text of an error where nothing more specific is said"
	clearerWords = "a resource type or key type that does not exist"
	noRecords    = "Produce with a null record set (D-11)"
	tripsOver    = "a batch that names a codec that does not exist, whose length overflows, or whose times are below -1 where it is rebuilt (D-02, D-09)"
	notPacked    = "a payload that does not unpack (D-37)"
	isolation    = "Fetch or ListOffsets with an isolation level other than 0 and 1 (D-222)"
	telemetry    = "GetTelemetrySubscriptions and PushTelemetry without a receiver of metrics"
	operation    = "IncrementalAlterConfigs with an operation that does not exist"
)
