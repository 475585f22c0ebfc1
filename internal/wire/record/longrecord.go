package record

// longRecord is the checks of a record that does not lie in one piece: a big one,
// or one at the edge of a piece. It is read field by field, so that no record, however
// long, is ever held; with a builder its bytes go there as they pass.
func (v *validator) longRecord(b Batch, i int32, size int, base int64, stamped, gaps bool) error {
	s, left := &v.s, size
	bad := func(err error) error { return v.badRecord(i, err) }

	attributes, err := s.readByte()
	if err != nil {
		return bad(err)
	}
	f := fields{attributes: int8(attributes)}
	var n int
	if f.timeDelta, n, err = s.varlong(); err != nil {
		return bad(err)
	}
	left -= 1 + n
	if f.delta, n, err = s.varint(); err != nil {
		return bad(err)
	}
	left -= n
	if left < 0 {
		return bad(errRecord)
	}
	time := base + f.timeDelta
	if stamped {
		time = b.MaxTimestamp()
	}

	// The tail goes to the builder before it is known whether the record is good. It does
	// not matter: one bad record refuses the batch.
	sink := v.builder
	if len(v.errors) > 0 || time < NoTimestamp {
		sink = nil
	}
	if sink != nil && (f.delta == i || gaps) {
		sink.beginBody(time, left)
	} else {
		sink = nil
	}
	v.t = tail{s: s, sink: sink, left: left}
	t := &v.t
	keyLen := t.bytes()
	valueLen := t.bytes()
	headers := t.varint()
	if t.err == nil && (headers < 0 || headers > t.left) {
		t.err = errRecord
	}
	for range headers {
		size := t.varint()
		if size < 0 {
			t.err = errRecord
		}
		t.move(size)
		t.bytes()
		if t.err != nil {
			break
		}
	}
	if t.err == nil && t.left != 0 {
		t.err = errRecord
	}
	if t.err != nil {
		return bad(t.err)
	}
	return v.record(i, &f, keyLen >= 0, max(keyLen, 0), max(valueLen, 0), valueLen >= 0, time, stamped, gaps)
}

// tail reads the end of a record, everything behind its deltas. After an error it does nothing.
type tail struct {
	s    *stream
	sink *Builder
	left int // bytes of the record not read yet
	err  error
	raw  [5]byte
}

func (t *tail) varint() int {
	if t.err != nil {
		return 0
	}
	for n := range t.raw {
		c, err := t.s.readByte()
		if err != nil {
			t.err = err
			return 0
		}
		t.raw[n] = c
		if c < 0x80 {
			if t.left -= n + 1; t.left < 0 {
				t.err = errRecord
				return 0
			}
			if t.sink != nil {
				t.sink.write(t.raw[:n+1])
			}
			v, _ := readVarint(t.raw[:n+1])
			return int(v)
		}
	}
	t.err = errRecord
	return 0
}

func (t *tail) move(n int) {
	if t.err != nil || n <= 0 {
		return
	}
	if n > t.left {
		t.err = errRecord
		return
	}
	t.left -= n
	t.err = t.s.move(n, t.sink)
}

// bytes steps over a length and its bytes, and returns the length.
func (t *tail) bytes() int {
	n := t.varint()
	t.move(n)
	return n
}
