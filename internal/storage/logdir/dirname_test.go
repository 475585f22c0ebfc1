package logdir

import (
	"strings"
	"testing"

	"samsa/internal/base/model"
)

func tpOf(topic string, partition int32) model.TopicPartition {
	return model.TopicPartition{Topic: topic, Partition: partition}
}

// T-111, T-115, D-38, D-52, D-53: what a name means.
func TestParseLogName(t *testing.T) {
	const hex = "0123456789abcdef0123456789abcdef"
	for name, want := range map[string]struct {
		tp   model.TopicPartition
		role Role
	}{
		"foo-0":                           {tpOf("foo", 0), Current},
		"a-1-2":                           {tpOf("a-1", 2), Current},
		"x.y-delete-0":                    {tpOf("x.y-delete", 0), Current},
		"b.0123-stray-7":                  {tpOf("b.0123-stray", 7), Current},
		"foo--1":                          {tpOf("foo-", 1), Current},
		"foo-12." + hex + "-delete":       {tpOf("foo", 12), Deleted},
		"a.b-0." + hex + "-stray":         {tpOf("a.b", 0), StrayLog},
		"a-b-3." + hex + "-future":        {tpOf("a-b", 3), Future},
		"-1-0":                            {tpOf("-1", 0), Current},
		".Trash-0":                        {tpOf(".Trash", 0), Current},
		"x.y-delete-0." + hex + "-delete": {tpOf("x.y-delete", 0), Deleted},
	} {
		tp, role, err := ParseLogName(name)
		if err != nil || tp != want.tp || role != want.role {
			t.Errorf("%s: %v %v %v", name, tp, role, err)
		}
	}
	for fault, name := range map[string]string{
		"no_dash": "foo", "lost_and_found": "lost+found", "hidden": ".snapshot", "no_partition": "foo-", "no_topic": "-0",
		"text_partition": "foo-bar", "sign": "foo-+1", "leading_zero": "foo-01", "too_large": "foo-2147483648",
		"suffix_without_id": "foo-delete", "empty": "", "only_suffix": "-delete", "id_without_partition": "foo." + hex + "-delete",
	} {
		if tp, role, err := ParseLogName(name); err == nil {
			t.Errorf("%s: %q parsed as %v %v", fault, name, tp, role)
		} else if !strings.Contains(err.Error(), "topic-partition") {
			t.Errorf("%s: %v does not say what a name looks like", fault, err)
		}
	}
}

// T-90, T-99, T-112, T-113: names are at most 255 bytes; only deletions and strays are cut.
func TestLogNameLength(t *testing.T) {
	id := model.RandomUUID()
	long := strings.Repeat("x", 249)
	for _, c := range []struct {
		topic     string
		partition int32
		role      Role
		length    int
		topicLen  int
		ok        bool
	}{
		{long, 0, Deleted, 255, 213, true},
		{long, 12, Deleted, 255, 212, true},
		{long, 0, StrayLog, 255, 214, true},
		{long[:213], 0, Deleted, 255, 213, true},
		{"foo", 0, Deleted, 3 + 2 + 1 + 32 + 7, 3, true},
		{long[:213], 0, Future, 255, 213, true},
		{long[:214], 0, Future, 256, 214, false},
		{long, 12345, Current, 255, 249, true},
		{long, 123456, Current, 256, 249, false},
	} {
		name, ok := LogName(tpOf(c.topic, c.partition), c.role, id)
		if len(name) != c.length || ok != c.ok {
			t.Errorf("%d characters, partition %d, %v: %d bytes, ok %v", len(c.topic), c.partition, c.role, len(name), ok)
		}
		tp, role, err := ParseLogName(name)
		if err != nil || role != c.role || tp.Partition != c.partition || tp.Topic != c.topic[:c.topicLen] {
			t.Errorf("%s: %v %v %v", name, tp, role, err)
		}
	}
	a, _ := LogName(tpOf("foo", 0), Deleted, model.RandomUUID())
	b, _ := LogName(tpOf("foo", 0), Deleted, model.RandomUUID())
	if a == b {
		t.Error("two deletions share a name")
	}
}

func FuzzParseLogName(f *testing.F) {
	f.Add("foo-0")
	f.Add("foo-0.0123456789abcdef0123456789abcdef-delete")
	f.Fuzz(func(t *testing.T, name string) {
		tp, role, err := ParseLogName(name)
		if err == nil && role == Current {
			if back, _ := LogName(tp, Current, model.UUID{}); back != name {
				t.Fatalf("%q is read as %v, which is written %q", name, tp, back)
			}
		}
	})
}
