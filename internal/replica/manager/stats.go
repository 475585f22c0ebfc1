package manager

import (
	"strconv"
	"sync"

	"samsa/internal/base/kerr"
	"samsa/internal/base/metric"
	"samsa/internal/base/model"
	"samsa/internal/base/purgatory"
	"samsa/internal/wire/record"
)

// stats are the manager's metrics under Kafka's names. Counting is one atomic add; what is counted per partition is walked when
// somebody scrapes.
type stats struct {
	reg                                           *metric.Registry
	all                                           *topicStats
	bytesRejected                                 *metric.Counter
	badCRC, badMagic, badSequence, noKey, convert *metric.Counter
	replicationIn, replicationOut                 *metric.Counter
	isrExpands, isrShrinks, isrFailures           *metric.Counter

	topics sync.Map // name to *topicStats
}

// topicStats are the meters of one topic, or of all.
type topicStats struct {
	messagesIn, bytesIn, bytesOut, produces, failedProduces, fetches, failedFetches *metric.Counter
}

const topicMetrics = "kafka.server:type=BrokerTopicMetrics,name="

// meter makes a counter; without a registry one that nobody sees.
func (s *stats) meter(object string, labels ...string) *metric.Counter {
	if s.reg == nil {
		return new(metric.Counter)
	}
	return s.reg.Meter(object, labels...)
}

func (s *stats) newTopic(labels ...string) *topicStats {
	return &topicStats{
		messagesIn:     s.meter(topicMetrics+"MessagesInPerSec", labels...),
		bytesIn:        s.meter(topicMetrics+"BytesInPerSec", labels...),
		bytesOut:       s.meter(topicMetrics+"BytesOutPerSec", labels...),
		produces:       s.meter(topicMetrics+"TotalProduceRequestsPerSec", labels...),
		failedProduces: s.meter(topicMetrics+"FailedProduceRequestsPerSec", labels...),
		fetches:        s.meter(topicMetrics+"TotalFetchRequestsPerSec", labels...),
		failedFetches:  s.meter(topicMetrics+"FailedFetchRequestsPerSec", labels...),
	}
}

// topic finds the meters of a topic this broker hosts; they appear with its first request.
func (s *stats) topic(name string) *topicStats {
	if t, ok := s.topics.Load(name); ok {
		return t.(*topicStats)
	}
	t, _ := s.topics.LoadOrStore(name, s.newTopic("topic", name))
	return t.(*topicStats)
}

// forget drops the meters of a topic that is gone from this broker (T-97).
func (s *stats) forget(name string) {
	if _, had := s.topics.LoadAndDelete(name); !had || s.reg == nil {
		return
	}
	for _, n := range []string{"MessagesIn", "BytesIn", "BytesOut", "TotalProduceRequests", "FailedProduceRequests", "TotalFetchRequests", "FailedFetchRequests"} {
		s.reg.Remove(topicMetrics+n+"PerSec", "topic", name)
	}
}

func (s *stats) init(m *Manager, reg *metric.Registry) {
	s.reg = reg
	s.all = s.newTopic()
	named := func(name string) *metric.Counter { return s.meter(topicMetrics + name) }
	s.bytesRejected = named("BytesRejectedPerSec")
	s.badCRC, s.badMagic = named("InvalidMessageCrcRecordsPerSec"), named("InvalidMagicNumberRecordsPerSec")
	s.badSequence, s.noKey = named("InvalidOffsetOrSequenceRecordsPerSec"), named("NoKeyCompactedTopicRecordsPerSec")
	s.convert = named("ProduceMessageConversionsPerSec")
	s.replicationIn, s.replicationOut = named("ReplicationBytesInPerSec"), named("ReplicationBytesOutPerSec")
	const manager = "kafka.server:type=ReplicaManager,name="
	s.isrExpands, s.isrShrinks = s.meter(manager+"IsrExpandsPerSec"), s.meter(manager+"IsrShrinksPerSec")
	s.isrFailures = s.meter(manager + "FailedIsrUpdatesPerSec")
	if reg == nil {
		return
	}
	for name, count := range map[string]func(*replica, *view) bool{
		"PartitionCount":            func(r *replica, _ *view) bool { return r.core != nil },
		"LeaderCount":               func(_ *replica, v *view) bool { return v.leader },
		"OfflineReplicaCount":       func(r *replica, v *view) bool { return r.core != nil && v.err != nil }, // not what was never here (J-188)
		"UnderReplicatedPartitions": func(r *replica, v *view) bool { return v.leader && r.core.UnderReplicated() },
		"UnderMinIsrPartitionCount": func(r *replica, v *view) bool { return v.leader && r.core.UnderMinISR() },
		"AtMinIsrPartitionCount":    func(r *replica, v *view) bool { return v.leader && r.core.AtMinISR() },
		"ReassigningPartitions": func(r *replica, v *view) bool {
			g := r.core
			return v.leader && len(g.Registration().Adding)+len(g.Registration().Removing) > 0
		},
	} {
		reg.GaugeFunc(manager+name, func() float64 {
			n := 0
			m.hosted.all(func(r *replica) {
				r.mu.Lock()
				if v := r.view.Load(); count(r, v) {
					n++
				}
				r.mu.Unlock()
			})
			return float64(n)
		})
	}
	reg.GaugeFunc(manager+"ProducerIdCount", func() float64 {
		n := 0
		m.hosted.all(func(r *replica) {
			if v := r.view.Load(); v.err == nil {
				n += v.log.ProducerCount()
			}
		})
		return float64(n)
	})
	for name, p := range map[string]*purgatory.Purgatory[model.TopicIDPartition]{"Produce": m.produces, "Fetch": m.fetches, "DeleteRecords": m.deletes} {
		const object = "kafka.server:type=DelayedOperationPurgatory,name="
		reg.GaugeFunc(object+"PurgatorySize", func() float64 { return float64(p.Watched()) }, "delayedOperation", name)
		reg.GaugeFunc(object+"NumDelayedOperations", func() float64 { return float64(p.Delayed()) }, "delayedOperation", name)
	}
	s.partitionGauges(m, reg)
}

