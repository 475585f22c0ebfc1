package api

import (
	"math/rand/v2"
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/controller"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// Metadata, versions 0-13 (D-190, T-37 to T-40, T-44)
//
//	v1   null topics are all, empty ones none; racks, controller id, internal flag
//	v2   cluster id
//	v4   auto-creation may be forbidden
//	v5   offline replicas
//	v7   leader epochs
//	v8   authorized operations
//	v10  topic ids in the response
//	v12  topics by id in the request
//	v13  an error code at the top

func serveMetadata(c *call, req *protocol.MetadataRequest) {
	resp := protocol.Make[protocol.MetadataResponse]()
	if err := misnamed(c.Version, req); err != nil {
		refuseMetadata(c, req, &resp, err)
		return
	}
	c.fillCluster(&resp)
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	all := req.Topics == nil || c.Version == 0 && len(req.Topics) == 0
	switch {
	case all:
		for t := range c.img.Topics().All() {
			resp.Topics = append(resp.Topics, c.topicMetadata(t))
		}
	case byID(req):
		seen := map[model.UUID]bool{}
		for i := range req.Topics {
			if id := req.Topics[i].TopicId; !id.IsZero() && !seen[id] {
				seen[id] = true
				resp.Topics = append(resp.Topics, c.metadataByID(id))
			}
		}
	default:
		seen := map[string]bool{}
		for i := range req.Topics {
			if name := *req.Topics[i].Name; !seen[name] {
				seen[name] = true
				resp.Topics = append(resp.Topics, c.metadataByName(name, req.AllowAutoTopicCreation))
			}
		}
	}
	if req.IncludeTopicAuthorizedOperations {
		for i := range resp.Topics {
			if resp.Topics[i].ErrorCode == 0 {
				resp.Topics[i].TopicAuthorizedOperations = topicOperations
			}
		}
	}
	c.Reply(&resp)
}

// misnamed finds an entry that makes the whole request invalid: ids and null names before
// version 12 (T-37), an entry that names nothing (T-39).
func misnamed(version int16, req *protocol.MetadataRequest) error {
	for i := range req.Topics {
		t := &req.Topics[i]
		if version < 12 && (t.Name == nil || !t.TopicId.IsZero()) || t.Name == nil && t.TopicId.IsZero() {
			return kerr.InvalidRequest
		}
	}
	return nil
}

// refuseMetadata answers a request that is wrong as a whole: one entry per topic, no brokers.
func refuseMetadata(c *call, req *protocol.MetadataRequest, resp *protocol.MetadataResponse, err error) {
	resp.ErrorCode = kerr.Code(err)
	for i := range req.Topics {
		t := protocol.Make[protocol.MetadataResponseMetadataResponseTopic]()
		t.ErrorCode = kerr.Code(err)
		t.Name, t.TopicId = req.Topics[i].Name, req.Topics[i].TopicId
		if t.Name == nil && c.Version < 12 {
			t.Name = new(string)
		}
		resp.Topics = append(resp.Topics, t)
	}
	c.Reply(resp)
}

// byID: if any entry has an id, only ids are looked up (T-39).
func byID(req *protocol.MetadataRequest) bool {
	return slices.ContainsFunc(req.Topics, func(t protocol.MetadataRequestMetadataRequestTopic) bool { return !t.TopicId.IsZero() })
}

func (c *call) fillCluster(resp *protocol.MetadataResponse) {
	resp.ClusterId = &c.server.ClusterID
	for b := range c.img.Brokers().All() {
		if host, port, rack, ok := c.endpointOf(b.ID); ok {
			resp.Brokers = append(resp.Brokers, protocol.MetadataResponseMetadataResponseBroker{NodeId: int32(b.ID), Host: host, Port: port, Rack: rack})
		}
	}
	// A client sends what is for the controller to this broker, which forwards: any live one will do.
	if n := len(resp.Brokers); n > 0 {
		resp.ControllerId = resp.Brokers[rand.IntN(n)].NodeId
	}
}

func (c *call) metadataByID(id model.UUID) protocol.MetadataResponseMetadataResponseTopic {
	if t, ok := c.img.Topics().ByID(model.TopicID(id)); ok {
		return c.topicMetadata(t)
	}
	t := protocol.Make[protocol.MetadataResponseMetadataResponseTopic]()
	t.ErrorCode, t.Name, t.TopicId = kerr.UnknownTopicId.Code, nil, id
	return t
}

func (c *call) metadataByName(name string, allowCreate bool) protocol.MetadataResponseMetadataResponseTopic {
	if t, ok := c.img.Topics().ByName(name); ok {
		return c.topicMetadata(t)
	}
	t := protocol.Make[protocol.MetadataResponseMetadataResponseTopic]()
	t.Name, t.IsInternal = &name, internalTopic(name)
	switch {
	case controller.CheckTopicName(name) != nil:
		t.ErrorCode = kerr.InvalidTopicException.Code
	default:
		t.ErrorCode = kerr.UnknownTopicOrPartition.Code
		if allowCreate && c.server.Config().AutoCreateTopics {
			c.server.autoCreate(c, name)
		}
	}
	return t
}

func (c *call) topicMetadata(topic *image.Topic) protocol.MetadataResponseMetadataResponseTopic {
	t := protocol.Make[protocol.MetadataResponseMetadataResponseTopic]()
	t.Name, t.TopicId, t.IsInternal = &topic.Name, model.UUID(topic.ID), internalTopic(topic.Name)
	t.Partitions = make([]protocol.MetadataResponseMetadataResponsePartition, 0, topic.Count())
	for i, p := range topic.Partitions() {
		t.Partitions = append(t.Partitions, c.partitionMetadata(i, p))
	}
	return t
}

func (c *call) partitionMetadata(index int32, p *image.Partition) protocol.MetadataResponseMetadataResponsePartition {
	m := protocol.Make[protocol.MetadataResponseMetadataResponsePartition]()
	m.PartitionIndex = index
	m.LeaderId, m.LeaderEpoch = int32(p.Leader), int32(p.LeaderEpoch)
	m.ReplicaNodes, m.IsrNodes = image.IDs(p.Replicas), image.IDs(p.ISR)
	m.OfflineReplicas = c.offlineReplicas(p)
	if c.Version == 0 { // has no offline replicas: leaves those that cannot be reached out
		m.ReplicaNodes, m.IsrNodes = c.reachable(p.Replicas), c.reachable(p.ISR)
	}
	_, _, _, leaderListens := c.endpointOf(p.Leader)
	switch {
	case !p.HasLeader() || !leaderListens && c.leaderGone(p):
		m.ErrorCode = kerr.LeaderNotAvailable.Code
		m.LeaderId = -1
	case !leaderListens:
		m.ErrorCode = kerr.LeaderNotAvailable.Code
		if c.Version >= 6 {
			m.ErrorCode = kerr.ListenerNotFound.Code
		}
		m.LeaderId = -1
	case c.Version == 0 && (len(m.ReplicaNodes) < len(p.Replicas) || len(m.IsrNodes) < len(p.ISR)):
		m.ErrorCode = kerr.ReplicaNotAvailable.Code
	}
	return m
}

// leaderGone: the leader is not there at all, as opposed to not listening where the client does.
func (c *call) leaderGone(p *image.Partition) bool {
	b, ok := c.img.Brokers().ByID(p.Leader)
	return !ok || b.Fenced
}

func (c *call) reachable(nodes []model.NodeID) []int32 {
	out := []int32{}
	for _, n := range nodes {
		if _, _, _, ok := c.endpointOf(n); ok {
			out = append(out, int32(n))
		}
	}
	return out
}

// offlineReplicas are those whose broker is gone, fenced or not on this listener, or whose
// directory is offline (J-139).
func (c *call) offlineReplicas(p *image.Partition) []int32 {
	offline := []int32{}
	for i, n := range p.Replicas {
		_, _, _, ok := c.endpointOf(n)
		if ok && i < len(p.Directories) {
			b, _ := c.img.Brokers().ByID(n)
			ok = b.HasOnlineDir(p.Directories[i])
		}
		if !ok {
			offline = append(offline, int32(n))
		}
	}
	return offline
}

// internalTopic: clients only read it.
func internalTopic(name string) bool {
	return name == "__consumer_offsets" || name == "__transaction_state" || name == "__share_group_state"
}
