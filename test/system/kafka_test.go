package system

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/test/harness"
)

// deleteTopic deletes a topic through franz-go.
func deleteTopic(t *testing.T, n *harness.Node, topic string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(n.Addr))
	must(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := kadm.NewClient(client).DeleteTopic(ctx, topic); err != nil {
		t.Fatal(err)
	}
}

// A topic deleted by samsa, whose directories still wait to be removed at a clean stop: Apache Kafka takes them over without a
// complaint. And J-41 both ways: neither program starts in a directory the other one uses.
func TestDirectoriesWithKafka(t *testing.T) {
	n := harness.NewNode(t, 2, "log.segment.bytes=1048576")
	n.Format()
	n.Start()
	harness.CreateTopic(t, n, damagedTopic, damagedPartitions)
	fill(t, n, 0, 150)
	harness.CreateTopic(t, n, "kept", 1)
	deleteTopic(t, n, damagedTopic)
	n.Eventually("the directories are renamed", 10*time.Second, func() error {
		if got := named(n, "*-delete"); len(got) != damagedPartitions {
			return fmt.Errorf("%d are", len(got))
		}
		return nil
	})

	// Its own metadata directory comes first: Kafka opens the metadata log before it takes any lock.
	other := harness.NewNode(t, 1)
	other.Format()
	other.Amend("log.dirs=" + other.LogDirs[0] + "," + n.LogDirs[1])
	other.LaunchKafka("INFO")
	if code := other.Wait(time.Minute); code != 1 {
		t.Errorf("Apache Kafka in a directory samsa uses: exit code %d", code)
	}
	if !strings.Contains(other.Log(), "Failed to acquire lock on file .lock in "+n.LogDirs[1]) {
		t.Errorf("Apache Kafka says something else:\n%s", other.Log())
	}

	n.Stop()
	mark := n.Mark()
	n.StartKafka("INFO")
	text := n.LogSince(mark)
	for line := range strings.Lines(text) {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "index") && strings.Contains(line, "WARN") {
			t.Errorf("Apache Kafka complains: %s", line)
		}
	}
	for _, dir := range n.LogDirs {
		other.Amend("log.dirs=" + other.LogDirs[0] + "," + dir)
		if dir == n.LogDirs[0] {
			other.Amend("log.dirs=" + strings.Join(n.LogDirs, ","))
		}
		refused(t, other, "Failed to acquire lock on file .lock in "+dir, "Stop it first")
	}
	n.Stop()
}

// named lists what is in the directories of a node under a pattern.
func named(n *harness.Node, pattern string) (all []string) {
	for _, dir := range n.LogDirs {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		all = append(all, found...)
	}
	return all
}

// K-68: a broker without the controller role writes metadata snapshots of its own, starts from one, and so does its controller.
func TestBrokersWriteSnapshots(t *testing.T) {
	controller, broker := harness.NewPair(t, 1, "metadata.log.max.record.bytes.between.snapshots=4096",
		"broker.session.timeout.ms=1500", "broker.heartbeat.interval.ms=300") // a restart is refused for one session (J-178)
	controller.Start()
	broker.Start()
	harness.CreateTopic(t, broker, "many", 200)
	for _, n := range []*harness.Node{controller, broker} {
		n.Eventually("a snapshot is written", 20*time.Second, func() error {
			for _, path := range named(n, "__cluster_metadata-0/*.checkpoint") {
				if !strings.HasPrefix(filepath.Base(path), "00000000000000000000-") {
					return nil
				}
			}
			return fmt.Errorf("none")
		})
	}
	broker.Stop()
	broker.Start()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr))
	must(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	topics, err := kadm.NewClient(client).ListTopics(ctx, "many")
	must(t, err)
	if got := len(topics["many"].Partitions); got != 200 {
		t.Errorf("%d partitions after a start from a snapshot", got)
	}
	broker.Stop()
}

// A disk that is taken away while the node runs costs its own partitions (J-116: ENOENT on what nobody removed).
func TestVanishedDirectory(t *testing.T) {
	w := prepare(t, true)
	n := w.node
	n.Start("--set", "log.flush.interval.messages=1")
	conn := harness.Dial(t, n.Addr)
	bad, good := int32(w.in(1)[0]), int32(w.in(0)[0])
	must(t, os.Rename(n.LogDirs[1], n.LogDirs[1]+".away"))
	n.Eventually("its partitions are out of service", 30*time.Second, func() error {
		appendOne(t, conn, bad, value(bad, damagedRecords)) // open files still work; a roll or a checkpoint notices
		if got := listEnd(t, conn, bad); got != "KAFKA_STORAGE_ERROR" {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	if got := read(t, conn, good); got != fmt.Sprint(damagedRecords) {
		t.Errorf("a healthy partition: %s", got)
	}
	n.Stop()
	if _, err := os.Stat(n.LogDirs[1]); !os.IsNotExist(err) {
		t.Errorf("the directory was made anew: %v", err)
	}
}
