package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a scripted node: it answers ApiVersions from offers and hands everything else to serve.
type node struct {
	offers map[int16]VersionRange
	serve  func(s *session, h protocol.RequestHeader, body []byte)
	dials  atomic.Int32
	refuse atomic.Bool
	limit  int16 // newest ApiVersions it knows
}

type session struct {
	nc net.Conn
	n  int
}

func (n *node) dial(context.Context, string) (net.Conn, error) {
	n.dials.Add(1)
	if n.refuse.Load() {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	go n.run(&session{nc: theirs})
	return ours, nil
}

func (n *node) run(s *session) {
	defer s.nc.Close()
	for {
		frame, err := readFrame(s.nc, 1<<20)
		if err != nil {
			return
		}
		h, body := parse(frame)
		if h.RequestApiKey != protocol.KeyApiVersions {
			s.n++
			n.serve(s, h, body)
			continue
		}
		resp := protocol.Make[protocol.ApiVersionsResponse]()
		version := h.RequestApiVersion
		if limit := n.limit; version > limit && limit >= 0 {
			resp.ErrorCode, version = kerr.UnsupportedVersion.Code, 0
			resp.ApiKeys = []protocol.ApiVersionsResponseApiVersion{{ApiKey: 18, MaxVersion: limit}}
		} else {
			for k, r := range n.offers {
				resp.ApiKeys = append(resp.ApiKeys, protocol.ApiVersionsResponseApiVersion{ApiKey: k, MinVersion: r.Min, MaxVersion: r.Max})
			}
		}
		s.answer(h, &resp, version)
	}
}

func parse(frame []byte) (protocol.RequestHeader, []byte) {
	key, version := int16(binary.BigEndian.Uint16(frame)), int16(binary.BigEndian.Uint16(frame[2:]))
	var h protocol.RequestHeader
	body, err := h.Read(frame, protocol.RequestHeaderVersion(key, version))
	if err != nil {
		panic(err)
	}
	return h, body
}

func encode(h protocol.RequestHeader, resp protocol.Response, version int16) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0}, uint32(h.CorrelationId))
	if protocol.ResponseHeaderVersion(h.RequestApiKey, version) == 1 {
		b = append(b, 0)
	}
	b, err := resp.Append(b, version)
	if err != nil {
		panic(err)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func (s *session) answer(h protocol.RequestHeader, resp protocol.Response, version int16) {
	s.nc.Write(encode(h, resp, version))
}

var all = map[int16]VersionRange{
	protocol.KeyBrokerHeartbeat: {0, 1}, protocol.KeyEnvelope: {0, 0}, protocol.KeyMetadata: {0, 100}, protocol.KeyVote: {90, 95},
}

// heartbeats answers every heartbeat with the error code next gives.
func heartbeats(next func(s *session) int16) *node {
	return &node{offers: all, limit: -1, serve: func(s *session, h protocol.RequestHeader, body []byte) {
		var req protocol.BrokerHeartbeatRequest
		if _, err := req.Read(body, h.RequestApiVersion); err != nil {
			panic(err)
		}
		resp := protocol.Make[protocol.BrokerHeartbeatResponse]()
		resp.ErrorCode = next(s)
		resp.ThrottleTimeMs = int32(req.BrokerEpoch)
		s.answer(h, &resp, h.RequestApiVersion)
	}}
}

func beat(epoch int64) *protocol.BrokerHeartbeatRequest {
	return &protocol.BrokerHeartbeatRequest{BrokerEpoch: epoch}
}

func client(n *node) *Client { return New(Options{Dial: n.dial, MaxFrame: 1 << 20}) }

func TestSendNegotiates(t *testing.T) {
	for _, limit := range []int16{-1, 4, 3, 0} { // newest ApiVersions the other side knows; -1: ours
		synctest.Test(t, func(t *testing.T) {
			n := heartbeats(func(*session) int16 { return 0 })
			n.limit = limit
			c := client(n)
			defer c.Close()
			resp, err := c.Send(t.Context(), "a:1", beat(7))
			if err != nil {
				t.Fatalf("limit %d: %v", limit, err)
			}
			if r := resp.(*protocol.BrokerHeartbeatResponse); r.ThrottleTimeMs != 7 {
				t.Fatalf("%+v", r)
			}
			v, ok := c.Versions("a:1")
			if got, common := v.Pick(protocol.KeyBrokerHeartbeat); !ok || got != 1 || !common {
				t.Fatal(v, ok)
			}
			if _, err := c.Send(t.Context(), "a:1", &protocol.VoteRequest{}); !errors.Is(err, kerr.UnsupportedVersion) {
				t.Fatalf("no version in common: %v", err)
			}
			if _, err := c.Send(t.Context(), "a:1", &protocol.FetchRequest{}); !errors.Is(err, kerr.UnsupportedVersion) {
				t.Fatalf("not offered: %v", err)
			}
			if n.dials.Load() != 1 {
				t.Errorf("%d connections", n.dials.Load())
			}
		})
	}
}

func TestPipelining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		n := heartbeats(func(*session) int16 { <-gate; return 0 })
		c := client(n)
		defer c.Close()
		done := make(chan bool, 50)
		for i := range 50 {
			go func() {
				resp, err := c.Send(t.Context(), "a:1", beat(int64(i)))
				done <- err == nil && resp.(*protocol.BrokerHeartbeatResponse).ThrottleTimeMs == int32(i)
			}()
		}
		synctest.Wait()
		close(gate)
		for range 50 {
			if !<-done {
				t.Error("an answer went to the wrong request")
			}
		}
		if n.dials.Load() != 1 {
			t.Errorf("%d connections", n.dials.Load())
		}
	})
}

