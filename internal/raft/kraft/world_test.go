package kraft

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"samsa/internal/base/model"
)

// world runs several cores in one process: a virtual clock, a network and disks that obey a seed, and a judge that looks at every effect.
type world struct {
	now     time.Time
	rng     *rand.Rand
	members []*member
	queue   eventQueue
	seq     int
	judge   *judge

	delay func(from, to model.NodeID) (time.Duration, bool) // false: lost
	slow  func() time.Duration                              // of an fsync
	trace func(format string, args ...any)
	// mutations of the promises a driver makes, to see that the judge notices
	forgetVotes, skipSync bool

	snapshots map[SnapshotID]simSnapshot
}

type simSnapshot struct {
	version int16
	voters  VoterSet
	data    []byte
}

type member struct {
	key        ReplicaKey
	cfg        Config
	core       *Core
	disk       disk
	up         bool
	life       int // incarnation
	nextToken  uint64
	tokens     map[uint64]origin
	part       []byte
	fatal      error
	leaderSeen LeaderChange
}

type origin struct {
	from *member
	life int
	corr uint64
	sink func(any)
}

// disk survives crashes: quorum-state and snapshots always, batches up to synced, and perhaps more.
type disk struct {
	state   *QuorumState
	start   int64
	batches []Batch
	synced  int
	snaps   []SnapshotInfo
}

func (d *disk) end() int64 {
	if n := len(d.batches); n > 0 {
		return d.batches[n-1].Last + 1
	}
	return d.start
}

// behindSnapshot is what a driver does at start when the newest snapshot is beyond the log (K-71).
func (d *disk) behindSnapshot() {
	if len(d.snaps) == 0 {
		return
	}
	newest := d.snaps[len(d.snaps)-1]
	last := int32(0)
	if n := len(d.batches); n > 0 {
		last = d.batches[n-1].Epoch
	}
	if newest.ID.Epoch > last || newest.ID.Epoch == last && newest.ID.Offset > d.end() {
		d.start, d.batches, d.synced, d.snaps = newest.ID.Offset, nil, 0, []SnapshotInfo{newest}
	}
}

func (d *disk) state0(snaps map[SnapshotID]simSnapshot) LogState {
	s := LogState{Start: d.start, End: d.end(), Snapshots: slices.Clone(d.snaps)}
	from := int64(-1)
	if n := len(d.snaps); n > 0 {
		id := d.snaps[n-1].ID
		snap := snaps[id]
		if snap.version > 0 {
			s.Control = append(s.Control, ControlRecord{Offset: id.Offset - 1, KRaftVersion: &snap.version})
		}
		if snap.voters != nil {
			s.Control = append(s.Control, ControlRecord{Offset: id.Offset - 1, Voters: snap.voters})
		}
		from = id.Offset
	}
	for _, b := range d.batches {
		if n := len(s.Epochs); n == 0 || s.Epochs[n-1].Epoch < b.Epoch {
			s.Epochs = append(s.Epochs, EpochStart{b.Epoch, b.Base})
		}
		if b.Base >= from {
			s.Control = append(s.Control, b.Control...)
		}
	}
	return s
}

