package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Check is a rule beyond the type.
type Check interface {
	// Explain is "" for a value that keeps the rule and else the whole message Kafka gives. value
	// has the Go type of its key (see Key.Parse); nil is null.
	Explain(name string, value any) string
	// String says what is allowed, in Kafka's notation where it has one.
	String() string
}

// invalid is the text of Kafka's ConfigException.
func invalid(name string, value any, why string) string {
	return fmt.Sprintf("Invalid value %s for configuration %s: %s", javaText(value), name, why)
}

// bounds is a range of numbers; Java compares them as doubles, and so do we.
type bounds struct {
	min, max float64
	hasMax   bool
}

func atLeast(min float64) bounds      { return bounds{min: min} }
func between(min, max float64) bounds { return bounds{min, max, true} }

func (b bounds) Explain(name string, value any) string {
	if value == nil {
		return invalid(name, nil, "Value must be non-null")
	}
	n, _ := number(value)
	if n < b.min {
		return invalid(name, value, "Value must be at least "+plain(b.min))
	}
	if b.hasMax && n > b.max {
		return invalid(name, value, "Value must be no more than "+plain(b.max))
	}
	return ""
}

func (b bounds) String() string {
	if b.hasMax {
		return "[" + plain(b.min) + ",...," + plain(b.max) + "]"
	}
	return "[" + plain(b.min) + ",...]"
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// number is the value of a numeric key as a double.
func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int16:
		return float64(v), true
	case int32:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// words is a fixed set of strings.
type words struct {
	list []string
	fold bool // any case
}

func oneOf(list ...string) words     { return words{list: list} }
func oneOfFold(list ...string) words { return words{list, true} }

func (w words) Explain(name string, value any) string {
	s, ok := value.(string)
	for _, allowed := range w.list {
		if ok && (s == allowed || w.fold && strings.EqualFold(s, allowed)) {
			return ""
		}
	}
	if w.fold {
		return invalid(name, value, "String must be one of (case insensitive): "+strings.Join(w.list, ", "))
	}
	return invalid(name, value, "String must be one of: "+strings.Join(w.list, ", "))
}

func (w words) String() string {
	s := "[" + strings.Join(w.list, ", ") + "]"
	if w.fold {
		s = "(case insensitive) " + s
	}
	return s
}

// listRule is a list without empty entries, of any or of given words. Repeated entries are
// dropped when the value is read, so they need no check.
type listRule struct {
	flags int
	words words
}

const (
	emptyOK = 1 << iota
	nullOK
)

func listOf(flags int, allowed ...string) listRule { return listRule{flags, oneOf(allowed...)} }

func (l listRule) Explain(name string, value any) string {
	if value == nil {
		if l.flags&nullOK != 0 {
			return ""
		}
		return "Configuration '" + name + "' values must not be null."
	}
	list := value.([]string)
	if len(list) == 0 && l.flags&emptyOK == 0 {
		valid := "any non-empty value"
		if len(l.words.list) > 0 {
			valid = l.words.String()
		}
		return "Configuration '" + name + "' must not be empty. Valid values include: " + valid
	}
	for _, s := range list {
		if s == "" {
			return "Configuration '" + name + "' values must not be empty."
		}
		if len(l.words.list) > 0 {
			if why := l.words.Explain(name, s); why != "" {
				return why
			}
		}
	}
	return ""
}

func (l listRule) String() string {
	if len(l.words.list) == 0 {
		return ""
	}
	return l.words.String()
}

// gzipLevel is 1 to 9 or -1.
type gzipLevel struct{}

func (gzipLevel) Explain(name string, value any) string {
	if n, ok := value.(int32); ok && (n == -1 || 1 <= n && n <= 9) {
		return ""
	}
	return invalid(name, value, "Value must be between 1 and 9 or equal to -1")
}
func (gzipLevel) String() string { return "[1,...,9] or -1" }

// nonEmpty is any string but the empty one; null is good.
type nonEmpty struct{}

func (nonEmpty) Explain(name string, value any) string {
	if s, ok := value.(string); ok && s == "" {
		return invalid(name, value, "String must be non-empty")
	}
	return ""
}
func (nonEmpty) String() string { return "non-empty string" }

// notNull is any string.
type notNull struct{}

func (notNull) Explain(name string, value any) string {
	if value == nil {
		return invalid(name, nil, "entry must be non null")
	}
	return ""
}
func (notNull) String() string { return "non-null string" }

// quorumVoters is a list of id@host:port.
type quorumVoters struct{}

func (quorumVoters) Explain(name string, value any) string {
	list, _ := value.([]string)
	_, err := parseVoters(list)
	return text(err)
}
func (quorumVoters) String() string { return "non-empty list" }

// bootstrapServers is a list of host:port.
type bootstrapServers struct{}

func (bootstrapServers) Explain(name string, value any) string {
	list, _ := value.([]string)
	_, err := parseBootstrap(list)
	return text(err)
}
func (bootstrapServers) String() string { return "non-empty list" }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// throttledReplicas is * or a list of partition:broker.
type throttledReplicas struct{}

var throttledPair = regexp.MustCompile(`^([0-9]+:[0-9]+)?$`)

func (throttledReplicas) Explain(name string, value any) string {
	list, _ := value.([]string)
	if strings.Join(list, "") == "*" {
		return ""
	}
	for _, s := range list {
		if !throttledPair.MatchString(javaTrim(s)) {
			return invalid(name, value, name+" must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...")
		}
	}
	return ""
}
func (throttledReplicas) String() string {
	return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
}

// shareOffsetReset is latest, earliest or by_duration: and an ISO 8601 duration that is not negative.
type shareOffsetReset struct{}

var isoDuration = regexp.MustCompile(`(?i)^([-+]?)P(?:([-+]?[0-9]+)D)?(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?$`)

func (shareOffsetReset) Explain(name string, value any) string {
	s, _ := value.(string)
	if s == "latest" || s == "earliest" {
		return ""
	}
	if duration, ok := strings.CutPrefix(s, "by_duration:"); ok && notNegativeDuration(duration) {
		return ""
	}
	return invalid(name, value, "Invalid value `"+s+"` for configuration "+name+". The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.")
}
func (shareOffsetReset) String() string { return "[latest, earliest, by_duration:PnDTnHnMn.nS]" }

func notNegativeDuration(s string) bool {
	m := isoDuration.FindStringSubmatch(s)
	if m == nil || strings.EqualFold(m[3], "T") || m[2]+m[4]+m[5]+m[6] == "" {
		return false
	}
	total := 0.0
	for i, unit := range map[int]float64{2: 86400, 4: 3600, 5: 60, 6: 1} {
		if m[i] == "" {
			continue
		}
		n, err := strconv.ParseInt(m[i], 10, 64)
		if err != nil {
			return false
		}
		total += float64(n) * unit
	}
	if fraction, err := strconv.ParseFloat("0."+m[7], 64); err == nil {
		if strings.HasPrefix(m[6], "-") {
			fraction = -fraction
		}
		total += fraction
	}
	if m[1] == "-" {
		total = -total
	}
	return total >= 0 && total < 1<<63
}
