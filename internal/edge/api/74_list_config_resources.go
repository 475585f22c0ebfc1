package api

import (
	"slices"
	"strconv"

	"samsa/internal/base/kerr"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// ListConfigResources, versions 0-1 (KIP-1142)
//
//	v0  client metrics subscriptions alone
//	v1  every type: topics, brokers, loggers, subscriptions, groups

func serveListConfigResources(c *call, req *protocol.ListConfigResourcesRequest) {
	resp := protocol.Make[protocol.ListConfigResourcesResponse]()
	types := req.ResourceTypes
	switch {
	case c.Version == 0:
		types = []int8{image.ResourceClientMetrics}
	case len(types) == 0:
		types = []int8{image.ResourceTopic, image.ResourceBroker, image.ResourceBrokerLogger, image.ResourceClientMetrics, image.ResourceGroup}
	}
	add := func(t int8, name string) {
		resp.ConfigResources = append(resp.ConfigResources, protocol.ListConfigResourcesResponseConfigResource{ResourceType: t, ResourceName: name})
	}
	var done []int8
	for _, t := range types {
		if slices.Contains(done, t) {
			continue
		}
		done = append(done, t)
		switch t {
		case image.ResourceTopic:
			for topic := range c.img.Topics().All() {
				add(t, topic.Name)
			}
		case image.ResourceBroker, image.ResourceBrokerLogger:
			for b := range c.img.Brokers().All() {
				if !b.Fenced {
					add(t, strconv.Itoa(int(b.ID)))
				}
			}
		case image.ResourceClientMetrics, image.ResourceGroup:
			for r := range c.img.AllConfigs().All() {
				if r.Type == t {
					add(t, r.Name)
				}
			}
		default:
			resp = protocol.Make[protocol.ListConfigResourcesResponse]()
			resp.ErrorCode = kerr.UnsupportedVersion.Code
			c.Reply(&resp)
			return
		}
	}
	c.Reply(&resp)
}
