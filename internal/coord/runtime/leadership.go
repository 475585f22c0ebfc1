package runtime

import (
	"encoding/hex"
	"fmt"
	"io"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/coord/group"
)

// leadership is Groups as it hears of partitions.
type leadership Groups

// Elected loads a partition; a new epoch of a leadership that goes on only changes the epoch of later appends.
func (l *leadership) Elected(tp model.TopicIDPartition, epoch model.LeaderEpoch) {
	g := (*Groups)(l)
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	old := g.shards[tp.Partition]
	if old != nil && old.tp == tp && old.goesOn(epoch) {
		g.mu.Unlock()
		return
	}
	s := &shard{g: g, tp: tp, epoch: epoch}
	g.shards[tp.Partition] = s
	g.loads.Add(1)
	g.mu.Unlock()
	if old != nil {
		old.unload("another leadership begins")
	}
	go func() {
		defer g.loads.Done()
		s.load()
	}()
}

// goesOn takes a new epoch over; false when the shard does not serve any more.
func (s *shard) goesOn(epoch model.LeaderEpoch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != active {
		return false
	}
	s.epoch = max(s.epoch, epoch)
	return true
}

// Resigned ends a partition's shard.
func (l *leadership) Resigned(tp model.TopicIDPartition, epoch model.LeaderEpoch) {
	g := (*Groups)(l)
	g.mu.Lock()
	s := g.shards[tp.Partition]
	if s == nil || s.tp != tp {
		g.mu.Unlock()
		return
	}
	delete(g.shards, tp.Partition)
	g.mu.Unlock()
	s.unload("another broker leads, or the partition is gone")
}

// ask puts a request into the mailbox of its group's shard.
func (g *Groups) ask(groupID string, fail func(error), run func(now int64, c *group.Core)) {
	g.mu.RLock()
	s := g.shards[PartitionFor(groupID, g.Partitions())]
	g.mu.RUnlock()
	if s == nil {
		fail(kerr.NotCoordinator)
		return
	}
	s.post(message{run: run, fail: fail})
}

// all is every shard there is.
func (g *Groups) all() []*shard {
	g.mu.RLock()
	defer g.mu.RUnlock()
	out := make([]*shard, 0, len(g.shards))
	for _, s := range g.shards {
		out = append(out, s)
	}
	return out
}

func (g *Groups) now() int64 { return g.o.Now().UnixMilli() }

// uuid makes a random UUID in its usual form, as member ids have it.
func (g *Groups) uuid() string {
	var b [16]byte
	g.random.Lock()
	_, err := io.ReadFull(g.o.Random, b[:])
	g.random.Unlock()
	if err != nil {
		panic(fmt.Sprintf("groups: no random bytes: %v", err))
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
