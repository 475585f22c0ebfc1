package fetchsession

import (
	"sync"
	"sync/atomic"

	"samsa/internal/base/model"
)

// session is one fetch session.
type session struct {
	id       int32 // set once, before the session is in the cache
	byID     bool
	follower bool
	bornAt   int64        // ms
	usedAt   atomic.Int64 // ms
	size     atomic.Int32 // count, for eviction and metrics

	mu    sync.Mutex
	epoch int32 // of the next request
	count int
	find  map[key]*entry
	// In the order they are read: what delivered data goes to the tail, so that others get their turn (D-126).
	head, tail *entry
	spare      snapshot // the buffers of the last fetch, if nobody uses them
}

type snapshot struct {
	parts   []Partition
	entries []*entry
}

// entry is one partition of a session.
type entry struct {
	key        key
	want       Partition // Topic stays once it was resolved (T-58)
	high       int64     // told last; -1 makes sure that the next answer is sent
	logStart   int64
	prev, next *entry
	gone       bool
}

// worthLess orders sessions by value for eviction (D-127).
func (s *session) worthLess(o *session) bool {
	if s.follower != o.follower {
		return !s.follower
	}
	if a, b := s.size.Load(), o.size.Load(); a != b {
		return a < b
	}
	return s.id < o.id
}

func (s *session) pushBack(e *entry) {
	e.prev, e.next = s.tail, nil
	if s.tail != nil {
		s.tail.next = e
	} else {
		s.head = e
	}
	s.tail = e
}

func (s *session) unlink(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		s.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		s.tail = e.prev
	}
	e.prev, e.next = nil, nil
}

func (s *session) add(p Partition) *entry {
	k := keyOf(p.TopicID, p.Topic, p.Partition, s.byID)
	if e := s.find[k]; e != nil {
		name := e.want.Topic
		e.want = p
		if s.byID && name != "" {
			e.want.Topic = name
		}
		return e
	}
	e := &entry{key: k, want: p, high: -1, logStart: -1}
	s.find[k] = e
	s.pushBack(e)
	s.count++
	return e
}

// update adds first and then forgets, so that a partition named by both is gone (T-59). A forgotten entry that is not
// there, or has a zero id, is ignored (T-53).
func (s *session) update(req Request) {
	for _, p := range req.Partitions {
		s.add(p)
	}
	for _, f := range req.Forgotten {
		k := keyOf(f.TopicID, f.Topic, f.Partition, s.byID)
		e := s.find[k]
		if e == nil || s.byID && f.TopicID.IsZero() {
			continue
		}
		delete(s.find, k)
		s.unlink(e)
		e.gone = true
		s.count--
	}
	s.size.Store(int32(s.count))
}

// snapshot lists the partitions in order. Names of ids are resolved until they are found once; ids of names every time,
// since a name may have come to mean another topic (T-58, T-62).
func (s *session) snapshot(resolve Resolve) ([]Partition, []*entry) {
	parts, entries := s.spare.parts[:0], s.spare.entries[:0]
	s.spare = snapshot{}
	for e := s.head; e != nil; e = e.next {
		if s.byID {
			if e.want.Topic == "" && !e.want.TopicID.IsZero() {
				if _, name, ok := resolve(e.want.TopicID, ""); ok {
					e.want.Topic = name
				}
			}
		} else {
			id, _, ok := resolve(model.TopicID{}, e.want.Topic)
			if !ok {
				id = model.TopicID{}
			}
			e.want.TopicID = id
		}
		parts = append(parts, e.want)
		entries = append(entries, e)
	}
	return parts, entries
}

// told records a result and says whether the response must list it.
func (e *entry) told(r *Result) bool {
	must := r.Err || r.Tell || r.Bytes > 0
	if r.HighWatermark != e.high {
		must = true
		e.high = r.HighWatermark
	}
	if r.LogStartOffset != e.logStart {
		must = true
		e.logStart = r.LogStartOffset
	}
	if r.Err {
		e.high = -1 // when the fault is over, the first good answer is sent (T-60)
	}
	return must
}
