package rate

import (
	"math"
	"time"
)

// Bucket is a token bucket that may be overdrawn: a big taker passes when the bucket is not
// empty and everybody after it pays (KIP-599). The zero value lets everything through.
type Bucket struct {
	perSecond float64
	burst     float64
	tokens    float64
	last      time.Time
}

// NewBucket makes a full bucket.
//
//	perSecond  tokens that flow in per second, at most burst of them are kept
//	burst      the most tokens the bucket holds
func NewBucket(perSecond, burst float64, now time.Time) *Bucket {
	return &Bucket{perSecond: perSecond, burst: burst, tokens: burst, last: now}
}

// Unlimited reports whether the bucket never asks anybody to wait.
func (b *Bucket) Unlimited() bool {
	return b.perSecond <= 0 || math.IsInf(b.perSecond, 1)
}

// SetRate changes the limit and keeps what has been earned or owed, cut to the new burst.
func (b *Bucket) SetRate(perSecond, burst float64, now time.Time) {
	b.refill(now)
	b.perSecond, b.burst = perSecond, burst
	b.tokens = min(b.tokens, burst)
}

// Tokens are those in the bucket at now; negative is debt.
func (b *Bucket) Tokens(now time.Time) float64 {
	b.refill(now)
	return b.tokens
}

// Take takes n tokens whatever the bucket holds and returns how long the taker should wait
// until the debt is paid; 0 when there is none. A negative n gives tokens back.
func (b *Bucket) Take(n float64, now time.Time) time.Duration {
	if b.Unlimited() {
		return 0
	}
	b.refill(now)
	b.tokens = min(b.burst, b.tokens-n)
	return b.debt()
}

// TryTake takes n tokens if the bucket is not in debt. Refused, nothing is taken and wait is the
// time until the bucket is out of debt.
func (b *Bucket) TryTake(n float64, now time.Time) (wait time.Duration, ok bool) {
	if b.Unlimited() {
		return 0, true
	}
	b.refill(now)
	if b.tokens < 0 {
		return b.debt(), false
	}
	b.tokens = min(b.burst, b.tokens-n)
	return 0, true
}

// TakeWhole takes n tokens only when all of them are there, or, for an n above the burst, when
// the bucket is full. Meant for pacing I/O, where nobody should run ahead of the rate.
func (b *Bucket) TakeWhole(n float64, now time.Time) (wait time.Duration, ok bool) {
	if b.Unlimited() {
		return 0, true
	}
	b.refill(now)
	if need := min(n, b.burst); b.tokens < need {
		return seconds((need - b.tokens) / b.perSecond), false
	}
	b.tokens -= n
	return 0, true
}

func (b *Bucket) debt() time.Duration {
	if b.tokens >= 0 {
		return 0
	}
	return seconds(-b.tokens / b.perSecond)
}

// refill adds what flowed in since the last look. A clock that steps back adds nothing.
func (b *Bucket) refill(now time.Time) {
	if elapsed := now.Sub(b.last); elapsed > 0 {
		if !b.Unlimited() {
			b.tokens = min(b.burst, b.tokens+b.perSecond*elapsed.Seconds())
		}
		b.last = now
	}
}

// seconds turns a float of seconds into a duration, rounded up to a whole nanosecond and cut at
// the largest duration there is.
func seconds(s float64) time.Duration {
	ns := math.Ceil(s * float64(time.Second))
	if ns >= float64(math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
