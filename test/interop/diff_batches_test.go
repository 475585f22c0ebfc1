package interop

import (
	"encoding/binary"
	"hash/crc32"
	"strings"

	"samsa/internal/wire/record"
)

// batches are record sets for the questions, by name.
var batches = func() map[string][]byte {
	const at = 1_760_000_000_000 // a moment that both accept, the same in every run
	build := func(change func(*record.BatchOptions), values ...string) []byte {
		opt := record.NewBatchOptions()
		if change != nil {
			change(&opt)
		}
		b := record.NewBuilder(opt)
		for i, v := range values {
			b.Append(at+int64(i), []byte("k"), []byte(v), nil)
		}
		return b.Build(nil)
	}
	seal := func(b []byte) []byte {
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
		return b
	}
	edit := func(change func(b []byte)) []byte {
		b := build(nil, "one", "two")
		change(b)
		return seal(b)
	}
	from := func(pid int64, epoch int16, sequence int32) func(*record.BatchOptions) {
		return func(o *record.BatchOptions) { o.ProducerID, o.ProducerEpoch, o.BaseSequence = pid, epoch, sequence }
	}
	broken := build(nil, "one", "two")
	broken[len(broken)-1] ^= 0xff
	noKey := func() []byte {
		b := record.NewBuilder(record.NewBatchOptions())
		b.Append(at, nil, []byte("v"), nil)
		return b.Build(nil)
	}()
	when := func(ms int64) []byte {
		b := record.NewBuilder(record.NewBatchOptions())
		b.Append(ms, []byte("k"), []byte("v"), nil)
		return b.Build(nil)
	}
	garbage := func(codec byte) []byte {
		return edit(func(b []byte) {
			b[22] = codec
			for i := record.HeaderSize; i < len(b); i++ {
				b[i] = 0x55
			}
		})
	}
	old := func(magic byte) []byte { // a message set of one message
		m := []byte{magic, 0}
		if magic == 1 {
			m = binary.BigEndian.AppendUint64(m, at)
		}
		m = binary.BigEndian.AppendUint32(m, 0xffffffff)
		m = append(binary.BigEndian.AppendUint32(m, 1), 'v')
		b := binary.BigEndian.AppendUint32(make([]byte, 8), uint32(4+len(m)))
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(m))
		return append(b, m...)
	}
	return map[string][]byte{
		"plain":         build(nil, "one", "two"),
		"gzip":          build(func(o *record.BatchOptions) { o.Codec = record.Gzip }, "one", "two"),
		"zstd":          build(func(o *record.BatchOptions) { o.Codec = record.Zstd }, "one", "two"),
		"two":           append(build(nil, "one"), build(nil, "two")...),
		"empty":         {},
		"broken":        broken,
		"offset 5":      edit(func(b []byte) { binary.BigEndian.PutUint64(b, 5) }),
		"magic 3":       edit(func(b []byte) { b[16] = 3 }),
		"magic -1":      edit(func(b []byte) { b[16] = 0xff }),
		"magic 0":       old(0),
		"magic 1":       old(1),
		"control":       build(func(o *record.BatchOptions) { o.Control = true }, "one"),
		"transactional": build(func(o *record.BatchOptions) { o.Transactional = true; from(1, 0, 0)(o) }, "one"),
		"count 3":       edit(func(b []byte) { binary.BigEndian.PutUint32(b[57:], 3) }),
		"count 1":       edit(func(b []byte) { binary.BigEndian.PutUint32(b[57:], 1) }),
		"count 0":       edit(func(b []byte) { binary.BigEndian.PutUint32(b[57:], 0) }),
		"count -1":      edit(func(b []byte) { binary.BigEndian.PutUint32(b[57:], 0xffffffff) }),
		"delta 7":       edit(func(b []byte) { binary.BigEndian.PutUint32(b[23:], 7) }),
		"delta -1":      edit(func(b []byte) { binary.BigEndian.PutUint32(b[23:], 0xffffffff) }),
		"length 5":      edit(func(b []byte) { binary.BigEndian.PutUint32(b[8:], 5) }),
		"length -1":     edit(func(b []byte) { binary.BigEndian.PutUint32(b[8:], 0xffffffff) }),
		"length 2^30":   edit(func(b []byte) { binary.BigEndian.PutUint32(b[8:], 1<<30) }),
		"cut":           build(nil, "one", "two")[:70],
		"header only":   build(nil, "one", "two")[:record.HeaderSize],
		"11 bytes":      build(nil, "one", "two")[:11],
		"codec 5":       edit(func(b []byte) { b[22] = 5 }),
		"codec 7":       edit(func(b []byte) { b[22] = 7 }),
		"not gzip":      garbage(1),
		"not snappy":    garbage(2),
		"not lz4":       garbage(3),
		"not zstd":      garbage(4),
		"trailing":      edit(func(b []byte) { b[record.HeaderSize] += 2 }), // the first record says it is longer
		"attributes":    edit(func(b []byte) { b[21] = 0x80 }),
		"append time":   edit(func(b []byte) { b[22] |= 8 }),
		"no key":        noKey,
		"time 2^60":     when(1 << 60),
		"time 4102":     when(4_102_444_800_000), // in the year 2100
		"time -1":       when(-1),
		"time -2":       when(-2),
		"time 0":        when(0),
		"large":         build(nil, strings.Repeat("x", 1_100_000)),
		"pid 0 seq 0":   build(from(4000, 0, 0), "one", "two"),
		"pid 0 seq 2":   build(from(4000, 0, 2), "three"),
		"pid 0 seq 9":   build(from(4000, 0, 9), "ten"),
		"pid 0 epoch 1": build(from(4000, 1, 5), "five"),
		"pid 0 old":     build(from(4000, -1, 0), "old"),
		"pid new seq 5": build(from(5000, 0, 5), "six"),
		"seq -1":        build(from(4000, 0, -1), "one"),
		"epoch 3":       build(func(o *record.BatchOptions) { o.LeaderEpoch = 3 }, "one"),
	}
}()
