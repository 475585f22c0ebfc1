package main

import (
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// boundMemory makes the garbage collector heed the memory limit of the cgroup this process is in, as it
// heeds the CPU limit by itself. GOMEMLIMIT, where set, has the last word.
func boundMemory(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return
	}
	limit, ok := cgroupLimit(string(membership), func(name string) (string, error) {
		text, err := os.ReadFile("/sys/fs/cgroup/" + name)
		return string(text), err
	})
	if !ok {
		return
	}
	// What the heap does not hold: stacks, descriptors' kernel memory, the page cache that is charged here.
	limit -= limit / 10
	debug.SetMemoryLimit(limit)
	log.Info("memory limit follows the cgroup", "bytes", limit)
}

// cgroupLimit is the smallest memory limit on the way from the process's cgroup to the root: memory.max of
// version 2, memory.limit_in_bytes of version 1. membership is /proc/self/cgroup. The path in it may not
// be visible from inside a container; the root of the mount is the container's own group then.
func cgroupLimit(membership string, read func(name string) (string, error)) (limit int64, ok bool) {
	consider := func(name string) {
		text, err := read(name)
		if err != nil {
			return
		}
		const unlimited = 1 << 60 // version 1 says a number near 1<<63
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || n <= 0 || n >= unlimited { // "max"
			return
		}
		if !ok || n < limit {
			limit, ok = n, true
		}
	}
	for line := range strings.Lines(membership) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		if len(parts) < 3 {
			continue
		}
		root, file := "", ""
		switch {
		case parts[0] == "0" && parts[1] == "":
			file = "memory.max"
		case strings.Contains(","+parts[1]+",", ",memory,"):
			root, file = "memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			consider(path.Join(root, at, file))
			if at == "/" {
				break
			}
		}
	}
	return limit, ok
}
