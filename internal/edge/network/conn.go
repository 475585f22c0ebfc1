package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/wire/protocol"
)

// Limits of one connection.
const (
	maxOutstanding = 1024     // requests started and not answered
	maxUnsent      = 64 << 20 // bytes of answers waiting for the socket before reading stops
)

// Conn is one accepted connection.
type Conn struct {
	Listener   string // name of the listener it came in by
	RemoteAddr net.Addr
	LocalAddr  net.Addr
	ID         uint64

	server    *Server
	transport transport
	ctx       context.Context // ends with the connection; its cause says why
	cancel    context.CancelCauseFunc
	lease     lease

	lastActive atomic.Int64 // milliseconds; for the idle sweep
	inFrame    atomic.Bool  // part of a frame has been received

	// owned by the read loop
	buf        *readBuffer
	clientID   string
	frameSize  int // of the frame at the head of buf, with its size field; 0 when unknown
	usualFrame int // size of the last frame

	mu       sync.Mutex
	changed  sync.Cond  // queue or closed changed, for the read loop
	queue    []*Request // unanswered and unsent, in order
	barriers int        // of them: not done and not overlapping
	unsent   int64      // bytes of complete answers in the queue and in the writer's hands
	corked   bool       // the read loop has more whole requests in hand
	writing  bool       // somebody is in flush
	serving  bool       // the read loop is inside Handler.Serve
	closed   bool

	attachments sync.Map // what upper floors remember of a connection
}

// Remember keeps a value with the connection under a key of the caller's own type.
func (c *Conn) Remember(key, value any) { c.attachments.Store(key, value) }

// Recall gives back what Remember kept.
func (c *Conn) Recall(key any) (any, bool) { return c.attachments.Load(key) }

// Context ends when the connection does.
func (c *Conn) Context() context.Context { return c.ctx }

var errPeerClosed = errors.New("closed by the peer")

// cutShort ends a connection in the middle of a frame.
type cutShort struct {
	have int // bytes of the frame, its size field included
	err  error
}

func (e *cutShort) Error() string { return fmt.Sprintf("%v after %d bytes of a frame", e.err, e.have) }
func (e *cutShort) Unwrap() error { return e.err }

// run is the read loop. It returns when the connection has ended.
func (c *Conn) run() {
	err := c.readLoop()
	c.Close(err)
	c.dropBuffer()
	c.server.forget(c)
}

func (c *Conn) readLoop() error {
	for {
		whole, err := c.nextFrame()
		if err != nil {
			return err
		}
		if !whole {
			c.uncork()
			if err := c.fill(); err != nil {
				return err
			}
			continue
		}
		req, err := c.cut()
		if err != nil {
			return err
		}
		if err := c.enqueue(req); err != nil {
			return err
		}
		c.server.handler.Serve(req)
		c.served(req)
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
	}
}

// nextFrame looks at the head of the buffer: is a whole frame there?
func (c *Conn) nextFrame() (bool, error) {
	b := c.buf
	if b == nil || b.w-b.r < 4 {
		return false, nil
	}
	size := int32(binary.BigEndian.Uint32(b.b[b.r:]))
	if size < minFrame || int(size) > c.server.options.MaxRequestBytes {
		return false, fmt.Errorf("frame of %d bytes (hex %x), where %d to %d (socket.request.max.bytes) are allowed: not a Kafka client, or a request that is too large",
			size, b.b[b.r:min(b.w, b.r+8)], minFrame, c.server.options.MaxRequestBytes)
	}
	c.frameSize = int(size) + 4
	return b.w-b.r >= c.frameSize, nil
}

// minFrame is the smallest request header: key, version, correlation id; version 0 of
// ControlledShutdown, which had no client id, is long gone, so the client id's length must follow.
const minFrame = 10

// cut takes the frame at the head of the buffer.
func (c *Conn) cut() (*Request, error) {
	b := c.buf
	frame := b.b[b.r+4 : b.r+c.frameSize : b.r+c.frameSize]
	b.r += c.frameSize
	size := c.frameSize - 4
	c.usualFrame, c.frameSize = c.frameSize, 0
	c.inFrame.Store(false)

	req := &Request{
		Conn:          c,
		Key:           int16(binary.BigEndian.Uint16(frame)),
		Version:       int16(binary.BigEndian.Uint16(frame[2:])),
		CorrelationID: int32(binary.BigEndian.Uint32(frame[4:])),
		Size:          size,
		ReceivedAt:    c.server.options.Now(),
	}
	length := int(int16(binary.BigEndian.Uint16(frame[8:])))
	rest := frame[10:]
	switch {
	case length < -1 || length > len(rest):
		return nil, fmt.Errorf("request header of key %d: client id of %d bytes where %d are left: not a Kafka client", req.Key, length, len(rest))
	case length > 0:
		if c.clientID != string(rest[:length]) {
			c.clientID = string(rest[:length])
		}
		req.ClientID = c.clientID
		rest = rest[length:]
	}
	if protocol.RequestHeaderVersion(req.Key, req.Version) >= 2 {
		var err error
		if rest, err = protocol.SkipTags(rest); err != nil {
			// An unknown key or version is judged by the handler, which needs no body.
			if _, _, known := protocol.Versions(req.Key); known {
				return nil, fmt.Errorf("request header of %s v%d: %w", protocol.ApiName(req.Key), req.Version, err)
			}
			rest = nil
		}
	}
	req.Header = frame[:len(frame)-len(rest)]
	req.Body = rest
	req.flexible = protocol.ResponseHeaderVersion(req.Key, req.Version) >= 1
	return req, nil
}

