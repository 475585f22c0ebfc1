package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestClassify(t *testing.T) { // J-116
	path := func(err error) error { return &os.PathError{Op: "x", Path: "/d/y", Err: err} }
	for _, c := range []struct {
		err   error
		kinds []OpKind
		want  Blame
	}{
		{nil, []OpKind{OpSync, OpRead}, BlameNobody},
		{syscall.EIO, []OpKind{OpOpen, OpCreate, OpRead, OpWrite, OpSync, OpSyncDir, OpClose, OpStat, OpSpace, OpRename, OpSend, OpLock}, BlameDir},
		{syscall.ENOSPC, []OpKind{OpCreate, OpWrite, OpSync, OpMkdir, OpRename}, BlameDir},
		{syscall.EDQUOT, []OpKind{OpCreate, OpWrite}, BlameDir},
		{syscall.EROFS, []OpKind{OpCreate, OpRemove, OpLock, OpRename}, BlameDir},
		{syscall.EACCES, []OpKind{OpOpen, OpReadDir}, BlameDir},
		{syscall.EPERM, []OpKind{OpOpen, OpRemove}, BlameDir},
		{syscall.ENOTDIR, []OpKind{OpOpen, OpCreate, OpStat, OpReadDir}, BlameDir},
		{syscall.ENODEV, []OpKind{OpOpen, OpRead}, BlameDir},
		{syscall.ENXIO, []OpKind{OpOpen, OpRead}, BlameDir},
		{syscall.ESTALE, []OpKind{OpOpen, OpRead, OpStat}, BlameDir},
		{syscall.EUCLEAN, []OpKind{OpOpen, OpRead}, BlameDir},
		{syscall.ESHUTDOWN, []OpKind{OpRead}, BlameDir}, // not on any list
		{io.ErrShortWrite, []OpKind{OpWrite}, BlameDir},
		{syscall.EINTR, []OpKind{OpOpen, OpRead, OpWrite}, BlameCaller},
		{syscall.EAGAIN, []OpKind{OpRead, OpWrite}, BlameCaller},
		{syscall.EMFILE, []OpKind{OpOpen, OpCreate, OpReadDir, OpSyncDir}, BlameCaller},
		{syscall.ENFILE, []OpKind{OpOpen, OpCreate, OpSyncDir}, BlameCaller},
		{syscall.ENOMEM, []OpKind{OpOpen, OpRead, OpWrite}, BlameCaller},
		{syscall.ENOENT, []OpKind{OpOpen, OpStat, OpRemove, OpRename, OpSyncDir}, BlameCaller},
		{syscall.EEXIST, []OpKind{OpCreate, OpMkdir}, BlameCaller},
		{syscall.ENOTEMPTY, []OpKind{OpRemove, OpRename}, BlameCaller},
		{syscall.EINVAL, []OpKind{OpRead, OpRename}, BlameCaller},
		{syscall.ENAMETOOLONG, []OpKind{OpCreate}, BlameCaller},
		{fs.ErrClosed, []OpKind{OpRead, OpWrite, OpSync, OpClose}, BlameCaller},
		{ErrLocked, []OpKind{OpLock}, BlameCaller},
		{io.EOF, []OpKind{OpRead}, BlameCaller},
		{io.ErrUnexpectedEOF, []OpKind{OpRead}, BlameCaller},
		{errors.New("checksum"), []OpKind{OpRead}, BlameCaller}, // damaged data is not a damaged disk
		{syscall.EPIPE, []OpKind{OpSend}, BlameCaller},
		{syscall.ECONNRESET, []OpKind{OpSend}, BlameCaller},
		{syscall.EPIPE, []OpKind{OpWrite}, BlameDir},
		// After a failed fsync nothing is harmless.
		{syscall.EINTR, []OpKind{OpSync, OpSyncDir}, BlameDir},
		{syscall.ENOMEM, []OpKind{OpSync, OpSyncDir}, BlameDir},
		{syscall.EINVAL, []OpKind{OpSync}, BlameDir},
	} {
		for _, kind := range c.kinds {
			for _, err := range []error{c.err, path(c.err), fmt.Errorf("while rolling: %w", path(c.err))} {
				if c.err == nil {
					err = nil
				}
				if got := Classify(kind, err); got != c.want {
					t.Errorf("%v %v: %d, want %d", kind, err, got, c.want)
				}
			}
		}
	}
}

