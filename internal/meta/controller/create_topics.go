package controller

import (
	"strings"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

const (
	metadataTopic    = "__cluster_metadata"
	maxTopicNameSize = 249
)

// CheckTopicName says why a name is not legal (T-29), nil if it is.
func CheckTopicName(name string) error {
	illegal := func(format string, args ...any) error {
		return kerr.InvalidTopicException.With("Topic name is invalid: "+format, args...)
	}
	switch {
	case name == "":
		return illegal("the empty string is not allowed")
	case name == "." || name == "..":
		return illegal("'%s' is not allowed", name)
	case len([]rune(name)) > maxTopicNameSize:
		return illegal("the length of '%s' is longer than the max allowed length %d", name, maxTopicNameSize)
	}
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '.' || c == '_' || c == '-') {
			return illegal("'%s' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", name)
		}
	}
	return nil
}

// CreateTopics creates what the request names, each topic for itself: a mistake in one does not
// stop the others (K-147, K-148, T-30, T-31, T-42, T-43).
func (c *Controller) CreateTopics(d *Draft, caller Caller, r *protocol.CreateTopicsRequest) *protocol.CreateTopicsResponse {
	resp := new(protocol.CreateTopicsResponse)
	resp.Default()
	d.atomic = true
	fail := func(name string, err error) {
		resp.Topics = append(resp.Topics, failedTopic(name, err))
	}
	v := c.view(d.Image())
	node := c.effective(v.img)

	times := map[string]int{}
	for _, t := range r.Topics {
		times[t.Name]++
	}
	// What may not be created at all does not count towards the size either.
	var wanted []*protocol.CreateTopicsRequestCreatableTopic
	partitions := int64(0)
	mayCreate := caller.may(OpCreate, OnCluster, clusterName)
	for i := range r.Topics {
		t := &r.Topics[i]
		if times[t.Name] > 1 || t.Name == metadataTopic || !mayCreate && !caller.may(OpCreate, OnTopic, t.Name) {
			continue
		}
		wanted = append(wanted, t)
		switch {
		case len(t.Assignments) > 0:
			partitions += int64(len(t.Assignments))
		case t.NumPartitions == -1:
			partitions += int64(node.NumPartitions)
		case t.NumPartitions > 0:
			partitions += int64(t.NumPartitions)
		}
	}
	if partitions > MaxPartitionsPerOp {
		return allTopicsFail(r, kerr.PolicyViolation.With("Excessively large number of partitions per request."))
	}

	colliding := map[string]string{} // names this request creates, by what they would collide in
	for _, t := range wanted {
		mark := d.mark()
		result, err := c.createTopic(d, v, caller, t, colliding)
		if err != nil {
			d.undo(mark)
			fail(t.Name, err)
			continue
		}
		if r.ValidateOnly {
			result.TopicId = model.UUID{} // nobody should keep an id that never lived (T-43)
		}
		colliding[image.CollisionKey(t.Name)] = t.Name
		resp.Topics = append(resp.Topics, result)
	}
	seen := map[string]bool{}
	for _, t := range r.Topics {
		if seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		switch {
		case times[t.Name] > 1:
			fail(t.Name, kerr.InvalidRequest.With("Duplicate topic name."))
		case t.Name == metadataTopic:
			fail(t.Name, kerr.InvalidRequest.With("Creation of internal topic %s is prohibited.", metadataTopic))
		case !mayCreate && !caller.may(OpCreate, OnTopic, t.Name):
			fail(t.Name, kerr.TopicAuthorizationFailed.With("Authorization failed."))
		}
	}
	if d.tooLarge() {
		return allTopicsFail(r, errTooLarge)
	}
	if r.ValidateOnly {
		d.discard()
	}
	return resp
}

func failedTopic(name string, err error) protocol.CreateTopicsResponseCreatableTopicResult {
	var t protocol.CreateTopicsResponseCreatableTopicResult
	t.Name, t.ErrorCode, t.ErrorMessage = name, kerr.Code(err), message(err)
	t.NumPartitions, t.ReplicationFactor = -1, -1
	t.Configs = []protocol.CreateTopicsResponseCreatableTopicConfigs{}
	return t
}

