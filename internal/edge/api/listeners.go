package api

import (
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

// decoding makes a serve function of one that takes the decoded request. A body that cannot be
// decoded closes the connection, as Kafka does.
func decoding[T any, P message[T]](f func(*call, P)) func(*call) {
	return func(c *call) {
		req := P(new(T))
		rest, err := req.Read(c.Body, c.Version)
		if err != nil {
			c.Close(err)
			return
		}
		if len(rest) > 0 {
			c.server.trailingBytes.Add(1)
			c.server.Log.Debug("bytes behind a request's body are ignored", "api", protocol.ApiName(c.Key), "version", c.Version, "bytes", len(rest))
		}
		f(c, req)
	}
}
