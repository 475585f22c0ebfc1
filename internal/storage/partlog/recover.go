package partlog

import (
	"math"
	"slices"

	"samsa/internal/base/model"
	"samsa/internal/wire/record"
)

// recover is D-67: every segment from the one that holds the recovery point on is read whole.
func (ld *loader) recover() error {
	l := ld.Log
	if len(l.segments) == 0 {
		return nil
	}
	first := max(0, floor(l.segments, ld.o.RecoveryPoint))
	// The file may be older than the batches to be scanned, which tell their epochs anew.
	l.epochs.TruncateFromEnd(l.segments[first].base)
	if err := ld.loadBase(l.segments[first].base); err != nil {
		return err
	}
	if l.epochs.Len() == 0 && first > 0 && !ld.hasEpochs {
		if err := l.rebuildEpochs(first); err != nil {
			return err
		}
	}
	for i := first; i < len(l.segments); i++ {
		s := l.segments[i]
		before := s.size
		next, err := ld.recoverSegment(s, false)
		if err != nil {
			return err
		}
		ld.info.SegmentsRecovered++
		l.env.Stats.SegmentsRecovered.Add(1)
		cut := before - s.size
		// A hole between segments is the tail of the first one lost with the power, as nothing is synced at a roll. But in
		// what compaction has been over, holes are normal.
		gap := i+1 < len(l.segments) && l.segments[i+1].base != next && !l.Config().Compact && !ld.gappy
		if cut > 0 {
			ld.log().Warn("cut the log at the last whole batch", "segment", s.base, "offset", next, "bytes", cut)
		}
		if (cut > 0 || gap) && i+1 < len(l.segments) {
			ld.log().Warn("dropping segments behind the cut", "segments", len(l.segments)-i-1, "logEnd", next, "nextBase", l.segments[i+1].base)
			return ld.dropSegments(i + 1)
		}
	}
	return nil
}

// loadBase prepares producer state for a scan that begins at a segment's base.
func (ld *loader) loadBase(base int64) error {
	return ld.loadProducers(base, ld.o.Now, false)
}

// dropSegments deletes the segments from index i on, newest first.
func (ld *loader) dropSegments(i int) error {
	l := ld.Log
	for j := len(l.segments) - 1; j >= i; j-- {
		s := l.segments[j]
		l.closeFiles(s)
		ld.info.SegmentsDropped++
		ld.info.BytesTruncated += s.size
		l.env.Stats.BytesTruncated.Add(s.size)
		// The indexes go first: an orphaned index is removed at the next load, a segment without one is rebuilt.
		for k := len(segmentSuffixes) - 1; k >= 0; k-- {
			name := fileName(s.base, segmentSuffixes[k])
			if _, there := ld.files[name]; !there && segmentSuffixes[k] != logSuffix {
				continue
			}
			if err := ld.remove(name); err != nil {
				return err
			}
		}
		l.segments = l.segments[:j]
	}
	return l.fs.SyncDir(l.Dir()) // they must not come back beside what is written next
}

// recoverSegment reads s whole, cuts it at the first batch that is damaged or out of place, and writes its indexes
// again. Producer state must reach to the segment's base, and reaches to its end afterwards. It returns the offset
// after the last batch. With trust nothing is cut and checksums are not looked at: only the indexes are wanted.
func (ld *loader) recoverSegment(s *segment, trust bool) (next int64, err error) {
	l := ld.Log
	next = s.base
	if err := ld.resetIndexes(s); err != nil {
		return next, err
	}
	if s.size == 0 {
		return next, nil
	}
	f, err := l.openLog(s)
	if err != nil {
		return next, err
	}
	defer f.Release()
	sc := newScanner(f, 0, s.size, true)
	defer sc.done()
	interval := int64(l.Config().IndexIntervalBytes)
	good := int64(0)
	for {
		b, err := sc.next(true)
		if err != nil && !isDamage(err) {
			return next, err
		}
		if b == nil || !trust && !b.ValidCRC() || !fits(s, b, next) {
			break
		}
		in := incoming{batch: b, base: b.BaseOffset(), last: b.LastOffset(), maxTS: b.MaxTimestamp()}
		completed, err := l.replayBatch(&in)
		if err != nil {
			break // a marker that cannot be read
		}
		if s.txns, err = l.writeTxns(s, completed); err != nil {
			return next, err
		}
		if in.maxTS > s.max.Timestamp {
			s.max = stamp{in.maxTS, in.last}
		}
		if s.bytesSinceIndex > interval {
			s.addOffset(in.last, good)
			s.addTime()
			s.bytesSinceIndex = 0
		}
		if b.Magic() >= 2 {
			l.assignFromBatch(model.LeaderEpoch(b.LeaderEpoch()), in.base)
		}
		if b.Magic() >= 2 && (in.base != next || int64(b.Count()) != in.last-in.base+1) {
			ld.gappy = true
		}
		next = in.last + 1
		good += int64(len(b))
		s.bytesSinceIndex += int64(len(b))
		if s.offsets.tailFull(offsetEntry) || s.times.tailFull(timeEntry) {
			if err := l.makeIndexes(s); err != nil {
				return next, err
			}
		}
	}
	if good < s.size && !trust {
		ld.info.BytesTruncated += s.size - good
		l.env.Stats.BytesTruncated.Add(s.size - good)
		if err := f.Truncate(good); err != nil {
			return next, err
		}
		// The recovery point may be exactly here: the segment must never be longer again after another crash.
		if err := f.Sync(); err != nil {
			return next, err
		}
		s.size = good
		s.unsynced |= dirtyLog
	}
	l.producers.SetEnd(next)
	s.addTime()
	if !trust {
		// The last process may not have synced what it wrote.
		s.unsynced |= dirtyLog | dirtyIndexes
		if s.txnMade {
			s.unsynced |= dirtyTxn
		}
		l.dirDirty = true
	}
	if !trust && s == l.active() {
		return next, nil // its index tails stay in memory until the next roll or close, as of any active segment
	}
	return next, l.makeIndexesIf(s)
}

