package kraft

import (
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// encodeFetchRequest is the replica's fetch of K-40.
func encodeFetchRequest(clusterID string, m *FetchRequest) *protocol.FetchRequest {
	r := protocol.Make[protocol.FetchRequest]()
	p := protocol.Make[protocol.FetchRequestFetchPartition]()
	r.ClusterId = &clusterID
	r.ReplicaState.ReplicaId = int32(m.Replica.ID)
	r.MaxWaitMs = int32(m.MaxWait.Milliseconds())
	r.MaxBytes = m.MaxBytes
	p.CurrentLeaderEpoch, p.FetchOffset, p.LastFetchedEpoch = m.Epoch, m.Offset, m.LastEpoch
	p.ReplicaDirectoryId, p.HighWatermark = model.UUID(m.Replica.Directory), m.HighWatermark
	r.Topics = []protocol.FetchRequestFetchTopic{{TopicId: model.UUID(model.MetadataTopicID), Partitions: []protocol.FetchRequestFetchPartition{p}}}
	return &r
}

// DecodeFetch returns the request, or the top-level error that answers it. The topic is known by id only, so versions below 13 never
// pass; 4 to 6 have no field for the error and get an empty response (K-41).
func DecodeFetch(clusterID string, r *protocol.FetchRequest) (*FetchRequest, int16) {
	if e := checkCluster(clusterID, r.ClusterId); e != 0 {
		return nil, e
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 ||
		model.TopicID(r.Topics[0].TopicId) != model.MetadataTopicID || r.Topics[0].Partitions[0].Partition != 0 {
		return nil, kerr.InvalidRequest.Code
	}
	p := &r.Topics[0].Partitions[0]
	id := r.ReplicaId
	if id == -1 {
		id = r.ReplicaState.ReplicaId
	}
	return &FetchRequest{Replica: ReplicaKey{model.NodeID(id), model.DirectoryID(p.ReplicaDirectoryId)}, Epoch: p.CurrentLeaderEpoch,
		Offset: p.FetchOffset, LastEpoch: p.LastFetchedEpoch, HighWatermark: p.HighWatermark,
		MaxWait: time.Duration(r.MaxWaitMs) * time.Millisecond, MaxBytes: r.MaxBytes}, 0
}

// EncodeFetchResponse makes the answer; records are the bytes its Reply effect asked for. Endpoints exist in it from 17 on (K-43).
func EncodeFetchResponse(m *FetchResponse, records []byte, listener string, version int16) *protocol.FetchResponse {
	r := protocol.Make[protocol.FetchResponse]()
	r.ErrorCode = m.TopLevel
	if m.TopLevel != 0 {
		return &r
	}
	p := protocol.Make[protocol.FetchResponsePartitionData]()
	p.ErrorCode, p.HighWatermark, p.LogStartOffset = m.Error, m.HighWatermark, m.LogStart
	p.CurrentLeader.LeaderId, p.CurrentLeader.LeaderEpoch = int32(m.Leader), m.Epoch
	if m.Diverging != nil {
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = m.Diverging.Epoch, m.Diverging.End
	}
	if m.Snapshot != nil {
		p.SnapshotId.Epoch, p.SnapshotId.EndOffset = m.Snapshot.Epoch, m.Snapshot.Offset
	}
	p.Records = records
	if records == nil {
		p.Records = []byte{}
	}
	r.Responses = []protocol.FetchResponseFetchableTopicResponse{{Topic: MetadataTopic, TopicId: model.UUID(model.MetadataTopicID),
		Partitions: []protocol.FetchResponsePartitionData{p}}}
	if e, ok := leaderEndpoint(m.Status, listener); ok && version >= 17 {
		r.NodeEndpoints = []protocol.FetchResponseNodeEndpoint{{NodeId: int32(m.Leader), Host: e.Host, Port: int32(e.Port)}}
	}
	return &r
}

func decodeFetchResponse(r *protocol.FetchResponse, listener string) *FetchResponse {
	if r.ErrorCode != 0 {
		return &FetchResponse{Status: Status{TopLevel: r.ErrorCode}}
	}
	if len(r.Responses) != 1 || len(r.Responses[0].Partitions) != 1 ||
		model.TopicID(r.Responses[0].TopicId) != model.MetadataTopicID || r.Responses[0].Partitions[0].PartitionIndex != 0 {
		return nil
	}
	p := &r.Responses[0].Partitions[0]
	m := &FetchResponse{Status: Status{Error: p.ErrorCode, Epoch: p.CurrentLeader.LeaderEpoch, Leader: model.NodeID(p.CurrentLeader.LeaderId)},
		HighWatermark: p.HighWatermark, LogStart: p.LogStartOffset}
	if d := p.DivergingEpoch; d.Epoch >= 0 {
		m.Diverging = &EpochEnd{d.Epoch, d.EndOffset}
	}
	if s := p.SnapshotId; s.Epoch >= 0 || s.EndOffset >= 0 {
		m.Snapshot = &SnapshotID{s.EndOffset, s.Epoch}
	}
	m.Batches, m.Cut = ParseBatches(p.Records)
	for _, n := range r.NodeEndpoints {
		if n.Port >= 0 && n.Port <= 65535 {
			m.Endpoints = append(m.Endpoints, endpointsFor(m.Leader, model.NodeID(n.NodeId), listener, n.Host, uint16(n.Port))...)
		}
	}
	return m
}

func encodeFetchSnapshotRequest(clusterID string, m *FetchSnapshotRequest) *protocol.FetchSnapshotRequest {
	return &protocol.FetchSnapshotRequest{ClusterId: &clusterID, ReplicaId: int32(m.Replica.ID), MaxBytes: m.MaxBytes,
		Topics: []protocol.FetchSnapshotRequestTopicSnapshot{{Name: MetadataTopic, Partitions: []protocol.FetchSnapshotRequestPartitionSnapshot{{
			CurrentLeaderEpoch: m.Epoch, SnapshotId: protocol.FetchSnapshotRequestSnapshotId{EndOffset: m.ID.Offset, Epoch: m.ID.Epoch},
			Position: m.Position, ReplicaDirectoryId: model.UUID(m.Replica.Directory)}}}}}
}

// DecodeFetchSnapshot returns the request, or the response that answers it: a wrong cluster or shape at the top level, another
// partition in that partition (K-44).
func DecodeFetchSnapshot(clusterID string, r *protocol.FetchSnapshotRequest) (*FetchSnapshotRequest, *protocol.FetchSnapshotResponse) {
	if e := checkCluster(clusterID, r.ClusterId); e != 0 {
		return nil, &protocol.FetchSnapshotResponse{ErrorCode: e}
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 {
		return nil, &protocol.FetchSnapshotResponse{ErrorCode: kerr.InvalidRequest.Code}
	}
	p := &r.Topics[0].Partitions[0]
	if !isMetadata(r.Topics[0].Name, p.Partition) {
		o := protocol.Make[protocol.FetchSnapshotResponsePartitionSnapshot]()
		o.Index, o.ErrorCode, o.UnalignedRecords = p.Partition, kerr.UnknownTopicOrPartition.Code, []byte{}
		return nil, &protocol.FetchSnapshotResponse{Topics: []protocol.FetchSnapshotResponseTopicSnapshot{{Name: r.Topics[0].Name,
			Partitions: []protocol.FetchSnapshotResponsePartitionSnapshot{o}}}}
	}
	return &FetchSnapshotRequest{Replica: ReplicaKey{model.NodeID(r.ReplicaId), model.DirectoryID(p.ReplicaDirectoryId)}, Epoch: p.CurrentLeaderEpoch,
		ID: SnapshotID{p.SnapshotId.EndOffset, p.SnapshotId.Epoch}, Position: p.Position, MaxBytes: r.MaxBytes}, nil
}

// EncodeFetchSnapshotResponse makes the answer with the bytes its Reply effect asked for. Unlike Kafka 4.4.0, an error of the
// partition stays in the partition (K-44).
func EncodeFetchSnapshotResponse(m *FetchSnapshotResponse, bytes []byte, listener string, version int16) *protocol.FetchSnapshotResponse {
	r := &protocol.FetchSnapshotResponse{ErrorCode: m.TopLevel}
	if m.TopLevel != 0 {
		return r
	}
	p := protocol.Make[protocol.FetchSnapshotResponsePartitionSnapshot]()
	p.ErrorCode = m.Error
	p.CurrentLeader.LeaderId, p.CurrentLeader.LeaderEpoch = int32(m.Leader), m.Epoch
	p.UnalignedRecords = bytes
	if bytes == nil {
		p.UnalignedRecords = []byte{}
	}
	if m.Error == 0 {
		p.SnapshotId.EndOffset, p.SnapshotId.Epoch = m.ID.Offset, m.ID.Epoch
		p.Size, p.Position = m.Size, m.Position
	}
	r.Topics = []protocol.FetchSnapshotResponseTopicSnapshot{{Name: MetadataTopic, Partitions: []protocol.FetchSnapshotResponsePartitionSnapshot{p}}}
	if e, ok := leaderEndpoint(m.Status, listener); ok && version >= 1 {
		r.NodeEndpoints = []protocol.FetchSnapshotResponseNodeEndpoint{{NodeId: int32(m.Leader), Host: e.Host, Port: e.Port}}
	}
	return r
}

func decodeFetchSnapshotResponse(r *protocol.FetchSnapshotResponse, listener string) *FetchSnapshotResponse {
	if r.ErrorCode != 0 {
		return &FetchSnapshotResponse{Status: Status{TopLevel: r.ErrorCode}}
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 || !isMetadata(r.Topics[0].Name, r.Topics[0].Partitions[0].Index) {
		return nil
	}
	p := &r.Topics[0].Partitions[0]
	m := &FetchSnapshotResponse{Status: Status{Error: p.ErrorCode, Epoch: p.CurrentLeader.LeaderEpoch, Leader: model.NodeID(p.CurrentLeader.LeaderId)},
		ID: SnapshotID{p.SnapshotId.EndOffset, p.SnapshotId.Epoch}, Size: p.Size, Position: p.Position, Bytes: p.UnalignedRecords}
	for _, n := range r.NodeEndpoints {
		m.Endpoints = append(m.Endpoints, endpointsFor(m.Leader, model.NodeID(n.NodeId), listener, n.Host, n.Port)...)
	}
	return m
}

// DecodeDescribeQuorum returns nil when the request is for the metadata partition alone, else the response: every partition asked for
// is unknown (K-46).
func DecodeDescribeQuorum(r *protocol.DescribeQuorumRequest) *protocol.DescribeQuorumResponse {
	if len(r.Topics) == 1 && len(r.Topics[0].Partitions) == 1 && isMetadata(r.Topics[0].TopicName, r.Topics[0].Partitions[0].PartitionIndex) {
		return nil
	}
	none := ""
	o := &protocol.DescribeQuorumResponse{ErrorMessage: &none}
	text := kerr.UnknownTopicOrPartition.Text
	for _, t := range r.Topics {
		ot := protocol.DescribeQuorumResponseTopicData{TopicName: t.TopicName}
		for _, p := range t.Partitions {
			ot.Partitions = append(ot.Partitions, protocol.DescribeQuorumResponsePartitionData{PartitionIndex: p.PartitionIndex,
				ErrorCode: kerr.UnknownTopicOrPartition.Code, ErrorMessage: &text})
		}
		o.Topics = append(o.Topics, ot)
	}
	return o
}

// EncodeDescribeQuorumResponse makes the answer at a version: directory ids, nodes and texts exist from 2 on.
func EncodeDescribeQuorumResponse(m *DescribeResponse, version int16) *protocol.DescribeQuorumResponse {
	none := ""
	o := &protocol.DescribeQuorumResponse{ErrorMessage: &none}
	p := protocol.DescribeQuorumResponsePartitionData{ErrorCode: m.Error, ErrorMessage: &none}
	if m.Error != 0 {
		p.ErrorMessage = &kerr.ForCode(m.Error).Text
	} else {
		p.LeaderId, p.LeaderEpoch, p.HighWatermark = int32(m.Leader), m.Epoch, m.HighWatermark
		p.CurrentVoters, p.Observers = replicaStates(m.Voters, version), replicaStates(m.Observers, version)
	}
	o.Topics = []protocol.DescribeQuorumResponseTopicData{{TopicName: MetadataTopic, Partitions: []protocol.DescribeQuorumResponsePartitionData{p}}}
	if version < 2 || m.Error != 0 {
		return o
	}
	for _, v := range m.Nodes {
		n := protocol.DescribeQuorumResponseNode{NodeId: int32(v.ID)}
		for _, e := range v.Endpoints {
			n.Listeners = append(n.Listeners, protocol.DescribeQuorumResponseListener{Name: e.Name, Host: e.Host, Port: e.Port})
		}
		o.Nodes = append(o.Nodes, n)
	}
	return o
}

func replicaStates(views []ReplicaView, version int16) []protocol.DescribeQuorumResponseReplicaState {
	states := make([]protocol.DescribeQuorumResponseReplicaState, len(views))
	for i, v := range views {
		states[i] = protocol.DescribeQuorumResponseReplicaState{ReplicaId: int32(v.ID), LogEndOffset: v.LogEnd,
			LastFetchTimestamp: v.LastFetch, LastCaughtUpTimestamp: v.LastCaughtUp}
		if version >= 2 {
			states[i].ReplicaDirectoryId = model.UUID(v.Directory)
		}
	}
	return states
}
