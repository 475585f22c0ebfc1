package image

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"strings"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

func compareUUIDs(a, b model.UUID) int { return bytes.Compare(a[:], b[:]) }

func compareScramUsers(a, b ScramUser) int {
	return cmp.Or(cmp.Compare(a.Mechanism, b.Mechanism), strings.Compare(a.Name, b.Name))
}

// editable returns the values under k as a map this builder may change. It is a copy the first time.
func editable[K comparable, V any](e *mapEditor[K, map[string]V], k K) map[string]V {
	values, _ := e.Get(k)
	if e.fresh == nil {
		e.fresh = map[K]bool{}
	}
	if !e.fresh[k] || values == nil {
		values = maps.Clone(values)
		if values == nil {
			values = map[string]V{}
		}
		e.fresh[k] = true
	}
	return values
}

func (b *Builder) config(r *protocol.ConfigRecord) error {
	e := open(&b.configs, b.base.configs.m)
	res := ConfigResource{Type: r.ResourceType, Name: r.ResourceName}
	values := editable(e, res)
	if r.Value == nil {
		delete(values, r.Name)
	} else {
		values[r.Name] = *r.Value
	}
	if len(values) == 0 {
		e.delete(res)
	} else {
		e.set(res, values)
	}
	return nil
}

func (b *Builder) clientQuota(r *protocol.ClientQuotaRecord) error {
	e := open(&b.quotas, b.base.quotas.m)
	entity := make([]QuotaEntity, len(r.Entity))
	for i, c := range r.Entity {
		entity[i] = QuotaEntity{Type: c.EntityType, Name: c.EntityName}
	}
	entity, key := QuotaKeyOf(entity)
	next := &ClientQuota{Entity: entity, Values: map[string]float64{}}
	if old, ok := e.Get(key); ok {
		next.Values = maps.Clone(old.Values)
	}
	if r.Remove {
		delete(next.Values, r.Key)
	} else {
		next.Values[r.Key] = r.Value
	}
	if len(next.Values) == 0 {
		e.delete(key)
	} else {
		e.set(key, next)
	}
	return nil
}

func (b *Builder) setProducerIDs(r *protocol.ProducerIdsRecord) error {
	// Ids must grow, or two producers could share one (K-171).
	if r.NextProducerId <= b.next.producerIDs {
		return fmt.Errorf("next producer id %d is not above %d", r.NextProducerId, b.next.producerIDs)
	}
	b.next.producerIDs = r.NextProducerId
	return nil
}

func (b *Builder) acl(r *protocol.AccessControlEntryRecord) error {
	open(&b.acls, b.base.acls.m).set(r.Id, &ACL{
		ID: r.Id, ResourceType: r.ResourceType, ResourceName: r.ResourceName, PatternType: r.PatternType,
		Principal: r.Principal, Host: r.Host, Operation: r.Operation, PermissionType: r.PermissionType,
	})
	return nil
}

func (b *Builder) removeACL(r *protocol.RemoveAccessControlEntryRecord) error {
	if !open(&b.acls, b.base.acls.m).delete(r.Id) {
		return fmt.Errorf("no access control entry has the id %v", r.Id)
	}
	return nil
}

func (b *Builder) scramCredential(r *protocol.UserScramCredentialRecord) error {
	open(&b.scram, b.base.scram.m).set(ScramUser{r.Mechanism, r.Name}, &ScramCredential{
		Salt: bytes.Clone(r.Salt), StoredKey: bytes.Clone(r.StoredKey), ServerKey: bytes.Clone(r.ServerKey), Iterations: r.Iterations,
	})
	return nil
}

func (b *Builder) removeScramCredential(r *protocol.RemoveUserScramCredentialRecord) error {
	if !open(&b.scram, b.base.scram.m).delete(ScramUser{r.Mechanism, r.Name}) {
		return fmt.Errorf("user %s has no credential of mechanism %d", r.Name, r.Mechanism)
	}
	return nil
}

func (b *Builder) token(r *protocol.DelegationTokenRecord) error {
	open(&b.tokens, b.base.tokens.m).set(r.TokenId, &Token{
		ID: r.TokenId, Owner: r.Owner, Requester: r.Requester, Renewers: r.Renewers,
		IssuedMs: r.IssueTimestamp, MaxMs: r.MaxTimestamp, ExpiresAtMs: r.ExpirationTimestamp,
	})
	return nil
}

func (b *Builder) removeToken(r *protocol.RemoveDelegationTokenRecord) error {
	if !open(&b.tokens, b.base.tokens.m).delete(r.TokenId) {
		return fmt.Errorf("no delegation token has the id %s", r.TokenId)
	}
	return nil
}
