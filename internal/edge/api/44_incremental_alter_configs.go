package api

import (
	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// IncrementalAlterConfigs, versions 0-1, and AlterConfigs (33), versions 0-2: the broker checks what
// it alone knows (its own settings, its loggers) and sends the rest to the controller (D-219, K-187).

type (
	incrementalResource = protocol.IncrementalAlterConfigsRequestAlterConfigsResource
	alterResource       = protocol.AlterConfigsRequestAlterConfigsResource
)

// errRepeated refuses all entries of a resource that is named more than once.
var errRepeated = kerr.InvalidRequest.With("Each resource must appear at most once.")

func serveIncrementalAlterConfigs(c *call, req *protocol.IncrementalAlterConfigsRequest) {
	resp := protocol.Make[protocol.IncrementalAlterConfigsResponse]()
	var rest []incrementalResource
	times := map[image.ConfigResource]int{}
	for i := range req.Resources {
		times[image.ConfigResource{Type: req.Resources[i].ResourceType, Name: req.Resources[i].ResourceName}]++
	}
	for i := range req.Resources {
		r := &req.Resources[i]
		here, err := true, errRepeated
		if times[image.ConfigResource{Type: r.ResourceType, Name: r.ResourceName}] == 1 {
			here, err = c.alterHere(r.ResourceType, r.ResourceName, incrementalOps(r), req.ValidateOnly)
		}
		if !here {
			rest = append(rest, *r)
			continue
		}
		a := protocol.IncrementalAlterConfigsResponseAlterConfigsResourceResponse{ResourceType: r.ResourceType, ResourceName: r.ResourceName}
		a.ErrorCode, a.ErrorMessage = codeAndText(err)
		resp.Responses = append(resp.Responses, a)
	}
	if len(rest) == 0 {
		c.Reply(&resp)
		return
	}
	req.Resources = rest
	c.forwardRest(req, func(answer protocol.Message) protocol.Message {
		a := answer.(*protocol.IncrementalAlterConfigsResponse)
		a.Responses = append(a.Responses, resp.Responses...)
		return a
	})
}

func serveAlterConfigs(c *call, req *protocol.AlterConfigsRequest) {
	resp := protocol.Make[protocol.AlterConfigsResponse]()
	var rest []alterResource
	times := map[image.ConfigResource]int{}
	for i := range req.Resources {
		times[image.ConfigResource{Type: req.Resources[i].ResourceType, Name: req.Resources[i].ResourceName}]++
	}
	for i := range req.Resources {
		r := &req.Resources[i]
		err := errRepeated
		if times[image.ConfigResource{Type: r.ResourceType, Name: r.ResourceName}] == 1 {
			err = c.replaceHere(r)
		}
		if err == nil {
			rest = append(rest, *r)
			continue
		}
		a := protocol.AlterConfigsResponseAlterConfigsResourceResponse{ResourceType: r.ResourceType, ResourceName: r.ResourceName}
		a.ErrorCode, a.ErrorMessage = codeAndText(err)
		resp.Responses = append(resp.Responses, a)
	}
	if len(rest) == 0 {
		c.Reply(&resp)
		return
	}
	req.Resources = rest
	c.forwardRest(req, func(answer protocol.Message) protocol.Message {
		a := answer.(*protocol.AlterConfigsResponse)
		a.Responses = append(a.Responses, resp.Responses...)
		return a
	})
}

func incrementalOps(r *incrementalResource) []config.Op {
	ops := make([]config.Op, 0, len(r.Configs))
	for _, cfg := range r.Configs {
		ops = append(ops, config.Op{Type: config.OpType(cfg.ConfigOperation), Name: cfg.Name, Value: cfg.Value})
	}
	return ops
}

// alterHere deals with a resource as far as this broker does. here says that err is the answer;
// else the controller has the last word.
func (c *call) alterHere(resourceType int8, name string, ops []config.Op, validateOnly bool) (here bool, err error) {
	if err := config.CheckOps(ops); err != nil {
		return true, err
	}
	switch resourceType {
	case image.ResourceBrokerLogger:
		if name == "" {
			return true, kerr.InvalidRequest.With("Broker id must not be empty")
		}
		if err := c.server.checkOwnID(name, "Node", "Unexpected node id. Expected %d, but received %s"); err != nil {
			return true, err
		}
		return true, c.server.alterLoggers(ops, validateOnly)
	case image.ResourceBroker:
		if name != "" {
			if err := c.server.checkOwnID(name, "Node", "Unexpected broker id, expected %d, but received %s"); err != nil {
				return true, err
			}
		}
		stored := c.img.AllConfigs().Of(image.ConfigResource{Type: resourceType, Name: name})
		err := c.server.Config().AlterBroker(name == "", stored, ops)
		return err != nil, err
	case image.ResourceTopic, image.ResourceClientMetrics, image.ResourceGroup:
		return false, nil
	}
	return true, kerr.InvalidRequest.With("Unknown resource type %d", resourceType)
}

// replaceHere checks a resource of the older AlterConfigs as far as this broker does.
func (c *call) replaceHere(r *alterResource) error {
	proposed := map[string]string{}
	for _, cfg := range r.Configs {
		if _, twice := proposed[cfg.Name]; twice {
			return kerr.InvalidRequest.With("Error due to duplicate config keys")
		}
		if cfg.Value == nil {
			return kerr.InvalidRequest.With("Null value not supported for : %s", cfg.Name)
		}
		proposed[cfg.Name] = *cfg.Value
	}
	switch r.ResourceType {
	case image.ResourceBroker:
		if r.ResourceName != "" {
			if err := c.server.checkOwnID(r.ResourceName, "Node", "Unexpected broker id, expected %d, but received %s"); err != nil {
				return err
			}
		}
		return c.server.Config().ValidateBroker(r.ResourceName == "", proposed)
	case image.ResourceTopic, image.ResourceClientMetrics, image.ResourceGroup:
		return nil
	case image.ResourceBrokerLogger:
		return kerr.InvalidRequest.With("Unknown resource type %d", r.ResourceType) // replacing all levels is not offered
	}
	return kerr.InvalidRequest.With("Unknown resource type %d", r.ResourceType)
}

func codeAndText(err error) (int16, *string) {
	if err == nil {
		return 0, nil
	}
	text := err.Error()
	return kerr.Code(err), &text
}
