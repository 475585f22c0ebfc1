package epochs

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"samsa/internal/base/model"
)

func of(pairs ...int64) *Cache {
	var c Cache
	for i := 0; i < len(pairs); i += 2 {
		c.Assign(model.LeaderEpoch(pairs[i]), pairs[i+1])
	}
	return &c
}

// TestAssign: D-135, D-43.
func TestAssign(t *testing.T) {
	cases := map[string]struct {
		before *Cache
		epoch  model.LeaderEpoch
		start  int64
		want   string
		change bool
	}{
		"first":                   {of(), 0, 0, "[{0 0}]", true},
		"next":                    {of(0, 0), 2, 10, "[{0 0} {2 10}]", true},
		"known":                   {of(0, 0, 2, 10), 2, 20, "[{0 0} {2 10}]", false},
		"known_but_earlier":       {of(0, 0, 2, 10), 2, 5, "[{0 0} {2 5}]", true},
		"same_start":              {of(0, 0, 2, 10), 3, 10, "[{0 0} {3 10}]", true},
		"idle_elections_collapse": {of(0, 0, 2, 10, 3, 10, 4, 10), 5, 10, "[{0 0} {5 10}]", true},
		"lower_epoch_later":       {of(0, 0, 4, 10), 2, 20, "[{0 0} {2 20}]", true},
		"lower_start":             {of(0, 0, 2, 10, 3, 20), 4, 5, "[{0 0} {4 5}]", true},
		"everything_contradicted": {of(3, 5, 4, 9), 1, 0, "[{1 0}]", true},
		"no_epoch":                {of(0, 0), -1, 7, "[{0 0}]", false},
		"identical":               {of(0, 0, 2, 10), 2, 10, "[{0 0} {2 10}]", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if change := c.before.Assign(c.epoch, c.start); change != c.change {
				t.Errorf("changed is %t", change)
			}
			if got := fmt.Sprint(c.before.Entries()); got != c.want {
				t.Errorf("got %s, expected %s", got, c.want)
			}
		})
	}
}

// TestEndOffset: D-134.
func TestEndOffset(t *testing.T) {
	c := of(2, 10, 4, 20, 7, 35)
	cases := map[string]struct {
		epoch, wantEpoch model.LeaderEpoch
		wantEnd          int64
	}{
		"latest":           {7, 7, 50},
		"above_the_latest": {8, -1, -1},
		"none":             {-1, -1, -1},
		"below_the_first":  {1, 1, 10},
		"first":            {2, 2, 20},
		"in_a_hole":        {3, 2, 20},
		"before_latest":    {6, 4, 35},
	}
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			if e, end := c.EndOffset(k.epoch, 50); e != k.wantEpoch || end != k.wantEnd {
				t.Errorf("got %d, %d; expected %d, %d", e, end, k.wantEpoch, k.wantEnd)
			}
		})
	}
	if e, end := of().EndOffset(0, 50); e != -1 || end != -1 {
		t.Errorf("empty: %d, %d", e, end)
	}
	for offset, want := range map[int64]model.LeaderEpoch{9: -1, 10: 2, 19: 2, 20: 4, 34: 4, 35: 7, 1000: 7} {
		if e, _ := c.EpochFor(offset); e != want {
			t.Errorf("offset %d: epoch %d, expected %d", offset, e, want)
		}
	}
}

// TestTruncate: D-70.
func TestTruncate(t *testing.T) {
	cases := map[string]struct {
		cut    func(*Cache) bool
		want   string
		change bool
	}{
		"end_inside":          {func(c *Cache) bool { return c.TruncateFromEnd(25) }, "[{2 10} {4 20}]", true},
		"end_at_a_start":      {func(c *Cache) bool { return c.TruncateFromEnd(20) }, "[{2 10}]", true},
		"end_behind":          {func(c *Cache) bool { return c.TruncateFromEnd(50) }, "[{2 10} {4 20} {7 35}]", false},
		"end_before_all":      {func(c *Cache) bool { return c.TruncateFromEnd(0) }, "[]", true},
		"start_inside":        {func(c *Cache) bool { return c.TruncateFromStart(25) }, "[{4 25} {7 35}]", true},
		"start_at_a_start":    {func(c *Cache) bool { return c.TruncateFromStart(20) }, "[{4 20} {7 35}]", true},
		"start_before_all":    {func(c *Cache) bool { return c.TruncateFromStart(5) }, "[{2 10} {4 20} {7 35}]", false},
		"start_at_the_first":  {func(c *Cache) bool { return c.TruncateFromStart(10) }, "[{2 10} {4 20} {7 35}]", false},
		"start_behind_latest": {func(c *Cache) bool { return c.TruncateFromStart(99) }, "[{7 99}]", true},
	}
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			c := of(2, 10, 4, 20, 7, 35)
			if change := k.cut(c); change != k.change {
				t.Errorf("changed is %t", change)
			}
			if got := fmt.Sprint(c.Entries()); got != k.want {
				t.Errorf("got %s, expected %s", got, k.want)
			}
		})
	}
}

// TestFile: D-41, D-43.
func TestFile(t *testing.T) {
	if got := string(of(0, 0, 4, 1733).Append(nil)); got != "0\n2\n0 0\n4 1733\n" {
		t.Errorf("%q", got)
	}
	if got := string(of().Append(nil)); got != "0\n0\n" {
		t.Errorf("%q", got)
	}
	bad := map[string]string{"wrong_version": "1\n0\n", "no_count": "0\n", "count_not_a_number": "0\nx\n", "too_few": "0\n2\n0 0\n",
		"too_many": "0\n1\n0 0\n1 5\n", "three_columns": "0\n1\n0 0 0\n", "negative": "0\n1\n-1 0\n", "garbage": "garbage"}
	for name, content := range bad {
		if _, err := Parse([]byte(content)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if c, err := Parse(nil); err != nil || c.Len() != 0 {
		t.Errorf("an empty file: %v", err)
	}
}

// TestTwin compares with a list of every offset's epoch.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Cache
		twin := map[int64]model.LeaderEpoch{} // offset -> epoch, of an append-only log
		epoch, end := model.LeaderEpoch(0), int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				epoch += model.LeaderEpoch(rapid.IntRange(0, 2).Draw(t, "epoch"))
				c.Assign(epoch, end)
				for range rapid.IntRange(0, 4).Draw(t, "records") {
					twin[end] = epoch
					end++
				}
			case 2:
				to := rapid.Int64Range(0, end).Draw(t, "truncate")
				for o := to; o < end; o++ {
					delete(twin, o)
				}
				end = to
				c.TruncateFromEnd(end)
			}
		}
		back, err := Parse(c.Append(nil))
		if err != nil || fmt.Sprint(back.Entries()) != fmt.Sprint(c.Entries()) {
			t.Fatalf("file: %v %v", back, err)
		}
		for o, e := range twin {
			if got, ok := c.EpochFor(o); !ok || got != e {
				t.Fatalf("offset %d is of epoch %d, got %d: %v", o, e, got, c.Entries())
			}
		}
		for i, e := range c.Entries() {
			if i > 0 && (c.entries[i-1].Epoch >= e.Epoch || c.entries[i-1].Start >= e.Start) {
				t.Fatalf("not ascending: %v", c.Entries())
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("0\n2\n0 0\n4 1733\n"))
	f.Add([]byte("0\n0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err != nil {
			return
		}
		back, err := Parse(c.Append(nil))
		if err != nil || fmt.Sprint(back.Entries()) != fmt.Sprint(c.Entries()) {
			t.Fatalf("%v: %v", c.Entries(), err)
		}
	})
}
