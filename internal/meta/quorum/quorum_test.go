package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/raft/node"
	"samsa/internal/wire/protocol"
)

// fakeLog is a metadata log in memory whose commits are asked for.
type fakeLog struct {
	t         testing.TB
	c         *Controller
	mu        sync.Mutex
	end       int64
	batches   []node.Batch // appended, committed or not
	committed int          // how many of them
	refuse    error        // of the next append
	bootstrap []node.Record
	resigned  []int32
	auto      atomic.Bool // commits at once
}

func (l *fakeLog) AppendAt(epoch int32, base int64, batches [][]node.Record) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refuse; err != nil {
		l.refuse = nil
		return 0, err
	}
	if base != l.end {
		return 0, fmt.Errorf("%w: it ends at %d, not at %d", node.ErrMoved, l.end, base)
	}
	for _, records := range batches {
		b := node.Batch{BaseOffset: l.end, LastOffset: l.end + int64(len(records)) - 1, Epoch: epoch, AppendTimestamp: time.Now().UnixMilli(), SizeInBytes: 100, Records: records}
		l.end = b.LastOffset + 1
		l.batches = append(l.batches, b)
	}
	if l.auto.Load() {
		l.deliver(len(l.batches) - l.committed)
	}
	return l.end - 1, nil
}

// deliver commits the next n batches.
func (l *fakeLog) deliver(n int) {
	if n > 0 {
		l.c.HandleCommit(append([]node.Batch(nil), l.batches[l.committed:l.committed+n]...))
		l.committed += n
	}
}

func (l *fakeLog) commit(n int) {
	l.mu.Lock()
	if n < 0 {
		n = len(l.batches) - l.committed
	}
	l.deliver(n)
	l.mu.Unlock()
	synctest.Wait()
}

// control appends a control batch, as the quorum does by itself.
func (l *fakeLog) control(epoch int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, node.Batch{BaseOffset: l.end, LastOffset: l.end, Epoch: epoch, Control: true})
	l.end++
}

func (l *fakeLog) NextOffset(int32) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end, nil
}
func (l *fakeLog) Resign(epoch int32) { l.resigned = append(l.resigned, epoch) }
func (l *fakeLog) Bootstrap() ([]node.Record, string, error) {
	return l.bootstrap, "test", nil
}
func (l *fakeLog) KRaftVersion() int16 { return 1 }

func (l *fakeLog) records() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, b := range l.batches {
		for _, r := range b.Records {
			v, err := image.ReadFrame(r)
			if err != nil {
				l.t.Fatal(err)
			}
			out = append(out, strings.TrimSuffix(image.RecordName(v.Record), "Record"))
		}
	}
	return out
}

func (l *fakeLog) count(name string) int {
	n := 0
	for _, r := range l.records() {
		if r == name {
			n++
		}
	}
	return n
}

