package quorum

import (
	"context"
	"errors"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/controller"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// tasks are the controller's own operations (K-126). Each has a time at which it is due; a zero time
// is never. Nothing ticks: the loop sleeps until the first of them.
type tasks struct {
	noOp    time.Time // after the metadata was idle for metadata.max.idle.interval.ms
	fence   time.Time // when the first session may have ended
	balance time.Time
	unclean time.Time

	idle, balanceEvery, uncleanEvery time.Duration
}

// start sets the clock of a new term.
func (t *tasks) start(c *Controller, now time.Time) {
	cfg := c.opts.Config
	*t = tasks{idle: cfg.Quorum.MaxIdleInterval, uncleanEvery: cfg.Quorum.UncleanCheckInterval}
	if cfg.AutoLeaderRebalance {
		t.balanceEvery = cfg.LeaderImbalanceCheck
	}
	t.appended(now)
	t.balance, t.unclean = after(now, t.balanceEvery), after(now, t.uncleanEvery)
	t.fence = now // looks at the sessions once and sets its own time
}

func after(now time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return now.Add(d)
}

// appended puts the next no-op off: the metadata is not idle.
func (t *tasks) appended(now time.Time) { t.noOp = after(now, t.idle) }

// untilTask is how long the loop may sleep.
func (c *Controller) untilTask() time.Duration {
	if !c.active {
		return never
	}
	now, wait := c.opts.Now(), never
	for _, due := range []time.Time{c.tasks.noOp, c.tasks.fence, c.tasks.balance, c.tasks.unclean} {
		if !due.IsZero() {
			wait = min(wait, max(due.Sub(now), 0))
		}
	}
	return wait
}

func (c *Controller) runTasks() {
	due := func(t time.Time) bool { return c.active && !t.IsZero() && !c.opts.Now().Before(t) }
	if due(c.tasks.fence) {
		c.fenceStale()
	}
	if due(c.tasks.balance) {
		c.tasks.balance = after(c.opts.Now(), c.tasks.balanceEvery)
		c.repeat("leader balance", &c.tasks.balance, c.decide.BalanceLeaders)
	}
	if due(c.tasks.unclean) {
		c.tasks.unclean = after(c.opts.Now(), c.tasks.uncleanEvery)
		c.repeat("unclean election", &c.tasks.unclean, c.decide.ElectUnclean)
	}
	if due(c.tasks.noOp) {
		c.tasks.appended(c.opts.Now()) // also if the append fails
		c.task("no-op", c.decide.NoOp)
	}
}

// repeatPause lets requests in between the runs of a task that has more to do (K-126).
const repeatPause = 10 * time.Millisecond

func (c *Controller) repeat(name string, due *time.Time, decide func(*controller.Draft) bool) {
	more := false
	c.task(name, func(d *controller.Draft) { more = decide(d) })
	if more {
		*due = c.opts.Now().Add(repeatPause)
	}
}

// task performs an operation nobody waits for.
func (c *Controller) task(name string, decide func(*controller.Draft)) {
	c.perform(&operation{name: name, ctx: context.Background(), decide: decide, finish: func(err error) {
		if err != nil && !errors.Is(err, kerr.NotController) {
			c.log.Warn("controller task failed", "task", name, "err", err)
		}
	}})
}

// fenceStale fences brokers whose session ended, one decision each, and looks up when the next one may.
func (c *Controller) fenceStale() {
	c.mergeContacts()
	for c.active {
		fenced, more := model.NoNode, false
		c.task("fence stale broker", func(d *controller.Draft) { fenced, more = c.decide.FenceStale(d) })
		if !more {
			break
		}
		c.log.Info("broker fenced: its session ended", "broker", fenced)
	}
	c.scheduleFence()
}

func (c *Controller) scheduleFence() {
	c.tasks.fence = time.Time{}
	if !c.active {
		return
	}
	if ms, ok := c.decide.Heartbeats().NextExpiryMs(c.working); ok {
		c.tasks.fence = time.UnixMilli(ms)
	}
}

// mergeContacts tells the decisions who was heard while they waited in the queue (K-140).
func (c *Controller) mergeContacts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, k := range c.contacts {
		c.decide.Heartbeats().Touch(c.working, id, k.epoch, k.ms)
	}
}

// countElections counts what operators watch for (K-191).
func (c *Controller) countElections(records []image.Versioned) {
	for _, v := range records {
		r, ok := v.Record.(*protocol.PartitionChangeRecord)
		if !ok || r.Leader < 0 {
			continue
		}
		if r.LeaderRecoveryState == image.RecoveryRecovering {
			c.stats.UncleanElections.Add(1)
			continue
		}
		_, p, ok := c.working.Topics().Partition(model.TopicIDPartition{Topic: model.TopicID(r.TopicId), Partition: r.PartitionId})
		if !ok {
			continue
		}
		for _, n := range p.ELR {
			if int32(n) == r.Leader {
				c.stats.ELRElections.Add(1)
			}
		}
	}
}
