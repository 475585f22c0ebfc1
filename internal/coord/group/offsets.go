package group

import (
	"cmp"
	"slices"

	"samsa/internal/base/model"
)

// noExpiry: the offset has no expiry of its own.
const noExpiry int64 = -1

// Offset is one committed offset.
type Offset struct {
	Offset      int64
	LeaderEpoch int32 // -1 unknown
	Metadata    string
	CommitMs    int64
	ExpireMs    int64 // noExpiry (-1) in ordinary commits
	TopicID     model.UUID
	at          int64 // its record's place in the log, to tell the newest of several
}

var noTopic model.UUID

// offsetID names an offset.
type offsetID struct {
	group, topic string
	partition    int32
}

// offsets are all offsets of a shard. Each has a committed value, which is what others see, and the changes on their
// way to the log, which are what the shard's own decisions see.
type offsets struct {
	groups map[string]*groupOffsets
	txns   map[int64]*openTxn // by producer id: open transactions found in the log
	n      int                // committed values
}

type groupOffsets struct {
	id     string
	topics map[string]*topicOffsets
}

type topicOffsets struct {
	group *groupOffsets
	name  string
	parts map[int32]*slot
}

type slot struct {
	in        *topicOffsets
	partition int32
	committed Offset
	has       bool
	open      int // transactions that hold a value for this offset
	changes   []change
}

// change is a value on its way; nil is a removal.
type change struct {
	batch uint64
	value *Offset
}

// openTxn is what a transaction will set when it commits.
type openTxn struct{ values map[*slot]Offset }

func (o *offsets) init() {
	o.groups = map[string]*groupOffsets{}
	o.txns = map[int64]*openTxn{}
}

func (s *slot) id() offsetID { return offsetID{s.in.group.id, s.in.name, s.partition} }

// latest is the value with the changes on their way.
func (s *slot) latest() (Offset, bool) {
	if n := len(s.changes); n > 0 {
		if v := s.changes[n-1].value; v != nil {
			return *v, true
		}
		return Offset{}, false
	}
	return s.committed, s.has
}

func (o *offsets) find(group, topic string, partition int32) *slot {
	if g := o.groups[group]; g != nil {
		if t := g.topics[topic]; t != nil {
			return t.parts[partition]
		}
	}
	return nil
}

func (o *offsets) slot(k offsetID) *slot {
	g := o.groups[k.group]
	if g == nil {
		g = &groupOffsets{k.group, map[string]*topicOffsets{}}
		o.groups[k.group] = g
	}
	t := g.topics[k.topic]
	if t == nil {
		t = &topicOffsets{g, k.topic, map[int32]*slot{}}
		g.topics[k.topic] = t
	}
	s := t.parts[k.partition]
	if s == nil {
		s = &slot{in: t, partition: k.partition}
		t.parts[k.partition] = s
	}
	return s
}

// tidy forgets a slot that holds nothing.
func (o *offsets) tidy(s *slot) {
	if s.has || len(s.changes) > 0 || s.open > 0 {
		return
	}
	t, g := s.in, s.in.group
	delete(t.parts, s.partition)
	if len(t.parts) == 0 {
		delete(g.topics, t.name)
	}
	if len(g.topics) == 0 {
		delete(o.groups, g.id)
	}
}

// change notes a value (nil: a removal) that batch will commit.
func (o *offsets) change(s *slot, batch uint64, value *Offset) {
	s.changes = append(s.changes, change{batch, value})
}

// settle: batch is committed, or failed and taken back.
func (o *offsets) settle(s *slot, batch uint64, committed bool) {
	last := -1
	for i := range s.changes {
		if s.changes[i].batch == batch {
			last = i
		}
	}
	if last < 0 {
		return
	}
	if committed {
		o.set(s, s.changes[last].value)
	}
	s.changes = slices.DeleteFunc(s.changes, func(c change) bool { return c.batch == batch })
	if len(s.changes) == 0 {
		s.changes = nil
	}
	o.tidy(s)
}

// set is what a committed record does. A removal takes values of open transactions along (D-166).
func (o *offsets) set(s *slot, value *Offset) {
	if s.has {
		o.n--
	}
	if s.has = value != nil; s.has {
		s.committed = *value
		o.n++
		return
	}
	s.committed = Offset{}
	if s.open > 0 {
		for id, t := range o.txns {
			if _, ok := t.values[s]; ok {
				delete(t.values, s)
				if len(t.values) == 0 {
					delete(o.txns, id)
				}
			}
		}
		s.open = 0
	}
}

// begin adds a value of an open transaction.
func (o *offsets) begin(producer int64, s *slot, value Offset) {
	t := o.txns[producer]
	if t == nil {
		t = &openTxn{map[*slot]Offset{}}
		o.txns[producer] = t
	}
	if _, ok := t.values[s]; !ok {
		s.open++
	}
	t.values[s] = value
}

// end closes a producer's transaction: when it commits the newest value by log order wins (D-170).
func (o *offsets) end(producer int64, commit bool) {
	t := o.txns[producer]
	if t == nil {
		return
	}
	delete(o.txns, producer)
	for s, v := range t.values {
		s.open--
		if commit && (!s.has || s.committed.at < v.at) {
			o.set(s, &v)
		}
		o.tidy(s)
	}
}

// keys are the offsets a group has, the ones on their way and in open transactions included, in order.
func (o *offsets) keys(group string) []offsetID {
	g := o.groups[group]
	if g == nil {
		return nil
	}
	var out []offsetID
	for _, t := range g.topics {
		for _, s := range t.parts {
			if _, ok := s.latest(); ok || s.open > 0 {
				out = append(out, s.id())
			}
		}
	}
	slices.SortFunc(out, compareIDs)
	return out
}

func compareIDs(a, b offsetID) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}

// open says whether a group has a value in an open transaction.
func (o *offsets) open(group string) bool {
	if len(o.txns) == 0 || o.groups[group] == nil {
		return false
	}
	for _, t := range o.groups[group].topics {
		for _, s := range t.parts {
			if s.open > 0 {
				return true
			}
		}
	}
	return false
}
