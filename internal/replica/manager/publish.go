package manager

import (
	"fmt"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/replica/partition"
	"samsa/internal/storage/logdir"
)

// Publish follows the metadata: it creates, elects, resigns and deletes replicas. Called with every image, in order,
// from one goroutine; delta is what changed since the one before (everything, for the first). One partition's failure
// is logged and never stops the others (J-107).
//
// Order: the image is looked at by requests from now on; replicas that went are taken out of the map, their waiters
// answered, their directories renamed (T-89); new logs are made, all directories side by side; roles change; directories
// are reported; then settings, and listeners of leaderships.
func (m *Manager) Publish(delta *image.Delta, img *image.Image) {
	m.publishing.Lock()
	defer m.publishing.Unlock()
	begin := m.now()
	first := !m.published
	m.published = true
	m.img.Store(img)
	m.brokers.Store(&brokers{img})
	m.forgetSettings(delta)

	gone, here := m.sort(delta)
	m.remove(gone)
	made := m.place(here, img, first)
	for i := range here {
		m.follow(&here[i], img)
	}
	m.fetch(here)
	if !first && img.Features().MetadataVersion().DirectoryAssignment() && !delta.From.Features().MetadataVersion().DirectoryAssignment() {
		m.reportAll(img)
	} else {
		m.report(here, img)
	}
	m.applyConfigs(delta, img)
	if len(delta.Brokers) > 0 {
		m.recheckAll()
	}
	for i := range here {
		if here[i].replica != nil {
			m.tellLeader(here[i].replica)
		}
	}
	if len(gone)+made > 0 {
		m.log.Info("replicas follow the metadata", "offset", img.Offset(), "deleted", len(gone), "created", made, "changed", len(here)-made,
			"took", m.now().Sub(begin).Round(time.Microsecond))
	}
}

// change is one partition of this broker that is new or different.
type change struct {
	tp       model.TopicIDPartition
	topic    string
	old, new *image.Partition
	replica  *replica // as it ends up
	decision partition.Decision
	placed   bool // decided anew in this change
	moved    bool // follower: fetch from where the metadata says now
}

// sort splits a delta into replicas that go and partitions that are here.
func (m *Manager) sort(delta *image.Delta) (gone []*replica, here []change) {
	for _, t := range delta.Topics {
		for _, p := range t.Partitions {
			tp := model.TopicIDPartition{Topic: t.ID, Partition: p.Index}
			if p.New != nil && p.New.IsReplica(m.self) {
				here = append(here, change{tp: tp, topic: t.Name(), old: p.Old, new: p.New, replica: m.hosted.get(tp)})
			} else if r := m.hosted.get(tp); r != nil {
				gone = append(gone, r)
			}
		}
	}
	return gone, here
}

// remove takes replicas away (T-89).
func (m *Manager) remove(gone []*replica) {
	if len(gone) == 0 {
		return
	}
	tps := make([]model.TopicIDPartition, len(gone))
	for i, r := range gone {
		tps[i] = r.tp
	}
	if m.o.Fetchers != nil {
		m.o.Fetchers.Unfollow(tps...)
	}
	m.hosted.change(nil, tps)
	for _, r := range gone {
		offline := r.view.Load().err != nil // an append may hang on a dead disk: do not wait for it
		if !offline {
			r.role.Lock()
			r.role.Unlock() //nolint:staticcheck // appends under way are let through
			r.tell()
		}
		waiting, watchers := r.close(errGone)
		m.abandon(r, errGone, waiting, watchers)
		m.produces.Check(r.tp)
		m.fetches.CompleteAll(r.tp)
		m.deletes.Check(r.tp)
		m.tellLeader(r)
	}
	if err := m.logs.Delete(tps...); err != nil {
		m.log.Error("cannot set deleted replicas aside", "replicas", len(tps), "err", err)
	}
}

