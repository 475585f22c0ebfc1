package kraft

import (
	"fmt"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

// Control batches (K-77): attribute bit 5, one record per control record, key = version 0 and type, value = the message at
// version 0, whose first field repeats the version.

// encodeControl builds the batch of b.Control; its offsets follow b.Base.
func encodeControl(b Batch, timestamp int64) ([]byte, error) {
	opt := record.NewBatchOptions()
	opt.BaseOffset, opt.LeaderEpoch, opt.Control = b.Base, b.Epoch, true
	w := record.NewBuilder(opt)
	for _, r := range b.Control {
		var t record.ControlType
		var m protocol.Message
		switch {
		case r.LeaderChange != nil:
			t, m = record.ControlLeaderChange, leaderChangeMessage(r.LeaderChange)
		case r.KRaftVersion != nil:
			t, m = record.ControlKRaftVersion, &protocol.KRaftVersionRecord{KRaftVersion: *r.KRaftVersion}
		default:
			t, m = record.ControlKRaftVoters, VotersMessage(r.Voters)
		}
		value, err := m.Append(nil, 0)
		if err != nil {
			return nil, err
		}
		w.Append(timestamp, record.ControlKey(t), value, nil)
	}
	return w.Build(nil), nil
}

func leaderChangeMessage(r *LeaderChangeRecord) *protocol.LeaderChangeMessage {
	voters := func(ids []model.NodeID) []protocol.LeaderChangeMessageVoter {
		vs := make([]protocol.LeaderChangeMessageVoter, len(ids))
		for i, id := range ids {
			vs[i].VoterId = int32(id)
		}
		return vs
	}
	return &protocol.LeaderChangeMessage{LeaderId: int32(r.Leader), Voters: voters(r.Voters), GrantingVoters: voters(r.Granting)}
}

// VotersMessage is a voter set as it is written to log and snapshots (K-79).
func VotersMessage(s VoterSet) *protocol.VotersRecord {
	m := &protocol.VotersRecord{Voters: make([]protocol.VotersRecordVoter, len(s))}
	for i, v := range s {
		o := &m.Voters[i]
		o.VoterId, o.VoterDirectoryId = int32(v.ID), model.UUID(v.Directory)
		for _, e := range v.Endpoints {
			o.Endpoints = append(o.Endpoints, protocol.VotersRecordEndpoint{Name: e.Name, Host: e.Host, Port: e.Port})
		}
		o.KRaftVersionFeature.MinSupportedVersion = v.Versions.Min
		o.KRaftVersionFeature.MaxSupportedVersion = v.Versions.Max
	}
	return m
}

// VotersFromMessage reads it back.
func VotersFromMessage(m *protocol.VotersRecord) (VoterSet, error) {
	voters := make([]Voter, len(m.Voters))
	for i, o := range m.Voters {
		v := Voter{ReplicaKey: ReplicaKey{model.NodeID(o.VoterId), model.DirectoryID(o.VoterDirectoryId)},
			Versions: VersionRange{o.KRaftVersionFeature.MinSupportedVersion, o.KRaftVersionFeature.MaxSupportedVersion}}
		for _, e := range o.Endpoints {
			v.Endpoints = append(v.Endpoints, Endpoint{e.Name, e.Host, e.Port})
		}
		voters[i] = v
	}
	return NewVoterSet(voters...)
}

// ParseControl reads one control record; nil for the types the quorum does not read (K-77).
func ParseControl(offset int64, key, value []byte) (*ControlRecord, error) {
	t, err := protocol.ReadControlKey(key)
	if err != nil {
		return nil, fmt.Errorf("control record at offset %d: %w", offset, err)
	}
	read := func(m protocol.Message) error {
		if _, err := m.Read(value, 0); err != nil {
			return fmt.Errorf("control record of type %d at offset %d: %w", t, offset, err)
		}
		return nil
	}
	switch t {
	case protocol.ControlKRaftVersion:
		var m protocol.KRaftVersionRecord
		if err := read(&m); err != nil {
			return nil, err
		}
		if m.KRaftVersion < 0 || m.KRaftVersion > MaxKRaftVersion {
			return nil, fmt.Errorf("kraft.version %d at offset %d is not supported here (0 to %d): run a newer samsa on this node", m.KRaftVersion, offset, MaxKRaftVersion)
		}
		return &ControlRecord{Offset: offset, KRaftVersion: &m.KRaftVersion}, nil
	case protocol.ControlKRaftVoters:
		var m protocol.VotersRecord
		if err := read(&m); err != nil {
			return nil, err
		}
		set, err := VotersFromMessage(&m)
		if err != nil {
			return nil, fmt.Errorf("voters record at offset %d: %w", offset, err)
		}
		return &ControlRecord{Offset: offset, Voters: set}, nil
	}
	return nil, nil
}

// MaxKRaftVersion is the newest kraft.version this code runs.
const MaxKRaftVersion int16 = 1

// ParseBatch reads header and control records of one whole batch.
func ParseBatch(b record.Batch) (Batch, error) {
	p := Batch{Base: b.BaseOffset(), Last: b.LastOffset(), Epoch: b.LeaderEpoch(), IsControl: b.IsControl(), Data: b}
	if !p.IsControl {
		return p, nil
	}
	for r, err := range record.Records(b) {
		if err != nil {
			return p, fmt.Errorf("control batch at offset %d: %w", p.Base, err)
		}
		c, err := ParseControl(r.Offset, r.Key, r.Value)
		if err != nil {
			return p, err
		}
		if c != nil {
			p.Control = append(p.Control, *c)
		}
	}
	return p, nil
}

// ParseBatches cuts fetched records into whole, undamaged v2 batches. What follows the first bad or cut one is left out; cut says why
// unless it is only the end of a response (K-56).
func ParseBatches(records []byte) (batches []Batch, cut string) {
	for b, err := range record.Split(records) {
		if err != nil {
			return batches, err.Error()
		}
		if b.Magic() != 2 {
			return batches, fmt.Sprintf("batch at offset %d has format v%d", b.BaseOffset(), b.Magic())
		}
		if !b.ValidCRC() {
			return batches, fmt.Sprintf("batch at offset %d has a wrong checksum", b.BaseOffset())
		}
		p, err := ParseBatch(b)
		if err != nil {
			return batches, err.Error()
		}
		batches = append(batches, p)
	}
	return batches, ""
}