func frame(t testing.TB, r image.Record) node.Record {
	b, err := image.AppendFrame(nil, image.Versioned{Record: r})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newController(t testing.TB, props map[string]string, opts func(*Options)) (*Controller, *fakeLog) {
	t.Helper()
	all := map[string]string{
		"process.roles": "broker,controller", "node.id": "1", "controller.quorum.voters": "1@localhost:9093",
		"listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093", "controller.listener.names": "CONTROLLER",
	}
	for k, v := range props {
		all[k] = v
	}
	cfg, err := config.FromMap(all)
	if err != nil {
		t.Fatal(err)
	}
	log := &fakeLog{t: t, bootstrap: []node.Record{
		frame(t, &protocol.FeatureLevelRecord{Name: image.FeatureMetadataVersion, FeatureLevel: 33}),
		frame(t, &protocol.FeatureLevelRecord{Name: image.FeatureELR, FeatureLevel: 1}),
	}}
	o := Options{NodeID: 1, ClusterID: "cluster", Config: cfg, Log: log, Rand: rand.New(rand.NewPCG(1, 1)), Fatal: func(err error) { t.Errorf("fatal: %v", err) }}
	if opts != nil {
		opts(&o)
	}
	c := New(o)
	log.c = c
	c.Start()
	return c, log
}

// lead makes c active in an epoch.
func lead(c *Controller, l *fakeLog, epoch int32) {
	l.control(epoch)
	l.commit(-1)
	c.HandleLeaderChange(node.LeaderAndEpoch{Leader: 1, Epoch: epoch})
	synctest.Wait()
	l.commit(-1)
}

func addBroker(t testing.TB, c *Controller, l *fakeLog, id int32) int64 {
	t.Helper()
	r := new(protocol.BrokerRegistrationRequest)
	r.Default()
	r.BrokerId, r.ClusterId, r.IncarnationId, r.LogDirs = id, "cluster", model.RandomUUID(), []model.UUID{model.RandomUUID()}
	r.Features = []protocol.BrokerRegistrationRequestFeature{{Name: image.FeatureMetadataVersion, MinSupportedVersion: 7, MaxSupportedVersion: 33}, {Name: image.FeatureELR, MaxSupportedVersion: 1}, {Name: image.FeatureKRaftVersion, MaxSupportedVersion: 1}}
	auto := l.auto.Swap(true)
	defer l.auto.Store(auto)
	resp, _ := c.RegisterBroker(context.Background(), Caller{Version: 4}, r)
	if resp.ErrorCode != 0 {
		t.Fatalf("registration: %v", kerr.ForCode(resp.ErrorCode))
	}
	if hb := heartbeat(c, id, resp.BrokerEpoch); hb.ErrorCode != 0 || hb.IsFenced {
		t.Fatalf("heartbeat: %+v", hb)
	}
	return resp.BrokerEpoch
}

func heartbeat(c *Controller, id int32, epoch int64) *protocol.BrokerHeartbeatResponse {
	r := new(protocol.BrokerHeartbeatRequest)
	r.Default()
	r.BrokerId, r.BrokerEpoch, r.CurrentMetadataOffset = id, epoch, 1<<40
	resp, _ := c.BrokerHeartbeat(context.Background(), r)
	return resp
}

func topics(names ...string) *protocol.CreateTopicsRequest {
	r := new(protocol.CreateTopicsRequest)
	r.Default()
	for _, n := range names {
		r.Topics = append(r.Topics, protocol.CreateTopicsRequestCreatableTopic{Name: n, NumPartitions: 1, ReplicationFactor: 1})
	}
	return r
}

// create starts a CreateTopics and returns where its codes will be.
func create(c *Controller, names ...string) chan []int16 {
	out := make(chan []int16, 1)
	go func() {
		resp, _ := c.CreateTopics(context.Background(), Caller{Version: 7}, topics(names...))
		var codes []int16
		for _, t := range resp.Topics {
			codes = append(codes, t.ErrorCode)
		}
		out <- codes
	}()
	synctest.Wait()
	return out
}

func pending(t *testing.T, ch chan []int16) {
	t.Helper()
	select {
	case got := <-ch:
		t.Fatalf("answered %v before its records were committed", got)
	default:
	}
}

func answered(t *testing.T, ch chan []int16, want ...int16) {
	t.Helper()
	select {
	case got := <-ch:
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	default:
		t.Fatal("not answered")
	}
}

// K-119, K-120, T-42: an answer waits for its records, and for what it rests on.
func TestAnswersWaitForTheHighWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		lead(c, l, 5)
		addBroker(t, c, l, 1)

		first, again := create(c, "a"), create(c, "a")
		second := create(c, "b")
		pending(t, first)
		pending(t, again)
		if _, ok := c.Image().Topics().ByName("a"); ok {
			t.Fatal("an uncommitted topic is visible")
		}
		l.commit(1)
		answered(t, first, 0)
		answered(t, again, kerr.TopicAlreadyExists.Code)
		pending(t, second)
		if _, ok := c.Image().Topics().ByName("a"); !ok {
			t.Fatal("a committed topic is not visible")
		}
		l.commit(-1)
		answered(t, second, 0)
		if again := create(c, "a"); len(again) != 1 {
			t.Fatal("with nothing pending the answer comes at once")
		}
	})
}

