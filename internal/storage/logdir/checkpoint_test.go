package logdir

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// D-41, D-42, J-183: the text form of offset checkpoints.
func TestCheckpointText(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Checkpoint
	}{
		"empty_file":      {"", Checkpoint{}},
		"version_alone":   {"0\n", Checkpoint{}},
		"no_entries":      {"0\n0\n", Checkpoint{}},
		"entries":         {"0\n2\nfoo 0 17\na-b 12 9223372036854775807\n", Checkpoint{tpOf("foo", 0): 17, tpOf("a-b", 12): 9223372036854775807}},
		"no_last_newline": {"0\n1\nfoo 0 17", Checkpoint{tpOf("foo", 0): 17}},
		"crlf":            {"0\r\n1\r\nfoo 0 17\r\n", Checkpoint{tpOf("foo", 0): 17}},
		"wide_blanks":     {"0\n1\nfoo   0\t17\n", Checkpoint{tpOf("foo", 0): 17}},
	} {
		got, err := ParseCheckpoint([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
	if got := string(Checkpoint{}.Append(nil)); got != "0\n0\n" {
		t.Errorf("no entries are written %q", got)
	}
	if got := string(Checkpoint{tpOf("foo", 0): 17}.Append(nil)); got != "0\n1\nfoo 0 17\n" {
		t.Errorf("one entry is written %q", got)
	}
}

// D-41, D-220: a damaged file is an error that names the line.
func TestParseCheckpointFaults(t *testing.T) {
	for fault, c := range map[string]struct{ text, says string }{
		"garbage":          {"garbage", "line 1"},
		"blank_line":       {"\n", "line 1"},
		"version_1":        {"1\n0\n", "version 1"},
		"count_text":       {"0\nmany\n", "line 2"},
		"count_negative":   {"0\n-1\n", "line 2"},
		"count_too_large":  {"0\n2000000000\nfoo 0 1\n", "2000000000 entries, but 1"},
		"count_too_small":  {"0\n1\nfoo 0 1\nfoo 1 1\n", "1 entries, but 2"},
		"two_fields":       {"0\n1\nfoo 0\n", "line 3"},
		"four_fields":      {"0\n1\nfoo 0 1 2\n", "line 3"},
		"partition_text":   {"0\n1\nfoo x 1\n", "partition"},
		"offset_text":      {"0\n1\nfoo 0 x\n", "offset"},
		"cut_in_the_count": {"0\n12\nfoo 0 1\n", "12 entries"},
		"zero_bytes":       {strings.Repeat("\x00", 40), "line 1"},
	} {
		_, err := ParseCheckpoint([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something about %q", fault, err, c.says)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte("0\n2\nfoo 0 17\nbar 1 -1\n"))
	f.Add([]byte("0\n999999999\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseCheckpoint(text)
		if err != nil {
			return
		}
		again, err := ParseCheckpoint(c.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c, again); d != "" {
			t.Fatalf("(-first +second)\n%s", d)
		}
	})
}

// D-45, J-42: the marker's bytes, and that any marker counts.
func TestCleanMarkerText(t *testing.T) {
	if got := string(appendCleanMarker(nil, 42)); got != `{"version":0,"brokerEpoch":42}` {
		t.Errorf("written as %s", got)
	}
	for name, c := range map[string]struct {
		text string
		want int64
	}{
		"ours": {`{"version":0,"brokerEpoch":42}`, 42}, "more_fields": {`{"brokerEpoch":7,"x":[1]}`, 7},
		"empty": {"", -1}, "garbage": {"garbage", -1}, "no_epoch": {`{"version":0}`, -1}, "text_epoch": {`{"brokerEpoch":"7"}`, -1},
	} {
		if got := parseCleanMarker([]byte(c.text)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
