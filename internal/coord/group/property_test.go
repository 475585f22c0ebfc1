package group

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// TestOffsetsAgainstTwin: whatever is committed, deleted, expired, held back, refused and reloaded, a fetch sees exactly what
// a plain map of the committed records says (D-168, D-174, T-83).
func TestOffsetsAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.quiet = true
		twin := func() map[string]int64 { // the log, applied record by record
			m := map[string]int64{}
			c := w.newCore()
			for i, r := range w.log {
				if err := c.Replay(int64(i), -1, r.Key, r.Value); err != nil {
					t.Fatal(err)
				}
			}
			for id, g := range c.offsets.groups {
				for topic, ps := range g.topics {
					for p, s := range ps.parts {
						if s.has {
							m[fmt.Sprint(id, topic, p)] = s.committed.Offset
						}
					}
				}
			}
			return m
		}
		seen := func() map[string]int64 {
			m := map[string]int64{}
			for id, g := range w.core.offsets.groups {
				for topic, ps := range g.topics {
					for p, s := range ps.parts {
						if s.has {
							m[fmt.Sprint(id, topic, p)] = s.committed.Offset
						}
					}
				}
			}
			return m
		}
		next := int64(0)
		acked := map[string]int64{} // only ever compared with: what was answered NONE and nothing else touched
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			group := rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group")
			topic := rapid.SampledFrom([]string{"t", "u"}).Draw(t, "topic")
			part := rapid.IntRange(0, 1).Draw(t, "partition")
			id := byte(rapid.IntRange(1, 2).Draw(t, "id"))
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2:
				next++
				w.out.Reset()
				w.commitOffsets("A", commitArgs{group: group, generation: -1, retention: -1, id: id, version: 9, offsets: []string{fmt.Sprintf("%s-%d=%d", topic, part, next)}})
				if w.out.String() == "A: NONE\n" {
					acked[fmt.Sprint(group, topic, part)] = next
				}
			case 3:
				w.core.TopicsDeleted(w.now, []DeletedTopic{{Name: topic, ID: model.TopicID(topicID(id))}})
				w.settle()
				clear(acked)
			case 4:
				w.core.DeleteGroups(w.now, []string{group}, ignoreDeleted)
				w.settle()
				clear(acked)
			case 5:
				w.hold = true
			case 6:
				w.hold = false
				w.release(rapid.SampledFrom([]error{nil, nil, kerr.NotLeaderOrFollower}).Draw(t, "outcome"))
				clear(acked)
			case 7:
				w.refuse = rapid.SampledFrom([]error{nil, kerr.NotEnoughReplicas}).Draw(t, "refuse")
			case 8:
				w.pass(rapid.Int64Range(0, 7*24*3600_000).Draw(t, "ms"))
				clear(acked)
			case 9:
				w.reload()
				for k, v := range acked {
					if seen()[k] != v {
						t.Fatalf("%s: acknowledged %d is lost: %v", k, v, seen())
					}
				}
			}
			if got, want := seen(), twin(); !maps.Equal(got, want) {
				t.Fatalf("a fetch sees %v, the log says %v", got, want)
			}
			checkOffsets(t, w.core)
		}
		w.hold, w.refuse = false, nil
		w.release(nil)
		before := seen()
		w.reload()
		if after := seen(); !maps.Equal(before, after) {
			t.Fatalf("reloaded %v, had %v", after, before)
		}
	})
}

// checkOffsets: nothing is kept that holds nothing, and the count is right.
func checkOffsets(t interface{ Fatalf(string, ...any) }, c *Core) {
	n := 0
	for id, g := range c.offsets.groups {
		if len(g.topics) == 0 {
			t.Fatalf("group %q holds no topic", id)
		}
		for name, topic := range g.topics {
			if len(topic.parts) == 0 {
				t.Fatalf("topic %q holds no partition", name)
			}
			for _, s := range topic.parts {
				if s.has {
					n++
				}
				if !s.has && len(s.changes) == 0 && s.open == 0 {
					t.Fatalf("an offset of %q that holds nothing is kept", name)
				}
			}
		}
	}
	if n != c.offsets.n {
		t.Fatalf("%d offsets are counted, there are %d", c.offsets.n, n)
	}
}
