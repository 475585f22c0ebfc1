package metric

import (
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The text form is written by hand, without client_golang: a scrape of 5,000 partitions is some
// 55,000 samples, which its gatherer would first build as protobuf messages, all at once, and
// linking protobuf costs the binary more than everything else here. See docs/decisions/0016. Tests read
// the output with Prometheus' own parser.

// ContentType is Prometheus' text form.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Handler answers GET /metrics in Prometheus' text form.
func (r *Registry) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", ContentType)
		if req.Method == http.MethodGet {
			_ = r.WriteText(w) // the scraper went away; it will be back
		}
	})
}

// WriteText writes all metrics in Prometheus' text form, in pieces of about 16 KiB.
func (r *Registry) WriteText(w io.Writer) error {
	if r == nil {
		return nil
	}
	r.scraping.Lock()
	defer r.scraping.Unlock()
	out := writer{w: w, buf: make([]byte, 0, flushAt+4<<10)}
	for _, f := range r.list() {
		r.visit(f, out.sample)
	}
	out.flush()
	return out.err
}

// Value finds one sample by object and labels, for tests and the readiness page. Of a histogram it
// is the count.
func (r *Registry) Value(object string, labels ...string) (value float64, ok bool) {
	if r == nil {
		return 0, false
	}
	r.scraping.Lock()
	defer r.scraping.Unlock()
	var names []string
	for i := 0; i+1 < len(labels); i += 2 {
		names = append(names, labels[i])
	}
	name, extra := place(object, names)
	want := slices.Concat(extra, labels)
	for _, f := range r.list() {
		if f.name != name {
			continue
		}
		r.visit(f, func(part string, _ kind, have []string, v float64) {
			if (f.kind != histogramKind || part == name+"_count") && len(have) == len(want) && carries(have, want) {
				value, ok = v, true
			}
		})
	}
	return value, ok
}

// visit shows every sample of f, those of a histogram as three families: the quantiles, the count,
// the sum. labels are borrowed until show returns.
func (r *Registry) visit(f *family, show func(name string, k kind, labels []string, value float64)) {
	all, walkers := r.members(f)
	if f.kind == histogramKind {
		r.visitHistograms(f.name, all, show)
		return
	}
	for _, s := range all {
		show(f.name, f.kind, s.labels, valueOf(s.metric))
	}
	for _, w := range walkers {
		pairs := make([]string, len(w.extra)+2*len(w.names))
		copy(pairs, w.extra)
		w.walk(func(value float64, labelValues ...string) {
			if len(labelValues) != len(w.names) {
				panic("metric: " + f.name + ": a sample with other labels than its family")
			}
			for i, v := range labelValues {
				pairs[len(w.extra)+2*i] = w.names[i]
				pairs[len(w.extra)+2*i+1] = v
			}
			show(f.name, f.kind, pairs, value)
		})
	}
}

func (r *Registry) visitHistograms(name string, all []*series, show func(string, kind, []string, float64)) {
	now := r.now()
	var q [6]float64
	for _, s := range all {
		s.metric.(*Histogram).quantiles(now, &q)
		pairs := slices.Concat(s.labels, []string{"quantile", ""})
		for i, step := range quantileSteps {
			pairs[len(pairs)-1] = step.label
			show(name, gaugeKind, pairs, q[i])
		}
	}
	for _, s := range all {
		show(name+"_count", counterKind, s.labels, float64(s.metric.(*Histogram).Count()))
	}
	for _, s := range all {
		show(name+"_sum", counterKind, s.labels, s.metric.(*Histogram).total())
	}
}

func valueOf(metric any) float64 {
	switch m := metric.(type) {
	case *Counter:
		return float64(m.Value())
	case *Gauge:
		return float64(m.Value())
	case func() float64:
		return m()
	}
	panic("metric: a series of a type that has no value")
}

const flushAt = 16 << 10

// writer puts samples into one buffer and out.
type writer struct {
	w    io.Writer
	buf  []byte
	last string // the family whose TYPE line is written
	err  error
}

func (w *writer) sample(name string, k kind, labels []string, value float64) {
	if w.err != nil {
		return
	}
	if name != w.last {
		w.last = name
		w.buf = append(w.buf, "# TYPE "...)
		w.buf = append(w.buf, name...)
		w.buf = append(w.buf, ' ')
		w.buf = append(w.buf, k.String()...)
		w.buf = append(w.buf, '\n')
	}
	w.buf = append(w.buf, name...)
	for i := 0; i+1 < len(labels); i += 2 {
		if i == 0 {
			w.buf = append(w.buf, '{')
		} else {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(w.buf, labels[i]...)
		w.buf = append(w.buf, '=', '"')
		w.buf = appendEscaped(w.buf, labels[i+1])
		w.buf = append(w.buf, '"')
	}
	if len(labels) > 0 {
		w.buf = append(w.buf, '}')
	}
	w.buf = append(w.buf, ' ')
	w.buf = appendValue(w.buf, value)
	w.buf = append(w.buf, '\n')
	if len(w.buf) >= flushAt {
		w.flush()
	}
}

func (w *writer) flush() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// appendValue writes whole numbers without an exponent, which people read too.
func appendValue(dst []byte, v float64) []byte {
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendInt(dst, int64(v), 10)
	case math.IsInf(v, 1):
		return append(dst, "+Inf"...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64) // NaN and -Inf are spelled so by Prometheus too
}

// appendEscaped writes a label value: valid UTF-8, with backslash, quote and line feed escaped.
func appendEscaped(dst []byte, s string) []byte {
	if !strings.ContainsAny(s, "\\\"\n") {
		return append(dst, strings.ToValidUTF8(s, "\uFFFD")...)
	}
	for _, c := range []byte(strings.ToValidUTF8(s, "\uFFFD")) {
		switch c {
		case '\\', '"':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
