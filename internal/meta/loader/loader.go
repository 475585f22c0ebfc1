package loader

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/raft/node"
)

// Publisher acts on metadata. All calls come from the loader's goroutine, one after another.
type Publisher interface {
	// Name is what logs call it.
	Name() string
	// Publish brings the publisher from delta.From to img, which is delta.To. The first call comes
	// from the empty image. An error is logged and counted; the next delta comes all the same.
	Publish(delta *image.Delta, img *image.Image) error
}

// LeaderWatcher is a Publisher that wants to know who leads the quorum.
type LeaderWatcher interface {
	LeaderChange(node.LeaderAndEpoch)
}

// Func is a Publisher made of a function.
func Func(name string, publish func(*image.Delta, *image.Image) error) Publisher {
	return funcPublisher{name, publish}
}

type funcPublisher struct {
	name    string
	publish func(*image.Delta, *image.Image) error
}

func (f funcPublisher) Name() string                                   { return f.name }
func (f funcPublisher) Publish(d *image.Delta, img *image.Image) error { return f.publish(d, img) }

// Options say how the loader behaves.
type Options struct {
	// HighWatermark is the end of the committed log (exclusive); false while unknown.
	HighWatermark func() (int64, bool)
	// Fatal is called when the log cannot be replayed and the node must not go on without it: set on
	// controllers. Nil, as on brokers: the record is left out and counted (K-176).
	Fatal  func(error)
	Logger *slog.Logger
	Now    func() time.Time // nil means time.Now
}

// Loader follows the metadata log.
type Loader struct {
	opts  Options
	log   *slog.Logger
	image atomic.Pointer[image.Image] // published last
	stats Stats

	mu     sync.Mutex
	queue  []func() // guarded by mu
	closed bool     // guarded by mu
	wake   chan struct{}
	stop   chan struct{}
	done   sync.WaitGroup

	// Owned by the loop.
	assembler *image.Assembler
	bytes     int // of batches since the last publication
	snapshot  bool
	caughtUp  bool
	leader    node.LeaderAndEpoch
	led       bool
	all       []*subscription
	waiters   []waiter

	ready     chan struct{} // closed at the first publication
	readyOnce sync.Once
}

type subscription struct {
	p     Publisher
	first bool // has had no publication yet
}

// waiter is told when the publishers have been given everything up to an offset.
type waiter struct {
	offset int64
	done   chan struct{}
}

// Stats are counters for metrics.
type Stats struct {
	LastAppliedOffset    atomic.Int64
	LastAppliedTimestamp atomic.Int64
	LoadErrors           atomic.Int64 // metadata-load-error-count
	ApplyErrors          atomic.Int64 // metadata-apply-error-count
	SnapshotsLoaded      atomic.Int64 // HandleLoadSnapshotCount
	CurrentControllerID  atomic.Int32
	Publications         atomic.Int64
	LastPublishMicros    atomic.Int64
}

// New makes a loader. Add publishers, Start it, and register it with the node.
func New(o Options) *Loader {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Loader{
		opts: o, log: o.Logger, wake: make(chan struct{}, 1), stop: make(chan struct{}), ready: make(chan struct{}),
		assembler: image.NewAssembler(image.Empty()),
	}
	l.image.Store(image.Empty())
	l.stats.LastAppliedOffset.Store(-1)
	l.stats.CurrentControllerID.Store(int32(model.NoNode))
	return l
}

// Add appends publishers to the order in which they are called. It may be called while the loader
// runs: a new publisher first gets the whole image.
func (l *Loader) Add(ps ...Publisher) {
	l.push(func() {
		for _, p := range ps {
			l.all = append(l.all, &subscription{p: p, first: true})
			if w, ok := p.(LeaderWatcher); ok && l.led {
				l.guard(p.Name(), func() error { w.LeaderChange(l.leader); return nil })
			}
		}
		l.publishFirst()
	})
}

// Remove takes a publisher out. When it returns no call of it is running or coming. Not to be called
// from a publisher.
func (l *Loader) Remove(p Publisher) {
	removed := make(chan struct{})
	if !l.push(func() {
		for i, s := range l.all {
			if s.p == p {
				l.all = append(l.all[:i:i], l.all[i+1:]...)
				break
			}
		}
		close(removed)
	}) {
		l.done.Wait()
		return
	}
	<-removed
}

// Start runs the loop.
func (l *Loader) Start() { l.done.Go(l.run) }

// Close ends the loop after the publication under way, and waits for it.
func (l *Loader) Close() {
	l.mu.Lock()
	already := l.closed
	l.closed = true
	l.mu.Unlock()
	if !already {
		close(l.stop)
	}
	l.done.Wait()
}

// Image is the image published last, the empty one before the first.
func (l *Loader) Image() *image.Image { return l.image.Load() }

// Stats are the counters.
func (l *Loader) Stats() *Stats { return &l.stats }

