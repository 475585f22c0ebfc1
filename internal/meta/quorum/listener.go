package quorum

import (
	"samsa/internal/meta/loader"
	"samsa/internal/raft/node"
)

var _ node.Listener = (*Controller)(nil)

// HandleCommit is called by the node with committed batches.
func (c *Controller) HandleCommit(batches []node.Batch) {
	c.push(func() { c.commit(batches) })
}

// HandleSnapshot reads the snapshot on the node's goroutine, since its reader ends with the call.
func (c *Controller) HandleSnapshot(r *node.SnapshotReader) error {
	img, err := loader.ReadSnapshot(r)
	if err != nil {
		c.fail(err)
		return err
	}
	c.log.Info("metadata snapshot loaded", "snapshot", r.ID().String(), "topics", img.Topics().Len(), "partitions", img.Topics().PartitionCount())
	c.push(func() { c.loadSnapshot(img) })
	return nil
}

// HandleLeaderChange is called by the node.
func (c *Controller) HandleLeaderChange(l node.LeaderAndEpoch) {
	c.push(func() { c.leaderChange(l) })
}

// BeginShutdown is the last call of the node.
func (c *Controller) BeginShutdown() {
	c.push(c.renounce)
}
