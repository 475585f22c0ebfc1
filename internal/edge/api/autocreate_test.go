package api

import (
	"testing"

	"samsa/internal/base/config"
)

// The coordinators' topics are made with the settings of offsets.topic.* and transaction.state.log.*.
func TestInternalTopicsHaveTheirSettings(t *testing.T) {
	cfg, err := config.FromMap(map[string]string{
		"process.roles": "broker,controller", "node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
		"controller.listener.names": "CONTROLLER", "controller.quorum.bootstrap.servers": "127.0.0.1:9093", "log.dirs": "/nowhere",
		"offsets.topic.num.partitions": "7", "offsets.topic.replication.factor": "1", "offsets.topic.segment.bytes": "1048576",
		"transaction.state.log.num.partitions": "9", "transaction.state.log.replication.factor": "2", "transaction.state.log.min.isr": "2",
		"num.partitions": "4", "default.replication.factor": "1",
	})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Config: func() *config.Node { return cfg }})
	for name, want := range map[string]struct {
		partitions int32
		replicas   int16
		configs    map[string]string
	}{
		"__consumer_offsets":  {7, 1, map[string]string{"cleanup.policy": "compact", "segment.bytes": "1048576", "compression.type": "producer"}},
		"__transaction_state": {9, 2, map[string]string{"cleanup.policy": "compact", "segment.bytes": "104857600", "compression.type": "uncompressed", "min.insync.replicas": "2", "unclean.leader.election.enable": "false"}},
		"orders":              {4, 1, map[string]string{}},
	} {
		topic := s.autoTopic(name)
		if topic.NumPartitions != want.partitions || topic.ReplicationFactor != want.replicas {
			t.Errorf("%s: %d partitions, %d replicas, expected %d and %d", name, topic.NumPartitions, topic.ReplicationFactor, want.partitions, want.replicas)
		}
		got := map[string]string{}
		for _, c := range topic.Configs {
			got[c.Name] = *c.Value
		}
		if len(got) != len(want.configs) {
			t.Errorf("%s: configs %v, expected %v", name, got, want.configs)
		}
		for k, v := range want.configs {
			if got[k] != v {
				t.Errorf("%s: %s is %q, expected %q", name, k, got[k], v)
			}
		}
	}
}
