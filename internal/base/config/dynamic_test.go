package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"samsa/internal/base/kerr"
)

// K-166: topic override, then the node's own dynamic config, cluster default, file, built-in.
func TestTopicLayers(t *testing.T) {
	static := mustNode(t, base(kv{"log.retention.hours": "2", "min.insync.replicas": "2", "log.segment.bytes": "2000000"}), nil, nil)
	if got := static.Topic(nil); got.RetentionMs != 2*3600_000 || got.MinInSyncReplicas != 2 || got.SegmentBytes != 2000000 || !got.Delete || got.Compact {
		t.Errorf("file: %+v", got)
	}
	n, warnings := static.WithDynamic(kv{"log.segment.bytes": "3000000"}, kv{"log.segment.bytes": "4000000", "log.retention.ms": "5", "min.insync.replicas": "3"})
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	if got := n.Topic(nil); got.RetentionMs != 5 || got.MinInSyncReplicas != 3 || got.SegmentBytes != 3000000 {
		t.Errorf("dynamic: %+v", got)
	}
	got := n.Topic(kv{"segment.bytes": "1048576", "cleanup.policy": "compact", "retention.ms": "-1", "message.timestamp.type": "LogAppendTime",
		"leader.replication.throttled.replicas": "0:1, 2:3", "follower.replication.throttled.replicas": "*"})
	if got.SegmentBytes != 1048576 || !got.Compact || got.Delete || got.RetentionMs != -1 || !got.LogAppendTime || got.LocalRetentionMs != -1 {
		t.Errorf("topic: %+v", got)
	}
	if l, f := got.LeaderThrottledReplicas, got.FollowerThrottledReplicas; !l.Has(2, 3) || l.Has(2, 1) || !f.Has(9, 9) {
		t.Errorf("throttled: %+v %+v", l, f)
	}
	if back, _ := n.WithDynamic(nil, nil); back.Topic(nil).SegmentBytes != 2000000 {
		t.Error("removed dynamic configs stay")
	}
	if static.Topic(nil).SegmentBytes != 2000000 {
		t.Error("a node has changed")
	}
}

// K-166: what is unknown or no good in the log is left out and does no harm.
func TestTopicLeavesOutWhatIsNoGood(t *testing.T) {
	overrides := kv{"retention.ms": "x", "from.the.future": "1", "segment.bytes": "5", "max.message.bytes": "77"}
	got := Default().Topic(overrides)
	want := *DefaultTopic()
	want.MaxMessageBytes = 77
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Error(diff)
	}
	if why := Default().IgnoredTopicOverrides(overrides); len(why) != 3 {
		t.Errorf("said %q", why)
	}
	if internal := Default().Topic(kv{"internal.segment.bytes": "100"}); internal.SegmentBytes != 100 {
		t.Errorf("internal.segment.bytes: %d", internal.SegmentBytes)
	}
}

func TestWithDynamicLeavesOutWhatMayNotBe(t *testing.T) {
	n, warnings := Default().WithDynamic(
		kv{"log.dirs": "/x", "num.io.threads": "many", "ssl.keystore.location": "/k", "max.connections": "9", "future": "1"},
		kv{"cordoned.log.dirs": "*", "num.network.threads": "5"})
	if n.Network.MaxConnections != 9 || n.Network.NumNetworkThreads != 5 || n.NumIOThreads != 8 || len(n.CordonedLogDirs) != 0 || n.LogDirs[0] != "/tmp/kafka-logs" {
		t.Errorf("node %+v", n)
	}
	for _, want := range []string{"log.dirs is left out: is read-only", "num.io.threads is left out: Invalid value many", "ssl.keystore.location is left out: can be set only with a listener prefix", "cordoned.log.dirs is left out: can be set only for one broker"} {
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("missing %q in %q", want, warnings)
		}
	}
}

// A layer that breaks a rule between settings is left out; the other one stays.
func TestWithDynamicBrokenRule(t *testing.T) {
	n, warnings := Default().WithDynamic(kv{"max.connections": "9"}, kv{"log.retention.ms": "0", "num.network.threads": "5"})
	if len(warnings) != 1 || n.Network.MaxConnections != 9 || n.Network.NumNetworkThreads != 3 || n.Topic(nil).RetentionMs != 604800000 {
		t.Errorf("node %+v, warnings %q", n, warnings)
	}
}

func TestWithDynamicCutsGroupSettings(t *testing.T) {
	n, warnings := Default().WithDynamic(nil, kv{"group.consumer.assignment.interval.ms": "99999"})
	if got := n.Int("group.consumer.assignment.interval.ms"); got != 15000 || len(warnings) > 0 {
		t.Errorf("%d, %q", got, warnings)
	}
}

func TestCordonedStar(t *testing.T) {
	n := mustNode(t, base(kv{"log.dirs": "/a,/b"}), kv{"cordoned.log.dirs": "*"}, nil)
	if !slices.Equal(n.CordonedLogDirs, []string{"/a", "/b"}) {
		t.Errorf("%q", n.CordonedLogDirs)
	}
}