// K-121, K-128: losing leadership goes back to what is committed; what another leader then commits is
// followed from there, and a later term of this node starts from it.
func TestLosingLeadershipRollsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		lead(c, l, 5)
		addBroker(t, c, l, 1)
		kept := create(c, "kept")
		l.commit(-1)
		answered(t, kept, 0)
		late, lost, lost2 := create(c, "late"), create(c, "lost"), create(c, "lost2")
		stable := c.Image()

		c.HandleLeaderChange(node.LeaderAndEpoch{Leader: 2, Epoch: 6})
		synctest.Wait()
		for _, ch := range []chan []int16{late, lost, lost2} {
			answered(t, ch, kerr.NotController.Code)
		}
		if c.Active() || c.Image() != stable {
			t.Fatal("the image is not the committed one")
		}
		resp, _ := c.CreateTopics(context.Background(), Caller{}, topics("x"))
		if m := resp.Topics[0].ErrorMessage; m == nil || *m != "The active controller appears to be node 2." { // K-199
			t.Fatalf("text: %v", m)
		}

		// The first uncommitted batch survives at the new leader, the others do not.
		l.mu.Lock()
		l.batches = l.batches[:l.committed+1]
		l.end = l.batches[len(l.batches)-1].LastOffset + 1
		l.mu.Unlock()
		l.control(6)
		l.commit(-1)
		if _, ok := c.Image().Topics().ByName("late"); !ok || c.Image().Topics().Len() != 2 {
			t.Fatal("the standby does not follow")
		}
		lead(c, l, 7)
		l.auto.Store(true)
		answered(t, create(c, "lost", "late"), 0, kerr.TopicAlreadyExists.Code)

		replayed := image.NewAssembler(image.Empty())
		for _, b := range l.batches {
			if err := replayed.Batch(b.Records, b.BaseOffset, b.LastOffset, model.LeaderEpoch(b.Epoch), b.AppendTimestamp); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if d := image.Diff(replayed.Stable(), c.Image()); !d.Empty() {
			t.Fatalf("the image is not that of the log: %+v", d)
		}
	})
}

// J-179: when the quorum appends in between, the decision is made again on the offsets there are.
func TestAMovedLogIsDecidedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		lead(c, l, 5)
		l.control(5)
		next, _ := l.NextOffset(5)
		epoch := addBroker(t, c, l, 3)
		if b, ok := c.Image().Brokers().ByID(3); !ok || epoch != next || b.RegisteredAt != next {
			t.Fatalf("epoch %d, registered at %d, the log ended at %d", epoch, b.RegisteredAt, next)
		}
	})
}

func TestAppendErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		code   *kerr.Error
		active bool
		resign bool
	}{
		"not_leader":      {kerr.NotLeaderOrFollower, kerr.NotController, false, false},
		"stopped":         {node.ErrStopped, kerr.NotController, false, false},
		"backlog":         {node.ErrBacklog, kerr.RequestTimedOut, true, false},
		"batch_too_large": {node.ErrBatchTooLarge, kerr.PolicyViolation, true, false},
		"anything_else":   {errors.New("strange"), kerr.UnknownServerError, false, true}, // K-128
	} {
		synctest.Test(t, func(t *testing.T) {
			q, l := newController(t, nil, nil)
			defer q.Close()
			lead(q, l, 5)
			addBroker(t, q, l, 1)
			l.refuse = c.err
			answered(t, create(q, "a"), c.code.Code)
			if q.Active() != c.active || (len(l.resigned) > 0) != c.resign {
				t.Errorf("%s: active %v, resigned %v", name, q.Active(), l.resigned)
			}
		})
	}
}

