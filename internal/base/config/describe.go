package config

import (
	"maps"
	"slices"
)

// Entry is one line of a DescribeConfigs answer.
type Entry struct {
	Name      string
	Value     *string // nil when null or sensitive
	Type      Type
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Doc       string
	Synonyms  []Synonym // most specific first
}

// Synonym is one layer that has a value for an entry.
type Synonym struct {
	Name   string
	Value  *string // nil when sensitive
	Source Source
}

func shown(value any, sensitive bool) *string {
	if value == nil || sensitive {
		return nil
	}
	s := Text(value)
	return &s
}

// wanted tells whether a name is asked for; nobody asking for any means all.
func wanted(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// synonyms lists the layers that have a value for a broker setting or for one that stands for it,
// most specific first, up to the built-in default. What comes before the first value of name
// itself does not count.
func (v *view) synonyms(name string, sensitive bool) []Synonym {
	var out []Synonym
	add := func(name, value string, source Source) {
		s := Synonym{Name: name, Source: source}
		if !sensitive {
			s.Value = &value
		}
		out = append(out, s)
	}
	names := brokerSynonyms(name, true)
	for _, layer := range []struct {
		props  map[string]string
		source Source
	}{{v.broker, SourceDynamicBroker}, {v.cluster, SourceDynamicDefaultBroker}, {v.static, SourceStaticBroker}} {
		for _, s := range names {
			if value, ok := layer.props[s]; ok {
				add(s, value, layer.source)
			}
		}
	}
	for _, s := range names {
		if k, ok := Broker.Key(s); ok {
			if value := k.defaultValue(); value != nil {
				add(s, Text(value), SourceDefault)
			}
		}
	}
	i := slices.IndexFunc(out, func(s Synonym) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return out[i:]
}

// sourceOf is the layer of the first synonym.
func sourceOf(list []Synonym) Source {
	if len(list) == 0 {
		return SourceDefault
	}
	return list[0].Source
}

// DescribeTopic lists a topic's settings sorted by name; names empty is all, else those asked for
// that exist (D-219). Internal ones are listed where they are set.
func (n *Node) DescribeTopic(overrides map[string]string, names []string) []Entry {
	values, _ := n.topicValues(overrides)
	return n.describeWith(Topics, SourceTopic, values, overrides, names, func(k *Key) []Synonym {
		if len(k.Synonyms) == 0 {
			return nil
		}
		return n.synonyms(k.Synonyms[0], k.Sensitive())
	})
}

// describeWith lists the keys of a resource that has overrides of its own above something else.
// Internal keys are listed where they, or the broker setting behind them, are set.
func (v *view) describeWith(def *Def, own Source, values map[string]any, overrides map[string]string, names []string, below func(*Key) []Synonym) []Entry {
	var out []Entry
	all := slices.Clone(def.Names())
	for name := range overrides {
		if _, ok := def.Key(name); !ok {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	for _, name := range all {
		k, known := def.Key(name)
		override, isSet := overrides[name]
		if !wanted(names, name) || known && k.Internal && !isSet && !slices.ContainsFunc(k.Synonyms, v.isSet) {
			continue
		}
		if !known { // a name of another version: kept, never shown
			out = append(out, Entry{Name: name, Source: own, Sensitive: true, Synonyms: []Synonym{{name, nil, own}}})
			continue
		}
		e := Entry{Name: name, Type: k.Type, Sensitive: k.Sensitive(), Doc: k.Doc, Value: shown(values[name], k.Sensitive()), Synonyms: below(k)}
		if _, err := k.Parse(override); isSet && err == nil {
			e.Synonyms = append([]Synonym{{name, e.Value, own}}, e.Synonyms...)
		}
		e.Source = sourceOf(e.Synonyms)
		out = append(out, e)
	}
	return out
}

// DescribeBroker lists this node's settings: all public ones, and others where they are set.
func (n *Node) DescribeBroker(names []string) []Entry {
	all := map[string]bool{}
	for _, name := range Broker.Names() {
		if k, _ := Broker.Key(name); !k.Internal && !k.Samsa {
			all[name] = true
		}
	}
	for name := range n.props {
		all[name] = true
	}
	var out []Entry
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if wanted(names, name) {
			out = append(out, n.brokerEntry(name, func(Synonym) bool { return true }))
		}
	}
	return out
}

// DescribeClusterDefault lists what is set as the default of all brokers (broker id "").
func (n *Node) DescribeClusterDefault(names []string) []Entry {
	var out []Entry
	for _, name := range slices.Sorted(maps.Keys(n.cluster)) {
		if !wanted(names, name) {
			continue
		}
		e := n.brokerEntry(name, func(s Synonym) bool { return s.Source == SourceDynamicDefaultBroker })
		if e.Value = nil; !e.Sensitive {
			value := n.cluster[name]
			e.Value = &value
		}
		out = append(out, e)
	}
	return out
}

func (n *Node) brokerEntry(name string, keep func(Synonym) bool) Entry {
	t := configType(name)
	e := Entry{Name: name, Type: t, ReadOnly: !dynamic(name), Sensitive: t == Password || t == Unknown}
	if k, ok := brokerKey(name); ok {
		e.Doc = k.Doc
		e.Value = shown(n.vals[name], e.Sensitive)
	} else if value, ok := n.props[name]; ok && !e.Sensitive {
		e.Value = &value
	}
	for _, s := range n.synonyms(name, e.Sensitive) {
		if keep(s) {
			e.Synonyms = append(e.Synonyms, s)
		}
	}
	e.Source = sourceOf(e.Synonyms)
	return e
}

// DescribeGroup lists a group's settings; a group needs not exist (D-205).
func (n *Node) DescribeGroup(overrides map[string]string, names []string) []Entry {
	values := map[string]any{}
	for _, name := range Groups.Names() {
		k, _ := Groups.Key(name)
		values[name] = n.groupDefault(k)
		if text, ok := overrides[name]; ok {
			if v, err := k.Parse(text); err == nil {
				values[name] = v
			}
		}
	}
	return n.describeWith(Groups, SourceGroup, values, overrides, names, func(k *Key) []Synonym {
		if len(k.Synonyms) > 0 {
			return n.synonyms(k.Synonyms[0], k.Sensitive())
		}
		if value := k.defaultValue(); value != nil {
			return []Synonym{{k.Name, shown(value, k.Sensitive()), SourceDefault}}
		}
		return nil
	})
}

// groupDefault is the broker's value for a group key. A group names one assignor where the broker
// lists several: the first.
func (v *view) groupDefault(k *Key) any {
	if len(k.Synonyms) == 0 {
		return k.defaultValue()
	}
	value := v.value(k.Synonyms[0])
	if list, ok := value.([]string); ok && k.Type == String {
		if len(list) == 0 {
			return nil
		}
		return list[0]
	}
	return value
}

// DescribeClientMetrics lists a client metrics subscription.
func DescribeClientMetrics(overrides map[string]string, names []string) []Entry {
	values := map[string]any{}
	for _, name := range ClientMetrics.Names() {
		k, _ := ClientMetrics.Key(name)
		values[name] = k.defaultValue()
		if text, ok := overrides[name]; ok {
			if v, err := k.Parse(text); err == nil {
				values[name] = v
			}
		}
	}
	return (*view)(nil).describeWith(ClientMetrics, SourceClientMetrics, values, overrides, names, func(*Key) []Synonym { return nil })
}
