package logdir

import (
	"container/heap"
	"path/filepath"
	"sync"
	"time"

	"samsa/internal/storage/partlog"
)

// scheduler is the clock of a Manager: one goroutine that sleeps until the next thing is due
// and hands it to the worker of the directory. It does no I/O itself.
type scheduler struct {
	m      *Manager
	wakeup chan struct{}
	stop   chan struct{} // closed by Close
	jobs   sync.WaitGroup
	aside  sync.WaitGroup // closing of failed directories

	mu       sync.Mutex
	stopped  bool      // guarded by mu: no job may begin
	removals removals  // guarded by mu
	began    time.Time // when Load was done; guarded by mu
}

// removal is something to be removed later.
type removal struct {
	dir    *Directory
	path   string   // a replica's directory, or
	files  []string // files of a live one
	stale  bool     // a stray that is to become -delete first
	queued time.Time
	delay  time.Duration // -1: the live FileDeleteDelay
	due    time.Time
}

type removals []*removal

func (r removals) Len() int           { return len(r) }
func (r removals) Less(i, j int) bool { return r[i].due.Before(r[j].due) }
func (r removals) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *removals) Push(x any)        { *r = append(*r, x.(*removal)) }
func (r *removals) Pop() any {
	old := *r
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*r = old[:len(old)-1]
	return x
}

func (s *scheduler) init(m *Manager) {
	s.m, s.wakeup, s.stop = m, make(chan struct{}, 1), make(chan struct{})
}

// startFailures starts the failure goroutine, at Open.
func (s *scheduler) startFailures() {
	s.jobs.Add(1)
	go func() {
		defer s.jobs.Done()
		s.m.handleFailures(s.stop)
	}()
}

// start begins the periodic work, after Load.
func (s *scheduler) start() {
	s.mu.Lock()
	s.began = s.m.opts.Now()
	s.mu.Unlock()
	s.retime()
	if s.enter() {
		go s.loop()
	}
}

// enter counts a goroutine in, unless Close has begun.
func (s *scheduler) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.jobs.Add(1)
	return true
}

func (s *scheduler) wake() {
	s.retime()
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// removeDir queues the directory of a deleted replica.
func (s *scheduler) removeDir(d *Directory, path string) {
	s.add(&removal{dir: d, path: path, delay: -1})
}

// removeStale queues a stray whose topic is gone, where delete.stale.topic.delay.ms says so.
func (s *scheduler) removeStale(d *Directory, path string) {
	if delay := s.m.opts.DeleteStaleTopicDelay; delay > 0 {
		s.add(&removal{dir: d, path: path, stale: true, delay: delay})
	}
}

func (s *scheduler) add(r *removal) {
	r.queued = s.m.opts.Now()
	s.mu.Lock()
	r.due = s.due(r)
	first := len(s.removals) == 0 || r.due.Before(s.removals[0].due)
	heap.Push(&s.removals, r)
	s.mu.Unlock()
	if first {
		select {
		case s.wakeup <- struct{}{}:
		default:
		}
	}
}

// due is when a removal may happen: after its delay, and not in the first log.initial.task.delay.ms (T-92).
// Called with mu held.
func (s *scheduler) due(r *removal) time.Time {
	delay := r.delay
	if delay < 0 {
		delay = s.m.live.Load().FileDeleteDelay
	}
	due := r.queued.Add(delay)
	if earliest := s.began.Add(s.m.opts.InitialTaskDelay); due.Before(earliest) {
		due = earliest
	}
	return due
}

// retime recomputes what is due when, after the delays or the beginning changed.
func (s *scheduler) retime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.removals {
		r.due = s.due(r)
	}
	heap.Init(&s.removals)
}

// periodic is a task of every directory.
type periodic struct {
	kind  string
	every time.Duration
	run   func(d *Directory)
	slow  bool // may keep the disk busy for long: not before a checkpoint
	next  time.Time
}

