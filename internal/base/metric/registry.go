package metric

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Registry is the set of metrics of one node. Methods are safe from any goroutine. On a nil
// Registry every method works and nothing is shown, which suits tests.
type Registry struct{ now func() time.Time }

// New makes an empty registry. now is read when somebody scrapes, never on a hot path.
func New(now func() time.Time) *Registry { return &Registry{now: now} }

// Counter only grows.
type Counter struct{ n atomic.Int64 }

func (c *Counter) Add(n int64)  { c.n.Add(n) }
func (c *Counter) Inc()         { c.n.Add(1) }
func (c *Counter) Value() int64 { return c.n.Load() }

// Gauge goes up and down.
type Gauge struct{ n atomic.Int64 }

func (g *Gauge) Set(n int64)  { g.n.Store(n) }
func (g *Gauge) Add(n int64)  { g.n.Add(n) }
func (g *Gauge) Value() int64 { return g.n.Load() }

// Histogram keeps the distribution of the newest minutes.
type Histogram struct{}

// Observe adds a value: milliseconds, bytes. Negative counts as 0.
func (h *Histogram) Observe(v float64) { panic("pending") }

// ObserveDuration adds a duration in milliseconds.
func (h *Histogram) ObserveDuration(d time.Duration) { panic("pending") }

// Meter is a Kafka meter ("...PerSec"): only its count is kept, Prometheus computes rates. The
// same object and labels give the same Counter again. labels are name, value, name, value ...
func (r *Registry) Meter(object string, labels ...string) *Counter { panic("pending") }

// Gauge makes or finds a stored gauge.
func (r *Registry) Gauge(object string, labels ...string) *Gauge { panic("pending") }

// Histogram makes or finds a histogram.
func (r *Registry) Histogram(object string, labels ...string) *Histogram { panic("pending") }

// GaugeFunc shows what f returns at scrape time; a second call with the same object and labels
// replaces the first.
func (r *Registry) GaugeFunc(object string, f func() float64, labels ...string) { panic("pending") }

// CounterFunc is GaugeFunc for a value that only grows.
func (r *Registry) CounterFunc(object string, f func() float64, labels ...string) { panic("pending") }

// Emit shows one sample; labelValues go with the label names of the family.
type Emit func(value float64, labelValues ...string)

// Gauges shows whatever f emits at scrape time: one family of metrics whose members its owner
// knows (partitions, logs, directories, clients). f must not block on the network or disk.
func (r *Registry) Gauges(object string, labelNames []string, f func(Emit)) { panic("pending") }

// Counters is Gauges for values that only grow.
func (r *Registry) Counters(object string, labelNames []string, f func(Emit)) { panic("pending") }

// Remove forgets the series of object that carry all of these labels: a topic was deleted.
func (r *Registry) Remove(object string, labels ...string) { panic("pending") }

// Value finds one sample by object and labels, for tests and the readiness page.
func (r *Registry) Value(object string, labels ...string) (float64, bool) { panic("pending") }

// Handler answers GET /metrics.
func (r *Registry) Handler() http.Handler { panic("pending") }

// Name is the Prometheus name of a Kafka object name.
func Name(object string) string { panic("pending") }
