package controller

import (
	"slices"

	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// election is how a leader is looked for (K-156).
type election int8

const (
	electOnline    election = iota // keep the leader if it is valid, else the first valid replica
	electPreferred                 // the first replica if it is valid, then as online
	electUnclean                   // as online, then whoever is there, at the price of records
)

// change turns one partition into another registration. It starts from what is; the caller sets
// targets; build completes a reassignment that has become possible, keeps ELR (KIP-966), elects,
// and gives the record of the difference.
//
// Invariants: a clean leader is in the ISR, or in the ELR when the ISR is empty. Without ELR the
// last member never leaves the ISR (K-157). A leader named in the record, even the same one, has its
// epoch bumped; everything else bumps the partition epoch alone (K-83, K-155).
type change struct {
	part  *image.Partition
	topic model.TopicID
	index int32
	// acceptable says whether a replica could lead: active, its directory online (J-131).
	acceptable func(model.NodeID) bool
	mv         image.MetadataVersion
	elr        bool
	minISR     int
	election   election
	// unclean replicas came back without what they had acknowledged: they leave the ELR.
	unclean []model.NodeID
	// defaultDir is the directory of a replica that had none (J-60).
	defaultDir func(model.NodeID) model.DirectoryID

	isr, replicas, removing, adding []model.NodeID
	eligible                        []model.NodeID // ELR
	dirs                            map[model.NodeID]model.DirectoryID
	recovery                        int8
}

// build returns the record, nil if nothing changes. The targets are used up.
func (c *change) build() *protocol.PartitionChangeRecord {
	r := new(protocol.PartitionChangeRecord)
	r.Default()
	r.TopicId, r.PartitionId = model.UUID(c.topic), c.index

	c.completeReassignment()
	c.targetELR()
	c.elect(r)
	if r.Leader == image.NoLeaderChange && !containsAll(c.replicas, c.part.Replicas) {
		r.Leader = int32(c.part.Leader) // a replica leaves: readers of the old list must notice
	}
	c.writeELR(r)
	if r.Isr == nil && (len(c.isr) > 0 || c.elr) && !slices.Equal(c.isr, c.part.ISR) {
		r.Isr = image.IDs(c.isr)
	}
	if c.mv < image.MetadataVersionISR && r.Leader == image.NoLeaderChange && r.Isr != nil {
		// Old brokers need the epoch bump when the ISR shrinks (K-155).
		for _, n := range c.part.ISR {
			if !slices.Contains(r.Isr, int32(n)) {
				r.Leader = int32(c.part.Leader)
				break
			}
		}
	}
	c.writeLastKnownLeader(r)
	c.writeAssignment(r)
	if c.recovery != c.part.LeaderRecoveryState {
		r.LeaderRecoveryState = c.recovery
	}
	if r.Isr == nil && r.EligibleLeaderReplicas == nil && r.LastKnownElr == nil && r.Leader == image.NoLeaderChange &&
		r.Replicas == nil && r.RemovingReplicas == nil && r.AddingReplicas == nil && r.LeaderRecoveryState < 0 && r.Directories == nil {
		return nil
	}
	return r
}

// completeReassignment ends a reassignment once every added replica is in sync and somebody in sync
// stays; if the factor shrinks, only when the whole target is in sync (K-162, 4.3+).
func (c *change) completeReassignment() {
	if len(c.removing) == 0 && len(c.adding) == 0 {
		return
	}
	isr, replicas := without(c.isr, c.removing), without(c.replicas, c.removing)
	if len(c.removing) > 0 && (len(isr) == 0 || len(replicas) == 0) || !containsAll(isr, c.adding) {
		return
	}
	if len(c.adding) < len(c.removing) && !containsAll(isr, replicas) {
		return
	}
	c.isr, c.replicas, c.removing, c.adding = isr, replicas, nil, nil
}

// targetELR: below min ISR, those who leave the ISR stay eligible unless they lost their data (K-158).
func (c *change) targetELR() {
	if !c.elr {
		return
	}
	if len(c.isr) >= c.minISR {
		c.eligible = nil
		return
	}
	next := slices.Clone(c.eligible)
	for _, n := range c.part.ISR {
		if !slices.Contains(next, n) {
			next = append(next, n)
		}
	}
	c.eligible = without(without(next, c.isr), c.unclean)
}

// valid: the replica could lead without losing anything.
func (c *change) valid(n model.NodeID) bool {
	return (slices.Contains(c.isr, n) || len(c.isr) == 0 && slices.Contains(c.eligible, n)) && c.acceptable(n)
}

// candidate picks the leader; clean is false if records may be lost by it.
func (c *change) candidate() (leader model.NodeID, clean bool) {
	if c.election == electPreferred && len(c.replicas) > 0 && c.valid(c.replicas[0]) {
		return c.replicas[0], true
	}
	if c.valid(c.part.Leader) {
		return c.part.Leader, true
	}
	if i := slices.IndexFunc(c.replicas, c.valid); i >= 0 {
		return c.replicas[i], true
	}
	// The last known leader: nobody is left in ISR or ELR, but it was the last to have everything.
	if c.elr && len(c.eligible) == 0 && len(c.isr) == 0 && len(c.part.LastKnownELR) == 1 && c.acceptable(c.part.LastKnownELR[0]) {
		return c.part.LastKnownELR[0], false
	}
	if c.election == electUnclean {
		if i := slices.IndexFunc(c.replicas, c.acceptable); i >= 0 {
			return c.replicas[i], false
		}
	}
	return model.NoNode, true
}

func (c *change) elect(r *protocol.PartitionChangeRecord) {
	leader, clean := c.candidate()
	if leader == c.part.Leader {
		return
	}
	if slices.Contains(c.eligible, leader) {
		c.isr = []model.NodeID{leader}
		c.eligible = without(c.eligible, c.isr)
	}
	r.Leader = int32(leader)
	if !clean {
		r.Isr = []int32{int32(leader)}
		if c.part.LeaderRecoveryState != image.RecoveryRecovering {
			r.LeaderRecoveryState = image.RecoveryRecovering
		}
	}
}

func (c *change) writeELR(r *protocol.PartitionChangeRecord) {
	if r.Isr != nil || !c.elr { // an unclean election makes the ELR meaningless
		c.eligible = nil
	}
	if !slices.Equal(c.eligible, c.part.ELR) {
		r.EligibleLeaderReplicas = image.IDs(c.eligible)
	}
}

// writeLastKnownLeader keeps who led when the partition first lost its leader.
func (c *change) writeLastKnownLeader(r *protocol.PartitionChangeRecord) {
	if !c.elr {
		return
	}
	if r.Leader == int32(model.NoNode) && len(c.part.LastKnownELR) == 0 {
		r.LastKnownElr = []int32{int32(c.part.Leader)}
	} else if r.Leader >= 0 && len(c.part.LastKnownELR) > 0 {
		r.LastKnownElr = []int32{}
	}
}

func (c *change) writeAssignment(r *protocol.PartitionChangeRecord) {
	if len(c.replicas) > 0 {
		if c.mv.DirectoryAssignment() {
			next := make([]model.DirectoryID, len(c.replicas))
			for i, n := range c.replicas {
				dir, ok := c.dirs[n]
				if !ok {
					if dir, ok = c.part.Directory(n); !ok {
						dir = c.defaultDir(n)
					}
				}
				next[i] = dir
			}
			if !slices.Equal(next, c.part.Directories) {
				r.Directories = image.UUIDs(next)
			}
		}
		if !slices.Equal(c.replicas, c.part.Replicas) {
			r.Replicas = image.IDs(c.replicas)
		}
	}
	if !slices.Equal(c.removing, c.part.Removing) {
		r.RemovingReplicas = image.IDs(c.removing)
	}
	if !slices.Equal(c.adding, c.part.Adding) {
		r.AddingReplicas = image.IDs(c.adding)
	}
}

// without is a less the members of b, in a's order; never a itself.
func without(a, b []model.NodeID) []model.NodeID {
	var out []model.NodeID
	for _, n := range a {
		if !slices.Contains(b, n) {
			out = append(out, n)
		}
	}
	return out
}

func containsAll(a, b []model.NodeID) bool {
	return !slices.ContainsFunc(b, func(n model.NodeID) bool { return !slices.Contains(a, n) })
}
