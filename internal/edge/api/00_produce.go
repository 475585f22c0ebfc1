package api

import (
	"errors"
	"fmt"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/protocol"
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
// the request, and answers where each one's result belongs.
type produce struct {
	*call
	acks    int16
	resp    protocol.ProduceResponse
	entries []manager.AppendEntry
	answers []answerPlace
	failed  error // the first refusal, for acks=0
}

// answerPlace is a partition of a response: its topic's index and its own.
type answerPlace struct{ topic, partition int }

func serveProduce(c *call, req *protocol.ProduceRequest) {
	if c.Version < 3 {
		c.Close(errUnsupported)
		return
	}
	p := &produce{call: c, acks: req.Acks}
	p.resp.Default()
	p.resolve(req)
	c.server.Replicas.Append(manager.AppendRequest{
		Acks:          req.Acks,
		Timeout:       ms(req.TimeoutMs),
		APIVersion:    c.Version,
		AllowInternal: c.ClientID == adminClientID,
		Entries:       p.entries,
	}, p.done)
}

// resolve finds each partition's log by name or id and gives it a place in the response.
func (p *produce) resolve(req *protocol.ProduceRequest) {
	last := lastOfEach(req)
	byID := p.Version >= 13
	p.resp.Responses = make([]protocol.ProduceResponseTopicProduceResponse, 0, len(req.TopicData))
	for i := range req.TopicData {
		t := &req.TopicData[i]
		name, id, err := p.topicOf(t.Name, t.TopicId, byID)
		answers := make([]protocol.ProduceResponsePartitionProduceResponse, 0, len(t.PartitionData))
		for j := range t.PartitionData {
			d := &t.PartitionData[j]
			if last != nil && last[partitionKey{t.Name, t.TopicId, d.Index}] != &t.PartitionData[j] {
				continue // a later entry for the same partition wins (D-10)
			}
			a := protocol.Make[protocol.ProduceResponsePartitionProduceResponse]()
			a.Index = d.Index
			if err == nil {
				if _, _, known := p.img.Topics().Partition(model.TopicIDPartition{Topic: id, Partition: d.Index}); !known {
					p.refuse(&a, kerr.UnknownTopicOrPartition)
				} else {
					p.entries = append(p.entries, manager.AppendEntry{
						Partition: model.TopicIDPartition{Topic: id, Partition: d.Index}, Topic: name, Records: d.Records, ByID: byID,
					})
					p.answers = append(p.answers, answerPlace{len(p.resp.Responses), len(answers)})
				}
			} else {
				p.refuse(&a, err)
			}
			answers = append(answers, a)
		}
		p.resp.Responses = append(p.resp.Responses, protocol.ProduceResponseTopicProduceResponse{
			Name: t.Name, TopicId: t.TopicId, PartitionResponses: answers,
		})
	}
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

// lastOfEach finds the entry that counts for each partition; nil when there is one entry at most.
func lastOfEach(req *protocol.ProduceRequest) map[partitionKey]*protocol.ProduceRequestPartitionProduceData {
	n := 0
	for i := range req.TopicData {
		n += len(req.TopicData[i].PartitionData)
	}
	if n < 2 {
		return nil
	}
	last := make(map[partitionKey]*protocol.ProduceRequestPartitionProduceData, n)
	for i := range req.TopicData {
		t := &req.TopicData[i]
		for j := range t.PartitionData {
			last[partitionKey{t.Name, t.TopicId, t.PartitionData[j].Index}] = &t.PartitionData[j]
		}
	}
	return last
}

// done has the results of all entries.
func (p *produce) done(results []manager.AppendResult) {
	for i := range results {
		r, place := &results[i], p.answers[i]
		a := &p.resp.Responses[place.topic].PartitionResponses[place.partition]
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
