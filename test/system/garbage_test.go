package system

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

// bystander is a client at its everyday work, which must not notice what others do to the node.
type bystander struct {
	t       *testing.T
	client  *kgo.Client
	stop    context.CancelFunc
	done    sync.WaitGroup
	acked   atomic.Int64
	read    atomic.Int64
	dropped atomic.Int64 // connections lost
	fault   atomic.Pointer[error]
}

func (b *bystander) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { b.dropped.Add(1) }

// watch makes a topic, and produces to it and consumes from it until end.
func watch(t *testing.T, n *harness.Node, topic string) *bystander {
	t.Helper()
	harness.CreateTopic(t, n, topic, 1)
	b := &bystander{t: t}
	var err error
	b.client, err = kgo.NewClient(kgo.SeedBrokers(n.Addr), kgo.WithHooks(b), kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond), kgo.RecordRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	fail := func(err error) { b.fault.CompareAndSwap(nil, &err) }
	b.done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := b.client.ProduceSync(ctx, &kgo.Record{Value: fmt.Appendf(nil, "%d", i)}).FirstErr(); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("producing: %w", err))
				return
			}
			b.acked.Add(1)
		}
	})
	b.done.Go(func() {
		for ctx.Err() == nil {
			fetches := b.client.PollFetches(ctx)
			if ctx.Err() != nil {
				return
			}
			fetches.EachError(func(_ string, _ int32, err error) { fail(fmt.Errorf("consuming: %w", err)) })
			fetches.EachRecord(func(r *kgo.Record) {
				if want := fmt.Sprint(b.read.Load()); string(r.Value) != want {
					fail(fmt.Errorf("consumed %q where %q follows", r.Value, want))
				}
				b.read.Add(1)
			})
		}
	})
	t.Cleanup(b.end)
	b.progress(n)
	b.dropped.Store(0) // the client tries versions on connections it gives up
	return b
}

// progress waits until more has been produced and consumed than before.
func (b *bystander) progress(n *harness.Node) {
	b.t.Helper()
	acked, read := b.acked.Load(), b.read.Load()
	n.Eventually("the bystander goes on", 20*time.Second, func() error {
		if f := b.fault.Load(); f != nil {
			b.t.Fatalf("the bystander noticed: %v\n%s", *f, n.Log())
		}
		if b.acked.Load() < acked+20 || b.read.Load() < read+20 {
			return fmt.Errorf("%d produced, %d consumed", b.acked.Load()-acked, b.read.Load()-read)
		}
		return nil
	})
	if d := b.dropped.Load(); d > 0 {
		b.t.Errorf("the bystander lost %d connections", d)
	}
}

func (b *bystander) end() {
	b.stop()
	b.done.Wait()
	b.client.Close()
}

