package storagetool

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/raft/node"
	"samsa/internal/wire/protocol"
)

// Names of what a controller's metadata directory gets.
const (
	metadataLogDir   = "__cluster_metadata-0"
	legacyCheckpoint = "bootstrap.checkpoint"
)

// bootstrapRecords are the first records of a new cluster: metadata.version, the other
// features above 0 by name, SCRAM users in the order given (K-104). kraft.version is never one.
type bootstrapRecords struct {
	level    int16
	features []*protocol.FeatureLevelRecord
	scram    []*protocol.UserScramCredentialRecord
}

func newBootstrapRecords(v metadataVersion, levels map[string]int16, scram []*protocol.UserScramCredentialRecord) bootstrapRecords {
	r := bootstrapRecords{level: v.level, scram: scram}
	r.features = append(r.features, &protocol.FeatureLevelRecord{Name: metadataVersionFeature, FeatureLevel: v.level})
	for _, f := range byName {
		if level := levels[f.name]; level > 0 && f.name != kraftVersionFeature {
			r.features = append(r.features, &protocol.FeatureLevelRecord{Name: f.name, FeatureLevel: level})
		}
	}
	return r
}

// String is the line Kafka's tool prints, but for the salt and keys of SCRAM users, which are
// enough to try passwords against and do not belong on a terminal.
func (r bootstrapRecords) String() string {
	var parts []string
	for _, f := range r.features {
		parts = append(parts, fmt.Sprintf("ApiMessageAndVersion(FeatureLevelRecord(name='%s', featureLevel=%d) at version 0)", f.Name, f.FeatureLevel))
	}
	for _, s := range r.scram {
		parts = append(parts, fmt.Sprintf("ApiMessageAndVersion(UserScramCredentialRecord(name='%s', mechanism=%d, salt=(hidden), storedKey=(hidden),"+
			" serverKey=(hidden), iterations=%d) at version 0)", s.Name, s.Mechanism, s.Iterations))
	}
	return fmt.Sprintf("BootstrapMetadata(records=[%s], metadataVersionLevel=%d, source=format command)", strings.Join(parts, ", "), r.level)
}

// frames are the records as the metadata log holds them.
func (r bootstrapRecords) frames() ([]node.Record, error) {
	var out []node.Record
	add := func(m protocol.Record) error {
		b, err := protocol.AppendMetadataRecord(nil, m.RecordKey(), 0, m)
		out = append(out, b)
		return err
	}
	for _, f := range r.features {
		if err := add(f); err != nil {
			return nil, err
		}
	}
	for _, s := range r.scram {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// writeCheckpoint writes the checkpoint files of a controller's metadata directory.
func (o *Options) writeCheckpoint(dir string, p *plan) error {
	records, err := p.records.frames()
	if err != nil {
		return err
	}
	control := node.CheckpointOptions{LastContainedTimestamp: o.Now().UnixMilli(), KRaftVersion: p.levels[kraftVersionFeature]}
	if control.KRaftVersion > 0 {
		if control.Voters, err = voterSet(p.voters, o.ControllerListener); err != nil {
			return err
		}
	}
	inLog := records
	if o.Checkpoint == CheckpointAll4x {
		inLog = nil
		if err := o.writeLegacy(dir, records); err != nil {
			return err
		}
	}
	log := filepath.Join(dir, metadataLogDir)
	if err := makeDir(o.FS, log); err != nil {
		return err
	}
	return writeSnapshot(o.FS, log, control, inLog)
}

// writeLegacy writes bootstrap.checkpoint: a snapshot file like the other, with the records
// and without quorum records. It is made beside the metadata log under a snapshot's name and renamed.
func (o *Options) writeLegacy(dir string, records []node.Record) error {
	if err := writeSnapshot(o.FS, dir, node.CheckpointOptions{LastContainedTimestamp: o.Now().UnixMilli()}, records); err != nil {
		return err
	}
	if err := o.FS.Rename(filepath.Join(dir, snapshotName), filepath.Join(dir, legacyCheckpoint)); err != nil {
		return err
	}
	return o.FS.SyncDir(dir)
}

// snapshotName is that of the snapshot that ends before offset 0.
const snapshotName = "00000000000000000000-0000000000.checkpoint"

func writeSnapshot(fsys vfs.FS, dir string, control node.CheckpointOptions, records []node.Record) error {
	w, err := node.NewCheckpoint(fsys, dir, kraft.SnapshotID{}, control)
	if err != nil {
		return err
	}
	defer w.Close()
	if len(records) > 0 {
		if err := w.Append(records); err != nil {
			return err
		}
	}
	return w.Freeze()
}

// javaHost spells an IPv6 address as Java does, without "::", because voters are compared by text in a mixed quorum.
func javaHost(host string) string {
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Is4() || addr.Zone() != "" {
		return host
	}
	if addr = addr.Unmap(); addr.Is4() {
		return addr.String()
	}
	b := addr.As16()
	groups := make([]string, 8)
	for i := range groups {
		groups[i] = strconv.FormatUint(uint64(b[2*i])<<8|uint64(b[2*i+1]), 16)
	}
	return strings.Join(groups, ":")
}

// voterSet turns the voters into the raft layer's; each has the one listener that is known (K-103).
func voterSet(voters []Voter, listener string) (kraft.VoterSet, error) {
	var out []kraft.Voter
	for _, v := range voters {
		out = append(out, kraft.Voter{
			ReplicaKey: kraft.ReplicaKey{ID: model.NodeID(v.ID), Directory: v.Directory},
			Endpoints:  kraft.Endpoints{{Name: listenerName(listener), Host: javaHost(v.Host), Port: v.Port}},
			Versions:   kraft.VersionRange{Min: 0, Max: 1},
		})
	}
	if len(out) == 0 {
		return nil, nil
	}
	return kraft.NewVoterSet(out...)
}