// fits says whether the batch may stand in the segment behind next.
func fits(s *segment, b record.Batch, next int64) bool {
	last := b.LastOffset()
	return last >= next && last-s.base <= math.MaxInt32 && (b.Magic() < 2 || b.BaseOffset() >= next)
}

// makeIndexesIf writes the indexes of a segment that has something to say in them.
func (l *Log) makeIndexesIf(s *segment) error {
	if s.size == 0 && !s.offsets.made && !s.times.made {
		return nil
	}
	return l.makeIndexes(s)
}

// resetIndexes empties the three indexes of a segment, on disk too.
func (ld *loader) resetIndexes(s *segment) error {
	for _, x := range s.indexes() {
		if err := ld.empty(s, &x.h, x.suffix); err != nil {
			return err
		}
		x.disk, x.tail = 0, nil
	}
	s.txns, s.max, s.lastTime, s.lastIndexed, s.bytesSinceIndex = 0, stamp{-1, s.base}, -1, s.base, 0
	return ld.empty(s, &s.txn, txnSuffix)
}

// empty truncates a file that is listed and not empty yet.
func (ld *loader) empty(s *segment, h *handle, suffix string) error {
	name := fileName(s.base, suffix)
	if ld.files[name] == 0 {
		return nil
	}
	f, err := ld.open(s, h, suffix)
	if err != nil {
		return err
	}
	defer f.Release()
	ld.files[name] = 0
	return f.Truncate(0)
}

// repairIndexes writes the offset and time indexes that readers found damaged again; under sync.
func (l *Log) repairIndexes() error {
	l.mu.Lock()
	some := l.suspects
	l.suspects = false
	l.mu.Unlock()
	if !some {
		return nil
	}
	l.write.Lock()
	defer l.write.Unlock()
	for _, s := range slices.Clone(l.segments) {
		l.mu.Lock()
		bad := s.suspect
		l.mu.Unlock()
		if !bad || l.closed.Load() {
			continue
		}
		l.env.Stats.IndexesRebuilt.Add(1)
		if err := l.reindex(s); err != nil {
			return err
		}
		l.mu.Lock()
		s.suspect = false
		l.mu.Unlock()
	}
	return nil
}

// reindex rebuilds the offset and time index of a segment from its headers; under write.
func (l *Log) reindex(s *segment) error {
	txns, max := s.txns, s.max
	for _, x := range s.indexes() {
		if !x.made {
			continue
		}
		f, err := l.open(s, &x.h, x.suffix)
		if err != nil {
			return err
		}
		err = f.Truncate(0)
		f.Release()
		if err != nil {
			return err
		}
	}
	l.mu.Lock()
	s.offsets.disk, s.offsets.tail, s.times.disk, s.times.tail = 0, nil, 0, nil
	s.max, s.lastTime, s.lastIndexed, s.bytesSinceIndex = stamp{-1, s.base}, -1, s.base, 0
	l.mu.Unlock()
	f, err := l.openLog(s)
	if err != nil {
		return err
	}
	defer f.Release()
	sc := newScanner(f, 0, s.size, false)
	defer sc.done()
	interval := int64(l.Config().IndexIntervalBytes)
	for {
		at := sc.pos
		b, err := sc.next(false)
		if err != nil && !isDamage(err) {
			return err
		}
		if b == nil {
			break
		}
		l.mu.Lock()
		if b.MaxTimestamp() > s.max.Timestamp {
			s.max = stamp{b.MaxTimestamp(), b.LastOffset()}
		}
		if s.bytesSinceIndex > interval {
			s.addOffset(b.LastOffset(), at)
			s.addTime()
			s.bytesSinceIndex = 0
		}
		s.bytesSinceIndex += sc.pos - at
		full := s.offsets.tailFull(offsetEntry) || s.times.tailFull(timeEntry)
		l.mu.Unlock()
		if full {
			if err := l.makeIndexes(s); err != nil {
				return err
			}
		}
	}
	if max.Timestamp > s.max.Timestamp {
		l.mu.Lock()
		s.max = max
		l.mu.Unlock()
	}
	s.txns = txns
	if s == l.active() {
		return nil
	}
	return l.finish(s)
}
