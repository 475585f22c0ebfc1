package partlog

import (
	"slices"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/epochs"
)

// When leader-epoch-checkpoint is written: by flush, close and truncation, and only if entries that begin below the log end
// differ from the file's. So neither making a thousand partitions nor electing leaders for them writes a thousand
// files. Nothing is lost by waiting: recovery assigns the epoch of every batch above the recovery point again, and the
// recovery point moves only after the file is durable. An epoch that has written nothing matters to nobody after a restart,
// which begins another: every load drops entries at or above the log end (D-70).

// saveEpochs makes the file durable if it has to change; under sync.
func (l *Log) saveEpochs() error {
	l.mu.Lock()
	entries := l.epochs.Entries()
	if sameEpochs(entries, l.savedEpochs, l.end) {
		l.mu.Unlock()
		return nil
	}
	content := l.epochs.Append(nil)
	l.mu.Unlock()
	if err := vfs.WriteFileAtomic(l.fs, l.Dir()+"/"+epochs.FileName, content); err != nil {
		return err
	}
	l.mu.Lock()
	l.savedEpochs = entries
	l.mu.Unlock()
	return nil
}

// sameEpochs compares what begins below end.
func sameEpochs(a, b []epochs.Entry, end int64) bool {
	below := func(list []epochs.Entry) []epochs.Entry {
		for len(list) > 0 && list[len(list)-1].Start >= end {
			list = list[:len(list)-1]
		}
		return list
	}
	return slices.Equal(below(a), below(b))
}

// loadEpochs reads the file. One that is damaged is as good as missing: where there are batches, it is rebuilt from them.
func (ld *loader) loadEpochs() error {
	if !ld.hasEpochs {
		return nil
	}
	l := ld.Log
	path := l.Dir() + "/" + epochs.FileName
	content, err := vfs.ReadFile(l.fs, path)
	if err != nil {
		return err
	}
	cache, err := epochs.Parse(content)
	if err != nil {
		l.log().Warn("rebuilding damaged leader epoch file from the batches", "path", path, "err", err)
		ld.hasEpochs = false
		return nil
	}
	ld.hasEpochs = len(content) > 0
	l.epochs, l.savedEpochs = cache, cache.Entries()
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
		l.epochs.Assign(epoch, offset)
	}
}
