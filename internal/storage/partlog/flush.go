package partlog

import (
	"math"
	"slices"
)

// Flush syncs everything up to the log end and moves the recovery point.
func (l *Log) Flush(now int64) error { return l.FlushTo(math.MaxInt64, now) }

// toSync is one file to sync.
type toSync struct {
	s      *segment
	h      *handle
	suffix string
	bit    dirty
}

// FlushTo syncs everything below offset: a segment boundary for the background flush after a roll, beyond the log end for
// all. Of the active segment only the .log is synced: after a crash its indexes are rebuilt anyway (D-67).
func (l *Log) FlushTo(offset int64, now int64) error {
	l.sync.Lock()
	defer l.sync.Unlock()
	return l.flushLocked(offset, now, false)
}

// flushLocked is FlushTo under sync. With indexes the active segment's are synced too (clean close).
func (l *Log) flushLocked(offset, now int64, indexes bool) error {
	if err := l.repairIndexes(); err != nil {
		return err
	}
	l.write.Lock()
	if err := l.usable(); err != nil {
		l.write.Unlock()
		return err
	}
	target := min(offset, l.end)
	files := l.collectDirty(target, indexes)
	snapshots := l.snapshotsToSync(target)
	dirDirty, parentDirty := l.dirDirty, l.parentDirty
	l.dirDirty, l.parentDirty = false, false
	l.write.Unlock()

	bad, err := l.syncAll(files, snapshots, dirDirty, parentDirty)
	if err == nil {
		err = l.saveEpochs()
	}

	l.write.Lock()
	defer l.write.Unlock()
	if err != nil {
		for _, t := range files {
			t.s.unsynced |= t.bit
		}
		l.unsyncedSnapshots = append(l.unsyncedSnapshots, snapshots...)
		l.dirDirty, l.parentDirty = l.dirDirty || dirDirty, l.parentDirty || parentDirty
		if bad {
			l.failed = err
		}
		return err
	}
	if dirDirty {
		l.deletesPending = false // deletions are under sync, as this is
	}
	l.env.Stats.Flushes.Add(1)
	l.lastFlush = now
	l.mu.Lock()
	l.recoveryPoint = max(l.recoveryPoint, target)
	l.mu.Unlock()
	return nil
}

// collectDirty takes the files below target that need a sync; under write.
func (l *Log) collectDirty(target int64, indexes bool) []toSync {
	var files []toSync
	take := func(t toSync) {
		if t.s.unsynced&t.bit != 0 {
			files = append(files, t)
		}
	}
	last := l.active()
	for _, s := range l.segments {
		if s.base >= target {
			break
		}
		take(toSync{s, &s.log, logSuffix, dirtyLog})
		if s != last || indexes {
			if s.offsets.made {
				take(toSync{s, &s.offsets.h, indexSuffix, dirtyIndexes})
			}
			if s.times.made {
				take(toSync{s, &s.times.h, timeSuffix, dirtyIndexes})
			}
			take(toSync{s, &s.txn, txnSuffix, dirtyTxn})
		}
	}
	for _, t := range files {
		t.s.unsynced &^= t.bit
	}
	return files
}

// snapshotsToSync takes the producer snapshots up to target that were not synced; under write.
func (l *Log) snapshotsToSync(target int64) (list []int64) {
	l.unsyncedSnapshots = slices.DeleteFunc(l.unsyncedSnapshots, func(o int64) bool {
		if o <= target {
			list = append(list, o)
		}
		return o <= target
	})
	return list
}

// syncAll syncs files, then the directory's names; under sync alone, so that appends and reads go on. bad says that
// a sync failed, after which nobody knows what is on disk, and not just the opening of a file.
func (l *Log) syncAll(files []toSync, snapshots []int64, dir, parent bool) (bad bool, err error) {
	for _, t := range files {
		f, err := l.open(t.s, t.h, t.suffix)
		if err != nil {
			return false, err
		}
		err = f.Sync()
		f.Release()
		if err != nil {
			return true, err
		}
	}
	for _, offset := range snapshots {
		for _, suffix := range [...]string{snapshotSuffix, windowSuffix} {
			if err := l.syncFile(fileName(offset, suffix)); err != nil {
				return true, err
			}
		}
	}
	if dir {
		if err := l.fs.SyncDir(l.Dir()); err != nil {
			return true, err
		}
	}
	if parent {
		err = l.fs.SyncDir(l.parentDir())
	}
	return err != nil, err
}

