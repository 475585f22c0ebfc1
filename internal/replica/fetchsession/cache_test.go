package fetchsession

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

var start = time.UnixMilli(1_700_000_000_000)

func newCache(slots int) *Cache {
	r := rand.New(rand.NewPCG(1, 2))
	return New(slots, r.Uint32)
}

var (
	fooID = model.TopicID{1}
	barID = model.TopicID{2}
)

// world is what the broker knows of topics.
type world map[string]model.TopicID

func (w world) resolve(id model.TopicID, name string) (model.TopicID, string, bool) {
	if name != "" {
		id, ok := w[name]
		return id, name, ok
	}
	for n, i := range w {
		if i == id {
			return i, n, true
		}
	}
	return id, "", false
}

var known = world{"foo": fooID, "bar": barID}

func byID(id model.TopicID, parts ...int32) []Partition {
	var out []Partition
	for _, p := range parts {
		out = append(out, Partition{TopicID: id, Partition: p, MaxBytes: 100})
	}
	return out
}

func byName(name string, parts ...int32) []Partition {
	var out []Partition
	for _, p := range parts {
		out = append(out, Partition{Topic: name, Partition: p})
	}
	return out
}

// idle results: nothing new at high watermark 0.
func quiet(n int) []Result { return make([]Result, n) }

func open(t *testing.T, c *Cache, now time.Time, req Request) int32 {
	t.Helper()
	x, err := c.Begin(now, req, known.resolve)
	if err != nil {
		t.Fatal(err)
	}
	id, include, err := x.Finish(now, quiet(len(x.Partitions())))
	if err != nil || include != nil {
		t.Fatalf("a full fetch: include %v, err %v", include, err)
	}
	return id
}

