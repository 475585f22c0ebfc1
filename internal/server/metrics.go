package server

import (
	"strings"

	"samsa/internal/base/metric"
	"samsa/internal/edge/network"
	"samsa/internal/meta/image"
	"samsa/internal/raft/kraft"
	"samsa/internal/raft/node"
)

// What no part of a node registers by itself, under Kafka's names (metrics-4.4, K-190 to K-192). Each
// function is called when the parts it looks at are running.

func (n *Node) gauge(object string, f func() float64, labels ...string) {
	n.metrics.GaugeFunc(object, f, labels...)
}

func (n *Node) nodeMetrics() {
	n.gauge("samsa:type=Node,name=UptimeSeconds", func() float64 { return n.now().Sub(n.started).Seconds() })
}

// raftMetrics are those of the metadata log and of the images made from it.
func (m *metadata) raftMetrics() {
	n := m.node
	raft := func(name string, f func() float64) {
		n.gauge("kafka.server:type=raft-metrics,attribute="+name, f)
	}
	raft("current-leader", func() float64 { return float64(m.raft.State().Leader) })
	raft("current-epoch", func() float64 { return float64(m.raft.State().Epoch) })
	raft("current-vote", func() float64 {
		s := m.raft.State()
		if s.Role == kraft.Leader || s.Role == kraft.Candidate { // which vote for themselves
			return float64(n.nodeID())
		}
		return float64(s.Voted.ID)
	})
	raft("high-watermark", func() float64 { return float64(m.raft.State().HighWatermark) })
	raft("log-end-offset", func() float64 { return float64(m.raft.State().LogEnd) })
	raft("log-end-epoch", func() float64 { return float64(m.raft.State().LogEndEpoch) })
	raft("number-of-voters", func() float64 { return float64(m.raft.State().Voters) })
	n.metrics.Gauges("kafka.server:type=raft-metrics,attribute=current-state", []string{"state"}, func(emit metric.Emit) {
		emit(1, raftState(m.raft.State()))
	})
	s := m.loader.Stats()
	loaded := func(name string, f func() float64) {
		n.gauge("kafka.server:type=broker-metadata-metrics,attribute="+name, f)
	}
	loaded("last-applied-record-offset", func() float64 { return float64(s.LastAppliedOffset.Load()) })
	loaded("last-applied-record-timestamp", func() float64 { return float64(s.LastAppliedTimestamp.Load()) })
	loaded("last-applied-record-lag-ms", func() float64 { return max(0, float64(n.now().UnixMilli()-s.LastAppliedTimestamp.Load())) })
	loaded("metadata-load-error-count", func() float64 { return float64(s.LoadErrors.Load()) })
	loaded("metadata-apply-error-count", func() float64 { return float64(s.ApplyErrors.Load()) })
	n.gauge("kafka.server:type=MetadataLoader,name=CurrentMetadataVersion", func() float64 { return float64(n.Image().Features().MetadataVersion()) })
	n.gauge("kafka.server:type=MetadataLoader,name=CurrentControllerId", func() float64 { return float64(s.CurrentControllerID.Load()) })
	n.gauge("kafka.server:type=MetadataLoader,name=HandleLoadSnapshotCount", func() float64 { return float64(s.SnapshotsLoaded.Load()) })
}

// raftState is the state as Kafka's metric names it.
func raftState(s node.State) string {
	voted := s.Voted.ID >= 0
	switch {
	case s.Observer && s.Role != kraft.Leader:
		return "observer"
	case voted && (s.Role == kraft.Prospective || s.Role == kraft.Unattached):
		return strings.ToLower(s.Role.String()) + "-voted"
	}
	return strings.ToLower(s.Role.String())
}

