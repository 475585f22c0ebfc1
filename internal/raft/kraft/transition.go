package kraft

import (
	"time"

	"samsa/internal/base/model"
)

// The transitions of K-11. Each one leaves the old role completely, sets every field of the new one, and emits the durable save
// before anything else can be emitted. Prospective and Resigned are not persisted (K-14).

// leave ends what belongs to the present role.
func (c *Core) leave() {
	if c.role == Leader {
		c.failParked()
		c.lead = nil
	}
	if c.role == Follower && c.follow.snapshot != nil {
		c.emit(DropSnapshot{c.follow.snapshot.id})
	}
	c.follow = following{}
	c.votes = ballot{}
	c.resigned = resignation{}
}

// toUnattached moves to a higher epoch, or out of Prospective in the same one. An election timeout that is running goes on (K-16).
func (c *Core) toUnattached(epoch int32, leader model.NodeID) {
	keep := c.role == Candidate || c.role == Unattached || c.role == Resigned ||
		c.role == Prospective && !c.votes.rejected()
	if !keep || c.election.IsZero() || !c.isVoter() {
		c.drawElection()
	}
	voted := NoReplica
	if epoch == c.epoch {
		voted = c.voted
	}
	c.leave()
	c.become(Unattached, epoch, leader, nil, voted)
	c.save()
	c.resetConns()
	c.note(false, "raft: unattached", "epoch", epoch, "leader", leader)
	c.reportLeader()
}

// addVote records a real vote for somebody else and draws a fresh timeout (K-16).
func (c *Core) addVote(candidate ReplicaKey) {
	c.voted = candidate
	c.save()
	c.drawElection()
	if c.role == Prospective {
		c.votes = newBallot(c.log.voters(), c.cfg.Self)
	}
}

// toFollower follows a leader whose endpoints are known (K-33).
func (c *Core) toFollower(epoch int32, leader model.NodeID, endpoints Endpoints) {
	voted := NoReplica
	if epoch == c.epoch {
		voted = c.voted
	}
	c.leave()
	c.become(Follower, epoch, leader, endpoints, voted)
	c.election = time.Time{}
	c.follow = following{deadline: c.now.Add(c.cfg.FetchTimeout)}
	c.save()
	c.resetConns()
	c.note(false, "raft: follower", "epoch", epoch, "leader", leader)
	c.reportLeader()
}

// toProspective asks whether an election could be won before it disturbs anybody (K-18).
func (c *Core) toProspective() {
	if !c.isVoter() {
		return
	}
	leader, endpoints := c.leader, c.endpoints
	if c.role == Resigned { // own leadership is over
		leader, endpoints = model.NoNode, nil
	}
	c.leave()
	c.become(Prospective, c.epoch, leader, endpoints, c.voted)
	c.votes = newBallot(c.log.voters(), c.cfg.Self)
	c.drawElection()
	if c.votes.granted() {
		c.toCandidate()
		return
	}
	c.resetConns()
	c.note(false, "raft: prospective", "epoch", c.epoch)
}

// toCandidate starts an election in the next epoch with a vote for itself (K-20).
func (c *Core) toCandidate() {
	c.leave()
	c.become(Candidate, c.epoch+1, model.NoNode, nil, c.cfg.Self)
	c.votes = newBallot(c.log.voters(), c.cfg.Self)
	c.drawElection()
	c.save()
	c.note(false, "raft: candidate", "epoch", c.epoch)
	c.reportLeader()
	if c.votes.granted() {
		c.toLeader()
		return
	}
	c.resetConns()
}

// toLeader begins an epoch: state, epoch cache, then the control batch that must be committed before anything else is (K-24).
func (c *Core) toLeader() {
	granting := c.votes.granters()
	c.leave()
	c.become(Leader, c.epoch, c.cfg.Self.ID, c.cfg.Endpoints, NoReplica)
	c.lead = newLeadership(c)
	c.save()
	c.log.beginEpoch(c.epoch)
	c.resetConns()
	c.note(false, "raft: leader", "epoch", c.epoch, "epochStartOffset", c.lead.start)
	c.appendEpochStart(granting)
	c.reportLeader()
}

// toResigned ends this leadership in the same epoch: nobody else may lead it, and this node does not either (K-27).
func (c *Core) toResigned(why string) {
	preferred := c.lead.byDescendingOffset(c.cfg.Self)
	c.leave()
	c.become(Resigned, c.epoch, c.cfg.Self.ID, c.cfg.Endpoints, NoReplica)
	c.resigned = resignation{unacked: c.otherVoters(), preferred: preferred}
	c.drawElection()
	c.resetConns()
	c.note(false, "raft: resigned", "epoch", c.epoch, "why", why)
}
