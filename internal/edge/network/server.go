package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Handler serves requests.
type Handler interface {
	// Serve is called on the read loop of the request's connection and must not block. It answers
	// with Reply, ReplyParts, NoReply or Close, before it returns or later, exactly once.
	Serve(*Request)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(*Request)

// Serve calls f.
func (f HandlerFunc) Serve(r *Request) { f(r) }

// Options say how a Server accepts and reads. The zero value of a limit is its default.
type Options struct {
	Handler Handler
	Log     *slog.Logger
	Now     func() time.Time

	MaxRequestBytes     int            // socket.request.max.bytes (104857600)
	QueuedBytes         int64          // queued.max.request.bytes; -1, Kafka's default, becomes samsa's own bound
	IdleTimeout         time.Duration  // connections.max.idle.ms (10 minutes); negative: never
	MaxConnections      int            // max.connections
	MaxConnectionsPerIP int            // max.connections.per.ip
	PerIPOverrides      map[string]int // max.connections.per.ip.overrides
	ReceiveBuffer       int            // socket.receive.buffer.bytes; -1: the operating system's
	SendBuffer          int            // socket.send.buffer.bytes

	// Answered, if not nil, is told of each request when its answer is handed over (or it turned out to have
	// none), with the time since it was read. It must not block.
	Answered func(r *Request, took time.Duration)

	// Overlaps says of an API key that a request waiting for its answer does not stop the next one.
	Overlaps func(key int16) bool
}

// defaultQueuedBytes bounds the large read buffers when queued.max.request.bytes is -1:
// enough for two of the largest requests, or hundreds of usual ones.
const defaultQueuedBytes = 256 << 20

func (o *Options) ensureDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = 100 << 20
	}
	if o.QueuedBytes <= 0 {
		o.QueuedBytes = defaultQueuedBytes
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 10 * time.Minute
	}
}

// Stats are counters of a Server, for metrics.
type Stats struct {
	Accepted, Refused, Closed, IdleClosed atomic.Int64
	BytesIn, BytesOut                     atomic.Int64
	Requests                              atomic.Int64
}

// Server owns listeners and connections.
type Server struct {
	options Options
	handler Handler
	budget  budget
	stats   Stats

	goroutines sync.WaitGroup // accept loops, read loops, writers, the sweep
	stop       chan struct{}

	mu        sync.Mutex // guards what follows
	listeners []net.Listener
	conns     map[*Conn]struct{}
	perIP     map[string]int
	nextID    uint64
	closing   bool
	refusedAt time.Time // of the last log line about a refused connection
}

// New makes a server that listens nowhere yet.
func New(o Options) *Server {
	o.ensureDefaults()
	return &Server{
		options: o,
		handler: o.Handler,
		budget:  budget{limit: o.QueuedBytes},
		stop:    make(chan struct{}),
		conns:   map[*Conn]struct{}{},
		perIP:   map[string]int{},
	}
}

// Stats gives the counters, which go on counting.
func (s *Server) Stats() *Stats { return &s.stats }

// Connections is how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// BufferedBytes is how much of the request memory budget is in use.
func (s *Server) BufferedBytes() int64 {
	used, _ := s.budget.state()
	return used
}

func (s *Server) overlaps(key int16) bool {
	return s.options.Overlaps != nil && s.options.Overlaps(key)
}

// Start accepts connections on ln, which it owns from now on, until Close.
func (s *Server) Start(name string, ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		ln.Close()
		return
	}
	s.listeners = append(s.listeners, ln)
	if len(s.listeners) == 1 {
		s.goroutines.Go(s.sweep)
	}
	s.goroutines.Go(func() { s.accept(name, ln) })
}