// controllerMetrics are those of the controller role; a standby shows what it knows of the cluster too.
func (m *metadata) controllerMetrics() {
	n, s := m.node, m.controller.Stats()
	controller := func(name string, f func() float64) {
		n.gauge("kafka.controller:type=KafkaController,name="+name, f)
	}
	controller("ActiveControllerCount", func() float64 { return boolean(m.controller.Active()) })
	controller("NewActiveControllersCount", func() float64 { return float64(s.NewActive.Load()) })
	controller("EventQueueOperationsStartedCount", func() float64 { return float64(s.OperationsStarted.Load()) })
	controller("EventQueueOperationsTimedOutCount", func() float64 { return float64(s.OperationsTimedOut.Load()) })
	controller("TimedOutBrokerHeartbeatCount", func() float64 { return float64(s.HeartbeatsTimedOut.Load()) })
	controller("MetadataErrorCount", func() float64 { return float64(s.MetadataErrors.Load()) })
	controller("LastAppliedRecordOffset", func() float64 { return float64(s.LastAppliedOffset.Load()) })
	controller("LastAppliedRecordTimestamp", func() float64 { return float64(s.LastAppliedTimestamp.Load()) })
	controller("LastAppliedRecordLagMs", func() float64 {
		if m.controller.Active() {
			return 0
		}
		return max(0, float64(n.now().UnixMilli()-s.LastAppliedTimestamp.Load()))
	})
	controller("LastCommittedRecordOffset", func() float64 { return float64(s.LastCommittedOffset.Load()) })
	brokers := func(count func(*image.Broker) bool) func() float64 {
		return func() float64 {
			sum := 0
			for b := range m.controller.Image().Brokers().All() {
				if count(b) {
					sum++
				}
			}
			return float64(sum)
		}
	}
	controller("ActiveBrokerCount", brokers(func(b *image.Broker) bool { return !b.Fenced }))
	controller("FencedBrokerCount", brokers(func(b *image.Broker) bool { return b.Fenced }))
	controller("ControlledShutdownBrokerCount", brokers(func(b *image.Broker) bool { return !b.Fenced && b.InControlledShutdown }))
	controller("GlobalTopicCount", func() float64 { return float64(m.controller.Image().Topics().Len()) })
	controller("GlobalPartitionCount", func() float64 { return float64(m.controller.Image().Topics().PartitionCount()) })
	controller("OfflinePartitionsCount", m.partitions(func(p *image.Partition) bool { return !p.HasLeader() }))
	controller("PreferredReplicaImbalanceCount", m.partitions(func(p *image.Partition) bool { return p.Leader != p.Preferred() }))
	n.metrics.CounterFunc("kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec", func() float64 { return float64(s.UncleanElections.Load()) })
	n.metrics.CounterFunc("kafka.controller:type=ControllerStats,name=ElectionFromEligibleLeaderReplicasPerSec", func() float64 { return float64(s.ELRElections.Load()) })
	n.gauge("kafka.server:type=SnapshotEmitter,name=LatestSnapshotGeneratedBytes", func() float64 { return float64(m.snapshots.LastBytes.Load()) })
}

// partitions counts over the whole cluster, when somebody scrapes.
func (m *metadata) partitions(count func(*image.Partition) bool) func() float64 {
	return func() float64 {
		sum := 0
		for t := range m.controller.Image().Topics().All() {
			for _, p := range t.Partitions() {
				if count(p) {
					sum++
				}
			}
		}
		return float64(sum)
	}
}

// brokerMetrics are those of the broker role.
func (b *broker) brokerMetrics() {
	n := b.node
	n.gauge("kafka.server:type=KafkaServer,name=BrokerState", func() float64 { return float64(b.lifecycle.State()) })
	n.gauge("kafka.server:type=AssignmentsManager,name=QueuedReplicaToDirAssignments", func() float64 { return float64(b.dirs.Pending()) })
	sessions := n.api.Sessions
	n.gauge("kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions", func() float64 { return float64(sessions.Stats().Sessions) })
	n.gauge("kafka.server:type=FetchSessionCache,name=NumIncrementalFetchPartitionsCached", func() float64 { return float64(sessions.Stats().Partitions) })
	n.metrics.CounterFunc("kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec", func() float64 { return float64(sessions.Stats().Evictions) })
}

// networkMetrics are those of one set of listeners, told apart by the role they serve.
func (n *Node) networkMetrics(role string, s *network.Server) {
	n.gauge("samsa:type=Network,name=Connections", func() float64 { return float64(s.Connections()) }, "role", role)
	n.gauge("kafka.network:type=SocketServer,name=MemoryPoolUsed", func() float64 { return float64(s.BufferedBytes()) }, "role", role)
	counter := func(object string, f func(*network.Stats) int64) {
		n.metrics.CounterFunc(object, func() float64 { return float64(f(s.Stats())) }, "role", role)
	}
	counter("kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount", func(s *network.Stats) int64 { return s.IdleClosed.Load() })
	counter("samsa:type=Network,name=BytesIn", func(s *network.Stats) int64 { return s.BytesIn.Load() })
	counter("samsa:type=Network,name=BytesOut", func(s *network.Stats) int64 { return s.BytesOut.Load() })
	counter("samsa:type=Network,name=ConnectionsAccepted", func(s *network.Stats) int64 { return s.Accepted.Load() })
	counter("samsa:type=Network,name=ConnectionsRefused", func(s *network.Stats) int64 { return s.Refused.Load() })
	counter("samsa:type=Network,name=ConnectionsClosed", func(s *network.Stats) int64 { return s.Closed.Load() })
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
