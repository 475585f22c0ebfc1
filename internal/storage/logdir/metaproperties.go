package logdir

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"samsa/internal/base/model"
)

// MetaPropertiesFile is the name of the file that says whose a log directory is.
const MetaPropertiesFile = "meta.properties"

// Keys of meta.properties (J-09); directory.ids is samsa's own (J-14).
const (
	keyVersion      = "version"
	keyClusterID    = "cluster.id"
	keyBrokerID     = "broker.id"
	keyNodeID       = "node.id"
	keyDirectoryID  = "directory.id"
	keyDirectoryIDs = "directory.ids"
)

// MetaProperties is the content of one meta.properties. The zero value is an empty file of
// version 0.
type MetaProperties struct {
	// Version is 0 (a directory that once belonged to a ZooKeeper cluster) or 1. samsa writes
	// 1 into new directories and never raises an existing file (J-10).
	Version int
	// ClusterID is nil where the file has none, which only version 0 allows.
	ClusterID *string
	// NodeID is node.id, or broker.id in version 0; nil where the file has none.
	NodeID *model.NodeID
	// DirectoryID is zero where the file has none.
	DirectoryID model.DirectoryID
	// HasDirectoryID tells a zero id that was written from one that was not.
	HasDirectoryID bool
	// DirectoryIDs is samsa's list of all directories of the node, sorted text ids, or nil.
	DirectoryIDs []string
	// other keeps the keys samsa does not know, in file order (J-16).
	other []property
}

// ParseMetaProperties reads the text of a meta.properties file.
//
// The errors are those J-18 calls "not parsable"; the caller names the file.
func ParseMetaProperties(text string) (MetaProperties, error) {
	var m MetaProperties
	props, err := parseProperties(text)
	if err != nil {
		return m, err
	}
	get := func(key string) (string, bool) {
		for _, p := range props {
			if p.key == key {
				return p.value, true
			}
		}
		return "", false
	}
	if v, ok := get(keyVersion); ok {
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32)
		if err != nil {
			return m, fmt.Errorf("Invalid meta.properties version string '%s'", v)
		}
		if n != 0 && n != 1 {
			return m, fmt.Errorf("Unknown meta.properties version number %d", n)
		}
		m.Version = int(n)
	}
	idKey := keyNodeID
	if m.Version == 0 {
		idKey = keyBrokerID
	}
	if v, ok := get(idKey); ok {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil {
			return m, fmt.Errorf("Unable to read %s as a base-10 number.", idKey)
		}
		id := model.NodeID(n)
		m.NodeID = &id
	} else if m.Version > 0 {
		return m, fmt.Errorf("Failed to find %s", idKey)
	}
	if v, ok := get(keyClusterID); ok {
		m.ClusterID = &v
	}
	if v, ok := get(keyDirectoryID); ok {
		id, err := model.ParseUUID(v)
		if err != nil {
			return m, fmt.Errorf("Unable to read %s as a Uuid: %w", keyDirectoryID, err)
		}
		m.DirectoryID, m.HasDirectoryID = model.DirectoryID(id), true
	}
	if v, ok := get(keyDirectoryIDs); ok && v != "" {
		m.DirectoryIDs = strings.Split(v, ",")
	}
	if m.Version > 0 && m.ClusterID == nil {
		return m, fmt.Errorf("cluster.id was not found.")
	}
	for _, p := range props {
		switch p.key {
		case keyVersion, keyClusterID, keyDirectoryID, keyDirectoryIDs, idKey:
		default:
			m.other = append(m.other, p)
		}
	}
	return m, nil
}

// Append writes the file as Kafka does: two comment lines, the second with the date, then
// node.id, directory.id, version and cluster.id, then what Kafka does not know (J-08, J-16).
func (m MetaProperties) Append(dst []byte, now time.Time) []byte {
	dst = append(dst, "#\n#"...)
	dst = now.AppendFormat(dst, "Mon Jan 02 15:04:05 MST 2006")
	dst = append(dst, '\n')
	for _, p := range m.properties() {
		dst = appendProperty(dst, p)
	}
	return dst
}

// properties lists what Append writes.
func (m MetaProperties) properties() []property {
	var out []property
	if m.NodeID != nil {
		key := keyNodeID
		if m.Version == 0 {
			key = keyBrokerID
		}
		out = append(out, property{key, strconv.FormatInt(int64(*m.NodeID), 10)})
	}
	if m.HasDirectoryID {
		out = append(out, property{keyDirectoryID, m.DirectoryID.String()})
	}
	out = append(out, property{keyVersion, strconv.Itoa(m.Version)})
	if m.ClusterID != nil {
		out = append(out, property{keyClusterID, *m.ClusterID})
	}
	if len(m.DirectoryIDs) > 0 {
		out = append(out, property{keyDirectoryIDs, strings.Join(m.DirectoryIDs, ",")})
	}
	return append(out, m.other...)
}

// Known lists the keys and values Kafka's tools would show, sorted by key.
func (m MetaProperties) Known() map[string]string {
	out := map[string]string{}
	for _, p := range m.properties() {
		switch p.key {
		case keyVersion, keyClusterID, keyBrokerID, keyNodeID, keyDirectoryID:
			out[p.key] = p.value
		}
	}
	return out
}
