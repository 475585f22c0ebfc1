package vfs

import (
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// OS is the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, &os.PathError{Op: "open", Path: name, Err: errAppend}
	}
	fd, err := openFD(name, flag, perm)
	if err != nil {
		return nil, err
	}
	f := &osFile{fd: fd, name: name}
	f.refs.Store(1)
	return f, nil
}

func openFD(name string, flag int, perm os.FileMode) (int, error) {
	for {
		fd, err := unix.Open(name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, &os.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

func (osFS) Mkdir(name string, perm os.FileMode) error    { return os.Mkdir(name, perm) }
func (osFS) MkdirAll(name string, perm os.FileMode) error { return os.MkdirAll(name, perm) }
func (osFS) Remove(name string) error                     { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                  { return os.RemoveAll(name) }
func (osFS) Rename(oldName, newName string) error         { return os.Rename(oldName, newName) }
func (osFS) ReadDir(name string) ([]os.DirEntry, error)   { return os.ReadDir(name) }
func (osFS) Stat(name string) (os.FileInfo, error)        { return os.Stat(name) }

func (osFS) SyncDir(name string) error {
	fd, err := openFD(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	err = unix.Fsync(fd)
	if cerr := unix.Close(fd); err == nil && cerr != unix.EINTR {
		err = cerr
	}
	if err != nil {
		return &os.PathError{Op: "syncdir", Path: name, Err: err}
	}
	return nil
}

func (osFS) Space(name string) (Space, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(name, &st)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return Space{}, &os.PathError{Op: "statfs", Path: name, Err: err}
		}
	}
	return Space{Total: int64(st.Blocks) * st.Bsize, Free: int64(st.Bavail) * st.Bsize}, nil
}

// osFile is a descriptor with a count of its users: 1 for being open plus one
// for every call in flight and every Hold. The descriptor is closed by whoever
// brings the count to 0, so it is never reused under a reader's feet.
type osFile struct {
	fd     int
	name   string
	refs   atomic.Int32
	closed atomic.Bool
}

func (f *osFile) Name() string                { return f.name }
func (f *osFile) Descriptor() (uintptr, bool) { return uintptr(f.fd), !f.closed.Load() }

func (f *osFile) Hold() bool {
	for {
		n := f.refs.Load()
		if n == 0 || f.closed.Load() {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (f *osFile) Release() { f.drop() }

func (f *osFile) drop() error {
	if f.refs.Add(-1) > 0 {
		return nil
	}
	// Linux has closed the descriptor whatever close(2) says; never retry it.
	if err := unix.Close(f.fd); err != nil && err != unix.EINTR {
		return f.fail("close", err)
	}
	return nil
}

func (f *osFile) Close() error {
	if !f.closed.CompareAndSwap(false, true) {
		return f.fail("close", fs.ErrClosed)
	}
	return f.drop()
}

func (f *osFile) fail(op string, err error) error {
	return &os.PathError{Op: op, Path: f.name, Err: err}
}

func (f *osFile) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, f.fail("read", unix.EINVAL)
	}
	if !f.Hold() {
		return 0, f.fail("read", fs.ErrClosed)
	}
	defer f.drop()
	n := 0
	for n < len(b) {
		m, err := unix.Pread(f.fd, b[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, f.fail("read", err)
		}
		if m == 0 {
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}

func (f *osFile) WriteAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, f.fail("write", unix.EINVAL)
	}
	if !f.Hold() {
		return 0, f.fail("write", fs.ErrClosed)
	}
	defer f.drop()
	return f.pwrite(b, off)
}

func (f *osFile) pwrite(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		m, err := unix.Pwrite(f.fd, b[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, f.fail("write", err)
		}
		if m == 0 {
			return n, f.fail("write", io.ErrShortWrite)
		}
		n += m
	}
	return n, nil
}

// maxIov is IOV_MAX of Linux: buffers in one pwritev.
const maxIov = 1024

func (f *osFile) WriteV(bufs [][]byte, off int64) (int, error) {
	if off < 0 {
		return 0, f.fail("write", unix.EINVAL)
	}
	if !f.Hold() {
		return 0, f.fail("write", fs.ErrClosed)
	}
	defer f.drop()
	total := 0
	for len(bufs) > 0 {
		if len(bufs) == 1 {
			n, err := f.pwrite(bufs[0], off+int64(total))
			return total + n, err
		}
		part := bufs[:min(len(bufs), maxIov)]
		n, err := unix.Pwritev(f.fd, part, off+int64(total))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return total, f.fail("write", err)
		}
		total += n
		rest := n
		for len(part) > 0 && rest >= len(part[0]) {
			rest -= len(part[0])
			part, bufs = part[1:], bufs[1:]
		}
		if len(part) == 0 {
			continue
		}
		// The kernel stopped early, mostly in the middle of a buffer: finish that one
		// buffer alone, then go on with vectors. An error or no progress comes out here.
		m, err := f.pwrite(bufs[0][rest:], off+int64(total))
		total += m
		if err != nil {
			return total, err
		}
		bufs = bufs[1:]
	}
	return total, nil
}

func (f *osFile) Truncate(size int64) error {
	if !f.Hold() {
		return f.fail("truncate", fs.ErrClosed)
	}
	defer f.drop()
	for {
		err := unix.Ftruncate(f.fd, size)
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return f.fail("truncate", err)
		}
	}
}

// Sync is fdatasync, which on Linux also flushes the size when it changed. It is
// called once: after an error, EINTR too, the kernel may have dropped the dirty pages.
func (f *osFile) Sync() error {
	if !f.Hold() {
		return f.fail("sync", fs.ErrClosed)
	}
	defer f.drop()
	if err := unix.Fdatasync(f.fd); err != nil {
		return f.fail("sync", err)
	}
	return nil
}

func (f *osFile) Size() (int64, error) {
	if !f.Hold() {
		return 0, f.fail("stat", fs.ErrClosed)
	}
	defer f.drop()
	var st unix.Stat_t
	for {
		err := unix.Fstat(f.fd, &st)
		if err == nil {
			return st.Size, nil
		}
		if err != unix.EINTR {
			return 0, f.fail("stat", err)
		}
	}
}
