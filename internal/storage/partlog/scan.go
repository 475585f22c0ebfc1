package partlog

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"samsa/internal/base/kerr"
	"samsa/internal/base/vfs"
	"samsa/internal/wire/record"
)

const (
	headerChunk = 4 << 10   // read at once by walks over headers
	wholeChunk  = 256 << 10 // read at once by walks over whole batches
)

var (
	headerBuffers = sync.Pool{New: func() any { b := make([]byte, headerChunk); return &b }}
	wholeBuffers  = sync.Pool{New: func() any { b := make([]byte, wholeChunk); return &b }}
)

// scanner walks the batches of one segment file between two positions. Batches it returns are borrowed until the
// next call.
type scanner struct {
	f        vfs.File
	pos, end int64  // the next batch, and where to stop
	buf      []byte // content of the file from bufPos on, bufLen bytes
	bufPos   int64
	bufLen   int
	pooled   *[]byte
	pool     *sync.Pool
}

// newScanner walks [pos, end) of f. whole says that most batches will be asked for whole. Call done at the end.
func newScanner(f vfs.File, pos, end int64, whole bool) *scanner {
	s := &scanner{f: f, pos: pos, end: end, pool: &headerBuffers}
	if whole {
		s.pool = &wholeBuffers
	}
	s.pooled = s.pool.Get().(*[]byte)
	s.buf = *s.pooled
	return s
}

func (s *scanner) done() { s.pool.Put(s.pooled) }

// errTail is returned by next when the file ends in the middle of a batch.
var errTail = errors.New("the file ends in the middle of a batch")

// next returns the batch at pos and moves behind it; nil without an error at the end. Without whole only
// the header is sure to be there. An error is errTail, kerr.CorruptMessage for a header that cannot be, or an I/O error; pos then
// is where the bad batch begins.
func (s *scanner) next(whole bool) (record.Batch, error) {
	left := s.end - s.pos
	if left <= 0 {
		return nil, nil
	}
	if left < record.HeaderUpToMagic {
		return nil, errTail
	}
	b, err := s.peek(int(min(left, record.HeaderSize)))
	if err != nil {
		return nil, err
	}
	if err := record.CheckHeader(b); err != nil {
		return nil, err
	}
	size := record.Batch(b).SizeInBytes()
	if int64(size) > left {
		return nil, errTail
	}
	if whole {
		if b, err = s.peek(size); err != nil {
			return nil, err
		}
	} else if len(b) > size {
		b = b[:size]
	}
	s.pos += int64(size)
	return record.Batch(b), nil
}

// peek returns n bytes at pos.
func (s *scanner) peek(n int) ([]byte, error) {
	at := s.pos - s.bufPos
	if at >= 0 && at+int64(n) <= int64(s.bufLen) {
		return s.buf[at : at+int64(n) : at+int64(n)], nil
	}
	if n > len(s.buf) {
		s.buf = make([]byte, n+n/4)
	}
	want := int(min(int64(len(s.buf)), s.end-s.pos))
	got, err := readFull(s.f, s.buf[:want], s.pos)
	if err != nil {
		s.bufLen = 0
		return nil, err
	}
	s.bufPos, s.bufLen = s.pos, got
	if got < n {
		return nil, errTail
	}
	return s.buf[:n:n], nil
}

// readFull reads as much of p as the file has; the end of the file is no error.
func readFull(f vfs.File, p []byte, off int64) (int, error) {
	n, err := f.ReadAt(p, off)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}

// corrupt tells where a walk over published bytes met what cannot be.
func corrupt(path string, pos int64, err error) error {
	if errors.Is(err, errTail) || errors.Is(err, kerr.CorruptMessage) {
		return kerr.CorruptMessage.Wrap(fmt.Errorf("%s at position %d: %w: expected a whole record batch; "+
			"the partition needs its segment from another replica", path, pos, err))
	}
	return err
}

// isDamage says whether a walk ended because of the bytes and not because of the disk.
func isDamage(err error) bool {
	return errors.Is(err, errTail) || errors.Is(err, kerr.CorruptMessage)
}
