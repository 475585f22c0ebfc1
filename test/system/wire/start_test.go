package wire

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

// inOrder wants the texts to be in the log, each behind the one before.
func inOrder(t *testing.T, log string, texts ...string) {
	t.Helper()
	at := 0
	for _, text := range texts {
		i := strings.Index(log[at:], text)
		if i < 0 {
			t.Fatalf("%q is not in the log, or not behind the others:\n%s", text, log)
		}
		at += i + len(text)
	}
}

// J-35, J-11, K-05, K-184, D-72: a start goes from meta.properties over the metadata log and the registration to the logs and
// only then to serving; a stop ends the broker by a controlled shutdown while the controller of the same process lives.
func TestOrderOfStartAndStop(t *testing.T) {
	n := harness.NewNode(t, 2)
	n.Format()
	// One directory has lost its id: it gets one before anything else happens (J-11).
	props := filepath.Join(n.LogDirs[1], "meta.properties")
	text, err := os.ReadFile(props)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "directory.id=") {
			kept = append(kept, line)
		}
	}
	if err := os.WriteFile(props, []byte(strings.Join(kept, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	n.Start()
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "kept", 2)
	put(t, c, id, 0, "x")
	inOrder(t, n.Log(), "meta.properties rewritten", "metadata log loaded", "registered with the controller", "logs loaded", "to=RUNNING", "msg=ready")
	var registered []*protocol.RegisterBrokerRecord
	for _, r := range metadataRecords(t, n) {
		if r, ok := r.(*protocol.RegisterBrokerRecord); ok {
			registered = append(registered, r)
		}
	}
	if len(registered) != 1 || len(registered[0].LogDirs) != 2 || !registered[0].Fenced {
		t.Errorf("registrations %+v", registered)
	}
	size := len(n.Log())
	n.Stop()
	stop := n.Log()[size:]
	inOrder(t, stop, "msg=stopping", "PENDING_CONTROLLED_SHUTDOWN", "SHUTTING_DOWN", "msg=stopped")
	if strings.Contains(stop, "did not complete") || strings.Contains(stop, "level=ERROR") {
		t.Errorf("the stop was not clean:\n%s", stop)
	}
	for _, dir := range n.LogDirs {
		if _, err := os.Stat(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, ".lock")); !os.IsNotExist(err) {
			t.Errorf("the lock file of %s: %v", dir, err)
		}
	}
	// The controller took part in the shutdown: the broker's last record says that it is fenced again or shuts down.
	var last *protocol.BrokerRegistrationChangeRecord
	for _, r := range metadataRecords(t, n) {
		if r, ok := r.(*protocol.BrokerRegistrationChangeRecord); ok {
			last = r
		}
	}
	if last == nil || last.InControlledShutdown != 1 && last.Fenced != 1 {
		t.Errorf("the broker's last change is %+v", last)
	}
	n.Start()
	if strings.Contains(n.Log()[size:], "logs are recovered") {
		t.Errorf("recovery after a clean stop:\n%s", n.Log()[size:])
	}
}

// J-46: several directories in a cluster whose metadata has no place for them: the broker serves, says so and counts it, and
// reports no directories.
func TestDirectoriesBelowTheirMetadataVersion(t *testing.T) {
	n := harness.NewNode(t, 2)
	out, err := exec.Command(harness.Binary(t), "storage", "format", "-t", "SamsaTestCluster000000", "-c", n.Properties, "--standalone", "--release-version", "3.6-IV2", "--feature", "kraft.version=0").CombinedOutput()
	if err != nil {
		// A dynamic quorum needs kraft.version 1, which needs 3.9-IV0: such a cluster has a static one.
		n.Set("controller.quorum.voters", "1@"+n.Controller)
		n.Set("controller.quorum.bootstrap.servers", "")
		out, err = exec.Command(harness.Binary(t), "storage", "format", "-t", "SamsaTestCluster000000", "-c", n.Properties, "--release-version", "3.6-IV2").CombinedOutput()
	}
	if err != nil {
		t.Fatalf("format: %v\n%s", err, out)
	}
	n.Start()
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "old", 4)
	for i := range int32(4) {
		put(t, c, id, i, "x")
	}
	if want := "Multiple log directories (aka JBOD) are not supported in the current MetadataVersion 3.6-IV2. Need 3.7-IV2 or higher"; !strings.Contains(n.Log(), want) {
		t.Errorf("the log does not say %q:\n%s", want, n.Log())
	}
	if metrics := n.Metrics(); !strings.Contains(metrics, "kafka_server_broker_metadata_metrics_metadata_apply_error_count 1") {
		for line := range strings.Lines(metrics) {
			if strings.Contains(line, "metadata_apply_error") {
				t.Error(line)
			}
		}
	}
	for _, r := range metadataRecords(t, n) {
		switch r := r.(type) {
		case *protocol.PartitionChangeRecord:
			if len(r.Directories) > 0 {
				t.Errorf("a place was reported: %+v", r)
			}
		case *protocol.RegisterBrokerRecord:
			if len(r.LogDirs) > 0 {
				t.Errorf("registration with directories: %+v", r)
			}
		}
	}
}

// T-25, T-28, D-44: the partition.metadata files of two topics change places while the node is down. Neither directory is served
// under a false name, nothing is thrown away, and everything else goes on.
func TestSwappedPartitionMetadata(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	a, b, other := create(t, c, "a", 1), create(t, c, "b", 1), create(t, c, "other", 1)
	put(t, c, a, 0, "of a")
	put(t, c, b, 0, "of b")
	put(t, c, other, 0, "of other")
	n.Stop()
	fa, fb := filepath.Join(n.LogDirs[0], "a-0", "partition.metadata"), filepath.Join(n.LogDirs[0], "b-0", "partition.metadata")
	ta, err := os.ReadFile(fa)
	if err != nil {
		t.Fatal(err)
	}
	tb, err := os.ReadFile(fb)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fa, tb, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fb, ta, 0o644); err != nil {
		t.Fatal(err)
	}
	n.Start()
	c = harness.Dial(t, n.Addr)
	for name, id := range map[string]struct {
		id   [16]byte
		want string
	}{"a": {a, "[]"}, "b": {b, "[]"}, "other": {other, "[of other]"}} {
		eventually(t, name+" is served", func() bool {
			p := ask[protocol.FetchResponse](t, c, 17, fetchByID(id.id, 0)).Responses[0].Partitions[0]
			if p.ErrorCode != 0 {
				return false
			}
			if got := fmt.Sprint(values(t, p.Records)); got != id.want {
				t.Fatalf("%s holds %s", name, got)
			}
			return true
		})
	}
	stray := 0
	for _, d := range replicaDirs(t, n.LogDirs[0]) {
		if strings.HasSuffix(d, "-stray") {
			stray++
			if log, err := os.ReadFile(filepath.Join(n.LogDirs[0], d, "00000000000000000000.log")); err != nil || len(log) == 0 {
				t.Errorf("%s: %d bytes, %v", d, len(log), err)
			}
		}
	}
	if stray != 2 {
		t.Errorf("directories %v", replicaDirs(t, n.LogDirs[0]))
	}
	put(t, c, a, 0, "new of a")
	if !strings.Contains(n.Log(), "set aside as stray") {
		t.Error("the log does not say what was set aside")
	}
}
