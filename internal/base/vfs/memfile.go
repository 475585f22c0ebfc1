package vfs

import (
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

const (
	pageSize   = 4096
	sectorSize = 512
)

// page is immutable once shared: with synced, or with a crash clone.
type page struct {
	shared bool
	data   [pageSize]byte
}

// memData is the content of a file. Missing pages are zeros.
type memData struct {
	mu        sync.RWMutex
	size      int64
	pages     []*page
	allocated int  // pages charged to the volume
	orphan    bool // no name and no user: no longer charged

	// What Sync made durable, and what changed since.
	syncedSize  int64
	syncedPages []*page
	dirty       map[int]struct{} // page numbers that may differ from syncedPages
	cut         int64            // smallest size since Sync, if it was below syncedSize; else -1 or any size above
	hasCut      bool
}

func (d *memData) length() int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.size
}

func (d *memData) read(b []byte, off int64) int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if off >= d.size {
		return 0
	}
	b = b[:min(int64(len(b)), d.size-off)]
	n := 0
	for n < len(b) {
		i, in := int((off+int64(n))/pageSize), int((off+int64(n))%pageSize)
		m := min(len(b)-n, pageSize-in)
		if i < len(d.pages) && d.pages[i] != nil {
			copy(b[n:n+m], d.pages[i].data[in:])
		} else {
			clear(b[n : n+m])
		}
		n += m
	}
	return n
}

// write stores b, and returns less than len(b) when the volume is full.
func (d *memData) write(vol *memVolume, b []byte, off int64) int {
	n := 0
	for n < len(b) {
		i, in := int((off+int64(n))/pageSize), int((off+int64(n))%pageSize)
		m := min(len(b)-n, pageSize-in)
		p := d.writable(vol, i)
		if p == nil {
			break
		}
		copy(p.data[in:], b[n:n+m])
		n += m
	}
	if n > 0 {
		d.size = max(d.size, off+int64(n))
	}
	return n
}

// writable is page i for writing, made or copied if needed; nil when there is no room.
func (d *memData) writable(vol *memVolume, i int) *page {
	for i >= len(d.pages) {
		d.pages = append(d.pages, nil)
	}
	p := d.pages[i]
	switch {
	case p == nil:
		if !d.orphan {
			if !vol.take(1) {
				return nil
			}
			d.allocated++
		}
		p = &page{}
	case p.shared:
		q := &page{data: p.data}
		p = q
	}
	d.pages[i] = p
	d.mark(i)
	return p
}

func (d *memData) mark(i int) {
	if d.dirty == nil {
		d.dirty = map[int]struct{}{}
	}
	d.dirty[i] = struct{}{}
}

func (d *memData) truncate(vol *memVolume, size int64) {
	if size < d.size {
		keep := int((size + pageSize - 1) / pageSize)
		for i := keep; i < len(d.pages); i++ {
			if d.pages[i] != nil {
				if d.allocated > 0 {
					vol.give(1)
					d.allocated--
				}
				d.mark(i)
			}
		}
		if keep < len(d.pages) {
			d.pages = d.pages[:keep]
		}
		if in := size % pageSize; in != 0 && keep <= len(d.pages) && d.pages[keep-1] != nil {
			p := d.writable(vol, keep-1)
			clear(p.data[in:])
		}
		if size < d.syncedSize && (!d.hasCut || size < d.cut) {
			d.hasCut, d.cut = true, size
		}
	}
	d.size = size
}

func (d *memData) sync() {
	for i := range d.dirty {
		for i >= len(d.syncedPages) {
			d.syncedPages = append(d.syncedPages, nil)
		}
		d.syncedPages[i] = nil
		if i < len(d.pages) && d.pages[i] != nil {
			d.pages[i].shared = true
			d.syncedPages[i] = d.pages[i]
		}
	}
	if n := int((d.size + pageSize - 1) / pageSize); n < len(d.syncedPages) {
		clear(d.syncedPages[n:])
		d.syncedPages = d.syncedPages[:n]
	}
	d.syncedSize = d.size
	d.hasCut = false
	clear(d.dirty)
}

func (n *memNode) truncate(size int64) {
	n.file.mu.Lock()
	defer n.file.mu.Unlock()
	n.file.truncate(n.vol, size)
	n.touch()
}

// memFile is an open file.
type memFile struct {
	node     *memNode
	name     string
	writable bool
	holds    atomic.Int32
	closed   atomic.Bool
}

func (f *memFile) Name() string                { return f.name }
func (f *memFile) Descriptor() (uintptr, bool) { return 0, false }

func (f *memFile) Hold() bool {
	f.holds.Add(1)
	if f.closed.Load() {
		f.holds.Add(-1)
		return false
	}
	return true
}

func (f *memFile) Release() { f.holds.Add(-1) }

// usable: a held file still works after Close.
func (f *memFile) usable() bool { return !f.closed.Load() || f.holds.Load() > 0 }

func (f *memFile) Close() error {
	if !f.closed.CompareAndSwap(false, true) {
		return f.fail("close", fs.ErrClosed)
	}
	m := f.node.fs
	m.mu.Lock()
	defer m.mu.Unlock()
	f.node.open--
	f.node.reclaim()
	return nil
}

func (f *memFile) fail(op string, err error) error {
	return &os.PathError{Op: op, Path: f.name, Err: err}
}

// check is what every call on an open file asks first.
func (f *memFile) check(op string, write bool, off int64) error {
	switch {
	case !f.usable():
		return f.fail(op, fs.ErrClosed)
	case f.node.dir != nil:
		return f.fail(op, syscall.EISDIR)
	case write && !f.writable:
		return f.fail(op, syscall.EBADF)
	case off < 0:
		return f.fail(op, syscall.EINVAL)
	}
	return nil
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.check("read", false, off); err != nil {
		return 0, err
	}
	n := f.node.file.read(b, off)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	return f.WriteV([][]byte{b}, off)
}

// WriteV stores all buffers under one lock: a concurrent reader sees all or nothing of a write.
func (f *memFile) WriteV(bufs [][]byte, off int64) (int, error) {
	if err := f.check("write", true, off); err != nil {
		return 0, err
	}
	d := f.node.file
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, b := range bufs {
		n := d.write(f.node.vol, b, off+int64(total))
		total += n
		if n < len(b) {
			return total, f.fail("write", syscall.ENOSPC)
		}
	}
	f.node.touch()
	return total, nil
}

func (f *memFile) Truncate(size int64) error {
	if err := f.check("truncate", true, size); err != nil {
		return err
	}
	f.node.truncate(size)
	return nil
}

func (f *memFile) Sync() error {
	if err := f.check("sync", false, 0); err != nil {
		return err
	}
	f.node.file.mu.Lock()
	defer f.node.file.mu.Unlock()
	f.node.file.sync()
	return nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.check("stat", false, 0); err != nil {
		return 0, err
	}
	return f.node.file.length(), nil
}
