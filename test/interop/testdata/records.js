// The records that every client of these tests writes and reads; records_test.go has the same recipe.
const crypto = require('crypto')

const PARTITIONS = 3
const SIZES = [0, 1, 10, 100, 33, 1000, 5000, 20000, 77, 512]

function recipe(i) {
  const digest = crypto.createHash('sha256').update(String(i)).digest()
  const size = SIZES[i % SIZES.length]
  const headers = i % 5 === 4 ? [['number', Buffer.from(String(i))], ['empty', Buffer.alloc(0)]] : []
  return {
    partition: i % PARTITIONS,
    key: i % 11 === 10 && i % 13 !== 12 ? null : Buffer.from('key-' + (i % 17)),
    value: i % 13 === 12 ? null : Buffer.concat(Array(Math.floor(size / 32) + 1).fill(digest)).subarray(0, size),
    headers: Object.fromEntries(headers),
  }
}

function int32(n) {
  const b = Buffer.alloc(4)
  b.writeInt32BE(n)
  return b
}

function sized(b) {
  return b === null || b === undefined ? int32(-1) : Buffer.concat([int32(b.length), Buffer.from(b)])
}

class Digests {
  constructor() {
    this.sums = Array.from({ length: PARTITIONS }, () => crypto.createHash('sha256'))
    this.counts = Array(PARTITIONS).fill(0)
  }

  add(partition, { offset, key, value, headers }) {
    this.counts[partition]++
    const at = Buffer.alloc(8)
    at.writeBigInt64BE(BigInt(offset))
    const list = Object.entries(headers || {})
    const parts = [at, sized(key), sized(value), int32(list.length)]
    for (const [k, v] of list) parts.push(sized(Buffer.from(k)), sized(v))
    this.sums[partition].update(Buffer.concat(parts))
  }

  total() {
    return this.counts.reduce((a, b) => a + b, 0)
  }

  toString() {
    return this.counts.map((n, i) => `${n}:${this.sums[i].digest('hex')}`).join(',')
  }
}

function eq(what, got, want) {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)]
  if (g !== w) throw new Error(`${what}: ${g}, expected ${w}`)
}

module.exports = { PARTITIONS, recipe, Digests, eq }
