package kraft

import (
	"cmp"
	"slices"
	"time"

	"samsa/internal/base/model"
)

// leadership is what a leader knows of the others. It is rebuilt with every epoch.
type leadership struct {
	start        int64 // epochStartOffset: where this epoch's first record is (K-24)
	hw           int64 // -1 until a record of this epoch is committed
	voters       map[model.NodeID]*replica
	observers    map[ReplicaKey]*replica
	acknowledged map[model.NodeID]bool

	fetched     map[model.NodeID]bool // distinct voters since the check-quorum timer began (K-26)
	checkQuorum time.Time
	begin       time.Time // next BeginQuorumEpoch (K-28)
}

// replica is the progress of one voter or observer as its fetches show it.
type replica struct {
	key           ReplicaKey
	end           int64     // -1 before its first fetch
	lastFetch     time.Time // zero before
	leaderEndThen int64     // this leader's end at its previous fetch
	caughtUp      time.Time
}

func newReplica(k ReplicaKey) *replica { return &replica{key: k, end: -1, leaderEndThen: -1} }

func newLeadership(c *Core) *leadership {
	l := &leadership{start: c.log.end, hw: -1, voters: map[model.NodeID]*replica{}, observers: map[ReplicaKey]*replica{},
		acknowledged: map[model.NodeID]bool{}, fetched: map[model.NodeID]bool{}, begin: c.now}
	for _, v := range c.log.voters() {
		l.voters[v.ID] = newReplica(v.ReplicaKey)
	}
	l.checkQuorum = c.now.Add(c.cfg.FetchTimeout * checkQuorumFactor / 2)
	return l
}

// matches: an entry without a directory id stands for every directory of that node (K-86).
func (r *replica) matches(k ReplicaKey) bool {
	return r.key.ID == k.ID && (r.key.Directory.IsZero() || r.key.Directory == k.Directory)
}

// setVoters follows a change of the voter set; progress already known is kept.
func (l *leadership) setVoters(set VoterSet) {
	old := l.voters
	l.voters = map[model.NodeID]*replica{}
	for _, v := range set {
		r := old[v.ID]
		if r == nil || !r.matches(v.ReplicaKey) && !v.Directory.IsZero() {
			if r = l.observers[v.ReplicaKey]; r == nil {
				r = newReplica(v.ReplicaKey)
			}
		} else {
			delete(old, v.ID)
		}
		r.key = v.ReplicaKey
		delete(l.observers, v.ReplicaKey)
		l.voters[v.ID] = r
	}
	for _, r := range old {
		if _, ok := l.observers[r.key]; !ok {
			l.observers[r.key] = r
		}
	}
}

func (l *leadership) find(k ReplicaKey) *replica {
	if r := l.voters[k.ID]; r != nil && r.matches(k) {
		return r
	}
	r := l.observers[k]
	if r == nil {
		r = newReplica(k)
		l.observers[k] = r
	}
	return r
}

// byDescendingOffset lists the other voters, the best successor first (K-29).
func (l *leadership) byDescendingOffset(self ReplicaKey) []ReplicaKey {
	var rs []*replica
	for _, r := range l.voters {
		if !r.matches(self) {
			rs = append(rs, r)
		}
	}
	slices.SortFunc(rs, func(a, b *replica) int {
		return cmp.Or(cmp.Compare(b.end, a.end), cmp.Compare(a.key.ID, b.key.ID))
	})
	keys := make([]ReplicaKey, len(rs))
	for i, r := range rs {
		keys[i] = r.key
	}
	return keys
}

// progress takes the fetch of a replica as an acknowledgement of everything before offset (K-47, K-52).
func (c *Core) progress(k ReplicaKey, offset int64) {
	if k.ID < 0 {
		return
	}
	l := c.lead
	r := l.find(k)
	if r.end > offset {
		c.note(true, "raft: a replica fetches from an earlier offset than before", "replica", k, "was", r.end, "now", offset)
	}
	switch {
	case offset >= c.log.end:
		r.caughtUp = c.now
	case r.leaderEndThen > 0 && offset >= r.leaderEndThen:
		r.caughtUp = r.lastFetch
	}
	r.leaderEndThen = c.log.end
	r.lastFetch = c.now
	r.end = offset
	l.acknowledged[k.ID] = true
	c.heardFrom(k)
	c.advanceHighWatermark()
}

// heardFrom restarts the check-quorum timer once enough distinct voters have fetched (K-26).
func (c *Core) heardFrom(k ReplicaKey) {
	l := c.lead
	if r := l.voters[k.ID]; r != nil && r.matches(k) {
		l.fetched[k.ID] = true
	}
	needed := len(l.voters)/2 + 1
	if l.voters[c.cfg.Self.ID] != nil {
		needed--
	}
	if len(l.fetched) >= needed {
		clear(l.fetched)
		l.checkQuorum = c.now.Add(c.cfg.FetchTimeout * checkQuorumFactor / 2)
	}
}

