package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"samsa/internal/wire/protocol"
)

var footprintWorkloads = []workload{
	{
		name: "start",
		what: "From the start of the process on a freshly formatted directory to the first answered request and to the first acknowledged record in a new topic; then the orderly stop.",
		figures: []figure{
			{"first answer", "s", false}, {"first ack", "s", false}, {"stop", "s", false}, {"CPU", "s", false}, {"memory", "MiB", false},
		},
		measure: measureStart,
	},
	{
		name:    "idle",
		what:    "Nothing to do for 20 seconds, after a topic was created and written to.",
		figures: []figure{{"CPU", "% of a core", false}, {"memory", "MiB", false}, {"peak memory", "MiB", false}},
		measure: measureIdle,
	},
	{
		name: "connections",
		what: "2,000 connections that have asked for ApiVersions once and then say nothing for 20 seconds.",
		figures: []figure{
			{"CPU", "% of a core", false}, {"memory", "MiB", false}, {"memory per connection", "KiB", false},
		},
		measure: measureConnections,
	},
	{
		name: "dev",
		what: "`samsa dev`: the binary's size, the start on a formatted directory until a broker is in the metadata, memory when idle.",
		figures: []figure{
			{"binary", "MB", false}, {"first ready", "s", false}, {"ready", "s", false}, {"memory", "MiB", false}, {"idle CPU", "% of a core", false},
		},
		measure: measureDev,
	},
}

// produceOne writes one record and waits for its ack, trying until it works.
func produceOne(p *process, t topic) {
	batch, _ := newBatch(100, 0)
	frame := produceFrame(t, 0, batch)
	p.until("acknowledging a record", func() error {
		c, err := dial()
		if err != nil {
			return err
		}
		defer c.close()
		if _, err := c.conn.Write(frame); err != nil {
			return err
		}
		answer, err := c.read()
		if err != nil {
			return err
		}
		return checkProduced(answer)
	})
}

func measureStart(b *bench, c contender) map[string]float64 {
	p := b.fresh(c)
	defer b.drop(p)
	answer := time.Since(p.started)
	produceOne(p, createTopics(p, "first", 1, 1)[0])
	ack := time.Since(p.started)
	cpu, rss := cpuSeconds(p.pid), memory(p.pid, "VmHWM")
	return map[string]float64{
		"first answer": answer.Seconds(), "first ack": ack.Seconds(), "CPU": cpu, "memory": rss, "stop": p.stop().Seconds(),
	}
}

// idleFor is how long a node is watched doing nothing.
const idleFor = 20 * time.Second

// idleCPU is the share of a core a process takes over idleFor, in percent.
func idleCPU(p *process) float64 {
	cpu := cpuSeconds(p.pid)
	time.Sleep(idleFor)
	return (cpuSeconds(p.pid) - cpu) / idleFor.Seconds() * 100
}

func measureIdle(b *bench, c contender) map[string]float64 {
	p := b.fresh(c)
	defer b.drop(p)
	produceOne(p, createTopics(p, "first", 1, 1)[0])
	time.Sleep(b.warm)
	cpu := idleCPU(p)
	return map[string]float64{"CPU": cpu, "memory": memory(p.pid, "VmRSS"), "peak memory": memory(p.pid, "VmHWM")}
}

func measureConnections(b *bench, c contender) map[string]float64 {
	p := b.fresh(c)
	defer b.drop(p)
	time.Sleep(b.warm)
	before := memory(p.pid, "VmRSS")
	const n = 2000
	for range n {
		conn := mustDial()
		defer conn.close()
		check(conn.alive())
		conn.in, conn.frame = nil, nil
	}
	cpu := idleCPU(p)
	after := memory(p.pid, "VmRSS")
	return map[string]float64{"CPU": cpu, "memory": after, "memory per connection": (after - before) * 1024 / n}
}

// measureDev has no counterpart: Kafka has no such command.
func measureDev(b *bench, c contender) map[string]float64 {
	if c.name != "samsa" {
		return nil
	}
	binary, err := os.Stat(b.samsa)
	check(err)
	dir := b.dir("dev")
	begin := func() *process {
		return start(exec.Command(b.samsa, "dev", "--dir", filepath.Join(dir, "data"), "--port", fmt.Sprint(brokerPort)), dir)
	}
	p := begin()
	first := ready(p)
	p.stop()
	p = begin()
	again := ready(p)
	time.Sleep(b.warm)
	cpu := idleCPU(p)
	rss := memory(p.pid, "VmRSS")
	b.drop(p)
	return map[string]float64{"binary": float64(binary.Size()) / 1e6, "first ready": first.Seconds(), "ready": again.Seconds(), "memory": rss, "idle CPU": cpu}
}

// ready waits until a broker is in the metadata and returns how long that took.
func ready(p *process) time.Duration {
	p.until("in the metadata", func() error {
		c, err := dial()
		if err != nil {
			return err
		}
		defer c.close()
		req := protocol.Make[protocol.MetadataRequest]()
		resp := protocol.Make[protocol.MetadataResponse]()
		if err := c.call(&req, &resp, 12); err != nil {
			return err
		}
		if len(resp.Brokers) == 0 {
			return fmt.Errorf("no broker in the metadata")
		}
		return nil
	})
	return time.Since(p.started)
}
