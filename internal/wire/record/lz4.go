package record

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// The LZ4 frame, as much of it as Kafka speaks: version 1, independent blocks,
// sizes 64 KiB to 4 MiB, optional block checksums; a content size and a content
// checksum are stepped over. Little-endian:
//
//	0  4  magic 0x184D2204
//	4  1  FLG: version 01, block independence, block checksum, content size, content checksum, 0, 0
//	5  1  BD: block size 4..7 in bits 4-6
//	      8 bytes of content size, if flagged
//	   1  bits 8..15 of xxHash32 over FLG to here
//	      blocks: uint32 size, top bit set for stored; bytes; xxHash32 if flagged
//	   4  0, the end mark
const (
	lz4Magic      = 0x184D2204
	lz4Block      = 64 << 10
	lz4Stored     = 1 << 31
	lz4FlagIndep  = 1 << 5
	lz4FlagBlocks = 1 << 4
	lz4FlagSize   = 1 << 3
	lz4FlagSum    = 1 << 2
)

var errLZ4 = errors.New("bad lz4 payload")

type lz4Reader struct {
	in       []byte
	out      []byte
	maxBlock int
	flags    byte
	done     bool
}

var lz4Readers = sync.Pool{New: func() any { return &lz4Reader{} }}

func newLZ4Reader(payload []byte, broken bool) (chunker, error) {
	if len(payload) < 7 || binary.LittleEndian.Uint32(payload) != lz4Magic {
		return nil, errLZ4
	}
	flags, bd := payload[4], payload[5]
	size := bd >> 4 & 7
	if flags&3 != 0 || flags>>6 != 1 || flags&lz4FlagIndep == 0 || bd&0x8f != 0 || size < 4 {
		return nil, errLZ4
	}
	end := 6
	if flags&lz4FlagSize != 0 {
		end += 8
	}
	if len(payload) <= end || !broken && payload[end] != byte(xxh32(payload[4:end])>>8) {
		return nil, errLZ4
	}
	r := lz4Readers.Get().(*lz4Reader)
	r.in, r.maxBlock, r.flags, r.done = payload[end+1:], 1<<(2*size+8), flags, false
	return r, nil
}

func (r *lz4Reader) next() ([]byte, error) {
	for {
		if r.done {
			return nil, io.EOF
		}
		if len(r.in) < 4 {
			return nil, errLZ4
		}
		head := binary.LittleEndian.Uint32(r.in)
		r.in = r.in[4:]
		n := int(head &^ lz4Stored)
		if n == 0 {
			if r.flags&lz4FlagSum != 0 && len(r.in) < 4 {
				return nil, errLZ4
			}
			r.done = true
			continue
		}
		if n > r.maxBlock || n > len(r.in) {
			return nil, errLZ4
		}
		block := r.in[:n]
		r.in = r.in[n:]
		if r.flags&lz4FlagBlocks != 0 {
			if len(r.in) < 4 || binary.LittleEndian.Uint32(r.in) != xxh32(block) {
				return nil, errLZ4
			}
			r.in = r.in[4:]
		}
		if head&lz4Stored != 0 {
			return block, nil
		}
		// No byte of a block makes more than 255: a small block cannot cost 4 MiB.
		room := min(r.maxBlock, 255*n)
		if cap(r.out) < room {
			r.out = make([]byte, room)
		}
		m, err := lz4.UncompressBlock(block, r.out[:room])
		if err != nil {
			return nil, errLZ4
		}
		if m > 0 {
			return r.out[:m], nil
		}
	}
}

func (r *lz4Reader) release() {
	r.in = nil
	if cap(r.out) > 4*lz4Block {
		r.out = nil
	}
	lz4Readers.Put(r)
}

// lz4Writer writes a frame of independent 64 KiB blocks without checksums. Level 9,
// the default, is the fast compressor, the others search as deep as they say: so it is in Kafka.
type lz4Writer struct {
	out   []byte
	block []byte
	fast  *lz4.Compressor
	high  *lz4.CompressorHC
	pool  *sync.Pool
}

var (
	lz4Fast = sync.Pool{New: func() any { return &lz4Writer{fast: &lz4.Compressor{}, block: make([]byte, 0, lz4Block)} }}
	lz4High = sync.Pool{New: func() any { return &lz4Writer{high: &lz4.CompressorHC{}, block: make([]byte, 0, lz4Block)} }}
)

func newLZ4Writer(level int, dst []byte) compressor {
	pool := &lz4Fast
	if level != 9 {
		pool = &lz4High
	}
	w := pool.Get().(*lz4Writer)
	w.pool = pool
	if w.high != nil {
		w.high.Level = 1 << (8 + min(max(level, 1), 9)) // lz4.Level1 to lz4.Level9
	}
	head := [2]byte{1<<6 | lz4FlagIndep, 4 << 4}
	w.out = binary.LittleEndian.AppendUint32(dst, lz4Magic)
	w.out = append(w.out, head[0], head[1], byte(xxh32(head[:])>>8))
	return w
}

func (w *lz4Writer) size() int { return len(w.out) }

func (w *lz4Writer) write(p []byte) {
	for len(p) > 0 {
		n := min(len(p), lz4Block-len(w.block))
		w.block = append(w.block, p[:n]...)
		p = p[n:]
		if len(w.block) == lz4Block {
			w.flush()
		}
	}
}

func (w *lz4Writer) flush() {
	at := len(w.out)
	w.out = slices.Grow(w.out, 4+lz4.CompressBlockBound(len(w.block)))[:at+4]
	room := w.out[at+4 : cap(w.out)]
	var n int
	if w.fast != nil {
		n, _ = w.fast.CompressBlock(w.block, room)
	} else {
		n, _ = w.high.CompressBlock(w.block, room)
	}
	head := uint32(n)
	if n == 0 || n >= len(w.block) {
		n = copy(room, w.block)
		head = uint32(n) | lz4Stored
	}
	binary.LittleEndian.PutUint32(w.out[at:], head)
	w.out = w.out[:at+4+n]
	w.block = w.block[:0]
}

func (w *lz4Writer) close() []byte {
	if len(w.block) > 0 {
		w.flush()
	}
	out := binary.LittleEndian.AppendUint32(w.out, 0)
	w.out = nil
	w.pool.Put(w)
	return out
}

// xxh32 is xxHash32 with seed 0.
func xxh32(b []byte) uint32 {
	const p1, p2, p3, p4, p5 uint32 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	n := uint32(len(b))
	h := p5
	if len(b) >= 16 {
		var v1, v2, v3, v4 uint32 = p1, p2, 0, 0
		v1 += p2
		v4 -= p1
		for len(b) >= 16 {
			v1 = bits.RotateLeft32(v1+binary.LittleEndian.Uint32(b)*p2, 13) * p1
			v2 = bits.RotateLeft32(v2+binary.LittleEndian.Uint32(b[4:])*p2, 13) * p1
			v3 = bits.RotateLeft32(v3+binary.LittleEndian.Uint32(b[8:])*p2, 13) * p1
			v4 = bits.RotateLeft32(v4+binary.LittleEndian.Uint32(b[12:])*p2, 13) * p1
			b = b[16:]
		}
		h = bits.RotateLeft32(v1, 1) + bits.RotateLeft32(v2, 7) + bits.RotateLeft32(v3, 12) + bits.RotateLeft32(v4, 18)
	}
	h += n
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*p3, 17) * p4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
