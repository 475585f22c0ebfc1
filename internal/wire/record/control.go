package record

import (
	"encoding/binary"

	"samsa/internal/base/kerr"
)

// ControlType is the type in a control record's key (D-07).
type ControlType int16

const (
	ControlAbort          ControlType = 0
	ControlCommit         ControlType = 1
	ControlLeaderChange   ControlType = 2
	ControlSnapshotHeader ControlType = 3
	ControlSnapshotFooter ControlType = 4
	ControlKRaftVersion   ControlType = 5
	ControlKRaftVoters    ControlType = 6
)

// ControlKey is the key of a control record: int16 version 0, int16 type.
func ControlKey(t ControlType) []byte { return []byte{0, 0, byte(t >> 8), byte(t)} }

// ParseControlKey reads a control record's key of any version; false when it is
// too short. Unknown types are returned as they are, for readers to skip.
func ParseControlKey(key []byte) (ControlType, bool) {
	if len(key) < 4 || int16(binary.BigEndian.Uint16(key)) < 0 {
		return 0, false
	}
	return ControlType(binary.BigEndian.Uint16(key[2:])), true
}

// ControlTypeOf is the type of a control batch, from its only record.
func ControlTypeOf(b Batch) (ControlType, error) {
	t, _, err := controlRecord(b)
	return t, err
}

// controlRecord reads the first record of a control batch. The value is copied.
func controlRecord(b Batch) (t ControlType, value []byte, err error) {
	if !b.IsControl() {
		return 0, nil, kerr.InvalidRecord.With("batch at offset %d is not a control batch", b.BaseOffset())
	}
	for r, err := range Records(b) {
		if err != nil {
			return 0, nil, err
		}
		t, ok := ParseControlKey(r.Key)
		if !ok {
			return 0, nil, kerr.InvalidRecord.With("control record at offset %d has a bad key", r.Offset)
		}
		return t, append([]byte(nil), r.Value...), nil
	}
	return 0, nil, kerr.InvalidRecord.With("control batch at offset %d has no record", b.BaseOffset())
}

// AppendEndTxnMarker appends the 78-byte batch of a transaction marker: its value is
// int16 version 0, int32 coordinator epoch.
func AppendEndTxnMarker(dst []byte, offset int64, leaderEpoch int32, timestamp int64, producerID int64, producerEpoch int16,
	commit bool, coordinatorEpoch int32) []byte {
	opt := NewBatchOptions()
	opt.BaseOffset, opt.LeaderEpoch = offset, leaderEpoch
	opt.ProducerID, opt.ProducerEpoch = producerID, producerEpoch
	opt.Transactional, opt.Control = true, true
	b := NewBuilder(opt)
	t := ControlAbort
	if commit {
		t = ControlCommit
	}
	b.Append(timestamp, ControlKey(t), binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(coordinatorEpoch)), nil)
	return b.Build(dst)
}

// EndTxnMarker reads a transaction marker batch. The error is kerr.InvalidRecord for any other batch.
func EndTxnMarker(b Batch) (commit bool, coordinatorEpoch int32, err error) {
	t, value, err := controlRecord(b)
	if err != nil {
		return false, 0, err
	}
	if t != ControlAbort && t != ControlCommit {
		return false, 0, kerr.InvalidRecord.With("control batch at offset %d is of type %d, not a transaction marker", b.BaseOffset(), t)
	}
	if len(value) < 6 || int16(binary.BigEndian.Uint16(value)) < 0 {
		return false, 0, kerr.InvalidRecord.With("transaction marker at offset %d has a bad value", b.BaseOffset())
	}
	return t == ControlCommit, int32(binary.BigEndian.Uint32(value[2:])), nil
}
