package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

func ids(n ...model.NodeID) []model.NodeID { return n }

// K-155 to K-158, K-162: what one change of a partition becomes.
func TestPartitionChange(t *testing.T) {
	base := image.Partition{Replicas: ids(1, 2, 3), Directories: make([]model.DirectoryID, 3), ISR: ids(1, 2, 3), Leader: 1}
	with := func(f func(*image.Partition)) image.Partition {
		p := base
		f(&p)
		return p
	}
	all := func(model.NodeID) bool { return true }
	but := func(gone ...model.NodeID) func(model.NodeID) bool {
		return func(n model.NodeID) bool { return !slices.Contains(gone, n) }
	}
	moving := with(func(p *image.Partition) {
		p.Replicas, p.Directories, p.Adding, p.Removing = ids(4, 2, 1, 3), make([]model.DirectoryID, 4), ids(4), ids(1, 3)
	})
	for name, c := range map[string]struct {
		part   image.Partition
		elr    bool
		minISR int
		alive  func(model.NodeID) bool
		set    func(*change)
		want   func(*protocol.PartitionChangeRecord) // nil: no record
	}{
		"nothing_changes":              {part: base, alive: all},
		"isr_shrinks":                  {part: base, alive: all, set: func(c *change) { c.isr = ids(1, 2) }, want: func(r *protocol.PartitionChangeRecord) { r.Isr = []int32{1, 2} }},
		"leader_dies_next_in_order":    {part: base, alive: but(1), set: func(c *change) { c.isr = ids(3, 2) }, want: func(r *protocol.PartitionChangeRecord) { r.Isr, r.Leader = []int32{3, 2}, 2 }},
		"online_keeps_a_valid_leader":  {part: with(func(p *image.Partition) { p.Leader = 3 }), alive: all},
		"preferred_takes_over":         {part: with(func(p *image.Partition) { p.Leader = 3 }), alive: all, set: func(c *change) { c.election = electPreferred }, want: func(r *protocol.PartitionChangeRecord) { r.Leader = 1 }},
		"preferred_dead_keeps_leader":  {part: with(func(p *image.Partition) { p.Leader = 3 }), alive: but(1), set: func(c *change) { c.election = electPreferred }},
		"preferred_outside_isr_stays":  {part: with(func(p *image.Partition) { p.Leader, p.ISR = 3, ids(2, 3) }), alive: all, set: func(c *change) { c.election = electPreferred }},
		"last_member_stays_leaderless": {part: with(func(p *image.Partition) { p.ISR = ids(1) }), alive: but(1), set: func(c *change) { c.isr = nil }, want: func(r *protocol.PartitionChangeRecord) { r.Leader = -1 }},
		"leaderless_not_unclean":       {part: with(func(p *image.Partition) { p.ISR = ids(1) }), alive: but(1), want: func(r *protocol.PartitionChangeRecord) { r.Leader = -1 }},
		"unclean_takes_whoever_is_there": {part: with(func(p *image.Partition) { p.ISR = ids(1) }), alive: but(1), set: func(c *change) { c.election, c.isr = electUnclean, nil },
			want: func(r *protocol.PartitionChangeRecord) { r.Isr, r.Leader, r.LeaderRecoveryState = []int32{2}, 2, 1 }},
		"unclean_prefers_clean":     {part: base, alive: but(1), set: func(c *change) { c.election, c.isr = electUnclean, ids(2, 3) }, want: func(r *protocol.PartitionChangeRecord) { r.Isr, r.Leader = []int32{2, 3}, 2 }},
		"unclean_nobody_there":      {part: with(func(p *image.Partition) { p.ISR = ids(1) }), alive: but(1, 2, 3), set: func(c *change) { c.election = electUnclean }, want: func(r *protocol.PartitionChangeRecord) { r.Leader = -1 }},
		"unclean_again_keeps_state": {part: with(func(p *image.Partition) { p.ISR, p.LeaderRecoveryState = ids(1), 1 }), alive: but(1), set: func(c *change) { c.election, c.isr = electUnclean, nil }, want: func(r *protocol.PartitionChangeRecord) { r.Isr, r.Leader = []int32{2}, 2 }},
		"elr_keeps_those_who_leave": {part: base, elr: true, minISR: 2, alive: but(2, 3), set: func(c *change) { c.isr = ids(1) }, want: func(r *protocol.PartitionChangeRecord) { r.Isr, r.EligibleLeaderReplicas = []int32{1}, []int32{2, 3} }},
		"elr_cleared_at_min_isr":    {part: with(func(p *image.Partition) { p.ISR, p.ELR = ids(1), ids(2, 3) }), elr: true, minISR: 2, alive: all, set: func(c *change) { c.isr = ids(1, 2) }, want: func(r *protocol.PartitionChangeRecord) { r.Isr, r.EligibleLeaderReplicas = []int32{1, 2}, []int32{} }},
		"elr_not_for_the_unclean":   {part: base, elr: true, minISR: 2, alive: but(2, 3), set: func(c *change) { c.isr, c.unclean = ids(1), ids(3) }, want: func(r *protocol.PartitionChangeRecord) { r.Isr, r.EligibleLeaderReplicas = []int32{1}, []int32{2} }},
		"elr_isr_may_empty": {part: with(func(p *image.Partition) { p.ISR = ids(1) }), elr: true, minISR: 1, alive: but(1), set: func(c *change) { c.isr = nil }, want: func(r *protocol.PartitionChangeRecord) {
			r.Isr, r.Leader, r.EligibleLeaderReplicas, r.LastKnownElr = []int32{}, -1, []int32{1}, []int32{1}
		}},
		"elr_member_leads_alone": {part: with(func(p *image.Partition) { p.ISR, p.ELR, p.LastKnownELR, p.Leader = nil, ids(2, 3), ids(1), -1 }), elr: true, minISR: 2, alive: but(1, 2), want: func(r *protocol.PartitionChangeRecord) {
			r.Isr, r.Leader, r.EligibleLeaderReplicas, r.LastKnownElr = []int32{3}, 3, []int32{2}, []int32{}
		}},
		"elr_not_while_isr_lives": {part: with(func(p *image.Partition) { p.ISR, p.ELR, p.Leader = ids(1), ids(2), -1 }), elr: true, minISR: 2, alive: but(1)},
		"last_known_leader_unclean": {part: with(func(p *image.Partition) { p.ISR, p.LastKnownELR, p.Leader = nil, ids(3), -1 }), elr: true, minISR: 1, alive: all, want: func(r *protocol.PartitionChangeRecord) {
			r.Isr, r.Leader, r.LeaderRecoveryState, r.LastKnownElr = []int32{3}, 3, 1, []int32{}
		}},
		"last_known_leader_dead":          {part: with(func(p *image.Partition) { p.ISR, p.LastKnownELR, p.Leader = nil, ids(3), -1 }), elr: true, minISR: 1, alive: but(3)},
		"last_known_leader_needs_elr_off": {part: with(func(p *image.Partition) { p.ISR, p.LastKnownELR, p.Leader = nil, ids(3), -1 }), minISR: 1, alive: all, want: nil},
		"reassignment_waits_for_adding":   {part: moving, alive: all, set: func(c *change) { c.isr = ids(1, 2, 3) }},
		"reassignment_completes_when_shrinking_whole": {part: moving, alive: all, set: func(c *change) { c.isr = ids(1, 2, 3, 4) },
			want: func(r *protocol.PartitionChangeRecord) {
				r.Isr, r.Leader, r.Replicas, r.AddingReplicas, r.RemovingReplicas = []int32{2, 4}, 4, []int32{4, 2}, []int32{}, []int32{}
				r.Directories = make([]model.UUID, 2)
			}},
		"reassignment_shrinking_waits_for_target": {part: moving, alive: all, set: func(c *change) { c.isr = ids(1, 3, 4) }, want: func(r *protocol.PartitionChangeRecord) { r.Isr = []int32{1, 3, 4} }},
		"reassignment_same_factor": {part: with(func(p *image.Partition) {
			p.Replicas, p.Directories, p.Adding, p.Removing, p.ISR = ids(1, 2, 4, 3), make([]model.DirectoryID, 4), ids(4), ids(3), ids(1, 3)
		}), alive: all, set: func(c *change) { c.isr = ids(1, 3, 4) },
			want: func(r *protocol.PartitionChangeRecord) { // the leader stays but is named: readers of the old list must notice
				r.Isr, r.Leader, r.Replicas, r.AddingReplicas, r.RemovingReplicas = []int32{1, 4}, 1, []int32{1, 2, 4}, []int32{}, []int32{}
				r.Directories = make([]model.UUID, 3)
			}},
	} {
		part := c.part
		ch := &change{
			part: &part, topic: model.TopicID{1}, index: 5, mv: 33, elr: c.elr, minISR: c.minISR, acceptable: c.alive,
			defaultDir: func(model.NodeID) model.DirectoryID { return model.DirUnassigned },
			isr:        part.ISR, replicas: part.Replicas, adding: part.Adding, removing: part.Removing, eligible: part.ELR, recovery: part.LeaderRecoveryState,
		}
		if c.set != nil {
			c.set(ch)
		}
		got := ch.build()
		var want *protocol.PartitionChangeRecord
		if c.want != nil {
			want = new(protocol.PartitionChangeRecord)
			want.Default()
			want.TopicId, want.PartitionId = model.UUID{1}, 5
			c.want(want)
			if want.Isr != nil && got != nil { // order of an ISR is not part of the rule
				slices.Sort(got.Isr)
				slices.Sort(want.Isr)
			}
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
}

// brokersImage has brokers by rack; a negative id is a fenced broker.
func brokersImage(t *testing.T, racks map[string][]model.NodeID) *image.Image {
	records := []image.Record{&protocol.FeatureLevelRecord{Name: image.FeatureMetadataVersion, FeatureLevel: 33}}
	for name, brokers := range racks {
		for _, id := range brokers {
			r := new(protocol.RegisterBrokerRecord)
			r.Default()
			r.BrokerId, r.Fenced = int32(max(id, -id)), id < 0
			if name != "" {
				r.Rack = &name
			}
			records = append(records, r)
		}
	}
	img, _, err := image.Empty().Apply(records, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// K-149: leaders spread evenly, racks differ, no broker twice, the first replica is unfenced.
func TestPlacementSpreads(t *testing.T) {
	for seed := range uint64(50) {
		img := brokersImage(t, map[string][]model.NodeID{"a": {1, 2}, "b": {3, 4}, "c": {5, 6, -7}})
		p := newPlacer(rand.New(rand.NewPCG(seed, 1)), img.Brokers())
		rackOf := func(n model.NodeID) string {
			b, _ := img.Brokers().ByID(n)
			return *b.Rack
		}
		leaders := map[model.NodeID]int{}
		for range 6 {
			if err := p.check(3); err != nil {
				t.Fatal(err)
			}
			replicas := p.next(3)
			racks := map[string]bool{}
			for _, n := range replicas {
				racks[rackOf(n)] = true
			}
			if len(racks) != 3 || replicas[0] == 7 {
				t.Fatalf("seed %d: %v", seed, replicas)
			}
			leaders[replicas[0]]++
		}
		for n, count := range leaders {
			if count > 2 {
				t.Fatalf("seed %d: broker %d leads %d of 6: %v", seed, n, count, leaders)
			}
		}
	}
}

// K-149: more replicas than racks, and fenced brokers used only after the unfenced.
func TestPlacementUsesAllBrokersOnce(t *testing.T) {
	for seed := range uint64(50) {
		img := brokersImage(t, map[string][]model.NodeID{"": {1, -2}, "b": {3}})
		p := newPlacer(rand.New(rand.NewPCG(seed, 1)), img.Brokers())
		for range 7 {
			replicas := p.next(3)
			sorted := slices.Sorted(slices.Values(replicas))
			if !slices.Equal(sorted, ids(1, 2, 3)) || replicas[0] == 2 {
				t.Fatalf("seed %d: %v", seed, replicas)
			}
		}
	}
	p := newPlacer(rand.New(rand.NewPCG(1, 1)), brokersImage(t, map[string][]model.NodeID{"": {-1}}).Brokers())
	for factor, want := range map[int]*kerr.Error{0: kerr.InvalidReplicationFactor, 1: kerr.InvalidReplicationFactor} {
		if got := kerr.Of(p.check(factor)); got != want {
			t.Errorf("factor %d: %v", factor, got)
		}
	}
	single := newPlacer(rand.New(rand.NewPCG(1, 1)), brokersImage(t, map[string][]model.NodeID{"": {1}}).Brokers())
	for range 5 {
		if r := single.next(1); !slices.Equal(r, ids(1)) {
			t.Fatal(r)
		}
	}
	if kerr.Of(single.check(2)) != kerr.InvalidReplicationFactor {
		t.Error("two replicas on one broker")
	}
}

// Random decisions at a random level keep what must hold of every image: an ISR of replicas, a leader
// of the ISR on an active broker, directories beside replicas; every record fits the level (K-111),
// epochs never fall, and the image equals the one of its snapshot.
func TestDecisionsKeepTheInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mv := image.MetadataVersion(rapid.IntRange(7, 33).Draw(rt, "mv"))
		elr := int16(0)
		if mv >= image.MetadataVersionELR && rapid.Bool().Draw(rt, "elr") {
			elr = 1
		}
		s := newScene(t, mv, map[string]int16{image.FeatureELR: elr}, map[string]string{"default.replication.factor": "2"})
		names := []string{"a", "b", "c.d", "c_d"}
		draw := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, label) }
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			before := s.img
			id := int32(draw("broker", 4))
			b, registered := s.img.Brokers().ByID(model.NodeID(id))
			epoch := int64(-1)
			if registered {
				epoch = b.Epoch
			}
			dirs := s.uuids([]string{fmt.Sprintf("d%da", id), fmt.Sprintf("d%db", id)})
			var records []image.Versioned
			switch draw("op", 12) {
			case 0, 1:
				r := new(protocol.BrokerRegistrationRequest)
				r.Default()
				r.BrokerId, r.ClusterId, r.IncarnationId = id, "cluster", s.id(fmt.Sprintf("I%d", draw("incarnation", 3)))
				r.LogDirs = dirs[:1+draw("dirs", 2)]
				if registered && draw("clean", 2) == 0 {
					r.PreviousBrokerEpoch = epoch
				}
				r.Features = []protocol.BrokerRegistrationRequestFeature{{Name: image.FeatureMetadataVersion, MinSupportedVersion: 7, MaxSupportedVersion: 33}, {Name: image.FeatureELR, MaxSupportedVersion: 1}}
				records = s.decide(func(d *Draft) { s.c.RegisterBroker(d, Caller{Version: 4}, r) })
			case 2, 3, 4, 5:
				r := new(protocol.BrokerHeartbeatRequest)
				r.Default()
				r.BrokerId, r.BrokerEpoch, r.CurrentMetadataOffset = id, epoch, s.img.Offset()-int64(draw("lag", 3))
				r.WantFence, r.WantShutDown = draw("fence", 4) == 0, draw("shutdown", 5) == 0
				if draw("offline", 4) == 0 {
					r.OfflineLogDirs = dirs[:1+draw("offline", 2)]
				}
				if draw("cordon", 4) == 0 {
					r.CordonedLogDirs = dirs[:draw("cordon", 3)]
				}
				records = s.decide(func(d *Draft) { s.c.BrokerHeartbeat(d, r) })
			case 6:
				s.nowMs += int64(draw("time", 2)) * 9000
				records = s.decide(func(d *Draft) { s.c.FenceStale(d) })
			case 7:
				r := new(protocol.CreateTopicsRequest)
				r.Default()
				topic := protocol.CreateTopicsRequestCreatableTopic{Name: names[draw("name", 4)], NumPartitions: int32(1 + draw("partitions", 3)), ReplicationFactor: int16(1 + draw("rf", 3))}
				if draw("unclean", 3) == 0 {
					v := "true"
					topic.Configs = append(topic.Configs, protocol.CreateTopicsRequestCreatableTopicConfig{Name: "unclean.leader.election.enable", Value: &v})
				}
				if draw("minisr", 3) == 0 {
					v := "2"
					topic.Configs = append(topic.Configs, protocol.CreateTopicsRequestCreatableTopicConfig{Name: "min.insync.replicas", Value: &v})
				}
				r.Topics = append(r.Topics, topic)
				records = s.decide(func(d *Draft) { s.c.CreateTopics(d, Caller{}, r) })
			case 8:
				name := names[draw("name", 4)]
				records = s.decide(func(d *Draft) {
					s.c.DeleteTopics(d, Caller{Version: 6}, &protocol.DeleteTopicsRequest{Topics: []protocol.DeleteTopicsRequestDeleteTopicState{{Name: &name}}})
				})
			case 9:
				for t := range s.img.Topics().All() {
					p, _ := t.Partition(0)
					leader, ok := s.img.Brokers().ByID(p.Leader)
					if !ok {
						continue
					}
					var isr []protocol.AlterPartitionRequestBrokerState
					for _, n := range p.Replicas {
						if n == p.Leader || draw("isr", 2) == 0 {
							isr = append(isr, protocol.AlterPartitionRequestBrokerState{BrokerId: int32(n), BrokerEpoch: -1})
						}
					}
					r := &protocol.AlterPartitionRequest{BrokerId: int32(leader.ID), BrokerEpoch: leader.Epoch, Topics: []protocol.AlterPartitionRequestTopicData{{TopicId: model.UUID(t.ID), Partitions: []protocol.AlterPartitionRequestPartitionData{{
						LeaderEpoch: int32(p.LeaderEpoch), PartitionEpoch: int32(p.PartitionEpoch), NewIsrWithEpochs: isr,
					}}}}}
					records = s.decide(func(d *Draft) { s.c.AlterPartition(d, Caller{Version: 3}, r) })
					break
				}
			case 10:
				r := &protocol.AssignReplicasToDirsRequest{BrokerId: id, BrokerEpoch: epoch}
				for t := range s.img.Topics().All() {
					dir := append(dirs, s.uuids([]string{"LOST", "UNASSIGNED", "foreign"})...)[draw("dir", 5)]
					r.Directories = append(r.Directories, protocol.AssignReplicasToDirsRequestDirectoryData{Id: dir, Topics: []protocol.AssignReplicasToDirsRequestTopicData{{TopicId: model.UUID(t.ID), Partitions: []protocol.AssignReplicasToDirsRequestPartitionData{{}}}}})
				}
				records = s.decide(func(d *Draft) { s.c.AssignReplicasToDirs(d, r) })
			case 11:
				switch draw("task", 4) {
				case 0:
					records = s.decide(func(d *Draft) { s.c.BalanceLeaders(d) })
				case 1:
					records = s.decide(func(d *Draft) { s.c.ElectUnclean(d) })
				case 2:
					records = s.decide(func(d *Draft) { s.c.UnregisterBroker(d, &protocol.UnregisterBrokerRequest{BrokerId: id}) })
				case 3:
					r := new(protocol.ElectLeadersRequest)
					r.Default()
					r.TopicPartitions, r.ElectionType = nil, int8(draw("type", 2))
					records = s.decide(func(d *Draft) { s.c.ElectLeaders(d, r) })
				}
			}
			checkImage(rt, s.img)
			checkEpochs(rt, before, s.img)
			for _, v := range records {
				if lo, hi, _ := protocol.MetadataRecordVersions(v.Record.RecordKey()); v.Version < lo || v.Version > hi {
					rt.Fatalf("%s at version %d", image.RecordName(v.Record), v.Version)
				}
			}
		}
	})
}

