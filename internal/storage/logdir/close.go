package logdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"samsa/internal/base/vfs"
)

// close is Close:
//
//  1. no new background work; the scheduler and the failure goroutine end; running jobs end
//  2. per directory, side by side: closeDir
//  3. give the locks back and delete the lock files, whatever happened before
func (m *Manager) close(ctx context.Context, brokerEpoch int64) error {
	if !m.closed.CompareAndSwap(false, true) {
		return nil
	}
	m.sched.mu.Lock()
	m.sched.stopped = true
	m.sched.mu.Unlock()
	close(m.sched.stop)
	var errs []error
	if !waitFor(ctx, &m.sched.jobs) {
		errs = append(errs, fmt.Errorf("background work on the log directories did not end in time: %w", context.Cause(ctx)))
	}
	var mu sync.Mutex
	done := make(chan struct{})
	go func() {
		m.eachDir(func(_ int, d *Directory) {
			if err := m.closeDir(ctx, d, brokerEpoch); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done(): // a disk that hangs is left to itself
		mu.Lock()
		errs = append(errs, fmt.Errorf("log directories were not closed in time and will be recovered: %w", context.Cause(ctx)))
		mu.Unlock()
	}
	m.unlock()
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(errs...)
}

// closeWorkers is how many logs one directory closes at a time, at least: nearly all of it is waiting for
// fsync, which the file system does for all waiting at once.
const closeWorkers = 8

// closeDir closes the logs of one directory side by side, then writes, in this order: recovery points, log starts, high watermarks, and last, synced, the clean marker. A
// directory with a failure, or one not loaded completely, gets no marker (D-72, J-42).
func (m *Manager) closeDir(ctx context.Context, d *Directory, brokerEpoch int64) error {
	logs := m.allIn(d)
	failed := make([]error, len(logs))
	parallel(len(logs), max(closeWorkers, m.live.Load().RecoveryThreadsPerDir), func(i int) bool {
		if ctx.Err() != nil {
			failed[i] = context.Cause(ctx)
			return false
		}
		failed[i] = logs[i].Log.Close(m.nowMs())
		return d.Online()
	})
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("log directory %s was not closed cleanly and will be recovered: %w", d.path, err)
	}
	if !d.loaded.Load() || !d.Online() || ctx.Err() != nil {
		return d.Err()
	}
	for _, write := range []func(*Directory) error{m.checkpointRecoveryPoints, m.checkpointLogStarts, m.checkpointHighWatermarks} {
		if err := write(d); err != nil {
			return err
		}
	}
	return writeMarker(d.fs, d.path, brokerEpoch)
}

// writeMarker writes the clean marker, synced with its name. It is not written through a temporary
// file: a marker that is cut short still says "clean", which is true by now.
func writeMarker(fsys vfs.FS, dir string, brokerEpoch int64) error {
	f, err := fsys.OpenFile(filepath.Join(dir, CleanShutdownFile), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(appendCleanMarker(nil, brokerEpoch), 0)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// waitFor waits for wg or ctx, whichever ends first.
func waitFor(ctx context.Context, wg *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
