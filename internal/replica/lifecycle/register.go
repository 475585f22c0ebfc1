package lifecycle

import (
	"cmp"
	"encoding/binary"
	"slices"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// registrationRequest is the registration as things are now.
func (l *Lifecycle) registrationRequest() *protocol.BrokerRegistrationRequest {
	r := protocol.Make[protocol.BrokerRegistrationRequest]()
	r.BrokerId, r.ClusterId, r.IncarnationId, r.Rack = int32(l.o.NodeID), l.o.ClusterID, l.incarnation, l.o.Rack
	for _, e := range l.o.Listeners {
		r.Listeners = append(r.Listeners, protocol.BrokerRegistrationRequestListener{Name: e.Name, Host: e.Host, Port: e.Port, SecurityProtocol: e.SecurityProtocol})
	}
	for _, f := range l.o.Features {
		r.Features = append(r.Features, protocol.BrokerRegistrationRequestFeature{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
	}
	r.LogDirs = sortedDirs(l.o.OnlineDirs())
	r.PreviousBrokerEpoch = l.o.PreviousEpoch
	return &r
}

// registration fits a registration to the version it is sent at.
type registration struct {
	*protocol.BrokerRegistrationRequest
}

// At leaves features out that an old controller would not take: below version 4 a minimum of 0 is refused (K-131).
func (r *registration) At(version int16) protocol.Request {
	if version >= 4 {
		return r.BrokerRegistrationRequest
	}
	old := *r.BrokerRegistrationRequest
	old.Features = slices.DeleteFunc(slices.Clone(old.Features), func(f protocol.BrokerRegistrationRequestFeature) bool { return f.MinSupportedVersion == 0 })
	return &old
}

// sortedDirs orders ids by their halves as signed numbers, as Kafka does (J-49).
func sortedDirs(dirs []model.DirectoryID) []model.UUID {
	out := make([]model.UUID, len(dirs))
	for i, d := range dirs {
		out[i] = model.UUID(d)
	}
	half := func(u model.UUID, at int) int64 { return int64(binary.BigEndian.Uint64(u[at:])) }
	slices.SortFunc(out, func(a, b model.UUID) int {
		return cmp.Or(cmp.Compare(half(a, 0), half(b, 0)), cmp.Compare(half(a, 8), half(b, 8)))
	})
	return out
}
