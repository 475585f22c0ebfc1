// Package lifecycle is a broker's life as the controller sees it: registration, heartbeats, fencing, failed
// directories and controlled shutdown (KIP-631, KIP-858).
//
// Kind: driver. One goroutine, the loop, owns the machine of machine.go, which decides what is sent next and when; the loop
// sleeps until then or until told something, sends, and hands the answer back. At most one request is on its way.
//
//	NOT_RUNNING -> STARTING            Start: the registration is sent
//	STARTING -> RECOVERY               the controller says that this broker has read its own registration
//	RECOVERY -> RUNNING                Ready was called and the controller has lifted the fence
//	RUNNING -> PENDING_CONTROLLED_SHUTDOWN -> SHUTTING_DOWN    ControlledShutdown
//	any -> SHUTTING_DOWN               Close
//
// # Controlled shutdown ends
//
// A broker that waits for leave to go may ask for ever: in a cluster of combined nodes that are stopped together nobody is left to
// say yes, and Kafka then waits for five minutes. Here the wait is over when no controller has answered for noControllerGrace,
// which is longer than an election takes: whoever comes after that learns from the session that this broker is gone.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// State is the BrokerState of K-178.
type State int32

const (
	NotRunning                State = 0
	Starting                  State = 1
	Recovery                  State = 2
	Running                   State = 3
	PendingControlledShutdown State = 6
	ShuttingDown              State = 7
)

func (s State) String() string {
	switch s {
	case NotRunning:
		return "NOT_RUNNING"
	case Starting:
		return "STARTING"
	case Recovery:
		return "RECOVERY"
	case Running:
		return "RUNNING"
	case PendingControlledShutdown:
		return "PENDING_CONTROLLED_SHUTDOWN"
	case ShuttingDown:
		return "SHUTTING_DOWN"
	}
	return fmt.Sprintf("state %d", int32(s))
}

// Channel sends a request to the active controller, wherever it is (wire/peer.Controller).
type Channel interface {
	Send(ctx context.Context, req protocol.Request) (protocol.Response, error)
}

// Listener is one advertised listener.
type Listener struct {
	Name             string
	Host             string
	Port             uint16
	SecurityProtocol int16
}

// Feature is a range of levels this broker supports.
type Feature struct {
	Name     string
	Min, Max int16
}

// Options is what a Lifecycle needs. Functions may be called at any time from the loop and must not block.
type Options struct {
	NodeID    model.NodeID
	ClusterID string
	// Incarnation is this process's incarnation id; zero draws one.
	Incarnation model.UUID
	Listeners   []Listener
	Features    []Feature
	Rack        *string
	// PreviousEpoch is the broker epoch of the last clean stop, -1 otherwise (J-43).
	PreviousEpoch int64

	// OnlineDirs are the directories that are online now (J-49, J-50).
	OnlineDirs func() []model.DirectoryID
	// CordonedDirs are the directories that take no new replicas; ok is false while the metadata version does not know
	// them (J-174). nil: never sent.
	CordonedDirs func() (dirs []model.DirectoryID, ok bool)
	// MetadataOffset is the last offset in the published image; -1 before any (K-180).
	MetadataOffset func() int64
	// Unreported is how many replicas are in a directory the controller has not yet acknowledged (dirassign.Assigner.Pending):
	// until it is 0 the first unfencing waits, so that no disk fails unnoticed (J-62). nil, as with one directory: no wait.
	Unreported func() int
	// Channel is for heartbeats and registration alone.
	Channel Channel

	Interval          time.Duration // broker.heartbeat.interval.ms; 2 s
	RegisterTimeout   time.Duration // initial.broker.registration.timeout.ms; 60 s
	DirFailureTimeout time.Duration // log.dir.failure.timeout.ms; 30 s
	Log               *slog.Logger
}

// noControllerGrace is how long a controlled shutdown goes on without any answer; see the package doc.
const noControllerGrace = 5 * time.Second

// maxControlledShutdown bounds the whole of it, as in Kafka (K-183).
const maxControlledShutdown = 5 * time.Minute

