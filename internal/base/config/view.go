package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

// layers are the maps a broker's values come from. None of them is changed once it is here.
type layers struct {
	broker  map[string]string // dynamic configs of this node
	cluster map[string]string // dynamic defaults of all brokers
	static  map[string]string // file, environment, flags; node.id and broker.id stand for each other
}

// view is the broker's values resolved from layers: what is set, and every key parsed.
type view struct {
	layers
	props map[string]string // what is set, the layers merged
	vals  map[string]any    // every key of Broker and DynamicOnly; nil is null
	bad   map[string]bool   // keys whose text is no good: rules that need them are left out
}

// failure is one broken rule.
type failure struct {
	key    string
	text   string
	scala  bool // Kafka's text has "requirement failed: " before it
	syntax bool // the value of this one key is no good by itself
}

func (f failure) kafka() string {
	if f.scala {
		return "requirement failed: " + f.text
	}
	return f.text
}

// resolve merges the layers as Kafka does, where a layer that sets one of several synonyms hides
// all of them below, and parses every value.
func resolve(l layers) (*view, []failure) {
	v := &view{layers: l, props: maps.Clone(l.static), vals: map[string]any{}, bad: map[string]bool{}}
	if v.props == nil {
		v.props = map[string]string{}
	}
	for _, over := range []map[string]string{l.cluster, l.broker} {
		for _, name := range slices.Sorted(maps.Keys(over)) {
			for _, s := range brokerSynonyms(name, false) {
				delete(v.props, s)
			}
			v.props[name] = over[name]
		}
	}
	var out []failure
	for _, def := range []*Def{Broker, DynamicOnly} {
		for _, name := range def.Names() {
			k, _ := def.Key(name)
			written, isSet := v.props[name]
			if !isSet {
				if k.Required {
					v.bad[name] = true
					out = append(out, failure{key: name, text: fmt.Sprintf("Missing required configuration \"%s\" which has no default value.", name), syntax: true})
				}
				v.vals[name] = k.defaultValue()
				continue
			}
			value, err := k.Parse(written)
			if err != nil {
				v.bad[name] = true
				out = append(out, failure{key: name, text: err.Error(), syntax: true})
				value = k.defaultValue()
			}
			v.vals[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.props)) {
		base, ok := listenerBase(name)
		if !ok {
			continue
		}
		if k, ok := Broker.Key(base); ok {
			if _, err := k.Parse(v.props[name]); err != nil {
				out = append(out, failure{key: name, text: strings.ReplaceAll(err.Error(), base, name), syntax: true})
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].key < out[j].key })
	return v, out
}

// withNodeID makes node.id and broker.id stand for each other.
func withNodeID(static map[string]string) map[string]string {
	out := maps.Clone(static)
	if out == nil {
		out = map[string]string{}
	}
	node, hasNode := out["node.id"]
	broker, hasBroker := out["broker.id"]
	switch {
	case hasNode && !hasBroker:
		out["broker.id"] = node
	case hasBroker && !hasNode:
		out["node.id"] = broker
	}
	return out
}

func (v *view) value(name string) any {
	value, ok := v.vals[name]
	if !ok {
		panic("config: no broker key is called " + name)
	}
	return value
}

func (v *view) sane(keys ...string) bool {
	for _, k := range keys {
		if v.bad[k] {
			return false
		}
	}
	return true
}

func (v *view) isSet(name string) bool  { _, ok := v.props[name]; return ok }
func (v *view) isNull(name string) bool { return v.value(name) == nil }

func (v *view) boolean(name string) bool {
	b, ok := v.value(name).(bool)
	wrongType(ok, name)
	return b
}

func (v *view) long(name string) int64 {
	switch n := v.value(name).(type) {
	case nil:
		return 0
	case int16:
		return int64(n)
	case int32:
		return int64(n)
	case int64:
		return n
	}
	wrongType(false, name)
	return 0
}

func (v *view) int(name string) int32 {
	if _, ok := v.value(name).(int64); ok {
		wrongType(false, name)
	}
	return int32(v.long(name))
}

func (v *view) double(name string) float64 {
	if v.isNull(name) {
		return 0
	}
	f, ok := v.value(name).(float64)
	wrongType(ok, name)
	return f
}

func (v *view) text(name string) string {
	if v.isNull(name) {
		return ""
	}
	s, ok := v.value(name).(string)
	wrongType(ok, name)
	return s
}

func (v *view) list(name string) []string {
	if v.isNull(name) {
		return nil
	}
	l, ok := v.value(name).([]string)
	wrongType(ok, name)
	return l
}

func wrongType(ok bool, name string) {
	if !ok {
		panic("config: " + name + " is read as another type than it has")
	}
}

func (v *view) duration(name string, unit time.Duration) time.Duration {
	return times(v.long(name), unit)
}

// times is n units, cut at the longest duration.
func times(n int64, unit time.Duration) time.Duration {
	if n > math.MaxInt64/int64(unit) {
		return math.MaxInt64
	}
	if n < math.MinInt64/int64(unit) {
		return math.MinInt64
	}
	return time.Duration(n) * unit
}

func (v *view) logDirs() []string {
	if dirs := v.list("log.dirs"); dirs != nil {
		return dirs
	}
	return v.list("log.dir")
}

// Times a layer may give in several units, most exact first.
func (v *view) rollMs() int64 {
	if !v.isNull("log.roll.ms") {
		return v.long("log.roll.ms")
	}
	return v.long("log.roll.hours") * 3600_000
}

func (v *view) rollJitterMs() int64 {
	if !v.isNull("log.roll.jitter.ms") {
		return v.long("log.roll.jitter.ms")
	}
	return v.long("log.roll.jitter.hours") * 3600_000
}

func (v *view) flushMs() int64 {
	if !v.isNull("log.flush.interval.ms") {
		return v.long("log.flush.interval.ms")
	}
	return v.long("log.flush.scheduler.interval.ms")
}

func (v *view) retentionMs() int64 {
	ms := v.long("log.retention.hours") * 3600_000
	if !v.isNull("log.retention.ms") {
		ms = v.long("log.retention.ms")
	} else if !v.isNull("log.retention.minutes") {
		ms = v.long("log.retention.minutes") * 60_000
	}
	return max(ms, -1)
}
