package controller

import (
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// AlterPartition lets a leader change its ISR (K-152, K-153, K-155). Each partition stands for itself.
func (c *Controller) AlterPartition(d *Draft, caller Caller, r *protocol.AlterPartitionRequest) *protocol.AlterPartitionResponse {
	resp := new(protocol.AlterPartitionResponse)
	resp.Default()
	if len(r.Topics) == 0 {
		return resp // answered unchecked, as Kafka does
	}
	if _, err := checkBrokerEpoch(d.Image(), r.BrokerId, r.BrokerEpoch); err != nil {
		resp.ErrorCode = kerr.Code(err)
		return resp
	}
	v := c.view(d.Image())
	// A partition named twice is judged on what its first mention made of it.
	altered := map[model.TopicIDPartition]*image.Partition{}
	for _, rt := range r.Topics {
		out := protocol.AlterPartitionResponseTopicData{TopicId: rt.TopicId}
		t, known := v.img.Topics().ByID(model.TopicID(rt.TopicId))
		for i := range rt.Partitions {
			rp := &rt.Partitions[i]
			var answer protocol.AlterPartitionResponsePartitionData
			answer.PartitionIndex = rp.PartitionIndex
			if !known {
				answer.ErrorCode = kerr.UnknownTopicId.Code
				out.Partitions = append(out.Partitions, answer)
				continue
			}
			key := model.TopicIDPartition{Topic: t.ID, Partition: rp.PartitionIndex}
			p := altered[key]
			if p == nil {
				p, _ = t.Partition(rp.PartitionIndex)
			}
			next, err := c.alterPartition(d, v, caller, model.NodeID(r.BrokerId), t, p, rp)
			if err != nil {
				answer.ErrorCode = kerr.Code(err)
			} else {
				answer.LeaderId, answer.LeaderEpoch = int32(next.Leader), int32(next.LeaderEpoch)
				answer.Isr, answer.LeaderRecoveryState = image.IDs(next.ISR), next.LeaderRecoveryState
				answer.PartitionEpoch = int32(next.PartitionEpoch)
			}
			if next != nil {
				altered[key] = next
			}
			out.Partitions = append(out.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// alterPartition returns the partition afterwards; with NEW_LEADER_ELECTED both are set.
func (c *Controller) alterPartition(d *Draft, v *view, caller Caller, sender model.NodeID, t *image.Topic, p *image.Partition, r *protocol.AlterPartitionRequestPartitionData) (*image.Partition, error) {
	states := r.NewIsrWithEpochs
	if caller.Version < 3 {
		states = nil
		for _, id := range r.NewIsr {
			states = append(states, protocol.AlterPartitionRequestBrokerState{BrokerId: id, BrokerEpoch: -1})
		}
	}
	if err := checkAlterPartition(v, sender, p, r, states); err != nil {
		return nil, err
	}
	ch := v.change(t, r.PartitionIndex, p, nil)
	if v.uncleanAllowed(t) {
		ch.election = electUnclean
	}
	ch.isr = nil
	for _, s := range states {
		ch.isr = append(ch.isr, model.NodeID(s.BrokerId))
	}
	ch.recovery = r.LeaderRecoveryState
	rec := ch.build()
	if rec == nil {
		return p, nil
	}
	next, err := image.MergePartition(p, rec)
	if err != nil {
		return nil, kerr.UnknownServerError.Wrap(err)
	}
	d.add(rec, v.mv.PartitionRecordVersion())
	if rec.Leader != image.NoLeaderChange && rec.Leader != int32(sender) {
		return next, kerr.NewLeaderElected // a reassignment ended and took the lead from the sender
	}
	return next, nil
}

// checkAlterPartition has the order of K-152.
func checkAlterPartition(v *view, sender model.NodeID, p *image.Partition, r *protocol.AlterPartitionRequestPartitionData, isr []protocol.AlterPartitionRequestBrokerState) error {
	switch {
	case p == nil:
		return kerr.UnknownTopicOrPartition
	case r.LeaderEpoch > int32(p.LeaderEpoch) || r.PartitionEpoch > int32(p.PartitionEpoch):
		return kerr.NotController // the sender knows more: somebody else is in charge
	case r.LeaderEpoch < int32(p.LeaderEpoch):
		return kerr.FencedLeaderEpoch
	case sender != p.Leader:
		return kerr.InvalidRequest
	case r.PartitionEpoch < int32(p.PartitionEpoch):
		return kerr.InvalidUpdateVersion
	}
	leader := false
	for i, s := range isr {
		id := model.NodeID(s.BrokerId)
		twice := slices.ContainsFunc(isr[:i], func(o protocol.AlterPartitionRequestBrokerState) bool { return o.BrokerId == s.BrokerId })
		if twice || !p.IsReplica(id) {
			return kerr.InvalidRequest
		}
		leader = leader || id == p.Leader
	}
	switch {
	case !leader:
		return kerr.InvalidRequest
	case r.LeaderRecoveryState != image.RecoveryRecovered && r.LeaderRecoveryState != image.RecoveryRecovering:
		return kerr.InvalidRequest
	case r.LeaderRecoveryState == image.RecoveryRecovering && len(isr) > 1:
		return kerr.InvalidRequest
	case p.LeaderRecoveryState == image.RecoveryRecovered && r.LeaderRecoveryState == image.RecoveryRecovering:
		return kerr.InvalidRequest
	}
	for _, s := range isr {
		b, ok := v.img.Brokers().ByID(model.NodeID(s.BrokerId))
		if !ok || !b.Active() || s.BrokerEpoch != -1 && s.BrokerEpoch != b.Epoch {
			return kerr.IneligibleReplica
		}
		// A replica whose directory is dead cannot be added (J-137).
		if dir, _ := p.Directory(b.ID); !contains(p.ISR, b.ID) && !b.HasOnlineDir(dir) {
			return kerr.IneligibleReplica
		}
	}
	return nil
}
