package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// Versions is what a peer offers: API key to its range.
type Versions map[int16]VersionRange

// VersionRange is a range of versions, both ends included.
type VersionRange struct{ Min, Max int16 }

// Pick is the highest version both sides know; false if there is none.
func (v Versions) Pick(key int16) (int16, bool) {
	low, high, ok := protocol.Versions(key)
	theirs, offered := v[key]
	if !ok || !offered {
		return 0, false
	}
	version := min(high, theirs.Max)
	return version, version >= max(low, theirs.Min)
}

// conn is one open connection.
type conn struct {
	d        *dest
	nc       net.Conn
	versions Versions // set by handshake, before anyone else sees the conn

	// writing is held by whoever writes a request. A channel, because waiting for it obeys a context.
	writing chan struct{}
	next    int32      // correlation id; guarded by writing
	waiting chan *call // in the order written; the reader takes from it

	once sync.Once
	err  error         // set before dead is closed
	dead chan struct{} // closed when the connection is of no more use
}

// call is a request on its way.
type call struct {
	id    int32
	frame chan []byte // one slot: the answer behind its correlation id
}

func newConn(d *dest, nc net.Conn) *conn {
	return &conn{
		d: d, nc: nc,
		writing: make(chan struct{}, 1),
		waiting: make(chan *call, d.client.o.MaxInFlight),
		dead:    make(chan struct{}),
	}
}

// fail ends the connection; the first reason counts.
func (c *conn) fail(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.dead)
		c.nc.Close()
		c.d.lost(c)
		if !errors.Is(err, ErrClosed) {
			c.d.client.o.Log.Debug("connection lost", "addr", c.d.addr, "err", err)
		}
	})
}

func (c *conn) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// handshake asks for the peer's versions, at our newest version and, when it does not know that one, at the newest it
// does. A peer answers an unknown version of ApiVersions at version 0 (K-202).
func (c *conn) handshake(ctx context.Context) error {
	_, version, _ := protocol.Versions(protocol.KeyApiVersions)
	for range 2 {
		req := protocol.Make[protocol.ApiVersionsRequest]()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "samsa", "4.4.0"
		frame, err := c.exchange(ctx, &req, version)
		if err != nil {
			return err
		}
		var resp protocol.ApiVersionsResponse
		unsupported := len(frame) >= 2 && int16(binary.BigEndian.Uint16(frame)) == kerr.UnsupportedVersion.Code
		if unsupported {
			_, err = resp.Read(frame, 0)
		} else {
			_, err = resp.Read(frame, version)
		}
		if err != nil {
			return fmt.Errorf("%w: %s sent an ApiVersions answer that cannot be read: %w", ErrDisconnected, c.d.addr, err)
		}
		if unsupported {
			version = 0
			for _, k := range resp.ApiKeys {
				if k.ApiKey == protocol.KeyApiVersions && k.MaxVersion > 0 {
					low, high, _ := protocol.Versions(protocol.KeyApiVersions)
					version = max(low, min(high, k.MaxVersion))
				}
			}
			continue
		}
		if e := kerr.ForCode(resp.ErrorCode); e != nil {
			return fmt.Errorf("%w: %s refuses ApiVersions: %w", ErrDisconnected, c.d.addr, e)
		}
		c.versions = make(Versions, len(resp.ApiKeys))
		for _, k := range resp.ApiKeys {
			c.versions[k.ApiKey] = VersionRange{k.MinVersion, k.MaxVersion}
		}
		return nil
	}
	return fmt.Errorf("%w: %s and this node share no version of ApiVersions", ErrDisconnected, c.d.addr)
}

// Versioned is a request whose content depends on the version it is sent at: what goes out is At of that version.
type Versioned interface {
	protocol.Request
	At(version int16) protocol.Request
}

