package partlog_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/storage/producerstate"
	"samsa/internal/wire/record"
)

var (
	crashRounds = flag.Int("crash.rounds", envInt("CRASH_ROUNDS", 300), "crash-clone rounds (acceptance: 10000)")
	crashSeed   = flag.Uint64("crash.seed", 0, "seed of the first round; 0 is a fixed one")
)

func envInt(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// stored is a batch as the model knows it.
type stored struct {
	base, last int64
	bytes      []byte
}

// crasher runs one random history on a memory disk and crashes it now and then.
type crasher struct {
	t       *testing.T
	rng     *rand.Rand
	disk    *vfs.Mem
	r       *rig
	batches []stored
	start   int64 // log start
	// What logdir's checkpoints would say: at most as new as the log itself.
	recoveryPoint, logStart int64
	seq                     map[int64]int32
	n                       int
}

// TestCrashClone: issue 3 acceptance 4; D-67, D-69, D-70, D-71, D-79; D-223 with the whole window.
//
// After every crash, with unsynced pages lost or torn and unsynced names lost, the recovered log holds a prefix of what was
// written that has everything flushed; producer state and epochs are those of that prefix.
func TestCrashClone(t *testing.T) {
	seed := *crashSeed
	if seed == 0 {
		seed = 20261130
	}
	for i := range *crashRounds {
		ok := t.Run("", func(t *testing.T) { crashRound(t, seed+uint64(i)) })
		if !ok {
			t.Fatalf("round %d failed; replay with -crash.rounds=1 -crash.seed=%d", i, seed+uint64(i))
		}
	}
}

func crashRound(t *testing.T, seed uint64) {
	c := &crasher{t: t, rng: rand.New(rand.NewPCG(seed, 7)), seq: map[int64]int32{}}
	c.disk = vfs.NewMem()
	c.r = newRig(t, c.disk)
	for _, d := range []string{"/", "/data"} {
		if err := c.disk.SyncDir(d); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("CRASH_TRACE") != "" {
		c.trace()
	}
	c.r.cfg.SegmentBytes = 1 << (12 + c.rng.IntN(4))
	c.r.cfg.IndexIntervalBytes = int32(c.rng.IntN(2000))
	c.r.cfg.RetentionBytes = 4 * c.r.cfg.SegmentBytes
	c.r.cfg.RetentionMs = -1
	if c.rng.IntN(8) == 0 {
		c.r.cfg.FlushMessages = int64(1 + c.rng.IntN(20))
	}
	if c.rng.IntN(2) == 0 {
		c.r.env.Rolled = func(l *partlog.Log, base int64) {
			if c.rng.IntN(2) == 0 {
				if err := l.FlushTo(base, c.r.now); err != nil {
					t.Error(err)
				}
			}
		}
	}
	c.r.open(t, false)
	for range 1 + c.rng.IntN(3) {
		for range 5 + c.rng.IntN(60) {
			c.step()
		}
		c.crash()
	}
}

func (c *crasher) end() int64 {
	if len(c.batches) == 0 {
		return c.start
	}
	return c.batches[len(c.batches)-1].last + 1
}

func (c *crasher) step() {
	t, r, l := c.t, c.r, c.r.log
	r.now += 1000
	k := c.rng.IntN(100)
	t.Logf("step %d at end %d, recovery point %d", k, l.LogEndOffset(), l.RecoveryPoint())
	switch {
	case k < 70:
		c.append()
	case k < 78:
		if err := l.Flush(r.now); err != nil {
			t.Fatal(err)
		}
	case k < 82:
		if err := l.Roll(r.now); err != nil {
			t.Fatal(err)
		}
	case k < 86:
		c.recoveryPoint, c.logStart = l.RecoveryPoint(), l.LogStartOffset()
	case k < 90:
		l.SetHighWatermark(l.LogEndOffset())
		d, err := l.DeletableSegments(r.now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.DeleteOldSegments(d, r.now); err != nil {
			t.Fatal(err)
		}
		c.start = l.LogStartOffset()
	case k < 93:
		l.SetHighWatermark(l.LogEndOffset())
		if c.end() > c.start {
			if _, err := l.IncrementLogStartOffset(c.start + c.rng.Int64N(c.end()-c.start)/4); err != nil {
				t.Fatal(err)
			}
			c.start = l.LogStartOffset()
		}
	case k < 96: // a clean stop and start
		if err := l.Close(r.now); err != nil {
			t.Fatal(err)
		}
		before := l.Producers()
		r.open(t, true, l.RecoveryPoint(), l.LogStartOffset(), l.HighWatermark())
		c.recoveryPoint, c.logStart = r.log.RecoveryPoint(), r.log.LogStartOffset()
		c.check("after a clean stop", c.end())
		sameProducers(t, "after a clean stop", before, r.log.Producers())
	default:
		if err := l.AssignEpoch(l.LatestEpoch()+1, l.LogEndOffset()); err != nil {
			t.Fatal(err)
		}
	}
}

// append writes as a leader: plain, idempotent or transactional batches, and markers.
func (c *crasher) append() {
	l, r := c.r.log, c.r
	c.n++
	tag := fmt.Sprintf("%d", c.n)
	count := 1 + c.rng.IntN(4)
	var b []byte
	origin := producerstate.OriginClient
	pid := int64(c.rng.IntN(4))
	switch p, known := l.Producer(pid); {
	case pid == 0:
		b = batchOf(count, r.now, tag, c.rng.IntN(700))
	case pid == 3 && known && p.TxnFirstOffset >= 0 && c.rng.IntN(3) == 0:
		b = record.AppendEndTxnMarker(nil, 0, 0, r.now, pid, 0, c.rng.IntN(2) == 0, 1)
		origin = producerstate.OriginCoordinator
	default:
		seq := int32(0)
		if known && len(p.Batches) > 0 {
			seq = p.Batches[len(p.Batches)-1].LastSequence + 1
		}
		b = producerBatch(count, r.now, pid, 0, seq, pid == 3)
	}
	info, err := l.AppendAsLeader(partlog.LeaderAppend{Records: b, Epoch: max(0, l.LatestEpoch()), Origin: origin, Now: r.now})
	if err != nil {
		c.t.Fatal(err)
	}
	if info.BaseOffset != c.end() {
		c.t.Fatalf("appended at %d, expected %d", info.BaseOffset, c.end())
	}
	c.batches = append(c.batches, stored{info.BaseOffset, info.LastOffset, b})
}

// crash continues on what a power loss left of the disk.
func (c *crasher) crash() {
	flushed := c.r.log.RecoveryPoint()
	if c.rng.IntN(2) == 0 {
		c.recoveryPoint, c.logStart = flushed, c.r.log.LogStartOffset()
	}
	if flushed <= c.r.log.LogStartOffset() {
		flushed = 0 // the log start pushed it, not a flush
	}
	producers := c.r.log.Producers()
	if c.rng.IntN(4) == 0 {
		// kill -9: the page cache survives.
		c.r.log.Abandon()
		flushed = c.end()
	} else {
		c.disk = c.disk.CrashClone(c.rng)
		c.r.fs = c.disk
		if os.Getenv("CRASH_TRACE") != "" {
			c.trace()
		}
	}
	c.r.env.Files = partlog.NewFiles(8)
	c.r.open(c.t, false, c.recoveryPoint, c.logStart, c.end())
	end := c.r.log.LogEndOffset()
	names := []string{}
	list, _ := c.r.fs.ReadDir(dir)
	for _, e := range list {
		info, _ := e.Info()
		names = append(names, fmt.Sprint(e.Name(), ":", info.Size()))
	}
	c.t.Logf("crash: recovery point %d, log start %d, end %d, flushed %d: %+v: %v", c.recoveryPoint, c.logStart, end, flushed, c.r.info, names)
	c.start = max(c.start, c.r.log.LogStartOffset())
	if end < c.start {
		c.start = end
	}
	if end < flushed {
		c.t.Fatalf("the log ends at %d after a crash, everything below %d was flushed (%+v)", end, flushed, c.r.info)
	}
	if end == c.end() && c.start == 0 {
		sameProducers(c.t, "after a crash that lost nothing", producers, c.r.log.Producers())
	}
	for len(c.batches) > 0 && c.batches[len(c.batches)-1].base >= end {
		c.batches = c.batches[:len(c.batches)-1]
	}
	if end == c.r.log.LogStartOffset() {
		c.batches = nil // everything above the log start is gone, and with it the batch it lay in (D-69)
	}
	c.check("after a crash", end)
	c.checkTwin()
}

// trace logs every file operation.
func (c *crasher) trace() {
	c.r.fs = vfs.Inject(c.disk, func(op vfs.Op) error {
		c.t.Log(op)
		return nil
	})
}

// check compares everything readable at or after the log start with the model.
func (c *crasher) check(when string, end int64) {
	c.t.Helper()
	var want []byte
	for _, b := range c.batches {
		if b.last >= c.start {
			want = append(want, b.bytes...)
		}
	}
	if got := c.r.log.LogEndOffset(); got != end || end != max(c.end(), c.start) {
		c.t.Fatalf("%s: the log ends at %d, expected %d, model %d", when, got, end, c.end())
	}
	var got []byte
	for at := c.start; at < end; {
		b, next, err := c.r.log.ReadBatches(make([]byte, 0, 4096), at, end)
		if err != nil || len(b) == 0 {
			c.t.Fatalf("%s: reading at %d of %d: %d bytes, %v", when, at, end, len(b), err)
		}
		got, at = append(got, b...), next
	}
	if !bytes.Equal(got, want) {
		c.t.Fatalf("%s: read %d bytes, expected %d, which differ", when, len(got), len(want))
	}
	// Random access, which goes through the indexes.
	for range 3 {
		if len(c.batches) == 0 || c.end() <= c.start {
			break
		}
		b := c.batches[c.rng.IntN(len(c.batches))]
		if b.base < c.start {
			continue
		}
		got, _, err := c.r.log.ReadBatches(make([]byte, 0, len(b.bytes)), b.base+c.rng.Int64N(b.last-b.base+1), end)
		if err != nil || !bytes.Equal(got, b.bytes) {
			c.t.Fatalf("%s: the batch at %d reads as %d bytes, expected %d: %v", when, b.base, len(got), len(b.bytes), err)
		}
	}
}

// checkTwin opens what is there again, with nothing but the batches to go by, and compares.
func (c *crasher) checkTwin() {
	fs := vfs.NewMem()
	r := newRig(c.t, fs)
	r.open(c.t, false, 0, c.r.log.LogStartOffset())
	if len(c.batches) == 0 {
		return
	}
	if err := r.log.TruncateFullyAndStartAt(c.batches[0].base, 0); err != nil {
		c.t.Fatal(err)
	}
	for _, b := range c.batches {
		if _, err := r.log.AppendAsFollower(partlog.FollowerAppend{Records: b.bytes, Epoch: -1}); err != nil {
			c.t.Fatal(err)
		}
	}
	// A producer whose records are all below the log start may be forgotten; those of the rest must agree.
	twin := map[int64]producerstate.Producer{}
	for _, p := range r.log.Producers() {
		twin[p.ID] = p
	}
	for _, p := range c.r.log.Producers() {
		w, ok := twin[p.ID]
		if !ok && len(p.Batches) > 0 && p.Batches[len(p.Batches)-1].LastOffset >= c.start {
			c.t.Fatalf("producer %d is known after the crash, but nothing of it is in the log", p.ID)
		}
		if !ok {
			continue
		}
		n := min(len(p.Batches), len(w.Batches)) // either may know of what lies below the log start
		if fmt.Sprint(p.Batches[len(p.Batches)-n:]) != fmt.Sprint(w.Batches[len(w.Batches)-n:]) || p.TxnFirstOffset != w.TxnFirstOffset && !below(p.TxnFirstOffset, c.start) && !below(w.TxnFirstOffset, c.start) {
			c.t.Fatalf("after the crash producer %d is %+v, expected %+v", p.ID, p, w)
		}
	}
}

// below: an open transaction that began before everything readable, which a replay cannot know.
func below(first, start int64) bool { return first >= 0 && first < start }

func sameProducers(t *testing.T, when string, want, got []producerstate.Producer) {
	t.Helper()
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Fatalf("%s: producers are\n%+v, expected\n%+v", when, got, want)
	}
}
