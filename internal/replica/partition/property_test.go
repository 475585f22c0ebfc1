package partition

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// twin is the dumb twin of a leader: it knows what every replica has and which in-sync set the controller has committed.
type twin struct {
	leo map[model.NodeID]int64 // true log ends
	isr []model.NodeID         // committed
}

// committed is what every member of the committed in-sync set has: no watermark may be above it.
func (w *twin) committed() int64 {
	least := w.leo[1]
	for _, id := range w.isr {
		least = min(least, w.leo[id])
	}
	return least
}

// D-31, D-146, D-147, D-148: whatever order of appends, fetches, delays, proposals and answers (also lost, late and repeated ones):
// the high watermark never goes back within a leadership, never passes what the committed in-sync set has, never moves below
// min.insync.replicas, and reaches the end once everybody has everything.
func TestHighWatermarkProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minISR := rapid.IntRange(1, 3).Draw(t, "min.insync.replicas")
		replicas := []model.NodeID{1, 2, 3}
		brokers := brokerMap{1: {1, true, true}, 2: {2, true, true}, 3: {3, true, true}}
		now, at, epoch := int64(1_000_000), model.PartitionEpoch(0), model.LeaderEpoch(0)
		c := New(1, Settings{MinISR: minISR, MaxLagMs: 1000}, 0, 0, 0)
		w := &twin{leo: map[model.NodeID]int64{1: 0, 2: 0, 3: 0}, isr: slices.Clone(replicas)}
		apply := func() {
			c.Apply(now, Registration{Leader: 1, LeaderEpoch: epoch, Epoch: at, Replicas: replicas, ISR: slices.Clone(w.isr)}, brokers)
		}
		apply()
		var flying []*Proposal
		high := int64(0)
		check := func(what string, frozen bool) {
			switch h := c.HighWatermark(); {
			case h < high:
				t.Fatalf("%s: the watermark went back from %d to %d", what, high, h)
			case h > w.committed():
				t.Fatalf("%s: watermark %d, but the in-sync set %v has %v", what, h, w.isr, w.leo)
			case frozen && h != high:
				t.Fatalf("%s: the watermark moved from %d to %d below min.insync.replicas", what, high, h)
			default:
				high = h
			}
		}
		fetch := func(id model.NodeID, offset int64) {
			f := c.FollowerFetched(now, FollowerFetch{ID: id, Offset: offset, BrokerEpoch: int64(id), LeaderEnd: w.leo[1]}, brokers)
			if f.Propose != nil {
				flying = append(flying, f.Propose)
			}
		}
		decide := func(p *Proposal) Answer { // the controller
			if p.LeaderEpoch != epoch {
				return Answer{Err: kerr.FencedLeaderEpoch}
			}
			if p.Epoch != at {
				return Answer{Err: kerr.InvalidUpdateVersion}
			}
			w.isr = nil
			for _, m := range p.ISR {
				w.isr = append(w.isr, m.ID)
			}
			at++
			return Answer{LeaderEpoch: epoch, Epoch: at, ISR: slices.Clone(w.isr)}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				frozen := len(c.reg.ISR) < minISR
				w.leo[1] += rapid.Int64Range(1, 5).Draw(t, "records")
				c.Appended(now, w.leo[1], brokers)
				check("append", frozen)
			},
			"fetch": func(t *rapid.T) {
				frozen := len(c.reg.ISR) < minISR
				id := model.NodeID(rapid.IntRange(2, 3).Draw(t, "follower"))
				// It has what it asks from; the answer to this fetch brings it up to some end.
				fetch(id, w.leo[id])
				check("fetch", frozen)
				w.leo[id] += rapid.Int64Range(0, w.leo[1]-w.leo[id]).Draw(t, "received")
			},
			"time": func(t *rapid.T) {
				now += rapid.Int64Range(1, 700).Draw(t, "ms")
				if p := c.Shrink(now); p != nil {
					flying = append(flying, p)
				}
				check("time", true)
			},
			"answer": func(t *rapid.T) {
				if len(flying) == 0 {
					t.Skip("nothing on its way")
				}
				i := rapid.IntRange(0, len(flying)-1).Draw(t, "which")
				p := flying[i]
				flying = slices.Delete(flying, i, i+1)
				switch rapid.IntRange(0, 3).Draw(t, "fate") {
				case 0: // decided, but the answer is lost; the metadata comes some time
					decide(p)
					check("lost answer", true)
				case 1:
					c.ProposalAnswered(now, p, Answer{Err: kerr.IneligibleReplica}, brokers)
					check("ineligible", false)
				case 2:
					if c.ProposalAnswered(now, p, Answer{Err: kerr.UnknownServerError}, brokers).Retry {
						flying = append(flying, p)
					}
					check("failed", true)
				default:
					a := decide(p)
					c.ProposalAnswered(now, p, a, brokers)
					check("answered", false)
				}
			},
			"metadata": func(t *rapid.T) {
				apply()
				check("metadata", false)
			},
			"controller removes": func(t *rapid.T) {
				w.isr = slices.DeleteFunc(slices.Clone(w.isr), func(id model.NodeID) bool { return id == 3 })
				at++
			},
			"new epoch": func(t *rapid.T) {
				epoch++
				at++
				apply()
				check("new epoch", false)
			},
		})
		// Calm: everybody fetches to the end, answers arrive, metadata is applied.
		for range 10 {
			for id := range w.leo {
				w.leo[id] = w.leo[1]
			}
			apply()
			for _, p := range flying {
				c.ProposalAnswered(now, p, decide(p), brokers)
			}
			flying = nil
			fetch(2, w.leo[1])
			fetch(3, w.leo[1])
			check("calm", false)
		}
		if c.HighWatermark() != w.leo[1] || len(w.isr) != 3 {
			t.Fatalf("calm: watermark %d of %d, in-sync set %v", c.HighWatermark(), w.leo[1], w.isr)
		}
	})
}
