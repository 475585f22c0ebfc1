package node

import (
	"os"
	"path/filepath"
	"testing"

	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
)

// One decision after the other, each waiting for its commit: what a client that creates topics one by one waits for.
func BenchmarkCommitOneByOne(b *testing.B) { benchCommit(b, 1) }

// A hundred decisions in flight share their fsyncs.
func BenchmarkCommitHundredInFlight(b *testing.B) { benchCommit(b, 100) }

func benchCommit(b *testing.B, inFlight int) {
	dir := b.TempDir()
	must(b, os.MkdirAll(filepath.Join(dir, LogDirName), 0o755))
	w, err := NewCheckpoint(vfs.OS(), filepath.Join(dir, LogDirName), kraft.BootstrapSnapshotID, CheckpointOptions{KRaftVersion: 1, Voters: voterSet(b, 1)})
	must(b, err)
	must(b, w.Freeze())
	o := options(vfs.OS(), 1)
	o.Dir = dir
	n, _ := lead(b, o)
	c := &counter{moved: make(chan int64, 1)}
	n.Register(c)
	records := [][]Record{{frame("topic"), frame("partition")}}
	b.ResetTimer()
	var committed int64
	for range b.N {
		last, err := n.Append(1, records)
		must(b, err)
		for committed <= last-int64(2*(inFlight-1)) {
			committed = <-c.moved
		}
	}
	b.StopTimer()
	s := n.State().Stats
	b.ReportMetric(float64(s.Syncs)/float64(b.N), "fsyncs/op")
	stop(b, n)
}

// counter is a listener that tells how far the commits are.
type counter struct{ moved chan int64 }

func (c *counter) HandleCommit(batches []Batch) {
	next := batches[len(batches)-1].LastOffset + 1
	select {
	case <-c.moved:
	default:
	}
	c.moved <- next
}
func (c *counter) HandleSnapshot(*SnapshotReader) error { return nil }
func (c *counter) HandleLeaderChange(LeaderAndEpoch)    {}
func (c *counter) BeginShutdown()                       {}