// K-106, K-107, K-125: what the first term writes.
func TestActivation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		lead(c, l, 5)
		want := []string{"BeginTransaction", "FeatureLevel", "FeatureLevel", "Config", "EndTransaction"}
		if d := cmp.Diff(want, l.records()); d != "" {
			t.Fatal(d)
		}
		if v, _ := c.Image().AllConfigs().Get(image.ClusterResource, "min.insync.replicas"); v != "1" || !c.Image().Features().ELREnabled() {
			t.Fatalf("cluster min.insync.replicas %q", v)
		}
		c.HandleLeaderChange(node.LeaderAndEpoch{Leader: -1, Epoch: 6})
		synctest.Wait()
		lead(c, l, 7) // on a log that is not empty nothing is written
		if d := cmp.Diff(want, l.records()); d != "" {
			t.Fatal(d)
		}
		c.Close()

		c, l = newController(t, nil, nil)
		l.bootstrap = nil
		lead(c, l, 1)
		if mv := c.Image().Features().MetadataVersion(); mv != image.MetadataVersionLatest || c.Image().Features().ELREnabled() {
			t.Fatalf("without a bootstrap file: metadata.version %v", mv)
		}
		c.Close()
	})
}

// K-84: a transaction that the last controller left open is aborted; its content was never seen.
func TestActivationAbortsAnOpenTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		name := "Bootstrap records"
		half := []node.Record{frame(t, &protocol.BeginTransactionRecord{Name: &name}), frame(t, &protocol.FeatureLevelRecord{Name: image.FeatureMetadataVersion, FeatureLevel: 30})}
		if _, err := l.AppendAt(1, 0, [][]node.Record{half}); err != nil {
			t.Fatal(err)
		}
		lead(c, l, 2)
		want := []string{"BeginTransaction", "FeatureLevel", "AbortTransaction", "BeginTransaction", "FeatureLevel", "FeatureLevel", "Config", "EndTransaction"}
		if d := cmp.Diff(want, l.records()); d != "" {
			t.Fatal(d)
		}
		if mv := c.Image().Features().MetadataVersion(); mv != 33 {
			t.Fatalf("metadata.version %v", mv)
		}
	})
}

// K-126, K-127: an idle controller writes a no-op every 500 ms, a busy one need not; 0 turns it off.
func TestNoOpKeepsAnIdleClusterMoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		l.auto.Store(true)
		lead(c, l, 5)
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if n := l.count("NoOp"); n != 20 {
			t.Errorf("%d no-ops in 10 s", n)
		}
		c.Close()
		c, l = newController(t, map[string]string{"metadata.max.idle.interval.ms": "0"}, nil)
		l.auto.Store(true)
		lead(c, l, 5)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := l.count("NoOp"); n != 0 {
			t.Errorf("%d no-ops though they are off", n)
		}
		c.Close()
	})
}

// K-140: a silent broker is fenced when its session ends; one that is heard is not; a new term gives
// everybody a whole session (K-125).
func TestSilentBrokersAreFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		l.auto.Store(true)
		lead(c, l, 5)
		heard, silent := addBroker(t, c, l, 1), addBroker(t, c, l, 2)
		_ = silent
		fenced := func(id model.NodeID) bool { b, _ := c.Image().Brokers().ByID(id); return b.Fenced }
		for range 4 {
			time.Sleep(2 * time.Second)
			heartbeat(c, 1, heard)
		}
		synctest.Wait()
		if fenced(2) {
			t.Fatal("fenced before its session ended")
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if !fenced(2) || fenced(1) {
			t.Fatalf("after 9.1 s: broker 1 fenced %v, broker 2 fenced %v", fenced(1), fenced(2))
		}
		c.HandleLeaderChange(node.LeaderAndEpoch{Leader: 2, Epoch: 6})
		synctest.Wait()
		time.Sleep(8 * time.Second)
		lead(c, l, 7)
		time.Sleep(8900 * time.Millisecond)
		synctest.Wait()
		if fenced(1) {
			t.Fatal("a new term did not give a whole session")
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if !fenced(1) {
			t.Fatal("never fenced in the new term")
		}
	})
}

