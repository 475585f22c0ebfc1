package partlog_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/storage/producerstate"
	"samsa/internal/wire/record"

	"samsa/test/peers"
)

const log4j2 = `<Configuration><Appenders><Console name="c"><PatternLayout pattern="%p %c{1} %m%n"/></Console></Appenders>
<Loggers><Root level="INFO"><AppenderRef ref="c"/></Root></Loggers></Configuration>`

// kafka is one Apache Kafka node of a test.
type kafka struct {
	t          *testing.T
	jars, root string
	port       int
	cmd        *exec.Cmd
	mu         sync.Mutex
	lines      []string
	ended      chan struct{}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func newKafka(t *testing.T, jars string) *kafka {
	k := &kafka{t: t, jars: jars, root: t.TempDir(), port: freePort(t)}
	props := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
controller.listener.names=CONTROLLER
log.dirs=%[3]s/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
`, k.port, freePort(t), k.root)
	for name, content := range map[string]string{"server.properties": props, "log4j2.xml": log4j2} {
		if err := os.WriteFile(filepath.Join(k.root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := k.java("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", k.root+"/server.properties").CombinedOutput()
	if err != nil {
		t.Fatalf("formatting: %v\n%s", err, out)
	}
	return k
}

func (k *kafka) java(class string, args ...string) *exec.Cmd {
	return exec.Command("java", append([]string{"-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dlog4j2.configurationFile=" + k.root + "/log4j2.xml",
		"-cp", k.jars + "/*", class}, args...)...)
}

func (k *kafka) start() {
	k.t.Helper()
	k.mu.Lock()
	k.lines = nil
	k.mu.Unlock()
	k.cmd, k.ended = k.java("kafka.Kafka", k.root+"/server.properties"), make(chan struct{})
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	k.cmd.Stderr = k.cmd.Stdout
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	started := make(chan struct{})
	go func() {
		defer close(k.ended)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			k.mu.Lock()
			k.lines = append(k.lines, sc.Text())
			k.mu.Unlock()
			if strings.Contains(sc.Text(), "Kafka Server started") {
				close(started)
			}
		}
	}()
	k.t.Cleanup(func() { k.stop(syscall.SIGKILL) })
	select {
	case <-started:
	case <-k.ended:
		k.t.Fatalf("Kafka ended:\n%s", strings.Join(k.log(), "\n"))
	case <-time.After(6 * time.Minute):
		k.t.Fatal("Kafka did not start")
	}
}

func (k *kafka) stop(sig os.Signal) {
	if k.cmd == nil {
		return
	}
	_ = k.cmd.Process.Signal(sig)
	<-k.ended
	_ = k.cmd.Wait()
	k.cmd = nil
}

func (k *kafka) log() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.lines...)
}

func (k *kafka) client(opts ...kgo.Opt) *kgo.Client {
	k.t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", k.port)))...)
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

// consume reads records 0..n-1 and returns their values.
func (k *kafka) consume(ctx context.Context, n int64) (values []string) {
	k.t.Helper()
	c := k.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"h": {0: kgo.NewOffset().AtStart()}}), kgo.KeepControlRecords())
	defer c.Close()
	for next := int64(0); next < n; {
		f := c.PollFetches(ctx)
		if err := errors.Join(f.Err0(), ctx.Err()); err != nil {
			k.t.Fatalf("consuming at %d of %d: %v", next, n, err)
		}
		f.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
		})
	}
	return values
}

// TestHandover: D-38, D-43, D-45, D-46, D-47, D-48, D-49, D-50, D-66, D-67, D-70, D-71, D-211; issue 3 acceptance 3, for one
// partition: Kafka writes and stops, samsa reads and writes, Kafka finds everything and says nothing of repairs; then Kafka is
// killed, and samsa recovers what it left.
func TestHandover(t *testing.T) {
	if os.Getenv("CI") == "" && os.Getenv("INTEROP") == "" {
		t.Skip("starts Apache Kafka three times: set INTEROP=1 or CI=1")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	k := newKafka(t, peers.Kafka(t))
	k.start()
	admin := kadm.NewClient(k.client())
	size := "1048576"
	if _, err := admin.CreateTopic(ctx, 1, 1, map[string]*string{"segment.bytes": &size}, "h"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "empty"); err != nil {
		t.Fatal(err)
	}
	admin.Close()
	var want []string
	produce := func(n, bytes int, opts ...kgo.Opt) {
		t.Helper()
		c := k.client(append(opts, kgo.DefaultProduceTopic("h"), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		defer c.Close()
		for i := range n {
			v := fmt.Sprintf("kafka-%d-%s", len(want), strings.Repeat(string(rune('a'+i%26)), bytes))
			want = append(want, v)
			c.Produce(ctx, kgo.StringRecord(v), func(_ *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		if err := c.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	produce(2000, 1000, kgo.ProducerBatchCompression(kgo.NoCompression()))
	produce(2000, 200, kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	produce(500, 200, kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	txn := k.client(kgo.TransactionalID("x"), kgo.DefaultProduceTopic("h"))
	for i := range 4 {
		if err := txn.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		v := fmt.Sprintf("txn-%d", i)
		want = append(want, v)
		if err := txn.ProduceSync(ctx, kgo.StringRecord(v)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := txn.EndTransaction(ctx, kgo.TransactionEndTry(i%2 == 0)); err != nil {
			t.Fatal(err)
		}
	}
	txn.Close()
	k.stop(syscall.SIGTERM)

	// samsa reads what Kafka wrote, trusting all of it.
	root := k.root + "/data/h-0"
	env := &partlog.Env{Files: partlog.NewFiles(32)}
	opts := partlog.Options{FS: vfs.OS(), Dir: root, Partition: model.TopicPartition{Topic: "h"}, Env: env, Clean: true, Now: time.Now().UnixMilli()}
	cfg := *partlog.DefaultConfig()
	cfg.SegmentBytes = 1 << 20
	opts.Config = &cfg
	l, info, err := partlog.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	if info != (partlog.LoadInfo{}) {
		t.Errorf("loading what Kafka had closed took %+v, expected nothing to do", info)
	}
	sameValues(t, "after Kafka's clean stop", values(t, l), want)
	if l.ProducerCount() != 4 {
		t.Errorf("%d producers, expected 4", l.ProducerCount())
	}
	if aborted, err := l.AbortedTransactions(0, l.LogEndOffset()); err != nil || len(aborted) != 2 {
		t.Errorf("aborted transactions %v, %v, expected 2", aborted, err)
	}
	if e := l.Epochs(); len(e) != 1 || e[0].Epoch != 0 {
		t.Errorf("epochs %v", e)
	}

	// samsa writes: enough for a roll, with an idempotent producer and an abort.
	for i := range 30 {
		o := record.NewBatchOptions()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Codec = 999999, 0, int32(i*50), record.Codec(i%5)
		b := record.NewBuilder(o)
		for j := range 50 {
			v := fmt.Sprintf("samsa-%d-%d-%s", i, j, strings.Repeat("z", 900))
			want = append(want, v)
			b.Append(opts.Now+int64(i), nil, []byte(v), nil)
		}
		if _, err := l.AppendAsLeader(partlog.LeaderAppend{Records: b.Build(nil), Epoch: 0, Origin: producerstate.OriginClient, Now: opts.Now}); err != nil {
			t.Fatal(err)
		}
	}
	end := l.LogEndOffset()
	if err := l.Close(opts.Now); err != nil {
		t.Fatal(err)
	}
	dumpEverything(t, k.jars, root)

	// An empty partition as samsa leaves it: without a time index.
	for _, suffix := range []string{"index", "timeindex"} {
		if err := os.Remove(k.root + "/data/empty-0/00000000000000000000." + suffix); err != nil {
			t.Fatal(err)
		}
	}
	empty := opts
	empty.Dir = k.root + "/data/empty-0"
	if l, _, err = partlog.Open(empty); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(opts.Now); err != nil {
		t.Fatal(err)
	}

	// Kafka finds everything and repairs nothing.
	k.start()
	sameValues(t, "in Kafka after samsa's clean stop", k.consume(ctx, end), want)
	for _, line := range k.log() {
		if strings.Contains(line, "__cluster_metadata") {
			continue // Kafka recovers the metadata log at every start
		}
		about := strings.Contains(line, "h-0") || strings.Contains(line, "empty-0") || regexp.MustCompile(`LogLoader|LogSegment|ProducerStateManager|TimeIndex|OffsetIndex`).MatchString(line)
		if about && (!strings.HasPrefix(line, "INFO") || regexp.MustCompile(`(?i)recovering|rebuil[dt]ing (files|index)|corrupt|truncat|unflushed|orphan|deleting`).MatchString(line)) {
			t.Errorf("Kafka logs: %s", line)
		}
	}
	produce(1500, 900)
	k.stop(syscall.SIGKILL)

	// And after Kafka's death samsa has it all, from preallocated indexes and no snapshot.
	opts.Clean = false
	l, info, err = partlog.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("after kill -9: %+v", info)
	sameValues(t, "after Kafka's death", values(t, l), want)
	if err := l.Close(opts.Now); err != nil {
		t.Fatal(err)
	}
	dumpEverything(t, k.jars, root)
}

// values are the values of all data records of a log.
func values(t *testing.T, l *partlog.Log) (out []string) {
	t.Helper()
	end := l.LogEndOffset()
	for at := l.LogStartOffset(); at < end; {
		b, next, err := l.ReadBatches(make([]byte, 0, 1<<20), at, end)
		if err != nil || len(b) == 0 {
			t.Fatalf("reading at %d: %v", at, err)
		}
		for batch, err := range record.Split(b) {
			if err != nil || !batch.ValidCRC() {
				t.Fatalf("batch at %d: %v", at, err)
			}
			if batch.IsControl() {
				continue
			}
			for r, err := range record.Records(batch) {
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, string(bytes.Clone(r.Value)))
			}
		}
		at = next
	}
	return out
}

func sameValues(t *testing.T, when string, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: record %d is %.40q, expected %.40q", when, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, expected %d", when, len(got), len(want))
	}
}
