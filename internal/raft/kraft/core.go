package kraft

import (
	"fmt"
	"math/rand/v2"
	"time"

	"samsa/internal/base/model"
)

// Config is what a Core knows of itself and of the cluster's settings.
type Config struct {
	Self ReplicaKey // Directory is never zero (K-07)
	// Controller: may become a voter, so it syncs before it acknowledges (K-50).
	Controller bool
	// Listener is the default controller listener: requests go to that endpoint of a voter (K-03).
	Listener     string
	Endpoints    Endpoints // own controller listeners
	Versions     VersionRange
	StaticVoters VoterSet
	Bootstrap    []Peer // where to look for a leader (K-30)

	ElectionTimeout       time.Duration
	FetchTimeout          time.Duration
	ElectionBackoffMax    time.Duration
	RequestTimeout        time.Duration
	RetryBackoff          time.Duration
	FetchMaxBytes         int32
	FetchSnapshotMaxBytes int32

	Rand *rand.Rand
}

const (
	fetchMaxWait      = 500 * time.Millisecond // K-12
	observerSession   = 300 * time.Second      // K-47
	checkQuorumFactor = 3                      // halves of the fetch timeout: 1.5 times (K-26)
)

// Core is one replica of the metadata log. See the package doc.
type Core struct {
	cfg Config
	now time.Time
	log logView

	role      Role
	epoch     int32
	leader    model.NodeID // -1 unknown
	endpoints Endpoints    // of leader
	voted     ReplicaKey   // in this epoch

	// hw is the high watermark as last heard or computed, -1 unknown since start. It never falls, and neither does floor, which
	// also counts what a snapshot proves committed: nothing below floor is ever truncated (K-74).
	hw, floor int64

	election time.Time // end of the election timeout; zero: none
	votes    ballot    // Prospective, Candidate
	follow   following // Follower
	lead     *leadership
	resigned resignation

	conns    map[model.NodeID]*conn
	nextCorr uint64
	parked   []parkedFetch

	shutdown   bool
	fx         []Effect
	dead       bool // a Fatal effect was given; nothing moves any more
	wantLeader bool // reportLeader has something to say
	reported   LeaderChange
}

// New loads a replica from its log and quorum-state (nil: no file). Its first effects write the state it starts in (K-13).
func New(cfg Config, log LogState, stored *QuorumState, now time.Time) *Core {
	c := &Core{cfg: cfg, now: now, log: newLogView(log, cfg.StaticVoters), leader: model.NoNode, voted: NoReplica,
		hw: -1, conns: map[model.NodeID]*conn{}, reported: LeaderChange{Leader: model.NoNode, Epoch: -1}}
	c.floor = c.log.start
	if id, ok := c.log.latest(); ok {
		c.floor = max(c.floor, id.Offset)
	}
	c.start(stored)
	c.step()
	return c
}

// start chooses the first state (K-13). One thing differs from Kafka: a node that stood in an epoch, lost, and followed the winner has stored both, its
// vote and the leader. Kafka makes it a candidate of that epoch again, whose own log may hold records of the epoch, so that
// its vote requests are invalid and kill it (K-39, K-32). Here a stored leader wins over the stored vote.
func (c *Core) start(stored *QuorumState) {
	s := QuorumState{Leader: model.NoNode, Voted: NoReplica}
	if stored != nil {
		s = *stored
	}
	me := c.cfg.Self
	switch last := c.log.lastEpoch(); {
	case s.Epoch < last:
		c.note(true, "stored quorum epoch is older than the log", "stored", s.Epoch, "log", last)
		c.become(Unattached, last, model.NoNode, nil, NoReplica)
		c.drawElection()
	case s.Leader == me.ID:
		c.become(Resigned, s.Epoch, me.ID, c.cfg.Endpoints, NoReplica)
		c.resigned = resignation{unacked: c.otherVoters()}
		c.drawElection()
	case s.Leader < 0 && s.Voted.ID == me.ID && (s.Voted.Directory.IsZero() || s.Voted.Directory == me.Directory):
		c.become(Candidate, s.Epoch, model.NoNode, nil, me)
		c.votes = newBallot(c.log.voters(), me)
		c.drawElection()
	case s.Leader >= 0:
		if v, ok := c.log.voters().Find(s.Leader); ok && len(v.Endpoints) > 0 {
			c.become(Follower, s.Epoch, s.Leader, v.Endpoints, s.Voted)
			c.follow = following{deadline: c.now.Add(c.cfg.FetchTimeout)}
		} else {
			c.become(Unattached, s.Epoch, s.Leader, nil, s.Voted)
			c.drawElection()
		}
	default:
		c.become(Unattached, s.Epoch, model.NoNode, nil, s.Voted)
		c.drawElection()
	}
	c.save()
	c.reportLeader()
	if c.isOnlyVoter() && c.role != Candidate {
		c.toProspective()
	} else if c.role == Candidate && c.votes.granted() {
		c.toLeader()
	}
}

