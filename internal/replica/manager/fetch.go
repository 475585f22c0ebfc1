package manager

import (
	"errors"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/replica/partition"
	"samsa/internal/storage/partlog"
)

// Fetch reads partitions in order within the limits of D-118 and calls done exactly once: inline if D-119 says
// at once, else when enough has come, something changed, or MaxWait is over.
//
// cancel gives up a parked request, its connection being closed: true means that done will never run, false that it has run
// or is running. It is nil when done has run before Fetch returned.
func (m *Manager) Fetch(req FetchRequest, done func([]FetchResult)) (cancel func() bool) {
	req.MaxBytes = min(req.MaxBytes, m.node.Load().Network.FetchMaxBytes)
	req.MinBytes = min(req.MinBytes, req.MaxBytes)
	results := make([]FetchResult, len(req.Partitions))
	rd := m.read(&req, results, true)
	for _, tp := range rd.moved {
		m.wake(tp)
	}
	if req.MaxWait <= 0 || req.NoWait || rd.readable == 0 || rd.now || rd.bytes >= int64(req.MinBytes) || m.closed.Load() {
		m.finish(&req, results, done)
		return nil
	}
	release(results)
	op := &fetchOp{m: m, req: req, results: results, done: done}
	keys := make([]model.TopicIDPartition, 0, rd.readable)
	for i := range req.Partitions {
		if req.Partitions[i].Known == nil {
			keys = append(keys, req.Partitions[i].Partition)
		}
	}
	w, finished := m.fetches.Add(op, req.MaxWait, keys...)
	if finished {
		return nil
	}
	return w.Cancel
}

func release(results []FetchResult) {
	for i := range results {
		if s := results[i].Records; s != nil {
			results[i].Records = nil
			s.Release()
		}
	}
}

// reading is what one pass over a request's partitions found.
type reading struct {
	bytes    int64
	readable int  // entries that were not refused as unknown
	now      bool // something that is told at once (D-119)
	moved    []model.TopicIDPartition
}

// read reads every partition of the request. first: a follower's position is taken note of.
func (m *Manager) read(req *FetchRequest, results []FetchResult, first bool) reading {
	var rd reading
	limit := int64(max(req.MaxBytes, 0))
	for i := range req.Partitions {
		p := &req.Partitions[i]
		res := &results[i]
		*res = FetchResult{HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1, PreferredReadReplica: model.NoNode,
			Diverging: DivergingEpoch{model.NoEpoch, -1}, Leader: noLeader}
		if p.Known != nil {
			res.Err = p.Known
			continue
		}
		moved, err := m.readOne(req, p, res, limit, rd.bytes == 0, first)
		if moved {
			rd.moved = append(rd.moved, p.Partition)
		}
		if err != nil {
			m.fetchRefused(req, p, res, err)
			if kerr.Of(res.Err) != kerr.UnknownTopicOrPartition {
				rd.readable++
				rd.now = true
			}
			continue
		}
		rd.readable++
		if res.Diverging.Epoch != model.NoEpoch || res.PreferredReadReplica != model.NoNode {
			rd.now = true
		}
		if res.Records != nil {
			n := int64(res.Records.Len())
			rd.bytes += n
			limit = max(0, limit-n)
		}
	}
	return rd
}

// fetchRefused fills the result of an entry that could not be read: everything -1 (D-120).
func (m *Manager) fetchRefused(req *FetchRequest, p *FetchPartition, res *FetchResult, err error) {
	err = storageError(err)
	if req.APIVersion <= 5 && errors.Is(err, kerr.KafkaStorageError) {
		err = kerr.NotLeaderOrFollower // which those clients know (J-124)
	}
	*res = FetchResult{Err: err, HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1, PreferredReadReplica: model.NoNode,
		Diverging: DivergingEpoch{model.NoEpoch, -1}, Leader: noLeader}
	k := kerr.Of(err)
	switch k {
	case kerr.NotLeaderOrFollower, kerr.FencedLeaderEpoch:
		res.Leader = m.currentLeader(p.Partition)
	case kerr.UnknownServerError:
		m.log.Error("cannot read", "topicID", p.Partition.Topic, "topic", p.Topic, "partition", p.Partition.Partition, "offset", p.FetchOffset, "err", err)
	}
	m.stats.notFetched(p.Topic, m.hosted.get(p.Partition) != nil, k)
}

