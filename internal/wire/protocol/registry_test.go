package protocol

import (
	"fmt"
	"strings"
	"testing"
)

// advertised is what a running Kafka 4.4.0 answers to ApiVersions: key, name, range on the broker
// listener, range on the controller listener.
const advertised = `
0 Produce 0-13 -
1 Fetch 4-18 4-18
2 ListOffsets 1-11 -
3 Metadata 0-13 -
8 OffsetCommit 2-10 -
9 OffsetFetch 1-10 -
10 FindCoordinator 0-6 -
11 JoinGroup 0-9 -
12 Heartbeat 0-4 -
13 LeaveGroup 0-5 -
14 SyncGroup 0-5 -
15 DescribeGroups 0-6 -
16 ListGroups 0-5 -
17 SaslHandshake 0-1 0-1
18 ApiVersions 0-5 0-5
19 CreateTopics 2-7 2-7
20 DeleteTopics 1-6 1-6
21 DeleteRecords 0-2 -
22 InitProducerId 0-5 -
23 OffsetForLeaderEpoch 2-4 -
24 AddPartitionsToTxn 0-5 -
25 AddOffsetsToTxn 0-4 -
26 EndTxn 0-5 -
27 WriteTxnMarkers 1-2 -
28 TxnOffsetCommit 0-6 -
29 DescribeAcls 1-3 1-3
30 CreateAcls 1-3 1-3
31 DeleteAcls 1-3 1-3
32 DescribeConfigs 1-4 1-4
33 AlterConfigs 0-2 0-2
34 AlterReplicaLogDirs 1-2 -
35 DescribeLogDirs 1-5 -
36 SaslAuthenticate 0-2 0-2
37 CreatePartitions 0-3 0-3
38 CreateDelegationToken 1-3 1-3
39 RenewDelegationToken 1-2 1-2
40 ExpireDelegationToken 1-2 1-2
41 DescribeDelegationToken 1-3 1-3
42 DeleteGroups 0-3 -
43 ElectLeaders 0-2 0-2
44 IncrementalAlterConfigs 0-1 0-1
45 AlterPartitionReassignments 0-1 0-1
46 ListPartitionReassignments 0-0 0-0
47 OffsetDelete 0-0 -
48 DescribeClientQuotas 0-1 -
49 AlterClientQuotas 0-1 0-1
50 DescribeUserScramCredentials 0-0 0-0
51 AlterUserScramCredentials 0-0 0-0
52 Vote - 0-2
53 BeginQuorumEpoch - 0-1
54 EndQuorumEpoch - 0-1
55 DescribeQuorum 0-2 0-2
56 AlterPartition - 2-3
57 UpdateFeatures 0-2 0-2
58 Envelope - 0-0
59 FetchSnapshot - 0-1
60 DescribeCluster 0-2 0-2
61 DescribeProducers 0-0 -
62 BrokerRegistration - 0-4
63 BrokerHeartbeat - 0-2
64 UnregisterBroker 0-0 0-0
65 DescribeTransactions 0-0 -
66 ListTransactions 0-2 -
67 AllocateProducerIds - 0-0
68 ConsumerGroupHeartbeat 0-1 -
69 ConsumerGroupDescribe 0-1 -
70 ControllerRegistration - 0-0
73 AssignReplicasToDirs - 0-0
74 ListConfigResources 0-1 -
75 DescribeTopicPartitions 0-0 -
76 ShareGroupHeartbeat 1-1 -
77 ShareGroupDescribe 1-1 -
78 ShareFetch 1-2 -
79 ShareAcknowledge 1-2 -
80 AddRaftVoter 0-1 0-1
81 RemoveRaftVoter 0-0 0-0
82 UpdateRaftVoter - 0-0
83 InitializeShareGroupState 0-0 -
84 ReadShareGroupState 0-0 -
85 WriteShareGroupState 0-1 -
86 DeleteShareGroupState 0-0 -
87 ReadShareGroupStateSummary 0-1 -
88 StreamsGroupHeartbeat 0-1 -
89 StreamsGroupDescribe 0-1 -
90 DescribeShareGroupOffsets 0-1 -
91 AlterShareGroupOffsets 0-0 -
92 DeleteShareGroupOffsets 0-0 -
93 StreamsGroupTopologyDescriptionUpdate 0-0 -
94 UnregisterController 0-0 0-0
`

