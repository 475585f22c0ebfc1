package record

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"
)

var errZstd = errors.New("bad zstd payload")

const (
	zstdMagic     = 0xFD2FB528
	zstdSkipMagic = 0x184D2A50 // ...5F
	zstdBlockMax  = 128 << 10

	// zstdWindowMax is the greatest window Java's decoder takes: 2^27.
	zstdWindowMax = 128 << 20
	// zstdKeepWindow is the greatest window of a decoder worth keeping.
	zstdKeepWindow = 2 << 20
)

// zstdReader reads frames one after the other.
//
// A frame tells the decoder how much memory to take, its window, in its first
// bytes, and a hostile one of 20 bytes may ask for 128 MiB; honest Java producers
// ask for 2 MiB to send 300 bytes. So the blocks of each frame are walked first: they bound what the frame
// can unpack to, no match can reach back further than that, and the header is rewritten to ask for no more.
type zstdReader struct {
	in     []byte // frames not yet begun
	head   sliceReader
	body   sliceReader
	headAt [18]byte
	dec    *zstd.Decoder
	window int // the greatest so far
	buf    []byte
}

var zstdReaders = sync.Pool{New: func() any {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdWindowMax), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		panic(err) // options are constants
	}
	return &zstdReader{dec: dec, buf: make([]byte, chunkSize)}
}}

func newZstdReader(payload []byte) (chunker, error) {
	r := zstdReaders.Get().(*zstdReader)
	r.in = payload
	if err := r.frame(); err != nil {
		r.release()
		if err == io.EOF {
			err = errZstd // no frame at all
		}
		return nil, err
	}
	return r, nil
}

// Read is what the decoder reads from: the header, perhaps rewritten, and the blocks.
func (r *zstdReader) Read(p []byte) (int, error) {
	if len(r.head.b) > 0 {
		return r.head.Read(p)
	}
	return r.body.Read(p)
}

// frame starts the decoder on the next frame, or returns io.EOF.
func (r *zstdReader) frame() error {
	for len(r.in) >= 8 && binary.LittleEndian.Uint32(r.in)&^15 == zstdSkipMagic {
		n := uint64(binary.LittleEndian.Uint32(r.in[4:])) + 8
		if n > uint64(len(r.in)) {
			return errZstd
		}
		r.in = r.in[n:]
	}
	if len(r.in) == 0 {
		return io.EOF
	}
	f, ok := parseZstdFrame(r.in)
	if !ok {
		return errZstd
	}
	window := min(f.window, f.most)
	if window > zstdWindowMax {
		return errZstd
	}
	r.head.b = r.in[:f.header]
	if f.window > zstdBlockMax && f.window > window {
		// Without the single-segment flag, with a window descriptor. The content size, of 2 bytes
		// or more in a frame this big, stays and is still checked.
		window = max(window, 1024)
		exp := bits.Len64(uint64(window - 1)) // rounded up to a power of two
		h := append(r.headAt[:0], r.in[:5]...)
		h[4] &^= 0x20
		h = append(h, byte(exp-10)<<3)
		rest := r.in[5:f.header]
		if !f.single {
			rest = rest[1:]
		}
		r.head.b = append(h, rest...)
		window = 1 << exp
	}
	r.window = max(r.window, int(window))
	r.body.b, r.in = r.in[f.header:f.size], r.in[f.size:]
	return r.dec.Reset(r)
}

func (r *zstdReader) next() ([]byte, error) {
	for {
		n, err := r.dec.Read(r.buf)
		if n > 0 {
			return r.buf[:n], nil // the error, if any, comes again
		}
		if err != io.EOF {
			if err == nil {
				continue
			}
			return nil, err
		}
		if err := r.frame(); err != nil {
			return nil, err
		}
	}
}

func (r *zstdReader) release() {
	r.in, r.head.b, r.body.b = nil, nil, nil
	r.dec.Reset(nil)
	if r.window > zstdKeepWindow {
		r.dec.Close()
		return
	}
	zstdReaders.Put(r)
}

// zstdFrame is what the header and the block headers of a frame say.
type zstdFrame struct {
	header int   // bytes before the first block
	size   int   // of the whole frame
	single bool  // window = content size, no window descriptor
	window int64 // asked for
	most   int64 // what the blocks can unpack to at most
}

func parseZstdFrame(b []byte) (f zstdFrame, ok bool) {
	if len(b) < 6 || binary.LittleEndian.Uint32(b) != zstdMagic {
		return f, false
	}
	desc := b[4]
	at := 5
	f.single = desc&0x20 != 0
	if !f.single {
		exp, mantissa := uint(b[5]>>3), int64(b[5]&7)
		f.window = 1 << (10 + exp)
		f.window += f.window / 8 * mantissa
		at++
	}
	at += [4]int{0, 1, 2, 4}[desc&3] // dictionary id
	sizeBytes := [4]int{0, 2, 4, 8}[desc>>6]
	if f.single && sizeBytes == 0 {
		sizeBytes = 1
	}
	if len(b) < at+sizeBytes {
		return f, false
	}
	if f.single {
		var v uint64
		for i := sizeBytes - 1; i >= 0; i-- {
			v = v<<8 | uint64(b[at+i])
		}
		if sizeBytes == 2 {
			v += 256
		}
		if v > 1<<40 {
			return f, false
		}
		f.window = int64(v)
	}
	at += sizeBytes
	f.header = at
	for last := false; !last; {
		if len(b)-at < 3 {
			return f, false
		}
		h := int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16
		at += 3
		last = h&1 != 0
		n := h >> 3
		switch h >> 1 & 3 {
		case 0: // stored
			f.most += int64(n)
		case 1: // one byte repeated
			f.most += int64(n)
			n = 1
		case 2:
			f.most += zstdBlockMax
		default:
			return f, false
		}
		if n > len(b)-at {
			return f, false
		}
		at += n
	}
	if desc&4 != 0 {
		at += 4
	}
	f.size = at
	return f, at <= len(b)
}

// zstdWriters are pools by encoder level.
var zstdWriters [zstd.SpeedBestCompression + 1]sync.Pool

type zstdWriter struct {
	sliceWriter
	z     *zstd.Encoder
	level zstd.EncoderLevel
}

// newZstdWriter takes zstd's levels; the encoder has four of its own. The window of 1 MiB
// covers a batch of the default size and keeps pooled encoders small.
func newZstdWriter(level int, dst []byte) compressor {
	l := zstd.EncoderLevelFromZstd(level)
	w, _ := zstdWriters[l].Get().(*zstdWriter)
	if w == nil {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(l),
			zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
		if err != nil {
			panic(err) // options are constants
		}
		w = &zstdWriter{z: z, level: l}
	}
	w.b = dst
	w.z.Reset(w)
	return w
}

func (w *zstdWriter) write(p []byte) { w.z.Write(p) } // a sliceWriter does not fail
func (w *zstdWriter) size() int      { return len(w.b) }

func (w *zstdWriter) close() []byte {
	w.z.Close()
	out := w.b
	w.b = nil
	zstdWriters[w.level].Put(w)
	return out
}
