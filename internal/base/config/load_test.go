package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"samsa/internal/base/model"
)

const combined = `process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
controller.quorum.bootstrap.servers=localhost:9093
`

const brokerOnly = `process.roles=broker
node.id=7
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://h:9092
controller.quorum.voters=1@h:9093,2@h:9094
`

const controllerOnly = `process.roles=controller
node.id=1
controller.listener.names=CONTROLLER
listeners=CONTROLLER://:9093
controller.quorum.voters=1@vote:9093,2@h:9094
`

// files are whole properties files: base, what is added, and a word for the failure.
var files = map[string][2]string{
	"combined":                          {combined, ""},
	"broker":                            {brokerOnly, ""},
	"controller":                        {controllerOnly, ""},
	"no_roles":                          {"", "node.id=1\ncontroller.listener.names=C"},
	"role_twice":                        {combined, "process.roles=broker,broker,controller"},
	"unknown_role":                      {combined, "process.roles=broker,zookeeper"},
	"empty_roles":                       {combined, "process.roles="},
	"no_node_id":                        {"", "process.roles=broker\ncontroller.listener.names=C\ncontroller.quorum.voters=1@h:1"},
	"negative_node_id":                  {combined, "node.id=-1"},
	"broker_id_alone":                   {"", strings.Replace(combined, "node.id", "broker.id", 1)},
	"broker_id_differs":                 {combined, "broker.id=2"},
	"broker_id_equal":                   {combined, "broker.id=1"},
	"broker_is_voter":                   {brokerOnly, "node.id=2"},
	"controller_is_no_voter":            {controllerOnly, "node.id=3"},
	"combined_is_no_voter":              {combined, "controller.quorum.voters=5@h:1"},
	"no_quorum":                         {"", strings.Replace(combined, "controller.quorum.bootstrap.servers", "x", 1)},
	"voters_and_bootstrap":              {controllerOnly, "controller.quorum.bootstrap.servers=h:1"},
	"voter_form":                        {controllerOnly, "controller.quorum.voters=1@vote"},
	"voter_wildcard_host":               {controllerOnly, "controller.quorum.voters=1@0.0.0.0:9093"},
	"no_controller_names":               {"", strings.Replace(combined, "controller.listener.names", "x", 1)},
	"controller_names_lower_case":       {combined, "controller.listener.names=controller"},
	"broker_lists_controller":           {brokerOnly, "listeners=PLAINTEXT://h:9092,CONTROLLER://h:9093"},
	"controller_lists_broker":           {controllerOnly, "listeners=CONTROLLER://:9093,PLAINTEXT://:9092"},
	"controller_lists_none":             {controllerOnly, "listeners=PLAINTEXT://:9092"},
	"combined_lists_no_controller":      {combined, "listeners=PLAINTEXT://:9092"},
	"combined_lists_no_broker":          {combined, "listeners=CONTROLLER://:9093"},
	"second_controller_not_listed":      {controllerOnly, "controller.listener.names=CONTROLLER,OTHER"},
	"two_controllers":                   {controllerOnly, "controller.listener.names=CONTROLLER,OTHER\nlisteners=CONTROLLER://:9093,OTHER://:9094"},
	"listener_without_protocol":         {combined, "listeners=PLAINTEXT://:9092,CONTROLLER://:9093,FOO://:9094"},
	"listener_form":                     {combined, "listeners=PLAINTEXT:9092,CONTROLLER://:9093"},
	"listener_no_port":                  {combined, "listeners=PLAINTEXT://h,CONTROLLER://:9093"},
	"listener_name_twice":               {combined, "listeners=PLAINTEXT://:9092,PLAINTEXT://:9094,CONTROLLER://:9093"},
	"listener_port_twice":               {combined, "listeners=PLAINTEXT://:9092,CONTROLLER://:9092"},
	"listener_port_twice_v4_v6":         {combined, "listeners=PLAINTEXT://127.0.0.1:9092,INTERNAL://[::1]:9092,CONTROLLER://:9093\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"},
	"listener_port_twice_v4":            {combined, "listeners=PLAINTEXT://127.0.0.1:9092,INTERNAL://127.0.0.2:9092,CONTROLLER://:9093\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"},
	"port_zero_twice":                   {combined, "listeners=PLAINTEXT://:0,CONTROLLER://:0"},
	"listener_small_letters":            {combined, "listeners=plaintext://:9092,CONTROLLER://:9093"},
	"listener_ipv6":                     {combined, "listeners=PLAINTEXT://[::1]:9092,CONTROLLER://:9093"},
	"map_explicit":                      {combined, "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"},
	"map_without_controller":            {combined, "listener.security.protocol.map=PLAINTEXT:PLAINTEXT"},
	"map_without_controller_for_broker": {brokerOnly, "listener.security.protocol.map=PLAINTEXT:PLAINTEXT"},
	"map_form":                          {combined, "listener.security.protocol.map=PLAINTEXT"},
	"map_protocol":                      {combined, "listener.security.protocol.map=PLAINTEXT:TLS,CONTROLLER:PLAINTEXT"},
	"map_small_letters":                 {combined, "listener.security.protocol.map=plaintext:plaintext , controller:Plaintext"},
	"advertised":                        {combined, "advertised.listeners=PLAINTEXT://public:19092"},
	"advertised_wildcard":               {combined, "advertised.listeners=PLAINTEXT://0.0.0.0:9092"},
	"advertised_missing":                {combined, "listeners=PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"},
	"advertised_stranger":               {combined, "advertised.listeners=SSL://public:9092"},
	"advertised_controller":             {combined, "advertised.listeners=PLAINTEXT://public:9092,CONTROLLER://public:9093"},
	"advertised_controller_only":        {combined, "advertised.listeners=CONTROLLER://public:9093"},
	"advertised_same_ports":             {combined, "listeners=PLAINTEXT://:9092,INT://:9091,CONTROLLER://:9093\nadvertised.listeners=PLAINTEXT://a:9,INT://b:9\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,INT:PLAINTEXT,CONTROLLER:PLAINTEXT"},
	"inter_broker_name":                 {combined, "listeners=EXT://:9092,INT://:9091,CONTROLLER://:9093\nlistener.security.protocol.map=EXT:PLAINTEXT,INT:PLAINTEXT,CONTROLLER:PLAINTEXT\ninter.broker.listener.name=int"},
	"inter_broker_unknown":              {combined, "inter.broker.listener.name=INT"},
	"inter_broker_not_listed":           {combined, "inter.broker.listener.name=SSL"},
	"inter_broker_both":                 {combined, "inter.broker.listener.name=PLAINTEXT\nsecurity.inter.broker.protocol=PLAINTEXT"},
	"inter_broker_protocol":             {combined, "security.inter.broker.protocol=SSL"},
	"controller_inter_broker":           {controllerOnly, "inter.broker.listener.name=CONTROLLER\nlistener.security.protocol.map=CONTROLLER:PLAINTEXT"},
	"early_start":                       {combined, "early.start.listeners=PLAINTEXT"},
	"early_start_unknown":               {combined, "early.start.listeners=NOPE"},
	"auto_join_broker":                  {brokerOnly, "controller.quorum.auto.join.enable=true"},
	"log_dir":                           {combined, "log.dir=/x"},
	"log_dirs":                          {combined, "log.dirs=/a , /b,/a\nlog.dir=/x"},
	"log_dirs_empty":                    {combined, "log.dirs="},
	"log_dirs_hole":                     {combined, "log.dirs=/a,,/b"},
	"metadata_dir":                      {combined, "log.dirs=/a,/b\nmetadata.log.dir=/m"},
	"cordoned":                          {combined, "log.dirs=/a,/b\ncordoned.log.dirs=/b"},
	"cordoned_all":                      {combined, "log.dirs=/a,/b\ncordoned.log.dirs=*"},
	"cordoned_all_and_one":              {combined, "log.dirs=/a,/b\ncordoned.log.dirs=*,/a"},
	"cordoned_unknown":                  {combined, "log.dirs=/a,/b\ncordoned.log.dirs=/c,/d"},
	"cordoned_on_controller":            {controllerOnly, "cordoned.log.dirs=/c"},
	"retention_minutes":                 {combined, "log.retention.minutes=3\nlog.retention.hours=9"},
	"retention_ms":                      {combined, "log.retention.minutes=3\nlog.retention.ms=77"},
	"retention_zero":                    {combined, "log.retention.ms=0"},
	"retention_negative":                {combined, "log.retention.ms=-7"},
	"roll_hours":                        {combined, "log.roll.hours=2"},
	"roll_zero":                         {combined, "log.roll.ms=0"},
	"roll_jitter_negative":              {combined, "log.roll.jitter.ms=-1"},
	"flush":                             {combined, "log.flush.scheduler.interval.ms=5"},
	"dedupe_buffer":                     {combined, "log.cleaner.dedupe.buffer.size=1048576"},
	"dedupe_buffer_threads":             {combined, "log.cleaner.threads=200"},
	"fetch_wait_above_socket":           {combined, "replica.fetch.wait.max.ms=30001"},
	"fetch_wait_above_lag":              {combined, "replica.lag.time.max.ms=499"},
	"queued_bytes":                      {combined, "queued.max.request.bytes=1000"},
	"per_ip_zero":                       {combined, "max.connections.per.ip=0"},
	"per_ip_zero_overrides":             {combined, "max.connections.per.ip=0\nmax.connections.per.ip.overrides=127.0.0.1:5,h:6"},
	"per_ip_overrides_host":             {combined, "max.connections.per.ip.overrides=a b:5"},
	"per_ip_overrides_number":           {combined, "max.connections.per.ip.overrides=h:x"},
	"idle_below_delay":                  {combined, "connections.max.idle.ms=50"},
	"idle_never":                        {combined, "connections.max.idle.ms=-1"},
	"no_classic":                        {combined, "group.coordinator.rebalance.protocols=consumer"},
	"sasl_mechanism":                    {combined, "listeners=SASL_PLAINTEXT://:9092,CONTROLLER://:9093\nsecurity.inter.broker.protocol=SASL_PLAINTEXT\nlistener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\nsasl.mechanism.inter.broker.protocol=PLAIN"},
	"sasl_mechanism_listener":           {combined, "listeners=SASL_PLAINTEXT://:9092,CONTROLLER://:9093\nsecurity.inter.broker.protocol=SASL_PLAINTEXT\nlistener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\nsasl.mechanism.inter.broker.protocol=PLAIN\nlistener.name.sasl_plaintext.sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN"},
	"ssl_controller_name":               {combined, "controller.listener.names=SSL\nlisteners=PLAINTEXT://:9092,SSL://:9093"},
	"group_session_heartbeat":           {combined, "group.consumer.min.session.timeout.ms=1000\ngroup.consumer.session.timeout.ms=5000"},
	"group_heartbeat_max":               {combined, "group.consumer.heartbeat.interval.ms=20000"},
	"group_min_above_max":               {combined, "group.streams.min.session.timeout.ms=61000"},
	"share_assignors":                   {combined, "group.share.session.timeout.ms=44000"},
	"share_delivery":                    {combined, "group.share.max.delivery.count.limit=5\ngroup.share.delivery.count.limit=6"},
	"share_sessions":                    {combined, "group.share.max.share.sessions=100"},
	"streams_standby":                   {combined, "group.streams.num.standby.replicas=3"},
	"streams_tags_twice":                {combined, "group.streams.rack.aware.assignment.tags=a,a"},
	"bad_number":                        {combined, "num.partitions=x"},
	"out_of_range":                      {combined, "num.partitions=0"},
	"unknown_key":                       {combined, "foo.bar=1\nzookeeper.connect=z:2181"},
	"heartbeat_above_session":           {combined, "broker.heartbeat.interval.ms=8000"},
}

