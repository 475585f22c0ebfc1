package api

import (
	"fmt"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// failure builds the answer to a request for the controller that failed as a whole: the error stands
// in every place the response has for one, as Kafka's own error responses do.
func failure(req protocol.Request, e *kerr.Error) (protocol.Response, error) {
	resp := protocol.NewResponse(req.ApiKey())
	resp.Default()
	code, text := e.Code, e.Text
	switch r := req.(type) {
	case *protocol.CreateTopicsRequest:
		out := resp.(*protocol.CreateTopicsResponse)
		for i := range r.Topics {
			t := protocol.Make[protocol.CreateTopicsResponseCreatableTopicResult]()
			t.Name, t.ErrorCode = r.Topics[i].Name, code
			out.Topics = append(out.Topics, t)
		}
	case *protocol.DeleteTopicsRequest:
		out := resp.(*protocol.DeleteTopicsResponse)
		for i := range r.TopicNames {
			t := protocol.Make[protocol.DeleteTopicsResponseDeletableTopicResult]()
			t.Name, t.ErrorCode = &r.TopicNames[i], code
			out.Responses = append(out.Responses, t)
		}
		for i := range r.Topics {
			t := protocol.Make[protocol.DeleteTopicsResponseDeletableTopicResult]()
			t.Name, t.TopicId, t.ErrorCode = r.Topics[i].Name, r.Topics[i].TopicId, code
			out.Responses = append(out.Responses, t)
		}
	case *protocol.CreatePartitionsRequest:
		out := resp.(*protocol.CreatePartitionsResponse)
		for i := range r.Topics {
			out.Results = append(out.Results, protocol.CreatePartitionsResponseCreatePartitionsTopicResult{Name: r.Topics[i].Name, ErrorCode: code, ErrorMessage: &text})
		}
	case *protocol.AlterConfigsRequest:
		out := resp.(*protocol.AlterConfigsResponse)
		for i := range r.Resources {
			out.Responses = append(out.Responses, protocol.AlterConfigsResponseAlterConfigsResourceResponse{
				ErrorCode: code, ErrorMessage: &text, ResourceType: r.Resources[i].ResourceType, ResourceName: r.Resources[i].ResourceName,
			})
		}
	case *protocol.IncrementalAlterConfigsRequest:
		out := resp.(*protocol.IncrementalAlterConfigsResponse)
		for i := range r.Resources {
			out.Responses = append(out.Responses, protocol.IncrementalAlterConfigsResponseAlterConfigsResourceResponse{
				ErrorCode: code, ErrorMessage: &text, ResourceType: r.Resources[i].ResourceType, ResourceName: r.Resources[i].ResourceName,
			})
		}
	case *protocol.UpdateFeaturesRequest:
		out := resp.(*protocol.UpdateFeaturesResponse)
		out.ErrorCode, out.ErrorMessage = code, &text
	case *protocol.UnregisterBrokerRequest:
		out := resp.(*protocol.UnregisterBrokerResponse)
		out.ErrorCode, out.ErrorMessage = code, &text
	case *protocol.ElectLeadersRequest:
		resp.(*protocol.ElectLeadersResponse).ErrorCode = code
	case *protocol.DescribeQuorumRequest:
		resp.(*protocol.DescribeQuorumResponse).ErrorCode = code
	case *protocol.BrokerRegistrationRequest:
		resp.(*protocol.BrokerRegistrationResponse).ErrorCode = code
	case *protocol.BrokerHeartbeatRequest:
		resp.(*protocol.BrokerHeartbeatResponse).ErrorCode = code
	case *protocol.AllocateProducerIdsRequest:
		resp.(*protocol.AllocateProducerIdsResponse).ErrorCode = code
	case *protocol.ControllerRegistrationRequest:
		out := resp.(*protocol.ControllerRegistrationResponse)
		out.ErrorCode, out.ErrorMessage = code, &text
	case *protocol.UnregisterControllerRequest:
		out := resp.(*protocol.UnregisterControllerResponse)
		out.ErrorCode, out.ErrorMessage = code, &text
	case *protocol.AssignReplicasToDirsRequest:
		resp.(*protocol.AssignReplicasToDirsResponse).ErrorCode = code
	case *protocol.AlterPartitionRequest:
		resp.(*protocol.AlterPartitionResponse).ErrorCode = code
	case *protocol.VoteRequest:
		resp.(*protocol.VoteResponse).ErrorCode = code
	case *protocol.BeginQuorumEpochRequest:
		resp.(*protocol.BeginQuorumEpochResponse).ErrorCode = code
	case *protocol.EndQuorumEpochRequest:
		resp.(*protocol.EndQuorumEpochResponse).ErrorCode = code
	case *protocol.FetchRequest:
		resp.(*protocol.FetchResponse).ErrorCode = code
	case *protocol.FetchSnapshotRequest:
		resp.(*protocol.FetchSnapshotResponse).ErrorCode = code
	default:
		return nil, fmt.Errorf("%s has no answer for a failure as a whole", protocol.ApiName(req.ApiKey()))
	}
	return resp, nil
}