func checkImage(t *rapid.T, img *image.Image) {
	for topic := range img.Topics().All() {
		for i, p := range topic.Partitions() {
			say := func(what string) { t.Fatalf("%s-%d %s: %+v", topic.Name, i, what, *p) }
			if !containsAll(p.Replicas, p.ISR) || !containsAll(p.Replicas, p.ELR) {
				say("has an ISR or ELR outside its replicas")
			}
			if slices.ContainsFunc(p.ELR, func(n model.NodeID) bool { return slices.Contains(p.ISR, n) }) {
				say("has a member in ISR and ELR")
			}
			if len(p.Directories) != len(p.Replicas) {
				say("has directories beside replicas that do not match")
			}
			if len(p.ISR) == 0 && !img.Features().ELREnabled() {
				say("lost its ISR")
			}
			if !p.HasLeader() {
				continue
			}
			if !slices.Contains(p.ISR, p.Leader) {
				say("has a leader outside the ISR")
			}
			b, ok := img.Brokers().ByID(p.Leader)
			if !ok || b.Fenced {
				say("is led by a broker that is fenced or gone")
			}
			if dir, _ := p.Directory(p.Leader); !b.HasOnlineDir(dir) && img.Features().MetadataVersion().DirectoryAssignment() {
				say("is led from a dead directory")
			}
		}
	}
}

func checkEpochs(t *rapid.T, before, after *image.Image) {
	for topic := range after.Topics().All() {
		old, ok := before.Topics().ByID(topic.ID)
		if !ok {
			continue
		}
		for i, p := range topic.Partitions() {
			q, ok := old.Partition(i)
			if !ok {
				continue
			}
			if p.PartitionEpoch < q.PartitionEpoch || p.LeaderEpoch < q.LeaderEpoch || p.Leader != q.Leader && p.LeaderEpoch == q.LeaderEpoch {
				t.Fatalf("epochs of %s-%d: %+v -> %+v", topic.Name, i, *q, *p)
			}
		}
	}
}
