package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

func describeLogDirs(t *testing.T, c *harness.Conn, version int16, topics ...protocol.DescribeLogDirsRequestDescribableLogDirTopic) map[string]protocol.DescribeLogDirsResponseDescribeLogDirsResult {
	t.Helper()
	req := protocol.Make[protocol.DescribeLogDirsRequest]()
	req.Topics = topics
	resp := ask[protocol.DescribeLogDirsResponse](t, c, version, &req)
	if resp.ErrorCode != 0 {
		t.Fatalf("DescribeLogDirs v%d: error %d", version, resp.ErrorCode)
	}
	out := map[string]protocol.DescribeLogDirsResponseDescribeLogDirsResult{}
	for _, r := range resp.Results {
		out[r.LogDir] = r
	}
	return out
}

// J-156, J-157, J-159, J-160, J-161, D-195: DescribeLogDirs at every version, and Kafka's tool for it.
func TestDescribeLogDirs(t *testing.T) {
	n := serve(t, 3)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "sized", 6)
	put(t, c, id, 0, strings.Repeat("x", 1000))
	for v := int16(1); v <= 5; v++ {
		all := describeLogDirs(t, c, v, nil...)
		var found []int32
		for _, dir := range n.LogDirs {
			r, ok := all[dir]
			if !ok || r.ErrorCode != 0 || len(all) != 3 {
				t.Fatalf("v%d: %s: %+v", v, dir, all)
			}
			var fs unix.Statfs_t
			if err := unix.Statfs(dir, &fs); err != nil {
				t.Fatal(err)
			}
			total, usable := int64(fs.Blocks)*fs.Bsize, int64(fs.Bavail)*fs.Bsize
			if v < 4 && (r.TotalBytes != -1 || r.UsableBytes != -1) || v >= 4 && (r.TotalBytes != total || r.UsableBytes < usable/2 || r.UsableBytes > usable*2) {
				t.Errorf("v%d: %s: %d of %d bytes, the file system has %d of %d", v, dir, r.UsableBytes, r.TotalBytes, usable, total)
			}
			for _, topic := range r.Topics {
				for _, p := range topic.Partitions {
					if topic.Name != "sized" {
						t.Errorf("v%d: %s is listed", v, topic.Name)
					}
					found = append(found, p.PartitionIndex)
					if wrote := p.PartitionIndex == 0; wrote != (p.PartitionSize > 1000) || p.OffsetLag != 0 || p.IsFutureKey {
						t.Errorf("v%d: %+v", v, p)
					}
					if _, err := os.Stat(filepath.Join(dir, fmt.Sprint("sized-", p.PartitionIndex))); err != nil {
						t.Errorf("v%d: listed in %s: %v", v, dir, err)
					}
				}
			}
		}
		if slices.Sort(found); !slices.Equal(found, []int32{0, 1, 2, 3, 4, 5}) {
			t.Errorf("v%d: partitions %v", v, found)
		}
		for what, topics := range map[string][]protocol.DescribeLogDirsRequestDescribableLogDirTopic{
			"none": {}, "unknown": {{Topic: "nowhere", Partitions: []int32{0}}}, "unknown_partition": {{Topic: "sized", Partitions: []int32{9}}},
		} {
			got := describeLogDirs(t, c, v, topics...)
			if what == "none" {
				req := protocol.Make[protocol.DescribeLogDirsRequest]()
				req.Topics = topics
				got = map[string]protocol.DescribeLogDirsResponseDescribeLogDirsResult{}
				for _, r := range ask[protocol.DescribeLogDirsResponse](t, c, v, &req).Results {
					got[r.LogDir] = r
				}
			}
			if len(got) != 3 {
				t.Errorf("v%d, %s: %d directories", v, what, len(got))
			}
			for dir, r := range got {
				if len(r.Topics) != 0 {
					t.Errorf("v%d, %s: %s: %+v", v, what, dir, r.Topics)
				}
			}
		}
		one := describeLogDirs(t, c, v, protocol.DescribeLogDirsRequestDescribableLogDirTopic{Topic: "sized", Partitions: []int32{3}})
		count := 0
		for _, r := range one {
			for _, topic := range r.Topics {
				count += len(topic.Partitions)
			}
		}
		if count != 1 {
			t.Errorf("v%d: asked for one partition, got %d", v, count)
		}
	}
	out := harness.MustTool(t, "log-dirs", "", "--bootstrap-server", n.Addr, "--describe", "--topic-list", "sized")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var report struct {
		Version int
		Brokers []struct {
			Broker  int
			LogDirs []struct {
				Partitions []struct {
					Partition string
					Size      int64
					OffsetLag int64
					IsFuture  bool
				}
				Error  *string
				LogDir string
			}
		}
	}
	if len(lines) != 3 {
		t.Fatalf("kafka-log-dirs printed %q", out)
	}
	if err := json.Unmarshal([]byte(lines[2]), &report); err != nil || report.Version != 1 || len(report.Brokers) != 1 || len(report.Brokers[0].LogDirs) != 3 {
		t.Fatalf("kafka-log-dirs printed %s: %v", lines[2], err)
	}
	count := 0
	for _, d := range report.Brokers[0].LogDirs {
		if d.Error != nil || !slices.Contains(n.LogDirs, d.LogDir) {
			t.Errorf("%+v", d)
		}
		count += len(d.Partitions)
	}
	if count != 6 {
		t.Errorf("kafka-log-dirs lists %d partitions", count)
	}
	if r := harness.Tool(t, "log-dirs", "", "--bootstrap-server", n.Addr, "--describe", "--broker-list", "7"); r.Code != 1 || !strings.Contains(r.Stdout+r.Stderr, "ERROR: The given brokers do not exist from --broker-list: 7. Current existent brokers: 1") {
		t.Errorf("unknown broker: exit code %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// where finds the log directory that holds a replica.
func where(t *testing.T, n *harness.Node, replica string) (dir string) {
	t.Helper()
	for _, d := range n.LogDirs {
		if _, err := os.Stat(filepath.Join(d, replica)); err == nil {
			if dir != "" {
				t.Fatalf("%s is in %s and %s", replica, dir, d)
			}
			dir = d
		}
	}
	return dir
}

// D-23, D-73, J-124, J-158, T-49: a directory goes away under a running node (F1). Its partitions alone fail, DescribeLogDirs says
// so, a topic in it can be deleted and made again at once; with the last data directory the process ends.
func TestDirectoryGoesAway(t *testing.T) {
	n := harness.NewNode(t, 3)
	meta := filepath.Join(n.Dir, "meta")
	n.Set("metadata.log.dir", meta)
	n.Set("log.dir.failure.timeout.ms", "5000")
	if onKafka {
		n.FormatKafka()
	} else {
		n.Format()
	}
	launch(n)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "spread", 9)
	for i := range int32(9) {
		put(t, c, id, i, fmt.Sprint("before ", i))
	}
	bad := where(t, n, "spread-0")
	var lost, kept []int32
	for i := range int32(9) {
		if where(t, n, fmt.Sprint("spread-", i)) == bad {
			lost = append(lost, i)
		} else {
			kept = append(kept, i)
		}
	}
	if len(lost) != 3 {
		t.Errorf("%d of 9 partitions are in %s", len(lost), bad)
	}
	takeAway(t, bad)
	eventually(t, "the directory is reported as failed", func() bool { return describeLogDirs(t, c, 4)[bad].ErrorCode == 56 })
	if r := describeLogDirs(t, c, 4)[bad]; len(r.Topics) != 0 || r.TotalBytes != -1 || r.UsableBytes != -1 {
		t.Errorf("the failed directory: %+v", r)
	}
	for _, i := range kept {
		put(t, c, id, i, fmt.Sprint("after ", i))
	}
	for _, i := range lost {
		p := ask[protocol.ProduceResponse](t, c, 13, produceByID(id, i, -1, batch("x"))).Responses[0].PartitionResponses[0]
		if p.ErrorCode != 56 && p.ErrorCode != 6 {
			t.Errorf("produce to %d: error %d", i, p.ErrorCode)
		}
	}
	eventually(t, "the partitions have no leader", func() bool {
		topic := metadata(t, c, 12, "spread").Topics[0]
		for _, p := range topic.Partitions {
			if slices.Contains(lost, p.PartitionIndex) != (p.LeaderId == -1 && slices.Contains(p.OfflineReplicas, 1)) {
				return false
			}
		}
		return true
	})
	// The answer to the delete waits for no disk (T-49), and the name is free at once.
	begin := time.Now()
	remove(t, c, id)
	again := create(t, c, "spread", 4)
	if again == id {
		t.Error("the new topic has the old id")
	}
	t.Logf("deleted and created again in %s", time.Since(begin))
	for i := range int32(4) {
		put(t, c, again, i, "again")
		if dir := where(t, n, fmt.Sprint("spread-", i)); dir == bad || dir == "" {
			t.Errorf("spread-%d is in %q", i, dir)
		}
	}
	for _, dir := range n.LogDirs {
		if dir != bad {
			takeAway(t, dir)
		}
	}
	if code := n.Wait(time.Minute); code != 1 {
		t.Errorf("exit code %d after the last data directory, want 1", code)
	}
	if _, err := os.Stat(filepath.Join(meta, ".kafka_cleanshutdown")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a clean marker after a failure: %v", err)
	}
}

// takeAway renames a directory and puts a plain file in its place.
func takeAway(t *testing.T, dir string) {
	t.Helper()
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// directoryID reads a directory's id from its meta.properties.
func directoryID(t *testing.T, dir string) model.UUID {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "meta.properties"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "directory.id="); ok {
			id, err := model.ParseUUID(strings.TrimSpace(v))
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
	}
	t.Fatalf("no directory.id in %s", dir)
	return model.UUID{}
}

// assigned are the directories of a topic's partitions as the metadata log has them now.
func assigned(t *testing.T, n *harness.Node, topic model.UUID) map[int32]model.UUID {
	t.Helper()
	now := map[int32]model.UUID{}
	for _, r := range metadataRecords(t, n) {
		switch r := r.(type) {
		case *protocol.PartitionRecord:
			if r.TopicId == topic {
				now[r.PartitionId] = r.Directories[0]
			}
		case *protocol.PartitionChangeRecord:
			if r.TopicId == topic && len(r.Directories) > 0 {
				now[r.PartitionId] = r.Directories[0]
			}
		}
	}
	return now
}

// K-206, J-07, J-23, J-47, J-59, J-102: with several directories a new replica's place is reported to the controller; the id
// belongs to the content of a directory, so disks that change places change nothing; directories that are added, and replicas
// moved by hand, are known to the metadata once the broker serves.
func TestDirectoriesChangePlaces(t *testing.T) {
	n := serve(t, 2)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "placed", 4)
	known := func() map[int32]model.UUID { return assigned(t, n, id) }
	onDisk := func() map[int32]model.UUID {
		out := map[int32]model.UUID{}
		for i := range int32(4) {
			if dir := where(t, n, fmt.Sprint("placed-", i)); dir != "" {
				out[i] = directoryID(t, dir)
			}
		}
		return out
	}
	eventually(t, "the places are reported", func() bool { return len(onDisk()) == 4 && mapsEqual(known(), onDisk()) })
	unassigned := 0
	for _, r := range metadataRecords(t, n) {
		if r, ok := r.(*protocol.PartitionRecord); ok && r.TopicId == id {
			if r.Directories[0] == (model.UUID{15: 1}) {
				unassigned++
			}
		}
	}
	if unassigned != 4 {
		t.Errorf("%d of 4 partitions began unassigned", unassigned)
	}
	for i := range int32(4) {
		put(t, c, id, i, fmt.Sprint("record ", i))
	}
	check := func(when string) {
		t.Helper()
		c = harness.Dial(t, n.Addr)
		led(t, c, id, 4)
		for i := range int32(4) {
			req := fetchByID(id, 0)
			req.Topics[0].Partitions[0].Partition = i
			p := ask[protocol.FetchResponse](t, c, 17, req).Responses[0].Partitions[0]
			if got := values(t, p.Records); p.ErrorCode != 0 || fmt.Sprint(got) != fmt.Sprintf("[record %d]", i) {
				t.Errorf("%s: partition %d: error %d, %q", when, i, p.ErrorCode, got)
			}
		}
		if !mapsEqual(known(), onDisk()) {
			t.Errorf("%s: the metadata says %v, the disks %v", when, known(), onDisk())
		}
	}
	places := func() (out []*protocol.PartitionChangeRecord) {
		for _, r := range metadataRecords(t, n) {
			if r, ok := r.(*protocol.PartitionChangeRecord); ok && r.TopicId == id && len(r.Directories) > 0 {
				out = append(out, r)
			}
		}
		return out
	}

	// The disks change places. The metadata log lives in the first entry of log.dirs, so it is named.
	n.Stop()
	d1, d2 := n.LogDirs[0], n.LogDirs[1]
	for _, r := range [][2]string{{d1, d1 + ".x"}, {d2, d1}, {d1 + ".x", d2}} {
		if err := os.Rename(r[0], r[1]); err != nil {
			t.Fatal(err)
		}
	}
	n.LogDirs = []string{d2, d1}
	n.Set("log.dirs", d2+","+d1)
	before := len(places())
	launch(n)
	check("swapped")
	// Kafka writes PartitionChange records with the list for elections too; none may name another place.
	for _, r := range places()[before:] {
		if r.Directories[0] != known()[r.PartitionId] {
			t.Errorf("swapped: %+v", r)
		}
	}

	// One more directory, and a replica moved into it by hand while the node is down.
	n.Stop()
	d3 := filepath.Join(n.Dir, "d3")
	n.LogDirs = append(n.LogDirs, d3)
	n.Set("log.dirs", strings.Join(n.LogDirs, ","))
	if onKafka {
		harness.MustTool(t, "storage", "", "format", "-g", "-t", "SamsaTestCluster000000", "-c", n.Properties, "--standalone")
	} else {
		n.FormatRest()
	}
	from := where(t, n, "placed-2")
	if err := os.Rename(filepath.Join(from, "placed-2"), filepath.Join(d3, "placed-2")); err != nil {
		t.Fatal(err)
	}
	launch(n)
	check("a third directory")
	if known()[2] != directoryID(t, d3) {
		t.Errorf("placed-2 is in %s by the metadata", known()[2])
	}
}
