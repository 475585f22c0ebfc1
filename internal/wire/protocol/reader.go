package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"samsa/internal/base/model"
)

// Bounds of what one Read may allocate: see the package doc.
const (
	ReadFactor = 16
	ReadFloor  = 1 << 20
)

// firstChunk is how many elements of an array are made before the first of them has been read.
const firstChunk = 128

// ErrMalformed is returned when bytes are not a message of the version asked for.
var ErrMalformed = errors.New("malformed message")

// ErrVersion is returned when a message has no such version, or when it holds what the version cannot carry.
var ErrVersion = errors.New("unsupported version")

// reader takes values off the head of b. The first failure sticks: from then on every method
// gives zero values, and counts are 0, so that loops end.
type reader struct {
	b      []byte
	reason string // why it failed, "" while it has not
	at     int    // bytes left when it failed
	budget int    // bytes it may still allocate
	noVer  bool
}

func newReader(src []byte) reader {
	return reader{b: src, budget: ReadFactor*len(src) + ReadFloor}
}

func (r *reader) ok() bool { return r.reason == "" }

func (r *reader) fail(reason string) {
	if r.reason == "" {
		r.reason, r.at = reason, len(r.b)
	}
	r.b = nil
}

func (r *reader) version(v, lo, hi int16) bool {
	r.noVer = v < lo || v > hi
	return !r.noVer
}

func (r *reader) done(src []byte, name string, v int16) ([]byte, error) {
	switch {
	case r.noVer:
		return src, fmt.Errorf("%w: %s has no version %d", ErrVersion, name, v)
	case r.reason != "":
		return src, fmt.Errorf("%w: %s version %d, %d bytes: %s, %d bytes before the end", ErrMalformed, name, v, len(src), r.reason, r.at)
	}
	return r.b, nil
}

// charge books an allocation of n bytes, rounded up as the allocator's size classes do, and says
// whether it may be made.
func (r *reader) charge(n int) bool {
	r.budget -= (n+7)&^7 + min(n/8, 8<<10)
	if r.budget < 0 {
		r.fail("too many small elements for its size")
		return false
	}
	return true
}

// take cuts n bytes off the head; nil when they are not there.
func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail("it ends early")
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) int8() int8 {
	if len(r.b) < 1 {
		r.fail("it ends early")
		return 0
	}
	x := int8(r.b[0])
	r.b = r.b[1:]
	return x
}

func (r *reader) bool() bool { return r.int8() != 0 }

func (r *reader) uint16() uint16 {
	if len(r.b) < 2 {
		r.fail("it ends early")
		return 0
	}
	x := binary.BigEndian.Uint16(r.b)
	r.b = r.b[2:]
	return x
}

func (r *reader) uint32() uint32 {
	if len(r.b) < 4 {
		r.fail("it ends early")
		return 0
	}
	x := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return x
}

func (r *reader) uint64() uint64 {
	if len(r.b) < 8 {
		r.fail("it ends early")
		return 0
	}
	x := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return x
}

func (r *reader) int16() int16     { return int16(r.uint16()) }
func (r *reader) int32() int32     { return int32(r.uint32()) }
func (r *reader) int64() int64     { return int64(r.uint64()) }
func (r *reader) float64() float64 { return math.Float64frombits(r.uint64()) }

func (r *reader) uuid() (u model.UUID) {
	copy(u[:], r.take(16))
	return u
}

// uvarint reads an unsigned varint of at most 32 bits, in at most five bytes.
func (r *reader) uvarint() uint32 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		x := r.b[0]
		r.b = r.b[1:]
		return uint32(x)
	}
	var x uint32
	for i := 0; i < 5; i++ {
		if i >= len(r.b) {
			r.fail("it ends early")
			return 0
		}
		c := r.b[i]
		x |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.b = r.b[i+1:]
			return x
		}
	}
	r.fail("a varint of more than five bytes")
	return 0
}

// length reads the length of a string, byte slice or array: -1 is null.
func (r *reader) length(flex bool) int {
	if flex {
		return int(r.uvarint()) - 1
	}
	return max(int(r.int32()), -1)
}

func (r *reader) strLength(flex bool) int {
	if !flex {
		return max(int(r.int16()), -1)
	}
	n := int(r.uvarint()) - 1
	if n > math.MaxInt16 {
		r.fail("a string of more than 32767 bytes")
		return 0
	}
	return n
}

func (r *reader) str(flex bool) string {
	n := r.strLength(flex)
	if n < 0 {
		if r.ok() {
			r.fail("null for a string that has none")
		}
		return ""
	}
	return r.text(n)
}

func (r *reader) text(n int) string {
	p := r.take(n)
	if len(p) == 0 || !r.charge(len(p)) {
		return ""
	}
	return string(p)
}

func (r *reader) nstr(flex bool) *string {
	n := r.strLength(flex)
	if n < 0 || !r.charge(16) {
		return nil
	}
	s := r.text(n)
	return &s
}

// bytes aliases the input; nil is null. Without nullable, null is refused.
func (r *reader) bytes(flex, nullable bool) []byte {
	n := r.length(flex)
	if n < 0 {
		if !nullable && r.ok() {
			r.fail("null for bytes that have none")
		}
		return nil
	}
	return r.take(n)
}

// count reads the number of elements of an array that cannot be null. least is the least size of one.
func (r *reader) count(flex bool, least int) int {
	n := r.length(flex)
	if n < 0 {
		if r.ok() {
			r.fail("null for an array that has none")
		}
		return 0
	}
	return r.fits(n, least)
}

