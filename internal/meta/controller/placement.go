package controller

import (
	"math/rand/v2"
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
)

// placer spreads new replicas over brokers and racks, as Kafka's striped placement does (K-149).
//
// Racks in name order form a ring; each partition starts one rack further than the one before, the
// first at random. Within a rack the brokers form two rings, unfenced before fenced; each partition
// takes up one broker further than the last. The first replica must be unfenced: it will lead. After
// as many partitions as there are unfenced brokers everything is shuffled, so that the same sets do
// not come back in step.
type placer struct {
	rng      *rand.Rand
	racks    []*rack
	total    int // usable brokers
	unfenced int
	epoch    int // partitions since the last shuffle
	offset   int // rack the next partition starts at
}

type rack struct {
	name             string
	unfenced, fenced ring
}

// ring hands out its brokers once per epoch, from a start that moves on with each epoch.
type ring struct {
	brokers []model.NodeID
	taken   int
	start   int
	epoch   int
}

func (r *ring) next(epoch int) model.NodeID {
	if len(r.brokers) == 0 {
		return model.NoNode
	}
	if r.epoch != epoch {
		r.epoch, r.taken, r.start = epoch, 0, (r.start+1)%len(r.brokers)
	}
	if r.taken >= len(r.brokers) {
		return model.NoNode
	}
	n := r.brokers[(r.taken+r.start)%len(r.brokers)]
	r.taken++
	return n
}

func (r *rack) next(epoch int) model.NodeID {
	if n := r.unfenced.next(epoch); n != model.NoNode {
		return n
	}
	return r.fenced.next(epoch)
}

// newPlacer takes the brokers that may hold new replicas: registered, not shutting down, with a
// directory that is not cordoned.
func newPlacer(rng *rand.Rand, brokers image.Brokers) *placer {
	p := &placer{rng: rng}
	byName := map[string]*rack{}
	for b := range brokers.All() {
		if b.InControlledShutdown && !b.Fenced || !b.HasUncordonedDir() {
			continue
		}
		name := "" // no rack sorts first, as in Kafka
		if b.Rack != nil {
			name = "r" + *b.Rack
		}
		r := byName[name]
		if r == nil {
			r = &rack{name: name}
			byName[name] = r
			p.racks = append(p.racks, r)
		}
		if b.Fenced {
			r.fenced.brokers = append(r.fenced.brokers, b.ID)
		} else {
			r.unfenced.brokers = append(r.unfenced.brokers, b.ID)
			p.unfenced++
		}
		p.total++
	}
	slices.SortFunc(p.racks, func(a, b *rack) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	for _, r := range p.racks {
		for _, ring := range []*ring{&r.fenced, &r.unfenced} {
			if len(ring.brokers) > 0 {
				ring.start = rng.IntN(len(ring.brokers))
			}
		}
	}
	if len(p.racks) > 0 {
		p.offset = rng.IntN(len(p.racks))
	}
	return p
}

func (p *placer) check(factor int) error {
	switch {
	case factor <= 0:
		return kerr.InvalidReplicationFactor.With("Invalid replication factor %d: the replication factor must be positive.", factor)
	case p.unfenced == 0:
		return kerr.InvalidReplicationFactor.With("All brokers are currently fenced, or have all their log directories cordoned.")
	case factor > p.total:
		return kerr.InvalidReplicationFactor.With("The target replication factor of %d cannot be reached because only %d broker(s) are registered or some brokers have all their log directories cordoned.", factor, p.total)
	}
	return nil
}

// next places one partition; check has said yes to factor.
func (p *placer) next(factor int) []model.NodeID {
	if p.epoch == p.unfenced && p.unfenced > 1 {
		p.shuffle()
	}
	if p.offset == len(p.racks) {
		p.offset = 0
	}
	replicas := make([]model.NodeID, 0, factor)
	first := p.offset
	for {
		if n := p.racks[first].unfenced.next(p.epoch); n != model.NoNode {
			replicas = append(replicas, n)
			break
		}
		first = (first + 1) % len(p.racks)
	}
	at := p.offset
	for len(replicas) < factor {
		n := model.NoNode
		for n == model.NoNode {
			if at == first {
				first = -1 // it has given its share of this round
			} else {
				n = p.racks[at].next(p.epoch)
			}
			at = (at + 1) % len(p.racks)
		}
		replicas = append(replicas, n)
	}
	p.epoch++
	p.offset++
	return replicas
}

func (p *placer) shuffle() {
	p.epoch = 0
	p.rng.Shuffle(len(p.racks), func(i, j int) { p.racks[i], p.racks[j] = p.racks[j], p.racks[i] })
	for _, r := range p.racks {
		for _, ring := range []*ring{&r.fenced, &r.unfenced} {
			p.rng.Shuffle(len(ring.brokers), func(i, j int) { ring.brokers[i], ring.brokers[j] = ring.brokers[j], ring.brokers[i] })
		}
	}
}

// assignment is a partition to be: who holds it and in which directories.
type assignment struct {
	replicas []model.NodeID
	dirs     []model.DirectoryID
}

func (v *view) assign(replicas []model.NodeID) assignment {
	a := assignment{replicas: replicas, dirs: make([]model.DirectoryID, len(replicas))}
	for i, n := range replicas {
		a.dirs[i] = v.defaultDir(n)
	}
	return a
}

// checkManual tests an assignment made by the caller.
//
//	factor  the number of replicas it must have; negative: any
func (v *view) checkManual(replicas []model.NodeID, factor int) error {
	if len(replicas) == 0 {
		return kerr.InvalidReplicaAssignment.With("The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Sorted(slices.Values(replicas))
	for i, n := range sorted {
		b, ok := v.img.Brokers().ByID(n)
		switch {
		case !ok:
			return kerr.InvalidReplicaAssignment.With("The manual partition assignment includes broker %d, but no such broker is registered.", n)
		case !b.HasUncordonedDir():
			return kerr.InvalidReplicaAssignment.With("The manual partition assignment includes broker %d, but all its log directories are cordoned.", n)
		case i > 0 && sorted[i-1] == n:
			return kerr.InvalidReplicaAssignment.With("The manual partition assignment includes the broker %d more than once.", n)
		}
	}
	if factor >= 0 && len(replicas) != factor {
		return kerr.InvalidReplicaAssignment.With("The manual partition assignment includes a partition with %d replica(s), but this is not consistent with previous partitions, which have %d replica(s).", len(replicas), factor)
	}
	return nil
}

// newPartition is the first registration of a partition: the active replicas are in sync, the first
// of them leads; nil if none is active.
func (v *view) newPartition(a assignment) *image.Partition {
	var isr []model.NodeID
	for _, n := range a.replicas {
		if v.active(n) {
			isr = append(isr, n)
		}
	}
	if len(isr) == 0 {
		return nil
	}
	return &image.Partition{Replicas: a.replicas, Directories: a.dirs, ISR: isr, Leader: isr[0], LeaderRecoveryState: image.RecoveryRecovered}
}

func nodeIDs(ids []int32) []model.NodeID {
	out := make([]model.NodeID, len(ids))
	for i, id := range ids {
		out[i] = model.NodeID(id)
	}
	return out
}