// broken is a directory on a memory disk that fails as told.
type broken struct {
	*DirFS
	mem     *Mem
	fail    atomic.Pointer[func(Op) error]
	events  atomic.Int32
	touched atomic.Int32 // calls that reached the disk
}

func newBroken(t *testing.T) *broken {
	b := &broken{mem: NewMem()}
	must(t, b.mem.MkdirAll("/d1/t-0", 0o755))
	b.DirFS = Dir(Inject(b.mem, func(op Op) error {
		b.touched.Add(1)
		if f := b.fail.Load(); f != nil {
			return (*f)(op)
		}
		return nil
	}), "/d1", func(e *DirError) { b.events.Add(1) })
	return b
}

func (b *broken) failOn(kind OpKind, err error) {
	f := func(op Op) error {
		if op.Kind == kind {
			return err
		}
		return nil
	}
	b.fail.Store(&f)
}

func TestFirstErrorTakesTheDirectoryOffline(t *testing.T) { // J-113, J-114, J-192, D-23
	eio := error(syscall.EIO)
	type env struct {
		*broken
		f File
	}
	calls := map[OpKind]func(e env) error{
		OpOpen:      func(e env) error { _, err := e.OpenFile("/d1/t-0/log", os.O_RDWR, 0); return err },
		OpCreate:    func(e env) error { _, err := e.OpenFile("/d1/t-0/new", os.O_RDWR|os.O_CREATE, 0); return err },
		OpMkdir:     func(e env) error { return e.Mkdir("/d1/t-1", 0o755) },
		OpRemove:    func(e env) error { return e.Remove("/d1/t-0/log") },
		OpRemoveAll: func(e env) error { return e.RemoveAll("/d1/t-0") },
		OpRename:    func(e env) error { return e.Rename("/d1/t-0/log", "/d1/t-0/log.deleted") },
		OpReadDir:   func(e env) error { _, err := e.ReadDir("/d1"); return err },
		OpStat:      func(e env) error { _, err := e.Stat("/d1/t-0/log"); return err },
		OpSyncDir:   func(e env) error { return e.SyncDir("/d1") },
		OpLock:      func(e env) error { _, err := e.Lock("/d1/.lock"); return err },
		OpSpace:     func(e env) error { _, err := e.Space("/d1"); return err },
		OpRead:      func(e env) error { _, err := e.f.ReadAt(make([]byte, 4), 0); return err },
		OpWrite:     func(e env) error { _, err := e.f.WriteV([][]byte{{1}, {2}}, 0); return err },
		OpTruncate:  func(e env) error { return e.f.Truncate(1) },
		OpSync:      func(e env) error { return e.f.Sync() },
		OpSize:      func(e env) error { _, err := e.f.Size(); return err },
		OpClose:     func(e env) error { return e.f.Close() },
		OpSend:      func(e env) error { return Report(e.f, OpSend, eio) },
	}
	if len(calls) != int(numOps) {
		t.Fatalf("%d of %d kinds are covered", len(calls), numOps)
	}
	for kind, call := range calls {
		t.Run(kind.String(), func(t *testing.T) {
			e := env{broken: newBroken(t)}
			e.f = create(t, e, "/d1/t-0/log", "data")
			e.failOn(kind, &os.PathError{Op: kind.String(), Path: "/d1/t-0/log", Err: eio})
			err := call(e)
			var d *DirError
			if !errors.As(err, &d) || d.Dir != "/d1" || d.Op != kind || !errors.Is(err, eio) || e.events.Load() != 1 || e.Offline() != d {
				t.Fatalf("%v, %d events", err, e.events.Load())
			}
			if _, ok := e.f.Descriptor(); ok || e.f.Hold() {
				t.Error("an offline file can be sent")
			}
			e.fail.Store(nil) // the disk works again, and nobody may notice
			before := e.touched.Load()
			for other, call := range calls {
				err := call(e)
				var again *DirError
				if other == OpClose && !errors.Is(err, fs.ErrClosed) && err != nil || other != OpClose && (!errors.As(err, &again) || again != d) {
					t.Errorf("%v afterwards: %v", other, err)
				}
			}
			if n := e.touched.Load() - before; n > 1 { // Close closes
				t.Errorf("%d calls reached the disk", n)
			}
			if e.events.Load() != 1 {
				t.Errorf("%d events", e.events.Load())
			}
		})
	}
}

