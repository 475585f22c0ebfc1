package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// DirError is the first error that said a log directory is bad. Every call on
// the directory returns this same error from then on.
type DirError struct {
	Dir  string
	Op   OpKind
	Path string
	Err  error
}

func (e *DirError) Error() string {
	return "log directory " + e.Dir + " is offline: " + e.Op.String() + " " + e.Path + ": " + e.Err.Error()
}

// Unwrap finds what the kernel said.
func (e *DirError) Unwrap() error { return e.Err }

// DirFS is the seam of one log directory. See Dir.
type DirFS struct {
	fs        FS
	root      string
	onOffline func(*DirError)
	offline   atomic.Pointer[DirError]
	failOnce  sync.Once

	mu       sync.Mutex
	rootInfo os.FileInfo     // the directory as first seen, to notice that it was taken away
	gone     map[string]bool // directories renamed or removed through this FS
}

// maxGone bounds the memory of removed directories. What is forgotten is so long
// ago that nobody still holds on to it.
const maxGone = 1 << 16

// Dir wraps fsys for the log directory root. The first error that means the
// directory is bad (Classify, and checkGone for missing names) takes it offline
// for good (J-113): onOffline is called once, before that error is returned, on the
// goroutine that met it, which may hold any lock, so it must neither block nor call back
// into the FS. From then on every call fails at once with that same *DirError and
// touches nothing; only Close still closes, and Unlock unlocks.
//
// A write that met ENOSPC at the end of a file is cut off again before the
// directory goes offline, so that a half-written tail is not left behind (J-193).
func Dir(fsys FS, root string, onOffline func(*DirError)) *DirFS {
	d := &DirFS{fs: fsys, root: strings.TrimRight(root, "/"), onOffline: onOffline, gone: map[string]bool{}}
	if info, err := fsys.Stat(root); err == nil {
		d.rootInfo = info
	}
	return d
}

// Root is the log directory.
func (d *DirFS) Root() string { return d.root }

// Offline is the error that took the directory offline, or nil.
func (d *DirFS) Offline() *DirError { return d.offline.Load() }

// Fail reports an error met outside the FS, by a sendfile (OpSend), or a damaged file that Kafka answers with an
// offline directory. A storage error takes the directory offline. It returns what the FS would have returned.
func (d *DirFS) Fail(kind OpKind, path string, err error) error {
	return d.judge(Op{Kind: kind, Path: path}, err)
}

// TakeOffline takes the directory offline whatever the error is (D-220).
func (d *DirFS) TakeOffline(kind OpKind, path string, err error) error {
	d.failOnce.Do(func() {
		e := &DirError{Dir: d.root, Op: kind, Path: path, Err: err}
		d.offline.Store(e)
		if d.onOffline != nil {
			d.onOffline(e)
		}
	})
	return d.Offline()
}

// dead is the sticky error, as an error that is nil when there is none.
func (d *DirFS) dead() error {
	if e := d.offline.Load(); e != nil {
		return e
	}
	return nil
}

func (d *DirFS) judge(op Op, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	blame := Classify(op.Kind, err)
	if blame == BlameCaller && errors.Is(err, syscall.ENOENT) && d.checkGone(op) {
		blame = BlameDir
	}
	if blame == BlameDir {
		return d.TakeOffline(op.Kind, op.Path, err)
	}
	if e := d.dead(); e != nil {
		return e
	}
	return err
}

// checkGone looks into an ENOENT. Asking for a file that is not there is the
// caller's matter. But the log directory itself may have been taken away (F1), or
// a directory that nobody removed through this FS is missing when a file is to be created in it.
func (d *DirFS) checkGone(op Op) bool {
	info, err := d.fs.Stat(d.root)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		return d.rootInfo != nil || Classify(OpStat, err) == BlameDir
	}
	if d.rootInfo == nil {
		d.rootInfo = info
	} else if !sameFile(d.rootInfo, info) {
		return true
	}
	needs := op.Path
	switch op.Kind {
	case OpCreate:
	case OpRename:
		if _, err := d.fs.Stat(op.Path); err != nil {
			return false // the source is the caller's matter
		}
		needs = op.To
	default:
		return false
	}
	for p := parent(needs); len(p) >= len(d.root); p = parent(p) {
		if d.gone[p] {
			return false
		}
	}
	return strings.HasPrefix(needs, d.root+"/")
}

func sameFile(a, b os.FileInfo) bool {
	if n, ok := a.Sys().(*memNode); ok {
		return n == b.Sys()
	}
	return os.SameFile(a, b)
}

// went notes that a name is no longer what it was, by our own doing. It says whether that is news.
func (d *DirFS) went(name string) bool {
	name = strings.TrimRight(name, "/")
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone[name] {
		return false
	}
	if len(d.gone) >= maxGone {
		clear(d.gone)
	}
	d.gone[name] = true
	return true
}

func (d *DirFS) came(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.gone, strings.TrimRight(name, "/"))
}

func (d *DirFS) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	if err := d.dead(); err != nil {
		return nil, err
	}
	f, err := d.fs.OpenFile(name, flag, perm)
	if err != nil {
		kind := OpOpen
		if flag&os.O_CREATE != 0 {
			kind = OpCreate
		}
		return nil, d.judge(Op{Kind: kind, Path: name}, err)
	}
	return &dirFile{d: d, f: f}, nil
}

func (d *DirFS) do(op Op, call func() error) error {
	if err := d.dead(); err != nil {
		return err
	}
	return d.judge(op, call())
}

