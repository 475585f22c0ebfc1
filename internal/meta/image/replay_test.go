package image

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

var (
	idA = model.UUID{0xa, 15: 200}
	idB = model.UUID{0xb, 15: 200}
	idC = model.UUID{0xc, 15: 200}
)

func part(topic model.UUID, index int32) Record {
	p := &Partition{Replicas: []model.NodeID{1, 2, 3}, Directories: []model.DirectoryID{{1}, {2}, {3}}, ISR: []model.NodeID{1, 2, 3}, Leader: 1}
	return PartitionRecord(model.TopicID(topic), index, p, 33, true).Record
}

func must(t *testing.T, img *Image, records ...Record) (*Image, *Delta) {
	t.Helper()
	next, delta, err := img.Apply(records, img.Offset()+1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return next, delta
}

func partitionChange(f func(*protocol.PartitionChangeRecord)) *protocol.PartitionChangeRecord {
	r := new(protocol.PartitionChangeRecord)
	r.Default()
	r.TopicId, r.PartitionId = idA, 0
	f(r)
	return r
}

// T-13, K-85: what does not fit is an error that names the topic and the ids, and changes nothing.
func TestReplayIsStrict(t *testing.T) {
	broker := new(protocol.RegisterBrokerRecord)
	broker.Default()
	broker.BrokerId, broker.BrokerEpoch = 1, 10
	img, _ := must(t, Empty(),
		&protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 33},
		&protocol.TopicRecord{Name: "a", TopicId: idA}, part(idA, 0), broker,
		&protocol.ProducerIdsRecord{NextProducerId: 1000})
	before := dump(t, img)
	for name, c := range map[string]struct {
		r    Record
		says string
	}{
		"name_is_live":             {&protocol.TopicRecord{Name: "a", TopicId: idB}, model.TopicID(idA).String()},
		"id_is_live":               {&protocol.TopicRecord{Name: "b", TopicId: idA}, "topic a"},
		"partition_of_unknown_id":  {part(idB, 0), model.TopicID(idB).String()},
		"change_of_unknown_id":     {partitionChange(func(r *protocol.PartitionChangeRecord) { r.TopicId = idB }), model.TopicID(idB).String()},
		"change_of_unknown_index":  {partitionChange(func(r *protocol.PartitionChangeRecord) { r.PartitionId = 7 }), "partition 7"},
		"removal_of_unknown_id":    {&protocol.RemoveTopicRecord{TopicId: idB}, model.TopicID(idB).String()},
		"clear_elr_of_unknown":     {&protocol.ClearElrRecord{TopicName: "b"}, "b"},
		"partition_index_negative": {part(idA, -1), "-1"},
		"partition_index_huge":     {part(idA, 1<<30), "1073741824"},
		"directories_too_few":      {partitionChange(func(r *protocol.PartitionChangeRecord) { r.Directories = []model.UUID{{1}} }), "1 directories for 3 replicas"}, // J-06
		"replica_twice":            {partitionChange(func(r *protocol.PartitionChangeRecord) { r.Replicas = []int32{1, 1, 2} }), "twice"},
		"recovery_state_unknown":   {partitionChange(func(r *protocol.PartitionChangeRecord) { r.LeaderRecoveryState = 5 }), "5"},
		"unregister_unknown":       {&protocol.UnregisterBrokerRecord{BrokerId: 9}, "9"},
		"unregister_other_epoch":   {&protocol.UnregisterBrokerRecord{BrokerId: 1, BrokerEpoch: 9}, "epoch 10"},
		"fence_other_epoch":        {&protocol.FenceBrokerRecord{Id: 1, Epoch: 9}, "epoch 10"},
		"change_other_epoch":       {&protocol.BrokerRegistrationChangeRecord{BrokerId: 1, BrokerEpoch: 9}, "epoch 10"},
		"change_fenced_unknown":    {&protocol.BrokerRegistrationChangeRecord{BrokerId: 1, BrokerEpoch: 10, Fenced: 3}, "3"},
		"unregister_controller":    {&protocol.UnregisterControllerRecord{ControllerId: 4}, "4"},
		"producer_ids_fall":        {&protocol.ProducerIdsRecord{NextProducerId: 1000}, "1000"},
		"metadata_version_34":      {&protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 34}, "34"}, // K-114
		"metadata_version_6":       {&protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 6}, "6"},
		"acl_unknown":              {&protocol.RemoveAccessControlEntryRecord{Id: idC}, model.UUID(idC).String()},
		"scram_unknown":            {&protocol.RemoveUserScramCredentialRecord{Name: "u", Mechanism: 1}, "u"},
		"token_unknown":            {&protocol.RemoveDelegationTokenRecord{TokenId: "x"}, "x"},
	} {
		b := NewBuilder(img)
		err := b.Replay(c.r, 77)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "offset 77") {
			t.Errorf("%s: %v", name, err)
		}
		after, _ := b.Build(img.Provenance())
		if d := cmp.Diff(before, dump(t, after)); d != "" {
			t.Errorf("%s: changed the image:\n%s", name, d)
		}
	}
}

