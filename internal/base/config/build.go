package config

import (
	"time"
)

const millisecond, second = time.Millisecond, time.Second

// build resolves layers into a node and gathers everything wrong with them. The node is complete
// only when nothing is.
func build(l layers) (*Node, []failure) {
	v, failures := resolve(l)
	c := &checker{view: v}
	n := &Node{view: v}
	c.rules(n)
	n.fillQuorum()
	n.fillNetwork()
	n.fillLog()
	n.fillReplica()
	n.fillGroup()
	n.fillTxn()
	n.fillQuota()
	n.fillSamsa()
	n.fillRest()
	return n, append(failures, c.out...)
}

func (n *Node) fillQuorum() {
	q := &n.Quorum
	q.ElectionTimeout = n.duration("controller.quorum.election.timeout.ms", millisecond)
	q.ElectionBackoffMax = n.duration("controller.quorum.election.backoff.max.ms", millisecond)
	q.FetchTimeout = n.duration("controller.quorum.fetch.timeout.ms", millisecond)
	q.RequestTimeout = n.duration("controller.quorum.request.timeout.ms", millisecond)
	q.RetryBackoff = n.duration("controller.quorum.retry.backoff.ms", millisecond)
	q.AppendLinger = n.duration("controller.quorum.append.linger.ms", millisecond)
	q.FetchMaxBytes = n.int("controller.quorum.fetch.max.bytes")
	q.FetchSnapshotBytes = n.int("controller.quorum.fetch.snapshot.max.bytes")
	q.AutoJoin = n.boolean("controller.quorum.auto.join.enable")
	q.SegmentBytes = n.int("metadata.log.segment.bytes")
	if !n.isNull("internal.metadata.log.segment.bytes") {
		q.SegmentBytes = n.int("internal.metadata.log.segment.bytes")
	}
	q.SegmentMs = n.long("metadata.log.segment.ms")
	q.MaxRetentionBytes = n.long("metadata.max.retention.bytes")
	q.MaxRetentionMs = n.long("metadata.max.retention.ms")
	q.MaxBatchBytes = n.int("internal.metadata.max.batch.size.in.bytes")
	q.DeleteDelayMs = n.long("internal.metadata.delete.delay.millis")
	q.SnapshotMaxBytes = n.long("metadata.log.max.record.bytes.between.snapshots")
	q.SnapshotMaxInterval = n.duration("metadata.log.max.snapshot.interval.ms", millisecond)
	q.MaxIdleInterval = n.duration("metadata.max.idle.interval.ms", millisecond)
	q.UncleanCheckInterval = n.duration("unclean.leader.election.interval.ms", millisecond)
}

func (n *Node) fillNetwork() {
	limits := map[string]int32{}
	entries, _ := csvMap("", n.text("max.connections.per.ip.overrides"))
	for host, limit := range entries {
		if v, ok := javaInt(limit, 32); ok {
			limits[host] = int32(v)
		}
	}
	n.Network = Network{
		RequestMaxBytes:          n.int("socket.request.max.bytes"),
		QueuedMaxRequests:        n.int("queued.max.requests"),
		QueuedMaxBytes:           n.long("queued.max.request.bytes"),
		SendBufferBytes:          n.int("socket.send.buffer.bytes"),
		ReceiveBufferBytes:       n.int("socket.receive.buffer.bytes"),
		ListenBacklog:            n.int("socket.listen.backlog.size"),
		MaxConnections:           n.int("max.connections"),
		MaxConnectionsPerIP:      n.int("max.connections.per.ip"),
		MaxConnectionsPerIPOver:  limits,
		MaxConnectionRate:        n.int("max.connection.creation.rate"),
		MaxIdle:                  n.duration("connections.max.idle.ms", millisecond),
		FailedAuthenticationWait: n.duration("connection.failed.authentication.delay.ms", millisecond),
		FetchMaxBytes:            n.int("fetch.max.bytes"),
		FetchSessionSlots:        n.int("max.incremental.fetch.session.cache.slots"),
		NumNetworkThreads:        n.int("num.network.threads"),
	}
}

