package runtime

import (
	"errors"
	"sync"

	"samsa/internal/base/kerr"
	"samsa/internal/coord/group"
	"samsa/internal/wire/protocol"
)

// Requests about many groups: each shard answers for its own, and the last one to answer replies.

// gather waits for parts and then runs done once, on the goroutine of the last part.
type gather struct {
	mu   sync.Mutex
	left int // guarded by mu
	done func()
}

func (w *gather) part(f func()) {
	w.mu.Lock()
	f()
	w.left--
	last := w.left == 0
	w.mu.Unlock()
	if last {
		w.done()
	}
}

// byShard sorts the places of ids by the shard that has them.
func (g *Groups) byShard(ids []string) map[*shard][]int {
	partitions := g.Partitions()
	out := map[*shard][]int{}
	g.mu.RLock()
	defer g.mu.RUnlock()
	for i, id := range ids {
		s := g.shards[PartitionFor(id, partitions)]
		out[s] = append(out[s], i)
	}
	return out
}

// each asks every shard that has one of ids; one without a shard fails with NOT_COORDINATOR.
func (g *Groups) each(ids []string, done func(), fail func(place int, err error), run func(now int64, c *group.Core, places []int, part func(func()))) {
	if len(ids) == 0 {
		done()
		return
	}
	shards := g.byShard(ids)
	w := &gather{left: len(shards), done: done}
	for s, places := range shards {
		refuse := func(err error) {
			w.part(func() {
				for _, i := range places {
					fail(i, err)
				}
			})
		}
		if s == nil {
			refuse(kerr.NotCoordinator)
			continue
		}
		s.post(message{fail: refuse, run: func(now int64, c *group.Core) { run(now, c, places, w.part) }})
	}
}

// Describe serves DescribeGroups of a version; the answers are in the order of ids.
func (g *Groups) Describe(ids []string, version int16, reply func([]protocol.DescribeGroupsResponseDescribedGroup)) {
	out := make([]protocol.DescribeGroupsResponseDescribedGroup, len(ids))
	g.each(ids, func() { reply(out) }, func(i int, err error) {
		out[i] = protocol.Make[protocol.DescribeGroupsResponseDescribedGroup]()
		out[i].GroupId, out[i].ErrorCode = ids[i], kerr.Code(err)
	}, func(_ int64, c *group.Core, places []int, part func(func())) {
		part(func() {
			for _, i := range places {
				out[i] = c.Describe(ids[i], version)
			}
		})
	})
}

// DeleteGroups serves DeleteGroups; the results are in the order of ids.
func (g *Groups) DeleteGroups(ids []string, reply func([]protocol.DeleteGroupsResponseDeletableGroupResult)) {
	out := make([]protocol.DeleteGroupsResponseDeletableGroupResult, len(ids))
	g.each(ids, func() { reply(out) }, func(i int, err error) {
		out[i] = protocol.DeleteGroupsResponseDeletableGroupResult{GroupId: ids[i], ErrorCode: kerr.Code(err)}
	}, func(now int64, c *group.Core, places []int, part func(func())) {
		mine := make([]string, len(places))
		for k, i := range places {
			mine[k] = ids[i]
		}
		c.DeleteGroups(now, mine, func(results []protocol.DeleteGroupsResponseDeletableGroupResult) {
			part(func() {
				for k, i := range places {
					out[i] = results[k]
				}
			})
		})
	})
}

// List serves ListGroups over the groups of this broker. A shard that is loading fails the whole answer, one that has just
// ended is left out.
func (g *Groups) List(states, types []string, reply func([]protocol.ListGroupsResponseListedGroup, error)) {
	shards := g.all()
	if len(shards) == 0 {
		reply(nil, nil)
		return
	}
	var out []protocol.ListGroupsResponseListedGroup
	var failed error
	w := &gather{left: len(shards)}
	w.done = func() {
		if failed != nil {
			out = nil
		}
		reply(out, failed)
	}
	for _, s := range shards {
		s.post(message{
			fail: func(err error) {
				w.part(func() {
					if !errors.Is(err, kerr.NotCoordinator) {
						failed = err
					}
				})
			},
			run: func(_ int64, c *group.Core) { w.part(func() { out = append(out, c.List(states, types)...) }) },
		})
	}
}
