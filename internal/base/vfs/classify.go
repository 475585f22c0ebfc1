package vfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// Blame says whose fault an error is.
type Blame uint8

const (
	// BlameNobody: there is no error.
	BlameNobody Blame = iota
	// BlameCaller: the caller asked for something that is not there, is there already, or is closed; or
	// the process is short of something other than this disk. The directory stays online.
	BlameCaller
	// BlameDir: the directory is bad.
	BlameDir
)

// Classify says whether an error of a call means that the directory is bad (J-116).
// ENOENT is BlameCaller here; a Dir looks closer.
//
// Everything the kernel says that is not known to be harmless is BlameDir: a directory taken offline too early costs a
// failover, one kept too long costs data. After a failed fsync no errno is harmless.
func Classify(kind OpKind, err error) Blame {
	switch {
	case err == nil:
		return BlameNobody
	case errors.Is(err, fs.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return BlameCaller
	case errors.Is(err, ErrLocked), errors.Is(err, errAppend):
		return BlameCaller
	case errors.Is(err, io.ErrShortWrite):
		return BlameDir
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return BlameCaller // io.EOF, and what callers wrap around bytes that were read well
	}
	if kind == OpSync || kind == OpSyncDir {
		if errno == syscall.ENOENT && kind == OpSyncDir {
			return BlameCaller // the directory itself is gone: it was opened first
		}
		if openFailed(kind, errno) {
			return BlameCaller
		}
		return BlameDir
	}
	switch errno {
	case syscall.EINTR, syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM:
		return BlameCaller // of the process, not of the disk
	case syscall.ENOENT, syscall.EEXIST, syscall.ENOTEMPTY, syscall.EISDIR, syscall.EBADF, syscall.EINVAL,
		syscall.ENAMETOOLONG, syscall.EXDEV, syscall.EFBIG, syscall.ENOTSUP, syscall.ENOSYS, syscall.EFAULT:
		return BlameCaller
	case syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ENOTCONN, syscall.ETIMEDOUT,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN:
		if kind == OpSend {
			return BlameCaller // the other side of a sendfile
		}
	}
	return BlameDir
}

// openFailed: SyncDir opens the directory first, and running out of descriptors
// there has not touched what the kernel holds.
func openFailed(kind OpKind, errno syscall.Errno) bool {
	return kind == OpSyncDir && (errno == syscall.EMFILE || errno == syscall.ENFILE)
}
