package purgatory

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// waitOp is ready when ready is set; it notes how it ended and when.
type waitOp struct {
	ready     atomic.Bool
	trying    atomic.Int32
	tries     atomic.Int32
	completed atomic.Int32
	expired   atomic.Int32
	at        time.Time
	onDone    func()
	t         *testing.T
}

func (o *waitOp) TryComplete() bool {
	if o.trying.Add(1) != 1 {
		o.t.Error("TryComplete runs concurrently with itself")
	}
	defer o.trying.Add(-1)
	if o.completed.Load() > 0 {
		o.t.Error("TryComplete after Complete")
	}
	o.tries.Add(1)
	return o.ready.Load()
}

func (o *waitOp) Complete(expired bool) {
	if o.trying.Load() != 0 {
		o.t.Error("Complete while TryComplete runs")
	}
	if o.completed.Add(1) != 1 {
		o.t.Error("Complete ran twice")
	}
	if expired {
		o.expired.Add(1)
	}
	o.at = time.Now()
	if o.onDone != nil {
		o.onDone()
	}
}

func (o *waitOp) state() (completed, expired int32) { return o.completed.Load(), o.expired.Load() }

func TestAddCompletesAtOnce(t *testing.T) {
	p := New[int](NewTimer())
	op := &waitOp{t: t}
	op.ready.Store(true)
	if w, done := p.Add(op, time.Hour, 1); !done || !w.Done() {
		t.Error("a ready operation waits")
	}
	if c, e := op.state(); c != 1 || e != 0 {
		t.Errorf("completed %d, expired %d", c, e)
	}
	late := &waitOp{t: t}
	if _, done := p.Add(late, 0, 1); !done {
		t.Error("an operation without time waits")
	}
	if c, e := late.state(); c != 1 || e != 1 {
		t.Errorf("completed %d, expired %d", c, e)
	}
	if p.Delayed() != 0 || p.Watched() != 0 || p.timer.Len() != 0 || p.Expired() != 1 {
		t.Error("something is left behind")
	}
}

func TestCheckCompletesReadyOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := NewTimer()
		p := New[string](timer)
		a, b := &waitOp{t: t}, &waitOp{t: t}
		p.Add(a, time.Minute, "x", "y")
		p.Add(b, time.Minute, "y")
		if p.Delayed() != 2 || p.Watched() != 3 {
			t.Fatalf("delayed %d, watched %d", p.Delayed(), p.Watched())
		}
		if n := p.Check("y"); n != 0 {
			t.Fatalf("%d completed although none is ready", n)
		}
		a.ready.Store(true)
		if n := p.Check("z"); n != 0 {
			t.Fatalf("%d completed under a key nobody watches", n)
		}
		if n := p.Check("x"); n != 1 {
			t.Fatalf("%d completed, want a", n)
		}
		if n := p.Check("y"); n != 0 || p.Watched() != 1 || p.Delayed() != 1 || timer.Len() != 1 {
			t.Fatalf("a is still watched: %d completed, watched %d, delayed %d, timers %d", n, p.Watched(), p.Delayed(), timer.Len())
		}
		if n := p.CompleteAll("y"); n != 1 {
			t.Fatalf("%d completed, want b", n)
		}
		if c, e := b.state(); c != 1 || e != 0 {
			t.Errorf("b completed %d, expired %d", c, e)
		}
		timer.Close()
	})
}

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := NewTimer()
		p := New[int](timer)
		start := time.Now()
		ops := make([]*waitOp, 50)
		for i := range ops {
			ops[i] = &waitOp{t: t}
			// Deadlines come in descending and mixed order, so that the goroutine must be woken.
			p.Add(ops[i], time.Duration((i*37)%50+1)*time.Second, i%3)
		}
		time.Sleep(51 * time.Second)
		synctest.Wait()
		for i, op := range ops {
			if c, e := op.state(); c != 1 || e != 1 {
				t.Fatalf("operation %d: completed %d, expired %d", i, c, e)
			}
			if got, want := op.at.Sub(start), time.Duration((i*37)%50+1)*time.Second; got != want {
				t.Errorf("operation %d ended after %v, want %v", i, got, want)
			}
		}
		if p.Expired() != 50 || p.Watched() != 0 || p.Delayed() != 0 {
			t.Errorf("expired %d, watched %d, delayed %d", p.Expired(), p.Watched(), p.Delayed())
		}
		timer.mu.Lock()
		running := timer.running
		timer.mu.Unlock()
		if running {
			t.Error("the timer goroutine lives although nothing waits")
		}
	})
}

// Nothing ticks: a goroutine that waits an hour is woken once, by its deadline.
func TestIdleCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := NewTimer()
		p := New[int](timer)
		op := &waitOp{t: t}
		p.Add(op, time.Hour, 1)
		tries := op.tries.Load()
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if op.tries.Load() != tries {
			t.Error("the operation was tried although nothing happened")
		}
		timer.Close()
	})
}

func TestCancelForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := NewTimer()
		p := New[int](timer)
		op := &waitOp{t: t}
		w, _ := p.Add(op, time.Second, 1, 2, 3)
		if !w.Cancel() || w.Cancel() || w.Complete() || w.Try() {
			t.Error("cancel counts once and ends everything")
		}
		op.ready.Store(true)
		p.Check(1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if c, _ := op.state(); c != 0 || p.Watched() != 0 || p.Delayed() != 0 {
			t.Error("a cancelled operation was completed or is still watched")
		}
	})
}

// A change between the first try and the watching must not be lost.
func TestChangeWhileAdding(t *testing.T) {
	timer := NewTimer()
	defer timer.Close()
	p := New[int](timer)
	for range 2000 {
		op := &waitOp{t: t}
		var wg sync.WaitGroup
		wg.Add(1)
		go func() {
			defer wg.Done()
			op.ready.Store(true)
			p.Check(1)
		}()
		p.Add(op, time.Hour, 1)
		wg.Wait()
		if c, e := op.state(); c != 1 || e != 0 {
			t.Fatalf("completed %d, expired %d: the change was lost", c, e)
		}
	}
}

func TestCloseExpiresAll(t *testing.T) {
	timer := NewTimer()
	defer timer.Close()
	p := New[int](timer)
	ops := []*waitOp{{t: t}, {t: t}, {t: t}}
	for i, op := range ops {
		p.Add(op, time.Hour, i, i+1)
	}
	p.Close()
	late := &waitOp{t: t}
	if _, done := p.Add(late, time.Hour, 1); !done {
		t.Error("a closed purgatory keeps an operation")
	}
	for i, op := range append(ops, late) {
		if c, e := op.state(); c != 1 || e != 1 {
			t.Errorf("operation %d: completed %d, expired %d", i, c, e)
		}
	}
	if p.Delayed() != 0 || p.Watched() != 0 || timer.Len() != 0 {
		t.Error("something is left behind")
	}
}

// Complete may check other keys, and so complete others, on the same goroutine.
func TestCompleteMayCheck(t *testing.T) {
	timer := NewTimer()
	defer timer.Close()
	p := New[int](timer)
	a, b := &waitOp{t: t}, &waitOp{t: t}
	p.Add(b, time.Hour, 2)
	a.onDone = func() {
		b.ready.Store(true)
		p.Check(2)
	}
	p.Add(a, time.Hour, 1)
	a.ready.Store(true)
	p.Check(1)
	if c, _ := b.state(); c != 1 {
		t.Error("b was not completed from a's Complete")
	}
}

// Everybody at once: adds, checks, forced completions, cancels and deadlines. Each operation ends
// exactly once and nothing stays behind.
func TestExactlyOnceUnderRace(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	timer := NewTimer()
	p := New[int](timer)
	const workers, each = 8, 400
	var ended, cancelled atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		rng := rand.New(rand.NewPCG(seed, uint64(worker)))
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range each {
				op := &waitOp{t: t, onDone: func() { ended.Add(1) }}
				keys := []int{rng.IntN(5), 5 + rng.IntN(5)}
				w, done := p.Add(op, time.Duration(rng.IntN(2000))*time.Microsecond, keys...)
				switch rng.IntN(4) {
				case 0:
					op.ready.Store(true)
					p.Check(keys[rng.IntN(2)])
				case 1:
					w.Complete()
				case 2:
					if w.Cancel() {
						cancelled.Add(1)
					} else if !done && !w.Done() {
						t.Error("neither cancelled nor done")
					}
				case 3:
					op.ready.Store(true) // somebody else's check or the deadline ends it
				}
				p.Check(rng.IntN(10))
			}
		}()
	}
	wg.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for p.Delayed() > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d operations never ended", p.Delayed())
		}
		for k := range 10 {
			p.Check(k)
		}
	}
	timer.Close()
	if got := ended.Load() + cancelled.Load(); got != workers*each {
		t.Errorf("%d of %d operations ended", got, workers*each)
	}
	if p.Watched() != 0 {
		t.Errorf("%d watches left", p.Watched())
	}
	for i := range p.shards {
		if len(p.shards[i].lists) != 0 {
			t.Errorf("shard %d keeps %d empty lists", i, len(p.shards[i].lists))
		}
	}
}

func TestTimerCloseWaits(t *testing.T) {
	timer := NewTimer()
	started := make(chan struct{})
	var finished atomic.Bool
	timer.After(0, func() {
		close(started)
		for range 1000 {
			time.Now()
		}
		finished.Store(true)
	})
	k := timer.After(time.Hour, func() { t.Error("ran after Close") })
	<-started
	timer.Close()
	if !finished.Load() {
		t.Error("Close returned while a function ran")
	}
	if k.Cancel() || timer.After(0, func() { t.Error("ran after Close") }).Cancel() {
		t.Error("a task lives after Close")
	}
}

func BenchmarkAddCheck(b *testing.B) {
	timer := NewTimer()
	defer timer.Close()
	p := New[int](timer)
	b.ReportAllocs()
	for i := range b.N {
		op := &waitOp{}
		p.Add(op, time.Second, i&1023)
		op.ready.Store(true)
		p.Check(i & 1023)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
