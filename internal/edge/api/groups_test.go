package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/coord/producerids"
	"samsa/internal/coord/runtime"
	"samsa/internal/edge/network"
	"samsa/internal/meta/image"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/peer"
	"samsa/internal/wire/protocol"
)

// memoryPartitions is __consumer_offsets in memory, committed at once.
type memoryPartitions struct{ listener manager.LeaderListener }

func (m *memoryPartitions) OnLeader(_ string, l manager.LeaderListener) { m.listener = l }

func (m *memoryPartitions) AppendCoordinator(_ manager.CoordinatorAppend, committed func(error)) (manager.CoordinatorOffsets, error) {
	committed(nil)
	return manager.CoordinatorOffsets{}, nil
}

func (m *memoryPartitions) ReadAll(context.Context, model.TopicIDPartition, int64, int, func([]byte) error) (int64, error) {
	return 0, nil
}

// creations is a controller that only counts the topics it is asked for.
type creations struct {
	mu    sync.Mutex
	asked []string
}

func (c *creations) Send(_ context.Context, req protocol.Request) (protocol.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range req.(*protocol.CreateTopicsRequest).Topics {
		c.asked = append(c.asked, t.Name)
	}
	return &protocol.CreateTopicsResponse{}, nil
}

func (c *creations) Forward(context.Context, peer.Forward) ([]byte, error) {
	panic("not in these tests")
}
func (c *creations) Versions() (v peer.Versions, ok bool) { return v, false }

// groupBroker is a broker with the group APIs, on a loopback port.
type groupBroker struct {
	t     *testing.T
	conn  net.Conn
	img   *image.Image
	topic model.UUID
	ctl   creations
	ask   int32
}

const groupPartitions = 2

func startGroups(t *testing.T, withOffsetsTopic bool) *groupBroker {
	t.Helper()
	b := &groupBroker{t: t, topic: model.UUID{2}}
	cfg, err := config.FromMap(map[string]string{"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER",
		"listeners": "PLAINTEXT://127.0.0.1:9092", "controller.quorum.bootstrap.servers": "127.0.0.1:9093", "group.initial.rebalance.delay.ms": "0"})
	if err != nil {
		t.Fatal(err)
	}
	records := []image.Record{
		&protocol.RegisterBrokerRecord{BrokerId: 1, BrokerEpoch: 1, Fenced: false, EndPoints: []protocol.RegisterBrokerRecordBrokerEndpoint{{Name: "PLAINTEXT", Host: "me", Port: 9092}}},
		&protocol.TopicRecord{Name: "t", TopicId: b.topic}, &protocol.PartitionRecord{TopicId: b.topic, Replicas: []int32{1}, Isr: []int32{1}, Leader: 1},
	}
	offsets := model.UUID{1}
	if withOffsetsTopic {
		records = append(records, &protocol.TopicRecord{Name: runtime.OffsetsTopic, TopicId: offsets})
		for p := range int32(groupPartitions) {
			records = append(records, &protocol.PartitionRecord{TopicId: offsets, PartitionId: p, Replicas: []int32{1}, Isr: []int32{1}, Leader: 1})
		}
	}
	if b.img, _, err = image.Empty().Apply(records, 0, 1, 0); err != nil {
		t.Fatal(err)
	}
	partitions := &memoryPartitions{}
	groups := runtime.New(runtime.Options{Replicas: partitions, Config: func() *config.Node { return cfg }, NodeID: 1, Image: func() *image.Image { return b.img }})
	ids := producerids.New(producerids.Options{Allocate: func(context.Context) (producerids.Block, error) {
		return producerids.Block{First: 4000, Length: 1000}, nil
	}})
	s := New(Options{NodeID: 1, Config: func() *config.Node { return cfg }, Image: func() *image.Image { return b.img }, ControllerChannel: &b.ctl, Groups: groups, ProducerIDs: ids})
	ns := network.New(network.Options{Handler: s.Broker()})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ns.Start("PLAINTEXT", ln)
	if b.conn, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	b.conn.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() {
		b.conn.Close()
		groups.Close()
		ids.Close()
		ns.Close()
		s.Close()
	})
	if withOffsetsTopic {
		for p := range int32(groupPartitions) {
			partitions.listener.Elected(model.TopicIDPartition{Topic: model.TopicID(offsets), Partition: p}, 0)
		}
		for { // until both have been loaded
			r := call1[protocol.ListGroupsResponse](b, 0, &protocol.ListGroupsRequest{})
			if r.ErrorCode == 0 {
				break
			}
		}
	}
	return b
}