func set(name, value string) Op { return Op{OpSet, name, &value} }
func op(t OpType, name, value string) Op {
	return Op{t, name, &value}
}

// K-165, D-204: the operations of IncrementalAlterConfigs.
func TestAlter(t *testing.T) {
	current := kv{"cleanup.policy": "compact", "retention.ms": "5"}
	for name, c := range map[string]struct {
		resource Resource
		ops      []Op
		want     kv
		err      *kerr.Error
		text     string
	}{
		"set":                    {ResourceTopic, []Op{set("retention.ms", "6")}, kv{"cleanup.policy": "compact", "retention.ms": "6"}, nil, ""},
		"delete":                 {ResourceTopic, []Op{{Type: OpDelete, Name: "retention.ms"}}, kv{"cleanup.policy": "compact"}, nil, ""},
		"delete_absent":          {ResourceTopic, []Op{{Type: OpDelete, Name: "segment.ms"}}, current, nil, ""},
		"append":                 {ResourceTopic, []Op{op(OpAppend, "cleanup.policy", "delete")}, kv{"cleanup.policy": "compact,delete", "retention.ms": "5"}, nil, ""},
		"append_present":         {ResourceTopic, []Op{op(OpAppend, "cleanup.policy", "compact")}, current, nil, ""},
		"append_to_default":      {ResourceBroker, []Op{op(OpAppend, "log.cleanup.policy", "compact")}, kv{"cleanup.policy": "compact", "retention.ms": "5", "log.cleanup.policy": "delete,compact"}, nil, ""},
		"subtract":               {ResourceTopic, []Op{op(OpSubtract, "cleanup.policy", "compact")}, kv{"cleanup.policy": "", "retention.ms": "5"}, nil, ""},
		"subtract_absent":        {ResourceTopic, []Op{op(OpSubtract, "cleanup.policy", "delete")}, current, nil, ""},
		"append_to_no_list":      {ResourceTopic, []Op{op(OpAppend, "retention.ms", "7")}, nil, kerr.InvalidConfig, "Can't APPEND to key retention.ms because its type is not LIST."},
		"subtract_from_unknown":  {ResourceTopic, []Op{op(OpSubtract, "foo", "7")}, nil, kerr.InvalidConfig, "Can't SUBTRACT to key foo because its type is not LIST."},
		"key_twice":              {ResourceTopic, []Op{set("a", "1"), set("a", "2")}, nil, kerr.InvalidRequest, "Error due to duplicate config keys"},
		"null_value":             {ResourceTopic, []Op{{Type: OpSet, Name: "a"}}, nil, kerr.InvalidRequest, "Null value not supported for : a"},
		"unknown_operation":      {ResourceTopic, []Op{op(9, "a", "1")}, nil, kerr.InvalidRequest, "Unknown operations type 9"},
		"value_longer_than_that": {ResourceTopic, []Op{set("a", strings.Repeat("x", 32768))}, nil, kerr.InvalidConfig, "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."},
	} {
		got, err := Alter(c.resource, current, c.ops, nil)
		if c.err != nil {
			if !errors.Is(err, c.err) || err.Error() != c.text {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if current["retention.ms"] != "5" || len(current) != 2 {
		t.Error("the stored configs were changed")
	}
}

// D-219, K-165: what a broker refuses before it forwards.
func TestAlterBroker(t *testing.T) {
	n := Default()
	for name, c := range map[string]struct {
		ops  []Op
		err  *kerr.Error
		text string
	}{
		"good":            {[]Op{set("max.connections", "5")}, nil, ""},
		"read_only":       {[]Op{set("num.partitions", "5")}, kerr.InvalidRequest, "Cannot update these configs dynamically: [num.partitions]"},
		"append_unknown":  {[]Op{op(OpAppend, "foo", "5")}, kerr.InvalidConfig, "Unknown config name: foo"},
		"append_number":   {[]Op{op(OpAppend, "max.connections", "5")}, kerr.InvalidConfig, "Config value append is not allowed for config key: max.connections"},
		"append_list":     {[]Op{op(OpAppend, "log.cleanup.policy", "compact")}, nil, ""},
		"subtract_number": {[]Op{op(OpSubtract, "max.connections", "5")}, kerr.InvalidConfig, "Config value subtract is not allowed for config key: max.connections"},
		"half_the_threads": {[]Op{set("num.io.threads", "3")}, kerr.InvalidRequest,
			"Dynamic thread count update validation failed for num.io.threads=3, value should be at least half the current value 8"},
		"thrice_the_threads": {[]Op{set("num.io.threads", "24")}, kerr.InvalidRequest,
			"Dynamic thread count update validation failed for num.io.threads=24, value should not be greater than double the current value 8"},
		"local_above_total": {[]Op{set("log.local.retention.bytes", "5"), set("log.retention.bytes", "4")}, kerr.InvalidRequest,
			"Invalid value 5 for configuration log.local.retention.bytes: Value must not be more than log.retention.bytes property value: 4"},
		"listener_gone": {[]Op{set("listeners", "CONTROLLER://127.0.0.1:9093,SSL://:1"), set("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,SSL:SSL")}, kerr.InvalidRequest, ""},
		"protocol_changed": {[]Op{set("listener.security.protocol.map", "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT")}, kerr.InvalidRequest,
			"Security protocol cannot be updated for existing listener PLAINTEXT"},
		"listener_setting": {[]Op{set("listener.name.plaintext.ssl.client.auth", "none")}, kerr.InvalidRequest,
			"Configs cannot be updated dynamically for existing listener PLAINTEXT, restart broker or create a new listener for update"},
	} {
		err := n.AlterBroker(false, kv{"stored.by.another.version": "1", "log.dirs": "/stays/out"}, c.ops)
		if c.err == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, c.err) || c.text != "" && err.Error() != c.text {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, ok := range map[string]bool{"": true, "1": true, "-1": false, "x": false} {
		if err := ValidateBrokerRecord(name, nil); (err == nil) != ok {
			t.Errorf("broker name %q: %v", name, err)
		}
	}
}

// Every topic rule once more without Kafka at hand, with tiered storage available.
func TestRemoteRules(t *testing.T) {
	n := Default()
	n.vals["remote.log.storage.system.enable"] = true
	on := func(more kv) kv {
		more["remote.storage.enable"] = "true"
		return more
	}
	for name, c := range map[string]struct {
		proposed kv
		text     string
	}{
		"good":           {on(kv{}), ""},
		"compact":        {on(kv{"cleanup.policy": "compact"}), "Remote log storage only supports"},
		"no_policy":      {on(kv{"cleanup.policy": ""}), ""},
		"local_bytes":    {on(kv{"retention.bytes": "5", "local.retention.bytes": "6"}), "Invalid value 6 for configuration local.retention.bytes: Value must not be more than retention.bytes property value: 5"},
		"local_no_limit": {on(kv{"retention.ms": "5", "local.retention.ms": "-1"}), "Invalid value -1 for configuration local.retention.ms: Value must not be -1 as retention.ms value is set as 5."},
		"lag":            {on(kv{"retention.ms": "5", "remote.copy.lag.ms": "6"}), "Invalid value 6 for configuration remote.copy.lag.ms: Value must not exceed local.retention.ms (effective value: 5)"},
		"copy_disabled":  {on(kv{"retention.ms": "5", "local.retention.ms": "4", "remote.log.copy.disable": "true"}), "When `remote.log.copy.disable` is set to true, the `local.retention.ms`"},
	} {
		err := n.ValidateTopic(nil, c.proposed)
		if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.HasPrefix(err.Error(), c.text)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// D-219: asked for by name, names that do not exist are left out.
func TestDescribeByName(t *testing.T) {
	got := Default().DescribeTopic(kv{"retention.ms": "5", "stranger": "x"}, []string{"retention.ms", "nope", "stranger"})
	if len(got) != 2 || got[0].Name != "retention.ms" || *got[0].Value != "5" || got[0].Source != SourceTopic || got[1].Value != nil || !got[1].Sensitive {
		t.Errorf("%+v", got)
	}
	metrics := DescribeClientMetrics(kv{"interval.ms": "500"}, nil)
	if len(metrics) != 3 || *metrics[0].Value != "500" || metrics[0].Source != SourceClientMetrics || metrics[1].Source != SourceDefault {
		t.Errorf("%+v", metrics)
	}
}

// Our own keys appear where they are set, as Kafka shows settings it hides.
func TestDescribeSamsaKeys(t *testing.T) {
	find := func(n *Node) *Entry {
		for _, e := range n.DescribeBroker(nil) {
			if e.Name == "delete.stale.topic.delay.ms" {
				return &e
			}
		}
		return nil
	}
	if e := find(Default()); e != nil {
		t.Errorf("shown although not set: %+v", e)
	}
	if e := find(mustNode(t, base(kv{"delete.stale.topic.delay.ms": "7"}), nil, nil)); e == nil || *e.Value != "7" || !e.ReadOnly || e.Source != SourceStaticBroker {
		t.Errorf("%+v", e)
	}
}

func TestDocLinesAreThere(t *testing.T) {
	for _, def := range []*Def{Broker, DynamicOnly, Topics, Groups, ClientMetrics} {
		for _, name := range def.Names() {
			if k, _ := def.Key(name); len(k.Doc) < 10 || !strings.HasSuffix(k.Doc, ".") {
				t.Errorf("%s: doc line %q", name, k.Doc)
			}
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(combined))
	f.Add([]byte(brokerOnly))
	f.Add([]byte(controllerOnly))
	f.Add([]byte("listeners=://:1\nlistener.security.protocol.map=:,:\ncontroller.quorum.voters=@:,1@[:1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, _, err := Load(Input{File: "f", Properties: data})
		if err != nil {
			if m := err.(Mistakes); len(m) == 0 {
				t.Fatal("an error without a mistake")
			}
			return
		}
		n.DescribeBroker(nil)
		n.Topic(nil)
	})
}
