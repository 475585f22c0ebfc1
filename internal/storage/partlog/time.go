package partlog

import (
	"io"
	"math"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/wire/record"
)

// TimestampOffset is a record found by time.
type TimestampOffset struct {
	Timestamp int64
	Offset    int64
	Epoch     model.LeaderEpoch // of its batch
}

func isEOF(err error) bool { return err == io.EOF }

// wholeBatches cuts a partial batch off the end of buf; next is the offset after the last batch, or as given.
func wholeBatches(buf []byte, next int64) ([]byte, int64, error) {
	rest := buf
	for {
		b, more, err := record.Next(rest)
		if err != nil {
			if len(rest) < len(buf) {
				break // what came before is good
			}
			return buf[:0], next, err
		}
		if b == nil {
			break
		}
		next, rest = b.NextOffset(), more
	}
	return buf[:len(buf)-len(rest)], next, nil
}

// timeView is what a search by time took from a segment under mu.
type timeView struct {
	s       *segment
	max     stamp
	size    int64
	entries int
	hint    int64 // an offset to begin at, from the tail
	hinted  bool
	suspect bool
}

func (l *Log) timeViews(ts int64) (views []timeView, start int64, generation int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		v := timeView{s: s, max: s.max, size: s.size, entries: int(s.times.disk), suspect: s.suspect}
		if n := s.times.tailSearch(timeEntry, func(e []byte) bool { return timeOf(e) <= ts }); n > 0 {
			v.hint, v.hinted = s.base+timeRelative(s.times.tail[(n-1)*timeEntry:]), true
		}
		views = append(views, v)
	}
	return views, l.logStart, l.generation
}

// OffsetForTimestamp finds the first record at or after the log start whose timestamp is at least ts (D-61).
func (l *Log) OffsetForTimestamp(ts int64) (TimestampOffset, bool, error) {
	for try := 0; ; try++ {
		found, ok, again, err := l.offsetForTimestamp(ts)
		if !again || try == maxRetries {
			return found, ok, err
		}
	}
}

func (l *Log) offsetForTimestamp(ts int64) (found TimestampOffset, ok, again bool, err error) {
	views, start, generation := l.timeViews(ts)
	for _, v := range views {
		largest := v.max.Timestamp
		if largest < 0 {
			if v.size == 0 {
				continue
			}
			if largest, err = l.modified(v.s); err != nil {
				return found, false, err == errGone, err
			}
		}
		if largest < ts {
			continue
		}
		found, ok, err = l.searchTime(v, ts, start)
		if err != nil || ok {
			return found, ok, err == errGone || l.changed(generation), err
		}
	}
	return found, false, l.changed(generation), nil
}

// searchTime looks in one segment.
func (l *Log) searchTime(v timeView, ts, start int64) (found TimestampOffset, ok bool, err error) {
	from := start
	if v.hinted {
		from = max(from, v.hint)
	} else if v.entries > 0 && !v.suspect {
		at, err := l.timeLookup(v, ts)
		if err != nil {
			return found, false, err
		}
		from = max(from, at)
	}
	f, err := l.openLog(v.s)
	if err != nil {
		return found, false, err
	}
	defer f.Release()
	l.mu.Lock()
	at := l.seek(v.s, from)
	l.mu.Unlock()
	at.size = v.size
	p, ok, err := l.find(at, f, from)
	if err != nil || !ok {
		return found, false, err
	}
	return l.scanTime(v, f, p.pos, func(b record.Batch, r *record.Record) bool { return r.Timestamp >= ts && r.Offset >= start },
		func(b record.Batch) bool { return b.MaxTimestamp() >= ts })
}

// timeLookup is the offset of the greatest time index entry at or below ts, or the segment's base.
func (l *Log) timeLookup(v timeView, ts int64) (int64, error) {
	f, err := l.open(v.s, &v.s.times.h, timeSuffix)
	if err != nil {
		return 0, err
	}
	defer f.Release()
	n, err := searchFile(f, v.entries, timeEntry, func(e []byte) bool { return timeOf(e) <= ts })
	if err == errShortIndex {
		l.suspectIndex(v.s)
		return v.s.base, nil
	}
	if err != nil || n == 0 {
		return v.s.base, err
	}
	var e [timeEntry]byte
	if err := readEntries(f, e[:], n-1, timeEntry); err != nil {
		return 0, err
	}
	return v.s.base + timeRelative(e[:]), nil
}

// scanTime reads batches from pos on that match, and returns the first record in them that does.
func (l *Log) scanTime(v timeView, f vfs.File, pos int64, match func(record.Batch, *record.Record) bool, worth func(record.Batch) bool) (found TimestampOffset, ok bool, err error) {
	sc := newScanner(f, pos, v.size, false)
	defer sc.done()
	for {
		at := sc.pos
		b, err := sc.next(false)
		if err == nil && b != nil && worth(b) {
			sc.pos = at
			b, err = sc.next(true)
			if err == nil && b != nil {
				for r, rerr := range record.Records(b) {
					if rerr != nil {
						return found, false, corrupt(v.s.path(l.Dir(), logSuffix), at, rerr)
					}
					if match(b, r) {
						return TimestampOffset{r.Timestamp, r.Offset, model.LeaderEpoch(b.LeaderEpoch())}, true, nil
					}
				}
			}
		}
		if err != nil {
			return found, false, corrupt(v.s.path(l.Dir(), logSuffix), at, err)
		}
		if b == nil {
			return found, false, nil
		}
	}
}

// MaxTimestamp finds the first record with the greatest timestamp of the log (ListOffsets -3).
func (l *Log) MaxTimestamp() (TimestampOffset, bool, error) {
	for try := 0; ; try++ {
		found, ok, again, err := l.maxTimestamp()
		if !again || try == maxRetries {
			return found, ok, err
		}
	}
}

func (l *Log) maxTimestamp() (found TimestampOffset, ok, again bool, err error) {
	views, _, generation := l.timeViews(math.MinInt64)
	best := -1
	for i, v := range views {
		if v.max.Timestamp >= 0 && (best < 0 || v.max.Timestamp > views[best].max.Timestamp) {
			best = i
		}
	}
	if best < 0 {
		return found, false, false, nil
	}
	v := views[best]
	f, err := l.openLog(v.s)
	if err != nil {
		return found, false, err == errGone, err
	}
	defer f.Release()
	l.mu.Lock()
	at := l.seek(v.s, v.max.Offset)
	l.mu.Unlock()
	at.size = v.size
	p, ok, err := l.find(at, f, v.max.Offset)
	if err == nil && ok {
		found, ok, err = l.scanTime(v, f, p.pos, func(b record.Batch, r *record.Record) bool { return r.Timestamp == v.max.Timestamp },
			func(b record.Batch) bool { return b.MaxTimestamp() == v.max.Timestamp })
	}
	return found, ok, err == errGone || l.changed(generation), err
}
