package kraft

import (
	"slices"
	"sort"
)

// EpochStart is the first offset written by the leader of an epoch.
type EpochStart struct {
	Epoch int32
	Start int64
}

// SnapshotInfo is one snapshot on disk.
type SnapshotInfo struct {
	ID   SnapshotID
	Size int64
}

// LogState is the shape of a log as the driver found it at start.
type LogState struct {
	Start, End int64
	Epochs     []EpochStart   // ascending
	Snapshots  []SnapshotInfo // ascending
	// Control holds the version and voter records of the newest snapshot (at the snapshot's offset - 1, so -1 for the
	// bootstrap checkpoint) and of the log behind it, in order (K-80).
	Control []ControlRecord
}

// logView is what the core knows of its log: never the bytes, always the shape up to the end. Invariants:
// start <= durable <= end (durable may lag end), epochs strictly ascending in both fields, history ascending by offset.
type logView struct {
	start, end, durable int64
	epochs              []EpochStart
	snapshots           []SnapshotInfo
	versions            []versionAt
	voterSets           []votersAt
	static              VoterSet // in force while no record says otherwise (kraft.version 0)
}

type versionAt struct {
	offset int64
	level  int16
}

type votersAt struct {
	offset int64
	set    VoterSet
}

func newLogView(s LogState, static VoterSet) logView {
	l := logView{start: s.Start, end: s.End, durable: s.End, static: static,
		epochs: slices.Clone(s.Epochs), snapshots: slices.Clone(s.Snapshots)}
	for _, r := range s.Control {
		l.applyControl(r)
	}
	return l
}

func (l *logView) applyControl(r ControlRecord) {
	if r.KRaftVersion != nil {
		l.versions = append(l.versions, versionAt{r.Offset, *r.KRaftVersion})
	}
	if r.Voters != nil {
		l.voterSets = append(l.voterSets, votersAt{r.Offset, r.Voters})
	}
}

// append moves the end; the caller checked that b continues the log.
func (l *logView) append(b Batch) {
	if n := len(l.epochs); n == 0 || l.epochs[n-1].Epoch < b.Epoch {
		l.epochs = append(l.epochs, EpochStart{b.Epoch, b.Base})
	}
	for _, r := range b.Control {
		l.applyControl(r)
	}
	l.end = b.Last + 1
}

// beginEpoch notes that epoch starts at the end, before its first record is there (K-24).
func (l *logView) beginEpoch(epoch int32) {
	for n := len(l.epochs); n > 0 && l.epochs[n-1].Start >= l.end; n = len(l.epochs) {
		l.epochs = l.epochs[:n-1]
	}
	l.epochs = append(l.epochs, EpochStart{epoch, l.end})
}

func (l *logView) truncate(end int64) {
	l.end = end
	l.durable = min(l.durable, end)
	for n := len(l.epochs); n > 0 && l.epochs[n-1].Start >= end; n = len(l.epochs) {
		l.epochs = l.epochs[:n-1]
	}
	for n := len(l.versions); n > 0 && l.versions[n-1].offset >= end; n = len(l.versions) {
		l.versions = l.versions[:n-1]
	}
	for n := len(l.voterSets); n > 0 && l.voterSets[n-1].offset >= end; n = len(l.voterSets) {
		l.voterSets = l.voterSets[:n-1]
	}
}

// resetTo makes the log empty at a snapshot that replaced it (K-45).
func (l *logView) resetTo(s SnapshotInfo, version int16, voters VoterSet) {
	l.start, l.end, l.durable = s.ID.Offset, s.ID.Offset, s.ID.Offset
	l.epochs = nil
	l.snapshots = []SnapshotInfo{s}
	l.versions, l.voterSets = nil, nil
	if version > 0 {
		l.versions = []versionAt{{s.ID.Offset - 1, version}}
	}
	if voters != nil {
		l.voterSets = []votersAt{{s.ID.Offset - 1, voters}}
	}
}

func (l *logView) addSnapshot(s SnapshotInfo) {
	i := sort.Search(len(l.snapshots), func(i int) bool { return !l.snapshots[i].ID.Less(s.ID) })
	if i < len(l.snapshots) && l.snapshots[i].ID == s.ID {
		return
	}
	l.snapshots = slices.Insert(l.snapshots, i, s)
}

