package partlog

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"samsa/internal/base/kerr"
	"samsa/internal/storage/epochs"
)

// Open loads the log in o.Dir, or begins one at o.LogStartOffset when there is no segment.
//
// Damage is repaired where Kafka repairs it: leftovers of deletes and swaps (D-64, D-65), indexes (D-66), the tail after an
// unclean stop (D-67), epoch file and producer state (D-70, D-71). An error names the path and what to do.
func Open(o Options) (*Log, LoadInfo, error) {
	l := &Log{fs: o.FS, env: o.Env, partition: o.Partition, topicID: o.TopicID}
	if l.env == nil {
		l.env = &Env{}
	}
	if l.env.Files == nil {
		return nil, LoadInfo{}, errors.New("partlog: Env.Files is not set, expected NewFiles(limit)")
	}
	if o.Config == nil {
		o.Config = DefaultConfig()
	}
	l.dir.Store(&o.Dir)
	l.config.Store(o.Config)
	l.lastFlush = o.Now
	l.forgetRecent()

	ld := &loader{Log: l, o: o}
	if err := ld.load(); err != nil {
		l.abandon()
		return nil, ld.info, fmt.Errorf("loading %s: %w", o.Dir, err)
	}
	return l, ld.info, nil
}

// loader is a log that is being loaded, by one goroutine.
type loader struct {
	*Log
	o    Options
	info LoadInfo

	files     map[string]int64 // sizes by name, as listed
	hasEpochs bool
	gappy     bool       // recovery met offsets that compaction has removed
	rebuild   []*segment // their indexes are missing or damaged
}

// load does D-64..D-71 in order.
func (ld *loader) load() error {
	l, o := ld.Log, ld.o
	o.LogStartOffset = max(0, o.LogStartOffset)
	l.logStart = o.LogStartOffset
	// A clean close of a log without news syncs no names, and a crash leaves all in doubt: the first flush sees to it. The
	// names of partitions in the log directory are synced with the marker of a clean stop.
	l.dirDirty, l.parentDirty = true, o.New || !o.Clean
	if o.New {
		return ld.begin()
	}
	if err := ld.list(); err != nil {
		return err
	}
	if err := ld.leftovers(); err != nil {
		return err
	}
	if err := ld.openSegments(); err != nil {
		return err
	}
	if err := ld.loadEpochs(); err != nil {
		return err
	}
	if err := ld.rebuildIndexes(); err != nil {
		return err
	}
	if !o.Clean {
		if err := ld.recover(); err != nil {
			return err
		}
	}
	if err := ld.findEnd(); err != nil {
		return err
	}
	return ld.settle()
}

// begin makes the first segment of an empty log.
func (ld *loader) begin() error {
	l := ld.Log
	start := l.logStart
	s, err := l.makeSegment(start, ld.o.Now)
	if err != nil {
		return err
	}
	l.segments, l.end, l.hw, l.recoveryPoint = []*segment{s}, start, start, start
	l.producers.Reset(start)
	return nil
}

// list reads the directory.
func (ld *loader) list() error {
	entries, err := ld.fs.ReadDir(ld.o.Dir)
	if err != nil {
		return err
	}
	ld.files = make(map[string]int64, len(entries))
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		size := int64(-1)
		if _, suffix, ok := parseName(e.Name()); ok && suffix != snapshotSuffix && suffix != windowSuffix {
			info, err := e.Info()
			if err != nil {
				return err
			}
			size = info.Size()
		}
		ld.files[e.Name()] = size
	}
	_, ld.hasEpochs = ld.files[epochs.FileName]
	return nil
}

func (ld *loader) remove(name string) error {
	if err := ignoreMissing(ld.fs.Remove(ld.o.Dir + "/" + name)); err != nil {
		return err
	}
	delete(ld.files, name)
	ld.dirDirty = true
	return nil
}