// K-140: heartbeats that wait in a stalled queue keep their sessions.
func TestAStalledQueueFencesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		l.auto.Store(true)
		lead(c, l, 5)
		epoch := addBroker(t, c, l, 1)
		release := make(chan struct{})
		c.push(func() { <-release })
		for range 10 {
			time.Sleep(2 * time.Second)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			r := new(protocol.BrokerHeartbeatRequest)
			r.Default()
			r.BrokerId, r.BrokerEpoch, r.CurrentMetadataOffset = 1, epoch, 1<<40
			resp, _ := c.BrokerHeartbeat(ctx, r)
			cancel()
			if resp.ErrorCode != kerr.RequestTimedOut.Code { // K-130
				t.Fatalf("code %d", resp.ErrorCode)
			}
		}
		close(release)
		synctest.Wait()
		if b, _ := c.Image().Brokers().ByID(1); b.Fenced {
			t.Fatal("fenced although it was heard")
		}
		if n := c.Stats().HeartbeatsTimedOut.Load(); n != 10 {
			t.Fatalf("%d heartbeats counted as timed out", n)
		}
	})
}

// K-123, K-134: a large decision that is not atomic goes out in batches of 10000 records; if it is cut,
// what is committed stands.
func TestALargeDecisionIsCutIntoBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		l.auto.Store(true)
		lead(c, l, 5)
		addBroker(t, c, l, 1)
		for i := range 3 {
			r := topics(fmt.Sprint("t", i))
			r.Topics[0].NumPartitions = 5000
			resp, _ := c.CreateTopics(context.Background(), Caller{}, r)
			if resp.Topics[0].ErrorCode != 0 {
				t.Fatal(kerr.ForCode(resp.Topics[0].ErrorCode))
			}
		}
		synctest.Wait()
		l.auto.Store(false)
		before := len(l.batches)
		c.push(func() { c.tasks = tasks{} }) // nothing else may write
		time.Sleep(10 * time.Second)         // the session ends
		c.push(func() { c.fenceStale() })
		synctest.Wait()
		cut := l.batches[before:]
		if len(cut) != 2 || len(cut[0].Records) != 10000 || len(cut[1].Records) != 5001 {
			t.Fatalf("%d batches", len(cut))
		}
		l.commit(1)
		led := func() (n int) {
			for topic := range c.Image().Topics().All() {
				for _, p := range topic.Partitions() {
					if p.HasLeader() {
						n++
					}
				}
			}
			return n
		}
		if n := led(); n != 5000 {
			t.Fatalf("%d partitions have a leader after the first batch", n)
		}
		c.HandleLeaderChange(node.LeaderAndEpoch{Leader: 2, Epoch: 6})
		synctest.Wait()
		l.commit(1) // the rest survived at the next leader
		if b, _ := c.Image().Brokers().ByID(1); led() != 0 || !b.Fenced {
			t.Fatal("the second half was lost")
		}
	})
}

// K-145: a controller registers when the metadata does not know it, and again after it was forgotten.
func TestControllerRegistersItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		me := model.RandomUUID()
		c, l := newController(t, nil, func(o *Options) {
			o.Registration = &protocol.ControllerRegistrationRequest{ControllerId: 1, IncarnationId: me}
		})
		defer c.Close()
		l.auto.Store(true)
		lead(c, l, 5)
		r, ok := c.Image().Controllers().ByID(1)
		if !ok || r.Incarnation != me || l.count("RegisterController") != 1 {
			t.Fatalf("registration: %+v, %d records", r, l.count("RegisterController"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if l.count("RegisterController") != 1 {
			t.Fatal("registered again")
		}
	})
}

// K-145: a standby asks the active controller, with patience.
func TestStandbyRegistersThroughTheActiveController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c, l := newController(t, nil, func(o *Options) {
			o.Registration = &protocol.ControllerRegistrationRequest{ControllerId: 1, IncarnationId: model.RandomUUID()}
			o.Forward = func(context.Context, *protocol.ControllerRegistrationRequest) (*protocol.ControllerRegistrationResponse, error) {
				asked++
				return nil, errors.New("nobody there")
			}
		})
		defer c.Close()
		if _, err := l.AppendAt(1, 0, [][]node.Record{l.bootstrap}); err != nil {
			t.Fatal(err)
		}
		l.commit(-1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if asked < 5 || asked > 8 { // 0.1 + 0.2 + 0.4 + ... s
			t.Fatalf("asked %d times in 10 s", asked)
		}
	})
}

