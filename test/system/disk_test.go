package system

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
	"samsa/test/harness"
)

// appendOne produces one record with acks=1 and returns the name of the error, "" for none.
func appendOne(t *testing.T, conn *harness.Conn, p int32, value []byte) string {
	t.Helper()
	b := record.NewBuilder(record.NewBatchOptions())
	b.Append(time.Now().UnixMilli(), nil, value, nil)
	batch := b.Build(nil)
	req := protocol.Make[protocol.ProduceRequest]()
	req.Acks, req.TimeoutMs = 1, 10000
	req.TopicData = []protocol.ProduceRequestTopicProduceData{{Name: damagedTopic,
		PartitionData: []protocol.ProduceRequestPartitionProduceData{{Index: p, Records: batch}}}}
	resp, err := conn.Ask(9, &req)
	must(t, err)
	if e := kerr.ForCode(resp.(*protocol.ProduceResponse).Responses[0].PartitionResponses[0].ErrorCode); e != nil {
		return e.Name
	}
	return ""
}

// faultyNode is a prepared node whose second directory is on a disk that can fail. It does not run.
func faultyNode(t *testing.T) (*prepared, *harness.Node, *harness.FaultyDisk) {
	t.Helper()
	w := prepare(t, true)
	return w, w.node, harness.MountFaulty(t, w.node.LogDirs[1])
}

// Issue 3 and J-116, T-23: EIO of one directory costs its partitions and nobody else's, whichever call meets it. After the repair
// everything acknowledged is there.
func TestFailingDisk(t *testing.T) {
	w, n, disk := faultyNode(t)
	for _, c := range []struct {
		name  string
		calls harness.Calls
		read  bool // a fetch meets it, not a produce
	}{{"writes", harness.Writes, false}, {"everything", harness.All, false}, {"reads", harness.Reads, true}, {"syncs", harness.Syncs, false}} {
		t.Run(c.name, func(t *testing.T) {
			disk.Fail(harness.NoCalls)
			mark := n.Mark()
			n.Start("--set", "log.flush.interval.messages=1")
			defer n.Kill()
			if got, want := w.picture(t, n), w.want(damage{}); got != want {
				t.Fatalf("before the fault: %q", got)
			}
			b := watchPartition(t, n, int32(w.in(0)[0]))
			hits := disk.Hits.Load()
			disk.Fail(c.calls)
			conn := harness.Dial(t, n.Addr)
			bad := int32(w.in(1)[0])
			if c.read {
				if got := read(t, conn, bad); got != "0 of 300, then KAFKA_STORAGE_ERROR" {
					t.Errorf("fetch: %s", got)
				}
			} else if got := appendOne(t, conn, bad, value(bad, damagedRecords)); got != "KAFKA_STORAGE_ERROR" {
				t.Errorf("produce: %q", got)
			}
			if disk.Hits.Load() == hits {
				t.Error("the fault was never met")
			}
			n.Eventually("both partitions of the directory are out of service, and no other", 10*time.Second, func() error {
				for p := range int32(damagedPartitions) {
					want := ""
					if w.dirs[p] == 1 {
						want = "KAFKA_STORAGE_ERROR"
					}
					if got := listEnd(t, conn, p); got != want {
						return fmt.Errorf("partition %d: %q", p, got)
					}
				}
				return nil
			})
			if v := n.Metric("kafka_log_logmanager_offlinelogdirectorycount"); v != 1 {
				t.Errorf("OfflineLogDirectoryCount is %v", v)
			}
			if !saysAll(n.LogSince(mark), []string{"stopping serving logs in dir", n.LogDirs[1], "input/output error"}) {
				t.Errorf("no line says so:\n%s", n.LogSince(mark))
			}
			b(5)
			n.Stop()
			disk.Fail(harness.NoCalls)
			if m := markers(t, n); m[0] == nil || m[1] != nil {
				t.Errorf("clean markers: %v; only the healthy directory may have one", m)
			}
		})
	}
	n.Start()
	got, want := w.picture(t, n), w.want(damage{})
	if bad := w.in(1)[0]; got[bad] == fmt.Sprint(damagedRecords+1) {
		want[bad] = got[bad] // what was refused because of a failed fsync may be there
	}
	if got != want {
		t.Errorf("after the repair: %q", got)
	}
}

