package image

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"samsa/internal/base/model"
	"samsa/internal/base/pmap"
	"samsa/internal/wire/protocol"
)

// Builder takes records on top of a base image, in log order, and gives the next image. It belongs
// to one goroutine and is used once.
//
// Replay is strict (T-13, K-85): a record that does not fit what is there is an error and changes
// nothing; whether to go on without it is the caller's choice. The base is never touched.
type Builder struct {
	base *Image
	next Image // the fields that have no editor below

	topics      *topicsEditor
	brokers     *mapEditor[model.NodeID, *Broker]
	controllers *mapEditor[model.NodeID, *Controller]
	configs     *mapEditor[ConfigResource, map[string]string]
	quotas      *mapEditor[QuotaKey, *ClientQuota]
	acls        *mapEditor[model.UUID, *ACL]
	scram       *mapEditor[ScramUser, *ScramCredential]
	tokens      *mapEditor[string, *Token]
	records     int
}

// mapEditor is a pmap editor that remembers what was touched.
type mapEditor[K comparable, V any] struct {
	*pmap.Editor[K, V]
	touched map[K]bool
	fresh   map[K]bool // for values that are maps: already copied by this builder
}

func open[K comparable, V any](e **mapEditor[K, V], m pmap.Map[K, V]) *mapEditor[K, V] {
	if *e == nil {
		*e = &mapEditor[K, V]{Editor: m.Edit(), touched: map[K]bool{}}
	}
	return *e
}

func (e *mapEditor[K, V]) set(k K, v V) {
	e.touched[k] = true
	e.Set(k, v)
}

func (e *mapEditor[K, V]) delete(k K) bool {
	e.touched[k] = true
	return e.Delete(k)
}

// done returns the map and the touched keys in order; e may be nil.
func (e *mapEditor[K, V]) done(m *pmap.Map[K, V], compare func(a, b K) int) []K {
	if e == nil {
		return nil
	}
	*m = e.Map()
	return slices.SortedFunc(maps.Keys(e.touched), compare)
}

// NewBuilder starts from base.
func NewBuilder(base *Image) *Builder {
	return &Builder{base: base, next: *base}
}

// Base is the image the builder started from.
func (b *Builder) Base() *Image { return b.base }

// Records is the number of records replayed so far.
func (b *Builder) Records() int { return b.records }

// Replay applies one record.
//
//	offset  the record's offset in the metadata log; in a snapshot, the snapshot's last offset
//
// The record may be kept: it must not be changed afterwards.
func (b *Builder) Replay(record Record, offset int64) error {
	b.records++
	if err := b.replay(record, offset); err != nil {
		return fmt.Errorf("replay of %s at offset %d: %w", RecordName(record), offset, err)
	}
	return nil
}

func (b *Builder) replay(record Record, offset int64) error {
	switch r := record.(type) {
	case *protocol.RegisterBrokerRecord:
		return b.registerBroker(r, offset)
	case *protocol.UnregisterBrokerRecord:
		return b.unregisterBroker(r)
	case *protocol.BrokerRegistrationChangeRecord:
		return b.changeBroker(r)
	case *protocol.FenceBrokerRecord:
		return b.fenceBroker(r.Id, r.Epoch, true)
	case *protocol.UnfenceBrokerRecord:
		return b.fenceBroker(r.Id, r.Epoch, false)
	case *protocol.RegisterControllerRecord:
		return b.registerController(r)
	case *protocol.UnregisterControllerRecord:
		return b.unregisterController(r)
	case *protocol.TopicRecord:
		return b.topic(r)
	case *protocol.PartitionRecord:
		return b.partition(r)
	case *protocol.PartitionChangeRecord:
		return b.partitionChange(r)
	case *protocol.RemoveTopicRecord:
		return b.removeTopic(r)
	case *protocol.ClearElrRecord:
		return b.clearELR(r)
	case *protocol.ConfigRecord:
		return b.config(r)
	case *protocol.FeatureLevelRecord:
		return b.featureLevel(r, offset)
	case *protocol.ClientQuotaRecord:
		return b.clientQuota(r)
	case *protocol.ProducerIdsRecord:
		return b.setProducerIDs(r)
	case *protocol.AccessControlEntryRecord:
		return b.acl(r)
	case *protocol.RemoveAccessControlEntryRecord:
		return b.removeACL(r)
	case *protocol.UserScramCredentialRecord:
		return b.scramCredential(r)
	case *protocol.RemoveUserScramCredentialRecord:
		return b.removeScramCredential(r)
	case *protocol.DelegationTokenRecord:
		return b.token(r)
	case *protocol.RemoveDelegationTokenRecord:
		return b.removeToken(r)
	case *protocol.NoOpRecord, *protocol.ZkMigrationStateRecord:
		return nil // neither changes anything (K-81)
	case *protocol.BeginTransactionRecord, *protocol.EndTransactionRecord, *protocol.AbortTransactionRecord:
		// Whoever replays holds back an open transaction (K-84); here it is only a bracket.
		return nil
	}
	return fmt.Errorf("a %T is no metadata record", record)
}

