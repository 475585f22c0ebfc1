package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"samsa/internal/base/kerr"
)

// ValidateBrokerRecord is the controller's own check of a broker resource: its name is empty or a
// number that is not negative. Values are checked by the broker they are for (AlterBroker); what a
// broker cannot use it leaves out.
func ValidateBrokerRecord(name string, proposed map[string]string) error {
	if name == "" {
		return nil
	}
	id, ok := javaInt(name, 32)
	if !ok {
		return kerr.InvalidRequest.With("Unable to parse broker name as a base 10 number.")
	}
	if id < 0 {
		return kerr.InvalidRequest.With("Invalid negative broker ID.")
	}
	return nil
}

// AlterBroker checks a change of dynamic broker configs as the addressed broker does before it
// forwards the request to the controller. clusterDefault is the resource "". current is what is
// stored for the resource. Errors: kerr.InvalidRequest and kerr.InvalidConfig with Kafka's text
// (K-165, J-173, S-05, D-219).
func (n *Node) AlterBroker(clusterDefault bool, current map[string]string, ops []Op) error {
	if err := CheckOps(ops); err != nil {
		return err
	}
	props, _ := sanitize(current, !clusterDefault)
	for _, op := range ops {
		switch op.Type {
		case OpSet:
			props[op.Name] = *op.Value
		case OpDelete:
			delete(props, op.Name)
		default:
			k, ok := Broker.Key(op.Name)
			if !ok {
				return kerr.InvalidConfig.With("Unknown config name: %s", op.Name)
			}
			if k.Type != List {
				return kerr.InvalidConfig.With("Config value %s is not allowed for config key: %s", strings.ToLower(op.Type.String()), op.Name)
			}
			props[op.Name] = changeList(k, props, op, nil)
		}
	}
	return n.ValidateBroker(clusterDefault, props)
}

// ValidateBroker checks the dynamic configs a broker, or all of them, would have: what may be
// changed while running, types, ranges, rules between settings. Errors are kerr.InvalidRequest, as
// Kafka's are. It is the whole check of the older AlterConfigs, which replaces everything.
func (n *Node) ValidateBroker(clusterDefault bool, proposed map[string]string) error {
	names := slices.Sorted(maps.Keys(proposed))
	refuse := func(text string, bad func(string) bool) error {
		var list []string
		for _, name := range names {
			if bad(name) {
				list = append(list, name)
			}
		}
		if list == nil {
			return nil
		}
		return kerr.InvalidRequest.With("%s: [%s]", text, strings.Join(list, ", "))
	}
	if err := refuse("Cannot update these configs dynamically", func(name string) bool {
		k, ok := brokerKey(name)
		return ok && k.Update == ReadOnly
	}); err != nil {
		return err
	}
	if err := refuse("These security configs can be dynamically updated only per-listener using the listener prefix", sslStoreKey); err != nil {
		return err
	}
	for _, name := range names {
		if why := typeFailure(name, proposed[name]); why != "" {
			return kerr.InvalidRequest.With("%s", why)
		}
	}
	if clusterDefault {
		if err := refuse("Cannot update these configs at default cluster level, broker id must be specified", perBrokerName); err != nil {
			return err
		}
	}
	l := layers{static: n.static, broker: n.broker, cluster: n.cluster}
	if clusterDefault {
		l.cluster = proposed
	} else {
		l.broker = proposed
	}
	next, failures := build(l)
	if len(failures) > 0 {
		return kerr.InvalidRequest.With("%s", failures[0].kafka())
	}
	if why := n.liveRules(next); why != "" {
		return kerr.InvalidRequest.With("%s", why)
	}
	return nil
}