// The directory of the metadata log fails: the node ends with exit code 1 and says which disk (J-37).
func TestFailingMetadataDisk(t *testing.T) {
	w := prepare(t, true)
	n := w.node
	disk := harness.MountFaulty(t, n.LogDirs[0])
	n.Start()
	mark := n.Mark()
	disk.Fail(harness.Writes | harness.Syncs)
	if code := n.Wait(30 * time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if !saysAll(n.LogSince(mark), []string{"this node has to stop", n.LogDirs[0], "input/output error"}) {
		t.Errorf("no line says so:\n%s", n.LogSince(mark))
	}
	disk.Fail(harness.NoCalls)
	n.Start()
	if got, want := w.picture(t, n), w.want(damage{}); got != want {
		t.Errorf("after the repair: %q", got)
	}
}

// watchPartition returns a function that fetches and asks for the end of a healthy partition, some times.
func watchPartition(t *testing.T, n *harness.Node, p int32) func(times int) {
	conn := harness.Dial(t, n.Addr)
	return func(times int) {
		t.Helper()
		for range times {
			if got := read(t, conn, p); got != fmt.Sprint(damagedRecords) {
				t.Errorf("a healthy partition: %s", got)
			}
		}
	}
}

// listEnd asks for the end of a partition and returns the name of the error, "" for none.
func listEnd(t *testing.T, conn *harness.Conn, p int32) string {
	t.Helper()
	list := protocol.Make[protocol.ListOffsetsRequest]()
	list.ReplicaId = -1
	list.Topics = []protocol.ListOffsetsRequestListOffsetsTopic{{Name: damagedTopic, Partitions: []protocol.ListOffsetsRequestListOffsetsPartition{{PartitionIndex: p, CurrentLeaderEpoch: -1, Timestamp: -1}}}}
	resp, err := conn.Ask(1, &list)
	must(t, err)
	if e := kerr.ForCode(resp.(*protocol.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode); e != nil {
		return e.Name
	}
	return ""
}

// J-116, J-193: a full disk costs its own partitions; the other directory serves on. With room again a restart brings everything
// acknowledged back, the half-written tail cut off.
func TestFullDisk(t *testing.T) {
	n := harness.NewNode(t, 2, "log.segment.bytes=1048576")
	n.Format()
	meta, err := os.ReadFile(filepath.Join(n.LogDirs[1], "meta.properties"))
	must(t, err)
	if err := syscall.Mount("none", n.LogDirs[1], "tmpfs", 0, "size=12m"); err != nil {
		privileges(t, err)
	}
	t.Cleanup(func() { n.Kill(); syscall.Unmount(n.LogDirs[1], syscall.MNT_DETACH) })
	overwrite(string(meta))(t, filepath.Join(n.LogDirs[1], "meta.properties"))
	n.Start()
	harness.CreateTopic(t, n, damagedTopic, damagedPartitions)
	w := &prepared{node: n}
	w.find(t)
	conn := harness.Dial(t, n.Addr)
	bad, good := int32(w.in(1)[0]), int32(w.in(0)[0])
	acked := 0
	for ; ; acked++ {
		if got := appendOne(t, conn, bad, value(bad, acked)); got != "" {
			if got != "KAFKA_STORAGE_ERROR" {
				t.Errorf("produce to a full disk: %q", got)
			}
			break
		}
		if acked > 5000 {
			t.Fatal("12 MiB are never full")
		}
	}
	for i := range 20 {
		if got := appendOne(t, conn, good, value(good, i)); got != "" {
			t.Errorf("produce to the other disk: %q", got)
		}
	}
	if got := read(t, conn, good); got != "20" {
		t.Errorf("the other disk: %s", got)
	}
	if got := listEnd(t, conn, bad); got != "KAFKA_STORAGE_ERROR" {
		t.Errorf("the full disk: %q", got)
	}
	if !saysAll(n.Log(), []string{"stopping serving logs in dir", n.LogDirs[1], "no space left on device"}) {
		t.Errorf("no line says so:\n%s", n.Log())
	}
	n.Stop()
	must(t, syscall.Mount("none", n.LogDirs[1], "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	n.Start()
	conn = harness.Dial(t, n.Addr)
	if got := read(t, conn, bad); got != fmt.Sprint(acked) {
		t.Errorf("with room again: %s, %d were acknowledged", got, acked)
	}
	if got := appendOne(t, conn, bad, value(bad, acked)); got != "" {
		t.Errorf("produce with room again: %q", got)
	}
	if got := read(t, conn, good); got != "20" {
		t.Errorf("the other disk: %s", got)
	}
}