// leftovers is D-64 and D-65: what an interrupted delete, cleaning or swap left behind.
func (ld *loader) leftovers() error {
	var cleaned, swaps []string
	minCleaned := int64(-1)
	for _, name := range sortedNames(ld.files) {
		offset, suffix, ok := parseName(name)
		switch {
		case isDeleted(name), name == epochs.FileName+".tmp":
			ld.info.LeftoversRemoved++
			if err := ld.remove(name); err != nil {
				return err
			}
		case ok && strings.HasSuffix(suffix, cleanedSuffix):
			cleaned = append(cleaned, name)
			if minCleaned < 0 || offset < minCleaned {
				minCleaned = offset
			}
		case ok && strings.HasSuffix(suffix, swapSuffix):
			swaps = append(swaps, name)
		}
	}
	if len(cleaned) == 0 && len(swaps) == 0 {
		return nil
	}
	valid := swaps[:0]
	for _, name := range swaps {
		if offset, _, _ := parseName(name); minCleaned >= 0 && offset >= minCleaned {
			cleaned = append(cleaned, name)
		} else {
			valid = append(valid, name)
		}
	}
	for _, name := range cleaned {
		ld.info.LeftoversRemoved++
		if err := ld.remove(name); err != nil {
			return err
		}
	}
	if err := ld.finishSwaps(valid); err != nil {
		return err
	}
	return ld.fs.SyncDir(ld.o.Dir)
}

// finishSwaps puts the segments a cleaner had finished in the place of those they stand for.
func (ld *loader) finishSwaps(swaps []string) error {
	from, to := int64(-1), int64(-1)
	for _, name := range swaps {
		offset, suffix, _ := parseName(name)
		if suffix != logSuffix+swapSuffix {
			continue
		}
		next, err := ld.nextOffsetOf(name, offset)
		if err != nil {
			return err
		}
		if from < 0 || offset < from {
			from = offset
		}
		to = max(to, next)
	}
	for _, name := range sortedNames(ld.files) {
		offset, suffix, ok := parseName(name)
		if ok && !strings.HasSuffix(suffix, swapSuffix) && isSegmentFile(suffix) && offset >= from && offset < to {
			if err := ld.remove(name); err != nil {
				return err
			}
		}
	}
	for _, name := range swaps {
		final := strings.TrimSuffix(name, swapSuffix)
		if err := ld.fs.Rename(ld.o.Dir+"/"+name, ld.o.Dir+"/"+final); err != nil {
			return err
		}
		ld.files[final] = ld.files[name]
		delete(ld.files, name)
		ld.info.SwapsFinished++
	}
	if len(swaps) > 0 {
		ld.log().Info("finished an interrupted swap of cleaned segments", "files", len(swaps))
	}
	return nil
}

func isSegmentFile(suffix string) bool { return slices.Contains(segmentSuffixes[:], suffix) }

// nextOffsetOf is the offset after the last whole batch of a file.
func (ld *loader) nextOffsetOf(name string, base int64) (int64, error) {
	f, err := ld.fs.OpenFile(ld.o.Dir+"/"+name, os.O_RDONLY, 0)
	if err != nil {
		return base, err
	}
	defer f.Close()
	sc := newScanner(f, 0, ld.files[name], false)
	defer sc.done()
	next := base
	for {
		b, err := sc.next(false)
		if isDamage(err) || err == nil && b == nil {
			return next, nil
		}
		if err != nil {
			return next, err
		}
		next = b.NextOffset()
	}
}

