package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"samsa/test/harness"
)

func kcat(t *testing.T, node *harness.Node, input string, args ...string) string {
	t.Helper()
	r := harness.Kcat(t, node, input, append([]string{"-X", "fetch.wait.max.ms=10"}, args...)...)
	if r.Code != 0 {
		t.Fatalf("kcat %s: exit code %d\n%s\n%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// lines of keys and values that a terminal can carry.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key-%d\tvalue %d %s\n", i%17, i, strings.Repeat("x", i%300))
	}
	return b.String()
}

func TestKcat(t *testing.T) {
	t.Parallel()
	node := serve(t)
	for _, codec := range codecs {
		for name, how := range map[string][]string{
			"idempotent": {"-X", "enable.idempotence=true"},
			"acks0":      {"-X", "acks=0"},
			"acks1":      {"-X", "acks=1", "-X", "batch.num.messages=50"},
		} {
			topic := "kcat-" + codec + "-" + name
			createTopic(t, node, topic, 1, nil)
			want := lines(2000)
			kcat(t, node, want, append([]string{"-P", "-t", topic, "-p", "0", "-K", "\t", "-z", codec, "-H", "from=kcat"}, how...)...)
			if name == "acks0" { // nobody said when it is there
				node.Eventually("what nobody acknowledged is there", 10*time.Second, func() error { return atEnd(t, node, topic, 2000) })
			}
			if got := kcat(t, node, "", "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-X", "check.crcs=true", "-f", "%k\t%s\n"); got != want {
				t.Errorf("%s: %d bytes came back, expected %d", topic, len(got), len(want))
			}
			if got := kcat(t, node, "", "-C", "-t", topic, "-o", "1998", "-e", "-q", "-f", "%p %o %h\n"); got != "0 1998 from=kcat\n0 1999 from=kcat\n" {
				t.Errorf("%s: the last two are %q", topic, got)
			}
		}
	}

	listed := kcat(t, node, "", "-L", "-t", "kcat-none-acks1")
	for _, want := range []string{"1 brokers:", "broker 1 at " + node.Addr + " (controller)", `topic "kcat-none-acks1" with 1 partitions:`, "partition 0, leader 1, replicas: 1, isrs: 1"} {
		if !strings.Contains(listed, want) {
			t.Errorf("kcat -L lacks %q:\n%s", want, listed)
		}
	}
	if got := kcat(t, node, "", "-Q", "-t", "kcat-none-acks1:0:-1", "-t", "kcat-none-idempotent:0:0"); !strings.Contains(got, "kcat-none-acks1 [0] offset 2000") || !strings.Contains(got, "kcat-none-idempotent [0] offset 0") {
		t.Errorf("kcat -Q: %s", got)
	}

	// A group reads everything once; its second member, later, nothing.
	args := []string{"-G", "kcat-group", "-X", "auto.offset.reset=earliest", "-e", "-q", "-f", "%s\n", "kcat-lz4-acks1"}
	if got := kcat(t, node, "", args...); strings.Count(got, "\n") != 2000 {
		t.Errorf("the group read %d records, expected 2000", strings.Count(got, "\n"))
	}
	if got := kcat(t, node, "", args...); got != "" {
		t.Errorf("the group read again: %.100q", got)
	}
	// Tombstones, and a topic that nobody made.
	kcat(t, node, "gone\t\n", "-P", "-t", "made-on-the-way", "-K", "\t", "-Z")
	if got := kcat(t, node, "", "-C", "-t", "made-on-the-way", "-o", "beginning", "-e", "-q", "-f", "%k %S\n"); got != "gone -1\n" {
		t.Errorf("the tombstone is %q", got)
	}
}
