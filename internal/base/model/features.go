package model

// Feature is a feature of the cluster and the levels this software supports, with the level a
// new cluster starts at (KIP-584, KIP-1022; ranges as Apache Kafka 4.4.0 has them).
type Feature struct {
	Name     string
	Min, Max int16
	Default  int16
}

// KRaftVersion is the one feature whose level lives in the raft log, not in metadata records.
const KRaftVersion = "kraft.version"

var features = [...]Feature{
	{"eligible.leader.replicas.version", 0, 1, 1},
	{"group.version", 0, 1, 1},
	{KRaftVersion, 0, 1, 1},
	{"metadata.version", 7, 33, 33},
	{"share.version", 0, 2, 2},
	{"streams.version", 0, 1, 1},
	{"transaction.version", 0, 2, 2},
}

// Features lists the supported features by name. The slice is the caller's.
func Features() []Feature { return append([]Feature(nil), features[:]...) }
