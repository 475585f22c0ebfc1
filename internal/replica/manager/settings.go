package manager

import (
	"samsa/internal/base/config"
	"samsa/internal/meta/image"
	"samsa/internal/replica/partition"
	"samsa/internal/storage/partlog"
	"samsa/internal/wire/record"
)

// settings are a topic's effective settings in the forms their readers want. Immutable; all partitions of a topic share them.
type settings struct {
	topic   *config.Topic
	log     *partlog.Config
	produce record.ProduceConfig
	core    partition.Settings
}

// settingsOf resolves a topic's settings; they are kept for the topic's other partitions. publishing is held.
func (m *Manager) settingsOf(img *image.Image, topic string) *settings {
	if s := m.settings[topic]; s != nil {
		return s
	}
	s := makeSettings(m.node.Load(), img.TopicConfigs(topic))
	m.settings[topic] = s
	return s
}

func makeSettings(n *config.Node, overrides map[string]string) *settings {
	t := n.Topic(overrides)
	return &settings{topic: t, log: logConfig(t), produce: produceConfig(t),
		core: partition.Settings{MinISR: int(t.MinInSyncReplicas), MaxLagMs: n.Replica.LagTimeMax.Milliseconds()}}
}

func logConfig(t *config.Topic) *partlog.Config {
	return &partlog.Config{
		SegmentBytes:       int64(t.SegmentBytes),
		SegmentMs:          t.SegmentMs,
		SegmentJitterMs:    t.SegmentJitterMs,
		SegmentIndexBytes:  t.SegmentIndexBytes,
		IndexIntervalBytes: t.IndexIntervalBytes,
		FlushMessages:      t.FlushMessages,
		FlushMs:            t.FlushMs,
		RetentionMs:        t.RetentionMs,
		RetentionBytes:     t.RetentionBytes,
		FileDeleteDelayMs:  t.FileDeleteDelayMs,
		MaxCompactionLagMs: t.MaxCompactionLagMs,
		Compact:            t.Compact,
		Delete:             t.Delete,
	}
}

func produceConfig(t *config.Topic) record.ProduceConfig {
	c := record.DefaultProduceConfig()
	c.TargetProducer = t.CompressionType == "producer"
	if codec, ok := codecs[t.CompressionType]; ok {
		c.Target = codec
	}
	c.Levels = record.Levels{Gzip: int(t.GzipLevel), LZ4: int(t.Lz4Level), Zstd: int(t.ZstdLevel)}
	c.TimestampType = record.CreateTime
	if t.LogAppendTime {
		c.TimestampType = record.LogAppendTime
	}
	c.TimestampBeforeMaxMs, c.TimestampAfterMaxMs = t.TimestampBeforeMaxMs, t.TimestampAfterMaxMs
	c.MaxMessageBytes = int(t.MaxMessageBytes)
	c.MaxDecompressedMessageBytes = int(t.MaxDecompressedMessageBytes)
	c.Compacted = t.Compact
	return c
}

var codecs = map[string]record.Codec{
	"uncompressed": record.None, "gzip": record.Gzip, "snappy": record.Snappy, "lz4": record.LZ4, "zstd": record.Zstd,
}

// Reconfigure takes a new node configuration (dynamic broker configs): every topic's settings follow at once (D-193).
func (m *Manager) Reconfigure(n *config.Node) {
	m.publishing.Lock()
	defer m.publishing.Unlock()
	m.node.Store(n)
	img := m.img.Load()
	m.settings = map[string]*settings{}
	m.hosted.all(func(r *replica) { m.applySettings(r, m.settingsOf(img, r.topic)) })
}

// applySettings gives a replica new settings.
func (m *Manager) applySettings(r *replica, s *settings) {
	r.mu.Lock()
	v := r.view.Load()
	if v.settings == s {
		r.mu.Unlock()
		return
	}
	r.setView(func(v *view) { v.settings = s })
	if v.log != nil {
		v.log.SetConfig(s.log)
	}
	if r.core == nil || v.err != nil {
		r.mu.Unlock()
		return
	}
	r.core.SetSettings(s.core)
	moved, tell := r.core.Recheck(m.nowMs(), m.brokers.Load()), false // min.insync.replicas may have gone down
	if moved {
		tell = r.highMoved()
	}
	r.mu.Unlock()
	if tell {
		r.tell()
	}
	if moved {
		m.wake(r.tp)
	}
}
