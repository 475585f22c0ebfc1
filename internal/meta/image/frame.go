package image

import (
	"errors"
	"fmt"

	"samsa/internal/wire/protocol"
)

// Record is the body of one metadata record.
type Record = protocol.Record

// Versioned is a record with the version it is, or was, written at.
type Versioned struct {
	Record  Record
	Version int16
}

// ErrFrame is returned when a record value is not a frame this software can read. The node must
// not go on without the record (K-76).
var ErrFrame = errors.New("metadata record cannot be read")

// AppendFrame writes one record value (K-76):
//
//	uvarint frame version = 1 | uvarint api key | uvarint record version | body
func AppendFrame(dst []byte, v Versioned) ([]byte, error) {
	return protocol.AppendMetadataRecord(dst, v.Record.RecordKey(), v.Version, v.Record)
}

// ReadFrame reads one record value. Byte fields alias b.
func ReadFrame(b []byte) (Versioned, error) {
	_, version, record, err := protocol.ReadMetadataRecord(b)
	if err != nil {
		return Versioned{}, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return Versioned{record, version}, nil
}

// RecordName is the record's type for logs and messages, such as PartitionChangeRecord.
func RecordName(r Record) string {
	if name := protocol.MetadataRecordName(r.RecordKey()); name != "" {
		return name
	}
	return fmt.Sprintf("%T", r)
}
