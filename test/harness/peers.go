package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"samsa/test/peers"
)

func java(t testing.TB, level string, class string, args ...string) []string {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	if archive := peers.Kafka(t) + ".jsa"; exists(archive) { // half the time to start
		flags = []string{"-XX:SharedArchiveFile=" + archive, "-Xlog:disable"}
	}
	flags = append(flags, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dlog4j2.configurationFile="+filepath.Join(root, "tools/peers/log4j2.xml"), "-Dpeer.level="+level,
		"-cp", filepath.Join(peers.Kafka(t), "*"), class)
	return append(flags, args...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Tools are Kafka's command line tools by the names of their scripts without kafka- and .sh.
var Tools = map[string]string{
	"storage":             "kafka.tools.StorageTool",
	"topics":              "org.apache.kafka.tools.TopicCommand",
	"configs":             "org.apache.kafka.tools.ConfigCommand",
	"log-dirs":            "org.apache.kafka.tools.LogDirsCommand",
	"metadata-quorum":     "org.apache.kafka.tools.MetadataQuorumCommand",
	"dump-log":            "org.apache.kafka.tools.DumpLogSegments",
	"consumer-groups":     "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
	"groups":              "org.apache.kafka.tools.GroupsCommand",
	"features":            "org.apache.kafka.tools.FeatureCommand",
	"leader-election":     "org.apache.kafka.tools.LeaderElectionCommand",
	"broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
	"get-offsets":         "org.apache.kafka.tools.GetOffsetShell",
	"delete-records":      "org.apache.kafka.tools.DeleteRecordsCommand",
	"cluster":             "org.apache.kafka.tools.ClusterTool",
	"producer-perf-test":  "org.apache.kafka.tools.ProducerPerformance",
	"consumer-perf-test":  "org.apache.kafka.tools.ConsumerPerformance",
	"console-producer":    "org.apache.kafka.tools.ConsoleProducer",
	"console-consumer":    "org.apache.kafka.tools.consumer.ConsoleConsumer",
	"verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
	"verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
}

// Result is what a peer's program printed.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Tool runs one of Kafka's tools with input on its standard input, two minutes at most.
func Tool(t testing.TB, name, input string, args ...string) Result {
	t.Helper()
	class, ok := Tools[name]
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	return Run(t, 2*time.Minute, input, "java", java(t, "WARN", class, args...)...)
}

// MustTool is Tool that fails the test unless the tool exits with 0, and returns its output.
func MustTool(t testing.TB, name, input string, args ...string) string {
	t.Helper()
	r := Tool(t, name, input, args...)
	if r.Code != 0 {
		t.Fatalf("kafka-%s %s: exit code %d\n%s\n%s", name, strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Run runs a program with a time limit.
func Run(t testing.TB, limit time.Duration, input, program string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s %s: no end within %s\n%s\n%s", program, strings.Join(args, " "), limit, stdout.String(), stderr.String())
	}
	r := Result{Stdout: stdout.String(), Stderr: stderr.String()}
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", program, err)
	}
	r.Code = cmd.ProcessState.ExitCode()
	return r
}

// Python runs a script with the Python clients installed.
func Python(t testing.TB, limit time.Duration, input, script string, args ...string) Result {
	t.Helper()
	return Run(t, limit, input, filepath.Join(peers.Beside(t, "python"), "bin", "python"), append([]string{script}, args...)...)
}

// Node runs a script that can require kafkajs.
func NodeJS(t testing.TB, limit time.Duration, input, script string, args ...string) Result {
	t.Helper()
	modules := filepath.Join(peers.Beside(t, "node"), "node_modules")
	return Run(t, limit, input, "env", append([]string{"NODE_PATH=" + modules, "KAFKAJS_NO_PARTITIONER_WARNING=1", "node", script}, args...)...)
}

// Kcat runs kcat against a node.
func Kcat(t testing.TB, n *Node, input string, args ...string) Result {
	t.Helper()
	if _, err := exec.LookPath("kcat"); err != nil {
		peers.Missing(t, "kcat")
	}
	return Run(t, time.Minute, input, "kcat", append([]string{"-b", n.Addr}, args...)...)
}

// FormatKafka formats the node's directories with Apache Kafka's storage tool.
func (n *Node) FormatKafka() {
	n.t.Helper()
	MustTool(n.t, "storage", "", "format", "-t", "SamsaTestCluster000000", "-c", n.Properties, "--standalone")
}

// LaunchKafka runs Apache Kafka on the node and does not wait. It logs from level on.
func (n *Node) LaunchKafka(level string) {
	n.t.Helper()
	n.run(exec.Command("java", java(n.t, level, "kafka.Kafka", n.Properties)...))
}

// StartKafka runs Apache Kafka on the node and waits until it serves. It logs from level on.
func (n *Node) StartKafka(level string) {
	n.t.Helper()
	n.LaunchKafka(level)
	n.Eventually("Apache Kafka serves", 2*time.Minute, func() error { return Ping(n.Addr) })
}
