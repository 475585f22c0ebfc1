package node

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/record"
)

// dispatcher hands committed batches to the listeners. One goroutine calls all of them, so one that blocks holds the others up.
type dispatcher struct {
	n    *Node
	wake chan struct{}
	end  chan struct{}
	done chan struct{}

	calls sync.Mutex // held while listeners are called

	mu        sync.Mutex
	listeners []*listenerState
	change    chan struct{} // closed and replaced at every notify
	inFlight  []appendedAt  // own appends not yet committed, for the commit latency
}

type appendedAt struct {
	last int64
	at   time.Time
}

type listenerState struct {
	l      Listener
	next   int64 // -1: nothing was handed over yet
	leader LeaderAndEpoch
	gone   bool
}

func newDispatcher(n *Node) *dispatcher {
	return &dispatcher{n: n, wake: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{}), change: make(chan struct{})}
}

// notify wakes the dispatcher, and whoever waits for a change.
func (d *dispatcher) notify() {
	d.mu.Lock()
	close(d.change)
	d.change = make(chan struct{})
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *dispatcher) changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.change
}

func (d *dispatcher) appended(p pendingAppend) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.inFlight) < 1000 {
		d.inFlight = append(d.inFlight, appendedAt{p.batches[len(p.batches)-1].Last, p.at})
	}
}

// leaderChanged forgets appends whose commit this leadership will not see.
func (d *dispatcher) leaderChanged() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight = nil
}

// Register adds a listener; it gets the newest snapshot and everything committed, then what follows.
func (n *Node) Register(l Listener) {
	d := n.dispatch
	d.mu.Lock()
	d.listeners = append(d.listeners, &listenerState{l: l, next: -1, leader: LeaderAndEpoch{-1, -1}})
	d.mu.Unlock()
	d.notify()
}

// Unregister removes it; no call is running or coming when Unregister returns (do not call it from a listener).
func (n *Node) Unregister(l Listener) {
	d := n.dispatch
	d.calls.Lock()
	defer d.calls.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = slices.DeleteFunc(d.listeners, func(s *listenerState) bool { return s.l == l })
}

func (d *dispatcher) run() {
	defer close(d.done)
	for {
		select {
		case <-d.wake:
			d.calls.Lock()
			err := d.round()
			d.calls.Unlock()
			if err != nil {
				d.n.fail(err)
				return
			}
		case <-d.end:
			return
		}
	}
}

// stop ends the goroutine and says goodbye to the listeners.
func (d *dispatcher) stop() {
	close(d.end)
	<-d.done
	d.calls.Lock()
	defer d.calls.Unlock()
	for _, s := range d.snapshot() {
		s.l.BeginShutdown()
	}
}

func (d *dispatcher) snapshot() []*listenerState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.listeners)
}

// chunk is a decoded piece of the log; listeners that are at the same place share it.
type chunk struct {
	from, next int64
	batches    []Batch
}

const chunkBytes = 4 << 20

// round brings every listener up to the high watermark, then tells it who leads.
func (d *dispatcher) round() error {
	var c chunk
	for more := true; more; {
		more = false
		for _, s := range d.snapshot() {
			hw, leader := d.view()
			ahead, err := d.advance(s, hw, &c)
			if err != nil {
				return err
			}
			more = more || ahead
			d.tellLeader(s, leader)
		}
		if d.n.failed() {
			return nil
		}
		select {
		case <-d.end:
			return nil
		default:
		}
	}
	return nil
}

func (d *dispatcher) view() (int64, kraft.LeaderChange) {
	d.n.mu.Lock()
	defer d.n.mu.Unlock()
	return d.n.hw, d.n.leader
}

// advance hands over one piece; true when the listener is still behind.
func (d *dispatcher) advance(s *listenerState, hw int64, c *chunk) (bool, error) {
	if hw < 0 || s.next >= hw {
		return false, nil
	}
	start := d.n.store.log.LogStartOffset()
	if s.next < 0 || s.next < start {
		id, ok := d.newestSnapshot()
		switch {
		case ok && !id.IsBootstrap() && id.Offset > s.next:
			return d.load(s, id, hw)
		case start > 0:
			return false, fmt.Errorf("the log starts at offset %d and there is no snapshot to begin with", start)
		}
		s.next = 0
		if hw == 0 {
			return false, nil
		}
	}
	if c.from != s.next || c.next <= s.next {
		if err := d.read(c, s.next, hw); err != nil {
			if errors.Is(err, kerr.OffsetOutOfRange) && d.n.store.log.LogStartOffset() > s.next {
				return true, nil // replaced by a snapshot meanwhile
			}
			return false, err
		}
	}
	s.l.HandleCommit(c.batches)
	s.next = c.next
	d.measure(s.next)
	return s.next < hw, nil
}

func (d *dispatcher) load(s *listenerState, id kraft.SnapshotID, hw int64) (bool, error) {
	r, err := d.n.store.openSnapshot(id)
	if err != nil {
		return false, err
	}
	defer r.Close()
	if err := s.l.HandleSnapshot(r); err != nil {
		return false, fmt.Errorf("load snapshot %s: %w", id, err)
	}
	s.next = id.Offset
	return s.next < hw, nil
}

func (d *dispatcher) newestSnapshot() (kraft.SnapshotID, bool) {
	d.n.mu.Lock()
	defer d.n.mu.Unlock()
	snaps := d.n.core.Snapshots()
	if len(snaps) == 0 {
		return kraft.SnapshotID{}, false
	}
	return snaps[len(snaps)-1].ID, true
}

func (d *dispatcher) read(c *chunk, from, hw int64) error {
	b, next, err := d.n.store.read(from, hw, chunkBytes)
	if err != nil {
		return fmt.Errorf("the metadata log cannot be read at offset %d: %w", from, err)
	}
	*c = chunk{from: from, next: next}
	for batch, err := range record.Split(b) {
		if err != nil {
			return fmt.Errorf("the metadata log is damaged at offset %d: %w", from, err)
		}
		if batch.LastOffset() < from {
			continue
		}
		if !batch.ValidCRC() {
			return fmt.Errorf("the metadata log is damaged at offset %d: wrong checksum", batch.BaseOffset())
		}
		decoded, err := decodeBatch(batch)
		if err != nil {
			return fmt.Errorf("the metadata log cannot be decoded: %w", err)
		}
		c.batches = append(c.batches, decoded)
	}
	if len(c.batches) == 0 || next <= from {
		return fmt.Errorf("the metadata log ends at offset %d, below the high watermark %d", from, hw)
	}
	return nil
}

// tellLeader is K-25: a listener hears that this node leads only behind the first record of the epoch.
func (d *dispatcher) tellLeader(s *listenerState, l kraft.LeaderChange) {
	now := LeaderAndEpoch{l.Leader, l.Epoch}
	if now == s.leader || l.Epoch < 0 || l.EpochStart >= 0 && s.next <= l.EpochStart {
		return
	}
	s.leader = now
	s.l.HandleLeaderChange(now)
}

// measure takes the commit latency of own appends below next.
func (d *dispatcher) measure(next int64) {
	d.mu.Lock()
	var took time.Duration
	n := 0
	for n < len(d.inFlight) && d.inFlight[n].last < next {
		took = d.n.opts.Now().Sub(d.inFlight[n].at)
		n++
	}
	d.inFlight = slices.Delete(d.inFlight, 0, n)
	d.mu.Unlock()
	if n > 0 {
		d.n.count(func(s *Stats) { s.CommitLatency = took })
	}
}
