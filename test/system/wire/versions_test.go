package wire

import (
	"slices"
	"testing"

	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

func apiVersions(t *testing.T, c *harness.Conn, version int16, edit func(*protocol.ApiVersionsRequest)) *protocol.ApiVersionsResponse {
	t.Helper()
	req := protocol.Make[protocol.ApiVersionsRequest]()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "samsa-test", "1.0"
	if edit != nil {
		edit(&req)
	}
	return ask[protocol.ApiVersionsResponse](t, c, version, &req)
}

// versionsOf4 is what a running Kafka 4.4.0 advertises: key, then minimum and maximum. What samsa does not
// serve yet is absent; what it advertises has Kafka's range.
var versionsOf4 = map[int16][2]int16{
	0: {0, 13}, 1: {4, 18}, 2: {1, 11}, 3: {0, 13}, 8: {2, 10}, 9: {1, 10}, 10: {0, 6}, 11: {0, 9}, 12: {0, 4}, 13: {0, 5},
	14: {0, 5}, 15: {0, 6}, 16: {0, 5}, 18: {0, 5}, 19: {2, 7}, 20: {1, 6}, 21: {0, 2}, 22: {0, 5}, 23: {2, 4}, 32: {1, 4},
	33: {0, 2}, 35: {1, 5}, 37: {0, 3}, 42: {0, 3}, 43: {0, 2}, 44: {0, 1}, 47: {0, 0}, 52: {0, 2}, 53: {0, 1}, 54: {0, 1},
	55: {0, 2}, 56: {2, 3}, 57: {0, 2}, 58: {0, 0}, 59: {0, 1}, 60: {0, 2}, 61: {0, 0}, 62: {0, 4}, 63: {0, 2}, 64: {0, 0},
	67: {0, 0}, 70: {0, 0}, 73: {0, 0}, 74: {0, 1}, 75: {0, 0}, 94: {0, 0},
}

var controllerOnly = []int16{52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73}
var onBoth = []int16{1, 18, 19, 20, 32, 33, 37, 43, 44, 55, 57, 60, 64, 94}

// K-112, K-113, K-189, T-32, T-34: the keys and versions of each listener, the features by version.
func TestAdvertisedVersions(t *testing.T) {
	n := serve(t, 1)
	for listener, addr := range map[string]string{"broker": n.Addr, "controller": n.Controller} {
		c := harness.Dial(t, addr)
		for v := int16(0); v <= 5; v++ {
			resp := apiVersions(t, c, v, nil)
			if resp.ErrorCode != 0 {
				t.Fatalf("%s v%d: error %d", listener, v, resp.ErrorCode)
			}
			got := map[int16][2]int16{}
			for _, k := range resp.ApiKeys {
				if _, twice := got[k.ApiKey]; twice {
					t.Errorf("%s v%d: key %d twice", listener, v, k.ApiKey)
				}
				got[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
			}
			for key, want := range versionsOf4 {
				here := slices.Contains(onBoth, key) || slices.Contains(controllerOnly, key) == (listener == "controller")
				if have, ok := got[key]; ok != here || ok && have != want {
					t.Errorf("%s v%d: key %d %v %v, want %v %v", listener, v, key, ok, have, here, want)
				}
			}
			for key, have := range got {
				if _, known := versionsOf4[key]; !known && !onKafka {
					t.Errorf("%s v%d: key %d %v is no key this test knows; add Kafka's range for it", listener, v, key, have)
				}
			}
			supported := map[string][2]int16{}
			for _, f := range resp.SupportedFeatures {
				supported[f.Name] = [2]int16{f.MinVersion, f.MaxVersion}
			}
			finalized := map[string]int16{}
			for _, f := range resp.FinalizedFeatures {
				finalized[f.Name] = f.MaxVersionLevel
				if f.MinVersionLevel != f.MaxVersionLevel {
					t.Errorf("%s v%d: %s is finalized at %d-%d", listener, v, f.Name, f.MinVersionLevel, f.MaxVersionLevel)
				}
			}
			wantSupported := map[string][2]int16{}
			if v >= 3 {
				wantSupported["metadata.version"] = [2]int16{7, 33}
			}
			if v >= 4 {
				for name, most := range map[string]int16{"kraft.version": 1, "transaction.version": 2, "group.version": 1,
					"eligible.leader.replicas.version": 1, "share.version": 2, "streams.version": 1} {
					wantSupported[name] = [2]int16{0, most}
				}
			}
			wantFinalized := map[string]int16{}
			if v >= 3 {
				wantFinalized = map[string]int16{"metadata.version": 33, "kraft.version": 1, "transaction.version": 2, "group.version": 1,
					"eligible.leader.replicas.version": 1, "share.version": 2, "streams.version": 1}
			}
			if !mapsEqual(supported, wantSupported) {
				t.Errorf("%s v%d: supported features %v, want %v", listener, v, supported, wantSupported)
			}
			if !mapsEqual(finalized, wantFinalized) {
				t.Errorf("%s v%d: finalized features %v, want %v", listener, v, finalized, wantFinalized)
			}
			if v >= 3 && (resp.FinalizedFeaturesEpoch < 0 || resp.ZkMigrationReady) {
				t.Errorf("%s v%d: features epoch %d, zkMigrationReady %v", listener, v, resp.FinalizedFeaturesEpoch, resp.ZkMigrationReady)
			}
		}
	}
	// The features' epoch moves with every image on a broker and stands still on a controller (K-113).
	epoch := func(addr string) int64 { return apiVersions(t, harness.Dial(t, addr), 4, nil).FinalizedFeaturesEpoch }
	broker, controller := epoch(n.Addr), epoch(n.Controller)
	eventually(t, "the broker's features epoch moves", func() bool { return epoch(n.Addr) > broker })
	if now := epoch(n.Controller); now != controller {
		t.Errorf("the controller's features epoch went from %d to %d", controller, now)
	}
}

func mapsEqual[K, V comparable](a, b map[K]V) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// K-201, K-202: what ApiVersions answers to a version it does not know, to bad names, and to a client
// that expects another node; a body that does not parse closes the connection.
func TestApiVersionsRefusals(t *testing.T) {
	n := serve(t, 1)
	for listener, addr := range map[string]string{"broker": n.Addr, "controller": n.Controller} {
		for _, v := range []int16{6, 100} {
			c := harness.Dial(t, addr)
			if err := c.SendBody(protocol.KeyApiVersions, v, []byte{0xff, 0xff}); err != nil { // the body is not read
				t.Fatal(err)
			}
			answer, err := c.Answer(protocol.KeyApiVersions, 0)
			if err != nil {
				t.Fatalf("%s v%d: %v", listener, v, err)
			}
			resp := answer.(*protocol.ApiVersionsResponse)
			if resp.ErrorCode != 35 || len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != 18 || resp.ApiKeys[0].MinVersion != 0 || resp.ApiKeys[0].MaxVersion != 5 {
				t.Errorf("%s v%d: %+v", listener, v, resp)
			}
			if after := apiVersions(t, c, 5, nil); after.ErrorCode != 0 {
				t.Errorf("%s: v5 after v%d on the same connection: error %d", listener, v, after.ErrorCode)
			}
		}
		for _, name := range []string{"", "-a", "a b", "a-", ".a", "ä"} {
			for v := int16(3); v <= 5; v++ {
				c := harness.Dial(t, addr)
				bad := apiVersions(t, c, v, func(r *protocol.ApiVersionsRequest) { r.ClientSoftwareName = name })
				if bad.ErrorCode != 42 || len(bad.ApiKeys) != 0 {
					t.Errorf("%s v%d: software name %q: error %d, %d keys", listener, v, name, bad.ErrorCode, len(bad.ApiKeys))
				}
				bad = apiVersions(t, c, v, func(r *protocol.ApiVersionsRequest) { r.ClientSoftwareVersion = name })
				if bad.ErrorCode != 42 || len(bad.ApiKeys) != 0 {
					t.Errorf("%s v%d: software version %q: error %d, %d keys", listener, v, name, bad.ErrorCode, len(bad.ApiKeys))
				}
			}
		}
		closes(t, addr, protocol.KeyApiVersions, 5, []byte{9})
		closes(t, addr, protocol.KeyApiVersions, 3, nil)
	}
	cluster := *metadata(t, harness.Dial(t, n.Addr), 12).ClusterId
	for name, c := range map[string]struct {
		cluster *string
		node    int32
		broker  int16
	}{
		"right": {&cluster, 1, 0}, "wrong_node": {&cluster, 2, 129}, "wrong_cluster": {text("another"), 1, 129},
		"cluster_alone": {&cluster, -1, 42}, "node_alone": {nil, 1, 42}, "neither": {nil, -1, 0},
	} {
		expects := func(r *protocol.ApiVersionsRequest) { r.ClusterId, r.NodeId = c.cluster, c.node }
		got := apiVersions(t, harness.Dial(t, n.Addr), 5, expects)
		if got.ErrorCode != c.broker || (c.broker != 0) != (len(got.ApiKeys) == 0) {
			t.Errorf("%s: error %d and %d keys, want %d", name, got.ErrorCode, len(got.ApiKeys), c.broker)
		}
		want := c.broker // a controller does not compare, but wants both or none
		if want == 129 {
			want = 0
		}
		if got := apiVersions(t, harness.Dial(t, n.Controller), 5, expects); got.ErrorCode != want || (want != 0) != (len(got.ApiKeys) == 0) {
			t.Errorf("%s: the controller answers %d, want %d", name, got.ErrorCode, want)
		}
	}
}

// D-11, D-222, K-189: a key or version the listener does not serve closes the connection before the
// body is looked at, and no other connection notices.
func TestVersionGate(t *testing.T) {
	n := serve(t, 1)
	other := harness.Dial(t, n.Addr)
	apiVersions(t, other, 5, nil)
	bomb := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	for _, k := range [][2]int16{
		{4, 0}, {5, 0}, {6, 0}, {7, 0}, {52, 0}, {62, 0}, {73, 0}, {95, 0}, {999, 0}, {-1, 0}, // no such key here
		{0, 0}, {0, 2}, {0, 14}, {1, 3}, {1, 19}, {2, 0}, {3, 14}, {3, -1}, {19, 1}, {20, 0}, {18, -1}, // no such version
	} {
		if k[0] == 18 {
			continue // TestApiVersionsRefusals
		}
		closes(t, n.Addr, k[0], k[1], bomb)
	}
	for _, k := range [][2]int16{{0, 13}, {3, 13}, {10, 4}, {2, 11}, {56, 1}, {999, 0}} {
		closes(t, n.Controller, k[0], k[1], bomb)
	}
	if got := apiVersions(t, other, 5, nil); got.ErrorCode != 0 {
		t.Errorf("another connection: error %d", got.ErrorCode)
	}
}

// bytes behind the body are tolerated, as Kafka does.
func TestTrailingBytes(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	req := protocol.Make[protocol.MetadataRequest]()
	body, err := req.Append(nil, 12)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SendBody(protocol.KeyMetadata, 12, append(body, 1, 2, 3)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Answer(protocol.KeyMetadata, 12); err != nil {
		t.Errorf("three bytes behind a Metadata request: %v", err)
	}
	apiVersions(t, c, 5, nil)
}
