package quorum

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/controller"
	"samsa/internal/meta/image"
	"samsa/internal/raft/node"
)

// loopState belongs to the loop.
type loopState struct {
	decide    *controller.Controller
	leader    model.NodeID
	epoch     int32            // of the claimed leadership, while active
	active    bool             //
	standby   *image.Assembler // committed batches of other leaders
	committed *image.Image     // newest committed
	working   *image.Image     // newest, uncommitted decisions included; while active
	next      int64            // the offset after working; while active
	own       bool             // a batch of this leadership is committed, so standby is behind
	pending   []parked         // appended, not committed, in offset order
	tasks     tasks
}

// parked is one appended batch that waits for the high watermark, and who waits with it.
type parked struct {
	last int64
	img  *image.Image
	ops  []*operation
}

// operation is one request, or one task of the controller's own.
type operation struct {
	name   string
	ctx    context.Context
	decide func(d *controller.Draft)
	// finish is called once by the loop: nil when the records are committed, else why nothing was done.
	finish func(err error)
}

// maxParked bounds the decisions that wait for the disk. Further ones stay in the queue.
const maxParked = 20000

func (c *Controller) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var waiting []func()
	for {
		select {
		case <-c.wake:
		case <-timer.C:
		case <-c.stop:
			c.shutDown(waiting)
			return
		}
		for {
			c.mu.Lock()
			waiting, c.queue = append(waiting, c.queue...), nil
			c.mu.Unlock()
			if len(waiting) == 0 {
				break
			}
			for _, event := range waiting {
				event()
			}
			clear(waiting)
			waiting = waiting[:0]
			c.runTasks() // also while requests never pause
			select {
			case <-c.stop:
				c.shutDown(nil)
				return
			default:
			}
		}
		c.runTasks()
		timer.Reset(c.untilTask())
	}
}

// shutDown answers all that waits.
func (c *Controller) shutDown(waiting []func()) {
	c.renounce()
	c.mu.Lock()
	waiting = append(waiting, c.queue...)
	c.queue = nil
	c.mu.Unlock()
	for _, event := range waiting {
		event() // not active any more: operations answer so
	}
}

// perform decides one operation.
func (c *Controller) perform(o *operation) {
	c.stats.OperationsStarted.Add(1)
	if o.ctx.Err() != nil {
		c.stats.OperationsTimedOut.Add(1)
		if o.name == heartbeatName {
			c.stats.HeartbeatsTimedOut.Add(1)
		}
		o.finish(kerr.RequestTimedOut)
		return
	}
	if !c.active {
		o.finish(c.notController())
		return
	}
	if len(c.pending) >= maxParked {
		o.finish(kerr.RequestTimedOut.With("Too many metadata changes wait to be written; try again."))
		return
	}
	for {
		d := controller.NewDraft(c.working, c.next, c.nowMs())
		o.decide(d)
		err := c.apply(d, o)
		switch {
		case err == nil:
			return
		case errors.Is(err, node.ErrMoved):
			// The quorum itself appended: decide again on the offsets there are now.
			if c.next, err = c.opts.Log.NextOffset(c.epoch); err == nil {
				continue
			}
			c.renounce()
			o.finish(c.notController())
		case errors.Is(err, kerr.NotLeaderOrFollower), errors.Is(err, node.ErrStopped):
			c.renounce() // the news of it is on its way
			o.finish(c.notController())
		case errors.Is(err, node.ErrBatchTooLarge):
			o.finish(kerr.PolicyViolation.With("Unable to perform excessively large batch operation."))
		case errors.Is(err, node.ErrBacklog):
			o.finish(kerr.RequestTimedOut.With("%v", err))
		default:
			// Nobody knows what this would have become: let another controller try (K-128).
			c.stats.MetadataErrors.Add(1)
			c.log.Error("operation failed; resigning", "operation", o.name, "err", err)
			o.finish(kerr.UnknownServerError.With("%v", err))
			epoch := c.epoch
			c.renounce()
			c.opts.Log.Resign(epoch)
		}
		return
	}
}

