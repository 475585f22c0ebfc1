package image

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// dump is an image as the frames of its snapshot: two images are equal if their dumps are.
func dump(t fataler, img *Image) []string {
	var out []string
	err := img.WriteSnapshot(func(v Versioned) error {
		b, err := AppendFrame(nil, v)
		if err != nil {
			return err
		}
		out = append(out, fmt.Sprintf("%s %x", RecordName(v.Record), b))
		return nil
	})
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return out
}

// reload builds the image of a snapshot of img, through the bytes.
func reload(t fataler, img *Image) *Image {
	l := NewSnapshotLoader(img.Offset(), img.Epoch(), img.Provenance().TimestampMs)
	var batch [][]byte
	err := img.WriteSnapshot(func(v Versioned) error {
		b, err := AppendFrame(nil, v)
		batch = append(batch, b)
		return err
	})
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	if err := l.Batch(batch); err != nil {
		t.Fatalf("load: %v", err)
	}
	return l.Image()
}

type fataler interface{ Fatalf(string, ...any) }

// history draws records that fit the image they come after.
type history struct {
	t      *rapid.T
	img    *Image
	offset int64
	ids    byte
}

func (h *history) id() model.UUID {
	h.ids++
	return model.UUID{0: h.ids, 15: 200}
}

func (h *history) draw(label string, n int) int { return rapid.IntRange(0, n-1).Draw(h.t, label) }

func (h *history) topic() *Topic {
	all := slices.Collect(h.img.Topics().All())
	if len(all) == 0 {
		return nil
	}
	return all[h.draw("topic", len(all))]
}