// liveRules are about the step from one running configuration to the next.
func (n *Node) liveRules(next *Node) string {
	for _, name := range []string{"background.threads", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir", "num.replica.fetchers",
		"remote.log.manager.copier.thread.pool.size", "remote.log.manager.expiration.thread.pool.size", "remote.log.manager.follower.thread.pool.size", "remote.log.reader.threads"} {
		old, now := n.int(name), next.int(name)
		what := fmt.Sprintf("Dynamic thread count update validation failed for %s=%d", name, now)
		switch {
		case now == old:
		case now < old/2:
			return fmt.Sprintf("%s, value should be at least half the current value %d", what, old)
		case int64(now) > int64(old)*2:
			return fmt.Sprintf("%s, value should not be greater than double the current value %d", what, old)
		}
	}
	if why := next.localRetentionRules(); why != "" {
		return why
	}
	for _, dir := range next.CordonedLogDirs {
		if !slices.Contains(next.LogDirs, dir) {
			return invalid("cordoned.log.dirs", next.CordonedLogDirs, fmt.Sprintf("Invalid entry in cordoned.log.dirs: %s. All cordoned log dirs must be entries of log.dirs or log.dir.", dir))
		}
	}
	return n.listenerChange(next)
}

func (v *view) localRetentionRules() string {
	for _, r := range []struct {
		local, total, lag string
		limit             int64
	}{
		{"log.local.retention.ms", "log.retention.ms", "log.remote.copy.lag.ms", v.retentionMs()},
		{"log.local.retention.bytes", "log.retention.bytes", "log.remote.copy.lag.bytes", v.long("log.retention.bytes")},
	} {
		local, lag := v.long(r.local), v.long(r.lag)
		if r.limit > -1 && local != -2 {
			if local == -1 {
				return invalid(r.local, local, fmt.Sprintf("Value must not be -1 as %s value is set as %d.", r.total, r.limit))
			}
			if local > r.limit {
				return invalid(r.local, local, fmt.Sprintf("Value must not be more than %s property value: %d", r.total, r.limit))
			}
		}
		if local == -2 {
			local = r.limit
		}
		if lag > 0 && local >= 0 && lag > local {
			return invalid(r.lag, lag, fmt.Sprintf("Value must not exceed %s (effective value: %d)", r.local, local))
		}
	}
	return ""
}

// listenerChange: a listener that stays keeps its protocol, and its settings but those that can be
// reloaded.
func (n *Node) listenerChange(next *Node) string {
	open := listenerNames(next.Listeners)
	for _, l := range n.AdvertisedListeners {
		if !slices.Contains(open, l.Name) {
			return fmt.Sprintf("Advertised listeners '%s' must be a subset of listeners '%s'", strings.Join(listenerNames(n.AdvertisedListeners), ","), strings.Join(open, ","))
		}
	}
	for _, old := range n.Listeners {
		i := slices.Index(open, old.Name)
		if i < 0 {
			continue
		}
		if next.Listeners[i].Protocol != old.Protocol {
			return fmt.Sprintf("Security protocol cannot be updated for existing listener %s", old.Name)
		}
		prefix := "listener.name." + strings.ToLower(old.Name) + "."
		if !maps.Equal(fixed(n.props, prefix), fixed(next.props, prefix)) {
			return fmt.Sprintf("Configs cannot be updated dynamically for existing listener %s, restart broker or create a new listener for update", old.Name)
		}
	}
	return ""
}

// fixed are the settings of a listener that only a restart changes: all but stores, which are
// reloaded, limits, and logins, which hold for the next connection (S-06).
func fixed(props map[string]string, prefix string) map[string]string {
	out := map[string]string{}
	for name, value := range props {
		base, ok := strings.CutPrefix(name, prefix)
		if ok && !sslStoreKey(base) && !strings.HasSuffix(base, "sasl.jaas.config") && !slices.Contains([]string{"max.connections", "max.connection.creation.rate", "num.network.threads"}, base) {
			out[base] = value
		}
	}
	return out
}

