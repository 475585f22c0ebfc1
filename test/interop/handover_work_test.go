package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"samsa/internal/wire/record"
	"samsa/test/harness"
)

const day = int64(24 * time.Hour / time.Millisecond)

// work is what the tests of handed over directories do to a cluster, and what they know it must hold.
type work struct {
	t       *testing.T
	n       *harness.Node
	program string
	narrow  bool // only the last batch of a producer is known
	cl      *kgo.Client
	adm     *kadm.Client

	base   int64 // ms: the time of the first records
	ids    map[string][16]byte
	sent   map[string][]sentRecord // by partition, what was acknowledged and not deleted since
	idem   []*idempotent
	static *staticMember
	modern []string // KIP-848 groups
	member string   // of the KIP-848 group
	epoch  int32
	open   *idempotent // of the open transaction

	groups, classic []string
}

type sentRecord struct {
	offset, time int64 // time 0: the broker's
	key, value   []byte
}

// idempotent is a producer with an id, by hand, so that a batch can be sent again as it was.
type idempotent struct {
	txn     string
	id      int64
	epoch   int16
	next    int32
	batches [][]byte
	bases   []int64
}

type staticMember struct {
	id         string
	generation int32
}

func newWork(t *testing.T, n *harness.Node) *work {
	return &work{t: t, n: n, base: time.Now().UnixMilli() - 60*day, sent: map[string][]sentRecord{}}
}

func (w *work) connect(program string) {
	w.t.Helper()
	w.program = program
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.n.Addr), kgo.ClientID("handover"), kgo.RequestRetries(3))
	w.must(err, "connecting")
	w.cl, w.adm = cl, kadm.NewClient(cl)
}

func (w *work) disconnect() { w.cl.Close() }

func (w *work) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

// fresh is a context with which kadm asks for metadata instead of remembering it.
func (w *work) fresh() context.Context { return kadm.WithAuthorizedOps(w.ctx()) }

func (w *work) must(err error, what string, args ...any) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s, served by %s: %v", fmt.Sprintf(what, args...), w.program, err)
	}
}

// ask sends one request to the node.
func ask[R kmsg.Response](w *work, req kmsg.Request) R {
	w.t.Helper()
	resp, err := w.cl.Broker(1).RetriableRequest(w.ctx(), req)
	w.must(err, "%T", req)
	return resp.(R)
}

func (w *work) code(code int16, what string, args ...any) {
	w.t.Helper()
	w.must(kerr.ErrorForCode(code), what, args...)
}

// topicID asks for the id of a topic that was made since the last picture.
func (w *work) topicID(topic string) [16]byte {
	if id, ok := w.ids[topic]; ok {
		return id
	}
	list, err := w.adm.ListTopicsWithInternal(w.fresh())
	w.must(err, "listing topics")
	w.ids = map[string][16]byte{}
	for name, d := range list {
		w.ids[name] = d.ID
	}
	return w.ids[topic]
}

func (w *work) create(topic string, partitions int32, configs ...string) {
	w.t.Helper()
	set := map[string]*string{}
	for i := 0; i+1 < len(configs); i += 2 {
		set[configs[i]] = &configs[i+1]
	}
	made, err := w.adm.CreateTopic(w.ctx(), partitions, 1, set, topic)
	w.must(err, "creating %s", topic)
	w.n.Eventually(topic+" is there", 30*time.Second, func() error {
		list, err := w.adm.ListTopics(w.fresh(), topic)
		w.must(err, "listing topics")
		if d := list[topic]; d.ID != made.ID || len(d.Partitions) != int(partitions) {
			return fmt.Errorf("id %s, expected %s, %d partitions", d.ID, made.ID, len(d.Partitions))
		}
		return nil
	})
	w.ids = nil
}