// D-206, K-01, K-02, K-03, S-01: every file is taken or refused as Kafka takes or refuses it, for
// the same reason, and what is derived from it is the same.
func TestFilesAsKafka(t *testing.T) {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	var in strings.Builder
	for _, name := range names {
		in.WriteString(base64.StdEncoding.EncodeToString([]byte(files[name][0]+files[name][1])) + "\n")
	}
	rows := peer(t, "Check.java", in.String())
	if len(rows) != len(names) {
		t.Fatalf("%d answers to %d files", len(rows), len(names))
	}
	// Where samsa says no and Kafka finds out later, or in other words.
	differs := map[string]string{
		"voter_wildcard_host": "Kafka refuses it when the quorum starts",
	}
	taken, refused := 0, 0
	for i, name := range names {
		n, _, err := Load(Input{File: "f", Properties: []byte(files[name][0] + files[name][1])})
		verdict, text := str(rows[i][0]), str(rows[i][1])
		if differs[name] != "" {
			continue
		}
		if verdict == "ok" {
			taken++
			if err != nil {
				t.Errorf("%s: refused, Kafka takes it:\n%v", name, err)
			} else if got := derived(n); got != text {
				t.Errorf("%s: derived\n%s\nKafka\n%s", name, got, text)
			}
			continue
		}
		refused++
		var mistakes Mistakes
		if !errors.As(err, &mistakes) {
			t.Errorf("%s: taken, Kafka says %q", name, text)
			continue
		}
		text = strings.TrimPrefix(text, "requirement failed: ")
		if !slices.ContainsFunc(mistakes, func(m Mistake) bool { return alike(m.Text, text) }) {
			t.Errorf("%s: our mistakes\n%v\nKafka\n%s", name, mistakes, text)
		}
	}
	t.Logf("%d files taken, %d refused", taken, refused)
}

