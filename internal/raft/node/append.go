package node

import (
	"fmt"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/record"
)

// pendingAppend is one call of Append, offsets assigned, not yet seen by the loop. The loop takes all there are in one turn, writes
// them with one call and syncs once: while the disk works, the next ones gather (group commit).
type pendingAppend struct {
	epoch   int32
	batches []kraft.Batch
	at      time.Time
}

const maxBacklogBytes = 10 * maxBatchBytes // K-57

// Append gives batches of framed records to the log of this leader; it returns the last offset they will have, before anything is durable.
// Each inner slice becomes exactly one batch, never split (K-58); the batches of one call are contiguous. Appends waiting at the same
// time share one fsync, and the high watermark covers them all.
//
// Errors: kerr.NotLeaderOrFollower when epoch is not the current leadership (a later one is the caller's bug), ErrBatchTooLarge above
// 8 MiB (K-57), ErrBacklog when too much waits, ErrStopped. Nothing was appended then. The records are copied.
func (n *Node) Append(epoch int32, batches [][]Record) (lastOffset int64, err error) {
	_, last, err := n.append(epoch, batches, -1)
	return last, err
}

// AppendAt is Append for a caller that already used the offsets in its records (a broker's epoch, J-179): when the log does not end at base
// any more, nothing is appended and the error is ErrMoved.
func (n *Node) AppendAt(epoch int32, base int64, batches [][]Record) (lastOffset int64, err error) {
	_, last, err := n.append(epoch, batches, base)
	return last, err
}

func (n *Node) append(epoch int32, batches [][]Record, expected int64) (base, last int64, err error) {
	now := n.opts.Now()
	p := pendingAppend{epoch: epoch, at: now}
	size := 0
	for _, records := range batches {
		if len(records) == 0 {
			continue
		}
		b, err := encodeData(records, epoch, now.UnixMilli())
		if err != nil {
			return 0, 0, err
		}
		size += len(b.Data)
		p.batches = append(p.batches, b)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.failure != nil:
		return 0, 0, ErrStopped
	case n.core.Role() != kraft.Leader || n.core.Epoch() != epoch || n.stopping:
		return 0, 0, kerr.NotLeaderOrFollower
	case expected >= 0 && expected != n.nextOffset:
		return 0, 0, fmt.Errorf("%w: it ends at %d, not at %d", ErrMoved, n.nextOffset, expected)
	case n.backlog+size > maxBacklogBytes && n.backlog > 0:
		return 0, 0, ErrBacklog
	}
	base = n.nextOffset
	for i := range p.batches {
		b := &p.batches[i]
		count := b.Last + 1
		b.Base, b.Last = n.nextOffset, n.nextOffset+count-1
		record.Batch(b.Data).SetBaseOffset(b.Base)
		n.nextOffset += count
	}
	if len(p.batches) > 0 {
		n.appends = append(n.appends, p)
		n.backlog += size
		n.stats.Appends += n.nextOffset - base
		n.wakeUp()
	}
	return base, n.nextOffset - 1, nil
}

// encodeData builds one data batch at offset 0 (K-75); the offset is outside the checksum and is patched when it is known.
func encodeData(records []Record, epoch int32, timestamp int64) (kraft.Batch, error) {
	size := record.HeaderSize
	for _, r := range records {
		size += len(r) + 16
	}
	if size > maxBatchBytes+len(records)*16 {
		return kraft.Batch{}, ErrBatchTooLarge
	}
	opt := record.NewBatchOptions()
	opt.LeaderEpoch = epoch
	w := record.NewBuilder(opt)
	for _, r := range records {
		w.Append(timestamp, nil, r, nil)
	}
	data := w.Build(make([]byte, 0, size))
	if len(data) > maxBatchBytes {
		return kraft.Batch{}, ErrBatchTooLarge
	}
	return kraft.Batch{Last: int64(len(records)) - 1, Epoch: epoch, Data: data}, nil
}

// NextOffset is the offset the next Append of this epoch begins at, unless the quorum itself appends before (see AppendAt).
func (n *Node) NextOffset(epoch int32) (int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.core.Role() != kraft.Leader || n.core.Epoch() != epoch {
		return 0, kerr.NotLeaderOrFollower
	}
	return n.nextOffset, nil
}