// A deadline closes the connection: nothing behind the missing answer can come. A cancel does not.
func TestDeadlineAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		n := heartbeats(func(*session) int16 {
			if slow.Load() {
				time.Sleep(time.Minute)
			}
			return 0
		})
		c := client(n)
		defer c.Close()
		slow.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Send(ctx, "a:1", beat(1))
		if !errors.Is(err, ErrDisconnected) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err = c.Send(ctx, "a:1", beat(2)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		slow.Store(false)
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if resp, err := c.Send(ctx, "a:1", beat(3)); err != nil || resp.(*protocol.BrokerHeartbeatResponse).ThrottleTimeMs != 3 {
			t.Fatal(resp, err)
		}
		if got := n.dials.Load(); got != 2 {
			t.Errorf("%d connections, want 2", got)
		}
		time.Sleep(2 * time.Minute) // the scripted node wakes up
	})
}

// Without a deadline of its own a request gets RequestTimeout.
func TestDefaultTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := heartbeats(func(*session) int16 { time.Sleep(time.Hour); return 0 })
		c := client(n)
		start := time.Now()
		_, err := c.Send(context.Background(), "a:1", beat(1))
		if !errors.Is(err, ErrDisconnected) || time.Since(start) != 30*time.Second {
			t.Fatal(err, time.Since(start))
		}
		c.Close()
		time.Sleep(2 * time.Hour)
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := heartbeats(func(*session) int16 { return 0 })
		n.refuse.Store(true)
		c := client(n)
		defer c.Close()
		var waits []time.Duration
		for range 8 {
			start := time.Now()
			if _, err := c.Send(t.Context(), "a:1", beat(1)); !errors.Is(err, ErrDisconnected) {
				t.Fatal(err)
			}
			waits = append(waits, time.Since(start))
		}
		for i, want := range []time.Duration{0, 50, 100, 200, 400, 800, 1000, 1000} {
			want *= time.Millisecond
			if low, high := want*79/100, want*121/100; waits[i] < low || waits[i] > high {
				t.Errorf("attempt %d waited %v, want about %v", i, waits[i], want)
			}
		}
		n.refuse.Store(false)
		if _, err := c.Send(t.Context(), "a:1", beat(1)); err != nil {
			t.Fatal(err)
		}
	})
}

