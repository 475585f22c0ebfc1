"""confluent-kafka (librdkafka) against a broker: confluent.py BOOTSTRAP COUNT"""
import sys

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType)

from records import CODECS, Digests, PARTITIONS, eq, recipe

bootstrap, count = sys.argv[1], int(sys.argv[2])
admin = AdminClient({"bootstrap.servers": bootstrap})


def done(futures):
    return {k: f.result(30) for k, f in futures.items()}


def produce(codec, **config):
    topic = f"confluent-{codec}"
    done(admin.create_topics([NewTopic(topic, PARTITIONS, 1)]))
    failed = []
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 5, **config})
    for i in range(count):
        partition, _, key, value, headers = recipe(i)
        producer.produce(topic, key=key, value=value, partition=partition, headers=headers or None,
                         on_delivery=lambda err, msg: err and failed.append(str(err)))
        producer.poll(0)
    eq("left in the queue", producer.flush(60), 0)
    eq("failed deliveries", failed, [])


def consume(topic, group):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False,
                         "check.crcs": True, "fetch.wait.max.ms": 100})
    consumer.subscribe([topic])
    digests = Digests()
    while digests.total() < count:
        for m in consumer.consume(500, 1.0):
            if m.error():
                raise KafkaException(m.error())
            digests.add(m.partition(), m.offset(), m.key(), m.value(), m.headers() or [])
    consumer.commit(asynchronous=False)
    consumer.close()
    print("digest", topic, digests, flush=True)


def rebalance():
    """Two members share the partitions, then one has them all."""
    def member():
        c = Consumer({"bootstrap.servers": bootstrap, "group.id": "confluent-pair", "auto.offset.reset": "earliest", "session.timeout.ms": 6000,
                      "heartbeat.interval.ms": 200, "partition.assignment.strategy": "cooperative-sticky"})
        c.subscribe(["franz-none"])
        return c
    a, b = member(), member()
    while len(a.assignment()) == 0 or len(b.assignment()) == 0 or len(a.assignment()) + len(b.assignment()) != PARTITIONS:
        a.poll(0.05), b.poll(0.05)
    described = admin.describe_consumer_groups(["confluent-pair"])["confluent-pair"].result(30)
    eq("members", len(described.members), 2)
    eq("state", described.state.name, "STABLE")
    a.close()
    while len(b.assignment()) != PARTITIONS:
        b.poll(0.05)
    b.close()


def administrate():
    cluster = admin.describe_cluster().result(30)
    eq("cluster id", cluster.cluster_id, "SamsaTestCluster000000")
    eq("nodes", [n.id for n in cluster.nodes], [1])
    topic = "confluent-admin"
    done(admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "86400000"})]))
    try:
        done(admin.create_topics([NewTopic(topic, 1, 1)]))
        raise AssertionError("created twice")
    except KafkaException as e:
        eq("created twice", e.args[0].code(), KafkaError.TOPIC_ALREADY_EXISTS)
    done(admin.create_partitions([NewPartitions(topic, 4)]))
    info = done(admin.describe_topics(TopicCollection([topic])))[topic]
    eq("partitions", sorted(p.id for p in info.partitions), [0, 1, 2, 3])
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = done(admin.describe_configs([resource]))[resource]
    eq("retention.ms", configs["retention.ms"].value, "86400000")
    eq("topic configs", len(configs), 37)
    done(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[
        ConfigEntry("retention.ms", "1000000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)])]))
    configs = done(admin.describe_configs([resource]))[resource]
    eq("altered", [configs["retention.ms"].value, configs["cleanup.policy"].value], ["1000000", "delete,compact"])
    broker = ConfigResource(ResourceType.BROKER, "1")
    eq("broker configs", done(admin.describe_configs([broker]))[broker]["node.id"].value, "1")

    at = [TopicPartition("confluent-none", p) for p in range(PARTITIONS)]
    ends = done(admin.list_offsets({p: OffsetSpec.latest() for p in at}))
    eq("ends", sorted((p.partition, r.offset) for p, r in ends.items()), [(p, len(range(p, count, PARTITIONS))) for p in range(PARTITIONS)])
    low = done(admin.delete_records([TopicPartition("confluent-none", 0, 5)]))
    eq("low watermark", [r.low_watermark for r in low.values()], [5])
    begins = done(admin.list_offsets({p: OffsetSpec.earliest() for p in at}))
    eq("begins", sorted((p.partition, r.offset) for p, r in begins.items()), [(0, 5), (1, 0), (2, 0)])

    groups = admin.list_consumer_groups().result(30)
    eq("errors of list groups", groups.errors, [])
    if "confluent-zstd-readers" not in [g.group_id for g in groups.valid]:
        raise AssertionError("a group is missing from the list")
    group = "confluent-zstd-readers"
    done(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [TopicPartition("franz-zstd", 1, 7)])]))
    offsets = done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))[group]
    eq("altered offset", [p.offset for p in offsets.topic_partitions if p.partition == 1], [7])
    done(admin.delete_consumer_groups([group]))
    done(admin.delete_topics([topic]))
    while topic in admin.list_topics(timeout=10).topics:
        pass


for codec in CODECS:
    produce(codec, **{"enable.idempotence": True})
produce("acks1", **{"acks": 1, "compression.type": "none"})
for codec in CODECS:
    consume(f"franz-{codec}", f"confluent-{codec}-readers")
rebalance()
administrate()
print("done", flush=True)
