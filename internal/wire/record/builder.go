package record

import (
	"encoding/binary"
	"math"
	"sync"

	"samsa/internal/base/invariant"
)

// BatchOptions are the header fields of a batch to build. Start from NewBatchOptions.
type BatchOptions struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Codec         Codec
	Levels        Levels
	TimestampType TimestampType
	AppendTime    int64 // with LogAppendTime: what readers see as the timestamp of every record
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
	DeleteHorizon int64 // ms, NoTimestamp for none; takes the place of the base timestamp (KIP-534)

	// LastOffset is the last offset of the batch when it is beyond the last record
	// (compaction), else it is not looked at.
	LastOffset int64
	// BaseTimestamp is what timestamp deltas count from; NoTimestamp means the first record's timestamp.
	BaseTimestamp int64
	// MaxTimestamp is that of a batch without records.
	MaxTimestamp int64
}

// NewBatchOptions: no compression, CreateTime, no producer, no leader epoch, base offset 0.
func NewBatchOptions() BatchOptions {
	return BatchOptions{LeaderEpoch: NoLeaderEpoch, Levels: DefaultLevels(), ProducerID: NoProducerID,
		ProducerEpoch: NoProducerEpoch, BaseSequence: NoSequence, DeleteHorizon: NoTimestamp, BaseTimestamp: NoTimestamp, MaxTimestamp: NoTimestamp, LastOffset: -1}
}

// Builder makes one batch at a time: NewBuilder or Reset, Append, Build. Its owner
// is one goroutine. With a codec records are compressed as they come, so that it holds little more than the result.
type Builder struct {
	opt   BatchOptions
	out   []byte // header and payload; without a codec the records go here at once
	raw   []byte // records on their way into comp
	comp  compressor
	limit int // stop storing beyond this size; 0 is no limit
	over  bool

	count    int
	plain    int // size without a codec
	next     int64
	last     int64
	baseTime int64
	maxTime  int64
}

// flushAt is how much a builder collects before it wakes the compressor.
const flushAt = 64 << 10

// NewBuilder starts a batch.
func NewBuilder(opt BatchOptions) *Builder {
	b := &Builder{}
	b.Reset(opt)
	return b
}

// Reset starts another batch, keeping buffers.
func (b *Builder) Reset(opt BatchOptions) {
	if b.comp != nil {
		b.comp.close()
	}
	*b = Builder{opt: opt, out: b.out[:0], raw: b.raw[:0]}
	b.start(nil)
}

// start begins the batch behind dst, or in the builder's own buffer.
func (b *Builder) start(dst []byte) {
	if dst != nil {
		b.out = dst
	}
	b.out = append(b.out, make([]byte, HeaderSize)...)
	if b.opt.Codec != None {
		b.comp = compress(b.opt.Codec, b.opt.Levels, b.out)
		b.out = nil
	}
	b.plain = HeaderSize
	b.next, b.last = b.opt.BaseOffset, b.opt.BaseOffset-1
	b.maxTime, b.baseTime = NoTimestamp, b.opt.BaseTimestamp
	if b.opt.DeleteHorizon != NoTimestamp {
		b.baseTime = b.opt.DeleteHorizon
	}
}

// Append adds a record at the next offset. Key, value and headers are copied.
// With LogAppendTime the timestamp is stored as well, where readers do not see it, as in Kafka.
func (b *Builder) Append(timestamp int64, key, value []byte, headers []Header) {
	b.AppendAt(b.next, timestamp, key, value, headers)
}

// AppendAt adds a record at an offset beyond the last one, as compaction needs.
func (b *Builder) AppendAt(offset, timestamp int64, key, value []byte, headers []Header) {
	timeDelta, delta := b.place(offset, timestamp)
	size := 1 + varintSize(timeDelta) + varintSize(delta) + bytesSize(key) + bytesSize(value) + varintSize(int64(len(headers)))
	for i := range headers {
		size += varintSize(int64(len(headers[i].Key))) + len(headers[i].Key) + bytesSize(headers[i].Value)
	}
	invariant.Check(size <= math.MaxInt32, "record is larger than its length can say")
	p := b.begin()
	p = appendVarint(p, int64(size))
	p = append(p, 0)
	p = appendVarint(p, timeDelta)
	p = appendVarint(p, delta)
	p = appendBytes(p, key)
	p = appendBytes(p, value)
	p = appendVarint(p, int64(len(headers)))
	for i := range headers {
		p = appendVarint(p, int64(len(headers[i].Key)))
		p = append(p, headers[i].Key...)
		p = appendBytes(p, headers[i].Value)
	}
	b.end(p, varintSize(int64(size))+size)
}

// AppendRecord adds a record as it is, at its own offset.
func (b *Builder) AppendRecord(r *Record) {
	b.AppendAt(r.Offset, r.Timestamp, r.Key, r.Value, r.Headers)
}

// beginBody writes the front of the next record, as Kafka rebuilds it, with attributes 0; key,
// value and headers as they lie, tail bytes of them, are to follow through write.
func (b *Builder) beginBody(timestamp int64, tail int) {
	timeDelta, delta := b.place(b.next, timestamp)
	size := 1 + varintSize(timeDelta) + varintSize(delta) + tail
	p := b.begin()
	p = appendVarint(p, int64(size))
	p = append(p, 0)
	p = appendVarint(p, timeDelta)
	p = appendVarint(p, delta)
	b.end(p, varintSize(int64(size))+size)
}

