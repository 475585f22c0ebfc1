package record

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
)

// The stream of snappy-java, also called xerial: 8 bytes of magic, int32 version,
// int32 lowest compatible version, then blocks of int32 length and raw snappy.
const (
	xerialHeader = "\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
	xerialMagic  = "\x82SNAPPY\x00"
	snappyBlock  = 32 << 10
)

var errSnappy = errors.New("bad snappy payload")

// snappyReader reads a xerial stream, or else one raw block (D-34).
type snappyReader struct {
	in  []byte
	raw bool
	out []byte
}

var snappyReaders = sync.Pool{New: func() any { return &snappyReader{out: make([]byte, 0, snappyBlock)} }}

func newSnappyReader(payload []byte) (chunker, error) {
	r := snappyReaders.Get().(*snappyReader)
	r.in, r.raw = payload, true
	if len(payload) >= len(xerialHeader) && string(payload[:len(xerialMagic)]) == xerialMagic {
		r.raw = false
	}
	return r, nil
}

func (r *snappyReader) next() ([]byte, error) {
	for {
		if len(r.in) == 0 {
			return nil, io.EOF
		}
		block := r.in
		if r.raw {
			r.in = nil
		} else {
			// Streams may be glued together, each with its header.
			if len(r.in) >= len(xerialHeader) && string(r.in[:len(xerialMagic)]) == xerialMagic {
				if int32(binary.BigEndian.Uint32(r.in[8:])) < 1 {
					return nil, errSnappy // no such version
				}
				r.in = r.in[len(xerialHeader):]
				continue
			}
			if len(r.in) < 4 {
				return nil, errSnappy
			}
			n := int(binary.BigEndian.Uint32(r.in))
			if n > len(r.in)-4 {
				return nil, errSnappy
			}
			block, r.in = r.in[4:4+n], r.in[4+n:]
		}
		size, ok := snappyLen(block)
		if !ok {
			return nil, errSnappy
		}
		out, err := s2.Decode(slices.Grow(r.out[:0], size)[:size], block)
		if err != nil || len(out) != size {
			return nil, errSnappy
		}
		r.out = out[:0]
		if size > 0 {
			return out, nil
		}
	}
}

func (r *snappyReader) release() {
	r.in = nil
	if cap(r.out) > 1<<20 {
		r.out = make([]byte, 0, snappyBlock)
	}
	snappyReaders.Put(r)
}

// snappyLen walks the elements of a raw block and returns the length they make
// together, if it is the length the block claims. It keeps the claim from being
// trusted with an allocation, and refuses the elements of S2 (a copy with offset 0), which
// the decoder would take and Java's would not.
func snappyLen(b []byte) (int, bool) {
	claim, n := binary.Uvarint(b)
	if n <= 0 || claim > 1<<31-1 {
		return 0, false
	}
	b = b[n:]
	var total uint64
	for len(b) > 0 {
		tag := b[0]
		switch tag & 3 {
		case 0: // literal
			size := int(tag>>2) + 1
			head := 1
			if size > 60 {
				head += size - 60
				if len(b) < head {
					return 0, false
				}
				size = 0
				for i := head - 1; i > 0; i-- {
					size = size<<8 | int(b[i])
				}
				size++
			}
			if size > len(b)-head {
				return 0, false
			}
			total += uint64(size)
			b = b[head+size:]
		case 1:
			if len(b) < 2 || tag>>5 == 0 && b[1] == 0 {
				return 0, false
			}
			total += uint64(tag>>2&7) + 4
			b = b[2:]
		case 2:
			if len(b) < 3 || b[1] == 0 && b[2] == 0 {
				return 0, false
			}
			total += uint64(tag>>2) + 1
			b = b[3:]
		case 3:
			if len(b) < 5 || b[1] == 0 && b[2] == 0 && b[3] == 0 && b[4] == 0 {
				return 0, false
			}
			total += uint64(tag>>2) + 1
			b = b[5:]
		}
		if total > claim {
			return 0, false
		}
	}
	return int(claim), total == claim
}

// snappyWriter writes a xerial stream with blocks of 32 KiB, as Kafka does.
type snappyWriter struct {
	out   []byte
	block []byte
}

var snappyWriters = sync.Pool{New: func() any { return &snappyWriter{block: make([]byte, 0, snappyBlock)} }}

func newSnappyWriter(dst []byte) compressor {
	w := snappyWriters.Get().(*snappyWriter)
	w.out = append(dst, xerialHeader...)
	return w
}

func (w *snappyWriter) size() int { return len(w.out) }

func (w *snappyWriter) write(p []byte) {
	for len(p) > 0 {
		n := min(len(p), snappyBlock-len(w.block))
		w.block = append(w.block, p[:n]...)
		p = p[n:]
		if len(w.block) == snappyBlock {
			w.flush()
		}
	}
}

func (w *snappyWriter) flush() {
	at := len(w.out)
	w.out = slices.Grow(w.out, 4+s2.MaxEncodedLen(len(w.block)))[:at+4]
	enc := s2.EncodeSnappy(w.out[at+4:cap(w.out)], w.block)
	binary.BigEndian.PutUint32(w.out[at:], uint32(len(enc)))
	w.out = w.out[:at+4+len(enc)]
	w.block = w.block[:0]
}

func (w *snappyWriter) close() []byte {
	if len(w.block) > 0 {
		w.flush()
	}
	out := w.out
	w.out = nil
	snappyWriters.Put(w)
	return out
}
