package vfs

import (
	"math/rand/v2"
	"time"
)

// Mem is a file system in memory that can crash. See NewMem.
type Mem struct {
	FS
}

// NewMem makes an empty file system with only the root directory.
func NewMem() *Mem { panic("pending") }

// CrashClone is the file system as a machine might find it after losing power
// now: all synced data and names, and of the rest a part chosen by rng. Mem itself goes on unchanged.
func (m *Mem) CrashClone(rng *rand.Rand) *Mem { panic("pending") }

// Limit makes the tree under dir a disk of its own of total bytes; writes beyond fail with ENOSPC.
func (m *Mem) Limit(dir string, total int64) { panic("pending") }

// Inject asks before every call; a non-nil error is returned instead of making it.
// A *Partial lets a write happen in part.
func Inject(fsys FS, before func(Op) error) FS { panic("pending") }

// Partial makes an injected write store its first N bytes and then fail with Err.
type Partial struct {
	N   int
	Err error
}

func (p *Partial) Error() string { return p.Err.Error() }
func (p *Partial) Unwrap() error { return p.Err }

// Counter is an FS that counts its calls.
type Counter struct {
	FS
}

// Count wraps fsys.
func Count(fsys FS) *Counter { panic("pending") }

// Get is the number of calls of a kind since Reset.
func (c *Counter) Get(kind OpKind) int64 { panic("pending") }

// Reset sets all counts to zero.
func (c *Counter) Reset() { panic("pending") }

// Observer is an FS that watches how long its calls take.
type Observer struct {
	FS
}

// Observe wraps fsys. slow is called after every call that took at least threshold, on the caller's goroutine.
func Observe(fsys FS, now func() time.Time, threshold time.Duration, slow func(op Op, took time.Duration)) *Observer {
	panic("pending")
}

// Oldest is the call that has been running longest, and since when; false when none is running (J-130).
func (o *Observer) Oldest() (op Op, since time.Time, ok bool) { panic("pending") }

// DirFS is the seam of one log directory. See Dir.
type DirFS struct {
	FS
}

// Dir wraps fsys for the log directory root. The first error that means the
// directory is bad takes it offline for good: onOffline is called once, before
// that error is returned, on the goroutine that met it (it must not block or
// call back into the FS), and every call from then on fails with that same *DirError.
func Dir(fsys FS, root string, onOffline func(*DirError)) *DirFS { panic("pending") }

// Offline is the error that took the directory offline, or nil.
func (d *DirFS) Offline() *DirError { panic("pending") }

// Fail reports an error met outside the FS, and takes the directory offline if
// it is a storage error. It returns what the FS would have returned.
func (d *DirFS) Fail(op OpKind, path string, err error) error { panic("pending") }

// Root is the log directory.
func (d *DirFS) Root() string { panic("pending") }

// Report is Fail for somebody who has only the file, such as a sendfile (J-119).
func Report(f File, op OpKind, err error) error { panic("pending") }

// DirError is the error that took a log directory offline.
type DirError struct {
	Dir  string
	Op   OpKind
	Path string
	Err  error
}

func (e *DirError) Error() string {
	return "log directory " + e.Dir + " is offline: " + e.Op.String() + " " + e.Path + ": " + e.Err.Error()
}
func (e *DirError) Unwrap() error { return e.Err }
