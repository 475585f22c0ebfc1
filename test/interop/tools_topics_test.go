package interop

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A-190, D-190..D-192, T-42, T-45: kafka-topics.
func TestKafkaTopics(t *testing.T) {
	t.Parallel()
	node := serve(t)
	topics := func(args ...string) string { return tool(t, node, "topics", args...) }

	has(t, "create", topics("--create", "--topic", "orders", "--partitions", "3", "--config", "retention.ms=86400000"), `^Created topic orders\.$`)
	has(t, "create again", refused(t, node, "topics", "--create", "--topic", "orders"), `Topic 'orders' already exists`)
	topics("--create", "--topic", "orders", "--if-not-exists")
	has(t, "an illegal name", refused(t, node, "topics", "--create", "--topic", "a b"), `Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics`)
	has(t, "an illegal setting", refused(t, node, "topics", "--create", "--topic", "bad", "--config", "retention.ms=soon"),
		`Invalid value soon for configuration retention\.ms: Not a number of type LONG`)
	has(t, "too many replicas", refused(t, node, "topics", "--create", "--topic", "bad", "--replication-factor", "2"),
		`Unable to replicate the partition 2 time\(s\): The target replication factor of 2 cannot be reached because only 1 broker\(s\) are registered or some brokers have all their log directories cordoned\.`)
	topics("--create", "--topic", "by.hand", "--replica-assignment", "1,1")

	described := topics("--describe", "--topic", "orders")
	has(t, "describe", described,
		`^Topic: orders\tTopicId: [A-Za-z0-9_-]{22}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: .*retention\.ms=86400000`,
		`^\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: $`,
		`^\tTopic: orders\tPartition: 2\tLeader: 1\tReplicas: 1\tIsr: 1`)
	id := regexp.MustCompile(`TopicId: (\S+)`).FindStringSubmatch(described)[1]
	// By id the tool asks Metadata, which knows no ELR.
	if byID := topics("--describe", "--topic-id", id); strings.ReplaceAll(byID, "N/A", "") != described {
		t.Errorf("described by id:\n%s\nby name:\n%s", byID, described)
	}
	has(t, "describe nobody", refused(t, node, "topics", "--describe", "--topic", "nobody"), `Topic 'nobody' does not exist as expected`)
	has(t, "describe an unknown id", refused(t, node, "topics", "--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ"), `TopicId 'AAAAAAAAAAAAAAAAAAAAAQ' does not exist as expected`)

	topics("--alter", "--topic", "orders", "--partitions", "5")
	has(t, "after alter", topics("--describe", "--topic", "orders"), `PartitionCount: 5`, `Partition: 4\tLeader: 1`)
	has(t, "fewer partitions", refused(t, node, "topics", "--alter", "--topic", "orders", "--partitions", "2"),
		`The topic orders currently has 5 partition\(s\); 2 would not be an increase\.`)

	if got := strings.Fields(topics("--list")); !slices.Equal(got, []string{"by.hand", "orders"}) {
		t.Errorf("listed %q", got)
	}
	for _, filter := range []string{"--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions", "--at-min-isr-partitions"} {
		want := 0
		if filter == "--at-min-isr-partitions" {
			want = 7
		}
		if got := matches(topics("--describe", filter), `Partition: `); got != want {
			t.Errorf("%s: %d partitions, expected %d", filter, got, want)
		}
	}

	topics("--delete", "--topic", "orders")
	node.Eventually("the deleted topic is listed no more", 20*time.Second, func() error { // the answer waits for no broker (T-49)
		if got := strings.Fields(topics("--list")); !slices.Equal(got, []string{"by.hand"}) {
			return fmt.Errorf("%q are listed", got)
		}
		return nil
	})
	has(t, "delete nobody", refused(t, node, "topics", "--delete", "--topic", "orders"), `Topic 'orders' does not exist as expected`)
	topics("--create", "--topic", "orders")
	if again := regexp.MustCompile(`TopicId: (\S+)`).FindStringSubmatch(topics("--describe", "--topic", "orders"))[1]; again == id {
		t.Error("a topic created again has the id of the deleted one")
	}
}
