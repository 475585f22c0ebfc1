package logdir

import (
	"errors"
	"path/filepath"
	"sync"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
)

// savedCheckpoints serialises the writers of one directory's checkpoints and remembers what the
// high watermark file holds, so that an idle directory is not written every five seconds.
type savedCheckpoints struct {
	mu  sync.Mutex
	hws uint64 // fingerprint of the last high watermark checkpoint
	any bool   // there was one
}

// readCheckpoints reads the four files at Load. A damaged one takes the directory offline: without it deleted
// records would come back, or unchecked ones be served (D-220).
func (m *Manager) readCheckpoints(d *Directory) bool {
	for _, f := range []struct {
		name string
		into *Checkpoint
	}{{RecoveryPointFile, &d.recovery}, {LogStartOffsetFile, &d.logStart}, {HighWatermarkFile, &d.highWatermark}, {CleanerOffsetFile, &d.cleaner}} {
		path := filepath.Join(d.path, f.name)
		text, err := readBounded(d.fs, path, maxCheckpointBytes)
		if isNotExist(err) {
			*f.into = Checkpoint{}
			continue
		}
		if err == nil {
			*f.into, err = ParseCheckpoint(text)
			if err == nil {
				continue
			}
		} else if !errors.Is(err, errTooLarge) {
			return false
		}
		d.fs.TakeOffline(vfs.OpRead, path, &Damage{Path: path, What: err, Next: checkpointAdvice[f.name]})
		return false
	}
	return true
}

// checkpointAdvice is the next step for each damaged checkpoint.
var checkpointAdvice = map[string]string{
	RecoveryPointFile:  "Delete the file and restart: every log of the directory is then checked from its beginning.",
	LogStartOffsetFile: "Delete the file and restart: records deleted by DeleteRecords above the first segment's base then come back.",
	HighWatermarkFile:  "Delete the file and restart: high watermarks then start at the log start and rise as replicas report.",
	CleanerOffsetFile:  "Delete the file and restart: compacted topics are then cleaned from their beginning.",
}

// CheckpointHighWatermarks writes replication-offset-checkpoint of every online directory whose
// high watermarks changed since the last time. The scheduler does so every
// replica.high.watermark.checkpoint.interval.ms.
func (m *Manager) CheckpointHighWatermarks() {
	m.eachDir(func(_ int, d *Directory) { m.checkpointHighWatermarks(d) })
}

// CheckpointRecoveryPoints writes recovery-point-offset-checkpoint of every online directory.
// Whoever truncates logs calls it afterwards and before anything is appended: a recovery point above
// the cut would vouch for bytes written later.
func (m *Manager) CheckpointRecoveryPoints() {
	m.eachDir(func(_ int, d *Directory) { m.checkpointRecoveryPoints(d) })
}

// CheckpointLogStartOffsets writes log-start-offset-checkpoint of every online directory.
func (m *Manager) CheckpointLogStartOffsets() {
	m.eachDir(func(_ int, d *Directory) { m.checkpointLogStarts(d) })
}

func (m *Manager) checkpointRecoveryPoints(d *Directory) error {
	d.saved.mu.Lock()
	defer d.saved.mu.Unlock()
	var entries []checkpointEntry
	for _, r := range m.currentIn(d) {
		entries = append(entries, checkpointEntry{r.Name(), r.Log.RecoveryPoint()})
	}
	return vfs.WriteFileAtomic(d.fs, filepath.Join(d.path, RecoveryPointFile), appendCheckpoint(nil, entries))
}

// checkpointLogStarts lists the logs whose start lies above the base of their first segment (D-42).
func (m *Manager) checkpointLogStarts(d *Directory) error {
	d.saved.mu.Lock()
	defer d.saved.mu.Unlock()
	var entries []checkpointEntry
	for _, r := range m.currentIn(d) {
		start := r.Log.LogStartOffset()
		if start > firstBase(r) {
			entries = append(entries, checkpointEntry{r.Name(), start})
		}
	}
	return vfs.WriteFileAtomic(d.fs, filepath.Join(d.path, LogStartOffsetFile), appendCheckpoint(nil, entries))
}

// checkpointHighWatermarks includes future logs under the plain name, in their own directory (J-142).
func (m *Manager) checkpointHighWatermarks(d *Directory) error {
	d.saved.mu.Lock()
	defer d.saved.mu.Unlock()
	var entries []checkpointEntry
	var print uint64
	add := func(r *Replica) {
		hw := r.Log.HighWatermark()
		entries = append(entries, checkpointEntry{r.Name(), hw})
		print += fingerprint(r.Partition, hw) // a sum, so that the order of the map does not matter
	}
	m.mu.RLock()
	for _, r := range m.current {
		if r.Dir == d {
			add(r)
		}
	}
	for _, r := range m.future {
		if r.Dir == d {
			add(r)
		}
	}
	m.mu.RUnlock()
	if len(entries) == 0 && !d.saved.any || d.saved.any && d.saved.hws == print {
		return nil
	}
	err := vfs.WriteFileAtomic(d.fs, filepath.Join(d.path, HighWatermarkFile), appendCheckpoint(nil, entries))
	if err == nil {
		d.saved.hws, d.saved.any = print, true
	}
	return err
}

// fingerprint mixes a partition and an offset (FNV-1a).
func fingerprint(tp model.TopicIDPartition, offset int64) uint64 {
	h := uint64(14695981039346656037)
	mix := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for _, b := range tp.Topic {
		mix(b)
	}
	for i := range 4 {
		mix(byte(tp.Partition >> (8 * i)))
	}
	for i := range 8 {
		mix(byte(offset >> (8 * i)))
	}
	return h
}

// currentIn lists the current replicas of one directory.
func (m *Manager) currentIn(d *Directory) []*Replica {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]*Replica, 0, d.logs)
	for _, r := range m.current {
		if r.Dir == d {
			out = append(out, r)
		}
	}
	return out
}

// firstBase is the base offset of a log's first segment.
func firstBase(r *Replica) int64 {
	if r.Log.LogStartOffset() == 0 {
		return 0
	}
	segments, err := r.Log.Segments()
	if err != nil || len(segments) == 0 {
		return 0
	}
	return segments[0].Base
}

// forgetCleaned drops deleted partitions from the cleaner's checkpoint.
func (m *Manager) forgetCleaned(d *Directory, gone []model.TopicPartition) error {
	d.saved.mu.Lock()
	defer d.saved.mu.Unlock()
	before := len(d.cleaner)
	for _, tp := range gone {
		delete(d.cleaner, tp)
	}
	if len(d.cleaner) == before {
		return nil
	}
	return vfs.WriteFileAtomic(d.fs, filepath.Join(d.path, CleanerOffsetFile), d.cleaner.Append(nil))
}
