package rate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_700_000_000, 0)

func at(d time.Duration) time.Time { return start.Add(d) }

// D-199: byte quotas. 1000 B/s over 11 samples of 1 s, one request of 30,000 bytes: Kafka 4.4.0 asked
// for about 20 s (S-64 saw 20,107 ms). All windows but one count as passed for a new client.
func TestByteQuotaOfANewClient(t *testing.T) {
	s := NewSampled(11, time.Second)
	s.Record(30_000, at(0))
	if got := s.PerSecond(at(0)); got != 3000 {
		t.Errorf("rate %v, want 30,000 bytes over the 10 s of ten windows", got)
	}
	if got := s.Throttle(1000, at(0)); got != 20*time.Second {
		t.Errorf("throttle %v, want 20s", got)
	}
	if got := s.Throttle(3000, at(0)); got != 0 {
		t.Errorf("throttle %v at the very bound", got)
	}
}

func TestSampledForgets(t *testing.T) {
	s := NewSampled(3, time.Second)
	s.Record(10, at(0))
	s.Record(10, at(1500*time.Millisecond))
	if got := s.PerSecond(at(2 * time.Second)); got != 10 {
		t.Errorf("rate %v, want 20 over 2 s", got)
	}
	// The first sample's last event is three windows old: it is emptied. The second began 1.5 s ago,
	// one window has passed, and at least two count.
	if got := s.PerSecond(at(3 * time.Second)); got != 10/2.5 {
		t.Errorf("rate %v, want 10 over 2.5 s", got)
	}
	if got := s.PerSecond(at(time.Minute)); got != 0 {
		t.Errorf("rate %v after a minute of silence", got)
	}
}

func TestSampledSteady(t *testing.T) {
	s := NewSampled(11, time.Second)
	now := time.Duration(0)
	for range 60_000 {
		now += time.Millisecond
		s.Record(5, at(now))
	}
	if got := s.PerSecond(at(now)); math.Abs(got-5000) > 100 {
		t.Errorf("rate %v of a steady 5,000/s", got)
	}
	if got := s.Covered(at(now)); got < 10*time.Second || got > 12*time.Second {
		t.Errorf("covered %v, want ten to twelve windows", got)
	}
	if len(s.samples) > 12 {
		t.Errorf("%d samples kept, want at most one more than 11", len(s.samples))
	}
}

// twin is Kafka's Rate over a WindowedSum written down as plainly as it can be.
type twin struct {
	window time.Duration
	count  int
	list   []sample
	cur    int
}

func (k *twin) record(v float64, now time.Time) {
	if k.list == nil {
		k.list = []sample{{start: now, last: now}}
	}
	if now.Sub(k.list[k.cur].start) >= k.window {
		k.cur = (k.cur + 1) % (k.count + 1)
		if k.cur >= len(k.list) {
			k.list = append(k.list, sample{start: now, last: now})
		} else {
			k.list[k.cur] = sample{start: now, last: now}
		}
	}
	k.list[k.cur].sum += v
	k.list[k.cur].last = now
}

func (k *twin) rate(now time.Time) float64 {
	total, oldest := 0.0, now
	for i := range k.list {
		if now.Sub(k.list[i].last) >= time.Duration(k.count)*k.window {
			k.list[i] = sample{start: now, last: now}
		}
		total += k.list[i].sum
		if k.list[i].start.Before(oldest) {
			oldest = k.list[i].start
		}
	}
	elapsed := now.Sub(oldest)
	if full := int(elapsed / k.window); full < k.count-1 {
		elapsed += time.Duration(k.count-1-full) * k.window
	}
	return total / max(elapsed, time.Millisecond).Seconds()
}

func TestSampledAsKafka(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 12).Draw(t, "samples")
		window := time.Duration(rapid.IntRange(1, 3000).Draw(t, "window")) * time.Millisecond
		s, k := NewSampled(count, window), &twin{window: window, count: count}
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "gap")) * time.Millisecond)
			if rapid.Bool().Draw(t, "record") {
				v := rapid.Float64Range(0, 1e6).Draw(t, "value")
				s.Record(v, now)
				k.record(v, now)
			}
			if got, want := s.PerSecond(now), k.rate(now); math.Abs(got-want) > 1e-6*(1+want) {
				t.Fatalf("rate %v, Kafka %v", got, want)
			}
		}
	})
}