// call1 sends a request of a version and reads its response, to the last byte.
func call1[T any, P interface {
	*T
	protocol.Message
}](b *groupBroker, version int16, req protocol.Request) P {
	b.t.Helper()
	b.ask++
	key := req.ApiKey()
	h := binary.BigEndian.AppendUint16(nil, uint16(key))
	h = binary.BigEndian.AppendUint16(h, uint16(version))
	h = binary.BigEndian.AppendUint32(h, uint32(b.ask))
	h = append(h, 0, 1, 'c')
	if protocol.RequestHeaderVersion(key, version) >= 2 {
		h = append(h, 0)
	}
	h, err := req.Append(h, version)
	if err != nil {
		b.t.Fatalf("%s v%d: %v", protocol.ApiName(key), version, err)
	}
	if _, err := b.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(h))), h...)); err != nil {
		b.t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(b.conn, size[:]); err != nil {
		b.t.Fatalf("%s v%d: reading the response: %v", protocol.ApiName(key), version, err)
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(b.conn, body); err != nil {
		b.t.Fatal(err)
	}
	body = body[4:]
	if protocol.ResponseHeaderVersion(key, version) >= 1 {
		body = body[1:]
	}
	out := P(new(T))
	rest, err := out.Read(body, version)
	if err != nil || len(rest) > 0 {
		b.t.Fatalf("%s v%d: response: %v, %d bytes left", protocol.ApiName(key), version, err, len(rest))
	}
	return out
}

func (b *groupBroker) code(what string, got int16, want *kerr.Error) {
	b.t.Helper()
	if w := codeOf(want); got != w {
		b.t.Errorf("%s: code %d, want %d", what, got, w)
	}
}

func codeOf(e *kerr.Error) int16 {
	if e == nil {
		return 0
	}
	return e.Code
}

// D-153: the coordinator of a group by every version; other kinds of keys are refused in words.
func TestFindCoordinator(t *testing.T) {
	b := startGroups(t, true)
	for v := int16(0); v <= 6; v++ {
		req := &protocol.FindCoordinatorRequest{Key: "g"}
		if v >= 4 {
			req = &protocol.FindCoordinatorRequest{CoordinatorKeys: []string{"g", ""}}
		}
		r := call1[protocol.FindCoordinatorResponse](b, v, req)
		if v >= 4 {
			if len(r.Coordinators) != 2 {
				t.Fatalf("v%d: %d answers", v, len(r.Coordinators))
			}
			for i, c := range r.Coordinators {
				if c.ErrorCode != 0 || c.NodeId != 1 || c.Host != "me" || c.Port != 9092 || c.Key != req.CoordinatorKeys[i] {
					t.Errorf("v%d: %+v", v, c)
				}
			}
			continue
		}
		if r.ErrorCode != 0 || r.NodeId != 1 || r.Host != "me" || r.Port != 9092 {
			t.Errorf("v%d: %+v", v, r)
		}
	}
	for _, c := range []struct {
		name    string
		keyType int8
		message string
	}{
		{"transaction", transactionKeyType, "transactions are not served yet"},
		{"share", shareKeyType, "share groups are not served yet"},
		{"unknown type", 9, "key type 9"},
	} {
		r := call1[protocol.FindCoordinatorResponse](b, 6, &protocol.FindCoordinatorRequest{KeyType: c.keyType, CoordinatorKeys: []string{"x"}}).Coordinators[0]
		if r.ErrorCode != kerr.InvalidRequest.Code || r.NodeId != -1 || r.Host != "" || r.Port != -1 || !strings.Contains(*r.ErrorMessage, c.message) {
			t.Errorf("%s: %+v %q", c.name, r, *r.ErrorMessage)
		}
		old := call1[protocol.FindCoordinatorResponse](b, 1, &protocol.FindCoordinatorRequest{KeyType: c.keyType, Key: "x"})
		if old.ErrorCode != kerr.InvalidRequest.Code || old.NodeId != -1 || old.Port != -1 || !strings.Contains(*old.ErrorMessage, c.message) {
			t.Errorf("%s v1: %+v", c.name, old)
		}
	}
}

// D-153: without the topic it is asked for, and the client told to come again.
func TestFindCoordinatorCreatesTopic(t *testing.T) {
	b := startGroups(t, false)
	r := call1[protocol.FindCoordinatorResponse](b, 4, &protocol.FindCoordinatorRequest{CoordinatorKeys: []string{"g"}}).Coordinators[0]
	b.code("find", r.ErrorCode, kerr.CoordinatorNotAvailable)
	deadline := time.Now().Add(10 * time.Second)
	for {
		b.ctl.mu.Lock()
		n := len(b.ctl.asked)
		b.ctl.mu.Unlock()
		if n > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody was asked for __consumer_offsets")
		}
		time.Sleep(time.Millisecond) // a poll of a condition with a deadline
	}
	if b.ctl.asked[0] != runtime.OffsetsTopic {
		t.Errorf("asked for %v", b.ctl.asked)
	}
}

