package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// errWouldBlock is returned by a write that the socket has no room for now.
var errWouldBlock = errors.New("the socket is full")

// copyRange is the largest file range that is copied through memory rather than handed to
// sendfile: below it, the extra system call costs more than the copy.
const copyRange = 8 << 10

// transport moves bytes between a connection and memory.
type transport interface {
	// read waits for bytes and has them taken in: the buffer is picked when bytes are there, so
	// that a connection waiting for bytes holds none.
	read(to intake) error
	// write sends from the front of parts as much as it can and returns what is left. With
	// block unset it returns errWouldBlock rather than wait for the peer.
	write(parts []Part, block bool) ([]Part, error)
	close() error
}

// intake takes bytes from a connection; read gets some.
type intake interface {
	take(read func([]byte) (int, error)) error
}

// socket is the transport of a plain TCP connection: non-blocking system calls on its
// descriptor, sendmsg for bytes and sendfile for file ranges. The functions it hands to the runtime are made
// once, and what they need is in fields, so that neither direction allocates.
type socket struct {
	conn net.Conn
	raw  syscall.RawConn

	// owned by the goroutine that reads
	readFD   uintptr
	to       intake
	taken    error
	readable func(fd uintptr) bool
	readSome func([]byte) (int, error)

	// owned by the goroutine that writes
	parts    []Part
	block    bool
	written  error
	writable func(fd uintptr) bool
	iov      [][]byte
}

func newSocket(conn net.Conn, raw syscall.RawConn) *socket {
	s := &socket{conn: conn, raw: raw}
	s.readable, s.readSome, s.writable = s.whenReadable, s.readNow, s.whenWritable
	return s
}

func (s *socket) close() error { return s.conn.Close() }

func (s *socket) read(to intake) error {
	s.to = to
	if err := s.raw.Read(s.readable); err != nil {
		return err
	}
	return s.taken
}

func (s *socket) whenReadable(fd uintptr) bool {
	s.readFD = fd
	s.taken = s.to.take(s.readSome)
	return s.taken != errWouldBlock
}