// D-202, S-65: controller mutations at 1/s with 11 samples of 1 s. A burst of 16 partitions passes
// as a whole; the next one waits for the debt.
func TestBucketMayBeOverdrawn(t *testing.T) {
	b := NewBucket(1, 11, at(0))
	if wait, ok := b.TryTake(16, at(0)); !ok || wait != 0 {
		t.Fatalf("the burst was refused for %v", wait)
	}
	if got := b.Tokens(at(0)); got != -5 {
		t.Errorf("%v tokens, want -5", got)
	}
	if wait, ok := b.TryTake(1, at(0)); ok || wait != 5*time.Second {
		t.Errorf("taken %v, wait %v, want to wait 5s", ok, wait)
	}
	if wait := b.Take(7.9, at(0)); wait != 12900*time.Millisecond {
		t.Errorf("wait %v, want 12.9s", wait)
	}
	if wait, ok := b.TryTake(1, at(13*time.Second)); !ok {
		t.Errorf("refused for %v although the debt is paid", wait)
	}
	b.Take(-100, at(14*time.Second))
	if got := b.Tokens(at(14 * time.Second)); got != 11 {
		t.Errorf("%v tokens after giving back, want a full bucket", got)
	}
}

func TestBucketTakeWhole(t *testing.T) {
	b := NewBucket(100, 50, at(0))
	if _, ok := b.TakeWhole(50, at(0)); !ok {
		t.Error("a full bucket refuses")
	}
	if wait, ok := b.TakeWhole(10, at(0)); ok || wait != 100*time.Millisecond {
		t.Errorf("taken %v, wait %v", ok, wait)
	}
	if wait, ok := b.TakeWhole(1000, at(100*time.Millisecond)); ok || wait != 400*time.Millisecond {
		t.Errorf("more than the burst: taken %v, wait %v, want to wait until full", ok, wait)
	}
	if _, ok := b.TakeWhole(1000, at(500*time.Millisecond)); !ok {
		t.Error("more than the burst waits for ever")
	}
}

func TestBucketRateChange(t *testing.T) {
	b := NewBucket(10, 10, at(0))
	b.Take(20, at(0))
	b.SetRate(100, 5, at(500*time.Millisecond))
	if got := b.Tokens(at(500 * time.Millisecond)); got != -5 {
		t.Errorf("%v tokens, want what the old rate earned", got)
	}
	if got := b.Tokens(at(time.Second)); got != 5 {
		t.Errorf("%v tokens, want the new burst", got)
	}
	b.SetRate(math.Inf(1), 0, at(time.Second))
	if wait := b.Take(1e12, at(time.Second)); wait != 0 || !b.Unlimited() {
		t.Error("an unlimited bucket waits")
	}
	var zero Bucket
	if wait := zero.Take(5, at(0)); wait != 0 {
		t.Error("the zero bucket waits")
	}
}

func TestClockThatStepsBack(t *testing.T) {
	b := NewBucket(1, 10, at(time.Minute))
	b.Take(10, at(time.Minute))
	if got := b.Tokens(at(0)); got != 0 {
		t.Errorf("%v tokens from a clock that stepped back", got)
	}
	s := NewSampled(2, time.Second)
	s.Record(5, at(time.Minute))
	s.Record(5, at(0))
	if got := s.PerSecond(at(0)); got < 0 || math.IsNaN(got) || math.IsInf(got, 0) {
		t.Errorf("rate %v", got)
	}
}

// Over a long time nobody gets more than burst + rate × time through TakeWhole.
func TestBucketBound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	b := NewBucket(1000, 200, at(0))
	now, taken := time.Duration(0), 0.0
	for range 20_000 {
		now += time.Duration(rng.IntN(2000)) * time.Microsecond
		n := float64(rng.IntN(150))
		if _, ok := b.TakeWhole(n, at(now)); ok {
			taken += n
		}
	}
	if limit := 200 + 1000*now.Seconds(); taken > limit+1e-6 {
		t.Errorf("%v taken in %v, more than %v", taken, now, limit)
	}
}

func TestLongWaitsAreCut(t *testing.T) {
	b := NewBucket(1e-12, 1, at(0))
	if wait := b.Take(1e9, at(0)); wait != math.MaxInt64 {
		t.Errorf("wait %v", wait)
	}
}
