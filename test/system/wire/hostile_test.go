package wire

import (
	"bytes"
	"testing"

	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

// what outlives a request was copied out of its buffer. A member's metadata and assignment are the same after
// the connection has carried megabytes of other requests.
func TestWhatOutlivesItsRequest(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "noise", 1)
	find := protocol.Make[protocol.FindCoordinatorRequest]()
	find.CoordinatorKeys = []string{"keepers"}
	eventually(t, "the group has a coordinator", func() bool {
		return ask[protocol.FindCoordinatorResponse](t, c, 4, &find).Coordinators[0].ErrorCode == 0
	})
	metadata, assignment := bytes.Repeat([]byte("metadata "), 200), bytes.Repeat([]byte("assignment "), 300)
	noise := func() {
		t.Helper()
		for i := range 30 {
			filler := make([]byte, 1+i*2000)
			for j := range filler {
				filler[j] = byte('A' + i)
			}
			put(t, c, id, 0, string(filler))
		}
	}
	join := protocol.Make[protocol.JoinGroupRequest]()
	join.GroupId, join.SessionTimeoutMs, join.RebalanceTimeoutMs, join.ProtocolType = "keepers", 30000, 60000, "consumer"
	join.Protocols = []protocol.JoinGroupRequestJoinGroupRequestProtocol{{Name: "range", Metadata: metadata}}
	var joined *protocol.JoinGroupResponse
	eventually(t, "the member has joined", func() bool {
		joined = ask[protocol.JoinGroupResponse](t, c, 9, &join)
		join.MemberId = joined.MemberId
		return joined.ErrorCode == 0
	})
	if len(joined.Members) != 1 || !bytes.Equal(joined.Members[0].Metadata, metadata) {
		t.Fatalf("joined: %+v", joined)
	}
	noise()
	sync := protocol.Make[protocol.SyncGroupRequest]()
	sync.GroupId, sync.GenerationId, sync.MemberId, sync.ProtocolType, sync.ProtocolName = "keepers", joined.GenerationId, joined.MemberId, text("consumer"), text("range")
	sync.Assignments = []protocol.SyncGroupRequestSyncGroupRequestAssignment{{MemberId: joined.MemberId, Assignment: assignment}}
	if got := ask[protocol.SyncGroupResponse](t, c, 5, &sync); got.ErrorCode != 0 || !bytes.Equal(got.Assignment, assignment) {
		t.Fatalf("synced: %+v", got)
	}
	noise()
	describe := protocol.Make[protocol.DescribeGroupsRequest]()
	describe.Groups = []string{"keepers"}
	g := ask[protocol.DescribeGroupsResponse](t, c, 5, &describe).Groups[0]
	if g.ErrorCode != 0 || g.GroupState != "Stable" || len(g.Members) != 1 || !bytes.Equal(g.Members[0].MemberMetadata, metadata) || !bytes.Equal(g.Members[0].MemberAssignment, assignment) {
		t.Errorf("after the noise: %+v", g)
	}
	describe.Groups = []string{"nobody"} // D-165
	if g := ask[protocol.DescribeGroupsResponse](t, c, 5, &describe).Groups[0]; g.ErrorCode != 0 || g.GroupState != "Dead" {
		t.Errorf("unknown group, v5: %+v", g)
	}
	if g := ask[protocol.DescribeGroupsResponse](t, c, 6, &describe).Groups[0]; g.ErrorCode != 69 || g.GroupState != "Dead" || value(g.ErrorMessage) != "Group nobody not found." {
		t.Errorf("unknown group, v6: %d %q %q", g.ErrorCode, g.GroupState, value(g.ErrorMessage))
	}
}

// a null where there may be none closes the connection as a body that does not parse does; a name that is no
// text is an illegal name, not a directory.
func TestNullsAndNamesThatAreNoText(t *testing.T) {
	n := serve(t, 1)
	null := []byte{0}
	for what, q := range map[string]struct {
		key, version int16
		body         []byte
	}{
		"topics_null_in_create":   {protocol.KeyCreateTopics, 7, append(null, 0, 0, 0, 0, 0, 0)},
		"group_null_in_heartbeat": {protocol.KeyHeartbeat, 4, append(null, 0, 0, 0, 0, 1, 0, 0)},
		"topics_null_in_produce":  {protocol.KeyProduce, 9, []byte{0, 0, 1, 0, 0, 0, 0, 0, 0}},
		"topics_null_in_fetch":    {protocol.KeyFetch, 12, []byte{255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 1, 1, 0}},
	} {
		t.Run(what, func(t *testing.T) { closes(t, n.Addr, q.key, q.version, q.body) })
	}
	c := harness.Dial(t, n.Addr)
	for _, name := range []string{"\xff\xfe", "a\x00b", "a/b", "../../etc", "\xc3", "ä", ".", "..", "a b"} {
		req := protocol.Make[protocol.CreateTopicsRequest]()
		req.TimeoutMs = 30000
		req.Topics = []protocol.CreateTopicsRequestCreatableTopic{{Name: name, NumPartitions: 1, ReplicationFactor: 1}}
		if r := ask[protocol.CreateTopicsResponse](t, c, 7, &req).Topics[0]; r.ErrorCode != 17 {
			t.Errorf("create %q: error %d", name, r.ErrorCode)
		}
		m := protocol.Make[protocol.MetadataRequest]()
		m.Topics = []protocol.MetadataRequestMetadataRequestTopic{{Name: &name}}
		if r := ask[protocol.MetadataResponse](t, c, 12, &m).Topics[0]; r.ErrorCode != 17 {
			t.Errorf("metadata of %q: error %d", name, r.ErrorCode)
		}
	}
	if got := replicaDirs(t, n.LogDirs[0]); len(got) != 0 {
		t.Errorf("directories %q", got)
	}
}
