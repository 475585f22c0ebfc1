package config

// Check is a rule beyond the type.
type Check interface {
	// Explain completes the sentence "Invalid value V for configuration K: ..." for a value
	// that breaks the rule and is "" for one that keeps it. The value has the Go type of its key:
	// bool, int16, int32, int64, float64, string or []string.
	Explain(name string, value any) string
	// String says what is allowed, for people and for kafka-configs.sh.
	String() string
}
