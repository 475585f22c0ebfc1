package group

import (
	"errors"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
)

// appendError is what a failed append means to the client of a group (D-168). Where Kafka hides a record set that is too
// large behind UNKNOWN_SERVER_ERROR it is named here.
func appendError(err error) *kerr.Error {
	for _, e := range []*kerr.Error{kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut} {
		if errors.Is(err, e) {
			return kerr.CoordinatorNotAvailable
		}
	}
	for _, e := range []*kerr.Error{kerr.NotLeaderOrFollower, kerr.KafkaStorageError} {
		if errors.Is(err, e) {
			return kerr.NotCoordinator
		}
	}
	return kerr.Of(err)
}

// commitAppendError is appendError of an offset commit.
func commitAppendError(err error) *kerr.Error {
	e := appendError(err)
	switch e {
	case kerr.MessageTooLarge, kerr.RecordListTooLarge:
		return kerr.InvalidCommitOffsetSize
	}
	return e
}

// JoinError refuses a join (D-155). Its protocol is null, which versions below 7 must write as "".
func JoinError(memberID string, err error) *protocol.JoinGroupResponse {
	r := protocol.Make[protocol.JoinGroupResponse]()
	r.MemberId, r.ProtocolName, r.ErrorCode = memberID, nil, kerr.Code(err)
	return &r
}

// SyncError refuses a sync.
func SyncError(err error) *protocol.SyncGroupResponse {
	r := protocol.Make[protocol.SyncGroupResponse]()
	r.ErrorCode = kerr.Code(err)
	return &r
}

// CommitError refuses every partition of a commit.
func CommitError(req *protocol.OffsetCommitRequest, err error) *protocol.OffsetCommitResponse {
	code := kerr.Code(err)
	r := protocol.Make[protocol.OffsetCommitResponse]()
	for i := range req.Topics {
		t := &req.Topics[i]
		out := protocol.OffsetCommitResponseOffsetCommitResponseTopic{Name: t.Name, TopicId: t.TopicId}
		for j := range t.Partitions {
			out.Partitions = append(out.Partitions, protocol.OffsetCommitResponseOffsetCommitResponsePartition{PartitionIndex: t.Partitions[j].PartitionIndex, ErrorCode: code})
		}
		r.Topics = append(r.Topics, out)
	}
	return &r
}

// CheckJoin is what a join is refused for before anybody looks for its group (D-155).
func CheckJoin(s Settings, req *protocol.JoinGroupRequest) error {
	if req.GroupId == "" {
		return kerr.InvalidGroupId
	}
	if t := int64(req.SessionTimeoutMs); t < s.MinSessionMs || t > s.MaxSessionMs {
		return kerr.InvalidSessionTimeout
	}
	return nil
}
