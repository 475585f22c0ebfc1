package partition

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// Settings are the live settings a Core goes by.
type Settings struct {
	MinISR   int   // min.insync.replicas of the topic
	MaxLagMs int64 // replica.lag.time.max.ms
}

// Core is the role of one replica. Owned by one goroutine at a time (replica/manager: the replica's mutex).
type Core struct {
	self     model.NodeID
	settings Settings

	applied bool // some metadata has been applied
	leader  bool
	reg     Registration
	// log
	logStart, high, logEnd int64
	// leader only
	epochStart int64 // log end when this leader epoch began
	followers  []Follower
	pending    *Proposal
}

// New makes the core of a replica whose log has the bounds given.
func New(self model.NodeID, s Settings, logStart, high, logEnd int64) *Core {
	c := &Core{self: self, settings: s}
	c.reg.Leader, c.reg.LeaderEpoch, c.reg.Epoch = model.NoNode, model.NoEpoch, -1
	c.SetLog(logStart, high, logEnd)
	return c
}

// SetSettings takes new settings; the caller calls Recheck afterwards.
func (c *Core) SetSettings(s Settings) { c.settings = s }

// SetLog tells the bounds of the log after it was opened, truncated or swapped. The high watermark is held between them.
func (c *Core) SetLog(logStart, high, logEnd int64) {
	c.logStart, c.logEnd = logStart, logEnd
	c.high = min(max(high, logStart), logEnd)
}

// IsLeader tells whether this replica leads.
func (c *Core) IsLeader() bool { return c.leader }

// Registration is the metadata applied last, with what an answered proposal has changed since.
func (c *Core) Registration() Registration { return c.reg }

// HighWatermark is the current high watermark.
func (c *Core) HighWatermark() int64 { return c.high }

// LogEnd is the log end offset last told.
func (c *Core) LogEnd() int64 { return c.logEnd }

// EpochStart is where the current leadership began; -1 for a follower.
func (c *Core) EpochStart() int64 {
	if !c.leader {
		return -1
	}
	return c.epochStart
}

// Change is what Apply decided.
type Change struct {
	// Stale: older than what is known; nothing was changed (D-148).
	Stale bool
	// Elected: this replica began to lead. NewEpoch: the leader epoch rose, whoever leads.
	Elected, NewEpoch bool
	// Resigned: it led before and does not now: waiting produces fail, NOT_LEADER_OR_FOLLOWER.
	Resigned bool
	// AssignEpoch: the log must note that the new leader epoch starts at its end (D-135) before anything is
	// appended. Always with NewEpoch when leading.
	AssignEpoch bool
	// HighMoved: the high watermark moved (the in-sync set became smaller).
	HighMoved bool
}

// Apply takes a partition's metadata. Equal partition epochs are taken too: an answered proposal may have raised
// the epoch before the log of metadata did.
func (c *Core) Apply(nowMs int64, reg Registration, b Brokers) Change {
	if c.applied && (reg.Epoch < c.reg.Epoch || reg.LeaderEpoch < c.reg.LeaderEpoch) {
		return Change{Stale: true}
	}
	var ch Change
	was := c.leader
	ch.NewEpoch = !c.applied || reg.LeaderEpoch > c.reg.LeaderEpoch
	// A proposal made at this very epoch may still be accepted: what it adds goes on counting. (Kafka forgets it here, when
	// the metadata of the last change comes after the answer to it and after the next proposal.)
	if p := c.pending; p != nil && (ch.NewEpoch || p.Epoch != reg.Epoch) {
		c.pending = nil
	}
	c.applied = true
	c.leader = reg.Leader == c.self
	c.reg = reg
	if !c.leader {
		c.pending = nil
		ch.Resigned = was
		c.followers = nil
		return ch
	}
	c.reg.Recovering = false // taken note of: the next proposal says RECOVERED
	ch.Elected = !was
	if ch.NewEpoch || ch.Elected {
		c.epochStart = c.logEnd
		ch.AssignEpoch = true
	}
	c.keepFollowers(nowMs, ch.NewEpoch || ch.Elected, ch.Elected)
	ch.HighMoved = c.advance(nowMs, b)
	return ch
}

// keepFollowers makes the followers those of the registration.
func (c *Core) keepFollowers(nowMs int64, reset, newLeader bool) {
	kept := c.followers[:0:0]
	for _, id := range c.reg.Replicas {
		if id == c.self {
			continue
		}
		inISR := contains(c.reg.ISR, id)
		old := c.follower(id)
		f := Follower{ID: id}
		switch {
		case old == nil:
			f.reset(nowMs, c.logEnd, true, inISR)
		case reset:
			f = *old
			f.reset(nowMs, c.logEnd, newLeader, inISR)
		default:
			f = *old
			if f.inISR && !inISR {
				f.caughtUpMs = never // it must come to the log end again before the watermark waits for it (J-191)
			}
			f.inISR = inISR
		}
		kept = append(kept, f)
	}
	c.followers = kept
}