func (n *Node) fillLog() {
	n.Log = Log{
		RecoveryThreadsPerDir:     n.int("num.recovery.threads.per.data.dir"),
		DirFailureTimeout:         n.duration("log.dir.failure.timeout.ms", millisecond),
		RetentionCheckInterval:    n.duration("log.retention.check.interval.ms", millisecond),
		FlushSchedulerIntervalMs:  n.long("log.flush.scheduler.interval.ms"),
		FlushOffsetCheckpoint:     n.duration("log.flush.offset.checkpoint.interval.ms", millisecond),
		FlushStartCheckpoint:      n.duration("log.flush.start.offset.checkpoint.interval.ms", millisecond),
		InitialTaskDelay:          n.duration("log.initial.task.delay.ms", millisecond),
		ProducerIDExpiration:      n.duration("producer.id.expiration.ms", millisecond),
		ProducerIDExpirationCheck: n.duration("producer.id.expiration.check.interval.ms", millisecond),
		CleanerEnable:             n.boolean("log.cleaner.enable"),
		CleanerThreads:            n.int("log.cleaner.threads"),
		CleanerDedupeBufferBytes:  n.long("log.cleaner.dedupe.buffer.size"),
		CleanerIOBufferBytes:      n.int("log.cleaner.io.buffer.size"),
		CleanerLoadFactor:         n.double("log.cleaner.io.buffer.load.factor"),
		CleanerMaxBytesPerSecond:  n.double("log.cleaner.io.max.bytes.per.second"),
		CleanerBackoff:            n.duration("log.cleaner.backoff.ms", millisecond),
		RemoteStorageSystemEnable: n.boolean("remote.log.storage.system.enable"),
		AlterLogDirsThreads:       n.int("num.replica.alter.log.dirs.threads"),
	}
	if n.isNull("num.replica.alter.log.dirs.threads") {
		n.Log.AlterLogDirsThreads = int32(len(n.LogDirs))
	}
}

func (n *Node) fillReplica() {
	n.Replica = Replica{
		NumFetchers:           n.int("num.replica.fetchers"),
		LagTimeMax:            n.duration("replica.lag.time.max.ms", millisecond),
		FetchMaxBytes:         n.int("replica.fetch.max.bytes"),
		FetchResponseMaxBytes: n.int("replica.fetch.response.max.bytes"),
		FetchWaitMax:          n.duration("replica.fetch.wait.max.ms", millisecond),
		FetchMinBytes:         n.int("replica.fetch.min.bytes"),
		FetchBackoff:          n.duration("replica.fetch.backoff.ms", millisecond),
		SocketTimeout:         n.duration("replica.socket.timeout.ms", millisecond),
		SocketReceiveBuffer:   n.int("replica.socket.receive.buffer.bytes"),
		HighWatermarkInterval: n.duration("replica.high.watermark.checkpoint.interval.ms", millisecond),
		SelectorClass:         n.text("replica.selector.class"),
	}
}

func (n *Node) fillGroup() {
	n.Group = Group{
		MinSessionTimeout:       n.duration("group.min.session.timeout.ms", millisecond),
		MaxSessionTimeout:       n.duration("group.max.session.timeout.ms", millisecond),
		InitialRebalanceDelay:   n.duration("group.initial.rebalance.delay.ms", millisecond),
		MaxSize:                 n.int("group.max.size"),
		OffsetMetadataMaxBytes:  n.int("offset.metadata.max.bytes"),
		OffsetsLoadBufferBytes:  n.int("offsets.load.buffer.size"),
		OffsetsRetention:        n.duration("offsets.retention.minutes", time.Minute),
		OffsetsRetentionCheck:   n.duration("offsets.retention.check.interval.ms", millisecond),
		OffsetsCommitTimeout:    n.duration("offsets.commit.timeout.ms", millisecond),
		OffsetsTopicPartitions:  n.int("offsets.topic.num.partitions"),
		OffsetsTopicReplication: int16(n.int("offsets.topic.replication.factor")),
		OffsetsTopicSegment:     n.int("offsets.topic.segment.bytes"),
		OffsetsTopicCodec:       int8(n.int("offsets.topic.compression.codec")),
		Protocols:               n.list("group.coordinator.rebalance.protocols"),
		AppendLinger:            n.duration("group.coordinator.append.linger.ms", millisecond),
	}
}

