package wire

import (
	"bytes"
	"fmt"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

var metadataID = model.UUID{15: 1} // of __cluster_metadata

func metadataTopics(t *testing.T, c *harness.Conn, version int16, topics ...protocol.MetadataRequestMetadataRequestTopic) *protocol.MetadataResponse {
	t.Helper()
	req := protocol.Make[protocol.MetadataRequest]()
	req.Topics, req.AllowAutoTopicCreation = topics, true
	if len(topics) == 0 {
		req.Topics = []protocol.MetadataRequestMetadataRequestTopic{}
	}
	return ask[protocol.MetadataResponse](t, c, version, &req)
}

func byID(id model.UUID) protocol.MetadataRequestMetadataRequestTopic {
	return protocol.MetadataRequestMetadataRequestTopic{TopicId: id}
}

// D-190, T-06, T-34, T-35, T-37, T-38, T-39, T-40, K-06: what Metadata answers to names and ids, known and not, version by version.
func TestMetadataByNameAndID(t *testing.T) {
	n := serve(t, 2, "auto.create.topics.enable=false")
	c := harness.Dial(t, n.Addr)
	a, b := create(t, c, "a", 2), create(t, c, "b", 1)
	unknown := model.RandomUUID()

	// All, none, and by name at every version.
	for v := int16(0); v <= 13; v++ {
		all := protocol.Make[protocol.MetadataRequest]()
		if v > 0 { // before, no topic means all
			all.Topics = nil
		}
		resp := ask[protocol.MetadataResponse](t, c, v, &all)
		if len(resp.Topics) != 2 || len(resp.Brokers) != 1 || v >= 2 && *resp.ClusterId == "" || v >= 1 && resp.ControllerId != 1 {
			t.Errorf("v%d, all: %+v", v, resp)
		}
		for _, topic := range resp.Topics {
			if v >= 10 && topic.TopicId.IsZero() {
				t.Errorf("v%d: %s has no id", v, *topic.Name)
			}
		}
		if v >= 1 {
			if resp := metadataTopics(t, c, v); len(resp.Topics) != 0 || len(resp.Brokers) != 1 {
				t.Errorf("v%d, none: %+v", v, resp)
			}
		}
		resp = metadata(t, c, v, "a", "missing", "not legal", "a")
		got := map[string]protocol.MetadataResponseMetadataResponseTopic{}
		for _, topic := range resp.Topics {
			got[*topic.Name] = topic
		}
		if got["a"].ErrorCode != 0 || len(got["a"].Partitions) != 2 || v >= 10 && got["a"].TopicId != a {
			t.Errorf("v%d, a: %+v", v, got["a"])
		}
		if v >= 7 && got["a"].Partitions[0].LeaderEpoch != 0 {
			t.Errorf("v%d: leader epoch %d of a new topic", v, got["a"].Partitions[0].LeaderEpoch)
		}
		if e := got["missing"]; e.ErrorCode != 3 || !e.TopicId.IsZero() || len(e.Partitions) != 0 {
			t.Errorf("v%d, missing: %+v", v, e)
		}
		if e := got["not legal"]; e.ErrorCode != 17 || !e.TopicId.IsZero() {
			t.Errorf("v%d, not legal: %+v", v, e)
		}
	}

	// Ids and null names before v12 make the whole request invalid (T-37).
	for _, v := range []int16{10, 11} {
		for what, bad := range map[string]protocol.MetadataRequestMetadataRequestTopic{
			"id": byID(a), "both": {TopicId: a, Name: text("a")}, "nothing": {},
		} {
			resp := metadataTopics(t, c, v, bad, protocol.MetadataRequestMetadataRequestTopic{Name: text("b")})
			if len(resp.Topics) != 2 || len(resp.Brokers) != 0 || resp.ClusterId != nil || resp.ControllerId != -1 {
				t.Errorf("v%d, %s: %+v", v, what, resp)
				continue
			}
			for i, want := range []struct {
				name string
				id   model.UUID
			}{{value(bad.Name), bad.TopicId}, {"b", model.UUID{}}} {
				if got := resp.Topics[i]; got.ErrorCode != 42 || value(got.Name) != want.name || got.TopicId != want.id || len(got.Partitions) != 0 {
					t.Errorf("v%d, %s, entry %d: %+v", v, what, i, got)
				}
			}
		}
	}

	// By id from v12 (T-38): known, unknown, the metadata log's own, each id once.
	for _, v := range []int16{12, 13} {
		resp := metadataTopics(t, c, v, byID(a), byID(unknown), byID(metadataID), byID(a))
		got := map[model.UUID]protocol.MetadataResponseMetadataResponseTopic{}
		for _, topic := range resp.Topics {
			got[topic.TopicId] = topic
		}
		if len(resp.Topics) != 3 || got[a].ErrorCode != 0 || value(got[a].Name) != "a" || len(got[a].Partitions) != 2 {
			t.Errorf("v%d, by id: %+v", v, resp.Topics)
		}
		for _, id := range []model.UUID{unknown, metadataID} {
			if e := got[id]; e.ErrorCode != 100 || e.Name != nil || len(e.Partitions) != 0 {
				t.Errorf("v%d, id %s: %+v", v, id, e)
			}
		}
		// One id and only ids are looked up (T-39).
		resp = metadataTopics(t, c, v, byID(a), protocol.MetadataRequestMetadataRequestTopic{Name: text("b")},
			protocol.MetadataRequestMetadataRequestTopic{TopicId: b, Name: text("another")})
		got = map[model.UUID]protocol.MetadataResponseMetadataResponseTopic{}
		for _, topic := range resp.Topics {
			got[topic.TopicId] = topic
		}
		if len(resp.Topics) != 2 || value(got[a].Name) != "a" || value(got[b].Name) != "b" {
			t.Errorf("v%d, ids beside names: %+v", v, resp.Topics)
		}
		// An entry that names nothing: samsa says what is wrong, Kafka fails inside (T-39).
		want := int16(42)
		if onKafka {
			want = -1
		}
		for _, topic := range metadataTopics(t, c, v, protocol.MetadataRequestMetadataRequestTopic{}).Topics {
			if topic.ErrorCode != want {
				t.Errorf("v%d, an entry that names nothing: %+v", v, topic)
			}
		}
	}
	// Nothing was created by asking, and the metadata log is no topic by its name either (K-06).
	if resp := metadata(t, c, 12, "__cluster_metadata"); resp.Topics[0].ErrorCode != 3 {
		t.Errorf("__cluster_metadata: error %d", resp.Topics[0].ErrorCode)
	}
	all := protocol.Make[protocol.MetadataRequest]()
	all.Topics = nil
	if resp := ask[protocol.MetadataResponse](t, c, 12, &all); len(resp.Topics) != 2 {
		t.Errorf("topics at the end: %+v", resp.Topics)
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// T-44, D-190: a topic created by asking for it. The request that triggers it is told that it does not exist.
func TestAutoCreation(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	req := protocol.Make[protocol.MetadataRequest]()
	req.Topics = []protocol.MetadataRequestMetadataRequestTopic{{Name: text("born")}}
	first := ask[protocol.MetadataResponse](t, c, 12, &req).Topics[0]
	if first.ErrorCode != 3 || !first.TopicId.IsZero() {
		t.Errorf("the request that creates: %+v", first)
	}
	var id model.UUID
	eventually(t, "the topic is there", func() bool {
		topic := metadata(t, c, 12, "born").Topics[0]
		id = topic.TopicId
		return topic.ErrorCode == 0
	})
	if id.IsZero() || id[6]>>4 != 4 {
		t.Errorf("id %s", id)
	}
	req.AllowAutoTopicCreation = false
	req.Topics[0].Name = text("unborn")
	for range 3 {
		if topic := ask[protocol.MetadataResponse](t, c, 12, &req).Topics[0]; topic.ErrorCode != 3 {
			t.Fatalf("creation was forbidden: %+v", topic)
		}
	}
}

// T-32, T-41: DescribeTopicPartitions by pages: names in order, a cursor, a limit; what is wrong with a cursor.
func TestDescribeTopicPartitionsPages(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	ids := map[string]model.UUID{}
	for _, name := range []string{"x", "y", "z"} {
		ids[name] = create(t, c, name, 5)
	}
	req := protocol.Make[protocol.DescribeTopicPartitionsRequest]()
	for _, name := range []string{"z", "x", "y", "missing", "x", "no good"} {
		req.Topics = append(req.Topics, protocol.DescribeTopicPartitionsRequestTopicRequest{Name: name})
	}
	req.ResponsePartitionLimit = 7
	var seen []string
	for page := 0; ; page++ {
		resp := ask[protocol.DescribeTopicPartitionsResponse](t, c, 0, &req)
		count := 0
		for _, topic := range resp.Topics {
			name := value(topic.Name)
			if want, ok := ids[name]; ok && topic.TopicId != want || !ok && !topic.TopicId.IsZero() {
				t.Errorf("page %d: %s has id %s", page, name, topic.TopicId)
			}
			for _, p := range topic.Partitions {
				seen = append(seen, fmt.Sprintf("%s-%d", name, p.PartitionIndex))
				count++
				if p.LeaderId != 1 || len(p.ReplicaNodes) != 1 || len(p.IsrNodes) != 1 {
					t.Errorf("page %d: %s-%d: %+v", page, name, p.PartitionIndex, p)
				}
			}
			if topic.ErrorCode != 0 {
				seen = append(seen, fmt.Sprintf("%s:%d", name, topic.ErrorCode))
			}
		}
		if count > 7 || page > 5 {
			t.Fatalf("page %d has %d partitions", page, count)
		}
		if resp.NextCursor == nil {
			break
		}
		req.Cursor = &protocol.DescribeTopicPartitionsRequestCursor{TopicName: resp.NextCursor.TopicName, PartitionIndex: resp.NextCursor.PartitionIndex}
	}
	want := "[missing:3 no good:17 x-0 x-1 x-2 x-3 x-4 y-0 y-1 y-2 y-3 y-4 z-0 z-1 z-2 z-3 z-4]"
	if got := fmt.Sprint(seen); got != want {
		t.Errorf("pages hold %s, want %s", got, want)
	}
	for what, cursor := range map[string]protocol.DescribeTopicPartitionsRequestCursor{
		"topic_not_asked_for": {TopicName: "a", PartitionIndex: 0}, "negative_partition": {TopicName: "x", PartitionIndex: -1},
	} {
		req.Cursor = &cursor
		resp := ask[protocol.DescribeTopicPartitionsResponse](t, c, 0, &req)
		for _, topic := range resp.Topics {
			if topic.ErrorCode != 42 || !topic.TopicId.IsZero() {
				t.Errorf("%s: %+v", what, topic)
			}
		}
		if len(resp.Topics) == 0 {
			t.Errorf("%s: no topics in the answer", what)
		}
	}
}

// T-33, T-35, T-36, T-06, D-123: the same topic by name and by id at once, and what an id in vain is answered.
func TestNamesAndIDsSideBySide(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	const name = "side-by-side"
	id := create(t, c, name, 1)
	for v := int16(3); v <= 12; v++ {
		if p := ask[protocol.ProduceResponse](t, c, v, produceByName(name, 0, 1, batch(fmt.Sprint(v)))).Responses[0]; p.PartitionResponses[0].ErrorCode != 0 || p.Name != name {
			t.Errorf("produce v%d: %+v", v, p)
		}
	}
	if p := ask[protocol.ProduceResponse](t, c, 13, produceByID(id, 0, 1, batch("13"))).Responses[0]; p.PartitionResponses[0].ErrorCode != 0 || p.TopicId != id {
		t.Errorf("produce v13: %+v", p)
	}
	want := "[3 4 5 6 7 8 9 10 11 12 13]"
	for v := int16(4); v <= 18; v++ {
		req := fetchByName(name, 0)
		if v >= 13 {
			req = fetchByID(id, 0)
		}
		topic := ask[protocol.FetchResponse](t, c, v, req).Responses[0]
		if got := fmt.Sprint(values(t, topic.Partitions[0].Records)); got != want {
			t.Errorf("fetch v%d: %s", v, got)
		}
		if v < 13 && topic.Topic != name || v >= 13 && topic.TopicId != id {
			t.Errorf("fetch v%d names %q %s", v, topic.Topic, topic.TopicId)
		}
	}
	// In id versions no byte of the answer holds the name, and an unknown id comes back as it was sent (T-35).
	for what, wrong := range map[string]model.UUID{"known": id, "unknown": model.RandomUUID(), "zero": {}, "metadata": metadataID} {
		wantFetch, wantPartition := int16(0), int16(3)
		if what != "known" {
			wantFetch, wantPartition = 100, 100
		}
		for v := int16(13); v <= 18; v++ {
			body := rawAsk(t, c, v, fetchByID(wrong, 0))
			if bytes.Contains(body, []byte(name)) {
				t.Errorf("fetch v%d, %s: the answer holds the name", v, what)
			}
			resp := ask[protocol.FetchResponse](t, c, v, fetchByID(wrong, 0))
			if got := resp.Responses[0]; got.TopicId != wrong || got.Partitions[0].ErrorCode != wantFetch {
				t.Errorf("fetch v%d, %s: %+v", v, what, got)
			}
			req := fetchByID(wrong, 0)
			req.Topics[0].Partitions[0].Partition = 9 // known id first, then the partition (T-36)
			if got := ask[protocol.FetchResponse](t, c, v, req).Responses[0]; got.Partitions[0].ErrorCode != wantPartition {
				t.Errorf("fetch v%d, %s, partition 9: %+v", v, what, got)
			}
		}
		body := rawAsk(t, c, 13, produceByID(wrong, 0, 1, batch("x")))
		if bytes.Contains(body, []byte(name)) {
			t.Errorf("produce, %s: the answer holds the name", what)
		}
		if got := ask[protocol.ProduceResponse](t, c, 13, produceByID(wrong, 0, 1, batch("x"))).Responses[0]; got.TopicId != wrong || got.PartitionResponses[0].ErrorCode != wantFetch {
			t.Errorf("produce, %s: %+v", what, got)
		}
		if got := ask[protocol.ProduceResponse](t, c, 13, produceByID(wrong, 9, 1, batch("x"))).Responses[0]; got.PartitionResponses[0].ErrorCode != wantPartition {
			t.Errorf("produce, %s, partition 9: %+v", what, got)
		}
		commit := protocol.Make[protocol.OffsetCommitRequest]()
		commit.GroupId, commit.GenerationIdOrMemberEpoch = "plain", -1
		commit.Topics = []protocol.OffsetCommitRequestOffsetCommitRequestTopic{{TopicId: wrong, Partitions: []protocol.OffsetCommitRequestOffsetCommitRequestPartition{{CommittedOffset: 1, CommittedLeaderEpoch: -1}}}}
		var got *protocol.OffsetCommitResponse
		eventually(t, "the coordinator serves", func() bool {
			got = ask[protocol.OffsetCommitResponse](t, c, 10, &commit)
			code := got.Topics[0].Partitions[0].ErrorCode
			if code == 15 || code == 16 { // its topic has to be made first
				find := protocol.Make[protocol.FindCoordinatorRequest]()
				find.CoordinatorKeys = []string{"plain"}
				ask[protocol.FindCoordinatorResponse](t, c, 4, &find)
			}
			return code != 14 && code != 15 && code != 16
		})
		if got.Topics[0].TopicId != wrong || got.Topics[0].Partitions[0].ErrorCode != wantFetch {
			t.Errorf("commit, %s: %+v", what, got.Topics[0])
		}
		if bytes.Contains(rawAsk(t, c, 10, &commit), []byte(name)) {
			t.Errorf("commit, %s: the answer holds the name", what)
		}
	}
}

// rawAsk sends a request and returns the body of its answer.
func rawAsk(t *testing.T, c *harness.Conn, version int16, req protocol.Request) []byte {
	t.Helper()
	if err := c.Send(version, req); err != nil {
		t.Fatal(err)
	}
	body, err := c.AnswerBody(req.ApiKey(), version)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// T-07, T-08, T-49, T-69, D-192, J-111: a name deleted and created again is another topic each time: another id, leader
// epoch 0, no record and no producer of its earlier lives; the answer to a delete waits for no broker.
func TestNameOfManyLives(t *testing.T) {
	n := serve(t, 2)
	c := harness.Dial(t, n.Addr)
	seen := map[model.UUID]bool{}
	for life := range 100 {
		id := create(t, c, "again", 1)
		if seen[id] {
			t.Fatalf("life %d has the id of an earlier one", life)
		}
		seen[id] = true
		if base := put(t, c, id, 0, fmt.Sprint("life ", life)); base != 0 {
			t.Fatalf("life %d starts at offset %d", life, base)
		}
		// An old id is refused whatever lives under its name now.
		for old := range seen {
			p := ask[protocol.FetchResponse](t, c, 17, fetchByID(old, 0)).Responses[0].Partitions[0]
			if old == id && (p.ErrorCode != 0 || fmt.Sprint(values(t, p.Records)) != fmt.Sprintf("[life %d]", life)) || old != id && (p.ErrorCode != 100 || len(p.Records) > 0) {
				t.Fatalf("life %d, id %s: error %d, %q", life, old, p.ErrorCode, p.Records)
			}
			if old != id && life%10 == 0 {
				if p := ask[protocol.ProduceResponse](t, c, 13, produceByID(old, 0, -1, batch("stale"))).Responses[0].PartitionResponses[0]; p.ErrorCode != 100 {
					t.Fatalf("life %d: produce to the old id %s: error %d", life, old, p.ErrorCode)
				}
			}
		}
		topic := metadata(t, c, 12, "again").Topics[0]
		if topic.TopicId != id || topic.Partitions[0].LeaderEpoch != 0 {
			t.Fatalf("life %d: %+v", life, topic)
		}
		if life < 99 {
			remove(t, c, id)
		}
	}
	// An id stays for life: growth, settings, a snapshot's worth of restarts.
	id := metadata(t, c, 12, "again").Topics[0].TopicId
	grow := protocol.Make[protocol.CreatePartitionsRequest]()
	grow.TimeoutMs = 30000
	grow.Topics = []protocol.CreatePartitionsRequestCreatePartitionsTopic{{Name: "again", Count: 3}}
	if r := ask[protocol.CreatePartitionsResponse](t, c, 3, &grow).Results[0]; r.ErrorCode != 0 {
		t.Fatalf("growing: error %d", r.ErrorCode)
	}
	alter := protocol.Make[protocol.IncrementalAlterConfigsRequest]()
	alter.Resources = []protocol.IncrementalAlterConfigsRequestAlterConfigsResource{{ResourceType: 2, ResourceName: "again",
		Configs: []protocol.IncrementalAlterConfigsRequestAlterableConfig{{Name: "retention.ms", Value: text("86400000")}}}}
	if r := ask[protocol.IncrementalAlterConfigsResponse](t, c, 1, &alter).Responses[0]; r.ErrorCode != 0 {
		t.Fatalf("settings: error %d", r.ErrorCode)
	}
	for round, end := range []func(){n.Stop, n.Kill} {
		end()
		launch(n)
		c = harness.Dial(t, n.Addr)
		led(t, c, id, 3)
		topic := metadata(t, c, 12, "again").Topics[0]
		if topic.TopicId != id || len(topic.Partitions) != 3 {
			t.Errorf("restart %d: %+v", round, topic)
		}
		if p := ask[protocol.FetchResponse](t, c, 17, fetchByID(id, 0)).Responses[0].Partitions[0]; fmt.Sprint(values(t, p.Records)) != "[life 99]" {
			t.Errorf("restart %d: records %v", round, values(t, p.Records))
		}
	}
}

// T-15: an answer never pairs an id with the partitions of another life. Each life has another number of partitions.
func TestOneImagePerAnswer(t *testing.T) {
	n := serve(t, 1)
	c, other := harness.Dial(t, n.Addr), harness.Dial(t, n.Addr)
	partitions := map[model.UUID]int{}
	stop := make(chan struct{})
	done := make(chan []*protocol.MetadataResponse)
	go func() {
		var all []*protocol.MetadataResponse
		defer func() { done <- all }()
		req := protocol.Make[protocol.MetadataRequest]()
		req.Topics, req.AllowAutoTopicCreation = []protocol.MetadataRequestMetadataRequestTopic{{Name: text("flip")}}, false
		for {
			select {
			case <-stop:
				return
			default:
			}
			resp, err := other.Ask(12, &req)
			if err != nil {
				t.Error(err)
				return
			}
			m := resp.(*protocol.MetadataResponse)
			all = append(all, m)
			if id := m.Topics[0].TopicId; !id.IsZero() { // the same by id
				byID := protocol.Make[protocol.MetadataRequest]()
				byID.Topics = []protocol.MetadataRequestMetadataRequestTopic{{TopicId: id}}
				resp, err := other.Ask(12, &byID)
				if err != nil {
					t.Error(err)
					return
				}
				all = append(all, resp.(*protocol.MetadataResponse))
			}
		}
	}()
	for life := range 40 {
		count := 1 + life%7
		id := create(t, c, "flip", int32(count))
		partitions[id] = count
		remove(t, c, id)
	}
	close(stop)
	alive := 0
	for _, resp := range <-done {
		topic := resp.Topics[0]
		switch topic.ErrorCode {
		case 0:
			alive++
			if len(topic.Partitions) != partitions[topic.TopicId] {
				t.Errorf("id %s with %d partitions, its life has %d", topic.TopicId, len(topic.Partitions), partitions[topic.TopicId])
			}
		case 3:
			if !topic.TopicId.IsZero() {
				t.Errorf("no such topic, yet id %s", topic.TopicId)
			}
		case 100:
			if topic.Name != nil || len(topic.Partitions) > 0 {
				t.Errorf("unknown id: %+v", topic)
			}
		default:
			t.Errorf("error %d", topic.ErrorCode)
		}
	}
	if alive == 0 {
		t.Error("no answer saw the topic alive")
	}
}
