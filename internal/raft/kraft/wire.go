package kraft

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// Requests and responses carry arrays around the one partition there is, the cluster id, and endpoints under the name of the
// listener the request came in on. wire*.go adds and removes all that; what the core sees is message.go.

// MetadataTopic is the name of the metadata log's topic; its only partition is 0.
const MetadataTopic = "__cluster_metadata"

// checkCluster is K-48: no id is fine, another one is not.
func checkCluster(own string, id *string) int16 {
	if id != nil && *id != own {
		return kerr.InconsistentClusterId.Code
	}
	return 0
}

func isMetadata(topic string, partition int32) bool { return topic == MetadataTopic && partition == 0 }

// EncodeRequest makes the message to send out of a Send effect's.
func EncodeRequest(clusterID string, message any) protocol.Request {
	switch m := message.(type) {
	case *VoteRequest:
		return encodeVoteRequest(clusterID, m)
	case *BeginQuorumEpochRequest:
		return encodeBeginRequest(clusterID, m)
	case *EndQuorumEpochRequest:
		return encodeEndRequest(clusterID, m)
	case *FetchRequest:
		return encodeFetchRequest(clusterID, m)
	case *FetchSnapshotRequest:
		return encodeFetchSnapshotRequest(clusterID, m)
	}
	return nil
}

// DecodeResponse is what Core.Response takes; nil for a response that is not what it should be. listener is the default controller
// listener: responses name endpoints without saying of which.
func DecodeResponse(r protocol.Response, listener string) any {
	switch r := r.(type) {
	case *protocol.VoteResponse:
		if m := decodeVoteResponse(r, listener); m != nil {
			return m
		}
	case *protocol.BeginQuorumEpochResponse:
		if m := decodeBeginResponse(r, listener); m != nil {
			return m
		}
	case *protocol.EndQuorumEpochResponse:
		if m := decodeEndResponse(r, listener); m != nil {
			return m
		}
	case *protocol.FetchResponse:
		if m := decodeFetchResponse(r, listener); m != nil {
			return m
		}
	case *protocol.FetchSnapshotResponse:
		if m := decodeFetchSnapshotResponse(r, listener); m != nil {
			return m
		}
	}
	return nil
}

// Unsupported is the answer that stands for "the peer does not speak the version this request needs" (K-19).
func Unsupported(request any) any {
	s := Status{TopLevel: kerr.UnsupportedVersion.Code}
	switch request.(type) {
	case *VoteRequest:
		return &VoteResponse{Status: s}
	}
	return nil
}

func endpointsFor(leader, node model.NodeID, listener, host string, port uint16) Endpoints {
	if leader < 0 || node != leader {
		return nil
	}
	return Endpoints{{Name: listener, Host: host, Port: port}}
}

// leaderEndpoint is the one endpoint of the leader a response names: that of the listener the request came in on (K-38).
func leaderEndpoint(s Status, listener string) (Endpoint, bool) {
	if s.Leader < 0 {
		return Endpoint{}, false
	}
	return s.Endpoints.ByListener(listener)
}

func encodeVoteRequest(clusterID string, m *VoteRequest) *protocol.VoteRequest {
	return &protocol.VoteRequest{ClusterId: &clusterID, VoterId: int32(m.Voter.ID),
		Topics: []protocol.VoteRequestTopicData{{TopicName: MetadataTopic, Partitions: []protocol.VoteRequestPartitionData{{
			ReplicaEpoch: m.Epoch, ReplicaId: int32(m.Candidate.ID), ReplicaDirectoryId: model.UUID(m.Candidate.Directory),
			VoterDirectoryId: model.UUID(m.Voter.Directory), LastOffsetEpoch: m.LastEpoch, LastOffset: m.LastEnd, PreVote: m.PreVote}}}}}
}

