package logdir

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"samsa/internal/base/model"
)

const topicIDText = "Rr22P56NSji_e-5OsqeU5A"

var testTopicID = model.TopicID(mustUUID(topicIDText))

// T-19, D-44: Kafka's 43 bytes with the details off; T-26, T-27: four fields with them on.
func TestPartitionMetadataBytes(t *testing.T) {
	got := string(PartitionMetadata{TopicID: testTopicID}.Append(nil))
	if want := "version: 0\ntopic_id: " + topicIDText; got != want || len(got) != 43 {
		t.Errorf("%q (%d bytes), want %q", got, len(got), want)
	}
	got = string(PartitionMetadata{TopicID: testTopicID, Partition: ptr(tpOf("foo", 3))}.Append(nil))
	if want := "version: 0\ntopic_id: " + topicIDText + "\ntopic: foo\npartition: 3\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// T-22: as lenient as Kafka.
func TestParsePartitionMetadata(t *testing.T) {
	named := ptr(tpOf("foo", 3))
	for name, c := range map[string]struct {
		text string
		want *model.TopicPartition
	}{
		"kafka":           {"version: 0\ntopic_id: " + topicIDText, nil},
		"final_newline":   {"version: 0\ntopic_id: " + topicIDText + "\n", nil},
		"crlf":            {"version: 0\r\ntopic_id: " + topicIDText + "\r\n", nil},
		"version_7":       {"version: 7\ntopic_id: " + topicIDText, nil},
		"renamed_keys":    {"a: 0\nb:   " + topicIDText, nil},
		"padded_id":       {"version: 0\ntopic_id: " + topicIDText + "==", nil},
		"ten_more_lines":  {"version: 0\ntopic_id: " + topicIDText + strings.Repeat("\nx", 10), nil},
		"details":         {"version: 0\ntopic_id: " + topicIDText + "\ntopic: foo\npartition: 3\n", named},
		"details_reverse": {"version: 0\ntopic_id: " + topicIDText + "\npartition: 3\ntopic: foo", named},
		"half_details":    {"version: 0\ntopic_id: " + topicIDText + "\ntopic: foo\n", nil},
		"bad_details":     {"version: 0\ntopic_id: " + topicIDText + "\ntopic: foo\npartition: x\n", nil},
	} {
		got, err := ParsePartitionMetadata(c.text)
		if err != nil || got.TopicID != testTopicID {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if d := cmp.Diff(c.want, got.Partition); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// T-23: never "no id".
func TestParsePartitionMetadataFaults(t *testing.T) {
	for fault, c := range map[string]struct{ text, says string }{
		"empty":            {"", "empty"},
		"only_line_1":      {"version: 0", "ends after line 1"},
		"only_line_1_lf":   {"version: 0\n", "line 2"},
		"no_blank":         {"version:0\ntopic_id: " + topicIDText, "line 1"},
		"no_colon":         {"version 0\ntopic_id: " + topicIDText, "line 1"},
		"bad_number":       {"version: zero\ntopic_id: " + topicIDText, "version"},
		"negative_version": {"version: -1\ntopic_id: " + topicIDText, "version"},
		"zero_id":          {"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "zero id"},
		"bad_base64":       {"version: 0\ntopic_id: Rr22P56NSji_e-5OsqeU5*", "line 2"},
		"short_id":         {"version: 0\ntopic_id: Rr22P56NSji", "line 2"},
		"zero_bytes":       {strings.Repeat("\x00", 43), "line 1"},
		"cut_in_the_id":    {"version: 0\ntopic_id: ", "line 2"},
	} {
		_, err := ParsePartitionMetadata(c.text)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something about %q", fault, err, c.says)
		}
	}
}

func FuzzPartitionMetadata(f *testing.F) {
	f.Add("version: 0\ntopic_id: Rr22P56NSji_e-5OsqeU5A")
	f.Add("version: 0\ntopic_id: Rr22P56NSji_e-5OsqeU5A\ntopic: foo\npartition: 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParsePartitionMetadata(text)
		if err != nil {
			return
		}
		again, err := ParsePartitionMetadata(string(m.Append(nil)))
		if err != nil || again.TopicID != m.TopicID || m.TopicID.IsZero() {
			t.Fatalf("%v came back as %v, %v", m, again, err)
		}
	})
}
