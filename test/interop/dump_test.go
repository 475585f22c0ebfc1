package interop

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"samsa/test/harness"
)

// dumped is what Kafka's dump tool says of a node's files, by the kind of reading.
type dumped struct {
	deep, verify, sanity, metadata, offsets, transactions string
	summary                                               string
}

// complaints of DumpLogSegments and its decoders.
var complaints = regexp.MustCompile(`(?i)mismatch|exception|isvalid: false|\binvalid\b|out of order|not found|^error|error at offset|ignoring|skipping|unknown|trailing|corrupt`)

// dump fails the test for every complaint of Kafka's dump tool about a node that was stopped; directories whose names
// end in one of skip are left out.
func dump(t *testing.T, n *harness.Node, when string, skip ...string) dumped {
	t.Helper()
	d, found := dumpFiles(t, n, skip)
	for _, complaint := range found {
		t.Errorf("%s: Kafka's dump tool says: %s", when, complaint)
	}
	t.Logf("%s: Kafka's dump tool read %s", when, d.summary)
	return d
}

// dumpFiles has DumpLogSegments read every file below the node's log directories, each kind of file in every way the
// tool has for it, and returns what it complains of.
func dumpFiles(t *testing.T, n *harness.Node, skip []string) (d dumped, found []string) {
	t.Helper()
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	var metadata, offsets, transactions, logs, indexes, others []string
	for _, dir := range n.LogDirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			partition := filepath.Base(filepath.Dir(path))
			for _, suffix := range skip {
				if strings.HasSuffix(partition, suffix) {
					return nil
				}
			}
			switch filepath.Ext(path) {
			case ".log", ".checkpoint":
				switch {
				case strings.HasPrefix(partition, "__cluster_metadata-"):
					metadata = append(metadata, path)
				case strings.HasPrefix(partition, "__consumer_offsets-"):
					offsets = append(offsets, path)
				case strings.HasPrefix(partition, "__transaction_state-"):
					transactions = append(transactions, path)
				default:
					logs = append(logs, path)
				}
			case ".index", ".timeindex":
				indexes = append(indexes, path)
			case ".snapshot", ".txnindex":
				others = append(others, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	type reading struct {
		out   *string
		files []string
		args  []string
	}
	readings := []reading{
		{&d.deep, slices.Concat(logs, indexes, others), []string{"--deep-iteration"}},
		{&d.verify, indexes, []string{"--verify-index-only"}},
		{&d.sanity, indexes, []string{"--index-sanity-check"}},
		{&d.metadata, metadata, []string{"--cluster-metadata-decoder", "--deep-iteration"}},
		{&d.offsets, offsets, []string{"--offsets-decoder", "--deep-iteration"}},
		{&d.transactions, transactions, []string{"--transaction-log-decoder", "--deep-iteration"}},
	}
	records := 0
	for _, r := range readings {
		if len(r.files) == 0 {
			continue
		}
		got := harness.QuickTool(t, "dump-log", "", append([]string{"--files", strings.Join(r.files, ",")}, r.args...)...)
		if got.Code != 0 {
			complain("exit code with %s: %d", r.args, got.Code)
		}
		*r.out = got.Stdout + got.Stderr
		records += strings.Count(*r.out, "\n| ")
		if got := strings.Count("\n"+*r.out, "\nDumping "); got != len(r.files) {
			complain("with %s only %d files of %d were read", r.args, got, len(r.files))
		}
		file := ""
		for line := range strings.Lines(*r.out) {
			line = strings.TrimRight(line, "\n")
			if f, ok := strings.CutPrefix(line, "Dumping "); ok {
				file = f
			}
			if complaints.MatchString(withoutContent(line)) {
				complain("with %s of %s: %.600s", r.args, file, line)
			}
			if strings.HasPrefix(line, "Non-consecutive offsets in ") {
				file = line
			}
			// Of every file that does not begin at offset 0 the tool says that its first offset does not follow -1.
			if strings.HasPrefix(line, "  ") && strings.Contains(line, " is followed by ") && !strings.HasPrefix(line, "  -1 ") && !strings.Contains(file, "/cleaned-") {
				complain("a gap in offsets: %s", line)
			}
		}
	}
	if got := strings.Count(d.sanity, " passed sanity check.") + strings.Count(d.sanity, " is empty."); got != len(indexes) {
		complain("%d of %d index files passed the sanity check", got, len(indexes))
	}
	if got, want := strings.Count(d.metadata, "SnapshotFooter"), extension(metadata, ".checkpoint"); got != want {
		complain("%d of %d metadata snapshots have their footer", got, want)
	}
	d.summary = fmt.Sprintf("%d data logs, %d indexes, %d producer snapshots and transaction indexes, %d metadata logs and snapshots, %d logs of groups, %d of transactions: %d records",
		len(logs), len(indexes), len(others), len(metadata), len(offsets), len(transactions), records)
	return d, found
}

// withoutContent is a line of a dump without the payload of a record.
func withoutContent(line string) string {
	if i := strings.Index(line, " payload: "); i >= 0 {
		return line[:i]
	}
	return line
}

func extension(files []string, ext string) (n int) {
	for _, f := range files {
		if filepath.Ext(f) == ext {
			n++
		}
	}
	return n
}

// wants fails for every text that is missing in a dump.
func wants(t *testing.T, what, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("the dump of the %s does not mention %s", what, want)
		}
	}
}

