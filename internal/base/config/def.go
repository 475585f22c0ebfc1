package config

import (
	"regexp"
	"slices"
	"strings"
)

// The properties of each kind of resource. Nothing changes them.
var (
	// Broker holds the keys of server.properties: those of Kafka and those of samsa.
	Broker = newDef(serverKeys, nodeKeys, logKeys, coordinatorKeys, securityKeys, remoteKeys, samsaKeys)
	// DynamicOnly holds the broker keys that can be set only while the node runs.
	DynamicOnly = newDef(dynamicKeys)
	// Topics holds the keys of a topic.
	Topics = newDef(topicKeys)
	// Groups holds the keys of a group.
	Groups = newDef(groupKeys)
	// ClientMetrics holds the keys of a client metrics subscription.
	ClientMetrics = newDef(clientMetricsKeys)
)

var clientMetricsKeys = []Key{
	{Name: "interval.ms", Type: Int, Default: "300000", Importance: Medium, Doc: "How often clients push their metrics."},
	{Name: "match", Type: List, Importance: Medium, Check: listOf(emptyOK), Doc: "Which clients this is for, as name=regular expression; all of them must match."},
	{Name: "metrics", Type: List, Importance: Medium, Check: listOf(emptyOK), Doc: "Beginnings of the names of the metrics asked for; * is all."},
}

// brokerKey finds a key that can stand in a broker's dynamic configs or in its file.
func brokerKey(name string) (*Key, bool) {
	if k, ok := Broker.Key(name); ok {
		return k, true
	}
	return DynamicOnly.Key(name)
}

// brokerChains are broker settings that stand for each other, most specific first.
var brokerChains = [][]string{
	{"log.roll.ms", "log.roll.hours"},
	{"log.roll.jitter.ms", "log.roll.jitter.hours"},
	{"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
}

var listenerPrefix = regexp.MustCompile(`^listener\.name\.[^.]*\.(.*)$`)

// mechanismKeys may stand behind a listener and a mechanism: listener.name.L.MECHANISM.KEY.
var mechanismKeys = []string{
	"sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class",
	"sasl.server.callback.handler.class", "connections.max.reauth.ms",
}

// brokerSynonyms are the names whose values stand for name, most specific first. base also gives
// the plain key behind a listener prefix.
func brokerSynonyms(name string, base bool) []string {
	for _, chain := range brokerChains {
		if slices.Contains(chain, name) {
			return chain
		}
	}
	if name == "log.flush.interval.ms" {
		return []string{name, "log.flush.scheduler.interval.ms"}
	}
	if base {
		if b, ok := listenerBase(name); ok {
			return []string{name, b}
		}
	}
	return []string{name}
}

// listenerBase is the plain key behind listener.name.L., also with a mechanism in between.
func listenerBase(name string) (string, bool) {
	m := listenerPrefix.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	for _, k := range mechanismKeys {
		if strings.HasSuffix(m[1], k) {
			return k, true
		}
	}
	return m[1], true
}

// configType is the type of a broker name, looking behind a listener prefix; Unknown when no table
// has it.
func configType(name string) Type {
	if k, ok := brokerKey(name); ok {
		return k.Type
	}
	if base, ok := listenerBase(name); ok {
		if k, ok := Broker.Key(base); ok {
			return k.Type
		}
	}
	return Unknown
}

// dynamic reports whether a broker name may be changed while the node runs.
func dynamic(name string) bool {
	k, ok := brokerKey(name)
	return ok && k.Update != ReadOnly
}
