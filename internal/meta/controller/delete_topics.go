package controller

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// DeleteTopics removes topics by name or id (K-151, T-45 to T-50). The answers come in random order,
// so that a place tells nothing of what the caller may not see (T-47).
func (c *Controller) DeleteTopics(d *Draft, caller Caller, r *protocol.DeleteTopicsRequest) *protocol.DeleteTopicsResponse {
	resp := new(protocol.DeleteTopicsResponse)
	resp.Default()
	d.atomic = true
	img := d.Image()
	answer := func(name *string, id model.UUID, err error) {
		resp.Responses = append(resp.Responses, protocol.DeleteTopicsResponseDeletableTopicResult{
			Name: name, TopicId: id, ErrorCode: kerr.Code(err), ErrorMessage: message(err),
		})
	}
	if !c.static.DeleteTopics {
		err := error(kerr.TopicDeletionDisabled)
		if caller.Version < 3 {
			err = kerr.InvalidRequest.With("This version does not support topic deletion.")
		}
		return DeleteTopicsError(r, err)
	}

	// What is named once, in order; what is named twice is answered once and not deleted.
	var names []string
	var ids []model.UUID
	nameCount, idCount := map[string]int{}, map[model.UUID]int{}
	addName := func(name string) {
		if nameCount[name]++; nameCount[name] == 1 {
			names = append(names, name)
		}
	}
	for _, name := range r.TopicNames {
		addName(name)
	}
	for _, t := range r.Topics {
		switch {
		case t.Name == nil && t.TopicId.IsZero():
			answer(nil, model.UUID{}, kerr.InvalidRequest.With("Neither topic name nor id were specified."))
		case t.Name == nil:
			if idCount[t.TopicId]++; idCount[t.TopicId] == 1 {
				ids = append(ids, t.TopicId)
			}
		case t.TopicId.IsZero():
			addName(*t.Name)
		default:
			answer(t.Name, t.TopicId, kerr.InvalidRequest.With("You may not specify both topic name and topic id."))
		}
	}

	type target struct {
		topic  *image.Topic
		byName bool
	}
	var targets []target
	chosen := map[model.UUID]bool{} // named by id, or by name already
	cluster := caller.may(OpDelete, OnCluster, clusterName)
	mayDelete := func(name string) bool { return cluster || caller.may(OpDelete, OnTopic, name) }
	mayDescribe := func(name string) bool { return cluster || caller.may(OpDescribe, OnTopic, name) }

	for _, id := range ids {
		if idCount[id] > 1 {
			answer(nil, id, kerr.InvalidRequest.With("Duplicate topic id."))
			chosen[id] = true
			continue
		}
		t, ok := img.Topics().ByID(model.TopicID(id))
		switch {
		case !ok:
			answer(nil, id, kerr.UnknownTopicId)
		case mayDelete(t.Name):
			chosen[id] = true
			targets = append(targets, target{topic: t})
		case mayDescribe(t.Name):
			answer(&t.Name, id, kerr.TopicAuthorizationFailed)
		default:
			answer(nil, id, kerr.TopicAuthorizationFailed)
		}
	}
	refused := map[model.UUID]bool{}
	for _, name := range names {
		if nameCount[name] > 1 {
			answer(&name, model.UUID{}, kerr.InvalidRequest.With("Duplicate topic name."))
			continue
		}
		t, ok := img.Topics().ByName(name)
		switch {
		case !mayDescribe(name):
			answer(&name, model.UUID{}, kerr.TopicAuthorizationFailed)
		case !ok:
			answer(&name, model.UUID{}, kerr.UnknownTopicOrPartition)
		case !mayDelete(name):
			answer(&name, model.UUID{}, kerr.TopicAuthorizationFailed)
		case chosen[model.UUID(t.ID)]:
			refused[model.UUID(t.ID)] = true
			answer(&name, model.UUID(t.ID), kerr.InvalidRequest.With("The provided topic name maps to an ID that was already supplied."))
		default:
			targets = append(targets, target{topic: t, byName: true})
		}
	}
	for _, t := range targets {
		id := model.UUID(t.topic.ID)
		if refused[id] {
			continue
		}
		name := t.topic.Name
		if len(d.records) >= MaxRecordsPerUserOp {
			answer(&name, id, errTooLarge) // what fits is deleted (T-50)
			continue
		}
		if err := caller.mutate(int(t.topic.Count())); err != nil {
			answer(&name, id, err)
			continue
		}
		d.add(&protocol.RemoveTopicRecord{TopicId: id}, 0)
		answer(&name, id, nil)
	}
	c.rng.Shuffle(len(resp.Responses), func(i, j int) {
		resp.Responses[i], resp.Responses[j] = resp.Responses[j], resp.Responses[i]
	})
	return resp
}

// DeleteTopicsError is the answer when nothing of the request could be done.
func DeleteTopicsError(r *protocol.DeleteTopicsRequest, err error) *protocol.DeleteTopicsResponse {
	resp := new(protocol.DeleteTopicsResponse)
	resp.Default()
	add := func(name *string, id model.UUID) {
		resp.Responses = append(resp.Responses, protocol.DeleteTopicsResponseDeletableTopicResult{
			Name: name, TopicId: id, ErrorCode: kerr.Code(err), ErrorMessage: message(err),
		})
	}
	for _, name := range r.TopicNames {
		add(&name, model.UUID{})
	}
	for _, t := range r.Topics {
		add(t.Name, t.TopicId)
	}
	return resp
}

// DeleteTopicsUnknown is the answer of a standby that knows none of the topics named (T-152); ok is
// false if it knows one.
func DeleteTopicsUnknown(img *image.Image, r *protocol.DeleteTopicsRequest) (resp *protocol.DeleteTopicsResponse, ok bool) {
	for _, name := range r.TopicNames {
		if _, known := img.Topics().ByName(name); known {
			return nil, false
		}
	}
	for _, t := range r.Topics {
		known := false
		if t.Name != nil {
			_, known = img.Topics().ByName(*t.Name)
		} else {
			_, known = img.Topics().ByID(model.TopicID(t.TopicId))
		}
		if known {
			return nil, false
		}
	}
	resp = DeleteTopicsError(r, kerr.UnknownTopicOrPartition)
	for i := range resp.Responses {
		if resp.Responses[i].Name == nil {
			resp.Responses[i].ErrorCode, resp.Responses[i].ErrorMessage = kerr.UnknownTopicId.Code, message(kerr.UnknownTopicId)
		}
	}
	return resp, true
}
