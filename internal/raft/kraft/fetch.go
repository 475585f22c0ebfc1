package kraft

import (
	"time"

	"samsa/internal/base/kerr"
)

// parkedFetch waits at the leader for records, for a higher watermark, or for its time (K-42).
type parkedFetch struct {
	token    uint64
	req      *FetchRequest
	deadline time.Time
	onTime   *FetchResponse // what it gets then: the answer as it was on arrival
}

// Request takes one decoded request of another node; exactly one Reply effect with this token will come, perhaps later.
func (c *Core) Request(now time.Time, token uint64, message any) {
	c.at(now)
	if c.dead {
		return
	}
	switch r := message.(type) {
	case *VoteRequest:
		c.reply(token, c.handleVote(r))
	case *BeginQuorumEpochRequest:
		c.reply(token, c.handleBeginQuorumEpoch(r))
	case *EndQuorumEpochRequest:
		c.reply(token, c.handleEndQuorumEpoch(r))
	case *FetchRequest:
		c.handleFetch(token, r)
	case *FetchSnapshotRequest:
		c.handleFetchSnapshot(token, r)
	case *DescribeRequest:
		c.reply(token, c.describe())
	}
	c.step()
}

func (c *Core) reply(token uint64, message any) { c.emit(Reply{Token: token, Message: message}) }

// Forget drops a parked request whose sender went away.
func (c *Core) Forget(token uint64) {
	for i, p := range c.parked {
		if p.token == token {
			c.parked = append(c.parked[:i:i], c.parked[i+1:]...)
			return
		}
	}
}

// checkLeaderRequest is K-41's order: epoch first, then leadership.
func (c *Core) checkLeaderRequest(epoch int32) *kerr.Error {
	switch {
	case epoch < c.epoch:
		return kerr.FencedLeaderEpoch
	case epoch > c.epoch:
		return kerr.UnknownLeaderEpoch
	case c.role != Leader:
		return kerr.NotLeaderOrFollower
	case c.shutdown:
		return kerr.BrokerNotAvailable
	}
	return nil
}

func (c *Core) fetchError(e *kerr.Error) *FetchResponse {
	return &FetchResponse{Status: c.statusOf(e), HighWatermark: -1, LogStart: c.log.start}
}

func (c *Core) handleFetch(token uint64, r *FetchRequest) {
	if r.MaxWait < 0 || r.Offset < 0 || r.LastEpoch < 0 || r.LastEpoch > r.Epoch {
		c.reply(token, c.fetchError(kerr.InvalidRequest))
		return
	}
	resp, read := c.tryFetch(r)
	if resp.Error != 0 || read != nil || r.MaxWait == 0 || resp.Diverging != nil || resp.Snapshot != nil || r.HighWatermark < resp.HighWatermark {
		c.emit(Reply{Token: token, Message: resp, Read: read})
		return
	}
	c.parked = append(c.parked, parkedFetch{token: token, req: r, deadline: c.now.Add(r.MaxWait), onTime: resp})
}

// tryFetch answers a fetch with what there is now, and counts it as the sender's acknowledgement.
func (c *Core) tryFetch(r *FetchRequest) (*FetchResponse, *ReadLog) {
	if e := c.checkLeaderRequest(r.Epoch); e != nil {
		return c.fetchError(e), nil
	}
	if r.Replica.ID == c.cfg.Self.ID {
		c.note(true, "raft: a fetch carries this leader's own id: two nodes share it", "directory", r.Replica.Directory)
		return c.fetchError(kerr.InvalidRequest), nil
	}
	resp := &FetchResponse{}
	var read *ReadLog
	resp.Diverging, resp.Snapshot = c.log.validate(r.Offset, r.LastEpoch)
	if resp.Diverging == nil && resp.Snapshot == nil {
		if r.Offset < c.log.end {
			read = &ReadLog{Offset: r.Offset, MaxBytes: r.MaxBytes}
		}
		c.progress(r.Replica, r.Offset)
		if c.role != Leader { // its own removal was committed by this very fetch
			return c.fetchError(kerr.NotLeaderOrFollower), nil
		}
	}
	resp.Status = c.statusOf(nil)
	resp.HighWatermark = c.lead.hw
	resp.LogStart = c.log.start
	return resp, read
}

type parkedKind uint8

const (
	parkedAll     parkedKind = iota // the high watermark moved
	parkedRecords                   // the log grew
)

// completeParked answers the fetches that wait, each as if it came now.
func (c *Core) completeParked(kind parkedKind) {
	waiting := c.parked
	c.parked = nil
	for _, p := range waiting {
		if kind == parkedRecords && p.req.Offset >= c.log.end {
			c.parked = append(c.parked, p)
			continue
		}
		resp, read := c.tryFetch(p.req)
		c.emit(Reply{Token: p.token, Message: resp, Read: read})
	}
}

// failParked answers them when leadership ends (K-42).
func (c *Core) failParked() {
	for _, p := range c.parked {
		r := c.fetchError(kerr.NotLeaderOrFollower)
		r.Leader, r.Endpoints = -1, nil
		c.reply(p.token, r)
	}
	c.parked = nil
}

func (c *Core) expireParked() {
	kept := c.parked[:0]
	for _, p := range c.parked {
		if c.expired(p.deadline) {
			c.reply(p.token, p.onTime)
			continue
		}
		kept = append(kept, p)
	}
	c.parked = kept
}