// CreateTopicsError is the answer when nothing of the request could be done.
func CreateTopicsError(r *protocol.CreateTopicsRequest, err error) *protocol.CreateTopicsResponse {
	return allTopicsFail(r, err)
}

func allTopicsFail(r *protocol.CreateTopicsRequest, err error) *protocol.CreateTopicsResponse {
	resp := new(protocol.CreateTopicsResponse)
	resp.Default()
	seen := map[string]bool{}
	for _, t := range r.Topics {
		if !seen[t.Name] {
			seen[t.Name] = true
			resp.Topics = append(resp.Topics, failedTopic(t.Name, err))
		}
	}
	return resp
}

func (c *Controller) createTopic(d *Draft, v *view, caller Caller, t *protocol.CreateTopicsRequestCreatableTopic, colliding map[string]string) (protocol.CreateTopicsResponseCreatableTopicResult, error) {
	result := failedTopic(t.Name, nil)
	if err := CheckTopicName(t.Name); err != nil {
		return result, err
	}
	if _, ok := v.img.Topics().ByName(t.Name); ok {
		return result, kerr.TopicAlreadyExists.With("Topic '%s' already exists.", t.Name)
	}
	other, ok := v.img.Topics().Collision(t.Name)
	if !ok {
		other, ok = colliding[image.CollisionKey(t.Name)]
	}
	if ok {
		return result, kerr.InvalidTopicException.With("Topic '%s' collides with existing topic: %s", t.Name, other)
	}
	configs, err := creationConfigs(t)
	if err != nil {
		return result, err
	}
	node := c.effective(v.img)
	if len(configs) > 0 {
		for _, value := range configs {
			if len(value) > maxConfigValueLength {
				return result, errConfigTooLong
			}
		}
		if err := node.ValidateTopic(nil, configs); err != nil {
			return result, err
		}
	}
	parts, err := c.newTopicPartitions(v, t)
	if err != nil {
		return result, err
	}
	if err := caller.mutate(len(parts)); err != nil {
		return result, err
	}

	id := c.newID()
	result.TopicId = id
	if caller.may(OpDescribeConfigs, OnTopic, t.Name) {
		result.NumPartitions, result.ReplicationFactor = int32(len(parts)), int16(len(parts[0].Replicas))
		result.Configs = c.describeNewTopic(node, configs)
	} else {
		result.TopicConfigErrorCode = kerr.TopicAuthorizationFailed.Code
	}

	d.add(&protocol.TopicRecord{Name: t.Name, TopicId: id}, 0)
	clearELR := false
	for _, cfg := range t.Configs {
		value, ok := configs[cfg.Name]
		if !ok {
			continue // written already: the name came twice
		}
		delete(configs, cfg.Name)
		d.add(&protocol.ConfigRecord{ResourceType: image.ResourceTopic, ResourceName: t.Name, Name: cfg.Name, Value: &value}, 0)
		clearELR = clearELR || cfg.Name == "min.insync.replicas" && v.elr
	}
	if clearELR {
		// Kafka clears even the ELR of a topic that has no partition yet (K-160).
		d.add(&protocol.ClearElrRecord{TopicName: t.Name}, 0)
	}
	for i, p := range parts {
		d.append(image.PartitionRecord(model.TopicID(id), int32(i), p, v.mv, v.elr))
	}
	return result, nil
}

