package system

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"samsa/test/harness"
)

// refused starts a node that must not start, and returns its last words.
func refused(t *testing.T, n *harness.Node, says ...string) {
	t.Helper()
	mark := n.Mark()
	n.Launch()
	code := n.Wait(30 * time.Second)
	text := n.LogSince(mark)
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("it does not say %q:\n%s", s, text)
		}
	}
}

// Issue 3: whatever is taken already is named, all of it at once, with what to do; nothing is touched.
func TestPortTaken(t *testing.T) {
	n := harness.NewNode(t, 2)
	n.Format()
	for _, addr := range []string{n.Addr, n.Controller} {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
	}
	refused(t, n, "listener PLAINTEXT: "+n.Addr+" is taken by another process", "listener CONTROLLER: "+n.Controller+" is taken by another process", "another port (listeners)")
}

// The HTTP listener too.
func TestMetricsPortTaken(t *testing.T) {
	n := harness.NewNode(t, 1)
	n.Format()
	ln, err := net.Listen("tcp", n.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	refused(t, n, "samsa.http.listener", n.HTTP+" is taken by another process")
}

// J-41: a directory belongs to one process.
func TestDirectoryInUse(t *testing.T) {
	n := harness.NewNode(t, 2)
	n.Format()
	n.Start()
	b := watch(t, n, "quiet")
	other := harness.NewNode(t, 0, "log.dirs="+strings.Join(n.LogDirs, ","))
	refused(t, other, "Failed to acquire lock on file .lock in "+n.LogDirs[0], "Stop it first")
	out, err := exec.Command(harness.Binary(t), "storage", "update-directories", "-c", other.Properties).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is in use. Nothing was changed; stop the server first") {
		t.Errorf("update-directories: %v\n%s", err, out)
	}
	b.progress(n)
}

// `samsa dev` formats once and starts again with what is there; a second one in the same directory is refused.
func TestDevTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	port := harness.FreePort(t)
	start := func() (*exec.Cmd, string) {
		out, err := os.CreateTemp(t.TempDir(), "dev")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd := exec.Command(harness.Binary(t), "dev", "--dir", dir, "--port", fmt.Sprint(port))
		cmd.Stdout, cmd.Stderr = out, out
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		return cmd, out.Name()
	}
	listens := func(file string) {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), fmt.Sprintf("samsa listens on 127.0.0.1:%d", port)) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("no banner:\n%s", text)
			}
			time.Sleep(2 * time.Millisecond) // a poll of a condition with a deadline
		}
	}
	properties := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "d1", "meta.properties"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first, banner := start()
	listens(banner)
	formatted := properties()
	out, err := exec.Command(harness.Binary(t), "dev", "--dir", dir, "--port", fmt.Sprint(harness.FreePort(t))).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), "is using this directory") {
		t.Errorf("a second one in the same directory: %v\n%s", err, out)
	}
	for _, stop := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		first.Process.Signal(stop)
		err := first.Wait()
		if stop == syscall.SIGINT && err != nil {
			t.Errorf("after Ctrl-C: %v", err)
		}
		first, banner = start()
		listens(banner)
		if properties() != formatted {
			t.Errorf("meta.properties changed from\n%s\nto\n%s", formatted, properties())
		}
	}
	first.Process.Signal(syscall.SIGTERM)
	if err := first.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// Issue 3, "A config key unknown or out of range": all mistakes at once with file, line, value and what is allowed; an unknown key
// is a warning.
func TestConfigurationMistakes(t *testing.T) {
	n := harness.NewNode(t, 1,
		"num.network.threads=0", "log.retention.hours=abc", "compression.type=brotli", "socket.request.max.bytes=-4", "log.segment.bytes=5", "no.such.key=1")
	refused(t, n, "configuration: 5 mistakes:", "no.such.key", "unknown setting; ignored",
		`num.network.threads = "0"`, "int [1,...]", `log.retention.hours = "abc"`, "Not a number", `compression.type = "brotli"`, "uncompressed, zstd, lz4, snappy, gzip, producer",
		`socket.request.max.bytes = "-4"`, `log.segment.bytes = "5"`, "server.properties:")
	if _, err := os.Stat(n.LogDirs[0]); !os.IsNotExist(err) {
		t.Errorf("something was made before the configuration was known to be good: %v", err)
	}
	good := harness.NewNode(t, 1, "no.such.key=1")
	good.Format()
	good.Start()
	if got := warnings(good.Log()); len(got) != 1 || !strings.Contains(got[0], "no.such.key") {
		t.Errorf("warnings: %q", got)
	}
}

// Wrong usage has an exit code of its own; a file that cannot be read is named.
func TestServerUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no_file":      {[]string{"server", "-c", "/nonexistent/server.properties"}, 1, "/nonexistent/server.properties"},
		"directory":    {[]string{"server", "-c", t.TempDir()}, 1, "is a directory"},
		"no_argument":  {[]string{"server"}, 1, "process.roles"},
		"unknown_flag": {[]string{"server", "--frobnicate"}, 2, "unknown flag: --frobnicate"},
		"log_level":    {[]string{"server", "--log-level", "loud"}, 2, "debug, info, warn or error"},
		"dev_port":     {[]string{"dev", "--port", "0"}, 2, "between 1 and 65533"},
		"dev_level":    {[]string{"dev", "--log-level", "loud"}, 2, "debug, info, warn or error"},
	} {
		out, err := exec.Command(harness.Binary(t), c.args...).CombinedOutput()
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v, want exit code %d\n%s", name, err, c.code, out)
		}
	}
}

// readOnly mounts a directory that nobody can write to over path. It needs privileges.
func readOnly(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mount(path, path, "", syscall.MS_BIND, ""); err != nil {
		privileges(t, err)
	}
	t.Cleanup(func() { syscall.Unmount(path, syscall.MNT_DETACH) })
	if err := syscall.Mount(path, path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		privileges(t, err)
	}
}

// privileges: a test that mounts cannot run here.
func privileges(t *testing.T, err error) {
	t.Helper()
	if os.Geteuid() == 0 && os.Getenv("CI") != "" {
		t.Fatalf("cannot mount: %v", err)
	}
	t.Skipf("cannot mount: %v", err)
}

// J-182, T-23: a directory that cannot be written to is out of service, the others serve; after the repair all is there.
func TestReadOnlyDirectory(t *testing.T) {
	w := prepare(t, true)
	n := w.node
	readOnly(t, n.LogDirs[1])
	mark := n.Mark()
	n.Start()
	want := w.want(damage{offline: true})
	if got := w.picture(t, n); got != want {
		t.Errorf("served: %q, want %q\n%s", got, want, n.LogSince(mark))
	}
	if !saysAll(n.LogSince(mark), []string{"offline", n.LogDirs[1], "read-only"}) {
		t.Errorf("no line says so:\n%s", n.LogSince(mark))
	}
	n.Stop()
	if err := syscall.Unmount(n.LogDirs[1], 0); err != nil {
		t.Fatal(err)
	}
	n.Start()
	if got, want := w.picture(t, n), w.want(damage{}); got != want {
		t.Errorf("after the repair: %q", got)
	}
}

// The metadata directory cannot be written to: the node does not start.
func TestReadOnlyMetadataDirectory(t *testing.T) {
	n := harness.NewNode(t, 2)
	n.Format()
	readOnly(t, n.LogDirs[0])
	refused(t, n, n.LogDirs[0], "read-only")
}
