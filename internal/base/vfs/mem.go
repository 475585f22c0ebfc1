package vfs

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Mem is a file system in memory that can crash: see CrashClone.
//
// The tree has one lock, each file another. A directory remembers which of its
// changes have not been made durable by SyncDir (memdir.go), a file which of its
// pages have not been by Sync (memfile.go).
type Mem struct {
	mu    sync.RWMutex // guards the tree: children, pending, nlink, open, volumes
	root  *memNode
	locks map[*memNode]bool
	clock atomic.Int64 // a stand-in for modification times: one millisecond per change
	now   func() time.Time
}

// memNode is a file or a directory.
type memNode struct {
	fs    *Mem
	vol   *memVolume
	mtime atomic.Int64
	dir   *memDir  // nil for files
	file  *memData // nil for directories
	nlink int      // names in the current tree
	open  int      // open files
}

// memVolume is a disk of limited size.
type memVolume struct {
	total int64 // 0: unlimited
	used  atomic.Int64
}

func (v *memVolume) take(pages int) bool {
	n := v.used.Add(int64(pages) * pageSize)
	if v.total > 0 && n > v.total {
		v.used.Add(-int64(pages) * pageSize)
		return false
	}
	return true
}

func (v *memVolume) give(pages int) { v.used.Add(-int64(pages) * pageSize) }

// NewMem makes an empty file system with only the root directory. Relative names count from the root.
func NewMem() *Mem {
	m := &Mem{locks: map[*memNode]bool{}}
	m.root = m.newDir(&memVolume{})
	m.root.nlink = 1
	return m
}

func (m *Mem) newDir(vol *memVolume) *memNode {
	n := &memNode{fs: m, vol: vol, dir: &memDir{children: map[string]*memNode{}, synced: map[string]*memNode{}}}
	n.touch()
	return n
}

func (m *Mem) newFile(vol *memVolume) *memNode {
	n := &memNode{fs: m, vol: vol, file: &memData{}}
	n.touch()
	return n
}

func (n *memNode) touch() {
	if n.fs.now != nil {
		n.mtime.Store(n.fs.now().UnixMilli())
		return
	}
	n.mtime.Store(n.fs.clock.Add(1))
}

// SetClock says where modification times come from. Call it before anything
// else; without it every change is one millisecond after the one before, from 1970 on.
func (m *Mem) SetClock(now func() time.Time) { m.now = now }

// Limit makes the tree under dir, which must exist, a disk of its own of total
// bytes: Space tells its size, and writes beyond it fail with ENOSPC after storing what fits.
func (m *Mem) Limit(dir string, total int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(dir)
	if err != nil {
		return &os.PathError{Op: "limit", Path: dir, Err: err}
	}
	vol := &memVolume{total: total}
	m.moveToVolume(n, vol)
	return nil
}

func (m *Mem) moveToVolume(n *memNode, vol *memVolume) {
	if n.file != nil {
		n.file.mu.Lock()
		used := n.file.allocated
		n.vol.give(used)
		vol.used.Add(int64(used) * pageSize)
		n.vol = vol
		n.file.mu.Unlock()
		return
	}
	n.vol = vol
	for _, c := range n.dir.children {
		m.moveToVolume(c, vol)
	}
}

// find walks to a node. The caller holds mu.
func (m *Mem) find(name string) (*memNode, error) {
	n := m.root
	for rest := clean(name); rest != ""; {
		var part string
		part, rest = cut(rest)
		if n.dir == nil {
			return nil, syscall.ENOTDIR
		}
		c := n.dir.children[part]
		if c == nil {
			return nil, syscall.ENOENT
		}
		n = c
	}
	return n, nil
}

// findParent walks to the directory that holds, or would hold, name.
func (m *Mem) findParent(name string) (*memNode, string, error) {
	c := clean(name)
	if c == "" {
		return nil, "", syscall.EINVAL
	}
	dir, base := path.Split(c)
	n, err := m.find(dir)
	if err != nil {
		return nil, "", err
	}
	if n.dir == nil {
		return nil, "", syscall.ENOTDIR
	}
	if len(base) > 255 {
		return nil, "", syscall.ENAMETOOLONG
	}
	return n, base, nil
}

// clean is the name without a leading slash and dots; "" is the root.
func clean(name string) string { return path.Clean("/" + name)[1:] }

