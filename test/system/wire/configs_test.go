package wire

import (
	"testing"

	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

// D-197, D-219: DescribeConfigs of a topic and of the broker at every version: how many settings, where they come from,
// what is left out by version and unless asked for.
func TestDescribeConfigs(t *testing.T) {
	n := serve(t, 1, "log.retention.ms=123456")
	c := harness.Dial(t, n.Addr)
	create(t, c, "set", 1, "segment.bytes", "1048576")
	describe := func(v int16, edit func(*protocol.DescribeConfigsRequest)) []protocol.DescribeConfigsResponseDescribeConfigsResult {
		req := protocol.Make[protocol.DescribeConfigsRequest]()
		req.Resources = []protocol.DescribeConfigsRequestDescribeConfigsResource{{ResourceType: 2, ResourceName: "set"}, {ResourceType: 4, ResourceName: "1"}}
		if edit != nil {
			edit(&req)
		}
		return ask[protocol.DescribeConfigsResponse](t, c, v, &req).Results
	}
	for v := int16(1); v <= 4; v++ {
		for what, asked := range map[string]bool{"asked": true, "not_asked": false} {
			results := describe(v, func(r *protocol.DescribeConfigsRequest) {
				r.IncludeSynonyms = asked
				r.IncludeDocumentation = asked && v >= 3
			})
			if len(results) != 2 {
				t.Fatalf("v%d: %d results", v, len(results))
			}
			for i, want := range []int{37, 350} {
				r := results[i]
				own := 0
				for _, e := range r.Configs {
					if len(e.Name) > 6 && e.Name[:6] == "samsa." {
						own++
						if onKafka { // which knows nothing of it
							continue
						}
					}
					if v < 3 && e.ConfigType != 0 || v >= 3 && e.ConfigType == 0 {
						t.Errorf("v%d: %s has type %d", v, e.Name, e.ConfigType)
					}
					if !asked && (len(e.Synonyms) > 0 || v >= 3 && e.Documentation != nil) {
						t.Errorf("v%d, %s: %s has what nobody asked for", v, what, e.Name)
					}
					if asked && v >= 3 && e.Documentation == nil {
						t.Errorf("v%d: %s has no documentation", v, e.Name)
					}
					if i == 0 && e.ReadOnly {
						t.Errorf("v%d: %s is read-only", v, e.Name)
					}
				}
				if r.ErrorCode != 0 || len(r.Configs)-own < want || len(r.Configs)-own > want+20 {
					t.Errorf("v%d, resource %d: error %d, %d settings of Kafka's and %d of our own, want %d", v, r.ResourceType, r.ErrorCode, len(r.Configs)-own, own, want)
				}
			}
			topic := map[string]protocol.DescribeConfigsResponseDescribeConfigsResourceResult{}
			for _, e := range results[0].Configs {
				topic[e.Name] = e
			}
			for name, want := range map[string]struct {
				value  string
				source int8
				chain  int
			}{"segment.bytes": {"1048576", 1, 2}, "retention.ms": {"123456", 4, 1}, "max.message.bytes": {"1048588", 5, 1}} {
				e := topic[name]
				if value(e.Value) != want.value || e.ConfigSource != want.source {
					t.Errorf("v%d: %s is %q from source %d, want %q from %d", v, name, value(e.Value), e.ConfigSource, want.value, want.source)
				}
				if asked && len(e.Synonyms) < want.chain {
					t.Errorf("v%d: %s has synonyms %+v", v, name, e.Synonyms)
				}
			}
		}
		named := describe(v, func(r *protocol.DescribeConfigsRequest) {
			r.Resources[0].ConfigurationKeys = []string{"retention.ms", "no.such"}
			r.Resources[1].ConfigurationKeys = []string{}
		})
		if len(named[0].Configs) != 1 || named[0].Configs[0].Name != "retention.ms" {
			t.Errorf("v%d, named: %+v", v, named[0].Configs)
		}
		bad := describe(v, func(r *protocol.DescribeConfigsRequest) {
			r.Resources = []protocol.DescribeConfigsRequestDescribeConfigsResource{{ResourceType: 2, ResourceName: "nowhere"}, {ResourceType: 2, ResourceName: ""},
				{ResourceType: 4, ResourceName: "7"}, {ResourceType: 4, ResourceName: ""}}
		})
		if got := codes(bad, func(r protocol.DescribeConfigsResponseDescribeConfigsResult) int16 { return r.ErrorCode }); got[0] != 3 || got[1] != 17 || got[2] != 42 || got[3] != 0 {
			t.Errorf("v%d: errors %v", v, got)
		}
	}
}

// K-12: the quorum's timers, as a running node describes them.
func TestQuorumTimers(t *testing.T) {
	n := serve(t, 1)
	req := protocol.Make[protocol.DescribeConfigsRequest]()
	req.Resources = []protocol.DescribeConfigsRequestDescribeConfigsResource{{ResourceType: 4, ResourceName: "1"}}
	got := map[string]string{}
	for _, e := range ask[protocol.DescribeConfigsResponse](t, harness.Dial(t, n.Addr), 4, &req).Results[0].Configs {
		if e.ConfigSource == 5 {
			got[e.Name] = value(e.Value)
		}
	}
	for name, want := range map[string]string{
		"election.timeout.ms": "1000", "fetch.timeout.ms": "2000", "election.backoff.max.ms": "1000", "request.timeout.ms": "2000",
		"retry.backoff.ms": "20", "append.linger.ms": "25", "auto.join.enable": "false", "fetch.max.bytes": "1048576", "fetch.snapshot.max.bytes": "1048576",
	} {
		if got["controller.quorum."+name] != want {
			t.Errorf("%s is %q, want %q", name, got["controller.quorum."+name], want)
		}
	}
}
