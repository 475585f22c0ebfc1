package network

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"samsa/internal/wire/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a server on a loopback port and gives a dialer.
func start(t *testing.T, o Options) (*Server, *logBuffer, func() net.Conn) {
	t.Helper()
	logs := &logBuffer{}
	o.Log = slog.New(slog.NewTextHandler(logs, nil))
	s := New(o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Start("PLAINTEXT", ln)
	t.Cleanup(s.Close)
	return s, logs, func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(20 * time.Second))
		return c
	}
}

// heartbeat is a frame of key 12 version 3: a version 1 header and body as given.
func frame(key, version int16, correlation int32, body []byte) []byte {
	var b []byte
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	b = append(b, 0, 2, 'm', 'e')
	if protocol.RequestHeaderVersion(key, version) >= 2 {
		b = append(b, 0)
	}
	b = append(b, body...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func readFrame(t *testing.T, c net.Conn) (correlation int32, body []byte) {
	t.Helper()
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatalf("reading a response: %v", err)
	}
	body = make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(c, body); err != nil {
		t.Fatalf("reading a response: %v", err)
	}
	return int32(binary.BigEndian.Uint32(head[4:])), body
}

func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		time.Sleep(time.Millisecond) // a poll of a condition with a deadline
	}
}

func expectClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") || n > 0 {
		t.Errorf("after %d bytes: %v, want a closed connection", n, err)
	}
}

const (
	overlapping = protocol.KeyProduce
	barrier     = protocol.KeyHeartbeat
)

func onlyProduceOverlaps(key int16) bool { return key == overlapping }

// A-05, decision 11: answers leave in the order of the requests, however they complete.
func TestAnswersKeepTheOrderOfRequests(t *testing.T) {
	var mu sync.Mutex
	var waiting []*Request
	_, _, dial := start(t, Options{Overlaps: onlyProduceOverlaps, Handler: HandlerFunc(func(r *Request) {
		mu.Lock()
		defer mu.Unlock()
		if waiting = append(waiting, r); len(waiting) < 50 {
			return
		}
		for i := len(waiting) - 1; i >= 0; i-- { // the last one first
			waiting[i].ReplyEncoded([]byte(fmt.Sprint(waiting[i].CorrelationID)))
		}
	})})
	c := dial()
	var all []byte
	for i := range int32(50) {
		all = append(all, frame(overlapping, 3, i, nil)...)
	}
	c.Write(all)
	for i := range int32(50) {
		if got, body := readFrame(t, c); got != i || string(body) != fmt.Sprint(i) {
			t.Fatalf("answer %d has correlation id %d and body %q", i, got, body)
		}
	}
}

// a request that is no produce holds the next one back until it is answered.
func TestBarrierHoldsTheNextRequest(t *testing.T) {
	started := make(chan *Request, 10)
	_, _, dial := start(t, Options{Overlaps: onlyProduceOverlaps, Handler: HandlerFunc(func(r *Request) { started <- r })})
	c := dial()
	c.Write(append(frame(overlapping, 3, 1, nil), append(frame(barrier, 3, 2, nil), frame(overlapping, 3, 3, nil)...)...))
	first, second := <-started, <-started
	select {
	case r := <-started:
		t.Fatalf("request %d started before the barrier was answered", r.CorrelationID)
	case <-time.After(20 * time.Millisecond):
	}
	second.ReplyEncoded(nil)
	third := <-started
	third.ReplyEncoded(nil)
	first.ReplyEncoded(nil)
	for want := int32(1); want <= 3; want++ {
		if got, _ := readFrame(t, c); got != want {
			t.Fatalf("answer %d where %d was due", got, want)
		}
	}
}

// An inline answer held back for more of the burst leaves even when the last request of the burst parks.
func TestCorkedAnswersLeaveWhenTheBurstEndsParked(t *testing.T) {
	parked := make(chan *Request, 1)
	_, _, dial := start(t, Options{Overlaps: func(int16) bool { return true }, Handler: HandlerFunc(func(r *Request) {
		if r.CorrelationID == 2 {
			parked <- r
			return
		}
		r.ReplyEncoded([]byte("now"))
	})})
	c := dial()
	c.Write(append(frame(overlapping, 3, 1, nil), frame(overlapping, 3, 2, nil)...))
	if got, _ := readFrame(t, c); got != 1 {
		t.Fatalf("answer %d", got)
	}
	(<-parked).ReplyEncoded(nil)
	readFrame(t, c)
}