func (w *work) delete(topic string) {
	w.t.Helper()
	_, err := w.adm.DeleteTopic(w.ctx(), topic)
	w.must(err, "deleting %s", topic)
	w.n.Eventually(topic+" is gone", 30*time.Second, func() error {
		list, err := w.adm.ListTopics(w.fresh())
		w.must(err, "listing topics")
		if list.Has(topic) {
			return errors.New("it is still listed")
		}
		return nil
	})
	for tp := range w.sent {
		if strings.HasPrefix(tp, topic+"-") {
			delete(w.sent, tp)
		}
	}
}

// produce appends a batch and returns the base offset it got.
func (w *work) produce(topic string, partition int32, batch []byte, txn ...string) (int64, error) {
	w.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 30000
	if len(txn) > 0 {
		req.TransactionID = &txn[0]
	}
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, w.topicID(topic)
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, batch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	got := ask[*kmsg.ProduceResponse](w, req).Topics[0].Partitions[0]
	return got.BaseOffset, kerr.ErrorForCode(got.ErrorCode)
}

// mustProduce is produce of a batch that has to be taken; its records are expected from then on.
func (w *work) mustProduce(topic string, partition int32, batch []byte, txn ...string) int64 {
	w.t.Helper()
	var base int64
	var err error
	w.n.Eventually("a batch for "+topic+" is taken", 30*time.Second, func() error {
		base, err = w.produce(topic, partition, batch, txn...)
		if errors.Is(err, kerr.NotEnoughReplicas) || errors.Is(err, kerr.ConcurrentTransactions) || errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.NotLeaderForPartition) || errors.Is(err, kerr.UnknownTopicID) {
			w.ids = nil
			return err
		}
		return nil
	})
	w.must(err, "producing to %s-%d", topic, partition)
	tp := fmt.Sprintf("%s-%d", topic, partition)
	for r, err := range record.Records(record.Batch(batch)) {
		w.must(err, "a batch of our own")
		at := r.Timestamp
		if topic == "append-time" {
			at = 0
		}
		w.sent[tp] = append(w.sent[tp], sentRecord{base + int64(len(w.sent[tp])-w.count(tp, base)), at, bytes.Clone(r.Key), bytes.Clone(r.Value)})
	}
	return base
}

// count is the number of records expected of a partition below an offset.
func (w *work) count(tp string, base int64) (n int) {
	for _, r := range w.sent[tp] {
		if r.offset < base {
			n++
		}
	}
	return n
}

type batchOptions struct {
	codec       record.Codec
	records     int
	size        int
	time        int64
	seed        uint64
	producer    *idempotent
	compactable bool
}

func (w *work) batch(o batchOptions) []byte {
	b := record.NewBatchOptions()
	b.Codec = o.codec
	if p := o.producer; p != nil {
		b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = p.id, p.epoch, p.next, p.txn != ""
		p.next += int32(o.records)
	}
	builder := record.NewBuilder(b)
	random := rand.NewChaCha8([32]byte{byte(o.seed), byte(o.seed >> 8), byte(o.seed >> 16)})
	for i := range o.records {
		value := make([]byte, o.size)
		random.Read(value[:o.size/2]) // the other half compresses
		key := []byte(fmt.Sprint("key-", o.seed, "-", i))
		if o.compactable {
			key = []byte(fmt.Sprint("key-", i%7))
		} else if i%5 == 4 {
			key = nil
		}
		var headers []record.Header
		if i%3 == 0 {
			headers = []record.Header{{Key: "h", Value: []byte("x")}, {Key: "null", Value: nil}}
		}
		builder.Append(o.time+int64(i), key, value, headers)
	}
	return builder.Build(nil)
}

// fetch asks for a partition's bytes from an offset on.
func (w *work) fetch(topic string, partition int32, offset int64, isolation int8) kmsg.FetchResponseTopicPartition {
	w.t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = 0, 0, 32<<20, isolation
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, w.topicID(topic)
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 32<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp := ask[*kmsg.FetchResponse](w, req)
	w.code(resp.ErrorCode, "fetching %s-%d", topic, partition)
	got := resp.Topics[0].Partitions[0]
	w.code(got.ErrorCode, "fetching %s-%d at %d", topic, partition, offset)
	return got
}

