package harness

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// CreateTopic makes a topic with one replica through franz-go; configs are pairs of name and value.
func CreateTopic(t testing.TB, n *Node, topic string, partitions int32, configs ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(n.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	set := map[string]*string{}
	for i := 0; i+1 < len(configs); i += 2 {
		set[configs[i]] = &configs[i+1]
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, partitions, 1, set, topic); err != nil {
		t.Fatalf("creating topic %s: %v", topic, err)
	}
}

// ReadAll reads a partition from its log start to the end it has now.
func ReadAll(t testing.TB, n *Node, topic string, partition int32) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(n.Addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {partition: kgo.NewOffset().AtStart()},
	}), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatalf("end offsets of %s: %v", topic, err)
	}
	end, ok := ends.Lookup(topic, partition)
	if !ok || end.Err != nil {
		t.Fatalf("end offset of %s-%d: %v", topic, partition, end.Err)
	}
	var all []*kgo.Record
	for next := int64(0); next < end.Offset; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("reading %s-%d at %d: %v", topic, partition, next, err)
		}
		fetches.EachError(func(_ string, _ int32, err error) { t.Errorf("reading %s-%d: %v", topic, partition, err) })
		fetches.EachRecord(func(r *kgo.Record) {
			all = append(all, r)
			next = r.Offset + 1
		})
	}
	return all
}