// place finds or makes the logs of partitions that have none yet, and puts them into the map (J-105..J-110).
func (m *Manager) place(here []change, img *image.Image, first bool) (made int) {
	var requests []logdir.CreateRequest
	var creating []*change
	var add []*replica
	for i := range here {
		c := &here[i]
		if c.replica != nil && c.replica.attached() {
			continue // it stays where it is, also when its directory is offline (J-110)
		}
		c.replica = newReplica(c.tp, c.topic)
		c.placed = true
		c.decision = partition.Place(m.placement(c, img, first))
		add = append(add, c.replica)
		switch c.decision.Action {
		case partition.Use:
			if l, ok := m.logs.Get(c.tp); ok {
				c.replica.attach(m, l, m.settingsOf(img, c.topic))
			}
		case partition.Create:
			r := logdir.CreateRequest{Partition: c.tp, Topic: c.topic, Dir: c.decision.Dir, Config: m.settingsOf(img, c.topic).log, IsNew: true}
			if r.Dir.IsZero() {
				r.Dir = model.DirUnassigned
			}
			requests = append(requests, r)
			creating = append(creating, c)
		default: // Promote comes with the mover of logs between directories
			m.log.Error("replica is offline", "topicID", c.tp.Topic, "topic", c.topic, "partition", c.tp.Partition,
				"case", c.decision.Row, "assigned", dirOf(c.new, m.self))
		}
	}
	for i, res := range m.logs.CreateAll(requests) {
		c := creating[i]
		if res.Err != nil {
			m.log.Error("cannot create log", "topicID", c.tp.Topic, "topic", c.topic, "partition", c.tp.Partition, "err", res.Err)
			c.decision.Report = false
			continue
		}
		made++
		c.replica.attach(m, res.Replica, m.settingsOf(img, c.topic))
	}
	m.hosted.change(add, nil)
	for _, r := range add {
		if r.attached() && !r.dir.Online() { // failed before dirFailed could find the replica
			m.takeOffline(r)
		}
	}
	return made
}

func dirOf(p *image.Partition, self model.NodeID) model.DirectoryID {
	d, _ := p.Directory(self)
	return d
}

// placement gathers what partition.Place wants to know.
func (m *Manager) placement(c *change, img *image.Image, first bool) partition.Placement {
	in := partition.Placement{Assigned: dirOf(c.new, m.self), AnyDead: m.logs.HasOffline(), Initial: first}
	in.AssignedOnline = m.logs.OnlineID(in.Assigned)
	known, trusted := m.logs.KnownOffline()
	if d, ok := m.logs.Directory(in.Assigned); ok {
		in.AssignedDead = !d.Online()
	} else if trusted {
		in.Forgotten = true
		for _, id := range known {
			if id == in.Assigned {
				in.AssignedDead, in.Forgotten = true, false
			}
		}
	}
	if l, ok := m.logs.Get(c.tp); ok {
		in.Found = l.Dir.ID()
		if f, ok := m.logs.Future(c.tp); ok {
			in.Future = f.Dir.ID()
			in.FutureBehind = f.Log.LogEndOffset() < l.Log.LogEndOffset()
		}
	} else if f, ok := m.logs.Future(c.tp); ok {
		in.Future = f.Dir.ID()
	}
	in.New = in.Assigned == model.DirUnassigned || !first && (c.old == nil || !c.old.IsReplica(m.self))
	for _, id := range c.new.ISR {
		in.InISR = in.InISR || id == m.self
		in.OthersIn = in.OthersIn || id != m.self
	}
	for _, id := range c.new.ELR {
		in.InISR = in.InISR || id == m.self
	}
	in.Unclean = m.settingsOf(img, c.topic).topic.UncleanLeaderElection
	return in
}

// attached: the replica has, or had before its directory failed, a log.
func (r *replica) attached() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.core != nil
}

