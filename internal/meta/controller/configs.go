package controller

import (
	"slices"
	"strconv"
	"strings"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

const (
	minISRConfig   = "min.insync.replicas"
	cordonedConfig = "cordoned.log.dirs"
)

var (
	errConfigTooLong = kerr.InvalidConfig.With("The configuration value cannot be added because it exceeds the maximum value size of %d bytes.", maxConfigValueLength)
	errBrokerMinISR  = kerr.InvalidConfig.With("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
	errClusterMinISR = kerr.InvalidConfig.With("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
	errCordonLevel   = kerr.InvalidConfig.With("The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= %s", image.MetadataVersionCordon)
	errCordonSubset  = kerr.InvalidConfig.With("When updating cordoned.log.dirs via controllers,  the new value must be a subset of the current configuration value.")
)

// setting is one config of a resource with the value it gets; nil removes it.
type setting struct {
	name  string
	value *string
}

// IncrementalAlterConfigs changes single configs of resources, each resource as a whole (K-165, K-160).
// Broker loggers are the node's own affair and do not come here.
func (c *Controller) IncrementalAlterConfigs(d *Draft, caller Caller, r *protocol.IncrementalAlterConfigsRequest) *protocol.IncrementalAlterConfigsResponse {
	resp := new(protocol.IncrementalAlterConfigsResponse)
	resp.Default()
	d.atomic = true
	var seen []image.ConfigResource
	count := map[image.ConfigResource]int{}
	for _, res := range r.Resources {
		count[image.ConfigResource{Type: res.ResourceType, Name: res.ResourceName}]++
	}
	for _, res := range r.Resources {
		key := image.ConfigResource{Type: res.ResourceType, Name: res.ResourceName}
		if slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		err := checkResource(caller, key, count[key])
		if err == nil {
			var ops []config.Op
			for _, cfg := range res.Configs {
				op := config.Op{Type: config.OpType(cfg.ConfigOperation), Name: cfg.Name, Value: cfg.Value}
				// A name that comes twice counts with its last operation.
				ops = slices.DeleteFunc(ops, func(o config.Op) bool { return o.Name == op.Name })
				ops = append(ops, op)
			}
			err = c.alterIncrementally(d, caller, key, ops)
		}
		resp.Responses = append(resp.Responses, protocol.IncrementalAlterConfigsResponseAlterConfigsResourceResponse{
			ErrorCode: kerr.Code(err), ErrorMessage: message(err), ResourceType: res.ResourceType, ResourceName: res.ResourceName,
		})
	}
	if c.finishConfigs(d, r.ValidateOnly) {
		return IncrementalAlterConfigsError(r, errTooLarge)
	}
	return resp
}

// IncrementalAlterConfigsError is the answer when nothing of the request could be done.
func IncrementalAlterConfigsError(r *protocol.IncrementalAlterConfigsRequest, err error) *protocol.IncrementalAlterConfigsResponse {
	resp := new(protocol.IncrementalAlterConfigsResponse)
	resp.Default()
	for _, res := range r.Resources {
		resp.Responses = append(resp.Responses, protocol.IncrementalAlterConfigsResponseAlterConfigsResourceResponse{
			ErrorCode: kerr.Code(err), ErrorMessage: message(err), ResourceType: res.ResourceType, ResourceName: res.ResourceName,
		})
	}
	return resp
}

// AlterConfigs replaces all configs of resources: what is not named is removed (K-165).
func (c *Controller) AlterConfigs(d *Draft, caller Caller, r *protocol.AlterConfigsRequest) *protocol.AlterConfigsResponse {
	resp := new(protocol.AlterConfigsResponse)
	resp.Default()
	d.atomic = true
	var seen []image.ConfigResource
	count := map[image.ConfigResource]int{}
	for _, res := range r.Resources {
		count[image.ConfigResource{Type: res.ResourceType, Name: res.ResourceName}]++
	}
	for _, res := range r.Resources {
		key := image.ConfigResource{Type: res.ResourceType, Name: res.ResourceName}
		if slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		err := checkResource(caller, key, count[key])
		if err == nil {
			var set []setting
			for _, cfg := range res.Configs {
				set = slices.DeleteFunc(set, func(s setting) bool { return s.name == cfg.Name })
				set = append(set, setting{cfg.Name, cfg.Value})
			}
			err = c.replaceConfigs(d, caller, key, set)
		}
		resp.Responses = append(resp.Responses, protocol.AlterConfigsResponseAlterConfigsResourceResponse{
			ErrorCode: kerr.Code(err), ErrorMessage: message(err), ResourceType: res.ResourceType, ResourceName: res.ResourceName,
		})
	}
	if c.finishConfigs(d, r.ValidateOnly) {
		return AlterConfigsError(r, errTooLarge)
	}
	return resp
}

// AlterConfigsError is the answer when nothing of the request could be done.
func AlterConfigsError(r *protocol.AlterConfigsRequest, err error) *protocol.AlterConfigsResponse {
	resp := new(protocol.AlterConfigsResponse)
	resp.Default()
	for _, res := range r.Resources {
		resp.Responses = append(resp.Responses, protocol.AlterConfigsResponseAlterConfigsResourceResponse{
			ErrorCode: kerr.Code(err), ErrorMessage: message(err), ResourceType: res.ResourceType, ResourceName: res.ResourceName,
		})
	}
	return resp
}

func checkResource(caller Caller, r image.ConfigResource, times int) error {
	switch r.Type {
	case image.ResourceTopic, image.ResourceBroker, image.ResourceClientMetrics, image.ResourceGroup:
	case image.ResourceBrokerLogger:
		return kerr.InvalidRequest.With("Unknown resource type BROKER_LOGGER")
	default:
		return kerr.UnsupportedVersion.With("Unknown resource type %d.", r.Type)
	}
	if times > 1 {
		return kerr.InvalidRequest.With("Duplicate resource.")
	}
	allowed, err := false, error(kerr.ClusterAuthorizationFailed)
	switch r.Type {
	case image.ResourceTopic:
		allowed, err = caller.may(OpAlterConfigs, OnTopic, r.Name), kerr.TopicAuthorizationFailed
	case image.ResourceGroup:
		allowed, err = caller.may(OpAlterConfigs, OnGroup, r.Name), kerr.GroupAuthorizationFailed
	default:
		allowed = caller.may(OpAlterConfigs, OnCluster, clusterName)
	}
	if !allowed {
		return err
	}
	return nil
}

func (c *Controller) alterIncrementally(d *Draft, caller Caller, r image.ConfigResource, ops []config.Op) error {
	img := d.base
	current := img.Configs(r)
	node := c.effective(img)
	next, err := config.Alter(config.Resource(r.Type), current, ops, func(name string) (string, bool) {
		return effectiveList(node, r, name)
	})
	if err != nil {
		return err
	}
	var set []setting
	for _, op := range ops {
		var value *string
		if v, ok := next[op.Name]; ok {
			value = &v
		}
		was, had := current[op.Name]
		if r.Type != image.ResourceBroker && had == (value != nil) && (!had || was == *value) {
			continue // brokers are told again even of what does not change: they reload on it
		}
		set = append(set, setting{op.Name, value})
	}
	return c.storeConfigs(d, caller, r, current, next, set, nil)
}

// effectiveList is the value a list starts from when it is appended to and nothing is stored.
func effectiveList(node *config.Node, r image.ConfigResource, name string) (string, bool) {
	var entries []config.Entry
	switch r.Type {
	case image.ResourceTopic:
		entries = node.DescribeTopic(nil, []string{name})
	case image.ResourceBroker:
		entries = node.DescribeBroker([]string{name})
	case image.ResourceGroup:
		entries = node.DescribeGroup(nil, []string{name})
	}
	for _, e := range entries {
		if e.Name == name && e.Value != nil {
			return *e.Value, true
		}
	}
	return "", false
}

func (c *Controller) replaceConfigs(d *Draft, caller Caller, r image.ConfigResource, wanted []setting) error {
	current := d.base.Configs(r)
	next := map[string]string{}
	var set, removed []setting
	for _, s := range wanted {
		if s.value != nil {
			next[s.name] = *s.value
		}
		was, had := current[s.name]
		if r.Type == image.ResourceBroker || had != (s.value != nil) || had && was != *s.value {
			set = append(set, s)
		}
	}
	for name := range current {
		if !slices.ContainsFunc(wanted, func(s setting) bool { return s.name == name }) {
			removed = append(removed, setting{name, nil})
		}
	}
	slices.SortFunc(removed, func(a, b setting) int { return strings.Compare(a.name, b.name) })
	return c.storeConfigs(d, caller, r, current, next, set, removed)
}

// storeConfigs checks what a resource would have and adds the records.
func (c *Controller) storeConfigs(d *Draft, caller Caller, r image.ConfigResource, current, next map[string]string, set, removed []setting) error {
	for _, s := range set {
		if err := c.checkSetting(d.base, caller, r, current, s); err != nil {
			return err
		}
		if s.value != nil && len(*s.value) > maxConfigValueLength {
			return errConfigTooLong
		}
	}
	for _, s := range removed {
		if err := c.checkSetting(d.base, caller, r, current, s); err != nil {
			return err
		}
	}
	node := c.effective(d.base)
	var err error
	switch r.Type {
	case image.ResourceTopic:
		if r.Name == "" {
			return kerr.InvalidRequest.With("Default topic resources are not allowed.")
		}
		if err = CheckTopicName(r.Name); err == nil {
			err = node.ValidateTopic(current, next)
		}
	case image.ResourceBroker:
		err = config.ValidateBrokerRecord(r.Name, next)
	case image.ResourceClientMetrics:
		err = config.ValidateClientMetrics(r.Name, next)
	case image.ResourceGroup:
		if r.Name == "" {
			return kerr.InvalidRequest.With("Default group resources are not allowed.")
		}
		err = node.ValidateGroup(r.Name, next)
	}
	if err != nil {
		return err
	}
	if err := c.checkExists(d.base, r); err != nil {
		return err
	}
	for _, s := range append(set, removed...) {
		d.add(&protocol.ConfigRecord{ResourceType: r.Type, ResourceName: r.Name, Name: s.name, Value: s.value}, 0)
	}
	return nil
}

// checkSetting holds the rules that depend on the cluster's features (K-160, J-173).
func (c *Controller) checkSetting(img *image.Image, caller Caller, r image.ConfigResource, current map[string]string, s setting) error {
	if r.Type != image.ResourceBroker {
		return nil
	}
	elr := img.Features().ELREnabled()
	switch {
	case s.name == minISRConfig && r.Name != "" && elr:
		return errBrokerMinISR
	case s.name == minISRConfig && r.Name == "" && s.value == nil && elr:
		return errClusterMinISR
	case s.name == cordonedConfig && img.Features().MetadataVersion() < image.MetadataVersionCordon:
		return errCordonLevel
	case s.name == cordonedConfig && !caller.Forwarded && s.value != nil && strings.TrimSpace(*s.value) != "":
		// The controller does not know which directories a broker has: it can only take away.
		had := splitTrimmed(current[cordonedConfig])
		for _, dir := range splitTrimmed(*s.value) {
			if !slices.Contains(had, dir) {
				return errCordonSubset
			}
		}
	}
	return nil
}

func splitTrimmed(list string) []string {
	parts := strings.Split(strings.TrimSpace(list), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func (c *Controller) checkExists(img *image.Image, r image.ConfigResource) error {
	switch r.Type {
	case image.ResourceTopic:
		if _, ok := img.Topics().ByName(r.Name); !ok {
			return kerr.UnknownTopicOrPartition.With("The topic '%s' does not exist.", r.Name)
		}
	case image.ResourceBroker:
		if r.Name == "" {
			return nil
		}
		n, err := strconv.ParseInt(r.Name, 10, 32)
		if err != nil {
			return kerr.InvalidRequest.With("Invalid broker name %s", r.Name)
		}
		id := model.NodeID(n)
		_, broker := img.Brokers().ByID(id)
		_, controller := img.Controllers().ByID(id)
		if !broker && !controller && !slices.Contains(c.voters(), id) {
			return kerr.BrokerIdNotRegistered.With("No node with id %d found.", id)
		}
	}
	return nil
}

// finishConfigs appends what a change of min.insync.replicas means for ELR (K-160) and reports
// whether the request was too large.
func (c *Controller) finishConfigs(d *Draft, validateOnly bool) (tooLarge bool) {
	if d.base.Features().ELREnabled() {
		for _, v := range d.records {
			r, ok := v.Record.(*protocol.ConfigRecord)
			if !ok || r.Name != minISRConfig {
				continue
			}
			topic := ""
			if r.ResourceType == image.ResourceTopic {
				topic = r.ResourceName
			}
			d.add(&protocol.ClearElrRecord{TopicName: topic}, 0)
		}
	}
	if d.tooLarge() {
		return true
	}
	if validateOnly {
		d.discard()
	}
	return false
}
