package partlog

import (
	"math"
	"os"
	"slices"
)

// maybeRoll begins a new segment if the batches about to be appended ask for one (D-56); under write.
func (l *Log) maybeRoll(in []incoming, bytes int, now int64) (bool, error) {
	s, c := l.active(), l.Config()
	first, last := in[0].base, in[len(in)-1].last
	maxTS := int64(-1)
	for i := range in {
		maxTS = max(maxTS, in[i].maxTS)
	}
	full := s.size > c.SegmentBytes-int64(bytes) || s.size+int64(bytes) > math.MaxInt32 ||
		s.offsets.entries(offsetEntry) >= c.SegmentIndexBytes/offsetEntry ||
		s.times.entries(timeEntry) >= c.SegmentIndexBytes/timeEntry-1
	overflow := last-s.base > math.MaxInt32
	aged := false
	if s.size > 0 && !full && !overflow {
		waited, err := l.waited(s, maxTS, now)
		if err != nil {
			return false, err
		}
		aged = waited > c.rollMs()-s.jitterMs
	}
	if !overflow && (s.size == 0 || !full && !aged) {
		return false, nil
	}
	return true, l.roll(first, now)
}

// waited is D-57.
func (l *Log) waited(s *segment, maxTS, now int64) (int64, error) {
	first, err := l.firstBatchTimestamp(s)
	if err != nil {
		return 0, err
	}
	if first >= 0 {
		return maxTS - first, nil
	}
	return now - s.created, nil
}

// roll closes the active segment and begins a new one at base (D-58); under write.
//
// What is left for the background is in Env.Rolled. A crash in between leaves the old segment active, or an empty new one.
func (l *Log) roll(base, now int64) error {
	s := l.active()
	if err := l.mend(s); err != nil {
		return err
	}
	if err := l.finish(s); err != nil {
		return err
	}
	if l.env.SyncRolls {
		if err := l.syncSegment(s); err != nil {
			return err
		}
	}
	if err := l.takeSnapshot(base); err != nil {
		return err
	}
	next, err := l.makeSegment(base, now)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.segments = append(slices.Clone(l.segments), next)
	l.forgetRecent()
	s.offsets.tail, s.times.tail = nil, nil
	l.mu.Unlock()
	l.log().Debug("rolled", "offset", base)
	return nil
}

// syncSegment makes a segment's records and its name durable; under write. A flush under way may have taken note of either and
// not be done, so neither is skipped.
func (l *Log) syncSegment(s *segment) error {
	f, err := l.open(s, &s.log, logSuffix)
	if err != nil {
		return err
	}
	err = f.Sync()
	f.Release()
	if err != nil {
		l.failed = err // nobody knows what is on disk
		return err
	}
	return l.fs.SyncDir(l.Dir())
}

// finish writes the final time entry and both indexes of a segment that will not grow any more; under write.
func (l *Log) finish(s *segment) error {
	l.mu.Lock()
	s.addTime()
	l.mu.Unlock()
	return l.makeIndexes(s)
}

// makeSegment creates the .log of a new segment; under write.
func (l *Log) makeSegment(base, now int64) (*segment, error) {
	s := newSegment(base, now, l.env.jitter(l.Config()))
	f, err := l.env.Files.open(&s.log, l.fs, s.path(l.Dir(), logSuffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	f.Release()
	l.dirDirty = true
	return s, nil
}

// forgetRecent empties the places remembered of the active segment; under mu.
func (l *Log) forgetRecent() {
	for i := range l.recent {
		l.recent[i] = end{0, -1}
	}
}

// Roll begins a new segment at the log end, unless the active one is empty (forced rolls of tools and tests).
func (l *Log) Roll(now int64) error {
	rolled, err := func() (bool, error) {
		l.write.Lock()
		defer l.write.Unlock()
		if err := l.usable(); err != nil {
			return false, err
		}
		if l.active().size == 0 {
			return false, nil
		}
		return true, l.roll(l.end, now)
	}()
	if err == nil && rolled && l.env.Rolled != nil {
		l.env.Rolled(l, l.ActiveSegmentBase())
	}
	return err
}
