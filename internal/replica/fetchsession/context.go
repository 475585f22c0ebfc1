package fetchsession

import (
	"time"

	"samsa/internal/base/kerr"
)

type kind uint8

const (
	sessionless kind = iota // answers everything, keeps nothing
	full                    // answers everything and opens a session
	incremental             // answers what changed
)

// Context is one fetch on its way. It belongs to one goroutine at a time.
type Context struct {
	cache    *Cache
	kind     kind
	byID     bool
	follower bool
	session  *session
	expect   int32 // the session's epoch while nobody else has used it
	parts    []Partition
	entries  []*entry // incremental: parallel to parts
}

// Partitions are the partitions to read, in session order; an entry whose topic is still unknown has Topic "" (by id) or a
// zero TopicID (by name). Borrowed until Finish.
func (x *Context) Partitions() []Partition { return x.parts }

// Incremental tells whether the response lists only what changed.
func (x *Context) Incremental() bool { return x.kind == incremental }

// Result is what was found for one partition, at the index of Context.Partitions.
type Result struct {
	Err            bool // any error code but NONE
	Bytes          int
	HighWatermark  int64
	LogStartOffset int64
	Tell           bool // diverging epoch or preferred replica: always listed
}

// Finish records what was found and says what to answer: the session id (0: no session) and, for each partition, whether
// the response lists it; include nil means all. The error, INVALID_FETCH_SESSION_EPOCH, comes when another request has
// used the session meanwhile; the answer then lists nothing. Call it once; after it Partitions is not valid any more.
func (x *Context) Finish(now time.Time, results []Result) (sessionID int32, include []bool, err error) {
	switch x.kind {
	case sessionless:
		return 0, nil, nil
	case full:
		return x.open(now, results), nil, nil
	}
	s := x.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != x.expect {
		return 0, nil, kerr.InvalidFetchSessionEpoch
	}
	include = make([]bool, len(results))
	for i := range results {
		e := x.entries[i]
		include[i] = e.told(&results[i])
		if results[i].Bytes > 0 && !e.gone {
			s.unlink(e)
			s.pushBack(e)
		}
	}
	clear(x.entries)
	s.spare = snapshot{x.parts[:0], x.entries[:0]}
	x.parts, x.entries = nil, nil
	return s.id, include, nil
}

// open makes a session out of a full fetch.
func (x *Context) open(now time.Time, results []Result) int32 {
	s := &session{byID: x.byID, follower: x.follower, epoch: 1, find: make(map[key]*entry, len(x.parts))}
	s.size.Store(int32(len(x.parts)))
	// A slot first: without one nothing need be built.
	s.mu.Lock()
	defer s.mu.Unlock()
	id := x.cache.create(now, s)
	if id == 0 {
		return 0
	}
	for i := range x.parts {
		s.add(x.parts[i]).told(&results[i])
	}
	s.size.Store(int32(s.count))
	return id
}

// Empty is for an answer emptied by a quota: it changes nothing in the session (D-126).
func (x *Context) Empty() (sessionID int32, err error) {
	if x.kind != incremental {
		return 0, nil
	}
	x.session.mu.Lock()
	defer x.session.mu.Unlock()
	if x.session.epoch != x.expect {
		return 0, kerr.InvalidFetchSessionEpoch
	}
	return x.session.id, nil
}