// alike: the same words, but for lists and for what an exception of Java's library says.
func alike(ours, kafkas string) bool {
	if ours == kafkas {
		return true
	}
	for _, stem := range []string{"Error creating broker listeners from", "Error parsing configuration property", "All entries in cordoned.log.dirs", "Invalid security protocol",
		"If process.roles contains", "advertised.listeners listener names", "inter.broker.listener.name must be a listener name", "Configuration 'process.roles'",
		"Missing required configuration", "early.start.listeners contains", "max.connections.per.ip.overrides contains", "Disabling the 'classic'", "Unable to parse a listener name"} {
		if strings.HasPrefix(strings.ToLower(ours), strings.ToLower(stem)) && strings.HasPrefix(strings.ToLower(kafkas), strings.ToLower(stem)) {
			return true
		}
	}
	return false
}

func derived(n *Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "roll=%d retention=%d flush=%d dirs=[%s] metadata=%s", n.rollMs(), n.retentionMs(), n.flushMs(), strings.Join(n.LogDirs, ", "), n.MetadataLogDir)
	fmt.Fprintf(&b, " interbroker=%s/%v broker=", n.InterBrokerListenerName, n.InterBrokerProtocol)
	for _, l := range n.AdvertisedListeners {
		fmt.Fprintf(&b, "%s://%s:%d/%v,", l.Name, l.Host, l.Port, l.Protocol)
	}
	b.WriteString(" controller=")
	for _, l := range n.AdvertisedControllerListeners {
		fmt.Fprintf(&b, "%s://%s:%d/%v,", l.Name, l.Host, l.Port, l.Protocol)
	}
	return b.String()
}