// readOne reads one partition. moved: a high or low watermark moved, so that others are to be woken.
func (m *Manager) readOne(req *FetchRequest, p *FetchPartition, res *FetchResult, limit int64, minOne, first bool) (moved bool, err error) {
	r := m.hosted.get(p.Partition)
	if r == nil {
		return false, m.notHosted(p.Partition, p.Topic, wrongID(p.ByID, kerr.InconsistentTopicId))
	}
	if req.ReplicaID < 0 {
		moved, _, err = m.readFrom(r, req, p, res, limit, minOne, first)
		return moved, err
	}
	r.role.RLock() // the position belongs to the leadership it was read under
	moved, tell, err := m.readFrom(r, req, p, res, limit, minOne, first)
	r.role.RUnlock()
	if tell {
		r.tell()
	}
	return moved, err
}

// readFrom reads from one replica. tell: call r.tell when no lock is held.
func (m *Manager) readFrom(r *replica, req *FetchRequest, p *FetchPartition, res *FetchResult, limit int64, minOne, first bool) (moved, tell bool, err error) {
	follower := req.ReplicaID >= 0
	v := r.view.Load()
	if v.err != nil {
		return false, false, m.viewError(r, v, wrongID(p.ByID, kerr.InconsistentTopicId))
	}
	if err := v.checkEpoch(p.CurrentLeaderEpoch); err != nil {
		return false, false, err
	}
	// A follower serves consumers from version 11 on (KIP-392).
	if !v.leader && (follower || req.APIVersion < 11) {
		return false, false, kerr.NotLeaderOrFollower
	}
	if follower {
		if err := r.checkFollower(m, req, p); err != nil {
			return false, false, err
		}
	}
	if p.MaxBytes < 0 {
		return false, false, kerr.UnknownServerError.With("a limit of %d bytes", p.MaxBytes) // D-118
	}
	o := v.log.Offsets()
	if p.LastFetchedEpoch >= 0 {
		diverging, err := divergence(v.log, p, o)
		if err != nil {
			return false, false, err
		}
		if diverging.Epoch != model.NoEpoch {
			res.Diverging = diverging
			res.HighWatermark, res.LastStableOffset, res.LogStartOffset = o.HighWatermark, o.LastStable, o.LogStart
			return false, false, nil
		}
	}
	if err := readLog(v, req, p, res, o, min(int64(p.MaxBytes), limit), minOne); err != nil {
		return false, false, err
	}
	if !follower {
		if v.leader && v.others && req.Rack != "" && req.APIVersion >= 11 && m.rackAware() {
			m.preferReader(r, req, p, res)
		}
		return false, false, nil
	}
	if first {
		moved, tell = r.followerFetched(m, req, p, v, o.LogEnd)
	}
	return moved, tell, nil
}

// readLog reads what the reader may see.
func readLog(v *view, req *FetchRequest, p *FetchPartition, res *FetchResult, o partlog.Offsets, limit int64, minOne bool) error {
	upTo := o.HighWatermark
	switch {
	case req.ReplicaID >= 0, req.ReplicaID == debuggingReplica:
		upTo = o.LogEnd
	case req.Isolation == ReadCommitted:
		upTo = o.LastStable
	}
	committed := req.Isolation == ReadCommitted && req.ReplicaID < 0
	if p.FetchOffset < o.LogStart || p.FetchOffset > o.LogEnd {
		return kerr.OffsetOutOfRange
	}
	res.HighWatermark, res.LastStableOffset, res.LogStartOffset = o.HighWatermark, o.LastStable, o.LogStart
	if committed {
		res.Aborted = []AbortedTxn{}
	}
	if p.FetchOffset >= upTo || limit <= 0 && !minOne {
		return nil
	}
	got, err := v.log.Read(partlog.ReadRequest{Offset: p.FetchOffset, UpTo: upTo, MaxBytes: int(limit), MinOneBatch: minOne, Aborted: committed})
	if err != nil {
		return err
	}
	if got.FirstBatchIncomplete { // nobody can use part of a first batch
		if got.Records != nil {
			got.Records.Release()
		}
		return nil
	}
	res.Records = got.Records
	for _, a := range got.Aborted {
		res.Aborted = append(res.Aborted, AbortedTxn{a.ProducerID, a.FirstOffset})
	}
	return nil
}

// debuggingReplica reads like a follower and is none.
const debuggingReplica model.NodeID = -2

func (v *view) checkEpoch(epoch model.LeaderEpoch) error {
	switch {
	case epoch == model.NoEpoch, epoch == v.epoch:
		return nil
	case epoch < v.epoch:
		return kerr.FencedLeaderEpoch
	}
	return kerr.UnknownLeaderEpoch
}

