package api

import (
	"regexp"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/edge/network"
	"samsa/internal/wire/protocol"
)

// ApiVersions, versions 0-5
//
//	v3  client software name and version in the request; features in the response (KIP-511, KIP-584)
//	v4  supported features whose minimum is 0 are listed too
//	v5  the client may say which cluster and node it expects

// softwareName is what a client may call itself.
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

func serveApiVersions(c *call, req *protocol.ApiVersionsRequest) {
	resp := protocol.Make[protocol.ApiVersionsResponse]()
	if err := c.judgeApiVersions(req); err != nil {
		resp.ErrorCode = kerr.Code(err)
	} else {
		c.fillApiVersions(&resp)
	}
	c.Reply(&resp)
}

// judgeApiVersions says why the client gets no list, or nil.
func (c *call) judgeApiVersions(req *protocol.ApiVersionsRequest) error {
	if c.Version >= 3 && !(softwareName.MatchString(req.ClientSoftwareName) && softwareName.MatchString(req.ClientSoftwareVersion)) {
		return kerr.InvalidRequest
	}
	if c.Version < 5 {
		return nil
	}
	namesCluster, namesNode := req.ClusterId != nil, req.NodeId != -1
	switch {
	case namesCluster != namesNode:
		return kerr.InvalidRequest
	case namesCluster && c.role == brokerRole && (*req.ClusterId != c.server.ClusterID || req.NodeId != int32(c.server.NodeID)):
		return kerr.RebootstrapRequired
	}
	return nil
}

func (c *call) fillApiVersions(resp *protocol.ApiVersionsResponse) {
	for _, e := range c.server.tables[c.role].entries {
		resp.ApiKeys = append(resp.ApiKeys, protocol.ApiVersionsResponseApiVersion{ApiKey: e.key, MinVersion: e.min, MaxVersion: e.max})
	}
	if c.Version < 3 {
		return
	}
	for _, f := range model.Features() {
		if f.Min == 0 && c.Version < 4 { // older clients refuse a minimum of 0
			continue
		}
		resp.SupportedFeatures = append(resp.SupportedFeatures, protocol.ApiVersionsResponseSupportedFeatureKey{
			Name: f.Name, MinVersion: f.Min, MaxVersion: f.Max,
		})
	}
	finalized := func(name string, level int16) {
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, protocol.ApiVersionsResponseFinalizedFeatureKey{
			Name: name, MinVersionLevel: level, MaxVersionLevel: level,
		})
	}
	for f := range c.img.Features().All() {
		finalized(f.Name, f.Level)
	}
	if level := c.server.KRaftVersion(); level > 0 {
		finalized(model.KRaftVersion, level)
	}
	resp.FinalizedFeaturesEpoch = c.img.Provenance().Offset
	if c.role == controllerRole { // stands still until a feature changes (K-113)
		resp.FinalizedFeaturesEpoch = c.img.Features().ChangedAt()
	}
}

// unknownApiVersions answers a version this node does not know: the body is not read, the
// answer has the layout of version 0 and names the versions of ApiVersions alone.
func unknownApiVersions(req *network.Request, e *entry) {
	resp := protocol.Make[protocol.ApiVersionsResponse]()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	resp.ApiKeys = []protocol.ApiVersionsResponseApiVersion{{ApiKey: e.key, MinVersion: e.min, MaxVersion: e.max}}
	req.ReplyVersion(&resp, 0)
}