// become sets the fields every role shares.
func (c *Core) become(r Role, epoch int32, leader model.NodeID, endpoints Endpoints, voted ReplicaKey) {
	c.role, c.epoch, c.leader, c.endpoints, c.voted = r, epoch, leader, endpoints, voted
}

// Role, Epoch and the like are views for the driver and for tests.
func (c *Core) Role() Role                 { return c.role }
func (c *Core) Epoch() int32               { return c.epoch }
func (c *Core) Leader() model.NodeID       { return c.leader }
func (c *Core) LeaderEndpoints() Endpoints { return c.endpoints }
func (c *Core) Voted() ReplicaKey          { return c.voted }
func (c *Core) LogEnd() int64              { return c.log.end }
func (c *Core) LogStart() int64            { return c.log.start }
func (c *Core) LastEpoch() int32           { return c.log.lastEpoch() }
func (c *Core) Voters() VoterSet           { return c.log.voters() }
func (c *Core) KRaftVersion() int16        { return c.log.version() }

// HighWatermark is the committed end; false while it is unknown.
func (c *Core) HighWatermark() (int64, bool) { return c.hw, c.hw >= 0 }

// Snapshots lists what is on disk, ascending.
func (c *Core) Snapshots() []SnapshotInfo { return c.log.snapshots }

// ControlBefore gives kraft.version and voters in force before offset, for a snapshot that ends there (K-80).
func (c *Core) ControlBefore(offset int64) (int16, VoterSet) { return c.log.controlBefore(offset) }

// Effects returns what is to be done since the last call, and forgets it.
func (c *Core) Effects() []Effect {
	if c.log.durable < c.log.end && c.mustSync() && !c.dead {
		c.emit(SyncLog{c.log.end})
	}
	fx := c.fx
	c.fx = nil
	return fx
}

// mustSync: brokers that cannot vote need not sync what they fetched (K-50).
func (c *Core) mustSync() bool { return c.cfg.Controller || c.isVoter() }

// Tick lets time pass.
func (c *Core) Tick(now time.Time) {
	c.at(now)
	c.step()
}

// Synced says that the log is durable up to end.
func (c *Core) Synced(now time.Time, end int64) {
	c.at(now)
	c.log.durable = max(c.log.durable, min(end, c.log.end))
	if c.role == Leader {
		c.advanceHighWatermark()
	}
	c.step()
}

// Append adds data batches of this leadership. They must continue the log and carry its epoch; anything else is the
// caller's bug, except an older epoch: leadership may have gone meanwhile, and the batches are dropped.
func (c *Core) Append(now time.Time, epoch int32, batches []Batch) error {
	c.at(now)
	if c.role != Leader || epoch != c.epoch {
		return ErrNotLeader
	}
	next := c.log.end
	for _, b := range batches {
		if b.Base != next || b.Last < b.Base || b.Epoch != epoch {
			return fmt.Errorf("batch %d-%d of epoch %d does not continue the log at %d in epoch %d", b.Base, b.Last, b.Epoch, next, epoch)
		}
		next = b.Last + 1
	}
	c.appendOwn(batches)
	c.step()
	return nil
}

// SnapshotFrozen says that this node finished a snapshot of its own.
func (c *Core) SnapshotFrozen(s SnapshotInfo) { c.log.addSnapshot(s) }

// StartAdvanced says that the log now begins at start, a retained snapshot's offset, and that older snapshots are gone (K-69).
func (c *Core) StartAdvanced(start int64) {
	c.log.advanceStart(start)
	c.floor = max(c.floor, start)
}