func (b *groupBroker) commitRequest(group string, version int16, name string, id model.UUID, partition int32) *protocol.OffsetCommitRequest {
	req := protocol.Make[protocol.OffsetCommitRequest]()
	req.GroupId = group
	t := protocol.OffsetCommitRequestOffsetCommitRequestTopic{}
	if version >= 10 {
		t.TopicId = id
	} else {
		t.Name = name
	}
	note := "note"
	t.Partitions = append(t.Partitions, protocol.OffsetCommitRequestOffsetCommitRequestPartition{PartitionIndex: partition, CommittedOffset: 5, CommittedLeaderEpoch: -1, CommittedMetadata: &note})
	req.Topics = append(req.Topics, t)
	return &req
}

// D-167, T-79, T-80: commits by every version; topics and partitions that are not there.
func TestOffsetCommit(t *testing.T) {
	b := startGroups(t, true)
	for v := int16(2); v <= 10; v++ {
		for _, c := range []struct {
			fault     string
			name      string
			id        model.UUID
			partition int32
			want      *kerr.Error
		}{
			{"none", "t", b.topic, 0, nil},
			{"no such partition", "t", b.topic, 9, kerr.UnknownTopicOrPartition},
			{"no such topic", "nope", model.UUID{9}, 0, map[bool]*kerr.Error{false: kerr.UnknownTopicOrPartition, true: kerr.UnknownTopicId}[v >= 10]},
			{"no topic id", "", model.UUID{}, 0, map[bool]*kerr.Error{false: kerr.UnknownTopicOrPartition, true: kerr.UnknownTopicId}[v >= 10]},
		} {
			r := call1[protocol.OffsetCommitResponse](b, v, b.commitRequest("g", v, c.name, c.id, c.partition))
			p := r.Topics[0].Partitions[0]
			b.code(c.fault, p.ErrorCode, c.want)
			if p.PartitionIndex != c.partition || v < 10 && r.Topics[0].Name != c.name || v >= 10 && r.Topics[0].TopicId != c.id {
				t.Errorf("v%d, %s: %+v", v, c.fault, r.Topics[0])
			}
		}
	}
	// A refused partition beside an accepted one, each in its place.
	req := b.commitRequest("g", 9, "t", b.topic, 9)
	req.Topics = append(b.commitRequest("g", 9, "nope", b.topic, 1).Topics, req.Topics...)
	req.Topics[1].Partitions = append(req.Topics[1].Partitions, req.Topics[1].Partitions[0])
	req.Topics[1].Partitions[1].PartitionIndex = 0
	r := call1[protocol.OffsetCommitResponse](b, 9, req)
	b.code("first", r.Topics[0].Partitions[0].ErrorCode, kerr.UnknownTopicOrPartition)
	b.code("second", r.Topics[1].Partitions[0].ErrorCode, kerr.UnknownTopicOrPartition)
	b.code("third", r.Topics[1].Partitions[1].ErrorCode, nil)
	if n := len(call1[protocol.OffsetCommitResponse](b, 9, &protocol.OffsetCommitRequest{GroupId: "g"}).Topics); n != 0 {
		t.Errorf("nothing committed, %d topics answered", n)
	}
}

