package vfs

import (
	"sync"
	"sync/atomic"
	"time"
)

// Observer is an FS that watches how long its calls take (J-130).
type Observer struct {
	around
	now   func() time.Time
	slots [observed]slot
	next  atomic.Uint32
}

// observed is how many calls at once an Observer can watch. Calls beyond it are
// timed but not listed by Oldest: a disk that holds so many is hung, and shows with the others.
const observed = 128

// slot is a running call.
type slot struct {
	taken atomic.Bool
	mu    sync.Mutex // guards the rest, for Oldest
	began int64      // nanoseconds; 0 when no call runs
	op    Op
}

// Observe wraps fsys. slow is called after every call that took at least
// threshold, on the caller's goroutine; it may be nil.
func Observe(fsys FS, now func() time.Time, threshold time.Duration, slow func(op Op, took time.Duration)) *Observer {
	o := &Observer{now: now}
	o.fs = fsys
	o.before = func(op Op) (uint64, error) { return o.begin(op), nil }
	o.after = func(op Op, token uint64) {
		began := int64(token)
		if token < observed {
			began = o.slots[token].end()
		}
		if took := time.Duration(now().UnixNano() - began); took >= threshold && slow != nil {
			slow(op, took)
		}
	}
	return o
}

// begin takes a slot and returns its number, or the time when all are taken.
func (o *Observer) begin(op Op) uint64 {
	now := max(o.now().UnixNano(), observed)
	start := o.next.Add(1)
	for i := range uint32(observed) {
		n := (start + i) % observed
		s := &o.slots[n]
		if s.taken.CompareAndSwap(false, true) {
			s.mu.Lock()
			s.began, s.op = now, op
			s.mu.Unlock()
			return uint64(n)
		}
	}
	return uint64(now)
}

func (s *slot) end() int64 {
	s.mu.Lock()
	began := s.began
	s.began, s.op = 0, Op{}
	s.mu.Unlock()
	s.taken.Store(false)
	return began
}

// Oldest is the call that has been running longest, and since when; false when none is running.
func (o *Observer) Oldest() (op Op, since time.Time, ok bool) {
	var oldest int64
	for i := range o.slots {
		s := &o.slots[i]
		if !s.taken.Load() {
			continue
		}
		s.mu.Lock()
		if s.began != 0 && (oldest == 0 || s.began < oldest) {
			op, oldest = s.op, s.began
		}
		s.mu.Unlock()
	}
	return op, time.Unix(0, oldest), oldest != 0
}
