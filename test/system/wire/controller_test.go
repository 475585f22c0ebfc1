package wire

import (
	"fmt"
	"slices"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

// T-64, K-06, K-41: on the controller listener a fetch is of the metadata log or refused.
func TestFetchOnTheController(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Controller)
	cluster := *metadata(t, harness.Dial(t, n.Addr), 12).ClusterId
	metadataFetch := func() *protocol.FetchRequest {
		req := fetchByID(metadataID, 0)
		req.ReplicaState.ReplicaId = 99
		req.Topics[0].Partitions[0].LastFetchedEpoch = 0
		return req
	}
	for what, q := range map[string]struct {
		edit func(*protocol.FetchRequest)
		code int16
	}{
		"random_id":      {func(r *protocol.FetchRequest) { r.Topics[0].TopicId = model.RandomUUID() }, 42},
		"two_topics":     {func(r *protocol.FetchRequest) { r.Topics = append(r.Topics, r.Topics[0]) }, 42},
		"no_topic":       {func(r *protocol.FetchRequest) { r.Topics = nil }, 42},
		"partition_1":    {func(r *protocol.FetchRequest) { r.Topics[0].Partitions[0].Partition = 1 }, 42},
		"wrong_cluster":  {func(r *protocol.FetchRequest) { r.ClusterId = text("another") }, 104},
		"right_cluster":  {func(r *protocol.FetchRequest) { r.ClusterId = &cluster }, 0},
		"no_cluster":     {func(r *protocol.FetchRequest) {}, 0},
		"no_epoch_known": {func(r *protocol.FetchRequest) { r.Topics[0].Partitions[0].LastFetchedEpoch = -1 }, 0},
	} {
		req := metadataFetch()
		q.edit(req)
		if resp := ask[protocol.FetchResponse](t, c, 17, req); resp.ErrorCode != q.code || (q.code != 0) != (len(resp.Responses) == 0) {
			t.Errorf("%s: error %d, %d topics; want %d", what, resp.ErrorCode, len(resp.Responses), q.code)
		}
	}
	for v := int16(4); v <= 12; v++ {
		want := int16(42)
		if v < 7 {
			want = 0 // has no code at the top
		}
		if resp := ask[protocol.FetchResponse](t, c, v, fetchByName("__cluster_metadata", 0)); resp.ErrorCode != want || len(resp.Responses) != 0 {
			t.Errorf("v%d: %+v", v, resp)
		}
	}
	// On the broker listener that topic is nothing a client can make, remove, write or read.
	b := harness.Dial(t, n.Addr)
	req := protocol.Make[protocol.CreateTopicsRequest]()
	req.Topics = []protocol.CreateTopicsRequestCreatableTopic{{Name: "__cluster_metadata", NumPartitions: 1, ReplicationFactor: 1}}
	if r := ask[protocol.CreateTopicsResponse](t, b, 7, &req).Topics[0]; r.ErrorCode != 42 || value(r.ErrorMessage) != "Creation of internal topic __cluster_metadata is prohibited." {
		t.Errorf("create: %d %q", r.ErrorCode, value(r.ErrorMessage))
	}
	del := protocol.Make[protocol.DeleteTopicsRequest]()
	del.TimeoutMs = 30000
	del.Topics = []protocol.DeleteTopicsRequestDeleteTopicState{{Name: text("__cluster_metadata")}}
	if r := ask[protocol.DeleteTopicsResponse](t, b, 6, &del).Responses[0]; r.ErrorCode != 3 {
		t.Errorf("delete: %d", r.ErrorCode)
	}
	if r := ask[protocol.ProduceResponse](t, b, 9, produceByName("__cluster_metadata", 0, 1, batch("x"))).Responses[0].PartitionResponses[0]; r.ErrorCode != 3 {
		t.Errorf("produce: %d", r.ErrorCode)
	}
	if r := ask[protocol.FetchResponse](t, b, 12, fetchByName("__cluster_metadata", 0)).Responses[0].Partitions[0]; r.ErrorCode != 3 {
		t.Errorf("fetch: %d", r.ErrorCode)
	}
}