func cut(name string) (first, rest string) {
	for i := range len(name) {
		if name[i] == '/' {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

func (m *Mem) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	f, err := m.open(name, flag)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return f, nil
}

func (m *Mem) open(name string, flag int) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, errAppend
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	switch {
	case err == nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, syscall.EEXIST
	case err == syscall.ENOENT && flag&os.O_CREATE != 0:
		dir, base, err := m.findParent(name)
		if err != nil {
			return nil, err
		}
		n = m.newFile(dir.vol)
		m.change(nameChange{dir, base, n})
	case err != nil:
		return nil, err
	}
	writable := flag&(os.O_RDWR|os.O_WRONLY) != 0
	if n.dir != nil && (writable || flag&os.O_CREATE != 0) {
		return nil, syscall.EISDIR
	}
	if flag&os.O_TRUNC != 0 && writable {
		n.truncate(0)
	}
	n.open++
	return &memFile{node: n, name: name, writable: writable}, nil
}

func (m *Mem) Mkdir(name string, perm os.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.mkdir(name); err != nil {
		return &os.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return nil
}

func (m *Mem) mkdir(name string) error {
	if clean(name) == "" {
		return syscall.EEXIST
	}
	dir, base, err := m.findParent(name)
	if err != nil {
		return err
	}
	if dir.dir.children[base] != nil {
		return syscall.EEXIST
	}
	m.change(nameChange{dir, base, m.newDir(dir.vol)})
	return nil
}

func (m *Mem) MkdirAll(name string, perm os.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := clean(name)
	for i := 0; i <= len(c); i++ {
		if i < len(c) && c[i] != '/' || i == 0 {
			continue
		}
		n, err := m.find(c[:i])
		if err == syscall.ENOENT {
			err = m.mkdir(c[:i])
		} else if err == nil && n.dir == nil {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return &os.PathError{Op: "mkdir", Path: name, Err: err}
		}
	}
	return nil
}

func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.findParent(name)
	if err == nil {
		n := dir.dir.children[base]
		switch {
		case n == nil:
			err = syscall.ENOENT
		case n.dir != nil && len(n.dir.children) > 0:
			err = syscall.ENOTEMPTY
		default:
			m.change(nameChange{dir, base, nil})
		}
	}
	if err != nil {
		return &os.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.findParent(name)
	if err == syscall.ENOENT || err == nil && dir.dir.children[base] == nil {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "removeall", Path: name, Err: err}
	}
	m.removeTree(dir, base)
	return nil
}

func (m *Mem) removeTree(dir *memNode, base string) {
	if n := dir.dir.children[base]; n.dir != nil {
		for _, c := range sortedNames(n.dir.children) {
			m.removeTree(n, c)
		}
	}
	m.change(nameChange{dir, base, nil})
}

func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.rename(oldName, newName); err != nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
	}
	return nil
}

func (m *Mem) rename(oldName, newName string) error {
	from, oldBase, err := m.findParent(oldName)
	if err != nil {
		return err
	}
	to, newBase, err := m.findParent(newName)
	if err != nil {
		return err
	}
	n := from.dir.children[oldBase]
	if n == nil {
		return syscall.ENOENT
	}
	if n.vol != to.vol && from.vol != to.vol {
		return syscall.EXDEV
	}
	target := to.dir.children[newBase]
	c, o := clean(newName), clean(oldName)
	switch {
	case target != nil && target.dir != nil:
		return syscall.EEXIST // as os.Rename says, even of an empty directory
	case n.dir != nil && len(c) > len(o) && c[:len(o)] == o && c[len(o)] == '/':
		return syscall.EINVAL // into itself
	case target == n:
		return nil
	case target != nil && n.dir != nil:
		return syscall.ENOTDIR
	}
	m.change(nameChange{from, oldBase, nil}, nameChange{to, newBase, n})
	return nil
}

func (m *Mem) ReadDir(name string) ([]os.DirEntry, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find(name)
	if err == nil && n.dir == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	list := make([]os.DirEntry, 0, len(n.dir.children))
	for _, base := range sortedNames(n.dir.children) {
		list = append(list, memInfo{base, n.dir.children[base]})
	}
	return list, nil
}

func (m *Mem) Stat(name string) (os.FileInfo, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find(name)
	if err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return memInfo{path.Base(name), n}, nil
}

func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && n.dir == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return &os.PathError{Op: "syncdir", Path: name, Err: err}
	}
	n.persist(len(n.dir.pending))
	return nil
}

// Lock keeps its table per Mem: locks, like processes, do not survive a crash.
func (m *Mem) Lock(name string) (io.Closer, error) {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	n := f.(*memFile).node
	m.mu.Lock()
	taken := m.locks[n]
	m.locks[n] = true
	m.mu.Unlock()
	if taken {
		f.Close()
		return nil, &os.PathError{Op: "lock", Path: name, Err: ErrLocked}
	}
	return &memLock{file: f, node: n}, nil
}

type memLock struct {
	file File
	node *memNode
	once sync.Once
}

func (l *memLock) Close() (err error) {
	l.once.Do(func() {
		m := l.node.fs
		m.mu.Lock()
		delete(m.locks, l.node)
		m.mu.Unlock()
		err = l.file.Close()
	})
	return err
}

// Space of an unlimited Mem is one tebibyte.
func (m *Mem) Space(name string) (Space, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find(name)
	if err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	total := n.vol.total
	if total == 0 {
		total = 1 << 40
	}
	return Space{Total: total, Free: max(total-n.vol.used.Load(), 0)}, nil
}

func sortedNames(children map[string]*memNode) []string {
	names := make([]string, 0, len(children))
	for name := range children {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// memInfo is both os.FileInfo and os.DirEntry.
type memInfo struct {
	name string
	node *memNode
}

func (i memInfo) Name() string { return i.name }
func (i memInfo) Size() int64 {
	if i.node.file == nil {
		return 0
	}
	return i.node.file.length()
}
func (i memInfo) Mode() os.FileMode {
	if i.IsDir() {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
func (i memInfo) Type() os.FileMode          { return i.Mode().Type() }
func (i memInfo) ModTime() time.Time         { return time.UnixMilli(i.node.mtime.Load()) }
func (i memInfo) IsDir() bool                { return i.node.dir != nil }
func (i memInfo) Sys() any                   { return i.node }
func (i memInfo) Info() (os.FileInfo, error) { return i, nil }