// send sends a request at the negotiated version.
func (c *conn) send(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	key := req.ApiKey()
	version, ok := c.versions.Pick(key)
	if !ok {
		return nil, kerr.UnsupportedVersion.With("%s at %s: no version in common", protocol.ApiName(key), c.d.addr)
	}
	if v, ok := req.(Versioned); ok {
		req = v.At(version)
	}
	frame, err := c.exchange(ctx, req, version)
	if err != nil {
		return nil, err
	}
	resp := protocol.NewResponse(key)
	if _, err := resp.Read(frame, version); err != nil {
		err = fmt.Errorf("%w: %s sent a %s answer that cannot be read: %w", ErrDisconnected, c.d.addr, protocol.ApiName(key), err)
		c.fail(err)
		return nil, err
	}
	return resp, nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled is the largest request buffer kept for the next one.
const maxPooled = 256 << 10

// exchange writes a request and waits for the body of its answer (behind the response header).
func (c *conn) exchange(ctx context.Context, req protocol.Request, version int16) ([]byte, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.d.client.o.RequestTimeout)
		defer cancel()
	}
	cl, err := c.write(ctx, req, version)
	if err != nil {
		return nil, err
	}
	select {
	case frame := <-cl.frame:
		return c.body(frame, req.ApiKey(), version)
	default:
	}
	select {
	case frame := <-cl.frame:
		return c.body(frame, req.ApiKey(), version)
	case <-c.dead:
		select { // it may have come just before the end
		case frame := <-cl.frame:
			return c.body(frame, req.ApiKey(), version)
		default:
			return nil, c.err
		}
	case <-ctx.Done():
		err := gaveUp(ctx, c.d.addr)
		if errors.Is(err, ErrDisconnected) {
			c.fail(err)
		}
		return nil, err
	}
}

// body cuts the response header off.
func (c *conn) body(frame []byte, key, version int16) ([]byte, error) {
	if protocol.ResponseHeaderVersion(key, version) == 0 {
		return frame[4:], nil
	}
	var h protocol.ResponseHeader
	rest, err := h.Read(frame, 1)
	if err != nil {
		err = fmt.Errorf("%w: %s sent a header that cannot be read: %w", ErrDisconnected, c.d.addr, err)
		c.fail(err)
		return nil, err
	}
	return rest, nil
}

// write encodes and writes one request and puts it in line for its answer.
func (c *conn) write(ctx context.Context, req protocol.Request, version int16) (*call, error) {
	select {
	case c.writing <- struct{}{}:
	case <-c.dead:
		return nil, c.err
	case <-ctx.Done():
		return nil, gaveUp(ctx, c.d.addr)
	}
	defer func() { <-c.writing }()
	cl := &call{id: c.next, frame: make(chan []byte, 1)}
	buf := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= maxPooled {
			buffers.Put(buf)
		}
	}()
	h := protocol.RequestHeader{RequestApiKey: req.ApiKey(), RequestApiVersion: version, CorrelationId: cl.id, ClientId: &c.d.client.o.ClientID}
	b, err := h.Append(append((*buf)[:0], 0, 0, 0, 0), protocol.RequestHeaderVersion(req.ApiKey(), version))
	if err == nil {
		b, err = req.Append(b, version)
	}
	*buf = b
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s v%d: %w", protocol.ApiName(req.ApiKey()), version, err)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	select { // a full line waits for answers
	case c.waiting <- cl:
	case <-c.dead:
		return nil, c.err
	case <-ctx.Done():
		return nil, gaveUp(ctx, c.d.addr)
	}
	c.next = (c.next + 1) & (1<<31 - 1)
	deadline, _ := ctx.Deadline()
	if err = c.nc.SetWriteDeadline(deadline); err == nil {
		if _, err = c.nc.Write(b); err == nil {
			return cl, nil
		}
	}
	// Half a request may be out: nothing more can be said on this connection.
	c.fail(fmt.Errorf("%w: cannot write to %s: %w", ErrDisconnected, c.d.addr, err))
	return nil, c.err
}

// read hands answers to those who wait, until the connection ends.
func (c *conn) read() {
	defer c.d.client.wg.Done()
	for {
		frame, err := readFrame(c.nc, c.d.client.o.MaxFrame)
		if err != nil {
			c.fail(fmt.Errorf("%w from %s: %w", ErrDisconnected, c.d.addr, err))
			return
		}
		id := int32(binary.BigEndian.Uint32(frame))
		select {
		case cl := <-c.waiting:
			if cl.id != id {
				c.fail(fmt.Errorf("%w: %s answered request %d, but %d is next", ErrDisconnected, c.d.addr, id, cl.id))
				return
			}
			cl.frame <- frame
		default:
			c.fail(fmt.Errorf("%w: %s sent an answer that nobody asked for", ErrDisconnected, c.d.addr))
			return
		}
	}
}

// readFrame reads one length-prefixed frame of at least a correlation id. Beyond the first 64 KiB memory grows with what
// has come.
func readFrame(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 4 || n > limit {
		return nil, fmt.Errorf("a frame of %d bytes; expected 4 to %d", n, limit)
	}
	frame := make([]byte, min(n, 64<<10))
	for at := 0; ; {
		m, err := io.ReadFull(r, frame[at:])
		if err != nil {
			return nil, err
		}
		if at += m; at == n {
			return frame, nil
		}
		bigger := make([]byte, min(n, 2*len(frame)))
		copy(bigger, frame)
		frame = bigger
	}
}
