package kraft

import (
	"errors"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// ErrNotLeader is returned by Append when this replica does not lead that epoch any more.
var ErrNotLeader = kerr.NotLeaderOrFollower

// errInconsistent says that somebody named another leader for this epoch, or this node as leader when it is not (K-32).
var errInconsistent = errors.New("inconsistent leader")

// handleResponse applies one answer; false puts the peer into a pause.
func (c *Core) handleResponse(from model.NodeID, r response) bool {
	s := r.status()
	if s.TopLevel != 0 {
		if _, vote := r.(*VoteResponse); vote && s.TopLevel == kerr.UnsupportedVersion.Code && c.role == Prospective {
			// A voter that knows no pre-vote: go on without (K-19).
			c.note(false, "raft: a voter does not support pre-vote", "voter", from)
			c.toCandidate()
			return true
		}
		if f, ok := r.(*FetchSnapshotResponse); ok {
			return c.snapshotTopLevel(f)
		}
		if s.TopLevel != kerr.BrokerNotAvailable.Code {
			c.note(true, "raft: unexpected error in a response", "from", from, "error", kerr.ForCode(s.TopLevel))
		}
		return false
	}
	if done, ok := c.handleStatus(from, s); done {
		return ok
	}
	if c.dead {
		return false
	}
	switch r := r.(type) {
	case *VoteResponse:
		return c.handleVoteResponse(from, r)
	case *BeginQuorumEpochResponse:
		if s.Error == 0 && c.role == Leader {
			c.lead.acknowledged[from] = true
		}
	case *EndQuorumEpochResponse:
		if s.Error == 0 && c.role == Resigned {
			delete(c.resigned.unacked, from)
		}
	case *FetchResponse:
		return c.handleFetchResponse(r)
	case *FetchSnapshotResponse:
		return c.handleFetchSnapshotResponse(r)
	}
	return c.unexpected(from, s)
}

func (c *Core) unexpected(from model.NodeID, s *Status) bool {
	if s.Error != 0 {
		c.note(true, "raft: unexpected error in a response", "from", from, "error", kerr.ForCode(s.Error))
	}
	return s.Error == 0
}

// handleStatus is what all responses have in common (K-32): done means that nothing is left to look at.
func (c *Core) handleStatus(from model.NodeID, s *Status) (done, ok bool) {
	switch {
	case s.Epoch < c.epoch || s.Error == kerr.UnknownLeaderEpoch.Code:
		return true, true
	case s.Epoch > c.epoch || s.Error == kerr.FencedLeaderEpoch.Code || s.Error == kerr.NotLeaderOrFollower.Code:
		epoch, leader := c.epoch, c.leader
		if err := c.adopt(s.Leader, s.Epoch, s.Endpoints); err != nil {
			c.fatal("node %d answers that the leader of epoch %d is %d, but here it is %d in epoch %d: two nodes may share an id, or a quorum-state file was lost; compare meta.properties and quorum-state of the voters: %w",
				from, s.Epoch, s.Leader, c.leader, c.epoch, err)
		}
		// Nothing new learnt: pause, or a quorum without a leader asks in circles as fast as the network goes.
		return true, epoch != c.epoch || leader != c.leader
	case s.Leader >= 0 && (c.leader < 0 || c.role == Unattached && s.Leader == c.leader):
		if s.Leader == c.cfg.Self.ID {
			c.fatal("node %d answers that this node leads epoch %d, but it does not: was quorum-state lost?: %w", from, s.Epoch, errInconsistent)
			return true, false
		}
		endpoints := c.endpointsOf(s.Leader, s.Endpoints)
		if len(endpoints) == 0 {
			return true, false
		}
		c.toFollower(s.Epoch, s.Leader, endpoints)
		return s.Error != 0, true
	case s.Error == kerr.BrokerNotAvailable.Code:
		return true, false
	case s.Error == kerr.InvalidVoterKey.Code:
		c.note(false, "raft: the receiver is not the voter that was meant", "node", from)
		return true, true
	case s.Error == kerr.InvalidRequest.Code:
		c.fatal("node %d calls a request of this node invalid: the two do not speak the same protocol", from)
		return true, false
	}
	return false, false
}

func (c *Core) endpointsOf(id model.NodeID, known Endpoints) Endpoints {
	if len(known) > 0 {
		return known
	}
	if v, ok := c.log.voters().Find(id); ok {
		return v.Endpoints
	}
	return nil
}

// adopt takes over a leader and epoch heard of. It refuses what contradicts the present epoch.
func (c *Core) adopt(leader model.NodeID, epoch int32, endpoints Endpoints) error {
	if leader == c.cfg.Self.ID {
		if (c.role == Leader || c.role == Resigned) && epoch == c.epoch {
			return nil
		}
		if epoch >= c.epoch {
			return errInconsistent
		}
		return nil
	}
	if epoch == c.epoch && leader >= 0 && c.leader >= 0 && leader != c.leader {
		return errInconsistent
	}
	if leader >= 0 {
		endpoints = c.endpointsOf(leader, endpoints)
	}
	switch {
	case epoch < c.epoch:
	case epoch > c.epoch && (leader < 0 || len(endpoints) == 0):
		c.toUnattached(epoch, model.NoNode)
	case epoch > c.epoch:
		c.toFollower(epoch, leader, endpoints)
	case leader >= 0 && len(endpoints) > 0 && (c.leader < 0 || c.role == Unattached ||
		(c.role == Follower || c.role == Prospective) && len(endpoints) > len(c.endpoints)): // K-33
		c.toFollower(epoch, leader, endpoints)
	}
	return nil
}
