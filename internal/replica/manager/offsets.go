package manager

import (
	"context"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/storage/partlog"
)

// The special timestamps of ListOffsets, and the version that brought each (D-131).
const (
	latestTimestamp        int64 = -1
	earliestTimestamp      int64 = -2
	maxTimestamp           int64 = -3 // v7
	earliestLocalTimestamp int64 = -4 // v8
	latestTieredTimestamp  int64 = -5 // v9
	earliestPendingUpload  int64 = -6 // v11
)

func timestampSupported(ts int64, version int16) bool {
	switch ts {
	case latestTimestamp, earliestTimestamp:
		return true
	case maxTimestamp:
		return version >= 7
	case earliestLocalTimestamp:
		return version >= 8
	case latestTieredTimestamp:
		return version >= 9
	case earliestPendingUpload:
		return version >= 11
	}
	return ts >= 0
}

// ListOffsets answers offset questions, at the same index.
func (m *Manager) ListOffsets(req ListOffsetsRequest) []ListOffsetsResult {
	results := make([]ListOffsetsResult, len(req.Partitions))
	for i := range req.Partitions {
		p := &req.Partitions[i]
		res := ListOffsetsResult{Offset: -1, Timestamp: -1, LeaderEpoch: model.NoEpoch, Leader: noLeader}
		switch {
		case repeated(req.Partitions, i):
			res.Err = kerr.InvalidRequest
		case !timestampSupported(p.Timestamp, req.APIVersion):
			res.Err = kerr.UnsupportedVersion
		case req.Isolation != ReadUncommitted && req.Isolation != ReadCommitted:
			res.Err = kerr.UnknownServerError // D-132, D-222
		default:
			if err := m.listOffset(&req, p, &res); err != nil {
				res = ListOffsetsResult{Err: storageError(err), Offset: -1, Timestamp: -1, LeaderEpoch: model.NoEpoch, Leader: noLeader}
			}
		}
		if k := kerr.Of(res.Err); k == kerr.NotLeaderOrFollower || k == kerr.FencedLeaderEpoch {
			res.Leader = m.currentLeader(p.Partition)
		}
		results[i] = res
	}
	return results
}

// repeated: another entry names the same partition (D-132).
func repeated(all []ListOffsetsPartition, at int) bool {
	for i := range all {
		if i != at && all[i].Partition == all[at].Partition {
			return true
		}
	}
	return false
}

func (m *Manager) listOffset(req *ListOffsetsRequest, p *ListOffsetsPartition, res *ListOffsetsResult) error {
	r := m.hosted.get(p.Partition)
	if r == nil {
		return m.notHosted(p.Partition, p.Topic, kerr.UnknownTopicOrPartition)
	}
	v := r.view.Load()
	if v.err != nil {
		return m.viewError(r, v, kerr.UnknownTopicOrPartition)
	}
	if err := v.checkEpoch(p.CurrentLeaderEpoch); err != nil {
		return err
	}
	if !v.leader && req.ReplicaID != debuggingReplica {
		return kerr.NotLeaderOrFollower
	}
	o := v.log.Offsets()
	client := req.ReplicaID == model.NoNode
	limit := o.LogEnd
	switch {
	case client && req.Isolation == ReadCommitted:
		limit = o.LastStable
	case client:
		limit = o.HighWatermark
	}
	// A fresh leader whose followers have not yet come to the start of its epoch does not know what is committed (D-133).
	fresh := client && v.leader && v.epochAt > o.HighWatermark
	if p.Timestamp == latestTimestamp {
		if fresh {
			return offsetNotAvailable(req.APIVersion)
		}
		res.Offset, res.LeaderEpoch = limit, v.epoch
		return nil
	}
	var at partlog.TimestampOffset
	var found bool
	var err error
	switch p.Timestamp {
	case earliestTimestamp, earliestLocalTimestamp:
		res.Offset, res.LeaderEpoch = o.LogStart, v.log.EpochForOffset(o.LogStart)
		return nil
	case latestTieredTimestamp, earliestPendingUpload: // nothing is tiered
		return nil
	case maxTimestamp:
		at, found, err = v.log.MaxTimestamp()
	default:
		at, found, err = v.log.OffsetForTimestamp(p.Timestamp)
	}
	switch {
	case err != nil:
		return err
	case found && at.Offset < limit:
		res.Offset, res.Timestamp, res.LeaderEpoch = at.Offset, at.Timestamp, at.Epoch
	case fresh:
		return offsetNotAvailable(req.APIVersion)
	}
	if req.APIVersion < 4 {
		res.LeaderEpoch = model.NoEpoch
	}
	return nil
}

