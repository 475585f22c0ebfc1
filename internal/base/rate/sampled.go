package rate

import (
	"math"
	"time"
)

// Sampled is the rate Kafka measures quotas with: the sum of the newest samples over the time
// they cover. A sample is one window long; one sample more than asked for is kept, because the
// oldest may reach into the measured time.
//
// The time covered is never taken as less than all windows but one: a client that just came does
// not look a thousand times too fast because it sent its first request a millisecond ago.
type Sampled struct {
	window  time.Duration
	samples []sample
	count   int // samples asked for (quota.window.num)
	current int
}

type sample struct {
	start, last time.Time
	sum         float64
}

// NewSampled makes a rate over count samples of one window each; Kafka's quota defaults are 11 of
// 1 s. Values below one sample or one millisecond are raised to that.
func NewSampled(count int, window time.Duration) *Sampled {
	return &Sampled{window: max(window, time.Millisecond), count: max(count, 1)}
}

// Record adds value at now.
func (s *Sampled) Record(value float64, now time.Time) {
	if len(s.samples) == 0 {
		s.samples = append(s.samples, sample{start: now, last: now})
	}
	cur := &s.samples[s.current]
	if now.Sub(cur.start) >= s.window {
		s.current = (s.current + 1) % (s.count + 1)
		if s.current >= len(s.samples) {
			s.samples = append(s.samples, sample{})
		}
		cur = &s.samples[s.current]
		*cur = sample{start: now}
	}
	cur.sum += value
	cur.last = now
}

// PerSecond is the rate at now.
func (s *Sampled) PerSecond(now time.Time) float64 {
	total := s.total(now)
	return total / s.covered(now).Seconds()
}

// Throttle is how long the source of this rate must be silent to be back at bound per second,
// 0 when it is not above it (KIP-13): (rate - bound) / bound × time covered.
func (s *Sampled) Throttle(bound float64, now time.Time) time.Duration {
	if bound <= 0 || math.IsInf(bound, 1) {
		return 0
	}
	total := s.total(now)
	covered := s.covered(now).Seconds()
	observed := total / covered
	if observed <= bound {
		return 0
	}
	return seconds((observed - bound) / bound * covered)
}

// Covered is the time the rate at now is taken over.
func (s *Sampled) Covered(now time.Time) time.Duration {
	s.purge(now)
	return s.covered(now)
}

func (s *Sampled) total(now time.Time) float64 {
	s.purge(now)
	total := 0.0
	for i := range s.samples {
		total += s.samples[i].sum
	}
	return total
}

// purge empties samples in which nothing happened during the measured time.
func (s *Sampled) purge(now time.Time) {
	age := time.Duration(s.count) * s.window
	for i := range s.samples {
		if now.Sub(s.samples[i].last) >= age {
			s.samples[i] = sample{start: now, last: now}
		}
	}
}

func (s *Sampled) covered(now time.Time) time.Duration {
	oldest := now
	for i := range s.samples {
		if s.samples[i].start.Before(oldest) {
			oldest = s.samples[i].start
		}
	}
	covered := now.Sub(oldest)
	if full, least := int(covered/s.window), s.count-1; full < least {
		covered += time.Duration(least-full) * s.window
	}
	return max(covered, time.Millisecond)
}
