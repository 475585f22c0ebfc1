package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"samsa/internal/base/kerr"
)

// Resource is a kind of thing that has configs; the numbers are those of the protocol (K-82).
type Resource int8

const (
	ResourceTopic         Resource = 2
	ResourceBroker        Resource = 4
	ResourceBrokerLogger  Resource = 8
	ResourceClientMetrics Resource = 16
	ResourceGroup         Resource = 32
)

// def is the table of a resource; nil for one that has none.
func (r Resource) def() *Def {
	switch r {
	case ResourceTopic:
		return Topics
	case ResourceBroker:
		return Broker
	case ResourceClientMetrics:
		return ClientMetrics
	case ResourceGroup:
		return Groups
	}
	return nil
}

// OpType is what IncrementalAlterConfigs does with one key.
type OpType int8

const (
	OpSet      OpType = 0
	OpDelete   OpType = 1
	OpAppend   OpType = 2
	OpSubtract OpType = 3
)

func (o OpType) String() string {
	if o < OpSet || o > OpSubtract {
		return "UNKNOWN"
	}
	return [...]string{"SET", "DELETE", "APPEND", "SUBTRACT"}[o]
}

// Op is one change; Value is nil for OpDelete and where the request had null.
type Op struct {
	Type  OpType
	Name  string
	Value *string
}

// maxValueLength is the longest value the controller stores.
const maxValueLength = 32767

// CheckOps refuses what a request must not hold before anything else is looked at: a key twice, a
// null that is no deletion, an operation nobody knows (all INVALID_REQUEST).
func CheckOps(ops []Op) error {
	seen := map[string]bool{}
	var nulls []string
	for _, op := range ops {
		if seen[op.Name] {
			return kerr.InvalidRequest.With("Error due to duplicate config keys")
		}
		seen[op.Name] = true
		if op.Type != OpDelete && op.Value == nil {
			nulls = append(nulls, op.Name)
		}
	}
	if nulls != nil {
		return kerr.InvalidRequest.With("Null value not supported for : %s", strings.Join(nulls, ", "))
	}
	for _, op := range ops {
		if op.Type < OpSet || op.Type > OpSubtract {
			return kerr.InvalidRequest.With("Unknown operations type %d", int8(op.Type))
		}
	}
	return nil
}

// Alter applies ops to a resource's stored configs as the controller does and returns what would
// be stored; current is not changed, values are not checked (ValidateTopic and its brothers do).
// Errors: kerr.InvalidConfig, and those of CheckOps (K-165, D-204).
//
//	start  what appending to or subtracting from a list that is not stored starts from; nil is
//	       Kafka's way, the built-in default, whatever the file says
func Alter(r Resource, current map[string]string, ops []Op, start func(name string) (string, bool)) (map[string]string, error) {
	if err := CheckOps(ops); err != nil {
		return nil, err
	}
	out := maps.Clone(current)
	if out == nil {
		out = map[string]string{}
	}
	for _, op := range ops {
		if op.Type == OpDelete {
			delete(out, op.Name)
			continue
		}
		value := *op.Value
		if op.Type == OpAppend || op.Type == OpSubtract {
			k, ok := lookup(r, op.Name)
			if !ok || k.Type != List {
				return nil, kerr.InvalidConfig.With("Can't %s to key %s because its type is not LIST.", op.Type, op.Name)
			}
			value = changeList(k, out, op, start)
		}
		if len(value) > maxValueLength {
			return nil, kerr.InvalidConfig.With("The configuration value cannot be added because it exceeds the maximum value size of %d bytes.", maxValueLength)
		}
		out[op.Name] = value
	}
	return out, nil
}

func lookup(r Resource, name string) (*Key, bool) {
	def := r.def()
	if def == nil {
		return nil, false
	}
	k, ok := def.Key(name)
	return k, ok
}

// changeList appends what is not there yet, or takes away what is.
func changeList(k *Key, stored map[string]string, op Op, start func(string) (string, bool)) string {
	old, ok := stored[op.Name]
	if !ok && start != nil {
		old, ok = start(op.Name)
	}
	if !ok {
		old = k.Default
	}
	parts := slices.DeleteFunc(strings.Split(old, ","), func(s string) bool { return s == "" })
	for _, s := range strings.Split(*op.Value, ",") {
		i := slices.Index(parts, s)
		switch {
		case op.Type == OpAppend && i < 0:
			parts = append(parts, s)
		case op.Type == OpSubtract && i >= 0:
			parts = slices.Delete(parts, i, i+1)
		}
	}
	return strings.Join(parts, ",")
}

