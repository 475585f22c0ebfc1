package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/raft/node"
	"samsa/internal/storage/logdir"
	"samsa/internal/wire/protocol"

	"samsa/test/peers"
)

// freePorts finds ports nobody uses.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// combined writes the configuration of a combined node with two directories and its own metadata directory.
func combined(t *testing.T, root string) (file string, broker int) {
	t.Helper()
	ports := freePorts(t, 2)
	file = filepath.Join(root, "server.properties")
	text := fmt.Sprintf("process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=127.0.0.1:%[2]d\n"+
		"listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d\ncontroller.listener.names=CONTROLLER\nlog.dirs=%[3]s/d1,%[3]s/d2\nmetadata.log.dir=%[3]s/m\n"+
		"offsets.topic.replication.factor=1\n", ports[0], ports[1], root)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, ports[0]
}

// features asks a broker, when it answers, for its finalized features.
func features(t *testing.T, port int, deadline time.Time, gone <-chan struct{}) map[string]int16 {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", port)))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for time.Now().Before(deadline) {
		select {
		case <-gone:
			return nil
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "samsa", "1"
		resp, err := req.RequestWith(ctx, cl)
		cancel()
		if err != nil || resp.ErrorCode != 0 || len(resp.FinalizedFeatures) == 0 {
			select {
			case <-gone:
			case <-time.After(200 * time.Millisecond): // ask again; the deadline ends this
			}
			continue
		}
		out := map[string]int16{}
		for _, f := range resp.FinalizedFeatures {
			out[f.Name] = f.MaxVersionLevel
		}
		return out
	}
	return nil
}

// K-105, K-106, J-10, J-14, D-40: Apache Kafka starts on what samsa formatted, in both forms of the checkpoint, and
// begins the cluster with the features samsa chose.
func TestKafkaStartsOnSamsaDirectories(t *testing.T) {
	jars := peers.Kafka(t)
	want := map[string]int16{"metadata.version": 33, "kraft.version": 1, "group.version": 1, "transaction.version": 2,
		"eligible.leader.replicas.version": 1, "share.version": 1, "streams.version": 1}
	for _, form := range []string{"4.x", "4.4"} {
		t.Run(form, func(t *testing.T) {
			root := t.TempDir()
			file, port := combined(t, root)
			r := runSamsa([]string{"format", "-c", file, "-t", "Rr22P56NSji_e-5OsqeU5A", "-s", "-f", "share.version=1", "--checkpoint-form", form})
			if r.code != 0 {
				t.Fatal(r.err)
			}
			var log bytes.Buffer
			cmd := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", jars+"/*", "kafka.Kafka", file)
			cmd.Stdout, cmd.Stderr = &log, &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			gone := make(chan struct{})
			go func() {
				cmd.Wait()
				close(gone)
			}()
			got := features(t, port, time.Now().Add(2*time.Minute), gone)
			cmd.Process.Signal(syscall.SIGKILL)
			<-gone
			for name, level := range want {
				if got[name] != level {
					t.Errorf("%s is %d, want %d", name, got[name], level)
				}
			}
			if t.Failed() {
				t.Logf("Kafka said:\n%s", &log)
			}
		})
	}
}

// K-105, D-40, J-08: samsa takes over what Apache Kafka formatted: identity, voters and first records.
func TestSamsaReadsKafkaDirectories(t *testing.T) {
	root := t.TempDir()
	file, _ := combined(t, root)
	r := runKafka(t, [][]string{{"format", "-c", file, "-t", "Rr22P56NSji_e-5OsqeU5A", "-s", "-f", "share.version=1",
		"-S", `SCRAM-SHA-256=[name=alice,password=pw,salt="c2FsdA=="]`}})[0]
	if r.code != 0 {
		t.Fatal(r.err)
	}
	dirs := []string{root + "/d1", root + "/d2"}
	e, err := logdir.Prepare(logdir.PrepareOptions{FS: vfs.OS(), Dirs: dirs, MetadataDir: root + "/m", NodeID: 1})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := e.DirectoryID(root + "/m")
	n, err := node.Open(node.Options{Dir: root + "/m", FS: vfs.OS(), ClusterID: e.ClusterID(), NodeID: 1, Directory: id, Controller: true,
		Listeners: kraft.Endpoints{{Name: "CONTROLLER", Host: "127.0.0.1", Port: 9093}}, Config: node.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop(context.Background())
	if v := n.Voters(); len(v) != 1 || v[0].ID != 1 || v[0].Directory != id || n.KRaftVersion() != 1 {
		t.Errorf("voters %+v, kraft.version %d", v, n.KRaftVersion())
	}
	records, source, err := n.Bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int16{}
	scram := 0
	for _, value := range records {
		_, _, m, err := protocol.ReadMetadataRecord(value)
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *protocol.FeatureLevelRecord:
			got[m.Name] = m.FeatureLevel
		case *protocol.UserScramCredentialRecord:
			if m.Name == "alice" {
				scram++
			}
		}
	}
	if got["metadata.version"] != 33 || got["share.version"] != 1 || got["group.version"] != 1 || scram != 1 {
		t.Errorf("from %s: %v, %d SCRAM users", source, got, scram)
	}
	m, err := logdir.Open(logdir.Options{FS: vfs.OS(), Dirs: dirs, MetadataDir: root + "/m", NodeID: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(context.Background(), logdir.LoadOptions{}); err != nil {
		t.Error(err)
	}
	if err := m.Close(context.Background(), 1); err != nil {
		t.Error(err)
	}
	info := runSamsa([]string{"info", "-c", file})
	if info.code != 0 || !strings.Contains(info.out, "cluster.id=Rr22P56NSji_e-5OsqeU5A") {
		t.Errorf("info: %d %s%s", info.code, info.out, info.err)
	}
}
