package kraft

import (
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// ballot counts the votes of one election or pre-election, among the voters at its start (K-20).
type ballot struct {
	voters []model.NodeID
	vote   []int8 // 0 unknown, 1 granted, -1 rejected
}

func newBallot(voters VoterSet, self ReplicaKey) ballot {
	b := ballot{voters: voters.IDs(), vote: make([]int8, len(voters))}
	if voters.IsVoter(self) {
		b.record(self.ID, true)
	}
	return b
}

// record notes a vote; it returns false for an id that has no vote.
func (b *ballot) record(id model.NodeID, granted bool) bool {
	i := slices.Index(b.voters, id)
	if i < 0 {
		return false
	}
	b.vote[i] = -1
	if granted {
		b.vote[i] = 1
	}
	return true
}

func (b *ballot) of(id model.NodeID) int8 {
	if i := slices.Index(b.voters, id); i >= 0 {
		return b.vote[i]
	}
	return 0
}

func (b *ballot) count(v int8) (n int) {
	for _, x := range b.vote {
		if x == v {
			n++
		}
	}
	return n
}

func (b *ballot) majority() int  { return len(b.voters)/2 + 1 }
func (b *ballot) granted() bool  { return len(b.voters) > 0 && b.count(1) >= b.majority() }
func (b *ballot) rejected() bool { return b.count(1)+b.count(0) < b.majority() }

func (b *ballot) granters() (ids []model.NodeID) {
	for i, v := range b.vote {
		if v == 1 {
			ids = append(ids, b.voters[i])
		}
	}
	return ids
}

// handleVote answers a vote or pre-vote (K-21, K-22, K-38, K-39).
func (c *Core) handleVote(r *VoteRequest) *VoteResponse {
	answer := func(e *kerr.Error, granted bool) *VoteResponse {
		return &VoteResponse{Status: c.statusOf(e), Granted: granted}
	}
	illegal := r.LastEpoch >= r.Epoch
	if r.PreVote {
		illegal = r.LastEpoch > r.Epoch
	}
	if r.LastEnd < 0 || r.LastEpoch < 0 || illegal {
		return answer(kerr.InvalidRequest, false)
	}
	if e := c.checkVoterRequest(r.Candidate.ID, r.Epoch); e != nil {
		return answer(e, false)
	}
	if r.Candidate.ID == c.cfg.Self.ID {
		c.note(true, "raft: a vote request carries this node's own id: two nodes share it", "directory", r.Candidate.Directory)
		return answer(kerr.InvalidRequest, false)
	}
	if r.Epoch > c.epoch {
		c.toUnattached(r.Epoch, model.NoNode)
	}
	if !c.isMeant(r.Voter) {
		return answer(kerr.InvalidVoterKey, false)
	}
	upToDate := r.LastEpoch > c.log.lastEpoch() || r.LastEpoch == c.log.lastEpoch() && r.LastEnd >= c.log.end
	granted := c.canGrant(r.Candidate, upToDate, r.PreVote)
	if granted && !r.PreVote && c.voted == NoReplica {
		c.addVote(r.Candidate)
	}
	c.note(false, "raft: vote requested", "candidate", r.Candidate, "epoch", r.Epoch, "preVote", r.PreVote, "granted", granted)
	return answer(nil, granted)
}

func (c *Core) canGrant(candidate ReplicaKey, upToDate, preVote bool) bool {
	if preVote {
		switch c.role {
		case Leader:
			return false
		case Follower:
			return upToDate && !c.follow.fetched
		}
		return upToDate
	}
	if c.role != Unattached && c.role != Prospective {
		return false
	}
	if c.voted != NoReplica {
		return c.voted.ID == candidate.ID && (c.voted.Directory.IsZero() || c.voted.Directory == candidate.Directory)
	}
	return c.leader < 0 && upToDate
}

func (c *Core) handleVoteResponse(from model.NodeID, r *VoteResponse) bool {
	if r.Error != 0 {
		return c.unexpected(from, &r.Status)
	}
	if c.role != Prospective && c.role != Candidate {
		return true
	}
	if was := c.votes.of(from); c.role == Candidate && was != 0 && (was == 1) != r.Granted {
		c.note(true, "raft: a voter changed its mind within one epoch; the first answer counts", "voter", from, "epoch", c.epoch)
		return true
	}
	c.votes.record(from, r.Granted)
	switch {
	case c.votes.granted() && c.role == Prospective:
		c.toCandidate()
	case c.votes.granted():
		c.toLeader()
	case c.votes.rejected() && c.role == Prospective:
		c.loseProspective()
	}
	return true
}

// loseProspective goes back to whoever leads, if that is known (K-18).
func (c *Core) loseProspective() {
	if c.leader >= 0 && c.leader != c.cfg.Self.ID && len(c.endpoints) > 0 {
		c.toFollower(c.epoch, c.leader, c.endpoints)
		return
	}
	c.toUnattached(c.epoch, c.leader)
}

func (c *Core) sendVotes() {
	if c.votes.rejected() {
		return
	}
	for i, id := range c.votes.voters {
		if c.votes.vote[i] != 0 || id == c.cfg.Self.ID || !c.ready(id) {
			continue
		}
		v, _ := c.log.voters().Find(id)
		to, ok := c.voterPeer(id)
		if !ok {
			continue
		}
		c.send(to, &VoteRequest{Voter: v.ReplicaKey, Candidate: c.cfg.Self, Epoch: c.epoch,
			LastEpoch: c.log.lastEpoch(), LastEnd: c.log.end, PreVote: c.role == Prospective})
	}
}

// checkVoterRequest is common to Vote, BeginQuorumEpoch and EndQuorumEpoch (K-38).
func (c *Core) checkVoterRequest(sender model.NodeID, epoch int32) *kerr.Error {
	switch {
	case epoch < c.epoch:
		return kerr.FencedLeaderEpoch
	case sender < 0:
		return kerr.InvalidRequest
	}
	return nil
}

// isMeant: a request may say which voter it is for (K-38).
func (c *Core) isMeant(k ReplicaKey) bool {
	return k.ID < 0 || k.ID == c.cfg.Self.ID && (k.Directory.IsZero() || k.Directory == c.cfg.Self.Directory)
}

// statusOf is this node's view of the quorum, with an error. A resigned leader names nobody: it does not lead, and nobody else
// does in this epoch (K-27).
func (c *Core) statusOf(e *kerr.Error) Status {
	s := Status{Epoch: c.epoch, Leader: c.leader, Endpoints: c.endpoints}
	if c.role == Resigned {
		s.Leader, s.Endpoints = model.NoNode, nil
	}
	if e != nil {
		s.Error = e.Code
	}
	return s
}
