package quorum

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/raft/node"
	"samsa/internal/wire/protocol"
)

// K-118: one queue, one goroutine: what is asked takes effect in the order it was asked, reads and writes alike,
// and what has waited too long is answered REQUEST_TIMED_OUT without effect.
func TestEventsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		lead(c, l, 5)
		addBroker(t, c, l, 1)
		l.auto.Store(true)
		gate := make(chan struct{})
		c.push(func() { <-gate })
		var order []int
		var waits []chan []int16
		late := make(chan int16, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			resp, _ := c.CreateTopics(ctx, Caller{Version: 7}, topics("late"))
			late <- resp.Topics[0].ErrorCode
		}()
		for i := range 50 {
			c.push(func() { order = append(order, i) })
			waits = append(waits, create(c, fmt.Sprint("t", i)))
		}
		time.Sleep(time.Second)
		close(gate)
		synctest.Wait()
		if !slices.IsSorted(order) || len(order) != 50 {
			t.Errorf("order %v", order)
		}
		for _, w := range waits {
			answered(t, w, 0)
		}
		if code := <-late; code != kerr.RequestTimedOut.Code {
			t.Errorf("the one that waited too long: error %d", code)
		}
		next := 0
		for _, b := range l.batches {
			for _, r := range b.Records {
				v, err := image.ReadFrame(r)
				if err != nil {
					t.Fatal(err)
				}
				if r, ok := v.Record.(*protocol.TopicRecord); ok {
					if r.Name != fmt.Sprint("t", next) {
						t.Fatalf("topic %s is the %dth of the log", r.Name, next)
					}
					next++
				}
			}
		}
		if next != 50 {
			t.Errorf("%d topics in the log", next)
		}
	})
}

// K-122: control batches that are committed do not move what the controller stands on; losing leadership with
// only such behind the last data is nothing special.
func TestControlBatchesMoveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		lead(c, l, 5)
		addBroker(t, c, l, 1)
		l.auto.Store(true)
		answered(t, create(c, "a"), 0)
		l.auto.Store(false)
		before := c.Image()
		for range 3 {
			l.control(5)
		}
		l.commit(-1)
		if c.Image() != before || !c.Active() {
			t.Fatalf("the image went from offset %d to %d", before.Offset(), c.Image().Offset())
		}
		c.HandleLeaderChange(node.LeaderAndEpoch{Leader: 2, Epoch: 6})
		synctest.Wait()
		if c.Image() != before || c.Active() {
			t.Fatal("losing leadership changed the image")
		}
		l.control(6)
		l.commit(-1)
		lead(c, l, 7)
		l.auto.Store(true)
		answered(t, create(c, "a", "b"), kerr.TopicAlreadyExists.Code, 0)
	})
}

// K-124: what an operator asks for is one batch, whole or absent, however many topics or resources it names.
func TestOperationsAreOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		lead(c, l, 5)
		addBroker(t, c, l, 1)
		l.auto.Store(true)
		c.push(func() { c.tasks = tasks{} }) // nothing else may write
		ctx := context.Background()
		value := "1000"
		var ids []model.UUID
		for _, op := range []struct {
			name    string
			records int
			do      func() int16
		}{
			{"create", 6, func() int16 {
				resp, _ := c.CreateTopics(ctx, Caller{Version: 7}, topics("a", "b", "c"))
				for _, topic := range resp.Topics {
					ids = append(ids, topic.TopicId)
				}
				return resp.Topics[0].ErrorCode
			}},
			{"grow", 4, func() int16 {
				resp, _ := c.CreatePartitions(ctx, Caller{}, &protocol.CreatePartitionsRequest{Topics: []protocol.CreatePartitionsRequestCreatePartitionsTopic{{Name: "a", Count: 3}, {Name: "b", Count: 3}}})
				return resp.Results[0].ErrorCode
			}},
			{"settings", 2, func() int16 {
				set := []protocol.IncrementalAlterConfigsRequestAlterableConfig{{Name: "retention.ms", Value: &value}}
				resp, _ := c.IncrementalAlterConfigs(ctx, Caller{}, &protocol.IncrementalAlterConfigsRequest{Resources: []protocol.IncrementalAlterConfigsRequestAlterConfigsResource{
					{ResourceType: 2, ResourceName: "a", Configs: set}, {ResourceType: 2, ResourceName: "b", Configs: set}}})
				return resp.Responses[0].ErrorCode
			}},
			{"delete", 3, func() int16 {
				var states []protocol.DeleteTopicsRequestDeleteTopicState
				for _, id := range ids {
					states = append(states, protocol.DeleteTopicsRequestDeleteTopicState{TopicId: id})
				}
				resp, _ := c.DeleteTopics(ctx, Caller{Version: 6}, &protocol.DeleteTopicsRequest{Topics: states})
				return resp.Responses[0].ErrorCode
			}},
		} {
			before := len(l.batches)
			if code := op.do(); code != 0 {
				t.Fatalf("%s: error %d", op.name, code)
			}
			if now := l.batches[before:]; len(now) != 1 || len(now[0].Records) != op.records {
				t.Errorf("%s: %d batches: %v", op.name, len(now), l.records())
			}
		}
		// One that does not fit into a batch is refused whole, and nobody loses leadership over it (K-123).
		before := len(l.batches)
		big := topics("big1", "big2")
		big.Topics[0].NumPartitions, big.Topics[1].NumPartitions = 6000, 6000
		resp, _ := c.CreateTopics(ctx, Caller{Version: 7}, big)
		for _, topic := range resp.Topics {
			if topic.ErrorCode != kerr.PolicyViolation.Code {
				t.Errorf("%s: error %d", topic.Name, topic.ErrorCode)
			}
		}
		if len(l.batches) != before || !c.Active() {
			t.Error("a request that is too large had an effect")
		}
	})
}

// K-129: a standby stands on the snapshot it was given and can lead at once; a snapshot for the active controller
// is a fault of the quorum.
func TestSnapshotOnAStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		donor, dl := newController(t, nil, nil)
		defer donor.Close()
		lead(donor, dl, 5)
		addBroker(t, donor, dl, 1)
		dl.auto.Store(true)
		answered(t, create(donor, "a"), 0)
		img := donor.Image()

		var fatal []error
		c, l := newController(t, nil, func(o *Options) { o.Fatal = func(err error) { fatal = append(fatal, err) } })
		defer c.Close()
		c.push(func() { c.loadSnapshot(img) })
		synctest.Wait()
		if d := image.Diff(img, c.Image()); !d.Empty() || c.Image().Offset() != img.Offset() {
			t.Fatalf("the standby stands on another image: %+v", d)
		}
		l.mu.Lock()
		l.end = img.Offset() + 1
		l.mu.Unlock()
		lead(c, l, 6)
		l.auto.Store(true)
		answered(t, create(c, "a", "b"), kerr.TopicAlreadyExists.Code, 0)
		if len(fatal) > 0 {
			t.Fatal(fatal)
		}
		c.push(func() { c.loadSnapshot(img) })
		synctest.Wait()
		if len(fatal) != 1 {
			t.Errorf("a snapshot for the active controller: %v", fatal)
		}
	})
}
