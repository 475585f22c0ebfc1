package config

// Entry is one line of a DescribeConfigs answer.
type Entry struct {
	Name      string
	Value     *string // nil when null or sensitive
	Type      Type
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Doc       string
	Synonyms  []Synonym // most specific first
}

// Synonym is one layer that has a value for an entry.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// DescribeTopic lists a topic's settings sorted by name; names nil is all, else only those asked
// for that exist (D-219).
func (n *Node) DescribeTopic(overrides map[string]string, names []string) []Entry { panic("pending") }

// DescribeBroker lists this node's settings, or with clusterDefault (broker id "") only what is
// set as the default of all brokers.
func (n *Node) DescribeBroker(names []string) []Entry         { panic("pending") }
func (n *Node) DescribeClusterDefault(names []string) []Entry { panic("pending") }

// DescribeGroup lists a group's settings; a group needs not exist.
func (n *Node) DescribeGroup(overrides map[string]string, names []string) []Entry { panic("pending") }

// DescribeClientMetrics lists a client metrics subscription.
func DescribeClientMetrics(overrides map[string]string, names []string) []Entry { panic("pending") }
