package network

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/wire/protocol"
)

// Request is one request of one connection. It is answered exactly once, by Reply, ReplyParts,
// NoReply or Close; later calls are ignored.
type Request struct {
	Conn          *Conn
	Key           int16
	Version       int16
	CorrelationID int32
	ClientID      string // "" when the client sent null
	Body          []byte // borrowed until Serve returns: what is kept beyond must be copied
	Header        []byte // the request header as received; borrowed like Body (an Envelope carries it on)
	Size          int    // bytes of the frame, header included
	ReceivedAt    time.Time

	flexible bool         // whether the response header has a tag section
	local    atomic.Int64 // nanoseconds on the read loop, once Serve has returned without an answer

	// guarded by Conn.mu
	done  bool
	parts []Part

	one      [1]Part // parts, where one is all
	oneTaken atomic.Bool
}

// single makes parts of one buffer. A second answer, which will be ignored, must not touch the first.
func (r *Request) single(buf *outBuffer) []Part {
	if r.oneTaken.Swap(true) {
		return []Part{{Bytes: buf.b, pooled: buf}}
	}
	r.one[0] = Part{Bytes: buf.b, pooled: buf}
	return r.one[:]
}

// Local is how long the request was served on its connection's read loop, when it was not answered
// there; 0 when it was.
func (r *Request) Local() time.Duration { return time.Duration(r.local.Load()) }

// FileRange is a run of bytes of an open file, sent without passing through this process where
// the file has a descriptor. partlog.Slice is one.
type FileRange interface {
	// File gives the file's descriptor and where in it the run begins, or false when there is no
	// descriptor (a file in memory). The descriptor stays open until Release.
	File() (fd uintptr, offset int64, ok bool)
	// ReadAt reads from the run: off 0 is its first byte.
	ReadAt(p []byte, off int64) (int, error)
	// Release is called once, when the bytes have been sent or the connection is gone.
	Release()
}

// Part is one piece of a response: bytes, or a range of a file. Bytes are owned by the network
// from the call on until the response is sent.
type Part struct {
	Bytes  []byte
	File   FileRange // nil for bytes
	Offset int64     // where in the run to begin
	Length int64     // how many bytes of the run; all of them must exist

	pooled *outBuffer
}

// outBuffer is a pooled buffer that responses are built in.
type outBuffer struct{ b []byte }

var outBuffers = sync.Pool{New: func() any { return &outBuffer{b: make([]byte, 0, 512)} }}

// maxPooledOut is the largest response buffer that goes back to the pool.
const maxPooledOut = 64 << 10

// responseHeaderSize is the size field, the correlation id and the empty tag section.
func (r *Request) responseHeader(dst []byte) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.CorrelationID))
	if r.flexible {
		dst = append(dst, 0)
	}
	return dst
}

// appender is what every generated response has.
type appender interface {
	Append(dst []byte, version int16) ([]byte, error)
}

// Reply sends a response encoded at the request's version.
// A response that cannot be encoded is a defect of the handler: it is logged and the connection closed.
func (r *Request) Reply(response appender) { r.ReplyVersion(response, r.Version) }

// ReplyVersion is Reply with another version than the request's: the answer to an ApiVersions
// request of an unknown version has the layout of version 0.
func (r *Request) ReplyVersion(response appender, version int16) {
	buf := outBuffers.Get().(*outBuffer)
	dst, err := response.Append(r.responseHeader(buf.b[:0]), version)
	if err != nil {
		outBuffers.Put(buf)
		r.Close(fmt.Errorf("encoding the response of %s v%d: %w", protocol.ApiName(r.Key), version, err))
		return
	}
	buf.b = dst
	r.finish(r.single(buf), int64(len(dst)))
}

// ReplyParts sends a response given as its encoded body in pieces, in order. The network
// puts the response header before it.
func (r *Request) ReplyParts(parts []Part) {
	buf := outBuffers.Get().(*outBuffer)
	buf.b = r.responseHeader(buf.b[:0])
	total := int64(len(buf.b))
	all := make([]Part, 0, len(parts)+1)
	if len(parts) > 0 && parts[0].File == nil && len(parts[0].Bytes) <= maxPooledOut {
		buf.b = append(buf.b, parts[0].Bytes...)
		total += int64(len(parts[0].Bytes))
		parts = parts[1:]
	}
	all = append(all, Part{Bytes: buf.b, pooled: buf})
	for _, p := range parts {
		if p.File == nil {
			p.Length = int64(len(p.Bytes))
		}
		if p.Length == 0 {
			p.release()
			continue
		}
		total += p.Length
		all = append(all, p)
	}
	r.finish(all, total)
}

// ReplyEncoded sends body, an already encoded response body, which is copied.
func (r *Request) ReplyEncoded(body []byte) {
	buf := outBuffers.Get().(*outBuffer)
	buf.b = append(r.responseHeader(buf.b[:0]), body...)
	r.finish(r.single(buf), int64(len(buf.b)))
}

// ReplyRaw sends an answer that has its response header already, as an Envelope brings it. It is copied.
func (r *Request) ReplyRaw(answer []byte) {
	buf := outBuffers.Get().(*outBuffer)
	buf.b = append(append(buf.b[:0], 0, 0, 0, 0), answer...)
	r.finish(r.single(buf), int64(len(buf.b)))
}

// NoReply completes a request that has no response: Produce with acks=0.
func (r *Request) NoReply() { r.Conn.complete(r, nil) }

// Close ends the connection because of what this request said or because it cannot be
// answered. The reason is logged once.
func (r *Request) Close(reason error) {
	name := protocol.ApiName(r.Key)
	if name == "" {
		name = fmt.Sprintf("request %d", r.Key)
	}
	r.Conn.Close(fmt.Errorf("%s v%d of client %.100q: %w", name, r.Version, r.ClientID, reason))
	r.Conn.complete(r, nil)
}

// finish writes the size before the first part and hands the response to the connection.
func (r *Request) finish(parts []Part, total int64) {
	const maxResponse = 1<<31 - 1
	if total-4 > maxResponse {
		for i := range parts {
			parts[i].release()
		}
		r.Close(fmt.Errorf("the response has %d bytes, more than a frame can declare", total))
		return
	}
	binary.BigEndian.PutUint32(parts[0].Bytes, uint32(total-4))
	r.Conn.complete(r, parts)
}

func (p *Part) release() {
	if p.File != nil {
		p.File.Release()
		p.File = nil
	}
	if p.pooled != nil {
		if cap(p.pooled.b) <= maxPooledOut {
			p.pooled.b = p.pooled.b[:0]
			outBuffers.Put(p.pooled)
		}
		p.pooled = nil
	}
	p.Bytes = nil
}
