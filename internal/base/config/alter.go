package config

// Resource is a kind of thing that has configs; the numbers are those of the protocol (K-82).
type Resource int8

const (
	ResourceTopic         Resource = 2
	ResourceBroker        Resource = 4
	ResourceBrokerLogger  Resource = 8
	ResourceClientMetrics Resource = 16
	ResourceGroup         Resource = 32
)

// OpType is what IncrementalAlterConfigs does with one key.
type OpType int8

const (
	OpSet      OpType = 0
	OpDelete   OpType = 1
	OpAppend   OpType = 2
	OpSubtract OpType = 3
)

// Op is one change; Value is nil for OpDelete and where the request had null.
type Op struct {
	Type  OpType
	Name  string
	Value *string
}

// Alter applies ops to a resource's stored configs and returns what would be stored; current is
// not changed. Errors are kerr: INVALID_CONFIG, INVALID_REQUEST. Values are not checked here.
//
//	effective  the value of a list key where nothing is stored: appending starts from it
func Alter(r Resource, current map[string]string, ops []Op, effective func(name string) (string, bool)) (map[string]string, error) {
	panic("pending")
}

// ValidateTopic checks the overrides a topic would have (create, alter). current is what it has
// now, nil at creation. Errors are kerr.InvalidConfig with Kafka's text.
func (n *Node) ValidateTopic(current, proposed map[string]string) error { panic("pending") }

// ValidateBroker checks dynamic broker configs as the addressed broker does before it forwards
// them: read-only names, types, ranges, cross-field rules. clusterDefault is the resource "".
// changed are the names this request touches; the rest of proposed is as it was stored.
func (n *Node) ValidateBroker(clusterDefault bool, current, proposed map[string]string) error {
	panic("pending")
}

// ValidateBrokerRecord is the controller's smaller check of a broker resource.
func ValidateBrokerRecord(name string, proposed map[string]string) error { panic("pending") }

// ValidateGroup checks the overrides of a group against types, ranges and this node's bounds.
func (n *Node) ValidateGroup(group string, proposed map[string]string) error { panic("pending") }

// ValidateClientMetrics checks a client metrics subscription.
func ValidateClientMetrics(name string, proposed map[string]string) error { panic("pending") }
