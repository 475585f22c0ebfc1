package logdir

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"samsa/internal/base/vfs"
)

// LockFile is the file whose lock keeps other processes, Kafka's too, out of a directory (D-39).
const LockFile = ".lock"

// Lock takes the lock of one directory, for nodes that have no Manager. Closing it deletes the
// file and gives the lock back.
//
// The error of a directory in use wraps vfs.ErrLocked and says which.
func Lock(fsys vfs.FS, dir string) (io.Closer, error) {
	name := filepath.Join(dir, LockFile)
	held, err := fsys.Lock(name)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("Failed to acquire lock on file %s in %s. A Kafka instance in another process or thread is using this directory."+
			" Stop it first, or give this node other log.dirs. (%w)", LockFile, dir, vfs.ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("Disk error while locking directory %s: %w", dir, err)
	}
	return &dirLock{fsys, name, held}, nil
}

type dirLock struct {
	fsys vfs.FS
	name string
	held io.Closer
}

// Close deletes the file while it is still locked: the other way round it could delete a file
// somebody else has just locked.
func (l *dirLock) Close() error {
	err := l.fsys.Remove(l.name)
	if isNotExist(err) {
		err = nil
	}
	return errors.Join(err, l.held.Close())
}

// lockDir locks one directory at Open. Only a directory in use is an error; an I/O error takes
// the directory offline (J-41, J-182).
func (m *Manager) lockDir(d *Directory) error {
	if info, err := d.fs.Stat(d.path); err != nil || !info.IsDir() {
		if err == nil {
			err = errors.New("it is not a directory")
		}
		d.started = fmt.Errorf("Failed to create or validate data directory %s: %w", d.path, err)
		return nil
	}
	lock, err := Lock(d.fs, d.path)
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return err
	case err != nil:
		d.started = err
		return nil
	}
	d.lock = lock
	if s, err := d.fs.Space(d.path); err == nil {
		d.free.Store(s.Free)
	}
	// An empty file stands for a checkpoint without entries (J-183).
	for _, name := range checkpointFiles {
		if err := createEmpty(d.fs, filepath.Join(d.path, name)); err != nil {
			d.started = err
			break
		}
	}
	return nil
}

// unlock gives all locks back.
func (m *Manager) unlock() {
	for _, d := range m.dirs {
		if err := d.unlock(); err != nil && d.Online() {
			m.log.Warn("cannot remove the lock file", "dir", d.path, "err", err)
		}
	}
}

func (d *Directory) unlock() error {
	d.lockMu.Lock()
	defer d.lockMu.Unlock()
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}
