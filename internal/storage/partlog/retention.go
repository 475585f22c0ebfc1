package partlog

import (
	"slices"
)

// DeleteReason says why a segment may go.
type DeleteReason uint8

const (
	BelowLogStart DeleteReason = iota + 1
	RetentionBytes
	RetentionMs
)

func (r DeleteReason) String() string {
	switch r {
	case BelowLogStart:
		return "below the log start"
	case RetentionBytes:
		return "retention.bytes"
	case RetentionMs:
		return "retention.ms"
	}
	return "unknown"
}

// Deletable is a decision of retention: a prefix of the segments.
type Deletable struct {
	Segments []DeletableSegment
}

// DeletableSegment is one segment that may go.
type DeletableSegment struct {
	Base   int64
	Next   int64 // log start after it went
	Bytes  int64
	Reason DeleteReason
}

// DeletableSegments applies log start, size and time to the segments (D-74..D-77). With a policy of compact alone, or
// none, only the log start counts.
func (l *Log) DeletableSegments(now int64) (Deletable, error) {
	c := l.Config()
	l.mu.Lock()
	segments, off := l.segments, l.offsetsLocked()
	sizes := make([]int64, len(segments))
	stamps := make([]int64, len(segments))
	var total int64
	for i, s := range segments {
		sizes[i], stamps[i] = s.size, s.max.Timestamp
		total += s.size
	}
	l.mu.Unlock()

	var d Deletable
	excess := total - c.RetentionBytes
	byStart, bySize := true, c.Delete && c.RetentionBytes >= 0
	for i, s := range segments {
		isLast := i == len(segments)-1
		next := off.LogEnd
		if !isLast {
			next = segments[i+1].base
		}
		if next > off.HighWatermark || isLast && sizes[i] == 0 {
			break
		}
		// Each rule takes a prefix of what the one before it left: once a rule has stopped it does not go on.
		byStart = byStart && !isLast && next <= off.LogStart
		bySize = bySize && (byStart || excess-sizes[i] >= 0)
		var reason DeleteReason
		switch {
		case byStart:
			reason = BelowLogStart
		case bySize:
			reason = RetentionBytes
		case c.Delete && c.RetentionMs >= 0:
			if stamps[i] < 0 {
				var err error
				if stamps[i], err = l.modified(s); err != nil {
					if err == errGone {
						return Deletable{}, nil
					}
					return d, err
				}
			}
			if now-stamps[i] > c.RetentionMs {
				reason = RetentionMs
			}
		}
		if reason == 0 {
			break
		}
		excess -= sizes[i]
		d.Segments = append(d.Segments, DeletableSegment{Base: s.base, Next: next, Bytes: sizes[i], Reason: reason})
	}
	return d, nil
}

// DeleteOldSegments carries a decision out as far as it still holds, and returns what went. An active segment in it is rolled first.
func (l *Log) DeleteOldSegments(d Deletable, now int64) (done Deletable, err error) {
	err = l.change(func() (files []string, err error) {
		done, files, err = l.deletePrefix(d, now)
		return files, err
	})
	return done, err
}

// change runs fn under sync and write and then, without locks, hands over the files it discarded.
func (l *Log) change(fn func() (discarded []string, err error)) error {
	l.sync.Lock()
	l.write.Lock()
	var files []string
	err := l.usable()
	if err == nil {
		files, err = fn()
	}
	l.write.Unlock()
	l.sync.Unlock()
	if herr := l.handOver(files); err == nil {
		err = herr
	}
	return err
}

func (l *Log) deletePrefix(d Deletable, now int64) (done Deletable, files []string, err error) {
	n := 0
	for n < len(d.Segments) && n < len(l.segments) && l.segments[n].base == d.Segments[n].Base {
		next := l.end
		if n+1 < len(l.segments) {
			next = l.segments[n+1].base
		}
		if next != d.Segments[n].Next { // it grew meanwhile
			break
		}
		n++
	}
	done = Deletable{Segments: d.Segments[:n]}
	if n == 0 {
		return done, nil, nil
	}
	if n == len(l.segments) {
		if err := l.roll(l.end, now); err != nil {
			return Deletable{}, nil, err
		}
	}
	doomed := slices.Clone(l.segments[:n])
	l.mu.Lock()
	l.segments = slices.Clone(l.segments[n:])
	if base := l.segments[0].base; base > l.logStart {
		l.startLocked(base)
	}
	l.mu.Unlock()
	for _, s := range done.Segments {
		l.log().Info("deleting segment", "segment", s.Base, "bytes", s.Bytes, "reason", s.Reason.String())
	}
	files, err = l.discard(doomed, false)
	return done, files, err
}

// discard takes segments that are not in the list any more out of the directory, in order or newest first, and returns
// the renamed files; under sync and write.
func (l *Log) discard(doomed []*segment, newestFirst bool) ([]string, error) {
	if len(doomed) == 0 {
		return nil, nil
	}
	l.names.Lock()
	defer l.names.Unlock()
	return l.doom(doomed, newestFirst)
}

// doom renames the files of segments to .deleted, with the producer snapshots at their bases; under write and names.
func (l *Log) doom(doomed []*segment, newestFirst bool) (files []string, err error) {
	order := slices.Clone(doomed)
	if newestFirst {
		slices.Reverse(order)
	}
	for _, s := range order {
		// One at a time: after a crash a deleted segment must not be back while the next one is gone.
		if l.deletesPending {
			if err := l.fs.SyncDir(l.Dir()); err != nil {
				return files, err
			}
		}
		l.deletesPending = true
		s.gone = true
		l.closeFiles(s)
		for _, suffix := range segmentSuffixes {
			there := suffix == logSuffix || suffix == indexSuffix && s.offsets.made || suffix == timeSuffix && s.times.made || suffix == txnSuffix && s.txnMade
			if !there {
				continue
			}
			name := s.path(l.Dir(), suffix)
			if err := l.fs.Rename(name, name+deletedSuffix); err != nil {
				return files, err
			}
			files = append(files, name+deletedSuffix)
		}
		if slices.Contains(l.snapshots, s.base) {
			name := l.Dir() + "/" + fileName(s.base, snapshotSuffix)
			if err := ignoreMissing(l.fs.Rename(name, name+deletedSuffix)); err != nil {
				return files, err
			}
			files = append(files, name+deletedSuffix)
			if err := l.removeSnapshot(s.base); err != nil { // the window
				return files, err
			}
		}
	}
	l.dirDirty = true
	return files, nil
}

// handOver gives renamed files to whoever removes them; no lock is held.
func (l *Log) handOver(files []string) error {
	if len(files) == 0 {
		return nil
	}
	if l.env.Discard != nil {
		l.env.Discard(l, files)
		return nil
	}
	for _, name := range files {
		if err := ignoreMissing(l.fs.Remove(name)); err != nil {
			return err
		}
	}
	return nil
}
