package api

import (
	"context"
	"strconv"
	"sync"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// autoCreation remembers which topics are being created because somebody asked for them, so
// that a hundred clients that ask at once make one request (T-44).
type autoCreation struct {
	mu       sync.Mutex
	inFlight map[string]bool
}

func (a *autoCreation) begin(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inFlight[name] {
		return false
	}
	if a.inFlight == nil {
		a.inFlight = map[string]bool{}
	}
	a.inFlight[name] = true
	return true
}

func (a *autoCreation) end(name string) {
	a.mu.Lock()
	delete(a.inFlight, name)
	a.mu.Unlock()
}

// autoCreate asks the controller for a topic and does not wait: whoever wants it asks again.
func (s *Server) autoCreate(c *call, name string) {
	if !s.creating.begin(name) {
		return
	}
	req := &protocol.CreateTopicsRequest{}
	req.Default()
	req.TimeoutMs = int32(s.Config().RequestTimeout.Milliseconds())
	req.Topics = []protocol.CreateTopicsRequestCreatableTopic{s.autoTopic(name)}
	log := c.logger().With("topic", name)
	s.async(func(ctx context.Context) {
		defer s.creating.end(name)
		ctx, cancel := context.WithTimeout(ctx, s.Config().RequestTimeout)
		defer cancel()
		resp, err := s.ControllerChannel.Send(ctx, req)
		if err != nil {
			log.Warn("creating a topic that was asked for failed", "err", err)
			return
		}
		for _, t := range resp.(*protocol.CreateTopicsResponse).Topics {
			if e := kerr.ForCode(t.ErrorCode); e != nil && e != kerr.TopicAlreadyExists {
				log.Warn("creating a topic that was asked for was refused", "err", e.Name)
			}
		}
	})
}

// autoTopic is a topic with this broker's defaults, or the settings of the internal topic of that name.
func (s *Server) autoTopic(name string) protocol.CreateTopicsRequestCreatableTopic {
	cfg := s.Config()
	t := protocol.Make[protocol.CreateTopicsRequestCreatableTopic]()
	t.Name, t.NumPartitions, t.ReplicationFactor = name, cfg.NumPartitions, cfg.DefaultReplicationFactor
	set := func(key, value string) {
		t.Configs = append(t.Configs, protocol.CreateTopicsRequestCreatableTopicConfig{Name: key, Value: &value})
	}
	number := func(name string) string { return strconv.Itoa(int(cfg.Int(name))) }
	switch name {
	case "__consumer_offsets":
		t.NumPartitions, t.ReplicationFactor = cfg.Int("offsets.topic.num.partitions"), int16(cfg.Int("offsets.topic.replication.factor"))
		set("cleanup.policy", "compact")
		set("segment.bytes", number("offsets.topic.segment.bytes"))
		set("compression.type", "producer")
	case "__transaction_state":
		t.NumPartitions, t.ReplicationFactor = cfg.Int("transaction.state.log.num.partitions"), int16(cfg.Int("transaction.state.log.replication.factor"))
		set("compression.type", "uncompressed")
		set("cleanup.policy", "compact")
		set("min.insync.replicas", number("transaction.state.log.min.isr"))
		set("segment.bytes", number("transaction.state.log.segment.bytes"))
		set("unclean.leader.election.enable", "false")
	}
	return t
}
