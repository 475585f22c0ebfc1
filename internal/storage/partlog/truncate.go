package partlog

import (
	"slices"
)

// TruncateTo drops everything from offset on; it reports whether anything was dropped. An offset inside a batch drops
// the whole batch, and the log then ends where it began. High watermark and recovery
// point go down with the log end. At or below the first segment's base it is TruncateFullyAndStartAt.
//
// When it returns true the caller must write the directory's recovery point checkpoint before the log end may pass the
// old recovery point again.
func (l *Log) TruncateTo(offset int64, now int64) (dropped bool, err error) {
	err = l.change(func() (files []string, err error) {
		dropped, files, err = l.truncate(offset, now)
		return files, err
	})
	return dropped, err
}

func (l *Log) truncate(offset int64, now int64) (dropped bool, files []string, err error) {
	if offset >= l.end {
		l.mu.Lock()
		l.epochs.TruncateFromEnd(offset)
		l.mu.Unlock()
		return false, nil, nil
	}
	if offset <= l.segments[0].base {
		files, err = l.startFresh(offset, offset, now)
		return true, files, err
	}
	l.log().Info("truncating", "offset", offset, "logEnd", l.end)
	at := floor(l.segments, offset)
	doomed := l.segments[at+1:]
	s := l.segments[at]
	pos, base, err := l.truncatePosition(s, offset)
	if err != nil {
		return false, nil, err
	}
	offset = min(offset, base)

	// Nobody reads behind offset any more before files change.
	l.mu.Lock()
	l.generation++
	l.segments = slices.Clone(l.segments[:at+1])
	l.end = offset
	l.hw = min(l.hw, offset)
	l.logStart = min(l.logStart, offset)
	l.recoveryPoint = min(l.recoveryPoint, offset)
	l.forgetRecent()
	if pos < s.size {
		s.size = pos
	}
	l.epochs.TruncateFromEnd(offset)
	l.mu.Unlock()
	if err := l.cut(s, offset, now); err != nil {
		l.failed = err
		return true, nil, err
	}
	if files, err = l.discard(doomed, true); err != nil {
		l.failed = err
		return true, files, err
	}
	for _, o := range slices.Clone(l.snapshots) {
		if o > offset {
			if err := l.removeSnapshot(o); err != nil {
				return true, files, err
			}
		}
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil { // nothing of the old history may come back
		return true, files, err
	}
	if err := l.saveEpochs(); err != nil {
		return true, files, err
	}
	return true, files, l.reloadProducers(now)
}

// truncatePosition is where the batch that holds offset begins in s, and its base offset; under write.
func (l *Log) truncatePosition(s *segment, offset int64) (pos, base int64, err error) {
	f, err := l.openLog(s)
	if err != nil {
		return 0, 0, err
	}
	defer f.Release()
	l.mu.Lock()
	v := l.seek(s, offset)
	l.mu.Unlock()
	p, ok, err := l.find(v, f, offset)
	if err != nil || !ok {
		return v.size, offset, err
	}
	return p.pos, p.base, nil
}

// cut makes s, whose size is already the new one, the active segment that ends at offset; under write.
func (l *Log) cut(s *segment, offset, now int64) error {
	f, err := l.openLog(s)
	if err != nil {
		return err
	}
	defer f.Release()
	if err := f.Truncate(s.size); err != nil {
		return err
	}
	// The recovery point may become exactly this offset: what was cut must not come back below it.
	if err := f.Sync(); err != nil {
		return err
	}
	s.torn = false
	if s.size == 0 {
		s.created, s.firstTimestamp = now, unknownTime
	}
	rel := offset - s.base
	if err := l.cutIndex(s, &s.offsets, indexSuffix, offsetEntry, func(e []byte) bool { return relative(e) < rel }); err != nil {
		return err
	}
	if err := l.cutIndex(s, &s.times, timeSuffix, timeEntry, func(e []byte) bool { return timeRelative(e) < rel }); err != nil {
		return err
	}
	if err := l.cutTxns(s, offset); err != nil {
		return err
	}
	return l.rereadTail(s)
}

// cutIndex keeps the entries that satisfy keep.
func (l *Log) cutIndex(s *segment, x *index, suffix string, size int, keep func(e []byte) bool) error {
	disk, tail := x.disk, x.tail[:x.tailSearch(size, keep)*size]
	if x.made && x.disk > 0 {
		f, err := l.open(s, &x.h, suffix)
		if err != nil {
			return err
		}
		defer f.Release()
		n, err := searchFile(f, int(x.disk), size, keep)
		if err == errShortIndex {
			n, err, tail = 0, nil, nil
		}
		if err != nil {
			return err
		}
		if int32(n) < disk {
			disk = int32(n)
			if err := f.Truncate(int64(n) * int64(size)); err != nil {
				return err
			}
			s.unsynced |= dirtyIndexes
		}
	}
	l.mu.Lock()
	x.disk, x.tail = disk, tail
	l.mu.Unlock()
	return nil
}

// cutTxns drops the aborted transactions whose marker is at or after offset.
func (l *Log) cutTxns(s *segment, offset int64) error {
	if s.txns == 0 {
		return nil
	}
	f, err := l.open(s, &s.txn, txnSuffix)
	if err != nil {
		return err
	}
	defer f.Release()
	entries, err := readTxns(f, s.txns)
	if err != nil {
		return err
	}
	n := int32(len(entries))
	for i, t := range entries {
		if t.LastOffset >= offset {
			n = int32(i)
			break
		}
	}
	if n == s.txns {
		return nil
	}
	l.mu.Lock()
	s.txns = n
	l.mu.Unlock()
	s.unsynced |= dirtyTxn
	return f.Truncate(int64(n) * txnEntry)
}

// rereadTail finds the greatest timestamp and newest entries of a segment that was cut.
func (l *Log) rereadTail(s *segment) error {
	max, lastIndexed, lastTime := stamp{-1, s.base}, s.base, int64(-1)
	last := func(x *index, suffix string, e []byte) (bool, error) {
		if n := len(x.tail); n > 0 {
			copy(e, x.tail[n-len(e):])
			return true, nil
		}
		if x.disk == 0 {
			return false, nil
		}
		f, err := l.open(s, &x.h, suffix)
		if err != nil {
			return false, err
		}
		defer f.Release()
		return true, readEntries(f, e, int(x.disk)-1, len(e))
	}
	var t [timeEntry]byte
	if ok, err := last(&s.times, timeSuffix, t[:]); err != nil {
		return err
	} else if ok {
		max, lastTime = stamp{timeOf(t[:]), s.base + timeRelative(t[:])}, timeOf(t[:])
	}
	var o [offsetEntry]byte
	start := int64(0)
	if ok, err := last(&s.offsets, indexSuffix, o[:]); err != nil {
		return err
	} else if ok {
		lastIndexed, start = s.base+relative(o[:]), position(o[:])
	}
	if start > s.size {
		start = 0
	}
	f, err := l.openLog(s)
	if err != nil {
		return err
	}
	defer f.Release()
	sc := newScanner(f, start, s.size, false)
	defer sc.done()
	for {
		at := sc.pos
		b, err := sc.next(false)
		if err != nil {
			return corrupt(s.path(l.Dir(), logSuffix), at, err)
		}
		if b == nil {
			break
		}
		if b.MaxTimestamp() > max.Timestamp {
			max = stamp{b.MaxTimestamp(), b.LastOffset()}
		}
	}
	l.mu.Lock()
	s.max, s.lastIndexed, s.lastTime, s.bytesSinceIndex = max, lastIndexed, lastTime, s.size-start
	l.mu.Unlock()
	return nil
}

// reloadProducers rebuilds the producer state after the log end went down (D-95); under write.
func (l *Log) reloadProducers(now int64) error {
	// Without producers before there were none at any earlier offset either: nothing to replay.
	empty := l.producers.Len() == 0
	return l.loadProducers(l.end, now, empty)
}

// TruncateFullyAndStartAt drops everything and begins again, empty, at offset (follower behind the leader's log
// start, snapshot of the metadata log). The note at TruncateTo about the recovery point holds here too.
func (l *Log) TruncateFullyAndStartAt(offset int64, now int64) error {
	return l.startAt(offset, offset, now)
}

func (l *Log) startAt(offset, logStart, now int64) error {
	return l.change(func() ([]string, error) { return l.startFresh(offset, logStart, now) })
}

// startFresh replaces all segments by an empty one at offset; under sync and write.
func (l *Log) startFresh(offset, logStart, now int64) ([]string, error) {
	l.log().Info("starting over", "offset", offset, "logStart", logStart, "logEnd", l.end)
	doomed := l.segments
	// The old files go first, the one the new segment takes the name of among them. A crash in between leaves a
	// prefix, or nothing: then Open begins at the checkpointed log start.
	l.names.Lock()
	files, err := l.doom(doomed, true)
	l.names.Unlock()
	if err == nil {
		for _, o := range slices.Clone(l.snapshots) {
			if err = l.removeSnapshot(o); err != nil {
				break
			}
		}
	}
	var s *segment
	if err == nil {
		s, err = l.makeSegment(offset, now)
	}
	if err != nil {
		l.failed = err
		return files, err
	}
	l.mu.Lock()
	l.generation++
	l.segments = []*segment{s}
	l.end, l.logStart, l.hw, l.recoveryPoint = offset, logStart, max(logStart, min(l.hw, offset)), offset
	if logStart > offset {
		l.hw = offset
	}
	l.epochs.Clear()
	l.producers.Reset(offset)
	l.forgetRecent()
	l.mu.Unlock()
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		return files, err
	}
	return files, l.saveEpochs()
}
