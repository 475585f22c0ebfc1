package api

import (
	"context"
	"errors"
	"sync/atomic"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/edge/network"
	"samsa/internal/replica/fetchsession"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/protocol"
)

// Fetch, versions 4-18 (D-118 to D-130, T-51 to T-62)
//
//	v5   log start offset both ways
//	v7   sessions (KIP-227)
//	v9   current leader epoch (KIP-320)
//	v11  rack, preferred read replica (KIP-392)
//	v12  last fetched epoch and diverging epoch
//	v13  topics by id (KIP-516)
//	v15  replica id and epoch in a tagged field (KIP-903)
//	v16  endpoints of leaders (KIP-951)
//	v17  directory id of the replica (KIP-853)
//	v18  high watermark of the replica

// fetch is one fetch on its way. Records go from the segment files to the socket: the response
// is encoded without them and the network puts file ranges where they belong.
type fetch struct {
	*call
	session *fetchsession.Context
	replica model.NodeID // of a follower, else below 0
	resp    protocol.FetchResponse

	finished atomic.Bool
	unwatch  atomic.Pointer[func() bool] // stops the watch for the end of the connection
}

func serveFetch(c *call, req *protocol.FetchRequest) {
	f := &fetch{call: c}
	f.resp.Default()
	if req.IsolationLevel != 0 && req.IsolationLevel != 1 {
		f.refuseAll(req, kerr.InvalidRequest) // Kafka: UNKNOWN_SERVER_ERROR (D-222)
		return
	}
	replica, replicaEpoch := req.ReplicaId, int64(-1)
	if c.Version >= 15 {
		replica, replicaEpoch = req.ReplicaState.ReplicaId, req.ReplicaState.ReplicaEpoch
	}
	f.replica = model.NodeID(replica)
	session, err := c.server.Sessions.Begin(c.server.Now(), sessionRequest(c, req, replica >= 0), f.resolveTopic)
	if err != nil {
		f.resp.ErrorCode = kerr.Code(err) // session faults stand at the top alone (T-54)
		c.Reply(&f.resp)
		return
	}
	f.session = session
	cancel := c.server.Replicas.Fetch(manager.FetchRequest{
		ReplicaID:    model.NodeID(replica),
		ReplicaEpoch: replicaEpoch,
		APIVersion:   c.Version,
		MaxWait:      ms(req.MaxWaitMs),
		MinBytes:     req.MinBytes,
		MaxBytes:     req.MaxBytes,
		Isolation:    manager.Isolation(req.IsolationLevel),
		Rack:         req.RackId,
		ClientID:     c.ClientID,
		ClientHost:   c.peerHost(),
		Partitions:   f.toRead(session.Partitions()),
	}, f.done)
	f.watch(cancel)
}

// watch gives a parked fetch up when its connection ends, so that nobody waits for a client that has left.
func (f *fetch) watch(cancel func() bool) {
	if f.finished.Load() {
		return
	}
	stop := context.AfterFunc(f.Conn.Context(), func() { cancel() })
	f.unwatch.Store(&stop)
	if f.finished.Load() {
		stop()
	}
}

// sessionRequest is the session part of a request. Versions before 7 have no sessions, which
// is what their default epoch of -1 says.
func sessionRequest(c *call, req *protocol.FetchRequest, follower bool) fetchsession.Request {
	s := fetchsession.Request{SessionID: req.SessionId, Epoch: req.SessionEpoch, ByID: c.Version >= 13, Follower: follower}
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	s.Partitions = make([]fetchsession.Partition, 0, n)
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			s.Partitions = append(s.Partitions, fetchsession.Partition{
				TopicID: model.TopicID(t.TopicId), Topic: t.Topic, Partition: p.Partition,
				MaxBytes: p.PartitionMaxBytes, FetchOffset: p.FetchOffset, LogStartOffset: p.LogStartOffset,
				CurrentLeaderEpoch: model.LeaderEpoch(p.CurrentLeaderEpoch), LastFetchedEpoch: model.LeaderEpoch(p.LastFetchedEpoch),
			})
		}
	}
	for i := range req.ForgottenTopicsData {
		t := &req.ForgottenTopicsData[i]
		for _, p := range t.Partitions {
			s.Forgotten = append(s.Forgotten, fetchsession.Forgotten{TopicID: model.TopicID(t.TopicId), Topic: t.Topic, Partition: p})
		}
	}
	return s
}