// D-214, D-01, D-46, D-47, D-50, D-58, D-173, K-59, K-65, K-75..K-79, K-195, K-196, T-03, J-54: Kafka's dump tool reads every
// file of a node that was killed, recovered, written to and stopped.
func TestDumpLogSegments(t *testing.T) {
	t.Parallel()
	n := harness.NewNode(t, 2, handoverProperties...)
	n.Format()
	n.Start()
	w := newWork(t, n)
	w.connect("samsa")
	w.do(1)
	w.disconnect()
	n.Kill()
	n.Start()
	w.connect("samsa")
	w.do(2)
	p := w.picture()
	w.holds("after kill -9 and recovery", p)
	w.disconnect()
	n.Stop()

	d := dump(t, n, "after kill -9, recovery and a clean stop")
	wants(t, "data logs", d.deep, "compresscodec: none", "compresscodec: gzip", "compresscodec: snappy", "compresscodec: lz4", "compresscodec: zstd",
		"LogAppendTime: ", "CreateTime: ", fmt.Sprintf("producerId: %d producerEpoch: 0", w.idem[2].id), "baseSequence: ")
	wants(t, "metadata", d.metadata, `"type":"TOPIC_RECORD"`, `"type":"PARTITION_RECORD"`, `"type":"CONFIG_RECORD"`, `"type":"PRODUCER_IDS_RECORD"`,
		`"type":"REGISTER_BROKER_RECORD"`, `"type":"REMOVE_TOPIC_RECORD"`, `"type":"FEATURE_LEVEL_RECORD"`, "SnapshotHeader", "KRaftVoters", "KRaftVersion", "LeaderChange")
	wants(t, "groups", d.offsets, `"group":"simple"`, `"group":"static"`, `"type":"1"`, `"type":"2"`)
	for topic := range w.ids {
		if !strings.HasPrefix(topic, "__") {
			wants(t, "metadata", d.metadata, `"name":"`+topic+`"`)
		}
	}
	// As many records as were served, and as many batches' last offsets as the ends say.
	for tp := range w.sent {
		end := p.facts["end of "+tp]
		var last int
		if _, err := fmt.Sscan(end, &last); err != nil {
			t.Fatal(err)
		}
		if last == 0 {
			continue
		}
		file, offset := "", -1
		for line := range strings.Lines(d.deep) {
			if f, ok := strings.CutPrefix(line, "Dumping "); ok {
				file = filepath.Base(filepath.Dir(strings.TrimSpace(f)))
			}
			if file == tp && strings.HasPrefix(line, "| offset: ") {
				fmt.Sscanf(line, "| offset: %d ", &offset)
			}
		}
		if tp != "cut-1" && offset != last-1 {
			t.Errorf("the dump of %s ends with offset %d, its end is %d", tp, offset, last)
		}
	}

	// The complaints are found: a byte of a record, and one of a time index.
	for name, at := range map[string]int64{"00000000000000000060.log": 5000, "00000000000000000120.timeindex": 7} {
		path := filepath.Join(p.dirOf(n, "plain-0"), name)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		f.ReadAt(b[:], at)
		b[0] ^= 0x10
		f.WriteAt(b[:], at)
		f.Close()
	}
	_, found := dumpFiles(t, n, nil)
	for _, want := range []string{"00000000000000000060.log: baseOffset: 60 .*isvalid: false", "120.timeindex"} {
		if !regexp.MustCompile(want).MatchString(strings.Join(found, "\n")) {
			t.Errorf("after damage the complaints are %q, expected %s", found, want)
		}
	}
}
