package record

import (
	"errors"
	"io"
)

// chunker decompresses one payload piece by piece, so that what it holds is
// bounded by its codec's window and not by what a hostile payload unpacks to.
type chunker interface {
	// next returns the next piece, not empty and valid until the next call, or
	// io.EOF at the proper end of the payload. Any other error means that it is damaged.
	next() ([]byte, error)
	// release gives the decoder back to its pool.
	release()
}

// chunkSize is how much the stream codecs unpack at a time.
const chunkSize = 32 << 10

var errCodec = errors.New("unknown compression codec")

// decompress starts on a payload. brokenLZ4 skips the check of the frame header's
// checksum, which is wrong in format v0 (D-35).
func decompress(c Codec, payload []byte, brokenLZ4 bool) (chunker, error) {
	switch c {
	case Gzip:
		return newGzipReader(payload)
	case Snappy:
		return newSnappyReader(payload)
	case LZ4:
		return newLZ4Reader(payload, brokenLZ4)
	case Zstd:
		return newZstdReader(payload)
	}
	return nil, errCodec
}

// sliceReader is an io.Reader and io.ByteReader over bytes. It knows what is left.
type sliceReader struct{ b []byte }

func (r *sliceReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

func (r *sliceReader) ReadByte() (byte, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c, nil
}

// sliceWriter collects what an encoder writes.
type sliceWriter struct{ b []byte }

func (w *sliceWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}