// All mistakes at once, each with key, value, what is allowed, and where it was written.
func TestAllMistakesAtOnce(t *testing.T) {
	_, warnings, err := Load(Input{
		File:       "server.properties",
		Properties: []byte(combined + "num.partitions=0\nlog.dirs=\nssl.key.password=secret\nfoo=1\n"),
		Environ:    []string{"KAFKA_NUM_IO_THREADS=many", "KAFKA_HEAP_OPTS=-Xmx1g", "PATH=/bin", "KAFKA_FOO_BAR=1"},
		Set:        []string{"message.max.bytes=-5", "nonsense", "compression.type=rar"},
	})
	var m Mistakes
	if !errors.As(err, &m) {
		t.Fatalf("error %v", err)
	}
	text := m.Error()
	for _, want := range []string{
		`--set "nonsense" is not key=value`,
		`num.partitions = "0" (server.properties:6): Invalid value 0 for configuration num.partitions: Value must be at least 1 (allowed: int [1,...])`,
		`log.dirs (server.properties:7): Configuration 'log.dirs' must not be empty.`,
		`num.io.threads = "many" (environment variable KAFKA_NUM_IO_THREADS): Invalid value many for configuration num.io.threads: Not a number of type INT (allowed: int [1,...])`,
		`message.max.bytes = "-5" (--set): `,
		`compression.type = "rar" (--set): `,
		`allowed: string [uncompressed, zstd, lz4, snappy, gzip, producer]`,
		"6 mistakes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("a secret is shown")
	}
	for _, want := range []string{"foo (server.properties:9): unknown setting; ignored", "environment variable KAFKA_FOO_BAR is ignored: there is no setting foo.bar"} {
		if !slices.Contains(warnings, want) {
			t.Errorf("missing warning %q in %q", want, warnings)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	n, _, err := Load(Input{File: "f", Properties: []byte(combined + "num.partitions=2\nlog.dirs=/file\nnum.partitions=3\n"),
		Environ: []string{"KAFKA_LOG_DIRS=/env1,/env2", "KAFKA_NUM_PARTITIONS=4"}, Set: []string{"num.partitions=5"}})
	if err != nil {
		t.Fatal(err)
	}
	if n.NumPartitions != 5 || !slices.Equal(n.LogDirs, []string{"/env1", "/env2"}) {
		t.Errorf("partitions %d, directories %q", n.NumPartitions, n.LogDirs)
	}
}

// D-206: keys of older Kafkas and strangers are warnings, not mistakes.
func TestWarnings(t *testing.T) {
	_, warnings, err := Load(Input{File: "f", Properties: []byte(brokerOnly + `zookeeper.connect=z:2181
log.message.format.version=2.0
broker.id=7
num.partitions=3
leader.replication.throttled.rate=5
rsm.config.x=1
listener.name.plaintext.ssl.keystore.location=/k
listener.name.plaintext.nope=1
controller.listener.names=CONTROLLER,OTHER
log.cleaner.enable=true
broker.heartbeat.interval.ms=6000
`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"zookeeper.connect (f:6): ZooKeeper is gone", "log.message.format.version (f:7): removed in Kafka 4.0", "broker.id (f:8): is deprecated",
		"num.partitions (f:9): belongs to the controllers", "leader.replication.throttled.rate (f:10): can be set only while", "listener.name.plaintext.nope (f:13): no listener has",
		"controller.listener.names (f:14): has multiple entries", "log.cleaner.enable (f:15): is deprecated", "broker.heartbeat.interval.ms (f:16): broker.heartbeat"} {
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("missing %q", want)
		}
	}
	if len(warnings) != 9 {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
}

// What decides must not be ignored: a policy or an authorizer samsa cannot run stops the start.
func TestJavaClassesAreRefused(t *testing.T) {
	for name, added := range map[string]string{
		"policy":            "create.topic.policy.class.name=com.example.Policy",
		"authorizer":        "authorizer.class.name=com.example.Authorizer",
		"principal":         "principal.builder.class=com.example.Principal",
		"listener_callback": "listener.name.plaintext.plain.sasl.server.callback.handler.class=com.example.Callback",
		"providers":         "config.providers=vault",
		"tiering":           "remote.log.storage.system.enable=true",
		"selector":          "replica.selector.class=com.example.Selector",
	} {
		if _, _, err := Load(Input{Properties: []byte(combined + added)}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for name, added := range map[string]string{
		"standard_authorizer": "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"reporters":           "metric.reporters=com.example.Reporter",
		"rack_selector":       "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
	} {
		if _, _, err := Load(Input{Properties: []byte(combined + added)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNode(t *testing.T) {
	n, err := FromMap(map[string]string{
		"process.roles": "broker,controller", "node.id": "3", "controller.listener.names": "CONTROLLER", "broker.rack": "r1",
		"listeners": "PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093", "controller.quorum.voters": "3@me:9093,1@h:2",
		"log.dirs": "/a,/b", "metadata.max.idle.interval.ms": "0", "max.connections.per.ip.overrides": "h:5",
		"delete.stale.topic.delay.ms": "14400000", "samsa.http.listener": "", "log.flush.scheduler.interval.ms": "9223372036854775807",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Listener{{"CONTROLLER", "me", 9093, Plaintext}}
	if diff := cmp.Diff(want, n.AdvertisedControllerListeners); diff != "" {
		t.Error(diff)
	}
	if !n.Broker || !n.Controller || n.NodeID != 3 || n.Rack != "r1" || n.MetadataLogDir != "/a" || n.Quorum.MaxIdleInterval != 0 || n.Log.AlterLogDirsThreads != 2 {
		t.Errorf("node %+v", n)
	}
	if n.Network.MaxConnectionsPerIPOver["h"] != 5 || n.Samsa.DeleteStaleTopicDelayMs != 14400000 || n.Samsa.HTTPListener != "" || !n.Samsa.PartitionMetadataDetails {
		t.Errorf("node %+v", n)
	}
	if n.Millis("log.flush.scheduler.interval.ms") != 1<<63-1 || n.Millis("replica.fetch.wait.max.ms") != 500*time.Millisecond || n.Seconds("quota.window.size.seconds") != time.Second {
		t.Error("durations")
	}
	if n.Int("offsets.topic.replication.factor") != 3 || n.Long("num.partitions") != 1 || n.Text("compression.type") != "producer" || !n.IsNull("log.retention.ms") || n.IsSet("log.dir") || !n.IsSet("log.dirs") {
		t.Error("reading by name")
	}
	if n.Quorum.Voters[1] != (Voter{model.NodeID(1), "h", 2}) {
		t.Errorf("voters %v", n.Quorum.Voters)
	}
	if Default().Samsa.HTTPListener != "127.0.0.1:8080" {
		t.Error("the HTTP listener is loopback unless told otherwise")
	}
}

func TestForListener(t *testing.T) {
	n, err := FromMap(map[string]string{
		"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER", "controller.quorum.bootstrap.servers": "h:1",
		"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "ssl.keystore.location": "/plain", "listener.name.plaintext.ssl.keystore.location": " /own ",
		"listener.name.plaintext.plain.sasl.jaas.config": "x required;",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ listener, mechanism, name, want string }{
		{"PLAINTEXT", "", "ssl.keystore.location", "/own"},
		{"CONTROLLER", "", "ssl.keystore.location", "/plain"},
		{"PLAINTEXT", "PLAIN", "sasl.jaas.config", "x required;"},
		{"CONTROLLER", "PLAIN", "sasl.jaas.config", ""},
		{"CONTROLLER", "", "ssl.client.auth", "none"},
	} {
		if got, _ := n.ForListener(c.listener, c.mechanism, c.name); got != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
}
