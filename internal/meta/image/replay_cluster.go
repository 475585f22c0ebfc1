package image

import (
	"fmt"
	"slices"
	"strings"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

func (b *Builder) registerBroker(r *protocol.RegisterBrokerRecord, offset int64) error {
	broker := &Broker{
		ID: model.NodeID(r.BrokerId), Epoch: r.BrokerEpoch, Incarnation: r.IncarnationId, Rack: r.Rack,
		Fenced: r.Fenced, InControlledShutdown: r.InControlledShutdown, MigratingZK: r.IsMigratingZkBroker,
		Directories: dirs(r.LogDirs), RegisteredAt: offset,
	}
	if r.CordonedLogDirs != nil {
		broker.Cordoned = append([]model.DirectoryID{}, dirs(r.CordonedLogDirs)...)
	}
	for _, e := range r.EndPoints {
		broker.Endpoints = append(broker.Endpoints, Endpoint{Name: e.Name, Host: e.Host, Port: e.Port, SecurityProtocol: e.SecurityProtocol})
	}
	for _, f := range r.Features {
		broker.Features = append(broker.Features, FeatureRange{Name: f.Name, Min: f.MinSupportedVersion, Max: f.MaxSupportedVersion})
	}
	open(&b.brokers, b.base.brokers.m).set(broker.ID, broker)
	return nil
}

// broker finds the registration that a change speaks of: id and epoch must match (K-85).
func (b *Builder) broker(id int32, epoch int64) (*Broker, error) {
	broker, ok := open(&b.brokers, b.base.brokers.m).Get(model.NodeID(id))
	if !ok {
		return nil, fmt.Errorf("broker %d is not registered", id)
	}
	if broker.Epoch != epoch {
		return nil, fmt.Errorf("broker %d has epoch %d, the record names %d", id, broker.Epoch, epoch)
	}
	return broker, nil
}

func (b *Builder) unregisterBroker(r *protocol.UnregisterBrokerRecord) error {
	broker, err := b.broker(r.BrokerId, r.BrokerEpoch)
	if err != nil {
		return err
	}
	b.brokers.delete(broker.ID)
	return nil
}

func (b *Builder) fenceBroker(id int32, epoch int64, fenced bool) error {
	broker, err := b.broker(id, epoch)
	if err != nil {
		return err
	}
	c := *broker
	c.Fenced = fenced
	b.brokers.set(c.ID, &c)
	return nil
}

func (b *Builder) changeBroker(r *protocol.BrokerRegistrationChangeRecord) error {
	broker, err := b.broker(r.BrokerId, r.BrokerEpoch)
	if err != nil {
		return err
	}
	c := *broker
	switch r.Fenced {
	case 0:
	case 1:
		c.Fenced = true
	case -1:
		c.Fenced = false
	default:
		return fmt.Errorf("fenced is %d", r.Fenced)
	}
	switch r.InControlledShutdown {
	case 0:
	case 1:
		c.InControlledShutdown = true
	default:
		return fmt.Errorf("in controlled shutdown is %d", r.InControlledShutdown)
	}
	if len(r.LogDirs) > 0 {
		c.Directories = dirs(r.LogDirs)
	}
	if r.CordonedLogDirs != nil {
		c.Cordoned = append([]model.DirectoryID{}, dirs(r.CordonedLogDirs)...)
	}
	b.brokers.set(c.ID, &c)
	return nil
}

func (b *Builder) registerController(r *protocol.RegisterControllerRecord) error {
	c := &Controller{ID: model.NodeID(r.ControllerId), Incarnation: r.IncarnationId, ZKMigrationReady: r.ZkMigrationReady}
	for _, e := range r.EndPoints {
		c.Endpoints = append(c.Endpoints, Endpoint{Name: e.Name, Host: e.Host, Port: e.Port, SecurityProtocol: e.SecurityProtocol})
	}
	for _, f := range r.Features {
		c.Features = append(c.Features, FeatureRange{Name: f.Name, Min: f.MinSupportedVersion, Max: f.MaxSupportedVersion})
	}
	open(&b.controllers, b.base.controllers.m).set(c.ID, c)
	return nil
}

func (b *Builder) unregisterController(r *protocol.UnregisterControllerRecord) error {
	if !open(&b.controllers, b.base.controllers.m).delete(model.NodeID(r.ControllerId)) {
		return fmt.Errorf("controller %d is not registered", r.ControllerId)
	}
	return nil
}

func (b *Builder) featureLevel(r *protocol.FeatureLevelRecord, offset int64) error {
	f := &b.next.features
	switch r.Name {
	case FeatureMetadataVersion:
		v := MetadataVersion(r.FeatureLevel)
		if !v.Known() {
			return fmt.Errorf("metadata.version %d is outside %d to %d, which this software supports", v, MetadataVersionMin, MetadataVersionLatest)
		}
		f.metadataVersion = v
	case FeatureKRaftVersion:
		return nil // its level comes from the raft log; a record of it is an old mistake (K-85)
	default:
		i, ok := slices.BinarySearchFunc(f.others, r.Name, func(l FeatureLevel, n string) int { return strings.Compare(l.Name, n) })
		others := slices.Clone(f.others)
		switch {
		case r.FeatureLevel < 0:
			return fmt.Errorf("feature %s has level %d", r.Name, r.FeatureLevel)
		case ok && r.FeatureLevel == 0:
			others = slices.Delete(others, i, i+1)
		case ok:
			others[i].Level = r.FeatureLevel
		case r.FeatureLevel != 0:
			others = slices.Insert(others, i, FeatureLevel{r.Name, r.FeatureLevel})
		}
		f.others = others
	}
	f.changedAt = offset
	return nil
}