// apply appends what a draft decided, takes its image as the newest, and parks the operation.
func (c *Controller) apply(d *controller.Draft, o *operation) error {
	records, atomic := d.Records()
	if len(records) == 0 {
		// It may rest on what is not committed yet (K-120).
		if n := len(c.pending); n > 0 {
			c.pending[n-1].ops = append(c.pending[n-1].ops, o)
		} else {
			o.finish(nil)
		}
		return nil
	}
	batches, frames, err := cutBatches(records, atomic)
	if err != nil {
		return err
	}
	images, err := c.images(d, batches)
	if err != nil {
		return err
	}
	last, err := c.opts.Log.AppendAt(c.epoch, c.next, frames)
	if err != nil {
		return err
	}
	offset := c.next
	for i, b := range batches {
		offset += int64(len(b))
		c.pending = append(c.pending, parked{last: offset - 1, img: images[i]})
	}
	if last != offset-1 {
		c.fail(fmt.Errorf("%s: the log gave offset %d to the record of offset %d", o.name, last, offset-1))
	}
	c.countElections(records)
	c.working, c.next = images[len(images)-1], offset
	c.pending[len(c.pending)-1].ops = append(c.pending[len(c.pending)-1].ops, o)
	c.stats.LastAppliedOffset.Store(offset - 1)
	c.tasks.appended(c.opts.Now())
	return nil
}

// images is the image after each batch. With one batch, and nearly always it is one, the draft has it.
func (c *Controller) images(d *controller.Draft, batches [][]image.Versioned) ([]*image.Image, error) {
	if len(batches) == 1 {
		img := d.Image()
		return []*image.Image{img}, d.Err()
	}
	var out []*image.Image
	img, offset := c.working, c.next
	for _, batch := range batches {
		b := image.NewBuilder(img)
		for _, v := range batch {
			if err := b.Replay(v.Record, offset); err != nil {
				return nil, err
			}
			offset++
		}
		p := img.Provenance()
		p.Offset = offset - 1
		img, _ = b.Build(p)
		out = append(out, img)
	}
	return out, nil
}

// maxBatchBytes keeps a batch below the limit of the log (K-57), framing included.
const maxBatchBytes = 7 << 20

// cutBatches frames records and cuts them into batches (K-123): an atomic decision is one batch,
// another one is cut at MaxRecordsPerBatch records or maxBatchBytes.
func cutBatches(records []image.Versioned, atomic bool) ([][]image.Versioned, [][]node.Record, error) {
	if atomic && len(records) > controller.MaxRecordsPerBatch {
		return nil, nil, fmt.Errorf("an atomic decision of %d records, more than %d", len(records), controller.MaxRecordsPerBatch)
	}
	var batches [][]image.Versioned
	var frames [][]node.Record
	start, size := 0, 0
	var current []node.Record
	for i, v := range records {
		frame, err := image.AppendFrame(nil, v)
		if err != nil {
			return nil, nil, err
		}
		if !atomic && len(current) > 0 && (len(current) == controller.MaxRecordsPerBatch || size+len(frame) > maxBatchBytes) {
			batches, frames = append(batches, records[start:i]), append(frames, current)
			start, size, current = i, 0, nil
		}
		size += len(frame) + 16
		current = append(current, frame)
	}
	return append(batches, records[start:]), append(frames, current), nil
}

// commit takes committed batches: on a standby they become the image, on the active controller they
// release what waits for them.
func (c *Controller) commit(batches []node.Batch) {
	for _, b := range batches {
		c.stats.LastCommittedOffset.Store(b.LastOffset)
		if c.active && b.Epoch == c.epoch {
			c.commitOwn(b)
			continue
		}
		if c.active && len(b.Records) > 0 {
			c.fail(fmt.Errorf("records of epoch %d at offset %d are committed after this node took over in epoch %d", b.Epoch, b.BaseOffset, c.epoch))
			return
		}
		if c.own {
			continue // a control batch: it moves nothing (K-122)
		}
		if err := c.standby.Batch(b.Records, b.BaseOffset, b.LastOffset, model.LeaderEpoch(b.Epoch), b.AppendTimestamp); err != nil {
			c.fail(fmt.Errorf("cannot replay the metadata log: %w", err))
			return
		}
		c.stats.LastAppliedOffset.Store(b.LastOffset)
		c.stats.LastAppliedTimestamp.Store(b.AppendTimestamp)
	}
	if !c.own {
		c.committed = c.standby.Stable()
	}
	c.image.Store(c.committed)
	c.notify()
}

func (c *Controller) commitOwn(b node.Batch) {
	if b.Control {
		return // it holds nothing of ours and moves nothing (K-122)
	}
	c.stats.LastAppliedTimestamp.Store(b.AppendTimestamp)
	n := 0
	for n < len(c.pending) && c.pending[n].last <= b.LastOffset {
		n++
	}
	if n == 0 {
		c.fail(fmt.Errorf("batch %d to %d of epoch %d is committed and nobody appended it", b.BaseOffset, b.LastOffset, b.Epoch))
		return
	}
	c.own = true
	c.committed = c.pending[n-1].img.At(image.Provenance{
		Offset: b.LastOffset, Epoch: model.LeaderEpoch(b.Epoch), TimestampMs: b.AppendTimestamp, BatchAligned: true,
	})
	done := slices.Clone(c.pending[:n])
	c.pending = slices.Delete(c.pending, 0, n)
	c.image.Store(c.committed)
	for _, p := range done {
		for _, o := range p.ops {
			o.finish(nil)
		}
	}
}

