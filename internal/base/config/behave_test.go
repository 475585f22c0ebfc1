package config

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"samsa/internal/base/kerr"
)

type kv = map[string]string

func encode(args ...any) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte('\t')
		}
		var s string
		switch v := a.(type) {
		case string:
			s = v
		case kv:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				s += k + "=" + v[k] + "\n"
			}
		}
		if i == 0 {
			b.WriteString(s)
		} else {
			b.WriteString(base64.StdEncoding.EncodeToString([]byte(s)))
		}
	}
	return b.String() + "\n"
}

func base(added kv) kv {
	m := kv{"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER",
		"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093", "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
	maps.Copy(m, added)
	return m
}

func mustNode(t *testing.T, static, broker, cluster kv) *Node {
	t.Helper()
	n, err := FromMap(static)
	if err != nil {
		t.Fatal(err)
	}
	n, _ = n.WithDynamic(broker, cluster)
	return n
}

// D-219, D-205, T-133, K-166: what DescribeConfigs shows for a topic, the broker, the cluster default and a group,
// entry by entry with source and synonyms, as Kafka's own helper shows it.
func TestDescribeAsKafka(t *testing.T) {
	cases := map[string][5]kv{ // static, broker, cluster, topic, group
		"plain": {base(nil), nil, nil, nil, nil},
		"static": {base(kv{"log.retention.hours": "24", "log.roll.ms": "5000", "min.insync.replicas": "2", "ssl.key.password": "secret", "foo.bar": "x",
			"log.cleaner.min.cleanable.ratio": "1e-5", "log.dirs": "/a, /b", "internal.metadata.log.segment.bytes": "9000000", "group.streams.assignors": "sticky",
			"listener.name.plaintext.ssl.keystore.location": "/k", "ssl.keystore.location": "/j"}), nil, nil, nil, nil},
		"dynamic": {base(kv{"log.retention.hours": "24", "log.retention.ms": "99", "num.io.threads": "4"}),
			kv{"log.retention.ms": "77", "max.connections": "5", "listener.name.plaintext.ssl.keystore.type": "PEM", "stranger": "y"},
			kv{"log.retention.ms": "88", "log.segment.bytes": "2097152", "log.cleanup.policy": "compact,delete", "num.io.threads": "6", "leader.replication.throttled.rate": "1000"},
			kv{"segment.bytes": "1048576", "retention.bytes": " 7 "}, kv{"consumer.session.timeout.ms": "50000"}},
		"topic": {base(nil), nil, kv{"min.insync.replicas": "3"},
			kv{"retention.ms": "1", "cleanup.policy": "delete,compact", "internal.segment.bytes": "100", "min.cleanable.dirty.ratio": "0.001", "preallocate": " TRUE ", "segment.jitter.ms": "1"},
			kv{"share.auto.offset.reset": "earliest", "streams.assignor.name": "sticky", "share.assignor.offload.enable": "false"}},
		"group_dynamic": {base(kv{"group.consumer.assignor.offload.enable": "false"}), nil, kv{"group.consumer.assignment.interval.ms": "2000"}, nil, nil},
	}
	names := slices.Sorted(maps.Keys(cases))
	var in strings.Builder
	for _, name := range names {
		c := cases[name]
		in.WriteString(encode("describe", c[0], c[1], c[2], c[3], c[4]))
	}
	rows := peer(t, "Behave.java", in.String())
	for _, name := range names {
		c := cases[name]
		want := map[string][]string{}
		for len(rows) > 0 && str(rows[0][0]) != "end" {
			r := rows[0]
			rows = rows[1:]
			line := ""
			for _, f := range r[2:] {
				line += str(f) + " | "
			}
			want[str(r[1])] = append(want[str(r[1])], line)
		}
		rows = rows[1:]
		n := mustNode(t, c[0], c[1], c[2])
		for kind, entries := range map[string][]Entry{"topic": n.DescribeTopic(c[3], nil), "broker": n.DescribeBroker(nil),
			"cluster": n.DescribeClusterDefault(nil), "group": n.DescribeGroup(c[4], nil)} {
			var got []string
			for _, e := range entries {
				if e.Doc == "" && e.Type != Unknown && !strings.HasPrefix(e.Name, "listener.name.") {
					t.Errorf("%s: %s has no doc line", kind, e.Name)
				}
				synonyms := ""
				for _, s := range e.Synonyms {
					synonyms += fmt.Sprintf("%s=%s@%d ", s.Name, strings.ReplaceAll(str(s.Value), "<null>", "null"), s.Source)
				}
				got = append(got, fmt.Sprintf("%s | %s | %d | %d | %v | %v | %s | ", e.Name, str(e.Value), e.Type, e.Source, e.ReadOnly, e.Sensitive, synonyms))
			}
			if len(got) != len(want[kind]) {
				t.Errorf("%s %s: %d entries, Kafka has %d", name, kind, len(got), len(want[kind]))
			}
			for i := range min(len(got), len(want[kind])) {
				if got[i] != want[kind][i] {
					t.Errorf("%s %s:\n ours  %s\n Kafka %s", name, kind, got[i], want[kind][i])
				}
			}
		}
	}
}

// D-204, D-205, D-208, D-219, S-05, J-173, K-165: what Kafka takes and refuses when configs are altered, and its words.
func TestValidateAsKafka(t *testing.T) {
	tiered := base(nil)
	type test struct {
		name string
		ask  string
		run  func() error
	}
	var tests []test
	topic := func(name string, static, existing, proposed kv) {
		tests = append(tests, test{"topic " + name, encode("topic", static, existing, proposed), func() error {
			return mustNode(t, static, nil, nil).ValidateTopic(existing, proposed)
		}})
	}
	topic("good", tiered, nil, kv{"retention.ms": "5", "cleanup.policy": "compact", "compression.type": "zstd"})
	topic("nothing", tiered, nil, nil)
	topic("unknown", tiered, nil, kv{"foo": "1"})
	topic("gone", tiered, nil, kv{"message.format.version": "2.0"})
	topic("not_a_number", tiered, nil, kv{"retention.ms": "abc"})
	topic("below_range", tiered, nil, kv{"segment.bytes": "1"})
	topic("retention_minus_two", tiered, nil, kv{"retention.ms": "-2"})
	topic("retention_bytes_minus_seven", tiered, nil, kv{"retention.bytes": "-7"})
	topic("policy", tiered, nil, kv{"cleanup.policy": "shred"})
	topic("policy_empty", tiered, nil, kv{"cleanup.policy": ""})
	topic("lags_cross", tiered, nil, kv{"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"})
	topic("lag_crosses_broker", base(kv{"log.cleaner.max.compaction.lag.ms": "5"}), nil, kv{"min.compaction.lag.ms": "10"})
	topic("remote_disabled", tiered, nil, kv{"remote.storage.enable": "true"})
	topic("remote_turned_off", tiered, kv{"remote.storage.enable": "true"}, kv{"remote.storage.enable": "false"})
	topic("remote_turned_off_with_delete", tiered, kv{"remote.storage.enable": "true"}, kv{"remote.log.delete.on.disable": "true"})
	topic("throttled", tiered, nil, kv{"leader.replication.throttled.replicas": "1:x"})

	group := func(name string, static, proposed kv) {
		tests = append(tests, test{"group " + name, encode("group", static, proposed), func() error {
			return mustNode(t, static, nil, nil).ValidateGroup("g", proposed)
		}})
	}
	group("good", tiered, kv{"consumer.session.timeout.ms": "50000"})
	group("unknown", tiered, kv{"foo": "1"})
	group("above_range", tiered, kv{"consumer.session.timeout.ms": "60001"})
	group("below_range", tiered, kv{"consumer.heartbeat.interval.ms": "4999"})
	group("not_a_number", tiered, kv{"consumer.heartbeat.interval.ms": "x"})
	group("session_below_heartbeat", base(kv{"group.consumer.min.session.timeout.ms": "5000"}), kv{"consumer.session.timeout.ms": "5000"})
	group("standby", tiered, kv{"streams.num.standby.replicas": "3"})
	group("warmup", tiered, kv{"streams.num.warmup.replicas": "21"})
	group("task_offset", tiered, kv{"streams.task.offset.interval.ms": "14999"})
	group("assignor", tiered, kv{"streams.assignor.name": "loose"})
	group("tags", tiered, kv{"streams.rack.aware.assignment.tags": "a,a"})
	group("dead_letters", tiered, kv{"errors.deadletterqueue.topic.name": "__x"})
	group("offset_reset", tiered, kv{"share.auto.offset.reset": "by_duration:-P1D"})
	group("delivery", tiered, kv{"share.delivery.count.limit": "11"})
	group("lock_duration", tiered, kv{"share.record.lock.duration.ms": "14999"})
	group("isolation", tiered, kv{"share.isolation.level": "none"})

	metrics := func(name, subscription string, proposed kv) {
		tests = append(tests, test{"metrics " + name, encode("metrics", subscription, proposed), func() error {
			return ValidateClientMetrics(subscription, proposed)
		}})
	}
	metrics("good", "s", kv{"interval.ms": "100", "metrics": "*", "match": "client_id=a.*, client_software_name=b"})
	metrics("no_name", "", nil)
	metrics("unknown", "s", kv{"foo": "1"})
	metrics("interval_low", "s", kv{"interval.ms": "99"})
	metrics("interval_text", "s", kv{"interval.ms": "x"})
	metrics("match_form", "s", kv{"match": "client_id"})
	metrics("match_key", "s", kv{"match": "who=x"})
	metrics("match_regex", "s", kv{"match": "client_id=["})

	broker := func(name string, clusterDefault bool, static, b, c, proposed kv) {
		how := "perBroker"
		if clusterDefault {
			how = "cluster"
		}
		tests = append(tests, test{"broker " + name, encode("broker", static, b, c, proposed, how), func() error {
			return mustNode(t, static, b, c).ValidateBroker(clusterDefault, proposed)
		}})
	}
	broker("good", false, tiered, nil, nil, kv{"log.retention.ms": "5", "max.connections": "9"})
	broker("good_default", true, tiered, nil, nil, kv{"log.retention.ms": "5", "background.threads": "11"})
	broker("read_only", false, tiered, nil, nil, kv{"log.dirs": "/x"})
	broker("read_only_two", false, tiered, nil, nil, kv{"node.id": "4"})
	broker("retention_hours", true, tiered, nil, nil, kv{"log.retention.hours": "4"})
	broker("store_without_prefix", false, tiered, nil, nil, kv{"ssl.keystore.location": "/k"})
	broker("store_with_prefix", false, tiered, nil, nil, kv{"listener.name.plaintext.ssl.keystore.location": "/k"})
	broker("store_default", true, tiered, nil, nil, kv{"listener.name.plaintext.ssl.keystore.location": "/k"})
	broker("listener_limit_default", true, tiered, nil, nil, kv{"listener.name.plaintext.max.connections": "4"})
	broker("listeners_default", true, tiered, nil, nil, kv{"listeners": "PLAINTEXT://:1"})
	broker("not_a_number", false, tiered, nil, nil, kv{"log.retention.ms": "x"})
	broker("below_range", true, tiered, nil, nil, kv{"num.io.threads": "0"})
	broker("retention_zero", true, tiered, nil, nil, kv{"log.retention.ms": "0"})
	broker("stranger", false, tiered, nil, nil, kv{"no.such.setting": "5"})
	broker("cordoned", false, base(kv{"log.dirs": "/a,/b"}), nil, nil, kv{"cordoned.log.dirs": "/b"})
	broker("cordoned_unknown", false, base(kv{"log.dirs": "/a,/b"}), nil, nil, kv{"cordoned.log.dirs": "/c"})
	broker("cordoned_default", true, base(kv{"log.dirs": "/a,/b"}), nil, nil, kv{"cordoned.log.dirs": "/b"})
	broker("throttle", true, tiered, nil, nil, kv{"leader.replication.throttled.rate": "-1"})
	broker("throttle_good", false, tiered, nil, nil, kv{"leader.replication.throttled.rate": "1"})
	broker("dedupe", true, tiered, nil, nil, kv{"log.cleaner.dedupe.buffer.size": "1"})
	broker("per_ip_zero", true, tiered, nil, nil, kv{"max.connections.per.ip": "0"})
	broker("compression", true, tiered, nil, nil, kv{"compression.type": "rar"})

	var in strings.Builder
	for _, c := range tests {
		in.WriteString(c.ask)
	}
	rows := peer(t, "Behave.java", in.String())
	if len(rows) != len(tests) {
		t.Fatalf("%d answers to %d questions", len(rows), len(tests))
	}
	// Java's exceptions as codes; a ConfigException is INVALID_CONFIG on the controller and
	// INVALID_REQUEST where a broker checks its own dynamic configs.
	code := func(class, name string) *kerr.Error {
		switch {
		case strings.HasPrefix(name, "broker"):
			return kerr.InvalidRequest
		case class == "InvalidRequestException":
			return kerr.InvalidRequest
		}
		return kerr.InvalidConfig
	}
	for i, c := range tests {
		err := c.run()
		if str(rows[i][0]) == "ok" {
			if err != nil {
				t.Errorf("%s: refused with %q, Kafka takes it", c.name, err)
			}
			continue
		}
		class, text := str(rows[i][1]), str(rows[i][2])
		if err == nil {
			t.Errorf("%s: taken, Kafka says %s %q", c.name, class, text)
			continue
		}
		if err.Error() != text || kerr.Of(err) != code(class, c.name) {
			t.Errorf("%s: %v %q, Kafka says %s %q", c.name, kerr.Of(err).Name, err, class, text)
		}
	}
}
