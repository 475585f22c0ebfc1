package partlog

import (
	"os"
	"slices"

	"samsa/internal/base/kerr"
)

// SegmentInfo describes one segment.
type SegmentInfo struct {
	Base         int64
	Next         int64 // base of the next segment, or the log end
	Bytes        int64
	MaxTimestamp int64 // -1 none
	Active       bool
}

// Segments lists all segments, oldest first.
func (l *Log) Segments() ([]SegmentInfo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]SegmentInfo, 0, len(l.segments))
	for i, s := range l.segments {
		info := SegmentInfo{Base: s.base, Next: l.end, Bytes: s.size, MaxTimestamp: s.max.Timestamp, Active: i == len(l.segments)-1}
		if !info.Active {
			info.Next = l.segments[i+1].base
		}
		list = append(list, info)
	}
	return list, nil
}

// ReplaceSegments swaps a cleaner's output in (D-86). cleaned are the base offsets of finished <base>.log.cleaned files (with
// .index.cleaned, .timeindex.cleaned, .txnindex.cleaned beside them), ascending; old are the bases of the closed, adjacent segments
// they stand for. Every crash in between is repaired by Open (D-64, D-65).
func (l *Log) ReplaceSegments(cleaned, old []int64) error {
	return l.change(func() ([]string, error) { return l.replace(cleaned, old) })
}

func (l *Log) replace(cleaned, old []int64) (files []string, err error) {
	at := 0
	if len(old) > 0 {
		at = floor(l.segments, old[0])
	}
	if len(old) == 0 || len(cleaned) == 0 || at < 0 || at+len(old) >= len(l.segments) {
		return nil, kerr.UnknownServerError.With("%s: segments %v cannot be replaced by %v: expected closed segments of this log", l.Dir(), old, cleaned)
	}
	for i, base := range old {
		if l.segments[at+i].base != base {
			return nil, kerr.UnknownServerError.With("%s: segments %v are not adjacent ones of this log", l.Dir(), old)
		}
	}
	fresh, err := l.readyCleaned(cleaned, l.segments[at+len(old)].base)
	if err != nil {
		return nil, err
	}
	doomed := slices.Clone(l.segments[at : at+len(old)])

	// From here on an error leaves the swap to the next Open.
	l.names.Lock()
	files, err = l.swapIn(fresh, doomed)
	if err == nil {
		list := slices.Clone(l.segments[:at])
		list = append(list, fresh...)
		list = append(list, l.segments[at+len(old):]...)
		l.mu.Lock()
		l.segments = list
		l.generation++
		l.mu.Unlock()
	} else {
		l.failed = err
	}
	l.names.Unlock()
	if err == nil {
		err = l.fs.SyncDir(l.Dir())
	}
	return files, err
}

// readyCleaned syncs the cleaned files and makes segments of them; next is the base of the segment that follows.
func (l *Log) readyCleaned(cleaned []int64, next int64) ([]*segment, error) {
	var fresh []*segment
	for _, base := range cleaned {
		s := newSegment(base, 0, 0)
		for _, suffix := range segmentSuffixes {
			f, err := l.fs.OpenFile(s.path(l.Dir(), suffix+cleanedSuffix), os.O_RDWR, 0)
			if ignoreMissing(err) == nil && err != nil && suffix == txnSuffix {
				continue
			}
			if err != nil {
				return nil, err
			}
			err = f.Sync()
			size, serr := f.Size()
			var last [timeEntry]byte
			if suffix == timeSuffix && err == nil && serr == nil && size >= timeEntry {
				err = readEntries(f, last[:], int(size/timeEntry)-1, timeEntry)
				s.max, s.lastTime = stamp{timeOf(last[:]), base + timeRelative(last[:])}, timeOf(last[:])
			}
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err == nil {
				err = serr
			}
			if err != nil {
				return nil, err
			}
			switch suffix {
			case logSuffix:
				s.size = size
			case indexSuffix:
				s.offsets.made, s.offsets.disk = true, int32(size/offsetEntry)
			case timeSuffix:
				s.times.made, s.times.disk = true, int32(size/timeEntry)
			case txnSuffix:
				s.txnMade, s.txns = true, int32(size/txnEntry)
			}
		}
		s.lastIndexed = next - 1
		fresh = append(fresh, s)
	}
	return fresh, nil
}

// swapIn does the renames of D-86; under write and names.
func (l *Log) swapIn(fresh, doomed []*segment) (files []string, err error) {
	rename := func(list []*segment, from, to string) error {
		for i := len(list) - 1; i >= 0; i-- { // newest first: D-64 drops what is at or above the smallest .cleaned
			s := list[i]
			for k := len(segmentSuffixes) - 1; k >= 0; k-- {
				suffix := segmentSuffixes[k]
				if suffix == txnSuffix && !s.txnMade {
					continue
				}
				name := s.path(l.Dir(), suffix)
				if err := l.fs.Rename(name+from, name+to); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := rename(fresh, cleanedSuffix, swapSuffix); err != nil {
		return nil, err
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		return nil, err
	}
	kept := map[int64]bool{}
	for _, s := range fresh {
		kept[s.base] = true
	}
	var snapshots []int64
	for _, s := range doomed { // a base that goes on existing keeps its snapshot
		if kept[s.base] && slices.Contains(l.snapshots, s.base) {
			snapshots = append(snapshots, s.base)
		}
	}
	l.snapshots = slices.DeleteFunc(l.snapshots, func(o int64) bool { return slices.Contains(snapshots, o) })
	files, err = l.doom(doomed, false)
	l.snapshots = append(l.snapshots, snapshots...)
	slices.Sort(l.snapshots)
	if err != nil {
		return files, err
	}
	return files, rename(fresh, swapSuffix, "")
}
