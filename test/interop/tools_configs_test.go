package interop

import "testing"

// D-193, D-197: kafka-configs on topics, brokers, loggers and groups.
func TestKafkaConfigs(t *testing.T) {
	t.Parallel()
	node := serve(t)
	createTopic(t, node, "orders", 1, nil)
	configs := func(args ...string) string { return tool(t, node, "configs", args...) }
	topic := []string{"--entity-type", "topics", "--entity-name", "orders"}
	with := func(entity []string, args ...string) string {
		return configs(append(entity[:len(entity):len(entity)], args...)...)
	}

	all := with(topic, "--describe", "--all")
	has(t, "all of a topic", all, `^All configs for topic orders are:$`,
		`^  retention\.ms=604800000 sensitive=false synonyms=\{\}$`,
		`^  segment\.bytes=1073741824 sensitive=false synonyms=\{DEFAULT_CONFIG:log\.segment\.bytes=1073741824\}$`)
	if n := matches(all, `^  `); n != 37 {
		t.Errorf("%d topic configs, expected 37:\n%s", n, all)
	}
	has(t, "alter a topic", with(topic, "--alter", "--add-config", "retention.ms=1000000,cleanup.policy=[compact,delete]"), `^Completed updating config for topic orders\.$`)
	has(t, "a topic's own", with(topic, "--describe"), `^Dynamic configs for topic orders are:$`,
		`^  cleanup\.policy=compact,delete sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:cleanup\.policy=compact,delete, DEFAULT_CONFIG:log\.cleanup\.policy=delete\}$`,
		`^  retention\.ms=1000000 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:retention\.ms=1000000\}$`)
	with(topic, "--alter", "--delete-config", "retention.ms")
	if got := with(topic, "--describe"); matches(got, `retention\.ms`) != 0 {
		t.Errorf("retention.ms is still there:\n%s", got)
	}
	has(t, "a bad value", refused(t, node, "configs", append(topic, "--alter", "--add-config", "retention.ms=soon")...),
		`InvalidConfigurationException: Invalid value soon for configuration retention\.ms: Not a number of type LONG`)
	has(t, "an unknown name", refused(t, node, "configs", append(topic, "--alter", "--add-config", "no.such=1")...), `InvalidConfigurationException: Unknown topic config name: no\.such`)
	has(t, "an unknown topic", refused(t, node, "configs", "--entity-type", "topics", "--entity-name", "nobody", "--alter", "--add-config", "retention.ms=1"),
		`UnknownTopicOrPartitionException: The topic 'nobody' does not exist\.`)

	broker := []string{"--entity-type", "brokers", "--entity-name", "1"}
	all = with(broker, "--describe", "--all")
	has(t, "all of a broker", all, `^All configs for broker 1 are:$`, `^  node\.id=1 sensitive=false synonyms=\{STATIC_BROKER_CONFIG:node\.id=1\}$`,
		`^  log\.retention\.hours=168 sensitive=false synonyms=\{DEFAULT_CONFIG:log\.retention\.hours=168\}$`,
		`^  ssl\.key\.password=null sensitive=true synonyms=\{\}$`)
	if n := matches(all, `^  `); n < 350 {
		t.Errorf("%d broker configs, expected at least 350", n)
	}
	has(t, "alter a broker", with(broker, "--alter", "--add-config", "log.retention.ms=7200000"), `^Completed updating config for broker 1\.$`)
	has(t, "a broker's own", with(broker, "--describe"), `^  log\.retention\.ms=7200000 sensitive=false synonyms=\{DYNAMIC_BROKER_CONFIG:log\.retention\.ms=7200000`)
	has(t, "what a broker's setting does to a topic", with(topic, "--describe", "--all"),
		`^  retention\.ms=7200000 sensitive=false synonyms=\{DYNAMIC_BROKER_CONFIG:log\.retention\.ms=7200000, DEFAULT_CONFIG:log\.retention\.hours=168\}$`)
	everyone := []string{"--entity-type", "brokers", "--entity-default"}
	has(t, "alter all brokers", with(everyone, "--alter", "--add-config", "log.retention.ms=3600000"), `^Completed updating default config for brokers in the cluster\.$`)
	has(t, "all brokers' own", with(everyone, "--describe"), `log\.retention\.ms=3600000`)
	with(broker, "--alter", "--delete-config", "log.retention.ms")
	has(t, "the default remains", with(topic, "--describe", "--all"), `^  retention\.ms=3600000 sensitive=false synonyms=\{DYNAMIC_DEFAULT_BROKER_CONFIG:log\.retention\.ms=3600000, DEFAULT_CONFIG:log\.retention\.hours=168\}$`)
	has(t, "read-only", refused(t, node, "configs", append(broker, "--alter", "--add-config", "log.dirs=/tmp")...), `Cannot update these configs dynamically: (Set\()?\[?log\.dirs`)

	loggers := []string{"--entity-type", "broker-loggers", "--entity-name", "1"}
	has(t, "loggers", with(loggers, "--describe"), `root=\w+|kafka\S*=\w+`)

	group := []string{"--entity-type", "groups", "--entity-name", "readers"}
	has(t, "alter a group", with(group, "--alter", "--add-config", "consumer.session.timeout.ms=50000"), `^Completed updating config for group readers\.$`)
	has(t, "a group's own", with(group, "--describe"), `^  consumer\.session\.timeout\.ms=50000 sensitive=false synonyms=\{DYNAMIC_GROUP_CONFIG:consumer\.session\.timeout\.ms=50000`)
	with(group, "--alter", "--delete-config", "consumer.session.timeout.ms")
}
