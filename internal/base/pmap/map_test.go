package pmap

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type ints = Map[int, string]

// check compares m with its dumb twin and verifies the shape of the tree.
func check(t interface{ Fatalf(string, ...any) }, m ints, want map[int]string) {
	if m.Len() != len(want) {
		t.Fatalf("length %d, want %d", m.Len(), len(want))
	}
	keys := slices.Sorted(maps.Keys(want))
	if got := slices.Collect(m.Keys()); !slices.Equal(got, keys) {
		t.Fatalf("keys %v, want %v", got, keys)
	}
	for k, v := range m.All() {
		if want[k] != v {
			t.Fatalf("value of %d is %q, want %q", k, v, want[k])
		}
	}
	for k, v := range want {
		if got, ok := m.Get(k); !ok || got != v {
			t.Fatalf("Get(%d) = %q, %v", k, got, ok)
		}
	}
	depth := -1
	var walk func(n *node[int, string], level int, root bool)
	walk = func(n *node[int, string], level int, root bool) {
		if len(n.keys) > maxKeys || len(n.keys) != len(n.vals) || !root && len(n.keys) < minKeys {
			t.Fatalf("node of %d keys", len(n.keys))
		}
		if n.leaf() {
			if depth == -1 {
				depth = level
			}
			if depth != level {
				t.Fatalf("leaves at depth %d and %d", depth, level)
			}
			return
		}
		if len(n.children) != len(n.keys)+1 {
			t.Fatalf("%d children of %d keys", len(n.children), len(n.keys))
		}
		for _, c := range n.children {
			walk(c, level+1, false)
		}
	}
	if m.root != nil {
		walk(m.root, 0, true)
	}
}

// Random edits against a Go map; every version ever frozen must stay as it was.
func TestVersionsStayAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type version struct {
			m    ints
			want map[int]string
		}
		m := New[int, string](cmp.Compare[int])
		want := map[int]string{}
		versions := []version{{m, maps.Clone(want)}}
		key := rapid.IntRange(0, rapid.SampledFrom([]int{5, 300, 5000}).Draw(t, "range"))
		for range rapid.IntRange(1, 12).Draw(t, "versions") {
			e := m.Edit()
			deleting := rapid.Bool().Draw(t, "deleting")
			for range rapid.IntRange(0, 400).Draw(t, "edits") {
				k := key.Draw(t, "key")
				if rapid.IntRange(0, 9).Draw(t, "op") < 3 != deleting {
					_, had := want[k]
					if e.Delete(k) != had {
						t.Fatalf("Delete(%d) reports %v", k, !had)
					}
					delete(want, k)
				} else {
					v := rapid.StringN(0, 2, 2).Draw(t, "value")
					e.Set(k, v)
					want[k] = v
				}
				if e.Len() != len(want) {
					t.Fatalf("editor length %d, want %d", e.Len(), len(want))
				}
			}
			m = e.Map()
			versions = append(versions, version{m, maps.Clone(want)})
		}
		for _, v := range versions {
			check(t, v.m, v.want)
		}
	})
}

func TestSequentialGrowAndShrink(t *testing.T) {
	m := New[int, string](cmp.Compare[int])
	want := map[int]string{}
	for i := range 5000 {
		m = m.With(i, "v")
		want[i] = "v"
	}
	check(t, m, want)
	for i := range 5000 {
		m = m.Without(i)
		delete(want, i)
		if i%977 == 0 {
			check(t, m, want)
		}
	}
	check(t, m, want)
}

func TestFromStartsAtTheKeyOrTheNextOne(t *testing.T) {
	e := New[int, string](cmp.Compare[int]).Edit()
	for i := range 500 {
		e.Set(i*2, "v")
	}
	m := e.Map()
	for start := -1; start < 1001; start++ {
		next := max(0, (start+1)/2*2)
		count := 0
		for k := range m.From(start) {
			if k != next+count*2 {
				t.Fatalf("from %d: entry %d is %d", start, count, k)
			}
			count++
		}
		if want := 500 - next/2; count != want {
			t.Fatalf("from %d: %d entries, want %d", start, count, want)
		}
	}
	for k := range m.From(100) { // an early stop
		if k == 120 {
			break
		}
	}
	for k := range m.All() {
		if k == 120 {
			break
		}
	}
}

func TestZeroMapReadsAsEmpty(t *testing.T) {
	var m ints
	if _, ok := m.Get(1); ok || m.Len() != 0 {
		t.Fatal("the zero map holds something")
	}
	for range m.All() {
		t.Fatal("the zero map has entries")
	}
	for range m.From(3) {
		t.Fatal("the zero map has entries")
	}
}

// One change to a large map copies a path, not the map.
func TestOneChangeSharesTheRest(t *testing.T) {
	e := New[int, string](cmp.Compare[int]).Edit()
	for i := range 20000 {
		e.Set(i, "v")
	}
	m := e.Map()
	if n := testing.AllocsPerRun(100, func() { m.With(777, "w") }); n > 25 {
		t.Fatalf("%v allocations for one change", n)
	}
}