// K-83, J-101, K-155: how a change merges.
func TestPartitionMerge(t *testing.T) {
	base := Partition{
		Replicas: []model.NodeID{1, 2, 3}, Directories: []model.DirectoryID{{1}, {2}, {3}}, ISR: []model.NodeID{1, 2}, ELR: []model.NodeID{3},
		Leader: 1, LeaderEpoch: 4, PartitionEpoch: 9,
	}
	migrating := base
	migrating.Directories = make([]model.DirectoryID, 3)
	for name, c := range map[string]struct {
		from   Partition
		change func(*protocol.PartitionChangeRecord)
		want   func(*Partition)
	}{
		"nothing_still_bumps_the_partition_epoch": {base, func(*protocol.PartitionChangeRecord) {}, func(*Partition) {}},
		"same_leader_named_bumps_its_epoch":       {base, func(r *protocol.PartitionChangeRecord) { r.Leader = 1 }, func(p *Partition) { p.LeaderEpoch = 5 }},
		"no_leader":                               {base, func(r *protocol.PartitionChangeRecord) { r.Leader = -1 }, func(p *Partition) { p.Leader, p.LeaderEpoch = -1, 5 }},
		"isr_alone":                               {base, func(r *protocol.PartitionChangeRecord) { r.Isr = []int32{2} }, func(p *Partition) { p.ISR = []model.NodeID{2} }},
		"isr_emptied":                             {base, func(r *protocol.PartitionChangeRecord) { r.Isr = []int32{} }, func(p *Partition) { p.ISR = nil }},
		"elr_emptied":                             {base, func(r *protocol.PartitionChangeRecord) { r.EligibleLeaderReplicas = []int32{} }, func(p *Partition) { p.ELR = nil }},
		"recovery":                                {base, func(r *protocol.PartitionChangeRecord) { r.LeaderRecoveryState = 1 }, func(p *Partition) { p.LeaderRecoveryState = 1 }},
		"replicas_grow_without_directories": {migrating, func(r *protocol.PartitionChangeRecord) { r.Replicas = []int32{1, 2, 3, 4} }, func(p *Partition) {
			p.Replicas, p.Directories = []model.NodeID{1, 2, 3, 4}, make([]model.DirectoryID, 4)
		}},
		"replicas_change_keeps_directories": {base, func(r *protocol.PartitionChangeRecord) { r.Replicas = []int32{1, 2, 4} }, func(p *Partition) { p.Replicas = []model.NodeID{1, 2, 4} }},
	} {
		from := c.from
		got, err := MergePartition(&from, partitionChange(c.change))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := c.from
		want.PartitionEpoch++
		c.want(&want)
		if !got.Equal(&want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *got, want)
		}
	}
}

