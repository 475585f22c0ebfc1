package manager

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"samsa/internal/base/metric"
	"samsa/internal/base/model"
)

// The hot paths allocate a handful per request, whatever is in it.
func TestAllocations(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(topic(1, "a"), part(1, 0))
	b := batch("v")
	entries := []AppendEntry{{Partition: tp(1, 0), Topic: "a", Records: b}}
	done := func([]AppendResult) {}
	scratch := make([]byte, len(b))
	copy(scratch, b)
	if n := testing.AllocsPerRun(500, func() {
		copy(b, scratch)
		w.m.Append(AppendRequest{Acks: -1, Timeout: time.Second, APIVersion: 11, Entries: entries}, done)
	}); n > 6 {
		t.Errorf("%v allocations per produce", n)
	}
	req := consumer(tp(1, 0), "a", 0)
	if n := testing.AllocsPerRun(500, func() {
		w.m.Fetch(req, func(r []FetchResult) {
			if r[0].Records != nil {
				r[0].Records.Release()
			}
		})
	}); n > 6 {
		t.Errorf("%v allocations per fetch", n)
	}
	end, _ := w.m.Offsets(tp(1, 0))
	idle := consumer(tp(1, 0), "a", end.LogEnd)
	if n := testing.AllocsPerRun(500, func() { w.m.Fetch(idle, func([]FetchResult) {}) }); n > 3 {
		t.Errorf("%v allocations per empty fetch", n)
	}
}

// Many producers and consumers of a few partitions at once, with the metadata changing under them: for the race detector.
func TestConcurrent(t *testing.T) {
	w := newWorld(t, 2)
	w.apply(topic(1, "a"), part(1, 0), part(1, 1), part(1, 2))
	var stop atomic.Bool
	var appended, seen atomic.Int64
	var producers, consumers sync.WaitGroup
	for i := range int32(3) {
		for range 2 {
			producers.Go(func() {
				for range 200 {
					ch := make(chan []AppendResult, 1)
					w.m.Append(AppendRequest{Acks: -1, Timeout: time.Minute, APIVersion: 11, Entries: []AppendEntry{{Partition: tp(1, i), Topic: "a", Records: batch("v")}}},
						func(r []AppendResult) { ch <- r })
					if r := <-ch; r[0].Err == nil {
						appended.Add(1)
					}
				}
			})
		}
		consumers.Go(func() {
			for offset := int64(0); ; {
				ch := make(chan []FetchResult, 1)
				req := consumer(tp(1, i), "a", offset)
				req.MaxWait = 20 * time.Millisecond
				w.m.Fetch(req, func(r []FetchResult) { ch <- r })
				r := (<-ch)[0]
				if r.Err != nil {
					t.Error(r.Err)
					return
				}
				n := int64(len(values(t, &r)))
				offset += n
				seen.Add(n)
				if n == 0 && stop.Load() {
					return
				}
			}
		})
	}
	for i := range 20 {
		w.apply(setTopic("a", "retention.ms", fmt.Sprint(1000000+i)), topic(byte(10+i), fmt.Sprint("t", i)), part(byte(10+i), 0))
		c := changed(1, int32(i%3))
		c.Leader = 1
		w.apply(c)
	}
	producers.Wait()
	stop.Store(true)
	consumers.Wait()
	if appended.Load() == 0 || seen.Load() != appended.Load() {
		t.Errorf("%d acknowledged, %d seen", appended.Load(), seen.Load())
	}
}

// The metrics of Kafka's names.
func TestMetrics(t *testing.T) {
	w := newWorld(t, 1)
	reg := metric.New(time.Now)
	w.m.stats.init(w.m, reg)
	w.apply(topic(1, "a"), part(1, 0), part(1, 1, 1, 2), part(1, 2, 2, 1))
	c := changed(1, 1)
	c.Isr = []int32{1}
	w.apply(c)
	w.produce(tp(1, 0), "a", 1, "x", "y")
	for name, want := range map[string]float64{"PartitionCount": 3, "LeaderCount": 2, "UnderReplicatedPartitions": 1, "OfflineReplicaCount": 0, "UnderMinIsrPartitionCount": 0,
		"AtMinIsrPartitionCount": 2, "ReassigningPartitions": 0, "ProducerIdCount": 0} {
		if got, ok := reg.Value("kafka.server:type=ReplicaManager,name=" + name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got, ok := reg.Value("kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec", "topic", "a"); !ok || got != 2 {
		t.Error(got, ok)
	}
	if got, ok := reg.Value("kafka.cluster:type=Partition,name=UnderReplicated", "topic", "a", "partition", "1"); !ok || got != 1 {
		t.Error(got, ok)
	}
	if got, ok := reg.Value("kafka.server:type=DelayedOperationPurgatory,name=NumDelayedOperations", "delayedOperation", "Fetch"); !ok || got != 0 {
		t.Error(got, ok)
	}
	// T-97: gone with the topic.
	w.apply(removeTopic(1))
	if _, ok := reg.Value("kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec", "topic", "a"); ok {
		t.Error("the meters of a deleted topic are still shown")
	}
}

func BenchmarkProduce(b *testing.B) {
	w := newWorld(b, 1)
	w.apply(topic(1, "a"), part(1, 0))
	records := batch("0123456789")
	fresh := append([]byte(nil), records...)
	entries := []AppendEntry{{Partition: tp(1, 0), Topic: "a", Records: records}}
	b.ReportAllocs()
	for b.Loop() {
		copy(records, fresh)
		w.m.Append(AppendRequest{Acks: 1, APIVersion: 11, Entries: entries}, func([]AppendResult) {})
	}
}

func BenchmarkLookup(b *testing.B) {
	w := newWorld(b, 1)
	records := []recordT{topic(1, "a")}
	for i := range int32(1000) {
		records = append(records, part(1, i))
	}
	w.apply(records...)
	b.RunParallel(func(pb *testing.PB) {
		for i := int32(0); pb.Next(); i++ {
			if w.m.hosted.get(model.TopicIDPartition{Topic: id(1), Partition: i % 1000}) == nil {
				b.Error("not found")
			}
		}
	})
}
