package image

import (
	"cmp"
	"iter"
	"strconv"
	"strings"

	"samsa/internal/base/model"
	"samsa/internal/base/pmap"
)

// The types of config resources (K-82).
const (
	ResourceUnknown       int8 = 0
	ResourceTopic         int8 = 2
	ResourceBroker        int8 = 4
	ResourceBrokerLogger  int8 = 8
	ResourceClientMetrics int8 = 16
	ResourceGroup         int8 = 32
)

// ConfigResource is what a dynamic config belongs to. A broker resource with an empty name is
// the cluster default.
type ConfigResource struct {
	Type int8
	Name string
}

// BrokerResource is the resource of one broker's own configs.
func BrokerResource(id model.NodeID) ConfigResource {
	return ConfigResource{ResourceBroker, strconv.Itoa(int(id))}
}

// ClusterResource is the resource of the cluster-wide broker configs.
var ClusterResource = ConfigResource{ResourceBroker, ""}

func compareResources(a, b ConfigResource) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
}

// Configs are the dynamic configs of the cluster. A resource without configs has no entry.
type Configs struct {
	m pmap.Map[ConfigResource, map[string]string]
}

func newConfigs() Configs {
	return Configs{pmap.New[ConfigResource, map[string]string](compareResources)}
}

// Of returns the configs of one resource, nil if it has none. Read only.
func (c Configs) Of(r ConfigResource) map[string]string {
	m, _ := c.m.Get(r)
	return m
}

// Get returns one config of one resource.
func (c Configs) Get(r ConfigResource, key string) (string, bool) {
	v, ok := c.Of(r)[key]
	return v, ok
}

// All walks the resources that have configs, by type and name. The maps are read only.
func (c Configs) All() iter.Seq2[ConfigResource, map[string]string] { return c.m.All() }

// Len is the number of resources that have configs.
func (c Configs) Len() int { return c.m.Len() }