// D-125 and T-55: the table of session faults.
func TestFaults(t *testing.T) {
	c := newCache(8)
	id := open(t, c, start, Request{ByID: true, Partitions: byID(fooID, 0)})
	if id <= 0 {
		t.Fatalf("session id %d", id)
	}
	for _, tc := range []struct {
		name string
		req  Request
		want error
	}{
		{"unknown id", Request{SessionID: id ^ 8, Epoch: 1, ByID: true}, kerr.FetchSessionIdNotFound},
		{"no id with an epoch", Request{SessionID: 0, Epoch: 1, ByID: true}, kerr.FetchSessionIdNotFound},
		{"epoch too high", Request{SessionID: id, Epoch: 2, ByID: true}, kerr.InvalidFetchSessionEpoch},
		{"epoch negative", Request{SessionID: id, Epoch: -2, ByID: true}, kerr.InvalidFetchSessionEpoch},
		{"wrong epoch before wrong family", Request{SessionID: id, Epoch: 2}, kerr.InvalidFetchSessionEpoch},
		{"other family", Request{SessionID: id, Epoch: 1}, kerr.FetchSessionTopicIdError},
	} {
		if _, err := c.Begin(start, tc.req, known.resolve); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
	// None of them did anything to the session.
	x, err := c.Begin(start, Request{SessionID: id, Epoch: 1, ByID: true}, known.resolve)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := x.Finish(start, quiet(1)); got != id || err != nil {
		t.Fatalf("%d, %v", got, err)
	}
}

// D-125: (id, 0) drops the session and opens another; (id, -1) drops it and opens none, whatever the family (T-55).
func TestFullRequestReplacesSession(t *testing.T) {
	c := newCache(8)
	old := open(t, c, start, Request{Partitions: byName("foo", 0)})
	id := open(t, c, start, Request{SessionID: old, Epoch: 0, ByID: true, Partitions: byID(fooID, 0)})
	if id == 0 || id == old || c.Stats().Sessions != 1 {
		t.Fatalf("old %d new %d %+v", old, id, c.Stats())
	}
	if got := open(t, c, start, Request{SessionID: id, Epoch: -1, Partitions: byName("foo", 0)}); got != 0 {
		t.Fatalf("sessionless fetch got session %d", got)
	}
	if st := c.Stats(); st.Sessions != 0 || st.Partitions != 0 {
		t.Fatalf("%+v", st)
	}
}

func TestEpochWrapsToOne(t *testing.T) { // D-125
	if nextEpoch(math.MaxInt32) != 1 || nextEpoch(1) != 2 {
		t.Fatal("after 2147483647 comes 1")
	}
}

// D-126, T-60: what an incremental answer lists.
func TestIncrementalListsChanges(t *testing.T) {
	c := newCache(8)
	id := open(t, c, start, Request{ByID: true, Partitions: byID(fooID, 0, 1, 2)})
	epoch := int32(0)
	fetch := func(r ...Result) []bool {
		t.Helper()
		epoch++
		x, err := c.Begin(start, Request{SessionID: id, Epoch: epoch, ByID: true}, known.resolve)
		if err != nil {
			t.Fatal(err)
		}
		_, include, err := x.Finish(start, r)
		if err != nil {
			t.Fatal(err)
		}
		return include
	}
	check := func(what string, got []bool, want ...bool) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("nothing new", fetch(Result{}, Result{}, Result{}), false, false, false)
	check("watermark and log start", fetch(Result{HighWatermark: 5}, Result{LogStartOffset: 1}, Result{}), true, true, false)
	check("told once", fetch(Result{HighWatermark: 5}, Result{LogStartOffset: 1}, Result{}), false, false, false)
	check("diverging epoch, preferred replica", fetch(Result{HighWatermark: 5, Tell: true}, Result{LogStartOffset: 1}, Result{}), true, false, false)
	bad := Result{Err: true, HighWatermark: -1, LogStartOffset: -1}
	check("error", fetch(Result{HighWatermark: 5}, bad, Result{}), false, true, false)
	check("error repeats", fetch(Result{HighWatermark: 5}, bad, Result{}), false, true, false)
	check("healing is told", fetch(Result{HighWatermark: 5}, Result{LogStartOffset: 1}, Result{}), false, true, false)
	check("quiet again", fetch(Result{HighWatermark: 5}, Result{LogStartOffset: 1}, Result{}), false, false, false)
}

// D-126: partitions that delivered go to the tail.
func TestFairness(t *testing.T) {
	c := newCache(8)
	id := open(t, c, start, Request{ByID: true, Partitions: byID(fooID, 0, 1, 2)})
	order := func(epoch int32, hot ...int32) string {
		x, err := c.Begin(start, Request{SessionID: id, Epoch: epoch, ByID: true}, known.resolve)
		if err != nil {
			t.Fatal(err)
		}
		r := quiet(len(x.Partitions()))
		var s string
		for i, p := range x.Partitions() {
			s += fmt.Sprint(p.Partition)
			for _, h := range hot {
				if p.Partition == h {
					r[i].Bytes = 10
				}
			}
		}
		x.Finish(start, r)
		return s
	}
	for i, want := range []string{"012", "120", "201"} {
		if got := order(int32(i+1), []int32{0, 1, 2}[i]); got != want {
			t.Errorf("fetch %d read %s, want %s", i, got, want)
		}
	}
}

// T-51, T-53, T-56, T-59: forgetting.
func TestForget(t *testing.T) {
	c := newCache(8)
	again := model.TopicID{9}
	id := open(t, c, start, Request{ByID: true, Partitions: append(byID(fooID, 0), byID(model.TopicID{}, 0)...)})
	x, err := c.Begin(start, Request{SessionID: id, Epoch: 1, ByID: true, Partitions: byID(again, 0),
		Forgotten: []Forgotten{{TopicID: fooID}, {TopicID: model.TopicID{}}, {TopicID: barID, Partition: 7}}}, known.resolve)
	if err != nil {
		t.Fatal(err)
	}
	if p := x.Partitions(); len(p) != 2 || !p[0].TopicID.IsZero() || p[1].TopicID != again {
		t.Fatalf("%+v", p)
	}
	x.Finish(start, quiet(2))
	// Named in both lists: added first, then forgotten. An empty session closes (answered as none).
	c2 := newCache(8)
	id = open(t, c2, start, Request{Partitions: byName("foo", 0)})
	x, err = c2.Begin(start, Request{SessionID: id, Epoch: 1, Partitions: byName("bar", 1),
		Forgotten: []Forgotten{{Topic: "bar", Partition: 1}, {Topic: "foo"}}}, known.resolve)
	if err != nil || len(x.Partitions()) != 0 {
		t.Fatal(err, x.Partitions())
	}
	if got, _, err := x.Finish(start, nil); got != 0 || err != nil || c2.Stats().Sessions != 0 {
		t.Fatal(got, err, c2.Stats())
	}
}

// T-57, T-58: an unknown id heals by itself, and a name once found stays, whatever becomes of the topic.
func TestResolvedNamesStay(t *testing.T) {
	c := newCache(8)
	w := world{}
	x, _ := c.Begin(start, Request{ByID: true, Partitions: byID(fooID, 0)}, w.resolve)
	id, _, _ := x.Finish(start, []Result{{Err: true, HighWatermark: -1, LogStartOffset: -1}})
	name := func(epoch int32) string {
		x, err := c.Begin(start, Request{SessionID: id, Epoch: epoch, ByID: true}, w.resolve)
		if err != nil {
			t.Fatal(err)
		}
		n := x.Partitions()[0].Topic
		x.Finish(start, quiet(1))
		return n
	}
	if n := name(1); n != "" {
		t.Fatalf("resolved to %q", n)
	}
	w["foo"] = fooID
	if n := name(2); n != "foo" {
		t.Fatalf("resolved to %q", n)
	}
	w["foo"] = barID
	if n := name(3); n != "foo" {
		t.Fatalf("resolved to %q", n)
	}
	// By name the id follows the name (T-62).
	x, _ = c.Begin(start, Request{Partitions: byName("foo", 0)}, w.resolve)
	if x.Partitions()[0].TopicID != barID {
		t.Fatal("a name is bound anew on every fetch")
	}
}

// D-127: every slot is used, then none is given away while the sessions are young.
func TestSlots(t *testing.T) {
	c := newCache(1000)
	given := 0
	for range 1100 {
		if open(t, c, start, Request{ByID: true, Partitions: byID(fooID, 0)}) != 0 {
			given++
		}
	}
	if st := c.Stats(); given != 1000 || st.Sessions != 1000 || st.Partitions != 1000 || st.Evictions != 0 {
		t.Fatalf("%d given, %+v", given, st)
	}
	// A follower pushes out a consumer, however young; idle sessions give way to anybody; a bigger consumer pushes out
	// an old smaller one that is still in use.
	if open(t, c, start, Request{ByID: true, Follower: true, Partitions: byID(fooID, 0)}) == 0 {
		t.Error("a follower got no session")
	}
	if open(t, c, start.Add(idle), Request{ByID: true, Partitions: byID(fooID, 0, 1)}) != 0 {
		t.Error("a session not idle for long enough was taken")
	}
	if open(t, c, start.Add(idle+time.Millisecond), Request{ByID: true, Partitions: byID(fooID, 0)}) == 0 {
		t.Error("an idle session was kept")
	}
	if c.Stats().Evictions != 2 {
		t.Errorf("%+v", c.Stats())
	}
}

func TestBiggerPushesOutOldSmaller(t *testing.T) { // D-127
	c := newCache(8)
	var ids []int32
	for range 8 {
		ids = append(ids, open(t, c, start, Request{ByID: true, Partitions: byID(fooID, 0, 1)}))
	}
	later := start.Add(idle + time.Second)
	for _, id := range ids { // all in use
		x, err := c.Begin(later, Request{SessionID: id, Epoch: 1, ByID: true}, known.resolve)
		if err != nil {
			t.Fatal(err)
		}
		x.Finish(later, quiet(2))
	}
	if open(t, c, later, Request{ByID: true, Partitions: byID(fooID, 0)}) != 0 {
		t.Error("a smaller session took the slot of a bigger one")
	}
	if open(t, c, later, Request{ByID: true, Partitions: byID(fooID, 0, 1, 2)}) == 0 {
		t.Error("a bigger session got no slot of an old one")
	}
}

// Two fetches of one session at once: the older one's answer is refused. An answer emptied by a quota changes nothing.
func TestOvertaken(t *testing.T) {
	c := newCache(8)
	id := open(t, c, start, Request{ByID: true, Partitions: byID(fooID, 0)})
	first, _ := c.Begin(start, Request{SessionID: id, Epoch: 1, ByID: true}, known.resolve)
	if got, err := first.Empty(); got != id || err != nil { // D-126
		t.Fatal(got, err)
	}
	second, err := c.Begin(start, Request{SessionID: id, Epoch: 2, ByID: true}, known.resolve)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := first.Finish(start, quiet(1)); !errors.Is(err, kerr.InvalidFetchSessionEpoch) {
		t.Fatal(err)
	}
	if _, err := first.Empty(); !errors.Is(err, kerr.InvalidFetchSessionEpoch) {
		t.Fatal(err)
	}
	if _, _, err := second.Finish(start, quiet(1)); err != nil {
		t.Fatal(err)
	}
}

// A partition named twice is read once: the last one counts.
func TestDuplicates(t *testing.T) {
	for _, n := range []int{3, 20} {
		var parts []Partition
		for i := range n {
			parts = append(parts, Partition{TopicID: fooID, Partition: int32(i % 2), FetchOffset: int64(i)})
		}
		x, _ := newCache(8).Begin(start, Request{Epoch: -1, ByID: true, Partitions: parts}, known.resolve)
		p := x.Partitions()
		if len(p) != 2 || p[0].FetchOffset != int64((n-1)/2*2) || p[1].FetchOffset != int64((n-2)/2*2+1) {
			t.Errorf("%d entries: %+v", n, p)
		}
	}
}

// Zero slots: everybody fetches without a session.
func TestNoSlots(t *testing.T) {
	if open(t, newCache(0), start, Request{ByID: true, Partitions: byID(fooID, 0)}) != 0 {
		t.Fatal("a session without a slot")
	}
}

func TestIncrementalAllocates(t *testing.T) {
	c := newCache(8)
	id := open(t, c, start, Request{ByID: true, Partitions: byID(fooID, 0, 1, 2, 3, 4, 5, 6, 7)})
	r := quiet(8)
	epoch := int32(0)
	if n := testing.AllocsPerRun(100, func() {
		epoch++
		x, err := c.Begin(start, Request{SessionID: id, Epoch: epoch, ByID: true}, known.resolve)
		if err != nil {
			t.Fatal(err)
		}
		x.Finish(start, r)
	}); n > 3 {
		t.Errorf("%v allocations per incremental fetch", n)
	}
}
