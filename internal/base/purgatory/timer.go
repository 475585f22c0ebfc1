package purgatory

import (
	"container/heap"
	"sync"
	"time"
)

// Timer runs functions at deadlines on one goroutine. The goroutine lives while tasks wait.
// The zero value is ready to use. All methods are safe from any goroutine.
type Timer struct {
	mu      sync.Mutex
	tasks   taskHeap      // guarded by mu
	running bool          // guarded by mu: the goroutine exists
	closed  bool          // guarded by mu
	wake    chan struct{} // made once; a token asks the goroutine to look at the heap again
	done    chan struct{} // closed when the current goroutine has ended
}

// Task is a function waiting for its deadline.
type Task struct {
	at    time.Time
	run   func() // nil once it has run or was cancelled; guarded by Timer.mu
	index int    // place in the heap, -1 when not in it; guarded by Timer.mu
	timer *Timer
}

// NewTimer makes an empty timer.
func NewTimer() *Timer { return &Timer{} }

// After runs f on the timer's goroutine when d has passed. f must not block: every later
// deadline waits for it. After Close nothing runs and the task is dead.
func (t *Timer) After(d time.Duration, f func()) *Task {
	task := &Task{at: time.Now().Add(d), run: f, index: -1, timer: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return task
	}
	heap.Push(&t.tasks, task)
	if !t.running {
		if t.wake == nil {
			t.wake = make(chan struct{}, 1)
		}
		t.running = true
		t.done = make(chan struct{})
		go t.loop(t.done)
	} else if task.index == 0 {
		t.nudge()
	}
	return task
}

// Cancel takes the task out; false means it has run, is running or was cancelled before.
func (k *Task) Cancel() bool {
	if k == nil {
		return false
	}
	t := k.timer
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.index < 0 {
		return false
	}
	heap.Remove(&t.tasks, k.index)
	k.run = nil // drop what the closure holds; the task may be kept by its owner
	return true
}

// Len is the number of tasks that wait.
func (t *Timer) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.tasks)
}

// Close drops all tasks and waits until a running function has returned. It must not be called
// from such a function.
func (t *Timer) Close() {
	t.mu.Lock()
	t.closed = true
	for _, k := range t.tasks {
		k.index, k.run = -1, nil
	}
	t.tasks = nil
	done := t.done
	if t.running {
		t.nudge()
	}
	t.mu.Unlock()
	if done != nil {
		<-done
	}
}

func (t *Timer) nudge() {
	select {
	case t.wake <- struct{}{}:
	default: // a token is there already
	}
}

// loop is the timer goroutine: it ends when nothing waits.
func (t *Timer) loop(done chan struct{}) {
	defer close(done)
	var clock *time.Timer
	for {
		t.mu.Lock()
		if len(t.tasks) == 0 {
			t.running = false
			t.mu.Unlock()
			return
		}
		next := t.tasks[0]
		if wait := time.Until(next.at); wait > 0 {
			t.mu.Unlock()
			if clock == nil {
				clock = time.NewTimer(wait)
				defer clock.Stop()
			} else {
				clock.Reset(wait)
			}
			select {
			case <-clock.C:
			case <-t.wake:
			}
			continue
		}
		heap.Pop(&t.tasks)
		run := next.run
		next.run = nil
		t.mu.Unlock()
		run()
	}
}

// taskHeap orders tasks by deadline.
type taskHeap []*Task

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h taskHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *taskHeap) Push(x any) {
	k := x.(*Task)
	k.index = len(*h)
	*h = append(*h, k)
}
func (h *taskHeap) Pop() any {
	old := *h
	k := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	k.index = -1
	return k
}
