package node

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/record"
)

var (
	crashSeed   = flag.Uint64("crash.seed", 0, "seed of the power cuts")
	crashRounds = flag.Int("crash.rounds", 150, "lives of a disk")
)

// K-49, K-60, K-61, K-73, K-14: a single voter loses power at a random file operation, with unsynced pages lost or torn. What its listener was told is
// committed is there again, in order, nothing stands before it, and the epoch never goes back. Several lives on one disk.
func TestCrashClones(t *testing.T) {
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-crash.seed=%d", seed)
	for round := range *crashRounds {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		synctest.Test(t, func(t *testing.T) { crashRound(t, rng, round) })
		if t.Failed() {
			return
		}
	}
}

func crashRound(t *testing.T, rng *rand.Rand, round int) {
	mem := vfs.NewMem()
	format(t, mem, voterSet(t, 1))
	var committed []string
	epoch := int32(0)
	for life := range 4 {
		// The disk as it would be found after a power cut right before operation number `cut`.
		var ops atomic.Int64
		cut := rng.Int64N(60)
		var found *vfs.Mem
		var seen []string
		var leader LeaderAndEpoch
		r := &recorder{}
		source := mem
		fs := vfs.Inject(source, func(op vfs.Op) error {
			if ops.Add(1) == cut+1 {
				seen, _, leader = r.state()
				found = source.CrashClone(rng)
			}
			return nil
		})
		o := options(fs, 1)
		o.Config.SegmentBytes = 4096 // many rolls
		n, err := Open(o)
		if err != nil {
			t.Fatalf("round %d life %d: %v", round, life, err)
		}
		n.Register(r)
		n.Start()
		eventually(t, "leadership", func() bool { _, _, l := r.state(); return l.Leader == 1 })
		for i := 0; found == nil && i < 100; i++ {
			var records []Record
			for j := range 1 + rng.IntN(3) {
				records = append(records, frame("r%d-l%d-%d-%d-%s", round, life, i, j, strings.Repeat("x", rng.IntN(300))))
			}
			last, err := n.Append(n.State().Epoch, [][]Record{records})
			must(t, err)
			if rng.IntN(3) > 0 {
				eventually(t, "commit", func() bool { _, next, _ := r.state(); return next > last })
			}
		}
		if found == nil {
			ops.Store(cut)
			fs.Stat("/d")
		}
		must(t, n.Stop(context.Background()))
		mem = found
		committed = seen
		if leader.Leader == 1 {
			epoch = leader.Epoch + 1 // what this node led is over
		}
		// What a fresh life sees.
		check, err := Open(options(mem, 1))
		if err != nil {
			t.Fatalf("round %d life %d after the crash: %v", round, life, err)
		}
		rr := &recorder{}
		check.Register(rr)
		check.Start()
		eventually(t, "leadership", func() bool { _, _, l := rr.state(); return l.Leader == 1 })
		got, _, _ := rr.state()
		if len(got) < len(committed) || !slices.Equal(got[:len(committed)], committed) {
			t.Fatalf("round %d life %d: committed %q\nfound %q", round, life, committed, got)
		}
		if e := check.State().Epoch; e < epoch {
			t.Fatalf("round %d life %d: epoch %d after %d", round, life, e, epoch)
		}
		stop(t, check)
	}
}

// K-63, K-71, K-73: power is lost at every single file operation of writing a snapshot and cleaning behind it.
func TestCrashWhileSnapshotting(t *testing.T) {
	for cut := int64(0); ; cut++ {
		done := false
		synctest.Test(t, func(t *testing.T) {
			mem := vfs.NewMem()
			format(t, mem, voterSet(t, 1))
			o := options(mem, 1)
			o.Config.SegmentBytes = 1024
			n, r := lead(t, o)
			for i := range 30 {
				commit(t, n, r, fmt.Sprintf("t%d", i))
			}
			stop(t, n)
			var ops atomic.Int64
			var armed atomic.Bool
			var found *vfs.Mem
			rng := rand.New(rand.NewPCG(7, uint64(cut)))
			o.FS = vfs.Inject(mem, func(op vfs.Op) error {
				if armed.Load() && ops.Add(1) == cut+1 {
					found = mem.CrashClone(rng)
				}
				return nil
			})
			o.Config.MaxRetentionBytes = 0
			n, r = lead(t, o)
			armed.Store(true)
			snapshotNow(t, n, r)
			commit(t, n, r, "after")
			snapshotNow(t, n, r)
			must(t, n.clean())
			armed.Store(false)
			stop(t, n)
			if done = found == nil; done {
				return
			}
			o.FS = found
			n, r = lead(t, o)
			texts, _, _ := r.state()
			if len(texts) < 30 || texts[29] != "t29" {
				t.Fatalf("crash before operation %d: %d texts", cut, len(texts))
			}
			names := listDir(t, found, "/d/__cluster_metadata-0")
			for _, name := range names {
				if strings.HasSuffix(name, ".part") || strings.HasSuffix(name, ".checkpoint.deleted") {
					t.Fatalf("crash before operation %d: %s is left", cut, name)
				}
			}
			stop(t, n)
		})
		if done || t.Failed() {
			t.Logf("%d operations", cut)
			return
		}
	}
}