// K-199: what a standby answers, request by request.
func TestStandbyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		defer c.Close()
		ctx := context.Background()
		const says = "The active controller appears to be node 2."
		lead(c, l, 5)
		addBroker(t, c, l, 1)
		l.auto.Store(true)
		answered(t, create(c, "known"), 0)
		c.HandleLeaderChange(node.LeaderAndEpoch{Leader: 2, Epoch: 6})
		synctest.Wait()
		type answer struct {
			code int16
			text *string
		}
		text := func(s string) *string { return &s }
		name, other := "known", "unknown"
		got := map[string]answer{}
		ct, _ := c.CreateTopics(ctx, Caller{}, topics("a"))
		got["CreateTopics"] = answer{ct.Topics[0].ErrorCode, ct.Topics[0].ErrorMessage}
		cp, _ := c.CreatePartitions(ctx, Caller{}, &protocol.CreatePartitionsRequest{Topics: []protocol.CreatePartitionsRequestCreatePartitionsTopic{{Name: "a"}}})
		got["CreatePartitions"] = answer{cp.Results[0].ErrorCode, cp.Results[0].ErrorMessage}
		ic, _ := c.IncrementalAlterConfigs(ctx, Caller{}, &protocol.IncrementalAlterConfigsRequest{Resources: []protocol.IncrementalAlterConfigsRequestAlterConfigsResource{{ResourceType: 2, ResourceName: "a"}}})
		got["IncrementalAlterConfigs"] = answer{ic.Responses[0].ErrorCode, ic.Responses[0].ErrorMessage}
		uf, _ := c.UpdateFeatures(ctx, Caller{}, &protocol.UpdateFeaturesRequest{})
		got["UpdateFeatures"] = answer{uf.ErrorCode, uf.ErrorMessage}
		ub, _ := c.UnregisterBroker(ctx, &protocol.UnregisterBrokerRequest{})
		got["UnregisterBroker"] = answer{ub.ErrorCode, ub.ErrorMessage}
		br, _ := c.RegisterBroker(ctx, Caller{}, &protocol.BrokerRegistrationRequest{})
		got["BrokerRegistration"] = answer{br.ErrorCode, nil}
		if br.BrokerEpoch != -1 {
			t.Errorf("registration answers epoch %d", br.BrokerEpoch)
		}
		hb := heartbeat(c, 1, 1)
		got["BrokerHeartbeat"] = answer{hb.ErrorCode, nil}
		if !hb.IsFenced || hb.IsCaughtUp || hb.ShouldShutDown { // K-137
			t.Errorf("heartbeat answers %+v", hb)
		}
		ap, _ := c.AlterPartition(ctx, Caller{}, &protocol.AlterPartitionRequest{Topics: make([]protocol.AlterPartitionRequestTopicData, 1)})
		got["AlterPartition"] = answer{ap.ErrorCode, nil}
		ap, _ = c.AlterPartition(ctx, Caller{}, &protocol.AlterPartitionRequest{})
		got["AlterPartition without topics"] = answer{ap.ErrorCode, nil}
		ar, _ := c.AssignReplicasToDirs(ctx, &protocol.AssignReplicasToDirsRequest{})
		got["AssignReplicasToDirs"] = answer{ar.ErrorCode, nil}
		pi, _ := c.AllocateProducerIds(ctx, &protocol.AllocateProducerIdsRequest{})
		got["AllocateProducerIds"] = answer{pi.ErrorCode, nil}
		el, _ := c.ElectLeaders(ctx, &protocol.ElectLeadersRequest{})
		got["ElectLeaders"] = answer{el.ErrorCode, nil}
		dt, _ := c.DeleteTopics(ctx, Caller{}, &protocol.DeleteTopicsRequest{TopicNames: []string{name, other}})
		got["DeleteTopics of one known"] = answer{dt.Responses[1].ErrorCode, dt.Responses[1].ErrorMessage} // T-152
		dt, _ = c.DeleteTopics(ctx, Caller{}, &protocol.DeleteTopicsRequest{TopicNames: []string{other}})
		got["DeleteTopics of none known"] = answer{dt.Responses[0].ErrorCode, nil}
		dt, _ = c.DeleteTopics(ctx, Caller{}, &protocol.DeleteTopicsRequest{Topics: []protocol.DeleteTopicsRequestDeleteTopicState{{TopicId: model.UUID{9}}}})
		got["DeleteTopics of an unknown id"] = answer{dt.Responses[0].ErrorCode, nil}

		const code = 41
		want := map[string]answer{
			"CreateTopics": {code, text(says)}, "CreatePartitions": {code, text(says)}, "IncrementalAlterConfigs": {code, text(says)},
			"UpdateFeatures": {code, text(says)}, "UnregisterBroker": {code, text(says)},
			"BrokerRegistration": {code, nil}, "BrokerHeartbeat": {code, nil}, "AlterPartition": {code, nil}, "AlterPartition without topics": {0, nil},
			"AssignReplicasToDirs": {code, nil}, "AllocateProducerIds": {code, nil}, "ElectLeaders": {code, nil},
			"DeleteTopics of one known": {code, nil}, "DeleteTopics of none known": {kerr.UnknownTopicOrPartition.Code, nil}, "DeleteTopics of an unknown id": {kerr.UnknownTopicId.Code, nil},
		}
		for k, w := range want {
			g := got[k]
			if g.code != w.code || (g.text == nil) != (w.text == nil) || g.text != nil && *g.text != *w.text {
				t.Errorf("%s: code %d, text %v; want %d", k, g.code, g.text, w.code)
			}
		}
	})
}