// FlushDue says whether flush.ms has passed with something unflushed (D-79).
func (l *Log) FlushDue(now int64) bool {
	limit := l.Config().FlushMs
	if limit == math.MaxInt64 || l.Unflushed() == 0 {
		return false
	}
	l.write.Lock()
	defer l.write.Unlock()
	return !l.closed.Load() && now-l.lastFlush >= limit
}

// Unflushed is the number of offsets above the recovery point.
func (l *Log) Unflushed() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.end-l.recoveryPoint)
}

// Close flushes and closes so that the next Open can trust everything (D-72): final time entry, indexes, producer
// snapshot at the log end, epoch file. After it RecoveryPoint is the log end. A closed log answers
// kerr.KafkaStorageError. Close is idempotent. After an error the log is closed all the same, but not clean.
func (l *Log) Close(now int64) error {
	l.sync.Lock()
	defer l.sync.Unlock()
	if l.closed.Load() {
		return nil
	}
	err := l.prepareClose()
	if err == nil && (l.Unflushed() > 0 || len(l.unsyncedSnapshots) > 0 && l.ProducerCount() > 0) {
		err = l.flushLocked(math.MaxInt64, now, true)
	}
	if err == nil {
		err = l.saveEpochs()
	}
	l.abandon()
	return err
}

// prepareClose writes what a clean log has on disk; under sync.
func (l *Log) prepareClose() error {
	if err := l.repairIndexes(); err != nil {
		return err
	}
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if err := l.mend(l.active()); err != nil {
		return err
	}
	if err := l.finish(l.active()); err != nil {
		return err
	}
	for _, s := range l.segments {
		if !s.offsets.made {
			if err := l.makeIndexes(s); err != nil {
				return err
			}
		}
	}
	if l.end > l.segments[0].base || len(l.snapshots) > 0 {
		return l.takeSnapshot(l.end)
	}
	return nil
}

// Abandon closes without writing anything: the directory is offline, or the partition is deleted.
func (l *Log) Abandon() {
	l.sync.Lock()
	defer l.sync.Unlock()
	l.abandon()
}

func (l *Log) abandon() {
	l.write.Lock()
	defer l.write.Unlock()
	l.closed.Store(true)
	for _, s := range l.segments {
		l.closeFiles(s)
	}
}

// SetAside is Abandon for a log whose files live on for a while (-delete, -stray): the indexes are completed, so that
// whoever loads them after a clean stop, as Kafka does, finds nothing missing. Nothing is synced; what cannot be
// written is left out.
func (l *Log) SetAside() {
	l.sync.Lock()
	defer l.sync.Unlock()
	l.write.Lock()
	if l.usable() == nil {
		if err := l.finish(l.active()); err != nil {
			l.log().Warn("the indexes of a log that is set aside are not complete", "err", err)
		}
	}
	l.write.Unlock()
	l.abandon()
}

// RenameDir renames the partition's directory (-delete, -stray, future to current) and goes on in the new one.
func (l *Log) RenameDir(dir string) error {
	l.sync.Lock()
	defer l.sync.Unlock()
	l.write.Lock()
	defer l.write.Unlock()
	l.names.Lock()
	defer l.names.Unlock()
	old, parent := l.Dir(), l.parentDir()
	if err := l.fs.Rename(old, dir); err != nil {
		return err
	}
	l.dir.Store(&dir)
	if err := l.fs.SyncDir(parent); err != nil {
		return err
	}
	if now := l.parentDir(); now != parent {
		return l.fs.SyncDir(now)
	}
	return nil
}