func TestOneEventForManyErrorsAtOnce(t *testing.T) { // J-113: idempotent
	b := newBroken(t)
	f := create(t, b, "/d1/t-0/log", "data")
	b.failOn(OpWrite, syscall.EIO)
	errs := make([]error, 32)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = f.WriteAt([]byte{1}, 0) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != errs[0] || err == nil {
			t.Fatalf("%v and %v", err, errs[0])
		}
	}
	if b.events.Load() != 1 {
		t.Errorf("%d events", b.events.Load())
	}
}

func TestExhaustedDescriptorsLeaveTheDirectoryOnline(t *testing.T) { // J-116
	b := newBroken(t)
	b.failOn(OpOpen, &os.PathError{Op: "open", Path: "/d1/t-0/log", Err: syscall.EMFILE})
	create(t, b, "/d1/t-0/log", "x").Close()
	if _, err := b.OpenFile("/d1/t-0/log", os.O_RDWR, 0); !errors.Is(err, syscall.EMFILE) || b.Offline() != nil {
		t.Fatal(err, b.Offline())
	}
	b.fail.Store(nil)
	f, err := b.OpenFile("/d1/t-0/log", os.O_RDWR, 0)
	must(t, err)
	must(t, f.Close())
}

func TestNetworkSideOfASend(t *testing.T) { // J-119
	b := newBroken(t)
	f := create(t, b, "/d1/t-0/log", "x")
	if err := Report(f, OpSend, syscall.EPIPE); err != syscall.EPIPE || b.Offline() != nil {
		t.Fatal(err)
	}
	if err := b.Fail(OpSend, f.Name(), syscall.EIO); b.Offline() == nil || err != error(b.Offline()) {
		t.Fatal(err)
	}
	plain := create(t, b.mem, "/other", "")
	if err := Report(plain, OpSend, syscall.EIO); err != syscall.EIO {
		t.Fatal(err)
	}
}