// partitionGauges are kafka.cluster:type=Partition, for every hosted partition.
func (s *stats) partitionGauges(m *Manager, reg *metric.Registry) {
	one := map[bool]float64{true: 1}
	for name, value := range map[string]func(*replica, *view) float64{
		"UnderReplicated":     func(r *replica, v *view) float64 { return one[v.leader && r.core.UnderReplicated()] },
		"UnderMinIsr":         func(r *replica, v *view) float64 { return one[v.leader && r.core.UnderMinISR()] },
		"AtMinIsr":            func(r *replica, v *view) float64 { return one[v.leader && r.core.AtMinISR()] },
		"InSyncReplicasCount": func(r *replica, v *view) float64 { return ofLeader(v, len(r.core.Registration().ISR)) },
		"ReplicasCount":       func(r *replica, v *view) float64 { return ofLeader(v, len(r.core.Registration().Replicas)) },
		"LastStableOffsetLag": func(_ *replica, v *view) float64 {
			o := v.log.Offsets()
			return float64(o.HighWatermark - o.LastStable)
		},
	} {
		reg.Gauges("kafka.cluster:type=Partition,name="+name, []string{"topic", "partition"}, func(emit metric.Emit) {
			m.hosted.all(func(r *replica) {
				r.mu.Lock()
				v := r.view.Load()
				ok, x := r.core != nil && v.err == nil, 0.0
				if ok {
					x = value(r, v)
				}
				r.mu.Unlock()
				if ok {
					emit(x, r.topic, strconv.Itoa(int(r.tp.Partition)))
				}
			})
		})
	}
}

func ofLeader(v *view, n int) float64 {
	if !v.leader {
		return 0
	}
	return float64(n)
}

// appended counts records that were taken.
func (s *stats) appended(topic string, records, bytes int, v *record.Validated) {
	for _, t := range [2]*topicStats{s.all, s.topic(topic)} {
		t.messagesIn.Add(int64(records))
		t.bytesIn.Add(int64(bytes))
		t.produces.Inc()
	}
	if v != nil && v.Stats.RecordsConverted > 0 {
		s.convert.Add(int64(v.Stats.RecordsConverted))
	}
}

// refused counts records that were not. hosted: the topic is here, so that it may have meters of its own. What a client
// does wrong every day is no failure: the meter of those is for what a broker should not meet.
func (s *stats) refused(topic string, hosted bool, k *kerr.Error, bytes int) {
	failed := true
	switch k {
	case kerr.UnknownTopicOrPartition, kerr.UnknownTopicId, kerr.NotLeaderOrFollower, kerr.MessageTooLarge, kerr.RecordListTooLarge,
		kerr.CorruptMessage, kerr.KafkaStorageError, kerr.InvalidTopicException:
		failed = false
	}
	for _, t := range s.metersOf(topic, hosted) {
		t.produces.Inc()
		if failed {
			t.failedProduces.Inc()
		}
	}
	switch k {
	case kerr.CorruptMessage:
		s.badCRC.Inc()
	case kerr.OutOfOrderSequenceNumber:
		s.badSequence.Inc()
	case kerr.MessageTooLarge, kerr.RecordListTooLarge:
		s.bytesRejected.Add(int64(bytes))
	}
}

// metersOf are the meters of all topics, and of this one if it is here.
func (s *stats) metersOf(topic string, hosted bool) []*topicStats {
	if !hosted {
		return []*topicStats{s.all}
	}
	return []*topicStats{s.all, s.topic(topic)}
}

// notFetched counts a partition that could not be read.
func (s *stats) notFetched(topic string, hosted bool, k *kerr.Error) {
	for _, t := range s.metersOf(topic, hosted) {
		t.fetches.Inc()
		if k == kerr.UnknownServerError {
			t.failedFetches.Inc()
		}
	}
}

// fetched counts one partition's part of an answer.
func (s *stats) fetched(topic string, bytes int, follower bool) {
	t := s.topic(topic)
	s.all.fetches.Inc()
	t.fetches.Inc()
	if follower {
		s.replicationOut.Add(int64(bytes))
	} else {
		s.all.bytesOut.Add(int64(bytes))
		t.bytesOut.Add(int64(bytes))
	}
}
