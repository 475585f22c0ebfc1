package controller

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// CreatePartitions adds partitions to topics, each topic for itself (K-150).
func (c *Controller) CreatePartitions(d *Draft, caller Caller, r *protocol.CreatePartitionsRequest) *protocol.CreatePartitionsResponse {
	resp := new(protocol.CreatePartitionsResponse)
	resp.Default()
	d.atomic = true
	v := c.view(d.Image())
	times := map[string]int{}
	for _, t := range r.Topics {
		times[t.Name]++
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		var err error
		switch n := times[t.Name]; {
		case n < 0:
			continue // answered
		case n > 1:
			times[t.Name] = -1
			err = kerr.InvalidRequest.With("Duplicate topic name.")
		case !caller.may(OpAlter, OnTopic, t.Name):
			err = kerr.TopicAuthorizationFailed
		default:
			mark := d.mark()
			if err = c.createPartitions(d, v, caller, t); err != nil {
				d.undo(mark)
			}
		}
		resp.Results = append(resp.Results, protocol.CreatePartitionsResponseCreatePartitionsTopicResult{
			Name: t.Name, ErrorCode: kerr.Code(err), ErrorMessage: ownMessage(err),
		})
	}
	if d.tooLarge() {
		return CreatePartitionsError(r, errTooLarge)
	}
	if r.ValidateOnly {
		d.discard()
	}
	return resp
}

// CreatePartitionsError is the answer when nothing of the request could be done.
func CreatePartitionsError(r *protocol.CreatePartitionsRequest, err error) *protocol.CreatePartitionsResponse {
	resp := new(protocol.CreatePartitionsResponse)
	resp.Default()
	for _, t := range r.Topics {
		resp.Results = append(resp.Results, protocol.CreatePartitionsResponseCreatePartitionsTopicResult{
			Name: t.Name, ErrorCode: kerr.Code(err), ErrorMessage: message(err),
		})
	}
	return resp
}

func (c *Controller) createPartitions(d *Draft, v *view, caller Caller, r *protocol.CreatePartitionsRequestCreatePartitionsTopic) error {
	t, ok := v.img.Topics().ByName(r.Name)
	if !ok {
		return kerr.UnknownTopicOrPartition
	}
	have := t.Count()
	if r.Count == have {
		return kerr.InvalidPartitions.With("Topic already has %d partition(s).", have)
	}
	if r.Count < have {
		return kerr.InvalidPartitions.With("The topic %s currently has %d partition(s); %d would not be an increase.", r.Name, have, r.Count)
	}
	additional := int(r.Count) - int(have)
	if additional > MaxPartitionsPerOp { // before anything of that size is built
		return kerr.PolicyViolation.With("Excessively large number of additional partitions per request.")
	}
	if r.Assignments != nil && len(r.Assignments) != additional {
		return kerr.InvalidReplicaAssignment.With("Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", additional, len(r.Assignments))
	}
	if err := caller.mutate(additional); err != nil {
		return err
	}
	first, ok := t.Partition(0)
	if !ok {
		return kerr.UnknownServerError.With("topic %s has no partition 0", r.Name)
	}
	factor := len(first.Replicas)
	var place *placer
	if r.Assignments == nil {
		place = newPlacer(c.rng, v.img.Brokers())
		if err := place.check(factor); err != nil {
			return err
		}
	}
	for i := range additional {
		var replicas []model.NodeID
		if place != nil {
			replicas = place.next(factor)
		} else {
			replicas = nodeIDs(r.Assignments[i].BrokerIds)
			if err := v.checkManual(replicas, factor); err != nil {
				return err
			}
		}
		p := v.newPartition(v.assign(replicas))
		if p == nil && place == nil {
			return kerr.InvalidReplicaAssignment.With("All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", int(have)+i)
		}
		if p == nil {
			return kerr.InvalidReplicationFactor.With("Unable to replicate the partition %d time(s): All brokers are currently fenced or in controlled shutdown.", factor)
		}
		d.append(image.PartitionRecord(t.ID, have+int32(i), p, v.mv, v.elr))
	}
	return nil
}