// DecodeVote returns the request, or the top-level error that answers it (K-38).
func DecodeVote(clusterID string, r *protocol.VoteRequest) (*VoteRequest, int16) {
	if e := checkCluster(clusterID, r.ClusterId); e != 0 {
		return nil, e
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 || !isMetadata(r.Topics[0].TopicName, r.Topics[0].Partitions[0].PartitionIndex) {
		return nil, kerr.InvalidRequest.Code
	}
	p := &r.Topics[0].Partitions[0]
	return &VoteRequest{Voter: ReplicaKey{model.NodeID(r.VoterId), model.DirectoryID(p.VoterDirectoryId)},
		Candidate: ReplicaKey{model.NodeID(p.ReplicaId), model.DirectoryID(p.ReplicaDirectoryId)},
		Epoch:     p.ReplicaEpoch, LastEpoch: p.LastOffsetEpoch, LastEnd: p.LastOffset, PreVote: p.PreVote}, 0
}

// EncodeVoteResponse makes the answer at a version: endpoints exist from 1 on.
func EncodeVoteResponse(m *VoteResponse, listener string, version int16) *protocol.VoteResponse {
	r := &protocol.VoteResponse{ErrorCode: m.TopLevel}
	if m.TopLevel != 0 {
		return r
	}
	r.Topics = []protocol.VoteResponseTopicData{{TopicName: MetadataTopic, Partitions: []protocol.VoteResponsePartitionData{{
		ErrorCode: m.Error, LeaderId: int32(m.Leader), LeaderEpoch: m.Epoch, VoteGranted: m.Granted}}}}
	if e, ok := leaderEndpoint(m.Status, listener); ok && version >= 1 {
		r.NodeEndpoints = []protocol.VoteResponseNodeEndpoint{{NodeId: int32(m.Leader), Host: e.Host, Port: e.Port}}
	}
	return r
}

func decodeVoteResponse(r *protocol.VoteResponse, listener string) *VoteResponse {
	if r.ErrorCode != 0 {
		return &VoteResponse{Status: Status{TopLevel: r.ErrorCode}}
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 || !isMetadata(r.Topics[0].TopicName, r.Topics[0].Partitions[0].PartitionIndex) {
		return nil
	}
	p := &r.Topics[0].Partitions[0]
	m := &VoteResponse{Status: Status{Error: p.ErrorCode, Epoch: p.LeaderEpoch, Leader: model.NodeID(p.LeaderId)}, Granted: p.VoteGranted}
	for _, n := range r.NodeEndpoints {
		m.Endpoints = append(m.Endpoints, endpointsFor(m.Leader, model.NodeID(n.NodeId), listener, n.Host, n.Port)...)
	}
	return m
}

func encodeBeginRequest(clusterID string, m *BeginQuorumEpochRequest) *protocol.BeginQuorumEpochRequest {
	r := &protocol.BeginQuorumEpochRequest{ClusterId: &clusterID, VoterId: int32(m.Voter.ID),
		Topics: []protocol.BeginQuorumEpochRequestTopicData{{TopicName: MetadataTopic, Partitions: []protocol.BeginQuorumEpochRequestPartitionData{{
			VoterDirectoryId: model.UUID(m.Voter.Directory), LeaderId: int32(m.Leader), LeaderEpoch: m.Epoch}}}}}
	for _, e := range m.Endpoints {
		r.LeaderEndpoints = append(r.LeaderEndpoints, protocol.BeginQuorumEpochRequestLeaderEndpoint{Name: e.Name, Host: e.Host, Port: e.Port})
	}
	return r
}

// DecodeBeginQuorumEpoch returns the request, or the top-level error that answers it (K-38).
func DecodeBeginQuorumEpoch(clusterID string, r *protocol.BeginQuorumEpochRequest) (*BeginQuorumEpochRequest, int16) {
	if e := checkCluster(clusterID, r.ClusterId); e != 0 {
		return nil, e
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 || !isMetadata(r.Topics[0].TopicName, r.Topics[0].Partitions[0].PartitionIndex) {
		return nil, kerr.InvalidRequest.Code
	}
	p := &r.Topics[0].Partitions[0]
	m := &BeginQuorumEpochRequest{Voter: ReplicaKey{model.NodeID(r.VoterId), model.DirectoryID(p.VoterDirectoryId)},
		Leader: model.NodeID(p.LeaderId), Epoch: p.LeaderEpoch}
	for _, e := range r.LeaderEndpoints {
		m.Endpoints = append(m.Endpoints, Endpoint{e.Name, e.Host, e.Port})
	}
	return m, 0
}

// EncodeBeginQuorumEpochResponse makes the answer at a version: endpoints exist from 1 on.
func EncodeBeginQuorumEpochResponse(m *BeginQuorumEpochResponse, listener string, version int16) *protocol.BeginQuorumEpochResponse {
	r := &protocol.BeginQuorumEpochResponse{ErrorCode: m.TopLevel}
	if m.TopLevel != 0 {
		return r
	}
	r.Topics = []protocol.BeginQuorumEpochResponseTopicData{{TopicName: MetadataTopic, Partitions: []protocol.BeginQuorumEpochResponsePartitionData{{
		ErrorCode: m.Error, LeaderId: int32(m.Leader), LeaderEpoch: m.Epoch}}}}
	if e, ok := leaderEndpoint(m.Status, listener); ok && version >= 1 {
		r.NodeEndpoints = []protocol.BeginQuorumEpochResponseNodeEndpoint{{NodeId: int32(m.Leader), Host: e.Host, Port: e.Port}}
	}
	return r
}

func decodeBeginResponse(r *protocol.BeginQuorumEpochResponse, listener string) *BeginQuorumEpochResponse {
	if r.ErrorCode != 0 {
		return &BeginQuorumEpochResponse{Status{TopLevel: r.ErrorCode}}
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 || !isMetadata(r.Topics[0].TopicName, r.Topics[0].Partitions[0].PartitionIndex) {
		return nil
	}
	p := &r.Topics[0].Partitions[0]
	m := &BeginQuorumEpochResponse{Status{Error: p.ErrorCode, Epoch: p.LeaderEpoch, Leader: model.NodeID(p.LeaderId)}}
	for _, n := range r.NodeEndpoints {
		m.Endpoints = append(m.Endpoints, endpointsFor(m.Leader, model.NodeID(n.NodeId), listener, n.Host, n.Port)...)
	}
	return m
}

func encodeEndRequest(clusterID string, m *EndQuorumEpochRequest) *protocol.EndQuorumEpochRequest {
	p := protocol.EndQuorumEpochRequestPartitionData{LeaderId: int32(m.Leader), LeaderEpoch: m.Epoch}
	for _, k := range m.Preferred {
		p.PreferredSuccessors = append(p.PreferredSuccessors, int32(k.ID))
		p.PreferredCandidates = append(p.PreferredCandidates, protocol.EndQuorumEpochRequestReplicaInfo{CandidateId: int32(k.ID), CandidateDirectoryId: model.UUID(k.Directory)})
	}
	r := &protocol.EndQuorumEpochRequest{ClusterId: &clusterID,
		Topics: []protocol.EndQuorumEpochRequestTopicData{{TopicName: MetadataTopic, Partitions: []protocol.EndQuorumEpochRequestPartitionData{p}}}}
	for _, e := range m.Endpoints {
		r.LeaderEndpoints = append(r.LeaderEndpoints, protocol.EndQuorumEpochRequestLeaderEndpoint{Name: e.Name, Host: e.Host, Port: e.Port})
	}
	return r
}

// DecodeEndQuorumEpoch returns the request, or the top-level error that answers it (K-38). Version 0 names successors by id only.
func DecodeEndQuorumEpoch(clusterID string, r *protocol.EndQuorumEpochRequest) (*EndQuorumEpochRequest, int16) {
	if e := checkCluster(clusterID, r.ClusterId); e != 0 {
		return nil, e
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 || !isMetadata(r.Topics[0].TopicName, r.Topics[0].Partitions[0].PartitionIndex) {
		return nil, kerr.InvalidRequest.Code
	}
	p := &r.Topics[0].Partitions[0]
	m := &EndQuorumEpochRequest{Leader: model.NodeID(p.LeaderId), Epoch: p.LeaderEpoch}
	for _, k := range p.PreferredCandidates {
		m.Preferred = append(m.Preferred, ReplicaKey{model.NodeID(k.CandidateId), model.DirectoryID(k.CandidateDirectoryId)})
	}
	if len(m.Preferred) == 0 {
		for _, id := range p.PreferredSuccessors {
			m.Preferred = append(m.Preferred, ReplicaKey{ID: model.NodeID(id)})
		}
	}
	for _, e := range r.LeaderEndpoints {
		m.Endpoints = append(m.Endpoints, Endpoint{e.Name, e.Host, e.Port})
	}
	return m, 0
}

// EncodeEndQuorumEpochResponse makes the answer at a version: endpoints exist from 1 on.
func EncodeEndQuorumEpochResponse(m *EndQuorumEpochResponse, listener string, version int16) *protocol.EndQuorumEpochResponse {
	r := &protocol.EndQuorumEpochResponse{ErrorCode: m.TopLevel}
	if m.TopLevel != 0 {
		return r
	}
	r.Topics = []protocol.EndQuorumEpochResponseTopicData{{TopicName: MetadataTopic, Partitions: []protocol.EndQuorumEpochResponsePartitionData{{
		ErrorCode: m.Error, LeaderId: int32(m.Leader), LeaderEpoch: m.Epoch}}}}
	if e, ok := leaderEndpoint(m.Status, listener); ok && version >= 1 {
		r.NodeEndpoints = []protocol.EndQuorumEpochResponseNodeEndpoint{{NodeId: int32(m.Leader), Host: e.Host, Port: e.Port}}
	}
	return r
}

func decodeEndResponse(r *protocol.EndQuorumEpochResponse, listener string) *EndQuorumEpochResponse {
	if r.ErrorCode != 0 {
		return &EndQuorumEpochResponse{Status{TopLevel: r.ErrorCode}}
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 || !isMetadata(r.Topics[0].TopicName, r.Topics[0].Partitions[0].PartitionIndex) {
		return nil
	}
	p := &r.Topics[0].Partitions[0]
	m := &EndQuorumEpochResponse{Status{Error: p.ErrorCode, Epoch: p.LeaderEpoch, Leader: model.NodeID(p.LeaderId)}}
	for _, n := range r.NodeEndpoints {
		m.Endpoints = append(m.Endpoints, endpointsFor(m.Leader, model.NodeID(n.NodeId), listener, n.Host, n.Port)...)
	}
	return m
}

// FitVersion makes a request of EncodeRequest ready for the version a connection speaks: before 15 a fetch names the replica in another field
// (KIP-903). A pre-vote cannot be asked for below 2: that is kerr.UnsupportedVersion, never a real vote instead (K-19).
func FitVersion(r protocol.Request, version int16) (protocol.Request, error) {
	switch r := r.(type) {
	case *protocol.VoteRequest:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				if p.PreVote && version < 2 {
					return nil, kerr.UnsupportedVersion
				}
			}
		}
	case *protocol.FetchRequest:
		if version < 15 {
			old := *r
			old.ReplicaId = r.ReplicaState.ReplicaId
			old.ReplicaState.Default()
			return &old, nil
		}
	}
	return r, nil
}
