package kraft

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"samsa/internal/base/model"
)

var (
	simSeed  = flag.Uint64("sim.seed", 0, "run this seed only")
	simSeeds = flag.Int("sim.seeds", 150, "how many seeds")
)

// simulate runs one seeded life of a quorum: faults for a while, then peace. It returns what went wrong, nil if nothing.
func simulate(seed uint64, tune func(*world), trace *strings.Builder) error {
	w := newWorld(seed)
	if trace != nil {
		w.trace = func(f string, a ...any) {
			fmt.Fprintf(trace, "%8.3f ", w.now.Sub(epoch0).Seconds())
			fmt.Fprintf(trace, f+"\n", a...)
		}
	}
	r := rand.New(rand.NewPCG(seed, 2))
	n := []int{1, 2, 3, 3, 3, 4, 5}[r.IntN(7)]
	version := int16(r.IntN(2))
	w.addVoters(n, version)
	if r.IntN(3) == 0 {
		o := w.addMember(9, w.members[0].cfg.StaticVoters, version)
		o.cfg.Controller = r.IntN(2) == 0
		o.cfg.Bootstrap = w.members[0].cfg.Bootstrap
		o.disk.snaps = nil // a broker was not given the voters
		if version > 0 {
			o.cfg.StaticVoters = nil
		}
	}
	peace := false
	cut := map[[2]model.NodeID]bool{}
	loss := float64(r.IntN(20)) / 100
	w.delay = func(from, to model.NodeID) (time.Duration, bool) {
		if peace {
			return time.Millisecond, true
		}
		if cut[[2]model.NodeID{from, to}] || r.Float64() < loss {
			return 0, false
		}
		d := time.Duration(r.ExpFloat64() * float64(5*time.Millisecond))
		if r.IntN(50) == 0 {
			d = time.Duration(r.IntN(3000)) * time.Millisecond
		}
		return d, true
	}
	slowDisk := r.IntN(3) == 0
	w.slow = func() time.Duration {
		if !peace && slowDisk && r.IntN(4) == 0 {
			return time.Duration(r.IntN(200)) * time.Millisecond
		}
		return 0
	}
	if tune != nil {
		tune(w)
	}
	for _, m := range w.members {
		w.start(m)
	}
	for step := 0; step < 150 && w.judge.err == nil; step++ {
		w.run(time.Duration(r.IntN(400)) * time.Millisecond)
		m := w.members[r.IntN(len(w.members))]
		switch r.IntN(12) {
		case 0, 1:
			w.crash(m)
		case 2, 3, 4:
			if !m.up && m.fatal == nil {
				w.start(m)
			}
		case 5:
			o := w.members[r.IntN(len(w.members))]
			cut[[2]model.NodeID{m.key.ID, o.key.ID}] = true
			if r.IntN(2) == 0 {
				cut[[2]model.NodeID{o.key.ID, m.key.ID}] = true
			}
		case 6:
			clear(cut)
		case 7:
			if m.up {
				w.snapshot(m, r.IntN(2) == 0)
			}
		case 8:
			if m.up && m.core.Role() == Leader && r.IntN(4) == 0 {
				m.core.Resign(w.now, m.core.Epoch())
				w.effects(m)
			}
		default:
			for _, l := range w.members {
				if l.up && l.core.Role() == Leader {
					w.propose(l, 1+r.IntN(3))
				}
			}
		}
	}
	if w.judge.err != nil {
		return w.judge.err
	}
	// Peace: everybody is back, nothing is lost. There must be a leader, and what it appends must be committed everywhere (liveness).
	peace = true
	for _, m := range w.members {
		if !m.up {
			w.start(m)
		}
	}
	var target int64
	for i := 0; i < 60 && w.judge.err == nil; i++ {
		w.run(500 * time.Millisecond)
		l := w.leader()
		if l == nil {
			continue
		}
		if hw, _ := l.core.HighWatermark(); target > 0 && hw >= target {
			break
		}
		if target == 0 || l.core.LogEnd() < target {
			w.propose(l, 1)
			target = l.core.LogEnd()
		}
	}
	w.run(3 * time.Second)
	if w.judge.err != nil {
		return w.judge.err
	}
	for _, m := range w.members {
		if hw, ok := m.core.HighWatermark(); target == 0 || !ok || hw < target {
			return fmt.Errorf("no progress after the faults: n%d is %v in epoch %d with high watermark %d, want %d", m.key.ID, m.core.Role(), m.core.Epoch(), hw, target)
		}
	}
	return nil
}

// K-10, K-11, K-14..K-16, K-20..K-22, K-31, K-49..K-52, K-54..K-56, K-74, and that a quorum recovers when faults end: seeded lives of 1 to 5
// voters and an observer with crashes that lose unsynced records, slow disks, loss, delay, one-way partitions, snapshots and resignations.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		runSeed(t, *simSeed, true)
		return
	}
	base := rand.Uint64N(1 << 40)
	t.Logf("first seed %d; run one with -sim.seed", base+1)
	for i := 1; i <= *simSeeds; i++ {
		runSeed(t, base+uint64(i), false)
		if t.Failed() {
			return
		}
	}
}

// seedsOnce failed and stay.
var seedsOnce = []uint64{}

func TestSimulationSeedsThatFailed(t *testing.T) {
	for _, seed := range seedsOnce {
		runSeed(t, seed, false)
	}
}

func runSeed(t *testing.T, seed uint64, verbose bool) {
	t.Helper()
	if !verbose {
		if err := simulate(seed, nil, nil); err == nil {
			return
		}
	}
	var trace strings.Builder
	err := simulate(seed, nil, &trace)
	lines := strings.Split(trace.String(), "\n")
	if !verbose {
		lines = lines[max(0, len(lines)-80):]
	}
	t.Logf("%s", strings.Join(lines, "\n"))
	if err != nil {
		t.Errorf("-sim.seed=%d: %v", seed, err)
	}
}

// A driver that breaks a promise is noticed by the judge: the simulation can fail.
func TestSimulationNoticesBrokenPromises(t *testing.T) {
	for name, tune := range map[string]func(*world){
		"votes_are_forgotten": func(w *world) { w.forgetVotes = true },
		"fsync_does_nothing":  func(w *world) { w.skipSync = true },
	} {
		caught := false
		for seed := uint64(1); seed <= 60 && !caught; seed++ {
			caught = simulate(seed, tune, nil) != nil
		}
		if !caught {
			t.Errorf("%s: 60 seeds, nothing noticed", name)
		}
	}
}

// K-20: five voters that start at once have a leader within ten election timeouts, whatever the seed.
func TestElectionsEnd(t *testing.T) {
	for seed := uint64(1); seed <= 300; seed++ {
		w := newWorld(seed)
		w.addVoters(5, int16(seed%2))
		r := rand.New(rand.NewPCG(seed, 3))
		w.delay = func(_, _ model.NodeID) (time.Duration, bool) {
			return time.Duration(r.IntN(30)) * time.Millisecond, true
		}
		for _, m := range w.members {
			w.start(m)
		}
		for i := 0; i < 100 && w.leader() == nil; i++ {
			w.run(100 * time.Millisecond)
		}
		if l := w.leader(); l == nil || w.judge.err != nil {
			t.Fatalf("seed %d: no leader after ten election timeouts (%v)", seed, w.judge.err)
		}
	}
}
