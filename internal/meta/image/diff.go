package image

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"samsa/internal/base/model"
	"samsa/internal/base/pmap"
)

// Diff compares two images as wholes: what a node must do that jumps from one to the other through a
// snapshot (K-175, T-17), or that starts from nothing. It walks both; shared values cost a pointer compare.
func Diff(from, to *Image) *Delta {
	d := &Delta{From: from, To: to, Snapshot: true}
	var deleted, changed []TopicChange
	both(from.topics.byID, to.topics.byID, func(id model.TopicID, was, now *Topic) {
		if c := diffTopic(id, was, now); c.New == nil {
			deleted = append(deleted, c)
		} else if c.Old == nil || len(c.Partitions) > 0 || c.Old.Name != c.New.Name {
			changed = append(changed, c)
		}
	})
	for _, s := range [][]TopicChange{deleted, changed} {
		sort.Slice(s, func(i, j int) bool { return s[i].Name() < s[j].Name() })
	}
	d.Topics = append(deleted, changed...)

	both(from.brokers.m, to.brokers.m, func(id model.NodeID, was, now *Broker) {
		if was == nil || now == nil || !was.Equal(now) || was.RegisteredAt != now.RegisteredAt {
			d.Brokers = append(d.Brokers, BrokerChange{id, was, now})
		}
	})
	both(from.controllers.m, to.controllers.m, func(id model.NodeID, was, now *Controller) {
		if was == nil || now == nil || !was.Equal(now) {
			d.Controllers = append(d.Controllers, ControllerChange{id, was, now})
		}
	})
	d.Configs = diffConfigs(from.configs, to.configs)
	both(from.quotas.m, to.quotas.m, func(k QuotaKey, was, now *ClientQuota) {
		if was == nil || now == nil || !maps.Equal(was.Values, now.Values) {
			d.Quotas = append(d.Quotas, k)
		}
	})
	both(from.acls.m, to.acls.m, func(id model.UUID, was, now *ACL) {
		if was == nil || now == nil || *was != *now {
			d.ACLs = append(d.ACLs, ACLChange{id, was, now})
		}
	})
	both(from.scram.m, to.scram.m, func(u ScramUser, was, now *ScramCredential) {
		if was == nil || now == nil || !was.equal(now) {
			d.Scram = append(d.Scram, u)
		}
	})
	both(from.tokens.m, to.tokens.m, func(id string, was, now *Token) {
		if was == nil || now == nil || !was.equal(now) {
			d.Tokens = append(d.Tokens, id)
		}
	})
	d.Features = !from.features.Equal(to.features)
	d.ProducerIDs = from.producerIDs != to.producerIDs
	return d
}

// both calls visit for every key whose value differs as a pointer, in key order.
func both[K any, V any](a, b pmap.Map[K, *V], visit func(k K, was, now *V)) {
	var keys []K
	for k, was := range a.All() {
		if now, _ := b.Get(k); now != was {
			keys = append(keys, k)
		}
	}
	for k := range b.All() {
		if !a.Has(k) {
			keys = append(keys, k)
		}
	}
	compare := a.Compare()
	slices.SortFunc(keys, compare)
	for _, k := range keys {
		was, _ := a.Get(k)
		now, _ := b.Get(k)
		visit(k, was, now)
	}
}

func diffTopic(id model.TopicID, was, now *Topic) TopicChange {
	c := TopicChange{ID: id, Old: was, New: now}
	var count int32
	for _, t := range []*Topic{was, now} {
		if t != nil {
			count = max(count, t.Count())
		}
	}
	for i := range count {
		var old, new *Partition
		if was != nil {
			old, _ = was.Partition(i)
		}
		if now != nil {
			new, _ = now.Partition(i)
		}
		if old == new || old != nil && new != nil && old.Equal(new) {
			continue
		}
		c.Partitions = append(c.Partitions, PartitionChange{Index: i, Old: old, New: new})
	}
	return c
}

func diffConfigs(a, b Configs) []ConfigResource {
	var out []ConfigResource
	for r, was := range a.All() {
		if !maps.Equal(was, b.Of(r)) {
			out = append(out, r)
		}
	}
	for r := range b.All() {
		if !a.m.Has(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, compareResources)
	return out
}

func (c *ScramCredential) equal(d *ScramCredential) bool {
	return cmp.Compare(c.Iterations, d.Iterations) == 0 && string(c.Salt) == string(d.Salt) &&
		string(c.StoredKey) == string(d.StoredKey) && string(c.ServerKey) == string(d.ServerKey)
}

func (t *Token) equal(u *Token) bool {
	return t.ID == u.ID && t.Owner == u.Owner && t.Requester == u.Requester && slices.Equal(t.Renewers, u.Renewers) &&
		t.IssuedMs == u.IssuedMs && t.MaxMs == u.MaxMs && t.ExpiresAtMs == u.ExpiresAtMs
}
