package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Topic is the effective configuration of one topic. It never changes.
type Topic struct {
	Compact bool // cleanup.policy has compact
	Delete  bool // cleanup.policy has delete

	CompressionType string // producer, uncompressed, gzip, snappy, lz4, zstd
	GzipLevel       int32
	Lz4Level        int32
	ZstdLevel       int32

	SegmentBytes       int32
	SegmentMs          int64
	SegmentJitterMs    int64
	SegmentIndexBytes  int32
	IndexIntervalBytes int32
	FileDeleteDelayMs  int64
	FlushMessages      int64
	FlushMs            int64
	Preallocate        bool

	RetentionBytes      int64 // negative is no limit
	RetentionMs         int64 // -1 is no limit
	LocalRetentionBytes int64 // -2 already replaced by RetentionBytes
	LocalRetentionMs    int64 // -2 already replaced by RetentionMs

	MaxMessageBytes             int32
	MaxDecompressedMessageBytes int32
	LogAppendTime               bool // message.timestamp.type
	TimestampBeforeMaxMs        int64
	TimestampAfterMaxMs         int64

	DeleteRetentionMs      int64
	MinCompactionLagMs     int64
	MaxCompactionLagMs     int64
	MinCleanableDirtyRatio float64

	MinInSyncReplicas         int32
	UncleanLeaderElection     bool
	LeaderThrottledReplicas   Throttled
	FollowerThrottledReplicas Throttled
	RemoteStorage             bool
	RemoteLogCopyDisable      bool
	RemoteLogDeleteOnDisable  bool
	RemoteCopyLagMs           int64
	RemoteCopyLagBytes        int64
	DeadLetterQueueGroups     bool
}

// Throttled is the value of leader. or follower.replication.throttled.replicas.
type Throttled struct {
	All      bool
	Replicas map[ThrottledReplica]struct{}
}

// ThrottledReplica is one partition:broker pair.
type ThrottledReplica struct {
	Partition int32
	Broker    int32
}

// Has reports whether the replica is throttled.
func (t Throttled) Has(partition, broker int32) bool {
	_, ok := t.Replicas[ThrottledReplica{partition, broker}]
	return t.All || ok
}

// topicDefault is the broker's value for a topic key, nil when nothing is set anywhere.
func (v *view) topicDefault(k *Key) any {
	switch k.Name {
	case "segment.ms":
		return v.rollMs()
	case "segment.jitter.ms":
		return v.rollJitterMs()
	case "retention.ms":
		return v.retentionMs()
	case "flush.ms":
		return v.flushMs()
	}
	if len(k.Synonyms) > 0 {
		return v.value(k.Synonyms[0])
	}
	return k.defaultValue()
}

// topicValues are all topic keys resolved. Overrides that are unknown or no good are left out and
// named in why.
func (v *view) topicValues(overrides map[string]string) (values map[string]any, why []failure) {
	values = map[string]any{}
	for _, name := range Topics.Names() {
		k, _ := Topics.Key(name)
		values[name] = v.topicDefault(k)
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		k, ok := Topics.Key(name)
		if !ok {
			why = append(why, failure{key: name, text: "Unknown topic config name: " + name})
			continue
		}
		value, err := k.Parse(overrides[name])
		if err != nil {
			why = append(why, failure{key: name, text: err.Error()})
			continue
		}
		values[name] = value
	}
	return values, why
}