// ncount is count where null, -1, is allowed.
func (r *reader) ncount(flex bool, least int) int {
	n := r.length(flex)
	if n < 0 {
		return -1
	}
	return r.fits(n, least)
}

func (r *reader) fits(n, least int) int {
	if !r.ok() {
		return 0
	}
	if n > len(r.b)/max(least, 1) {
		r.fail("a count that does not fit into what is left")
		return 0
	}
	return n
}

// extend adds an element to s, which will have n in the end, and gives its address; nil once the
// reader has failed. The first allocation is small, the second is for all of n.
func extend[T any](r *reader, s *[]T, n int) *T {
	if !r.ok() {
		return nil
	}
	have := len(*s)
	if have == cap(*s) {
		next := n
		if have == 0 {
			next = min(n, firstChunk)
		}
		var one T
		if !r.charge(next * int(unsafe.Sizeof(one))) {
			return nil
		}
		grown := make([]T, have, next)
		copy(grown, *s)
		*s = grown
	}
	*s = (*s)[:have+1]
	return &(*s)[have]
}

func newStruct[T any](r *reader) *T {
	var one T
	r.charge(int(unsafe.Sizeof(one)))
	return new(T)
}

// fixed reads an array of n elements of size bytes each.
func fixed[T any](r *reader, flex, nullable bool, size int, get func([]byte) T) []T {
	n := r.ncount(flex, size)
	if n < 0 {
		if !nullable && r.ok() {
			r.fail("null for an array that has none")
		}
		return nil
	}
	p := r.take(n * size)
	if len(p) == 0 {
		return emptyOrNil[T](nullable)
	}
	if !r.charge(n * size) {
		return nil
	}
	s := make([]T, n)
	for i := range s {
		s[i] = get(p[i*size:])
	}
	return s
}

func emptyOrNil[T any](nullable bool) []T {
	if nullable {
		return []T{}
	}
	return nil
}

func (r *reader) int8s(flex, nullable bool) []int8 {
	return fixed(r, flex, nullable, 1, func(p []byte) int8 { return int8(p[0]) })
}

func (r *reader) int16s(flex, nullable bool) []int16 {
	return fixed(r, flex, nullable, 2, func(p []byte) int16 { return int16(binary.BigEndian.Uint16(p)) })
}

func (r *reader) int32s(flex, nullable bool) []int32 {
	return fixed(r, flex, nullable, 4, func(p []byte) int32 { return int32(binary.BigEndian.Uint32(p)) })
}

func (r *reader) int64s(flex, nullable bool) []int64 {
	return fixed(r, flex, nullable, 8, func(p []byte) int64 { return int64(binary.BigEndian.Uint64(p)) })
}

func (r *reader) uuids(flex, nullable bool) []model.UUID {
	return fixed(r, flex, nullable, 16, func(p []byte) (u model.UUID) { copy(u[:], p); return u })
}

func (r *reader) strs(flex, nullable bool) []string {
	n := r.ncount(flex, pick(flex, 1, 2))
	if n < 0 {
		if !nullable && r.ok() {
			r.fail("null for an array that has none")
		}
		return nil
	}
	s := emptyOrNil[string](nullable)
	for i := 0; i < n; i++ {
		e := extend(r, &s, n)
		if e == nil {
			return nil
		}
		*e = r.str(flex)
	}
	return s
}

func (r *reader) bytess(flex, nullable bool) [][]byte {
	n := r.ncount(flex, pick(flex, 1, 4))
	if n < 0 {
		if !nullable && r.ok() {
			r.fail("null for an array that has none")
		}
		return nil
	}
	s := emptyOrNil[[]byte](nullable)
	for i := 0; i < n; i++ {
		e := extend(r, &s, n)
		if e == nil {
			return nil
		}
		*e = r.bytes(flex, false)
	}
	return s
}

func pick(cond bool, a, b int) int {
	if cond {
		return a
	}
	return b
}

// tagCount reads how many tagged fields follow; each takes at least two bytes.
func (r *reader) tagCount() int {
	n := int(r.uvarint())
	return r.fits(n, 2)
}

// openTag reads the head of a tagged field and narrows the reader to its value. closeTag, given
// the rest, checks that the value was read to its end and widens it again.
func (r *reader) openTag() (tag uint32, rest []byte) {
	tag = r.uvarint()
	size := int(r.uvarint())
	if size > len(r.b) {
		r.fail("a tagged field that does not fit into what is left")
		return tag, nil
	}
	rest = r.b[size:]
	r.b = r.b[:size]
	return tag, rest
}

func (r *reader) closeTag(rest []byte) {
	if len(r.b) != 0 {
		r.fail("a tagged field that is longer than its value")
	}
	if r.ok() {
		r.b = rest
	}
}

// rawTag keeps the value of an unknown tagged field.
func (r *reader) rawTag(tags []RawTag, tag uint32) []RawTag {
	if len(tags) == cap(tags) && !r.charge(32*(2*cap(tags)+1)) {
		return tags
	}
	if !r.ok() {
		return tags
	}
	return append(tags, RawTag{tag, r.take(len(r.b))})
}

// tags reads a tagged section of which no tag is known.
func (r *reader) tags() (tags []RawTag) {
	for n := r.tagCount(); n > 0 && r.ok(); n-- {
		tag, rest := r.openTag()
		tags = r.rawTag(tags, tag)
		r.closeTag(rest)
	}
	return tags
}
