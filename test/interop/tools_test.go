package interop

import (
	"regexp"
	"strings"
	"testing"

	"samsa/test/harness"
)

// tool runs one of Kafka's tools on the node and wants exit code 0; it returns what the tool printed.
func tool(t *testing.T, node *harness.Node, name string, args ...string) string {
	t.Helper()
	r := harness.QuickTool(t, name, "", append([]string{"--bootstrap-server", node.Addr}, args...)...)
	if r.Code != 0 {
		t.Fatalf("kafka-%s %s: exit code %d\n%s\n%s", name, strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// refused runs a tool that has to fail, and returns all it printed.
func refused(t *testing.T, node *harness.Node, name string, args ...string) string {
	t.Helper()
	r := harness.QuickTool(t, name, "", append([]string{"--bootstrap-server", node.Addr}, args...)...)
	if r.Code == 0 {
		t.Errorf("kafka-%s %s: exit code 0\n%s\n%s", name, strings.Join(args, " "), r.Stdout, r.Stderr)
	}
	return r.Stdout + r.Stderr
}

// has fails unless every pattern matches somewhere in the text; ^ and $ are the ends of a line.
func has(t *testing.T, what, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			t.Errorf("%s: nothing matches %q in\n%s", what, p, text)
		}
	}
}

func matches(text, pattern string) int {
	return len(regexp.MustCompile("(?m)"+pattern).FindAllString(text, -1))
}
