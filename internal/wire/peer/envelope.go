package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// Principal is who a forwarded request is for.
type Principal struct {
	Type, Name         string
	TokenAuthenticated bool
}

// Bytes is Kafka's default form of a principal: a version (0), then the fields.
func (p Principal) Bytes() ([]byte, error) {
	d := protocol.DefaultPrincipalData{Type: p.Type, Name: p.Name, TokenAuthenticated: p.TokenAuthenticated}
	return d.Append([]byte{0, 0}, 0)
}

// ParsePrincipal reads what Bytes made; the error is kerr.PrincipalDeserializationFailure.
func ParsePrincipal(b []byte) (Principal, error) {
	if len(b) < 2 || binary.BigEndian.Uint16(b) != 0 {
		return Principal{}, kerr.PrincipalDeserializationFailure
	}
	var d protocol.DefaultPrincipalData
	if _, err := d.Read(b[2:], 0); err != nil {
		return Principal{}, kerr.PrincipalDeserializationFailure.With("%v", err)
	}
	return Principal{d.Type, d.Name, d.TokenAuthenticated}, nil
}

// Forward is a client's request on its way to the controller.
type Forward struct {
	// Request is the client's request as it came: header and body, without the length in front.
	Request   []byte
	Principal Principal
	Client    netip.Addr // where it came from
}

// Forward sends a client's request to the active controller in an Envelope and returns the answer as it is to be sent to
// the client: response header and body, without the length (K-186).
//
// Errors: kerr.UnsupportedVersion means that the controller does not know this version of the request: the client's
// connection is to be closed. kerr.RequestTimedOut, kerr.UnknownServerError and context errors answer the client's request.
func (c *Controller) Forward(ctx context.Context, f Forward) ([]byte, error) {
	principal, err := f.Principal.Bytes()
	if err != nil {
		return nil, kerr.UnknownServerError.With("the principal cannot be encoded: %v", err)
	}
	addr := f.Client.Unmap()
	if !addr.IsValid() {
		addr = netip.IPv4Unspecified()
	}
	req := protocol.EnvelopeRequest{RequestData: f.Request, RequestPrincipal: principal, ClientHostAddress: addr.AsSlice()}
	resp, err := c.Send(ctx, &req)
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled), errors.Is(err, ErrClosed):
		return nil, err
	case errors.Is(err, kerr.UnsupportedVersion): // it knows no Envelope
		return nil, kerr.UnknownServerError.With("%v", err)
	default:
		return nil, kerr.RequestTimedOut.With("%v", err)
	}
	env, ok := resp.(*protocol.EnvelopeResponse)
	if !ok {
		return nil, kerr.UnknownServerError.With("the controller answered with %T", resp)
	}
	switch {
	case env.ErrorCode == kerr.UnsupportedVersion.Code:
		return nil, kerr.UnsupportedVersion
	case env.ErrorCode != 0:
		return nil, kerr.UnknownServerError.With("the controller refused to unwrap the request: %v", kerr.ForCode(env.ErrorCode))
	case len(env.ResponseData) < 4 || len(f.Request) < 8:
		return nil, kerr.UnknownServerError.With("the controller's answer is empty")
	}
	if want, got := binary.BigEndian.Uint32(f.Request[4:]), binary.BigEndian.Uint32(env.ResponseData); want != got {
		return nil, kerr.UnknownServerError.With("the controller answered request %d, asked was %d", got, want)
	}
	return env.ResponseData, nil
}
