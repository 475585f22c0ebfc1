package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Mark is the present end of the node's log, for LogSince.
func (n *Node) Mark() int { return len(n.Log()) }

// LogSince is what the processes of this node have written after a mark.
func (n *Node) LogSince(mark int) string {
	text := n.Log()
	return text[min(mark, len(text)):]
}

// Running reports whether the process on the node is alive.
func (n *Node) Running() bool {
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the process on the node.
func (n *Node) Signal(s syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Fatal(err)
	}
}

// Clone is a copy of a stopped node for another test: same ports, the directories copied. The two must not run
// at the same time.
func (n *Node) Clone(t testing.TB) *Node {
	t.Helper()
	if n.Running() {
		t.Fatal("a running node cannot be cloned")
	}
	c := &Node{t: t, Dir: t.TempDir(), Addr: n.Addr, Controller: n.Controller, HTTP: n.HTTP}
	if err := os.CopyFS(c.Dir, os.DirFS(n.Dir)); err != nil {
		t.Fatal(err)
	}
	os.Remove(c.LogFile())
	for _, d := range n.LogDirs {
		c.LogDirs = append(c.LogDirs, filepath.Join(c.Dir, filepath.Base(d)))
	}
	c.Properties = filepath.Join(c.Dir, filepath.Base(n.Properties))
	text, err := os.ReadFile(c.Properties)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Properties, []byte(strings.ReplaceAll(string(text), n.Dir, c.Dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

// Memory is a figure of /proc/PID/status in bytes: VmRSS is what the process holds now, VmHWM the most it ever did.
func (n *Node) Memory(field string) int64 {
	n.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Pid()))
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				n.t.Fatal(err)
			}
			return kb << 10
		}
	}
	n.t.Fatalf("/proc/%d/status has no %s", n.Pid(), field)
	return 0
}

// CPU is the processor time the process on the node has used, in steps of 10 ms.
func (n *Node) CPU() time.Duration {
	n.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.Pid()))
	if err != nil {
		n.t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		n.t.Fatalf("/proc/%d/stat: %s", n.Pid(), text)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Metric is the sum of the samples of a metric on /metrics whose labels contain all of labels.
func (n *Node) Metric(name string, labels ...string) float64 {
	n.t.Helper()
	resp, err := http.Get("http://" + n.HTTP + "/metrics")
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	sum, found := 0.0, false
lines:
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		found = true
		for _, l := range labels {
			if !strings.Contains(rest, l) {
				continue lines
			}
		}
		fields := strings.Fields(rest)
		v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			n.t.Fatalf("sample %q: %v", line, err)
		}
		sum += v
	}
	if !found {
		n.t.Fatalf("/metrics has no %s", name)
	}
	return sum
}

// Amend appends properties, which count more than the same ones before them.
func (n *Node) Amend(lines ...string) {
	n.t.Helper()
	f, err := os.OpenFile(n.Properties, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		n.t.Fatal(err)
	}
}

// NewPair lays out and formats a controller and a broker of its own, node 2.
func NewPair(t testing.TB, brokerDirs int, extra ...string) (controller, broker *Node) {
	t.Helper()
	controller = NewNode(t, 1, extra...)
	controller.Amend("process.roles=controller", "listeners=CONTROLLER://"+controller.Controller)
	controller.Format()
	broker = NewNode(t, brokerDirs, extra...)
	broker.Controller = controller.Controller
	broker.Amend("process.roles=broker", "node.id=2", "listeners=PLAINTEXT://"+broker.Addr, "controller.quorum.bootstrap.servers="+controller.Controller)
	out, err := exec.Command(Binary(t), "storage", "format", "-t", clusterID, "-c", broker.Properties).CombinedOutput()
	if err != nil {
		t.Fatalf("format: %v\n%s", err, out)
	}
	return controller, broker
}
