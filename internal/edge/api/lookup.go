package api

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

// topicOf finds a topic by id (byID) or by name in the call's image. The error is
// UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION; the zero id names no topic (T-06).
func (c *call) topicOf(name string, id model.UUID, byID bool) (string, model.TopicID, error) {
	if byID {
		t, ok := c.img.Topics().ByID(model.TopicID(id))
		if !ok || id.IsZero() {
			return "", model.TopicID(id), kerr.UnknownTopicId
		}
		return t.Name, t.ID, nil
	}
	t, ok := c.img.Topics().ByName(name)
	if !ok {
		return name, model.TopicID{}, kerr.UnknownTopicOrPartition
	}
	return name, t.ID, nil
}

// endpointOf is where a live broker listens on the listener the request came in by.
func (c *call) endpointOf(id model.NodeID) (host string, port int32, rack *string, ok bool) {
	b, ok := c.img.Brokers().ByID(id)
	if !ok || b.Fenced {
		return "", 0, nil, false
	}
	e, ok := b.Endpoint(c.Conn.Listener)
	if !ok {
		return "", 0, nil, false
	}
	return e.Host, int32(e.Port), b.Rack, true
}

// answerPlace is a partition of a response: its topic's index and its own.
type answerPlace struct{ topic, partition int }