func offsetNotAvailable(version int16) error {
	if version < 5 {
		return kerr.LeaderNotAvailable
	}
	return kerr.OffsetNotAvailable
}

// OffsetForLeaderEpoch answers where epochs end (D-134), at the same index.
func (m *Manager) OffsetForLeaderEpoch(reqs []EpochEndRequest) []EpochEndResult {
	results := make([]EpochEndResult, len(reqs))
	for i := range reqs {
		q := &reqs[i]
		results[i] = EpochEndResult{LeaderEpoch: model.NoEpoch, EndOffset: -1}
		r := m.hosted.get(q.Partition)
		if r == nil {
			results[i].Err = m.notHosted(q.Partition, q.Topic, kerr.UnknownTopicOrPartition)
			continue
		}
		v := r.view.Load()
		switch {
		case v.err != nil:
			results[i].Err = m.viewError(r, v, kerr.UnknownTopicOrPartition)
		case v.checkEpoch(q.CurrentLeaderEpoch) != nil:
			results[i].Err = v.checkEpoch(q.CurrentLeaderEpoch)
		case !v.leader:
			results[i].Err = kerr.NotLeaderOrFollower
		default:
			results[i].LeaderEpoch, results[i].EndOffset = v.log.EndOffsetForEpoch(q.LeaderEpoch)
		}
	}
	return results
}

// DescribeProducers lists the producers known to one partition, on leader and follower alike (D-88).
func (m *Manager) DescribeProducers(tp model.TopicIDPartition) ([]ProducerState, error) {
	r := m.hosted.get(tp)
	if r == nil {
		return nil, m.notHosted(tp, "", kerr.UnknownTopicOrPartition)
	}
	v := r.view.Load()
	if v.err != nil {
		return nil, m.viewError(r, v, kerr.UnknownTopicOrPartition)
	}
	all := v.log.Producers()
	out := make([]ProducerState, 0, len(all))
	for i := range all {
		p := &all[i]
		s := ProducerState{ProducerID: p.ID, ProducerEpoch: int32(p.Epoch), LastSequence: -1, LastTimestamp: p.LastTimestamp,
			CoordinatorEpoch: p.CoordinatorEpoch, TxnStartOffset: p.TxnFirstOffset}
		if n := len(p.Batches); n > 0 {
			s.LastSequence = p.Batches[n-1].LastSequence
		}
		out = append(out, s)
	}
	return out, nil
}

// DescribeLogDirs describes every entry of log.dirs, in configured order (J-156..J-160). want selects replicas (nil: all).
// Ctx is looked at between directories only.
func (m *Manager) DescribeLogDirs(ctx context.Context, want func(topic string, partition int32) bool) []DirDescription {
	var out []DirDescription
	for _, d := range m.logs.Dirs() {
		if ctx.Err() != nil {
			return out
		}
		desc := DirDescription{Path: d.Path, ID: d.ID, TotalBytes: d.TotalBytes, UsableBytes: d.UsableBytes, Cordoned: d.Cordoned}
		if d.Err != nil {
			desc.Err = kerr.KafkaStorageError
		}
		for _, l := range d.Logs {
			if want == nil || want(l.Topic, l.Partition.Partition) {
				desc.Replicas = append(desc.Replicas, ReplicaDescription{Partition: l.Partition, Topic: l.Topic, Size: l.Bytes, OffsetLag: l.OffsetLag, Future: l.Future})
			}
		}
		out = append(out, desc)
	}
	return out
}
