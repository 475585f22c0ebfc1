package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// InitProducerId, versions 0-5, for idempotent producers
//
//	v3  producer id and epoch of a producer that goes on (KIP-360); without a transactional id they are not looked at
//	v4  PRODUCER_FENCED
//
// A transactional id gets INVALID_REQUEST: transactions are not served yet, nor advertised. Producers
// take it as fatal at once, as they should.

func serveInitProducerId(c *call, req *protocol.InitProducerIdRequest) {
	resp := protocol.Make[protocol.InitProducerIdResponse]()
	resp.ProducerId, resp.ProducerEpoch = -1, -1
	if req.TransactionalId != nil || (req.ProducerId == -1) != (req.ProducerEpoch == -1) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		c.Reply(&resp)
		return
	}
	c.server.ProducerIDs.Next(func(id int64, err error) {
		resp.ErrorCode = kerr.Code(err)
		if err == nil {
			resp.ProducerId, resp.ProducerEpoch = id, 0
		}
		c.Reply(&resp)
	})
}