func (c *Core) follower(id model.NodeID) *Follower {
	for i := range c.followers {
		if c.followers[i].ID == id {
			return &c.followers[i]
		}
	}
	return nil
}

// CheckEpoch compares a request's leader epoch with ours; -1 skips (D-121).
func (c *Core) CheckEpoch(epoch model.LeaderEpoch) error {
	switch {
	case epoch == model.NoEpoch:
		return nil
	case epoch < c.reg.LeaderEpoch:
		return kerr.FencedLeaderEpoch
	case epoch > c.reg.LeaderEpoch:
		return kerr.UnknownLeaderEpoch
	}
	return nil
}

// effectiveMinISR is min.insync.replicas, never more than there are replicas (D-13).
func (c *Core) effectiveMinISR() int { return min(c.settings.MinISR, len(c.reg.Replicas)) }

// UnderMinISR tells whether the committed in-sync set is smaller than it must be.
func (c *Core) UnderMinISR() bool { return len(c.reg.ISR) < c.effectiveMinISR() }

// MayAppend tells whether a write with these acks is taken: NOT_LEADER_OR_FOLLOWER, or for acks -1
// NOT_ENOUGH_REPLICAS, before a byte is written (D-13).
func (c *Core) MayAppend(acks int16) error {
	if !c.leader {
		return kerr.NotLeaderOrFollower
	}
	if acks == -1 && c.UnderMinISR() {
		return kerr.NotEnoughReplicas
	}
	return nil
}

// Appended tells a leader its new log end; true when the high watermark moved. Two appends may be told in the other
// order than they were made.
func (c *Core) Appended(nowMs, logEnd int64, b Brokers) bool {
	c.logEnd = max(c.logEnd, logEnd)
	return c.leader && c.advance(nowMs, b)
}

// Recheck looks at the high watermark again, after settings or brokers changed.
func (c *Core) Recheck(nowMs int64, b Brokers) bool { return c.leader && c.advance(nowMs, b) }

// LogStarted tells the log start, raised by DeleteRecords or retention.
func (c *Core) LogStarted(start int64) {
	c.logStart = start
	c.high = max(c.high, start)
}

// FollowerAppended tells a follower what it has and what its leader said; returns its high watermark (D-139).
func (c *Core) FollowerAppended(leaderHigh, logStart, logEnd int64) int64 {
	c.logStart, c.logEnd = logStart, logEnd
	c.high = max(min(leaderHigh, logEnd), logStart)
	return c.high
}

// advance moves the high watermark as far as it may go (D-147).
func (c *Core) advance(nowMs int64, b Brokers) bool {
	if c.UnderMinISR() {
		return false // D-31
	}
	high := c.logEnd
	for i := range c.followers {
		f := &c.followers[i]
		if f.LogEnd < high && (f.inISR || c.pending.adds(f.ID) || c.wantsIn(f, nowMs, b)) {
			high = f.LogEnd
		}
	}
	if high <= c.high {
		return false
	}
	c.high = high
	return true
}

// wantsIn: outside the in-sync set, but close behind and allowed in: worth waiting for.
func (c *Core) wantsIn(f *Follower, nowMs int64, b Brokers) bool {
	return f.caughtUp(c.logEnd, nowMs, c.settings.MaxLagMs) && eligible(f, b)
}

// eligible: alive, not shutting down, and the same incarnation that fetches (D-145).
func eligible(f *Follower, b Brokers) bool {
	if !f.known || b == nil {
		return false
	}
	epoch, _, mayJoin := b.Broker(f.ID)
	return mayJoin && (f.Epoch == -1 || f.Epoch == epoch)
}

// Acked tells how a write that ended before offset stands, for a waiting produce with acks -1 (D-27, D-28).
func (c *Core) Acked(offset int64) (done bool, err error) {
	switch {
	case !c.leader:
		return true, kerr.NotLeaderOrFollower
	case c.high < offset:
		return false, nil
	case c.maximalISR() < c.effectiveMinISR():
		return true, kerr.NotEnoughReplicasAfterAppend
	}
	return true, nil
}

func (c *Core) maximalISR() int {
	n := len(c.reg.ISR)
	if c.pending != nil && c.pending.Added != model.NoNode {
		n++
	}
	return n
}

// LowWatermark is the least log start of the live replicas: what DeleteRecords waits for (D-78).
func (c *Core) LowWatermark(b Brokers) int64 {
	low := c.logStart
	for i := range c.followers {
		f := &c.followers[i]
		if f.LogStart >= low || b == nil {
			continue
		}
		if _, alive, _ := b.Broker(f.ID); alive {
			low = f.LogStart
		}
	}
	return low
}

// UnderReplicated tells whether a leader misses replicas in its in-sync set.
func (c *Core) UnderReplicated() bool { return c.leader && len(c.reg.ISR) < len(c.reg.Replicas) }

// AtMinISR tells whether one more loss stops acks -1.
func (c *Core) AtMinISR() bool { return c.leader && len(c.reg.ISR) == c.effectiveMinISR() }
