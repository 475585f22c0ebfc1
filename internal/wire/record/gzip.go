package record

import (
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// gzipReader reads gzip members one after the other. Like Java's GZIPInputStream
// it takes garbage after a whole member for the end (D-33).
type gzipReader struct {
	in  sliceReader
	z   gzip.Reader
	buf []byte
}

var gzipReaders = sync.Pool{New: func() any { return &gzipReader{buf: make([]byte, chunkSize)} }}

func newGzipReader(payload []byte) (chunker, error) {
	r := gzipReaders.Get().(*gzipReader)
	r.in.b = payload
	if err := r.z.Reset(&r.in); err != nil {
		r.release()
		return nil, err
	}
	r.z.Multistream(false)
	return r, nil
}

func (r *gzipReader) next() ([]byte, error) {
	for {
		n, err := r.z.Read(r.buf)
		if n > 0 {
			return r.buf[:n], nil // the error, if any, comes again
		}
		if err != io.EOF {
			return nil, err
		}
		if len(r.in.b) == 0 || r.z.Reset(&r.in) != nil {
			return nil, io.EOF
		}
		r.z.Multistream(false)
	}
}

func (r *gzipReader) release() {
	r.in.b = nil
	gzipReaders.Put(r)
}

// gzipWriters are pools by level + 1, for levels -1 to 9.
var gzipWriters [11]sync.Pool

type gzipWriter struct {
	sliceWriter
	z     *gzip.Writer
	level int
}

func newGzipWriter(level int, dst []byte) compressor {
	if level < -1 || level > 9 {
		level = -1
	}
	w, _ := gzipWriters[level+1].Get().(*gzipWriter)
	if w == nil {
		z, _ := gzip.NewWriterLevel(nil, level) // the level is in range
		w = &gzipWriter{z: z, level: level}
	}
	w.b = dst
	w.z.Reset(w)
	return w
}

func (w *gzipWriter) write(p []byte) { w.z.Write(p) } // a sliceWriter does not fail
func (w *gzipWriter) size() int      { return len(w.b) }

func (w *gzipWriter) close() []byte {
	w.z.Close()
	out := w.b
	w.b = nil
	gzipWriters[w.level+1].Put(w)
	return out
}
