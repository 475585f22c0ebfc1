package image

import (
	"maps"
	"slices"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// WriteSnapshot gives the image as records, in Kafka's order (K-173, K-205): features with
// metadata.version first, brokers, controllers, each topic followed by its partitions, configs,
// client quotas, producer ids, ACLs, SCRAM credentials, delegation tokens. The records replayed on
// the empty image give this image again. It stops at the first error of emit.
func (i *Image) WriteSnapshot(emit func(Versioned) error) error {
	w := &writer{img: i, emit: emit, mv: i.features.MetadataVersion(), elr: i.features.ELREnabled()}
	for _, part := range []func(){w.features, w.cluster, w.topics, w.configs, w.quotas, w.producerIDs, w.acls, w.scram, w.tokens} {
		part()
	}
	return w.err
}

type writer struct {
	img  *Image
	emit func(Versioned) error
	mv   MetadataVersion
	elr  bool
	err  error
}

func (w *writer) write(r Record, version int16) bool {
	if w.err == nil {
		w.err = w.emit(Versioned{r, version})
	}
	return w.err == nil
}

func (w *writer) features() {
	for l := range w.img.features.All() {
		if !w.write(&protocol.FeatureLevelRecord{Name: l.Name, FeatureLevel: l.Level}, 0) {
			return
		}
	}
}

func (w *writer) cluster() {
	for b := range w.img.brokers.All() {
		r := BrokerRecord(b, w.mv)
		if !w.write(r.Record, r.Version) {
			return
		}
	}
	for c := range w.img.controllers.All() {
		r := new(protocol.RegisterControllerRecord)
		r.Default()
		r.ControllerId, r.IncarnationId, r.ZkMigrationReady = int32(c.ID), c.Incarnation, c.ZKMigrationReady
		for _, e := range c.Endpoints {
			r.EndPoints = append(r.EndPoints, protocol.RegisterControllerRecordControllerEndpoint{Name: e.Name, Host: e.Host, Port: e.Port, SecurityProtocol: e.SecurityProtocol})
		}
		for _, f := range c.Features {
			r.Features = append(r.Features, protocol.RegisterControllerRecordControllerFeature{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
		}
		if !w.write(r, 0) {
			return
		}
	}
}

func (w *writer) topics() {
	for t := range w.img.topics.All() {
		if !w.write(&protocol.TopicRecord{Name: t.Name, TopicId: model.UUID(t.ID)}, 0) {
			return
		}
		for i, p := range t.Partitions() {
			r := PartitionRecord(t.ID, i, p, w.mv, w.elr)
			if !w.write(r.Record, r.Version) {
				return
			}
		}
	}
}

func (w *writer) configs() {
	for res, values := range w.img.configs.All() {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			value := values[name]
			if !w.write(&protocol.ConfigRecord{ResourceType: res.Type, ResourceName: res.Name, Name: name, Value: &value}, 0) {
				return
			}
		}
	}
}

func (w *writer) quotas() {
	for q := range w.img.quotas.All() {
		for _, key := range slices.Sorted(maps.Keys(q.Values)) {
			r := new(protocol.ClientQuotaRecord)
			r.Default()
			for _, e := range q.Entity {
				r.Entity = append(r.Entity, protocol.ClientQuotaRecordEntityData{EntityType: e.Type, EntityName: e.Name})
			}
			r.Key, r.Value = key, q.Values[key]
			if !w.write(r, 0) {
				return
			}
		}
	}
}

func (w *writer) producerIDs() {
	if w.img.producerIDs >= 0 {
		w.write(&protocol.ProducerIdsRecord{BrokerId: -1, BrokerEpoch: -1, NextProducerId: w.img.producerIDs}, 0)
	}
}

func (w *writer) acls() {
	for a := range w.img.acls.All() {
		if !w.write(&protocol.AccessControlEntryRecord{
			Id: a.ID, ResourceType: a.ResourceType, ResourceName: a.ResourceName, PatternType: a.PatternType,
			Principal: a.Principal, Host: a.Host, Operation: a.Operation, PermissionType: a.PermissionType,
		}, 0) {
			return
		}
	}
}

func (w *writer) scram() {
	for u, c := range w.img.scram.All() {
		if !w.write(&protocol.UserScramCredentialRecord{
			Name: u.Name, Mechanism: u.Mechanism, Salt: c.Salt, StoredKey: c.StoredKey, ServerKey: c.ServerKey, Iterations: c.Iterations,
		}, 0) {
			return
		}
	}
}

func (w *writer) tokens() {
	for t := range w.img.tokens.All() {
		if !w.write(&protocol.DelegationTokenRecord{
			Owner: t.Owner, Requester: t.Requester, Renewers: t.Renewers, IssueTimestamp: t.IssuedMs, MaxTimestamp: t.MaxMs,
			ExpirationTimestamp: t.ExpiresAtMs, TokenId: t.ID,
		}, 0) {
			return
		}
	}
}

// BrokerRecord is a registration as a record at a metadata.version. What the level cannot say
// (directories below 17, cordoned ones below 30) is left out.
func BrokerRecord(b *Broker, mv MetadataVersion) Versioned {
	r := new(protocol.RegisterBrokerRecord)
	r.Default()
	r.BrokerId, r.BrokerEpoch, r.IncarnationId, r.Rack = int32(b.ID), b.Epoch, b.Incarnation, b.Rack
	r.Fenced, r.InControlledShutdown = b.Fenced, b.InControlledShutdown
	if mv >= 8 {
		r.IsMigratingZkBroker = b.MigratingZK
	}
	for _, e := range b.Endpoints {
		r.EndPoints = append(r.EndPoints, protocol.RegisterBrokerRecordBrokerEndpoint{Name: e.Name, Host: e.Host, Port: e.Port, SecurityProtocol: e.SecurityProtocol})
	}
	for _, f := range b.Features {
		r.Features = append(r.Features, protocol.RegisterBrokerRecordBrokerFeature{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
	}
	if mv.DirectoryAssignment() {
		r.LogDirs = UUIDs(b.Directories)
	}
	if mv >= MetadataVersionCordon && b.Cordoned != nil {
		r.CordonedLogDirs = UUIDs(b.Cordoned)
	}
	return Versioned{r, mv.RegisterBrokerRecordVersion()}
}

// PartitionRecord is a partition as a record at a metadata.version. What the level cannot say
// (directories below 17, ELR while the feature is off) is left out.
func PartitionRecord(topic model.TopicID, index int32, p *Partition, mv MetadataVersion, elr bool) Versioned {
	r := new(protocol.PartitionRecord)
	r.Default()
	r.PartitionId, r.TopicId = index, model.UUID(topic)
	r.Replicas, r.Isr, r.RemovingReplicas, r.AddingReplicas = IDs(p.Replicas), IDs(p.ISR), IDs(p.Removing), IDs(p.Adding)
	r.Leader, r.LeaderRecoveryState = int32(p.Leader), p.LeaderRecoveryState
	r.LeaderEpoch, r.PartitionEpoch = int32(p.LeaderEpoch), int32(p.PartitionEpoch)
	if elr && mv >= MetadataVersionELR {
		if len(p.ELR) > 0 {
			r.EligibleLeaderReplicas = IDs(p.ELR)
		}
		if len(p.LastKnownELR) > 0 {
			r.LastKnownElr = IDs(p.LastKnownELR)
		}
	}
	if mv.DirectoryAssignment() {
		r.Directories = UUIDs(p.Directories)
	}
	return Versioned{r, mv.PartitionRecordVersion()}
}

// IDs is a list of nodes as records carry it; never nil, which would mean "no change".
func IDs(n []model.NodeID) []int32 {
	out := make([]int32, len(n))
	for i, id := range n {
		out[i] = int32(id)
	}
	return out
}

// UUIDs is a list of directories as records carry it; never nil, which would mean "no change".
func UUIDs(d []model.DirectoryID) []model.UUID {
	out := make([]model.UUID, len(d))
	for i, id := range d {
		out[i] = model.UUID(id)
	}
	return out
}
