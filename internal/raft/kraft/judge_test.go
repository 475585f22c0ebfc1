package kraft

import (
	"fmt"

	"samsa/internal/base/model"
)

// judge watches every effect of every member and knows what may never happen.
type judge struct {
	voters  VoterSet
	err     error
	leaders map[int32]model.NodeID  // of each epoch
	votes   map[voteOf]model.NodeID // by whom, in which epoch
	log     map[int64]cell          // committed, by first offset of a batch
	end     int64                   // of the committed log
	hw      map[*member]int64       // of its present life
	used    map[[2]int64]string     // (offset, epoch) -> bytes, over all disks (K-74)
	roles   map[*member]Role        // before the last effect
}

type voteOf struct {
	by    model.NodeID
	epoch int32
}

type cell struct {
	epoch int32
	last  int64
	data  string
}

func newJudge() *judge {
	return &judge{leaders: map[int32]model.NodeID{}, votes: map[voteOf]model.NodeID{}, log: map[int64]cell{},
		hw: map[*member]int64{}, used: map[[2]int64]string{}, roles: map[*member]Role{}}
}

func (j *judge) fail(format string, args ...any) {
	if j.err == nil {
		j.err = fmt.Errorf(format, args...)
	}
}

func (j *judge) fatal(m *member, err error) { j.fail("n%d stopped: %w", m.key.ID, err) }

func (j *judge) restarted(m *member) {
	delete(j.hw, m)
	delete(j.roles, m)
}

// saved: one vote and one leader per node and epoch, over all its lives (K-14, K-15, K-21).
func (j *judge) saved(m *member, s QuorumState) {
	if s.Voted.ID >= 0 {
		k := voteOf{m.key.ID, s.Epoch}
		if old, ok := j.votes[k]; ok && old != s.Voted.ID {
			j.fail("n%d voted for %d and for %d in epoch %d", m.key.ID, old, s.Voted.ID, s.Epoch)
		}
		j.votes[k] = s.Voted.ID
	}
	if s.Leader >= 0 {
		j.leads(s.Leader, s.Epoch)
	}
}

func (j *judge) leads(id model.NodeID, epoch int32) {
	if old, ok := j.leaders[epoch]; ok && old != id {
		j.fail("epoch %d has two leaders, %d and %d", epoch, old, id)
	}
	j.leaders[epoch] = id
}

// look checks a member after each of its effects: a leader's log holds everything committed, and nothing it holds contradicts another disk.
func (j *judge) look(w *world, m *member) {
	role := m.core.Role()
	if role == Leader && j.roles[m] != Leader {
		j.leads(m.key.ID, m.core.Epoch())
		for at, c := range j.log {
			if c.last < m.disk.start {
				continue // in its snapshot
			}
			if b := batchAt(m, at); b == nil || b.Epoch != c.epoch || string(b.Data) != c.data {
				j.fail("n%d leads epoch %d without committed offset %d", m.key.ID, m.core.Epoch(), at)
			}
		}
	}
	j.roles[m] = role
	if n := len(m.disk.batches); n > 0 {
		b := m.disk.batches[n-1]
		k := [2]int64{b.Base, int64(b.Epoch)}
		if old, ok := j.used[k]; ok && old != string(b.Data) {
			j.fail("offset %d of epoch %d stands for different bytes", b.Base, b.Epoch)
		}
		j.used[k] = string(b.Data)
	}
}

func batchAt(m *member, at int64) *Batch {
	for i := range m.disk.batches {
		if m.disk.batches[i].Base == at {
			return &m.disk.batches[i]
		}
	}
	return nil
}

// committed: the high watermark never falls, never contradicts what was committed before, and a leader's is never above what a majority has
// on disk (K-51, K-49, K-50).
func (j *judge) committed(w *world, m *member, hw int64) {
	if hw < j.hw[m] {
		j.fail("high watermark of n%d fell from %d to %d", m.key.ID, j.hw[m], hw)
	}
	j.hw[m] = hw
	if m.core.Role() == Leader {
		holding := 0
		for _, x := range w.members {
			if v, ok := j.voters.Find(x.key.ID); ok && v.ID == x.key.ID && holds(x, m, hw) {
				holding++
			}
		}
		if holding < j.voters.Majority() {
			j.fail("n%d commits up to %d, but only %d of %d voters have it on disk", m.key.ID, hw, holding, len(j.voters))
		}
	}
	for i := range m.disk.batches {
		b := &m.disk.batches[i]
		if b.Last >= hw {
			break
		}
		c, ok := j.log[b.Base]
		if ok && (c.epoch != b.Epoch || c.data != string(b.Data) || c.last != b.Last) {
			j.fail("n%d: committed offset %d changed", m.key.ID, b.Base)
		}
		if !ok {
			j.log[b.Base] = cell{b.Epoch, b.Last, string(b.Data)}
		}
	}
	j.end = max(j.end, hw)
}

// holds: x has everything of m's log below hw on disk, synced, or in a snapshot.
func holds(x, m *member, hw int64) bool {
	if x.disk.start >= hw {
		return true
	}
	synced := x.disk.start
	if x.disk.synced > 0 {
		synced = x.disk.batches[x.disk.synced-1].Last + 1
	}
	if synced < hw {
		return false
	}
	for i := range m.disk.batches {
		b := &m.disk.batches[i]
		if b.Last >= hw {
			break
		}
		if b.Base < x.disk.start {
			continue
		}
		if o := batchAt(x, b.Base); o == nil || o.Epoch != b.Epoch || string(o.Data) != string(b.Data) {
			return false
		}
	}
	return true
}
