package purgatory

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Operation is what waits.
type Operation interface {
	// TryComplete reports whether the operation can be answered now. It changes nothing others
	// see: the answer is given by Complete. It never runs concurrently with itself.
	TryComplete() bool
	// Complete answers, exactly once. Expired: the deadline came first.
	Complete(expired bool)
}

// Purgatory is a set of waiting operations of one kind. Safe from any goroutine.
type Purgatory[K comparable] struct {
	timer   *Timer
	seed    maphash.Seed
	shards  [shardCount]shard[K]
	delayed atomic.Int64
	watched atomic.Int64
	expired atomic.Int64
	closed  atomic.Bool
}

const shardCount = 64

// shard holds the watch lists of some keys.
type shard[K comparable] struct {
	mu    sync.Mutex
	lists map[K]*watchList[K] // guarded by mu; a list is never empty
}

// watchList keeps the waiters of one key in the order they came.
type watchList[K comparable] struct{ head, tail *watch[K] }

// watch is a waiter's place under one key. Links are guarded by the shard's mu.
type watch[K comparable] struct {
	w          *Waiter[K]
	key        K
	prev, next *watch[K]
	linked     bool
}

// Waiter is one operation in a purgatory.
type Waiter[K comparable] struct {
	p       *Purgatory[K]
	op      Operation
	watches []watch[K]
	task    *Task

	mu    sync.Mutex  // held while op.TryComplete runs and while done moves
	done  atomic.Bool // moves to true once, under mu
	again atomic.Bool // a Try came while mu was held: its holder tries once more
}

// New makes an empty purgatory whose deadlines are kept by timer, which may be shared by many.
func New[K comparable](timer *Timer) *Purgatory[K] {
	return &Purgatory[K]{timer: timer, seed: maphash.MakeSeed()}
}

// Add tries op and, when it cannot complete yet, watches it under keys until timeout.
// done: op has completed before Add returned. A timeout of 0 or less completes op as expired
// when it is not ready. keys are copied.
func (p *Purgatory[K]) Add(op Operation, timeout time.Duration, keys ...K) (w *Waiter[K], done bool) {
	w = &Waiter[K]{p: p, op: op}
	ready := op.TryComplete()
	if ready || timeout <= 0 || p.closed.Load() {
		w.done.Store(true)
		if !ready {
			p.expired.Add(1)
		}
		op.Complete(!ready)
		return w, true
	}
	w.mu.Lock() // keeps Checks and the deadline off until the waiter is whole
	w.watches = make([]watch[K], len(keys))
	p.delayed.Add(1)
	for i, key := range keys {
		w.watches[i] = watch[K]{w: w, key: key}
		p.link(&w.watches[i])
	}
	w.task = p.timer.After(timeout, w.expire)
	w.mu.Unlock()
	if w.Try() { // what changed between the first try and the watching
		return w, true
	}
	if p.closed.Load() {
		w.finish(true)
	}
	return w, w.Done()
}

// Check tries every operation watched under key and returns how many completed. The caller must
// not hold a lock that TryComplete or Complete takes.
func (p *Purgatory[K]) Check(key K) int {
	n := 0
	var room [16]*Waiter[K]
	for _, w := range p.waiters(key, room[:0]) {
		if w.Try() {
			n++
		}
	}
	return n
}

// CompleteAll completes every operation watched under key whether it is ready or not, as not
// expired, and returns how many. Meant for a key that goes away (a partition that moved).
func (p *Purgatory[K]) CompleteAll(key K) int {
	n := 0
	for _, w := range p.waiters(key, nil) {
		if w.Complete() {
			n++
		}
	}
	return n
}

// Watched is the number of key entries: Kafka's PurgatorySize.
func (p *Purgatory[K]) Watched() int { return int(p.watched.Load()) }

// Delayed is the number of operations that wait: Kafka's NumDelayedOperations.
func (p *Purgatory[K]) Delayed() int { return int(p.delayed.Load()) }

// Expired is how many operations met their deadline since the start.
func (p *Purgatory[K]) Expired() int64 { return p.expired.Load() }

// Close completes everything that waits as expired and refuses to keep more: a later Add
// completes at once. The timer is not closed.
func (p *Purgatory[K]) Close() {
	p.closed.Store(true)
	var all []*Waiter[K]
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		for _, l := range s.lists {
			for e := l.head; e != nil; e = e.next {
				all = append(all, e.w)
			}
		}
		s.mu.Unlock()
	}
	for _, w := range all {
		w.finish(true)
	}
}

// Done reports whether the operation has completed or was cancelled.
func (w *Waiter[K]) Done() bool { return w.done.Load() }

// Try tries the operation once more, as Check does; true when this call completed it. When
// another goroutine is trying it at the moment, that one tries again on our behalf.
func (w *Waiter[K]) Try() bool {
	w.again.Store(true)
	for w.again.Load() && w.mu.TryLock() {
		w.again.Store(false)
		ready := !w.done.Load() && w.op.TryComplete()
		if ready {
			w.done.Store(true)
		}
		w.mu.Unlock()
		if ready {
			w.leave()
			w.op.Complete(false)
			return true
		}
		if w.done.Load() {
			return false
		}
	}
	return false
}

// Complete completes the operation now, ready or not; false when it was done before. Not to be
// called from TryComplete.
func (w *Waiter[K]) Complete() bool { return w.finish(false) }

// Cancel forgets the operation without calling it: its connection is gone. False when it was
// done before. Not to be called from TryComplete.
func (w *Waiter[K]) Cancel() bool {
	if !w.win() {
		return false
	}
	w.leave()
	return true
}

func (w *Waiter[K]) expire() { w.finish(true) }

func (w *Waiter[K]) finish(expired bool) bool {
	if !w.win() {
		return false
	}
	w.leave()
	if expired {
		w.p.expired.Add(1)
	}
	w.op.Complete(expired)
	return true
}

// win moves the waiter to done after a running TryComplete has returned.
func (w *Waiter[K]) win() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done.Load() {
		return false
	}
	w.done.Store(true)
	return true
}

// leave takes the waiter out of all lists and off the timer; called once, by the winner.
func (w *Waiter[K]) leave() {
	w.task.Cancel()
	for i := range w.watches {
		w.p.unlink(&w.watches[i])
	}
	w.p.delayed.Add(-1)
}

func (p *Purgatory[K]) shard(key K) *shard[K] {
	return &p.shards[maphash.Comparable(p.seed, key)%shardCount]
}

func (p *Purgatory[K]) link(e *watch[K]) {
	s := p.shard(e.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lists[e.key]
	if l == nil {
		if s.lists == nil {
			s.lists = map[K]*watchList[K]{}
		}
		l = &watchList[K]{head: e, tail: e}
		s.lists[e.key] = l
	} else {
		e.prev, l.tail.next, l.tail = l.tail, e, e
	}
	e.linked = true
	p.watched.Add(1)
}

func (p *Purgatory[K]) unlink(e *watch[K]) {
	s := p.shard(e.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.linked {
		return
	}
	e.linked = false
	p.watched.Add(-1)
	l := s.lists[e.key]
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.tail = e.prev
	}
	e.prev, e.next = nil, nil
	if l.head == nil {
		delete(s.lists, e.key)
	}
}

func (p *Purgatory[K]) waiters(key K, buf []*Waiter[K]) []*Waiter[K] {
	s := p.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lists[key]; l != nil {
		for e := l.head; e != nil; e = e.next {
			buf = append(buf, e.w)
		}
	}
	return buf
}