// read reads all batches of a partition.
func (w *work) read(topic string, partition int32, from int64) (all []byte, last kmsg.FetchResponseTopicPartition) {
	w.t.Helper()
	for next := from; ; {
		last = w.fetch(topic, partition, next, 0)
		took := 0
		for batch, err := range record.Split(last.RecordBatches) {
			if err != nil {
				break // a cut one at the end
			}
			if !batch.ValidCRC() {
				w.t.Fatalf("%s-%d: the batch at %d has a wrong checksum", topic, partition, batch.BaseOffset())
			}
			all = append(all, batch...)
			next, took = batch.NextOffset(), took+1
		}
		if next >= last.HighWatermark {
			return all, last
		}
		if took == 0 {
			w.t.Fatalf("%s-%d: nothing to read at %d, the end is %d", topic, partition, next, last.HighWatermark)
		}
	}
}

// holds compares the records of every partition that was written with what was sent.
func (w *work) holds(step string, p picture) {
	w.t.Helper()
	for tp, want := range w.sent {
		var got []sentRecord
		for batch, err := range record.Split(p.logs[tp]) {
			w.must(err, "%s: %s", step, tp)
			if batch.IsControl() {
				continue
			}
			for r, err := range record.Records(batch) {
				w.must(err, "%s: %s", step, tp)
				at := r.Timestamp
				if batch.TimestampType() == record.LogAppendTime {
					at = 0
				}
				if len(want) > 0 && r.Offset >= want[0].offset {
					got = append(got, sentRecord{r.Offset, at, bytes.Clone(r.Key), bytes.Clone(r.Value)})
				}
			}
		}
		if len(got) != len(want) {
			w.t.Errorf("%s: %s holds %d records, expected %d", step, tp, len(got), len(want))
			continue
		}
		for i := range want {
			if got[i].offset != want[i].offset || got[i].time != want[i].time || !bytes.Equal(got[i].key, want[i].key) || !bytes.Equal(got[i].value, want[i].value) {
				w.t.Errorf("%s: record %d of %s is at offset %d, time %d, with key %q, expected offset %d, time %d, key %q", step, i, tp, got[i].offset, got[i].time, got[i].key, want[i].offset, want[i].time, want[i].key)
				break
			}
		}
	}
}

