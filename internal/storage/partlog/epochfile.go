package partlog

import (
	"errors"
	"io/fs"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/epochs"
)

// When leader-epoch-checkpoint is written. A new leader's first entry goes to a fresh file at once, without fsync, so that
// making a thousand partitions costs no thousand fsyncs. Everything later waits in memory for the next flush, close or
// truncation, which write the file atomically. Nothing is lost by waiting: recovery assigns the epoch of every
// batch above the recovery point again, and the recovery point moves only after the file is durable; an epoch without batches
// matters to nobody after a restart, which begins another epoch.

// writeFirstEpoch makes the file's first entry visible; under write.
func (l *Log) writeFirstEpoch() error {
	l.mu.Lock()
	content := l.epochs.Append(nil)
	l.mu.Unlock()
	return l.writePlain(epochs.FileName, content)
}

// saveEpochs makes the file durable if its content changed; under sync.
func (l *Log) saveEpochs() error {
	l.mu.Lock()
	if !l.epochsDirty {
		l.mu.Unlock()
		return nil
	}
	content := l.epochs.Append(nil)
	l.epochsDirty = false
	l.mu.Unlock()
	err := vfs.WriteFileAtomic(l.fs, l.Dir()+"/"+epochs.FileName, content)
	if err != nil {
		l.mu.Lock()
		l.epochsDirty = true
		l.mu.Unlock()
	}
	return err
}

// loadEpochs reads the file. One that is damaged, or missing where batches are, is rebuilt from the batches.
func (l *Log) loadEpochs(listed bool) error {
	if !listed {
		return nil
	}
	path := l.Dir() + "/" + epochs.FileName
	content, err := vfs.ReadFile(l.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	cache, err := epochs.Parse(content)
	if err != nil {
		l.log().Warn("rebuilding damaged leader epoch file from the batches", "path", path, "err", err)
		cache = epochs.Cache{}
		l.epochsDirty = true
	}
	l.epochs = cache
	return nil
}

// rebuildEpochs assigns the epochs of all batches of the first n segments.
func (l *Log) rebuildEpochs(n int) error {
	l.env.Stats.EpochFilesRebuilt.Add(1)
	for _, s := range l.segments[:n] {
		if s.size == 0 {
			continue
		}
		f, err := l.openLog(s)
		if err != nil {
			return err
		}
		err = l.rebuildEpochsFrom(s, f)
		f.Release()
		if err != nil {
			return err
		}
	}
	l.epochsDirty = true
	return nil
}

func (l *Log) rebuildEpochsFrom(s *segment, f vfs.File) error {
	sc := newScanner(f, 0, s.size, false)
	defer sc.done()
	for {
		b, err := sc.next(false)
		if isDamage(err) {
			return nil // what is behind it cannot be read either
		}
		if err != nil || b == nil {
			return err
		}
		l.assignFromBatch(model.LeaderEpoch(b.LeaderEpoch()), b.BaseOffset())
	}
}

// assignFromBatch is what recovery does with a batch's epoch: only a newer one counts (D-67).
func (l *Log) assignFromBatch(epoch model.LeaderEpoch, offset int64) {
	if latest, _ := l.epochs.Latest(); epoch > latest.Epoch {
		if l.epochs.Assign(epoch, offset) {
			l.epochsDirty = true
		}
	}
}