func (h *history) ints(label string) []int32 {
	n := h.draw(label, 4)
	out := make([]int32, 0, n)
	for i := range n {
		out = append(out, int32(i+h.draw(label, 2)*4))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func text(s string) *string { return &s }

// next is one operation: the records of one batch.
func (h *history) next() []Record {
	switch h.draw("op", 22) {
	case 0, 1, 2:
		name := []string{"a", "b", "a.b", "a_b", "c.d_e", "orders"}[h.draw("name", 6)]
		if _, ok := h.img.Topics().ByName(name); ok {
			return nil
		}
		id := h.id()
		out := []Record{&protocol.TopicRecord{Name: name, TopicId: id}}
		for i := range h.draw("partitions", 80) {
			p := &Partition{Replicas: []model.NodeID{1, 2}, Directories: []model.DirectoryID{{1}, {2}}, ISR: []model.NodeID{1, 2}, Leader: 1}
			out = append(out, PartitionRecord(model.TopicID(id), int32(i), p, 33, true).Record)
		}
		return out
	case 3:
		if t := h.topic(); t != nil {
			return []Record{&protocol.RemoveTopicRecord{TopicId: model.UUID(t.ID)}}
		}
	case 4, 5, 6:
		t := h.topic()
		if t == nil || t.Count() == 0 {
			return nil
		}
		r := new(protocol.PartitionChangeRecord)
		r.Default()
		r.TopicId, r.PartitionId = model.UUID(t.ID), int32(h.draw("partition", int(t.Count())))
		if h.draw("leader", 2) == 0 {
			r.Leader = int32(h.draw("leader", 4)) - 1
		}
		if h.draw("isr", 2) == 0 {
			r.Isr = h.ints("isr")
		}
		if h.draw("elr", 2) == 0 {
			r.EligibleLeaderReplicas, r.LastKnownElr = h.ints("elr"), h.ints("last")
		}
		if h.draw("recovery", 2) == 0 {
			r.LeaderRecoveryState = int8(h.draw("recovery", 2))
		}
		if h.draw("reassign", 3) == 0 {
			r.Replicas, r.AddingReplicas, r.RemovingReplicas = []int32{1, 2, 3}, []int32{3}, []int32{1}
			r.Directories = []model.UUID{{1}, {2}, {3}}
		}
		return []Record{r}
	case 7:
		return []Record{&protocol.ClearElrRecord{}}
	case 8:
		if t := h.topic(); t != nil {
			return []Record{&protocol.ClearElrRecord{TopicName: t.Name}}
		}
	case 9, 10:
		r := new(protocol.RegisterBrokerRecord)
		r.Default()
		r.BrokerId, r.BrokerEpoch, r.IncarnationId = int32(h.draw("broker", 3)), h.offset, h.id()
		r.EndPoints = []protocol.RegisterBrokerRecordBrokerEndpoint{{Name: "PLAINTEXT", Host: "h", Port: 9092}}
		r.Features = []protocol.RegisterBrokerRecordBrokerFeature{{Name: "x", MaxSupportedVersion: 1}, {Name: FeatureMetadataVersion, MinSupportedVersion: 7, MaxSupportedVersion: 33}}
		r.LogDirs = []model.UUID{h.id(), h.id()}
		if h.draw("rack", 2) == 0 {
			r.Rack = text("r1")
		}
		return []Record{r}
	case 11, 12:
		for b := range h.img.Brokers().All() {
			r := new(protocol.BrokerRegistrationChangeRecord)
			r.Default()
			r.BrokerId, r.BrokerEpoch = int32(b.ID), b.Epoch
			r.Fenced = int8(h.draw("fenced", 3)) - 1
			r.InControlledShutdown = int8(h.draw("shutdown", 2))
			switch h.draw("dirs", 3) {
			case 0:
				r.CordonedLogDirs = []model.UUID{}
			case 1:
				r.LogDirs = UUIDs(b.Directories[:1])
				r.CordonedLogDirs = UUIDs(b.Directories[:1])
			}
			return []Record{r}
		}
	case 13:
		for b := range h.img.Brokers().All() {
			return []Record{&protocol.UnregisterBrokerRecord{BrokerId: int32(b.ID), BrokerEpoch: b.Epoch}}
		}
	case 14:
		r := new(protocol.RegisterControllerRecord)
		r.Default()
		r.ControllerId, r.IncarnationId = int32(h.draw("controller", 2)), h.id()
		r.EndPoints = []protocol.RegisterControllerRecordControllerEndpoint{{Name: "CONTROLLER", Host: "c", Port: 9093}}
		return []Record{r}
	case 15:
		for c := range h.img.Controllers().All() {
			return []Record{&protocol.UnregisterControllerRecord{ControllerId: int32(c.ID)}}
		}
	case 16, 17:
		r := &protocol.ConfigRecord{ResourceType: ResourceBroker, Name: []string{"k1", "k2"}[h.draw("key", 2)]}
		if t := h.topic(); t != nil && h.draw("kind", 2) == 0 {
			r.ResourceType, r.ResourceName = ResourceTopic, t.Name
		}
		if h.draw("delete", 3) > 0 {
			r.Value = text(fmt.Sprint(h.draw("value", 3)))
		}
		return []Record{r}
	case 18:
		e := []protocol.ClientQuotaRecordEntityData{{EntityType: "user", EntityName: text("u")}, {EntityType: "client-id"}}
		if h.draw("order", 2) == 0 {
			e[0], e[1] = e[1], e[0]
		}
		return []Record{&protocol.ClientQuotaRecord{Entity: e[:1+h.draw("entity", 2)], Key: "producer_byte_rate", Value: float64(h.draw("rate", 5)), Remove: h.draw("remove", 3) == 0}}
	case 19:
		if h.draw("what", 2) == 0 {
			return []Record{&protocol.ProducerIdsRecord{BrokerId: 1, NextProducerId: max(h.img.ProducerIDs(), 0) + 1000}}
		}
		return []Record{&protocol.FeatureLevelRecord{Name: []string{FeatureELR, FeatureGroup, FeatureKRaftVersion}[h.draw("feature", 3)], FeatureLevel: int16(h.draw("level", 2))}}
	case 20:
		if a := slices.Collect(h.img.ACLs().All()); len(a) > 0 && h.draw("remove", 2) == 0 {
			return []Record{&protocol.RemoveAccessControlEntryRecord{Id: a[0].ID}}
		}
		return []Record{&protocol.AccessControlEntryRecord{Id: h.id(), ResourceType: 2, ResourceName: "a", PatternType: 3, Principal: "User:u", Host: "*", Operation: 3, PermissionType: 3}}
	case 21:
		if h.draw("what", 2) == 0 {
			if _, ok := h.img.Scram().Of(1, "u"); ok && h.draw("remove", 2) == 0 {
				return []Record{&protocol.RemoveUserScramCredentialRecord{Name: "u", Mechanism: 1}}
			}
			return []Record{&protocol.UserScramCredentialRecord{Name: "u", Mechanism: 1, Salt: []byte{1}, StoredKey: []byte{2}, ServerKey: []byte{byte(h.draw("key", 3))}, Iterations: 4096}}
		}
		if _, ok := h.img.Tokens().ByID("t"); ok && h.draw("remove", 2) == 0 {
			return []Record{&protocol.RemoveDelegationTokenRecord{TokenId: "t"}}
		}
		return []Record{&protocol.DelegationTokenRecord{TokenId: "t", Owner: "User:a", Requester: "User:b", Renewers: []string{"User:c"}, IssueTimestamp: 1, MaxTimestamp: 9, ExpirationTimestamp: int64(h.draw("expiry", 5))}}
	}
	return nil
}

// changes is what a delta says, for comparison. A config written again with its old value shows in a
// delta of records only.
func changes(d *Delta) []string {
	var out []string
	for _, c := range d.Topics {
		out = append(out, fmt.Sprintf("topic %v old %v new %v", c.ID, c.Old != nil, c.New != nil))
		for _, p := range c.Partitions {
			out = append(out, fmt.Sprintf("  partition %d: %+v -> %+v", p.Index, p.Old, p.New))
		}
	}
	for _, c := range d.Brokers {
		out = append(out, fmt.Sprintf("broker %d: %+v -> %+v", c.ID, c.Old, c.New))
	}
	for _, c := range d.Controllers {
		out = append(out, fmt.Sprintf("controller %d: %v -> %v", c.ID, c.Old != nil, c.New != nil))
	}
	for _, c := range d.ACLs {
		out = append(out, fmt.Sprintf("acl %+v", c))
	}
	return append(out, fmt.Sprint(d.Features, d.ProducerIDs))
}

// An image built by deltas equals the image of its snapshot and the image replayed in one go; every
// version stays what it was; and a delta of records says what the comparison of the two images says.
// K-85, K-173, K-175, T-14, T-16, T-17.
func TestImagesFromRecordsSnapshotsAndReplayAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, img: Empty()}
		first := []Record{&protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 33}, &protocol.FeatureLevelRecord{Name: FeatureELR, FeatureLevel: 1}}
		type version struct {
			img  *Image
			dump []string
		}
		var versions []version
		replay := NewBuilder(Empty())
		published := Empty()
		asm := NewAssembler(published)
		for n := range rapid.IntRange(1, 40).Draw(t, "batches") {
			batch := first
			if n > 0 {
				batch = h.next()
				if len(batch) == 0 {
					continue
				}
			}
			next, delta, err := h.img.Apply(batch, h.offset, 1, 5)
			if err != nil {
				t.Fatalf("apply: %v", err)
			}
			want, got := changes(Diff(h.img, next)), changes(delta)
			if !elrOff(next) {
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("delta of records differs from the difference of images:\n%s", d)
				}
			}
			var values [][]byte
			for i, r := range batch {
				if err := replay.Replay(r, h.offset+int64(i)); err != nil {
					t.Fatalf("replay: %v", err)
				}
				b, err := AppendFrame(nil, Versioned{r, latest(r)})
				if err != nil {
					t.Fatalf("frame: %v", err)
				}
				values = append(values, b)
			}
			if err := asm.Batch(values, h.offset, h.offset+int64(len(batch))-1, 1, 5); err != nil {
				t.Fatalf("assembler: %v", err)
			}
			if rapid.Bool().Draw(t, "publish") {
				img, d := asm.Publish()
				if d.From != published || d.To != img {
					t.Fatalf("a publication does not start where the last one ended")
				}
				published = img
			}
			h.img, h.offset = next, h.offset+int64(len(batch))
			versions = append(versions, version{next, dump(t, next)})
		}
		last := versions[len(versions)-1]
		whole, _ := replay.Build(last.img.Provenance())
		published, _ = asm.Publish()
		for name, img := range map[string]*Image{"replayed": whole, "assembled": published, "from_snapshot": reload(t, last.img)} {
			if d := cmp.Diff(last.dump, dump(t, img)); d != "" {
				t.Fatalf("image %s differs:\n%s", name, d)
			}
			if img.Topics().PartitionCount() != last.img.Topics().PartitionCount() || img.Offset() != last.img.Offset() {
				t.Fatalf("image %s: %d partitions at %d", name, img.Topics().PartitionCount(), img.Offset())
			}
			for topic := range last.img.Topics().All() {
				a, _ := last.img.Topics().Collision(topic.Name)
				b, _ := img.Topics().Collision(topic.Name)
				if a != b {
					t.Fatalf("image %s: %s collides with %q, want %q", name, topic.Name, b, a)
				}
			}
		}
		for i, v := range versions {
			if !slices.Equal(v.dump, dump(t, v.img)) {
				t.Fatalf("version %d changed under later ones", i)
			}
		}
	})
}

