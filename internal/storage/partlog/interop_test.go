package partlog_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/wire/record"

	"samsa/test/peers"
)

func dumpLog(t *testing.T, jars string, args ...string) string {
	t.Helper()
	args = append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", jars + "/*", "org.apache.kafka.tools.DumpLogSegments"}, args...)
	out, err := exec.Command("java", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("DumpLogSegments %v: %v\n%s", args[5:], err, out)
	}
	return string(out)
}

// writeEverything fills a log with what a partition can hold.
func writeEverything(t *testing.T, partition string) (*rig, string) {
	t.Helper()
	fs := vfs.OS()
	root := t.TempDir() + "/" + partition
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &rig{fs: fs, env: &partlog.Env{Files: partlog.NewFiles(16)}, cfg: partlog.DefaultConfig(), now: 1_790_000_000_000}
	r.cfg.SegmentBytes = 64 << 10
	var err error
	r.log, _, err = partlog.Open(partlog.Options{FS: fs, Dir: root, Partition: model.TopicPartition{Topic: "t"}, Env: r.env, Config: r.cfg, New: true, Now: r.now})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.log.AssignEpoch(3, 0); err != nil {
		t.Fatal(err)
	}
	seq := map[int64]int32{}
	for i := range 600 {
		r.now += 250
		o := record.NewBatchOptions()
		o.Codec = record.Codec(i % 5)
		pid := int64(i % 4)
		if pid > 0 {
			o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = pid, 0, seq[pid], pid == 3
		}
		b := record.NewBuilder(o)
		n := 1 + i%7
		for j := range n {
			b.Append(r.now+int64((j*37)%11), []byte(fmt.Sprint("key-", i)), []byte(strings.Repeat(fmt.Sprint("value-", i, j), 20)), []record.Header{{Key: "h", Value: []byte("x")}})
		}
		seq[pid] += int32(n)
		r.append(t, b.Build(nil))
		if i%23 == 22 {
			r.marker(t, 3, 0, i%2 == 0)
			seq[3] = 0
			if p, ok := r.log.Producer(3); ok && len(p.Batches) > 0 {
				seq[3] = p.Batches[len(p.Batches)-1].LastSequence + 1
			}
		}
		if i == 300 {
			if err := r.log.AssignEpoch(5, r.log.LogEndOffset()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r, root
}

var complaint = regexp.MustCompile(`(?i)mismatch|exception|isvalid: false|invalid|non-consecutive|out of order|failed`)

// The tool of 4.4.0 says of every file that does not begin at offset 0 that its first offset does not follow -1.
var (
	notConsecutive = regexp.MustCompile(`^Non-consecutive offsets in .*$`)
	gap            = regexp.MustCompile(`^  -?\d+ is followed by`)
)

func dumpEverything(t *testing.T, jars, root string, modes ...string) string {
	t.Helper()
	var logs, indexes, others []string
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		switch filepath.Ext(e.Name()) {
		case ".log":
			logs = append(logs, path)
		case ".index", ".timeindex":
			indexes = append(indexes, path)
		case ".txnindex", ".snapshot":
			others = append(others, path)
		}
	}
	if len(logs) < 3 || len(others) < 3 {
		t.Fatalf("too little to look at: %v", entries)
	}
	all := ""
	if len(modes) == 0 {
		modes = []string{"--verify-index-only", "--index-sanity-check", "--deep-iteration"}
	}
	for _, mode := range modes {
		args := []string{"--files", strings.Join(indexes, ","), mode}
		if mode == "--deep-iteration" {
			args[1] = strings.Join(append(append(logs, indexes...), others...), ",")
			args = append(args, "--print-data-log")
		}
		out := dumpLog(t, jars, args...)
		for _, line := range strings.Split(out, "\n") {
			if complaint.MatchString(notConsecutive.ReplaceAllString(line, "")) || gap.MatchString(line) && !strings.HasPrefix(line, "  -1 ") {
				t.Errorf("%v: %s", args[2:], line)
			}
		}
		all += out
	}
	return all
}

// TestDumpLogSegments: D-01, D-46, D-47, D-48, D-50, D-58, D-96, D-98, D-214; K-59.
func TestDumpLogSegments(t *testing.T) {
	jars := peers.Kafka(t)
	r, root := writeEverything(t, "t-0")
	if err := r.log.Close(r.now); err != nil {
		t.Fatal(err)
	}
	out := dumpEverything(t, jars, root)
	for _, want := range []string{"compresscodec: gzip", "compresscodec: snappy", "compresscodec: lz4", "compresscodec: zstd", "endTxnMarker: COMMIT",
		"endTxnMarker: ABORT", "partitionLeaderEpoch: 3", "producerId: 1", "lastStableOffset", "passed sanity check", "currentTxnFirstOffset"} {
		if !strings.Contains(strings.ToLower(out), strings.ToLower(want)) {
			t.Errorf("the dump does not mention %q", want)
		}
	}
	// After a crash and its recovery too.
	r.log, _, _ = partlog.Open(partlog.Options{FS: r.fs, Dir: root, Partition: model.TopicPartition{Topic: "t"}, Env: r.env, Config: r.cfg, Now: r.now})
	r.append(t, batchOf(3, r.now, "x", 100))
	if err := r.log.Close(r.now); err != nil {
		t.Fatal(err)
	}
	dumpEverything(t, jars, root, "--deep-iteration")
}
