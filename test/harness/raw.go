package harness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"samsa/internal/wire/protocol"
)

// Conn is a connection that speaks Kafka's protocol and has no opinion: what it is told to send it sends.
// Not for concurrent use.
type Conn struct {
	net.Conn
	Limit time.Duration // how long an answer may take

	last int32 // correlation id of the last request
}

// ErrClosed is what an ask returns when the other side ends the connection instead of answering.
var ErrClosed = errors.New("the connection was closed")

// Dial opens a raw connection that is closed when the test ends.
func Dial(t testing.TB, addr string) *Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &Conn{Conn: c, Limit: 15 * time.Second}
}

// Ask sends the request and reads its answer.
func (c *Conn) Ask(version int16, req protocol.Request) (protocol.Response, error) {
	if err := c.Send(version, req); err != nil {
		return nil, err
	}
	return c.Answer(req.ApiKey(), version)
}

// Send sends the request and does not wait.
func (c *Conn) Send(version int16, req protocol.Request) error {
	body, err := req.Append(nil, version)
	if err != nil {
		return fmt.Errorf("encoding %s v%d: %w", protocol.ApiName(req.ApiKey()), version, err)
	}
	return c.SendBody(req.ApiKey(), version, body)
}

// SendBody sends a request whose body is made of these bytes, behind a correct header.
func (c *Conn) SendBody(key, version int16, body []byte) error {
	c.last++
	id := "samsa-test"
	h := protocol.RequestHeader{RequestApiKey: key, RequestApiVersion: version, CorrelationId: c.last, ClientId: &id}
	frame, err := h.Append(make([]byte, 4), protocol.RequestHeaderVersion(key, version))
	if err != nil {
		return err
	}
	frame = append(frame, body...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	_, err = c.Write(frame)
	return err
}

// Rewind makes the answer read next be that of the request count-1 before the last one sent, and Forward
// goes on to the next: for requests that were sent without waiting.
func (c *Conn) Rewind(count int) { c.last -= int32(count) - 1 }

// Forward goes on to the answer of the next request; see Rewind.
func (c *Conn) Forward() { c.last++ }

// Answer reads one answer as that of a request of key at version. Nothing may be left behind it.
func (c *Conn) Answer(key, version int16) (protocol.Response, error) {
	body, err := c.AnswerBody(key, version)
	if err != nil {
		return nil, err
	}
	resp := protocol.NewResponse(key)
	rest, err := resp.Read(body, version)
	if err != nil {
		return nil, fmt.Errorf("decoding the answer of %s v%d: %w", protocol.ApiName(key), version, err)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes behind the answer of %s v%d", len(rest), protocol.ApiName(key), version)
	}
	return resp, nil
}

// AnswerBody reads one answer and returns what follows its header.
func (c *Conn) AnswerBody(key, version int16) ([]byte, error) {
	c.SetReadDeadline(time.Now().Add(c.Limit))
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil, fmt.Errorf("no answer within %s", c.Limit)
		}
		return nil, ErrClosed
	}
	size, id := binary.BigEndian.Uint32(head[:]), int32(binary.BigEndian.Uint32(head[4:]))
	if id != c.last {
		return nil, fmt.Errorf("the answer is of request %d, expected %d", id, c.last)
	}
	if size < 4 || size > 1<<27 {
		return nil, fmt.Errorf("an answer of %d bytes", size)
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(c, body); err != nil {
		return nil, ErrClosed
	}
	if protocol.ResponseHeaderVersion(key, version) > 0 {
		return protocol.SkipTags(body)
	}
	return body, nil
}
