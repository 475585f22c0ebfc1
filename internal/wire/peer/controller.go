package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// Controller sends to the active controller, wherever it is (K-185). Safe from any goroutine; requests go one at a time.
type Controller struct {
	client *Client
	locate func() (addr string, ok bool)
	turn   chan struct{} // held by the request on its way

	mu       sync.Mutex
	versions Versions // guarded by mu: what the active controller offered last
}

// The wait while nobody knows the controller, and after one that is not it any more: short at first, since a node that is
// just starting elects itself within milliseconds, then Kafka's.
const (
	retryFirst = 5 * time.Millisecond
	retryMax   = 100 * time.Millisecond
)

// NewController makes a channel of its own. locate gives the address of the active controller's first controller
// listener as this node's raft view has it now; ok is false while it knows none.
func NewController(o Options, locate func() (addr string, ok bool)) *Controller {
	return &Controller{client: New(o), locate: locate, turn: make(chan struct{}, 1)}
}

// Send sends a request to the active controller. It waits for one to be known, follows it when it moves (NOT_CONTROLLER, lost
// connections), and tries until ctx ends: give it a deadline. Requests must therefore be safe to repeat.
//
// Errors: kerr.UnsupportedVersion at once; when ctx's deadline passed ErrDisconnected, wrapped with the last thing that
// went wrong; context.Cause(ctx) when cancelled; ErrClosed.
func (c *Controller) Send(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, c.gaveUp(ctx, errors.New("waiting for the request before it"))
	case <-c.client.ctx.Done():
		return nil, ErrClosed
	}
	defer func() { <-c.turn }()
	last := errors.New("no active controller is known")
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		addr, ok := c.locate()
		if ok {
			resp, err := c.try(ctx, addr, req)
			switch {
			case err == nil:
				return resp, nil
			case errors.Is(err, ErrClosed), errors.Is(err, kerr.UnsupportedVersion):
				return nil, err
			case ctx.Err() != nil:
				return nil, c.gaveUp(ctx, err)
			}
			last = err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, c.gaveUp(ctx, last)
		case <-c.client.ctx.Done():
			t.Stop()
			return nil, ErrClosed
		}
	}
}

func (c *Controller) gaveUp(ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%w from the controller: %w (%w)", ErrDisconnected, last, cause)
	}
	return cause
}

// try makes one attempt. NOT_CONTROLLER in the answer is an error and drops the connection.
func (c *Controller) try(ctx context.Context, addr string, req protocol.Request) (protocol.Response, error) {
	resp, err := c.client.Send(ctx, addr, req)
	if err != nil {
		return nil, err
	}
	if v, ok := c.client.Versions(addr); ok {
		c.mu.Lock()
		c.versions = v
		c.mu.Unlock()
	}
	if saysNotController(resp) {
		c.client.Disconnect(addr)
		return nil, kerr.NotController.With("%s is not the active controller", addr)
	}
	return resp, nil
}

// Versions is what the active controller offered when this channel last spoke to it; ok is false before that (K-188).
func (c *Controller) Versions() (v Versions, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.versions, c.versions != nil
}

// Disconnect drops the connection to the controller known now: the next request looks again.
func (c *Controller) Disconnect() {
	if addr, ok := c.locate(); ok {
		c.client.Disconnect(addr)
	}
}

// Close closes the channel; requests on their way fail.
func (c *Controller) Close() { c.client.Close() }

// saysNotController finds NOT_CONTROLLER in the answers a broker gets directly. Everything else travels in an Envelope,
// which carries it at its top (K-186).
func saysNotController(resp protocol.Response) bool {
	code := int16(0)
	switch r := resp.(type) {
	case *protocol.EnvelopeResponse:
		code = r.ErrorCode
	case *protocol.BrokerRegistrationResponse:
		code = r.ErrorCode
	case *protocol.BrokerHeartbeatResponse:
		code = r.ErrorCode
	case *protocol.AlterPartitionResponse:
		code = r.ErrorCode
	case *protocol.AssignReplicasToDirsResponse:
		code = r.ErrorCode
	case *protocol.AllocateProducerIdsResponse:
		code = r.ErrorCode
	case *protocol.ControllerRegistrationResponse:
		code = r.ErrorCode
	case *protocol.UnregisterBrokerResponse:
		code = r.ErrorCode
	case *protocol.UpdateFeaturesResponse:
		code = r.ErrorCode
	case *protocol.ElectLeadersResponse:
		code = r.ErrorCode
	case *protocol.CreateTopicsResponse:
		for i := range r.Topics {
			if r.Topics[i].ErrorCode == kerr.NotController.Code {
				return true
			}
		}
	}
	return code == kerr.NotController.Code
}