// J-48, J-54, J-56, K-131: a registration at every version; those that cannot carry directories are refused.
func TestRegistrationVersions(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Controller)
	cluster := *metadata(t, harness.Dial(t, n.Addr), 12).ClusterId
	dir := model.UUID{9, 9, 9}
	register := func(v int16, edit func(*protocol.BrokerRegistrationRequest)) *protocol.BrokerRegistrationResponse {
		req := protocol.Make[protocol.BrokerRegistrationRequest]()
		req.BrokerId, req.ClusterId, req.IncarnationId = 70+int32(v), cluster, model.RandomUUID()
		req.Listeners = []protocol.BrokerRegistrationRequestListener{{Name: "PLAINTEXT", Host: "127.0.0.1", Port: 1}}
		for _, f := range model.Features() {
			req.Features = append(req.Features, protocol.BrokerRegistrationRequestFeature{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
		}
		req.LogDirs = []model.UUID{{9, byte(v)}}
		if edit != nil {
			edit(&req)
		}
		return ask[protocol.BrokerRegistrationResponse](t, c, v, &req)
	}
	for v := int16(0); v <= 4; v++ {
		resp := register(v, nil)
		if want := int16(119); v < 2 && (resp.ErrorCode != want || resp.BrokerEpoch != -1) || v >= 2 && (resp.ErrorCode != 0 || resp.BrokerEpoch <= 0) {
			t.Errorf("v%d: %+v", v, resp)
		}
	}
	for what, q := range map[string]struct {
		edit func(*protocol.BrokerRegistrationRequest)
		code int16
	}{
		"no_directory":     {func(r *protocol.BrokerRegistrationRequest) { r.LogDirs = nil }, 119},
		"reserved":         {func(r *protocol.BrokerRegistrationRequest) { r.LogDirs = []model.UUID{{15: 99}} }, 119},
		"twice":            {func(r *protocol.BrokerRegistrationRequest) { r.LogDirs = []model.UUID{dir, dir} }, 119},
		"of_another":       {func(r *protocol.BrokerRegistrationRequest) { r.BrokerId, r.LogDirs = 80, []model.UUID{{9, 4}} }, 119},
		"wrong_cluster":    {func(r *protocol.BrokerRegistrationRequest) { r.ClusterId = "another" }, 104},
		"not_reserved_100": {func(r *protocol.BrokerRegistrationRequest) { r.BrokerId, r.LogDirs = 81, []model.UUID{{15: 100}} }, 0},
		"not_there_yet_101": {func(r *protocol.BrokerRegistrationRequest) {
			r.BrokerId, r.LogDirs = 1, []model.UUID{dir} // the broker that runs
		}, 101},
	} {
		if resp := register(4, q.edit); resp.ErrorCode != q.code {
			t.Errorf("%s: error %d, want %d", what, resp.ErrorCode, q.code)
		}
	}
}

// K-146: DescribeCluster asked of the wrong kind of listener.
func TestDescribeClusterEndpoints(t *testing.T) {
	n := serve(t, 1)
	for listener, q := range map[string]struct {
		addr  string
		right int8
		wrong int8
	}{"broker": {n.Addr, 1, 2}, "controller": {n.Controller, 2, 1}} {
		c := harness.Dial(t, q.addr)
		for v := int16(0); v <= 2; v++ {
			req := protocol.Make[protocol.DescribeClusterRequest]()
			if v >= 1 {
				req.EndpointType = q.right
			}
			resp := ask[protocol.DescribeClusterResponse](t, c, v, &req)
			if v == 0 && listener == "controller" {
				if resp.ErrorCode != 42 {
					t.Errorf("%s v0: error %d, want 42", listener, resp.ErrorCode)
				}
				continue
			}
			if resp.ErrorCode != 0 || len(resp.Brokers) != 1 || resp.Brokers[0].BrokerId != 1 || listener == "controller" && fmt.Sprint("127.0.0.1:", resp.Brokers[0].Port) != n.Controller {
				t.Errorf("%s v%d: %+v", listener, v, resp)
			}
			if v >= 1 {
				req.EndpointType = q.wrong
				if resp := ask[protocol.DescribeClusterResponse](t, c, v, &req); resp.ErrorCode != 114 {
					t.Errorf("%s v%d, wrong type: error %d, want 114", listener, v, resp.ErrorCode)
				}
			}
		}
	}
}

// K-187: what a broker carries to the active controller, and what comes back.
func TestForwarded(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "forwarded", 1)

	grow := protocol.Make[protocol.CreatePartitionsRequest]()
	grow.TimeoutMs = 30000
	grow.Topics = []protocol.CreatePartitionsRequestCreatePartitionsTopic{{Name: "forwarded", Count: 2}, {Name: "nowhere", Count: 2}}
	if got := codes(ask[protocol.CreatePartitionsResponse](t, c, 3, &grow).Results, func(r protocol.CreatePartitionsResponseCreatePartitionsTopicResult) int16 { return r.ErrorCode }); !sameCodes(got, 0, 3) {
		t.Errorf("CreatePartitions: %v", got)
	}
	led(t, c, id, 2)

	alter := protocol.Make[protocol.IncrementalAlterConfigsRequest]()
	set := []protocol.IncrementalAlterConfigsRequestAlterableConfig{{Name: "retention.ms", Value: text("1000")}}
	alter.Resources = []protocol.IncrementalAlterConfigsRequestAlterConfigsResource{{ResourceType: 2, ResourceName: "forwarded", Configs: set}, {ResourceType: 2, ResourceName: "nowhere", Configs: set}}
	if got := codes(ask[protocol.IncrementalAlterConfigsResponse](t, c, 1, &alter).Responses, func(r protocol.IncrementalAlterConfigsResponseAlterConfigsResourceResponse) int16 { return r.ErrorCode }); !sameCodes(got, 0, 3) {
		t.Errorf("IncrementalAlterConfigs: %v", got)
	}
	replace := protocol.Make[protocol.AlterConfigsRequest]()
	replace.Resources = []protocol.AlterConfigsRequestAlterConfigsResource{{ResourceType: 2, ResourceName: "forwarded", Configs: []protocol.AlterConfigsRequestAlterableConfig{{Name: "retention.ms", Value: text("nonsense")}}}}
	if got := ask[protocol.AlterConfigsResponse](t, c, 2, &replace).Responses[0]; got.ErrorCode != 40 {
		t.Errorf("AlterConfigs: %+v", got)
	}

	elect := protocol.Make[protocol.ElectLeadersRequest]()
	elect.TimeoutMs = 30000
	elect.TopicPartitions = []protocol.ElectLeadersRequestTopicPartitions{{Topic: "forwarded", Partitions: []int32{0, 9}}}
	resp := ask[protocol.ElectLeadersResponse](t, c, 2, &elect)
	if got := codes(resp.ReplicaElectionResults[0].PartitionResult, func(r protocol.ElectLeadersResponsePartitionResult) int16 { return r.ErrorCode }); !sameCodes(got, 84, 3) {
		t.Errorf("ElectLeaders: %v", got)
	}

	quorum := protocol.Make[protocol.DescribeQuorumRequest]()
	quorum.Topics = []protocol.DescribeQuorumRequestTopicData{{TopicName: "__cluster_metadata", Partitions: []protocol.DescribeQuorumRequestPartitionData{{}}}}
	for v := int16(0); v <= 2; v++ {
		q := ask[protocol.DescribeQuorumResponse](t, c, v, &quorum)
		if q.ErrorCode != 0 || len(q.Topics) != 1 || q.Topics[0].Partitions[0].LeaderId != 1 || len(q.Topics[0].Partitions[0].CurrentVoters) != 1 {
			t.Errorf("DescribeQuorum v%d: %+v", v, q)
		}
	}

	features := protocol.Make[protocol.UpdateFeaturesRequest]()
	features.ValidateOnly = true
	features.FeatureUpdates = []protocol.UpdateFeaturesRequestFeatureUpdateKey{{Feature: "metadata.version", MaxVersionLevel: 99, UpgradeType: 1}}
	if got := ask[protocol.UpdateFeaturesResponse](t, c, 2, &features); got.ErrorCode != 95 {
		t.Errorf("UpdateFeatures: %+v", got)
	}

	unregister := protocol.Make[protocol.UnregisterBrokerRequest]()
	unregister.BrokerId = 55
	if got := ask[protocol.UnregisterBrokerResponse](t, c, 0, &unregister); got.ErrorCode != 102 {
		t.Errorf("UnregisterBroker: %+v", got)
	}
	controller := protocol.Make[protocol.UnregisterControllerRequest]()
	controller.ControllerId = 55
	if got := ask[protocol.UnregisterControllerResponse](t, c, 0, &controller); got.ErrorCode != 136 {
		t.Errorf("UnregisterController: %+v", got)
	}

	var last int64 = -1
	for range 3 { // AllocateProducerIds, by the broker itself
		eventually(t, "a producer id is there", func() bool {
			init := protocol.Make[protocol.InitProducerIdRequest]()
			init.TransactionTimeoutMs, init.ProducerId, init.ProducerEpoch, init.TransactionalId = 60000, -1, -1, nil
			got := ask[protocol.InitProducerIdResponse](t, c, 4, &init)
			if got.ErrorCode == 14 {
				return false
			}
			if got.ErrorCode != 0 || got.ProducerId <= last || got.ProducerEpoch != 0 {
				t.Errorf("InitProducerId: %+v behind id %d", got, last)
			}
			last = got.ProducerId
			return true
		})
	}
	remove(t, c, id)
}

