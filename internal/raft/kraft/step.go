package kraft

import (
	"fmt"
	"time"

	"samsa/internal/base/model"
)

// step does what the present role has to do now, again after every change of role, until nothing is due.
func (c *Core) step() {
	for i := 0; !c.dead; i++ {
		if i == 100 {
			c.fatal("the raft state machine does not settle: role %v, epoch %d", c.role, c.epoch)
			return
		}
		c.expireConns()
		c.expireParked()
		role, epoch := c.role, c.epoch
		c.act()
		if role == c.role && epoch == c.epoch {
			break
		}
	}
	if c.dead {
		return
	}
	if err := c.check(); err != nil {
		c.fatal("broken invariant: %w", err)
	}
}

func (c *Core) act() {
	switch c.role {
	case Leader:
		switch {
		case c.shutdown && !c.isOnlyVoter():
			c.toResigned("shutting down")
		case c.shutdown:
			c.toResigned("shutting down, nobody to hand over to")
		case c.quorumLost():
			c.toResigned("no majority of the voters has fetched for 1.5 fetch timeouts")
		default:
			c.sendBeginQuorumEpoch()
		}
	case Resigned:
		c.sendEndQuorumEpoch()
		if c.expired(c.election) && !c.shutdown {
			c.toUnattached(c.epoch+1, model.NoNode)
		}
	case Candidate:
		if c.expired(c.election) && !c.shutdown {
			c.note(false, "raft: election not won in time", "epoch", c.epoch)
			c.toProspective()
			return
		}
		c.sendVotes()
	case Prospective:
		if c.expired(c.election) && !c.shutdown {
			c.loseProspective()
			return
		}
		c.sendVotes()
	case Follower:
		if c.isVoter() && c.expired(c.follow.deadline) && !c.shutdown {
			c.note(false, "raft: nothing heard from the leader within the fetch timeout", "leader", c.leader, "epoch", c.epoch)
			c.toProspective()
			return
		}
		c.sendFetch()
	case Unattached:
		if c.isVoter() && c.election.IsZero() {
			c.drawElection()
		}
		if c.isVoter() && c.expired(c.election) && !c.shutdown {
			c.toProspective()
			return
		}
		c.sendFetchToBootstrap()
	}
}

// Deadline is when Tick has something to do at the latest; zero: not before something happens. A single voter that
// leads has none: it costs nothing while idle.
func (c *Core) Deadline() time.Time {
	var d time.Time
	add := func(t time.Time) {
		if !t.IsZero() && (d.IsZero() || t.Before(d)) {
			d = t
		}
	}
	for _, p := range c.conns {
		add(p.until)
	}
	for _, p := range c.parked {
		add(p.deadline)
	}
	if c.shutdown {
		return d // no timeout moves anything any more
	}
	switch c.role {
	case Leader:
		add(c.lead.begin)
		if !(len(c.lead.voters) == 1 && c.lead.voters[c.cfg.Self.ID] != nil) {
			add(c.lead.checkQuorum)
		}
	case Follower:
		if c.isVoter() {
			add(c.follow.deadline)
		}
	default:
		if c.isVoter() || c.role == Resigned {
			add(c.election)
		}
	}
	return d
}

// check states what must hold between steps; a violation stops the replica rather than the quorum's promises.
func (c *Core) check() error {
	l := &c.log
	switch {
	case l.start > l.durable || l.durable > l.end:
		return fmt.Errorf("log start %d, durable %d, end %d", l.start, l.durable, l.end)
	case c.hw > l.end:
		return fmt.Errorf("high watermark %d above the log end %d", c.hw, l.end)
	case l.lastEpoch() > c.epoch:
		return fmt.Errorf("log epoch %d above the quorum's %d", l.lastEpoch(), c.epoch)
	case (c.role == Leader) != (c.lead != nil):
		return fmt.Errorf("role %v and leader state disagree", c.role)
	case c.role == Follower && (c.leader < 0 || c.leader == c.cfg.Self.ID || len(c.endpoints) == 0):
		return fmt.Errorf("following node %d at %v", c.leader, c.endpoints)
	case !c.isVoter() && (c.role == Prospective || c.role == Candidate):
		return fmt.Errorf("an observer is %v", c.role) // K-10
	}
	return nil
}
