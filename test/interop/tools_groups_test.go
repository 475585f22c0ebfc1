package interop

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/test/harness"
)

// row is the line of a table whose fields are these; * stands for anything.
func row(fields ...string) string {
	for i, f := range fields {
		if f == "*" {
			fields[i] = `\S+`
		} else {
			fields[i] = regexp.QuoteMeta(f)
		}
	}
	return `^` + strings.Join(fields, `\s+`) + `\s*$`
}

// kafka-consumer-groups and kafka-groups.
func TestKafkaConsumerGroups(t *testing.T) {
	t.Parallel()
	node := serve(t)
	groups := func(args ...string) string { return tool(t, node, "consumer-groups", args...) }
	createTopic(t, node, "orders", partitions, nil)
	franzProduce(t, node, "orders", 300)
	if got, want := franzDigests(t, node, "orders", 300, kgo.ConsumerGroup("done"), kgo.Balancers(kgo.RangeBalancer())), wantDigests(300); got != want {
		t.Fatalf("read %s, expected %s", got, want)
	}
	// A member that stays.
	m := franz(t, node, kgo.ClientID("staying"), kgo.ConsumerGroup("alive"), kgo.ConsumeTopics("orders"), kgo.Balancers(kgo.RangeBalancer()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	ctx := within(t, 2*time.Minute)
	for read := 0; read < 300; {
		read += m.PollFetches(ctx).NumRecords()
	}
	if err := m.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}

	if got := strings.Fields(groups("--list")); len(got) != 2 || !strings.Contains("alive done", got[0]) || !strings.Contains("alive done", got[1]) {
		t.Errorf("listed %q", got)
	}
	has(t, "list with states", groups("--list", "--state"), row("alive", "Stable"), row("done", "Empty"))
	has(t, "list empty ones", groups("--list", "--state", "Empty"), row("done", "Empty"))
	has(t, "list with types", groups("--list", "--type"), row("alive", "Classic"), row("done", "Classic"))

	described := groups("--describe", "--group", "alive")
	has(t, "describe", described, `^GROUP\s+TOPIC\s+PARTITION\s+CURRENT-OFFSET\s+LOG-END-OFFSET\s+LAG\s+CONSUMER-ID\s+HOST\s+CLIENT-ID`,
		`^alive\s+orders\s+0\s+100\s+100\s+0\s+staying-\S+\s+/127\.0\.0\.1\s+staying\s*$`, `^alive\s+orders\s+2\s+100\s+100\s+0\s+staying-`)
	has(t, "describe the state", groups("--describe", "--group", "alive", "--state"), `^alive\s+127\.0\.0\.1:\d+\s+\(1\)\s+range\s+Stable\s+1\s*$`)
	has(t, "describe the members", groups("--describe", "--group", "alive", "--members"), `^alive\s+staying-\S+\s+/127\.0\.0\.1\s+staying\s+3\s*$`)
	has(t, "describe the members at length", groups("--describe", "--group", "alive", "--members", "--verbose"), `orders[:(]\[?0,\s?1,\s?2`)
	r := harness.QuickTool(t, "consumer-groups", "", "--bootstrap-server", node.Addr, "--describe", "--group", "done")
	has(t, "describe an empty group", r.Stdout+r.Stderr, `Consumer group 'done' has no active members\.`, row("done", "orders", "1", "100", "100", "0", "-", "-", "-"))
	has(t, "describe nobody", refusedText(t, node, "consumer-groups", "--describe", "--group", "nobody"), `GroupIdNotFoundException: Group nobody not found\.`)
	has(t, "describe all", groups("--describe", "--all-groups", "--state"), `^alive\s`, `^done\s`)

	reset := func(to ...string) string {
		return groups(append([]string{"--reset-offsets", "--group", "done", "--topic", "orders", "--execute"}, to...)...)
	}
	has(t, "to the beginning", reset("--to-earliest"), row("done", "orders", "0", "0"), row("done", "orders", "2", "0"))
	has(t, "to an offset", reset("--to-offset", "42"), row("done", "orders", "0", "42"))
	has(t, "by a shift", reset("--shift-by", "-2"), row("done", "orders", "0", "40"))
	has(t, "to the end", reset("--to-latest"), row("done", "orders", "1", "100"))
	has(t, "to a time", reset("--to-datetime", "2020-01-01T00:00:00.000"), row("done", "orders", "1", "0"))
	has(t, "a dry run", groups("--reset-offsets", "--group", "done", "--topic", "orders:1", "--to-offset", "7", "--dry-run"), row("done", "orders", "1", "7"))
	has(t, "export", groups("--reset-offsets", "--group", "done", "--topic", "orders", "--to-current", "--export", "--dry-run"), `^"?orders"?,0,0$`)
	has(t, "a group with members", refusedText(t, node, "consumer-groups", "--reset-offsets", "--group", "alive", "--topic", "orders", "--to-earliest", "--execute"),
		`Assignments can only be reset if the group 'alive' is inactive, but the current state is Stable\.`)

	has(t, "delete offsets", groups("--delete-offsets", "--group", "done", "--topic", "orders:0"), row("orders", "0", "Successful"))
	has(t, "delete offsets that members use", refusedText(t, node, "consumer-groups", "--delete-offsets", "--group", "alive", "--topic", "orders"), `Encounter some partition level error|subscribed`)
	has(t, "delete", groups("--delete", "--group", "done"), `Deletion of requested consumer groups \('done'\) was successful\.`)
	has(t, "delete a group with members", refusedText(t, node, "consumer-groups", "--delete", "--group", "alive"), `Deletion of some consumer groups failed`, `GroupNotEmptyException|not empty`)
	has(t, "delete nobody", refusedText(t, node, "consumer-groups", "--delete", "--group", "nobody"), `GroupIdNotFoundException|does not exist|not found`)

	has(t, "kafka-groups", tool(t, node, "groups", "--list"), row("alive", "Classic", "consumer"))
	m.Close()
	node.Eventually("the group is empty", 30*time.Second, func() error {
		_, err := admin(t, node).DeleteGroups(context.Background(), "alive")
		return err
	})
}

// refusedText is refused for tools that print what went wrong and still exit with 0.
func refusedText(t *testing.T, node *harness.Node, name string, args ...string) string {
	t.Helper()
	r := harness.QuickTool(t, name, "", append([]string{"--bootstrap-server", node.Addr}, args...)...)
	return r.Stdout + r.Stderr
}
