package protocol

import (
	"encoding/binary"

	"samsa/internal/base/model"
)

// ProduceWalk goes through a produce request without building a struct per topic and partition
// . Everything it hands out aliases the request.
//
//	w, err := protocol.WalkProduce(body, version)
//	for w.Next() {
//		… w.Topic or w.TopicId, w.Partition, w.Records
//	}
//
// WalkProduce has seen the whole request, so nothing is found to be malformed half way through.
type ProduceWalk struct {
	TransactionalId []byte // nil: null
	Acks            int16
	TimeoutMs       int32
	Topics          int // how many topics the request has
	Partitions      int // how many partitions in all topics

	// The partition Next has moved to.
	Topic     []byte     // up to version 12
	TopicId   model.UUID // from version 13
	FirstOf   bool       // whether it is the first one of its topic entry
	Partition int32
	Records   []byte // nil: null

	r            reader
	start        []byte // the topics
	version      int16
	flex         bool
	topics, left int // topics to come; partitions to come in this topic
}

// WalkProduce checks a produce request of version v and returns a walk in front of its first
// partition. Bytes behind the request are given by Rest.
func WalkProduce(body []byte, v int16) (w ProduceWalk, rest []byte, err error) {
	w = ProduceWalk{r: newReader(body), version: v, flex: v >= apis[KeyProduce].reqFlex}
	r := &w.r
	if r.version(v, apis[KeyProduce].min, apis[KeyProduce].max) {
		w.TransactionalId = r.nbytesOfString(w.flex)
		w.Acks = r.int16()
		w.TimeoutMs = r.int32()
		w.start = r.b
		w.open()
		for w.Next() {
			w.Partitions++
		}
	}
	rest, err = r.done(body, "ProduceRequest", v)
	if err != nil {
		return ProduceWalk{}, body, err
	}
	w.r = newReader(w.start)
	w.open()
	w.Topic, w.TopicId, w.Partition, w.Records, w.FirstOf = nil, model.UUID{}, 0, nil, false
	return w, rest, nil
}

// open reads the number of topics.
func (w *ProduceWalk) open() {
	least := pick(w.flex, 3, 6)
	if w.version >= 13 {
		least = 18
	}
	w.Topics = w.r.count(w.flex, least)
	w.topics, w.left = w.Topics, -1
	if w.Topics == 0 {
		w.end()
	}
}

func (w *ProduceWalk) end() {
	if w.flex {
		w.r.skipTags()
	}
}

// Next moves to the next partition; false behind the last one.
func (w *ProduceWalk) Next() bool {
	r := &w.r
	w.FirstOf = false
	for w.left <= 0 {
		if w.topics == 0 || !r.ok() {
			return false
		}
		if w.version >= 13 {
			w.TopicId = r.uuid()
		} else {
			w.Topic = r.bytesOfString(w.flex)
		}
		w.left = r.count(w.flex, pick(w.flex, 6, 8))
		w.FirstOf = true
		w.closeTopic()
	}
	w.Partition = r.int32()
	w.Records = r.bytes(w.flex, true)
	if w.flex {
		r.skipTags()
	}
	w.left--
	w.closeTopic()
	return r.ok()
}

// closeTopic reads what follows the last partition of a topic, and of the request.
func (w *ProduceWalk) closeTopic() {
	if w.left != 0 {
		return
	}
	if w.flex {
		w.r.skipTags()
	}
	if w.topics--; w.topics == 0 {
		w.end()
	}
}

// nbytesOfString reads a nullable string as bytes that alias the input.
func (r *reader) nbytesOfString(flex bool) []byte {
	n := r.strLength(flex)
	if n < 0 {
		return nil
	}
	return r.take(n)
}

func (r *reader) bytesOfString(flex bool) []byte {
	p := r.nbytesOfString(flex)
	if p == nil && r.ok() {
		r.fail("null for a string that has none")
	}
	return p
}

// skipTags passes a tagged section without keeping any of it.
func (r *reader) skipTags() {
	for n := r.tagCount(); n > 0 && r.ok(); n-- {
		r.uvarint()
		r.take(int(r.uvarint()))
	}
}

// ProduceAcks reads only the acks of a produce request, which say whether an answer is expected.
func ProduceAcks(body []byte, v int16) (acks int16, ok bool) {
	r := newReader(body)
	r.nbytesOfString(v >= apis[KeyProduce].reqFlex)
	p := r.take(2)
	if !r.ok() {
		return 0, false
	}
	return int16(binary.BigEndian.Uint16(p)), true
}
