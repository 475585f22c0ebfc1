package node

import (
	"errors"
	"fmt"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
)

const cleanEvery = time.Minute // K-69

func (n *Node) wakeUp() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// push hands f to the loop; it runs under mu with the core to itself.
func (n *Node) push(f func(now time.Time)) {
	n.mu.Lock()
	n.inbox = append(n.inbox, f)
	n.mu.Unlock()
	n.wakeUp()
}

// loop owns the core's effects and with them everything that changes on disk. One turn: take what has come in, step the core, carry out its effects
// in order, tell the core what became durable, until nothing is left; then sleep until the next deadline. A single voter
// that leads has no deadline: it wakes up for appends, and once a minute to look after old snapshots.
func (n *Node) loop() {
	defer close(n.stopped)
	defer n.failWaiting()
	clean := time.NewTimer(cleanEvery)
	defer clean.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		deadline := n.turn()
		if n.failed() {
			return
		}
		if deadline.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(deadline.Sub(n.opts.Now()), 0))
		}
		select {
		case <-n.wake:
		case <-timer.C:
		case <-clean.C:
			if err := n.clean(); err != nil {
				n.fail(fmt.Errorf("cleaning old snapshots: %w", err))
				return
			}
			clean.Reset(cleanEvery)
		case <-n.quit:
			return
		}
	}
}

// turn runs until the core is at rest and returns its next deadline.
func (n *Node) turn() time.Time {
	n.mu.Lock()
	inbox := n.inbox
	n.inbox = nil
	n.mu.Unlock()
	effects := n.step(func(now time.Time) {
		for _, f := range inbox {
			f(now)
		}
		n.core.Tick(now)
	})
	for len(effects) > 0 && !n.failed() {
		effects = n.carryOut(effects)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopping {
		n.dispatch.notify() // Stop looks whether the hand-over is complete
	}
	return n.core.Deadline()
}

// step lets f drive the core, after the appends that were given offsets before: whatever the quorum itself appends comes behind them.
// Appends of a leadership that is gone are dropped: their callers hear of the change of leader.
func (n *Node) step(f func(now time.Time)) []kraft.Effect {
	effects, err := n.stepCore(f)
	if err != nil {
		n.fail(err)
		return nil
	}
	return effects
}

func (n *Node) stepCore(f func(now time.Time)) ([]kraft.Effect, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.opts.Now()
	for _, p := range n.appends {
		err := n.core.Append(now, p.epoch, p.batches)
		if errors.Is(err, kraft.ErrNotLeader) {
			continue
		}
		if err != nil {
			return nil, err
		}
		n.dispatch.appended(p)
	}
	n.appends, n.backlog = nil, 0
	f(now)
	n.nextOffset = n.core.LogEnd()
	return n.core.Effects(), nil
}

// carryOut does a list of effects; what follows from a sync or an installed snapshot comes back as the next list.
func (n *Node) carryOut(effects []kraft.Effect) (more []kraft.Effect) {
	for _, e := range effects {
		var err error
		switch e := e.(type) {
		case kraft.SaveState:
			err = writeQuorumState(n.store.fs, join(n.store.dir, quorumStateFile), e.State)
			n.count(func(s *Stats) { s.StateWrites++ })
		case kraft.AppendLog:
			err = n.appendLog(e.Batches)
		case kraft.TruncateLog:
			err = n.store.truncate(e.End)
		case kraft.SyncLog:
			if err = n.store.log.Flush(n.nowMs()); err == nil {
				n.count(func(s *Stats) { s.Syncs++ })
				more = append(more, n.step(func(now time.Time) { n.core.Synced(now, e.End) })...)
			}
		case kraft.Send:
			n.send(e)
		case kraft.Reply:
			n.answer(e)
		case kraft.WriteSnapshot:
			err = n.store.writePiece(e.ID, e.Position, e.Bytes)
		case kraft.InstallSnapshot:
			var fx []kraft.Effect
			fx, err = n.install(e.ID)
			more = append(more, fx...)
		case kraft.DropSnapshot:
			n.store.dropPart()
		case kraft.HighWatermark:
			n.store.log.SetHighWatermark(e.Offset)
			n.mu.Lock()
			n.hw = e.Offset
			n.mu.Unlock()
			n.dispatch.notify()
		case kraft.LeaderChange:
			n.mu.Lock()
			n.leader = e
			n.mu.Unlock()
			n.dispatch.leaderChanged()
			n.dispatch.notify()
		case kraft.Note:
			if e.Warn {
				n.log.Warn(e.Text, e.Args...)
			} else {
				n.log.Info(e.Text, e.Args...)
			}
			n.dispatch.notify()
		case kraft.Fatal:
			err = e.Err
		}
		if err != nil {
			n.fail(err)
			return nil
		}
	}
	return more
}

func (n *Node) appendLog(batches []kraft.Batch) error {
	n.mu.Lock()
	leader, epoch := n.core.Role() == kraft.Leader, n.core.Epoch()
	n.mu.Unlock()
	own := leader && batches[0].Epoch == epoch
	if err := n.store.append(batches, epoch, own); err != nil {
		return fmt.Errorf("append to the metadata log: %w", err)
	}
	if !own {
		n.count(func(s *Stats) { s.Fetched += batches[len(batches)-1].Last + 1 - batches[0].Base })
	}
	return nil
}

func (n *Node) install(id kraft.SnapshotID) ([]kraft.Effect, error) {
	info, version, voters, err := n.store.install(id)
	var bad *SnapshotError
	switch {
	case errors.As(err, &bad):
		n.store.dropPart()
		return n.step(func(now time.Time) { n.core.InstallFailed(now, err) }), nil
	case err != nil:
		return nil, fmt.Errorf("install snapshot %s: %w", id, err)
	}
	return n.step(func(now time.Time) { n.core.Installed(now, info, version, voters) }), nil
}

// send gives a request to the transport; the answer comes back through the inbox. Without a transport nobody answers.
func (n *Node) send(e kraft.Send) {
	if n.opts.Transport == nil {
		n.push(func(now time.Time) { n.core.Response(now, e.To.ID, e.Correlation, nil) })
		return
	}
	n.opts.Transport.Send(e.To, kraft.EncodeRequest(n.opts.ClusterID, e.Message), func(r protocol.Response, err error) {
		var m any
		switch {
		case err == nil:
			m = kraft.DecodeResponse(r, n.listener())
		case errors.Is(err, kerr.UnsupportedVersion):
			m = kraft.Unsupported(e.Message)
		}
		n.push(func(now time.Time) { n.core.Response(now, e.To.ID, e.Correlation, m) })
	})
}

func (n *Node) count(f func(*Stats)) {
	n.mu.Lock()
	f(&n.stats)
	n.mu.Unlock()
}

// fail ends the node: nothing is written any more, everybody who waits is told, the process is asked to end (K-34).
func (n *Node) fail(err error) {
	n.mu.Lock()
	first := n.failure == nil
	if first {
		n.failure = err
	}
	n.mu.Unlock()
	if !first {
		return
	}
	n.log.Error("raft: the metadata log cannot go on", "dir", n.store.dir, "err", err)
	n.dispatch.notify()
	if n.opts.Fatal != nil {
		n.opts.Fatal(fmt.Errorf("metadata log %s: %w", n.store.dir, err))
	}
}

func (n *Node) failed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failure != nil
}

func (n *Node) failWaiting() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for token, c := range n.waiting {
		delete(n.waiting, token)
		close(c)
	}
}
