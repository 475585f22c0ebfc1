package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"samsa/internal/base/config"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/server/storagetool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// freePort is a loopback port nobody listens on at the moment.
func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// combined is the configuration of a node with both roles and two directories in memory.
func combined(t *testing.T, fs vfs.FS, extra map[string]string) *config.Node {
	t.Helper()
	controller := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	values := map[string]string{
		"process.roles": "broker,controller", "node.id": "1",
		"listeners":                           "PLAINTEXT://127.0.0.1:0,CONTROLLER://" + controller,
		"controller.listener.names":           "CONTROLLER",
		"controller.quorum.bootstrap.servers": controller,
		"log.dirs":                            "/d1,/d2",
		"samsa.http.listener":                 "127.0.0.1:0",
		"offsets.topic.replication.factor":    "1",
		"offsets.topic.num.partitions":        "2",
	}
	for k, v := range extra {
		values[k] = v
	}
	cfg, err := config.FromMap(values)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func format(t *testing.T, fs vfs.FS, cfg *config.Node) {
	t.Helper()
	o := storagetool.Options{FS: fs, Out: nowhere{}, ClusterID: model.RandomUUID().String(), Standalone: true}
	o.FromConfig(cfg)
	if err := storagetool.Format(o); err != nil {
		t.Fatal(err)
	}
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// testLog writes a node's log into the test's.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func start(t *testing.T, fs vfs.FS, cfg *config.Node) *Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	n, err := Start(ctx, Options{Config: cfg, FS: fs, Log: slog.New(slog.NewTextHandler(testLog{t}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func stop(t *testing.T, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// A node over disks in memory: formatted, started, written to, stopped, started again. Nothing is left
// running, nothing is lost, and the second start finds what a clean stop leaves (K-179, K-183, J-42).
func TestNodeOverMemory(t *testing.T) {
	fs := vfs.NewMem()
	cfg := combined(t, fs, nil)
	format(t, fs, cfg)
	for life := range 3 {
		n := start(t, fs, cfg)
		if life > 0 && n.broker.logs.PreviousBrokerEpoch() < 0 {
			t.Errorf("life %d: the stop before it was not clean", life)
		}
		client, err := kgo.NewClient(kgo.SeedBrokers(n.Addr("PLAINTEXT")), kgo.ConsumeTopics("t"), kgo.FetchMaxWait(100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if life == 0 {
			if _, err := kadm.NewClient(client).CreateTopic(ctx, 4, 1, nil, "t"); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			r := &kgo.Record{Topic: "t", Value: fmt.Appendf(nil, "%d-%d", life, i)}
			if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[string]int{}
		for len(seen) < 100*(life+1) {
			fetches := client.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				t.Fatalf("after %d records: %v", len(seen), err)
			}
			fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
		}
		for value, times := range seen {
			if times != 1 {
				t.Errorf("record %s was read %d times", value, times)
			}
		}
		cancel()
		client.Close()
		resp, err := http.Get("http://" + n.HTTPAddr() + "/readyz")
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("readyz: %v, %v", resp, err)
		} else {
			resp.Body.Close()
		}
		stop(t, n)
		http.DefaultClient.CloseIdleConnections()
	}
}

// A start that is called off leaves nothing running and nothing locked.
func TestStartIsCalledOff(t *testing.T) {
	fs := vfs.NewMem()
	cfg := combined(t, fs, nil)
	format(t, fs, cfg)
	why := errors.New("called off")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if n, err := Start(ctx, Options{Config: cfg, FS: fs}); !errors.Is(err, why) {
		t.Fatalf("%v, %v, want %v", n, err, why)
	}
	stop(t, start(t, fs, cfg))
}

// One of two directories fails: the node goes on with the other. When the metadata directory fails the
// node says why and has to stop, which it does without the marker of a clean stop (J-113, J-122).
func TestDirectoriesFail(t *testing.T) {
	var bad atomic.Pointer[string]
	mem := vfs.NewMem()
	fs := vfs.Inject(mem, func(op vfs.Op) error {
		if dir := bad.Load(); dir != nil && strings.HasPrefix(op.Path, *dir+"/") {
			return syscall.EIO
		}
		return nil
	})
	cfg := combined(t, fs, nil)
	format(t, fs, cfg)
	n := start(t, fs, cfg)
	client, err := kgo.NewClient(kgo.SeedBrokers(n.Addr("PLAINTEXT")), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 2, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	produce := func(partition int32) error {
		return client.ProduceSync(ctx, &kgo.Record{Topic: "t", Partition: partition, Value: []byte("x")}).FirstErr()
	}
	topic, _ := n.Image().Topics().ByName("t")
	in := map[string]int32{} // directory -> a partition in it
	for p := range int32(2) {
		if err := produce(p); err != nil {
			t.Fatal(err)
		}
		r, ok := n.broker.logs.Get(model.TopicIDPartition{Topic: topic.ID, Partition: p})
		if !ok {
			t.Fatalf("partition %d is not here", p)
		}
		in[r.Dir.Path()] = p
	}
	second := "/d2"
	bad.Store(&second)
	if err := produce(in["/d2"]); err == nil {
		t.Error("a record went into a directory that fails")
	}
	if err := produce(in["/d1"]); err != nil {
		t.Errorf("the other directory: %v", err)
	}
	for known := false; !known; { // until the controller has heard of it, and no longer
		b, ok := n.Image().Brokers().ByID(1)
		known = ok && len(b.Directories) == 1
		select {
		case <-n.Failed():
			t.Fatalf("one directory took the node down: %v", n.Failure())
		case <-ctx.Done():
			t.Fatal("the controller never heard of the failed directory")
		case <-time.After(time.Millisecond):
		}
	}
	first := "/d1"
	bad.Store(&first)
	produce(in["/d1"])
	select {
	case <-n.Failed():
	case <-ctx.Done():
		t.Fatal("the metadata directory failed and the node goes on")
	}
	if err := n.Failure(); !strings.Contains(err.Error(), "/d1") {
		t.Errorf("the reason names no directory: %v", err)
	}
	n.Stop(ctx)
	if _, err := mem.Stat("/d1/.kafka_cleanshutdown"); err == nil {
		t.Error("a node that failed left the marker of a clean stop in the failed directory")
	}
}