// loadSnapshot replaces all that was followed so far (K-129).
func (c *Controller) loadSnapshot(img *image.Image) {
	if c.active {
		c.fail(errors.New("a snapshot was loaded while this node is the active controller"))
		return
	}
	c.standby.Replace(img)
	c.own = false
	c.committed = c.standby.Stable()
	c.image.Store(c.committed)
	c.stats.LastAppliedOffset.Store(img.Offset())
	c.stats.LastAppliedTimestamp.Store(img.Provenance().TimestampMs)
	c.notify()
}

// leaderChange follows the quorum: claim, renounce, or just remember who leads (K-25, K-125).
func (c *Controller) leaderChange(l node.LeaderAndEpoch) {
	c.leader = l.Leader
	if c.active && (l.Leader != c.opts.NodeID || l.Epoch != c.epoch) {
		c.renounce()
	}
	if l.Leader == c.opts.NodeID && !c.active {
		c.claim(l.Epoch)
	}
	c.notify()
}

func (c *Controller) claim(epoch int32) {
	next, err := c.opts.Log.NextOffset(epoch)
	if err != nil {
		c.log.Info("leadership of the quorum is gone before it was claimed", "leaderEpoch", epoch, "err", err)
		return
	}
	bootstrap, source, err := c.bootstrap()
	if err != nil {
		c.fail(err)
		return
	}
	c.active, c.epoch, c.next, c.own = true, epoch, next, false
	c.working = c.standby.Stable()
	now := c.opts.Now()
	c.decide.Activate(c.working, now.UnixMilli())
	c.mu.Lock()
	clear(c.contacts)
	c.mu.Unlock()
	c.tasks.start(c, now)
	c.stats.Epoch.Store(epoch)
	c.stats.NewActive.Add(1)
	c.stats.Active.Store(true)
	open := c.standby.TransactionStart() >= 0
	c.log.Info("active controller", "leaderEpoch", epoch, "offset", next-1, "bootstrap", source, "abortsTransaction", open)
	// The first operation of the term, before any that waits (K-118).
	c.perform(&operation{
		name: "activation", ctx: context.Background(),
		decide: func(d *controller.Draft) { c.decide.ActivationRecords(d, bootstrap, open) },
		finish: func(error) {},
	})
}

// bootstrap reads what format left, if the metadata is still empty.
func (c *Controller) bootstrap() ([]image.Versioned, string, error) {
	if c.standby.Stable().Features().MetadataVersion() != 0 {
		return nil, "", nil
	}
	frames, source, err := c.opts.Log.Bootstrap()
	if err != nil {
		return nil, "", fmt.Errorf("bootstrap records: %w", err)
	}
	var out []image.Versioned
	for _, f := range frames {
		v, err := image.ReadFrame(f)
		if err != nil {
			return nil, "", fmt.Errorf("bootstrap records of %s: %w", source, err)
		}
		out = append(out, v)
	}
	if source == "" {
		source = "none: only metadata.version is set"
	}
	return out, source, nil
}

// renounce goes back to what is committed and fails all that waits (K-121).
func (c *Controller) renounce() {
	if !c.active {
		return
	}
	c.active = false
	c.stats.Active.Store(false)
	if c.own {
		c.standby = image.NewAssembler(c.committed)
	}
	c.own = false
	dropped := c.pending
	c.pending, c.working = nil, nil
	c.log.Info("no longer the active controller", "leaderEpoch", c.epoch, "offset", c.committed.Offset(), "uncommitted", len(dropped))
	c.stats.LastAppliedOffset.Store(c.committed.Offset())
	err := c.notController()
	for _, p := range dropped {
		for _, o := range p.ops {
			o.finish(err)
		}
	}
	c.notify()
}

// notController says who the caller should ask (K-199).
func (c *Controller) notController() error {
	if c.leader == model.NoNode || c.leader == c.opts.NodeID {
		return kerr.NotController.With("No controller appears to be active.")
	}
	return kerr.NotController.With("The active controller appears to be node %d.", c.leader)
}

// never is the time to the next task when there is none.
const never = time.Duration(math.MaxInt64)