// D-169, T-82: fetches by every version and form.
func TestOffsetFetch(t *testing.T) {
	b := startGroups(t, true)
	b.code("commit", call1[protocol.OffsetCommitResponse](b, 9, b.commitRequest("g", 9, "t", b.topic, 0)).Topics[0].Partitions[0].ErrorCode, nil)
	for v := int16(1); v <= 7; v++ {
		req := &protocol.OffsetFetchRequest{GroupId: "g", Topics: []protocol.OffsetFetchRequestOffsetFetchRequestTopic{{Name: "t", PartitionIndexes: []int32{0, 1}}, {Name: "nope", PartitionIndexes: []int32{0}}}}
		r := call1[protocol.OffsetFetchResponse](b, v, req)
		if r.ErrorCode != 0 || len(r.Topics) != 2 {
			t.Fatalf("v%d: %+v", v, r)
		}
		p := r.Topics[0].Partitions
		if p[0].CommittedOffset != 5 || *p[0].Metadata != "note" || p[0].ErrorCode != 0 || p[1].CommittedOffset != -1 || *p[1].Metadata != "" || r.Topics[1].Partitions[0].CommittedOffset != -1 {
			t.Errorf("v%d: %+v", v, r.Topics)
		}
		if v >= 2 {
			r := call1[protocol.OffsetFetchResponse](b, v, &protocol.OffsetFetchRequest{GroupId: "g"})
			if len(r.Topics) != 1 || r.Topics[0].Name != "t" || len(r.Topics[0].Partitions) != 1 {
				t.Errorf("v%d, all: %+v", v, r.Topics)
			}
		}
	}
	for v := int16(8); v <= 10; v++ {
		topics := []protocol.OffsetFetchRequestOffsetFetchRequestTopics{{PartitionIndexes: []int32{0, 1}}, {PartitionIndexes: []int32{0}}}
		if v >= 10 {
			topics[0].TopicId, topics[1].TopicId = b.topic, model.UUID{9}
		} else {
			topics[0].Name, topics[1].Name = "t", "nope"
		}
		req := &protocol.OffsetFetchRequest{Groups: []protocol.OffsetFetchRequestOffsetFetchRequestGroup{
			{GroupId: "g", MemberEpoch: -1, Topics: topics}, {GroupId: "other", MemberEpoch: -1, Topics: topics}, {GroupId: "g", MemberEpoch: -1}}}
		r := call1[protocol.OffsetFetchResponse](b, v, req)
		if len(r.Groups) != 3 || r.Groups[0].GroupId != "g" || r.Groups[1].GroupId != "other" {
			t.Fatalf("v%d: %+v", v, r.Groups)
		}
		known, unknown := r.Groups[0].Topics[0], r.Groups[0].Topics[1]
		if known.Partitions[0].CommittedOffset != 5 || known.Partitions[1].CommittedOffset != -1 || unknown.Partitions[0].CommittedOffset != -1 {
			t.Errorf("v%d: %+v", v, r.Groups[0].Topics)
		}
		if v >= 10 {
			b.code("unknown id", unknown.Partitions[0].ErrorCode, kerr.UnknownTopicId)
			if known.TopicId != b.topic || r.Groups[2].Topics[0].TopicId != b.topic {
				t.Errorf("v10: ids %v, %v", known.TopicId, r.Groups[2].Topics[0].TopicId)
			}
		} else {
			b.code("unknown name", unknown.Partitions[0].ErrorCode, nil)
		}
		if r.Groups[1].Topics[0].Partitions[0].CommittedOffset != -1 {
			t.Errorf("v%d: another group's offset", v)
		}
	}
	if r := call1[protocol.OffsetFetchResponse](b, 8, &protocol.OffsetFetchRequest{}); len(r.Groups) != 0 {
		t.Errorf("no group asked: %+v", r.Groups)
	}
}

// An error of the whole group: at the top from version 2 on, in each partition in version 1, in the group from 8 on.
func TestOffsetFetchNotCoordinator(t *testing.T) {
	b := startGroups(t, false)
	topics := []protocol.OffsetFetchRequestOffsetFetchRequestTopic{{Name: "t", PartitionIndexes: []int32{0}}}
	b.code("v1", call1[protocol.OffsetFetchResponse](b, 1, &protocol.OffsetFetchRequest{GroupId: "g", Topics: topics}).Topics[0].Partitions[0].ErrorCode, kerr.NotCoordinator)
	b.code("v7", call1[protocol.OffsetFetchResponse](b, 7, &protocol.OffsetFetchRequest{GroupId: "g", Topics: topics}).ErrorCode, kerr.NotCoordinator)
	g := []protocol.OffsetFetchRequestOffsetFetchRequestGroup{{GroupId: "g", MemberEpoch: -1}}
	b.code("v8", call1[protocol.OffsetFetchResponse](b, 8, &protocol.OffsetFetchRequest{Groups: g}).Groups[0].ErrorCode, kerr.NotCoordinator)
}

