package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

// produceVersion names topics by id, as new clients do.
const produceVersion = 13

var produceFigures = []figure{
	{"throughput", "MB/s", true}, {"requests", "1/s", true}, {"CPU", "s/GB", false}, {"CPU per request", "µs", false},
	{"p50", "ms", false}, {"p99", "ms", false}, {"peak memory", "MiB", false},
}

var produceWorkloads = []workload{
	{
		name: "produce64k", what: "1 KiB records in 64 KiB batches, acks=1: 2 connections, 5 requests in flight on each, 6 partitions.",
		figures: produceFigures, floor: true,
		measure: produceLoad{value: 1024, batch: 64 << 10, conns: 2, inFlight: 5}.measure,
	},
	{
		name: "produce100b", what: "100 B records in 16 KiB batches, acks=1: 2 connections, 5 requests in flight on each, 6 partitions.",
		figures: produceFigures, floor: true,
		measure: produceLoad{value: 100, batch: 16 << 10, conns: 2, inFlight: 5}.measure,
	},
	{
		name: "onerecord", what: "One 100 B record in each request, acks=1: 8 connections, one request in flight on each, 6 partitions.",
		figures: produceFigures, floor: true,
		measure: produceLoad{value: 100, conns: 8, inFlight: 1}.measure,
	},
}

// produceLoad is a stream of produce requests, one batch for one partition in each.
type produceLoad struct {
	value           int // bytes of a record's value
	batch           int // bytes of a batch at most; 0: one record
	conns, inFlight int
}

const loadPartitions = 6

func (l produceLoad) measure(b *bench, c contender) map[string]float64 {
	p := b.fresh(c)
	defer b.drop(p)
	t := loadTopic(p, c)
	conns := l.connect(t)
	defer closeAll(conns)
	b.warmUp(p, func(d time.Duration) { drive(conns, d) })
	cpu, begin := cpuSeconds(p.pid), time.Now()
	requests, latencies := drive(conns, b.length)
	took := time.Since(begin).Seconds()
	cpu = cpuSeconds(p.pid) - cpu
	bytes := float64(requests) * float64(len(conns[0].batch))
	return map[string]float64{
		"throughput": bytes / 1e6 / took, "requests": float64(requests) / took,
		"CPU": cpu / (bytes / 1e9), "CPU per request": cpu / float64(requests) * 1e6,
		"p50": quantile(latencies, 0.5), "p99": quantile(latencies, 0.99), "peak memory": memory(p.pid, "VmHWM"),
	}
}

// loadTopic makes the topic a load works on; the floor has none.
func loadTopic(p *process, c contender) topic {
	if c.name == "floor" {
		return topic{partitions: loadPartitions}
	}
	return createTopics(p, "load", 1, loadPartitions)[0]
}

// newBatch fills a batch with records of random bytes, which no codec could shrink.
func newBatch(value, limit int) (record.Batch, int) {
	random := rand.NewChaCha8([32]byte{7})
	v := make([]byte, value)
	builder := record.NewBuilder(record.NewBatchOptions())
	now := time.Now().UnixMilli()
	for builder.Count() == 0 || builder.UncompressedBytes()+value+10 <= limit {
		random.Read(v)
		builder.Append(now, nil, v, nil)
	}
	n := builder.Count()
	return record.Batch(builder.Build(nil)), n
}

// produceFrame is a whole request with one batch.
func produceFrame(t topic, partition int, batch []byte) []byte {
	req := protocol.Make[protocol.ProduceRequest]()
	req.Acks, req.TimeoutMs = 1, 30_000
	d := protocol.Make[protocol.ProduceRequestPartitionProduceData]()
	d.Index, d.Records = int32(partition), batch
	td := protocol.Make[protocol.ProduceRequestTopicProduceData]()
	td.TopicId = t.id
	td.PartitionData = append(td.PartitionData, d)
	req.TopicData = append(req.TopicData, td)
	return encode(&req, produceVersion)
}

// Where the error code and the base offset of the only partition lie in an answer, behind the size:
// correlation id and tags, one topic, its id, one partition, its index.
const (
	produceErrorAt  = 4 + 1 + 1 + 16 + 1 + 4
	produceOffsetAt = produceErrorAt + 2
)

// checkProduced looks at the error code of an answer. The floor answers with zeros.
func checkProduced(answer []byte) error {
	if len(answer) < produceErrorAt+2 {
		return fmt.Errorf("a produce answer of %d bytes", len(answer))
	}
	if e := kerr.ForCode(int16(binary.BigEndian.Uint16(answer[produceErrorAt:]))); e != nil {
		return e
	}
	return nil
}

// producer is one connection of a load.
type producer struct {
	*client
	frames   [][]byte // one for each partition, taken in turn
	batch    record.Batch
	records  int // in the batch
	inFlight int
	next     int
	sent     []time.Time // of the requests in flight, oldest first
}

func (l produceLoad) connect(t topic) []*producer {
	batch, records := newBatch(l.value, l.batch)
	var all []*producer
	for i := range l.conns {
		p := &producer{client: mustDial(), batch: batch, records: records, inFlight: l.inFlight, next: i}
		for q := range t.partitions {
			p.frames = append(p.frames, produceFrame(t, q, batch))
		}
		all = append(all, p)
	}
	return all
}

func closeAll(conns []*producer) {
	for _, c := range conns {
		c.close()
	}
}

// drive keeps all connections busy for a while and waits for the last answers.
func drive(conns []*producer, length time.Duration) (requests int, latencies []time.Duration) {
	deadline := time.Now().Add(length)
	return driveWhile(conns, func(int) bool { return time.Now().Before(deadline) })
}

// driveWhile sends on each connection while more, given the requests sent on it, says so.
func driveWhile(conns []*producer, more func(sent int) bool) (requests int, latencies []time.Duration) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			took := c.drive(more)
			mu.Lock()
			latencies = append(latencies, took...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return len(latencies), latencies
}

func (p *producer) drive(more func(sent int) bool) (latencies []time.Duration) {
	sent := 0
	for {
		for len(p.sent) < p.inFlight && more(sent) {
			p.sent = append(p.sent, time.Now())
			_, err := p.conn.Write(p.frames[p.next%len(p.frames)])
			check(err)
			p.next++
			sent++
		}
		if len(p.sent) == 0 {
			return latencies
		}
		answer, err := p.read()
		check(err)
		check(checkProduced(answer))
		latencies = append(latencies, time.Since(p.sent[0]))
		p.sent = append(p.sent[:0], p.sent[1:]...)
	}
}
