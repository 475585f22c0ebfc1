package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/test/harness"
)

// codecs by the names clients use.
var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

var franzCodecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func franz(t *testing.T, n *harness.Node, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(n.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func admin(t *testing.T, n *harness.Node) *kadm.Client {
	t.Helper()
	return kadm.NewClient(franz(t, n))
}

func createTopic(t *testing.T, n *harness.Node, topic string, partitions int32, configs map[string]*string) {
	t.Helper()
	if _, err := admin(t, n).CreateTopic(within(t, time.Minute), partitions, 1, configs, topic); err != nil {
		t.Fatalf("creating %s: %v", topic, err)
	}
}

// franzProduce writes records 0 to n-1 of the recipe to the topic.
func franzProduce(t *testing.T, node *harness.Node, topic string, n int, opts ...kgo.Opt) {
	t.Helper()
	cl := franz(t, node, opts...)
	ctx := within(t, time.Minute)
	var bad []error
	done := make(chan error, n)
	for i := range n {
		r := recipe(i)
		out := &kgo.Record{Topic: topic, Partition: r.partition, Key: r.key, Value: r.value}
		for _, h := range r.headers {
			out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.key, Value: h.value})
		}
		cl.Produce(ctx, out, func(r *kgo.Record, err error) { done <- err })
	}
	for range n {
		if err := <-done; err != nil {
			bad = append(bad, err)
		}
	}
	if len(bad) > 0 {
		t.Fatalf("producing to %s: %d errors, the first: %v", topic, len(bad), bad[0])
	}
	cl.Close()
}

// franzDigests reads n records of the topic from its beginning.
func franzDigests(t *testing.T, node *harness.Node, topic string, n int, opts ...kgo.Opt) string {
	t.Helper()
	cl := franz(t, node, append([]kgo.Opt{kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, opts...)...)
	defer cl.Close()
	ctx := within(t, time.Minute)
	var d digests
	for got := 0; got < n; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("consuming %s after %d records: %v", topic, got, err)
		}
		for _, r := range fetches.Records() {
			in := rec{partition: r.Partition, offset: r.Offset, key: r.Key, value: r.Value}
			for _, h := range r.Headers {
				in.headers = append(in.headers, header{h.Key, h.Value})
			}
			d.add(in)
			got++
		}
	}
	if group, _ := cl.GroupMetadata(); group != "" {
		if err := cl.CommitUncommittedOffsets(ctx); err != nil {
			t.Fatalf("commit: %v", err)
		}
	}
	return d.text()
}

// wantTopic fails unless the topic holds records 0 to n-1 of the recipe, bit for bit and in order.
func wantTopic(t *testing.T, node *harness.Node, topic string, n int) {
	t.Helper()
	if got, want := franzDigests(t, node, topic, n), wantDigests(n); got != want {
		t.Errorf("topic %s holds %s, expected %s", topic, got, want)
	}
}

func TestFranzGoEveryCodec(t *testing.T) {
	t.Parallel()
	node := serve(t)
	for _, codec := range codecs {
		for name, opts := range map[string][]kgo.Opt{
			"idempotent":      nil,
			"acks=1":          {kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck())},
			"a batch by size": {kgo.ProducerBatchMaxBytes(40_000), kgo.MaxProduceRequestsInflightPerBroker(5), kgo.DisableIdempotentWrite()},
		} {
			t.Run(codec+"/"+name, func(t *testing.T) {
				topic := "franz-" + codec + "-" + map[string]string{"idempotent": "i", "acks=1": "1", "a batch by size": "b"}[name]
				createTopic(t, node, topic, partitions, nil)
				franzProduce(t, node, topic, 600, append(opts, kgo.ProducerBatchCompression(franzCodecs[codec]))...)
				wantTopic(t, node, topic, 600)
			})
		}
	}
}

