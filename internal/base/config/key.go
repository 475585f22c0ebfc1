package config

import "sort"

// Type is a type of value; the numbers are those of DescribeConfigs v3+.
type Type int8

const (
	Unknown  Type = 0
	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

var typeNames = [...]string{"UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}

// String is the name Kafka prints, such as LONG.
func (t Type) String() string {
	if t < 0 || int(t) >= len(typeNames) {
		return "UNKNOWN"
	}
	return typeNames[t]
}

// Importance is how much a reader should care.
type Importance int8

const (
	High Importance = iota
	Medium
	Low
)

func (i Importance) String() string { return [...]string{"HIGH", "MEDIUM", "LOW"}[i] }

// Update says who may change a broker setting while the node runs.
type Update int8

const (
	// ReadOnly settings come from the file and need a restart.
	ReadOnly Update = iota
	// PerBroker settings can be changed for one broker, not as the default of all.
	PerBroker
	// ClusterWide settings can be changed for one broker and as the default of all.
	ClusterWide
)

func (u Update) String() string { return [...]string{"read-only", "per-broker", "cluster-wide"}[u] }

// Source is the layer a value comes from; the numbers are those of DescribeConfigs.
type Source int8

const (
	SourceUnknown              Source = 0
	SourceTopic                Source = 1 // TOPIC_CONFIG
	SourceDynamicBroker        Source = 2 // DYNAMIC_BROKER_CONFIG
	SourceDynamicDefaultBroker Source = 3 // DYNAMIC_DEFAULT_BROKER_CONFIG
	SourceStaticBroker         Source = 4 // STATIC_BROKER_CONFIG
	SourceDefault              Source = 5 // DEFAULT_CONFIG
	SourceDynamicBrokerLogger  Source = 6 // DYNAMIC_BROKER_LOGGER_CONFIG
	SourceClientMetrics        Source = 7 // CLIENT_METRICS_CONFIG
	SourceGroup                Source = 8 // GROUP_CONFIG
)

// Key is everything known about one property.
type Key struct {
	Name       string
	Type       Type
	Default    string // in Kafka's text form; meaningless when Null or Required
	Null       bool   // the default is null: not set
	Required   bool   // there is no default
	Importance Importance
	Internal   bool // hidden: described only where it is set
	Update     Update
	Check      Check    // beyond the type; nil when every value of the type is good
	Synonyms   []string // of a topic or group key: the broker keys that give its default, first set one wins
	Samsa      bool     // samsa's own; Kafka warns about it and goes on
	Doc        string   // one or two sentences in our own words
}

// Sensitive values never leave the node.
func (k *Key) Sensitive() bool { return k.Type == Password }

// Def is the set of properties of one kind of resource.
type Def struct {
	keys  map[string]*Key
	names []string
}

// Key looks a property up by its exact name.
func (d *Def) Key(name string) (*Key, bool) {
	k, ok := d.keys[name]
	return k, ok
}

// Names are all names, sorted. Not to be changed.
func (d *Def) Names() []string { return d.names }

func newDef(tables ...[]Key) *Def {
	d := &Def{keys: map[string]*Key{}}
	for _, table := range tables {
		for i := range table {
			k := &table[i]
			if _, twice := d.keys[k.Name]; twice {
				panic("config: " + k.Name + " is defined twice")
			}
			d.keys[k.Name] = k
			d.names = append(d.names, k.Name)
		}
	}
	sort.Strings(d.names)
	return d
}
