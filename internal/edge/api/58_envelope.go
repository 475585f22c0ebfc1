package api

import (
	"fmt"
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/edge/network"
	"samsa/internal/wire/peer"
	"samsa/internal/wire/protocol"
)

// Envelope, version 0 (KIP-590, K-186): a client's request that a broker carries to the active
// controller, with who sent it and from where. The answer goes back the same way.

// envelope is the outside of a request that came in one.
type envelope struct {
	outer *call
	// header of the inner request, for the response inside
	correlationID int32
}

// notForwardable are requests that never come in an envelope, though this listener serves them.
var notForwardable = []int16{
	protocol.KeyEnvelope, protocol.KeyApiVersions, protocol.KeyFetch, protocol.KeyDescribeConfigs, protocol.KeyDescribeCluster,
	protocol.KeyVote, protocol.KeyBeginQuorumEpoch, protocol.KeyEndQuorumEpoch, protocol.KeyFetchSnapshot,
	protocol.KeyBrokerRegistration, protocol.KeyBrokerHeartbeat, protocol.KeyControllerRegistration,
	protocol.KeyAlterPartition, protocol.KeyAssignReplicasToDirs, protocol.KeyUpdateRaftVoter,
}

func serveEnvelope(c *call, req *protocol.EnvelopeRequest) {
	inner, err := openEnvelope(c, req)
	if err != nil {
		c.logger().Warn("an envelope was refused", "err", err)
		resp := protocol.Make[protocol.EnvelopeResponse]()
		resp.ErrorCode = kerr.Code(err)
		c.Reply(&resp)
		return
	}
	c.server.tables[controllerRole].find(inner.Key, inner.Version).serve(inner)
}

// openEnvelope is the call inside, with a body of its own: the outer frame is borrowed.
func openEnvelope(c *call, req *protocol.EnvelopeRequest) (*call, error) {
	data := slices.Clone(req.RequestData)
	header, _, body, err := protocol.ReadRequestHeader(data)
	if err != nil {
		return nil, kerr.UnsupportedVersion.Wrap(fmt.Errorf("the request inside has no readable header: %w", err))
	}
	e := c.server.tables[controllerRole].find(header.RequestApiKey, header.RequestApiVersion)
	switch {
	case slices.Contains(notForwardable, header.RequestApiKey):
		return nil, kerr.InvalidRequest.With("%s is not forwarded", protocol.ApiName(header.RequestApiKey))
	case e == nil:
		return nil, kerr.UnsupportedVersion.With("key %d at version %d is not served here", header.RequestApiKey, header.RequestApiVersion)
	case len(req.ClientHostAddress) != 4 && len(req.ClientHostAddress) != 16:
		return nil, kerr.InvalidRequest.With("a client address of %d bytes is neither IPv4 nor IPv6", len(req.ClientHostAddress))
	}
	principal, err := peer.ParsePrincipal(req.RequestPrincipal)
	if err != nil {
		return nil, kerr.PrincipalDeserializationFailure.Wrap(err)
	}
	inner := *c
	inner.principal = Principal{Type: principal.Type, Name: principal.Name, TokenAuthenticated: principal.TokenAuthenticated}
	inner.envelope = &envelope{outer: c, correlationID: header.CorrelationId}
	inner.Request = &network.Request{
		Conn: c.Conn, Key: header.RequestApiKey, Version: header.RequestApiVersion, CorrelationID: header.CorrelationId,
		Body: body, Size: len(data), ReceivedAt: c.ReceivedAt,
	}
	if header.ClientId != nil {
		inner.ClientID = *header.ClientId
	}
	return &inner, nil
}

// reply wraps the answer to the inner request.
func (e *envelope) reply(inner *call, resp protocol.Message) {
	out := protocol.Make[protocol.EnvelopeResponse]()
	data := protocol.AppendResponseHeader(nil, inner.Key, inner.Version, e.correlationID)
	data, err := resp.Append(data, inner.Version)
	if err != nil {
		inner.logger().Error("an answer could not be encoded", "err", err)
		out.ErrorCode = kerr.UnknownServerError.Code
	} else {
		out.ResponseData = data
	}
	e.outer.Request.Reply(&out)
}

// Close of a request inside an envelope ends not the broker's connection but the request: the
// broker closes its client's.
func (c *call) Close(reason error) {
	if c.envelope == nil {
		c.Request.Close(reason)
		return
	}
	c.logger().Warn("a forwarded request was refused", "err", reason)
	out := protocol.Make[protocol.EnvelopeResponse]()
	out.ErrorCode = kerr.UnsupportedVersion.Code
	c.envelope.outer.Request.Reply(&out)
}