// Build returns the image at prov and what changed since the base. The Builder is used up.
func (b *Builder) Build(prov Provenance) (*Image, *Delta) {
	next := b.next
	next.prov = prov
	delta := &Delta{From: b.base, To: &next}

	if b.topics != nil {
		delta.Topics = b.topics.done(&next.topics, b.base)
	}
	for _, id := range b.brokers.done(&next.brokers.m, cmp.Compare[model.NodeID]) {
		was, now := get(b.base.brokers.m, id), get(next.brokers.m, id)
		if was == now || was != nil && now != nil && was.Equal(now) && was.RegisteredAt == now.RegisteredAt {
			continue
		}
		delta.Brokers = append(delta.Brokers, BrokerChange{ID: id, Old: was, New: now})
	}
	for _, id := range b.controllers.done(&next.controllers.m, cmp.Compare[model.NodeID]) {
		was, now := get(b.base.controllers.m, id), get(next.controllers.m, id)
		if was != now {
			delta.Controllers = append(delta.Controllers, ControllerChange{ID: id, Old: was, New: now})
		}
	}
	for _, r := range b.configs.done(&next.configs.m, compareResources) {
		if !maps.Equal(b.base.configs.Of(r), next.configs.Of(r)) || !b.base.configs.m.Has(r) && !next.configs.m.Has(r) {
			delta.Configs = append(delta.Configs, r)
		} else if b.configs.fresh[r] {
			// Written again with the same values: brokers reload on it (K-165).
			delta.Configs = append(delta.Configs, r)
		}
	}
	for _, k := range b.quotas.done(&next.quotas.m, cmp.Compare[QuotaKey]) {
		if get(b.base.quotas.m, k) != get(next.quotas.m, k) {
			delta.Quotas = append(delta.Quotas, k)
		}
	}
	for _, id := range b.acls.done(&next.acls.m, compareUUIDs) {
		was, now := get(b.base.acls.m, id), get(next.acls.m, id)
		if was != now {
			delta.ACLs = append(delta.ACLs, ACLChange{ID: id, Old: was, New: now})
		}
	}
	for _, u := range b.scram.done(&next.scram.m, compareScramUsers) {
		if get(b.base.scram.m, u) != get(next.scram.m, u) {
			delta.Scram = append(delta.Scram, u)
		}
	}
	for _, id := range b.tokens.done(&next.tokens.m, strings.Compare) {
		if get(b.base.tokens.m, id) != get(next.tokens.m, id) {
			delta.Tokens = append(delta.Tokens, id)
		}
	}
	delta.Features = !b.base.features.Equal(next.features)
	delta.ProducerIDs = b.base.producerIDs != next.producerIDs
	return &next, delta
}

func get[K, V any](m pmap.Map[K, *V], k K) *V {
	v, _ := m.Get(k)
	return v
}

// Apply replays a whole batch on top of i: records[n] has offset first+n. The image it returns
// stands at the last record. It is the short way for callers that need no Builder.
func (i *Image) Apply(records []Record, first int64, epoch model.LeaderEpoch, timestampMs int64) (*Image, *Delta, error) {
	b := NewBuilder(i)
	for n, r := range records {
		if err := b.Replay(r, first+int64(n)); err != nil {
			return nil, nil, err
		}
	}
	img, delta := b.Build(Provenance{Offset: first + int64(len(records)) - 1, Epoch: epoch, TimestampMs: timestampMs, BatchAligned: true})
	return img, delta, nil
}
