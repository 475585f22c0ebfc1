package vfs

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
)

// around is what Inject, Count and Observe have in common: something happens
// before and after every call.
type around struct {
	fs     FS
	before func(Op) (token uint64, err error)
	after  func(Op, uint64)
}

func (a *around) call(op Op, f func() error) error {
	token, err := a.before(op)
	if err != nil {
		return err
	}
	err = f()
	if a.after != nil {
		a.after(op, token)
	}
	return err
}

func (a *around) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	op := Op{Kind: OpOpen, Path: name}
	if flag&os.O_CREATE != 0 {
		op.Kind = OpCreate
	}
	var file File
	err := a.call(op, func() (err error) {
		file, err = a.fs.OpenFile(name, flag, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &aroundFile{a, file}, nil
}

func (a *around) Mkdir(name string, perm os.FileMode) error {
	return a.call(Op{Kind: OpMkdir, Path: name}, func() error { return a.fs.Mkdir(name, perm) })
}

func (a *around) MkdirAll(name string, perm os.FileMode) error {
	return a.call(Op{Kind: OpMkdir, Path: name}, func() error { return a.fs.MkdirAll(name, perm) })
}

func (a *around) Remove(name string) error {
	return a.call(Op{Kind: OpRemove, Path: name}, func() error { return a.fs.Remove(name) })
}

func (a *around) RemoveAll(name string) error {
	return a.call(Op{Kind: OpRemoveAll, Path: name}, func() error { return a.fs.RemoveAll(name) })
}

func (a *around) Rename(oldName, newName string) error {
	return a.call(Op{Kind: OpRename, Path: oldName, To: newName}, func() error { return a.fs.Rename(oldName, newName) })
}

func (a *around) ReadDir(name string) (list []os.DirEntry, err error) {
	err = a.call(Op{Kind: OpReadDir, Path: name}, func() (err error) {
		list, err = a.fs.ReadDir(name)
		return err
	})
	return list, err
}

func (a *around) Stat(name string) (info os.FileInfo, err error) {
	err = a.call(Op{Kind: OpStat, Path: name}, func() (err error) {
		info, err = a.fs.Stat(name)
		return err
	})
	return info, err
}

func (a *around) SyncDir(name string) error {
	return a.call(Op{Kind: OpSyncDir, Path: name}, func() error { return a.fs.SyncDir(name) })
}

func (a *around) Lock(name string) (c io.Closer, err error) {
	err = a.call(Op{Kind: OpLock, Path: name}, func() (err error) {
		c, err = a.fs.Lock(name)
		return err
	})
	return c, err
}

func (a *around) Space(name string) (s Space, err error) {
	err = a.call(Op{Kind: OpSpace, Path: name}, func() (err error) {
		s, err = a.fs.Space(name)
		return err
	})
	return s, err
}

type aroundFile struct {
	a *around
	File
}

func (f *aroundFile) op(kind OpKind, off int64, n int) Op {
	return Op{Kind: kind, Path: f.Name(), Off: off, Len: n}
}

func (f *aroundFile) ReadAt(b []byte, off int64) (n int, err error) {
	op := f.op(OpRead, off, len(b))
	token, err := f.a.before(op)
	if err != nil {
		return 0, err
	}
	n, err = f.File.ReadAt(b, off)
	if f.a.after != nil {
		f.a.after(op, token)
	}
	return n, err
}

func (f *aroundFile) WriteAt(b []byte, off int64) (n int, err error) {
	op := f.op(OpWrite, off, len(b))
	token, err := f.a.before(op)
	if err != nil {
		return f.partly([][]byte{b}, off, err)
	}
	n, err = f.File.WriteAt(b, off)
	if f.a.after != nil {
		f.a.after(op, token)
	}
	return n, err
}

func (f *aroundFile) WriteV(bufs [][]byte, off int64) (n int, err error) {
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	op := f.op(OpWrite, off, total)
	token, err := f.a.before(op)
	if err != nil {
		return f.partly(bufs, off, err)
	}
	n, err = f.File.WriteV(bufs, off)
	if f.a.after != nil {
		f.a.after(op, token)
	}
	return n, err
}

// partly carries out as much of a write as an injected *Partial lets through.
func (f *aroundFile) partly(bufs [][]byte, off int64, err error) (int, error) {
	var p *Partial
	if !errors.As(err, &p) {
		return 0, err
	}
	n := 0
	for _, b := range bufs {
		b = b[:min(len(b), p.N-n)]
		m, werr := f.File.WriteAt(b, off+int64(n))
		n += m
		if werr != nil {
			return n, werr
		}
	}
	return n, p.Err
}

func (f *aroundFile) Truncate(size int64) error {
	return f.a.call(f.op(OpTruncate, size, 0), func() error { return f.File.Truncate(size) })
}

func (f *aroundFile) Sync() error {
	return f.a.call(f.op(OpSync, 0, 0), f.File.Sync)
}

func (f *aroundFile) Size() (size int64, err error) {
	err = f.a.call(f.op(OpSize, 0, 0), func() (err error) {
		size, err = f.File.Size()
		return err
	})
	return size, err
}

// Close closes even when an error is injected, so that no descriptor leaks.
func (f *aroundFile) Close() error {
	op := f.op(OpClose, 0, 0)
	token, injected := f.a.before(op)
	err := f.File.Close()
	if f.a.after != nil && injected == nil {
		f.a.after(op, token)
	}
	return errors.Join(injected, err)
}

// Inject asks before every call; a non-nil error is returned instead of making
// it. Give errors as *os.PathError or a bare syscall.Errno. A *Partial lets a
// write happen in part. A before that returns nil makes it a trace. It is called from
// many goroutines when the FS is used by many.
func Inject(fsys FS, before func(Op) error) FS {
	return &around{fs: fsys, before: func(op Op) (uint64, error) { return 0, before(op) }}
}

// Partial makes an injected write store its first N bytes and then fail with Err.
type Partial struct {
	N   int
	Err error
}

func (p *Partial) Error() string { return p.Err.Error() }

// Unwrap finds Err.
func (p *Partial) Unwrap() error { return p.Err }

// Counter is an FS that counts its calls.
type Counter struct {
	around
	counts [numOps]atomic.Int64
	bytes  [numOps]atomic.Int64
}

// Count wraps fsys.
func Count(fsys FS) *Counter {
	c := &Counter{}
	c.fs = fsys
	c.before = func(op Op) (uint64, error) {
		c.counts[op.Kind].Add(1)
		c.bytes[op.Kind].Add(int64(op.Len))
		return 0, nil
	}
	return c
}

// Get is the number of calls of a kind since Reset.
func (c *Counter) Get(kind OpKind) int64 { return c.counts[kind].Load() }

// Bytes is how many bytes the calls of a kind (OpRead, OpWrite) asked for since Reset.
func (c *Counter) Bytes(kind OpKind) int64 { return c.bytes[kind].Load() }

// Total is the number of calls of all kinds since Reset.
func (c *Counter) Total() int64 {
	var n int64
	for i := range c.counts {
		n += c.counts[i].Load()
	}
	return n
}

// Reset sets all counts to zero.
func (c *Counter) Reset() {
	for i := range c.counts {
		c.counts[i].Store(0)
		c.bytes[i].Store(0)
	}
}