// Lifecycle is one process's life as a broker; a new incarnation id each.
type Lifecycle struct {
	o           Options
	incarnation model.UUID
	ctx         context.Context
	cancel      context.CancelCauseFunc
	ended       chan struct{} // closed when the loop has returned
	wake        chan struct{} // one slot
	fatal       chan error    // one slot

	mu sync.Mutex
	m  machine // guarded by mu

	epoch atomic.Int64
	state atomic.Int32
	// closed once each
	caughtUp, unfenced, released chan struct{}
	closeCaught, closeUnfenced   sync.Once
	closeReleased                sync.Once
}

// Start begins to register. It returns at once.
func Start(o Options) *Lifecycle {
	def := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	def(&o.Interval, 2*time.Second)
	def(&o.RegisterTimeout, time.Minute)
	def(&o.DirFailureTimeout, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Incarnation.IsZero() {
		o.Incarnation = model.RandomUUID()
	}
	l := &Lifecycle{o: o, incarnation: o.Incarnation, ended: make(chan struct{}), wake: make(chan struct{}, 1), fatal: make(chan error, 1),
		caughtUp: make(chan struct{}), unfenced: make(chan struct{}), released: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.m = newMachine(time.Now(), o.Interval, o.RegisterTimeout, o.DirFailureTimeout)
	l.epoch.Store(-1)
	l.state.Store(int32(Starting))
	o.Log.Info("broker is STARTING", "incarnation", l.incarnation, "clusterID", o.ClusterID)
	go l.run()
	return l
}

// Incarnation is this process's incarnation id.
func (l *Lifecycle) Incarnation() model.UUID { return l.incarnation }

// Epoch is the broker epoch given at registration, -1 before.
func (l *Lifecycle) Epoch() int64 { return l.epoch.Load() }

// State is the state of K-178.
func (l *Lifecycle) State() State { return State(l.state.Load()) }

// Fatal delivers the reason why this broker has to stop: registration not accepted in time, or a failed
// directory that no controller heard of within log.dir.failure.timeout.ms. The loop goes on until Close, which closes the channel.
func (l *Lifecycle) Fatal() <-chan error { return l.fatal }

// WaitCaughtUp returns when the controller says that this broker has replayed its own registration. It fails when
// ctx ends or Close was called.
func (l *Lifecycle) WaitCaughtUp(ctx context.Context) error { return l.await(ctx, l.caughtUp) }

// WaitUnfenced returns when the controller has unfenced this broker.
func (l *Lifecycle) WaitUnfenced(ctx context.Context) error { return l.await(ctx, l.unfenced) }

func (l *Lifecycle) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ctx.Done():
		return errClosed
	}
}

var errClosed = errors.New("the broker's lifecycle has ended")

// tell changes the machine and wakes the loop.
func (l *Lifecycle) tell(f func(m *machine, now time.Time)) {
	l.mu.Lock()
	f(&l.m, time.Now())
	l.state.Store(int32(l.m.state))
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Ready says that the first image is applied, the logs are up and the controller knows where they are (J-62): from now on
// heartbeats ask to be unfenced. The next one goes at once.
func (l *Lifecycle) Ready() { l.tell(func(m *machine, now time.Time) { m.becomeReady(now) }) }

// DirFailed reports a failed directory in every heartbeat from now on; the next one goes at once (J-68, J-69).
func (l *Lifecycle) DirFailed(id model.DirectoryID) {
	l.tell(func(m *machine, now time.Time) { m.dirFailed(id, now) })
}

// CordonChanged sends a heartbeat at once: CordonedDirs has something new to say.
func (l *Lifecycle) CordonChanged() { l.tell(func(m *machine, now time.Time) { m.soon(now) }) }

// Reregister sends the registration again with the same incarnation (K-117, J-51).
func (l *Lifecycle) Reregister() {
	l.tell(func(m *machine, now time.Time) { m.reregister(now) })
}

// ControlledShutdown asks the controller to move leaderships away and returns when it agrees (nil), when ctx ends, or
// when there is nobody to ask (see the package doc). The broker keeps serving until then. A broker that is not RUNNING
// has nothing to move: nil at once (K-183).
func (l *Lifecycle) ControlledShutdown(ctx context.Context) error {
	begun := false
	l.tell(func(m *machine, now time.Time) { begun = m.beginControlledShutdown(now) })
	if !begun {
		return nil
	}
	l.o.Log.Info("broker is PENDING_CONTROLLED_SHUTDOWN")
	err := l.await(ctx, l.released)
	l.mu.Lock()
	if err == nil {
		err = l.m.gaveUp
	}
	l.mu.Unlock()
	return err
}

// Close ends the loop and waits for it. A request on its way is given up.
func (l *Lifecycle) Close() {
	l.cancel(errClosed)
	<-l.ended
}

// run is the loop.
func (l *Lifecycle) run() {
	defer close(l.ended)
	defer close(l.fatal)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.ctx.Done():
			l.mu.Lock()
			l.m.state = ShuttingDown
			l.mu.Unlock()
			l.state.Store(int32(ShuttingDown))
			l.o.Log.Info("broker is SHUTTING_DOWN")
			return
		}
		l.mu.Lock()
		do := l.m.next(time.Now())
		l.mu.Unlock()
		if do.fatal != nil {
			l.fail(do.fatal)
		}
		switch do.send {
		case sendRegistration:
			l.register()
		case sendHeartbeat:
			l.heartbeat()
		}
		l.mu.Lock()
		l.note()
		wait := l.m.wait(time.Now())
		l.mu.Unlock()
		timer.Reset(wait)
	}
}