func (d *DirFS) Mkdir(name string, perm os.FileMode) error {
	err := d.do(Op{Kind: OpMkdir, Path: name}, func() error { return d.fs.Mkdir(name, perm) })
	if err == nil {
		d.came(name)
	}
	return err
}

func (d *DirFS) MkdirAll(name string, perm os.FileMode) error {
	err := d.do(Op{Kind: OpMkdir, Path: name}, func() error { return d.fs.MkdirAll(name, perm) })
	if err == nil {
		d.came(name)
	}
	return err
}

func (d *DirFS) Remove(name string) error {
	return d.do(Op{Kind: OpRemove, Path: name}, func() error {
		err := d.fs.Remove(name)
		if err == nil && !isFileName(name) {
			d.went(name)
		}
		return err
	})
}

// isFileName spares the table of gone directories the segment files, whose
// extension no partition directory's end can be.
func isFileName(name string) bool {
	for _, ext := range [...]string{".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".deleted", ".cleaned", ".swap", ".tmp", ".checkpoint"} {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	return false
}

func (d *DirFS) RemoveAll(name string) error {
	d.went(name) // before: others may meet the missing files at once
	return d.do(Op{Kind: OpRemoveAll, Path: name}, func() error { return d.fs.RemoveAll(name) })
}

func (d *DirFS) Rename(oldName, newName string) error {
	if err := d.dead(); err != nil {
		return err
	}
	news := !isFileName(oldName) && d.went(oldName) // before: others may meet the missing name at once
	err := d.judge(Op{Kind: OpRename, Path: oldName, To: newName}, d.fs.Rename(oldName, newName))
	if err == nil {
		d.came(newName)
	} else if news {
		d.came(oldName)
	}
	return err
}

func (d *DirFS) ReadDir(name string) (list []os.DirEntry, err error) {
	err = d.do(Op{Kind: OpReadDir, Path: name}, func() error {
		list, err = d.fs.ReadDir(name)
		return err
	})
	return list, err
}

func (d *DirFS) Stat(name string) (info os.FileInfo, err error) {
	err = d.do(Op{Kind: OpStat, Path: name}, func() error {
		info, err = d.fs.Stat(name)
		return err
	})
	return info, err
}

func (d *DirFS) SyncDir(name string) error {
	return d.do(Op{Kind: OpSyncDir, Path: name}, func() error { return d.fs.SyncDir(name) })
}

func (d *DirFS) Lock(name string) (c io.Closer, err error) {
	err = d.do(Op{Kind: OpLock, Path: name}, func() error {
		c, err = d.fs.Lock(name)
		return err
	})
	return c, err
}

func (d *DirFS) Space(name string) (s Space, err error) {
	err = d.do(Op{Kind: OpSpace, Path: name}, func() error {
		s, err = d.fs.Space(name)
		return err
	})
	return s, err
}

// Report tells the FS a file came from about an error met outside it, as Fail does: for a
// sendfile that has only the file (J-119). Without a Dir the error comes back as it is.
func Report(f File, kind OpKind, err error) error {
	if df, ok := f.(*dirFile); ok {
		return df.judge(Op{Kind: kind}, err)
	}
	return err
}

// dirFile is an open file of a DirFS.
type dirFile struct {
	d *DirFS
	f File
}

func (f *dirFile) judge(op Op, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	op.Path = f.f.Name()
	return f.d.judge(op, err)
}

func (f *dirFile) Name() string { return f.f.Name() }

func (f *dirFile) Descriptor() (uintptr, bool) {
	if f.d.Offline() != nil {
		return 0, false
	}
	return f.f.Descriptor()
}

func (f *dirFile) Hold() bool { return f.d.Offline() == nil && f.f.Hold() }
func (f *dirFile) Release()   { f.f.Release() }

func (f *dirFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.d.dead(); err != nil {
		return 0, err
	}
	n, err := f.f.ReadAt(b, off)
	return n, f.judge(Op{Kind: OpRead, Off: off, Len: len(b)}, err)
}

func (f *dirFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.d.dead(); err != nil {
		return 0, err
	}
	n, err := f.f.WriteAt(b, off)
	if err != nil {
		f.cutTail(n, off, err)
	}
	return n, f.judge(Op{Kind: OpWrite, Off: off, Len: len(b)}, err)
}

func (f *dirFile) WriteV(bufs [][]byte, off int64) (int, error) {
	if err := f.d.dead(); err != nil {
		return 0, err
	}
	n, err := f.f.WriteV(bufs, off)
	if err != nil {
		f.cutTail(n, off, err)
	}
	return n, f.judge(Op{Kind: OpWrite, Off: off}, err)
}

// cutTail removes what a full disk let through of a write that ended the file.
func (f *dirFile) cutTail(n int, off int64, err error) {
	if n == 0 || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return
	}
	if size, err := f.f.Size(); err == nil && size == off+int64(n) {
		f.f.Truncate(off) // the directory goes offline either way
	}
}

func (f *dirFile) Truncate(size int64) error {
	if err := f.d.dead(); err != nil {
		return err
	}
	return f.judge(Op{Kind: OpTruncate, Off: size}, f.f.Truncate(size))
}

func (f *dirFile) Sync() error {
	if err := f.d.dead(); err != nil {
		return err
	}
	return f.judge(Op{Kind: OpSync}, f.f.Sync())
}

func (f *dirFile) Size() (int64, error) {
	if err := f.d.dead(); err != nil {
		return 0, err
	}
	size, err := f.f.Size()
	return size, f.judge(Op{Kind: OpSize}, err)
}

func (f *dirFile) Close() error {
	err := f.f.Close()
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		return f.judge(Op{Kind: OpClose}, err)
	}
	return err
}
