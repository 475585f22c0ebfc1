package logdir

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func testClock() time.Time { return epoch }

// sequence draws ids 1, 2, 3 ...: tests can name them. They are above the reserved ones.
func sequence() func() model.UUID {
	var mu sync.Mutex
	n := byte(0)
	return func() model.UUID {
		mu.Lock()
		defer mu.Unlock()
		n++
		return model.UUID{0: 0x10, 15: n}
	}
}

func idOf(n byte) model.DirectoryID { return model.DirectoryID{0: 0x10, 15: n} }

// put writes a file, durably, with the directories above it.
func put(t *testing.T, fsys vfs.FS, path, text string) {
	t.Helper()
	var made []string
	for p := filepath.Dir(path); p != "/"; p = filepath.Dir(p) {
		made = append(made, p)
	}
	if err := fsys.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte(text), 0)
	f.Sync()
	f.Close()
	for _, p := range append(made, "/") {
		if err := fsys.SyncDir(p); err != nil {
			t.Fatal(err)
		}
	}
}

func get(t *testing.T, fsys vfs.FS, path string) string {
	t.Helper()
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// format writes a meta.properties of version 1.
func format(t *testing.T, fsys vfs.FS, dir string, id model.DirectoryID) {
	t.Helper()
	put(t, fsys, dir+"/meta.properties", fmt.Sprintf("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=%s\n", id))
}

func formatN(t *testing.T, fsys vfs.FS, n int) (dirs []string) {
	for i := range n {
		d := fmt.Sprintf("/d%d", i+1)
		format(t, fsys, d, model.DirectoryID{0: 0x20, 15: byte(i + 1)})
		dirs = append(dirs, d)
	}
	return dirs
}

func dirID(n byte) model.DirectoryID { return model.DirectoryID{0: 0x20, 15: n} }

// logs collects log lines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// failing injects err into the calls that match.
func failing(fsys vfs.FS, err error, match func(vfs.Op) bool) vfs.FS {
	return vfs.Inject(fsys, func(op vfs.Op) error {
		if match(op) {
			return &os.PathError{Op: op.Kind.String(), Path: op.Path, Err: err}
		}
		return nil
	})
}

func under(dir string) func(vfs.Op) bool {
	return func(op vfs.Op) bool { return op.Path == dir || strings.HasPrefix(op.Path, dir+"/") }
}

// trace records calls that change something, with the paths as they are.
type trace struct {
	mu    sync.Mutex
	lines []string
}

func (tr *trace) wrap(fsys vfs.FS) vfs.FS {
	return vfs.Inject(fsys, func(op vfs.Op) error {
		switch op.Kind {
		case vfs.OpCreate, vfs.OpMkdir, vfs.OpRemove, vfs.OpRemoveAll, vfs.OpRename, vfs.OpSyncDir, vfs.OpWrite, vfs.OpTruncate, vfs.OpSync:
			tr.mu.Lock()
			line := op.String()
			if op.Kind == vfs.OpWrite {
				line = "write " + op.Path
			}
			tr.lines = append(tr.lines, line)
			tr.mu.Unlock()
		}
		return nil
	})
}

func (tr *trace) take() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	s := strings.Join(tr.lines, "\n")
	tr.lines = nil
	return s
}

// errDisk is what a failing disk says.
var errDisk = syscall.EIO

func mustContain(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s: %q does not hold %q", what, text, p)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}