type event struct {
	at  time.Time
	seq int
	do  func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

var epoch0 = time.Unix(1_700_000_000, 0)

func newWorld(seed uint64) *world {
	w := &world{now: epoch0, rng: rand.New(rand.NewPCG(seed, 1)), judge: newJudge(), snapshots: map[SnapshotID]simSnapshot{}}
	w.delay = func(_, _ model.NodeID) (time.Duration, bool) { return time.Millisecond, true }
	w.slow = func() time.Duration { return 0 }
	w.trace = func(string, ...any) {}
	return w
}

func dirOf(id model.NodeID) model.DirectoryID { return model.DirectoryID{0: byte(id), 15: 200} }

func testVoter(id model.NodeID) Voter {
	return Voter{ReplicaKey: ReplicaKey{id, dirOf(id)}, Versions: VersionRange{0, 1},
		Endpoints: Endpoints{{Name: "CONTROLLER", Host: fmt.Sprintf("n%d", id), Port: 9093}}}
}

func testConfig(w *world, id model.NodeID, static VoterSet) Config {
	c := Config{Self: ReplicaKey{id, dirOf(id)}, Controller: true, Listener: "CONTROLLER", Endpoints: testVoter(id).Endpoints,
		Versions: VersionRange{0, 1}, StaticVoters: static,
		ElectionTimeout: time.Second, FetchTimeout: 2 * time.Second, ElectionBackoffMax: time.Second,
		RequestTimeout: 2 * time.Second, RetryBackoff: 20 * time.Millisecond,
		FetchMaxBytes: 1 << 20, FetchSnapshotMaxBytes: 10, Rand: w.rng}
	return c
}

// addVoters makes n voters. With kraft.version 1 each disk holds the same bootstrap checkpoint.
func (w *world) addVoters(n int, version int16) {
	var all []Voter
	for id := model.NodeID(1); id <= model.NodeID(n); id++ {
		all = append(all, testVoter(id))
	}
	set, _ := NewVoterSet(all...)
	static := set
	if version > 0 {
		static = nil
		w.snapshots[BootstrapSnapshotID] = simSnapshot{version: version, voters: set}
	} else {
		for i := range static {
			static[i].Directory = model.DirectoryID{}
		}
	}
	for id := model.NodeID(1); id <= model.NodeID(n); id++ {
		w.addMember(id, static, version)
	}
	for _, m := range w.members {
		for _, v := range set {
			m.cfg.Bootstrap = append(m.cfg.Bootstrap, Peer{ID: v.ID, Host: v.Endpoints[0].Host, Port: 9093})
		}
	}
	w.judge.voters = set
}

func (w *world) addMember(id model.NodeID, static VoterSet, version int16) *member {
	m := &member{key: ReplicaKey{id, dirOf(id)}, cfg: testConfig(w, id, static)}
	if version > 0 {
		m.disk.snaps = []SnapshotInfo{{ID: BootstrapSnapshotID, Size: 30}}
	}
	w.members = append(w.members, m)
	return m
}

func (w *world) member(id model.NodeID) *member {
	for _, m := range w.members {
		if m.key.ID == id {
			return m
		}
	}
	return nil
}

func (w *world) at(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now.Add(d), w.seq, do})
}

func (w *world) start(m *member) {
	m.up, m.life = true, m.life+1
	m.tokens = map[uint64]origin{}
	m.part = nil
	m.disk.behindSnapshot()
	m.core = New(m.cfg, m.disk.state0(w.snapshots), m.disk.state, w.now)
	w.judge.restarted(m)
	w.effects(m)
}

// crash loses what was not synced, except for a random prefix of it.
func (w *world) crash(m *member) {
	if !m.up {
		return
	}
	m.up = false
	lost := len(m.disk.batches) - m.disk.synced
	keep := m.disk.synced
	if lost > 0 {
		keep += w.rng.IntN(lost + 1)
	}
	m.disk.batches = m.disk.batches[:keep]
	m.disk.synced = keep
}

// run lets d pass.
func (w *world) run(d time.Duration) {
	until := w.now.Add(d)
	for {
		next := until
		if len(w.queue) > 0 && w.queue[0].at.Before(next) {
			next = w.queue[0].at
		}
		for _, m := range w.members {
			if m.up {
				if t := m.core.Deadline(); !t.IsZero() && t.Before(next) {
					next = t
				}
			}
		}
		if next.After(w.now) {
			w.now = next
		}
		for _, m := range w.members {
			if m.up {
				if t := m.core.Deadline(); !t.IsZero() && !t.After(w.now) {
					m.core.Tick(w.now)
					w.effects(m)
				}
			}
		}
		for len(w.queue) > 0 && !w.queue[0].at.After(w.now) {
			heap.Pop(&w.queue).(event).do()
			if w.judge.err != nil {
				return
			}
		}
		if w.judge.err != nil || !w.now.Before(until) {
			return
		}
	}
}