// place gives the next record its deltas.
func (b *Builder) place(offset, timestamp int64) (timeDelta, delta int64) {
	invariant.Check(offset > b.last && offset-b.opt.BaseOffset <= math.MaxInt32, "record offset does not fit into the batch")
	if b.count == 0 && b.opt.BaseTimestamp == NoTimestamp && b.opt.DeleteHorizon == NoTimestamp {
		b.baseTime = timestamp
	}
	b.maxTime = max(b.maxTime, timestamp)
	b.count++
	b.last, b.next = offset, offset+1
	return timestamp - b.baseTime, offset - b.opt.BaseOffset
}

// begin and end frame what is appended to the buffer of the moment.
func (b *Builder) begin() []byte {
	if b.comp != nil {
		return b.raw
	}
	return b.out
}

func (b *Builder) end(p []byte, size int) {
	b.plain += size
	if b.over {
		return
	}
	if b.comp != nil {
		b.raw = p
		b.drain()
	} else {
		b.out = p
		b.over = b.limit > 0 && len(p) > b.limit
	}
}

// write adds raw bytes to the record begun with beginBody.
func (b *Builder) write(p []byte) {
	if b.over {
		return
	}
	if b.comp == nil {
		b.out = append(b.out, p...)
		b.over = b.limit > 0 && len(b.out) > b.limit
		return
	}
	if len(p) >= flushAt {
		b.comp.write(b.raw)
		b.raw = b.raw[:0]
		b.comp.write(p)
	} else {
		b.raw = append(b.raw, p...)
	}
	b.drain()
}

func (b *Builder) drain() {
	if len(b.raw) >= flushAt {
		b.comp.write(b.raw)
		b.raw = b.raw[:0]
	}
	b.over = b.limit > 0 && b.comp.size() > b.limit
}

// Count is the number of records so far.
func (b *Builder) Count() int { return b.count }

// UncompressedBytes is the size the batch would have now without a codec.
func (b *Builder) UncompressedBytes() int { return b.plain }

// MaxTimestamp is the greatest of the records' own timestamps so far, or NoTimestamp.
func (b *Builder) MaxTimestamp() int64 { return b.maxTime }

// NextOffset is where Append would put the next record.
func (b *Builder) NextOffset() int64 { return b.next }

// Build appends the finished batch to dst. The builder needs a Reset afterwards.
// A batch without records is empty but whole, as compaction keeps them; give its LastOffset.
func (b *Builder) Build(dst []byte) []byte {
	return append(dst, b.finish()...)
}

// finish returns the batch in the builder's own buffer.
func (b *Builder) finish() Batch {
	if b.count == 0 {
		b.maxTime = b.opt.MaxTimestamp
	} else if b.opt.TimestampType == LogAppendTime {
		b.maxTime = b.opt.AppendTime
	}
	if b.comp != nil {
		if b.count > 0 {
			b.comp.write(b.raw)
		}
		b.out = b.comp.close()
		b.comp = nil
		if b.count == 0 {
			b.out = b.out[:HeaderSize]
			b.opt.Codec = None
		}
	}
	h := Batch(b.out)
	be := binary.BigEndian
	be.PutUint64(h, uint64(b.opt.BaseOffset))
	be.PutUint32(h[posLength:], uint32(len(h)-LogOverhead))
	be.PutUint32(h[posEpoch:], uint32(b.opt.LeaderEpoch))
	h[posMagic] = 2
	attr := int16(b.opt.Codec) | int16(b.opt.TimestampType)<<3
	if b.opt.Transactional {
		attr |= attrTransactional
	}
	if b.opt.Control {
		attr |= attrControl
	}
	if b.opt.DeleteHorizon != NoTimestamp {
		attr |= attrDeleteHorizon
	}
	be.PutUint16(h[posAttributes:], uint16(attr))
	be.PutUint32(h[posLastDelta:], uint32(max(b.last, b.opt.LastOffset)-b.opt.BaseOffset))
	be.PutUint64(h[posBaseTime:], uint64(b.baseTime))
	be.PutUint64(h[posMaxTime:], uint64(b.maxTime))
	be.PutUint64(h[posProducerID:], uint64(b.opt.ProducerID))
	be.PutUint16(h[posProducerEp:], uint16(b.opt.ProducerEpoch))
	be.PutUint32(h[posBaseSeq:], uint32(b.opt.BaseSequence))
	be.PutUint32(h[posCount:], uint32(b.count))
	h.UpdateCRC()
	return h
}

var builders = sync.Pool{New: func() any { return &Builder{} }}

// recycle gives a builder of the pool back. What it built is gone.
func (b *Builder) recycle() {
	if b.comp != nil {
		b.out = b.comp.close()
		b.comp = nil
	}
	if cap(b.out) <= carryKeep && cap(b.raw) <= carryKeep {
		builders.Put(b)
	}
}

func bytesSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(int64(len(b))) + len(b)
}

func appendBytes(p, b []byte) []byte {
	if b == nil {
		return append(p, 1) // -1
	}
	return append(appendVarint(p, int64(len(b))), b...)
}
