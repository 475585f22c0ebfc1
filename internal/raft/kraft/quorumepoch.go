package kraft

import (
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// resignation is the state of a leader that gave up (K-27).
type resignation struct {
	unacked   map[model.NodeID]bool
	preferred []ReplicaKey
}

func (c *Core) handleBeginQuorumEpoch(r *BeginQuorumEpochRequest) *BeginQuorumEpochResponse {
	if e := c.checkVoterRequest(r.Leader, r.Epoch); e != nil {
		return &BeginQuorumEpochResponse{c.statusOf(e)}
	}
	if err := c.adopt(r.Leader, r.Epoch, r.Endpoints); err != nil {
		// Kafka 4.4.0 dies of this one; here the sender is wrong until proven otherwise (K-32).
		c.note(true, "raft: refused a leader that contradicts the one known", "leader", r.Leader, "epoch", r.Epoch, "known", c.leader)
		return &BeginQuorumEpochResponse{c.statusOf(kerr.InvalidRequest)}
	}
	if !c.isMeant(r.Voter) {
		return &BeginQuorumEpochResponse{c.statusOf(kerr.InvalidVoterKey)}
	}
	return &BeginQuorumEpochResponse{c.statusOf(nil)}
}

func (c *Core) handleEndQuorumEpoch(r *EndQuorumEpochRequest) *EndQuorumEpochResponse {
	if e := c.checkVoterRequest(r.Leader, r.Epoch); e != nil {
		return &EndQuorumEpochResponse{c.statusOf(e)}
	}
	if err := c.adopt(r.Leader, r.Epoch, r.Endpoints); err != nil {
		c.note(true, "raft: refused the resignation of a leader that contradicts the one known", "leader", r.Leader, "epoch", r.Epoch, "known", c.leader)
		return &EndQuorumEpochResponse{c.statusOf(kerr.InvalidRequest)}
	}
	if c.role == Follower && c.leader == r.Leader {
		c.follow.deadline = c.now.Add(c.endEpochBackoff(r.Preferred))
	}
	return &EndQuorumEpochResponse{c.statusOf(nil)}
}

// endEpochBackoff spreads the followers of a resigned leader: the best successor at once, each next one later (K-29).
func (c *Core) endEpochBackoff(preferred []ReplicaKey) time.Duration {
	most := c.cfg.ElectionBackoffMax
	n := len(preferred)
	p := n
	for i, k := range preferred {
		if k.ID == c.cfg.Self.ID && (k.Directory.IsZero() || k.Directory == c.cfg.Self.Directory) {
			p = i
			break
		}
	}
	switch {
	case p == 0 && n > 0:
		return 0
	case p >= n:
		return most
	}
	ms := most.Milliseconds()
	// The shift counts are small: a list longer than 32 only makes the base 0.
	base := ms >> min(n-1, 62)
	return time.Duration(min(ms, base<<min(p-1, 31))) * time.Millisecond
}

func (c *Core) sendEndQuorumEpoch() {
	for _, v := range c.log.voters() {
		if !c.resigned.unacked[v.ID] || !c.ready(v.ID) {
			continue
		}
		if to, ok := c.voterPeer(v.ID); ok {
			c.send(to, &EndQuorumEpochRequest{Leader: c.cfg.Self.ID, Epoch: c.epoch, Preferred: c.resigned.preferred, Endpoints: c.cfg.Endpoints})
		}
	}
}