func (w *world) effects(m *member) {
	for m.up {
		fx := m.core.Effects()
		if len(fx) == 0 {
			return
		}
		for _, e := range fx {
			if !m.up {
				return
			}
			w.effect(m, e)
			w.judge.look(w, m)
		}
	}
}

func (w *world) effect(m *member, e Effect) {
	d := &m.disk
	switch e := e.(type) {
	case SaveState:
		if !w.forgetVotes {
			s := e.State
			d.state = &s
		}
		w.judge.saved(m, e.State)
		w.trace("n%d: save epoch=%d leader=%d voted=%v version=%d", m.key.ID, e.State.Epoch, e.State.Leader, e.State.Voted.ID, e.State.Version)
	case AppendLog:
		for _, b := range e.Batches {
			if b.Base != d.end() {
				w.judge.fail("n%d appends %d at %d", m.key.ID, b.Base, d.end())
			}
			d.batches = append(d.batches, b)
		}
		first, last := e.Batches[0], e.Batches[len(e.Batches)-1]
		w.trace("n%d: append %d-%d epoch=%d", m.key.ID, first.Base, last.Last, last.Epoch)
	case TruncateLog:
		for n := len(d.batches); n > 0 && d.batches[n-1].Last >= e.End; n-- {
			if d.batches[n-1].Base < e.End {
				w.judge.fail("n%d truncates inside a batch", m.key.ID)
			}
			d.batches = d.batches[:n-1]
		}
		d.synced = min(d.synced, len(d.batches))
		w.trace("n%d: truncate to %d", m.key.ID, e.End)
	case SyncLog:
		n, life, end := len(d.batches), m.life, e.End
		done := func() {
			if !m.up || m.life != life {
				return
			}
			if !w.skipSync && n <= len(m.disk.batches) {
				m.disk.synced = max(m.disk.synced, n)
			}
			m.core.Synced(w.now, min(end, m.disk.end()))
			w.effects(m)
		}
		if t := w.slow(); t > 0 {
			w.at(t, done)
			return
		}
		done()
	case Send:
		w.send(m, e)
	case Reply:
		w.reply(m, e)
	case WriteSnapshot:
		if e.Position == 0 {
			m.part = nil
		}
		m.part = append(m.part, e.Bytes...)
		w.trace("n%d: snapshot %d-%d position %d +%d", m.key.ID, e.ID.Offset, e.ID.Epoch, e.Position, len(e.Bytes))
	case InstallSnapshot:
		snap := w.snapshots[e.ID]
		if !bytes.Equal(snap.data, m.part) {
			w.judge.fail("n%d installs a snapshot of %d bytes, want %d", m.key.ID, len(m.part), len(snap.data))
		}
		info := SnapshotInfo{ID: e.ID, Size: int64(len(m.part))}
		d.snaps, d.start, d.batches, d.synced = []SnapshotInfo{info}, e.ID.Offset, nil, 0
		m.part = nil
		w.trace("n%d: install snapshot %d-%d", m.key.ID, e.ID.Offset, e.ID.Epoch)
		m.core.Installed(w.now, info, snap.version, snap.voters)
	case DropSnapshot:
		m.part = nil
	case HighWatermark:
		w.judge.committed(w, m, e.Offset)
		w.trace("n%d: high watermark %d", m.key.ID, e.Offset)
	case LeaderChange:
		m.leaderSeen = e
		w.trace("n%d: leader of epoch %d is %d", m.key.ID, e.Epoch, e.Leader)
	case Note:
		w.trace("n%d: %s%s", m.key.ID, strings.TrimPrefix(e.Text, "raft: "), noteArgs(e.Args))
	case Fatal:
		m.fatal = e.Err
		m.up = false
		w.judge.fatal(m, e.Err)
		w.trace("n%d: FATAL %v", m.key.ID, e.Err)
	}
}

