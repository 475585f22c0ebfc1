package controller

import (
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// RegisterBroker admits a broker, or a new incarnation of one (K-131 to K-135, J-54 to J-56, J-179).
//
// A new incarnation first costs its forerunner the places it held; the registration is the last
// record, so that a broker whose registration was cut by a failover tries again and the clean-up is
// repeated (K-134). Its epoch is the offset of the first of these records.
func (c *Controller) RegisterBroker(d *Draft, caller Caller, r *protocol.BrokerRegistrationRequest) *protocol.BrokerRegistrationResponse {
	resp := new(protocol.BrokerRegistrationResponse)
	resp.Default()
	epoch, err := c.registerBroker(d, caller, r)
	if err != nil {
		d.discard()
		resp.ErrorCode = kerr.Code(err)
		return resp
	}
	resp.BrokerEpoch = epoch
	return resp
}

func (c *Controller) registerBroker(d *Draft, caller Caller, r *protocol.BrokerRegistrationRequest) (int64, error) {
	img := d.Image()
	mv := img.Features().MetadataVersion()
	if r.ClusterId != c.clusterID {
		return 0, kerr.InconsistentClusterId.With("Expected cluster ID %s, but got cluster ID %s", c.clusterID, r.ClusterId)
	}
	if r.BrokerId < 0 {
		return 0, kerr.InvalidRegistration.With("Broker id %d is negative", r.BrokerId)
	}
	id := model.NodeID(r.BrokerId)
	existing, known := img.Brokers().ByID(id)
	same := known && existing.Incarnation == r.IncarnationId
	own := r.IncarnationId == c.ownIncarnation && !c.ownIncarnation.IsZero()
	if known && !same && !own && c.beats.live(id, existing.Epoch, d.nowMs) {
		return 0, kerr.DuplicateBrokerRegistration.With("Another broker is registered with that broker id. If the broker was recently restarted this should self-resolve once the heartbeat manager expires the broker's session.")
	}
	if r.IsMigratingZkBroker {
		return 0, kerr.BrokerIdNotRegistered.With("Controller does not support registering ZK brokers.")
	}
	if mv.DirectoryAssignment() {
		if err := checkDirectories(img, id, r.LogDirs); err != nil {
			return 0, err
		}
	}
	if err := c.checkFeatures(img, r.Features); err != nil {
		return 0, err
	}

	b := &image.Broker{ID: id, Incarnation: r.IncarnationId, Rack: r.Rack, Fenced: true, Epoch: d.next}
	for _, l := range r.Listeners {
		b.Endpoints = append(b.Endpoints, image.Endpoint{Name: l.Name, Host: l.Host, Port: l.Port, SecurityProtocol: l.SecurityProtocol})
	}
	for _, f := range r.Features {
		b.Features = append(b.Features, image.FeatureRange{Name: f.Name, Min: f.MinSupportedVersion, Max: f.MaxSupportedVersion})
	}
	for _, dir := range r.LogDirs {
		b.Directories = append(b.Directories, model.DirectoryID(dir))
	}
	if same {
		b.Epoch, b.Fenced, b.InControlledShutdown = existing.Epoch, existing.Fenced, existing.InControlledShutdown
		// A directory that failed and is left out here before a heartbeat told of it would never be
		// told of again (J-50, J-73): what it holds moves now.
		var gone []model.DirectoryID
		for _, dir := range existing.Directories {
			if mv.DirectoryAssignment() && !slices.Contains(b.Directories, dir) {
				gone = append(gone, dir)
			}
		}
		c.leaveDirectories(d, existing, gone)
	} else {
		// The last stop was clean if the broker still knows the epoch it had then (K-158).
		clean := caller.Version >= 3 && known && existing.Epoch == r.PreviousBrokerEpoch
		c.brokerStopped(d, id, clean)
		c.beats.forget(id)
	}
	d.append(image.BrokerRecord(b, mv))
	if same { // the session of a new incarnation begins with its first heartbeat (K-132)
		c.beats.contact(id, b.Epoch, d.nowMs)
	}
	return b.Epoch, nil
}

func checkDirectories(img *image.Image, id model.NodeID, dirs []model.UUID) error {
	if len(dirs) == 0 {
		return kerr.InvalidRegistration.With("No directories specified in request")
	}
	for _, dir := range dirs {
		if model.DirectoryID(dir).Reserved() {
			return kerr.InvalidRegistration.With("Reserved directory ID in request")
		}
	}
	for i, dir := range dirs {
		if slices.Contains(dirs[:i], dir) {
			return kerr.InvalidRegistration.With("Duplicate directory ID in request")
		}
	}
	for _, dir := range dirs {
		if other, ok := img.Brokers().ByDirectory(model.DirectoryID(dir)); ok && other.ID != id {
			return kerr.InvalidRegistration.With("Broker %d is already registered with directory %s", other.ID, dir)
		}
	}
	return nil
}

// checkFeatures: every finalized level must lie in the broker's range; a feature the broker does not
// name is one it has only at level 0.
func (c *Controller) checkFeatures(img *image.Image, features []protocol.BrokerRegistrationRequestFeature) error {
	check := func(name string, lo, hi, level int16) error {
		if level < lo || level > hi {
			return kerr.UnsupportedVersion.With("Unable to register because the broker does not support finalized version %d of %s. The broker wants a version between %d and %d, inclusive.", level, name, lo, hi)
		}
		return nil
	}
	named := map[string]bool{}
	for _, f := range features {
		named[f.Name] = true
	}
	if !named[image.FeatureMetadataVersion] {
		return kerr.InvalidRegistration.With("Request features do not contain '%s'", image.FeatureMetadataVersion)
	}
	for _, f := range features {
		level := img.Features().Level(f.Name)
		if f.Name == image.FeatureKRaftVersion {
			level = c.kraftVersion()
		}
		if err := check(f.Name, f.MinSupportedVersion, f.MaxSupportedVersion, level); err != nil {
			return err
		}
	}
	for l := range img.Features().All() {
		if !named[l.Name] {
			if err := check(l.Name, 0, 0, l.Level); err != nil {
				return err
			}
		}
	}
	if !named[image.FeatureKRaftVersion] {
		return check(image.FeatureKRaftVersion, 0, 0, c.kraftVersion())
	}
	return nil
}

func (c *Controller) kraftVersion() int16 {
	if c.kraft == nil {
		return 0
	}
	return c.kraft.KRaftVersion()
}

// brokerStopped takes the broker's places: after a clean stop as if it were fenced, after another one
// from the ELR too, since what it had acknowledged may be gone (K-158, J-180).
func (c *Controller) brokerStopped(d *Draft, id model.NodeID, clean bool) {
	m := noMoves
	if clean || !d.Image().Features().ELREnabled() {
		m.remove = id
		c.updateLeaderAndISR(d, m, inISR(id))
		return
	}
	m.unclean = id
	c.updateLeaderAndISR(d, m, func(p *image.Partition) bool { return inISR(id)(p) || inELR(id)(p) })
}

// UnregisterBroker forgets a broker, alive or not (K-142).
func (c *Controller) UnregisterBroker(d *Draft, r *protocol.UnregisterBrokerRequest) *protocol.UnregisterBrokerResponse {
	resp := new(protocol.UnregisterBrokerResponse)
	resp.Default()
	id := model.NodeID(r.BrokerId)
	b, ok := d.Image().Brokers().ByID(id)
	if !ok {
		err := kerr.BrokerIdNotRegistered.With("Broker ID %d is not currently registered", id)
		resp.ErrorCode, resp.ErrorMessage = kerr.Code(err), message(err)
		return resp
	}
	// Whoever comes back under this id cannot show that it kept its data: no place in the ELR stays.
	m := noMoves
	if d.Image().Features().ELREnabled() {
		m.unclean = id
	} else {
		m.remove = id
	}
	c.updateLeaderAndISR(d, m, func(p *image.Partition) bool { return inISR(id)(p) || inELR(id)(p) })
	d.add(&protocol.UnregisterBrokerRecord{BrokerId: r.BrokerId, BrokerEpoch: b.Epoch}, 0)
	if d.tooLarge() {
		resp.ErrorCode, resp.ErrorMessage = kerr.Code(errTooLarge), message(errTooLarge)
		return resp
	}
	c.beats.forget(id)
	return resp
}
