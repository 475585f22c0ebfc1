package controller

import (
	"fmt"
	"strconv"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// Types of a feature update.
const (
	upgrade         int8 = 1
	safeDowngrade   int8 = 2
	unsafeDowngrade int8 = 3
)

// UpdateFeatures changes finalized features, all or none (K-115, K-116).
func (c *Controller) UpdateFeatures(d *Draft, caller Caller, r *protocol.UpdateFeaturesRequest) *protocol.UpdateFeaturesResponse {
	resp := new(protocol.UpdateFeaturesResponse)
	resp.Default()
	d.atomic = true
	resp.ErrorMessage = nil
	if err := c.updateFeatures(d, caller, r); err != nil {
		d.discard()
		resp.ErrorCode = kerr.Code(err)
		text := "The update failed for all features since the following feature had an error: " + err.Error()
		resp.ErrorMessage = &text
		return resp
	}
	if r.ValidateOnly {
		d.discard()
	}
	if caller.Version <= 1 {
		for _, f := range r.FeatureUpdates {
			none := "NONE"
			resp.Results = append(resp.Results, protocol.UpdateFeaturesResponseUpdatableFeatureResult{Feature: f.Feature, ErrorMessage: &none})
		}
	}
	return resp
}

func invalidUpdate(feature string, level int16, format string, args ...any) error {
	return kerr.InvalidUpdateVersion.With("Invalid update version %d for feature %s. %s", level, feature, fmt.Sprintf(format, args...))
}

func (c *Controller) updateFeatures(d *Draft, caller Caller, r *protocol.UpdateFeaturesRequest) error {
	img := d.Image()
	proposed := map[string]int16{}
	for l := range img.Features().All() {
		proposed[l.Name] = l.Level
	}
	for _, f := range r.FeatureUpdates {
		proposed[f.Feature] = f.MaxVersionLevel
	}
	var kraft *protocol.UpdateFeaturesRequestFeatureUpdateKey
	for i := range r.FeatureUpdates {
		f := &r.FeatureUpdates[i]
		kind := f.UpgradeType
		if caller.Version == 0 {
			if kind = upgrade; f.AllowDowngrade {
				kind = safeDowngrade
			}
		}
		if err := c.updateFeature(d, img, f.Feature, f.MaxVersionLevel, kind, proposed); err != nil {
			return err
		}
		if f.Feature == image.FeatureKRaftVersion && kind == upgrade {
			kraft = f
		}
	}
	if !img.Features().ELREnabled() && proposed[image.FeatureELR] >= 1 {
		d.records = append(c.elrRecords(img), d.records...)
	}
	// kraft.version last: what it appends goes through another door and cannot be taken back.
	if kraft != nil && c.kraft != nil {
		if err := c.kraft.UpgradeKRaftVersion(kraft.MaxVersionLevel, r.ValidateOnly); err != nil {
			if kerr.Of(err) == kerr.UnknownServerError {
				return invalidUpdate(kraft.Feature, kraft.MaxVersionLevel, "%v", err)
			}
			return err
		}
		d.add(new(protocol.NoOpRecord), 0) // something to wait for
	}
	return nil
}

func (c *Controller) updateFeature(d *Draft, img *image.Image, name string, level int16, kind int8, proposed map[string]int16) error {
	if kind != upgrade && kind != safeDowngrade && kind != unsafeDowngrade {
		return invalidUpdate(name, level, "The controller does not support the given upgrade type.")
	}
	current := img.Features().Level(name)
	if name == image.FeatureKRaftVersion {
		current = c.kraftVersion()
	}
	if level < 0 {
		return invalidUpdate(name, level, "A feature version cannot be less than 0.")
	}
	if reason := c.notSupported(img, name, level); reason != "" {
		return invalidUpdate(name, level, "%s", reason)
	}
	if level < current && kind == upgrade {
		return invalidUpdate(name, level, "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.")
	}
	if level > current && kind != upgrade {
		return invalidUpdate(name, level, "Can't downgrade to a newer version.")
	}
	switch name {
	case image.FeatureMetadataVersion:
		from, to := image.MetadataVersion(current), image.MetadataVersion(level)
		if to < from && from.ChangesFormat(to) {
			why := "Refusing to perform the requested downgrade because it might delete metadata information."
			if kind == unsafeDowngrade {
				why = "Unsafe metadata downgrade is not supported in this version."
			}
			return kerr.InvalidUpdateVersion.With("Unsupported metadata.version downgrade from %d to %d. %s", from, to, why)
		}
	case image.FeatureKRaftVersion:
		if level != current && (kind != upgrade || c.kraft == nil) {
			return invalidUpdate(name, level, "Can't downgrade the version of this feature.")
		}
		return nil
	case image.FeatureELR:
		if level >= 1 && proposed[image.FeatureMetadataVersion] < int16(image.MetadataVersionELR) {
			return invalidUpdate(name, level, "%s could not be set to %d because it depends on metadata.version level %d", name, level, image.MetadataVersionELR)
		}
	}
	d.add(&protocol.FeatureLevelRecord{Name: name, FeatureLevel: level}, 0)
	return nil
}

// notSupported names the first node that cannot run at the level; "" if all can.
func (c *Controller) notSupported(img *image.Image, name string, level int16) string {
	check := func(who string, f image.FeatureRange) string {
		if level >= f.Min && level <= f.Max {
			return ""
		}
		if f.Max == 0 {
			return who + " does not support this feature."
		}
		r := strconv.Itoa(int(f.Min))
		if f.Max != f.Min {
			r += "-" + strconv.Itoa(int(f.Max))
		}
		return who + " only supports versions " + r
	}
	local := image.FeatureRange{Name: name}
	for _, f := range model.Features() {
		if f.Name == name {
			local.Min, local.Max = f.Min, f.Max
		}
	}
	if why := check(fmt.Sprintf("Local controller %d", c.nodeID), local); why != "" {
		return why
	}
	for b := range img.Brokers().All() {
		f, _ := b.FeatureRange(name)
		if why := check(fmt.Sprintf("Broker %d", b.ID), f); why != "" {
			return why
		}
	}
	if img.Features().MetadataVersion() < image.MetadataVersionCtrlReg {
		return ""
	}
	for o := range img.Controllers().All() {
		if o.ID == c.nodeID {
			continue
		}
		f, _ := o.FeatureRange(name)
		if why := check(fmt.Sprintf("Controller %d", o.ID), f); why != "" {
			return why
		}
	}
	for _, id := range c.voters() {
		if _, ok := img.Controllers().ByID(id); !ok && id != c.nodeID {
			return fmt.Sprintf("controller %d has not registered, and may not support this feature", id)
		}
	}
	return ""
}

// elrRecords make min.insync.replicas one value for the cluster before ELR depends on it (K-116).
func (c *Controller) elrRecords(img *image.Image) []image.Versioned {
	var out []image.Versioned
	if _, ok := img.AllConfigs().Get(image.ClusterResource, minISRConfig); !ok {
		value := strconv.Itoa(int(c.static.Topic(nil).MinInSyncReplicas))
		out = append(out, image.Versioned{Record: &protocol.ConfigRecord{ResourceType: image.ResourceBroker, Name: minISRConfig, Value: &value}})
	}
	for res, values := range img.AllConfigs().All() {
		if _, ok := values[minISRConfig]; ok && res.Type == image.ResourceBroker && res.Name != "" {
			out = append(out, image.Versioned{Record: &protocol.ConfigRecord{ResourceType: res.Type, ResourceName: res.Name, Name: minISRConfig}})
		}
	}
	return out
}

// RegisterController stores how a controller is reached and what it supports (K-145).
func (c *Controller) RegisterController(d *Draft, r *protocol.ControllerRegistrationRequest) *protocol.ControllerRegistrationResponse {
	resp := new(protocol.ControllerRegistrationResponse)
	resp.Default()
	d.atomic = true
	if d.Image().Features().MetadataVersion() < image.MetadataVersionCtrlReg {
		err := kerr.UnsupportedVersion.With("The current MetadataVersion is too old to support controller registrations.")
		resp.ErrorCode, resp.ErrorMessage = kerr.Code(err), message(err)
		return resp
	}
	rec := new(protocol.RegisterControllerRecord)
	rec.Default()
	rec.ControllerId, rec.IncarnationId = r.ControllerId, r.IncarnationId
	for _, l := range r.Listeners {
		rec.EndPoints = append(rec.EndPoints, protocol.RegisterControllerRecordControllerEndpoint{Name: l.Name, Host: l.Host, Port: l.Port, SecurityProtocol: l.SecurityProtocol})
	}
	for _, f := range r.Features {
		rec.Features = append(rec.Features, protocol.RegisterControllerRecordControllerFeature{Name: f.Name, MinSupportedVersion: f.MinSupportedVersion, MaxSupportedVersion: f.MaxSupportedVersion})
	}
	d.add(rec, 0)
	return resp
}

// UnregisterController forgets a controller, unless it is this one (K-98).
func (c *Controller) UnregisterController(d *Draft, r *protocol.UnregisterControllerRequest) *protocol.UnregisterControllerResponse {
	resp := new(protocol.UnregisterControllerResponse)
	resp.Default()
	d.atomic = true
	err := func() error {
		if model.NodeID(r.ControllerId) == c.nodeID {
			return kerr.InvalidRequest.With("Controller cannot unregister itself while it is active.")
		}
		if d.Image().Features().MetadataVersion() < image.MetadataVersionUnregC {
			return kerr.UnsupportedVersion.With("The current MetadataVersion is too old to support controller unregistration.")
		}
		if _, ok := d.Image().Controllers().ByID(model.NodeID(r.ControllerId)); !ok {
			return kerr.ControllerIdNotRegistered.With("Controller ID %d is not currently registered.", r.ControllerId)
		}
		return nil
	}()
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = kerr.Code(err), message(err)
		return resp
	}
	none := ""
	resp.ErrorMessage = &none
	d.add(&protocol.UnregisterControllerRecord{ControllerId: r.ControllerId}, 0)
	return resp
}

// AllocateProducerIds hands a broker a block of producer ids that nobody gets again (K-171).
func (c *Controller) AllocateProducerIds(d *Draft, r *protocol.AllocateProducerIdsRequest) *protocol.AllocateProducerIdsResponse {
	resp := new(protocol.AllocateProducerIdsResponse)
	resp.Default()
	if _, err := checkBrokerEpoch(d.Image(), r.BrokerId, r.BrokerEpoch); err != nil {
		resp.ErrorCode = kerr.Code(err)
		return resp
	}
	start := max(d.Image().ProducerIDs(), 0)
	if start > 1<<63-1-producerIDBlockSize {
		resp.ErrorCode = kerr.UnknownServerError.Code
		return resp
	}
	d.add(&protocol.ProducerIdsRecord{BrokerId: r.BrokerId, BrokerEpoch: r.BrokerEpoch, NextProducerId: start + producerIDBlockSize}, 0)
	resp.ProducerIdStart, resp.ProducerIdLen = start, producerIDBlockSize
	return resp
}
