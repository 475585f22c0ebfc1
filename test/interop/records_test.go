package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"testing"
)

// Every client writes and reads the same records, made from their numbers alone: testdata/records.py and
// testdata/records.js know the recipe too. Record i of a topic of three partitions is in partition i%3.

const partitions = 3

// sizes of the values in bytes, small ones, an empty one, one beyond a batch of 16 KiB.
var sizes = []int{0, 1, 10, 100, 33, 1000, 5000, 20000, 77, 512}

type header struct {
	key   string
	value []byte
}

type rec struct {
	partition  int32
	offset     int64
	key, value []byte
	headers    []header
}

// recipe is record i.
func recipe(i int) rec {
	r := rec{partition: int32(i % partitions), offset: int64(i / partitions)}
	if i%11 != 10 || i%13 == 12 { // kafka-python wants a key or a value
		r.key = []byte("key-" + strconv.Itoa(i%17))
	}
	if i%13 != 12 {
		sum := sha256.Sum256([]byte(strconv.Itoa(i)))
		size := sizes[i%len(sizes)]
		r.value = bytes.Repeat(sum[:], size/len(sum)+1)[:size]
	}
	if i%5 == 4 {
		r.headers = []header{{"number", []byte(strconv.Itoa(i))}, {"empty", []byte{}}}
	}
	return r
}

// digests is one SHA-256 per partition over offset, key, value and headers of its records in order.
type digests [partitions]struct {
	count int
	bytes []byte
}

func (d *digests) add(r rec) {
	p := &d[r.partition]
	p.count++
	b := p.bytes
	b = binary.BigEndian.AppendUint64(b, uint64(r.offset))
	b = appendSized(b, r.key)
	b = appendSized(b, r.value)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.headers)))
	for _, h := range r.headers {
		b = appendSized(b, []byte(h.key))
		b = appendSized(b, h.value)
	}
	p.bytes = b
}

func appendSized(b, s []byte) []byte {
	if s == nil {
		return append(b, 0xff, 0xff, 0xff, 0xff)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// text is how a client's script prints its digests: count:sha256 of each partition, with commas between.
func (d *digests) text() string {
	var out string
	for i, p := range d {
		sum := sha256.Sum256(p.bytes)
		out += fmt.Sprintf("%d:%s", p.count, hex.EncodeToString(sum[:]))
		if i < len(d)-1 {
			out += ","
		}
	}
	return out
}

// wantDigests are those of the records 0 to n-1.
func wantDigests(n int) string {
	var d digests
	for i := range n {
		d.add(recipe(i))
	}
	return d.text()
}

func TestRecipeHasEveryShape(t *testing.T) {
	var nullKey, nullValue, empty, headers, large bool
	for i := range 600 {
		r := recipe(i)
		nullKey = nullKey || r.key == nil
		nullValue = nullValue || r.value == nil
		empty = empty || r.value != nil && len(r.value) == 0
		headers = headers || len(r.headers) > 0
		large = large || len(r.value) > 16<<10
	}
	if !(nullKey && nullValue && empty && headers && large) {
		t.Error("a shape of record is missing")
	}
}
