package api

import (
	"errors"

	"samsa/internal/base/kerr"
	"samsa/internal/coord/runtime"
	"samsa/internal/wire/protocol"
)

// FindCoordinator, versions 0-6
//
//	v1  key types: 0 group, 1 transaction
//	v4  many keys
//	v6  key type 2, share (KIP-932)
//
// Only group coordinators are served yet: other keys get INVALID_REQUEST with a message.

const (
	groupKeyType       int8 = 0
	transactionKeyType int8 = 1
	shareKeyType       int8 = 2
)

func serveFindCoordinator(c *call, req *protocol.FindCoordinatorRequest) {
	resp := protocol.Make[protocol.FindCoordinatorResponse]()
	resp.ErrorMessage = nil
	if c.Version >= 4 {
		for _, key := range req.CoordinatorKeys {
			out := protocol.Make[protocol.FindCoordinatorResponseCoordinator]()
			out.Key = key
			var err error
			out.NodeId, out.Host, out.Port, err = c.coordinator(req.KeyType, key)
			if err != nil {
				out.ErrorCode, out.ErrorMessage = kerr.Code(err), messageOf(err)
			}
			resp.Coordinators = append(resp.Coordinators, out)
		}
		c.Reply(&resp)
		return
	}
	var err error
	resp.NodeId, resp.Host, resp.Port, err = c.coordinator(req.KeyType, req.Key)
	none := "NONE" // what Kafka says when nothing is wrong
	resp.ErrorMessage = &none
	if err != nil {
		text := err.Error()
		resp.ErrorCode, resp.ErrorMessage = kerr.Code(err), &text
	}
	c.Reply(&resp)
}

// messageOf is an error's message if it has one of its own, else "" as Kafka has it.
func messageOf(err error) *string {
	text := ""
	var e *kerr.Error
	if errors.As(err, &e) && err != error(e) {
		text = err.Error()
	}
	return &text
}

// coordinator finds the broker that coordinates a key; node -1, host "" and port -1 with an error (D-153).
func (c *call) coordinator(keyType int8, key string) (node int32, host string, port int32, err error) {
	switch keyType {
	case groupKeyType:
	case transactionKeyType:
		return -1, "", -1, kerr.InvalidRequest.With("transactions are not served yet, so transactional id %q has no coordinator", key)
	case shareKeyType:
		return -1, "", -1, kerr.InvalidRequest.With("share groups are not served yet")
	default:
		return -1, "", -1, kerr.InvalidRequest.With("key type %d is none of 0 (group), 1 (transaction) and 2 (share)", keyType)
	}
	t, ok := c.img.Topics().ByName(runtime.OffsetsTopic)
	if !ok {
		c.server.autoCreate(c, runtime.OffsetsTopic)
		return -1, "", -1, kerr.CoordinatorNotAvailable
	}
	p, ok := t.Partition(runtime.PartitionFor(key, t.Count()))
	if !ok || !p.HasLeader() {
		return -1, "", -1, kerr.CoordinatorNotAvailable
	}
	host, port, _, ok = c.endpointOf(p.Leader)
	if !ok {
		return -1, "", -1, kerr.CoordinatorNotAvailable
	}
	return int32(p.Leader), host, port, nil
}
