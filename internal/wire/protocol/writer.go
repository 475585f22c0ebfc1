package protocol

import (
	"encoding/binary"
	"fmt"
	"math"

	"samsa/internal/base/model"
)

// writer appends values to b. The first failure sticks and is reported by done.
type writer struct {
	b      []byte
	field  string // the field that cannot be written
	reason string
	noVer  bool
	split  *split // not nil: leave record bytes out
}

func (w *writer) version(v, lo, hi int16) bool {
	w.noVer = v < lo || v > hi
	return !w.noVer
}

func (w *writer) fail(field, reason string) {
	if w.reason == "" {
		w.field, w.reason = field, reason
	}
}

// lacks: the version has no such field, and dropping its value would change the meaning.
func (w *writer) lacks(field string) { w.fail(field, "is set, and the version does not have it") }

func (w *writer) null(field string) { w.fail(field, "is null, and the version does not allow that") }

func (w *writer) done(dst []byte, name string, v int16) ([]byte, error) {
	switch {
	case w.noVer:
		return dst, fmt.Errorf("%w: %s has no version %d", ErrVersion, name, v)
	case w.reason != "":
		return dst, fmt.Errorf("%w: %s version %d: %s %s", ErrVersion, name, v, w.field, w.reason)
	}
	return w.b, nil
}

func (w *writer) int8(x int8)       { w.b = append(w.b, byte(x)) }
func (w *writer) int16(x int16)     { w.b = binary.BigEndian.AppendUint16(w.b, uint16(x)) }
func (w *writer) uint16(x uint16)   { w.b = binary.BigEndian.AppendUint16(w.b, x) }
func (w *writer) int32(x int32)     { w.b = binary.BigEndian.AppendUint32(w.b, uint32(x)) }
func (w *writer) uint32(x uint32)   { w.b = binary.BigEndian.AppendUint32(w.b, x) }
func (w *writer) int64(x int64)     { w.b = binary.BigEndian.AppendUint64(w.b, uint64(x)) }
func (w *writer) float64(x float64) { w.b = binary.BigEndian.AppendUint64(w.b, math.Float64bits(x)) }
func (w *writer) uuid(x model.UUID) { w.b = append(w.b, x[:]...) }

func (w *writer) bool(x bool) {
	if x {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

func (w *writer) uvarint(x uint32) { w.b = binary.AppendUvarint(w.b, uint64(x)) }

// count writes the length of an array or byte slice that is not null.
func (w *writer) count(n int, flex bool) {
	if n >= math.MaxInt32 {
		w.fail("an array or byte field", "is longer than 2^31-2")
	}
	if flex {
		w.uvarint(uint32(n) + 1)
	} else {
		w.int32(int32(n))
	}
}

func (w *writer) ncount(n int, null, flex bool) {
	switch {
	case !null:
		w.count(n, flex)
	case flex:
		w.b = append(w.b, 0)
	default:
		w.int32(-1)
	}
}

func (w *writer) str(s string, flex bool) {
	if len(s) > math.MaxInt16 {
		w.fail("a string field", "is longer than 32767 bytes")
	}
	if flex {
		w.uvarint(uint32(len(s)) + 1)
	} else {
		w.int16(int16(len(s)))
	}
	w.b = append(w.b, s...)
}

func (w *writer) nstr(s *string, flex bool) {
	switch {
	case s != nil:
		w.str(*s, flex)
	case flex:
		w.b = append(w.b, 0)
	default:
		w.int16(-1)
	}
}

func (w *writer) bytes(b []byte, flex, nullable bool) {
	w.ncount(len(b), nullable && b == nil, flex)
	w.b = append(w.b, b...)
}

func (w *writer) records(b []byte, flex, nullable bool) {
	if w.split == nil {
		w.bytes(b, flex, nullable)
		return
	}
	w.split.cut(w, flex, nullable)
}

func (w *writer) int8s(s []int8, flex, nullable bool) {
	w.ncount(len(s), nullable && s == nil, flex)
	for _, x := range s {
		w.int8(x)
	}
}

func (w *writer) int16s(s []int16, flex, nullable bool) {
	w.ncount(len(s), nullable && s == nil, flex)
	for _, x := range s {
		w.int16(x)
	}
}

func (w *writer) int32s(s []int32, flex, nullable bool) {
	w.ncount(len(s), nullable && s == nil, flex)
	for _, x := range s {
		w.int32(x)
	}
}

func (w *writer) int64s(s []int64, flex, nullable bool) {
	w.ncount(len(s), nullable && s == nil, flex)
	for _, x := range s {
		w.int64(x)
	}
}

func (w *writer) uuids(s []model.UUID, flex, nullable bool) {
	w.ncount(len(s), nullable && s == nil, flex)
	for _, x := range s {
		w.uuid(x)
	}
}

func (w *writer) strs(s []string, flex, nullable bool) {
	w.ncount(len(s), nullable && s == nil, flex)
	for _, x := range s {
		w.str(x, flex)
	}
}

func (w *writer) bytess(s [][]byte, flex, nullable bool) {
	w.ncount(len(s), nullable && s == nil, flex)
	for _, x := range s {
		w.bytes(x, flex, false)
	}
}

// tagSection writes known and unknown tagged fields in ascending order. Their count, and the
// size of each known one, go in front of what they count: one byte is left free for them, and
// in the rare case that they need more the bytes behind move up.
type tagSection struct {
	start int
	n     uint32
	raw   []RawTag
	next  int64 // the least tag that may come now
}

// tags writes a section without known tags.
func (w *writer) tags(raw []RawTag) {
	if len(raw) == 0 {
		w.b = append(w.b, 0)
		return
	}
	t := w.openTags(raw)
	t.end(w)
}

func (w *writer) openTags(raw []RawTag) tagSection {
	w.b = append(w.b, 0)
	return tagSection{start: len(w.b), raw: raw}
}

func (t *tagSection) rawBelow(w *writer, limit int64) {
	for len(t.raw) > 0 && int64(t.raw[0].Tag) < limit {
		r := t.raw[0]
		if int64(r.Tag) < t.next {
			w.fail("UnknownTags", "are not in ascending order, or one of them is a known tag")
			return
		}
		w.uvarint(r.Tag)
		w.uvarint(uint32(len(r.Data)))
		w.b = append(w.b, r.Data...)
		t.next = int64(r.Tag) + 1
		t.n++
		t.raw = t.raw[1:]
	}
}

// open starts the known tag and returns where its value begins.
func (t *tagSection) open(w *writer, tag uint32) int {
	t.rawBelow(w, int64(tag))
	w.uvarint(tag)
	t.next = int64(tag) + 1
	t.n++
	w.b = append(w.b, 0)
	return len(w.b)
}

func (t *tagSection) close(w *writer, at int) { w.patch(at, uint32(len(w.b)-at)) }

func (t *tagSection) end(w *writer) {
	t.rawBelow(w, math.MaxInt64)
	w.patch(t.start, t.n)
}

// patch puts the varint x into the byte before at, making room for more bytes if it needs them.
func (w *writer) patch(at int, x uint32) {
	if x < 0x80 {
		w.b[at-1] = byte(x)
		return
	}
	var v [binary.MaxVarintLen32]byte
	n := binary.PutUvarint(v[:], uint64(x))
	w.b = append(w.b, v[:n-1]...)
	copy(w.b[at+n-1:], w.b[at:len(w.b)-(n-1)])
	copy(w.b[at-1:], v[:n])
}