// frame is a request with its size in front.
func frame(key, version int16, clientID string, body []byte) []byte {
	h := protocol.RequestHeader{RequestApiKey: key, RequestApiVersion: version, CorrelationId: 7, ClientId: &clientID}
	b, err := h.Append(make([]byte, 4), protocol.RequestHeaderVersion(key, version))
	if err != nil {
		panic(err)
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// tlsHello is what a client that expects TLS sends first.
func tlsHello() []byte {
	mine, theirs := net.Pipe()
	go tls.Client(theirs, &tls.Config{ServerName: "samsa"}).Handshake()
	b := make([]byte, 4096)
	n, _ := mine.Read(b)
	mine.Close()
	return b[:n]
}

// garbage is what no Kafka client sends, each on a connection of its own.
func garbage() map[string][]byte {
	noise := make([]byte, 4096)
	rng := rand.NewChaCha8([32]byte{'g'})
	rng.Read(noise)
	noise[0] = 0x7f // a size beyond any limit: else the rest of a frame would be waited for
	sized := func(size uint32, rest ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, size), rest...)
	}
	all := map[string][]byte{
		"random_bytes":             noise,
		"http":                     []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"tls_hello":                tlsHello(),
		"ssh":                      []byte("SSH-2.0-OpenSSH_9.9\r\n"),
		"size_0":                   sized(0),
		"size_1":                   sized(1, 0),
		"size_negative":            sized(0xffffffff),
		"size_least":               sized(0x80000000),
		"size_greatest":            sized(0x7fffffff),
		"size_one_above_the_limit": sized(100<<20+1, 0, 18, 0, 0),
		"header_without_client_id": sized(8, 0, 18, 0, 0, 0, 0, 0, 7),
		"client_id_too_long":       sized(12, 0, 18, 0, 0, 0, 0, 0, 7, 0x7f, 0xff, 0, 0),
		"client_id_negative":       sized(12, 0, 18, 0, 0, 0, 0, 0, 7, 0x80, 0, 0, 0),
		"unknown_key":              frame(9999, 0, "x", nil),
		"negative_key":             frame(-1, 0, "x", nil),
		"version_too_high":         frame(protocol.KeyMetadata, 99, "x", nil),
		"version_negative":         frame(protocol.KeyMetadata, -1, "x", nil),
		"controller_request":       frame(protocol.KeyVote, 1, "x", nil),
		"body_missing":             frame(protocol.KeyFetch, 13, "x", nil),
		"api_versions_bomb":        frame(protocol.KeyApiVersions, 3, "x", []byte{1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f}),
		"array_bomb":               frame(protocol.KeyMetadata, 1, "x", []byte{0x7f, 0xff, 0xff, 0xff}),
		"compact_array_bomb":       frame(protocol.KeyMetadata, 12, "x", []byte{0xff, 0xff, 0xff, 0xff, 0x0f}),
		"string_bomb":              frame(protocol.KeyFindCoordinator, 0, "x", []byte{0x7f, 0xff}),
		"tag_of_a_gigabyte":        frame(protocol.KeyMetadata, 12, "x", []byte{0, 1, 0, 1, 5, 0xff, 0xff, 0xff, 0xff, 0x03}),
		"header_tag_bomb":          append(sized(14, 0, 18, 0, 3, 0, 0, 0, 7, 0, 0), 0xff, 0xff, 0xff, 0xff),
	}
	// A request inside a request inside a request.
	nested := frame(protocol.KeyListGroups, 0, "x", nil)
	for range 20 {
		nested = frame(protocol.KeyEnvelope, 0, "x", append(binary.AppendUvarint(nil, uint64(len(nested)+1)), nested...))
	}
	all["envelopes"] = nested
	return all
}

// lines are the lines of text that hold s.
func lines(text, s string) (found []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, s) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// warnings are the lines of a node's log of at least WARN.
func warnings(text string) []string {
	return append(lines(text, "level=WARN"), lines(text, "level=ERROR")...)
}

// Issue 3, "Bad input": any byte string on a port costs its sender the connection and the log one line; nobody
// else notices (A-02, A-04, K-41).
func TestGarbageOnThePorts(t *testing.T) {
	n := harness.NewNode(t, 2)
	n.Format()
	n.Start()
	b := watch(t, n, "quiet")
	before := n.Memory("VmHWM")
	for listener, addr := range map[string]string{"broker": n.Addr, "controller": n.Controller} {
		for name, bytes := range garbage() {
			if listener == "controller" && name == "controller_request" {
				continue // is one there
			}
			t.Run(listener+"/"+name, func(t *testing.T) {
				mark := n.Mark()
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := conn.Write(bytes); err != nil {
					t.Fatal(err)
				}
				conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				answer, err := io.ReadAll(conn)
				if ne, ok := err.(net.Error); ok && ne.Timeout() {
					t.Fatal("the connection is still open")
				}
				if len(answer) > 0 {
					t.Errorf("answered with % x", answer)
				}
				if got := lines(n.LogSince(mark), conn.LocalAddr().String()); len(got) != 1 {
					t.Errorf("%d lines of log: %q", len(got), got)
				} else {
					t.Log(got[0])
				}
			})
		}
	}
	b.progress(n)
	if grown := n.Memory("VmHWM") - before; grown > 64<<20 {
		t.Errorf("garbage cost %d MiB", grown>>20)
	}
}

// Acceptance 5: the 7-byte ApiVersions bomb and its kin are cheap: a thousand of each on one node.
func TestBombsAreCheap(t *testing.T) {
	n := harness.NewNode(t, 1)
	n.Format()
	n.Start()
	before, cpu := n.Memory("VmHWM"), n.CPU()
	all, sent := garbage(), 0
	for _, name := range []string{"api_versions_bomb", "array_bomb", "compact_array_bomb", "string_bomb", "tag_of_a_gigabyte", "envelopes"} {
		for range 1000 {
			conn, err := net.Dial("tcp", n.Addr)
			if err != nil {
				t.Fatal(err)
			}
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			conn.Write(all[name])
			io.Copy(io.Discard, conn)
			conn.Close()
			sent++
		}
	}
	t.Logf("%d bombs: %v of CPU each, connection and line of log included", sent, (n.CPU()-cpu)/time.Duration(sent))
	if grown := n.Memory("VmHWM") - before; grown > 32<<20 {
		t.Errorf("the bombs cost %d MiB", grown>>20)
	}
}