func noteArgs(args []any) string {
	var b strings.Builder
	for i := 0; i+1 < len(args); i += 2 {
		v := args[i+1]
		if k, ok := v.(ReplicaKey); ok {
			v = k.ID // directories are long
		}
		fmt.Fprintf(&b, " %v=%v", args[i], v)
	}
	return b.String()
}

func (w *world) send(m *member, e Send) {
	var to *member
	for _, x := range w.members {
		if fmt.Sprintf("n%d", x.key.ID) == e.To.Host {
			to = x
		}
	}
	w.trace("n%d -> %s: %s", m.key.ID, e.To.Host, describeMessage(e.Message))
	if to == nil {
		return // nobody lives there
	}
	delay, ok := w.delay(m.key.ID, to.key.ID)
	if !ok {
		return
	}
	life := m.life
	w.at(delay, func() {
		if to.up {
			to.nextToken++
			to.tokens[to.nextToken] = origin{from: m, life: life, corr: e.Correlation}
			to.core.Request(w.now, to.nextToken, e.Message)
			w.effects(to)
		}
	})
}

func (w *world) reply(m *member, e Reply) {
	o := m.tokens[e.Token]
	delete(m.tokens, e.Token)
	msg := e.Message
	if e.Read != nil {
		r := *e.Message.(*FetchResponse)
		for _, b := range m.disk.batches {
			if b.Base >= e.Read.Offset && len(r.Batches) < 4 {
				r.Batches = append(r.Batches, b)
			}
		}
		msg = &r
	}
	if e.ReadSnapshot != nil {
		r := *e.Message.(*FetchSnapshotResponse)
		data := w.snapshots[e.ReadSnapshot.ID].data
		end := min(e.ReadSnapshot.Position+int64(e.ReadSnapshot.MaxBytes), int64(len(data)))
		r.Bytes = data[e.ReadSnapshot.Position:end]
		msg = &r
	}
	if o.sink != nil {
		o.sink(msg)
		return
	}
	if o.from == nil {
		return
	}
	w.trace("n%d -> n%d: %s", m.key.ID, o.from.key.ID, describeMessage(msg))
	delay, ok := w.delay(m.key.ID, o.from.key.ID)
	if !ok {
		return
	}
	w.at(delay, func() {
		if o.from.up && o.from.life == o.life {
			o.from.core.Response(w.now, m.key.ID, o.corr, msg)
			w.effects(o.from)
		}
	})
}

// ask sends one raw request to a member and gives the answer to sink when it comes.
func (w *world) ask(m *member, message any, sink func(any)) {
	m.nextToken++
	m.tokens[m.nextToken] = origin{sink: sink}
	m.core.Request(w.now, m.nextToken, message)
	w.effects(m)
}

func (w *world) leader() *member {
	var best *member
	for _, m := range w.members {
		if m.up && m.core.Role() == Leader && (best == nil || m.core.Epoch() > best.core.Epoch()) {
			best = m
		}
	}
	return best
}

// propose appends count records in one batch to a leader.
func (w *world) propose(m *member, count int) {
	w.seq++
	base := m.core.LogEnd()
	b := Batch{Base: base, Last: base + int64(count) - 1, Epoch: m.core.Epoch(), Data: fmt.Appendf(nil, "%d", w.seq)}
	if err := m.core.Append(w.now, m.core.Epoch(), []Batch{b}); err != nil {
		w.judge.fail("append to leader n%d: %v", m.key.ID, err)
	}
	w.effects(m)
}

