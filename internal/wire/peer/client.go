package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"samsa/internal/wire/protocol"
)

// Options are the settings of a Client. New fills zero values in.
type Options struct {
	ClientID string // client.id in every request header
	// Dial opens a connection and makes it safe (TLS, SASL); nil: plain TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	SetupTimeout   time.Duration // dial and ApiVersions; 10 s
	RequestTimeout time.Duration // for contexts without a deadline; 30 s
	Backoff        time.Duration // first wait after a failure; 50 ms
	BackoffMax     time.Duration // 1 s
	MaxFrame       int           // longest answer; 100 MiB
	MaxInFlight    int           // requests on their way per connection; 100
	Log            *slog.Logger
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	def(&o.SetupTimeout, 10*time.Second)
	def(&o.RequestTimeout, 30*time.Second)
	def(&o.Backoff, 50*time.Millisecond)
	def(&o.BackoffMax, time.Second)
	o.BackoffMax = max(o.Backoff, o.BackoffMax)
	if o.MaxFrame <= 0 {
		o.MaxFrame = 100 << 20
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 100
	}
	if o.ClientID == "" {
		o.ClientID = "samsa"
	}
	if o.Dial == nil {
		dialer := &net.Dialer{}
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// ErrClosed is returned by a Client that was closed.
var ErrClosed = errors.New("the client is closed")

// ErrDisconnected is in every error of a request whose connection broke: it may or may not have been carried out.
var ErrDisconnected = errors.New("disconnected")

// Client sends requests to any number of addresses. Safe from any goroutine.
type Client struct {
	o      Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // readers

	mu     sync.Mutex
	closed bool             // guarded by mu
	dests  map[string]*dest // guarded by mu
}

// New makes a client. It opens nothing before it is asked to send.
func New(o Options) *Client {
	ctx, cancel := context.WithCancel(context.Background())
	return &Client{o: o.withDefaults(), ctx: ctx, cancel: cancel, dests: map[string]*dest{}}
}

// dest is one address.
type dest struct {
	client *Client
	addr   string
	// connecting is held by the one goroutine that connects. A channel, because waiting for it obeys a context.
	connecting chan struct{}

	mu       sync.Mutex
	conn     *conn     // guarded by mu; nil or alive
	failures int       // guarded by mu: in a row
	retryAt  time.Time // guarded by mu
}

func (c *Client) dest(addr string) (*dest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	d := c.dests[addr]
	if d == nil {
		d = &dest{client: c, addr: addr, connecting: make(chan struct{}, 1)}
		c.dests[addr] = d
	}
	return d, nil
}

// Send sends a request to addr (host:port) at the highest version both sides know and returns the answer, whose byte
// slices are its own. The answer's error codes are the caller's business.
//
// Errors: kerr.UnsupportedVersion when the peer does not know the request; ErrDisconnected (wrapped) when the
// connection broke, could not be made, or ctx's deadline passed; context.Cause(ctx) when cancelled; ErrClosed.
func (c *Client) Send(ctx context.Context, addr string, req protocol.Request) (protocol.Response, error) {
	cn, err := c.connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	return cn.send(ctx, req)
}

// Versions is what addr offers, as told when the connection that is open was made; ok is false without one.
func (c *Client) Versions(addr string) (v Versions, ok bool) {
	c.mu.Lock()
	d := c.dests[addr]
	c.mu.Unlock()
	if d == nil {
		return nil, false
	}
	if cn := d.alive(); cn != nil {
		return cn.versions, true
	}
	return nil, false
}

// Disconnect closes the connection to addr, if there is one; requests on their way fail.
func (c *Client) Disconnect(addr string) {
	c.mu.Lock()
	d := c.dests[addr]
	c.mu.Unlock()
	if d == nil {
		return
	}
	if cn := d.alive(); cn != nil {
		cn.fail(fmt.Errorf("%w from %s: given up by this side", ErrDisconnected, addr))
	}
}

// Close closes every connection and waits for its readers. Requests on their way fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	dests := c.dests
	c.dests = map[string]*dest{}
	c.mu.Unlock()
	c.cancel()
	for _, d := range dests {
		if cn := d.alive(); cn != nil {
			cn.fail(ErrClosed)
		}
	}
	c.wg.Wait()
}

// alive returns the open connection, if there is one. One that has just broken, and whose end is still on its way here,
// does not count.
func (d *dest) alive() *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil && d.conn.isDead() {
		d.forget()
	}
	return d.conn
}

// forget drops the connection and starts the back-off. mu is held.
func (d *dest) forget() {
	d.conn = nil
	d.retryAt = time.Now().Add(d.backoff())
}

// lost forgets a connection that broke.
func (d *dest) lost(cn *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == cn {
		d.forget()
	}
}

// backoff is how long to wait before the next attempt: doubled with every failure, give or take a fifth. mu is held.
func (d *dest) backoff() time.Duration {
	wait := d.client.o.Backoff << min(d.failures, 20)
	if wait > d.client.o.BackoffMax || wait <= 0 {
		wait = d.client.o.BackoffMax
	}
	return time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64()))
}

// connect returns the open connection to addr or makes one.
func (c *Client) connect(ctx context.Context, addr string) (*conn, error) {
	d, err := c.dest(addr)
	if err != nil {
		return nil, err
	}
	if cn := d.alive(); cn != nil {
		return cn, nil
	}
	select {
	case d.connecting <- struct{}{}:
	case <-ctx.Done():
		return nil, gaveUp(ctx, addr)
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
	defer func() { <-d.connecting }()
	if cn := d.alive(); cn != nil { // made by who was before us
		return cn, nil
	}
	if err := d.wait(ctx); err != nil {
		return nil, err
	}
	cn, err := c.open(ctx, d)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.retryAt = time.Now().Add(d.backoff())
		d.failures++
		return nil, err
	}
	d.failures = 0
	if cn.isDead() { // already: fail found nothing to forget
		return nil, cn.err
	}
	d.conn = cn
	return cn, nil
}

// wait sits out the back-off.
func (d *dest) wait(ctx context.Context) error {
	d.mu.Lock()
	wait := time.Until(d.retryAt)
	d.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return gaveUp(ctx, d.addr)
	case <-d.client.ctx.Done():
		return ErrClosed
	}
}

// open dials and asks for versions.
func (c *Client) open(ctx context.Context, d *dest) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.SetupTimeout)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	nc, err := c.o.Dial(ctx, d.addr)
	if err != nil {
		if c.ctx.Err() != nil {
			return nil, ErrClosed
		}
		return nil, fmt.Errorf("%w: cannot connect to %s: %w", ErrDisconnected, d.addr, err)
	}
	cn := newConn(d, nc)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		nc.Close()
		return nil, ErrClosed
	}
	c.wg.Add(1) // under mu: Close waits after it has set closed
	c.mu.Unlock()
	go cn.read()
	stopSetup := context.AfterFunc(ctx, func() {
		cn.fail(fmt.Errorf("%w: setting up the connection to %s took too long", ErrDisconnected, d.addr))
	})
	defer stopSetup()
	if err := cn.handshake(ctx); err != nil {
		cn.fail(err)
		return nil, err
	}
	return cn, nil
}

// gaveUp is the error of a wait that ctx ended.
func gaveUp(ctx context.Context, addr string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%w: no answer from %s in time: %w", ErrDisconnected, addr, cause)
	}
	return cause
}