// fail reports the first fatal error.
func (l *Lifecycle) fail(err error) {
	l.o.Log.Error("broker cannot go on", "err", err)
	select {
	case l.fatal <- err:
	default:
	}
}

// note publishes what the machine has become. mu is held.
func (l *Lifecycle) note() {
	if old := State(l.state.Swap(int32(l.m.state))); old != l.m.state {
		l.o.Log.Info("broker changes state", "from", old, "to", l.m.state)
	}
	if l.m.caughtUp {
		l.closeCaught.Do(func() { close(l.caughtUp) })
	}
	if l.m.unfenced {
		l.closeUnfenced.Do(func() { close(l.unfenced) })
	}
	if l.m.released {
		l.closeReleased.Do(func() { close(l.released) })
	}
}

// register sends the registration. Whatever goes wrong, it is sent again after an interval (J-53, K-181).
func (l *Lifecycle) register() {
	ctx, cancel := context.WithTimeout(l.ctx, l.o.Interval)
	defer cancel()
	resp, err := l.o.Channel.Send(ctx, &registration{l.registrationRequest()})
	var answer *protocol.BrokerRegistrationResponse
	if err == nil {
		if r, ok := resp.(*protocol.BrokerRegistrationResponse); !ok {
			err = fmt.Errorf("answered with %T", resp)
		} else if answer = r; kerr.ForCode(r.ErrorCode) != nil {
			err = kerr.ForCode(r.ErrorCode)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if l.ctx.Err() == nil {
			l.o.Log.Warn("cannot register with the controller", "err", err)
		}
		l.m.failed(time.Now())
		return
	}
	l.epoch.Store(answer.BrokerEpoch)
	l.m.registered(answer.BrokerEpoch, time.Now())
	l.o.Log.Info("registered with the controller", "brokerEpoch", answer.BrokerEpoch)
}

// heartbeat sends a heartbeat.
func (l *Lifecycle) heartbeat() {
	unreported := 0
	if l.o.Unreported != nil {
		unreported = l.o.Unreported()
	}
	l.mu.Lock()
	req, told := l.m.heartbeat(unreported > 0)
	caughtUp := l.m.caughtUp
	l.mu.Unlock()
	req.BrokerId = int32(l.o.NodeID)
	req.CurrentMetadataOffset = l.o.MetadataOffset()
	if caughtUp && l.o.CordonedDirs != nil {
		if dirs, ok := l.o.CordonedDirs(); ok {
			req.CordonedLogDirs = sortedDirs(dirs)
		}
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.o.Interval)
	defer cancel()
	resp, err := l.o.Channel.Send(ctx, req)
	var answer *protocol.BrokerHeartbeatResponse
	if err == nil {
		if r, ok := resp.(*protocol.BrokerHeartbeatResponse); !ok {
			err = fmt.Errorf("answered with %T", resp)
		} else if answer = r; kerr.ForCode(r.ErrorCode) != nil {
			err = kerr.ForCode(r.ErrorCode)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if l.ctx.Err() == nil {
			l.o.Log.Warn("heartbeat failed", "brokerEpoch", req.BrokerEpoch, "err", err)
		}
		l.m.failed(time.Now())
		return
	}
	l.m.answered(answer, told, time.Now())
}
