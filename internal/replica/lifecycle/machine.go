package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// machine decides what is sent next and when. Pure: time is an argument. At most one request is on its way: its owner calls
// next, sends what it says, and calls registered, answered or failed before it calls next again.
type machine struct {
	interval, registerTimeout, dirTimeout time.Duration

	state    State
	isKnown  bool // registered, in this process
	begunAt  time.Time
	epoch    int64
	ready    bool // ask to be unfenced
	caughtUp bool
	unfenced bool // once
	released bool // the controlled shutdown is over
	pended   bool // the controller said wait, once
	gaveUp   error
	fatal    bool // told

	nextAt    time.Time
	urgent    bool      // the next one goes at once, unless the one on its way fails
	pendingAt time.Time // when the controlled shutdown began
	heardAt   time.Time // last answer during a controlled shutdown
	dirs      []failedDir
}

// failedDir is a directory that failed while this process runs.
type failedDir struct {
	id   model.DirectoryID
	at   time.Time
	told bool // a heartbeat that listed it was answered (J-70)
}

func newMachine(now time.Time, interval, registerTimeout, dirTimeout time.Duration) machine {
	return machine{interval: interval, registerTimeout: registerTimeout, dirTimeout: dirTimeout,
		state: Starting, begunAt: now, epoch: -1, nextAt: now}
}

type send uint8

const (
	sendNothing send = iota
	sendRegistration
	sendHeartbeat
)

// step is what next decided.
type step struct {
	send  send
	fatal error
}

// next says what to do now.
func (m *machine) next(now time.Time) step {
	var s step
	if !m.fatal {
		s.fatal = m.isFatal(now)
		m.fatal = s.fatal != nil
	}
	if m.state == PendingControlledShutdown && !m.released {
		switch {
		case now.Sub(m.heardAt) >= noControllerGrace:
			m.giveUp(fmt.Errorf("no controller has answered for %v; the broker stops without moving its leaderships", noControllerGrace))
		case now.Sub(m.pendingAt) >= maxControlledShutdown:
			m.giveUp(fmt.Errorf("the controller has not moved all leaderships within %v", maxControlledShutdown))
		}
	}
	if m.state == ShuttingDown || now.Before(m.nextAt) {
		return s
	}
	m.urgent = false
	if m.isKnown {
		s.send = sendHeartbeat
	} else {
		s.send = sendRegistration
	}
	return s
}

// wait is how long nothing needs to be done.
func (m *machine) wait(now time.Time) time.Duration {
	at := m.nextAt
	if m.state == ShuttingDown {
		at = now.Add(time.Hour)
	}
	earlier := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if m.state == PendingControlledShutdown && !m.released {
		earlier(m.heardAt.Add(noControllerGrace))
	}
	if !m.fatal {
		for _, d := range m.dirs {
			if !d.told {
				earlier(d.at.Add(m.dirTimeout))
			}
		}
		if m.epoch < 0 {
			earlier(m.begunAt.Add(m.registerTimeout))
		}
	}
	return max(at.Sub(now), 0)
}

func (m *machine) isFatal(now time.Time) error {
	if m.epoch < 0 && now.Sub(m.begunAt) >= m.registerTimeout {
		return fmt.Errorf("the controller quorum did not accept this broker's registration within %v (initial.broker.registration.timeout.ms);"+
			" see the warnings above for its answers", m.registerTimeout)
	}
	for _, d := range m.dirs {
		if !d.told && now.Sub(d.at) >= m.dirTimeout {
			return &DirUntoldError{d.id, m.dirTimeout}
		}
	}
	return nil
}

// DirUntoldError: no controller heard of a failed directory in time. The process ends without a controlled shutdown (J-71).
type DirUntoldError struct {
	Dir     model.DirectoryID
	Timeout time.Duration
}

func (e *DirUntoldError) Error() string {
	return fmt.Sprintf("couldn't communicate offline log dir %s to the controllers within %v (log.dir.failure.timeout.ms)", e.Dir, e.Timeout)
}

// soon makes the next request go at once: now, or right after the one on its way (J-68).
func (m *machine) soon(now time.Time) {
	m.urgent = true
	if m.isKnown {
		m.nextAt = now
	}
}

func (m *machine) becomeReady(now time.Time) {
	if !m.ready {
		m.ready = true
		m.soon(now)
	}
}

func (m *machine) dirFailed(id model.DirectoryID, now time.Time) {
	if !slices.ContainsFunc(m.dirs, func(d failedDir) bool { return d.id == id }) {
		m.dirs = append(m.dirs, failedDir{id: id, at: now})
		m.soon(now)
	}
}

func (m *machine) reregister(now time.Time) {
	if m.isKnown {
		m.soon(now)
		m.isKnown = false
	}
}

// beginControlledShutdown is false when there is nothing to be asked for.
func (m *machine) beginControlledShutdown(now time.Time) bool {
	if m.state == PendingControlledShutdown {
		return true
	}
	if m.state != Running {
		return false
	}
	m.state = PendingControlledShutdown
	m.pendingAt, m.heardAt = now, now
	m.soon(now)
	return true
}

func (m *machine) giveUp(err error) {
	m.gaveUp, m.released, m.state = err, true, ShuttingDown
}

// heartbeat is the request to send, without what the machine does not know. told is how many failed directories it lists.
// unreported: the controller does not know yet where all replicas are; only the first unfencing waits for that (J-62, J-64).
func (m *machine) heartbeat(unreported bool) (req *protocol.BrokerHeartbeatRequest, told int) {
	r := protocol.Make[protocol.BrokerHeartbeatRequest]()
	r.BrokerEpoch, r.WantFence, r.WantShutDown = m.epoch, !m.ready || unreported && !m.unfenced, m.state == PendingControlledShutdown
	for _, d := range m.dirs {
		r.OfflineLogDirs = append(r.OfflineLogDirs, model.UUID(d.id))
	}
	return &r, len(m.dirs)
}

func (m *machine) registered(epoch int64, now time.Time) {
	m.isKnown, m.epoch, m.nextAt = true, epoch, now
}

// failed: the same again after an interval, never at once (K-181). A controlled shutdown asks more often: it has only a
// few seconds.
func (m *machine) failed(now time.Time) {
	m.urgent = false
	wait := m.interval
	if m.state == PendingControlledShutdown {
		wait = min(wait, 500*time.Millisecond)
	}
	m.nextAt = now.Add(wait)
}

// answered takes the answer of a heartbeat that listed the first told failed directories.
func (m *machine) answered(r *protocol.BrokerHeartbeatResponse, told int, now time.Time) {
	for i := range m.dirs[:told] {
		m.dirs[i].told = true
	}
	wait := m.interval
	switch m.state {
	case Starting:
		if r.IsCaughtUp {
			m.state, m.caughtUp = Recovery, true
		}
		wait = min(wait, 10*time.Millisecond) // K-180, J-186
	case Recovery:
		if !r.IsFenced {
			m.state, m.unfenced = Running, true
		} else if m.ready {
			wait = min(wait, 50*time.Millisecond) // asked, and not there yet: it has to read a little more
		}
	case PendingControlledShutdown:
		m.heardAt = now
		switch {
		case r.ShouldShutDown:
			m.state, m.released = ShuttingDown, true
		case !m.pended:
			m.pended = true
			wait = min(wait, 50*time.Millisecond)
		default: // Kafka waits an interval; leaderships move faster than that
			wait = min(wait, 250*time.Millisecond)
		}
	}
	if m.urgent {
		wait = 0
	}
	m.nextAt = now.Add(wait)
}