// fill reads more bytes, making room first.
func (c *Conn) fill() error {
	if c.buf != nil {
		if err := c.makeRoom(); err != nil {
			return err
		}
	}
	if err := c.transport.read(c); err != nil {
		if errors.Is(err, io.EOF) {
			err = errPeerClosed
		}
		if c.buf != nil && c.buf.w > c.buf.r {
			err = &cutShort{have: c.buf.w - c.buf.r, err: err}
		}
		return err
	}
	c.lastActive.Store(c.server.options.Now().UnixMilli())
	c.inFrame.Store(true)
	return nil
}

// take reads once into the buffer, which a connection without bytes in hand takes first.
func (c *Conn) take(read func([]byte) (int, error)) error {
	if c.buf == nil {
		c.buf = c.firstBuffer()
	}
	n, err := read(c.buf.b[c.buf.w:])
	c.buf.w += n
	c.server.stats.BytesIn.Add(int64(n))
	if err != nil && c.buf.r == c.buf.w {
		c.dropBuffer()
	}
	return err
}

// makeRoom moves the bytes in hand to the front of the buffer, or to a larger one. A buffer
// grows only when it is full, whatever size the frame declares.
func (c *Conn) makeRoom() error {
	b := c.buf
	have := b.w - b.r
	if have == 0 {
		b.r, b.w = 0, 0
		return nil
	}
	if have == len(b.b) { // full of the beginning of one frame
		size := sizeFor(min(c.frameSize, 4*len(b.b)))
		if err := c.server.budget.acquire(c.ctx, &c.lease, int64(size)); err != nil {
			return err
		}
		larger := takeBuffer(size)
		larger.w = copy(larger.b, b.b[b.r:b.w])
		giveBuffer(b)
		c.buf = larger
		return nil
	}
	if b.w == len(b.b) || b.r+c.frameSize > len(b.b) {
		b.w = copy(b.b, b.b[b.r:b.w])
		b.r = 0
	}
	return nil
}

// firstBuffer takes the buffer for bytes that have arrived: a small one, or one of the size
// the connection's frames had lately if the budget has that much to spare.
func (c *Conn) firstBuffer() *readBuffer {
	if c.usualFrame > smallBuffer/2 {
		size := sizeFor(min(2*c.usualFrame, bufferClasses[2]))
		if size == smallBuffer || c.server.budget.tryAcquire(&c.lease, int64(size)) {
			return takeBuffer(size)
		}
	}
	return takeBuffer(smallBuffer)
}

// dropBuffer gives the buffer back; the read loop holds none while it waits for a request.
func (c *Conn) dropBuffer() {
	if c.buf == nil {
		return
	}
	giveBuffer(c.buf)
	c.buf = nil
	if c.lease.held > 0 {
		c.server.budget.release(&c.lease)
	}
}

// enqueue gives the request its place in the order of answers, and waits until it may start.
func (c *Conn) enqueue(req *Request) error {
	more, err := c.nextFrame()
	if err != nil {
		more = false // the answer to this request goes out before the connection is closed
	}
	c.mu.Lock()
	if !c.mayStart() {
		c.mu.Unlock()
		c.uncork()
		c.mu.Lock()
		for !c.mayStart() && !c.closed {
			c.changed.Wait()
		}
	}
	if c.closed {
		c.mu.Unlock()
		return context.Cause(c.ctx)
	}
	c.queue = append(c.queue, req)
	if !c.server.overlaps(req.Key) {
		c.barriers++
	}
	c.corked = more
	c.serving = true
	c.mu.Unlock()
	return nil
}

func (c *Conn) mayStart() bool {
	return c.barriers == 0 && len(c.queue) < maxOutstanding && c.unsent < maxUnsent
}

// served ends the time on the read loop; what an unanswered request takes from here on is waiting.
func (c *Conn) served(req *Request) {
	c.mu.Lock()
	c.serving = false
	waits := !req.done
	c.mu.Unlock()
	if waits {
		req.local.Store(int64(c.server.options.Now().Sub(req.ReceivedAt)))
	}
}

// uncork sends what was held back while the buffer had whole requests.
func (c *Conn) uncork() {
	c.mu.Lock()
	c.corked = false
	c.mu.Unlock()
	c.flushIfReady()
}

// Close ends the connection for a reason, which is logged once unless it is the peer's own
// ordinary leaving. Requests still waiting may be answered later; their answers are dropped.
func (c *Conn) Close(reason error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	c.cancel(reason)
	c.changed.Broadcast()
	var dropped []*Request
	if !c.writing { // else the writer drops them
		dropped = c.takeAll()
	}
	c.mu.Unlock()
	for _, r := range dropped {
		r.drop()
	}
	c.server.closed(c, reason) // before the peer can see it, so that a log read afterwards has the line
	c.transport.close()
}

// idleSince is when bytes last arrived.
func (c *Conn) idleSince() time.Time { return time.UnixMilli(c.lastActive.Load()) }
