// Package dirassign tells the controller which directory holds which replica (KIP-858, AssignReplicasToDirs).
//
// Kind: driver. One goroutine sends, and sleeps while nothing is queued; the queue (at most one report per partition, the
// newest wins, batching, back-off) is in queue.go, without clock or goroutine.
package dirassign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// Channel sends a request to the active controller, wherever it is (wire/peer.Controller).
type Channel interface {
	Send(ctx context.Context, req protocol.Request) (protocol.Response, error)
}

// Options is what an Assigner needs. Functions must not block.
type Options struct {
	NodeID  model.NodeID
	Channel Channel // for these reports alone
	// Epoch is the broker epoch in the current metadata (J-94), -1 before any.
	Epoch func() int64
	// Wanted tells whether a report still makes sense: the partition exists and lists this broker (J-92);
	// manager.Manager.Holds. nil: all do.
	Wanted func(model.TopicIDPartition) bool
	// NotFound is told of a report refused because the controller does not know the directory (J-92): look again at where
	// the replica is. nil: nobody is told.
	NotFound func(model.TopicIDPartition)
	// Stuck is told once, when a report about a failed directory was not acknowledged within DirFailureTimeout: the broker
	// has to stop (J-72). nil: nobody is told.
	Stuck             func(error)
	DirFailureTimeout time.Duration // log.dir.failure.timeout.ms; 30 s
	RequestTimeout    time.Duration // 60 s
	Log               *slog.Logger
}

// ErrSuperseded is what the owner of a report is told when a newer one for the same partition took its place.
var ErrSuperseded = errors.New("a newer report for the same partition took its place")

// ErrUnwanted is what the owner of a report is told when the partition, or this broker's replica, is gone.
var ErrUnwanted = errors.New("the replica is not this broker's any more")

// Assigner queues reports and sends them.
type Assigner struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}
	wake   chan struct{} // one slot

	mu    sync.Mutex
	q     queue           // guarded by mu
	idle  []chan struct{} // guarded by mu
	stuck bool            // guarded by mu
	// timers of failed directories; guarded by mu. As many as there are directories, at most.
	timers []*time.Timer
}

// New makes an assigner and its goroutine.
func New(o Options) *Assigner {
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = time.Minute
	}
	if o.DirFailureTimeout <= 0 {
		o.DirFailureTimeout = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Wanted == nil {
		o.Wanted = func(model.TopicIDPartition) bool { return true }
	}
	a := &Assigner{o: o, ended: make(chan struct{}), wake: make(chan struct{}, 1), q: newQueue()}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	go a.run()
	return a
}

// Report queues "the replica of tp on this broker is in dir". urgent skips the batching wait (J-90). done, if not
// nil, runs exactly once, on any goroutine: with nil when the controller acknowledged this very report, else with why
// not (J-93).
func (a *Assigner) Report(tp model.TopicIDPartition, dir model.DirectoryID, urgent bool, done func(error)) {
	a.mu.Lock()
	var old *report
	refused := a.ctx.Err() != nil
	if !refused {
		old = a.q.add(&report{tp: tp, dir: dir, urgent: urgent, done: done, at: time.Now()}, time.Now())
	}
	a.mu.Unlock()
	if refused && done != nil {
		done(context.Canceled)
	}
	old.end(ErrSuperseded)
	a.nudge()
}

// DirFailed moves the reports that name a failed directory to the front, and begins to count for Stuck (J-72, J-90).
func (a *Assigner) DirFailed(dir model.DirectoryID) {
	a.mu.Lock()
	if a.q.dirFailed(dir, time.Now().Add(a.o.DirFailureTimeout)) {
		// Not the sender's own timer: it may be waiting for an answer.
		a.timers = append(a.timers, time.AfterFunc(a.o.DirFailureTimeout, a.checkStuck))
	}
	a.mu.Unlock()
	a.nudge()
}

// Pending is how many reports are queued or unacknowledged (J-66).
func (a *Assigner) Pending() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.q.len()
}

// WaitIdle returns when nothing is queued or unacknowledged: a broker with several directories asks to be unfenced only
// then, the first time (J-62).
func (a *Assigner) WaitIdle(ctx context.Context) error {
	a.mu.Lock()
	if a.q.len() == 0 {
		a.mu.Unlock()
		return nil
	}
	c := make(chan struct{})
	a.idle = append(a.idle, c)
	a.mu.Unlock()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.ctx.Done():
		return context.Canceled
	}
}

// Close ends the sender and waits for it; queued reports are dropped with context.Canceled (J-96).
func (a *Assigner) Close() {
	a.cancel()
	<-a.ended
	a.mu.Lock()
	left := a.q.drain()
	for _, t := range a.timers {
		t.Stop()
	}
	a.mu.Unlock()
	for _, r := range left {
		r.end(context.Canceled)
	}
}

func (a *Assigner) nudge() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run is the sender.
func (a *Assigner) run() {
	defer close(a.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-a.wake:
		case <-a.ctx.Done():
			return
		}
		a.prune()
		a.mu.Lock()
		batch := a.q.take(time.Now())
		a.mu.Unlock()
		if batch != nil {
			a.send(batch)
		}
		a.mu.Lock()
		if a.q.len() == 0 {
			for _, c := range a.idle {
				close(c)
			}
			a.idle = nil
		}
		wait := a.q.wait(time.Now())
		a.mu.Unlock()
		timer.Reset(wait)
	}
}

