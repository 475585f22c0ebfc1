package metric

import (
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Registry is the set of metrics of one node. Methods are safe from any goroutine. On a nil
// Registry every method works and nothing is shown, which suits tests.
type Registry struct {
	now      func() time.Time
	scraping sync.Mutex // one scrape at a time: it owns the scratch memory and the histograms' windows

	mu       sync.Mutex
	families map[string]*family // guarded by mu
	sorted   []string           // guarded by mu; nil when it must be made again
}

// New makes an empty registry. now is read when somebody scrapes, never on a hot path.
func New(now func() time.Time) *Registry {
	return &Registry{now: now, families: map[string]*family{}}
}

type kind int8

const (
	counterKind kind = iota
	gaugeKind
	histogramKind
)

func (k kind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

// family is all metrics of one Prometheus name.
type family struct {
	name    string
	kind    kind
	series  map[string]*series // by object and labels; guarded by Registry.mu
	walkers map[string]walker  // by object and label names; guarded by Registry.mu
}

// series is one metric somebody holds, or one function.
type series struct {
	object string
	labels []string // name, value ...
	metric any      // *Counter, *Gauge, *Histogram or func() float64
}

// walker shows metrics its owner knows.
type walker struct {
	names []string // label names
	extra []string // name, value ... added to all
	walk  func(Emit)
}

// Emit shows one sample; labelValues go with the label names of the family.
type Emit func(value float64, labelValues ...string)

// Meter is a Kafka meter (…PerSec) or any other count: Prometheus computes rates. The same object
// and labels give the same Counter again. labels are name, value, name, value ...
func (r *Registry) Meter(object string, labels ...string) *Counter {
	return r.find(object, counterKind, labels, func() any { return new(Counter) }).(*Counter)
}

// Gauge makes or finds a stored gauge.
func (r *Registry) Gauge(object string, labels ...string) *Gauge {
	return r.find(object, gaugeKind, labels, func() any { return new(Gauge) }).(*Gauge)
}

// Histogram makes or finds a histogram.
func (r *Registry) Histogram(object string, labels ...string) *Histogram {
	return r.find(object, histogramKind, labels, func() any { return new(Histogram) }).(*Histogram)
}

// GaugeFunc shows what f returns at scrape time; a second call with the same object and labels
// replaces the first. f must not call the Registry and must not block.
func (r *Registry) GaugeFunc(object string, f func() float64, labels ...string) {
	r.replace(object, gaugeKind, labels, f)
}

// CounterFunc is GaugeFunc for a value that only grows.
func (r *Registry) CounterFunc(object string, f func() float64, labels ...string) {
	r.replace(object, counterKind, labels, f)
}

// Gauges shows whatever f emits at scrape time: a family whose members its owner knows
// (partitions, logs, directories, clients), which so cost nothing between scrapes. A second call
// with the same object and label names replaces the first. f must not call the Registry and must
// not block on network or disk.
func (r *Registry) Gauges(object string, labelNames []string, f func(Emit)) {
	r.walk(object, gaugeKind, labelNames, f)
}

// Counters is Gauges for values that only grow.
func (r *Registry) Counters(object string, labelNames []string, f func(Emit)) {
	r.walk(object, counterKind, labelNames, f)
}

// family finds or makes one; a name has one kind for ever. Called with mu held.
func (r *Registry) family(name string, k kind) *family {
	f := r.families[name]
	if f == nil {
		f = &family{name: name, kind: k, series: map[string]*series{}, walkers: map[string]walker{}}
		r.families[name] = f
		r.sorted = nil
	}
	if f.kind != k {
		panic("metric: " + name + " is a " + f.kind.String() + " and cannot be a " + k.String())
	}
	return f
}

func (r *Registry) find(object string, k kind, labels []string, make func() any) any {
	if r == nil {
		return make()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f, s := r.series(object, k, labels)
	key := seriesKey(object, labels)
	if old := f.series[key]; old != nil {
		if _, isFunc := old.metric.(func() float64); !isFunc {
			return old.metric
		}
	}
	s.metric = make()
	f.series[key] = s
	return s.metric
}

func (r *Registry) replace(object string, k kind, labels []string, f func() float64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fam, s := r.series(object, k, labels)
	s.metric = f
	fam.series[seriesKey(object, labels)] = s
}

func (r *Registry) series(object string, k kind, labels []string) (*family, *series) {
	if len(labels)%2 != 0 {
		panic("metric: " + object + ": labels are name, value, name, value ...")
	}
	var names []string
	for i := 0; i < len(labels); i += 2 {
		names = append(names, labels[i])
	}
	name, extra := place(object, names)
	all := slices.Concat(extra, labels)
	for i := 0; i < len(all); i += 2 {
		all[i] = labelName(all[i])
	}
	return r.family(name, k), &series{object: object, labels: all}
}

func (r *Registry) walk(object string, k kind, names []string, f func(Emit)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	family, extra := place(object, names)
	clean := make([]string, len(names))
	for i, n := range names {
		clean[i] = labelName(n)
	}
	r.family(family, k).walkers[seriesKey(object, names)] = walker{clean, extra, f}
}

// Remove forgets the series of object that carry all of these labels: a topic was deleted. What a
// function of Gauges shows is its owner's to end.
func (r *Registry) Remove(object string, labels ...string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.families {
		for key, s := range f.series {
			if s.object == object && carries(s.labels, labels) {
				delete(f.series, key)
			}
		}
	}
}

func carries(have, want []string) bool {
	for i := 0; i+1 < len(want); i += 2 {
		found := false
		for j := 0; j+1 < len(have); j += 2 {
			found = found || have[j] == labelName(want[i]) && have[j+1] == want[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

func seriesKey(object string, labels []string) string {
	if len(labels) == 0 {
		return object
	}
	return object + "\x00" + strings.Join(labels, "\x00")
}

// list is all families in the order of their names.
func (r *Registry) list() []*family {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sorted == nil {
		for name := range r.families {
			r.sorted = append(r.sorted, name)
		}
		sort.Strings(r.sorted)
	}
	out := make([]*family, len(r.sorted))
	for i, name := range r.sorted {
		out[i] = r.families[name]
	}
	return out
}

// members is a copy of what a family holds, series in a fixed order.
func (r *Registry) members(f *family) ([]*series, []walker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*series, 0, len(f.series))
	for _, s := range f.series {
		all = append(all, s)
	}
	walkers := make([]walker, 0, len(f.walkers))
	for _, w := range f.walkers {
		walkers = append(walkers, w)
	}
	slices.SortFunc(all, func(a, b *series) int { return slices.Compare(a.labels, b.labels) })
	return all, walkers
}
