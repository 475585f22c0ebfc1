package network

import (
	"context"
	"sync"
)

// smallBuffer is the size of the first buffer of a connection with bytes to read; buffers of
// this size are not charged to the budget. 64 KiB holds a few hundred one-record requests.
const smallBuffer = 64 << 10

// bufferClasses are the sizes kept in pools. A frame above the last one gets a buffer of its own size.
var bufferClasses = [...]int{smallBuffer, 256 << 10, 1 << 20, 4 << 20}

var bufferPools [len(bufferClasses)]sync.Pool

// readBuffer holds bytes from the socket: b[r:w] is not consumed yet.
type readBuffer struct {
	b    []byte
	r, w int
}

// sizeFor is the size of the buffer to take for n bytes.
func sizeFor(n int) int {
	for _, c := range bufferClasses {
		if n <= c {
			return c
		}
	}
	return n
}

func takeBuffer(size int) *readBuffer {
	for i, c := range bufferClasses {
		if size == c {
			if b, ok := bufferPools[i].Get().(*readBuffer); ok {
				return b
			}
		}
	}
	return &readBuffer{b: make([]byte, size)}
}

func giveBuffer(b *readBuffer) {
	b.r, b.w = 0, 0
	for i, c := range bufferClasses {
		if len(b.b) == c {
			bufferPools[i].Put(b)
			return
		}
	}
}

// budget bounds the bytes of large read buffers over all connections.
//
// A connection that holds some and needs more could wait for another that does the same, for
// ever. So one holder at a time, the overdrawn one, is granted whatever it asks: it
// finishes its frame and gives everything back. The budget is thus exceeded by at most one frame.
type budget struct {
	mu        sync.Mutex
	limit     int64
	used      int64
	overdrawn *lease
	waiters   []*budgetWaiter // in the order they came, so a large frame is not starved by small ones
}

// lease is what one connection holds of the budget. Guarded by budget.mu.
type lease struct{ held int64 }

type budgetWaiter struct {
	lease *lease
	n     int64
	ready chan struct{}
}

// acquire takes n more bytes for l, waiting until they are there.
func (b *budget) acquire(ctx context.Context, l *lease, n int64) error {
	b.mu.Lock()
	if b.grant(l, n, len(b.waiters) == 0) {
		b.mu.Unlock()
		return nil
	}
	w := &budgetWaiter{lease: l, n: n, ready: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiters {
		if other == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			break
		}
	}
	b.wake() // what was granted meanwhile is given back by the caller's release
	return context.Cause(ctx)
}

// tryAcquire takes n more bytes if nobody waits and they fit.
func (b *budget) tryAcquire(l *lease, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiters) > 0 || b.used+n > b.limit {
		return false
	}
	l.held += n
	b.used += n
	return true
}

// grant charges n to l if it may have it now. first says that nobody waits before it.
func (b *budget) grant(l *lease, n int64, first bool) bool {
	switch {
	case l == b.overdrawn:
	case first && (b.used == 0 || b.used+n <= b.limit):
	case l.held > 0 && b.overdrawn == nil:
		b.overdrawn = l
	default:
		return false
	}
	l.held += n
	b.used += n
	return true
}

// release gives back everything l holds.
func (b *budget) release(l *lease) {
	b.mu.Lock()
	b.used -= l.held
	l.held = 0
	if b.overdrawn == l {
		b.overdrawn = nil
	}
	b.wake()
	b.mu.Unlock()
}

// wake grants what can be granted. Called with mu held.
func (b *budget) wake() {
	kept := b.waiters[:0]
	for _, w := range b.waiters {
		if b.grant(w.lease, w.n, len(kept) == 0) {
			close(w.ready)
		} else {
			kept = append(kept, w)
		}
	}
	clear(b.waiters[len(kept):])
	b.waiters = kept
}

// state tells how much is in use and whether anybody waits.
func (b *budget) state() (used int64, contended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, len(b.waiters) > 0
}
