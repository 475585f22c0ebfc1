package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// Sizes of the fixed parts of a batch.
const (
	// LogOverhead is the part before what batchLength counts: base offset and length.
	LogOverhead = 12
	// HeaderSize is the size of a v2 batch without records.
	HeaderSize = 61
	// HeaderUpToMagic is what must be known of a batch of any format to tell which one it is.
	HeaderUpToMagic = 17

	minLength = 14 // the smallest batchLength: an empty v0 message

	posLength      = 8
	posEpoch       = 12
	posMagic       = 16
	posCRC         = 17
	posAttributes  = 21
	posLastDelta   = 23
	posBaseTime    = 27
	posMaxTime     = 35
	posProducerID  = 43
	posProducerEp  = 51
	posBaseSeq     = 53
	posCount       = 57
	posV1Attribute = 17 // v0 and v1: crc 12, magic 16, attributes 17, timestamp 18 (v1 only)
	posV1Timestamp = 18

	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

// Values that mean "none".
const (
	NoTimestamp     int64 = -1
	NoProducerID    int64 = -1
	NoProducerEpoch int16 = -1
	NoSequence      int32 = -1
	NoLeaderEpoch   int32 = -1
)

// TimestampType says whose clock a timestamp is from.
type TimestampType int8

const (
	CreateTime    TimestampType = 0
	LogAppendTime TimestampType = 1
)

func (t TimestampType) String() string {
	if t == LogAppendTime {
		return "LogAppendTime"
	}
	return "CreateTime"
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is one batch as it lies on disk and wire. Header accessors read the first
// HeaderSize bytes only, so a Batch may also be just that prefix.
//
// A Batch from Split or Next may be of format v0 or v1 (one message, perhaps a
// wrapper around compressed ones); the accessors then answer as Kafka's do: no
// producer, no epoch, not transactional, the offset of the last message.
type Batch []byte

func (b Batch) i16(at int) int16 { return int16(binary.BigEndian.Uint16(b[at:])) }
func (b Batch) i32(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }
func (b Batch) i64(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }

// Magic is the format: 2, or 0 or 1 for an old message.
func (b Batch) Magic() int8 { return int8(b[posMagic]) }

// SizeInBytes is the size of the whole batch according to its length field.
func (b Batch) SizeInBytes() int { return LogOverhead + int(b.i32(posLength)) }

// BaseOffset is the offset of the first record ever in the batch. For v0 and v1
// it is the offset of the last one: see FirstOffset.
func (b Batch) BaseOffset() int64 { return b.i64(0) }

// LastOffset is the offset of the last record ever in the batch, which compaction may have removed.
func (b Batch) LastOffset() int64 {
	if b.Magic() < 2 {
		return b.i64(0)
	}
	return b.i64(0) + int64(b.i32(posLastDelta))
}

// NextOffset is LastOffset + 1.
func (b Batch) NextOffset() int64 { return b.LastOffset() + 1 }

// LastOffsetDelta is LastOffset - BaseOffset.
func (b Batch) LastOffsetDelta() int32 {
	if b.Magic() < 2 {
		return 0
	}
	return b.i32(posLastDelta)
}

// LeaderEpoch is the epoch of the leader that wrote the batch, or NoLeaderEpoch.
func (b Batch) LeaderEpoch() int32 {
	if b.Magic() < 2 {
		return NoLeaderEpoch
	}
	return b.i32(posEpoch)
}

// CRC is the stored checksum.
func (b Batch) CRC() uint32 {
	if b.Magic() < 2 {
		return binary.BigEndian.Uint32(b[LogOverhead:])
	}
	return binary.BigEndian.Uint32(b[posCRC:])
}

// Attributes is the attributes field.
func (b Batch) Attributes() int16 {
	if b.Magic() < 2 {
		return int16(b[posV1Attribute])
	}
	return b.i16(posAttributes)
}

// Compression is the codec; values 5 to 7 are not valid ones.
func (b Batch) Compression() Codec { return Codec(b.Attributes() & attrCodec) }

// TimestampType of all records in the batch.
func (b Batch) TimestampType() TimestampType {
	if b.Magic() == 0 {
		return CreateTime
	}
	return TimestampType(b.Attributes() & attrLogAppendTime >> 3)
}

// IsTransactional says whether the records, or the marker, belong to a transaction.
func (b Batch) IsTransactional() bool {
	return b.Magic() >= 2 && b.i16(posAttributes)&attrTransactional != 0
}

// IsControl says whether the batch holds a control record.
func (b Batch) IsControl() bool { return b.Magic() >= 2 && b.i16(posAttributes)&attrControl != 0 }

// DeleteHorizon is the time from which compaction may remove the batch's tombstones, if set (KIP-534).
func (b Batch) DeleteHorizon() (ms int64, ok bool) {
	if b.Magic() < 2 || b.i16(posAttributes)&attrDeleteHorizon == 0 {
		return 0, false
	}
	return b.i64(posBaseTime), true
}

// BaseTimestamp is what record timestamp deltas count from.
func (b Batch) BaseTimestamp() int64 {
	switch b.Magic() {
	case 0:
		return NoTimestamp
	case 1:
		return b.i64(posV1Timestamp)
	}
	return b.i64(posBaseTime)
}

// MaxTimestamp is the greatest timestamp of the records, or NoTimestamp.
func (b Batch) MaxTimestamp() int64 {
	switch b.Magic() {
	case 0:
		return NoTimestamp
	case 1:
		return b.i64(posV1Timestamp)
	}
	return b.i64(posMaxTime)
}

// ProducerID or NoProducerID.
func (b Batch) ProducerID() int64 {
	if b.Magic() < 2 {
		return NoProducerID
	}
	return b.i64(posProducerID)
}

// HasProducerID is ProducerID() > NoProducerID, as Kafka asks.
func (b Batch) HasProducerID() bool { return b.ProducerID() > NoProducerID }

// ProducerEpoch or NoProducerEpoch.
func (b Batch) ProducerEpoch() int16 {
	if b.Magic() < 2 {
		return NoProducerEpoch
	}
	return b.i16(posProducerEp)
}

// BaseSequence is the sequence of the first record, or NoSequence.
func (b Batch) BaseSequence() int32 {
	if b.Magic() < 2 {
		return NoSequence
	}
	return b.i32(posBaseSeq)
}

// LastSequence is the sequence at LastOffset, or NoSequence. It wraps past MaxInt32 to 0 (D-06).
func (b Batch) LastSequence() int32 {
	base := b.BaseSequence()
	if base == NoSequence {
		return NoSequence
	}
	return AddSequence(base, b.LastOffsetDelta())
}

// AddSequence is seq + n, wrapping past MaxInt32 to 0.
func AddSequence(seq, n int32) int32 {
	return int32((int64(seq) + int64(n)) & math.MaxInt32)
}

// Count is the record count of the header: fewer than LastOffsetDelta+1 after compaction,
// perhaps 0. For v0 and v1 it is 1 for a plain message and -1, unknown, for a compressed one.
func (b Batch) Count() int32 {
	if b.Magic() < 2 {
		if b.Compression() != None {
			return -1
		}
		return 1
	}
	return b.i32(posCount)
}

// Payload is the records part, compressed or not, of a whole v2 batch.
func (b Batch) Payload() []byte { return b[HeaderSize:] }

// ComputeCRC is the checksum the batch should carry. The batch must be whole.
func (b Batch) ComputeCRC() uint32 {
	if b.Magic() < 2 {
		return crc32.ChecksumIEEE(b[posMagic:b.SizeInBytes()])
	}
	return crc32.Checksum(b[posAttributes:b.SizeInBytes()], castagnoli)
}

// ValidCRC says whether the batch is whole and its checksum holds. It does not panic on any input.
func (b Batch) ValidCRC() bool {
	if len(b) < HeaderUpToMagic || b.SizeInBytes() > len(b) || b.SizeInBytes() < b.minSize() {
		return false
	}
	return b.CRC() == b.ComputeCRC()
}

func (b Batch) minSize() int {
	switch b.Magic() {
	case 0:
		return LogOverhead + minLength
	case 1:
		return LogOverhead + minLength + 8
	}
	return HeaderSize
}

// SetBaseOffset and SetLeaderEpoch change what the checksum does not cover.
func (b Batch) SetBaseOffset(offset int64) { binary.BigEndian.PutUint64(b, uint64(offset)) }

// SetLeaderEpoch sets the partition leader epoch of a v2 batch.
func (b Batch) SetLeaderEpoch(epoch int32) { binary.BigEndian.PutUint32(b[posEpoch:], uint32(epoch)) }

// SetMaxTimestamp sets timestamp type and max timestamp, and a new checksum if that changed
// anything. Like Kafka it then also clears the unused attribute bits.
func (b Batch) SetMaxTimestamp(t TimestampType, ms int64) {
	if b.TimestampType() == t && b.MaxTimestamp() == ms {
		return
	}
	attr := b.i16(posAttributes)&(attrCodec|attrTransactional|attrControl|attrDeleteHorizon) | int16(t)<<3
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(attr))
	binary.BigEndian.PutUint64(b[posMaxTime:], uint64(ms))
	b.UpdateCRC()
}

// UpdateCRC stores the checksum of a whole v2 batch after its header or records changed.
func (b Batch) UpdateCRC() { binary.BigEndian.PutUint32(b[posCRC:], b.ComputeCRC()) }

// String is a line for logs.
func (b Batch) String() string {
	if len(b) < HeaderUpToMagic || b.Magic() >= 2 && len(b) < HeaderSize || len(b) < posV1Timestamp+8 {
		return fmt.Sprintf("Batch(%d bytes)", len(b))
	}
	return fmt.Sprintf("Batch(magic=%d, offsets=[%d, %d], count=%d, leaderEpoch=%d, producer=%d/%d, sequence=[%d, %d], "+
		"transactional=%t, control=%t, codec=%v, %v, size=%d)", b.Magic(), b.BaseOffset(), b.LastOffset(), b.Count(),
		b.LeaderEpoch(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.LastSequence(),
		b.IsTransactional(), b.IsControl(), b.Compression(), b.TimestampType(), b.SizeInBytes())
}