func listDir(t testing.TB, fs vfs.FS, dir string) (names []string) {
	t.Helper()
	entries, err := fs.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// snapshotNow writes a snapshot of everything a listener has seen.
func snapshotNow(t testing.TB, n *Node, r *recorder) kraft.SnapshotID {
	t.Helper()
	texts, next, l := r.state()
	id := kraft.SnapshotID{Offset: next, Epoch: l.Epoch}
	w, err := n.CreateSnapshot(id, 1234)
	must(t, err)
	if w == nil {
		return id
	}
	for _, s := range texts {
		must(t, w.Append([]Record{frame("%s", s)}))
	}
	must(t, w.Freeze())
	return id
}

// What a file that is damaged, cut, empty, missing or foreign does to the start: it is refused with the path and what to do, or, where nothing is
// lost, repaired; it never starts empty (K-70, K-71, K-73).
func TestDamagedFiles(t *testing.T) {
	const dir = "/d/__cluster_metadata-0"
	const log = dir + "/00000000000000000000.log"
	build := func(t *testing.T) *vfs.Mem {
		mem := vfs.NewMem()
		synctest.Test(t, func(t *testing.T) {
			format(t, mem, voterSet(t, 1))
			o := options(mem, 1)
			o.Config.SegmentBytes = 2048
			n, r := lead(t, o)
			for i := range 40 {
				commit(t, n, r, fmt.Sprintf("t%d", i))
			}
			stop(t, n)
			n, r = lead(t, o)
			commit(t, n, r, "t40")
			stop(t, n)
		})
		return mem
	}
	edit := func(fs vfs.FS, path string, f func([]byte) []byte) {
		b, err := vfs.ReadFile(fs, path)
		if err != nil {
			panic(err)
		}
		must(t, fs.Remove(path))
		must(t, vfs.WriteFileAtomic(fs, path, f(slices.Clone(b))))
	}
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[(at+len(b))%len(b)] ^= 0x10; return b }
	}
	last := func(fs vfs.FS) string {
		var name string
		for _, n := range listDir(t, fs, dir) {
			if strings.HasSuffix(n, ".log") {
				name = max(name, n)
			}
		}
		return dir + "/" + name
	}
	for name, c := range map[string]struct {
		damage func(fs vfs.FS)
		want   []string // parts of the error; none: it starts
	}{
		"flipped_closed_segment":     {func(fs vfs.FS) { edit(fs, log, flip(500)) }, []string{log, "damaged", "byte", "backup"}},
		"cut_closed_segment":         {func(fs vfs.FS) { edit(fs, log, func(b []byte) []byte { return b[:len(b)-7] }) }, []string{log, "cut", "backup"}},
		"empty_closed_segment":       {func(fs vfs.FS) { edit(fs, log, func([]byte) []byte { return nil }) }, []string{"damaged", "begins at offset"}},
		"missing_first_segment":      {func(fs vfs.FS) { must(t, fs.Remove(log)) }, []string{"begins at offset", "snapshot"}},
		"flipped_before_later_epoch": {func(fs vfs.FS) { edit(fs, last(fs), flip(70)) }, []string{"damaged", "synced once"}},
		"flipped_after_a_clean_stop": {func(fs vfs.FS) { edit(fs, last(fs), flip(-30)) }, []string{"damaged", "was closed at offset", "backup"}},
		"cut_after_a_clean_stop":     {func(fs vfs.FS) { edit(fs, last(fs), func(b []byte) []byte { return b[:len(b)-5] }) }, []string{"damaged", "was closed at offset", "backup"}},
		"last_batch_gone_after_a_clean_stop": {func(fs vfs.FS) {
			edit(fs, last(fs), func(b []byte) []byte {
				size := 0
				for batch, err := range record.Split(b) {
					must(t, err)
					size = len(batch)
				}
				return b[:len(b)-size]
			})
		}, []string{"ends at offset", "was closed at offset", "backup"}},
		"torn_tail": {func(fs vfs.FS) { edit(fs, last(fs), func(b []byte) []byte { return append(b, 1, 2, 3) }) }, nil},
		"all_segments_missing": {func(fs vfs.FS) {
			for _, n := range listDir(t, fs, dir) {
				if strings.HasSuffix(n, ".log") {
					must(t, fs.Remove(dir+"/"+n))
				}
			}
		}, []string{"quorum-state", "lost", "not started empty"}},
		"all_segments_empty": {func(fs vfs.FS) {
			for _, n := range listDir(t, fs, dir) {
				if strings.HasSuffix(n, ".log") && dir+"/"+n != log {
					must(t, fs.Remove(dir+"/"+n))
				}
			}
			edit(fs, log, func([]byte) []byte { return nil })
		}, []string{"leader-epoch-checkpoint", "backup"}},
		"quorum_state_flipped":       {func(fs vfs.FS) { edit(fs, dir+"/quorum-state", flip(0)) }, []string{dir + "/quorum-state", "damaged", "backup"}},
		"quorum_state_empty":         {func(fs vfs.FS) { edit(fs, dir+"/quorum-state", func([]byte) []byte { return nil }) }, []string{dir + "/quorum-state"}},
		"quorum_state_missing":       {func(fs vfs.FS) { must(t, fs.Remove(dir+"/quorum-state")) }, nil},
		"left_over_quorum_state_tmp": {func(fs vfs.FS) { must(t, vfs.WriteFileAtomic(fs, dir+"/quorum-state.tmp", []byte("x"))) }, nil},
		"bootstrap_missing":          {func(fs vfs.FS) { must(t, fs.Remove(dir+"/"+snapshotName(kraft.BootstrapSnapshotID))) }, nil},
		"bootstrap_header_flipped":   {func(fs vfs.FS) { edit(fs, dir+"/"+snapshotName(kraft.BootstrapSnapshotID), flip(70)) }, []string{"checkpoint", "checksum", "format again"}},
		"bootstrap_empty": {func(fs vfs.FS) {
			edit(fs, dir+"/"+snapshotName(kraft.BootstrapSnapshotID), func([]byte) []byte { return nil })
		}, []string{"checkpoint", "without a footer"}},
		"indexes_missing":    {func(fs vfs.FS) { must(t, fs.Remove(strings.TrimSuffix(log, ".log")+".index")) }, nil},
		"epoch_file_missing": {func(fs vfs.FS) { must(t, fs.Remove(dir+"/leader-epoch-checkpoint")) }, nil},
		"half_written_snapshot_found": {func(fs vfs.FS) {
			must(t, vfs.WriteFileAtomic(fs, dir+"/00000000000000000009-0000000001-0.checkpoint.part", []byte("x")))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fs := build(t)
			c.damage(fs)
			synctest.Test(t, func(t *testing.T) {
				n, err := Open(options(fs, 1))
				if c.want != nil {
					if err == nil {
						stop(t, n)
						t.Fatal("it started")
					}
					for _, part := range c.want {
						if !strings.Contains(err.Error(), part) {
							t.Errorf("the error does not say %q: %v", part, err)
						}
					}
					return
				}
				must(t, err)
				r := &recorder{}
				n.Register(r)
				n.Start()
				eventually(t, "leadership", func() bool { _, _, l := r.state(); return l.Leader == 1 })
				if texts, _, _ := r.state(); len(texts) != 41 {
					t.Errorf("%d texts of 41", len(texts))
				}
				stop(t, n)
			})
		})
	}
}