// ValidateGroup checks the overrides of a group against types, ranges and this node's limits.
// Errors are kerr.InvalidConfig, kerr.InvalidRequest for an empty name (D-205).
func (n *Node) ValidateGroup(group string, proposed map[string]string) error {
	if group == "" {
		return kerr.InvalidRequest.With("Default group resources are not allowed.")
	}
	names := slices.Sorted(maps.Keys(proposed))
	for _, name := range names {
		if _, ok := Groups.Key(name); !ok {
			return kerr.InvalidConfig.With("Unknown group config name: %s", name)
		}
	}
	const tags = "streams.rack.aware.assignment.tags"
	if raw := splitList(javaTrim(proposed[tags])); len(distinct(raw)) != len(raw) {
		return kerr.InvalidConfig.With("%s must not contain duplicate tag keys.", tags)
	}
	parsed := map[string]any{}
	for _, name := range names {
		k, _ := Groups.Key(name)
		value, err := k.Parse(proposed[name])
		if err != nil {
			return kerr.InvalidConfig.Wrap(err)
		}
		parsed[name] = value
	}
	for _, name := range names {
		if why := n.groupLimit(name, parsed[name]); why != "" {
			return kerr.InvalidConfig.With("%s", why)
		}
	}
	for _, kind := range []string{"consumer", "share", "streams"} {
		session, beat := kind+".session.timeout.ms", kind+".heartbeat.interval.ms"
		_, hasSession := parsed[session]
		_, hasBeat := parsed[beat]
		effective := func(name string) int32 {
			if v, ok := parsed[name]; ok {
				return v.(int32)
			}
			return n.int("group." + name)
		}
		if (hasSession || hasBeat) && effective(session) <= effective(beat) {
			return kerr.InvalidConfig.With("%s must be greater than %s", session, beat)
		}
	}
	if topic, _ := parsed["errors.deadletterqueue.topic.name"].(string); strings.HasPrefix(topic, "__") {
		return kerr.InvalidConfig.With("errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'")
	}
	return nil
}

// groupLimit checks one value against the broker's limits for it.
func (n *Node) groupLimit(name string, value any) string {
	kind, what, _ := strings.Cut(name, ".")
	lo, hi := "group."+kind+".min."+what, "group."+kind+".max."+what
	switch name {
	case "streams.num.standby.replicas":
		hi = "group.streams.max.standby.replicas"
	case "streams.num.warmup.replicas":
		hi = "group.streams.max.warmup.replicas"
	case "streams.assignor.name":
		if list := n.list("group.streams.assignors"); !slices.Contains(list, value.(string)) {
			return fmt.Sprintf("%s '%s' is not a registered task assignor. Registered assignors are: [%s].", name, value, strings.Join(list, ", "))
		}
	}
	v, ok := value.(int32)
	if !ok {
		return ""
	}
	_, hasLo := Broker.Key(lo)
	_, hasHi := Broker.Key(hi)
	switch {
	case hasLo && hasHi && (v < n.int(lo) || v > n.int(hi)):
		return name + " must be in the range " + strconv.Itoa(int(n.int(lo))) + " to " + strconv.Itoa(int(n.int(hi))) + " inclusive."
	case hasHi && !hasLo && v > n.int(hi):
		return fmt.Sprintf("%s must be less than or equal to %d", name, n.int(hi))
	case hasLo && !hasHi && v < n.int(lo):
		return fmt.Sprintf("%s must be greater than or equal to %d", name, n.int(lo))
	}
	return ""
}

// clientMatch checks name=regular expression of a client metrics subscription.
func clientMatch(pattern string) bool {
	name, expression, ok := strings.Cut(pattern, "=")
	if !ok || expression == "" || strings.Contains(expression, "=") {
		return false
	}
	if !slices.Contains([]string{"client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address", "client_source_port"}, strings.TrimSpace(name)) {
		return false
	}
	_, err := regexp.Compile(strings.TrimSpace(expression))
	return err == nil
}
