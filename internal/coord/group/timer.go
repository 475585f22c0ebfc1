package group

import "container/heap"

// timer is one deadline of one owner. Its zero value is off; fire is set before it is used.
type timer struct {
	at     int64 // when it is due; 0 is off
	queued int64 // the earliest heap entry that stands for it; 0 is none
	fire   func(now int64)
}

func (t *timer) on() bool { return t.at != 0 }

// timers is a heap of deadlines. An entry is a promise to look at its timer at that time: a timer that has moved
// later is put back when its entry comes up, one that has moved earlier gets a second entry, and
// an entry that no longer stands for its timer is dropped.
type timers struct{ heap entries }

type timerEntry struct {
	at    int64
	timer *timer
}

func (ts *timers) set(t *timer, at int64) {
	at = max(at, 1)
	t.at = at
	if t.queued == 0 || at < t.queued {
		t.queued = at
		heap.Push(&ts.heap, timerEntry{at, t})
	}
}

func (ts *timers) stop(t *timer) { t.at = 0 }

// due takes one timer whose time has come off, nil if there is none.
func (ts *timers) due(now int64) *timer {
	for len(ts.heap) > 0 && ts.heap[0].at <= now {
		e := heap.Pop(&ts.heap).(timerEntry)
		t := e.timer
		if t.queued != e.at {
			continue
		}
		t.queued = 0
		switch {
		case t.at == 0:
		case t.at > now:
			ts.set(t, t.at)
		default:
			t.at = 0
			return t
		}
	}
	return nil
}

// next is when due is worth a call. Entries of timers that are off are dropped on the way.
func (ts *timers) next() int64 {
	for len(ts.heap) > 0 {
		e := ts.heap[0]
		if e.timer.queued == e.at && e.timer.on() {
			return e.at
		}
		heap.Pop(&ts.heap)
		if e.timer.queued == e.at {
			e.timer.queued = 0
			if e.timer.on() {
				ts.set(e.timer, e.timer.at)
			}
		}
	}
	return NoDeadline
}

type entries []timerEntry

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return h[i].at < h[j].at }
func (h entries) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *entries) Push(x any)        { *h = append(*h, x.(timerEntry)) }
func (h *entries) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = timerEntry{}
	*h = old[:len(old)-1]
	return e
}