// ValidateTopic checks the overrides a topic would have (create, alter). current is what it has
// now, nil at creation. Errors are kerr.InvalidConfig with Kafka's text (D-204).
func (n *Node) ValidateTopic(current, proposed map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(proposed)) {
		if _, ok := Topics.Key(name); !ok {
			return kerr.InvalidConfig.With("Unknown topic config name: %s", name)
		}
	}
	v, why := n.topicValues(proposed)
	if len(why) > 0 {
		return kerr.InvalidConfig.With("%s", why[0].text)
	}
	if lo, hi := v["min.compaction.lag.ms"].(int64), v["max.compaction.lag.ms"].(int64); lo > hi {
		return kerr.InvalidConfig.With("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", lo, hi)
	}
	if why := n.remoteRules(current, v); why != "" {
		return kerr.InvalidConfig.With("%s", why)
	}
	return nil
}

// remoteRules are the rules of tiered storage.
func (n *Node) remoteRules(current map[string]string, v map[string]any) string {
	num := func(name string) int64 { return v[name].(int64) }
	if !v["remote.storage.enable"].(bool) {
		was := strings.EqualFold(current["remote.storage.enable"], "true")
		if was && !v["remote.log.delete.on.disable"].(bool) {
			return "It is invalid to disable remote storage without deleting remote data. " +
				"If you want to keep the remote data and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. " +
				"If you want to disable remote storage and delete all remote data, please set `remote.storage.enable=false,remote.log.delete.on.disable=true`."
		}
		return ""
	}
	if !n.boolean("remote.log.storage.system.enable") {
		return "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
	}
	if policy := v["cleanup.policy"].([]string); len(policy) > 0 && !slices.Equal(policy, []string{"delete"}) {
		return "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
	}
	for _, what := range []string{"bytes", "ms"} {
		local, total := "local.retention."+what, "retention."+what
		limited := what == "bytes" && num(total) > -1 || what == "ms" && num(total) != -1
		if !limited || num(local) == -2 {
			continue
		}
		if num(local) == -1 {
			return invalid(local, num(local), fmt.Sprintf("Value must not be -1 as %s value is set as %d.", total, num(total)))
		}
		if num(local) > num(total) {
			return invalid(local, num(local), fmt.Sprintf("Value must not be more than %s property value: %d", total, num(total)))
		}
	}
	for _, what := range []string{"bytes", "ms"} {
		effective := num("local.retention." + what)
		if effective == -2 {
			effective = num("retention." + what)
		}
		if lag := num("remote.copy.lag." + what); lag > 0 && effective >= 0 && lag > effective {
			return invalid("remote.copy.lag."+what, lag, fmt.Sprintf("Value must not exceed local.retention.%s (effective value: %d)", what, effective))
		}
	}
	if v["remote.log.copy.disable"].(bool) {
		for _, what := range []string{"bytes", "ms"} {
			if l := num("local.retention." + what); l != -2 && l != num("retention."+what) {
				return fmt.Sprintf("When `remote.log.copy.disable` is set to true, the `local.retention.%s` and `retention.%s` must be set to the identical value because there will be no more logs copied to the remote storage.", what, what)
			}
		}
	}
	return ""
}

// ValidateClientMetrics checks a client metrics subscription.
func ValidateClientMetrics(name string, proposed map[string]string) error {
	if name == "" {
		return kerr.InvalidRequest.With("Subscription name can't be empty")
	}
	for _, key := range slices.Sorted(maps.Keys(proposed)) {
		k, ok := ClientMetrics.Key(key)
		if !ok {
			return kerr.InvalidRequest.With("Unknown client metrics configuration: %s", key)
		}
		value, err := k.Parse(proposed[key])
		if err != nil {
			return kerr.InvalidConfig.Wrap(err)
		}
		switch key {
		case "interval.ms":
			if ms := value.(int32); ms < 100 || ms > 3600000 {
				return kerr.InvalidRequest.With("Invalid value %d for interval.ms, interval must be between 100 and 3600000 (1 hour)", ms)
			}
		case "match":
			for _, pattern := range value.([]string) {
				if !clientMatch(pattern) {
					return kerr.InvalidConfig.With("Illegal client matching pattern: %s", pattern)
				}
			}
		}
	}
	return nil
}
