package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"samsa/test/harness"
)

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func saramaConfig(change func(*sarama.Config)) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Return.Errors = true
	c.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	if change != nil {
		change(c)
	}
	return c
}

func saramaProduce(t *testing.T, node *harness.Node, topic string, n int, c *sarama.Config) {
	t.Helper()
	producer, err := sarama.NewSyncProducer([]string{node.Addr}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for i := 0; i < n; i += 100 {
		var batch []*sarama.ProducerMessage
		for j := i; j < min(i+100, n); j++ {
			r := recipe(j)
			m := &sarama.ProducerMessage{Topic: topic, Partition: r.partition}
			if r.key != nil {
				m.Key = sarama.ByteEncoder(r.key)
			}
			if r.value != nil {
				m.Value = sarama.ByteEncoder(r.value)
			}
			for _, h := range r.headers {
				m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.key), Value: h.value})
			}
			batch = append(batch, m)
		}
		if err := producer.SendMessages(batch); err != nil {
			t.Fatalf("%s: %v", topic, err)
		}
		for j, m := range batch {
			if want := recipe(i + j); m.Offset != want.offset {
				t.Fatalf("%s: record %d is at offset %d, expected %d", topic, i+j, m.Offset, want.offset)
			}
		}
	}
}

// member is a Sarama group member that hands on what it reads and counts the partitions it has.
type member struct {
	records chan rec
	claims  chan map[string][]int32
}

func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	select {
	case m.claims <- s.Claims():
	default:
	}
	return nil
}
func (m *member) Cleanup(s sarama.ConsumerGroupSession) error { return nil }
func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for msg := range claim.Messages() {
		r := rec{partition: msg.Partition, offset: msg.Offset, key: msg.Key, value: msg.Value}
		for _, h := range msg.Headers {
			r.headers = append(r.headers, header{string(h.Key), h.Value})
		}
		select {
		case m.records <- r:
		case <-s.Context().Done():
			return nil
		}
		s.MarkMessage(msg, "")
	}
	return nil
}

// join runs a member until the context ends; the returned channel is closed when it has left.
func join(ctx context.Context, t *testing.T, node *harness.Node, group, topic string, m *member, c *sarama.Config) <-chan struct{} {
	t.Helper()
	g, err := sarama.NewConsumerGroup([]string{node.Addr}, group, c)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		for err := range g.Errors() {
			if ctx.Err() == nil {
				t.Errorf("group %s: %v", group, err)
			}
		}
	}()
	go func() {
		defer close(left)
		defer g.Close()
		for ctx.Err() == nil {
			if err := g.Consume(ctx, []string{topic}, m); err != nil && ctx.Err() == nil {
				t.Errorf("group %s: %v", group, err)
				return
			}
		}
	}()
	return left
}

func TestSarama(t *testing.T) {
	t.Parallel()
	node := serve(t)
	franzTopics(t, node)
	adm, err := sarama.NewClusterAdmin([]string{node.Addr}, saramaConfig(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()

	for _, codec := range codecs {
		topic := "sarama-" + codec
		if err := adm.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false); err != nil {
			t.Fatal(err)
		}
		saramaProduce(t, node, topic, shown, saramaConfig(func(c *sarama.Config) {
			c.Producer.Compression = saramaCodecs[codec]
			c.Producer.Idempotent, c.Producer.RequiredAcks, c.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
		}))
		wantTopic(t, node, topic, shown)
	}
	// The oldest protocol Sarama can be told to speak to a broker of today.
	if err := adm.CreateTopic("sarama-old", &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false); err != nil {
		t.Fatal(err)
	}
	saramaProduce(t, node, "sarama-old", shown, saramaConfig(func(c *sarama.Config) { c.Version, c.ApiVersionsRequest = sarama.V2_1_0_0, false }))
	wantTopic(t, node, "sarama-old", shown)

	for _, codec := range codecs {
		ctx, leave := context.WithCancel(within(t, time.Minute))
		m := &member{records: make(chan rec, 100), claims: make(chan map[string][]int32, 10)}
		left := join(ctx, t, node, "sarama-"+codec, "franz-"+codec, m, saramaConfig(nil))
		var d digests
		for range shown {
			select {
			case r := <-m.records:
				d.add(r)
			case <-ctx.Done():
				t.Fatalf("franz-%s: not all records came", codec)
			}
		}
		leave()
		<-left
		if got, want := d.text(), wantDigests(shown); got != want {
			t.Errorf("franz-%s read as %s, expected %s", codec, got, want)
		}
	}
	saramaRebalance(t, node)
	saramaAdministrate(t, node, adm)
}

// Two members share the partitions, then one has them all.
func saramaRebalance(t *testing.T, node *harness.Node) {
	t.Helper()
	ctx := within(t, time.Minute)
	first, leave := context.WithCancel(ctx)
	second, end := context.WithCancel(ctx)
	c := saramaConfig(func(c *sarama.Config) {
		c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRoundRobin()}
	})
	a := &member{records: make(chan rec, 2*shown), claims: make(chan map[string][]int32, 100)}
	b := &member{records: make(chan rec, 2*shown), claims: make(chan map[string][]int32, 100)}
	aLeft := join(first, t, node, "sarama-pair", "franz-none", a, c)
	until := func(m *member, n int) {
		t.Helper()
		for {
			select {
			case claims := <-m.claims:
				if len(claims["franz-none"]) == n {
					return
				}
			case <-ctx.Done():
				t.Fatalf("a member never had %d partitions", n)
			}
		}
	}
	until(a, 3)
	bLeft := join(second, t, node, "sarama-pair", "franz-none", b, c)
	select { // one of them has two, the other one
	case claims := <-a.claims:
		until(b, 3-len(claims["franz-none"]))
	case <-ctx.Done():
		t.Fatal("no rebalance")
	}
	leave()
	<-aLeft
	until(b, 3)
	end()
	<-bLeft
}

