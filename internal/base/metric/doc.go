// Package metric counts what the node does and shows it to Prometheus under the names that the
// widely used JMX-exporter rules give Kafka's metrics, so that today's dashboards work.
//
// Kind: quiet. It has no goroutine; the clock is handed in and read only when somebody scrapes.
//
// # Names
//
// A metric is named by Kafka's object name, as written in Kafka's documentation, and gets its
// Prometheus name from Name:
//
//	kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions   kafka_server_replicamanager_underreplicatedpartitions
//	kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=T   kafka_server_brokertopicmetrics_bytesin_total{topic="T"}
//	kafka.server:type=raft-metrics,attribute=current-epoch            kafka_server_raft_metrics_current_epoch
//	samsa:type=LogDir,name=FreeBytes                                  samsa_logdir_freebytes
//
// Tags (topic, partition, request ...) are labels and are passed beside the object name.
//
// # Cost
//
// A counter is one atomic add, a gauge one atomic store, a histogram three atomic adds without a
// lock or an allocation. What exists in thousands (partitions, logs, connections) is not stored
// here at all: its owner registers one function per name that walks its own state at scrape time.
// A scrape writes one metric family after the other and keeps nothing.
package metric
