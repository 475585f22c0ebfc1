package kraft

import (
	"fmt"
	"slices"
	"strings"

	"samsa/internal/base/model"
)

// ReplicaKey identifies a replica of the metadata log: node id and directory id (KIP-853).
// A zero directory id matches any directory of that node (kraft.version 0, K-86).
type ReplicaKey struct {
	ID        model.NodeID
	Directory model.DirectoryID
}

// NoReplica stands where Kafka writes -1: nobody voted for, nobody known.
var NoReplica = ReplicaKey{ID: model.NoNode}

func (k ReplicaKey) String() string {
	if k.Directory.IsZero() {
		return fmt.Sprintf("%d", k.ID)
	}
	return fmt.Sprintf("%d/%s", k.ID, k.Directory)
}

// Endpoint is one controller listener of one node. Name is upper case (K-79).
type Endpoint struct {
	Name string
	Host string
	Port uint16
}

// Endpoints are the controller listeners of one node, in the order of its configuration.
type Endpoints []Endpoint

// ByListener finds the endpoint of a listener, compared without case.
func (e Endpoints) ByListener(name string) (Endpoint, bool) {
	for _, p := range e {
		if strings.EqualFold(p.Name, name) {
			return p, true
		}
	}
	return Endpoint{}, false
}

// VersionRange is a range of supported kraft.version levels.
type VersionRange struct{ Min, Max int16 }

// Voter is one member of a voter set.
type Voter struct {
	ReplicaKey
	Endpoints Endpoints
	Versions  VersionRange
}

// VoterSet is a set of voters, ordered by node id. It is immutable: methods return new sets.
type VoterSet []Voter

// NewVoterSet sorts and copies voters; a node id given twice is an error.
func NewVoterSet(voters ...Voter) (VoterSet, error) {
	s := slices.Clone(voters)
	slices.SortFunc(s, func(a, b Voter) int { return int(a.ID) - int(b.ID) })
	for i := 1; i < len(s); i++ {
		if s[i].ID == s[i-1].ID {
			return nil, fmt.Errorf("voter %d is listed twice", s[i].ID)
		}
	}
	return s, nil
}

// Find returns the voter with that node id.
func (s VoterSet) Find(id model.NodeID) (Voter, bool) {
	for _, v := range s {
		if v.ID == id {
			return v, true
		}
	}
	return Voter{}, false
}

// IsVoter reports whether the set holds k: same node id and either no directory id in the set or the same one (K-10).
func (s VoterSet) IsVoter(k ReplicaKey) bool {
	v, ok := s.Find(k.ID)
	return ok && (v.Directory.IsZero() || v.Directory == k.Directory)
}

// IsOnlyVoter reports whether the set is exactly k (K-17).
func (s VoterSet) IsOnlyVoter(k ReplicaKey) bool { return len(s) == 1 && s.IsVoter(k) }

// Majority is the number of voters that must agree: floor(n/2)+1.
func (s VoterSet) Majority() int { return len(s)/2 + 1 }

// IDs lists the node ids in order.
func (s VoterSet) IDs() []model.NodeID {
	ids := make([]model.NodeID, len(s))
	for i, v := range s {
		ids[i] = v.ID
	}
	return ids
}

// SnapshotID names a snapshot: the offset is exclusive (last contained + 1), the epoch that of the last contained record (K-63).
type SnapshotID struct {
	Offset int64
	Epoch  int32
}

// BootstrapSnapshotID is the checkpoint written by format; it is never replicated (K-44, K-105).
var BootstrapSnapshotID = SnapshotID{}

// IsBootstrap reports whether this is the checkpoint format wrote.
func (s SnapshotID) IsBootstrap() bool { return s == BootstrapSnapshotID }

func (s SnapshotID) String() string { return fmt.Sprintf("%020d-%010d", s.Offset, s.Epoch) }

// Less orders by epoch, then offset.
func (s SnapshotID) Less(o SnapshotID) bool {
	return s.Epoch < o.Epoch || s.Epoch == o.Epoch && s.Offset < o.Offset
}

// QuorumState is the content of the quorum-state file (K-60).
type QuorumState struct {
	Epoch  int32
	Leader model.NodeID // -1 unknown
	Voted  ReplicaKey   // NoReplica when no vote was given
	// Version is the data_version to write: 0 under kraft.version 0, else 1.
	Version int16
	// Voters is informational, written by version 0 only.
	Voters []model.NodeID
}

// Role is the state of one replica in the current epoch (K-10).
type Role uint8

const (
	Unattached Role = iota
	Follower
	Prospective
	Candidate
	Leader
	Resigned
)

func (r Role) String() string {
	return [...]string{"Unattached", "Follower", "Prospective", "Candidate", "Leader", "Resigned"}[r]
}

// Peer is where a request goes: a voter, the leader, or a bootstrap server, which has an id of -2 or below (K-30).
type Peer struct {
	ID   model.NodeID
	Host string
	Port uint16
}

// Update replaces the entry with v's key by v; changed tells whether that made a difference. Without such an entry the set stays.
func (s VoterSet) Update(v Voter) (set VoterSet, changed bool) {
	for i, old := range s {
		if old.ID != v.ID || !old.Directory.IsZero() && old.Directory != v.Directory {
			continue
		}
		if old.ReplicaKey == v.ReplicaKey && old.Versions == v.Versions && sameEndpoints(old.Endpoints, v.Endpoints) {
			return s, false
		}
		set = slices.Clone(s)
		set[i] = v
		return set, true
	}
	return s, false
}

func sameEndpoints(a, b Endpoints) bool {
	if len(a) != len(b) {
		return false
	}
	for _, e := range a {
		if o, ok := b.ByListener(e.Name); !ok || o.Host != e.Host || o.Port != e.Port {
			return false
		}
	}
	return true
}