// A closed controller answers everything and leaves no goroutine.
func TestCloseAnswersWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := newController(t, nil, nil)
		lead(c, l, 5)
		addBroker(t, c, l, 1)
		waiting := create(c, "a")
		pending(t, waiting)
		c.Close()
		c.Close()
		synctest.Wait()
		answered(t, waiting, kerr.NotController.Code)
		answered(t, create(c, "b"), kerr.NotController.Code)
		c.HandleCommit(nil)
	})
}

// K-176, K-128: a log that does not add up is fatal for a controller.
func TestAFaultInTheLogIsFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fatal []error
		c, l := newController(t, nil, func(o *Options) { o.Fatal = func(err error) { fatal = append(fatal, err) } })
		defer c.Close()
		bad := frame(t, &protocol.RemoveTopicRecord{TopicId: model.UUID{7}})
		if _, err := l.AppendAt(1, 0, [][]node.Record{{bad}}); err != nil {
			t.Fatal(err)
		}
		l.commit(-1)
		l.commit(0)
		if len(fatal) != 1 || !strings.Contains(fatal[0].Error(), "RemoveTopicRecord") || !strings.Contains(fatal[0].Error(), model.UUID{7}.String()) {
			t.Fatalf("fatal: %v", fatal)
		}
	})
}

func BenchmarkCreateTopicsPipelined(b *testing.B) {
	c, l := newController(b, nil, nil)
	defer c.Close()
	l.auto.Store(true)
	l.control(1)
	l.mu.Lock()
	l.deliver(1)
	l.mu.Unlock()
	c.HandleLeaderChange(node.LeaderAndEpoch{Leader: 1, Epoch: 1})
	addBroker(b, c, l, 1)
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	gate := make(chan struct{}, 100)
	for i := range b.N {
		gate <- struct{}{}
		wg.Go(func() {
			resp, _ := c.CreateTopics(context.Background(), Caller{Version: 7}, topics(fmt.Sprintf("topic.%d", i)))
			if resp.Topics[0].ErrorCode != 0 {
				b.Error(kerr.ForCode(resp.Topics[0].ErrorCode))
			}
			<-gate
		})
	}
	wg.Wait()
}
