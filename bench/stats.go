package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

func human(v float64) string {
	switch {
	case v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// quantile of durations in milliseconds.
func quantile(d []time.Duration, q float64) float64 {
	if len(d) == 0 {
		return 0
	}
	d = slices.Clone(d)
	slices.Sort(d)
	return float64(d[min(len(d)-1, int(q*float64(len(d))))]) / float64(time.Millisecond)
}

// load is the machine's load average over a minute: on a busy one the figures tell less.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	check(err)
	return strings.Fields(string(text))[0]
}

// cpuSeconds is what a process has used so far, user and system.
func cpuSeconds(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	const ticks = 100 // per second, on every Linux
	return (user + system) / ticks
}

// warmUp has a node do its work until it has had the time, and the processor: on a busy machine a few
// seconds are not enough for Java to compile what is hot. It gives up on the latter after a while.
func (b *bench) warmUp(p *process, work func(time.Duration)) {
	begin, used := time.Now(), cpuSeconds(p.pid)
	for {
		work(min(b.warm, time.Second))
		took := time.Since(begin)
		if took >= b.warm && cpuSeconds(p.pid)-used >= 2*b.warm.Seconds() || took >= 8*b.warm {
			return
		}
	}
}

// memory reads a line of /proc/pid/status in MiB: VmHWM is the peak, VmRSS what it is now.
func memory(pid int, key string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(err)
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}
