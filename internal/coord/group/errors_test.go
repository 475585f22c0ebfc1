package group

import (
	"errors"
	"testing"

	"samsa/internal/base/kerr"
)

// D-168: what a failed append means to the client.
func TestAppendErrors(t *testing.T) {
	for _, c := range []struct {
		in             *kerr.Error
		commit, member *kerr.Error
	}{
		{kerr.UnknownTopicOrPartition, kerr.CoordinatorNotAvailable, kerr.CoordinatorNotAvailable},
		{kerr.NotEnoughReplicas, kerr.CoordinatorNotAvailable, kerr.CoordinatorNotAvailable},
		{kerr.NotEnoughReplicasAfterAppend, kerr.CoordinatorNotAvailable, kerr.CoordinatorNotAvailable},
		{kerr.RequestTimedOut, kerr.CoordinatorNotAvailable, kerr.CoordinatorNotAvailable},
		{kerr.NotLeaderOrFollower, kerr.NotCoordinator, kerr.NotCoordinator},
		{kerr.KafkaStorageError, kerr.NotCoordinator, kerr.NotCoordinator},
		{kerr.MessageTooLarge, kerr.InvalidCommitOffsetSize, kerr.MessageTooLarge},
		{kerr.RecordListTooLarge, kerr.InvalidCommitOffsetSize, kerr.RecordListTooLarge},
		{kerr.NotCoordinator, kerr.NotCoordinator, kerr.NotCoordinator},
	} {
		if got := commitAppendError(c.in.With("in particular")); got != c.commit {
			t.Errorf("%s: a commit gets %s, want %s", c.in.Name, got.Name, c.commit.Name)
		}
		if got := appendError(c.in); got != c.member {
			t.Errorf("%s: a member gets %s, want %s", c.in.Name, got.Name, c.member.Name)
		}
	}
	if got := appendError(errors.New("no code")); got != kerr.UnknownServerError {
		t.Errorf("an error without a code: %s", got.Name)
	}
}
