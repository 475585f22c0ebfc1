package logdir

import (
	"fmt"
	"strconv"
	"strings"

	"samsa/internal/base/model"
)

// Role is what a sub-directory of a log directory is, told by its name (T-111).
type Role uint8

const (
	// Current is TOPIC-PARTITION, a replica in service.
	Current Role = iota
	// Future is a copy on its way from another log directory (KIP-113).
	Future
	// Deleted waits for its files to be removed.
	Deleted
	// StrayLog belongs to no topic the metadata knows; it is left alone.
	StrayLog
)

var roleSuffix = [...]string{Current: "", Future: "-future", Deleted: "-delete", StrayLog: "-stray"}

func (r Role) String() string {
	return [...]string{"current", "future", "delete", "stray"}[r]
}

// maxNameBytes is the longest file name the usual file systems take.
const maxNameBytes = 255

// LogName is the name of a replica's directory.
//
//	tp      topic name and partition
//	role    Current gives topic-partition; the others append .ID and the suffix of the role
//	id      32 hexadecimal digits, fresh for each name; ignored for Current
//
// A name for deletion or a stray that would exceed 255 bytes loses the end of its topic part
// (T-112): what it was called is then only in partition.metadata. A future name is never cut,
// because its topic is read back from it; ok is false where it does not fit (T-113).
func LogName(tp model.TopicPartition, role Role, id model.UUID) (name string, ok bool) {
	if role == Current {
		name = tp.String()
		return name, len(name) <= maxNameBytes
	}
	tail := "-" + strconv.FormatInt(int64(tp.Partition), 10) + fmt.Sprintf(".%x", id[:]) + roleSuffix[role]
	topic := tp.Topic
	if cut := maxNameBytes - len(tail); role != Future && len(topic) > cut {
		topic = topic[:cut]
	}
	name = topic + tail
	return name, len(name) <= maxNameBytes
}

// ParseLogName reads the name of a sub-directory of a log directory.
//
// The topic of a Deleted or StrayLog may have been cut (T-114): it is for people, and identity
// comes from partition.metadata. The error names what a name should look like.
func ParseLogName(name string) (model.TopicPartition, Role, error) {
	role, stem := Current, name
	for _, r := range []Role{Future, Deleted, StrayLog} {
		if strings.HasSuffix(name, roleSuffix[r]) {
			dot := strings.LastIndexByte(name, '.')
			if dot < 0 {
				return model.TopicPartition{}, r, errNotALog(name)
			}
			role, stem = r, name[:dot]
			break
		}
	}
	dash := strings.LastIndexByte(stem, '-')
	if dash <= 0 || dash == len(stem)-1 {
		return model.TopicPartition{}, role, errNotALog(name)
	}
	digits := stem[dash+1:]
	partition, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || strconv.FormatUint(partition, 10) != digits {
		return model.TopicPartition{}, role, errNotALog(name)
	}
	return model.TopicPartition{Topic: stem[:dash], Partition: int32(partition)}, role, nil
}

func errNotALog(name string) error {
	return fmt.Errorf("'%s' is not in the form of topic-partition or topic-partition.uniqueId-delete (if marked for deletion)", name)
}
