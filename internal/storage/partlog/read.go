package partlog

import (
	"math"

	"samsa/internal/base/kerr"
)

// ReadRequest says what to read.
type ReadRequest struct {
	Offset int64
	// UpTo is the exclusive bound: high watermark, last stable offset or log end. Above the log end means the log end.
	UpTo     int64
	MaxBytes int
	// MinOneBatch returns the first batch whole even if it is larger than MaxBytes (D-60).
	MinOneBatch bool
	// Aborted collects the aborted transactions of the range (read_committed).
	Aborted bool
}

// ReadResult is what was read.
type ReadResult struct {
	Records *Slice // nil when there is nothing; Release it
	// Aborted is nil unless asked for.
	Aborted []AbortedTxn
	// FirstBatchIncomplete: MaxBytes cut the first batch.
	FirstBatchIncomplete bool
	Offsets              Offsets // at the time of the read
}

// maxRetries bounds how often a reader looks again because segments were deleted, replaced or truncated under it.
const maxRetries = 10

// Read finds the bytes from the batch that holds Offset on, within one segment (D-59, D-60). It waits for no
// append and no flush.
// Errors: kerr.OffsetOutOfRange below the log start or above the log end.
func (l *Log) Read(r ReadRequest) (ReadResult, error) {
	for try := 0; ; try++ {
		res, again, err := l.readOnce(r)
		if !again || try == maxRetries {
			return res, err
		}
		res.Records.Release()
	}
}

// reader is what one attempt took under mu.
type reader struct {
	off        Offsets
	segments   []*segment
	generation int
	upTo       int64
	recent     [recentAppends]end
	lastSize   int64 // bytes of the active segment
}

func (l *Log) snapshotLocked() reader {
	return reader{off: l.offsetsLocked(), segments: l.segments, generation: l.generation, recent: l.recent, lastSize: l.active().size}
}

// known is the position of an offset that a recent append ended at.
func (rd *reader) known(offset int64) (int64, bool) {
	for _, e := range rd.recent {
		if e.offset == offset && e.pos >= 0 {
			return e.pos, true
		}
	}
	return 0, false
}

func (l *Log) readOnce(r ReadRequest) (res ReadResult, again bool, err error) {
	l.mu.Lock()
	rd := l.snapshotLocked()
	l.mu.Unlock()
	res.Offsets = rd.off
	if r.Aborted {
		res.Aborted = []AbortedTxn{}
	}
	if r.Offset < rd.off.LogStart || r.Offset > rd.off.LogEnd {
		return res, false, kerr.OffsetOutOfRange.With("%s: offset %d is outside [%d, %d]", l.partition, r.Offset, rd.off.LogStart, rd.off.LogEnd)
	}
	rd.upTo = min(r.UpTo, rd.off.LogEnd)
	if r.Offset >= rd.upTo || r.MaxBytes <= 0 && !r.MinOneBatch {
		return res, false, nil
	}
	for i := max(0, floor(rd.segments, r.Offset)); i < len(rd.segments) && rd.segments[i].base < rd.upTo; i++ {
		done, err := l.readSegment(&rd, i, &r, &res)
		if err != nil || done {
			again = err == errGone || l.changed(rd.generation)
			return res, again, err
		}
	}
	return res, l.changed(rd.generation), nil
}

func (l *Log) changed(generation int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generation != generation
}

// readSegment reads from segment i; done is false when it has nothing at or after the offset and the next may.
func (l *Log) readSegment(rd *reader, i int, r *ReadRequest, res *ReadResult) (done bool, err error) {
	s := rd.segments[i]
	isLast := i == len(rd.segments)-1
	l.mu.Lock()
	v := l.seek(s, r.Offset)
	l.mu.Unlock()
	if isLast {
		v.size = min(v.size, rd.lastSize)
	}
	f, err := l.openLog(s)
	if err != nil {
		return true, err
	}
	kept := false
	defer func() {
		if !kept {
			f.Release()
		}
	}()

	bound, err := l.boundIn(rd, i, v, func(v view) (place, bool, error) { return l.find(v, f, rd.upTo) })
	if err != nil {
		return true, err
	}
	first := place{pos: -1}
	if isLast {
		if pos, ok := rd.known(r.Offset); ok && bound-pos <= int64(r.MaxBytes) {
			first.pos, first.size = pos, 0 // all there is fits: no need to know the first batch
		}
	}
	if first.pos < 0 {
		p, ok, err := l.find(v, f, r.Offset)
		if err != nil {
			return true, err
		}
		if !ok {
			return false, nil
		}
		first = p
	}
	n := int64(r.MaxBytes)
	if r.MinOneBatch {
		n = max(n, first.size)
	}
	res.FirstBatchIncomplete = n < first.size
	n = min(n, bound-first.pos, math.MaxInt32)
	if n <= 0 {
		return true, nil
	}
	if r.Aborted {
		if res.Aborted, err = l.aborted(rd, i, v, r.Offset, first.pos+n); err != nil {
			return true, err
		}
	}
	kept = true
	res.Records = &Slice{f: f, off: first.pos, n: int(n)}
	return true, nil
}

// boundIn is the position in segment i where reading must end: that of upTo, or the segment's end.
func (l *Log) boundIn(rd *reader, i int, v view, find func(view) (place, bool, error)) (int64, error) {
	switch {
	case i < len(rd.segments)-1 && rd.segments[i+1].base <= rd.upTo, rd.upTo >= rd.off.LogEnd:
		return v.size, nil
	case i == len(rd.segments)-1:
		if pos, ok := rd.known(rd.upTo); ok {
			return pos, nil
		}
	}
	l.mu.Lock()
	at := l.seek(v.segment, rd.upTo)
	l.mu.Unlock()
	at.size = v.size
	p, ok, err := find(at)
	if err != nil {
		return 0, err
	}
	if !ok {
		return v.size, nil
	}
	if i == len(rd.segments)-1 {
		l.mu.Lock()
		if l.generation == rd.generation && l.active() == v.segment {
			l.recent[recentAppends-1] = end{rd.upTo, p.pos}
		}
		l.mu.Unlock()
	}
	return p.pos, nil
}

