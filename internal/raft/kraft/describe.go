package kraft

import (
	"cmp"
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// DescribeRequest asks for the leader's view of the quorum (K-46).
type DescribeRequest struct{}

// DescribeResponse is that view; only a leader has one.
type DescribeResponse struct {
	Error         int16
	Leader        model.NodeID
	Epoch         int32
	HighWatermark int64
	Voters        []ReplicaView
	Observers     []ReplicaView
	Nodes         VoterSet
}

// ReplicaView is one line of it; -1 stands for what has not been seen yet. Times are ms.
type ReplicaView struct {
	ReplicaKey
	LogEnd       int64
	LastFetch    int64
	LastCaughtUp int64
}

func (c *Core) describe() *DescribeResponse {
	if c.role != Leader {
		return &DescribeResponse{Error: kerr.NotLeaderOrFollower.Code}
	}
	l := c.lead
	for k, r := range l.observers {
		if c.now.Sub(r.lastFetch) >= observerSession {
			delete(l.observers, k)
		}
	}
	d := &DescribeResponse{Leader: c.cfg.Self.ID, Epoch: c.epoch, HighWatermark: l.hw, Nodes: c.log.voters()}
	for _, r := range l.voters {
		v := r.view()
		if r.matches(c.cfg.Self) {
			now := c.now.UnixMilli()
			v.LogEnd, v.LastFetch, v.LastCaughtUp = c.log.end, now, now
		}
		d.Voters = append(d.Voters, v)
	}
	for _, r := range l.observers {
		d.Observers = append(d.Observers, r.view())
	}
	byKey := func(a, b ReplicaView) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), slices.Compare(a.Directory[:], b.Directory[:]))
	}
	slices.SortFunc(d.Voters, byKey)
	slices.SortFunc(d.Observers, byKey)
	return d
}

func (r *replica) view() ReplicaView {
	v := ReplicaView{ReplicaKey: r.key, LogEnd: r.end, LastFetch: -1, LastCaughtUp: -1}
	if !r.lastFetch.IsZero() {
		v.LastFetch = r.lastFetch.UnixMilli()
	}
	if !r.caughtUp.IsZero() {
		v.LastCaughtUp = r.caughtUp.UnixMilli()
	}
	return v
}