func (n *Node) fillTxn() {
	n.Txn = Txn{
		MaxTimeout:              n.duration("transaction.max.timeout.ms", millisecond),
		IDExpiration:            n.duration("transactional.id.expiration.ms", millisecond),
		AbortTimedOutInterval:   n.duration("transaction.abort.timed.out.transaction.cleanup.interval.ms", millisecond),
		RemoveExpiredInterval:   n.duration("transaction.remove.expired.transaction.cleanup.interval.ms", millisecond),
		StateTopicPartitions:    n.int("transaction.state.log.num.partitions"),
		StateTopicReplication:   int16(n.int("transaction.state.log.replication.factor")),
		StateTopicMinISR:        n.int("transaction.state.log.min.isr"),
		StateTopicSegment:       n.int("transaction.state.log.segment.bytes"),
		LoadBufferBytes:         n.int("transaction.state.log.load.buffer.size"),
		PartitionVerification:   n.boolean("transaction.partition.verification.enable"),
		AddPartitionsBackoff:    n.duration("add.partitions.to.txn.retry.backoff.ms", millisecond),
		AddPartitionsBackoffMax: n.duration("add.partitions.to.txn.retry.backoff.max.ms", millisecond),
		TwoPhaseCommit:          n.boolean("transaction.two.phase.commit.enable"),
	}
}

func (n *Node) fillQuota() {
	n.Quota = Quota{
		Samples:             int(n.int("quota.window.num")),
		Window:              n.duration("quota.window.size.seconds", second),
		ReplicationSamples:  int(n.int("replication.quota.window.num")),
		ReplicationWindow:   n.duration("replication.quota.window.size.seconds", second),
		AlterLogDirsSamples: int(n.int("alter.log.dirs.replication.quota.window.num")),
		AlterLogDirsWindow:  n.duration("alter.log.dirs.replication.quota.window.size.seconds", second),
		ControllerSamples:   int(n.int("controller.quota.window.num")),
		ControllerWindow:    n.duration("controller.quota.window.size.seconds", second),
		LeaderThrottledRate: n.long("leader.replication.throttled.rate"),
		FollowThrottledRate: n.long("follower.replication.throttled.rate"),
		AlterLogDirsRate:    n.long("replica.alter.log.dirs.io.max.bytes.per.second"),
	}
}

func (n *Node) fillSamsa() {
	n.Samsa = Samsa{
		HTTPListener:             n.text("samsa.http.listener"),
		DeleteStaleTopicDelayMs:  n.long("delete.stale.topic.delay.ms"),
		PartitionMetadataDetails: n.boolean("partition.metadata.details.enable"),
		RequestReceiveTimeout:    n.duration("samsa.request.receive.timeout.ms", millisecond),
		ResponseSendTimeout:      n.duration("samsa.response.send.timeout.ms", millisecond),
		ConnectionAuthTimeout:    n.duration("samsa.connection.auth.timeout.ms", millisecond),
		RequestMemoryBytes:       n.long("samsa.request.memory.bytes"),
	}
}

func (n *Node) fillRest() {
	n.NumPartitions = n.int("num.partitions")
	n.DefaultReplicationFactor = int16(n.int("default.replication.factor"))
	n.AutoCreateTopics = n.boolean("auto.create.topics.enable")
	n.DeleteTopics = n.boolean("delete.topic.enable")
	n.AutoLeaderRebalance = n.boolean("auto.leader.rebalance.enable")
	n.LeaderImbalanceCheck = n.duration("leader.imbalance.check.interval.seconds", second)
	n.ControlledShutdown = n.boolean("controlled.shutdown.enable")
	n.BrokerHeartbeatInterval = n.duration("broker.heartbeat.interval.ms", millisecond)
	n.BrokerSessionTimeout = n.duration("broker.session.timeout.ms", millisecond)
	n.InitialRegistration = n.duration("initial.broker.registration.timeout.ms", millisecond)
	n.RequestTimeout = n.duration("request.timeout.ms", millisecond)
	n.MaxRequestPartitionSize = n.int("max.request.partition.size.limit")
	n.UnstableApiVersions = n.boolean("unstable.api.versions.enable")
	n.UnstableFeatureVersions = n.boolean("unstable.feature.versions.enable")
	n.BackgroundThreads = int(n.int("background.threads"))
	n.NumIOThreads = int(n.int("num.io.threads"))
}