func (w *work) initProducer(txn string) *idempotent {
	w.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	if txn != "" {
		req.TransactionalID = &txn
	}
	req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 900_000, -1, -1
	var resp *kmsg.InitProducerIDResponse
	w.n.Eventually("a producer id", 60*time.Second, func() error {
		resp = ask[*kmsg.InitProducerIDResponse](w, req)
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	for _, p := range w.idem {
		if p.id == resp.ProducerID {
			w.t.Errorf("producer id %d was given out before", p.id)
		}
	}
	return &idempotent{txn: txn, id: resp.ProducerID, epoch: resp.ProducerEpoch}
}

func (w *work) idempotent(p *idempotent, phase, i int) {
	w.t.Helper()
	b := w.batch(batchOptions{codec: record.Codec(i % 5), records: 3 + i%4, size: 300, time: w.base + 60*day + int64(phase*100+i), seed: uint64(7000 + phase*100 + i), producer: p})
	p.batches = append(p.batches, b)
	p.bases = append(p.bases, w.mustProduce("idempotent", 0, b))
}

// do is what either program can serve. Phase 1 makes everything, the later ones add to it.
func (w *work) do(phase int) {
	w.t.Helper()
	seed := uint64(phase * 1000)
	if phase == 1 {
		w.create("plain", 3, "segment.bytes", "1048576", "min.insync.replicas", "1")
		w.create("codecs", 5, "segment.bytes", "1048576")
		w.create("stored-zstd", 1, "compression.type", "zstd", "compression.zstd.level", "5")
		w.create("stored-gzip", 1, "compression.type", "gzip")
		w.create("stored-plain", 1, "compression.type", "uncompressed")
		w.create("rolled-by-time", 1, "segment.ms", fmt.Sprint(day))
		w.create("append-time", 1, "message.timestamp.type", "LogAppendTime")
		w.create("idempotent", 1)
		w.create("cut", 2, "segment.bytes", "1048576")
		w.create("many.small_topics-with-dashes", 6)
		w.create("compacted", 1, "cleanup.policy", "compact", "segment.bytes", "1048576", "min.cleanable.dirty.ratio", "0.9")
		w.create("gone", 2)
		w.create("again", 2)
		w.create("empty", 1)
	}
	// Several segments by size, one partition with a little, one that stays empty.
	for i := range 9 {
		w.mustProduce("plain", 0, w.batch(batchOptions{codec: record.None, records: 20, size: 15000, time: w.base + int64(phase)*day + int64(i)*1000, seed: seed + uint64(i)}))
	}
	w.mustProduce("plain", 1, w.batch(batchOptions{codec: record.None, records: 1, size: 10, time: w.base + int64(phase)*day, seed: seed + 20}))
	for i := range 5 {
		for j := range 3 {
			w.mustProduce("codecs", int32(i), w.batch(batchOptions{codec: record.Codec(i), records: 12, size: 16000, time: w.base + int64(phase)*day + int64(j)*5000, seed: seed + 30 + uint64(i*10+j)}))
		}
		for _, topic := range []string{"stored-zstd", "stored-gzip", "stored-plain", "append-time"} {
			w.mustProduce(topic, 0, w.batch(batchOptions{codec: record.Codec(i), records: 10, size: 500, time: w.base + int64(phase)*day, seed: seed + 100 + uint64(i)}))
		}
	}
	for i := range 4 {
		w.mustProduce("rolled-by-time", 0, w.batch(batchOptions{codec: record.LZ4, records: 5, size: 100, time: w.base + int64(phase*10+i*2)*day, seed: seed + 200 + uint64(i)}))
	}
	for i := range 6 {
		w.mustProduce("many.small_topics-with-dashes", int32(i), w.batch(batchOptions{codec: record.Snappy, records: 2, size: 50, time: w.base + int64(phase)*day, seed: seed + 300 + uint64(i)}))
	}
	w.mustProduce("compacted", 0, w.batch(batchOptions{codec: record.None, records: 20, size: 100, time: w.base + int64(phase)*day, seed: seed + 320, compactable: true}))

	// Producers that go on for ever, and one of each phase.
	if phase == 1 {
		w.idem = append(w.idem, w.initProducer(""), w.initProducer(""))
	} else {
		w.idem = append(w.idem, w.initProducer(""))
	}
	for i := range 12 {
		for _, p := range w.idem {
			w.idempotent(p, phase, i)
		}
	}

	// The log start moves into a batch of a later segment, and to the end.
	for i := range 5 {
		w.mustProduce("cut", 0, w.batch(batchOptions{codec: record.None, records: 25, size: 15000, time: w.base + int64(phase)*day + int64(i)*1000, seed: seed + 400 + uint64(i)}))
		w.mustProduce("cut", 1, w.batch(batchOptions{codec: record.None, records: 25, size: 150, time: w.base + int64(phase)*day, seed: seed + 420 + uint64(i)}))
	}
	w.cut("cut", 0, int64(phase-1)*125+88)
	w.cut("cut", 1, -1)

	if phase == 1 {
		for part := range int32(2) {
			for _, topic := range []string{"gone", "again"} {
				w.mustProduce(topic, part, w.batch(batchOptions{records: 3, size: 100, time: w.base, seed: uint64(part)}))
			}
		}
		w.groupsAtFirst()
		for _, topic := range []string{"gone", "again"} {
			w.delete(topic)
		}
		w.create("again", 1, "retention.bytes", "-1")
		_, err := w.adm.UpdatePartitions(w.ctx(), 8, "many.small_topics-with-dashes")
		w.must(err, "adding partitions")
	}
	w.mustProduce("again", 0, w.batch(batchOptions{records: 3, size: 100, time: w.base, seed: seed + 500}))
	w.mustProduce("many.small_topics-with-dashes", 7, w.batch(batchOptions{records: 3, size: 100, time: w.base, seed: seed + 501}))
	w.configs(phase)
	w.commits(phase)
	w.metadataRecords(phase)
	w.continues(fmt.Sprint("phase ", phase))
}

// metadataRecords are enough topics and settings for a snapshot of the metadata.
func (w *work) metadataRecords(phase int) {
	w.t.Helper()
	for i := range 10 {
		name := fmt.Sprintf("topic-of-phase-%d-%02d", phase, i)
		w.create(name, 2, "retention.ms", fmt.Sprint(1_000_000_000_000+phase*1000+i))
	}
	w.delete(fmt.Sprintf("topic-of-phase-%d-03", phase))
}

func (w *work) cut(topic string, partition int32, at int64) {
	w.t.Helper()
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: at})
	got, err := w.adm.DeleteRecords(w.ctx(), offsets)
	w.must(err, "deleting records")
	r, _ := got.Lookup(topic, partition)
	w.must(r.Err, "deleting records of %s-%d", topic, partition)
	tp := fmt.Sprintf("%s-%d", topic, partition)
	if at >= 0 && r.LowWatermark != at {
		w.t.Errorf("%s was cut at %d, expected %d", tp, r.LowWatermark, at)
	}
	for len(w.sent[tp]) > 0 && w.sent[tp][0].offset < r.LowWatermark {
		w.sent[tp] = w.sent[tp][1:]
	}
}

