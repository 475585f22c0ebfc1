package api

import (
	"strconv"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/controller"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// DescribeConfigs, versions 1-4 (D-197, D-219)
//
//	v1  sources and synonyms
//	v3  types, and documentation where asked for

func serveDescribeConfigs(c *call, req *protocol.DescribeConfigsRequest) {
	resp := protocol.Make[protocol.DescribeConfigsResponse]()
	for i := range req.Resources {
		r := &req.Resources[i]
		result := protocol.Make[protocol.DescribeConfigsResponseDescribeConfigsResult]()
		result.ResourceType, result.ResourceName = r.ResourceType, r.ResourceName
		entries, err := c.describeConfigs(r)
		if err != nil {
			result.ErrorCode = kerr.Code(err)
			if text := err.Error(); err != kerr.UnknownTopicOrPartition {
				result.ErrorMessage = &text
			}
		}
		for j := range entries {
			result.Configs = append(result.Configs, c.configEntry(req, &entries[j]))
		}
		resp.Results = append(resp.Results, result)
	}
	c.Reply(&resp)
}

// describeConfigs lists the settings of one resource; null for keys is all of them, and so is an empty list.
func (c *call) describeConfigs(r *protocol.DescribeConfigsRequestDescribeConfigsResource) ([]config.Entry, error) {
	cfg := c.server.Config()
	if len(r.ConfigurationKeys) == 0 {
		r.ConfigurationKeys = nil
	}
	stored := c.img.AllConfigs().Of(image.ConfigResource{Type: r.ResourceType, Name: r.ResourceName})
	var entries []config.Entry
	switch r.ResourceType {
	case image.ResourceTopic:
		if err := controller.CheckTopicName(r.ResourceName); err != nil {
			return nil, err
		}
		if _, ok := c.img.Topics().ByName(r.ResourceName); !ok {
			return nil, kerr.UnknownTopicOrPartition
		}
		entries = cfg.DescribeTopic(stored, r.ConfigurationKeys)
	case image.ResourceBroker:
		if r.ResourceName == "" {
			return cfg.DescribeClusterDefault(r.ConfigurationKeys), nil
		}
		if err := c.server.checkOwnID(r.ResourceName, "Broker", "Unexpected broker id, expected %d or empty string, but received %s"); err != nil {
			return nil, err
		}
		entries = cfg.DescribeBroker(r.ConfigurationKeys)
	case image.ResourceBrokerLogger:
		if r.ResourceName == "" {
			return nil, kerr.InvalidRequest.With("Broker id must not be empty")
		}
		if err := c.server.checkOwnID(r.ResourceName, "Broker", "Unexpected broker id, expected %d but received %s"); err != nil {
			return nil, err
		}
		return c.server.describeLoggers(r.ConfigurationKeys), nil
	case image.ResourceClientMetrics:
		if r.ResourceName == "" {
			return nil, kerr.InvalidRequest.With("Client metrics subscription name must not be empty")
		}
		entries = config.DescribeClientMetrics(stored, r.ConfigurationKeys)
	case image.ResourceGroup:
		if r.ResourceName == "" {
			return nil, kerr.InvalidRequest.With("Group name must not be empty")
		}
		entries = cfg.DescribeGroup(stored, r.ConfigurationKeys)
	default:
		return nil, kerr.InvalidRequest.With("Unexpected resource type %s for resource %s", resourceTypeName(r.ResourceType), r.ResourceName)
	}
	return entries, nil
}

// checkOwnID: a broker describes and changes only itself. Kafka says it in a different way in each place.
func (s *Server) checkOwnID(name, noun, another string) error {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return kerr.InvalidRequest.With("%s id must be an integer, but it is: %s", noun, name)
	}
	if model.NodeID(id) != s.NodeID {
		return kerr.InvalidRequest.With(another, s.NodeID, name)
	}
	return nil
}

func (c *call) configEntry(req *protocol.DescribeConfigsRequest, e *config.Entry) protocol.DescribeConfigsResponseDescribeConfigsResourceResult {
	r := protocol.Make[protocol.DescribeConfigsResponseDescribeConfigsResourceResult]()
	r.Name, r.Value, r.ReadOnly, r.IsSensitive = e.Name, e.Value, e.ReadOnly, e.Sensitive
	r.ConfigSource = int8(e.Source)
	r.Documentation = nil // the schema's default is ""
	if c.Version >= 3 {
		r.ConfigType = int8(e.Type)
	}
	if req.IncludeDocumentation && e.Doc != "" {
		r.Documentation = &e.Doc
	}
	if req.IncludeSynonyms {
		for _, s := range e.Synonyms {
			r.Synonyms = append(r.Synonyms, protocol.DescribeConfigsResponseDescribeConfigsSynonym{Name: s.Name, Value: s.Value, Source: int8(s.Source)})
		}
	}
	return r
}

func resourceTypeName(t int8) string {
	switch t {
	case image.ResourceTopic:
		return "TOPIC"
	case image.ResourceBroker:
		return "BROKER"
	case image.ResourceBrokerLogger:
		return "BROKER_LOGGER"
	case image.ResourceClientMetrics:
		return "CLIENT_METRICS"
	case image.ResourceGroup:
		return "GROUP"
	}
	return "UNKNOWN"
}
