package fetchsession

import (
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

// Partition is what a fetcher wants to know of one partition. By id a request leaves Topic empty, by name TopicID zero;
// Begin fills the other in as far as it is known.
type Partition struct {
	TopicID            model.TopicID
	Topic              string
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

// Resolve gives the other half of a topic's identity: by id (name is empty) or by name (id is zero). ok is false while
// the broker does not know it (T-57).
type Resolve func(id model.TopicID, name string) (model.TopicID, string, bool)

// key names an entry of a session: by id or by name, never both (T-56).
type key struct {
	id        model.TopicID
	name      string
	partition int32
}

func keyOf(id model.TopicID, name string, partition int32, byID bool) key {
	if byID {
		return key{id: id, partition: partition}
	}
	return key{name: name, partition: partition}
}

// dedupe keeps the last entry of those that name the same partition, at the place of the first, as Kafka does. parts is
// changed in place.
func dedupe(parts []Partition, byID bool) []Partition {
	if len(parts) < 2 {
		return parts
	}
	out := parts[:0]
	if len(parts) <= 8 { // the usual size: no map
	next:
		for _, p := range parts {
			for i := range out {
				if o := &out[i]; o.Partition == p.Partition && o.TopicID == p.TopicID && (byID || o.Topic == p.Topic) {
					*o = p
					continue next
				}
			}
			out = append(out, p)
		}
		return out
	}
	at := make(map[key]int, len(parts))
	for _, p := range parts {
		k := keyOf(p.TopicID, p.Topic, p.Partition, byID)
		if i, ok := at[k]; ok {
			out[i] = p
			continue
		}
		at[k] = len(out)
		out = append(out, p)
	}
	return out
}

func resolveAll(parts []Partition, byID bool, resolve Resolve) {
	for i := range parts {
		p := &parts[i]
		if byID {
			p.Topic = ""
			if p.TopicID.IsZero() {
				continue
			}
			if _, name, ok := resolve(p.TopicID, ""); ok {
				p.Topic = name
			}
			continue
		}
		p.TopicID = model.TopicID{}
		if id, _, ok := resolve(model.TopicID{}, p.Topic); ok {
			p.TopicID = id
		}
	}
}
