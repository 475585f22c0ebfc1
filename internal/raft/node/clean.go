package node

import (
	"fmt"

	"samsa/internal/raft/kraft"
	"samsa/internal/wire/record"
)

// LatestSnapshotID is the newest snapshot on disk, the bootstrap checkpoint included.
func (n *Node) LatestSnapshotID() (kraft.SnapshotID, bool) { return n.dispatch.newestSnapshot() }

// OpenSnapshot opens one of this node's snapshots for reading; it may be deleted meanwhile.
func (n *Node) OpenSnapshot(id kraft.SnapshotID) (*SnapshotReader, error) {
	return n.store.openSnapshot(id)
}

// CreateSnapshot starts a snapshot that ends before offset id.Offset; nil and no error when it already exists, is being written, or lies below the
// log start. The offset must be a batch boundary, committed, and id.Epoch the epoch of the record before it (K-67).
func (n *Node) CreateSnapshot(id kraft.SnapshotID, lastContainedTimestamp int64) (*SnapshotWriter, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.failure != nil || n.isStopped():
		return nil, ErrStopped
	case n.hw < 0 || id.Offset > n.hw:
		return nil, fmt.Errorf("snapshot %s ends above the high watermark %d", id, n.hw)
	case id.Offset < n.core.LogStart() || n.writing[id]:
		return nil, nil
	}
	for _, s := range n.core.Snapshots() {
		if s.ID == id {
			return nil, nil
		}
	}
	if !n.core.ValidSnapshot(id) {
		return nil, fmt.Errorf("snapshot %s: the log has another epoch before that offset", id)
	}
	if id.Offset < n.core.LogEnd() {
		b, _, err := n.store.log.ReadBatches(nil, id.Offset, n.core.LogEnd())
		if err != nil {
			return nil, err
		}
		if first, _, err := record.Next(b); err != nil || first == nil || first.BaseOffset() != id.Offset {
			return nil, fmt.Errorf("snapshot %s does not end between two batches", id)
		}
	}
	version, voters := n.core.ControlBefore(id.Offset)
	w, err := NewCheckpoint(n.store.fs, n.store.dir, id, CheckpointOptions{LastContainedTimestamp: lastContainedTimestamp, KRaftVersion: version, Voters: voters})
	if err != nil {
		return nil, err
	}
	n.writing[id] = true
	w.closed = func() {
		n.mu.Lock()
		delete(n.writing, id)
		n.mu.Unlock()
	}
	w.frozen = func(s kraft.SnapshotInfo) {
		n.mu.Lock()
		n.core.SnapshotFrozen(s)
		n.mu.Unlock()
		n.log.Info("raft: snapshot written", "snapshot", s.ID, "bytes", s.Size)
	}
	return w, nil
}

// clean deletes old snapshots and the log before the next one, by size and by age (K-69), and removes files that were deleted a minute ago.
// Only the loop calls it.
func (n *Node) clean() error {
	n.store.emptyTrash(false)
	for {
		id, why := n.expiredSnapshot()
		if why == "" {
			return nil
		}
		if err := n.deleteBefore(id, why); err != nil {
			return err
		}
	}
}

// expiredSnapshot returns the snapshot the log may start at now, and why the one before it may go.
func (n *Node) expiredSnapshot() (kraft.SnapshotID, string) {
	n.mu.Lock()
	snaps := append([]kraft.SnapshotInfo(nil), n.core.Snapshots()...)
	n.mu.Unlock()
	if len(snaps) < 2 || snaps[1].ID.Offset <= n.store.log.LogStartOffset() {
		return kraft.SnapshotID{}, ""
	}
	c := &n.opts.Config
	if c.MaxRetentionBytes >= 0 {
		total := n.store.log.Size()
		for _, s := range snaps {
			total += s.Size
		}
		if total > c.MaxRetentionBytes {
			return snaps[1].ID, fmt.Sprintf("log and snapshots hold %d bytes, more than %d", total, c.MaxRetentionBytes)
		}
	}
	if c.MaxRetention >= 0 {
		r, err := n.store.openSnapshot(snaps[0].ID)
		if err != nil {
			n.log.Warn("raft: an old snapshot cannot be read; it is kept", "snapshot", snaps[0].ID, "err", err)
			return kraft.SnapshotID{}, ""
		}
		age := n.nowMs() - r.LastContainedTimestamp()
		r.Close()
		if age > c.MaxRetention.Milliseconds() {
			return snaps[1].ID, fmt.Sprintf("it is %d ms old, more than %d", age, c.MaxRetention.Milliseconds())
		}
	}
	return kraft.SnapshotID{}, ""
}

// deleteBefore makes a retained snapshot the beginning of the log.
func (n *Node) deleteBefore(id kraft.SnapshotID, why string) error {
	log := n.store.log
	if _, err := log.IncrementLogStartOffset(id.Offset); err != nil {
		return err
	}
	d, err := log.DeletableSegments(n.nowMs())
	if err != nil {
		return err
	}
	if _, err := log.DeleteOldSegments(d, n.nowMs()); err != nil {
		return err
	}
	n.mu.Lock()
	snaps := append([]kraft.SnapshotInfo(nil), n.core.Snapshots()...)
	n.core.StartAdvanced(id.Offset)
	n.mu.Unlock()
	for _, s := range snaps {
		if !s.ID.Less(id) {
			continue
		}
		n.log.Info("raft: old snapshot deleted", "snapshot", s.ID, "logStart", id.Offset, "why", why)
		if err := n.store.deleteSnapshot(s.ID); err != nil {
			return err
		}
	}
	return nil
}

// Bootstrap returns the data records format left for the first activation: those of the 0-0 checkpoint, else those of a legacy
// bootstrap.checkpoint in the metadata directory, else none and an empty source (K-105, K-106).
func (n *Node) Bootstrap() (records []Record, source string, err error) {
	for _, path := range []string{join(n.store.dir, snapshotName(kraft.BootstrapSnapshotID)), join(n.store.root, legacyBootstrap)} {
		if ok, err := exists(n.store.fs, path); err != nil {
			return nil, "", err
		} else if !ok {
			continue
		}
		r, err := OpenSnapshot(n.store.fs, path, kraft.BootstrapSnapshotID)
		if err != nil {
			return nil, "", err
		}
		for {
			b, err := r.Next()
			if isEOF(err) {
				break
			}
			if err != nil {
				r.Close()
				return nil, "", err
			}
			records = append(records, b.Records...)
		}
		r.Close()
		if len(records) > 0 {
			return records, path, nil
		}
	}
	return nil, "", nil
}
