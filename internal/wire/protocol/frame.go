package protocol

import (
	"encoding/binary"
	"fmt"
)

// A record value of the metadata log (K-76):
//
//	frame version  uvarint  1
//	record key     uvarint
//	record version uvarint
//	body           the record at that version, to the end of the value
const metadataFrameVersion = 1

// AppendMetadataRecord writes the value of a metadata record behind dst.
func AppendMetadataRecord(dst []byte, key, version int16, m Record) ([]byte, error) {
	if m.RecordKey() != key {
		return dst, fmt.Errorf("%w: a record of key %d written as key %d", ErrVersion, m.RecordKey(), key)
	}
	b := binary.AppendUvarint(dst, metadataFrameVersion)
	b = binary.AppendUvarint(b, uint64(uint16(key)))
	b = binary.AppendUvarint(b, uint64(uint16(version)))
	b, err := m.Append(b, version)
	if err != nil {
		return dst, err
	}
	return b, nil
}

// ReadMetadataRecord reads the value of a metadata record. Unknown keys, unknown versions and
// bytes behind the body are errors.
func ReadMetadataRecord(value []byte) (key, version int16, m Record, err error) {
	r := newReader(value)
	frame, k, v := r.uvarint(), r.uvarint(), r.uvarint()
	switch {
	case !r.ok():
		return 0, 0, nil, fmt.Errorf("%w: metadata record of %d bytes: %s in its frame", ErrMalformed, len(value), r.reason)
	case frame == 0:
		return 0, 0, nil, fmt.Errorf("%w: metadata record of frame version 0, written by a 2.8 preview of KRaft", ErrVersion)
	case frame != metadataFrameVersion:
		return 0, 0, nil, fmt.Errorf("%w: metadata record of frame version %d, want %d", ErrVersion, frame, metadataFrameVersion)
	case k > 0x7fff || v > 0x7fff:
		return 0, 0, nil, fmt.Errorf("%w: metadata record of key %d, version %d", ErrVersion, k, v)
	}
	key, version = int16(k), int16(v)
	m = NewMetadataRecord(key)
	if m == nil {
		return key, version, nil, fmt.Errorf("%w: there is no metadata record of key %d", ErrVersion, key)
	}
	rest, err := m.Read(r.b, version)
	if err != nil {
		return key, version, nil, err
	}
	if len(rest) != 0 {
		return key, version, nil, fmt.Errorf("%w: %d bytes behind a %s", ErrMalformed, len(rest), MetadataRecordName(key))
	}
	return key, version, m, nil
}

// AppendRecordKey writes the key of a coordinator's record: its type as int16, then the key's
// fields. Keys have one version, which is not written.
func AppendRecordKey(dst []byte, m Record) ([]byte, error) {
	b, err := m.Append(binary.BigEndian.AppendUint16(dst, uint16(m.RecordKey())), 0)
	if err != nil {
		return dst, err
	}
	return b, nil
}

// RecordType is the type in front of a coordinator's record key, and the key's fields behind it.
func RecordType(key []byte) (recordType int16, fields []byte, err error) {
	if len(key) < 2 {
		return 0, nil, fmt.Errorf("%w: a record key of %d bytes", ErrMalformed, len(key))
	}
	return int16(binary.BigEndian.Uint16(key)), key[2:], nil
}

// AppendVersioned writes version as int16 and m behind it: the value of a coordinator's record,
// or a blob of the consumer protocol.
func AppendVersioned(dst []byte, version int16, m Message) ([]byte, error) {
	b, err := m.Append(binary.BigEndian.AppendUint16(dst, uint16(version)), version)
	if err != nil {
		return dst, err
	}
	return b, nil
}

// ReadVersioned reads what AppendVersioned wrote.
func ReadVersioned(src []byte, m Message) (version int16, rest []byte, err error) {
	if len(src) < 2 {
		return 0, src, fmt.Errorf("%w: %d bytes where a version stands", ErrMalformed, len(src))
	}
	version = int16(binary.BigEndian.Uint16(src))
	rest, err = m.Read(src[2:], version)
	return version, rest, err
}

// ControlRecordType of the key of a control record: int16 version, int16 type (K-77).
type ControlRecordType int16

// The types of control records.
const (
	ControlAbort          ControlRecordType = 0
	ControlCommit         ControlRecordType = 1
	ControlLeaderChange   ControlRecordType = 2
	ControlSnapshotHeader ControlRecordType = 3
	ControlSnapshotFooter ControlRecordType = 4
	ControlKRaftVersion   ControlRecordType = 5
	ControlKRaftVoters    ControlRecordType = 6
)

// AppendControlKey writes the key of a control record.
func AppendControlKey(dst []byte, t ControlRecordType) []byte {
	return append(dst, 0, 0, byte(uint16(t)>>8), byte(t))
}

// ReadControlKey reads the key of a control record. Later versions of the key may be longer;
// negative versions are refused, as Kafka does.
func ReadControlKey(key []byte) (ControlRecordType, error) {
	if len(key) < 4 {
		return 0, fmt.Errorf("%w: a control record key of %d bytes", ErrMalformed, len(key))
	}
	if v := int16(binary.BigEndian.Uint16(key)); v < 0 {
		return 0, fmt.Errorf("%w: a control record key of version %d", ErrVersion, v)
	}
	return ControlRecordType(binary.BigEndian.Uint16(key[2:])), nil
}
