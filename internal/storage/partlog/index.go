package partlog

import (
	"encoding/binary"
	"math"
	"os"
	"sort"
	"sync"

	"samsa/internal/base/vfs"
)

const (
	offsetEntry = 8
	timeEntry   = 12
	// tailEntries is how many entries of an active segment's index wait in memory before they are written together.
	tailEntries = 256
)

// index is an offset or a time index: entries of fixed size, ascending, of which a prefix is in the file and the
// rest, the tail, in memory.
//
//	.index      int32 offset - base | int32 position        offset is the last of the batch that begins at position (D-46)
//	.timeindex  int64 timestamp | int32 offset - base       the greatest timestamp so far and its batch's last offset (D-47)
//
// Fields are changed under Log.write and Log.mu, so either lock is enough to look at them.
type index struct {
	h    handle
	tail []byte
	disk int32 // entries in the file; unknownEntries until somebody looks
	made bool  // the file exists
}

const unknownEntries = -1

func (x *index) entries(size int) int32 { return x.disk + int32(len(x.tail)/size) }

// indexPages is scratch for the last step of a search in a file.
var indexPages = sync.Pool{New: func() any { b := make([]byte, 256*timeEntry); return &b }}

// searchFile finds how many of the n entries of the file satisfy before, which holds for a prefix.
func searchFile(f vfs.File, n, size int, before func(entry []byte) bool) (int, error) {
	page := indexPages.Get().(*[]byte)
	defer indexPages.Put(page)
	lo, hi := 0, n // entries below lo satisfy, entries from hi on do not
	for hi-lo > 256 {
		mid := int(uint(lo+hi) >> 1)
		e := (*page)[:size]
		if err := readEntries(f, e, mid, size); err != nil {
			return 0, err
		}
		if before(e) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	rest := (*page)[:(hi-lo)*size]
	if err := readEntries(f, rest, lo, size); err != nil {
		return 0, err
	}
	return lo + sort.Search(hi-lo, func(i int) bool { return !before(rest[i*size : i*size+size]) }), nil
}

func readEntries(f vfs.File, p []byte, at, size int) error {
	if len(p) == 0 {
		return nil
	}
	n, err := readFull(f, p, int64(at)*int64(size))
	if err == nil && n < len(p) {
		err = errShortIndex
	}
	return err
}

func relative(e []byte) int64 { return int64(int32(binary.BigEndian.Uint32(e))) }
func position(e []byte) int64 { return int64(int32(binary.BigEndian.Uint32(e[4:]))) }

func timeOf(e []byte) int64       { return int64(binary.BigEndian.Uint64(e)) }
func timeRelative(e []byte) int64 { return int64(int32(binary.BigEndian.Uint32(e[8:]))) }

// tailSearch is searchFile over the tail.
func (x *index) tailSearch(size int, before func(entry []byte) bool) int {
	return sort.Search(len(x.tail)/size, func(i int) bool { return !before(x.tail[i*size : i*size+size]) })
}

// write appends the tail to the file; under Log.write.
func (l *Log) writeTail(s *segment, x *index, suffix string, size int) error {
	if len(x.tail) == 0 {
		return nil
	}
	f, err := l.create(s, x, suffix)
	if err != nil {
		return err
	}
	defer f.Release()
	if _, err := f.WriteAt(x.tail, int64(x.disk)*int64(size)); err != nil {
		return err
	}
	s.unsynced |= dirtyIndexes
	l.mu.Lock()
	x.disk += int32(len(x.tail) / size)
	x.tail = x.tail[:0]
	l.mu.Unlock()
	return nil
}

// create opens an index file, making it if it is not there; under Log.write.
func (l *Log) create(s *segment, x *index, suffix string) (vfs.File, error) {
	flag := os.O_RDWR
	if !x.made {
		flag |= os.O_CREATE | os.O_TRUNC
	}
	if f := x.h.hold(); f != nil {
		return f, nil
	}
	f, err := l.env.Files.open(&x.h, l.fs, s.path(l.Dir(), suffix), flag)
	if err == nil && !x.made {
		x.made, l.dirDirty = true, true
		s.unsynced |= dirtyIndexes
	}
	return f, err
}

// makeIndexes creates the index files a closed segment must have (D-66), and writes the tails; under Log.write. An empty
// segment needs no time index: Kafka makes one without a word.
func (l *Log) makeIndexes(s *segment) error {
	for _, x := range s.indexes() {
		if err := l.writeTail(s, x.index, x.suffix, x.size); err != nil {
			return err
		}
		if !x.made && (s.size > 0 || x.suffix == indexSuffix) {
			f, err := l.create(s, x.index, x.suffix)
			if err != nil {
				return err
			}
			f.Release()
		}
	}
	return nil
}

// addOffset appends to the offset index; under Log.write and mu.
func (s *segment) addOffset(offset, pos int64) {
	if pos > math.MaxInt32 || offset-s.base > math.MaxInt32 || s.offsets.entries(offsetEntry) > 0 && offset <= s.lastIndexed {
		return
	}
	s.offsets.tail = binary.BigEndian.AppendUint32(s.offsets.tail, uint32(offset-s.base))
	s.offsets.tail = binary.BigEndian.AppendUint32(s.offsets.tail, uint32(pos))
	s.lastIndexed = offset
}

// addTime appends the segment's greatest timestamp to the time index unless it is there; under Log.write and mu.
// It reports whether there was something to add.
func (s *segment) addTime() bool {
	if s.max.Timestamp < 0 || s.max.Timestamp <= s.lastTime {
		return false
	}
	s.times.tail = binary.BigEndian.AppendUint64(s.times.tail, uint64(s.max.Timestamp))
	s.times.tail = binary.BigEndian.AppendUint32(s.times.tail, uint32(s.max.Offset-s.base))
	s.lastTime = s.max.Timestamp
	return true
}