// T-14, T-16: a topic's configs go with it; created and deleted in one step leaves nothing; deletes come first.
func TestRecreationsOfOneNameInOneStep(t *testing.T) {
	value := "1"
	img, _ := must(t, Empty(),
		&protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 33},
		&protocol.TopicRecord{Name: "a.x", TopicId: idA}, part(idA, 0), part(idA, 1),
		&protocol.ConfigRecord{ResourceType: ResourceTopic, ResourceName: "a.x", Name: "retention.ms", Value: &value},
		&protocol.AccessControlEntryRecord{Id: idC, ResourceType: 2, ResourceName: "a.x"})
	next, delta := must(t, img,
		&protocol.RemoveTopicRecord{TopicId: idA},
		&protocol.TopicRecord{Name: "a.x", TopicId: idB}, part(idB, 0),
		&protocol.RemoveTopicRecord{TopicId: idB},
		&protocol.TopicRecord{Name: "a.x", TopicId: idC}, part(idC, 0))
	if len(delta.Topics) != 2 || delta.Topics[0].ID != model.TopicID(idA) || delta.Topics[0].New != nil || len(delta.Topics[0].Partitions) != 2 ||
		delta.Topics[1].ID != model.TopicID(idC) || delta.Topics[1].Old != nil {
		t.Fatalf("delta: %+v", delta.Topics)
	}
	if !slices.Equal(delta.Configs, []ConfigResource{{ResourceTopic, "a.x"}}) || next.TopicConfigs("a.x") != nil || img.TopicConfigs("a.x")["retention.ms"] != "1" {
		t.Fatalf("configs: %v, %v", delta.Configs, next.TopicConfigs("a.x"))
	}
	if next.ACLs().Len() != 1 {
		t.Fatal("the ACL went with the topic")
	}
	if got, ok := next.Topics().ByName("a.x"); !ok || got.ID != model.TopicID(idC) || next.Topics().PartitionCount() != 1 {
		t.Fatalf("topic: %+v", got)
	}
	if other, ok := next.Topics().Collision("a_x"); !ok || other != "a.x" {
		t.Fatalf("collision: %q", other)
	}
	gone, _ := must(t, next, &protocol.RemoveTopicRecord{TopicId: idC})
	if _, ok := gone.Topics().Collision("a_x"); ok || gone.Topics().Len() != 0 {
		t.Fatal("a deleted topic still collides")
	}
}

// K-84, K-172: part of a transaction is never seen; an aborted one leaves nothing; what precedes one is.
func TestAssemblerHidesOpenTransactions(t *testing.T) {
	frames := func(records ...Record) (out [][]byte) {
		for _, r := range records {
			b, err := AppendFrame(nil, Versioned{r, latest(r)})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, b)
		}
		return out
	}
	a := NewAssembler(Empty())
	feed := func(base int64, records ...Record) {
		if err := a.Batch(frames(records...), base, base+int64(len(records))-1, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	begin, end, abort := &protocol.BeginTransactionRecord{}, &protocol.EndTransactionRecord{}, &protocol.AbortTransactionRecord{}
	see := func(step string, offset int64, aligned bool, topics ...string) {
		t.Helper()
		img, _ := a.Publish()
		var got []string
		for topic := range img.Topics().All() {
			got = append(got, topic.Name)
		}
		if !slices.Equal(got, topics) || img.Offset() != offset || img.Provenance().BatchAligned != aligned {
			t.Fatalf("%s: %v at %d aligned %v; want %v at %d", step, got, img.Offset(), img.Provenance().BatchAligned, topics, offset)
		}
	}
	feed(0, &protocol.TopicRecord{Name: "a", TopicId: idA}, begin, &protocol.TopicRecord{Name: "b", TopicId: idB})
	see("begins_in_the_middle", 0, false, "a")
	feed(3, part(idB, 0))
	see("still_open", 0, false, "a")
	if a.TransactionStart() != 1 || a.Offset() != 3 {
		t.Fatalf("transaction at %d, offset %d", a.TransactionStart(), a.Offset())
	}
	feed(4, end, &protocol.TopicRecord{Name: "c", TopicId: idC})
	see("ended", 5, true, "a", "b", "c")
	feed(6, begin, &protocol.RemoveTopicRecord{TopicId: idA})
	see("open_again", 5, true, "a", "b", "c")
	feed(8, abort)
	see("aborted", 8, true, "a", "b", "c")
	if _, d := a.Publish(); d != nil {
		t.Fatal("nothing new was published")
	}
	feed(9, begin, &protocol.RemoveTopicRecord{TopicId: idA}, end)
	img, d := a.Publish()
	if len(d.Topics) != 1 || d.Topics[0].New != nil || img.Offset() != 11 {
		t.Fatalf("whole transaction in a batch: %+v", d)
	}
	for name, r := range map[string]Record{"end_without_begin": end, "abort_without_begin": abort} {
		if err := a.Batch(frames(r), 12, 12, 1, 0); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	feed(13, begin)
	if err := a.Batch(frames(begin), 14, 14, 1, 0); err == nil {
		t.Error("nested begin: accepted")
	}
	if err := NewSnapshotLoader(0, 0, 0).Batch(frames(begin)); err == nil {
		t.Error("a snapshot with a transaction record: accepted")
	}
}

// A record at fault is reported and the rest of its batch is taken: a broker goes on with what it has (K-176).
func TestAssemblerGoesOnAfterAFault(t *testing.T) {
	a := NewAssembler(Empty())
	good, _ := AppendFrame(nil, Versioned{&protocol.TopicRecord{Name: "a", TopicId: idA}, 0})
	bad, _ := AppendFrame(nil, Versioned{&protocol.RemoveTopicRecord{TopicId: idB}, 0})
	err := a.Batch([][]byte{bad, {9}, good}, 5, 7, 1, 0)
	if err == nil || !strings.Contains(err.Error(), "offset 5") || !strings.Contains(err.Error(), "offset 6") {
		t.Fatalf("faults: %v", err)
	}
	if img, _ := a.Publish(); img.Topics().Len() != 1 || img.Offset() != 7 {
		t.Fatalf("%d topics at %d", img.Topics().Len(), img.Offset())
	}
}

// T-17, K-175: a jump through a snapshot names what it lacks.
func TestReplaceGivesTheDifference(t *testing.T) {
	old, _ := must(t, Empty(), &protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 33},
		&protocol.TopicRecord{Name: "a", TopicId: idA}, part(idA, 0), &protocol.TopicRecord{Name: "b", TopicId: idB}, part(idB, 0))
	other, _ := must(t, Empty(), &protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 33},
		&protocol.TopicRecord{Name: "a", TopicId: idC}, part(idC, 0), &protocol.TopicRecord{Name: "b", TopicId: idB}, part(idB, 0))
	a := NewAssembler(old)
	loaded := reload(t, other).At(Provenance{Offset: 99, BatchAligned: true})
	a.Replace(loaded)
	img, d := a.Publish()
	if img != loaded || d.From != old || len(d.Topics) != 2 || d.Topics[0].ID != model.TopicID(idA) || d.Topics[0].New != nil || d.Topics[1].ID != model.TopicID(idC) {
		t.Fatalf("%+v", d.Topics)
	}
}

