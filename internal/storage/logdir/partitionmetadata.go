package logdir

import (
	"fmt"
	"strconv"
	"strings"

	"samsa/internal/base/model"
)

// PartitionMetadataFile is the file in each replica directory that holds the topic's id.
const PartitionMetadataFile = "partition.metadata"

// PartitionMetadata is the content of a partition.metadata file.
type PartitionMetadata struct {
	TopicID model.TopicID
	// Partition is the full name, which samsa adds for people and for directories whose name
	// was cut; nil in a file Kafka wrote, or where the option is off (T-26).
	Partition *model.TopicPartition
}

// Append writes the file: Kafka's 43 bytes, and the full name below where there is one.
func (m PartitionMetadata) Append(dst []byte) []byte {
	dst = append(dst, "version: 0\ntopic_id: "...)
	dst = append(dst, m.TopicID.String()...)
	if m.Partition != nil {
		dst = fmt.Appendf(dst, "\ntopic: %s\npartition: %d\n", m.Partition.Topic, m.Partition.Partition)
	}
	return dst
}

// ParsePartitionMetadata reads the file as leniently as Kafka does (T-22): key names are not
// looked at, lines end in LF or CRLF, versions from 0 up are read as 0. A file that is empty,
// cut, or holds a zero or garbled id is an error, never "no id" (T-23).
func ParsePartitionMetadata(text string) (PartitionMetadata, error) {
	var m PartitionMetadata
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	if text == "" {
		return m, fmt.Errorf("the file is empty; expected \"version: 0\" and \"topic_id: ID\"")
	}
	version, ok := metadataValue(lines[0])
	if !ok {
		return m, fmt.Errorf("line 1 is %.60q; expected \"version: 0\"", lines[0])
	}
	n, err := strconv.ParseInt(version, 10, 32)
	if err != nil || n < 0 {
		return m, fmt.Errorf("line 1 names version %.60q; expected 0", version)
	}
	if len(lines) < 2 {
		return m, fmt.Errorf("the file ends after line 1; expected \"topic_id: ID\"")
	}
	text2, ok := metadataValue(lines[1])
	if !ok {
		return m, fmt.Errorf("line 2 is %.60q; expected \"topic_id: ID\"", lines[1])
	}
	id, err := model.ParseUUID(text2)
	if err != nil {
		return m, fmt.Errorf("line 2: %w", err)
	}
	if id.IsZero() {
		return m, fmt.Errorf("line 2 holds the zero id, which names no topic")
	}
	m.TopicID = model.TopicID(id)
	m.Partition = parseMetadataName(lines[2:])
	return m, nil
}

// metadataValue splits "key: value"; at least one blank must follow the colon.
func metadataValue(line string) (string, bool) {
	_, rest, ok := strings.Cut(line, ":")
	if !ok {
		return "", false
	}
	value := strings.TrimLeft(rest, " \t")
	return value, len(value) < len(rest) && value != ""
}

// parseMetadataName reads samsa's two extra lines; anything else there is ignored (T-22, T-28).
func parseMetadataName(lines []string) *model.TopicPartition {
	var tp model.TopicPartition
	var haveTopic, havePartition bool
	for _, line := range lines {
		if topic, ok := strings.CutPrefix(line, "topic: "); ok && !haveTopic {
			tp.Topic, haveTopic = topic, true
		}
		if text, ok := strings.CutPrefix(line, "partition: "); ok && !havePartition {
			n, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return nil
			}
			tp.Partition, havePartition = int32(n), true
		}
	}
	if !haveTopic || !havePartition {
		return nil
	}
	return &tp
}
