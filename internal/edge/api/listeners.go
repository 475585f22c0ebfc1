package api

import (
	"fmt"
	"slices"

	"samsa/internal/wire/protocol"
)

// role says which listener a request came in by.
type role uint8

const (
	brokerRole role = 1 << iota
	controllerRole
	bothRoles = brokerRole | controllerRole
)

// entry is one API key as this node offers it.
type entry struct {
	key, min, max int16
	roles         role
	serve         func(*call) // decodes, acts, answers
}

// table is every key this node serves on one kind of listener.
type table struct {
	entries []entry // in key order
	byKey   [128]*entry
}

// newTable takes from all those the role serves. Keys a node does not serve yet are not
// advertised either.
func newTable(all []entry, r role) *table {
	t := &table{}
	for _, e := range all {
		if e.roles&r != 0 && e.serve != nil {
			t.entries = append(t.entries, e)
		}
	}
	slices.SortFunc(t.entries, func(a, b entry) int { return int(a.key) - int(b.key) })
	for i := range t.entries {
		t.byKey[t.entries[i].key] = &t.entries[i]
	}
	return t
}

func (t *table) find(key, version int16) *entry {
	if key < 0 || int(key) >= len(t.byKey) {
		return nil
	}
	e := t.byKey[key]
	if e == nil || version < e.min || version > e.max {
		return nil
	}
	return e
}

// message is a pointer to a request that can be decoded.
type message[T any] interface {
	*T
	protocol.Message
}

// Decoded, a request may take sixteen times its bytes (wire/protocol). So all but Produce, which is
// not decoded, and what is read in place, have a lower bound than socket.request.max.bytes, and
// large ones are decoded one at a time.
const (
	maxDecodedBody = 32 << 20 // a quarter of a million partitions in any request that names them
	largeBody      = 1 << 20
)

var errTooLarge = fmt.Errorf("the body exceeds the %d bytes that a request other than Produce may have", maxDecodedBody)

// decoding makes a serve function of one that takes the decoded request. A body that cannot be
// decoded closes the connection, as Kafka does.
func decoding[T any, P message[T]](f func(*call, P)) func(*call) {
	return func(c *call) {
		if len(c.Body) > largeBody && c.Key != protocol.KeyProduce {
			if len(c.Body) > maxDecodedBody {
				c.Close(errTooLarge)
				return
			}
			c.server.large.Lock()
			defer c.server.large.Unlock()
		}
		req := P(new(T))
		rest, err := req.Read(c.Body, c.Version)
		if err != nil {
			c.Close(err)
			return
		}
		c.trailing(rest)
		f(c, req)
	}
}

// trailing notes bytes behind a request's body, which Kafka ignores.
func (c *call) trailing(rest []byte) {
	if len(rest) == 0 {
		return
	}
	c.server.trailingBytes.Add(1)
	c.server.Log.Debug("bytes behind a request's body are ignored", "api", protocol.ApiName(c.Key), "version", c.Version, "bytes", len(rest))
}
