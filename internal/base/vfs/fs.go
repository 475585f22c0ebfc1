package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// FS is a file system. Names are full paths. Errors are *os.PathError or
// *os.LinkError around a syscall.Errno, or *DirError from a Dir, so errors.Is
// finds fs.ErrNotExist, fs.ErrExist, fs.ErrClosed and errno values.
type FS interface {
	// OpenFile takes os.O_RDONLY or os.O_RDWR with O_CREATE, O_EXCL, O_TRUNC.
	// O_APPEND is refused: all writing is positional.
	OpenFile(name string, flag int, perm os.FileMode) (File, error)
	Mkdir(name string, perm os.FileMode) error
	MkdirAll(name string, perm os.FileMode) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// RemoveAll removes name and everything in it; a missing name is success.
	RemoveAll(name string) error
	// Rename replaces an existing file newName atomically.
	Rename(oldName, newName string) error
	// ReadDir lists a directory in order of names.
	ReadDir(name string) ([]os.DirEntry, error)
	Stat(name string) (os.FileInfo, error)
	// SyncDir makes the creations, renames and removals in a directory durable.
	SyncDir(name string) error
	// Lock takes the exclusive lock on a file, which it creates if needed, without
	// waiting; ErrLocked when another process, or this one, has it. The lock is the
	// kind Java's FileChannel.tryLock takes, so Kafka and samsa exclude each other (D-39).
	// Closing the Closer releases the lock and leaves the file.
	Lock(name string) (io.Closer, error)
	// Space tells the size of the disk that holds name.
	Space(name string) (Space, error)
}

// Space is the size of a disk in bytes. Free is what an ordinary user may still use.
type Space struct {
	Total, Free int64
}

// File is an open file. After Close every method fails with fs.ErrClosed.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Close waits for nothing: calls that are running, and holders, keep the
	// descriptor alive until they are done.
	io.Closer
	// WriteV writes bufs one after the other at off, in one system call when it
	// can. Neither bufs nor the bytes are kept or changed. It returns the number of bytes written, and an
	// error when that is not all of them.
	WriteV(bufs [][]byte, off int64) (int, error)
	Truncate(size int64) error
	// Sync makes data and size durable; times may lag behind.
	Sync() error
	Size() (int64, error)
	// Name is the name the file was opened with.
	Name() string
	// Descriptor is for sendfile: the descriptor and true, or false when there is
	// none (memory files, an offline directory). It stays valid until Close; call
	// Hold first to be safe from a Close in another goroutine.
	Descriptor() (fd uintptr, ok bool)
	// Hold keeps the file usable across Close, until the matching Release.
	// False, and nothing to release, when the file is closed already.
	Hold() bool
	Release()
}

// ErrLocked is returned by Lock when somebody else holds the lock.
var ErrLocked = errors.New("vfs: locked by another process")

var errAppend = errors.New("vfs: O_APPEND is not supported, writes are positional")

// ReadFile reads a whole file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err == io.EOF {
		err = nil // it became shorter meanwhile
	}
	return b[:n], err
}

// WriteFileAtomic replaces the content of name, or creates it: name.tmp is
// written and synced, renamed over name, and the directory synced. On return the
// new content is durable; after an error or a crash name has the old content or the new.
func WriteFileAtomic(fsys FS, name string, data []byte) error {
	tmp := name + ".tmp"
	f, err := fsys.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err != nil {
		return err
	}
	return fsys.SyncDir(parent(name))
}

// Exists says whether name is there; an error other than "not there" is returned.
func Exists(fsys FS, name string) (bool, error) {
	_, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func parent(name string) string {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			if i == 0 {
				return "/"
			}
			return name[:i]
		}
	}
	return "."
}
