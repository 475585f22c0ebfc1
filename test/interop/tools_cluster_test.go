package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"samsa/test/harness"
)

// D-195: kafka-log-dirs; and the tools that ask for offsets and delete records.
func TestKafkaOffsetTools(t *testing.T) {
	t.Parallel()
	node := serve(t)
	createTopic(t, node, "orders", partitions, nil)
	franzProduce(t, node, "orders", 300)

	out := tool(t, node, "log-dirs", "--describe")
	start := strings.Index(out, "{")
	if start < 0 {
		t.Fatalf("kafka-log-dirs printed no JSON:\n%s", out)
	}
	var dirs struct {
		Brokers []struct {
			Broker  int
			LogDirs []struct {
				LogDir     string
				Error      *string
				Partitions []struct {
					Partition string
					Size      int64
					OffsetLag int64
					IsFuture  bool
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out[start:]), &dirs); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	sizes := map[string]int64{}
	if len(dirs.Brokers) != 1 || len(dirs.Brokers[0].LogDirs) != 2 {
		t.Fatalf("log dirs: %+v", dirs)
	}
	for _, d := range dirs.Brokers[0].LogDirs {
		if d.Error != nil || d.LogDir != node.LogDirs[0] && d.LogDir != node.LogDirs[1] {
			t.Errorf("directory %s: error %v", d.LogDir, d.Error)
		}
		for _, p := range d.Partitions {
			sizes[p.Partition] = p.Size
			if p.IsFuture || p.OffsetLag != 0 {
				t.Errorf("%+v", p)
			}
			log := filepath.Join(d.LogDir, p.Partition, "00000000000000000000.log")
			if info, err := os.Stat(log); err != nil || info.Size() != p.Size {
				t.Errorf("%s is said to hold %d bytes: %v", log, p.Size, err)
			}
		}
	}
	for p := range partitions {
		if sizes[fmt.Sprintf("orders-%d", p)] == 0 {
			t.Errorf("partition %d is missing or empty: %v", p, sizes)
		}
	}

	offsets := func(args ...string) string {
		return tool(t, node, "get-offsets", append([]string{"--topic", "orders"}, args...)...)
	}
	for _, c := range []struct{ time, want string }{
		{"-1", "orders:0:100\norders:1:100\norders:2:100\n"}, {"latest", "orders:0:100\norders:1:100\norders:2:100\n"},
		{"-2", "orders:0:0\norders:1:0\norders:2:0\n"}, {"earliest", "orders:0:0\norders:1:0\norders:2:0\n"},
		{"-4", "orders:0:0\norders:1:0\norders:2:0\n"}, {"0", "orders:0:0\norders:1:0\norders:2:0\n"},
		{"4102444800000", ""},
	} {
		if got := offsets("--time", c.time); got != c.want {
			t.Errorf("--time %s: %q, expected %q", c.time, got, c.want)
		}
	}
	has(t, "the greatest timestamp", offsets("--time", "-3"), `^orders:0:\d+$`, `^orders:2:\d+$`)
	// -5, the end of what is in remote storage, which nothing is.
	if got, want := offsets("--time", "-5"), ""; got != want {
		t.Errorf("--time -5: %q, expected %q", got, want)
	}
	if got, want := offsets("--partitions", "1,2"), "orders:1:100\norders:2:100\n"; got != want {
		t.Errorf("--partitions: %q, expected %q", got, want)
	}
	has(t, "offsets of nobody", refused(t, node, "get-offsets", "--topic", "nobody"), `Could not match any topic-partitions with the specified filters`)

	file := filepath.Join(t.TempDir(), "delete.json")
	del := func(content string) string {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return refusedText(t, node, "delete-records", "--offset-json-file", file)
	}
	has(t, "delete records", del(`{"version":1,"partitions":[{"topic":"orders","partition":0,"offset":30},{"topic":"orders","partition":1,"offset":-1}]}`),
		`^Records delete operation completed:$`, `^partition: orders-0\tlow_watermark: 30$`, `^partition: orders-1\tlow_watermark: 100$`)
	if got, want := offsets("--time", "earliest"), "orders:0:30\norders:1:100\norders:2:0\n"; got != want {
		t.Errorf("after kafka-delete-records %q, expected %q", got, want)
	}
	has(t, "delete what is not there", del(`{"version":1,"partitions":[{"topic":"orders","partition":0,"offset":1000}]}`), `partition: orders-0\terror: .*OffsetOutOfRangeException`)
}

// A-07, K-…: the tools that ask what a node is, on both listeners where they can.
func TestKafkaClusterTools(t *testing.T) {
	t.Parallel()
	node := serve(t)
	createTopic(t, node, "orders", 1, nil)
	controller := func(name string, args ...string) string {
		t.Helper()
		r := harness.QuickTool(t, name, "", append([]string{"--bootstrap-controller", node.Controller}, args...)...)
		if r.Code != 0 {
			t.Errorf("kafka-%s %s on the controller: exit code %d\n%s\n%s", name, strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
		}
		return r.Stdout
	}

	versions := tool(t, node, "broker-api-versions")
	has(t, "api versions", versions, `^\S+:\d+ \(id: 1 rack: null isFenced: false\) -> \($`, `^\tApiVersions\(18\): 0 to 5 \[usable: 5\]`,
		`^\tCreateTopics\(19\): 2 to 7 \[usable: 7\]`, `^\tProduce\(0\): 0 to 13 \[usable: 13\]`, `^\tFetch\(1\): 4 to 18 \[usable: 18\]`)
	if n := matches(versions, `UNKNOWN`); n > 0 {
		t.Errorf("%d keys that Kafka does not know are offered:\n%s", n, versions)
	}

	for listener, out := range map[string]string{"broker": tool(t, node, "metadata-quorum", "describe", "--status"), "controller": controller("metadata-quorum", "describe", "--status")} {
		has(t, "quorum status from the "+listener, out, `^ClusterId:\s+SamsaTestCluster000000$`, `^LeaderId:\s+1$`, `^LeaderEpoch:\s+\d+$`, `^HighWatermark:\s+\d+$`,
			`^MaxFollowerLag:\s+0$`, `^CurrentVoters:\s+\[\{"id": 1, "directoryId": "[A-Za-z0-9_-]{22}", "endpoints": \["CONTROLLER://`+regexp.QuoteMeta(node.Controller)+`"\]\}\]$`, `^CurrentObservers:\s+\[\]$`)
	}
	has(t, "quorum replication", tool(t, node, "metadata-quorum", "describe", "--replication"),
		`^NodeId\s+DirectoryId\s+LogEndOffset\s+Lag\s+LastFetchTimestamp\s+LastCaughtUpTimestamp\s+Status`, `^1\s+[A-Za-z0-9_-]{22}\s+\d+\s+0\s+\d+\s+\d+\s+Leader\s*$`)
	has(t, "quorum replication for people", tool(t, node, "metadata-quorum", "describe", "--replication", "--human-readable"), `ms ago\s+\d+ ms ago\s+Leader`)

	for listener, out := range map[string]string{"broker": tool(t, node, "features", "describe"), "controller": controller("features", "describe")} {
		has(t, "features from the "+listener, out,
			`^Feature: metadata\.version\s+SupportedMinVersion: 3\.3-IV3\s+SupportedMaxVersion: 4\.4-IV2\s+FinalizedVersionLevel: 4\.4-IV2\s+Epoch: \d+$`,
			`^Feature: kraft\.version\s+SupportedMinVersion: 0\s+SupportedMaxVersion: 1\s+FinalizedVersionLevel: 1\s`,
			`^Feature: transaction\.version\s.*FinalizedVersionLevel: 2\s`, `^Feature: group\.version\s.*FinalizedVersionLevel: 1\s`)
	}

	has(t, "cluster id", harnessTool(t, "cluster", "cluster-id", "--bootstrap-server", node.Addr), `^Cluster ID: SamsaTestCluster000000$`)
	has(t, "cluster id from the controller", harnessTool(t, "cluster", "cluster-id", "--bootstrap-controller", node.Controller), `^Cluster ID: SamsaTestCluster000000$`)
	host, port, _ := strings.Cut(node.Addr, ":")
	has(t, "endpoints", harnessTool(t, "cluster", "list-endpoints", "--bootstrap-server", node.Addr), row("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"), row("1", host, port, "null", "unfenced", "broker"))
	host, port, _ = strings.Cut(node.Controller, ":")
	has(t, "endpoints from the controller", harnessTool(t, "cluster", "list-endpoints", "--bootstrap-controller", node.Controller), row("1", host, port, "null", "controller"))
}

func harnessTool(t *testing.T, name string, args ...string) string {
	t.Helper()
	r := harness.QuickTool(t, name, "", args...)
	if r.Code != 0 {
		t.Errorf("kafka-%s %s: exit code %d\n%s\n%s", name, strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}