func (s *socket) readNow(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(s.readFD), p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return 0, errWouldBlock
		case err != nil:
			return 0, fmt.Errorf("read: %w", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (s *socket) write(parts []Part, block bool) ([]Part, error) {
	s.parts, s.block, s.written = parts, block, nil
	err := s.raw.Write(s.writable)
	parts, s.parts = s.parts, nil
	if err != nil {
		return parts, err
	}
	return parts, s.written
}

func (s *socket) whenWritable(fd uintptr) bool {
	for len(s.parts) > 0 {
		if s.parts, s.written = s.writeSome(int(fd), s.parts); s.written != nil {
			break
		}
	}
	if s.written == errWouldBlock && s.block {
		s.written = nil
		return false // called again when the socket has room
	}
	return true
}

// writeSome makes one system call and drops what it sent from the front of parts.
func (s *socket) writeSome(fd int, parts []Part) ([]Part, error) {
	if parts[0].File != nil {
		return s.sendFile(fd, parts)
	}
	if len(parts) == 1 { // nearly every answer; a plain write costs least
		n, err := unix.Write(fd, parts[0].Bytes)
		return sent(parts, n, err)
	}
	const maxVectors = 64
	s.iov = s.iov[:0]
	for i := 0; i < len(parts) && len(s.iov) < maxVectors; i++ {
		if p := &parts[i]; p.File != nil {
			if p.Length > copyRange {
				break
			}
			if err := p.copyIn(p.Length); err != nil { // a little of a file goes along with what is around it
				return parts, err
			}
		}
		s.iov = append(s.iov, parts[i].Bytes)
	}
	flags := unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT
	if len(s.iov) < len(parts) {
		flags |= unix.MSG_MORE
	}
	n, err := unix.SendmsgBuffers(fd, s.iov, nil, nil, flags)
	clear(s.iov)
	return sent(parts, n, err)
}

// sent is what is left of parts after a system call that took n bytes.
func sent(parts []Part, n int, err error) ([]Part, error) {
	switch {
	case err == unix.EINTR:
		return parts, nil
	case err == unix.EAGAIN:
		return parts, errWouldBlock
	case err != nil:
		return parts, fmt.Errorf("write: %w", err)
	}
	return consume(parts, int64(n)), nil
}

func (s *socket) sendFile(fd int, parts []Part) ([]Part, error) {
	p := &parts[0]
	in, base, ok := p.File.File()
	if !ok || p.Length <= copyRange {
		if err := p.copyIn(min(p.Length, 256<<10)); err != nil {
			return parts, err
		}
		if p.File != nil { // more of the file follows the bytes just read
			rest := Part{File: p.File, Offset: p.Offset, Length: p.Length}
			parts = append([]Part{{Bytes: p.Bytes}, rest}, parts[1:]...)
		}
		return parts, nil
	}
	const chunk = 1 << 30
	offset := base + p.Offset
	n, err := unix.Sendfile(fd, int(in), &offset, int(min(p.Length, chunk)))
	switch {
	case err == unix.EINTR:
		return parts, nil
	case err == unix.EAGAIN:
		return parts, errWouldBlock
	case err != nil:
		return parts, fmt.Errorf("sendfile: %w", err)
	case n == 0:
		return parts, fmt.Errorf("sendfile: the file ends before offset %d, where %d more bytes were promised", offset, p.Length)
	}
	return consume(parts, int64(n)), nil
}

// copyIn turns the next n bytes of a file part into memory. When the whole range has been
// read the file is released; else Offset and Length tell what is left.
func (p *Part) copyIn(n int64) error {
	var buf []byte
	if n <= copyRange {
		p.pooled = outBuffers.Get().(*outBuffer)
		p.pooled.b = slices.Grow(p.pooled.b[:0], int(n))
		buf = p.pooled.b[:n]
	} else {
		buf = make([]byte, n)
	}
	if _, err := p.File.ReadAt(buf, p.Offset); err != nil {
		return fmt.Errorf("reading %d bytes at %d of a segment: %w", n, p.Offset, err)
	}
	p.Bytes = buf
	p.Offset += n
	p.Length -= n
	if p.Length == 0 {
		p.File.Release()
		p.File = nil
		p.Length = n
	}
	return nil
}

// consume drops n sent bytes from the front of parts, releasing what is complete.
func consume(parts []Part, n int64) []Part {
	for len(parts) > 0 {
		p := &parts[0]
		if p.File != nil {
			p.Offset += n
			p.Length -= n
			if p.Length > 0 {
				return parts
			}
			n = 0
		} else {
			if n < int64(len(p.Bytes)) {
				p.Bytes = p.Bytes[n:]
				return parts
			}
			n -= int64(len(p.Bytes))
		}
		p.release()
		parts = parts[1:]
		if n == 0 {
			return parts
		}
	}
	return parts
}

// stream is the transport of any other connection (TLS, a pipe in memory): reads and writes
// block, and file ranges are copied.
type stream struct{ conn net.Conn }

func (s *stream) close() error { return s.conn.Close() }

func (s *stream) read(to intake) error { return to.take(s.conn.Read) }

func (s *stream) write(parts []Part, block bool) ([]Part, error) {
	if !block {
		return parts, errWouldBlock
	}
	for len(parts) > 0 {
		p := &parts[0]
		if p.File != nil {
			var buf [32 << 10]byte
			n := min(p.Length, int64(len(buf)))
			if _, err := p.File.ReadAt(buf[:n], p.Offset); err != nil {
				return parts, fmt.Errorf("reading %d bytes at %d of a segment: %w", n, p.Offset, err)
			}
			if _, err := s.conn.Write(buf[:n]); err != nil {
				return parts, err
			}
			parts = consume(parts, n)
			continue
		}
		if _, err := s.conn.Write(p.Bytes); err != nil {
			return parts, err
		}
		parts = consume(parts, int64(len(p.Bytes)))
	}
	return parts, nil
}