// Answers that break the rules close the connection and hurt nobody else.
func TestHostileAnswers(t *testing.T) {
	good := func(h protocol.RequestHeader) []byte {
		r := protocol.Make[protocol.BrokerHeartbeatResponse]()
		return encode(h, &r, h.RequestApiVersion)
	}
	for name, reply := range map[string]func(h protocol.RequestHeader) []byte{
		"huge frame":           func(protocol.RequestHeader) []byte { return []byte{0x7f, 0xff, 0xff, 0xff} },
		"negative frame":       func(protocol.RequestHeader) []byte { return []byte{0xff, 0xff, 0xff, 0xff} },
		"frame without header": func(protocol.RequestHeader) []byte { return []byte{0, 0, 0, 3, 0, 0, 0} },
		"other correlation id": func(h protocol.RequestHeader) []byte { h.CorrelationId += 5; return good(h) },
		"header cut":           func(h protocol.RequestHeader) []byte { b := good(h)[:8]; b[3] = 4; return b },
		"body cut":             func(h protocol.RequestHeader) []byte { b := good(h)[:12]; b[3] = 8; return b },
		"garbage body": func(h protocol.RequestHeader) []byte {
			return append(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 9}, uint32(h.CorrelationId)), 255, 255, 255, 255, 255)
		},
		"closed": func(protocol.RequestHeader) []byte { return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			bad := true
			n := &node{offers: all, limit: -1, serve: func(s *session, h protocol.RequestHeader, _ []byte) {
				if !bad {
					s.nc.Write(good(h))
					return
				}
				if b := reply(h); b != nil {
					s.nc.Write(b)
					io.Copy(io.Discard, s.nc) // leave it to the other side to close
				}
				s.nc.Close()
			}}
			c := client(n)
			defer c.Close()
			if _, err := c.Send(t.Context(), "a:1", beat(1)); !errors.Is(err, ErrDisconnected) {
				t.Errorf("%s: %v", name, err)
			}
			bad = false
			if _, err := c.Send(t.Context(), "a:1", beat(1)); err != nil {
				t.Errorf("%s, afterwards: %v", name, err)
			}
		})
	}
}

func TestUnsolicitedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := heartbeats(func(s *session) int16 { return 0 })
		serve := n.serve
		n.serve = func(s *session, h protocol.RequestHeader, body []byte) {
			serve(s, h, body)
			r := protocol.Make[protocol.BrokerHeartbeatResponse]()
			s.answer(h, &r, h.RequestApiVersion)
		}
		c := client(n)
		defer c.Close()
		if _, err := c.Send(t.Context(), "a:1", beat(1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, ok := c.Versions("a:1"); ok {
			t.Error("the connection is still open")
		}
	})
}

func TestFrameMemoryGrowsWithBytes(t *testing.T) {
	head := binary.BigEndian.AppendUint32(nil, 64<<20)
	body := bytes.Repeat([]byte{1}, 1000)
	if n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			readFrame(io.MultiReader(bytes.NewReader(head), bytes.NewReader(body)), 100<<20)
		}
	}).AllocedBytesPerOp(); n > 70<<10 {
		t.Errorf("a claim of 64 MiB cost %d bytes", n)
	}
	want := bytes.Repeat([]byte{7}, 300<<10)
	got, err := readFrame(bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, uint32(len(want))), want...)), 1<<20)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatal(err, len(got))
	}
}

func TestCloseEndsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := heartbeats(func(*session) int16 { time.Sleep(time.Hour); return 0 })
		c := client(n)
		errs := make(chan error, 1)
		go func() { _, err := c.Send(context.Background(), "a:1", beat(1)); errs <- err }()
		synctest.Wait()
		c.Close()
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		if _, err := c.Send(context.Background(), "a:1", beat(1)); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
	})
}

