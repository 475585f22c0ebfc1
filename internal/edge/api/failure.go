package api

import (
	"fmt"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// failure builds the answer to a forwarded request that failed as a whole: the error stands in
// every place the response has for one, as Kafka's own error responses do.
func failure(key, version int16, body []byte, e *kerr.Error) (protocol.Response, error) {
	req := protocol.NewRequest(key)
	if req == nil {
		return nil, fmt.Errorf("no request has the key %d", key)
	}
	if _, err := req.Read(body, version); err != nil {
		return nil, err
	}
	resp := protocol.NewResponse(key)
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
	default:
		return nil, fmt.Errorf("%s is not a request that is forwarded", protocol.ApiName(key))
	}
	return resp, nil
}
