package logdir

import "sync"

// worker runs the background jobs of one directory one after the other, on a goroutine that
// exists only while there are jobs: a disk that hangs holds up its own jobs alone (J-127).
type worker struct {
	m       *Manager
	mu      sync.Mutex
	queue   []job           // guarded by mu
	pending map[string]bool // kinds in queue or running; guarded by mu
	running bool            // guarded by mu
}

type job struct {
	kind string // "": may be queued any number of times
	run  func()
}

func (w *worker) init(m *Manager) { w.m, w.pending = m, map[string]bool{} }

// submit queues a job. One of the same kind that has not ended yet stands for it.
func (w *worker) submit(kind string, run func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind != "" {
		if w.pending[kind] {
			return
		}
		w.pending[kind] = true
	}
	w.queue = append(w.queue, job{kind, run})
	if w.running {
		return
	}
	if !w.m.sched.enter() {
		w.queue = nil
		return
	}
	w.running = true
	go w.loop()
}

func (w *worker) loop() {
	defer w.m.sched.jobs.Done()
	for {
		w.mu.Lock()
		if len(w.queue) == 0 || w.m.closed.Load() {
			w.running, w.queue = false, nil
			clear(w.pending)
			w.mu.Unlock()
			return
		}
		j := w.queue[0]
		w.queue = w.queue[1:]
		w.mu.Unlock()
		j.run()
		w.mu.Lock()
		delete(w.pending, j.kind)
		w.mu.Unlock()
	}
}
