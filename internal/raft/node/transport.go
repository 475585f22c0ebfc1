package node

import (
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
)

// Transport sends raft requests to other voters. Send must not block; done is called exactly once, from any goroutine,
// with the response or the reason there is none. The request is fitted to the version of the connection with kraft.FitVersion, whose
// error, as any other kerr.UnsupportedVersion, is handed to done (K-19). One request per peer is under way at a time (K-35).
type Transport interface {
	Send(to kraft.Peer, request protocol.Request, done func(protocol.Response, error))
}
