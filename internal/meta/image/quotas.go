package image

import (
	"iter"
	"sort"
	"strings"

	"samsa/internal/base/pmap"
)

// QuotaEntity is one component of what a client quota applies to.
type QuotaEntity struct {
	Type string  // user, client-id or ip
	Name *string // nil is the default of that type
}

// ClientQuota is the limits of one entity.
type ClientQuota struct {
	Entity []QuotaEntity // in type order
	Values map[string]float64
}

// Component returns the name of one component; ok is false if the entity has none of that type.
func (q *ClientQuota) Component(entityType string) (name *string, ok bool) {
	for _, e := range q.Entity {
		if e.Type == entityType {
			return e.Name, true
		}
	}
	return nil, false
}

// QuotaKey names an entity; equal entities have equal keys whatever order they were written in.
type QuotaKey string

// QuotaKeyOf sorts the components by type and returns them with their key. A type named twice
// keeps its last name, as Kafka's map does.
func QuotaKeyOf(entity []QuotaEntity) ([]QuotaEntity, QuotaKey) {
	sorted := make([]QuotaEntity, 0, len(entity))
	for _, e := range entity {
		i := sort.Search(len(sorted), func(i int) bool { return sorted[i].Type >= e.Type })
		if i < len(sorted) && sorted[i].Type == e.Type {
			sorted[i] = e
			continue
		}
		sorted = append(sorted, QuotaEntity{})
		copy(sorted[i+1:], sorted[i:])
		sorted[i] = e
	}
	var key strings.Builder
	for _, e := range sorted {
		key.WriteString(e.Type)
		if e.Name == nil {
			key.WriteByte(0)
		} else {
			key.WriteByte(1)
			key.WriteString(strings.ReplaceAll(*e.Name, "\x02", "\x02\x02"))
		}
		key.WriteString("\x02\x03")
	}
	return sorted, QuotaKey(key.String())
}

// ClientQuotas are the quotas of all entities. An entity without limits has no entry.
type ClientQuotas struct {
	m pmap.Map[QuotaKey, *ClientQuota]
}

func newClientQuotas() ClientQuotas {
	return ClientQuotas{pmap.New[QuotaKey, *ClientQuota](func(a, b QuotaKey) int { return strings.Compare(string(a), string(b)) })}
}

// Of returns the quota of exactly this entity.
func (q ClientQuotas) Of(entity ...QuotaEntity) (*ClientQuota, bool) {
	_, key := QuotaKeyOf(entity)
	return q.m.Get(key)
}

// ByKey returns the quota of the entity with this key.
func (q ClientQuotas) ByKey(key QuotaKey) (*ClientQuota, bool) { return q.m.Get(key) }

// All walks the quotas in key order.
func (q ClientQuotas) All() iter.Seq[*ClientQuota] { return q.m.Values() }

// Len is the number of entities with quotas.
func (q ClientQuotas) Len() int { return q.m.Len() }