// elrOff images cannot show ELR in a snapshot, so comparisons through one would differ.
func elrOff(img *Image) bool { return !img.Features().ELREnabled() }

func latest(r Record) int16 {
	_, v, _ := protocol.MetadataRecordVersions(r.RecordKey())
	return v
}

// K-76.
func TestFrameVectors(t *testing.T) {
	change := new(protocol.BrokerRegistrationChangeRecord)
	change.Default()
	change.BrokerId, change.BrokerEpoch, change.Fenced = 3, 7, 1
	id := model.UUID{0x46, 0xbd}
	for name, c := range map[string]struct {
		r Record
		v int16
		b []byte
	}{
		"metadata_version_25": {&protocol.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 25}, 0, append(append([]byte{1, 0x0c, 0, 0x11}, "metadata.version"...), 0, 25, 0)},
		"no_op":               {new(protocol.NoOpRecord), 0, []byte{1, 0x14, 0, 0}},
		"end_transaction":     {new(protocol.EndTransactionRecord), 0, []byte{1, 0x18, 0, 0}},
		"begin_transaction":   {&protocol.BeginTransactionRecord{Name: text("Bootstrap records")}, 0, append([]byte{1, 0x17, 0, 1, 0, 0x12, 0x12}, "Bootstrap records"...)},
		"fence_broker_3":      {change, 0, []byte{1, 0x11, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 1, 0, 1, 1}},
		// T-09, T-11.
		"topic_a":      {&protocol.TopicRecord{Name: "a", TopicId: id}, 0, append(append([]byte{1, 2, 0, 2, 0x61}, id[:]...), 0)},
		"remove_topic": {&protocol.RemoveTopicRecord{TopicId: id}, 0, append(append([]byte{1, 9, 0}, id[:]...), 0)},
	} {
		got, err := AppendFrame([]byte("head"), Versioned{c.r, c.v})
		if err != nil || !bytes.Equal(got, append([]byte("head"), c.b...)) {
			t.Errorf("%s: %x, %v; want %x", name, got[4:], err, c.b)
		}
		back, err := ReadFrame(c.b)
		if err != nil || back.Version != c.v || cmp.Diff(c.r, back.Record) != "" {
			t.Errorf("%s: read back %+v, %v", name, back, err)
		}
	}
}

