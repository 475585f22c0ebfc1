package partlog

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"samsa/internal/base/vfs"
	"samsa/internal/storage/producerstate"
)

// takeSnapshot writes the producer state, which reaches to offset, unless there is a snapshot of that offset (D-50);
// under write. It is synced with the next flush; a lost or torn one only costs a longer replay.
func (l *Log) takeSnapshot(offset int64) error {
	if n := len(l.snapshots); n > 0 && l.snapshots[n-1] >= offset {
		return nil
	}
	snapshot := l.producers.AppendSnapshot(nil)
	if err := l.writePlain(fileName(offset, snapshotSuffix), snapshot); err != nil {
		return err
	}
	if window := l.producers.AppendWindow(nil, snapshot); len(window) > 0 {
		if err := l.writePlain(fileName(offset, windowSuffix), window); err != nil {
			return err
		}
	}
	l.snapshots = append(l.snapshots, offset)
	l.unsyncedSnapshots = append(l.unsyncedSnapshots, offset)
	return nil
}

// writePlain writes a small file of the partition without syncing it; under write.
func (l *Log) writePlain(name string, content []byte) error {
	f, err := l.fs.OpenFile(l.Dir()+"/"+name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	l.dirDirty = true
	return err
}

// syncFile syncs a small file of the partition; a missing one is fine.
func (l *Log) syncFile(name string) error {
	f, err := l.fs.OpenFile(l.Dir()+"/"+name, os.O_RDWR, 0)
	if err != nil {
		return ignoreMissing(err)
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeSnapshot deletes a snapshot and its window; under write.
func (l *Log) removeSnapshot(offset int64) error {
	for _, suffix := range [...]string{snapshotSuffix, windowSuffix} {
		if err := ignoreMissing(l.fs.Remove(l.Dir() + "/" + fileName(offset, suffix))); err != nil {
			return err
		}
	}
	l.snapshots = slices.DeleteFunc(l.snapshots, func(o int64) bool { return o == offset })
	l.unsyncedSnapshots = slices.DeleteFunc(l.unsyncedSnapshots, func(o int64) bool { return o == offset })
	l.dirDirty = true
	return nil
}

// readSnapshot reads a snapshot and, if it is whole and belongs to it, the window; then complete is true.
func (l *Log) readSnapshot(offset int64) (producers []producerstate.Producer, complete bool, err error) {
	path := l.Dir() + "/" + fileName(offset, snapshotSuffix)
	content, err := vfs.ReadFile(l.fs, path)
	if err != nil {
		return nil, false, err
	}
	producers, err = producerstate.ReadSnapshot(content)
	if err != nil {
		return nil, false, &damagedFile{path, err}
	}
	if len(producers) == 0 {
		return nil, true, nil
	}
	path = l.Dir() + "/" + fileName(offset, windowSuffix)
	window, err := vfs.ReadFile(l.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		return producers, !producerstate.WindowExpected(producers), nil // Kafka wrote the snapshot, or it says all
	}
	if err != nil {
		return nil, false, err
	}
	if err := producerstate.MergeWindow(producers, content, window); err != nil {
		l.env.Stats.SnapshotsDamaged.Add(1)
		l.log().Warn("ignoring producer window that does not fit its snapshot", "path", path, "err", err)
		return producers, false, nil
	}
	return producers, true, nil
}

// betterSnapshot is the snapshot before index i when that one is complete, or the beginning of the log when there is one segment
// before it: after a crash that tore a window it is worth a replay of one segment to have it again.
func (l *Log) betterSnapshot(i int) ([]producerstate.Producer, int64, bool) {
	if i == 0 {
		start := max(l.logStart, l.segments[0].base)
		return nil, start, start < l.snapshots[0] && floor(l.segments, l.snapshots[0]-1) == 0
	}
	producers, complete, err := l.readSnapshot(l.snapshots[i-1])
	return producers, l.snapshots[i-1], err == nil && complete
}

// damagedFile is a file whose content cannot be.
type damagedFile struct {
	path string
	err  error
}

func (e *damagedFile) Error() string { return e.path + ": " + e.err.Error() }
func (e *damagedFile) Unwrap() error { return e.err }

// loadProducers rebuilds the state up to offset `to` from the newest snapshot at or below it and the batches after it (D-71, D-95);
// under write. Damaged snapshots are deleted. With trust an absent snapshot means no producers.
func (l *Log) loadProducers(to, now int64, trust bool) error {
	for {
		at := sortedFloor(l.snapshots, to)
		if at < 0 {
			l.mu.Lock()
			l.producers.Reset(l.logStart)
			if trust {
				l.producers.SetEnd(to)
			}
			l.mu.Unlock()
			break
		}
		offset := l.snapshots[at]
		producers, complete, err := l.readSnapshot(offset)
		if d := (*damagedFile)(nil); errors.As(err, &d) {
			l.env.Stats.SnapshotsDamaged.Add(1)
			l.log().Warn("dropping damaged producer snapshot", "path", d.path, "err", d.err)
			if err := l.removeSnapshot(offset); err != nil {
				return err
			}
			trust = false
			continue
		}
		if err != nil {
			return err
		}
		if !complete && !trust {
			if p, o, ok := l.betterSnapshot(at); ok {
				producers, offset = p, o
			}
		}
		l.mu.Lock()
		l.producers.Load(producers, offset, now, l.env.producerExpirationMs())
		l.mu.Unlock()
		break
	}
	return l.replayProducers(to)
}

// replayProducers feeds the batches from the state's end to offset `to` into it; under write.
func (l *Log) replayProducers(to int64) error {
	from := l.producers.End()
	for i := max(0, floor(l.segments, from)); i < len(l.segments) && l.segments[i].base < to; i++ {
		s := l.segments[i]
		if s.size == 0 {
			continue
		}
		if err := l.replaySegment(s, max(from, s.base), to); err != nil {
			return err
		}
	}
	l.mu.Lock()
	l.producers.SetEnd(to)
	l.mu.Unlock()
	return nil
}

func (l *Log) replaySegment(s *segment, from, to int64) error {
	f, err := l.openLog(s)
	if err != nil {
		return err
	}
	defer f.Release()
	start := int64(0)
	if from > s.base {
		l.mu.Lock()
		v := l.seek(s, from)
		l.mu.Unlock()
		p, ok, err := l.find(v, f, from)
		if err != nil || !ok {
			return err
		}
		start = p.pos
	}
	sc := newScanner(f, start, s.size, false)
	defer sc.done()
	for {
		at := sc.pos
		b, err := sc.next(false)
		if err == nil && b != nil && b.IsControl() {
			sc.pos = at // a marker's record is needed too
			b, err = sc.next(true)
		}
		if err != nil {
			return corrupt(s.path(l.Dir(), logSuffix), at, err)
		}
		if b == nil || b.BaseOffset() >= to {
			return nil
		}
		if b.LastOffset() < from || !b.HasProducerID() {
			continue
		}
		if _, err := l.replayBatch(&incoming{batch: b, base: b.BaseOffset(), last: b.LastOffset(), maxTS: b.MaxTimestamp()}); err != nil {
			return corrupt(s.path(l.Dir(), logSuffix), at, err)
		}
	}
}

// replayBatch applies a batch that is in the log already; it returns the transactions it ended. Under write.
func (l *Log) replayBatch(in *incoming) ([]producerstate.Completed, error) {
	if !in.batch.HasProducerID() {
		return nil, nil
	}
	pb, ok, err := producerBatch(in)
	if err != nil || !ok {
		return nil, err
	}
	var u producerstate.Update
	u.Begin(&l.producers)
	if err := u.Add(&pb, producerstate.OriginReplication, false); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return u.Apply(in.last+1, nil), nil
}

func sortedFloor(sorted []int64, v int64) int {
	i, found := slices.BinarySearch(sorted, v)
	if found {
		return i
	}
	return i - 1
}