// K-185: unknown leader, NOT_CONTROLLER and a lost connection are followed until the right node answers.
func TestControllerFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at atomic.Value
		at.Store("")
		standby := heartbeats(func(*session) int16 { at.Store("b:1"); return kerr.NotController.Code })
		active := heartbeats(func(s *session) int16 {
			if s.n == 1 && at.Load() == "b:1" {
				at.Store("b:2")
				s.nc.Close() // dies in the middle
			}
			return 0
		})
		c := NewController(Options{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			if addr == "a:1" {
				return standby.dial(ctx, addr)
			}
			return active.dial(ctx, addr)
		}}, func() (string, bool) { a := at.Load().(string); return a, a != "" })
		defer c.Close()
		time.AfterFunc(time.Second, func() { at.Store("a:1") })
		if _, ok := c.Versions(); ok {
			t.Error("versions of nobody")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Send(ctx, beat(1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < time.Second || took > 2*time.Second || at.Load() != "b:2" {
			t.Fatal(took, at.Load())
		}
		if _, ok := c.Versions(); !ok { // K-188
			t.Error("no versions")
		}
	})
}

func TestControllerGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewController(Options{}, func() (string, bool) { return "", false })
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Send(ctx, beat(1)); !errors.Is(err, ErrDisconnected) || time.Since(start) != 2*time.Second {
			t.Fatal(err, time.Since(start))
		}
	})
}

// K-186: what becomes of an Envelope.
func TestForward(t *testing.T) {
	client := protocol.Make[protocol.CreateTopicsRequest]()
	h := protocol.RequestHeader{RequestApiKey: protocol.KeyCreateTopics, RequestApiVersion: 7, CorrelationId: 4711}
	b, _ := h.Append(nil, 2)
	b, _ = client.Append(b, 7)
	inner := []byte{0, 0, 0x12, 0x67, 0, 1, 2, 3}
	for _, tc := range []struct {
		name string
		code int16
		data []byte
		want error
	}{
		{"answered", 0, inner, nil},
		{"inner request not known", kerr.UnsupportedVersion.Code, nil, kerr.UnsupportedVersion},
		{"not authorized", kerr.ClusterAuthorizationFailed.Code, nil, kerr.UnknownServerError},
		{"empty", 0, nil, kerr.UnknownServerError},
		{"another request's answer", 0, []byte{0, 0, 0, 1, 0}, kerr.UnknownServerError},
		{"no controller in time", kerr.NotController.Code, nil, kerr.RequestTimedOut},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &node{offers: all, limit: -1, serve: func(s *session, h protocol.RequestHeader, body []byte) {
				var req protocol.EnvelopeRequest
				if _, err := req.Read(body, 0); err != nil {
					panic(err)
				}
				p, err := ParsePrincipal(req.RequestPrincipal)
				if !bytes.Equal(req.RequestData, b) || !bytes.Equal(req.ClientHostAddress, []byte{10, 0, 0, 7}) || err != nil || p != (Principal{"User", "alice", true}) {
					t.Errorf("%+v %v %v", req, p, err)
				}
				resp := protocol.EnvelopeResponse{ErrorCode: tc.code, ResponseData: tc.data}
				s.answer(h, &resp, 0)
			}}
			c := NewController(Options{Dial: n.dial}, func() (string, bool) { return "a:1", true })
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			got, err := c.Forward(ctx, Forward{Request: b, Principal: Principal{"User", "alice", true}, Client: netip.MustParseAddr("::ffff:10.0.0.7")})
			if tc.want == nil && (err != nil || !bytes.Equal(got, inner)) || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%s: %x, %v", tc.name, got, err)
			}
		})
	}
}

func TestParsePrincipalRefuses(t *testing.T) {
	for _, b := range [][]byte{nil, {0}, {0, 1, 0}, {0, 0}, {0, 0, 200, 1}} {
		if _, err := ParsePrincipal(b); !errors.Is(err, kerr.PrincipalDeserializationFailure) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 5, 1, 2, 3, 4, 5})
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := readFrame(bytes.NewReader(b), 1<<20)
		if err == nil && (len(frame) < 4 || !bytes.Equal(frame, b[4:4+len(frame)])) {
			t.Fatal("a frame that was not sent")
		}
	})
}

func TestAllocations(t *testing.T) {
	n := heartbeats(func(*session) int16 { return 0 })
	c := client(n)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got := testing.AllocsPerRun(200, func() {
		if _, err := c.Send(ctx, "a:1", beat(1)); err != nil {
			t.Fatal(err)
		}
	}); got > 30 { // both sides; this side's share is about ten
		t.Errorf("%v allocations per request", got)
	}
}
