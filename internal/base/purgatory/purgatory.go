package purgatory

import (
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
	shards  [shardCount]shard[K]
	hash    func(K) uint64
	delayed atomic.Int64
	expired atomic.Int64
	onDone  func(expired bool)
}

const shardCount = 64

type shard[K comparable] struct {
	mu      sync.Mutex
	waiters map[K]map[*Waiter[K]]struct{} // guarded by mu
}

// Waiter is one operation in a purgatory.
type Waiter[K comparable] struct {
	p     *Purgatory[K]
	op    Operation
	keys  []K
	task  *Task
	mu    sync.Mutex // held while op.TryComplete runs
	state atomic.Int32
}

const (
	waiting int32 = iota
	completed
	cancelled
)

// New makes an empty purgatory whose deadlines are kept by timer, which may be shared by many.
func New[K comparable](timer *Timer) *Purgatory[K] {
	panic("pending")
}

// Add tries op and, when it cannot complete yet, watches it under keys until timeout.
// done: op has completed before Add returned. A timeout of 0 or less completes op as expired
// when it is not ready. keys are borrowed until the operation is done.
func (p *Purgatory[K]) Add(op Operation, timeout time.Duration, keys ...K) (w *Waiter[K], done bool) {
	panic("pending")
}

// Check tries every operation watched under key and returns how many completed.
func (p *Purgatory[K]) Check(key K) int { panic("pending") }

// CompleteAll completes every operation watched under key whether it is ready or not, as not
// expired, and returns how many. Meant for a key that goes away (a partition that moved).
func (p *Purgatory[K]) CompleteAll(key K) int { panic("pending") }

// Watched is the number of key entries (Kafka's PurgatorySize), Delayed that of operations
// waiting (NumDelayedOperations), Expired how many met their deadline since the start.
func (p *Purgatory[K]) Watched() int   { panic("pending") }
func (p *Purgatory[K]) Delayed() int   { panic("pending") }
func (p *Purgatory[K]) Expired() int64 { panic("pending") }

// Close completes everything that waits as expired and refuses to keep more: a later Add
// completes at once. The timer is not closed.
func (p *Purgatory[K]) Close() { panic("pending") }

// Try tries the operation once more, as Check does; true when this call completed it.
func (w *Waiter[K]) Try() bool { panic("pending") }

// Complete completes the operation now, ready or not; false when it was done before.
func (w *Waiter[K]) Complete() bool { panic("pending") }

// Cancel forgets the operation without calling it: its connection is gone. False when it was
// done before.
func (w *Waiter[K]) Cancel() bool { panic("pending") }
