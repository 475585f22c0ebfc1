package manager

import (
	"errors"
	"sync"
	"sync/atomic"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/replica/partition"
	"samsa/internal/storage/logdir"
	"samsa/internal/storage/partlog"
)

// replica is one partition this broker holds, or would hold if its directory were online.
type replica struct {
	tp    model.TopicIDPartition
	topic string

	// role is held shared by whoever appends or reads for a follower, across the I/O, and exclusively by whoever
	// changes the role: no append of an old leadership lands after the new one began.
	role sync.RWMutex
	// view is what requests look at without a lock; stored with mu held.
	view atomic.Pointer[view]

	mu      sync.Mutex
	core    *partition.Core   // guarded by mu; nil while offline from the beginning
	dir     *logdir.Directory // guarded by mu; set with core
	waiting []hwWaiter        // guarded by mu: in order of offset
	// telling: some goroutine is handing high watermarks to listeners and will take what comes meanwhile along.
	telling  bool                // guarded by mu
	toldHigh int64               // guarded by mu: what watchers were told last
	watchers []PartitionListener // guarded by mu; replaced, never changed
	told     model.LeaderEpoch   // guarded by Manager.publishing: the leadership leader listeners know of; -1 none
}

// view is a replica at one moment. Immutable.
type view struct {
	err      error // not nil: what every request gets (offline, deleted)
	log      *partlog.Log
	leader   bool
	leaderID model.NodeID
	epoch    model.LeaderEpoch
	epochAt  int64 // leader: log end when the epoch began
	others   bool  // leader: there are other replicas
	settings *settings
}

func newReplica(tp model.TopicIDPartition, topic string) *replica {
	r := &replica{tp: tp, topic: topic, told: model.NoEpoch, toldHigh: -1}
	r.view.Store(&view{err: errOffline, leaderID: model.NoNode, epoch: model.NoEpoch})
	return r
}

// isInternal: clients do not write to these (D-12).
func isInternal(topic string) bool {
	return topic == "__consumer_offsets" || topic == "__transaction_state" || topic == "__share_group_state"
}

// errOffline is what requests for a replica in a failed directory get (J-124).
var errOffline, errNotLeader error = kerr.KafkaStorageError, kerr.NotLeaderOrFollower

// storageError turns what the storage layer said into what a request gets: a failed directory is KAFKA_STORAGE_ERROR.
func storageError(err error) error {
	var k *kerr.Error
	if errors.As(err, &k) {
		return err
	}
	var d *vfs.DirError
	if errors.As(err, &d) {
		return kerr.KafkaStorageError
	}
	return err
}

// setView replaces fields of the view. mu is held.
func (r *replica) setView(f func(v *view)) {
	v := *r.view.Load()
	f(&v)
	r.view.Store(&v)
}

// close makes every later request get err and returns those who waited for the high watermark.
func (r *replica) close(err error) (waiting []hwWaiter, watchers []PartitionListener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setView(func(v *view) { v.err, v.leader = err, false })
	waiting, r.waiting = r.waiting, nil
	watchers, r.watchers = r.watchers, nil
	return waiting, watchers
}

// hwWaiter waits for the high watermark to reach an offset.
type hwWaiter struct {
	offset int64
	done   func(error)
}

// highMoved hands the core's high watermark to the log. mu is held. tell: somebody waits for it, and the caller must call
// tell when it holds no lock.
func (r *replica) highMoved() (tell bool) {
	r.view.Load().log.SetHighWatermark(r.core.HighWatermark())
	return len(r.waiting) > 0 || len(r.watchers) > 0
}

// tell hands the high watermark to those who wait for it, in rising order: while one goroutine tells, others leave theirs to
// it. No lock is held.
func (r *replica) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.telling || r.core == nil {
		return
	}
	r.telling = true
	for r.view.Load().err == nil {
		high := r.core.HighWatermark()
		n := 0
		for n < len(r.waiting) && r.waiting[n].offset <= high {
			n++
		}
		if n == 0 && high <= r.toldHigh {
			break
		}
		ready := r.waiting[:n:n]
		r.waiting = r.waiting[n:]
		if len(r.waiting) == 0 {
			r.waiting = nil
		}
		watchers := r.watchers
		if high <= r.toldHigh {
			watchers = nil
		}
		r.toldHigh = max(r.toldHigh, high)
		r.mu.Unlock()
		for _, w := range ready {
			w.done(nil)
		}
		for _, w := range watchers {
			w.HighWatermark(r.tp, high)
		}
		r.mu.Lock()
	}
	r.telling = false
}
