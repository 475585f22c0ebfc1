package image

import (
	"iter"
	"slices"
	"strings"
)

// Names of features.
const (
	FeatureMetadataVersion = "metadata.version"
	FeatureKRaftVersion    = "kraft.version" // its level lives in the raft log, not here
	FeatureTransaction     = "transaction.version"
	FeatureGroup           = "group.version"
	FeatureELR             = "eligible.leader.replicas.version"
	FeatureShare           = "share.version"
	FeatureStreams         = "streams.version"
)

// FeatureLevel is the finalized level of one feature.
type FeatureLevel struct {
	Name  string
	Level int16
}

// Features are the finalized features of the cluster.
type Features struct {
	metadataVersion MetadataVersion // 0 before the first record
	others          []FeatureLevel  // in name order, no zero levels, without metadata.version
	changedAt       int64           // see ChangedAt
}

// MetadataVersion is the finalized metadata.version, 0 before the first record.
func (f Features) MetadataVersion() MetadataVersion { return f.metadataVersion }

// ChangedAt is the offset of the batch that last changed a feature, -1 if none did (K-113).
func (f Features) ChangedAt() int64 { return f.changedAt }

// Level returns the finalized level of any feature, 0 if it is off.
func (f Features) Level(name string) int16 {
	if name == FeatureMetadataVersion {
		return int16(f.metadataVersion)
	}
	i, ok := slices.BinarySearchFunc(f.others, name, func(l FeatureLevel, n string) int { return strings.Compare(l.Name, n) })
	if !ok {
		return 0
	}
	return f.others[i].Level
}

// ELREnabled reports whether eligible leader replicas are kept (KIP-966).
func (f Features) ELREnabled() bool { return f.Level(FeatureELR) >= 1 }

// All walks the features that are on: metadata.version first, then by name.
func (f Features) All() iter.Seq[FeatureLevel] {
	return func(yield func(FeatureLevel) bool) {
		if f.metadataVersion != 0 && !yield(FeatureLevel{FeatureMetadataVersion, int16(f.metadataVersion)}) {
			return
		}
		for _, l := range f.others {
			if !yield(l) {
				return
			}
		}
	}
}

// Equal reports whether the same features are on at the same levels.
func (f Features) Equal(g Features) bool {
	return f.metadataVersion == g.metadataVersion && slices.Equal(f.others, g.others)
}

// MetadataVersion is a level of metadata.version: it decides which record versions may be written.
type MetadataVersion int16

// Levels of metadata.version that turn something on (K-111).
const (
	MetadataVersionMin     MetadataVersion = 7  // 3.3-IV3, the oldest a 4.x node accepts
	MetadataVersionScram   MetadataVersion = 11 // 3.5-IV2
	MetadataVersionISR     MetadataVersion = 12 // 3.6-IV0: an ISR shrink no longer bumps the leader epoch
	MetadataVersionTxn     MetadataVersion = 13 // 3.6-IV1: metadata transactions
	MetadataVersionTokens  MetadataVersion = 14 // 3.6-IV2: delegation tokens
	MetadataVersionCtrlReg MetadataVersion = 15 // 3.7-IV0: controller registration
	MetadataVersionJBOD    MetadataVersion = 17 // 3.7-IV2: directory assignment
	MetadataVersionELR     MetadataVersion = 23 // 4.0-IV1
	MetadataVersionCordon  MetadataVersion = 30 // 4.3-IV0
	MetadataVersionCIDR    MetadataVersion = 32 // 4.4-IV1
	MetadataVersionUnregC  MetadataVersion = 33 // 4.4-IV2: controller unregistration
	MetadataVersionLatest  MetadataVersion = 33 // the newest production level
)

var metadataVersionNames = [...]string{
	7: "3.3-IV3", 8: "3.4-IV0", 9: "3.5-IV0", 10: "3.5-IV1", 11: "3.5-IV2", 12: "3.6-IV0", 13: "3.6-IV1", 14: "3.6-IV2",
	15: "3.7-IV0", 16: "3.7-IV1", 17: "3.7-IV2", 18: "3.7-IV3", 19: "3.7-IV4", 20: "3.8-IV0", 21: "3.9-IV0",
	22: "4.0-IV0", 23: "4.0-IV1", 24: "4.0-IV2", 25: "4.0-IV3", 26: "4.1-IV0", 27: "4.1-IV1", 28: "4.2-IV0", 29: "4.2-IV1",
	30: "4.3-IV0", 31: "4.4-IV0", 32: "4.4-IV1", 33: "4.4-IV2",
}

// metadataChanges marks the levels that change the format of records: a downgrade across one loses data.
var metadataChanges = map[MetadataVersion]bool{7: true, 8: true, 11: true, 13: true, 14: true, 15: true, 17: true, 23: true, 30: true, 32: true, 33: true}

// String is the release name of the level, for instance 4.0-IV3.
func (v MetadataVersion) String() string {
	if v < MetadataVersionMin || v > MetadataVersionLatest {
		return "unknown"
	}
	return metadataVersionNames[v]
}

// Known reports whether this software knows the level and may run at it.
func (v MetadataVersion) Known() bool { return v >= MetadataVersionMin && v <= MetadataVersionLatest }

// ChangesFormat reports whether going from v to another level crosses a change of record formats.
func (v MetadataVersion) ChangesFormat(to MetadataVersion) bool {
	lo, hi := min(v, to), max(v, to)
	for l := lo + 1; l <= hi; l++ {
		if metadataChanges[l] {
			return true
		}
	}
	return false
}

// RegisterBrokerRecordVersion is the version of RegisterBrokerRecord written at this level (K-81).
func (v MetadataVersion) RegisterBrokerRecordVersion() int16 {
	switch {
	case v >= MetadataVersionCordon:
		return 4
	case v >= MetadataVersionJBOD:
		return 3
	case v >= 8:
		return 2
	}
	return 1
}

// PartitionRecordVersion is the version of PartitionRecord and PartitionChangeRecord written at this level (J-100).
func (v MetadataVersion) PartitionRecordVersion() int16 {
	switch {
	case v >= MetadataVersionELR:
		return 2
	case v >= MetadataVersionJBOD:
		return 1
	}
	return 0
}

// DirectoryAssignment reports whether replicas have directories (J-98).
func (v MetadataVersion) DirectoryAssignment() bool { return v >= MetadataVersionJBOD }

// Transactions reports whether metadata transactions may be written.
func (v MetadataVersion) Transactions() bool { return v >= MetadataVersionTxn }
