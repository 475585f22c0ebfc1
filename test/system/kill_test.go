package system

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/test/harness"
)

// rounds is how often the kill test kills: few in an ordinary run, SAMSA_KILL_ROUNDS says otherwise.
func rounds(t *testing.T) int {
	text := os.Getenv("SAMSA_KILL_ROUNDS")
	if text == "" {
		return 25
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SAMSA_KILL_ROUNDS=%q is no number of rounds", text)
	}
	return n
}

const killPartitions = 3

// history is what one producer sent and what was acknowledged, by partition and number.
type history struct {
	name string
	once bool // idempotent: nothing may be there twice

	mu    sync.Mutex
	errs  map[string]int // why records were refused, and how often
	next  [killPartitions]int
	acked [killPartitions]map[int]int64 // number -> offset
}

func newHistory(name string, once bool) *history {
	h := &history{name: name, once: once, errs: map[string]int{}}
	for i := range h.acked {
		h.acked[i] = map[int]int64{}
	}
	return h
}

// count is how many records have been acknowledged.
func (h *history) count() (sum int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.acked {
		sum += len(h.acked[p])
	}
	return sum
}

// produce sends numbered records until ctx ends, a few in flight, and notes what was acknowledged.
func (h *history) produce(ctx context.Context, client *kgo.Client) {
	slots := make(chan struct{}, 64)
	for i := 0; ctx.Err() == nil; i++ {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		p := i % killPartitions
		h.mu.Lock()
		n := h.next[p]
		h.next[p]++
		h.mu.Unlock()
		r := &kgo.Record{Topic: "killed", Partition: int32(p), Value: fmt.Appendf(nil, "%s %d %0*d", h.name, n, 1+n%200, n)}
		client.Produce(context.Background(), r, func(r *kgo.Record, err error) {
			<-slots
			h.mu.Lock()
			defer h.mu.Unlock()
			if err != nil { // not acknowledged: it may be there or not
				h.errs[err.Error()]++
				return
			}
			h.acked[p][n] = r.Offset
		})
	}
}

// Acceptance: kill -9 under load with acks=1 and acks=all. No acknowledged record is lost, an idempotent
// producer has none twice and all in order, offsets have no gaps (D-26, D-66, D-88, D-223).
func TestKillUnderLoad(t *testing.T) {
	n := harness.NewNode(t, 2, "log.segment.bytes=1048576", "log.index.interval.bytes=1024")
	n.Format()
	n.Start()
	harness.CreateTopic(t, n, "killed", killPartitions)

	all := newHistory("all", true)
	one := newHistory("one", false)
	dial := func(opts ...kgo.Opt) *kgo.Client {
		client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(n.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }), kgo.MetadataMinAge(50*time.Millisecond),
			kgo.RecordRetries(1_000_000), kgo.ProducerLinger(0))...)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	idempotent := dial(kgo.RequiredAcks(kgo.AllISRAcks()))
	plain := dial(kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	ctx, stop := context.WithCancel(context.Background())
	var producers sync.WaitGroup
	producers.Go(func() { all.produce(ctx, idempotent) })
	producers.Go(func() { one.produce(ctx, plain) })

	for round := range rounds(t) {
		for _, h := range []*history{all, one} { // both make progress before the next kill
			want := h.count() + 250 + 67*(round%7)
			n.Eventually(fmt.Sprintf("round %d: records of %s are acknowledged", round, h.name), 60*time.Second, func() error {
				if got := h.count(); got < want {
					return fmt.Errorf("%d of %d", got, want)
				}
				return nil
			})
		}
		n.Kill()
		n.Start()
	}
	stop()
	producers.Wait()
	flush, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for _, client := range []*kgo.Client{idempotent, plain} {
		if err := client.Flush(flush); err != nil {
			t.Errorf("records are still unacknowledged: %v", err)
		}
		client.Close()
	}
	t.Logf("%d records acknowledged over %d kills", all.count()+one.count(), rounds(t))
	for _, h := range []*history{all, one} {
		if len(h.errs) > 0 {
			t.Errorf("producer %s was refused: %v", h.name, h.errs)
		}
	}
	verify(t, n, all, one)
	n.Stop()
	n.Start()
	verify(t, n, all, one)
}

// verify reads every partition from the start and compares it with what was acknowledged.
func verify(t *testing.T, n *harness.Node, histories ...*history) {
	t.Helper()
	for p := range int32(killPartitions) {
		seen := map[string]map[int][]int64{}
		last := map[string]int{}
		next := int64(0)
		for _, r := range harness.ReadAll(t, n, "killed", p) {
			if r.Offset != next {
				t.Errorf("partition %d: offset %d follows %d", p, r.Offset, next-1)
			}
			next = r.Offset + 1
			var name string
			var number int
			if _, err := fmt.Sscanf(string(r.Value), "%s %d", &name, &number); err != nil {
				t.Fatalf("partition %d offset %d holds %.40q: %v", p, r.Offset, r.Value, err)
			}
			if seen[name] == nil {
				seen[name] = map[int][]int64{}
				last[name] = -1
			}
			seen[name][number] = append(seen[name][number], r.Offset)
			if name == "all" && number != last[name]+1 {
				t.Errorf("partition %d offset %d: idempotent record %d follows %d", p, r.Offset, number, last[name])
			}
			last[name] = number
		}
		for _, h := range histories {
			for number, offset := range h.acked[p] {
				at := seen[h.name][number]
				switch {
				case len(at) == 0:
					t.Errorf("partition %d: acknowledged record %s %d (offset %d) is lost", p, h.name, number, offset)
				case h.once && len(at) != 1:
					t.Errorf("partition %d: idempotent record %d is at offsets %v", p, number, at)
				case h.once && at[0] != offset:
					t.Errorf("partition %d: record %d was acknowledged at %d and is at %d", p, number, offset, at[0])
				}
			}
		}
	}
}
