package group

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// Settings are the broker's settings that groups obey. Times are in milliseconds.
type Settings struct {
	MinSessionMs, MaxSessionMs int64
	InitialDelayMs             int64 // group.initial.rebalance.delay.ms
	NewMemberJoinTimeout       int64 // a new member's join is given up after this
	MaxSize                    int   // members of a group
	OffsetMetadataMax          int   // UTF-16 units, as Kafka counts
	OffsetsRetentionMs         int64
	RetentionCheckMs           int64
	CommitTimeoutMs            int64 // offsets.commit.timeout.ms
}

// NewMemberJoinTimeoutMs is how long a new member's join may wait (D-157): such a member has no id yet and
// cannot send heartbeats.
const NewMemberJoinTimeoutMs = 5 * 60 * 1000

// Options is what a Core needs.
type Options struct {
	Settings func() Settings // as they are now
	// UUID makes the random part of a member id.
	UUID func() string
}

// Caller is who sends a request.
type Caller struct {
	Version  int16 // of the request
	ClientID string
	Host     string // as Kafka writes addresses: "/127.0.0.1"
}

// Record is one record to append.
type Record struct {
	Key   []byte
	Value []byte // nil is a tombstone
}

// Batch is records to append as one atomic batch (D-174). The driver says what became of it with Appended, once.
type Batch struct {
	ID      uint64
	Records []Record
}

// Note is something to log: one line per change of a group's state.
type Note struct {
	Warn bool
	Text string
	Args []any // keys and values, as slog has them
}

// NoDeadline means that nothing is waited for.
const NoDeadline int64 = 1<<63 - 1

// Effects is what a Core wants done, in this order.
type Effects struct {
	Batches  []Batch  // append them in order
	Replies  []func() // run them in order; they do not call the Core
	Notes    []Note
	Deadline int64 // when Tick is due, or NoDeadline
}

// Core is the groups and offsets of one partition of __consumer_offsets. Not safe for concurrent use.
type Core struct {
	o       Options
	groups  map[string]*classic
	foreign map[string]string // groups of other kinds in the log: id to type
	offsets offsets
	timers  timers

	nextID   uint64
	inFlight map[uint64]*pending
	expiry   timer // the next look for expired offsets
	unloaded bool

	batches []Batch
	replies []func()
	notes   []Note
	ignored map[int16]int // records of other kinds seen while loading
	tally   Tally
}

// New makes an empty Core. Replay what the log holds, then call Loaded.
func New(o Options) *Core {
	c := &Core{o: o, groups: map[string]*classic{}, foreign: map[string]string{}, inFlight: map[uint64]*pending{}, ignored: map[int16]int{}}
	c.offsets.init()
	c.expiry.fire = c.expire
	return c
}

// Effects hands over what has been decided since the last call.
func (c *Core) Effects() Effects {
	e := Effects{Batches: c.batches, Replies: c.replies, Notes: c.notes, Deadline: c.timers.next()}
	c.batches, c.replies, c.notes = nil, nil, nil
	return e
}

// Tick fires the timers that are due.
func (c *Core) Tick(now int64) {
	for {
		t := c.timers.due(now)
		if t == nil {
			return
		}
		t.fire(now)
	}
}

// pending is a batch on its way.
type pending struct {
	done    func(now int64, err error) // nil when nobody waits any more
	slots   []*slot                    // offsets the batch changes
	timeout timer
}

// errTimedOut: the batch is not committed within offsets.commit.timeout.ms. It may be yet.
var errTimedOut error = kerr.RequestTimedOut

// write queues a batch. done hears once whether it is committed; after errTimedOut the outcome still applies
// to offsets, but done does not hear of it.
func (c *Core) write(now int64, records []Record, done func(now int64, err error)) *pending {
	c.nextID++
	id := c.nextID
	p := &pending{done: done}
	p.timeout.fire = func(now int64) {
		if f := p.done; f != nil {
			p.done = nil
			f(now, errTimedOut)
		}
	}
	c.inFlight[id] = p
	c.timers.set(&p.timeout, now+c.o.Settings().CommitTimeoutMs)
	c.batches = append(c.batches, Batch{ID: id, Records: records})
	return p
}

