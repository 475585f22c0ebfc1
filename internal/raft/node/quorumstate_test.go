package node

import (
	"reflect"
	"strings"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
)

func nil2() *protocol.DescribeQuorumRequest {
	return &protocol.DescribeQuorumRequest{Topics: []protocol.DescribeQuorumRequestTopicData{{TopicName: kraft.MetadataTopic,
		Partitions: []protocol.DescribeQuorumRequestPartitionData{{}}}}}
}

// K-60: both versions byte for byte, and back.
func TestQuorumStateBytes(t *testing.T) {
	dir := testDir(2)
	for name, c := range map[string]struct {
		state kraft.QuorumState
		want  string
	}{
		"version_0": {kraft.QuorumState{Epoch: 7, Leader: 2, Voted: kraft.ReplicaKey{ID: 1}, Voters: []model.NodeID{1, 2, 3}},
			`{"clusterId":"","leaderId":2,"leaderEpoch":7,"votedId":1,"appliedOffset":0,"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}`},
		"version_0_broker": {kraft.QuorumState{Leader: -1, Voted: kraft.NoReplica},
			`{"clusterId":"","leaderId":-1,"leaderEpoch":0,"votedId":-1,"appliedOffset":0,"currentVoters":[],"data_version":0}`},
		"version_1": {kraft.QuorumState{Epoch: 7, Leader: -1, Voted: kraft.ReplicaKey{ID: 2, Directory: dir}, Version: 1},
			`{"leaderId":-1,"leaderEpoch":7,"votedId":2,"votedDirectoryId":"` + dir.String() + `","data_version":1}`},
	} {
		got := encodeQuorumState(c.state)
		if string(got) != c.want {
			t.Errorf("%s\n got %s\nwant %s", name, got, c.want)
		}
		back, err := decodeQuorumState(got)
		c.state.Voters = nil
		if err != nil || !reflect.DeepEqual(*back, c.state) {
			t.Errorf("%s: back %+v, %v", name, back, err)
		}
	}
}

// K-60, K-61: what is read, and what stops the start.
func TestQuorumStateReading(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"other_order":         {`{"data_version":1,"votedId":-1,"unknown":{"x":[1]},"leaderEpoch":3,"leaderId":1}`, ""},
		"second_line_ignored": {"{\"leaderId\":1,\"leaderEpoch\":3,\"votedId\":-1,\"data_version\":0}\ngarbage", ""},
		"spread_over_lines":   {"{\n\"leaderId\":1,\"leaderEpoch\":3,\"votedId\":-1,\"data_version\":0}", "no JSON object"},
		"empty":               {"", "no JSON object"},
		"no_version":          {`{"leaderId":1,"leaderEpoch":3,"votedId":-1}`, "no data_version"},
		"version_2":           {`{"leaderId":1,"leaderEpoch":3,"votedId":-1,"data_version":2}`, "data_version 2"},
		"not_an_object":       {`[1]`, "no JSON object"},
		"bad_directory":       {`{"leaderId":1,"leaderEpoch":3,"votedId":4,"votedDirectoryId":"x","data_version":1}`, "votedDirectoryId"},
		"no_epoch":            {`{"leaderId":1,"votedId":-1,"data_version":0}`, "missing"},
		"negative_epoch":      {`{"leaderId":1,"leaderEpoch":-3,"votedId":-1,"data_version":0}`, "leaderEpoch is -3"},
	} {
		fs := vfs.NewMem()
		must(t, vfs.WriteFileAtomic(fs, "/quorum-state", []byte(c.text)))
		s, err := readQuorumState(fs, "/quorum-state")
		switch {
		case c.want == "" && (err != nil || s.Leader != 1 || s.Epoch != 3):
			t.Errorf("%s: %+v, %v", name, s, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "/quorum-state") || !strings.Contains(err.Error(), "restore")):
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := readQuorumState(vfs.NewMem(), "/quorum-state"); s != nil || err != nil {
		t.Errorf("missing file: %+v, %v", s, err)
	}
}

// K-61: the order of file operations, and that a crash at each of them leaves the old or the new state.
func TestQuorumStateWriteOrder(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("/d", 0o755))
	var ops []string
	fs := vfs.Inject(mem, func(op vfs.Op) error { ops = append(ops, op.String()); return nil })
	must(t, writeQuorumState(fs, "/d/quorum-state", kraft.QuorumState{Leader: -1, Voted: kraft.NoReplica, Version: 1}))
	want := "create /d/quorum-state.tmp\nwrite /d/quorum-state.tmp\nsync /d/quorum-state.tmp\nclose /d/quorum-state.tmp\nrename /d/quorum-state.tmp /d/quorum-state\nsyncdir /d"
	for i, op := range ops {
		if f := strings.Fields(op); f[0] == "write" {
			ops[i] = f[0] + " " + f[1]
		}
	}
	if got := strings.Join(ops, "\n"); got != want {
		t.Fatalf("operations\n%s\nwant\n%s", got, want)
	}
}

func FuzzQuorumState(f *testing.F) {
	f.Add([]byte(`{"leaderId":1,"leaderEpoch":3,"votedId":2,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeQuorumState(b)
		if err != nil {
			return
		}
		back, err := decodeQuorumState(encodeQuorumState(*s))
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Fatalf("%+v came back as %+v, %v", s, back, err)
		}
	})
}
