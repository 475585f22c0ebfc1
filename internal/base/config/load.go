package config

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Origin tells where a value was written.
type Origin struct {
	File string // with Line; of the properties file
	Line int
	Env  string // the environment variable
	Flag bool   // --set
}

func (o Origin) String() string {
	switch {
	case o.Flag:
		return "--set"
	case o.Env != "":
		return "environment variable " + o.Env
	case o.File != "":
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return "not set"
}

// Mistake is one thing wrong with the configuration.
type Mistake struct {
	Key    string
	Value  string // as written; never that of a sensitive key
	Text   string // what is wrong
	Hint   string // what is allowed, may be empty
	Origin Origin
}

// Mistakes is everything wrong with a configuration.
type Mistakes []Mistake

func (m Mistake) String() string {
	var b strings.Builder
	if m.Key != "" {
		b.WriteString(m.Key)
		if m.Value != "" {
			fmt.Fprintf(&b, " = %q", m.Value)
		}
		fmt.Fprintf(&b, " (%s): ", m.Origin)
	}
	b.WriteString(m.Text)
	if m.Hint != "" {
		fmt.Fprintf(&b, " (allowed: %s)", m.Hint)
	}
	return b.String()
}

func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].String()
	}
	if len(lines) == 1 {
		return "configuration: " + lines[0]
	}
	return fmt.Sprintf("configuration: %d mistakes:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// Input is where a node's configuration comes from; later fields win over earlier ones.
type Input struct {
	File       string   // name of the properties file, for messages
	Properties []byte   // its content
	Environ    []string // KEY=value as of os.Environ; KAFKA_LOG_DIRS sets log.dirs
	Set        []string // key=value of --set
}

// Load reads, checks and resolves a node's configuration. The error is a Mistakes. Warnings are
// for the log: unknown and removed keys, settings that have no effect in this role.
func Load(in Input) (n *Node, warnings []string, err error) {
	settings, err := ParseProperties(in.File, in.Properties)
	var mistakes Mistakes
	if err != nil {
		mistakes = err.(Mistakes)
	}
	env, warnings := fromEnviron(in.Environ)
	settings = append(settings, env...)
	for _, s := range in.Set {
		key, value, ok := strings.Cut(s, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			mistakes = append(mistakes, Mistake{Text: fmt.Sprintf("--set %q is not key=value", s)})
			continue
		}
		settings = append(settings, Setting{key, value, Origin{Flag: true}})
	}
	n, w, more := load(settings)
	if mistakes = append(mistakes, more...); len(mistakes) > 0 {
		return nil, append(warnings, w...), mistakes
	}
	return n, append(warnings, w...), nil
}

// FromMap is Load from a plain map, for tests and samsa dev.
func FromMap(values map[string]string) (*Node, error) {
	var settings []Setting
	for _, key := range slices.Sorted(maps.Keys(values)) {
		settings = append(settings, Setting{key, values[key], Origin{}})
	}
	n, _, mistakes := load(settings)
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return n, nil
}

func load(settings []Setting) (*Node, []string, Mistakes) {
	static := map[string]string{}
	origins := map[string]Origin{}
	for _, s := range settings {
		static[s.Key], origins[s.Key] = s.Value, s.Origin
	}
	n, failures := build(layers{static: withNodeID(static)})
	failures = append(failures, unavailable(n.view)...)
	order := map[string]int{} // as written, then what is not written
	for i, s := range settings {
		order[s.Key] = i - len(settings)
	}
	sort.SliceStable(failures, func(i, j int) bool { return order[failures[i].key] < order[failures[j].key] })
	var mistakes Mistakes
	for _, f := range failures {
		m := Mistake{Key: f.key, Text: f.text, Origin: origins[f.key]}
		if t := configType(f.key); t != Password && t != Unknown {
			m.Value = static[f.key]
		}
		if k, ok := Broker.Key(f.key); ok && f.syntax {
			m.Hint = allowed(k)
		}
		mistakes = append(mistakes, m)
	}
	return n, staticWarnings(n, origins), mistakes
}

// allowed is what a key takes, for people.
func allowed(k *Key) string {
	s := strings.ToLower(k.Type.String())
	if k.Check != nil && k.Check.String() != "" {
		s += " " + k.Check.String()
	}
	return s
}

// javaEnvironment are variables of Kafka's start scripts that are no settings.
var javaEnvironment = []string{"KAFKA_OPTS", "KAFKA_HEAP_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_GC_LOG_OPTS", "KAFKA_JMX_OPTS",
	"KAFKA_LOG4J_OPTS", "KAFKA_LOG4J_CMD_OPTS", "KAFKA_DEBUG", "KAFKA_HOME", "KAFKA_VERSION"}

// fromEnviron turns KAFKA_LOG_DIRS into log.dirs. Three underscores stand for a dash, two for an
// underscore, one for a dot, as in Kafka's container images. What is no setting is left alone: the
// environment belongs to others too.
func fromEnviron(environ []string) (out []Setting, warnings []string) {
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		rest, ok := strings.CutPrefix(name, "KAFKA_")
		if !ok || rest == "" || slices.Contains(javaEnvironment, name) {
			continue
		}
		key := strings.NewReplacer("___", "-", "__", "_", "_", ".").Replace(strings.ToLower(rest))
		if configType(key) == Unknown {
			warnings = append(warnings, fmt.Sprintf("environment variable %s is ignored: there is no setting %s", name, key))
			continue
		}
		out = append(out, Setting{key, value, Origin{Env: name}})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	sort.Strings(warnings)
	return out, warnings
}

// removed are keys of older Kafkas: how they begin, and what to say.
var removed = []struct{ prefix, why string }{
	{"zookeeper.", "ZooKeeper is gone since Kafka 4.0"},
	{"log.message.format.version", "removed in Kafka 4.0"},
	{"log.message.timestamp.difference.max.ms", "removed in Kafka 4.0: use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"},
	{"log.message.downconversion.enable", "removed in Kafka 4.0"},
	{"inter.broker.protocol.version", "removed in Kafka 4.0: the cluster's metadata.version is a feature"},
	{"offsets.commit.required.acks", "removed in Kafka 4.0: commits always wait for all in-sync replicas"},
	{"broker.id.generation.enable", "removed in Kafka 4.0"},
	{"reserved.broker.max.id", "removed in Kafka 4.0"},
	{"control.plane.listener.name", "removed in Kafka 4.0: use controller.listener.names"},
	{"controlled.shutdown.max.retries", "removed in Kafka 4.0"},
	{"controlled.shutdown.retry.backoff.ms", "removed in Kafka 4.0"},
	{"password.encoder.", "removed in Kafka 4.0"},
	{"delegation.token.master.key", "removed in Kafka 4.0: use delegation.token.secret.key"},
	{"auto.include.jmx.reporter", "removed in Kafka 4.0"},
	{"leader.imbalance.per.broker.percentage", "removed in Kafka 4.0"},
	{"group.coordinator.new.enable", "removed in Kafka 4.0"},
}

// staticWarnings are words for the log about settings that change nothing, or soon will not.
func staticWarnings(n *Node, origins map[string]Origin) []string {
	var out []string
	warn := func(key, format string, args ...any) {
		out = append(out, fmt.Sprintf("%s (%s): %s", key, origins[key], fmt.Sprintf(format, args...)))
	}
	for _, key := range slices.Sorted(maps.Keys(origins)) {
		if why := unknownKey(n, key); why != "" {
			warn(key, "%s", why)
		}
	}
	isSet := func(key string) bool { _, ok := origins[key]; return ok }
	if isSet("broker.id") {
		warn("broker.id", "is deprecated, use node.id")
	}
	if isSet("log.cleaner.enable") && n.sane("log.cleaner.enable") {
		warn("log.cleaner.enable", "is deprecated; compacted topics always need cleaning")
	}
	if isSet("group.coordinator.rebalance.protocols") {
		warn("group.coordinator.rebalance.protocols", "is deprecated; feature levels decide which groups are served")
	}
	if n.Broker && !n.Controller {
		for _, key := range []string{"create.topic.policy.class.name", "alter.config.policy.class.name", "num.partitions", "default.replication.factor"} {
			if isSet(key) {
				warn(key, "belongs to the controllers, where topics are made")
			}
		}
		if len(n.ControllerListenerNames) > 1 {
			warn(controllerNamesKey, "has multiple entries; only the first will be used by a broker")
		}
	}
	if len(n.Quorum.Voters) > 0 && len(n.Quorum.BootstrapServers) > 0 {
		warn(bootstrapKey, "is used to find the quorum; controller.quorum.voters is not")
	}
	if why := n.heartbeatWarning(); why != "" {
		warn("broker.heartbeat.interval.ms", "%s", why)
	}
	return out
}

func unknownKey(n *Node, key string) string {
	if _, ok := Broker.Key(key); ok {
		return ""
	}
	if _, ok := DynamicOnly.Key(key); ok {
		return "can be set only while the node runs (kafka-configs.sh)"
	}
	if base, ok := listenerBase(key); ok {
		if _, ok := Broker.Key(base); ok || strings.Contains(base, ".sasl.") {
			return ""
		}
		return "no listener has such a setting; ignored"
	}
	for _, prefix := range []string{"remote.log.metadata.manager.impl.prefix", "remote.log.storage.manager.impl.prefix"} {
		if p := n.text(prefix); p != "" && strings.HasPrefix(key, p) {
			return ""
		}
	}
	for _, r := range removed {
		if strings.HasPrefix(key, r.prefix) {
			return r.why + "; ignored"
		}
	}
	return "unknown setting; ignored"
}

// unavailable are settings that ask for Java code. What only watches (metric reporters) is ignored;
// what decides (who may do what, which topics may exist) stops the start, because a node that
// silently decides otherwise is worse than none.
func unavailable(v *view) []failure {
	var out []failure
	refuse := func(key, format string, args ...any) {
		out = append(out, failure{key: key, text: fmt.Sprintf(format, args...)})
	}
	for _, key := range []string{
		"create.topic.policy.class.name", "alter.config.policy.class.name", "client.quota.callback.class", "group.streams.topology.description.plugin.class",
		"sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class", "sasl.server.callback.handler.class",
		"ssl.engine.factory.class", "ssl.provider",
	} {
		for name, value := range v.props {
			base, ok := listenerBase(name)
			if (name == key || ok && base == key) && javaTrim(value) != "" {
				refuse(name, "samsa runs no Java classes; remove the setting, or keep Apache Kafka where %s is needed", javaTrim(value))
			}
		}
	}
	known := func(key string, names ...string) {
		if s := v.text(key); s != "" && !slices.Contains(names, s) {
			refuse(key, "samsa runs no Java classes but knows %s", strings.Join(names, ", "))
		}
	}
	known("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
	known("principal.builder.class", "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder")
	known("replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector", "org.apache.kafka.common.replica.LeaderSelector")
	known("sasl.oauthbearer.jwt.retriever.class", "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever")
	known("sasl.oauthbearer.jwt.validator.class", "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator")
	if len(v.list("config.providers")) > 0 {
		refuse("config.providers", "values from config providers are not available; write the values themselves, or use environment variables")
	}
	if v.boolean("remote.log.storage.system.enable") {
		refuse("remote.log.storage.system.enable", "tiered storage is not available: its storage is a Java class")
	}
	return out
}
