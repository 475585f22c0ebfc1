package protocol

import (
	"bytes"
	"testing"
)

// FuzzRead decodes bytes as any message at any version: no panic, bounded memory, and what is
// accepted is stable. Go's fuzzer allocates meanwhile, so memory is checked by what the reader books.
func FuzzRead(f *testing.F) {
	fill := newFiller(15)
	fill.tags = true
	for i, s := range schemaMessages {
		for v := s.lo; v <= s.hi; v++ {
			b, err := fill.message(s, v).Append(nil, v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint16(i), v, b)
		}
	}
	f.Add(uint16(5), int16(3), []byte{2, 'a', 2, 'a', 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, which uint16, v int16, b []byte) {
		s := schemaMessages[int(which)%len(schemaMessages)]
		r := newReader(b)
		if r.version(v, s.lo, s.hi) {
			s.make().(readable).read(&r, v)
			if r.budget < 0 && r.ok() {
				t.Fatal("the reader goes on over its budget")
			}
		}
		checkStable(t, s.make, b, v)
	})
}

// FuzzFrames decodes bytes as what stands around messages.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{1, 0x14, 0, 0})
	f.Add([]byte{0, 0x12, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if key, version, m, err := ReadMetadataRecord(b); err == nil {
			again, err := AppendMetadataRecord(nil, key, version, m)
			if err != nil {
				return // unknown tags out of order
			}
			if _, _, _, err := ReadMetadataRecord(again); err != nil {
				t.Fatalf("%x: %v", again, err)
			}
		}
		ReadRequestHeader(b)
		ReadControlKey(b)
		if typ, fields, err := RecordType(b); err == nil {
			for _, m := range []Message{NewGroupKey(typ), NewTransactionKey(typ), NewShareKey(typ)} {
				if m != nil {
					m.Read(fields, 0)
				}
			}
			for _, m := range []Message{NewGroupValue(typ), NewTransactionValue(typ), NewShareValue(typ)} {
				if m != nil {
					ReadVersioned(fields, m)
				}
			}
		}
		for v := int16(2); v <= 14; v++ {
			w, rest, err := WalkProduce(b, v)
			n := 0
			for w.Next() {
				n++
			}
			if n != w.Partitions || err == nil && !bytes.HasSuffix(b, rest) {
				t.Fatalf("version %d: %d partitions, counted %d", v, n, w.Partitions)
			}
		}
	})
}