func (f *fetch) resolveTopic(id model.TopicID, name string) (model.TopicID, string, bool) {
	found, topic, err := "", model.TopicID{}, error(nil)
	if name == "" {
		found, topic, err = f.topicOf("", model.UUID(id), true)
	} else {
		found, topic, err = f.topicOf(name, model.UUID{}, false)
	}
	return topic, found, err == nil
}

// toRead are the session's partitions as the replica manager reads them. One whose topic is
// unknown carries the error it will be answered with.
func (f *fetch) toRead(partitions []fetchsession.Partition) []manager.FetchPartition {
	byID := f.Version >= 13
	read := make([]manager.FetchPartition, len(partitions))
	for i := range partitions {
		p := &partitions[i]
		read[i] = manager.FetchPartition{
			Partition: model.TopicIDPartition{Topic: p.TopicID, Partition: p.Partition}, Topic: p.Topic,
			FetchOffset: p.FetchOffset, LogStartOffset: p.LogStartOffset, MaxBytes: p.MaxBytes,
			CurrentLeaderEpoch: p.CurrentLeaderEpoch, LastFetchedEpoch: p.LastFetchedEpoch, ByID: byID,
		}
		switch {
		case byID && p.Topic == "":
			read[i].Known = kerr.UnknownTopicId
		case !byID && p.TopicID.IsZero():
			read[i].Known = kerr.UnknownTopicOrPartition
		}
	}
	return read
}

// done has what was found in each of the session's partitions.
func (f *fetch) done(results []manager.FetchResult) {
	f.finished.Store(true)
	if stop := f.unwatch.Load(); stop != nil {
		(*stop)()
	}
	found := make([]fetchsession.Result, len(results))
	for i := range results {
		r := &results[i]
		found[i] = fetchsession.Result{
			Err: r.Err != nil, HighWatermark: r.HighWatermark, LogStartOffset: r.LogStartOffset,
			Tell: r.Diverging.Epoch >= 0 || r.PreferredReadReplica >= 0,
		}
		if r.Records != nil {
			found[i].Bytes = r.Records.Len()
		}
	}
	partitions := f.session.Partitions()
	answers := f.answers(partitions, results)
	id, include, err := f.session.Finish(f.server.Now(), found)
	if err != nil {
		for i := range results {
			release(&results[i])
		}
		f.resp.ErrorCode = kerr.Code(err)
		f.Reply(&f.resp)
		return
	}
	f.resp.SessionId = id
	f.send(answers, results, include)
}

// answer is one partition of the response with the topic it belongs to.
type answer struct {
	topic string
	id    model.UUID
	data  protocol.FetchResponsePartitionData
}

func (f *fetch) answers(partitions []fetchsession.Partition, results []manager.FetchResult) []answer {
	answers := make([]answer, len(results))
	for i := range results {
		r, a := &results[i], &answers[i]
		a.topic, a.id = partitions[i].Topic, model.UUID(partitions[i].TopicID)
		d := &a.data
		d.Default()
		d.PartitionIndex = partitions[i].Partition
		d.ErrorCode = kerr.Code(r.Err)
		d.HighWatermark, d.LastStableOffset, d.LogStartOffset = r.HighWatermark, r.LastStableOffset, r.LogStartOffset
		d.PreferredReadReplica = int32(r.PreferredReadReplica)
		if f.Version >= 12 && r.Diverging.Epoch >= 0 {
			d.DivergingEpoch.Epoch, d.DivergingEpoch.EndOffset = int32(r.Diverging.Epoch), r.Diverging.EndOffset
		}
		if r.Aborted != nil {
			d.AbortedTransactions = make([]protocol.FetchResponseAbortedTransaction, len(r.Aborted))
			for j, t := range r.Aborted {
				d.AbortedTransactions[j] = protocol.FetchResponseAbortedTransaction{ProducerId: t.ProducerID, FirstOffset: t.FirstOffset}
			}
		}
		if f.Version >= 16 && r.Leader.Epoch >= 0 && (errors.Is(r.Err, kerr.NotLeaderOrFollower) || errors.Is(r.Err, kerr.FencedLeaderEpoch)) {
			d.CurrentLeader.LeaderId, d.CurrentLeader.LeaderEpoch = int32(r.Leader.Leader), int32(r.Leader.Epoch)
			f.hint(r.Leader.Leader)
		}
	}
	return answers
}