// the stable versions are those Kafka advertises, on the listeners where it does. Kafka adds
// Produce 0 to 2, which it does not serve, and leaves out the telemetry keys without a receiver.
func TestVersionsAreTheAdvertisedOnes(t *testing.T) {
	seen := map[int16]bool{KeyGetTelemetrySubscriptions: true, KeyPushTelemetry: true}
	for line := range strings.Lines(strings.TrimSpace(advertised)) {
		var key int16
		var name, broker, controller string
		if _, err := fmt.Sscan(line, &key, &name, &broker, &controller); err != nil {
			t.Fatal(err)
		}
		seen[key] = true
		lo, hi, ok := Versions(key)
		if key == KeyProduce {
			lo = 0
		}
		span := fmt.Sprintf("%d-%d", lo, hi)
		if !ok || ApiName(key) != name || OnBroker(key) != (broker == span) || OnController(key) != (controller == span) {
			t.Errorf("key %d: %s %s, broker %v, controller %v; want %s", key, ApiName(key), span, OnBroker(key), OnController(key), line)
		}
		if NewRequest(key).ApiKey() != key || NewResponse(key).ApiKey() != key {
			t.Errorf("key %d makes messages of another key", key)
		}
	}
	for _, key := range Keys() {
		if !seen[key] {
			t.Errorf("key %d is not advertised", key)
		}
	}
}

func TestKeysThatDoNotExist(t *testing.T) {
	for _, key := range []int16{-32768, -1, 4, 5, 6, 7, 95, 32767} {
		if NewRequest(key) != nil || NewResponse(key) != nil || ApiName(key) != "" || OnBroker(key) || OnController(key) {
			t.Errorf("key %d exists", key)
		}
		if _, _, ok := Versions(key); ok {
			t.Errorf("key %d has versions", key)
		}
	}
	for _, key := range []int16{-1, 6, 13, 16, 30} { // K-81
		if NewMetadataRecord(key) != nil {
			t.Errorf("metadata record %d exists", key)
		}
	}
	if NewGroupKey(9) != nil || NewGroupValue(18) != nil || NewNamed("Nobody") != nil {
		t.Error("a record that does not exist exists")
	}
	if _, hi, _ := SchemaVersions(KeyInitProducerId); hi != 6 {
		t.Errorf("the unstable version of InitProducerId is %d", hi)
	}
}

// Every message is found by its registry, as itself.
func TestRegistriesAreComplete(t *testing.T) {
	for _, s := range schemaMessages {
		var m Message
		switch s.kind {
		case "request":
			m = NewRequest(int16(s.key))
		case "response":
			m = NewResponse(int16(s.key))
		case "metadata":
			if s.family == "record" {
				m = NewMetadataRecord(int16(s.key))
			} else {
				m = NewRemoteLogRecord(int16(s.key))
			}
		case "coordinator-key":
			m = map[string]func(int16) Message{"group": NewGroupKey, "txn": NewTransactionKey, "share": NewShareKey}[s.family](int16(s.key))
		case "coordinator-value":
			m = map[string]func(int16) Message{"group": NewGroupValue, "txn": NewTransactionValue, "share": NewShareValue}[s.family](int16(s.key))
		default:
			m = NewNamed(s.name)
		}
		if got := strings.TrimPrefix(fmt.Sprintf("%T", m), "*protocol."); got != s.name {
			t.Errorf("%s is found as %s", s.name, got)
		}
	}
}

// Reading costs its slices and strings, writing into a large enough buffer nothing.
func TestAllocations(t *testing.T) {
	m := Make[FetchRequest]()
	for range 3 {
		topic := FetchRequestFetchTopic{Partitions: make([]FetchRequestFetchPartition, 4)}
		m.Topics = append(m.Topics, topic)
	}
	b, err := m.Append(nil, 17)
	if err != nil {
		t.Fatal(err)
	}
	var again FetchRequest
	if n := testing.AllocsPerRun(100, func() { again.Read(b, 17) }); n != 4 {
		t.Errorf("%v allocations to read four slices", n)
	}
	if n := testing.AllocsPerRun(100, func() { b, _ = again.Append(b[:0], 17) }); n != 0 {
		t.Errorf("%v allocations to write", n)
	}
}
