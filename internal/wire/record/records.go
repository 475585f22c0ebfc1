package record

import (
	"errors"
	"iter"

	"samsa/internal/base/kerr"
)

// Record is one record. Slices are borrowed: they are valid until the next one is read.
type Record struct {
	Offset     int64
	Timestamp  int64
	Sequence   int32 // NoSequence when the batch has none
	Attributes int8
	Key, Value []byte // nil is null, empty is not
	Headers    []Header
}

// Header is a record header.
type Header struct {
	Key   string
	Value []byte // nil is null
}

// fields are the parts of a record's body, still as they lie.
type fields struct {
	attributes int8
	timeDelta  int64
	delta      int32
	key, value []byte
	keyAt      int    // where in the body the length of the key is
	headers    []byte // after their count
	count      int    // of headers
}

var emptyBytes = []byte{}

// parse reads the body of a record, what follows its length, and checks that it fills it (D-03).
func (f *fields) parse(b []byte) error {
	if len(b) == 0 {
		return errRecord
	}
	f.attributes = int8(b[0])
	at, n := 1, 0
	// Most numbers are of one byte: those are read here, without a call.
	if at < len(b) && b[at] < 0x80 {
		f.timeDelta = unzig(b[at])
		at++
	} else if f.timeDelta, n = readVarlong(b[at:]); n > 0 {
		at += n
	} else {
		return errRecord
	}
	if at < len(b) && b[at] < 0x80 {
		f.delta = int32(unzig(b[at]))
		at++
	} else if f.delta, n = readVarint(b[at:]); n > 0 {
		at += n
	} else {
		return errRecord
	}
	f.keyAt = at
	if f.key, at = readBytes(b, at); at < 0 {
		return errRecord
	}
	if f.value, at = readBytes(b, at); at < 0 {
		return errRecord
	}
	if at+1 == len(b) && b[at] == 0 {
		f.headers, f.count = nil, 0
		return nil
	}
	count, n := readVarint(b[at:])
	if n <= 0 {
		return errRecord
	}
	at += n
	if count < 0 || int(count) > len(b)-at {
		return errRecord
	}
	f.headers, f.count = b[at:], int(count)
	for range count {
		size, n := readVarint(b[at:])
		if n <= 0 || size < 0 || int(size) > len(b)-at-n {
			return errRecord
		}
		at += n + int(size)
		if _, at = readBytes(b, at); at < 0 {
			return errRecord
		}
	}
	if at != len(b) {
		return errRecord
	}
	return nil
}

// readBytes reads a length and as many bytes; any negative length is null. The
// new position is -1 when b is too short.
func readBytes(b []byte, at int) ([]byte, int) {
	var size int32
	if at < len(b) && b[at] < 0x80 {
		size = int32(unzig(b[at]))
		at++
	} else {
		var n int
		if size, n = readVarint(b[at:]); n <= 0 {
			return nil, -1
		}
		at += n
	}
	if size < 0 {
		return nil, at
	}
	if int(size) > len(b)-at {
		return nil, -1
	}
	if size == 0 {
		return emptyBytes, at
	}
	return b[at : at+int(size) : at+int(size)], at + int(size)
}

// appendHeaders reads what parse has checked.
func (f *fields) appendHeaders(dst []Header) []Header {
	b, at := f.headers, 0
	for range f.count {
		size, n := readVarint(b[at:])
		key := string(b[at+n : at+n+int(size)])
		var value []byte
		value, at = readBytes(b, at+n+int(size))
		dst = append(dst, Header{Key: key, Value: value})
	}
	return dst
}

// maxRecordBody is the greatest body Kafka's Java takes: an array.
const maxRecordBody = 2147483639

// Records iterates the records of one whole batch of any format, decompressing
// as it goes, and checks counts and bounds strictly (D-03, D-04). The record is borrowed: valid
// until the next iteration. After an error it stops. A malformed record is
// kerr.InvalidRecord, a payload that does not decompress kerr.CorruptMessage.
// Memory is bounded by the greatest record. The checksum is not looked at.
func Records(b Batch) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		var err error
		if len(b) < HeaderUpToMagic || CheckHeader(b) != nil || b.SizeInBytes() > len(b) {
			err = kerr.CorruptMessage.With("not a whole record batch")
		} else if b = b[:b.SizeInBytes()]; b.Magic() < 2 {
			err = legacyRecords(b, yield)
		} else {
			err = v2Records(b, yield)
		}
		if err == nil || err == errStop {
			return
		}
		yield(nil, classify(b, err))
	}
}

// errStop: the caller has seen enough.
var errStop = errors.New("stop")

func classify(b Batch, err error) error {
	var known *kerr.Error
	switch {
	case errors.As(err, &known):
		return err
	case err == errPayload, err == errTooBig:
		return kerr.CorruptMessage.With("batch at offset %d: %s", b.BaseOffset(), err.Error())
	}
	return kerr.InvalidRecord.With("batch at offset %d: %s", b.BaseOffset(), err.Error())
}

func v2Records(b Batch, yield func(*Record, error) bool) error {
	count := b.Count()
	if count < 0 {
		return kerr.InvalidRecord.With("Found invalid record count %d in magic v2 batch", count)
	}
	if count == 0 {
		// Compaction leaves an empty payload, or the few bytes of an empty stream.
		if b.Compression() == None && len(b.Payload()) > 0 {
			return errLeft
		}
		return nil
	}
	var s stream
	if err := s.start(b, 0); err != nil {
		return err
	}
	defer s.stop()
	c := carries.Get().(*carry)
	defer c.release()
	var (
		f        fields
		r        Record
		base     = b.BaseOffset()
		baseTime = b.BaseTimestamp()
		baseSeq  = b.BaseSequence()
		appended = b.TimestampType() == LogAppendTime
		headers  []Header
	)
	for range count {
		size, _, err := s.varint()
		if err != nil {
			return err
		}
		if size < 0 || size > maxRecordBody {
			return errRecord
		}
		body, err := s.body(int(size), c)
		if err != nil {
			return err
		}
		if err := f.parse(body); err != nil {
			return err
		}
		headers = f.appendHeaders(headers[:0])
		r = Record{Offset: base + int64(f.delta), Timestamp: baseTime + f.timeDelta, Sequence: NoSequence,
			Attributes: f.attributes, Key: f.key, Value: f.value, Headers: headers}
		if appended {
			r.Timestamp = b.MaxTimestamp()
		}
		if baseSeq >= 0 {
			r.Sequence = AddSequence(baseSeq, f.delta)
		}
		if !yield(&r, nil) {
			return errStop
		}
	}
	return s.drained()
}

// FirstOffset is the offset of the first record; it decompresses a v0 or v1 wrapper.
func FirstOffset(b Batch) (int64, error) {
	if b.Magic() >= 2 {
		return b.BaseOffset(), nil
	}
	for r, err := range Records(b) {
		if err != nil {
			return 0, err
		}
		return r.Offset, nil
	}
	return b.BaseOffset(), nil
}