// Topic resolves a topic's settings from its overrides, as they are in the metadata image, and
// from the node. Overrides that are unknown or no good are left out (K-166).
func (n *Node) Topic(overrides map[string]string) *Topic {
	v, _ := n.topicValues(overrides)
	t := &Topic{
		Compact:                     slices.Contains(v["cleanup.policy"].([]string), "compact"),
		Delete:                      slices.Contains(v["cleanup.policy"].([]string), "delete"),
		CompressionType:             v["compression.type"].(string),
		GzipLevel:                   v["compression.gzip.level"].(int32),
		Lz4Level:                    v["compression.lz4.level"].(int32),
		ZstdLevel:                   v["compression.zstd.level"].(int32),
		SegmentBytes:                v["segment.bytes"].(int32),
		SegmentMs:                   v["segment.ms"].(int64),
		SegmentJitterMs:             v["segment.jitter.ms"].(int64),
		SegmentIndexBytes:           v["segment.index.bytes"].(int32),
		IndexIntervalBytes:          v["index.interval.bytes"].(int32),
		FileDeleteDelayMs:           v["file.delete.delay.ms"].(int64),
		FlushMessages:               v["flush.messages"].(int64),
		FlushMs:                     v["flush.ms"].(int64),
		Preallocate:                 v["preallocate"].(bool),
		RetentionBytes:              v["retention.bytes"].(int64),
		RetentionMs:                 v["retention.ms"].(int64),
		LocalRetentionBytes:         v["local.retention.bytes"].(int64),
		LocalRetentionMs:            v["local.retention.ms"].(int64),
		MaxMessageBytes:             v["max.message.bytes"].(int32),
		MaxDecompressedMessageBytes: v["max.decompressed.message.bytes"].(int32),
		LogAppendTime:               v["message.timestamp.type"] == "LogAppendTime",
		TimestampBeforeMaxMs:        v["message.timestamp.before.max.ms"].(int64),
		TimestampAfterMaxMs:         v["message.timestamp.after.max.ms"].(int64),
		DeleteRetentionMs:           v["delete.retention.ms"].(int64),
		MinCompactionLagMs:          v["min.compaction.lag.ms"].(int64),
		MaxCompactionLagMs:          v["max.compaction.lag.ms"].(int64),
		MinCleanableDirtyRatio:      v["min.cleanable.dirty.ratio"].(float64),
		MinInSyncReplicas:           v["min.insync.replicas"].(int32),
		UncleanLeaderElection:       v["unclean.leader.election.enable"].(bool),
		LeaderThrottledReplicas:     parseThrottled(v["leader.replication.throttled.replicas"].([]string)),
		FollowerThrottledReplicas:   parseThrottled(v["follower.replication.throttled.replicas"].([]string)),
		RemoteStorage:               v["remote.storage.enable"].(bool),
		RemoteLogCopyDisable:        v["remote.log.copy.disable"].(bool),
		RemoteLogDeleteOnDisable:    v["remote.log.delete.on.disable"].(bool),
		RemoteCopyLagMs:             v["remote.copy.lag.ms"].(int64),
		RemoteCopyLagBytes:          v["remote.copy.lag.bytes"].(int64),
		DeadLetterQueueGroups:       v["errors.deadletterqueue.group.enable"].(bool),
	}
	if internal, ok := v["internal.segment.bytes"].(int32); ok {
		t.SegmentBytes = internal
	}
	if t.LocalRetentionBytes == -2 {
		t.LocalRetentionBytes = t.RetentionBytes
	}
	if t.LocalRetentionMs == -2 {
		t.LocalRetentionMs = t.RetentionMs
	}
	return t
}

// IgnoredTopicOverrides names the overrides Topic leaves out and says why, for the log.
func (n *Node) IgnoredTopicOverrides(overrides map[string]string) []string {
	_, why := n.topicValues(overrides)
	var out []string
	for _, f := range why {
		out = append(out, f.text)
	}
	return out
}

func parseThrottled(list []string) Throttled {
	if strings.Join(list, "") == "*" {
		return Throttled{All: true}
	}
	var t Throttled
	for _, s := range list {
		partition, broker, ok := strings.Cut(javaTrim(s), ":")
		p, okP := javaInt(partition, 32)
		b, okB := javaInt(broker, 32)
		if !ok || !okP || !okB {
			continue
		}
		if t.Replicas == nil {
			t.Replicas = map[ThrottledReplica]struct{}{}
		}
		t.Replicas[ThrottledReplica{int32(p), int32(b)}] = struct{}{}
	}
	return t
}

// Default is a node with both roles and nothing else set, listening on loopback; for tests and as
// the base of tools that have no node.
func Default() *Node {
	n, err := FromMap(map[string]string{
		"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER",
		"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093", "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
	})
	if err != nil {
		panic(fmt.Sprintf("config: the default node: %v", err))
	}
	return n
}

// DefaultTopic is a topic without overrides on a node without settings; for tests.
func DefaultTopic() *Topic { return Default().Topic(nil) }
