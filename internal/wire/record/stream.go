package record

import (
	"errors"
	"io"
	"sync"
)

// The two ways a payload can be bad (D-37): it does not unpack, or what it unpacks to are not records.
var (
	errPayload = errors.New("the payload does not decompress")
	errRecord  = errors.New("malformed record")
	errEnd     = errors.New("the payload ends inside a record")
	errLeft    = errors.New("bytes are left after the last record")
	errTooBig  = errors.New("the payload unpacks to more than is allowed")
)

// stream is the record list of a batch, unpacked piece by piece.
type stream struct {
	buf  []byte // the piece, from where we are
	src  chunker
	room int64 // how many bytes may still be unpacked; below 0 is too many
}

// start begins on a v2 batch. unpackMax bounds the sum of what a codec unpacks to; 0 is no bound.
func (s *stream) start(b Batch, unpackMax int64) error {
	*s = stream{}
	codec := b.Compression()
	if codec == None {
		s.buf = b.Payload()
		return nil
	}
	if unpackMax == 0 {
		unpackMax = 1 << 62
	}
	s.room = unpackMax
	src, err := decompress(codec, b.Payload(), false)
	if err != nil {
		return errPayload
	}
	s.src = src
	return nil
}

func (s *stream) stop() {
	if s.src != nil {
		s.src.release()
		s.src = nil
	}
}

// more makes buf not empty; io.EOF when there is nothing more.
func (s *stream) more() error {
	if len(s.buf) > 0 {
		return nil
	}
	if s.src == nil {
		return io.EOF
	}
	chunk, err := s.src.next()
	if err == io.EOF {
		return io.EOF
	}
	if err != nil {
		return errPayload
	}
	if s.room -= int64(len(chunk)); s.room < 0 {
		return errTooBig
	}
	s.buf = chunk
	return nil
}

// need is more inside a record.
func (s *stream) need() error {
	err := s.more()
	if err == io.EOF {
		return errEnd
	}
	return err
}

// drained fails unless nothing is left.
func (s *stream) drained() error {
	switch err := s.more(); err {
	case io.EOF:
		return nil
	case nil:
		return errLeft
	default:
		return err
	}
}

func (s *stream) readByte() (byte, error) {
	if err := s.need(); err != nil {
		return 0, err
	}
	c := s.buf[0]
	s.buf = s.buf[1:]
	return c, nil
}

// uvarint reads at most max bytes.
func (s *stream) uvarint(max int) (u uint64, n int, err error) {
	for n < max {
		c, err := s.readByte()
		if err != nil {
			return 0, n, err
		}
		u |= uint64(c&0x7f) << (7 * n)
		n++
		if c < 0x80 {
			return u, n, nil
		}
	}
	return 0, n, errRecord
}

func (s *stream) varint() (v int32, n int, err error) {
	u, n, err := s.uvarint(5)
	return int32(uint32(u)>>1) ^ -int32(u&1), n, err
}

func (s *stream) varlong() (v int64, n int, err error) {
	u, n, err := s.uvarint(10)
	return int64(u>>1) ^ -int64(u&1), n, err
}

// move steps over n bytes and gives them, piece by piece, to sink if there is one.
func (s *stream) move(n int, sink *Builder) error {
	for n > 0 {
		if err := s.need(); err != nil {
			return err
		}
		m := min(n, len(s.buf))
		if sink != nil {
			sink.write(s.buf[:m])
		}
		s.buf = s.buf[m:]
		n -= m
	}
	return nil
}

// carry is a buffer for records that span pieces.
type carry struct{ b []byte }

const carryKeep = 1 << 20

var carries = sync.Pool{New: func() any { return &carry{} }}

// body returns the next n bytes in one piece: borrowed from the piece if they are
// in it, else gathered in c. c grows as bytes come, not by what n claims.
func (s *stream) body(n int, c *carry) ([]byte, error) {
	if n <= len(s.buf) {
		b := s.buf[:n:n]
		s.buf = s.buf[n:]
		return b, nil
	}
	c.b = c.b[:0]
	for len(c.b) < n {
		if err := s.need(); err != nil {
			return nil, err
		}
		m := min(n-len(c.b), len(s.buf))
		c.b = append(c.b, s.buf[:m]...)
		s.buf = s.buf[m:]
	}
	return c.b, nil
}

func (c *carry) release() {
	if cap(c.b) <= carryKeep {
		carries.Put(c)
	}
}