// send encodes the response around the records and hands both to the network, which owns the
// records from here on.
func (f *fetch) send(answers []answer, results []manager.FetchResult, include []bool) {
	var sizes []int
	var listed []*manager.FetchResult
	for i := range answers {
		r := &results[i]
		if include != nil && !include[i] {
			release(r)
			continue
		}
		a := &answers[i]
		n := len(f.resp.Responses)
		if n == 0 || f.resp.Responses[n-1].Topic != a.topic || f.resp.Responses[n-1].TopicId != a.id {
			f.resp.Responses = append(f.resp.Responses, protocol.FetchResponseFetchableTopicResponse{Topic: a.topic, TopicId: a.id})
			n++
		}
		t := &f.resp.Responses[n-1]
		t.Partitions = append(t.Partitions, a.data)
		size := 0
		if r.Records != nil {
			size = r.Records.Len()
		}
		sizes = append(sizes, size)
		listed = append(listed, r)
	}
	head, cuts, err := protocol.AppendFetchResponse(nil, &f.resp, f.Version, sizes, nil)
	if err != nil {
		for _, r := range listed {
			release(r)
		}
		f.Close(err)
		return
	}
	parts := make([]network.Part, 0, 2*len(cuts)+1)
	from := 0
	for i, cut := range cuts {
		r := listed[i]
		if sizes[i] == 0 {
			release(r)
			continue
		}
		parts = append(parts, network.Part{Bytes: head[from:cut:cut]}, network.Part{File: r.Records, Length: int64(sizes[i])})
		from = cut
	}
	f.ReplyParts(append(parts, network.Part{Bytes: head[from:]}))
}

func release(r *manager.FetchResult) {
	if r.Records != nil {
		r.Records.Release()
		r.Records = nil
	}
}

// hint adds a leader's endpoint to the response, once. Followers know the brokers.
func (f *fetch) hint(leader model.NodeID) {
	if f.replica >= 0 {
		return
	}
	for _, e := range f.resp.NodeEndpoints {
		if e.NodeId == int32(leader) {
			return
		}
	}
	if host, port, rack, ok := f.endpointOf(leader); ok {
		f.resp.NodeEndpoints = append(f.resp.NodeEndpoints, protocol.FetchResponseNodeEndpoint{NodeId: int32(leader), Host: host, Port: port, Rack: rack})
	}
}

// refuseAll answers a request that is wrong as a whole: versions below 13 say so in every
// partition too (T-54).
func (f *fetch) refuseAll(req *protocol.FetchRequest, err *kerr.Error) {
	f.resp.ErrorCode = err.Code
	if f.Version < 13 {
		for i := range req.Topics {
			t := protocol.FetchResponseFetchableTopicResponse{Topic: req.Topics[i].Topic}
			for j := range req.Topics[i].Partitions {
				d := protocol.Make[protocol.FetchResponsePartitionData]()
				d.PartitionIndex = req.Topics[i].Partitions[j].Partition
				d.ErrorCode = err.Code
				d.HighWatermark = -1
				d.Records = []byte{}
				t.Partitions = append(t.Partitions, d)
			}
			f.resp.Responses = append(f.resp.Responses, t)
		}
	}
	f.Reply(&f.resp)
}