// K-76: nothing unreadable is skipped.
func TestReadFrameRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":               {},
		"frame_version_0":     {0, 0x14, 0, 0},
		"frame_version_2":     {2, 0x14, 0, 0},
		"no_key":              {1},
		"key_too_large":       {1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0},
		"varint_too_long":     {1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0},
		"retired_key_6":       {1, 6, 0, 0},
		"unknown_key":         {1, 99, 0, 0},
		"unsupported_version": {1, 0x14, 1, 0},
		"cut_body":            {1, 9, 0, 1, 2, 3},
		"trailing_byte":       {1, 0x14, 0, 0, 0},
	} {
		if v, err := ReadFrame(b); err == nil {
			t.Errorf("%s: read as %T", name, v.Record)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{1, 0x14, 0, 0})
	f.Add([]byte{1, 0x11, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 1, 0, 1, 1})
	f.Add(append([]byte{1, 3, 2}, make([]byte, 60)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := ReadFrame(b)
		if err != nil {
			return
		}
		again, err := AppendFrame(nil, v)
		if err != nil {
			t.Fatalf("%s read but not written: %v", RecordName(v.Record), err)
		}
		w, err := ReadFrame(again)
		if err != nil {
			t.Fatalf("%s written but not read: %v", RecordName(v.Record), err)
		}
		_ = NewBuilder(Empty()).Replay(w.Record, 0) // whatever it says, no panic
	})
}
