package config

import (
	"fmt"
	"strings"
)

// Origin tells where a value was written.
type Origin struct {
	File string // with Line; of the properties file
	Line int
	Env  string // the environment variable
	Flag bool   // --set
}

func (o Origin) String() string {
	switch {
	case o.Flag:
		return "--set"
	case o.Env != "":
		return "environment variable " + o.Env
	case o.File != "":
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return "default"
}

// Mistake is one thing wrong with the configuration.
type Mistake struct {
	Key    string
	Value  string // never that of a sensitive key
	Text   string // what is wrong
	Hint   string // what is allowed, may be empty
	Origin Origin
}

// Mistakes is everything wrong with a configuration, in the order of the keys.
type Mistakes []Mistake

func (m Mistake) String() string {
	var b strings.Builder
	if m.Key != "" {
		fmt.Fprintf(&b, "%s", m.Key)
		if m.Value != "" {
			fmt.Fprintf(&b, " = %q", m.Value)
		}
		fmt.Fprintf(&b, " (%s): ", m.Origin)
	}
	b.WriteString(m.Text)
	if m.Hint != "" {
		fmt.Fprintf(&b, " (allowed: %s)", m.Hint)
	}
	return b.String()
}

func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].String()
	}
	if len(lines) == 1 {
		return "configuration: " + lines[0]
	}
	return fmt.Sprintf("configuration: %d mistakes:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// Input is where a node's configuration comes from; later entries win over earlier ones.
type Input struct {
	File       string   // name of the properties file, for messages
	Properties []byte   // its content
	Environ    []string // KEY=value as of os.Environ; KAFKA_LOG_DIRS sets log.dirs
	Set        []string // key=value of --set
}

// Load reads, checks and resolves a node's configuration. The error is a Mistakes. Warnings are
// for the log: unknown and deprecated keys, settings that have no effect in this role.
func Load(in Input) (n *Node, warnings []string, err error) { panic("pending") }

// FromMap is Load from a plain map, for tests and samsa dev.
func FromMap(values map[string]string) (*Node, error) { panic("pending") }