// aborted lists the transactions for a read of segment i that starts at offset and ends at position endPos.
// Its upper bound is the index's answer, as Kafka's is: the first entry at or after the end, else the segment's end.
func (l *Log) aborted(rd *reader, i int, v view, offset, endPos int64) ([]AbortedTxn, error) {
	views := make([]txnView, 0, len(rd.segments)-i)
	some := false
	l.mu.Lock()
	for _, s := range rd.segments[i:] {
		views = append(views, txnView{s, s.txns})
		some = some || s.txns > 0
	}
	l.mu.Unlock()
	if !some {
		return []AbortedTxn{}, nil
	}
	upper := rd.off.LogEnd
	if i+1 < len(rd.segments) {
		upper = rd.segments[i+1].base
	}
	if offset, ok, err := l.offsetAt(v, endPos); err != nil {
		return nil, err
	} else if ok {
		upper = offset
	}
	return l.abortedIn(views, offset, upper)
}

// offsetAt is the offset of the first index entry at or after a position.
func (l *Log) offsetAt(v view, pos int64) (int64, bool, error) {
	before := func(e []byte) bool { return position(e) < pos }
	if v.entries > 0 {
		f, err := l.open(v.segment, &v.offsets.h, indexSuffix)
		if err != nil {
			return 0, false, err
		}
		defer f.Release()
		n, err := searchFile(f, v.entries, offsetEntry, before)
		if err != nil && err != errShortIndex {
			return 0, false, err
		}
		if err == nil && n < v.entries {
			var e [offsetEntry]byte
			if err := readEntries(f, e[:], n, offsetEntry); err != nil {
				return 0, false, err
			}
			return v.base + relative(e[:]), true, nil
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := v.offsets.tailSearch(offsetEntry, before); n < len(v.offsets.tail)/offsetEntry {
		return v.base + relative(v.offsets.tail[n*offsetEntry:]), true, nil
	}
	return 0, false, nil
}

// AbortedTransactions lists the aborted transactions that overlap [from, to).
func (l *Log) AbortedTransactions(from, to int64) ([]AbortedTxn, error) {
	for try := 0; ; try++ {
		l.mu.Lock()
		segments := l.segments
		var views []txnView
		for _, s := range segments[max(0, floor(segments, from)):] {
			views = append(views, txnView{s, s.txns})
		}
		l.mu.Unlock()
		found, err := l.abortedIn(views, from, to)
		if err != errGone || try == maxRetries {
			return found, err
		}
	}
}

// ReadBatches copies whole batches from offset on, below upTo, into buf (grown when the first batch is larger), and
// returns them with the offset to go on at. Empty when there is none. The first batch may begin below offset.
func (l *Log) ReadBatches(buf []byte, offset, upTo int64) (batches []byte, next int64, err error) {
	next = offset
	res, err := l.Read(ReadRequest{Offset: offset, UpTo: upTo, MaxBytes: cap(buf), MinOneBatch: true})
	if err != nil || res.Records == nil {
		return buf[:0], next, err
	}
	defer res.Records.Release()
	n := res.Records.Len()
	if n > cap(buf) {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := res.Records.ReadAt(buf, 0); err != nil && !isEOF(err) {
		return buf[:0], next, err
	}
	return wholeBatches(buf, next)
}

// BytesBetween says how many bytes of the log lie between two offsets (fetch purgatory, D-119). It is exact at
// batch boundaries and counts whole segments in between; 0 when from >= to.
func (l *Log) BytesBetween(from, to int64) (int64, error) {
	for try := 0; ; try++ {
		n, err := l.bytesBetween(from, to)
		if err != errGone || try == maxRetries {
			return n, err
		}
	}
}

func (l *Log) bytesBetween(from, to int64) (int64, error) {
	l.mu.Lock()
	rd := l.snapshotLocked()
	l.mu.Unlock()
	from, to = max(from, rd.off.LogStart), min(to, rd.off.LogEnd)
	if from >= to {
		return 0, nil
	}
	i, j := max(0, floor(rd.segments, from)), max(0, floor(rd.segments, to))
	start, err := l.positionOf(&rd, i, from)
	if err != nil {
		return 0, err
	}
	stop, err := l.positionOf(&rd, j, to)
	if err != nil {
		return 0, err
	}
	sum := stop - start
	l.mu.Lock()
	for _, s := range rd.segments[i:j] {
		sum += s.size
	}
	l.mu.Unlock()
	return max(0, sum), nil
}

// positionOf is where offset begins in segment i, or the segment's size when it lies behind.
func (l *Log) positionOf(rd *reader, i int, offset int64) (int64, error) {
	if i == len(rd.segments)-1 {
		if offset >= rd.off.LogEnd {
			return rd.lastSize, nil
		}
		if pos, ok := rd.known(offset); ok {
			return pos, nil
		}
	}
	s := rd.segments[i]
	f, err := l.openLog(s)
	if err != nil {
		return 0, err
	}
	defer f.Release()
	l.mu.Lock()
	v := l.seek(s, offset)
	l.mu.Unlock()
	if i == len(rd.segments)-1 {
		v.size = min(v.size, rd.lastSize)
	}
	p, ok, err := l.find(v, f, offset)
	if err != nil {
		return 0, err
	}
	if !ok {
		return v.size, nil
	}
	return p.pos, nil
}
