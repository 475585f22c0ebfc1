package protocol

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// K-76, K-77, K-78: the vectors of the pages.
func TestMetadataRecordVectors(t *testing.T) {
	begin := "Bootstrap records"
	fence := Make[BrokerRegistrationChangeRecord]()
	fence.BrokerId, fence.BrokerEpoch, fence.Fenced = 3, 7, 1
	for name, c := range map[string]struct {
		hex     string
		version int16
		record  Record
	}{
		"feature_level":     {"01 0c 00 11" + hex.EncodeToString([]byte("metadata.version")) + "0019 00", 0, &FeatureLevelRecord{Name: "metadata.version", FeatureLevel: 25}},
		"no_op":             {"01 14 00 00", 0, &NoOpRecord{}},
		"end_transaction":   {"01 18 00 00", 0, &EndTransactionRecord{}},
		"begin_transaction": {"01 17 00 01 00 12 12" + hex.EncodeToString([]byte(begin)), 0, &BeginTransactionRecord{Name: &begin}},
		"fence_broker":      {"01 11 00 00000003 0000000000000007 01 00 01 01", 0, &fence},
	} {
		want := unhex(t, c.hex)
		got, err := AppendMetadataRecord(nil, c.record.RecordKey(), c.version, c.record)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: wrote %x, %v, want %x", name, got, err, want)
		}
		key, version, m, err := ReadMetadataRecord(want)
		if err != nil || key != c.record.RecordKey() || version != c.version {
			t.Fatalf("%s: read key %d version %d: %v", name, key, version, err)
		}
		again, err := AppendMetadataRecord(nil, key, version, m)
		if err != nil || !bytes.Equal(again, want) {
			t.Errorf("%s: read and wrote %x, %v", name, again, err)
		}
	}
}

// K-76: what a reader must refuse.
func TestMetadataRecordRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		hex  string
		want error
	}{
		"empty":           {"", ErrMalformed},
		"frame_0":         {"00 14 00 00", ErrVersion},
		"frame_2":         {"02 14 00 00", ErrVersion},
		"unknown_key":     {"01 06 00 00", ErrVersion},
		"huge_key":        {"01 ffffff7f 00 00", ErrVersion},
		"unknown_version": {"01 14 01 00", ErrVersion},
		"trailing_byte":   {"01 14 00 00 00", ErrMalformed},
		"no_body":         {"01 14 00", ErrMalformed},
		"endless_varint":  {"01 ffffffffff01 00 00", ErrMalformed},
	} {
		if _, _, m, err := ReadMetadataRecord(unhex(t, c.hex)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	if _, err := AppendMetadataRecord(nil, RecordTopic, 0, &NoOpRecord{}); !errors.Is(err, ErrVersion) {
		t.Errorf("record under another key: %v", err)
	}
}

// K-77, K-78.
func TestControlRecordVectors(t *testing.T) {
	if got := AppendControlKey(nil, ControlLeaderChange); !bytes.Equal(got, []byte{0, 0, 0, 2}) {
		t.Errorf("key of a leader change: %x", got)
	}
	if got, err := ReadControlKey([]byte{0, 0, 0, 6}); err != nil || got != ControlKRaftVoters {
		t.Errorf("key of a voter set: %v, %v", got, err)
	}
	for name, key := range map[string][]byte{"short": {0, 0, 0}, "negative_version": {255, 255, 0, 1}} {
		if _, err := ReadControlKey(key); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	voter := func(id int32) LeaderChangeMessageVoter { return LeaderChangeMessageVoter{VoterId: id} }
	m := LeaderChangeMessage{
		LeaderId:       1,
		Voters:         []LeaderChangeMessageVoter{voter(1), voter(2), voter(3)},
		GrantingVoters: []LeaderChangeMessageVoter{voter(1), voter(2)},
	}
	want := unhex(t, "0000 00000001 04 00000001 00 00000002 00 00000003 00 03 00000001 00 00000002 00 00")
	if got, err := m.Append(nil, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("leader change: %x, %v", got, err)
	}
}

// D-173: the frame of coordinator records.
func TestCoordinatorRecordFrame(t *testing.T) {
	key, err := AppendRecordKey([]byte("x"), &OffsetCommitKey{Group: "g", Topic: "t", Partition: 5})
	if err != nil || !bytes.Equal(key, unhex(t, "78 0001 0001 67 0001 74 00000005")) {
		t.Fatalf("key %x, %v", key, err)
	}
	typ, fields, err := RecordType(key[1:])
	if err != nil || typ != 1 {
		t.Fatalf("type %d, %v", typ, err)
	}
	k := NewGroupKey(typ)
	if rest, err := k.Read(fields, 0); err != nil || len(rest) != 0 || k.(*OffsetCommitKey).Partition != 5 {
		t.Fatalf("key %+v, %v", k, err)
	}
	value := Make[OffsetCommitValue]()
	value.Offset, value.Metadata, value.CommitTimestamp = 9, "m", 1
	b, err := AppendVersioned(nil, 3, &value)
	if err != nil || !bytes.Equal(b, unhex(t, "0003 0000000000000009 ffffffff 0001 6d 0000000000000001")) {
		t.Fatalf("value %x, %v", b, err)
	}
	v := NewGroupValue(typ)
	if version, rest, err := ReadVersioned(b, v); err != nil || version != 3 || len(rest) != 0 || v.(*OffsetCommitValue).Offset != 9 {
		t.Fatalf("value %+v, %v", v, err)
	}
	if _, _, err := RecordType([]byte{1}); err == nil {
		t.Error("a key of one byte is accepted")
	}
	if _, _, err := ReadVersioned([]byte{1}, v); err == nil {
		t.Error("a value of one byte is accepted")
	}
}

//
func TestRequestHeader(t *testing.T) {
	for name, c := range map[string]struct {
		hex           string
		client        string // "-" is null
		headerVersion int16
		rest          string
	}{
		"v1":             {"0003 0008 00000007 0002 6162 ff", "ab", 1, "ff"},
		"v1_null_client": {"0003 0008 00000007 ffff ff", "-", 1, "ff"},
		"v2":             {"0003 0009 00000007 0002 6162 00 ff", "ab", 2, "ff"},
		"v2_unknown_tag": {"0003 0009 00000007 ffff 01 07 02 aabb ff", "-", 2, "ff"},
		"unknown_key":    {"0004 0000 00000007 0000", "-", 0, "0000"},
	} {
		h, headerVersion, rest, err := ReadRequestHeader(unhex(t, c.hex))
		client := "-"
		if h.ClientId != nil {
			client = *h.ClientId
		}
		if err != nil || h.CorrelationId != 7 || client != c.client || headerVersion != c.headerVersion || !bytes.Equal(rest, unhex(t, c.rest)) {
			t.Errorf("%s: %+v, client %s, header version %d, rest %x, %v", name, h, client, headerVersion, rest, err)
		}
	}
	for name, s := range map[string]string{"seven_bytes": "00030009000000", "no_client": "0003 0008 00000007", "no_tags": "0003 0009 00000007 ffff"} {
		if _, _, _, err := ReadRequestHeader(unhex(t, s)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := AppendResponseHeader(nil, KeyApiVersions, 4, 7); !bytes.Equal(got, []byte{0, 0, 0, 7}) {
		t.Errorf("ApiVersions response header %x", got)
	}
	if got := AppendResponseHeader(nil, KeyFetch, 12, 7); !bytes.Equal(got, []byte{0, 0, 0, 7, 0}) {
		t.Errorf("Fetch v12 response header %x", got)
	}
}
