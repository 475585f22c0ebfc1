package controller

import (
	"strconv"
	"strings"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// view is an image prepared for many partition changes of one decision.
type view struct {
	c    *Controller
	img  *image.Image
	mv   image.MetadataVersion
	elr  bool
	base struct {
		known   bool
		minISR  int
		unclean bool
	}
}

func (c *Controller) view(img *image.Image) *view {
	return &view{c: c, img: img, mv: img.Features().MetadataVersion(), elr: img.Features().ELREnabled()}
}

// defaults are the settings of a topic that sets nothing.
func (v *view) defaults() (minISR int, unclean bool) {
	if !v.base.known {
		t := v.c.effective(v.img).Topic(nil)
		v.base.known, v.base.minISR, v.base.unclean = true, int(t.MinInSyncReplicas), t.UncleanLeaderElection
	}
	return v.base.minISR, v.base.unclean
}

// minISR is the effective min.insync.replicas of a topic, capped at its replication factor (K-158).
func (v *view) minISR(t *image.Topic) int {
	n, _ := v.defaults()
	if s, ok := v.img.TopicConfigs(t.Name)["min.insync.replicas"]; ok {
		if own, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
			n = own
		}
	}
	if p, ok := t.Partition(0); ok {
		n = min(n, len(p.Replicas))
	}
	return n
}

// uncleanAllowed reports whether the topic prefers availability to records (K-166).
func (v *view) uncleanAllowed(t *image.Topic) bool {
	_, unclean := v.defaults()
	if s, ok := v.img.TopicConfigs(t.Name)["unclean.leader.election.enable"]; ok {
		return strings.EqualFold(strings.TrimSpace(s), "true")
	}
	return unclean
}

// active: the broker is registered, unfenced and not shutting down.
func (v *view) active(n model.NodeID) bool {
	b, ok := v.img.Brokers().ByID(n)
	return ok && b.Active()
}

func (v *view) defaultDir(n model.NodeID) model.DirectoryID {
	if !v.mv.DirectoryAssignment() {
		return model.DirMigrating
	}
	b, ok := v.img.Brokers().ByID(n)
	if !ok {
		return model.DirUnassigned
	}
	return b.DefaultDir()
}

// change starts a change of one partition. active says who counts as active; nil is the image.
func (v *view) change(t *image.Topic, index int32, p *image.Partition, active func(model.NodeID) bool) *change {
	if active == nil {
		active = v.active
	}
	c := &change{
		part: p, topic: t.ID, index: index, mv: v.mv, elr: v.elr, minISR: v.minISR(t), defaultDir: v.defaultDir,
		isr: p.ISR, replicas: p.Replicas, removing: p.Removing, adding: p.Adding, eligible: p.ELR, recovery: p.LeaderRecoveryState,
	}
	c.acceptable = func(n model.NodeID) bool {
		if !active(n) {
			return false
		}
		b, ok := v.img.Brokers().ByID(n)
		if !ok {
			return false
		}
		dir, ok := c.dirs[n]
		if !ok {
			if dir, ok = p.Directory(n); !ok {
				dir = v.defaultDir(n) // a replica being added
			}
		}
		return b.HasOnlineDir(dir)
	}
	return c
}

func (v *view) add(d *Draft, c *change) bool {
	r := c.build()
	if r == nil {
		return false
	}
	d.add(r, v.mv.PartitionRecordVersion())
	return true
}

// brokerMoves says which broker is treated as gone or as back while the records that say so are
// still being made (K-156).
type brokerMoves struct {
	remove, add, unclean model.NodeID // NoNode: none
}

var noMoves = brokerMoves{model.NoNode, model.NoNode, model.NoNode}

// updateLeaderAndISR adds the change of every partition that pick chooses, on top of the draft so far.
func (c *Controller) updateLeaderAndISR(d *Draft, m brokerMoves, pick func(*image.Partition) bool) {
	v := c.view(d.Image())
	for t := range v.img.Topics().All() {
		for i, p := range t.Partitions() {
			if pick(p) {
				v.moveLeaderAndISR(d, m, t, i, p)
			}
		}
	}
}

func (v *view) moveLeaderAndISR(d *Draft, m brokerMoves, t *image.Topic, i int32, p *image.Partition) {
	ch := v.change(t, i, p, func(n model.NodeID) bool {
		return n != m.remove && n != m.unclean && (n == m.add || v.active(n))
	})
	if v.uncleanAllowed(t) {
		ch.election = electUnclean
	}
	if m.unclean != model.NoNode {
		ch.unclean = []model.NodeID{m.unclean}
	}
	ch.isr = without(p.ISR, []model.NodeID{m.remove, m.unclean})
	v.add(d, ch)
}

// leads reports whether a broker leads any partition.
func leads(img *image.Image, n model.NodeID) bool {
	for t := range img.Topics().All() {
		for _, p := range t.Partitions() {
			if p.Leader == n {
				return true
			}
		}
	}
	return false
}

func inISR(n model.NodeID) func(*image.Partition) bool {
	return func(p *image.Partition) bool { return contains(p.ISR, n) || p.Leader == n }
}

func inELR(n model.NodeID) func(*image.Partition) bool {
	return func(p *image.Partition) bool { return contains(p.ELR, n) && !inISR(n)(p) }
}

