package image

import (
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// K-82: the numbers that stand in records for kinds of things are Kafka's.
func TestNumbersInRecords(t *testing.T) {
	for name, c := range map[string][2]int8{
		"topic": {ResourceTopic, 2}, "broker": {ResourceBroker, 4}, "broker_logger": {ResourceBrokerLogger, 8},
		"client_metrics": {ResourceClientMetrics, 16}, "group": {ResourceGroup, 32},
		"scram_sha_256": {ScramSHA256, 1}, "scram_sha_512": {ScramSHA512, 2},
		"recovered": {RecoveryRecovered, 0}, "recovering": {RecoveryRecovering, 1},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %d, Kafka's is %d", name, c[0], c[1])
		}
	}
	for name, c := range map[string][2]model.DirectoryID{
		"migrating": {model.DirMigrating, {}}, "unassigned": {model.DirUnassigned, {15: 1}}, "lost": {model.DirLost, {15: 2}},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %s", name, c[0])
		}
	}
	// And they come through a record: a recovering partition, a setting of each kind of resource.
	b := NewBuilder(Empty())
	id := model.UUID{1}
	records := []Record{
		&protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: int16(MetadataVersionLatest)},
		&protocol.TopicRecord{Name: "a", TopicId: id},
		&protocol.PartitionRecord{TopicId: id, Replicas: []int32{1}, Isr: []int32{1}, Leader: 1, LeaderRecoveryState: 1, Directories: []model.UUID{{}}},
	}
	value := "v"
	for _, kind := range []int8{2, 4, 16, 32} {
		records = append(records, &protocol.ConfigRecord{ResourceType: kind, ResourceName: "1", Name: "k", Value: &value})
	}
	for i, r := range records {
		if err := b.Replay(r, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	img, _ := b.Build(Provenance{Offset: int64(len(records))})
	_, p, ok := img.Topics().Partition(model.TopicIDPartition{Topic: model.TopicID(id)})
	if !ok || p.LeaderRecoveryState != RecoveryRecovering || p.Directories[0] != model.DirMigrating {
		t.Errorf("partition %+v", p)
	}
	for _, kind := range []int8{ResourceTopic, ResourceBroker, ResourceClientMetrics, ResourceGroup} {
		if img.Configs(ConfigResource{kind, "1"})["k"] != "v" {
			t.Errorf("no settings of resource type %d", kind)
		}
	}
}

// T-05: the rules for new ids are not for ids that are there: one that is no version 4 and whose text begins with '-'
// is a topic like any other, by name, by id, and through a snapshot.
func TestForeignTopicID(t *testing.T) {
	id := model.UUID{0xf8, 1, 2, 3, 4, 5, 0x16, 7, 0x38, 9, 10, 11, 12, 13, 14, 15}
	if text := id.String(); text[0] != '-' {
		t.Fatalf("the id is %s, which is no good for this test", text)
	}
	back, err := model.ParseUUID(id.String())
	if err != nil || back != id {
		t.Fatalf("%s reads as %s: %v", id, back, err)
	}
	b := NewBuilder(Empty())
	for i, r := range []Record{
		&protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: int16(MetadataVersionLatest)},
		&protocol.TopicRecord{Name: "old", TopicId: id},
		&protocol.PartitionRecord{TopicId: id, Replicas: []int32{1}, Isr: []int32{1}, Leader: 1, Directories: []model.UUID{{9}}},
	} {
		if err := b.Replay(r, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	img, _ := b.Build(Provenance{Offset: 2})
	again := NewBuilder(Empty())
	if err := img.WriteSnapshot(func(r Versioned) error { return again.Replay(r.Record, 2) }); err != nil {
		t.Fatal(err)
	}
	snapshot, _ := again.Build(Provenance{Offset: 2})
	for _, img := range []*Image{img, snapshot} {
		byName, ok := img.Topics().ByName("old")
		byID, ok2 := img.Topics().ByID(model.TopicID(id))
		if !ok || !ok2 || byName != byID || byName.Count() != 1 {
			t.Errorf("by name %v, by id %v", byName, byID)
		}
	}
	remove := NewBuilder(img)
	if err := remove.Replay(&protocol.RemoveTopicRecord{TopicId: id}, 3); err != nil {
		t.Fatal(err)
	}
}
