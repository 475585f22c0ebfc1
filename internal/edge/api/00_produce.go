package api

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

// Produce, versions 3-13; 0-2 are advertised, for clients that take them as proof of gzip, snappy and lz4,
// and refused (D-11)
//
//	v5   log start offset in the response
//	v7   zstd
//	v8   the records a batch was refused for (KIP-467)
//	v10  current leader and its endpoint beside NOT_LEADER_OR_FOLLOWER (KIP-951)
//	v12  partitions join a transaction by being written to (KIP-890)
//	v13  topics by id (KIP-516)

// adminClientID may write to internal topics (D-12).
const adminClientID = "__admin_client"

// produce is one produce request on its way: entries is what goes to the logs, in the order of
// the request, and answers where each one's result belongs. It is pooled with all its slices, as a small
// request would else cost more in memory than in anything else.
type produce struct {
	*call
	acks       int16
	resp       protocol.ProduceResponse
	partitions []protocol.ProduceResponsePartitionProduceResponse // of all topics of resp
	named      []producePart                                      // what the request names
	entries    []manager.AppendEntry
	results    []manager.AppendResult
	answers    []int // of entries: their index in partitions
	failed     error // the first refusal, for acks=0
	whenDone   func([]manager.AppendResult)
}

// producePart is one partition of a request; its bytes are the request's.
type producePart struct {
	topic     []byte
	id        model.UUID
	partition int32
	records   []byte
	first     bool // of its topic
}

var produces sync.Pool

func init() {
	produces.New = func() any {
		p := &produce{}
		p.whenDone = p.done
		return p
	}
}

// maxPooledProduce is the most partitions a request may have had for its slices to be kept.
const maxPooledProduce = 256

func (p *produce) release() {
	if cap(p.partitions) > maxPooledProduce || cap(p.named) > maxPooledProduce {
		return
	}
	clear(p.resp.Responses)
	clear(p.partitions)
	clear(p.named)
	clear(p.entries)
	clear(p.results)
	*p = produce{
		resp: protocol.ProduceResponse{Responses: p.resp.Responses[:0]}, partitions: p.partitions[:0], named: p.named[:0],
		entries: p.entries[:0], results: p.results[:0], answers: p.answers[:0], whenDone: p.whenDone,
	}
	produces.Put(p)
}

func serveProduce(c *call) {
	if c.Version < 3 {
		c.Close(errUnsupported)
		return
	}
	walk, rest, err := protocol.WalkProduce(c.Body, c.Version)
	if err != nil {
		c.Close(err)
		return
	}
	c.trailing(rest)
	p := produces.Get().(*produce)
	p.call, p.acks = c, walk.Acks
	for walk.Next() {
		p.named = append(p.named, producePart{walk.Topic, walk.TopicId, walk.Partition, walk.Records, walk.FirstOf})
	}
	if err := p.unfit(walk.TransactionalId); err != nil {
		p.refuseAll(err)
		return
	}
	p.resolve()
	c.server.Replicas.Append(manager.AppendRequest{
		Acks:          walk.Acks,
		Timeout:       ms(walk.TimeoutMs),
		APIVersion:    c.Version,
		AllowInternal: c.ClientID == adminClientID,
		Entries:       p.entries,
		Results:       p.results,
	}, p.whenDone)
}

// resolve finds each partition's log by name or id and gives it a place in the response.
func (p *produce) resolve() {
	last := lastOfEach(p.named)
	byID := p.Version >= 13
	var name string
	var id model.TopicID
	var err error
	p.partitions = slices.Grow(p.partitions, len(p.named)) // responses hold pieces of it
	begin := 0
	for i := range p.named {
		d := &p.named[i]
		if d.first {
			name, id, err = p.topicOf(string(d.topic), d.id, byID)
			begin = len(p.partitions)
			t := protocol.ProduceResponseTopicProduceResponse{TopicId: d.id}
			if !byID {
				t.Name = name
			}
			p.resp.Responses = append(p.resp.Responses, t)
		}
		if last != nil && last[d.key()] != i {
			continue // a later entry for the same partition wins (D-10)
		}
		a := protocol.Make[protocol.ProduceResponsePartitionProduceResponse]()
		a.Index = d.partition
		if err == nil {
			tp := model.TopicIDPartition{Topic: id, Partition: d.partition}
			if _, _, known := p.img.Topics().Partition(tp); !known {
				p.refuse(&a, kerr.UnknownTopicOrPartition)
			} else {
				p.entries = append(p.entries, manager.AppendEntry{Partition: tp, Topic: name, Records: d.records, ByID: byID})
				p.answers = append(p.answers, len(p.partitions))
			}
		} else {
			p.refuse(&a, err)
		}
		p.partitions = append(p.partitions, a)
		p.resp.Responses[len(p.resp.Responses)-1].PartitionResponses = p.partitions[begin:len(p.partitions):len(p.partitions)]
	}
}