// divergence tells where the history of a fetcher leaves this log's (D-121).
func divergence(log *partlog.Log, p *FetchPartition, o partlog.Offsets) (DivergingEpoch, error) {
	none := DivergingEpoch{model.NoEpoch, -1}
	epoch, end := log.EndOffsetForEpoch(p.LastFetchedEpoch)
	switch {
	case epoch == model.NoEpoch || end < 0:
		return none, kerr.OffsetOutOfRange
	case p.FetchOffset < o.LogStart:
		return none, kerr.OffsetOutOfRange
	case epoch < p.LastFetchedEpoch || end < p.FetchOffset:
		return DivergingEpoch{epoch, end}, nil
	}
	return none, nil
}

func (r *replica) checkFollower(m *Manager, req *FetchRequest, p *FetchPartition) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.core == nil {
		return errOffline
	}
	return r.core.CheckFollower(req.ReplicaID, req.ReplicaEpoch, p.CurrentLeaderEpoch != model.NoEpoch, m.brokers.Load())
}

// followerFetched records a follower's position (D-143).
func (r *replica) followerFetched(m *Manager, req *FetchRequest, p *FetchPartition, v *view, end int64) (moved, tell bool) {
	now := m.nowMs()
	r.mu.Lock()
	if r.view.Load() != v && r.view.Load().epoch != v.epoch || r.core == nil {
		r.mu.Unlock()
		return false, false
	}
	f := r.core.FollowerFetched(now, partition.FollowerFetch{ID: req.ReplicaID, Offset: p.FetchOffset, LogStart: p.LogStartOffset,
		BrokerEpoch: req.ReplicaEpoch, LeaderEnd: end}, m.brokers.Load())
	if f.HighMoved {
		tell = r.highMoved()
	}
	r.mu.Unlock()
	m.propose(r, f.Propose)
	return f.HighMoved || f.LowMoved, tell
}

// rackAware: consumers are sent to replicas in their rack.
func (m *Manager) rackAware() bool {
	return m.node.Load().Replica.SelectorClass == "org.apache.kafka.common.replica.RackAwareReplicaSelector"
}

// preferReader sends a consumer to a replica in its rack (D-128): no records, answered at once.
func (m *Manager) preferReader(r *replica, req *FetchRequest, p *FetchPartition, res *FetchResult) {
	b := m.brokers.Load()
	r.mu.Lock()
	id := model.NoNode
	if r.core != nil {
		id = r.core.PreferredReader(req.Rack, p.FetchOffset, b.rack, b)
	}
	r.mu.Unlock()
	if id == model.NoNode {
		return
	}
	res.PreferredReadReplica = id
	if res.Records != nil {
		res.Records.Release()
		res.Records = nil
	}
}

// fetchOp is a fetch in the purgatory.
type fetchOp struct {
	m       *Manager
	req     FetchRequest
	results []FetchResult
	done    func([]FetchResult)
}

// TryComplete: enough bytes, or something that is told at once (D-119).
func (o *fetchOp) TryComplete() bool {
	var bytes int64
	for i := range o.req.Partitions {
		p := &o.req.Partitions[i]
		if p.Known != nil {
			continue
		}
		r := o.m.hosted.get(p.Partition)
		if r == nil {
			continue // never was here: unknown partitions do not cut the wait
		}
		v := r.view.Load()
		if v.err != nil || v.checkEpoch(p.CurrentLeaderEpoch) != nil || !v.leader && (o.req.ReplicaID >= 0 || o.req.APIVersion < 11) {
			return true
		}
		at := v.log.Offsets()
		end := at.HighWatermark
		switch {
		case o.req.ReplicaID >= 0, o.req.ReplicaID == debuggingReplica:
			end = at.LogEnd
		case o.req.Isolation == ReadCommitted:
			end = at.LastStable
		}
		switch {
		case p.FetchOffset < at.LogStart || p.FetchOffset > at.LogEnd: // deleted or truncated below it
			return true
		case end <= p.FetchOffset:
			continue
		case o.req.MinBytes <= 1, p.FetchOffset < v.log.ActiveSegmentBase(): // an older segment: answer now
			return true
		}
		n, err := v.log.BytesBetween(p.FetchOffset, end)
		if err != nil {
			return true
		}
		if bytes += min(n, int64(p.MaxBytes)); bytes >= int64(o.req.MinBytes) {
			return true
		}
	}
	return false
}

func (o *fetchOp) Complete(bool) {
	o.m.read(&o.req, o.results, false)
	o.m.finish(&o.req, o.results, o.done)
}

// finish counts and hands the answer over.
func (m *Manager) finish(req *FetchRequest, results []FetchResult, done func([]FetchResult)) {
	for i := range results {
		if results[i].Err == nil {
			n := 0
			if results[i].Records != nil {
				n = results[i].Records.Len()
			}
			m.stats.fetched(req.Partitions[i].Topic, n, req.ReplicaID >= 0)
		}
	}
	done(results)
}