// attach gives a replica its log. Nobody else sees the replica yet.
func (r *replica) attach(m *Manager, l *logdir.Replica, s *settings) {
	l.Log.SetConfig(s.log)
	o := l.Log.Offsets()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.core = partition.New(m.self, s.core, o.LogStart, o.HighWatermark, o.LogEnd)
	r.dir = l.Dir
	r.view.Store(&view{log: l.Log, leaderID: model.NoNode, epoch: model.NoEpoch, settings: s})
}

// follow brings a replica into the role its registration gives it.
func (m *Manager) follow(c *change, img *image.Image) {
	r := c.replica
	if r == nil || r.view.Load().err != nil {
		return
	}
	p := c.new
	reg := partition.Registration{Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, Epoch: p.PartitionEpoch, Replicas: p.Replicas, ISR: p.ISR,
		Adding: p.Adding, Removing: p.Removing, Recovering: p.LeaderRecoveryState == image.RecoveryRecovering}
	ch, tell := r.apply(m, reg, m.nowMs())
	if ch.Stale {
		return
	}
	if tell || ch.Resigned {
		r.tell()
	}
	if ch.Resigned {
		r.mu.Lock()
		waiting, watchers := r.waiting, r.watchers
		r.waiting, r.watchers = nil, nil
		r.mu.Unlock()
		m.abandon(r, errNotLeader, waiting, watchers)
	}
	c.moved = ch.NewEpoch
	if v := r.view.Load(); v.leader && v.others {
		m.lag.need()
	}
	if ch.Resigned || ch.NewEpoch || ch.HighMoved {
		m.log.Debug("replica changed role", "topicID", r.tp.Topic, "topic", r.topic, "partition", r.tp.Partition,
			"leader", p.Leader, "leaderEpoch", p.LeaderEpoch, "partitionEpoch", p.PartitionEpoch, "isr", p.ISR)
		m.wake(r.tp)
	}
}

// apply changes the role, with no append under way.
func (r *replica) apply(m *Manager, reg partition.Registration, now int64) (ch partition.Change, tell bool) {
	r.role.Lock()
	defer r.role.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	v := *r.view.Load()
	if v.err != nil || r.core == nil {
		return partition.Change{Stale: true}, false
	}
	if !v.leader { // what was fetched since
		o := v.log.Offsets()
		r.core.SetLog(o.LogStart, o.HighWatermark, o.LogEnd)
	}
	ch = r.core.Apply(now, reg, m.brokers.Load())
	if ch.Stale {
		return ch, false
	}
	v.leader, v.leaderID, v.epoch = r.core.IsLeader(), reg.Leader, reg.LeaderEpoch
	v.epochAt, v.others = r.core.EpochStart(), v.leader && len(reg.Replicas) > 1
	if ch.AssignEpoch {
		if err := v.log.AssignEpoch(reg.LeaderEpoch, r.core.EpochStart()); err != nil {
			m.log.Error("cannot note the leader epoch", "topicID", r.tp.Topic, "topic", r.topic, "partition", r.tp.Partition, "err", err)
		}
	}
	r.view.Store(&v)
	if ch.HighMoved {
		tell = r.highMoved()
	}
	return ch, tell
}

// fetch starts and stops the fetchers of followers.
func (m *Manager) fetch(here []change) {
	if m.o.Fetchers == nil {
		return
	}
	var stop []model.TopicIDPartition
	for i := range here {
		c := &here[i]
		v := c.replica.view.Load()
		switch {
		case v.err != nil || !c.moved:
		case v.leader || v.leaderID == model.NoNode:
			stop = append(stop, c.tp)
		}
	}
	if len(stop) > 0 {
		m.o.Fetchers.Unfollow(stop...)
	}
	for i := range here {
		c := &here[i]
		if v := c.replica.view.Load(); v.err == nil && c.moved && !v.leader && v.leaderID != model.NoNode {
			m.o.Fetchers.Follow(c.tp, c.topic, v.leaderID, v.epoch)
		}
	}
}