// The broker recompresses what the topic's compression.type says.
func TestFranzGoTopicCompression(t *testing.T) {
	t.Parallel()
	node := serve(t)
	for i, codec := range []string{"uncompressed", "gzip", "snappy", "lz4", "zstd"} {
		topic := "stored-" + codec
		createTopic(t, node, topic, partitions, map[string]*string{"compression.type": &codec})
		franzProduce(t, node, topic, 300, kgo.ProducerBatchCompression(franzCodecs[codecs[(i+2)%len(codecs)]]))
		wantTopic(t, node, topic, 300)
	}
}

func TestFranzGoGroups(t *testing.T) {
	t.Parallel()
	node := serve(t)
	createTopic(t, node, "grouped", partitions, nil)
	franzProduce(t, node, "grouped", 600)
	ctx := within(t, time.Minute)
	adm := admin(t, node)

	if got, want := franzDigests(t, node, "grouped", 600, kgo.ConsumerGroup("readers"), kgo.Balancers(kgo.CooperativeStickyBalancer())), wantDigests(600); got != want {
		t.Errorf("a group member read %s, expected %s", got, want)
	}

	// Two members share the partitions; what was read is committed when one leaves, and the other goes on.
	member := func(opts ...kgo.Opt) *kgo.Client {
		return franz(t, node, append(opts, kgo.ConsumerGroup("readers2"), kgo.ConsumeTopics("grouped"), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.Balancers(kgo.RangeBalancer()), kgo.HeartbeatInterval(200*time.Millisecond))...)
	}
	poll := func(m *kgo.Client) {
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		m.PollFetches(short)
	}
	members := []*kgo.Client{member(), member(kgo.InstanceID("static"))}
	node.Eventually("both members own partitions", 30*time.Second, func() error {
		for _, m := range members {
			poll(m)
		}
		return stable(ctx, adm, "readers2", 2)
	})
	for _, m := range members {
		if err := m.CommitUncommittedOffsets(ctx); err != nil {
			t.Errorf("commit: %v", err)
		}
	}
	members[0].Close()
	node.Eventually("the rest belongs to the member that stays", 30*time.Second, func() error {
		poll(members[1])
		return stable(ctx, adm, "readers2", 1)
	})

	// Offsets: committed by hand, fetched, deleted; a group with members is not deleted, an empty one is.
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: "grouped", Partition: 1, At: 42, LeaderEpoch: -1, Metadata: "by hand"})
	if err := adm.CommitAllOffsets(ctx, "by-hand", offsets); err != nil {
		t.Fatal(err)
	}
	committed, err := adm.FetchOffsets(ctx, "by-hand")
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := committed.Lookup("grouped", 1); !ok || o.At != 42 || o.Metadata != "by hand" {
		t.Errorf("fetched %+v", o)
	}
	listed, err := adm.ListGroups(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if names := listed.Groups(); !slices.Contains(names, "by-hand") || !slices.Contains(names, "readers2") {
		t.Errorf("groups %v", names)
	}
	if resp, err := adm.DeleteGroups(ctx, "readers2", "by-hand", "nobody"); err != nil {
		t.Fatal(err)
	} else {
		for group, want := range map[string]error{"readers2": kerr.NonEmptyGroup, "by-hand": nil, "nobody": kerr.GroupIDNotFound} {
			if got := resp[group].Err; !errors.Is(got, want) {
				t.Errorf("deleting %s: %v, expected %v", group, got, want)
			}
		}
	}
}

// stable is nil when the group is stable with so many members and each of them owns partitions.
func stable(ctx context.Context, adm *kadm.Client, group string, members int) error {
	groups, err := adm.DescribeGroups(ctx, group)
	if err != nil {
		return err
	}
	g := groups[group]
	if g.State != "Stable" || len(g.Members) != members {
		return fmt.Errorf("the group is %s with %d members", g.State, len(g.Members))
	}
	for _, m := range g.Members {
		if assigned, ok := m.Assigned.AsConsumer(); !ok || len(assigned.Topics) == 0 {
			return fmt.Errorf("member %s owns nothing", m.MemberID)
		}
	}
	return nil
}