// D-155..D-162 by every version: join, sync, heartbeat, describe, list, leave, delete.
func TestMembersByEveryVersion(t *testing.T) {
	b := startGroups(t, true)
	subscription := []byte{0, 0, 0, 0, 0, 1, 0, 1, 't', 0xff, 0xff, 0xff, 0xff}
	for v := int16(0); v <= 9; v++ {
		group := "g" + string(rune('0'+v))
		req := &protocol.JoinGroupRequest{GroupId: group, SessionTimeoutMs: 10000, ProtocolType: "consumer",
			Protocols: []protocol.JoinGroupRequestJoinGroupRequestProtocol{{Name: "range", Metadata: subscription}}}
		if v >= 1 {
			req.RebalanceTimeoutMs = 10000
		}
		j := call1[protocol.JoinGroupResponse](b, v, req)
		if v >= 4 { // D-156
			b.code("join", j.ErrorCode, kerr.MemberIdRequired)
			if j.GenerationId != -1 || v < 7 && *j.ProtocolName != "" || v >= 7 && (j.ProtocolName != nil || j.ProtocolType != nil) {
				t.Errorf("v%d: %+v", v, j)
			}
			req.MemberId = j.MemberId
			j = call1[protocol.JoinGroupResponse](b, v, req)
		}
		b.code("join", j.ErrorCode, nil)
		if j.GenerationId != 1 || *j.ProtocolName != "range" || j.Leader != j.MemberId || len(j.Members) != 1 || !bytes.Equal(j.Members[0].Metadata, subscription) || v >= 7 && *j.ProtocolType != "consumer" {
			t.Errorf("v%d: %+v", v, j)
		}
		syncVersion := min(v, 5)
		sync := &protocol.SyncGroupRequest{GroupId: group, GenerationId: 1, MemberId: j.MemberId, Assignments: []protocol.SyncGroupRequestSyncGroupRequestAssignment{{MemberId: j.MemberId, Assignment: []byte("a")}}}
		if syncVersion >= 5 {
			b.code("sync without a protocol", call1[protocol.SyncGroupResponse](b, 5, sync).ErrorCode, kerr.InconsistentGroupProtocol)
			kind, name := "consumer", "range"
			sync.ProtocolType, sync.ProtocolName = &kind, &name
		}
		s := call1[protocol.SyncGroupResponse](b, syncVersion, sync)
		b.code("sync", s.ErrorCode, nil)
		if string(s.Assignment) != "a" || syncVersion >= 5 && *s.ProtocolName != "range" {
			t.Errorf("v%d: %+v", syncVersion, s)
		}
		b.code("heartbeat", call1[protocol.HeartbeatResponse](b, min(v, 4), &protocol.HeartbeatRequest{GroupId: group, GenerationId: 1, MemberId: j.MemberId}).ErrorCode, nil)
		b.code("heartbeat of a stranger", call1[protocol.HeartbeatResponse](b, min(v, 4), &protocol.HeartbeatRequest{GroupId: group, GenerationId: 1, MemberId: "x"}).ErrorCode, kerr.UnknownMemberId)

		describeVersion := min(v, 6)
		d := call1[protocol.DescribeGroupsResponse](b, describeVersion, &protocol.DescribeGroupsRequest{Groups: []string{group, "nobody"}, IncludeAuthorizedOperations: describeVersion >= 3})
		if g := d.Groups[0]; g.GroupState != "Stable" || g.ProtocolData != "range" || g.Members[0].ClientHost != "/127.0.0.1" || g.Members[0].ClientId != "c" || describeVersion >= 3 && g.AuthorizedOperations != groupOperations {
			t.Errorf("v%d: %+v", describeVersion, g)
		}
		if g := d.Groups[1]; g.GroupState != "Dead" || (describeVersion >= 6) != (g.ErrorCode == kerr.GroupIdNotFound.Code) {
			t.Errorf("v%d: %+v", describeVersion, g)
		}
		listVersion := min(v, 5)
		list := &protocol.ListGroupsRequest{}
		if listVersion >= 4 {
			list.StatesFilter = []string{"STABLE"}
		}
		if l := call1[protocol.ListGroupsResponse](b, listVersion, list); len(l.Groups) == 0 || l.Groups[0].ProtocolType != "consumer" || listVersion >= 4 && l.Groups[0].GroupState != "Stable" {
			t.Errorf("v%d: %+v", listVersion, l)
		}
		b.code("delete a group with members", call1[protocol.DeleteGroupsResponse](b, min(v, 3), &protocol.DeleteGroupsRequest{GroupsNames: []string{group}}).Results[0].ErrorCode, kerr.NonEmptyGroup)

		leaveVersion := min(v, 5)
		leave := func(member string) int16 {
			req := &protocol.LeaveGroupRequest{GroupId: group}
			if leaveVersion < 3 {
				req.MemberId = member
				return call1[protocol.LeaveGroupResponse](b, leaveVersion, req).ErrorCode
			}
			req.Members = []protocol.LeaveGroupRequestMemberIdentity{{MemberId: member}}
			r := call1[protocol.LeaveGroupResponse](b, leaveVersion, req)
			b.code("leave", r.ErrorCode, nil)
			return r.Members[0].ErrorCode
		}
		b.code("a stranger leaves", leave("x"), kerr.UnknownMemberId)
		b.code("leave", leave(j.MemberId), nil)
		r := call1[protocol.DeleteGroupsResponse](b, min(v, 3), &protocol.DeleteGroupsRequest{GroupsNames: []string{group, group, "nobody"}})
		if len(r.Results) != 2 {
			t.Fatalf("deleted %+v", r.Results)
		}
		b.code("delete", r.Results[0].ErrorCode, nil)
		b.code("delete nobody", r.Results[1].ErrorCode, kerr.GroupIdNotFound)
	}
}