func leaderless(p *image.Partition) bool { return !p.HasLeader() }

func contains(list []model.NodeID, n model.NodeID) bool {
	for _, m := range list {
		if m == n {
			return true
		}
	}
	return false
}

// Kinds of election of ElectLeaders.
const (
	electionTypePreferred int8 = 0
	electionTypeUnclean   int8 = 1
)

// ElectLeaders elects the preferred leader, or any, of the partitions named; of all of them if none
// is (K-161).
func (c *Controller) ElectLeaders(d *Draft, r *protocol.ElectLeadersRequest) *protocol.ElectLeadersResponse {
	resp := new(protocol.ElectLeadersResponse)
	resp.Default()
	kind := electPreferred
	switch r.ElectionType {
	case electionTypePreferred:
	case electionTypeUnclean:
		kind = electUnclean
	default:
		return electionUnknown(r)
	}
	v := c.view(d.Image())
	result := electionResult
	if r.TopicPartitions == nil {
		for t := range v.img.Topics().All() {
			results := protocol.ElectLeadersResponseReplicaElectionResult{Topic: t.Name}
			for i := range t.Partitions() {
				if err := v.electLeader(d, t.Name, i, kind); kerr.Code(err) != kerr.ElectionNotNeeded.Code {
					results.PartitionResult = append(results.PartitionResult, result(i, err))
				}
			}
			resp.ReplicaElectionResults = append(resp.ReplicaElectionResults, results)
		}
	} else {
		for _, tp := range r.TopicPartitions {
			results := protocol.ElectLeadersResponseReplicaElectionResult{Topic: tp.Topic}
			seen := map[int32]bool{}
			for _, i := range tp.Partitions {
				if seen[i] {
					continue
				}
				seen[i] = true
				results.PartitionResult = append(results.PartitionResult, result(i, v.electLeader(d, tp.Topic, i, kind)))
			}
			resp.ReplicaElectionResults = append(resp.ReplicaElectionResults, results)
		}
	}
	if d.tooLarge() {
		resp.Default()
		resp.ErrorCode = kerr.PolicyViolation.Code
	}
	return resp
}

func electionResult(index int32, err error) protocol.ElectLeadersResponsePartitionResult {
	return protocol.ElectLeadersResponsePartitionResult{PartitionId: index, ErrorCode: kerr.Code(err), ErrorMessage: message(err)}
}

// electionUnknown refuses a kind of election that is none, at the top and in every partition named.
func electionUnknown(r *protocol.ElectLeadersRequest) *protocol.ElectLeadersResponse {
	resp := new(protocol.ElectLeadersResponse)
	resp.Default()
	err := kerr.InvalidRequest.With("Unknown election type %d", r.ElectionType)
	resp.ErrorCode = kerr.Code(err)
	for _, tp := range r.TopicPartitions {
		results := protocol.ElectLeadersResponseReplicaElectionResult{Topic: tp.Topic}
		for _, i := range tp.Partitions {
			results.PartitionResult = append(results.PartitionResult, electionResult(i, err))
		}
		resp.ReplicaElectionResults = append(resp.ReplicaElectionResults, results)
	}
	return resp
}

func (v *view) electLeader(d *Draft, topic string, index int32, kind election) error {
	t, ok := v.img.Topics().ByName(topic)
	if !ok {
		return kerr.UnknownTopicOrPartition.With("No such topic as %s", topic)
	}
	p, ok := t.Partition(index)
	if !ok {
		return kerr.UnknownTopicOrPartition.With("No such partition as %s-%d", topic, index)
	}
	if kind == electPreferred && p.Leader == p.Preferred() || kind == electUnclean && p.HasLeader() {
		return kerr.ElectionNotNeeded
	}
	ch := v.change(t, index, p, nil)
	ch.election = kind
	if !v.add(d, ch) {
		if kind == electPreferred {
			return kerr.PreferredLeaderNotAvailable
		}
		return kerr.EligibleLeadersNotAvailable
	}
	return nil
}

// BalanceLeaders moves leadership to preferred replicas where that is possible, at most
// MaxElectionsPerRun times; more is true if it stopped there (K-126).
func (c *Controller) BalanceLeaders(d *Draft) (more bool) {
	v := c.view(d.Image())
	for t := range v.img.Topics().All() {
		for i, p := range t.Partitions() {
			if p.Leader == p.Preferred() {
				continue
			}
			if len(d.records) >= MaxElectionsPerRun {
				return true
			}
			ch := v.change(t, i, p, nil)
			ch.election = electPreferred
			v.add(d, ch)
		}
	}
	return false
}

// ElectUnclean gives leaderless partitions of topics that allow it any leader there is (K-126).
func (c *Controller) ElectUnclean(d *Draft) (more bool) {
	v := c.view(d.Image())
	for t := range v.img.Topics().All() {
		for i, p := range t.Partitions() {
			if p.HasLeader() || !v.uncleanAllowed(t) {
				continue
			}
			if len(d.records) >= MaxElectionsPerRun {
				return true
			}
			ch := v.change(t, i, p, nil)
			ch.election = electUnclean
			v.add(d, ch)
		}
	}
	return false
}
