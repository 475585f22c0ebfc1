package node

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
)

// K-195, K-59, K-73, K-13: Apache Kafka leads a single-voter quorum and is killed; this node opens the directory, finds everything, leads the next
// epoch and appends; Kafka takes the directory back, honours the epoch, and has all its topics.
func TestDirectoryChangesHandsWithKafka(t *testing.T) {
	cp := kafka(t)
	root := t.TempDir()
	var ports [2]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		ports[i] = l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	file := filepath.Join(root, "server.properties")
	must(t, os.WriteFile(file, []byte(fmt.Sprintf("process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=127.0.0.1:%[2]d\n"+
		"listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d\ncontroller.listener.names=CONTROLLER\nlog.dirs=%[3]s/d\n", ports[0], ports[1], root)), 0o644))
	java(t, cp, "kafka.tools.StorageTool", "format", "-c", file, "-t", testCluster, "-s")

	// withKafka runs a broker while f works, then kills it.
	withKafka := func(f func(ctx context.Context, adm *kadm.Client)) {
		t.Helper()
		var log bytes.Buffer
		cmd := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", cp, "kafka.Kafka", file)
		cmd.Stdout, cmd.Stderr = &log, &log
		must(t, cmd.Start())
		cl, err := kgo.NewClient(kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", ports[0])))
		must(t, err)
		adm := kadm.NewClient(cl)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		for {
			one, stop := context.WithTimeout(ctx, 2*time.Second)
			b, err := adm.ListBrokers(one)
			stop()
			if err == nil && len(b) == 1 {
				break
			}
			if ctx.Err() != nil {
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		f(ctx, adm)
		cancel()
		cl.Close()
		cmd.Process.Kill()
		cmd.Wait()
		if s := log.String(); strings.Contains(s, "Exception") || t.Failed() {
			t.Errorf("Kafka said:\n%.6000s", s)
		}
	}
	withKafka(func(ctx context.Context, adm *kadm.Client) {
		_, err := adm.CreateTopics(ctx, 5, 1, nil, "a", "b", "c")
		must(t, err)
	})

	meta, err := os.ReadFile(filepath.Join(root, "d", "meta.properties"))
	must(t, err)
	var dir model.UUID
	for _, line := range strings.Split(string(meta), "\n") {
		if v, ok := strings.CutPrefix(line, "directory.id="); ok {
			dir, err = model.ParseUUID(strings.TrimSpace(v))
			must(t, err)
		}
	}
	o := options(vfs.OS(), 1)
	o.Dir, o.Directory = filepath.Join(root, "d"), model.DirectoryID(dir)
	o.Listeners = kraft.Endpoints{{Name: "CONTROLLER", Host: "localhost", Port: uint16(ports[1])}}
	n, r := lead(t, o)
	epoch := n.State().Epoch
	if texts, _, _ := r.state(); strings.Join(texts, "") != "abc" || epoch < 2 {
		t.Errorf("topics %q, epoch %d", texts, epoch)
	}
	if v := n.Voters(); len(v) != 1 || v[0].Directory != model.DirectoryID(dir) || n.KRaftVersion() != 1 {
		t.Errorf("voters %+v", v)
	}
	noop, err := protocol.AppendMetadataRecord(nil, 20, 0, &protocol.NoOpRecord{})
	must(t, err)
	for range 10 {
		last, err := n.Append(epoch, [][]Record{{noop}, {noop, noop}})
		must(t, err)
		eventually(t, "commit", func() bool { _, next, _ := r.state(); return next > last })
	}
	end := n.EndOffset()
	stop(t, n)

	withKafka(func(ctx context.Context, adm *kadm.Client) {
		topics, err := adm.ListTopics(ctx)
		must(t, err)
		if got := strings.Join(topics.Names(), ""); got != "abc" {
			t.Errorf("Kafka finds topics %s", got)
		}
		if len(topics["a"].Partitions) != 5 {
			t.Errorf("topic a: %+v", topics["a"])
		}
		_, err = adm.CreateTopics(ctx, 1, 1, nil, "d")
		must(t, err)
	})
	n, r = lead(t, o)
	if s := n.State(); s.Epoch != epoch+2 || s.LogEnd <= end {
		t.Errorf("after Kafka's epoch: %+v, was epoch %d and end %d", s, epoch, end)
	}
	if texts, _, _ := r.state(); strings.Join(texts, "") != "abcd" {
		t.Errorf("topics %q", texts)
	}
	stop(t, n)
}
