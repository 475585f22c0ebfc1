package main

import (
	"slices"
	"time"
)

var partitionWorkloads = []workload{{
	name: "partitions",
	what: "1,000 topics of one partition created by one request until all are served, then four requests of 1,000 partitions each; then, with a batch in each of the 5,000, an orderly stop and restart, and a restart after kill -9 under writes.",
	figures: []figure{
		{"create 1,000", "s", false}, {"create 4 × 1,000", "s", false}, {"stop", "s", false}, {"restart", "s", false},
		{"restart after kill -9", "s", false}, {"CPU", "s", false}, {"peak memory", "MiB", false},
	},
	measure: measurePartitions,
}}

func measurePartitions(b *bench, c contender) map[string]float64 {
	got := map[string]float64{}
	p := b.fresh(c)
	defer func() { b.drop(p) }()
	timed := func(name string, f func()) {
		begin := time.Now()
		f()
		got[name] = time.Since(begin).Seconds()
	}
	settle := func() { // what a process has used and held
		got["CPU"] += cpuSeconds(p.pid)
		got["peak memory"] = max(got["peak memory"], memory(p.pid, "VmHWM"))
	}
	var all []topic
	timed("create 1,000", func() { all = createTopics(p, "one", 1000, 1) })
	timed("create 4 × 1,000", func() {
		for i := range 4 {
			all = append(all, createTopics(p, "many"+string(rune('a'+i)), 1, 1000)...)
		}
	})
	writeEach(all)
	settle()
	got["stop"] = p.stop().Seconds()

	p = b.start(c, p.dir)
	waitServed(p, all)
	got["restart"] = time.Since(p.started).Seconds()
	writeEach(all)
	settle()
	p.kill()

	p = b.start(c, p.dir)
	waitServed(p, all)
	got["restart after kill -9"] = time.Since(p.started).Seconds()
	settle()
	return got
}

// writeEach puts a batch into every partition.
func writeEach(topics []topic) {
	batch, records := newBatch(1024, 4<<10)
	p := &producer{client: mustDial(), batch: batch, records: records, inFlight: 5}
	defer p.close()
	for chunk := range slices.Chunk(topics, 100) {
		p.frames = p.frames[:0]
		p.next = 0
		for _, t := range chunk {
			for q := range t.partitions {
				p.frames = append(p.frames, produceFrame(t, q, batch))
			}
		}
		p.drive(func(sent int) bool { return sent < len(p.frames) })
	}
}