// D-166: OffsetDelete answers for topics that are not there and asks the coordinator for the others.
func TestOffsetDelete(t *testing.T) {
	b := startGroups(t, true)
	call1[protocol.OffsetCommitResponse](b, 9, b.commitRequest("g", 9, "t", b.topic, 0))
	r := call1[protocol.OffsetDeleteResponse](b, 0, &protocol.OffsetDeleteRequest{GroupId: "g", Topics: []protocol.OffsetDeleteRequestOffsetDeleteRequestTopic{
		{Name: "t", Partitions: []protocol.OffsetDeleteRequestOffsetDeleteRequestPartition{{PartitionIndex: 9}, {PartitionIndex: 0}}},
		{Name: "nope", Partitions: []protocol.OffsetDeleteRequestOffsetDeleteRequestPartition{{PartitionIndex: 0}}}}})
	got := map[string]int16{}
	for _, topic := range r.Topics {
		for _, p := range topic.Partitions {
			got[topic.Name+string(rune('0'+p.PartitionIndex))] = p.ErrorCode
		}
	}
	unknown := kerr.UnknownTopicOrPartition.Code
	if r.ErrorCode != 0 || len(r.Topics) != 2 || len(got) != 3 || got["t0"] != 0 || got["t9"] != unknown || got["nope0"] != unknown {
		t.Errorf("code %d, %v", r.ErrorCode, got)
	}
	b.code("no such group", call1[protocol.OffsetDeleteResponse](b, 0, &protocol.OffsetDeleteRequest{GroupId: "nobody"}).ErrorCode, kerr.GroupIdNotFound)
}

// K-171: ids for idempotent producers, by every version; transactions are refused.
func TestInitProducerID(t *testing.T) {
	b := startGroups(t, false)
	for v := int16(0); v <= 5; v++ {
		req := protocol.Make[protocol.InitProducerIdRequest]()
		req.TransactionalId = nil
		r := call1[protocol.InitProducerIdResponse](b, v, &req)
		if r.ErrorCode != 0 || r.ProducerId != 4000+int64(v) || r.ProducerEpoch != 0 {
			t.Errorf("v%d: %+v", v, r)
		}
	}
	id, empty := "tx", ""
	for _, c := range []struct {
		fault string
		set   func(*protocol.InitProducerIdRequest)
	}{
		{"a transactional id", func(r *protocol.InitProducerIdRequest) { r.TransactionalId = &id }},
		{"an empty transactional id", func(r *protocol.InitProducerIdRequest) { r.TransactionalId = &empty }},
		{"an epoch without an id", func(r *protocol.InitProducerIdRequest) { r.ProducerEpoch = 3 }},
		{"an id without an epoch", func(r *protocol.InitProducerIdRequest) { r.ProducerId = 3 }},
	} {
		req := protocol.Make[protocol.InitProducerIdRequest]()
		req.TransactionalId = nil
		c.set(&req)
		r := call1[protocol.InitProducerIdResponse](b, 5, &req)
		if r.ErrorCode != kerr.InvalidRequest.Code || r.ProducerId != -1 || r.ProducerEpoch != -1 {
			t.Errorf("%s: %+v", c.fault, r)
		}
	}
}
