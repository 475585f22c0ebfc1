package node

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"

	"samsa/test/peers"
)

// kafka is the classpath of Kafka's jars.
func kafka(t *testing.T) (classpath string) {
	t.Helper()
	return filepath.Join(peers.Kafka(t), "*")
}

func java(t *testing.T, classpath string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classpath}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("java %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// K-59, K-65, K-66, K-75..K-79: Kafka's own DumpLogSegments reads a log and a snapshot of this node without complaint and sees every record.
// K-60: Kafka's FileQuorumStateStore reads both versions of quorum-state, and what it writes is byte for byte what this node writes.
func TestKafkaReadsTheLog(t *testing.T) {
	cp := kafka(t)
	dir := t.TempDir()
	fs := vfs.OS()
	logDir := filepath.Join(dir, LogDirName)
	must(t, os.MkdirAll(logDir, 0o755))
	level := func(name string, v int16) Record {
		b, err := protocol.AppendMetadataRecord(nil, 12, 0, &protocol.FeatureLevelRecord{Name: name, FeatureLevel: v})
		must(t, err)
		return b
	}
	w, err := NewCheckpoint(fs, logDir, kraft.BootstrapSnapshotID, CheckpointOptions{KRaftVersion: 1, Voters: voterSet(t, 1)})
	must(t, err)
	must(t, w.Append([]Record{level("metadata.version", 33)}))
	must(t, w.Freeze())
	o := options(fs, 1)
	o.Dir = dir
	o.Config.SegmentBytes = 64 << 10
	n, r := lead(t, o)
	var last int64
	for i := range 300 {
		last, err = n.Append(1, [][]Record{{level("metadata.version", 33), frame("topic-%d-%s", i, strings.Repeat("x", 200))}})
		must(t, err)
	}
	eventually(t, "commit", func() bool { _, next, _ := r.state(); return next > last })
	id := kraft.SnapshotID{Offset: last + 1, Epoch: 1}
	sw, err := n.CreateSnapshot(id, 1234567)
	must(t, err)
	must(t, sw.Append([]Record{level("metadata.version", 33)}))
	for i := range 3000 {
		must(t, sw.Append([]Record{frame("topic-%d", i)}))
	}
	must(t, sw.Freeze())
	stop(t, n)

	segs, err := listSegments(fs, logDir)
	must(t, err)
	if len(segs) < 2 {
		t.Fatalf("%d segments", len(segs))
	}
	files := []string{filepath.Join(logDir, snapshotName(kraft.BootstrapSnapshotID)), filepath.Join(logDir, snapshotName(id))}
	for _, s := range segs {
		files = append(files, s.path)
	}
	out := java(t, cp, "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--deep-iteration", "--files", strings.Join(files, ","))
	for what, want := range map[string]int{
		`"type":"FEATURE_LEVEL_RECORD"`:       1 + 300 + 1,
		`"type":"TOPIC_RECORD"`:               300 + 3000,
		"LeaderChange":                        1,
		"SnapshotHeader":                      2,
		"SnapshotFooter":                      2,
		"KRaftVersion ":                       3,
		"KRaftVoters":                         3,
		`"lastContainedLogTimestamp":1234567`: 1,
	} {
		if got := strings.Count(out, what); got != want {
			t.Errorf("%d of %s, want %d", got, what, want)
		}
	}
	for _, bad := range []string{"isvalid: false", "Exception", "Error at", "Skipping", "unknown", "Found invalid", "Mismatches"} {
		if i := strings.Index(out, bad); i >= 0 {
			t.Errorf("DumpLogSegments says: %s", out[max(0, i-200):min(len(out), i+300)])
		}
	}
	index := []string{}
	for _, s := range segs {
		index = append(index, strings.TrimSuffix(s.path, ".log")+".index", strings.TrimSuffix(s.path, ".log")+".timeindex")
	}
	out = java(t, cp, "org.apache.kafka.tools.DumpLogSegments", "--index-sanity-check", "--files", strings.Join(index, ","))
	if strings.Contains(out, "Mismatch") || strings.Contains(out, "Exception") || strings.Count(out, "passed sanity check") != len(index) {
		t.Errorf("index check: %s", out)
	}
	if t.Failed() {
		t.Logf("%.4000s", out)
	}
}

// K-60: the file is exchanged with Kafka's own class in both directions and both versions.
func TestKafkaReadsTheQuorumState(t *testing.T) {
	cp := kafka(t)
	dir := t.TempDir()
	d := testDir(2)
	var args []string
	var want []string
	states := map[string]kraft.QuorumState{}
	for name, c := range map[string]struct {
		state kraft.QuorumState
		want  string
	}{
		"voted-0":    {kraft.QuorumState{Epoch: 4, Leader: -1, Voted: kraft.ReplicaKey{ID: 2}, Voters: []model.NodeID{1, 2}}, "4 -1 2/-"},
		"led-0":      {kraft.QuorumState{Epoch: 5, Leader: 1, Voted: kraft.NoReplica, Voters: []model.NodeID{1}}, "5 1 none"},
		"voted-1":    {kraft.QuorumState{Epoch: 6, Leader: -1, Voted: kraft.ReplicaKey{ID: 2, Directory: d}, Version: 1}, "6 -1 2/" + d.String()},
		"both-1":     {kraft.QuorumState{Epoch: 7, Leader: 3, Voted: kraft.ReplicaKey{ID: 2, Directory: d}, Version: 1}, "7 3 2/" + d.String()},
		"unknown--1": {kraft.QuorumState{Epoch: 8, Leader: -1, Voted: kraft.NoReplica, Version: 1}, "8 -1 none"},
	} {
		path := filepath.Join(dir, name)
		must(t, writeQuorumState(vfs.OS(), path, c.state))
		args, want = append(args, path), append(want, c.want)
		states[path] = c.state
	}
	out := strings.Fields(strings.ReplaceAll(strings.TrimSpace(java(t, cp, append([]string{"testdata/QuorumState.java"}, args...)...)), " ", "_"))
	for i, path := range args {
		if i >= len(out) || out[len(out)-len(args)+i] != strings.ReplaceAll(want[i], " ", "_") {
			t.Fatalf("Kafka reads %q, want %q", out, want)
		}
		ours, err := os.ReadFile(path)
		must(t, err)
		theirs, err := os.ReadFile(path + ".kafka")
		must(t, err)
		if s := states[path]; s.Version == 0 && len(s.Voters) > 1 {
			continue // a set: the order is Java's
		}
		if string(ours) != string(theirs) {
			t.Errorf("%s: Kafka writes %s, we %s", filepath.Base(path), theirs, ours)
		}
	}
}
