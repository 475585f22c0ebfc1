package partlog

import (
	"math"
	"os"

	"samsa/internal/base/kerr"
	"samsa/internal/base/vfs"
	"samsa/internal/wire/record"
)

// stamp is a greatest timestamp and the last offset of the batch that has it; Timestamp -1 is none.
type stamp struct {
	Timestamp int64
	Offset    int64
}

// segment is one .log file with its indexes.
//
// Fields without a note are set under Log.write and Log.mu together, so holding either is enough to read them.
type segment struct {
	base    int64
	size    int64 // bytes of whole batches; more may be in the file of the active segment after a failed write
	log     handle
	offsets index
	times   index
	txn     handle
	txns    int32 // entries of the transaction index
	txnMade bool

	max         stamp // greatest timestamp so far
	lastIndexed int64 // offset of the newest offset index entry
	lastTime    int64 // timestamp of the newest time index entry, -1 none

	gone    bool // guarded by Log.names: its files are renamed
	suspect bool // guarded by Log.mu: an index was found damaged

	// Only under Log.write:
	bytesSinceIndex int64
	created         int64 // ms: for time-based rolls of segments without timestamps
	firstTimestamp  int64 // of the first batch; unknownTime until read
	jitterMs        int64
	torn            bool  // bytes beyond size may be in the file
	unsynced        dirty // files with bytes that were not synced
}

const unknownTime = math.MinInt64

// dirty is a set of a segment's files.
type dirty uint8

const (
	dirtyLog dirty = 1 << iota
	dirtyIndexes
	dirtyTxn
)

func newSegment(base, created, jitter int64) *segment {
	return &segment{base: base, created: created, jitterMs: jitter, firstTimestamp: unknownTime, max: stamp{-1, base}, lastTime: -1, lastIndexed: base}
}

type namedIndex struct {
	*index
	suffix string
	size   int
}

func (s *segment) indexes() [2]namedIndex {
	return [2]namedIndex{{&s.offsets, indexSuffix, offsetEntry}, {&s.times, timeSuffix, timeEntry}}
}

func (s *segment) path(dir, suffix string) string { return dir + "/" + fileName(s.base, suffix) }

// open returns a file of the segment, held: Release it. errGone when the segment was deleted or replaced meanwhile.
func (l *Log) open(s *segment, h *handle, suffix string) (vfs.File, error) {
	if f := h.hold(); f != nil {
		return f, nil
	}
	l.names.RLock()
	defer l.names.RUnlock()
	if l.closed.Load() {
		return nil, kerr.KafkaStorageError.With("the log %s is closed", l.Dir())
	}
	if s.gone {
		return nil, errGone
	}
	return l.env.Files.open(h, l.fs, s.path(l.Dir(), suffix), os.O_RDWR)
}

func (l *Log) openLog(s *segment) (vfs.File, error) { return l.open(s, &s.log, logSuffix) }

// closeFiles closes all descriptors of the segment.
func (l *Log) closeFiles(s *segment) {
	l.env.Files.close(&s.log)
	l.env.Files.close(&s.offsets.h)
	l.env.Files.close(&s.times.h)
	l.env.Files.close(&s.txn)
}

// place is where a batch lies: the first whose last offset is at least the one looked for.
type place struct {
	pos  int64
	size int64
	base int64
	last int64
}

// view is what a reader took from a segment under mu.
type view struct {
	*segment
	size    int64
	entries int // of the offset index file
	hint    int64
	hinted  bool // hint is an answer from the tail or the recent appends
}

// seek prepares a lookup of offset in s; under mu.
func (l *Log) seek(s *segment, offset int64) view {
	v := view{segment: s, size: s.size, entries: int(s.offsets.disk)}
	rel := offset - s.base
	if n := s.offsets.tailSearch(offsetEntry, func(e []byte) bool { return relative(e) <= rel }); n > 0 {
		v.hint, v.hinted = position(s.offsets.tail[(n-1)*offsetEntry:]), true
	}
	if s.suspect {
		v.entries = 0
	}
	return v
}

// find locates the first batch with a last offset of at least offset; ok is false when the segment has none.
// No lock is held.
func (l *Log) find(v view, f vfs.File, offset int64) (p place, ok bool, err error) {
	start, bound := v.hint, int64(math.MaxInt64)
	if !v.hinted && v.entries > 0 {
		if start, bound, err = l.lookup(v, offset); err != nil {
			return p, false, err
		}
	}
	p, ok, err = l.findFrom(v, f, offset, start, bound)
	if (start > 0 || bound < math.MaxInt64) && (isDamage(err) || err == errDamaged) {
		l.suspectIndex(v.segment)
		return l.findFrom(v, f, offset, 0, math.MaxInt64)
	}
	return p, ok, err
}