// advanceStart drops what lies before a retained snapshot (K-69); history older than it is folded into one entry each.
func (l *logView) advanceStart(start int64) {
	if start <= l.start {
		return
	}
	l.start = start
	l.snapshots = slices.DeleteFunc(l.snapshots, func(s SnapshotInfo) bool { return s.ID.Offset < start })
	for len(l.epochs) > 1 && l.epochs[1].Start <= start {
		l.epochs = l.epochs[1:]
	}
	if len(l.epochs) > 0 && l.epochs[0].Start < start {
		l.epochs = slices.Clone(l.epochs)
		l.epochs[0].Start = start
	}
	for len(l.versions) > 1 && l.versions[1].offset < start {
		l.versions = l.versions[1:]
	}
	for len(l.voterSets) > 1 && l.voterSets[1].offset < start {
		l.voterSets = l.voterSets[1:]
	}
}

func (l *logView) earliest() (SnapshotID, bool) {
	if len(l.snapshots) == 0 {
		return SnapshotID{}, false
	}
	return l.snapshots[0].ID, true
}

func (l *logView) latest() (SnapshotID, bool) {
	if len(l.snapshots) == 0 {
		return SnapshotID{}, false
	}
	return l.snapshots[len(l.snapshots)-1].ID, true
}

func (l *logView) findSnapshot(id SnapshotID) (SnapshotInfo, bool) {
	for _, s := range l.snapshots {
		if s.ID == id {
			return s, true
		}
	}
	return SnapshotInfo{}, false
}

// lastEpoch is the epoch of the last record; that of the snapshot the log begins at when it is empty, 0 with neither (K-71).
func (l *logView) lastEpoch() int32 {
	if n := len(l.epochs); n > 0 {
		return l.epochs[n-1].Epoch
	}
	if id, ok := l.latest(); ok && id.Offset == l.end {
		return id.Epoch
	}
	return 0
}

// endOfEpoch finds the largest epoch <= epoch and where it ends (K-72). Beyond the known epochs it is the log end.
func (l *logView) endOfEpoch(epoch int32) EpochEnd {
	n := len(l.epochs)
	if n > 0 && l.epochs[n-1].Epoch == epoch {
		return EpochEnd{epoch, l.end}
	}
	i := sort.Search(n, func(i int) bool { return l.epochs[i].Epoch > epoch })
	if i == n {
		return EpochEnd{l.lastEpoch(), l.end}
	}
	e := EpochEnd{epoch, l.epochs[i].Start}
	if i > 0 {
		e.Epoch = l.epochs[i-1].Epoch
	}
	if id, ok := l.earliest(); ok && e.End == id.Offset && e.Epoch == epoch {
		return EpochEnd{id.Epoch, id.Offset}
	}
	return e
}

// validate decides what a fetch from (offset, lastEpoch) gets: records, a diverging epoch, or a snapshot (K-53).
func (l *logView) validate(offset int64, lastEpoch int32) (*EpochEnd, *SnapshotID) {
	latest, any := l.latest()
	if offset == 0 && any && !latest.IsBootstrap() {
		return nil, &latest
	}
	if l.start == 0 && offset == 0 {
		return nil, nil
	}
	if first, ok := l.earliest(); ok &&
		(offset < l.start || offset == l.start && l.start == first.Offset && lastEpoch != first.Epoch || lastEpoch < first.Epoch) {
		return nil, &latest
	}
	end := l.endOfEpoch(lastEpoch)
	if end.Epoch != lastEpoch || end.End < offset {
		return &end, nil
	}
	return nil, nil
}

// truncationFor is where a log diverging at d has to be cut (K-54).
func (l *logView) truncationFor(d EpochEnd) int64 {
	if d.Epoch == 0 {
		return min(d.End, l.end)
	}
	own := l.endOfEpoch(d.Epoch)
	if own.Epoch == d.Epoch {
		return min(own.End, d.End)
	}
	return own.End
}

// voters is the set in force at the end of the log, committed or not (K-80).
func (l *logView) voters() VoterSet {
	if n := len(l.voterSets); n > 0 {
		return l.voterSets[n-1].set
	}
	return l.static
}

// votersOffset is the offset of the record that set it: -1 the bootstrap checkpoint; false: none, they come from configuration.
func (l *logView) votersOffset() (int64, bool) {
	if n := len(l.voterSets); n > 0 {
		return l.voterSets[n-1].offset, true
	}
	return 0, false
}

func (l *logView) version() int16 {
	if n := len(l.versions); n > 0 {
		return l.versions[n-1].level
	}
	return 0
}

// controlBefore gives the version and voters in force for a snapshot that ends before offset; nil voters when the log
// holds none.
func (l *logView) controlBefore(offset int64) (int16, VoterSet) {
	var level int16
	var set VoterSet
	for _, v := range l.versions {
		if v.offset < offset {
			level = v.level
		}
	}
	for _, v := range l.voterSets {
		if v.offset < offset {
			set = v.set
		}
	}
	return level, set
}
