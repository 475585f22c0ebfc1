package api

import (
	"fmt"
	"math/rand/v2"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// DescribeCluster, versions 0-2
//
//	v1  endpoint type: brokers (1) or controllers (2), each on its own listeners (KIP-919)
//	v2  fenced brokers, where asked for (KIP-1073)

const (
	endpointBrokers     int8 = 1
	endpointControllers int8 = 2
)

func serveDescribeCluster(c *call, req *protocol.DescribeClusterRequest) {
	resp := protocol.Make[protocol.DescribeClusterResponse]()
	if err := c.describeCluster(req, &resp); err != nil {
		resp.ErrorCode = kerr.Code(err)
		text := err.Error()
		resp.ErrorMessage = &text
	}
	c.Reply(&resp)
}

func (c *call) describeCluster(req *protocol.DescribeClusterRequest, resp *protocol.DescribeClusterResponse) error {
	own := endpointBrokers
	if c.role == controllerRole {
		own = endpointControllers
	}
	switch {
	case req.EndpointType != endpointBrokers && req.EndpointType != endpointControllers:
		return kerr.UnsupportedEndpointType.With("Unsupported endpoint type %d", req.EndpointType)
	case req.EndpointType != own:
		mismatch := kerr.MismatchedEndpointType
		if c.Version == 0 { // which cannot name a type (K-146)
			mismatch = kerr.InvalidRequest
		}
		return mismatch.With("The request was sent to an endpoint of type %s, but we wanted an endpoint of type %s", kindOfEndpoint(own), kindOfEndpoint(req.EndpointType))
	}
	resp.ClusterId, resp.EndpointType = c.server.ClusterID, req.EndpointType
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	if c.role == controllerRole {
		c.listControllers(resp)
		return nil
	}
	var live []int32
	for b := range c.img.Brokers().All() {
		e, ok := b.Endpoint(c.Conn.Listener)
		if !ok || b.Fenced && !req.IncludeFencedBrokers {
			continue
		}
		if !b.Fenced {
			live = append(live, int32(b.ID))
		}
		resp.Brokers = append(resp.Brokers, protocol.DescribeClusterResponseDescribeClusterBroker{
			BrokerId: int32(b.ID), Host: e.Host, Port: int32(e.Port), Rack: b.Rack, IsFenced: b.Fenced,
		})
	}
	if len(live) > 0 {
		resp.ControllerId = live[rand.IntN(len(live))]
	}
	return nil
}

// listControllers names the registered controllers by the listener the request came in by, and the
// active one.
func (c *call) listControllers(resp *protocol.DescribeClusterResponse) {
	for n := range c.img.Controllers().All() {
		if e, ok := n.Endpoint(c.Conn.Listener); ok {
			resp.Brokers = append(resp.Brokers, protocol.DescribeClusterResponseDescribeClusterBroker{
				BrokerId: int32(n.ID), Host: e.Host, Port: int32(e.Port),
			})
		}
	}
	resp.ControllerId = int32(c.server.Raft.LeaderAndEpoch().Leader)
}

func kindOfEndpoint(t int8) string {
	if t == endpointControllers {
		return "CONTROLLER"
	}
	if t == endpointBrokers {
		return "BROKER"
	}
	return fmt.Sprint(t)
}