// prune drops reports that make no sense any more (J-92).
func (a *Assigner) prune() {
	a.mu.Lock()
	gone := a.q.prune(a.o.Wanted)
	a.mu.Unlock()
	for _, r := range gone {
		r.end(ErrUnwanted)
	}
}

// checkStuck looks for reports about failed directories that are late.
func (a *Assigner) checkStuck() {
	a.mu.Lock()
	late := a.q.late(time.Now())
	if late == nil || a.stuck || a.ctx.Err() != nil {
		a.mu.Unlock()
		return
	}
	a.stuck = true
	a.mu.Unlock()
	a.o.Log.Error("a report about a failed log directory was not acknowledged in time", "topicID", late.tp.Topic, "partition", late.tp.Partition, "dir", late.dir)
	if a.o.Stuck != nil {
		a.o.Stuck(fmt.Errorf("no controller acknowledged within %v where the replica %v, last in the failed log dir %s, is (log.dir.failure.timeout.ms)", a.o.DirFailureTimeout, late.tp, late.dir))
	}
}

// send sends one request and deals with its answer.
func (a *Assigner) send(batch []*report) {
	ctx, cancel := context.WithTimeout(a.ctx, a.o.RequestTimeout)
	defer cancel()
	epoch := a.o.Epoch()
	resp, err := a.o.Channel.Send(ctx, request(a.o.NodeID, epoch, batch))
	answer, ok := resp.(*protocol.AssignReplicasToDirsResponse)
	switch {
	case err != nil:
	case !ok:
		err = fmt.Errorf("answered with %T", resp)
	case answer.ErrorCode != 0:
		err = kerr.ForCode(answer.ErrorCode)
		if err == (*kerr.Error)(nil) {
			err = fmt.Errorf("error code %d", answer.ErrorCode)
		}
	}
	now := time.Now()
	if err != nil { // J-91
		if a.ctx.Err() == nil {
			a.o.Log.Warn("cannot report directories of replicas", "reports", len(batch), "brokerEpoch", epoch, "err", err)
		}
		a.mu.Lock()
		old := a.q.failed(now, 0.98+0.04*rand.Float64())
		a.mu.Unlock()
		for _, r := range old {
			r.end(ErrSuperseded)
		}
		return
	}
	a.mu.Lock()
	out := a.q.answered(codes(answer), now)
	a.mu.Unlock()
	for _, r := range out.acknowledged {
		r.end(nil)
	}
	for _, r := range out.superseded {
		r.end(ErrSuperseded)
	}
	for _, r := range out.notFound {
		a.o.Log.Warn("the controller does not know the directory of a replica", "topicID", r.tp.Topic, "partition", r.tp.Partition, "dir", r.dir)
		r.end(kerr.LogDirNotFound)
		if a.o.NotFound != nil {
			a.o.NotFound(r.tp)
		}
	}
	for _, f := range out.refused {
		if now.Sub(f.report.at) > logAfter {
			a.o.Log.Warn("the controller refuses a report again and again", "topicID", f.report.tp.Topic, "partition", f.report.tp.Partition,
				"dir", f.report.dir, "err", kerr.ForCode(f.code))
		}
	}
}

// logAfter is how long a single report may be refused before it is worth a line.
const logAfter = 2 * time.Minute

// request groups reports by directory and topic.
func request(node model.NodeID, epoch int64, batch []*report) *protocol.AssignReplicasToDirsRequest {
	req := protocol.Make[protocol.AssignReplicasToDirsRequest]()
	req.BrokerId, req.BrokerEpoch = int32(node), epoch
	dirs := map[model.DirectoryID]int{}
	type place struct {
		dir   model.DirectoryID
		topic model.TopicID
	}
	topics := map[place]int{}
	for _, r := range batch {
		d, ok := dirs[r.dir]
		if !ok {
			d = len(req.Directories)
			dirs[r.dir] = d
			req.Directories = append(req.Directories, protocol.AssignReplicasToDirsRequestDirectoryData{Id: model.UUID(r.dir)})
		}
		dir := &req.Directories[d]
		at := place{r.dir, r.tp.Topic}
		t, ok := topics[at]
		if !ok {
			t = len(dir.Topics)
			topics[at] = t
			dir.Topics = append(dir.Topics, protocol.AssignReplicasToDirsRequestTopicData{TopicId: model.UUID(r.tp.Topic)})
		}
		dir.Topics[t].Partitions = append(dir.Topics[t].Partitions, protocol.AssignReplicasToDirsRequestPartitionData{PartitionIndex: r.tp.Partition})
	}
	return &req
}

// answerKey names one report in an answer.
type answerKey struct {
	tp  model.TopicIDPartition
	dir model.DirectoryID
}

// codes are the error codes of an answer.
func codes(resp *protocol.AssignReplicasToDirsResponse) map[answerKey]int16 {
	out := map[answerKey]int16{}
	for _, d := range resp.Directories {
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				out[answerKey{model.TopicIDPartition{Topic: model.TopicID(t.TopicId), Partition: p.PartitionIndex}, model.DirectoryID(d.Id)}] = p.ErrorCode
			}
		}
	}
	return out
}
