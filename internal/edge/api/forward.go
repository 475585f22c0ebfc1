package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/peer"
	"samsa/internal/wire/protocol"
)

// ControllerChannel reaches the active controller, wherever it is. *peer.Controller is one.
type ControllerChannel interface {
	Send(ctx context.Context, req protocol.Request) (protocol.Response, error)
	Forward(ctx context.Context, f peer.Forward) (answer []byte, err error)
	Versions() (v peer.Versions, ok bool)
}

// forward carries a request to the active controller in an Envelope and its answer back (K-186).
func forward(c *call) {
	whole := make([]byte, 0, len(c.Header)+len(c.Body))
	whole = append(append(whole, c.Header...), c.Body...)
	f := peer.Forward{
		Request:   whole,
		Principal: peer.Principal{Type: c.principal.Type, Name: c.principal.Name, TokenAuthenticated: c.principal.TokenAuthenticated},
		Client:    c.peerAddr(),
	}
	c.server.async(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, c.server.Config().RequestTimeout)
		defer cancel()
		answer, err := c.server.ControllerChannel.Forward(ctx, f)
		if err != nil {
			c.forwardFailed(whole, err)
			return
		}
		c.settle(ctx)
		c.ReplyRaw(answer)
	})
}

// settleLimit bounds how long the answer to a change waits for this broker to show it.
const settleLimit = time.Second

// settle waits until this broker has taken over the metadata it knows to be committed, when the request
// makes topics or partitions or changes settings. Without it the client's next request is often faster than
// the broker: it is told that there is no such topic, and clients back off for up to five seconds; or it is
// shown the settings of before. With the active controller elsewhere the commit may not be known here yet:
// then it waits for nothing, as Kafka does always.
func (c *call) settle(ctx context.Context) {
	if c.server.Settle == nil {
		return
	}
	switch c.Key {
	case protocol.KeyCreateTopics, protocol.KeyCreatePartitions, protocol.KeyAlterConfigs, protocol.KeyIncrementalAlterConfigs:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	if err := c.server.Settle(ctx); err != nil {
		c.logger().Debug("answered before this broker shows what was changed", "err", err)
	}
}

// forwardRest carries a changed request to the controller; complete makes the client's answer of the
// controller's.
func (c *call) forwardRest(req protocol.Request, complete func(protocol.Message) protocol.Message) {
	whole, err := req.Append(slices.Clone(c.Header), c.Version)
	if err != nil {
		c.Close(err)
		return
	}
	f := peer.Forward{
		Request:   whole,
		Principal: peer.Principal{Type: c.principal.Type, Name: c.principal.Name, TokenAuthenticated: c.principal.TokenAuthenticated},
		Client:    c.peerAddr(),
	}
	c.server.async(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, c.server.Config().RequestTimeout)
		defer cancel()
		answer, err := c.server.ControllerChannel.Forward(ctx, f)
		if err != nil {
			c.forwardFailed(whole, err)
			return
		}
		resp := protocol.NewResponse(c.Key)
		body := answer[min(len(answer), len(protocol.AppendResponseHeader(nil, c.Key, c.Version, 0))):]
		if _, err := resp.Read(body, c.Version); err != nil {
			c.Close(fmt.Errorf("the controller's answer: %w", err))
			return
		}
		c.settle(ctx)
		c.Reply(complete(resp))
	})
}

// forwardFailed answers a request that did not reach the controller with the error in every
// place its response has for one.
func (c *call) forwardFailed(request []byte, err error) {
	if errors.Is(err, kerr.UnsupportedVersion) {
		c.Close(err)
		return
	}
	if c.Conn.Context().Err() != nil {
		c.NoReply()
		return
	}
	code := kerr.Of(err)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, peer.ErrDisconnected) {
		code = kerr.RequestTimedOut
	}
	c.logger().Warn("the active controller did not answer a forwarded request", "err", err)
	req := protocol.NewRequest(c.Key)
	_, _, body, readErr := protocol.ReadRequestHeader(request)
	if readErr == nil {
		_, readErr = req.Read(body, c.Version)
	}
	if readErr != nil {
		c.Close(readErr)
		return
	}
	c.refuse(req, code)
}

// refuse answers a request as a whole with an error.
func (c *call) refuse(req protocol.Request, e *kerr.Error) {
	resp, err := failure(req, e)
	if err != nil {
		c.Close(fmt.Errorf("%s: %w", e.Name, err))
		return
	}
	c.Reply(resp)
}

// peerAddr is the address of the request's sender.
func (c *call) peerAddr() netip.Addr {
	if tcp, ok := c.Conn.RemoteAddr.(*net.TCPAddr); ok {
		if a, ok := netip.AddrFromSlice(tcp.IP); ok {
			return a.Unmap()
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
