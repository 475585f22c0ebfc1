// Package producerids hands out producer ids from blocks that the active controller allocates.
//
// Kind: driver. Next never blocks: with ids in hand it answers at once, else it queues the caller for
// the next block. One goroutine at a time asks the controller; it starts before the block in hand
// runs out, so that nobody waits in ordinary times, and ends when it has one.
package producerids

import (
	"context"
	"fmt"
	"sync"
	"time"

	"samsa/internal/base/kerr"
)

// Block is a range of producer ids that belongs to this broker: First, First+1, … Length of them.
type Block struct {
	First  int64
	Length int32
}

// Options say where blocks come from.
type Options struct {
	// Allocate asks the active controller for a block (AllocateProducerIds, K-171).
	Allocate func(ctx context.Context) (Block, error)
	// Retry is the wait after a failed allocation; 1 s when zero.
	Retry time.Duration
	// Timeout bounds how long a caller waits for an id; 30 s when zero.
	Timeout time.Duration
	Now     func() time.Time
}

// maxWaiting bounds the callers that wait for a block.
const maxWaiting = 10_000

// IDs gives out producer ids. Safe from any goroutine.
type IDs struct {
	options Options
	ctx     context.Context
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	mu      sync.Mutex
	current Block // what is left of the block in use
	next    Block // the one after it, length 0 while there is none
	asking  bool
	waiting []waiter
}

type waiter struct {
	until time.Time
	done  func(int64, error)
}

// New makes a source with no block in hand.
func New(o Options) *IDs {
	if o.Retry == 0 {
		o.Retry = time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ids := &IDs{options: o}
	ids.ctx, ids.stop = context.WithCancelCause(context.Background())
	return ids
}

// Next calls done exactly once with a producer id no other broker and no earlier life of this one
// has given out, or with COORDINATOR_LOAD_IN_PROGRESS, which makes a client ask again.
func (ids *IDs) Next(done func(int64, error)) {
	ids.mu.Lock()
	id, ok := ids.take()
	if !ok {
		if len(ids.waiting) >= maxWaiting || ids.ctx.Err() != nil {
			ids.mu.Unlock()
			done(-1, kerr.CoordinatorLoadInProgress)
			return
		}
		ids.waiting = append(ids.waiting, waiter{ids.options.Now().Add(ids.options.Timeout), done})
	}
	ids.askIfShort()
	ids.mu.Unlock()
	if ok {
		done(id, nil)
	}
}

// take uses up one id. Called with mu held.
func (ids *IDs) take() (int64, bool) {
	if ids.current.Length == 0 {
		ids.current, ids.next = ids.next, Block{}
	}
	if ids.current.Length == 0 {
		return -1, false
	}
	id := ids.current.First
	ids.current.First++
	ids.current.Length--
	return id, true
}

// askIfShort starts an allocation when a tenth of a block of 1000 is left. Called with mu held.
func (ids *IDs) askIfShort() {
	const low = 100
	if ids.asking || ids.next.Length > 0 || ids.current.Length > low || ids.ctx.Err() != nil {
		return
	}
	ids.asking = true
	ids.running.Go(ids.ask)
}

// ask gets one block, however long the controller is away, and serves who waited. Callers whose
// time is up are told so after each failure.
func (ids *IDs) ask() {
	for {
		block, err := ids.options.Allocate(ids.ctx)
		if err == nil && (block.Length <= 0 || block.First < 0) {
			err = fmt.Errorf("the controller allocated %d producer ids from %d", block.Length, block.First)
		}
		if err == nil {
			ids.arrived(block)
			return
		}
		ids.expire()
		select {
		case <-ids.ctx.Done():
			return
		case <-time.After(ids.options.Retry):
		}
	}
}

func (ids *IDs) arrived(block Block) {
	type served struct {
		done func(int64, error)
		id   int64
	}
	var out []served
	ids.mu.Lock()
	ids.next = block
	ids.asking = false
	n := 0
	for ; n < len(ids.waiting); n++ {
		id, ok := ids.take()
		if !ok {
			break
		}
		out = append(out, served{ids.waiting[n].done, id})
	}
	ids.waiting = append([]waiter(nil), ids.waiting[n:]...)
	ids.askIfShort()
	ids.mu.Unlock()
	for _, s := range out {
		s.done(s.id, nil)
	}
}

// expire answers the callers that have waited long enough.
func (ids *IDs) expire() {
	now := ids.options.Now()
	ids.mu.Lock()
	n := 0
	for n < len(ids.waiting) && !now.Before(ids.waiting[n].until) {
		n++
	}
	gone := ids.waiting[:n:n]
	ids.waiting = ids.waiting[n:]
	ids.mu.Unlock()
	for _, w := range gone {
		w.done(-1, kerr.CoordinatorLoadInProgress)
	}
}

// Close ends the allocation under way and answers everybody who waits.
func (ids *IDs) Close() {
	ids.stop(kerr.CoordinatorNotAvailable)
	ids.running.Wait()
	ids.mu.Lock()
	gone := ids.waiting
	ids.waiting = nil
	ids.mu.Unlock()
	for _, w := range gone {
		w.done(-1, kerr.CoordinatorNotAvailable)
	}
}
