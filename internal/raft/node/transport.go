package node

import (
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
)

// Transport sends raft requests to other voters. Send must not block; done is called exactly once, from any goroutine,
// with the response or the reason there is none (kerr.UnsupportedVersion when the peer cannot, K-19).
type Transport interface {
	Send(to kraft.Peer, request protocol.Request, done func(protocol.Response, error))
}