// report tells the controller about replicas that are not where the metadata says (J-105; J-97: also one added by a
// reassignment; J-95: not before the metadata version knows directories).
func (m *Manager) report(here []change, img *image.Image) {
	if m.o.Reporter == nil || !img.Features().MetadataVersion().DirectoryAssignment() {
		return
	}
	for i := range here {
		c := &here[i]
		if c.placed && !c.replica.attached() {
			if c.decision.Report && !c.decision.Lost.IsZero() {
				m.o.Reporter.Report(c.tp, c.decision.Lost, true, nil)
			}
			continue
		}
		m.reportIfElsewhere(c.replica, dirOf(c.new, m.self))
	}
}

// reportIfElsewhere reports a replica that is in another directory than the metadata says.
func (m *Manager) reportIfElsewhere(r *replica, assigned model.DirectoryID) {
	r.mu.Lock()
	dir := r.dir
	r.mu.Unlock()
	if dir != nil && dir.Online() && dir.ID() != assigned {
		m.o.Reporter.Report(r.tp, dir.ID(), false, nil)
	}
}

// reportAll reports every replica whose directory the metadata does not know: the metadata version has just learned of
// directories (J-52).
func (m *Manager) reportAll(img *image.Image) {
	if m.o.Reporter == nil {
		return
	}
	m.hosted.all(func(r *replica) {
		if _, p, ok := img.Topics().Partition(r.tp); ok {
			m.reportIfElsewhere(r, dirOf(p, m.self))
		}
	})
}

// forgetSettings drops what a delta makes stale.
func (m *Manager) forgetSettings(delta *image.Delta) {
	for _, c := range delta.Configs {
		if c.Type == image.ResourceTopic {
			delete(m.settings, c.Name)
		}
	}
	for _, t := range delta.Topics {
		if t.New == nil {
			delete(m.settings, t.Old.Name)
			m.stats.forget(t.Old.Name)
		}
	}
}

// applyConfigs gives replicas whose topic's configs changed their new settings (D-193).
func (m *Manager) applyConfigs(delta *image.Delta, img *image.Image) {
	for _, c := range delta.Configs {
		if c.Type != image.ResourceTopic {
			continue
		}
		t, ok := img.Topics().ByName(c.Name)
		if !ok {
			continue
		}
		for i := range t.Count() {
			if r := m.hosted.get(model.TopicIDPartition{Topic: t.ID, Partition: i}); r != nil && r.attached() {
				m.applySettings(r, m.settingsOf(img, c.Name))
			}
		}
	}
}

// recheckAll looks at every high watermark that waits for others again: a broker came, went or was fenced.
func (m *Manager) recheckAll() {
	now, b := m.nowMs(), m.brokers.Load()
	m.hosted.all(func(r *replica) {
		v := r.view.Load()
		if v.err != nil || !v.leader || !v.others {
			return
		}
		r.mu.Lock()
		moved, tell := r.core.Recheck(now, b), false
		if moved {
			tell = r.highMoved()
		}
		r.mu.Unlock()
		if tell {
			r.tell()
		}
		m.wake(r.tp) // the low watermark counts live replicas only
	})
}

// decide tells what a directory found at start belongs to (T-98).
func (m *Manager) decide(img *image.Image, f logdir.Found) logdir.Verdict {
	t, ok := img.Topics().ByID(f.Partition.Topic)
	if !ok {
		return logdir.Verdict{Stray: "the topic id does not exist in the metadata image", Gone: true}
	}
	if t.Name != f.Topic && !f.Stray {
		return logdir.Verdict{Stray: fmt.Sprintf("the topic id belongs to %s, the directory is named for %s", t.Name, f.Topic)}
	}
	p, ok := t.Partition(f.Partition.Partition)
	switch {
	case !ok:
		return logdir.Verdict{Stray: "the topic has no such partition"}
	case !p.IsReplica(m.self):
		return logdir.Verdict{Stray: "this broker is not one of the partition's replicas"}
	}
	return logdir.Verdict{Config: logConfig(m.node.Load().Topic(img.TopicConfigs(t.Name))), Directory: dirOf(p, m.self)}
}
