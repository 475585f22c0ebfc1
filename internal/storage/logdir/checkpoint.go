package logdir

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"samsa/internal/base/model"
)

// Checkpoint files at the root of a log directory (D-42).
const (
	RecoveryPointFile  = "recovery-point-offset-checkpoint"
	LogStartOffsetFile = "log-start-offset-checkpoint"
	HighWatermarkFile  = "replication-offset-checkpoint"
	CleanerOffsetFile  = "cleaner-offset-checkpoint"
)

var checkpointFiles = []string{RecoveryPointFile, LogStartOffsetFile, HighWatermarkFile, CleanerOffsetFile}

// maxCheckpointBytes bounds what is read into memory: a million partitions of 249 characters.
const maxCheckpointBytes = 300 << 20

// Checkpoint is the content of one offset checkpoint file: an offset per partition name.
// Names and not topic ids, because that is what the format holds.
type Checkpoint map[model.TopicPartition]int64

// checkpointEntry is one line, for writers that have no map at hand.
type checkpointEntry struct {
	tp     model.TopicPartition
	offset int64
}

// ParseCheckpoint reads the text of a checkpoint file. An empty file means no entries. The
// error says which line is wrong; the caller names the file.
func ParseCheckpoint(text []byte) (Checkpoint, error) {
	line, rest := cutLine(text)
	if line == nil {
		return Checkpoint{}, nil
	}
	version, err := strconv.ParseInt(string(line), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("line 1 is %.60q; expected the version 0", line)
	}
	if version != 0 {
		return nil, fmt.Errorf("line 1 names version %d; expected 0", version)
	}
	line, rest = cutLine(rest)
	if line == nil {
		return Checkpoint{}, nil
	}
	count, err := strconv.ParseInt(string(line), 10, 32)
	if err != nil || count < 0 {
		return nil, fmt.Errorf("line 2 is %.60q; expected the number of entries", line)
	}
	// the declared count is a claim: no more room than the text can fill (5 bytes a line)
	out := make(Checkpoint, min(int(count), len(rest)/5))
	entries := 0
	for n := 3; len(rest) > 0; n++ {
		line, rest = cutLine(rest)
		fields := strings.Fields(string(line))
		if len(fields) != 3 {
			return nil, fmt.Errorf("line %d is %.60q; expected topic, partition and offset", n, line)
		}
		partition, err := strconv.ParseInt(fields[1], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("line %d: the partition %.60q is not a number", n, fields[1])
		}
		offset, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: the offset %.60q is not a number", n, fields[2])
		}
		out[model.TopicPartition{Topic: fields[0], Partition: int32(partition)}] = offset
		entries++
	}
	if entries != int(count) {
		return nil, fmt.Errorf("line 2 announces %d entries, but %d follow", count, entries)
	}
	return out, nil
}

// cutLine takes one line, without its line end, off text; nil when nothing is left.
func cutLine(text []byte) (line, rest []byte) {
	if len(text) == 0 {
		return nil, nil
	}
	line, rest, _ = bytes.Cut(text, []byte("\n"))
	if line == nil {
		line = []byte{}
	}
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// Append writes the checkpoint; the order of the lines is arbitrary.
func (c Checkpoint) Append(dst []byte) []byte {
	dst = appendCheckpointHead(dst, len(c))
	for tp, offset := range c {
		dst = appendCheckpointEntry(dst, tp, offset)
	}
	return dst
}

func appendCheckpoint(dst []byte, entries []checkpointEntry) []byte {
	dst = appendCheckpointHead(dst, len(entries))
	for _, e := range entries {
		dst = appendCheckpointEntry(dst, e.tp, e.offset)
	}
	return dst
}

func appendCheckpointHead(dst []byte, entries int) []byte {
	dst = append(dst, "0\n"...)
	dst = strconv.AppendInt(dst, int64(entries), 10)
	return append(dst, '\n')
}

func appendCheckpointEntry(dst []byte, tp model.TopicPartition, offset int64) []byte {
	dst = append(dst, tp.Topic...)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(tp.Partition), 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, offset, 10)
	return append(dst, '\n')
}