func (w *work) configs(phase int) {
	w.t.Helper()
	alter := func(name, value string) []kadm.AlterConfig {
		return []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}
	}
	for _, err := range []error{
		second(w.adm.AlterTopicConfigs(w.ctx(), alter("max.message.bytes", fmt.Sprint(2_000_000+phase)), "plain")),
		second(w.adm.AlterBrokerConfigs(w.ctx(), alter("log.cleaner.threads", fmt.Sprint(1+phase%2)), 1)),
		second(w.adm.AlterBrokerConfigs(w.ctx(), alter("message.max.bytes", fmt.Sprint(1_500_000+phase)))),
	} {
		w.must(err, "altering configs")
	}
}

func second[T any](_ T, err error) error { return err }

// continues tries what goes on over a handover: members, and the sequences of producers.
func (w *work) continues(step string) {
	w.t.Helper()
	if w.static != nil {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation, req.InstanceID = "static", w.static.id, w.static.generation, kmsg.StringPtr("instance")
		w.code(ask[*kmsg.HeartbeatResponse](w, req).ErrorCode, "%s: heartbeat of the static member", step)
	}
	for _, p := range w.idem {
		// The last batches once more: recognised, and not stored. Kafka remembers one over its restart, and tells
		// no more of it at a clean stop (D-223).
		window := 5
		if w.narrow {
			window = 1
		}
		for i := max(0, len(p.batches)-window); i < len(p.batches); i++ {
			got, err := w.produce("idempotent", 0, p.batches[i])
			if err != nil || got != p.bases[i] {
				w.t.Errorf("%s: batch %d of %d of producer %d sent again by %s: offset %d, %v, expected the old offset %d", step, i, len(p.batches), p.id, w.program, got, err, p.bases[i])
			}
		}
		skipping := *p
		skipping.next += 17
		if _, err := w.produce("idempotent", 0, w.batch(batchOptions{records: 1, size: 1, time: w.base, producer: &skipping})); !errors.Is(err, kerr.OutOfOrderSequenceNumber) {
			w.t.Errorf("%s: a batch with a gap before it: %v", step, err)
		}
	}
}