// Appended tells what became of a batch: committed (nil), or never to be.
func (c *Core) Appended(now int64, id uint64, err error) {
	p := c.inFlight[id]
	if p == nil {
		return
	}
	delete(c.inFlight, id)
	c.timers.stop(&p.timeout)
	for _, s := range p.slots {
		c.offsets.settle(s, id, err == nil)
	}
	if f := p.done; f != nil {
		p.done = nil
		f(now, err)
	}
}

// lastID is the id of the batch written last.
func (c *Core) lastID() uint64 { return c.nextID }

// Unload answers everybody who waits with NOT_COORDINATOR; the Core is of no use afterwards, but late
// calls do no harm.
func (c *Core) Unload(now int64) {
	c.unloaded = true
	for _, g := range c.groups {
		for _, m := range g.members {
			g.answerJoin(c, m, JoinError(m.id, kerr.NotCoordinator))
			g.answerSync(c, m, SyncError(kerr.NotCoordinator))
		}
		g.tally = nil
		g.become(Dead)
	}
	c.tally.States = [Dead + 1]int{}
	for id, p := range c.inFlight {
		delete(c.inFlight, id)
		if f := p.done; f != nil {
			p.done = nil
			f(now, kerr.NotCoordinator)
		}
	}
	c.groups = map[string]*classic{}
	c.batches = nil
	c.timers = timers{}
}

// reply queues an answer.
func (c *Core) reply(f func()) { c.replies = append(c.replies, f) }

func (c *Core) note(text string, args ...any) {
	c.notes = append(c.notes, Note{Text: text, Args: args})
}
func (c *Core) warn(text string, args ...any) {
	c.notes = append(c.notes, Note{Warn: true, Text: text, Args: args})
}

// dissolve forgets a group whose creation could not be stored. Whoever waits in it hears why.
func (c *Core) dissolve(g *classic, err error) {
	for _, m := range g.members {
		g.answerJoin(c, m, JoinError("", err))
		g.answerSync(c, m, SyncError(err))
	}
	c.stopTimers(g)
	if c.groups[g.id] == g {
		c.displace(g.id)
	}
	g.become(Dead)
}

// stopTimers is for a group that goes away.
func (c *Core) stopTimers(g *classic) {
	c.timers.stop(&g.joinTimer)
	c.timers.stop(&g.syncTimer)
	for _, m := range g.members {
		c.timers.stop(&m.session)
	}
	for _, t := range g.pendingJoin {
		c.timers.stop(t)
	}
}

// add puts a new group in its place.
func (c *Core) add(now int64, id string) *classic {
	g := newClassic(id, now)
	c.hookTimers(g)
	c.place(g)
	c.wantExpiry(now)
	return g
}

// place puts a group where it is found by its id; displace takes it away.
func (c *Core) place(g *classic) {
	c.displace(g.id)
	c.groups[g.id] = g
	g.tally = &c.tally
	c.tally.States[g.state]++
}

func (c *Core) displace(id string) {
	if g := c.groups[id]; g != nil {
		c.tally.States[g.state]--
		g.tally = nil
		delete(c.groups, id)
	}
}

// Tally is how much a Core holds.
type Tally struct {
	States  [Dead + 1]int // groups by state
	Offsets int           // committed ones
}

// Groups is their number.
func (t Tally) Groups() (n int) {
	for _, k := range t.States {
		n += k
	}
	return n
}

// Tally is how much there is now.
func (c *Core) Tally() Tally {
	t := c.tally
	t.Offsets = c.offsets.n
	return t
}

// wantExpiry makes sure that expired offsets are looked for as long as there is a group.
func (c *Core) wantExpiry(now int64) {
	if !c.expiry.on() {
		c.timers.set(&c.expiry, now+c.o.Settings().RetentionCheckMs)
	}
}

// DeletedTopic is one incarnation of a name that is gone.
type DeletedTopic struct {
	Name string
	ID   model.TopicID
}
