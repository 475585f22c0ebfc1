package fetchsession

import (
	"time"

	"samsa/internal/base/model"
)

// Request is the session part of a Fetch request.
type Request struct {
	SessionID, Epoch int32
	ByID             bool // v13+: partitions are named by topic id, else by name (T-55)
	Follower         bool // privileged: may push out consumers' sessions (D-127)
	Partitions       []Partition
	Forgotten        []Forgotten
}

// Partition is what a fetcher wants to know of one partition.
type Partition struct {
	TopicID            model.TopicID // zero in a name session until resolved
	Topic              string        // empty in an id session until resolved
	Partition          int32
	MaxBytes           int32
	FetchOffset        int64
	LogStartOffset     int64
	CurrentLeaderEpoch model.LeaderEpoch
	LastFetchedEpoch   model.LeaderEpoch
}

// Forgotten is a partition to drop from the session.
type Forgotten struct {
	TopicID   model.TopicID
	Topic     string
	Partition int32
}

// Resolve gives the other half of a topic's identity; ok is false while the broker does not know it (T-57).
// In an id session name is empty, in a name session id is zero.
type Resolve func(id model.TopicID, name string) (model.TopicID, string, bool)

// Result is what was found for one partition, at the index of Context.Partitions.
type Result struct {
	Err            bool // any error code but NONE
	Bytes          int
	HighWatermark  int64
	LogStartOffset int64
	Tell           bool // diverging epoch or preferred replica: always listed
	Throttled      bool
}

// Cache holds the sessions of one broker.
type Cache struct{}

// New makes a cache of slots sessions (max.incremental.fetch.session.cache.slots) in 8 shards. random draws session ids.
func New(slots int, random func() uint32) *Cache { panic("pending") }

// Begin resolves a request. The error is FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
// FETCH_SESSION_TOPIC_ID_ERROR, checked in that order (T-55); the answer then carries session id 0 and no partition.
func (c *Cache) Begin(now time.Time, req Request, resolve Resolve) (*Context, error) {
	panic("pending")
}

// Context is one fetch on its way.
type Context struct{}

// Partitions are the partitions to read, in session order; an entry whose topic is still unknown has Topic "" (id
// session) or a zero TopicID (name session). Borrowed until Finish.
func (x *Context) Partitions() []Partition { panic("pending") }

// Finish records what was found and says what to answer: the session id (0: no session) and, for each partition,
// whether the response lists it.
func (x *Context) Finish(now time.Time, results []Result) (sessionID int32, include []bool) {
	panic("pending")
}

// Stats are the numbers of D-127's metrics.
type Stats struct {
	Sessions, Partitions int
	Evictions            int64
}

func (c *Cache) Stats() Stats { panic("pending") }
