package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
)

// The quorum-state file is one line of JSON in UTF-8, without a line end (K-60), replaced as a whole: quorum-state.tmp, fsync, rename,
// fsync of the directory (K-61).
//
//	data_version 0 (kraft.version 0)
//	{"clusterId":"","leaderId":1,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}
//	data_version 1
//	{"leaderId":1,"leaderEpoch":5,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}
const quorumStateFile = "quorum-state"

func encodeQuorumState(s kraft.QuorumState) []byte {
	b := []byte("{")
	num := func(name string, v int64) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, name...)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, v, 10)
	}
	if s.Version == 0 {
		b = append(b, `"clusterId":""`...)
	}
	num("leaderId", int64(s.Leader))
	num("leaderEpoch", int64(s.Epoch))
	num("votedId", int64(s.Voted.ID))
	if s.Version == 0 {
		num("appliedOffset", 0)
		b = append(b, `,"currentVoters":[`...)
		for i, id := range s.Voters {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"voterId":`...)
			b = strconv.AppendInt(b, int64(id), 10)
			b = append(b, '}')
		}
		b = append(b, ']')
	} else {
		b = append(b, `,"votedDirectoryId":"`...)
		b = append(b, s.Voted.Directory.String()...)
		b = append(b, '"')
	}
	num("data_version", int64(s.Version))
	return append(b, '}')
}

// decodeQuorumState reads the first line; the order of fields is free and unknown ones are ignored.
func decodeQuorumState(data []byte) (*kraft.QuorumState, error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var j struct {
		Version   *int16  `json:"data_version"`
		Leader    *int32  `json:"leaderId"`
		Epoch     *int32  `json:"leaderEpoch"`
		Voted     *int32  `json:"votedId"`
		Directory *string `json:"votedDirectoryId"`
	}
	if err := json.Unmarshal(line, &j); err != nil {
		return nil, fmt.Errorf("its first line is no JSON object: %w", err)
	}
	switch {
	case j.Version == nil:
		return nil, errors.New("it has no data_version")
	case *j.Version < 0 || *j.Version > 1:
		return nil, fmt.Errorf("its data_version %d is none of 0 and 1", *j.Version)
	case j.Leader == nil || j.Epoch == nil || j.Voted == nil:
		return nil, errors.New("leaderId, leaderEpoch or votedId is missing")
	case *j.Epoch < 0:
		return nil, fmt.Errorf("its leaderEpoch is %d", *j.Epoch)
	}
	s := &kraft.QuorumState{Version: *j.Version, Leader: model.NodeID(*j.Leader), Epoch: *j.Epoch, Voted: kraft.NoReplica}
	if *j.Voted >= 0 {
		s.Voted = kraft.ReplicaKey{ID: model.NodeID(*j.Voted)}
		if s.Version == 1 && j.Directory != nil {
			id, err := model.ParseUUID(*j.Directory)
			if err != nil {
				return nil, fmt.Errorf("its votedDirectoryId: %w", err)
			}
			s.Voted.Directory = model.DirectoryID(id)
		}
	}
	return s, nil
}

func readQuorumState(fsys vfs.FS, path string) (*kraft.QuorumState, error) {
	data, err := vfs.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := decodeQuorumState(data)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w. It holds this node's vote, so it is not replaced by itself: restore it from a backup, "+
			"or, if another majority of the voters runs, remove it together with the whole directory and let this node fetch the log again", path, err)
	}
	return s, nil
}

func writeQuorumState(fsys vfs.FS, path string, s kraft.QuorumState) error {
	return vfs.WriteFileAtomic(fsys, path, encodeQuorumState(s))
}