func saramaAdministrate(t *testing.T, node *harness.Node, adm sarama.ClusterAdmin) {
	t.Helper()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	topic, retention := "sarama-admin", "86400000"
	must("create", adm.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &retention}}, false))
	if err := adm.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false); !errors.Is(err, sarama.ErrTopicAlreadyExists) {
		t.Errorf("created twice: %v", err)
	}
	must("partitions", adm.CreatePartitions(topic, 4, nil, false))
	meta, err := adm.DescribeTopics([]string{topic})
	must("describe", err)
	if len(meta) != 1 || len(meta[0].Partitions) != 4 {
		t.Errorf("described %+v", meta)
	}
	value := func(name string) string {
		entries, err := adm.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{name}})
		must("describe config", err)
		if len(entries) != 1 {
			return fmt.Sprint(entries)
		}
		return entries[0].Value
	}
	if got := value("retention.ms"); got != retention {
		t.Errorf("retention.ms is %s", got)
	}
	changed := "1000000"
	must("alter", adm.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &changed},
	}, false))
	if got := value("retention.ms"); got != changed {
		t.Errorf("retention.ms is %s after it was altered", got)
	}
	brokers, controller, err := adm.DescribeCluster()
	must("cluster", err)
	if len(brokers) != 1 || controller != 1 {
		t.Errorf("cluster: %v, controller %d", brokers, controller)
	}
	must("delete records", adm.DeleteRecords("sarama-none", map[int32]int64{0: 5}))
	groups, err := adm.ListConsumerGroups()
	must("list groups", err)
	if groups["sarama-none"] != "consumer" {
		t.Errorf("groups %v", groups)
	}
	offsets, err := adm.ListConsumerGroupOffsets("sarama-none", map[string][]int32{"franz-none": {0, 1, 2}})
	must("group offsets", err)
	for p := range int32(3) {
		if b := offsets.GetBlock("franz-none", p); b == nil || b.Offset != 200 {
			t.Errorf("committed offset of partition %d: %+v", p, b)
		}
	}
	must("delete an offset", adm.DeleteConsumerGroupOffset("sarama-none", "franz-none", 0))
	described, err := adm.DescribeConsumerGroups([]string{"sarama-none", "nobody"})
	must("describe groups", err)
	var states []string
	for _, g := range described {
		states = append(states, g.GroupId+" "+g.State)
	}
	if slices.Sort(states); !slices.Equal(states, []string{"nobody Dead", "sarama-none Empty"}) {
		t.Errorf("groups are %q", states)
	}
	must("delete a group", adm.DeleteConsumerGroup("sarama-none"))
	dirs, err := adm.DescribeLogDirs([]int32{1})
	must("log dirs", err)
	if len(dirs[1]) != 2 {
		t.Errorf("log dirs %+v", dirs)
	}
	must("delete", adm.DeleteTopic(topic))
	node.Eventually("the topic is gone", 10*time.Second, func() error {
		if topics, err := adm.ListTopics(); err != nil {
			return err
		} else if _, there := topics[topic]; there {
			return errors.New("still listed")
		}
		return nil
	})
}
