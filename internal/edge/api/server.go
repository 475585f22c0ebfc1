package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/edge/network"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// call is one request being served: the request, who sends it, and the one image it is answered from.
type call struct {
	*network.Request
	server    *Server
	role      role
	principal Principal
	img       *image.Image
	envelope  *envelope // the request came inside one; nil for all others
}

// Reply answers the request, inside an Envelope if it came in one.
func (c *call) Reply(resp protocol.Message) {
	if c.envelope != nil {
		c.envelope.reply(c, resp)
		return
	}
	c.Request.Reply(resp)
}

// String is the principal as ACLs name it.
func (p Principal) String() string { return p.Type + ":" + p.Name }

// Principal is who sends a request.
type Principal struct {
	Type, Name string
	// TokenAuthenticated: logged in with a delegation token, which may not make others.
	TokenAuthenticated bool
}

// Anonymous is everybody on a listener without authentication.
var Anonymous = Principal{Type: "User", Name: "ANONYMOUS"}

// Broker serves the broker listeners as a network.Handler.
func (s *Server) Broker() network.Handler { return s.handler(brokerRole) }

// Controller serves the controller listeners.
func (s *Server) Controller() network.Handler { return s.handler(controllerRole) }

func (s *Server) handler(r role) network.Handler {
	t := s.tables[r]
	return network.HandlerFunc(func(req *network.Request) {
		e := t.find(req.Key, req.Version)
		if e == nil {
			if req.Key == protocol.KeyApiVersions {
				unknownApiVersions(req, t.byKey[req.Key])
				return
			}
			req.Close(errUnsupported)
			return
		}
		s.metrics.began(int(req.Key), req.Version)
		e.serve(&call{Request: req, server: s, role: r, principal: Anonymous, img: s.Image()})
	})
}

// errUnsupported: the key or its version is not offered on this listener.
var errUnsupported = errors.New("this listener does not offer that request, or not at that version; ApiVersions lists what it does")

// Overlaps says which requests may wait for their answer while the next one of the same
// connection starts: a produce waiting for replicas, a fetch waiting for bytes (decision 11).
func Overlaps(key int16) bool { return key == protocol.KeyProduce || key == protocol.KeyFetch }

// counters of a Server.
type counters struct {
	metrics       requestMetrics
	trailingBytes atomic.Int64
}

// async runs f on a goroutine of its own, for work that waits: f gets a context that ends with
// the server. What f needs of the request must have been copied.
func (s *Server) async(f func(ctx context.Context)) {
	s.background.Go(func() { f(s.ctx) })
}

// Close ends what async started and waits for it.
func (s *Server) Close() {
	s.stop(kerr.BrokerNotAvailable)
	s.background.Wait()
}

// state is the running part of a Server.
type state struct {
	counters
	tables   map[role]*table // set by New
	creating autoCreation

	ctx        context.Context
	stop       context.CancelCauseFunc
	background sync.WaitGroup
	large      sync.Mutex // held while a large body is decoded and served
}

// peerHost is the address of a request's sender without the port.
func (c *call) peerHost() string {
	if tcp, ok := c.Conn.RemoteAddr.(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return ""
}

func ms(n int32) time.Duration { return time.Duration(n) * time.Millisecond }

// logger is the server's log with what identifies a request.
func (c *call) logger() *slog.Logger {
	return c.server.Log.With("api", protocol.ApiName(c.Key), "version", c.Version, "client", c.ClientID, "peer", c.peerHost())
}