func (s *Server) accept(name string, ln net.Listener) {
	pause := 5 * time.Millisecond
	for {
		conn, err := ln.Accept()
		if err == nil {
			pause = 5 * time.Millisecond
			s.serve(name, conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) || s.isClosing() {
			return
		}
		// Out of descriptors, most likely: others will close some.
		s.options.Log.Warn("accepting a connection failed", "listener", name, "err", err, "retry", pause)
		select {
		case <-s.stop:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// serve starts the read loop of a new connection, or refuses it.
func (s *Server) serve(name string, nc net.Conn) {
	c := &Conn{Listener: name, RemoteAddr: nc.RemoteAddr(), LocalAddr: nc.LocalAddr(), server: s}
	c.changed.L = &c.mu
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.lastActive.Store(s.options.Now().UnixMilli())
	c.transport = s.transportFor(nc)
	if why := s.admit(c); why != "" {
		s.stats.Refused.Add(1)
		nc.Close()
		c.cancel(errors.New(why))
		return
	}
	s.stats.Accepted.Add(1)
	s.goroutines.Go(c.run)
}

func (s *Server) transportFor(nc net.Conn) transport {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return &stream{conn: nc}
	}
	// Errors here cost speed, not correctness: the peer may be gone already.
	tcp.SetNoDelay(true)
	if s.options.ReceiveBuffer > 0 {
		tcp.SetReadBuffer(s.options.ReceiveBuffer)
	}
	if s.options.SendBuffer > 0 {
		tcp.SetWriteBuffer(s.options.SendBuffer)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return &stream{conn: nc}
	}
	return newSocket(nc, raw)
}

// admit registers a connection, or says why not.
func (s *Server) admit(c *Conn) (refused string) {
	ip := ipOf(c.RemoteAddr)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return "the server is stopping"
	}
	limit, own := s.options.PerIPOverrides[ip]
	if !own {
		limit = s.options.MaxConnectionsPerIP
		own = limit > 0
	}
	switch {
	case own && s.perIP[ip] >= limit:
		refused = fmt.Sprintf("the address has %d connections, max.connections.per.ip allows no more", s.perIP[ip])
	case s.options.MaxConnections > 0 && len(s.conns) >= s.options.MaxConnections:
		refused = fmt.Sprintf("%d connections are open, max.connections allows no more", len(s.conns))
	}
	if refused != "" {
		if now := s.options.Now(); now.Sub(s.refusedAt) > time.Second { // at most a line a second
			s.refusedAt = now
			s.options.Log.Warn("connection refused", "listener", c.Listener, "peer", addrString(c.RemoteAddr), "why", refused)
		}
		return refused
	}
	s.nextID++
	c.ID = s.nextID
	s.conns[c] = struct{}{}
	s.perIP[ip]++
	return ""
}

// forget is called when a connection's read loop has ended.
func (s *Server) forget(c *Conn) {
	ip := ipOf(c.RemoteAddr)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.perIP[ip]--; s.perIP[ip] == 0 {
		delete(s.perIP, ip)
	}
}

// closed logs why a connection ended.
func (s *Server) closed(c *Conn, reason error) {
	s.stats.Closed.Add(1)
	var short *cutShort
	switch {
	case errors.As(reason, &short) && !errors.Is(reason, errStopping) && !errors.Is(reason, net.ErrClosed):
		s.options.Log.Info("connection closed", "listener", c.Listener, "peer", addrString(c.RemoteAddr), "why", reason)
	case errors.Is(reason, errPeerClosed), errors.Is(reason, errStopping), errors.Is(reason, net.ErrClosed),
		errors.Is(reason, syscall.ECONNRESET), errors.Is(reason, syscall.EPIPE):
		s.options.Log.Debug("connection ended", "listener", c.Listener, "peer", addrString(c.RemoteAddr), "why", reason)
	case errors.Is(reason, errIdle):
		s.stats.IdleClosed.Add(1)
		s.options.Log.Debug("connection ended", "listener", c.Listener, "peer", addrString(c.RemoteAddr), "why", reason)
	default:
		s.options.Log.Warn("connection closed", "listener", c.Listener, "peer", addrString(c.RemoteAddr), "why", reason)
	}
}

var (
	errStopping = errors.New("the server is stopping")
	errIdle     = errors.New("nothing arrived for connections.max.idle.ms")
	errStalled  = errors.New("a frame was begun and not continued while other connections wait for its memory")
)

// stallLimit is how long a connection may sit on memory others wait for without sending.
const stallLimit = 10 * time.Second

// sweep closes idle connections. It looks a few times per idle timeout, and more often only
// while the memory budget is contended.
func (s *Server) sweep() {
	idle := s.options.IdleTimeout
	every := stallLimit
	if idle > 0 {
		every = min(max(idle/4, 10*time.Millisecond), stallLimit)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		now := s.options.Now()
		_, contended := s.budget.state()
		for _, c := range s.all() {
			quiet := now.Sub(c.idleSince())
			switch {
			case idle > 0 && quiet > idle && !c.busy():
				c.Close(errIdle)
			case contended && quiet > stallLimit && c.inFrame.Load():
				c.Close(errStalled)
			}
		}
	}
}

// busy says that a request is waiting for its answer or an answer for the socket.
func (c *Conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) > 0 && !c.writing
}

func (s *Server) all() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// StopAccepting closes the listeners; open connections go on.
func (s *Server) StopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ln := range s.listeners {
		ln.Close()
	}
	s.listeners = nil
}

// Close stops accepting, ends all connections and waits for their goroutines.
func (s *Server) Close() {
	s.StopAccepting()
	s.mu.Lock()
	already := s.closing
	s.closing = true
	s.mu.Unlock()
	if !already {
		close(s.stop)
	}
	for _, c := range s.all() {
		c.Close(errStopping)
	}
	s.goroutines.Wait()
}

// ipOf is the address without the port, the key of the per-address limits.
func ipOf(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return addrString(a)
}

func addrString(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}
