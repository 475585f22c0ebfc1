package server

import (
	"samsa/internal/base/kerr"
	"samsa/internal/edge/api"
	"samsa/internal/edge/network"
)

func errorOf(code int16) error {
	if e := kerr.ForCode(code); e != nil {
		return e
	}
	return nil
}

func (n *Node) apiOptions() api.Options {
	m := n.metadata
	return api.Options{
		ClusterID: n.ClusterID(), NodeID: n.nodeID(), Config: n.Config, Log: n.log, Now: n.now,
		Image: n.Image, Settle: m.settle, KRaftVersion: m.raft.KRaftVersion, Raft: m.raft,
	}
}

// registerMetrics shows what no part registers by itself.
func (n *Node) registerMetrics() {
	r := n.metrics
	gauge := func(object string, f func() float64, labels ...string) { r.GaugeFunc(object, f, labels...) }
	gauge("kafka.server:type=KafkaServer,name=BrokerState", func() float64 {
		if n.broker == nil || n.broker.lifecycle == nil {
			return 0
		}
		return float64(n.broker.lifecycle.State())
	})
	gauge("kafka.controller:type=KafkaController,name=ActiveControllerCount", func() float64 {
		if m := n.metadata; m != nil && m.controller != nil && m.controller.Active() {
			return 1
		}
		return 0
	})
	gauge("samsa:type=Node,name=UptimeSeconds", func() float64 { return n.now().Sub(n.started).Seconds() })
	over := func(f func(*network.Server) int64) func() float64 {
		return func() float64 {
			sum := int64(0)
			if b := n.broker; b != nil && b.network != nil {
				sum += f(b.network)
			}
			if m := n.metadata; m != nil && m.listener != nil {
				sum += f(m.listener)
			}
			return float64(sum)
		}
	}
	gauge("samsa:type=Network,name=Connections", over(func(s *network.Server) int64 { return int64(s.Connections()) }))
	gauge("samsa:type=Network,name=RequestBufferBytes", over(func(s *network.Server) int64 { return s.BufferedBytes() }))
	r.CounterFunc("samsa:type=Network,name=BytesIn", over(func(s *network.Server) int64 { return s.Stats().BytesIn.Load() }))
	r.CounterFunc("samsa:type=Network,name=BytesOut", over(func(s *network.Server) int64 { return s.Stats().BytesOut.Load() }))
	r.CounterFunc("samsa:type=Network,name=ConnectionsAccepted", over(func(s *network.Server) int64 { return s.Stats().Accepted.Load() }))
	r.CounterFunc("samsa:type=Network,name=ConnectionsRefused", over(func(s *network.Server) int64 { return s.Stats().Refused.Load() }))
}