// A-01 and the hostile network: what cannot be a frame closes the connection with one line of
// log; the neighbours do not notice.
func TestGarbageClosesOnlyItsConnection(t *testing.T) {
	for name, raw := range map[string][]byte{
		"negative_size":     {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"huge_size":         {0x7f, 0xff, 0xff, 0xff},
		"zero_size":         {0, 0, 0, 0},
		"header_cut":        {0, 0, 0, 9, 0, 3, 0, 12, 0, 0, 0, 1, 0},
		"client_id_too_big": {0, 0, 0, 10, 0, 3, 0, 12, 0, 0, 0, 1, 0x7f, 0xff},
		"client_id_minus_2": {0, 0, 0, 10, 0, 3, 0, 12, 0, 0, 0, 1, 0xff, 0xfe},
		"http":              []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"tls_hello":         {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"tag_bomb":          {0, 0, 0, 15, 0, 18, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		t.Run(name, func(t *testing.T) {
			_, logs, dial := start(t, Options{Handler: HandlerFunc(func(r *Request) { r.ReplyEncoded(nil) })})
			neighbour, c := dial(), dial()
			c.Write(raw)
			expectClosed(t, c)
			neighbour.Write(frame(barrier, 3, 7, nil))
			if got, _ := readFrame(t, neighbour); got != 7 {
				t.Errorf("the neighbour got %d", got)
			}
			if n := strings.Count(logs.String(), "\n"); n != 1 {
				t.Errorf("%d lines of log, want 1:\n%s", n, logs)
			}
		})
	}
}

// A declared size buys no memory: buffers grow with what arrives.
func TestDeclaredSizeBuysNothing(t *testing.T) {
	s, _, dial := start(t, Options{Handler: HandlerFunc(func(r *Request) { r.ReplyEncoded(nil) })})
	for range 50 {
		c := dial()
		c.Write([]byte{6, 0, 0, 0, 0, 12, 0, 3}) // 96 MiB announced
	}
	waitFor(t, "all connections accepted and read", func() bool { return s.Connections() == 50 && s.stats.BytesIn.Load() == 50*8 })
	if used := s.BufferedBytes(); used > 0 {
		t.Errorf("%d bytes charged for 50 announcements", used)
	}
}

// Two connections that both hold some of the budget and need more do not wait for each other for ever.
func TestBudgetDoesNotDeadlock(t *testing.T) {
	const size = 3 << 20
	s, _, dial := start(t, Options{QueuedBytes: 1 << 20, Handler: HandlerFunc(func(r *Request) {
		r.ReplyEncoded(binary.BigEndian.AppendUint32(nil, uint32(len(r.Body))))
	})})
	var wg sync.WaitGroup
	for i := range 8 {
		c := dial()
		wg.Go(func() {
			f := frame(barrier, 3, int32(i), bytes.Repeat([]byte{byte(i)}, size))
			if _, err := c.Write(f); err != nil {
				t.Error(err)
				return
			}
			if got, body := readFrame(t, c); got != int32(i) || binary.BigEndian.Uint32(body) != size {
				t.Errorf("connection %d: answer %d %x", i, got, body)
			}
		})
	}
	wg.Wait()
	waitFor(t, "everything given back", func() bool { return s.BufferedBytes() == 0 })
}

func TestBudgetWaiterLeaves(t *testing.T) {
	b := budget{limit: 10}
	var holder, gone, next lease
	if err := b.acquire(context.Background(), &holder, 8); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	left, granted := make(chan error), make(chan error)
	go func() { left <- b.acquire(ctx, &gone, 9) }()
	waitFor(t, "one waiter", func() bool { _, c := b.state(); return c })
	go func() { granted <- b.acquire(context.Background(), &next, 2) }()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the waiter that left got %v", err)
	}
	if err := <-granted; err != nil {
		t.Error(err)
	}
	b.release(&holder)
	b.release(&next)
	b.release(&gone)
	if used, contended := b.state(); used != 0 || contended {
		t.Errorf("%d bytes in use, contended %v", used, contended)
	}
}

// osFile is a file range over a real file.
type osFile struct {
	f        *os.File
	released func()
}

func (o osFile) File() (uintptr, int64, bool)            { return o.f.Fd(), 0, true }
func (o osFile) ReadAt(p []byte, off int64) (int, error) { return o.f.ReadAt(p, off) }
func (o osFile) Release()                                { o.released() }

// memFile is a file range without a descriptor.
type memFile struct {
	*bytes.Reader
	released func()
}

func (memFile) File() (uintptr, int64, bool) { return 0, 0, false }
func (m memFile) Release()                   { m.released() }

// Bytes and file ranges, small and large, with and without descriptors, over sockets and
// pipes, arrive as one body, and every range is released once.
func TestReplyPartsMixesBytesAndFiles(t *testing.T) {
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(i*7 + i>>8)
	}
	path := filepath.Join(t.TempDir(), "segment")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var releases int
	var mu sync.Mutex
	released := func() { mu.Lock(); releases++; mu.Unlock() }
	handler := HandlerFunc(func(r *Request) {
		r.ReplyParts([]Part{
			{Bytes: []byte("head")},
			{File: osFile{f, released}, Offset: 10, Length: 100},
			{Bytes: []byte("middle")},
			{File: osFile{f, released}, Offset: 1000, Length: 2 << 20},
			{File: memFile{bytes.NewReader(content), released}, Offset: 5, Length: 1 << 20},
			{File: osFile{f, released}, Offset: 0, Length: 0},
			{Bytes: []byte("tail")},
		})
	})
	want := append([]byte("head"), content[10:110]...)
	want = append(want, "middle"...)
	want = append(want, content[1000:1000+2<<20]...)
	want = append(want, content[5:5+1<<20]...)
	want = append(want, "tail"...)

	s, _, dial := start(t, Options{Handler: handler})
	pipe, far := net.Pipe()
	s.serve("PIPE", far)
	defer pipe.Close()
	for name, c := range map[string]net.Conn{"socket": dial(), "pipe": pipe} {
		mu.Lock()
		releases = 0
		mu.Unlock()
		c.Write(frame(barrier, 3, 1, nil))
		if _, body := readFrame(t, c); !bytes.Equal(body, want) {
			t.Errorf("%s: body of %d bytes differs from the %d sent", name, len(body), len(want))
		}
		waitFor(t, name+": four releases", func() bool { mu.Lock(); defer mu.Unlock(); return releases == 4 })
	}
}

// A reader that does not read holds up neither the goroutine that answers it nor anybody else,
// and its ranges are released when it goes.
func TestSlowReaderHoldsUpNobody(t *testing.T) {
	var mu sync.Mutex
	var slow []*Request
	released := make(chan struct{}, 1000)
	_, _, dial := start(t, Options{Overlaps: func(int16) bool { return true }, Handler: HandlerFunc(func(r *Request) {
		if r.Version == 3 {
			mu.Lock()
			slow = append(slow, r)
			mu.Unlock()
			return
		}
		mu.Lock() // the other connection's goroutine answers the slow one's requests
		for _, s := range slow {
			s.ReplyParts([]Part{{Bytes: []byte("x")}, {File: memFile{bytes.NewReader(make([]byte, 8<<20)), func() { released <- struct{}{} }}, Length: 8 << 20}})
		}
		slow = nil
		mu.Unlock()
		r.ReplyEncoded([]byte("ok"))
	})})
	stuck, quick := dial(), dial()
	for i := range int32(4) {
		stuck.Write(frame(overlapping, 3, i, nil))
	}
	waitFor(t, "four waiting", func() bool { mu.Lock(); defer mu.Unlock(); return len(slow) == 4 })
	quick.Write(frame(overlapping, 4, 9, nil))
	if _, body := readFrame(t, quick); string(body) != "ok" {
		t.Fatalf("body %q", body)
	}
	stuck.Close()
	for range 4 {
		<-released
	}
}

func TestAcksZeroHasNoAnswer(t *testing.T) {
	_, _, dial := start(t, Options{Overlaps: onlyProduceOverlaps, Handler: HandlerFunc(func(r *Request) {
		if r.CorrelationID == 1 {
			r.NoReply()
			return
		}
		r.ReplyEncoded(nil)
	})})
	c := dial()
	c.Write(append(frame(overlapping, 3, 1, nil), frame(overlapping, 3, 2, nil)...))
	if got, _ := readFrame(t, c); got != 2 {
		t.Errorf("answer %d", got)
	}
}

func TestConnectionLimits(t *testing.T) {
	s, logs, dial := start(t, Options{MaxConnections: 3, MaxConnectionsPerIP: 9, PerIPOverrides: map[string]int{"127.0.0.1": 2},
		Handler: HandlerFunc(func(r *Request) { r.ReplyEncoded(nil) })})
	a, b := dial(), dial()
	waitFor(t, "two connections", func() bool { return s.Connections() == 2 })
	expectClosed(t, dial())
	if !strings.Contains(logs.String(), "max.connections.per.ip") {
		t.Errorf("log: %s", logs)
	}
	a.Close()
	waitFor(t, "one connection", func() bool { return s.Connections() == 1 })
	c := dial()
	c.Write(frame(barrier, 3, 1, nil))
	readFrame(t, c)
	b.Close()
}

func TestIdleConnectionIsClosed(t *testing.T) {
	s, _, dial := start(t, Options{IdleTimeout: 30 * time.Millisecond, Handler: HandlerFunc(func(r *Request) { r.ReplyEncoded(nil) })})
	expectClosed(t, dial())
	waitFor(t, "counted", func() bool { return s.Stats().IdleClosed.Load() == 1 })
}

// A connection whose requests were answered holds no buffer while it waits for the next.
func TestParkedConnectionHoldsNoBuffer(t *testing.T) {
	s, _, dial := start(t, Options{Handler: HandlerFunc(func(r *Request) { r.ReplyEncoded(nil) })})
	c := dial()
	c.Write(frame(barrier, 3, 1, make([]byte, 1<<20)))
	readFrame(t, c)
	waitFor(t, "budget back", func() bool { return s.BufferedBytes() == 0 })
	c.Write(frame(barrier, 3, 2, nil))
	readFrame(t, c)
}

// A message cut at every byte is put together again.
func TestFramesArriveInPieces(t *testing.T) {
	_, _, dial := start(t, Options{Handler: HandlerFunc(func(r *Request) { r.ReplyEncoded(bytes.Clone(r.Body)) })})
	c := dial()
	whole := append(frame(barrier, 3, 1, []byte("abc")), frame(protocol.KeyApiVersions, 3, 2, []byte("defg"))...)
	for _, b := range whole {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"abc", "defg"} {
		if got, body := readFrame(t, c); got != int32(i+1) || string(body) != want {
			t.Errorf("answer %d %q, want %q", got, body, want)
		}
	}
}