// K-173, K-205, T-10: kinds and order of the records of a snapshot, metadata.version first.
func TestSnapshotOrder(t *testing.T) {
	value, broker, controller := "1", new(protocol.RegisterBrokerRecord), new(protocol.RegisterControllerRecord)
	broker.Default()
	controller.Default()
	img, _ := must(t, Empty(),
		&protocol.DelegationTokenRecord{TokenId: "t"}, &protocol.UserScramCredentialRecord{Name: "u", Mechanism: 1},
		&protocol.AccessControlEntryRecord{Id: idA}, &protocol.ProducerIdsRecord{BrokerId: 3, BrokerEpoch: 4, NextProducerId: 1000},
		&protocol.ClientQuotaRecord{Entity: []protocol.ClientQuotaRecordEntityData{{EntityType: "user"}}, Key: "k", Value: 1},
		&protocol.ConfigRecord{ResourceType: ResourceBroker, Name: "k", Value: &value},
		&protocol.TopicRecord{Name: "b", TopicId: idB}, part(idB, 1), part(idB, 0), &protocol.TopicRecord{Name: "a", TopicId: idA}, part(idA, 0),
		controller, broker, &protocol.FeatureLevelRecord{Name: FeatureELR, FeatureLevel: 1},
		&protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 33}, &protocol.FeatureLevelRecord{Name: FeatureKRaftVersion, FeatureLevel: 1})
	var got []string
	img.WriteSnapshot(func(v Versioned) error {
		name := strings.TrimSuffix(RecordName(v.Record), "Record")
		switch r := v.Record.(type) {
		case *protocol.FeatureLevelRecord:
			name += " " + r.Name
		case *protocol.TopicRecord:
			name += " " + r.Name
		case *protocol.ProducerIdsRecord:
			if r.BrokerId != -1 || r.BrokerEpoch != -1 {
				t.Errorf("producer ids of broker %d, epoch %d", r.BrokerId, r.BrokerEpoch)
			}
		}
		got = append(got, name)
		return nil
	})
	want := []string{"FeatureLevel metadata.version", "FeatureLevel eligible.leader.replicas.version", "RegisterBroker", "RegisterController",
		"Topic a", "Partition", "Topic b", "Partition", "Partition", "Config", "ClientQuota", "ProducerIds", "AccessControlEntry", "UserScramCredential", "DelegationToken"}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
}