// following is the state of a follower.
type following struct {
	deadline time.Time // of the fetch timeout
	fetched  bool      // one fetch of this epoch succeeded: the leader lives (K-22)
	snapshot *download
}

// download is a snapshot on its way in.
type download struct {
	id         SnapshotID
	position   int64
	installing bool
}

func (c *Core) fetchRequest() *FetchRequest {
	return &FetchRequest{Replica: c.cfg.Self, Epoch: c.epoch, Offset: c.log.end, LastEpoch: c.log.lastEpoch(),
		HighWatermark: c.hw, MaxWait: fetchMaxWait, MaxBytes: c.cfg.FetchMaxBytes}
}

// sendFetch asks the leader, or a bootstrap server while the leader does not answer (K-30).
func (c *Core) sendFetch() {
	if c.mustSync() && c.log.durable < c.log.end || c.follow.snapshot != nil && c.follow.snapshot.installing {
		return // its fetch offset is its acknowledgement (K-50)
	}
	leader, ok := c.peer(c.leader, c.endpoints)
	if !ok || c.pausing(leader.ID) {
		c.sendFetchToBootstrap()
		return
	}
	if c.anyInFlight() {
		return
	}
	if s := c.follow.snapshot; s != nil {
		c.send(leader, &FetchSnapshotRequest{Replica: c.cfg.Self, Epoch: c.epoch, ID: s.id, Position: s.position, MaxBytes: c.cfg.FetchSnapshotMaxBytes})
		return
	}
	c.send(leader, c.fetchRequest())
}

func (c *Core) sendFetchToBootstrap() {
	if c.anyInFlight() || c.mustSync() && c.log.durable < c.log.end {
		return
	}
	if to, ok := c.bootstrapPeer(); ok {
		c.send(to, c.fetchRequest())
	}
}

// fetchSucceeded: the leader lives and knows this follower.
func (c *Core) fetchSucceeded() {
	c.follow.fetched = true
	c.follow.deadline = c.now.Add(c.cfg.FetchTimeout)
}

func (c *Core) handleFetchResponse(r *FetchResponse) bool {
	if r.Error != 0 || c.role != Follower {
		return c.unexpected(c.leader, &r.Status)
	}
	switch {
	case r.Diverging != nil:
		if !c.diverge(*r.Diverging) {
			return false
		}
	case r.Snapshot != nil:
		if r.Snapshot.Epoch < 0 || r.Snapshot.Offset < 0 {
			c.note(true, "raft: the leader named an impossible snapshot", "snapshot", *r.Snapshot)
			return false
		}
		if _, have := c.log.findSnapshot(*r.Snapshot); have {
			c.note(true, "raft: the leader named a snapshot that is here already", "snapshot", *r.Snapshot)
			break
		}
		if c.follow.snapshot == nil || c.follow.snapshot.id != *r.Snapshot {
			c.follow.snapshot = &download{id: *r.Snapshot}
			c.note(false, "raft: fetching a snapshot", "snapshot", *r.Snapshot, "leader", c.leader)
		}
	default:
		c.appendFetched(r)
		if c.dead {
			return false
		}
		if r.HighWatermark >= 0 {
			c.setHighWatermark(min(r.HighWatermark, c.log.end)) // K-55
		}
	}
	c.fetchSucceeded()
	return true
}

// diverge cuts this log to where it may agree with the leader's (K-54).
func (c *Core) diverge(d EpochEnd) bool {
	if d.Epoch < 0 || d.End < 0 {
		c.note(true, "raft: the leader named an impossible epoch end", "epoch", d.Epoch, "end", d.End)
		return false
	}
	to := c.log.truncationFor(d)
	if to < c.floor {
		c.fatal("the leader %d asks to truncate to offset %d, but everything below %d is committed: a voter lost data it had acknowledged; stop the nodes and compare their metadata logs", c.leader, to, c.floor)
		return false
	}
	if to >= c.log.end {
		return true
	}
	c.note(true, "raft: log truncated", "from", c.log.end, "to", to, "leader", c.leader, "divergingEpoch", d.Epoch)
	c.log.truncate(to)
	c.emit(TruncateLog{to})
	return true
}

// appendFetched takes the batches that continue the log and belong to no later epoch than this one; the rest is dropped with a
// line and fetched again (K-56).
func (c *Core) appendFetched(r *FetchResponse) {
	next, last := c.log.end, c.log.lastEpoch()
	n := 0
	for _, b := range r.Batches {
		if b.Base != next || b.Last < b.Base || b.Epoch < last || b.Epoch > c.epoch {
			c.note(true, "raft: dropped fetched batches that do not continue the log", "base", b.Base, "batchEpoch", b.Epoch,
				"logEnd", next, "lastEpoch", last, "epoch", c.epoch)
			break
		}
		next, last = b.Last+1, b.Epoch
		n++
	}
	if r.Cut != "" && n == len(r.Batches) {
		c.note(true, "raft: dropped fetched bytes", "logEnd", next, "why", r.Cut)
	}
	if n == 0 {
		return
	}
	for _, b := range r.Batches[:n] {
		c.log.append(b)
	}
	c.emit(AppendLog{r.Batches[:n]})
	if !c.mustSync() {
		c.log.durable = c.log.end // nobody relies on it
	}
}
