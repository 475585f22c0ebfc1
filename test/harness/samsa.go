package harness

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var build = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("SAMSA_BIN"); bin != "" {
		return bin, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "samsa-bin-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "samsa")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/samsa")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building samsa: %w\n%s", err, out)
	}
	return bin, nil
})

// Root is the top of the checkout.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// Binary is the samsa binary under test: SAMSA_BIN, or built from the checkout once per test process.
func Binary(t testing.TB) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// Node is a directory with a server.properties that samsa or Apache Kafka can be started on, and
// the process that runs now.
type Node struct {
	Dir        string
	Addr       string // PLAINTEXT listener
	Controller string // CONTROLLER listener
	HTTP       string // samsa's /metrics
	LogDirs    []string
	Properties string // path of server.properties

	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}
	log  *os.File
	err  error
}

// NewNode lays out a node with both roles and dirs log directories; extra are further properties.
// It is not formatted. Whatever runs on it is killed when the test ends.
func NewNode(t testing.TB, dirs int, extra ...string) *Node {
	t.Helper()
	n := &Node{t: t, Dir: t.TempDir()}
	at := func() string { return fmt.Sprintf("127.0.0.1:%d", FreePort(t)) }
	n.Addr, n.Controller, n.HTTP = at(), at(), at()
	for i := range dirs {
		n.LogDirs = append(n.LogDirs, filepath.Join(n.Dir, fmt.Sprintf("d%d", i+1)))
	}
	n.Properties = filepath.Join(n.Dir, "server.properties")
	lines := append([]string{
		"process.roles=broker,controller", "node.id=1",
		"listeners=PLAINTEXT://" + n.Addr + ",CONTROLLER://" + n.Controller,
		"controller.listener.names=CONTROLLER",
		"controller.quorum.bootstrap.servers=" + n.Controller,
		"log.dirs=" + strings.Join(n.LogDirs, ","),
		"samsa.http.listener=" + n.HTTP,
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"group.initial.rebalance.delay.ms=0",
	}, extra...)
	if err := os.WriteFile(n.Properties, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	return n
}

// clusterID is that of every node of the tests.
const clusterID = "SamsaTestCluster000000"

// Format formats the node's directories with `samsa storage format`.
func (n *Node) Format() {
	n.t.Helper()
	out, err := exec.Command(Binary(n.t), "storage", "format", "-t", clusterID, "-c", n.Properties, "--standalone").CombinedOutput()
	if err != nil {
		n.t.Fatalf("format: %v\n%s", err, out)
	}
}

// Launch runs `samsa server` on the node and does not wait.
func (n *Node) Launch(flags ...string) {
	n.t.Helper()
	n.run(exec.Command(Binary(n.t), append([]string{"server", "-c", n.Properties}, flags...)...))
}

// Start runs `samsa server` on the node and waits until it is ready.
func (n *Node) Start(flags ...string) {
	n.t.Helper()
	n.Launch(flags...)
	n.Eventually("samsa is ready", 60*time.Second, func() error {
		resp, err := http.Get("http://" + n.HTTP + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", resp.Status)
		}
		return nil
	})
}

// run starts a process on the node; its output goes to process.log, behind that of the ones before.
func (n *Node) run(cmd *exec.Cmd) {
	n.t.Helper()
	if n.cmd != nil {
		n.t.Fatal("something runs on this node already")
	}
	log, err := os.OpenFile(n.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		n.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that dies takes its node along
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.cmd, n.log, n.done = cmd, log, make(chan struct{})
	go func(done chan struct{}) {
		n.err = cmd.Wait()
		close(done)
	}(n.done)
}

// LogFile is where the processes of this node write.
func (n *Node) LogFile() string { return filepath.Join(n.Dir, "process.log") }

// Log is what the processes of this node have written.
func (n *Node) Log() string {
	text, _ := os.ReadFile(n.LogFile())
	return string(bytes.TrimSpace(text))
}

// Pid is the running process's id.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// Eventually polls f until it returns nil; the process on the node must live meanwhile.
func (n *Node) Eventually(what string, limit time.Duration, f func() error) {
	n.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-n.done:
			n.t.Fatalf("%s: the process ended: %v\n%s", what, n.err, n.Log())
		default:
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("%s: not within %s: %v\n%s", what, limit, err, n.Log())
		}
		time.Sleep(2 * time.Millisecond) // a poll of a condition with a deadline
	}
}

// Stop sends SIGTERM and waits for the end; the exit code must be 0, or 143 as a JVM's is.
func (n *Node) Stop() {
	n.t.Helper()
	n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.done:
	case <-time.After(60 * time.Second):
		n.Kill()
		n.t.Fatalf("no end 60 s after SIGTERM\n%s", n.Log())
	}
	code := n.cmd.ProcessState.ExitCode()
	n.ended()
	if code != 0 && code != 143 {
		n.t.Fatalf("exit code %d after SIGTERM\n%s", code, n.Log())
	}
}

// Wait waits for the process to end by itself and returns its exit code.
func (n *Node) Wait(limit time.Duration) int {
	n.t.Helper()
	select {
	case <-n.done:
	case <-time.After(limit):
		n.t.Fatalf("still running after %s\n%s", limit, n.Log())
	}
	code := n.cmd.ProcessState.ExitCode()
	n.ended()
	return code
}

// Kill is kill -9. It does nothing when nothing runs.
func (n *Node) Kill() {
	if n.cmd == nil {
		return
	}
	n.cmd.Process.Kill()
	<-n.done
	n.ended()
}

func (n *Node) ended() {
	n.log.Close()
	n.cmd = nil
}

// Set replaces a line of server.properties, or adds one.
func (n *Node) Set(key, value string) {
	n.t.Helper()
	text, err := os.ReadFile(n.Properties)
	if err != nil {
		n.t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, key+"=") {
			lines = append(lines, line)
		}
	}
	if err := os.WriteFile(n.Properties, []byte(strings.Join(lines, "")+key+"="+value+"\n"), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// FormatRest formats the directories that are not formatted yet.
func (n *Node) FormatRest() {
	n.t.Helper()
	out, err := exec.Command(Binary(n.t), "storage", "format", "-g", "-t", "SamsaTestCluster000000", "-c", n.Properties, "--standalone").CombinedOutput()
	if err != nil {
		n.t.Fatalf("format: %v\n%s", err, out)
	}
}

// Metrics is what /metrics shows.
func (n *Node) Metrics() string {
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
	return string(text)
}
