package interop

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"samsa/test/harness"
)

// target is the program the strangers talk to.
func target() string {
	if os.Getenv("SAMSA_INTEROP_TARGET") == "kafka" {
		return "kafka"
	}
	return "samsa"
}

// serve starts a node with two log directories for one test.
func serve(t *testing.T, extra ...string) *harness.Node {
	t.Helper()
	n := harness.NewNode(t, 2, extra...)
	start(t, n, target())
	return n
}

func start(t *testing.T, n *harness.Node, program string) {
	t.Helper()
	if program == "kafka" {
		n.FormatKafka()
		n.StartKafka("WARN")
		return
	}
	n.Format()
	n.Start()
	t.Cleanup(func() {
		log := n.Log()
		if t.Failed() {
			t.Logf("samsa's log:\n%s", tail(log, 60))
		}
		for line := range strings.Lines(log) {
			if strings.Contains(line, "level=ERROR") || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
				t.Errorf("samsa logged: %s", line)
			}
		}
	})
}

// tail is the end of a text, at most so many lines.
func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// atEnd is nil when partition 0 of the topic ends at offset.
func atEnd(t *testing.T, node *harness.Node, topic string, offset int64) error {
	ends, err := admin(t, node).ListEndOffsets(within(t, 10*time.Second), topic)
	if err != nil {
		return err
	}
	if end, ok := ends.Lookup(topic, 0); !ok || end.Err != nil || end.Offset != offset {
		return fmt.Errorf("%s ends at %d, expected %d: %v", topic, end.Offset, offset, end.Err)
	}
	return nil
}