// Resign gives up leadership of epoch (K-128).
func (c *Core) Resign(now time.Time, epoch int32) {
	c.at(now)
	if c.role == Leader && c.epoch == epoch {
		c.toResigned("the controller gave up")
	}
	c.step()
}

// Shutdown begins a graceful end: a leader resigns, nobody starts an election any more (K-34).
func (c *Core) Shutdown(now time.Time) {
	c.at(now)
	c.shutdown = true
	c.step()
}

// ShutdownComplete: nothing is left that the quorum needs from this node (K-34).
func (c *Core) ShutdownComplete() bool {
	if !c.shutdown {
		return false
	}
	switch {
	case c.role == Leader:
		return false
	case !c.isVoter() || c.isOnlyVoter() || c.leader >= 0 && c.leader != c.cfg.Self.ID:
		return true
	}
	return c.role == Resigned && len(c.resigned.unacked) == 0
}

func (c *Core) at(now time.Time) {
	if now.After(c.now) {
		c.now = now
	}
}

func (c *Core) emit(e Effect) {
	if c.dead {
		return
	}
	// Saves between which nothing leaves this node are one: the last state, where the first one stood. A single voter's way to
	// leadership, or a new epoch and the vote in it, cost one write.
	if s, ok := e.(SaveState); ok {
		for i := len(c.fx) - 1; i >= 0; i-- {
			switch c.fx[i].(type) {
			case Note, LeaderChange:
				continue
			case SaveState:
				c.fx[i] = s
				return
			}
			break
		}
	}
	c.fx = append(c.fx, e)
}

func (c *Core) note(warn bool, text string, args ...any) { c.emit(Note{warn, text, args}) }

func (c *Core) fatal(format string, args ...any) {
	c.emit(Fatal{fmt.Errorf(format, args...)})
	c.dead = true
}

// save writes the state; always before the change shows anywhere (K-14).
func (c *Core) save() {
	s := QuorumState{Epoch: c.epoch, Leader: c.leader, Voted: c.voted}
	if c.log.version() > 0 {
		s.Version = 1
	} else {
		s.Voters = c.log.voters().IDs()
		s.Voted.Directory = model.DirectoryID{} // version 0 has no place for it (K-61)
	}
	c.emit(SaveState{s})
}

func (c *Core) reportLeader() {
	l := LeaderChange{Leader: c.leader, Epoch: c.epoch, EpochStart: -1}
	if c.role == Leader {
		l.EpochStart = c.lead.start
	}
	if c.role == Resigned { // the epoch is over, but no other one has begun (K-25)
		l.Leader = model.NoNode
	}
	if l != c.reported {
		c.reported = l
		c.emit(l)
	}
}

func (c *Core) isVoter() bool     { return c.log.voters().IsVoter(c.cfg.Self) }
func (c *Core) isOnlyVoter() bool { return c.log.voters().IsOnlyVoter(c.cfg.Self) }

func (c *Core) otherVoters() map[model.NodeID]bool {
	m := map[model.NodeID]bool{}
	for _, v := range c.log.voters() {
		if v.ID != c.cfg.Self.ID {
			m[v.ID] = true
		}
	}
	return m
}

func (c *Core) drawElection() {
	c.election = time.Time{}
	if c.isVoter() {
		c.election = c.now.Add(c.randomElectionTimeout())
	}
}

func (c *Core) randomElectionTimeout() time.Duration {
	t := c.cfg.ElectionTimeout
	if t <= 0 {
		return 0
	}
	return t + time.Duration(c.cfg.Rand.Int64N(int64(t)))
}

func (c *Core) expired(t time.Time) bool { return !t.IsZero() && !c.now.Before(t) }

// ValidSnapshot reports whether id names a place in this log: the record before id.Offset is of id.Epoch (K-67).
func (c *Core) ValidSnapshot(id SnapshotID) bool {
	if id.Offset <= c.log.start || id.Offset > c.log.end {
		return false
	}
	epoch := int32(-1)
	for _, e := range c.log.epochs {
		if e.Start < id.Offset {
			epoch = e.Epoch
		}
	}
	return epoch == id.Epoch
}
