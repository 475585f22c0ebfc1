package kraft

import (
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// Fetched records of any content: no panic, whole and continuous-looking batches only (K-56).
func FuzzParseBatches(f *testing.F) {
	b, _ := encodeControl(Batch{Base: 9, Epoch: 4, Control: []ControlRecord{{LeaderChange: &LeaderChangeRecord{Leader: 1, Voters: []model.NodeID{1}}}, {Voters: VoterSet{testVoter(2)}}}}, 77)
	f.Add(b)
	f.Add(append(b[:len(b):len(b)], b[:30]...))
	f.Fuzz(func(t *testing.T, data []byte) {
		batches, _ := ParseBatches(data)
		size := 0
		for _, b := range batches {
			if len(b.Data) < 61 {
				t.Fatalf("a batch of %d bytes", len(b.Data))
			}
			size += len(b.Data)
		}
		if size > len(data) {
			t.Fatalf("%d bytes of batches out of %d", size, len(data))
		}
	})
}

// Requests and responses of any content go through their decoders without a panic (K-36..K-48).
func FuzzWireForms(f *testing.F) {
	for _, m := range []any{&VoteRequest{Voter: NoReplica, Candidate: NoReplica}, &BeginQuorumEpochRequest{Voter: NoReplica}, &EndQuorumEpochRequest{}, &FetchRequest{}, &FetchSnapshotRequest{}} {
		r := EncodeRequest("c", m)
		_, v, _ := protocol.Versions(r.ApiKey())
		b, _ := r.Append(nil, v)
		f.Add(r.ApiKey(), v, b)
	}
	f.Fuzz(func(t *testing.T, key, version int16, data []byte) {
		if r := protocol.NewRequest(key); r != nil {
			if _, err := r.Read(data, version); err == nil {
				switch r := r.(type) {
				case *protocol.VoteRequest:
					DecodeVote("c", r)
				case *protocol.BeginQuorumEpochRequest:
					DecodeBeginQuorumEpoch("c", r)
				case *protocol.EndQuorumEpochRequest:
					DecodeEndQuorumEpoch("c", r)
				case *protocol.FetchRequest:
					DecodeFetch("c", r)
				case *protocol.FetchSnapshotRequest:
					DecodeFetchSnapshot("c", r)
				case *protocol.DescribeQuorumRequest:
					DecodeDescribeQuorum(r)
				}
			}
		}
		if r := protocol.NewResponse(key); r != nil {
			if _, err := r.Read(data, version); err == nil {
				DecodeResponse(r, "CONTROLLER")
			}
		}
	})
}