// loop ends when Close closes stop.
func (s *scheduler) loop() {
	defer s.jobs.Done()
	m := s.m
	initial := m.opts.Now().Add(m.opts.InitialTaskDelay)
	tasks := []*periodic{
		{kind: "retention", every: m.opts.RetentionCheckInterval, run: m.retain, slow: true},
		{kind: "flush", every: m.opts.FlushInterval, run: m.flushDue, slow: true},
		{kind: "producers", every: m.opts.ProducerExpirationCheck, run: m.expireProducers, slow: true},
		{kind: "recovery points", every: m.opts.RecoveryPointInterval, run: func(d *Directory) { m.checkpointRecoveryPoints(d) }},
		{kind: "log starts", every: m.opts.LogStartInterval, run: func(d *Directory) { m.checkpointLogStarts(d) }},
		{kind: "high watermarks", every: m.opts.HighWatermarkInterval, run: m.watch},
	}
	for _, t := range tasks {
		t.next = initial
		if t.every == forever {
			t.next = m.opts.Now().Add(forever / 2)
		}
	}
	tasks[len(tasks)-1].next = m.opts.Now().Add(m.opts.HighWatermarkInterval)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := m.opts.Now()
		next := now.Add(time.Hour)
		for _, t := range tasks {
			if !t.next.After(now) {
				s.dispatch(t)
				t.next = now.Add(t.every)
			}
			if t.next.Before(next) {
				next = t.next
			}
		}
		m.noteHung(now)
		if due, ok := s.dispatchRemovals(now); ok && due.Before(next) {
			next = due
		}
		timer.Reset(max(next.Sub(now), time.Millisecond))
		select {
		case <-timer.C:
		case <-s.wakeup:
		case <-s.stop:
			return
		}
	}
}

func (s *scheduler) dispatch(t *periodic) {
	for _, d := range s.m.dirs {
		if !d.Online() {
			continue
		}
		w := &d.work
		if t.slow {
			w = &d.slow
		}
		w.submit(t.kind, func() {
			if d.Online() {
				t.run(d)
			}
		})
	}
}

// dispatchRemovals hands over what is due and says when the next one is.
func (s *scheduler) dispatchRemovals(now time.Time) (time.Time, bool) {
	s.mu.Lock()
	var ready []*removal
	for len(s.removals) > 0 && !s.removals[0].due.After(now) {
		ready = append(ready, heap.Pop(&s.removals).(*removal))
	}
	var next time.Time
	more := len(s.removals) > 0
	if more {
		next = s.removals[0].due
	}
	s.mu.Unlock()
	for _, r := range ready {
		r.dir.slow.submit("", func() {
			switch {
			case r.stale:
				s.m.expireStray(r.dir, r.path)
			case r.path != "":
				s.m.removeNow(r.dir, r.path)
			default:
				s.m.removeFiles(r.dir, r.files)
			}
		})
	}
	return next, more
}

// dirOf finds the log directory of a log.
func (m *Manager) dirOf(l *partlog.Log) *Directory {
	parent := filepath.Dir(l.Dir())
	for _, d := range m.dirs {
		if d.path == parent {
			return d
		}
	}
	return nil
}

// rolled flushes in the background what lies below a new segment (D-58).
func (m *Manager) rolled(l *partlog.Log, newBase int64) {
	if d := m.dirOf(l); d != nil {
		d.slow.submit("", func() {
			if d.Online() {
				m.note(l, "flush after a roll", l.FlushTo(newBase, m.nowMs()))
			}
		})
	}
}

// discard removes segment files after the topic's file.delete.delay.ms.
func (m *Manager) discard(l *partlog.Log, files []string) {
	if d := m.dirOf(l); d != nil {
		delay := time.Duration(max(l.Config().FileDeleteDelayMs, 0)) * time.Millisecond
		m.sched.add(&removal{dir: d, files: files, delay: delay})
	}
}
