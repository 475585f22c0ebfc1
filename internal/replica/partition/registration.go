package partition

import (
	"slices"

	"samsa/internal/base/model"
)

// Registration is a partition as the metadata has it. Slices are shared with the image: never changed.
type Registration struct {
	Leader      model.NodeID
	LeaderEpoch model.LeaderEpoch
	Epoch       model.PartitionEpoch
	Replicas    []model.NodeID
	ISR         []model.NodeID
	Adding      []model.NodeID
	Removing    []model.NodeID
	// Recovering is leaderRecoveryState 1: elected from outside the in-sync set. The leader clears it with its
	// next proposal (D-149).
	Recovering bool
}

// Brokers is what is known of the other brokers: one metadata image.
type Brokers interface {
	// Broker tells the registered epoch of a broker and whether it is alive (registered and not fenced) and may join
	// an in-sync set (alive and not in controlled shutdown). Epoch is -1 for one that is not alive.
	Broker(id model.NodeID) (epoch int64, alive, mayJoin bool)
}

// Follower is what a leader knows of another replica. Times are the leader's clock.
type Follower struct {
	ID       model.NodeID
	LogEnd   int64 // its next fetch offset; -1 before the first fetch of this leadership
	LogStart int64 // -1 unknown
	// Epoch is the broker epoch in its last fetch; known tells whether there was one. -1 bypasses the check.
	Epoch int64
	known bool

	inISR      bool  // in the committed in-sync set
	caughtUpMs int64 // last time it was known to have everything; never before that
	fetchedMs  int64 // last fetch
	leaderEnd  int64 // the leader's log end at the last fetch
}

// never is a time so long ago that no lag reaches back to it.
const never = -1 << 60

// caughtUp tells whether the follower has been at the log end within maxLag.
func (f *Follower) caughtUp(leaderEnd, nowMs, maxLagMs int64) bool {
	return f.LogEnd == leaderEnd || nowMs-f.caughtUpMs <= maxLagMs
}

// reset starts a new leadership or a new leader epoch of the same one.
func (f *Follower) reset(nowMs, leaderEnd int64, newLeader, inISR bool) {
	f.inISR = inISR
	f.caughtUpMs = never
	if inISR {
		f.caughtUpMs = nowMs
	}
	f.leaderEnd = leaderEnd
	f.fetchedMs = f.caughtUpMs
	if newLeader {
		f.LogEnd, f.LogStart = -1, -1
		f.leaderEnd = -1
		f.fetchedMs = never
		f.Epoch, f.known = -1, false
	}
}

// fetched records a fetch at offset (D-143).
func (f *Follower) fetched(nowMs, offset, logStart, epoch, leaderEnd int64) {
	switch {
	case offset >= leaderEnd:
		f.caughtUpMs = max(f.caughtUpMs, nowMs)
	case f.leaderEnd >= 0 && offset >= f.leaderEnd:
		f.caughtUpMs = max(f.caughtUpMs, f.fetchedMs)
	}
	f.LogEnd, f.LogStart = offset, logStart
	f.fetchedMs, f.leaderEnd = nowMs, leaderEnd
	f.Epoch, f.known = epoch, true
}

func contains(ids []model.NodeID, id model.NodeID) bool { return slices.Contains(ids, id) }
