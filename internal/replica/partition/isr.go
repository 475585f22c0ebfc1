package partition

import (
	"errors"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// Proposal is a change of the in-sync set, for one AlterPartition request. Never changed after it was made.
type Proposal struct {
	LeaderEpoch model.LeaderEpoch
	Epoch       model.PartitionEpoch
	// ISR is the whole set proposed. BrokerEpoch is that of the last fetch, -1 if unknown; for this broker itself
	// it is -1 and the sender puts its own in.
	ISR     []ISRMember
	Added   model.NodeID   // NoNode for a removal
	Removed []model.NodeID // nil for an addition
}

// ISRMember is one member of a proposed in-sync set.
type ISRMember struct {
	ID          model.NodeID
	BrokerEpoch int64
}

func (p *Proposal) adds(id model.NodeID) bool { return p != nil && p.Added == id }

// CheckFollower tells whether a fetch of a follower may be served (D-143): it must be one of the replicas, and
// not an older incarnation of the broker.
func (c *Core) CheckFollower(id model.NodeID, brokerEpoch int64, epochGiven bool, b Brokers) error {
	f := c.follower(id)
	if f == nil {
		if epochGiven {
			return kerr.UnknownLeaderEpoch
		}
		return kerr.NotLeaderOrFollower
	}
	if brokerEpoch >= 0 && b != nil {
		if current, alive, _ := b.Broker(id); alive && brokerEpoch < current {
			return kerr.NotLeaderOrFollower
		}
	}
	return nil
}

// FollowerFetch is one fetch of a follower that was served.
type FollowerFetch struct {
	ID          model.NodeID
	Offset      int64
	LogStart    int64
	BrokerEpoch int64
	// LeaderEnd is the leader's log end before the read: an append that follows must not keep the follower out.
	LeaderEnd int64
}

// Fetched is what a follower's fetch brought about.
type Fetched struct {
	HighMoved, LowMoved bool
	Propose             *Proposal // to be sent, if not nil
}

// FollowerFetched records a follower's fetch.
func (c *Core) FollowerFetched(nowMs int64, ff FollowerFetch, b Brokers) Fetched {
	var out Fetched
	f := c.follower(ff.ID)
	if !c.leader || f == nil {
		return out
	}
	low := c.LowWatermark(b)
	end := f.LogEnd
	f.fetched(nowMs, ff.Offset, ff.LogStart, ff.BrokerEpoch, ff.LeaderEnd)
	out.LowMoved = c.LowWatermark(b) > low
	if c.pending == nil && !f.inISR && f.LogEnd >= c.high && f.LogEnd >= c.epochStart && eligible(f, b) {
		out.Propose = c.propose(f.ID, nil)
	}
	if f.LogEnd != end {
		out.HighMoved = c.advance(nowMs, b)
	}
	return out
}

// Shrink looks for members of the in-sync set that have not been at the log end for too long (D-144). Only time counts.
// Called every replica.lag.time.max.ms / 2; nil: nothing to do.
func (c *Core) Shrink(nowMs int64) *Proposal {
	if !c.leader || c.pending != nil {
		return nil
	}
	var out []model.NodeID
	for i := range c.followers {
		f := &c.followers[i]
		if f.inISR && !f.caughtUp(c.logEnd, nowMs, c.settings.MaxLagMs) {
			out = append(out, f.ID)
		}
	}
	if out == nil {
		return nil
	}
	return c.propose(model.NoNode, out)
}

// propose makes a proposal the pending one.
func (c *Core) propose(add model.NodeID, remove []model.NodeID) *Proposal {
	p := &Proposal{LeaderEpoch: c.reg.LeaderEpoch, Epoch: c.reg.Epoch, Added: add, Removed: remove}
	for _, id := range c.reg.ISR {
		if !contains(remove, id) {
			p.ISR = append(p.ISR, c.member(id))
		}
	}
	if add != model.NoNode {
		p.ISR = append(p.ISR, c.member(add))
	}
	c.pending = p
	return p
}

func (c *Core) member(id model.NodeID) ISRMember {
	m := ISRMember{ID: id, BrokerEpoch: -1}
	if f := c.follower(id); f != nil && f.known {
		m.BrokerEpoch = f.Epoch
	}
	return m
}

// Pending is the proposal on its way, or nil.
func (c *Core) Pending() *Proposal { return c.pending }

// Answer is the controller's answer to a proposal: Err, or the new state.
type Answer struct {
	Err         error
	LeaderEpoch model.LeaderEpoch
	Epoch       model.PartitionEpoch
	ISR         []model.NodeID
}

// Answered is what an answer brought about.
type Answered struct {
	Ignored   bool // not the pending proposal any more
	Retry     bool // send the same proposal again
	HighMoved bool
	Committed bool // the in-sync set is now the answer's
}

// ProposalAnswered takes the controller's answer (D-146).
func (c *Core) ProposalAnswered(nowMs int64, p *Proposal, a Answer, b Brokers) Answered {
	if p == nil || c.pending != p {
		return Answered{Ignored: true}
	}
	if a.Err != nil {
		switch {
		case errors.Is(a.Err, kerr.IneligibleReplica), errors.Is(a.Err, kerr.OperationNotAttempted):
			// The controller says that our partition epoch is right and that nothing was done.
			c.pending = nil
			return Answered{HighMoved: c.advance(nowMs, b)}
		case errors.Is(a.Err, kerr.FencedLeaderEpoch), errors.Is(a.Err, kerr.InvalidUpdateVersion),
			errors.Is(a.Err, kerr.InvalidRequest), errors.Is(a.Err, kerr.UnknownTopicOrPartition),
			errors.Is(a.Err, kerr.UnknownTopicId), errors.Is(a.Err, kerr.NewLeaderElected):
			return Answered{} // stay pending: newer metadata is on its way
		}
		return Answered{Retry: true}
	}
	if a.LeaderEpoch != c.reg.LeaderEpoch || a.Epoch < c.reg.Epoch {
		return Answered{} // older than what is known here: metadata decides
	}
	c.reg.ISR, c.reg.Epoch = a.ISR, a.Epoch
	c.pending = nil
	c.keepFollowers(nowMs, false, false)
	return Answered{Committed: true, HighMoved: c.advance(nowMs, b)}
}

// PreferredReader chooses the replica a consumer in rack had better read from: in the in-sync set, alive, in the rack, holding
// offset, with the most records. NoNode: this leader itself (D-128).
func (c *Core) PreferredReader(rack string, offset int64, rackOf func(model.NodeID) string, b Brokers) model.NodeID {
	if !c.leader || rack == "" || rackOf(c.self) == rack {
		return model.NoNode
	}
	best := model.NoNode
	var bestEnd int64
	for i := range c.followers {
		f := &c.followers[i]
		if !f.inISR || f.LogEnd < offset || f.LogStart < 0 || f.LogStart > offset || rackOf(f.ID) != rack {
			continue
		}
		if _, alive, _ := b.Broker(f.ID); !alive {
			continue
		}
		if best == model.NoNode || f.LogEnd > bestEnd {
			best, bestEnd = f.ID, f.LogEnd
		}
	}
	return best
}