func sortedNames(files map[string]int64) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// openSegments makes the segment list from the listing, and looks at the indexes (D-66).
func (ld *loader) openSegments() error {
	l := ld.Log
	for name, size := range ld.files {
		offset, suffix, ok := parseName(name)
		if !ok {
			continue
		}
		switch suffix {
		case logSuffix:
			s := newSegment(offset, ld.o.Now, l.env.jitter(ld.o.Config))
			s.size = size
			l.segments = append(l.segments, s)
		case snapshotSuffix:
			l.snapshots = append(l.snapshots, offset)
		}
	}
	slices.SortFunc(l.segments, func(a, b *segment) int { return compare(a.base, b.base) })
	slices.Sort(l.snapshots)
	for _, name := range sortedNames(ld.files) {
		offset, suffix, ok := parseName(name)
		if !ok {
			continue
		}
		if suffix == windowSuffix {
			// Apache Kafka removes a snapshot and does not know of the window beside it.
			if _, found := slices.BinarySearch(l.snapshots, offset); !found {
				ld.info.LeftoversRemoved++
				if err := ld.remove(name); err != nil {
					return err
				}
			}
			continue
		}
		_, hasLog := ld.files[fileName(offset, logSuffix)]
		if (suffix == indexSuffix || suffix == timeSuffix || suffix == txnSuffix) && !hasLog {
			ld.info.LeftoversRemoved++
			ld.log().Warn("removing file that belongs to no segment", "path", ld.o.Dir+"/"+name)
			if err := ld.remove(name); err != nil {
				return err
			}
		}
	}
	for i, s := range l.segments {
		next := int64(-1)
		if i+1 < len(l.segments) {
			next = l.segments[i+1].base
		}
		if err := ld.openIndexes(s, next); err != nil {
			return err
		}
	}
	return nil
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// openIndexes trusts index files that make sense; next is the base of the following segment or -1.
// Segments that recovery will scan anyway are not looked at.
func (ld *loader) openIndexes(s *segment, next int64) error {
	offsets, hasOffsets := ld.files[fileName(s.base, indexSuffix)]
	times, hasTimes := ld.files[fileName(s.base, timeSuffix)]
	txns, hasTxns := ld.files[fileName(s.base, txnSuffix)]
	s.offsets.made, s.times.made, s.txnMade = hasOffsets, hasTimes, hasTxns
	if !ld.o.Clean && (next < 0 || next > ld.o.RecoveryPoint) {
		return nil
	}
	bad := func(format string, args ...any) error {
		ld.log().Debug("rebuilding indexes", "segment", s.base, "reason", fmt.Sprintf(format, args...))
		ld.rebuild = append(ld.rebuild, s)
		s.offsets.disk, s.times.disk, s.txns = 0, 0, 0
		return nil
	}
	switch {
	case s.size == 0 && offsets == 0 && times == 0 && txns == 0:
		return nil // also without files: they are made when there is something to say
	case !hasOffsets:
		return bad("%s is missing", fileName(s.base, indexSuffix))
	case offsets%offsetEntry != 0 || times%timeEntry != 0 || txns%txnEntry != 0:
		return bad("sizes %d, %d, %d are no multiples of the entry sizes", offsets, times, txns)
	case offsets > 0 && s.size == 0 || times > 0 && s.size == 0:
		return bad("the segment is empty, its indexes are not")
	}
	s.offsets.disk, s.times.disk, s.txns = int32(offsets/offsetEntry), int32(times/timeEntry), int32(txns/txnEntry)
	if offsets > 0 {
		var e [offsetEntry]byte
		if err := ld.lastEntry(s, &s.offsets, indexSuffix, e[:]); err != nil {
			return err
		}
		s.lastIndexed = s.base + relative(e[:])
		if relative(e[:]) <= 0 && offsets > offsetEntry || relative(e[:]) < 0 || next >= 0 && s.lastIndexed >= next || position(e[:]) <= 0 || position(e[:]) >= s.size {
			return bad("the last entry of %s is (%d, %d), which cannot be", fileName(s.base, indexSuffix), s.lastIndexed, position(e[:]))
		}
	}
	if times > 0 {
		var e [timeEntry]byte
		if err := ld.lastEntry(s, &s.times, timeSuffix, e[:]); err != nil {
			return err
		}
		at := s.base + timeRelative(e[:])
		if timeOf(e[:]) < 0 || timeRelative(e[:]) < 0 || next >= 0 && at >= next || timeOf(e[:]) == 0 && timeRelative(e[:]) == 0 && times > timeEntry {
			return bad("the last entry of %s is (%d, %d), which cannot be", fileName(s.base, timeSuffix), timeOf(e[:]), at)
		}
		s.max, s.lastTime = stamp{timeOf(e[:]), at}, timeOf(e[:])
	}
	if txns > 0 {
		sane, err := ld.checkTxns(s)
		if err != nil {
			return err
		}
		if !sane {
			return bad("%s holds entries that cannot be", fileName(s.base, txnSuffix))
		}
	}
	return nil
}

func (ld *loader) lastEntry(s *segment, x *index, suffix string, e []byte) error {
	f, err := ld.open(s, &x.h, suffix)
	if err != nil {
		return err
	}
	defer f.Release()
	return readEntries(f, e, int(x.disk)-1, len(e))
}

func (ld *loader) checkTxns(s *segment) (bool, error) {
	f, err := ld.open(s, &s.txn, txnSuffix)
	if err != nil {
		return false, err
	}
	defer f.Release()
	raw := make([]byte, int(s.txns)*txnEntry)
	n, err := readFull(f, raw, 0)
	if err != nil || n < len(raw) {
		return false, err
	}
	entries := make([]AbortedTxn, s.txns)
	for i := range entries {
		entries[i] = parseTxn(raw[i*txnEntry:])
	}
	return saneTxns(entries, raw, s.base), nil
}

// findEnd finds the log end of a trusted log from the last segment's tail.
func (ld *loader) findEnd() error {
	l := ld.Log
	if len(l.segments) == 0 {
		return nil
	}
	s := l.active()
	if s.size == 0 {
		l.end = s.base
		return nil
	}
	next, max, since, err := l.tail(s)
	if err != nil && ld.o.Clean && errors.Is(err, kerr.CorruptMessage) {
		// The marker says clean but the end is not: what Kafka meets at its next append is cut here.
		ld.log().Warn("the last segment does not end in a whole batch although the last stop was clean, recovering it", "segment", s.base, "err", err)
		if err := ld.loadBase(s.base); err != nil {
			return err
		}
		if _, err := ld.recoverSegment(s, false); err != nil {
			return err
		}
		next, max, since, err = l.tail(s)
	}
	if err != nil {
		return err
	}
	l.end = next
	if max.Timestamp > s.max.Timestamp {
		s.max = max
	}
	s.bytesSinceIndex = since
	return nil
}

// settle is D-69..D-71: bounds, epoch file and producer state.
func (ld *loader) settle() error {
	l, o := ld.Log, ld.o
	if len(l.segments) > 0 && l.end < l.logStart {
		ld.log().Warn("dropping all segments: the log ends below its log start", "logEnd", l.end, "logStart", l.logStart)
		if err := ld.dropSegments(0); err != nil {
			return err
		}
		l.epochs.Clear()
		for _, offset := range slices.Clone(l.snapshots) {
			if err := l.removeSnapshot(offset); err != nil {
				return err
			}
		}
	}
	if len(l.segments) == 0 {
		if err := ld.begin(); err != nil {
			return err
		}
	}
	l.logStart = max(l.logStart, l.segments[0].base)
	if ld.needsEpochs() {
		if err := l.rebuildEpochs(len(l.segments)); err != nil {
			return err
		}
	}
	l.epochs.TruncateFromEnd(l.end)
	l.epochs.TruncateFromStart(l.logStart)
	if !o.Clean {
		// The last process may not have synced these.
		l.unsyncedSnapshots = append(l.unsyncedSnapshots, l.snapshots[max(0, sortedFloor(l.snapshots, o.RecoveryPoint)):]...)
	}
	built := !o.Clean && ld.info.SegmentsRecovered > 0 && l.producers.End() == l.end // by the recovery scan
	if !built {
		if err := l.loadProducers(l.end, o.Now, o.Clean); err != nil {
			return err
		}
	}
	if err := ld.strayAway(); err != nil {
		return err
	}
	if !o.Clean {
		// A snapshot of this offset that is there already may have lost its window: the close writes it again.
		l.snapshots = slices.DeleteFunc(l.snapshots, func(offset int64) bool { return offset == l.end })
	}
	l.recoveryPoint = l.end
	if !o.Clean || ld.info.BytesTruncated > 0 {
		l.recoveryPoint = max(l.logStart, min(o.RecoveryPoint, l.end))
	}
	l.SetHighWatermark(o.HighWatermark)
	return nil
}

// needsEpochs says that batches are there but no epochs: the file was lost or damaged.
func (ld *loader) needsEpochs() bool {
	l := ld.Log
	return l.epochs.Len() == 0 && l.end > l.segments[0].base && !ld.hasEpochs
}

// strayAway deletes snapshots that belong to no segment, but the newest if it is above the last base (D-71), and those above
// the log end.
func (ld *loader) strayAway() error {
	l := ld.Log
	for i, offset := range slices.Clone(l.snapshots) {
		at := floor(l.segments, offset)
		belongs := at >= 0 && l.segments[at].base == offset
		newest := i == len(l.snapshots)-1 || sortedFloor(l.snapshots, l.end) >= 0 && l.snapshots[sortedFloor(l.snapshots, l.end)] == offset
		if offset > l.end || !belongs && !(newest && offset > l.active().base) {
			if err := l.removeSnapshot(offset); err != nil {
				return err
			}
		}
	}
	return nil
}

// rebuildIndexes writes missing and damaged indexes again.
func (ld *loader) rebuildIndexes() error {
	for _, s := range ld.rebuild {
		if !slices.Contains(ld.segments, s) {
			continue
		}
		if err := ld.loadBase(s.base); err != nil {
			return err
		}
		ld.info.IndexesRebuilt++
		ld.env.Stats.IndexesRebuilt.Add(1)
		if _, err := ld.recoverSegment(s, true); err != nil {
			return err
		}
	}
	return nil
}
