package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// WithDynamic is the configuration with dynamic configs from the metadata log: those of this
// node and those of all brokers, as they are in the image. What may not be set so, does not parse,
// or is unknown to the tables is left out as if it were not there, and named in the warnings; when
// the rest breaks a rule between settings, the layer that brings it is left out whole, as Kafka
// does. Group settings outside their limits are cut to them.
func (n *Node) WithDynamic(broker, cluster map[string]string) (*Node, []string) {
	b, warnings := sanitize(broker, true)
	c, more := sanitize(cluster, false)
	warnings = append(warnings, more...)
	for _, try := range []layers{
		{broker: b, cluster: c, static: n.static},
		{broker: b, static: n.static},
		{cluster: c, static: n.static},
	} {
		next, failures := build(clamp(try))
		if len(failures) == 0 {
			return next, warnings
		}
		warnings = append(warnings, fmt.Sprintf("dynamic configs are left out: %s: %s", failures[0].key, failures[0].text))
	}
	next, _ := build(layers{static: n.static})
	return next, warnings
}

// sanitize keeps what may stand in a dynamic layer.
func sanitize(props map[string]string, perBroker bool) (map[string]string, []string) {
	out := map[string]string{}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(props)) {
		why := ""
		switch k, known := brokerKey(name); {
		case known && k.Update == ReadOnly:
			why = "is read-only"
		case sslStoreKey(name):
			why = "can be set only with a listener prefix"
		case !perBroker && perBrokerName(name):
			why = "can be set only for one broker"
		case typeFailure(name, props[name]) != "":
			why = typeFailure(name, props[name])
		}
		if why != "" {
			warnings = append(warnings, fmt.Sprintf("dynamic config %s is left out: %s", name, why))
			continue
		}
		out[name] = props[name]
	}
	return out, warnings
}

// typeFailure checks the value of a dynamic name by itself, looking behind a listener prefix.
func typeFailure(name, value string) string {
	k, ok := brokerKey(name)
	if base, prefixed := listenerBase(name); prefixed {
		k, ok = Broker.Key(base)
	}
	if !ok || k.Update == ReadOnly {
		return ""
	}
	_, err := k.Parse(value)
	return text(err)
}

// sslStoreKeys change on a running node only for a listener by name.
var sslStoreKeys = []string{"ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password", "ssl.key.password",
	"ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password", "ssl.keystore.certificate.chain",
	"ssl.keystore.key", "ssl.truststore.certificates"}

func sslStoreKey(name string) bool { return slices.Contains(sslStoreKeys, name) }

// perBrokerName: settings of one broker that make no sense as the default of all.
func perBrokerName(name string) bool {
	if k, ok := brokerKey(name); ok {
		return k.Update == PerBroker
	}
	base, ok := listenerBase(name)
	return ok && !slices.Contains([]string{"max.connections", "max.connection.creation.rate", "num.network.threads"}, base)
}

// clamp cuts dynamic group defaults to the limits in the file: stored values must not stop a node
// whose limits have changed.
func clamp(l layers) layers {
	v, _ := resolve(l)
	cut := func(m map[string]string) map[string]string {
		out := maps.Clone(m)
		for name, value := range m {
			kind, what, ok := strings.Cut(strings.TrimPrefix(name, "group."), ".")
			if !ok || !strings.HasPrefix(name, "group.") {
				continue
			}
			lo, hi := "group."+kind+".min."+what, "group."+kind+".max."+what
			if _, has := Broker.Key(lo); !has {
				continue
			}
			if n, ok := javaInt(javaTrim(value), 32); ok {
				out[name] = Text(min(max(n, v.long(lo)), v.long(hi)))
			}
		}
		return out
	}
	l.broker, l.cluster = cut(l.broker), cut(l.cluster)
	return l
}
