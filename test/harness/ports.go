package harness

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// Ports are handed out in blocks: a test process locks a block's file for its life, so that two test
// processes never take each other's port while a node of one of them is down. All are below the
// range the kernel takes ports for outgoing connections from.
const (
	firstPort  = 10000
	blockPorts = 100
	portBlocks = 220
)

var ports struct {
	mu   sync.Mutex
	next int // the port to hand out next
	left int // in the block
	held []*os.File
}

// FreePort is a loopback port nobody listens on at the moment, which no other test process gets and
// this one gets once.
func FreePort(t testing.TB) int {
	t.Helper()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for {
		if ports.left == 0 {
			takeBlock(t)
		}
		port := ports.next
		ports.next++
		ports.left--
		if ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			ln.Close()
			return port
		}
	}
}

// takeBlock locks the first block nobody holds. Called with ports.mu held.
func takeBlock(t testing.TB) {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "samsa-test-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for block := range portBlocks {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(block)), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			ports.held = append(ports.held, f)
			ports.next, ports.left = firstPort+block*blockPorts, blockPorts
			return
		}
		f.Close()
	}
	t.Fatalf("all %d blocks of test ports are locked in %s", portBlocks, dir)
}