// K-73, decision 17: a segment is durable before the next one exists. Else a power cut while the log rolls leaves damage in a segment that is not
// the last, which no start accepts (seen as round 1068 of -crash.seed=9635714327497142404).
func TestRollSyncsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		format(t, mem, voterSet(t, 1))
		written := map[string]bool{} // .log files with bytes that were not synced
		known := map[string]bool{}
		var mu sync.Mutex
		rolls := 0
		fs := vfs.Inject(mem, func(op vfs.Op) error {
			if !strings.HasSuffix(op.Path, ".log") {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			switch op.Kind {
			case vfs.OpWrite:
				written[op.Path] = true
			case vfs.OpSync:
				delete(written, op.Path)
			case vfs.OpCreate:
				if known[op.Path] {
					return nil
				}
				known[op.Path] = true
				if len(known) > 1 {
					rolls++
					if len(written) > 0 {
						t.Errorf("%s is made while %v is not synced", op.Path, written)
					}
				}
			}
			return nil
		})
		o := options(fs, 1)
		o.Config.SegmentBytes = 2048
		n, r := lead(t, o)
		for i := range 60 { // two appends at a time, of which the second may roll before the first is synced
			_, err := n.Append(n.State().Epoch, [][]Record{{frame("a%d-%s", i, strings.Repeat("x", 200))}})
			must(t, err)
			commit(t, n, r, fmt.Sprintf("b%d", i))
		}
		stop(t, n)
		if rolls < 5 {
			t.Errorf("%d rolls", rolls)
		}
	})
}