// unfit is what makes a request fail as a whole, before any partition is looked at (D-10): a batch whose
// framing is broken, and one of a transaction. Nobody opens transactions yet.
func (p *produce) unfit(transactionalID []byte) error {
	for i := range p.named {
		b := p.named[i].records
		if len(b) < record.HeaderUpToMagic {
			continue
		}
		if err := record.CheckHeader(b); err != nil {
			return err
		}
		batch := record.Batch(b)
		if batch.Magic() < 2 || len(b) < record.HeaderSize || !batch.IsTransactional() {
			continue
		}
		if transactionalID == nil {
			return kerr.TransactionalIdAuthorizationFailed
		}
		return kerr.InvalidTxnState.With("transactions are not served yet, so transactional id %q has none open", transactionalID)
	}
	return nil
}

// refuseAll answers every partition of the request with one error.
func (p *produce) refuseAll(err error) {
	for i := range p.named {
		d := &p.named[i]
		if d.first {
			t := protocol.ProduceResponseTopicProduceResponse{TopicId: d.id}
			if p.Version < 13 {
				t.Name = string(d.topic)
			}
			p.resp.Responses = append(p.resp.Responses, t)
		}
		a := protocol.Make[protocol.ProduceResponsePartitionProduceResponse]()
		a.Index = d.partition
		p.refuse(&a, err)
		if text := *messageOf(err); text != "" {
			a.ErrorMessage = &text
		}
		t := &p.resp.Responses[len(p.resp.Responses)-1]
		t.PartitionResponses = append(t.PartitionResponses, a)
	}
	p.done(nil)
}

// refuse answers a partition whose records go nowhere.
func (p *produce) refuse(a *protocol.ProduceResponsePartitionProduceResponse, err error) {
	a.ErrorCode = kerr.Code(err)
	a.BaseOffset = -1
	if p.failed == nil {
		p.failed = err
	}
}

type partitionKey struct {
	name  string
	id    model.UUID
	index int32
}

func (d *producePart) key() partitionKey { return partitionKey{string(d.topic), d.id, d.partition} }

func (d *producePart) same(o *producePart) bool {
	return d.partition == o.partition && d.id == o.id && bytes.Equal(d.topic, o.topic)
}

// lastOfEach finds the entry that counts for each partition; nil when none is named twice.
func lastOfEach(named []producePart) map[partitionKey]int {
	const few = 16 // so few are compared sooner than put into a map
	if len(named) <= few {
		twice := false
		for i := range named {
			for j := range i {
				twice = twice || named[i].same(&named[j])
			}
		}
		if !twice {
			return nil
		}
	}
	last := make(map[partitionKey]int, len(named))
	for i := range named {
		last[named[i].key()] = i
	}
	if len(last) == len(named) {
		return nil
	}
	return last
}

// done has the results of all entries.
func (p *produce) done(results []manager.AppendResult) {
	for i := range results {
		r := &results[i]
		a := &p.partitions[p.answers[i]]
		a.BaseOffset, a.LogAppendTimeMs, a.LogStartOffset = r.BaseOffset, r.LogAppendTime, r.LogStartOffset
		if r.Err == nil {
			continue
		}
		a.ErrorCode = kerr.Code(r.Err)
		if p.failed == nil {
			p.failed = r.Err
		}
		if r.Message != "" {
			a.ErrorMessage = &r.Message
		}
		for _, e := range r.RecordErrors {
			a.RecordErrors = append(a.RecordErrors, protocol.ProduceResponseBatchIndexAndErrorMessage{
				BatchIndex: e.BatchIndex, BatchIndexErrorMessage: &e.Message,
			})
		}
		if p.Version >= 10 && errors.Is(r.Err, kerr.NotLeaderOrFollower) {
			a.CurrentLeader.LeaderId, a.CurrentLeader.LeaderEpoch = int32(r.Leader.Leader), int32(r.Leader.Epoch)
			p.hint(r.Leader.Leader)
		}
	}
	switch {
	case p.acks != 0:
		p.Reply(&p.resp)
	case p.failed != nil: // nobody waits for an answer; a closed connection makes the client look again (D-25)
		p.Close(fmt.Errorf("acks=0, so nobody can be told: %w", p.failed))
	default:
		p.NoReply()
	}
	p.results = results
	p.release()
}

// hint adds a leader's endpoint to the response, once.
func (p *produce) hint(leader model.NodeID) {
	for _, e := range p.resp.NodeEndpoints {
		if e.NodeId == int32(leader) {
			return
		}
	}
	if host, port, rack, ok := p.endpointOf(leader); ok {
		p.resp.NodeEndpoints = append(p.resp.NodeEndpoints, protocol.ProduceResponseNodeEndpoint{NodeId: int32(leader), Host: host, Port: port, Rack: rack})
	}
}
