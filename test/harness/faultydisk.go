package harness

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Calls are kinds of calls to a FaultyDisk.
type Calls uint32

const (
	Reads   Calls = 1 << iota // read
	Writes                    // write
	Syncs                     // fsync
	Names                     // lookup, create, mkdir, rename, unlink, readdir
	NoCalls Calls = 0
	All           = Reads | Writes | Syncs | Names
)

// FaultyDisk is a directory that passes everything through to another one until it is told to fail.
type FaultyDisk struct {
	Dir   string // where it is mounted
	fails atomic.Uint32
	Hits  atomic.Int64 // calls that failed
}

// MountFaulty mounts a FaultyDisk over dir with FUSE, until the test ends. It needs privileges; without them the
// test is skipped.
func MountFaulty(t testing.TB, dir string) *FaultyDisk {
	t.Helper()
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("no FUSE here: %v", err)
	} else {
		f.Close()
	}
	below := dir + ".disk"
	if err := os.Rename(dir, below); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &FaultyDisk{Dir: dir}
	root := &fs.LoopbackRoot{Path: below}
	var st syscall.Stat_t
	if err := syscall.Stat(below, &st); err != nil {
		t.Fatal(err)
	}
	root.Dev = uint64(st.Dev)
	root.NewNode = func(r *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &faultyNode{LoopbackNode: fs.LoopbackNode{RootData: r}, disk: d}
	}
	node := &faultyNode{LoopbackNode: fs.LoopbackNode{RootData: root}, disk: d}
	root.RootNode = node
	server, err := fs.Mount(dir, node, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: filepath.Base(below), Name: "faulty"}})
	if err != nil {
		t.Skipf("cannot mount with FUSE: %v", err)
	}
	t.Cleanup(func() {
		d.Fail(NoCalls)
		if err := server.Unmount(); err != nil {
			syscall.Unmount(dir, syscall.MNT_DETACH)
		}
	})
	return d
}

// Fail makes calls of these kinds fail with EIO from now on, and no others.
func (d *FaultyDisk) Fail(calls Calls) { d.fails.Store(uint32(calls)) }

func (d *FaultyDisk) check(calls Calls) syscall.Errno {
	if d.fails.Load()&uint32(calls) == 0 {
		return 0
	}
	d.Hits.Add(1)
	return syscall.EIO
}

type faultyNode struct {
	fs.LoopbackNode
	disk *FaultyDisk
}

func (n *faultyNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if e := n.disk.check(Names); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Lookup(ctx, name, out)
}

func (n *faultyNode) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if e := n.disk.check(Names); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Mkdir(ctx, name, mode, out)
}

func (n *faultyNode) Unlink(ctx context.Context, name string) syscall.Errno {
	if e := n.disk.check(Names); e != 0 {
		return e
	}
	return n.LoopbackNode.Unlink(ctx, name)
}

func (n *faultyNode) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if e := n.disk.check(Names); e != 0 {
		return e
	}
	return n.LoopbackNode.Rename(ctx, name, parent, newName, flags)
}

func (n *faultyNode) Readdir(ctx context.Context) (fs.DirStream, syscall.Errno) {
	if e := n.disk.check(Names); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Readdir(ctx)
}

func (n *faultyNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if e := n.disk.check(Names); e != 0 {
		return nil, nil, 0, e
	}
	inode, h, _, e := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if e != 0 {
		return nil, nil, 0, e
	}
	return inode, n.disk.handle(h), fuse.FOPEN_DIRECT_IO, 0
}

func (n *faultyNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if e := n.disk.check(Names); e != 0 {
		return nil, 0, e
	}
	h, _, e := n.LoopbackNode.Open(ctx, flags)
	if e != 0 {
		return nil, 0, e
	}
	return n.disk.handle(h), fuse.FOPEN_DIRECT_IO, 0 // no page cache between a reader and the fault
}

// file is everything a log needs of a file; what it leaves out (passthrough above all) goes through the node.
type file interface {
	fs.FileReader
	fs.FileWriter
	fs.FileFsyncer
	fs.FileFlusher
	fs.FileReleaser
	fs.FileGetattrer
	fs.FileSetattrer
}

func (d *FaultyDisk) handle(h fs.FileHandle) fs.FileHandle {
	return &faultyFile{file: h.(file), disk: d}
}

type faultyFile struct {
	file
	disk *FaultyDisk
}

func (f *faultyFile) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if e := f.disk.check(Reads); e != 0 {
		return nil, e
	}
	return f.file.Read(ctx, dest, off)
}

func (f *faultyFile) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if e := f.disk.check(Writes); e != 0 {
		return 0, e
	}
	return f.file.Write(ctx, data, off)
}

func (f *faultyFile) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if e := f.disk.check(Syncs); e != 0 {
		return e
	}
	return f.file.Fsync(ctx, flags)
}
