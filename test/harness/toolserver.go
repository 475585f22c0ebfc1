package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// toolServer is a JVM that runs Kafka's tools one after another (tools/peers/ToolServer.java).
type toolServer struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// toolServers that nobody uses at the moment; they end with the test process.
var toolServers struct {
	sync.Mutex
	idle []*toolServer
}

func takeToolServer(t testing.TB) *toolServer {
	t.Helper()
	toolServers.Lock()
	if n := len(toolServers.idle); n > 0 {
		s := toolServers.idle[n-1]
		toolServers.idle = toolServers.idle[:n-1]
		toolServers.Unlock()
		return s
	}
	toolServers.Unlock()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("java", java(t, "WARN", filepath.Join(root, "tools/peers/ToolServer.java"))...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &toolServer{cmd: cmd, in: in, out: bufio.NewReader(out)}
}

// QuickTool is Tool in a JVM that stays for the next one: a tenth of the time. Not for tools that do not end by
// themselves, nor for two thousand megabytes of output.
func QuickTool(t testing.TB, name, input string, args ...string) Result {
	t.Helper()
	class, ok := Tools[name]
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	s := takeToolServer(t)
	var request []byte
	text := func(s string) { request = append(binary.BigEndian.AppendUint32(request, uint32(len(s))), s...) }
	text(class)
	request = binary.BigEndian.AppendUint32(request, uint32(len(args)))
	for _, a := range args {
		text(a)
	}
	text(input)
	limit := time.AfterFunc(2*time.Minute, func() { s.cmd.Process.Kill() })
	r, err := s.ask(request)
	if !limit.Stop() || err != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		t.Fatalf("kafka-%s %s: no end within two minutes: %v", name, strings.Join(args, " "), err)
	}
	toolServers.Lock()
	toolServers.idle = append(toolServers.idle, s)
	toolServers.Unlock()
	return r
}

func (s *toolServer) ask(request []byte) (r Result, err error) {
	if _, err := s.in.Write(request); err != nil {
		return r, err
	}
	number := func() (n int32) {
		if err == nil {
			err = binary.Read(s.out, binary.BigEndian, &n)
		}
		return n
	}
	text := func() string {
		n := number()
		if err != nil {
			return ""
		}
		if n < 0 {
			err = fmt.Errorf("a text of %d bytes", n)
			return ""
		}
		var b bytes.Buffer
		_, err = io.CopyN(&b, s.out, int64(n))
		return b.String()
	}
	r.Code = int(number())
	r.Stdout = text()
	r.Stderr = text()
	return r, err
}

// ToolCommand is the process of one of Kafka's tools, for callers that read what it prints as it comes.
func ToolCommand(ctx context.Context, t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	class, ok := Tools[name]
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	return exec.CommandContext(ctx, "java", java(t, "WARN", class, args...)...)
}
