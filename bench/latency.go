package main

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

var latencyWorkloads = []workload{{
	name: "latency",
	what: "1,000 records of 100 B a second, one in each request, acks=1, read by a waiting consumer of the same partition. End to end is from before the send to behind the consumer's read.",
	figures: []figure{
		{"ack p50", "ms", false}, {"ack p99", "ms", false}, {"end to end p50", "ms", false}, {"end to end p99", "ms", false},
		{"CPU", "% of a core", false}, {"peak memory", "MiB", false},
	},
	measure: measureLatency,
}}

// latencyRate is how many records a second are sent.
const latencyRate = 1000

func measureLatency(b *bench, c contender) map[string]float64 {
	p := b.fresh(c)
	defer b.drop(p)
	t := createTopics(p, "load", 1, 1)[0]
	w := newWire(t)
	defer w.close()
	b.warmUp(p, func(d time.Duration) { w.run(d) })
	cpu, begin := cpuSeconds(p.pid), time.Now()
	acks, ends := w.run(2 * b.length)
	took := time.Since(begin).Seconds()
	return map[string]float64{
		"ack p50": quantile(acks, 0.5), "ack p99": quantile(acks, 0.99),
		"end to end p50": quantile(ends, 0.5), "end to end p99": quantile(ends, 0.99),
		"CPU": (cpuSeconds(p.pid) - cpu) / took * 100, "peak memory": memory(p.pid, "VmHWM"),
	}
}

// wire is a producer and a consumer of one partition. Records come out in the order they went in,
// one in a batch and all of the same size, so counting bytes tells which ones have arrived.
type wire struct {
	producer, consumer *client
	frame, fetch       []byte
	batch, offsetIn    int
	offset             int64 // of the next record to read
}

func newWire(t topic) *wire {
	batch, _ := newBatch(100, 0)
	return &wire{
		producer: mustDial(), consumer: mustDial(), batch: len(batch), offsetIn: offsetAt(t, 0),
		frame: produceFrame(t, 0, batch), fetch: fetchFrame(t, 0, 0, fetchBytes, 500),
	}
}

func (w *wire) close() {
	w.producer.close()
	w.consumer.close()
}

// run sends at the rate for a while and returns how long each record took to be acknowledged and read.
func (w *wire) run(length time.Duration) (acks, ends []time.Duration) {
	n := int(length * latencyRate / time.Second)
	sent := make([]time.Time, n)
	acks, ends = make([]time.Duration, n), make([]time.Duration, n)
	consumed, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(consumed)
		for at := 0; at < n; {
			for range w.receive() {
				ends[at] = time.Since(sent[at])
				at++
			}
		}
	}()
	go func() {
		defer close(answered)
		for i := range n {
			answer, err := w.producer.read()
			check(err)
			check(checkProduced(answer))
			acks[i] = time.Since(sent[i])
		}
	}()
	w.send(sent)
	<-answered
	<-consumed
	return acks, ends
}

// send keeps the pace with the kernel's timer, which is finer than the runtime's.
func (w *wire) send(sent []time.Time) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	for i := range sent {
		if wait := time.Until(begin.Add(time.Duration(i) * time.Second / latencyRate)); wait > 0 {
			ts := unix.NsecToTimespec(int64(wait))
			unix.Nanosleep(&ts, nil)
		}
		sent[i] = time.Now()
		_, err := w.producer.conn.Write(w.frame)
		check(err)
	}
}

// receive waits for records and returns how many came.
func (w *wire) receive() int {
	binary.BigEndian.PutUint64(w.fetch[w.offsetIn:], uint64(w.offset))
	_, err := w.consumer.conn.Write(w.fetch)
	check(err)
	head := make([]byte, fetchHead)
	if _, err := w.consumer.skip(head); err != nil {
		check(err)
	}
	n, err := fetched(head)
	check(err)
	if n%w.batch != 0 {
		check(fmt.Errorf("%d bytes of records where each has %d", n, w.batch))
	}
	w.offset += int64(n / w.batch)
	return n / w.batch
}