// Frames that are begun and not ended hold little memory, whatever size they declare, and give it back.
func TestHalfFrames(t *testing.T) {
	n := harness.NewNode(t, 1)
	n.Format()
	n.Start()
	b := watch(t, n, "quiet")
	before := n.Memory("VmHWM")
	var conns []net.Conn
	for i := range 400 {
		conn, err := net.Dial("tcp", n.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		head := append(binary.BigEndian.AppendUint32(nil, 100<<20), make([]byte, i*13%4096)...) // 100 MiB are announced
		if _, err := conn.Write(head); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	b.progress(n)
	if grown := n.Memory("VmHWM") - before; grown > 64<<20 {
		t.Errorf("400 frames of 100 MiB of which at most 4 KiB came cost %d MiB", grown>>20)
	}
	mark := n.Mark()
	for _, c := range conns {
		c.Close()
	}
	n.Eventually("one line of log for each", 10*time.Second, func() error {
		if got := lines(n.LogSince(mark), "of a frame"); len(got) != len(conns) {
			return fmt.Errorf("%d lines", len(got))
		}
		return nil
	})
	n.Eventually("their memory is given back", 10*time.Second, func() error {
		if v := n.Metric("kafka_network_socketserver_memorypoolused"); v != 0 {
			return fmt.Errorf("%v bytes", v)
		}
		return nil
	})
	b.progress(n)
}

// More bytes of unfinished frames than queued.max.request.bytes: those who send them wait, the memory stays
// bounded, and whoever needs little goes on.
func TestFloodOfLargeFrames(t *testing.T) {
	n := harness.NewNode(t, 1, "socket.request.max.bytes=33554432", "queued.max.request.bytes=33554432")
	n.Format()
	n.Start()
	b := watch(t, n, "quiet")
	before := n.Memory("VmHWM")
	var senders sync.WaitGroup
	for range 16 {
		conn, err := net.Dial("tcp", n.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		senders.Go(func() {
			conn.SetWriteDeadline(time.Now().Add(2 * time.Second)) // most of them are not read to the end
			conn.Write(binary.BigEndian.AppendUint32(nil, 32<<20))
			conn.Write(make([]byte, 30<<20))
		})
	}
	senders.Wait()
	b.progress(n)
	if grown := n.Memory("VmHWM") - before; grown > 128<<20 {
		t.Errorf("16 frames of 32 MiB cost %d MiB where 32 MiB are the budget", grown>>20)
	}
}

// Acceptance 5, on a running node: every request at every version with a body of random bytes, and with a
// cut one, on both listeners. The node lives, says something or closes, and its clients do not notice.
func TestRandomBodies(t *testing.T) {
	n := harness.NewNode(t, 2)
	n.Format()
	n.Start("--log-level=error")
	b := watch(t, n, "quiet")
	before := n.Memory("VmHWM")
	rng := rand.New(rand.NewChaCha8([32]byte{'b'}))
	limit := time.Now().Add(2 * time.Minute)
	for _, addr := range []string{n.Addr, n.Controller} {
		for key := int16(0); key < 100; key++ {
			least, most, ok := protocol.Versions(key)
			if !ok {
				continue
			}
			for version := least; version <= most; version++ {
				for round := range 4 {
					body := make([]byte, rng.IntN(1<<(2*round+3)))
					for i := range body {
						body[i] = byte(rng.Uint32())
						if rng.IntN(3) > 0 { // small numbers get further
							body[i] &= 3
						}
					}
					if key == protocol.KeyUnregisterController || key == protocol.KeyUnregisterBroker {
						body = body[:min(len(body), 1)] // a random id may be that of this node
					}
					conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
					if err != nil {
						t.Fatalf("%s v%d: %v\n%s", protocol.ApiName(key), version, err, n.Log())
					}
					conn.SetDeadline(limit)
					conn.Write(frame(key, version, "x", body))
					conn.(*net.TCPConn).CloseWrite()
					conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // an answer may wait for others
					io.Copy(io.Discard, conn)
					conn.Close()
				}
			}
		}
	}
	b.progress(n)
	if text := n.Log(); strings.Contains(text, "panic") || strings.Contains(text, "goroutine ") {
		t.Errorf("a panic:\n%s", text)
	}
	if grown := n.Memory("VmHWM") - before; grown > 96<<20 {
		t.Errorf("random requests cost %d MiB", grown>>20)
	}
}
