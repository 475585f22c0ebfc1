package group

import (
	"samsa/internal/wire/protocol"
)

// Versions that are written (D-173).
const (
	groupValueVersion        = 3
	offsetValueVersion       = 4
	offsetValueVersionExpiry = 1 // with an explicit expiry
)

// groupKey is the key of a group's record.
func groupKey(id string) []byte {
	return must(protocol.AppendRecordKey(nil, &protocol.GroupMetadataKey{Group: id}))
}

func offsetKey(k offsetID) []byte {
	return must(protocol.AppendRecordKey(nil, &protocol.OffsetCommitKey{Group: k.group, Topic: k.topic, Partition: k.partition}))
}

func tombstone(key []byte) Record { return Record{Key: key} }

// groupRecord is a group as it is, with the given assignments instead of its members' own if not nil.
func groupRecord(g *classic, assignment map[string][]byte) Record {
	v := protocol.Make[protocol.GroupMetadataValue]()
	v.Generation, v.Protocol, v.Leader, v.CurrentStateTimestamp = g.generation, g.protocol, g.leader, g.since
	if g.protocolType != nil {
		v.ProtocolType = *g.protocolType
	}
	v.Members = make([]protocol.GroupMetadataValueMemberMetadata, len(g.members))
	for i, m := range g.members {
		out := &v.Members[i]
		out.MemberId, out.GroupInstanceId, out.ClientId, out.ClientHost = m.id, m.instance, m.clientID, m.host
		out.RebalanceTimeout, out.SessionTimeout = m.rebalance, m.timeout
		out.Assignment = m.assignment
		if assignment != nil {
			out.Assignment = assignment[m.id]
		}
		if out.Assignment == nil {
			out.Assignment = []byte{}
		}
		out.Subscription = []byte{}
		if g.protocol != nil {
			if b := m.metadata(*g.protocol); b != nil {
				out.Subscription = b
			}
		}
	}
	return Record{groupKey(g.id), must(protocol.AppendVersioned(nil, groupValueVersion, &v))}
}

func offsetRecord(k offsetID, o *Offset) Record {
	v := protocol.Make[protocol.OffsetCommitValue]()
	v.Offset, v.LeaderEpoch, v.Metadata, v.CommitTimestamp, v.ExpireTimestamp, v.TopicId = o.Offset, o.LeaderEpoch, o.Metadata, o.CommitMs, -1, o.TopicID
	version := int16(offsetValueVersion)
	if o.ExpireMs != noExpiry {
		version = offsetValueVersionExpiry
		v.ExpireTimestamp = o.ExpireMs
		v.LeaderEpoch, v.TopicId = -1, noTopic
	}
	return Record{offsetKey(k), must(protocol.AppendVersioned(nil, version, &v))}
}

// must is for encodings that fail only for strings longer than a request can carry them.
func must(b []byte, err error) []byte {
	if err != nil {
		panic("group: a record cannot be encoded: " + err.Error())
	}
	return b
}
