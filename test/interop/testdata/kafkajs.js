// kafkajs against a broker: kafkajs.js BOOTSTRAP COUNT
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4js')
const zstd = require('@bokuweb/zstd-wasm')
const { PARTITIONS, recipe, Digests, eq } = require('./records.js')

CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4Frame(encoder.buffer),
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer, 3)),
  decompress: async buffer => Buffer.from(zstd.decompress(buffer)),
})

// lz4Frame stores bytes in an LZ4 frame of blocks that are not compressed: what lz4js compresses, Kafka does not take.
function lz4Frame(bytes) {
  const parts = [Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73])] // independent blocks of at most 4 MiB
  for (let i = 0; i < bytes.length; i += 1 << 22) {
    const block = bytes.subarray(i, i + (1 << 22))
    const size = Buffer.alloc(4)
    size.writeUInt32LE((block.length | 0x80000000) >>> 0)
    parts.push(size, block)
  }
  return Buffer.concat([...parts, Buffer.alloc(4)])
}

const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD }
const [bootstrap, count] = [process.argv[2], Number(process.argv[3])]
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [bootstrap], logLevel: logLevel.NOTHING })
const admin = kafka.admin()

async function produce(name, compression, acks, idempotent) {
  const topic = 'kafkajs-' + name
  await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS, replicationFactor: 1 }] })
  const producer = kafka.producer({ idempotent })
  await producer.connect()
  for (let i = 0; i < count; i += 100) {
    const messages = []
    for (let j = i; j < Math.min(i + 100, count); j++) messages.push(recipe(j))
    await producer.send({ topic, compression, acks, messages })
  }
  await producer.disconnect()
}

async function consume(topic, groupId) {
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const digests = new Digests()
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, e => reject(e.payload.error))
    consumer.run({
      eachMessage: async ({ partition, message }) => {
        digests.add(partition, message)
        if (digests.total() === count) resolve()
      },
    }).catch(reject)
  })
  await consumer.disconnect() // commits what was resolved
  console.log('digest', topic, String(digests))
}

async function rebalance() {
  const joins = { a: [], b: [] }
  const member = async name => {
    const consumer = kafka.consumer({ groupId: 'kafkajs-pair', heartbeatInterval: 200, sessionTimeout: 6000 })
    consumer.on(consumer.events.GROUP_JOIN, e => joins[name].push(e.payload.memberAssignment['franz-none'] || []))
    await consumer.connect()
    await consumer.subscribe({ topics: ['franz-none'], fromBeginning: true })
    await consumer.run({ eachMessage: async () => {} })
    return consumer
  }
  const last = name => (joins[name].length ? joins[name][joins[name].length - 1].length : 0)
  const until = async f => {
    while (!f()) await new Promise(r => setTimeout(r, 20))
  }
  const a = await member('a')
  const b = await member('b')
  await until(() => last('a') > 0 && last('b') > 0 && last('a') + last('b') === PARTITIONS)
  await a.disconnect()
  await until(() => last('b') === PARTITIONS)
  await b.disconnect()
}

async function administrate() {
  const topic = 'kafkajs-admin'
  eq('created', await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1, configEntries: [{ name: 'retention.ms', value: '86400000' }] }] }), true)
  eq('created twice', await admin.createTopics({ topics: [{ topic }] }), false)
  await admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] })
  eq('partitions', (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length, 4)
  const retention = async () => {
    const got = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: 2, name: topic, configNames: ['retention.ms'] }] })
    return got.resources[0].configEntries.map(e => e.configValue)
  }
  eq('retention.ms', await retention(), ['86400000'])
  await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries: [{ name: 'retention.ms', value: '1000000' }] }] })
  for (const end = Date.now() + 10000; (await retention())[0] !== '1000000'; ) if (Date.now() > end) throw new Error('retention.ms was not altered')
  eq('cluster', (await admin.describeCluster()).clusterId, 'SamsaTestCluster000000')

  const ends = await admin.fetchTopicOffsets('kafkajs-none')
  const of = p => Math.ceil((count - p) / PARTITIONS)
  eq('ends', ends.sort((x, y) => x.partition - y.partition).map(o => o.high), [0, 1, 2].map(p => String(of(p))))
  await admin.deleteTopicRecords({ topic: 'kafkajs-none', partitions: [{ partition: 0, offset: '5' }] })
  eq('begins', (await admin.fetchTopicOffsets('kafkajs-none')).sort((x, y) => x.partition - y.partition).map(o => o.low), ['5', '0', '0'])

  const groupId = 'kafkajs-none-readers'
  const offsets = async () => (await admin.fetchOffsets({ groupId, topics: ['franz-none'] }))[0].partitions.sort((x, y) => x.partition - y.partition).map(p => p.offset)
  eq('committed', await offsets(), [0, 1, 2].map(p => String(of(p))))
  await admin.setOffsets({ groupId, topic: 'franz-none', partitions: [{ partition: 1, offset: '3' }] })
  eq('set', (await offsets())[1], '3')
  if (!(await admin.listGroups()).groups.some(g => g.groupId === groupId)) throw new Error('the group is not listed')
  eq('described', (await admin.describeGroups([groupId])).groups.map(g => g.state), ['Empty'])
  await admin.deleteGroups([groupId])
  await admin.deleteTopics({ topics: [topic] })
  while ((await admin.listTopics()).includes(topic));
}

async function main() {
  await zstd.init()
  await admin.connect()
  for (const [name, type] of Object.entries(codecs)) await produce(name, type, -1, true)
  await produce('acks1', CompressionTypes.None, 1, false)
  for (const name of Object.keys(codecs)) await consume('franz-' + name, `kafkajs-${name}-readers`)
  await rebalance()
  await administrate()
  await admin.disconnect()
  console.log('done')
}

main().catch(e => {
  console.error(e)
  process.exit(1)
})