// describeNewTopic lists the effective configs of a new topic. Most topics set none, and the answer
// for those is made once.
func (c *Controller) describeNewTopic(node *config.Node, configs map[string]string) []protocol.CreateTopicsResponseCreatableTopicConfigs {
	if len(configs) == 0 && c.plainTopicOf == node {
		return c.plainTopic
	}
	var out []protocol.CreateTopicsResponseCreatableTopicConfigs
	for _, e := range node.DescribeTopic(configs, nil) {
		entry := protocol.CreateTopicsResponseCreatableTopicConfigs{
			Name: e.Name, Value: e.Value, ReadOnly: e.ReadOnly, ConfigSource: int8(e.Source), IsSensitive: e.Sensitive,
		}
		if e.Sensitive {
			entry.Value = nil
		}
		out = append(out, entry)
	}
	if len(configs) == 0 {
		c.plainTopicOf, c.plainTopic = node, out
	}
	return out
}

func creationConfigs(t *protocol.CreateTopicsRequestCreatableTopic) (map[string]string, error) {
	configs := map[string]string{}
	var nulls []string
	for _, cfg := range t.Configs {
		if cfg.Value == nil {
			nulls = append(nulls, cfg.Name)
		} else {
			configs[cfg.Name] = *cfg.Value
		}
	}
	if len(nulls) > 0 {
		return nil, kerr.InvalidConfig.With("Null value not supported for topic configs: %s", strings.Join(nulls, ","))
	}
	return configs, nil
}

// newTopicPartitions are the registrations of a new topic's partitions, at least one.
func (c *Controller) newTopicPartitions(v *view, t *protocol.CreateTopicsRequestCreatableTopic) ([]*image.Partition, error) {
	if len(t.Assignments) > 0 {
		return v.manualPartitions(t)
	}
	node := c.effective(v.img)
	count, factor := t.NumPartitions, t.ReplicationFactor
	if factor < -1 || factor == 0 {
		return nil, kerr.InvalidReplicationFactor.With("Replication factor must be larger than 0, or -1 to use the default value.")
	}
	if count < -1 || count == 0 {
		return nil, kerr.InvalidPartitions.With("Number of partitions was set to an invalid non-positive value.")
	}
	if count == -1 {
		count = node.NumPartitions
	}
	if factor == -1 {
		factor = node.DefaultReplicationFactor
	}
	place := newPlacer(c.rng, v.img.Brokers())
	if err := place.check(int(factor)); err != nil {
		return nil, kerr.InvalidReplicationFactor.With("Unable to replicate the partition %d time(s): %s", factor, err)
	}
	parts := make([]*image.Partition, count)
	for i := range parts {
		if parts[i] = v.newPartition(v.assign(place.next(int(factor)))); parts[i] == nil {
			return nil, kerr.InvalidReplicationFactor.With("Unable to replicate the partition %d time(s): All brokers are currently fenced or in controlled shutdown.", factor)
		}
	}
	return parts, nil
}

func (v *view) manualPartitions(t *protocol.CreateTopicsRequestCreatableTopic) ([]*image.Partition, error) {
	if t.ReplicationFactor != -1 {
		return nil, kerr.InvalidRequest.With("A manual partition assignment was specified, but replication factor was not set to -1.")
	}
	if t.NumPartitions != -1 {
		return nil, kerr.InvalidRequest.With("A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	byIndex := map[int32]*image.Partition{}
	factor := -1
	for _, a := range t.Assignments {
		if byIndex[a.PartitionIndex] != nil {
			return nil, kerr.InvalidReplicaAssignment.With("Found multiple manual partition assignments for partition %d", a.PartitionIndex)
		}
		replicas := nodeIDs(a.BrokerIds)
		if err := v.checkManual(replicas, factor); err != nil {
			return nil, err
		}
		factor = len(replicas)
		p := v.newPartition(v.assign(replicas))
		if p == nil {
			return nil, kerr.InvalidReplicaAssignment.With("All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", a.PartitionIndex)
		}
		byIndex[a.PartitionIndex] = p
	}
	parts := make([]*image.Partition, len(byIndex))
	for i := range parts {
		if parts[i] = byIndex[int32(i)]; parts[i] == nil {
			return nil, kerr.InvalidReplicaAssignment.With("partitions should be a consecutive 0-based integer sequence")
		}
	}
	return parts, nil
}