// findFrom scans headers from start. The batch there must end at or before bound: it is what the index says of it.
func (l *Log) findFrom(v view, f vfs.File, offset, start, bound int64) (p place, ok bool, err error) {
	if start < 0 || start > v.size {
		return p, false, errDamaged
	}
	sc := newScanner(f, start, v.size, false)
	defer sc.done()
	for {
		at := sc.pos
		b, err := sc.next(false)
		if err != nil {
			return p, false, corrupt(v.path(l.Dir(), logSuffix), at, err)
		}
		if b == nil {
			return p, false, nil
		}
		last := b.LastOffset()
		if at == start && last > bound {
			return p, false, errDamaged
		}
		if last >= offset {
			return place{pos: at, size: sc.pos - at, base: b.BaseOffset(), last: last}, true, nil
		}
	}
}

// lookup finds in the offset index file the position to begin at, and the last offset of the batch there.
func (l *Log) lookup(v view, offset int64) (start, bound int64, err error) {
	f, err := l.open(v.segment, &v.offsets.h, indexSuffix)
	if err != nil {
		return 0, 0, err
	}
	defer f.Release()
	rel := offset - v.base
	n, err := searchFile(f, v.entries, offsetEntry, func(e []byte) bool { return relative(e) <= rel })
	if err == errShortIndex {
		l.suspectIndex(v.segment)
		return 0, math.MaxInt64, nil
	}
	if err != nil || n == 0 {
		return 0, math.MaxInt64, err
	}
	var e [offsetEntry]byte
	if err := readEntries(f, e[:], n-1, offsetEntry); err != nil {
		return 0, math.MaxInt64, err
	}
	return position(e[:]), v.base + relative(e[:]), nil
}

// suspectIndex remembers that an index of s is damaged; the next flush, roll or retention rebuilds it.
func (l *Log) suspectIndex(s *segment) {
	l.mu.Lock()
	first := !s.suspect
	s.suspect, l.suspects = true, true
	l.mu.Unlock()
	if first {
		l.log().Warn("index does not fit its segment, reading without it", "path", s.path(l.Dir(), indexSuffix))
	}
}

// tail walks the headers from the newest index entry to the end of s: what a trusted segment has to tell about
// its end. It returns the offset after the last batch and the greatest timestamp met.
func (l *Log) tail(s *segment) (next int64, max stamp, sinceIndex int64, err error) {
	next, max = s.base, stamp{-1, s.base}
	f, err := l.openLog(s)
	if err != nil {
		return next, max, 0, err
	}
	defer f.Release()
	start := int64(0)
	if s.offsets.disk > 0 {
		if start, _, err = l.lookup(view{segment: s, size: s.size, entries: int(s.offsets.disk)}, math.MaxInt64); err != nil {
			return next, max, 0, err
		}
	}
	sc := newScanner(f, start, s.size, false)
	defer sc.done()
	for {
		at := sc.pos
		b, err := sc.next(false)
		if err != nil {
			return next, max, 0, corrupt(s.path(l.Dir(), logSuffix), at, err)
		}
		if b == nil {
			return next, max, s.size - start, nil
		}
		next = b.NextOffset()
		if b.MaxTimestamp() > max.Timestamp {
			max = stamp{b.MaxTimestamp(), b.LastOffset()}
		}
	}
}

// firstBatchTimestamp is the max timestamp of the first batch, -1 when it has none or there is no batch; under write.
func (l *Log) firstBatchTimestamp(s *segment) (int64, error) {
	if s.firstTimestamp == unknownTime && s.size > 0 {
		f, err := l.openLog(s)
		if err != nil {
			return -1, err
		}
		defer f.Release()
		sc := newScanner(f, 0, s.size, false)
		defer sc.done()
		b, err := sc.next(false)
		if err != nil {
			return -1, corrupt(s.path(l.Dir(), logSuffix), 0, err)
		}
		s.firstTimestamp = record.Batch(b).MaxTimestamp()
	}
	if s.firstTimestamp == unknownTime {
		return -1, nil
	}
	return s.firstTimestamp, nil
}

// modified is the mtime of the .log file in ms, for segments without timestamps.
func (l *Log) modified(s *segment) (int64, error) {
	l.names.RLock()
	defer l.names.RUnlock()
	if s.gone {
		return 0, errGone
	}
	info, err := l.fs.Stat(s.path(l.Dir(), logSuffix))
	if err != nil {
		return 0, err
	}
	return info.ModTime().UnixMilli(), nil
}
