"""kafka-python against a broker: kafka_python.py BOOTSTRAP COUNT"""
import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata

from records import CODECS, Digests, PARTITIONS, eq, recipe

bootstrap, count = sys.argv[1], int(sys.argv[2])
admin = KafkaAdminClient(bootstrap_servers=bootstrap)


def produce(name, **config):
    topic = f"kafkapython-{name}"
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, **config)
    sent = []
    for i in range(count):
        partition, _, key, value, headers = recipe(i)
        sent.append(producer.send(topic, key=key, value=value, partition=partition, headers=headers))
    producer.flush(60)
    for i, future in enumerate(sent):
        meta = future.get(30)
        eq(f"offset of record {i}", (meta.partition, meta.offset), recipe(i)[:2])
    producer.close()


def consume(topic, group):
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, check_crcs=True)
    digests = Digests()
    while digests.total() < count:
        for batch in consumer.poll(timeout_ms=1000).values():
            for m in batch:
                digests.add(m.partition, m.offset, m.key, m.value, m.headers or [])
    consumer.commit()
    consumer.close()
    print("digest", topic, digests, flush=True)


def rebalance():
    """Two members share the partitions, then one has them all."""
    def member():
        return KafkaConsumer("franz-none", bootstrap_servers=bootstrap, group_id="kafkapython-pair", session_timeout_ms=6000, heartbeat_interval_ms=200)
    a, b = member(), member()
    while not a.assignment() or not b.assignment() or len(a.assignment()) + len(b.assignment()) != PARTITIONS:
        a.poll(timeout_ms=50), b.poll(timeout_ms=50)
    a.close()
    while len(b.assignment()) != PARTITIONS:
        b.poll(timeout_ms=50)
    b.close()


def positions():
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id="kafkapython-none-readers")
    tps = [TopicPartition("franz-none", p) for p in range(PARTITIONS)]
    eq("ends", consumer.end_offsets(tps), {tp: len(range(tp.partition, count, PARTITIONS)) for tp in tps})
    eq("begins", consumer.beginning_offsets(tps), {tp: 0 for tp in tps})
    found = consumer.offsets_for_times({tp: 0 for tp in tps})
    eq("offsets for time 0", [found[tp].offset for tp in tps], [0] * PARTITIONS)
    future = consumer.offsets_for_times({tps[0]: int(time.time() * 1000) + 86400000})
    eq("offset for a time to come", future[tps[0]], None)
    eq("committed", [consumer.committed(tp) for tp in tps], [len(range(p, count, PARTITIONS)) for p in range(PARTITIONS)])
    consumer.close()


def administrate():
    topic = "kafkapython-admin"
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"retention.ms": "86400000"})])
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])
        raise AssertionError("created twice")
    except TopicAlreadyExistsError:
        pass
    admin.create_partitions({topic: NewPartitions(4)})
    described = admin.describe_topics([topic])
    eq("partitions", len(described[0]["partitions"]), 4)
    if topic not in admin.list_topics():
        raise AssertionError("the topic is not listed")
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    text = repr(admin.describe_configs([resource]))
    if "86400000" not in text:
        raise AssertionError(f"configs: {text}")
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "1000000"})])
    text = repr(admin.describe_configs([resource]))
    if "1000000" not in text:
        raise AssertionError(f"configs: {text}")
    eq("cluster", admin.describe_cluster()["cluster_id"], "SamsaTestCluster000000")
    admin.describe_log_dirs()
    admin.describe_metadata_quorum()
    groups = [g["group_id"] for g in admin.list_groups()]
    if "kafkapython-none-readers" not in groups:
        raise AssertionError(f"groups: {groups}")
    admin.describe_groups(["kafkapython-none-readers"])
    admin.alter_group_offsets("kafkapython-none-readers", {TopicPartition("franz-none", 1): OffsetAndMetadata(3, "", -1)})
    admin.delete_group_offsets("kafkapython-none-readers", [TopicPartition("franz-none", 2)])
    offsets = admin.list_group_offsets({"kafkapython-none-readers": None})["kafkapython-none-readers"]
    eq("offsets", sorted((tp.partition, o.offset) for tp, o in offsets.items() if o.offset >= 0), [(0, len(range(0, count, PARTITIONS))), (1, 3)])
    admin.delete_groups(["kafkapython-none-readers"])
    admin.delete_records({TopicPartition("kafkapython-none", 0): 5})
    eq("after delete_records", KafkaConsumer(bootstrap_servers=bootstrap).beginning_offsets([TopicPartition("kafkapython-none", 0)]),
       {TopicPartition("kafkapython-none", 0): 5})
    admin.delete_topics([topic])
    while topic in admin.list_topics():
        pass


for codec in CODECS:
    produce(codec, compression_type=None if codec == "none" else codec, enable_idempotence=True)
produce("acks1", acks=1, enable_idempotence=False)
for codec in CODECS:
    consume(f"franz-{codec}", f"kafkapython-{codec}-readers")
positions()
rebalance()
administrate()
print("done", flush=True)