func sameCodes(got []int16, want ...int16) bool {
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}

// K-04, K-05, K-145: a controller with two controller listeners publishes both, to the quorum and in its registration; both serve.
func TestTwoControllerListeners(t *testing.T) {
	second := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	n := harness.NewNode(t, 1)
	n.Set("listeners", "PLAINTEXT://"+n.Addr+",CONTROLLER://"+n.Controller+",INNER://"+second)
	n.Set("controller.listener.names", "CONTROLLER,INNER")
	n.Set("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,INNER:PLAINTEXT")
	if onKafka {
		n.FormatKafka()
	} else {
		n.Format()
	}
	launch(n)
	quorum := protocol.Make[protocol.DescribeQuorumRequest]()
	quorum.Topics = []protocol.DescribeQuorumRequestTopicData{{TopicName: "__cluster_metadata", Partitions: []protocol.DescribeQuorumRequestPartitionData{{}}}}
	for _, addr := range []string{n.Controller, second, n.Addr} {
		resp := ask[protocol.DescribeQuorumResponse](t, harness.Dial(t, addr), 2, &quorum)
		got := map[string]string{}
		for _, node := range resp.Nodes {
			for _, l := range node.Listeners {
				got[l.Name] = fmt.Sprintf("%s:%d", l.Host, l.Port)
			}
		}
		if len(got) != 2 || got["CONTROLLER"] != n.Controller || got["INNER"] != second {
			t.Errorf("asked at %s, the voter's listeners are %v", addr, got)
		}
	}
	eventually(t, "the controller has registered both", func() bool {
		for _, r := range metadataRecords(t, n) {
			if r, ok := r.(*protocol.RegisterControllerRecord); ok {
				names := ""
				for _, e := range r.EndPoints {
					names += fmt.Sprintf(" %s=%s:%d", e.Name, e.Host, e.Port)
				}
				return names == " CONTROLLER="+n.Controller+" INNER="+second || names == " INNER="+second+" CONTROLLER="+n.Controller
			}
		}
		return false
	})
}