// WaitReady returns when the first image has been published to all publishers there were.
func (l *Loader) WaitReady(ctx context.Context) error {
	select {
	case <-l.ready:
		return nil
	case <-l.stop:
		return node.ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WaitApplied returns when all publishers have been given the metadata up to offset.
func (l *Loader) WaitApplied(ctx context.Context, offset int64) error {
	w := waiter{offset, make(chan struct{})}
	if !l.push(func() { l.waiters = append(l.waiters, w) }) {
		return node.ErrStopped
	}
	select {
	case <-w.done:
		return nil
	case <-l.stop:
		return node.ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tell ends the waits for what has been published.
func (l *Loader) tell() {
	if len(l.waiters) == 0 || !l.caughtUp {
		return
	}
	applied := l.assembler.Offset()
	l.waiters = slices.DeleteFunc(l.waiters, func(w waiter) bool {
		if w.offset > applied {
			return false
		}
		close(w.done)
		return true
	})
}

// HandleCommit is called by the node.
func (l *Loader) HandleCommit(batches []node.Batch) {
	l.push(func() { l.commit(batches) })
}

// HandleSnapshot is called by the node; the snapshot is read on its goroutine, since the reader ends with the call.
func (l *Loader) HandleSnapshot(r *node.SnapshotReader) error {
	img, err := ReadSnapshot(r)
	if err != nil {
		l.fault(err)
		return err
	}
	l.push(func() {
		l.assembler.Replace(img)
		l.snapshot, l.bytes = true, 0
		l.stats.SnapshotsLoaded.Add(1)
	})
	return nil
}

// HandleLeaderChange is called by the node.
func (l *Loader) HandleLeaderChange(leader node.LeaderAndEpoch) {
	l.push(func() {
		l.leader, l.led = leader, true
		l.stats.CurrentControllerID.Store(int32(leader.Leader))
		for _, s := range l.all {
			if w, ok := s.p.(LeaderWatcher); ok {
				l.guard(s.p.Name(), func() error { w.LeaderChange(leader); return nil })
			}
		}
	})
}

// BeginShutdown is the last call of the node.
func (l *Loader) BeginShutdown() {}

func (l *Loader) push(event func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.queue = append(l.queue, event)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return true
}

func (l *Loader) run() {
	for {
		select {
		case <-l.wake:
		case <-l.stop:
			return
		}
		for {
			l.mu.Lock()
			events := l.queue
			l.queue = nil
			l.mu.Unlock()
			if len(events) == 0 {
				break
			}
			for _, event := range events {
				event()
			}
			l.publish() // one step for all that was handed over meanwhile
			l.tell()
			select {
			case <-l.stop:
				return
			default:
			}
		}
	}
}

func (l *Loader) commit(batches []node.Batch) {
	for _, b := range batches {
		l.bytes += b.SizeInBytes
		if err := l.assembler.Batch(b.Records, b.BaseOffset, b.LastOffset, model.LeaderEpoch(b.Epoch), b.AppendTimestamp); err != nil {
			l.fault(err)
		}
	}
}

// fault is an error in the log itself.
func (l *Loader) fault(err error) {
	l.stats.LoadErrors.Add(1)
	l.log.Error("metadata cannot be replayed", "err", err)
	if l.opts.Fatal != nil {
		l.opts.Fatal(err)
	}
}

// publish hands the newest image over if there is one and the node has caught up once (K-174).
func (l *Loader) publish() {
	if !l.caughtUp {
		hw, known := l.opts.HighWatermark()
		if end := l.assembler.Offset() + 1; !known || end < hw || end == 0 {
			return
		}
		l.caughtUp = true
		l.log.Info("metadata caught up", "offset", l.assembler.Offset())
	}
	img, delta := l.assembler.Publish()
	if delta == nil {
		l.publishFirst() // publishers added while the end was still out of reach
		return
	}
	delta.Snapshot, l.snapshot = l.snapshot, false
	begin := l.opts.Now()
	var whole *image.Delta
	for _, s := range l.all {
		d := delta
		if s.first {
			if whole == nil {
				whole = image.Diff(image.Empty(), img)
			}
			d, s.first = whole, false
		}
		l.call(s.p, d, img)
	}
	l.image.Store(img)
	p := img.Provenance()
	l.stats.LastAppliedOffset.Store(p.Offset)
	l.stats.LastAppliedTimestamp.Store(p.TimestampMs)
	l.stats.Publications.Add(1)
	l.stats.LastPublishMicros.Store(l.opts.Now().Sub(begin).Microseconds())
	l.readyOnce.Do(func() { close(l.ready) })
	l.bytes = 0
}

// publishFirst gives the whole image to publishers that have had none.
func (l *Loader) publishFirst() {
	img := l.image.Load()
	if !l.caughtUp || img.Offset() < 0 {
		return
	}
	var whole *image.Delta
	for _, s := range l.all {
		if s.first {
			if whole == nil {
				whole = image.Diff(image.Empty(), img)
			}
			s.first = false
			l.call(s.p, whole, img)
		}
	}
}

func (l *Loader) call(p Publisher, delta *image.Delta, img *image.Image) {
	if sized, ok := p.(interface{ addBytes(int) }); ok {
		sized.addBytes(l.bytes)
	}
	l.guard(p.Name(), func() error { return p.Publish(delta, img) })
}

// guard keeps a failing publisher from stopping the others (K-176).
func (l *Loader) guard(name string, f func() error) {
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		return f()
	}()
	if err != nil {
		l.stats.ApplyErrors.Add(1)
		l.log.Error("metadata publisher failed", "publisher", name, "err", err)
	}
}
