package system

import (
	"testing"

	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

// 2,000 connections that have asked something and now rest hold no buffers: what one costs is a goroutine and a few kilobytes.
func TestIdleConnections(t *testing.T) {
	n := harness.NewNode(t, 1)
	n.Format()
	n.Start()
	b := watch(t, n, "quiet")
	before := n.Memory("VmRSS")
	const connections = 2000
	for range connections {
		conn := harness.Dial(t, n.Addr)
		req := protocol.Make[protocol.ApiVersionsRequest]()
		if _, err := conn.Ask(0, &req); err != nil {
			t.Fatal(err)
		}
	}
	b.progress(n)
	if v := n.Metric("samsa_network_connections", `role="broker"`); v < connections {
		t.Errorf("%v connections are open", v)
	}
	grown := n.Memory("VmRSS") - before
	t.Logf("%d idle connections: %d KiB each, %d MiB in all", connections, grown/connections>>10, n.Memory("VmRSS")>>20)
	if grown > 40<<20 {
		t.Errorf("%d idle connections cost %d MiB", connections, grown>>20)
	}
}
