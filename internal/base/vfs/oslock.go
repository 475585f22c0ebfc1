package vfs

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Java's FileChannel.tryLock is fcntl(F_SETLK) with a write lock on the whole
// file. The kernel keeps one list of such locks per file; open-file-description
// locks (F_OFD_SETLK) are in the same list and conflict with Java's. We take
// those where we can: a POSIX lock belongs to the process and vanishes when any descriptor
// of the file is closed, ours belongs to this descriptor alone. On a file system
// without them we take the POSIX lock. Either way a table of held files
// keeps a second Lock in this process from even opening the file, because closing it would drop a POSIX lock.
var held = struct {
	sync.Mutex
	files map[fileID]bool
}{files: map[fileID]bool{}}

type fileID struct{ dev, ino uint64 }

func (osFS) Lock(name string) (io.Closer, error) {
	held.Lock()
	defer held.Unlock()
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err == nil && held.files[fileID{uint64(st.Dev), st.Ino}] {
		return nil, &os.PathError{Op: "lock", Path: name, Err: ErrLocked}
	}
	fd, err := openFD(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "lock", Path: name, Err: err}
	}
	if err := setLock(fd); err != nil {
		unix.Close(fd)
		if err == unix.EAGAIN || err == unix.EACCES {
			err = ErrLocked
		}
		return nil, &os.PathError{Op: "lock", Path: name, Err: err}
	}
	id := fileID{uint64(st.Dev), st.Ino}
	held.files[id] = true
	return &osLock{fd: fd, id: id}, nil
}

func setLock(fd int) error {
	cmd := unix.F_OFD_SETLK
	for {
		lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET}
		err := unix.FcntlFlock(uintptr(fd), cmd, &lk)
		switch {
		case err == unix.EINTR:
		case cmd == unix.F_OFD_SETLK && (err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP):
			cmd = unix.F_SETLK
		default:
			return err
		}
	}
}

type osLock struct {
	fd   int
	id   fileID
	once sync.Once
}

func (l *osLock) Close() (err error) {
	l.once.Do(func() {
		held.Lock()
		defer held.Unlock()
		delete(held.files, l.id)
		err = unix.Close(l.fd)
	})
	return err
}
