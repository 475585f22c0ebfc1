package image

import (
	"cmp"
	"iter"
	"slices"

	"samsa/internal/base/model"
	"samsa/internal/base/pmap"
)

// Endpoint is one advertised listener of a node.
type Endpoint struct {
	Name             string // the listener's name, as registered
	Host             string
	Port             uint16
	SecurityProtocol int16 // 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
}

// FeatureRange is the range of levels of one feature a node supports.
type FeatureRange struct {
	Name     string
	Min, Max int16
}

// Broker is the registration of a broker.
type Broker struct {
	ID          model.NodeID
	Epoch       int64 // the fencing token: first offset of the registration's batch (J-179)
	Incarnation model.UUID
	Endpoints   []Endpoint
	Features    []FeatureRange // in the order registered
	Rack        *string
	Fenced      bool
	// InControlledShutdown: it still serves, but leads nothing new.
	InControlledShutdown bool
	MigratingZK          bool
	// Directories are the online log directories, in the order registered. Empty for a broker that
	// registered below metadata.version 17: then every directory counts as online (J-05).
	Directories []model.DirectoryID
	// Cordoned directories take no new replicas; nil until the broker first says (K-136).
	Cordoned []model.DirectoryID
	// RegisteredAt is the offset of the registration record; after a snapshot, that of the snapshot.
	// A broker that has read this far knows itself (K-138).
	RegisteredAt int64
}

// Active reports whether the broker may lead: unfenced and not shutting down.
func (b *Broker) Active() bool { return !b.Fenced && !b.InControlledShutdown }

// Endpoint finds a listener by name.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	return findEndpoint(b.Endpoints, listener)
}

// HasOnlineDir reports whether a directory id named in a partition counts as online on this broker (J-05).
func (b *Broker) HasOnlineDir(dir model.DirectoryID) bool {
	switch {
	case len(b.Directories) == 0 || dir == model.DirUnassigned || dir == model.DirMigrating:
		return true
	case dir == model.DirLost:
		return false
	}
	return slices.Contains(b.Directories, dir)
}

// HasUncordonedDir reports whether new replicas may be placed on the broker (K-144).
func (b *Broker) HasUncordonedDir() bool {
	if len(b.Directories) == 0 || b.Cordoned == nil {
		return true
	}
	return slices.ContainsFunc(b.Directories, func(d model.DirectoryID) bool { return !slices.Contains(b.Cordoned, d) })
}

// DefaultDir is the directory a new replica on the broker starts with: the only one, UNASSIGNED if
// it has several, MIGRATING if it registered none (J-60).
func (b *Broker) DefaultDir() model.DirectoryID {
	switch len(b.Directories) {
	case 0:
		return model.DirMigrating
	case 1:
		return b.Directories[0]
	}
	return model.DirUnassigned
}

// FeatureRange returns the broker's range of a feature; ok is false if it names none.
func (b *Broker) FeatureRange(name string) (FeatureRange, bool) { return findFeature(b.Features, name) }

// Equal reports whether two registrations say the same; RegisteredAt is not part of it.
func (b *Broker) Equal(c *Broker) bool {
	return b.ID == c.ID && b.Epoch == c.Epoch && b.Incarnation == c.Incarnation && b.Fenced == c.Fenced &&
		b.InControlledShutdown == c.InControlledShutdown && b.MigratingZK == c.MigratingZK &&
		(b.Rack == nil) == (c.Rack == nil) && (b.Rack == nil || *b.Rack == *c.Rack) &&
		slices.Equal(b.Endpoints, c.Endpoints) && slices.Equal(b.Features, c.Features) &&
		slices.Equal(b.Directories, c.Directories) &&
		(b.Cordoned == nil) == (c.Cordoned == nil) && slices.Equal(b.Cordoned, c.Cordoned)
}

// Brokers are the registered brokers.
type Brokers struct {
	m pmap.Map[model.NodeID, *Broker]
}

func newBrokers() Brokers { return Brokers{pmap.New[model.NodeID, *Broker](cmp.Compare[model.NodeID])} }

// ByID finds a broker.
func (b Brokers) ByID(id model.NodeID) (*Broker, bool) { return b.m.Get(id) }

// All walks the brokers by id.
func (b Brokers) All() iter.Seq[*Broker] { return b.m.Values() }

// Len is the number of registered brokers, fenced ones included.
func (b Brokers) Len() int { return b.m.Len() }

// ByDirectory finds the broker that has registered a directory.
func (b Brokers) ByDirectory(dir model.DirectoryID) (*Broker, bool) {
	for broker := range b.All() {
		if slices.Contains(broker.Directories, dir) {
			return broker, true
		}
	}
	return nil, false
}

// Controller is the registration of a controller.
type Controller struct {
	ID               model.NodeID
	Incarnation      model.UUID
	ZKMigrationReady bool
	Endpoints        []Endpoint
	Features         []FeatureRange // in the order registered
}

// Endpoint finds a listener by name.
func (c *Controller) Endpoint(listener string) (Endpoint, bool) {
	return findEndpoint(c.Endpoints, listener)
}

// FeatureRange returns the controller's range of a feature; ok is false if it names none.
func (c *Controller) FeatureRange(name string) (FeatureRange, bool) {
	return findFeature(c.Features, name)
}

// Equal reports whether two registrations say the same.
func (c *Controller) Equal(d *Controller) bool {
	return c.ID == d.ID && c.Incarnation == d.Incarnation && c.ZKMigrationReady == d.ZKMigrationReady &&
		slices.Equal(c.Endpoints, d.Endpoints) && slices.Equal(c.Features, d.Features)
}

// Controllers are the registered controllers.
type Controllers struct {
	m pmap.Map[model.NodeID, *Controller]
}

func newControllers() Controllers {
	return Controllers{pmap.New[model.NodeID, *Controller](cmp.Compare[model.NodeID])}
}

// ByID finds a controller.
func (c Controllers) ByID(id model.NodeID) (*Controller, bool) { return c.m.Get(id) }

// All walks the controllers by id.
func (c Controllers) All() iter.Seq[*Controller] { return c.m.Values() }

// Len is the number of registered controllers.
func (c Controllers) Len() int { return c.m.Len() }

func findEndpoint(all []Endpoint, name string) (Endpoint, bool) {
	for _, e := range all {
		if e.Name == name {
			return e, true
		}
	}
	return Endpoint{}, false
}

func findFeature(all []FeatureRange, name string) (FeatureRange, bool) {
	for _, f := range all {
		if f.Name == name {
			return f, true
		}
	}
	return FeatureRange{Name: name}, false
}