func TestDirectoryTakenAway(t *testing.T) { // F1, J-116: ENOENT on something nobody here removed
	for name, c := range map[string]struct {
		do   func(m *Mem, d *DirFS) error
		want bool
	}{
		"root_renamed_open": {func(m *Mem, d *DirFS) error {
			m.Rename("/d1", "/away")
			_, err := d.OpenFile("/d1/t-0/log", os.O_RDWR, 0)
			return err
		}, true},
		"root_renamed_checkpoint": {func(m *Mem, d *DirFS) error {
			m.Rename("/d1", "/away")
			return WriteFileAtomic(d, "/d1/replication-offset-checkpoint", nil)
		}, true},
		"root_replaced_by_file": {func(m *Mem, d *DirFS) error {
			m.Rename("/d1", "/away")
			m.OpenFile("/d1", os.O_RDWR|os.O_CREATE, 0o644)
			return WriteFileAtomic(d, "/d1/replication-offset-checkpoint", nil)
		}, true},
		"root_replaced_by_empty_dir": {func(m *Mem, d *DirFS) error {
			m.Rename("/d1", "/away")
			m.Mkdir("/d1", 0o755)
			_, err := d.OpenFile("/d1/t-0/log", os.O_RDWR, 0)
			return err
		}, true},
		"partition_removed_by_a_stranger": {func(m *Mem, d *DirFS) error {
			m.RemoveAll("/d1/t-0")
			_, err := d.OpenFile("/d1/t-0/1.log", os.O_RDWR|os.O_CREATE, 0o644)
			return err
		}, true},
		"partition_removed_by_a_stranger_rename": {func(m *Mem, d *DirFS) error {
			m.Mkdir("/d1/x", 0o755)
			m.RemoveAll("/d1/t-0")
			return d.Rename("/d1/x", "/d1/t-0/x")
		}, true},
		"missing_file_is_asked_for": {func(m *Mem, d *DirFS) error {
			_, err := d.OpenFile("/d1/t-0/leader-epoch-checkpoint", os.O_RDONLY, 0)
			return err
		}, false},
		"partition_deleted_by_us": {func(m *Mem, d *DirFS) error {
			d.Rename("/d1/t-0", "/d1/t-0.abc-delete")
			_, err := d.OpenFile("/d1/t-0/1.log", os.O_RDWR|os.O_CREATE, 0o644)
			return err
		}, false},
		"partition_removed_by_us": {func(m *Mem, d *DirFS) error {
			d.RemoveAll("/d1/t-0")
			return WriteFileAtomic(d, "/d1/t-0/leader-epoch-checkpoint", nil)
		}, false},
		"partition_deleted_and_made_again": {func(m *Mem, d *DirFS) error {
			d.Rename("/d1/t-0", "/d1/t-0.abc-delete")
			d.Mkdir("/d1/t-0", 0o755)
			m.RemoveAll("/d1/t-0")
			_, err := d.OpenFile("/d1/t-0/1.log", os.O_RDWR|os.O_CREATE, 0o644)
			return err
		}, true},
		"rename_of_what_we_removed": {func(m *Mem, d *DirFS) error {
			d.RemoveAll("/d1/t-0")
			return d.Rename("/d1/t-0", "/d1/t-0.abc-delete")
		}, false},
		"failed_rename_keeps_the_name": {func(m *Mem, d *DirFS) error {
			d.Rename("/d1/t-0", "/d1/none/x") // fails, and t-0 is still ours
			m.RemoveAll("/d1/t-0")
			_, err := d.OpenFile("/d1/t-0/1.log", os.O_RDWR|os.O_CREATE, 0o644)
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMem()
			must(t, m.MkdirAll("/d1/t-0", 0o755))
			d := Dir(m, "/d1/", nil)
			err := c.do(m, d)
			if err == nil || (d.Offline() != nil) != c.want {
				t.Errorf("%v, offline %v", err, d.Offline())
			}
		})
	}
}

func TestDirOfAMissingRoot(t *testing.T) {
	m := NewMem()
	d := Dir(m, "/d1", nil)
	if _, err := d.ReadDir("/d1"); !errors.Is(err, fs.ErrNotExist) || d.Offline() != nil {
		t.Fatal(err) // not there yet: whoever formats it decides
	}
	must(t, d.MkdirAll("/d1", 0o755))
	must(t, WriteFileAtomic(d, "/d1/meta.properties", []byte("x")))
}

func TestFullDiskCutsTheTail(t *testing.T) { // J-193
	m := NewMem()
	must(t, m.MkdirAll("/d1", 0o755))
	must(t, m.Limit("/d1", 3*pageSize))
	d := Dir(m, "/d1", nil)
	f := create(t, d, "/d1/log", "kept")
	n, err := f.WriteV([][]byte{make([]byte, 2*pageSize), make([]byte, 2*pageSize)}, 4)
	if n == 0 || !errors.Is(err, syscall.ENOSPC) || d.Offline() == nil {
		t.Fatal(n, err)
	}
	if got := content(m, "/d1/log"); got != "kept" {
		t.Errorf("%d bytes are left", len(got))
	}
}

func TestPartialWrite(t *testing.T) {
	m := NewMem()
	for _, want := range []int{0, 1, 4, 7} {
		fsys := Inject(m, func(op Op) error {
			if op.Kind == OpWrite {
				return &os.PathError{Op: "write", Path: op.Path, Err: &Partial{N: want, Err: syscall.EIO}}
			}
			return nil
		})
		must(t, m.RemoveAll("/a"))
		f := create(t, fsys, "/a", "")
		n, err := f.WriteV([][]byte{[]byte("abcd"), []byte("efgh")}, 0)
		if n != want || !errors.Is(err, syscall.EIO) || content(m, "/a") != "abcdefgh"[:want] {
			t.Errorf("%d: %d %v %q", want, n, err, content(m, "/a"))
		}
	}
}

