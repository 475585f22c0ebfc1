package metric

import (
	"math"
	"sync/atomic"
	"time"
)

// Counter only grows.
type Counter struct{ n atomic.Int64 }

// Add adds n, which must not be negative.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Value is the count.
func (c *Counter) Value() int64 { return c.n.Load() }

// Gauge goes up and down.
type Gauge struct{ n atomic.Int64 }

// Set sets the value.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Add adds n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Value is the value.
func (g *Gauge) Value() int64 { return g.n.Load() }

// Histogram keeps the distribution of the newest values: those of the last two and a half to five
// minutes, if somebody scrapes. Count and sum are those since the start.
//
// A bucket holds the values that share exponent and three bits of mantissa, so a quantile is right
// within 7 %. Buckets are allocated when the first value comes.
type Histogram struct {
	count  atomic.Int64
	sum    atomic.Int64 // in thousandths
	recent atomic.Pointer[buckets]

	// Touched by scrapes only, under the registry's scrape lock.
	older *buckets
	since time.Time // when recent began
}

const (
	minExponent = -11 // values below 2^-11 share the first bucket
	maxExponent = 44
	perExponent = 8
	bucketCount = (maxExponent-minExponent)*perExponent + 1
	window      = 150 * time.Second
)

type buckets [bucketCount]atomic.Uint32

// Observe adds a value: milliseconds, bytes. Negative and NaN count as 0.
func (h *Histogram) Observe(v float64) {
	if !(v > 0) {
		v = 0
	}
	h.count.Add(1)
	h.sum.Add(int64(min(v, math.MaxInt64/2000) * 1000))
	b := h.recent.Load()
	if b == nil {
		b = new(buckets)
		if !h.recent.CompareAndSwap(nil, b) {
			if b = h.recent.Load(); b == nil { // a scrape took it away just now
				return
			}
		}
	}
	b[bucketOf(v)].Add(1)
}

// ObserveDuration adds a duration in milliseconds.
func (h *Histogram) ObserveDuration(d time.Duration) {
	h.Observe(float64(d) / float64(time.Millisecond))
}

// Count is how many values came since the start.
func (h *Histogram) Count() int64 { return h.count.Load() }

func (h *Histogram) total() float64 { return float64(h.sum.Load()) / 1000 }

func bucketOf(v float64) int {
	bits := math.Float64bits(v)
	i := int(bits>>(52-3)) - (1023+minExponent)*perExponent + 1
	return min(max(i, 0), bucketCount-1)
}

// middle is a value in the middle of a bucket.
func middle(i int) float64 {
	if i == 0 {
		return 0
	}
	i += (1023+minExponent)*perExponent - 1
	low := math.Float64frombits(uint64(i) << (52 - 3))
	high := math.Float64frombits(uint64(i+1) << (52 - 3))
	return (low + high) / 2
}

// quantileSteps are those Kafka's histograms have, with their label texts.
var quantileSteps = []struct {
	label string
	q     float64
}{{"0.50", 0.50}, {"0.75", 0.75}, {"0.95", 0.95}, {"0.98", 0.98}, {"0.99", 0.99}, {"0.999", 0.999}}

// quantiles fills out with the quantiles of the newest values, all zero when there are none, and
// begins a new window when this one is over. Only scrapes call it, one at a time.
func (h *Histogram) quantiles(now time.Time, out *[6]float64) {
	*out = [6]float64{}
	recent := h.recent.Load()
	if recent != nil || h.older != nil {
		var all uint64
		at := func(i int) uint64 {
			var n uint64
			if recent != nil {
				n = uint64(recent[i].Load())
			}
			if h.older != nil {
				n += uint64(h.older[i].Load())
			}
			return n
		}
		for i := range bucketCount {
			all += at(i)
		}
		var seen uint64
		step := 0
		for i := 0; i < bucketCount && all > 0; i++ {
			seen += at(i)
			for step < len(quantileSteps) && float64(seen) >= quantileSteps[step].q*float64(all) {
				out[step] = middle(i)
				step++
			}
		}
	}
	if h.since.IsZero() {
		h.since = now
	}
	if now.Sub(h.since) >= window {
		h.older, h.since = recent, now
		h.recent.Store(nil)
	}
}
