package record

import (
	"encoding/binary"
	"io"

	"samsa/internal/base/kerr"
)

// Formats v0 and v1 (D-08): read, never written. One message:
//
//	 0  8  offset
//	 8  4  size             bytes that follow
//	12  4  crc              CRC-32 of bytes 16..end
//	16  1  magic            0 or 1
//	17  1  attributes       bits 0-2 codec, 3 LogAppendTime (v1)
//	18  8  timestamp        v1 only
//	    4  key length, key     -1 null
//	    4  value length, value -1 null
//
// With a codec the value is a set of such messages, compressed. In v1 their offsets
// count from 0 and the wrapper's offset is that of the last one; in v0 they are absolute.

// legacyUnpackMax bounds what a wrapper may unpack to. Nobody can produce one any
// more; they come from old segments.
const legacyUnpackMax = 512 << 20

type legacyMessage struct {
	offset, timestamp int64
	attributes        int8
	key, value        []byte
}

func parseLegacy(b Batch) (m legacyMessage, err error) {
	bad := kerr.InvalidRecord.With("old message at offset %d: its lengths do not fit", b.BaseOffset())
	m = legacyMessage{offset: b.BaseOffset(), timestamp: b.MaxTimestamp(), attributes: int8(b[posV1Attribute])}
	at := posV1Timestamp
	if b.Magic() == 1 {
		at += 8
	}
	var ok bool
	if m.key, at, ok = readBytes32(b, at); !ok {
		return m, bad
	}
	if m.value, at, ok = readBytes32(b, at); !ok || at != len(b) {
		return m, bad
	}
	return m, nil
}

func readBytes32(b []byte, at int) ([]byte, int, bool) {
	if len(b)-at < 4 {
		return nil, at, false
	}
	n := int(int32(binary.BigEndian.Uint32(b[at:])))
	at += 4
	if n < 0 {
		return nil, at, true
	}
	if n > len(b)-at {
		return nil, at, false
	}
	return b[at : at+n : at+n], at + n, true
}

func (m *legacyMessage) record() Record {
	return Record{Offset: m.offset, Timestamp: m.timestamp, Sequence: NoSequence, Attributes: m.attributes, Key: m.key, Value: m.value}
}

func legacyRecords(b Batch, yield func(*Record, error) bool) error {
	outer, err := parseLegacy(b)
	if err != nil {
		return err
	}
	codec := b.Compression()
	if codec == None {
		r := outer.record()
		if !yield(&r, nil) {
			return errStop
		}
		return nil
	}
	set, err := unpackLegacy(codec, outer.value, b.Magic() == 0)
	if err != nil {
		return err
	}
	// The last inner offset must be known before the first record is out.
	last, count := int64(-1), 0
	for rest := set; len(rest) > 0; count++ {
		var inner Batch
		if inner, rest, err = Next(rest); err != nil {
			return err
		}
		if inner == nil || inner.Magic() != b.Magic() || inner.Compression() != None {
			return kerr.InvalidRecord.With("old message at offset %d: bad inner message %d", b.BaseOffset(), count)
		}
		last = inner.BaseOffset()
	}
	if count == 0 {
		return kerr.InvalidRecord.With("old message at offset %d: nothing inside", b.BaseOffset())
	}
	var shift int64
	if b.Magic() == 1 {
		shift = b.BaseOffset() - last
	}
	for rest := set; len(rest) > 0; {
		var inner Batch
		inner, rest, _ = Next(rest)
		if !inner.ValidCRC() {
			return kerr.CorruptMessage.With("old message at offset %d: checksum of an inner message", b.BaseOffset())
		}
		m, err := parseLegacy(inner)
		if err != nil {
			return err
		}
		r := m.record()
		r.Offset += shift
		if b.TimestampType() == LogAppendTime {
			r.Timestamp = outer.timestamp
		}
		if !yield(&r, nil) {
			return errStop
		}
	}
	return nil
}

func unpackLegacy(codec Codec, payload []byte, v0 bool) ([]byte, error) {
	if codec == Zstd {
		return nil, errPayload // younger than the format
	}
	src, err := decompress(codec, payload, v0)
	if err != nil {
		return nil, errPayload
	}
	defer src.release()
	var set []byte
	for {
		chunk, err := src.next()
		if err == io.EOF {
			return set, nil
		}
		if err != nil || len(set)+len(chunk) > legacyUnpackMax {
			return nil, errPayload
		}
		set = append(set, chunk...)
	}
}