// K-81, K-111, J-98 to J-100: what each metadata.version may write.
func TestRecordVersionsByMetadataVersion(t *testing.T) {
	b := &Broker{ID: 1, Directories: []model.DirectoryID{{1}}, Cordoned: []model.DirectoryID{}}
	p := &Partition{Replicas: []model.NodeID{1}, Directories: []model.DirectoryID{{1}}, ISR: []model.NodeID{1}, ELR: []model.NodeID{2}}
	for mv := MetadataVersionMin; mv <= MetadataVersionLatest; mv++ {
		wantBroker, wantPartition := int16(1), int16(0)
		switch {
		case mv >= 30:
			wantBroker = 4
		case mv >= 17:
			wantBroker = 3
		case mv >= 8:
			wantBroker = 2
		}
		switch {
		case mv >= 23:
			wantPartition = 2
		case mv >= 17:
			wantPartition = 1
		}
		br, pr := BrokerRecord(b, mv), PartitionRecord(model.TopicID(idA), 0, p, mv, true)
		if br.Version != wantBroker || pr.Version != wantPartition {
			t.Errorf("level %d writes broker %d, partition %d", mv, br.Version, pr.Version)
		}
		for _, v := range []Versioned{br, pr} {
			if _, err := AppendFrame(nil, v); err != nil {
				t.Errorf("level %d: %s: %v", mv, RecordName(v.Record), err)
			}
		}
		if mv.String() == "unknown" || mv.String() == "" {
			t.Errorf("level %d has no name", mv)
		}
	}
	if MetadataVersion(25).ChangesFormat(24) || !MetadataVersion(25).ChangesFormat(22) || MetadataVersion(29).ChangesFormat(26) {
		t.Error("levels that change formats")
	}
}

// J-05, J-60.
func TestBrokerDirectories(t *testing.T) {
	one, two := model.DirectoryID{1}, model.DirectoryID{2}
	old := &Broker{}
	jbod := &Broker{Directories: []model.DirectoryID{one, two}, Cordoned: []model.DirectoryID{one}}
	single := &Broker{Directories: []model.DirectoryID{one}, Cordoned: []model.DirectoryID{one}}
	if !old.HasOnlineDir(model.DirLost) || !jbod.HasOnlineDir(model.DirUnassigned) || !jbod.HasOnlineDir(model.DirMigrating) ||
		jbod.HasOnlineDir(model.DirLost) || !jbod.HasOnlineDir(two) || jbod.HasOnlineDir(model.DirectoryID{3}) {
		t.Error("online test")
	}
	if old.DefaultDir() != model.DirMigrating || single.DefaultDir() != one || jbod.DefaultDir() != model.DirUnassigned {
		t.Error("default directory")
	}
	if !jbod.HasUncordonedDir() || single.HasUncordonedDir() || !old.HasUncordonedDir() {
		t.Error("cordoned")
	}
}

// A change of one partition of a large topic must not copy the topic.
func TestOnePartitionOfMany(t *testing.T) {
	records := []Record{&protocol.TopicRecord{Name: "a", TopicId: idA}}
	for i := range int32(5000) {
		records = append(records, part(idA, i))
	}
	img, _ := must(t, Empty(), records...)
	r := partitionChange(func(r *protocol.PartitionChangeRecord) { r.PartitionId, r.Leader = 4321, 2 })
	next, delta := must(t, img, r)
	if len(delta.Topics) != 1 || len(delta.Topics[0].Partitions) != 1 || delta.Topics[0].Partitions[0].Index != 4321 {
		t.Fatalf("delta: %+v", delta.Topics)
	}
	topic, _ := next.Topics().ByName("a")
	if p, _ := topic.Partition(4321); p.Leader != 2 || topic.Count() != 5000 {
		t.Fatal("the change is not there")
	}
	old, _ := img.Topics().ByName("a")
	if p, _ := old.Partition(4321); p.Leader != 1 {
		t.Fatal("the old image changed")
	}
	if _, ok := topic.Partition(5000); ok {
		t.Fatal("a partition beyond the last")
	}
	if n := testing.AllocsPerRun(20, func() { img.Apply([]Record{r}, 1, 1, 0) }); n > 80 {
		t.Fatalf("%v allocations for one change", n)
	}
}