// snapshot lets a member write a snapshot at its high watermark and, with clean, drop the log before it.
func (w *world) snapshot(m *member, clean bool) bool {
	hw, ok := m.core.HighWatermark()
	if !ok || hw <= m.core.LogStart() {
		return false
	}
	epoch := int32(-1)
	for _, b := range m.disk.batches {
		if b.Last+1 == hw {
			epoch = b.Epoch
		}
	}
	id := SnapshotID{hw, epoch}
	if epoch < 0 || !m.core.ValidSnapshot(id) || m.core.Snapshots() != nil && slices.ContainsFunc(m.core.Snapshots(), func(s SnapshotInfo) bool { return s.ID == id }) {
		return false
	}
	version, voters := m.core.ControlBefore(hw)
	data := fmt.Appendf(nil, "%020d-%010d", hw, epoch)
	w.snapshots[id] = simSnapshot{version, voters, data}
	info := SnapshotInfo{ID: id, Size: int64(len(data))}
	m.disk.snaps = append(m.disk.snaps, info)
	m.core.SnapshotFrozen(info)
	if !clean {
		return true
	}
	m.disk.snaps = []SnapshotInfo{info}
	n := 0
	for n < len(m.disk.batches) && m.disk.batches[n].Last < hw {
		n++
	}
	m.disk.batches = slices.Clone(m.disk.batches[n:])
	m.disk.synced = max(0, m.disk.synced-n)
	m.disk.start = hw
	m.core.StartAdvanced(hw)
	return true
}

func describeMessage(m any) string {
	status := func(s Status) string {
		if s.TopLevel != 0 {
			return fmt.Sprintf("top-level error=%d", s.TopLevel)
		}
		return fmt.Sprintf("error=%d epoch=%d leader=%d", s.Error, s.Epoch, s.Leader)
	}
	switch m := m.(type) {
	case *VoteRequest:
		kind := "Vote"
		if m.PreVote {
			kind = "PreVote"
		}
		return fmt.Sprintf("%s candidate=%d epoch=%d log=%d/%d", kind, m.Candidate.ID, m.Epoch, m.LastEpoch, m.LastEnd)
	case *VoteResponse:
		return fmt.Sprintf("VoteResponse %s granted=%t", status(m.Status), m.Granted)
	case *BeginQuorumEpochRequest:
		return fmt.Sprintf("BeginQuorumEpoch leader=%d epoch=%d", m.Leader, m.Epoch)
	case *BeginQuorumEpochResponse:
		return "BeginQuorumEpochResponse " + status(m.Status)
	case *EndQuorumEpochRequest:
		return fmt.Sprintf("EndQuorumEpoch leader=%d epoch=%d preferred=%v", m.Leader, m.Epoch, ids(m.Preferred))
	case *EndQuorumEpochResponse:
		return "EndQuorumEpochResponse " + status(m.Status)
	case *FetchRequest:
		return fmt.Sprintf("Fetch epoch=%d offset=%d lastEpoch=%d hw=%d", m.Epoch, m.Offset, m.LastEpoch, m.HighWatermark)
	case *FetchResponse:
		s := "FetchResponse " + status(m.Status) + fmt.Sprintf(" hw=%d", m.HighWatermark)
		if m.Diverging != nil {
			s += fmt.Sprintf(" diverging=%d/%d", m.Diverging.Epoch, m.Diverging.End)
		}
		if m.Snapshot != nil {
			s += fmt.Sprintf(" snapshot=%d-%d", m.Snapshot.Offset, m.Snapshot.Epoch)
		}
		if n := len(m.Batches); n > 0 {
			s += fmt.Sprintf(" records=%d-%d", m.Batches[0].Base, m.Batches[n-1].Last)
		}
		return s
	case *FetchSnapshotRequest:
		return fmt.Sprintf("FetchSnapshot %d-%d position=%d", m.ID.Offset, m.ID.Epoch, m.Position)
	case *FetchSnapshotResponse:
		return fmt.Sprintf("FetchSnapshotResponse %s position=%d/%d bytes=%d", status(m.Status), m.Position, m.Size, len(m.Bytes))
	}
	return fmt.Sprintf("%T", m)
}

func ids(keys []ReplicaKey) []model.NodeID {
	out := []model.NodeID{}
	for _, k := range keys {
		out = append(out, k.ID)
	}
	return out
}
