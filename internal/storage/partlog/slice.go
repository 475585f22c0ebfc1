package partlog

import (
	"io"
	"sync"

	"samsa/internal/base/vfs"
)

// Slice is a range of one segment file, as a fetch answer carries it. It keeps the file open, whatever happens to the
// segment, until Release. It may end in a part of a batch. Its methods may be called from one goroutine at a time.
type Slice struct {
	f   vfs.File // nil after Release
	off int64
	n   int
}

// Len is the number of bytes, never 0.
func (s *Slice) Len() int { return s.n }

// File gives the descriptor and position for sendfile; false when the file has no descriptor (memory file system).
func (s *Slice) File() (fd uintptr, offset int64, ok bool) {
	if s.f == nil {
		return 0, 0, false
	}
	fd, ok = s.f.Descriptor()
	return fd, s.off, ok
}

// Source is the file itself, to report an error met outside the file system seam (vfs.Report, J-119).
func (s *Slice) Source() vfs.File { return s.f }

// Bytes gives the bytes when they are in memory already.
func (s *Slice) Bytes() (b []byte, ok bool) { return nil, false }

// ReadAt reads from the slice; offset 0 is its first byte.
func (s *Slice) ReadAt(p []byte, off int64) (int, error) {
	if s.f == nil {
		return 0, io.ErrClosedPipe
	}
	if off < 0 || off >= int64(s.n) {
		return 0, io.EOF
	}
	short := false
	if rest := int64(s.n) - off; int64(len(p)) > rest {
		p, short = p[:rest], true
	}
	n, err := s.f.ReadAt(p, s.off+off)
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

const copyBytes = 64 << 10

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, copyBytes); return &b }}

// WriteTo copies the bytes to w.
func (s *Slice) WriteTo(w io.Writer) (int64, error) {
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	var done int64
	for done < int64(s.n) {
		n, err := s.ReadAt(*buf, done)
		if n > 0 {
			m, werr := w.Write((*buf)[:n])
			done += int64(m)
			if werr != nil {
				return done, werr
			}
		}
		if n == 0 || err != nil && err != io.EOF {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF // the file was truncated under the reader
			}
			return done, err
		}
	}
	return done, nil
}

// Release gives the file back; further calls do nothing.
func (s *Slice) Release() {
	if s != nil && s.f != nil {
		s.f.Release()
		s.f = nil
	}
}