// advanceHighWatermark is K-51. The leader counts with what is durable, and only if it is in the set.
func (c *Core) advanceHighWatermark() {
	l := c.lead
	if len(l.voters) == 0 {
		return
	}
	ends := make([]int64, 0, len(l.voters))
	for _, r := range l.voters {
		if r.matches(c.cfg.Self) {
			ends = append(ends, c.log.durable)
			continue
		}
		ends = append(ends, r.end)
	}
	slices.SortFunc(ends, func(a, b int64) int { return cmp.Compare(b, a) })
	hw := min(ends[len(ends)/2], c.log.end)
	if hw <= l.start || hw <= l.hw {
		return
	}
	if l.hw < 0 {
		c.note(false, "raft: high watermark known for the first time in this epoch", "epoch", c.epoch, "highWatermark", hw)
	}
	l.hw = hw
	c.setHighWatermark(hw)
	c.completeParked(parkedAll)
	if _, ok := l.voters[c.cfg.Self.ID]; !ok {
		if at, ok := c.log.votersOffset(); ok && at < hw {
			c.toResigned("removed from the voters") // K-91
		}
	}
}

func (c *Core) setHighWatermark(hw int64) {
	if hw <= c.hw {
		return
	}
	c.hw = hw
	c.floor = max(c.floor, hw)
	c.emit(HighWatermark{hw})
}

// appendOwn adds this leader's batches: parked fetches may have them at once, but they count only after a sync (K-49).
func (c *Core) appendOwn(batches []Batch) {
	if len(batches) == 0 {
		return
	}
	before := len(c.log.voterSets)
	for _, b := range batches {
		c.log.append(b)
	}
	c.emit(AppendLog{batches})
	if len(c.log.voterSets) != before {
		c.lead.setVoters(c.log.voters())
	}
	c.completeParked(parkedRecords)
}

// appendEpochStart writes the first batch of the epoch: LeaderChange and, when the set came from the bootstrap checkpoint or holds an
// outdated entry of this node, KRaftVersion and Voters in the same batch (K-24, K-78, K-93).
func (c *Core) appendEpochStart(granting []model.NodeID) {
	set := c.log.voters()
	records := []ControlRecord{{LeaderChange: &LeaderChangeRecord{Leader: c.cfg.Self.ID, Voters: set.IDs(), Granting: granting}}}
	if level := c.log.version(); level > 0 {
		at, ok := c.log.votersOffset()
		if !ok {
			c.fatal("kraft.version is %d but neither log nor checkpoint hold a voter set: format the node again with its initial controllers", level)
			return
		}
		mine := Voter{c.cfg.Self, c.cfg.Endpoints, c.cfg.Versions}
		if updated, changed := set.Update(mine); at < 0 || changed {
			records = append(records, ControlRecord{KRaftVersion: &level}, ControlRecord{Voters: updated})
		}
	}
	c.appendControl(records)
}

// appendControl writes one control batch at the end.
func (c *Core) appendControl(records []ControlRecord) {
	for i := range records {
		records[i].Offset = c.log.end + int64(i)
	}
	b := Batch{Base: c.log.end, Last: c.log.end + int64(len(records)) - 1, Epoch: c.epoch, IsControl: true, Control: records}
	data, err := encodeControl(b, c.now.UnixMilli())
	if err != nil {
		c.fatal("control records do not encode: %w", err)
		return
	}
	b.Data = data
	c.appendOwn([]Batch{b})
}

func (c *Core) sendBeginQuorumEpoch() {
	l := c.lead
	if !c.expired(l.begin) {
		return
	}
	every := c.cfg.FetchTimeout / 2
	for _, v := range c.log.voters() {
		r := l.voters[v.ID]
		if v.ID == c.cfg.Self.ID || r == nil || !c.ready(v.ID) || !r.lastFetch.IsZero() && c.now.Sub(r.lastFetch) < every {
			continue
		}
		to, ok := c.voterPeer(v.ID)
		if !ok {
			c.note(true, "raft: a voter has no endpoint for the controller listener", "voter", v.ID, "listener", c.cfg.Listener)
			continue
		}
		c.send(to, &BeginQuorumEpochRequest{Voter: v.ReplicaKey, Leader: c.cfg.Self.ID, Epoch: c.epoch, Endpoints: c.cfg.Endpoints})
	}
	l.begin = c.now.Add(every)
	if len(l.voters) == 1 && l.voters[c.cfg.Self.ID] != nil {
		l.begin = time.Time{} // nobody to remind
	}
}

func (c *Core) quorumLost() bool {
	l := c.lead
	if len(l.voters) == 1 && l.voters[c.cfg.Self.ID] != nil {
		return false
	}
	return c.expired(l.checkQuorum)
}