func TestCount(t *testing.T) {
	c := Count(NewMem())
	must(t, c.MkdirAll("/d", 0o755))
	f := create(t, c, "/d/a", "12345")
	f.WriteV([][]byte{{1}, {2}}, 0)
	f.ReadAt(make([]byte, 3), 0)
	must(t, f.Sync())
	must(t, f.Close())
	if c.Get(OpWrite) != 2 || c.Bytes(OpWrite) != 7 || c.Get(OpRead) != 1 || c.Bytes(OpRead) != 3 || c.Get(OpSync) != 1 || c.Get(OpCreate) != 1 ||
		c.Get(OpClose) != 1 || c.Get(OpMkdir) != 1 || c.Total() != 7 {
		t.Error(c.Get(OpWrite), c.Bytes(OpWrite), c.Total())
	}
	if c.Reset(); c.Total() != 0 {
		t.Error("not reset")
	}
}

func TestObserve(t *testing.T) { // J-130
	var mu sync.Mutex
	now := time.Unix(1000, 0)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock() }
	entered, leave := make(chan struct{}), make(chan struct{})
	disk := Inject(NewMem(), func(op Op) error {
		if op.Kind == OpSync {
			entered <- struct{}{}
			<-leave
		}
		return nil
	})
	var slow []string
	o := Observe(disk, clock, time.Second, func(op Op, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		slow = append(slow, fmt.Sprint(op, " ", took))
	})
	f := create(t, o, "/a", "x")
	if _, _, ok := o.Oldest(); ok {
		t.Error("nothing runs")
	}
	const calls = observed + 3 // more than there are slots
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() { f.Sync() })
		<-entered
		pass(time.Second)
	}
	op, since, ok := o.Oldest()
	if !ok || op.Kind != OpSync || op.Path != "/a" || !since.Equal(time.Unix(1000, 0)) {
		t.Error(op, since, ok)
	}
	close(leave)
	wg.Wait()
	if _, _, ok := o.Oldest(); ok {
		t.Error("nothing runs any more")
	}
	if len(slow) != calls || slow[0][:len("sync /a ")] != "sync /a " {
		t.Error(len(slow), slow)
	}
	if n := testing.AllocsPerRun(100, func() { f.WriteAt([]byte("y"), 0) }); n > 2 {
		t.Errorf("%v allocations for a watched write", n)
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	dir := t.TempDir()
	f := create(t, Dir(Observe(OS(), time.Now, time.Hour, nil), dir, nil), dir+"/a", "x")
	defer f.Close()
	b := make([]byte, 100)
	bufs := [][]byte{b, b}
	if n := testing.AllocsPerRun(100, func() {
		f.WriteAt(b, 0)
		f.ReadAt(b, 0)
		if f.Hold() {
			f.Descriptor()
			f.Release()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	// x/sys makes the vector for pwritev.
	if n := testing.AllocsPerRun(100, func() { f.WriteV(bufs, 0) }); n > 1 {
		t.Errorf("WriteV: %v allocations", n)
	}
}

func TestOpNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range numOps {
		if seen[k.String()] || k.String() == "" {
			t.Errorf("%d is called %q", k, k)
		}
		seen[k.String()] = true
	}
	for want, op := range map[string]Op{
		"rename /a /b": {Kind: OpRename, Path: "/a", To: "/b"}, "write /a 5+7": {Kind: OpWrite, Path: "/a", Off: 5, Len: 7},
		"truncate /a 9": {Kind: OpTruncate, Path: "/a", Off: 9}, "sync /a": {Kind: OpSync, Path: "/a"}, "op(99) /a": {Kind: 99, Path: "/a"},
	} {
		if op.String() != want {
			t.Errorf("%q, want %q", op.String(), want)
		}
	}
}
