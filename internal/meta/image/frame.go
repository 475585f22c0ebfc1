package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"samsa/internal/wire/protocol"
)

// Record is the body of one metadata record.
type Record = protocol.Record

// Versioned is a record with the version it is, or was, written at.
type Versioned struct {
	Record  Record
	Version int16
}

// frameVersion is the only version of the frame around a record.
const frameVersion = 1

// ErrFrame is returned when a record value is not a frame this software can read. The node must
// not go on without the record (K-76).
var ErrFrame = errors.New("metadata record cannot be read")

// AppendFrame writes one record value (K-76):
//
//	uvarint frame version = 1 | uvarint api key | uvarint record version | body
func AppendFrame(dst []byte, v Versioned) ([]byte, error) {
	dst = append(dst, frameVersion)
	dst = binary.AppendUvarint(dst, uint64(v.Record.RecordKey()))
	dst = binary.AppendUvarint(dst, uint64(v.Version))
	return v.Record.Append(dst, v.Version)
}

// ReadFrame reads one record value. Byte fields alias b.
func ReadFrame(b []byte) (Versioned, error) {
	frame, rest, ok := uvarint(b)
	switch {
	case !ok:
		return Versioned{}, fmt.Errorf("%w: no frame version", ErrFrame)
	case frame == 0:
		return Versioned{}, fmt.Errorf("%w: frame version 0 is of the 2.8 preview, whose logs no later release reads", ErrFrame)
	case frame != frameVersion:
		return Versioned{}, fmt.Errorf("%w: frame version %d, only %d is known", ErrFrame, frame, frameVersion)
	}
	key, rest, ok := uvarint(rest)
	if !ok || key > math.MaxInt16 {
		return Versioned{}, fmt.Errorf("%w: no api key", ErrFrame)
	}
	version, rest, ok := uvarint(rest)
	if !ok || version > math.MaxInt16 {
		return Versioned{}, fmt.Errorf("%w: record type %d has no version", ErrFrame, key)
	}
	record := protocol.NewMetadataRecord(int16(key))
	if record == nil {
		return Versioned{}, fmt.Errorf("%w: record type %d is unknown", ErrFrame, key)
	}
	rest, err := record.Read(rest, int16(version))
	if err != nil {
		return Versioned{}, fmt.Errorf("%w: %s version %d: %w", ErrFrame, recordName(record), version, err)
	}
	if len(rest) > 0 {
		return Versioned{}, fmt.Errorf("%w: %d bytes follow %s version %d", ErrFrame, len(rest), recordName(record), version)
	}
	return Versioned{record, int16(version)}, nil
}

// uvarint reads an unsigned varint of at most 5 bytes, as Kafka writes 32-bit ones.
func uvarint(b []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 5 {
		return 0, b, false
	}
	return v, b[n:], true
}

// recordName is the record's type for messages, such as PartitionChangeRecord.
func recordName(r Record) string {
	if name := protocol.MetadataRecordName(r.RecordKey()); name != "" {
		return name
	}
	return fmt.Sprintf("%T", r)
}

// RecordName is the record's type for logs, such as PartitionChangeRecord.
func RecordName(r Record) string { return recordName(r) }
