package fetchsession

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/base/kerr"
)

// The two epochs that are no place in a sequence (D-125).
const (
	initialEpoch int32 = 0  // asks for a new session
	finalEpoch   int32 = -1 // wants none, and closes the one named
)

const (
	shards = 8
	// idle is how long a session lies unused before anyone may take its slot, and how long one lives before a
	// bigger one may (min.incremental.fetch.session.eviction.ms).
	idle = 120 * time.Second
)

// Cache holds the sessions of one broker.
type Cache struct {
	random func() uint32
	next   atomic.Uint32 // shard of the next session, in turn: so that all slots fill
	shard  [shards]shard
	evicts atomic.Int64
}

type shard struct {
	mu       sync.Mutex
	slots    int
	sessions map[int32]*session // guarded by mu; id modulo shards is the shard's number
}

// New makes a cache of slots sessions (max.incremental.fetch.session.cache.slots) in 8 shards. random draws session ids.
func New(slots int, random func() uint32) *Cache {
	c := &Cache{random: random}
	for i := range c.shard {
		c.shard[i].sessions = map[int32]*session{}
		c.shard[i].slots = slots / shards
		if i < slots%shards {
			c.shard[i].slots++
		}
	}
	return c
}

func (c *Cache) shardOf(id int32) *shard { return &c.shard[uint32(id)%shards] }

func (c *Cache) get(id int32) *session {
	s := c.shardOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

func (c *Cache) remove(id int32) {
	s := c.shardOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// Begin resolves a request. The error is FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
// FETCH_SESSION_TOPIC_ID_ERROR, checked in that order (T-55); the answer then carries session id 0 and no partition.
// The request's slices are kept until Finish.
func (c *Cache) Begin(now time.Time, req Request, resolve Resolve) (*Context, error) {
	if req.Epoch == initialEpoch || req.Epoch == finalEpoch {
		if req.SessionID != 0 {
			c.remove(req.SessionID) // whatever its family (T-55)
		}
		x := &Context{cache: c, kind: sessionless, byID: req.ByID, follower: req.Follower}
		if req.Epoch == initialEpoch {
			x.kind = full
		}
		x.parts = dedupe(req.Partitions, req.ByID)
		resolveAll(x.parts, req.ByID, resolve)
		return x, nil
	}
	s := c.get(req.SessionID)
	if s == nil {
		return nil, kerr.FetchSessionIdNotFound
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.epoch != req.Epoch:
		return nil, kerr.InvalidFetchSessionEpoch
	case s.byID != req.ByID:
		return nil, kerr.FetchSessionTopicIdError
	}
	s.update(req)
	if s.count == 0 {
		c.remove(req.SessionID)
		return &Context{cache: c, kind: sessionless, byID: req.ByID}, nil
	}
	s.usedAt.Store(now.UnixMilli())
	s.epoch = nextEpoch(s.epoch)
	x := &Context{cache: c, kind: incremental, byID: req.ByID, session: s, expect: s.epoch}
	x.parts, x.entries = s.snapshot(resolve)
	return x, nil
}

func nextEpoch(e int32) int32 {
	if e == math.MaxInt32 {
		return 1
	}
	return e + 1
}

// create gives a session of size partitions a slot, or 0 if it gets none (D-127).
func (c *Cache) create(now time.Time, s *session) int32 {
	n := c.next.Add(1) - 1
	sh := &c.shard[n%shards]
	ms := now.UnixMilli()
	s.bornAt = ms
	s.usedAt.Store(ms)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.sessions) >= sh.slots && !c.evict(sh, s, ms) {
		return 0
	}
	for {
		// Positive, never 0, and in this shard.
		id := int32(c.random()&math.MaxInt32&^(shards-1) | n%shards)
		if _, taken := sh.sessions[id]; id == 0 || taken {
			continue
		}
		s.id = id
		sh.sessions[id] = s
		return id
	}
}

// evict makes room for s: the session idle longest, if that is long enough, else the least valuable of those that may be
// pushed out, if s is worth more. A follower's session is worth more than any consumer's, a bigger one more than a
// smaller; a consumer only pushes out what is old. Shards are small: looking at every session beats keeping it
// sorted.
func (c *Cache) evict(sh *shard, s *session, nowMs int64) bool {
	var oldest, cheapest *session
	for _, o := range sh.sessions {
		if oldest == nil || o.usedAt.Load() < oldest.usedAt.Load() {
			oldest = o
		}
		old := nowMs-o.bornAt > idle.Milliseconds()
		if !old && (o.follower || !s.follower) {
			continue
		}
		if cheapest == nil || o.worthLess(cheapest) {
			cheapest = o
		}
	}
	victim := oldest
	if oldest == nil {
		return false
	}
	if nowMs-oldest.usedAt.Load() <= idle.Milliseconds() {
		if cheapest == nil || s.worthLess(cheapest) {
			return false
		}
		victim = cheapest
	}
	delete(sh.sessions, victim.id)
	c.evicts.Add(1)
	return true
}

// Stats are the numbers of D-127's metrics.
type Stats struct {
	Sessions, Partitions int
	Evictions            int64
}

// Stats counts the sessions now.
func (c *Cache) Stats() Stats {
	st := Stats{Evictions: c.evicts.Load()}
	for i := range c.shard {
		sh := &c.shard[i]
		sh.mu.Lock()
		st.Sessions += len(sh.sessions)
		for _, s := range sh.sessions {
			st.Partitions += int(s.size.Load())
		}
		sh.mu.Unlock()
	}
	return st
}
