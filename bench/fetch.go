package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

// fetchVersion names topics by id and has no session when the epoch says so.
const fetchVersion = 13

// fetchBytes is what a fetch asks for, as a consumer's max.partition.fetch.bytes is by default.
const fetchBytes = 1 << 20

var fetchWorkloads = []workload{{
	name:  "fetch",
	what:  "Fetches of 1 MiB of one partition from the page cache: 2 connections, 6 partitions, 64 KiB batches.",
	floor: true,
	figures: []figure{
		{"throughput", "MB/s", true}, {"CPU", "s/GB", false}, {"p50", "ms", false}, {"p99", "ms", false}, {"peak memory", "MiB", false},
	},
	measure: measureFetch,
}}

func measureFetch(b *bench, c contender) map[string]float64 {
	p := b.fresh(c)
	defer b.drop(p)
	t := loadTopic(p, c)
	const perPartition = 1500 // batches; 100 MB in each partition
	batch, records := fill(t, c, perPartition)
	var readers []*reader
	for i := range 2 {
		r := &reader{client: mustDial(), batch: len(batch), records: int64(records), end: perPartition * int64(records), isFloor: c.name == "floor", offsetIn: offsetAt(t, 0)}
		for q := range t.partitions {
			if q%2 == i {
				r.frames = append(r.frames, fetchFrame(t, q, 0, fetchBytes, 0))
				r.offsets = append(r.offsets, 0)
			}
		}
		defer r.close()
		readers = append(readers, r)
	}
	b.warmUp(p, func(d time.Duration) { readAll(readers, d) })
	cpu, begin := cpuSeconds(p.pid), time.Now()
	bytes, latencies := readAll(readers, b.length)
	took := time.Since(begin).Seconds()
	cpu = cpuSeconds(p.pid) - cpu
	return map[string]float64{
		"throughput": float64(bytes) / 1e6 / took, "CPU": cpu / (float64(bytes) / 1e9),
		"p50": quantile(latencies, 0.5), "p99": quantile(latencies, 0.99), "peak memory": memory(p.pid, "VmHWM"),
	}
}

// fill writes n batches to every partition.
func fill(t topic, c contender, n int) (record.Batch, int) {
	l := produceLoad{value: 1024, batch: 64 << 10, conns: 1, inFlight: 5}
	conns := l.connect(t)
	defer closeAll(conns)
	if c.name != "floor" {
		driveWhile(conns, func(sent int) bool { return sent < n*t.partitions })
	}
	return conns[0].batch, conns[0].records
}

// fetchFrame is a whole request for one partition, without a session.
func fetchFrame(t topic, partition int, offset int64, bytes, wait int32) []byte {
	req := protocol.Make[protocol.FetchRequest]()
	req.ReplicaId, req.MaxWaitMs, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, wait, 1, 50<<20, -1
	q := protocol.Make[protocol.FetchRequestFetchPartition]()
	q.Partition, q.FetchOffset, q.PartitionMaxBytes = int32(partition), offset, bytes
	ft := protocol.Make[protocol.FetchRequestFetchTopic]()
	ft.TopicId = t.id
	ft.Partitions = append(ft.Partitions, q)
	req.Topics = append(req.Topics, ft)
	return encode(&req, fetchVersion)
}

// offsetAt finds where the fetch offset lies in a frame, by looking for what changes with it.
func offsetAt(t topic, partition int) int {
	a, b := fetchFrame(t, partition, 0, fetchBytes, 0), fetchFrame(t, partition, 1, fetchBytes, 0)
	for i := range a {
		if a[i] != b[i] {
			return i - 7
		}
	}
	check(fmt.Errorf("a fetch request without an offset"))
	return 0
}

// What lies where in the answer to such a request, behind the size: correlation id, tags, throttle
// time | error, session id, one topic, its id, one partition, its index | error, three offsets, no aborted
// transactions, preferred replica | records.
const (
	fetchErrorAt     = 4 + 1 + 4
	fetchPartErrorAt = fetchErrorAt + 2 + 4 + 1 + 16 + 1 + 4
	fetchRecordsAt   = fetchPartErrorAt + 2 + 3*8 + 1 + 4
	fetchHead        = fetchRecordsAt + 5
)

// fetched reads an answer's head: how many bytes of records follow.
func fetched(head []byte) (int, error) {
	if len(head) < fetchRecordsAt {
		return 0, fmt.Errorf("a fetch answer of %d bytes", len(head))
	}
	for _, at := range []int{fetchErrorAt, fetchPartErrorAt} {
		if e := kerr.ForCode(int16(binary.BigEndian.Uint16(head[at:]))); e != nil {
			return 0, e
		}
	}
	n, _ := binary.Uvarint(head[fetchRecordsAt:])
	return int(n) - 1, nil
}

// reader is one connection that fetches its partitions in turn, each from front to end again and again.
type reader struct {
	*client
	frames         [][]byte
	offsets        []int64
	batch          int   // bytes of a batch
	records, end   int64 // records in a batch, and in a partition
	isFloor        bool
	turn, offsetIn int
}

func readAll(readers []*reader, length time.Duration) (bytes int64, latencies []time.Duration) {
	deadline := time.Now().Add(length)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(func() {
			n, took := r.run(deadline)
			mu.Lock()
			bytes += n
			latencies = append(latencies, took...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return bytes, latencies
}

func (r *reader) run(deadline time.Time) (bytes int64, latencies []time.Duration) {
	head := make([]byte, fetchHead)
	for time.Now().Before(deadline) {
		i := r.turn % len(r.frames)
		r.turn++
		begin := time.Now()
		_, err := r.conn.Write(r.frames[i])
		check(err)
		n, err := r.skip(head)
		check(err)
		latencies = append(latencies, time.Since(begin))
		if r.isFloor {
			bytes += int64(n)
			continue
		}
		n, err = fetched(head)
		check(err)
		if n < r.batch {
			check(fmt.Errorf("%d bytes at offset %d, a batch has %d", n, r.offsets[i], r.batch))
		}
		bytes += int64(n)
		if r.offsets[i] += int64(n/r.batch) * r.records; r.offsets[i] >= r.end {
			r.offsets[i] = 0
		}
		binary.BigEndian.PutUint64(r.frames[i][r.offsetIn:], uint64(r.offsets[i]))
	}
	return bytes, latencies
}
