package system

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"samsa/test/harness"
)

// damage is one thing done to the files of a stopped node, and what has to come of it. The victim is the first
// partition in the second directory.
type damage struct {
	do edit
	// stops: the start ends with exit code 1. Else the node serves everything that is not said here.
	stops bool
	// offline: the second directory is out of service.
	offline bool
	// victim is what is found of the victim if it is not whole.
	victim string
	// says are parts of one line of the log at WARN or above, or of the last words of a node that stops.
	says []string
	// again: the next start has something to say too.
	again bool
	// silent: nothing in the log at WARN or above.
	silent bool
}

// outcome starts the node and waits until it serves or has ended.
func outcome(t *testing.T, n *harness.Node) (running bool, code int) {
	t.Helper()
	n.Launch()
	deadline := time.Now().Add(30 * time.Second)
	for n.Running() {
		resp, err := http.Get("http://" + n.HTTP + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true, 0
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("neither ready nor ended\n%s", n.Log())
		}
		time.Sleep(2 * time.Millisecond) // a poll of a condition with a deadline
	}
	return false, n.Wait(time.Second)
}

// run does each damage to a copy of its own.
func (w *prepared) run(t *testing.T, cases map[string]damage) {
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		t.Run(name, func(t *testing.T) {
			n := w.node.Clone(t)
			c.do(t, w, n)
			running, code := outcome(t, n)
			text := strings.ReplaceAll(n.Log(), n.Dir, "ROOT")
			if c.says != nil && !saysAll(text, c.says) {
				t.Errorf("no line says %q:\n%s", c.says, text)
			}
			if c.silent && len(warnings(text)) > 0 {
				t.Errorf("the log is not silent: %q", warnings(text))
			}
			if running == c.stops {
				t.Fatalf("running: %v, exit code %d\n%s", running, code, text)
			}
			if c.stops {
				if code != 1 {
					t.Errorf("exit code %d", code)
				}
				return
			}
			want := w.want(c)
			if got := w.picture(t, n); got != want {
				t.Errorf("served: %q, want %q\n%s", got, want, text)
			}
			n.Stop()
			if c.offline || c.silent {
				return
			}
			// What was repaired stays so.
			mark := n.Mark()
			n.Start()
			if got := w.picture(t, n); got != want {
				t.Errorf("served after one more restart: %q, want %q", got, want)
			}
			if again := warnings(n.LogSince(mark)); len(again) > 0 && !c.again {
				t.Errorf("the next start is not silent: %q", again)
			}
		})
	}
}

// want is the picture a damage has to leave.
func (w *prepared) want(c damage) (want [damagedPartitions]string) {
	for p := range want {
		switch {
		case c.offline && w.dirs[p] == 1:
			want[p] = "KAFKA_STORAGE_ERROR"
		case c.victim != "" && p == w.in(1)[0]:
			want[p] = c.victim
		default:
			want[p] = fmt.Sprint(damagedRecords)
		}
	}
	return want
}

func saysAll(text string, parts []string) bool {
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			return true
		}
	}
	return false
}

func undamaged(*testing.T, *prepared, *harness.Node) {}

// Issue 3, "Any damaged file": the files that say what a directory is (J-18..J-20, J-36).
func TestDamagedMetaProperties(t *testing.T) {
	w := prepare(t, true)
	first := func(f func(*testing.T, string)) edit {
		return func(t *testing.T, _ *prepared, n *harness.Node) { f(t, filepath.Join(n.LogDirs[0], "meta.properties")) }
	}
	second := func(f func(*testing.T, string)) edit { return inDir("meta.properties", f) }
	w.run(t, map[string]damage{
		"nothing":       {do: undamaged, silent: true},
		"wrong_cluster": {do: second(replace("cluster.id=Samsa", "cluster.id=Other")), stops: true, says: []string{"ROOT/d2/meta.properties", "Expected SamsaTestCluster000000, but read OtherTestCluster000000", "another cluster"}},
		"wrong_node":    {do: second(replace("node.id=1", "node.id=2")), stops: true, says: []string{"ROOT/d2/meta.properties", "node id 2 doesn't match", "id 1", "If you moved your data"}},
		"garbage":       {do: second(garble), offline: true, says: []string{"ROOT/d2/meta.properties", "neither node.id nor cluster.id", "restored from a backup"}},
		"empty":         {do: second(empty), offline: true, says: []string{"ROOT/d2/meta.properties", "neither node.id nor cluster.id", "restored from a backup"}},
		"other_version": {do: second(replace("version=1", "version=7")), offline: true, says: []string{"ROOT/d2/meta.properties", "version number 7", "restored from a backup"}},
		"missing":       {do: second(remove), stops: true, says: []string{"No `meta.properties` found in ROOT/d2", "mounted", "format -g"}},
		"copied_disk": {do: func(t *testing.T, _ *prepared, n *harness.Node) {
			text, err := os.ReadFile(filepath.Join(n.LogDirs[0], "meta.properties"))
			must(t, err)
			overwrite(string(text))(t, filepath.Join(n.LogDirs[1], "meta.properties"))
		}, stops: true, says: []string{"Duplicate directory ID", "ROOT/d1", "ROOT/d2", "take one out of log.dirs"}},
		"garbage_in_the_metadata_directory": {do: first(garble), stops: true, says: []string{"metadata log directory ROOT/d1", "Cannot continue"}},
		"directory_vanished": {do: func(t *testing.T, _ *prepared, n *harness.Node) { must(t, os.RemoveAll(n.LogDirs[1])) },
			stops: true, says: []string{"No `meta.properties` found in ROOT/d2", "mounted"}},
		"directory_is_a_file": {do: func(t *testing.T, _ *prepared, n *harness.Node) {
			must(t, os.RemoveAll(n.LogDirs[1]))
			overwrite("x")(t, n.LogDirs[1])
		}, offline: true, says: []string{"ROOT/d2/meta.properties", "not a directory"}},
	})
}

// Issue 3, "Any damaged file": what names a replica, and the checkpoints of a directory (T-23, T-99, D-220).
func TestDamagedDirectoryFiles(t *testing.T) {
	w := prepare(t, true)
	named := func(f func(*testing.T, string)) edit { return inReplica("partition.metadata", 0, f) }
	broken := []string{"damaged file ROOT/d2/", "partition.metadata", "expected", "Restore the file"}
	cases := map[string]damage{
		"partition_metadata/empty":    {do: named(empty), offline: true, says: broken},
		"partition_metadata/garbage":  {do: named(garble), offline: true, says: broken},
		"partition_metadata/zero_id":  {do: named(overwrite("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")), offline: true, says: []string{"damaged file ROOT/d2/", "partition.metadata", "zero id", "Restore the file"}},
		"partition_metadata/other_id": {do: named(overwrite("version: 0\ntopic_id: Rr22P56NSji_e-5OsqeU5A")), victim: "0", says: []string{"set aside as stray", "Rr22P56NSji_e-5OsqeU5A"}, again: true},
		"partition_metadata/missing":  {do: named(remove), victim: "0", says: []string{"set aside as stray", "has no partition.metadata"}, again: true},
		"lost_and_found":              {do: inDir("lost+found", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }), says: []string{"ROOT/d2/lost+found"}, again: true},
		"foreign_file":                {do: inDir("README", overwrite("x")), silent: true},
		"left_over_tmp":               {do: inDir("recovery-point-offset-checkpoint.tmp", overwrite("x")), silent: true},
		"clean_marker/garbage":        {do: inDir(".kafka_cleanshutdown", garble), silent: true},
		"clean_marker/missing":        {do: inDir(".kafka_cleanshutdown", remove), silent: true},
	}
	for _, name := range []string{"recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint"} {
		gone := func(t *testing.T, path string) { must(t, os.RemoveAll(path)) }
		says := []string{"damaged file ROOT/d2/" + name, "Delete the file and restart"}
		cases[name+"/missing"] = damage{do: inDir(name, gone), silent: true}
		cases[name+"/empty"] = damage{do: inDir(name, overwrite("")), silent: true}
		cases[name+"/garbage"] = damage{do: inDir(name, garble), offline: true, says: append(says, "expected the version 0")}
		cases[name+"/cut"] = damage{do: inDir(name, overwrite("0\n7\ndamaged 0 1\n")), offline: true, says: append(says, "announces 7 entries, but 1 follow")}
	}
	w.run(t, cases)
}

// Issue 3, "Any damaged file": a partition's files after a clean stop. The victim loses what cannot be had again,
// with a line that says so, and no other partition loses anything (D-66, D-67, D-70..D-72).
func TestDamagedSegments(t *testing.T) {
	w := prepare(t, true)
	lost := []string{"a log ends before what its checkpoints say", "recoveryPoint=300", "backup"}
	cases := map[string]damage{
		"log/cut_tail":            {do: inReplica("*.log", -1, cutBytes(100)), victim: "299", says: lost},
		"log/empty_last":          {do: inReplica("*.log", -1, empty), victim: lastSegment, says: lost},
		"log/missing_last":        {do: inReplica("*.log", -1, remove), victim: lastSegment, says: lost},
		"log/garbage_last":        {do: inReplica("*.log", -1, garble), victim: lastSegment, says: lost},
		"log/flipped_below":       {do: inReplica("*.log", 0, flip), victim: rotten(57)}, // as in Kafka the reader notices
		"leader_epochs/missing":   {do: inReplica("leader-epoch-checkpoint", 0, remove), silent: true},
		"leader_epochs/empty":     {do: inReplica("leader-epoch-checkpoint", 0, empty), silent: true},
		"leader_epochs/garbage":   {do: inReplica("leader-epoch-checkpoint", 0, garble), says: []string{"leader-epoch-checkpoint", "rebuilding"}},
		"snapshot/missing":        {do: inReplica("*.snapshot", -1, remove)},
		"snapshot/flipped":        {do: inReplica("*.snapshot", -1, flip), says: []string{"dropping damaged producer snapshot", ".snapshot", "checksum"}},
		"snapshot/empty":          {do: inReplica("*.snapshot", -1, empty), says: []string{"dropping damaged producer snapshot", ".snapshot", "0 bytes"}},
		"swap_and_cleaned_files":  {do: leftovers},
		"index/of_no_log":         {do: inReplica("*.log", 0, besides("00000000000000009999.index"))},
		"transaction_index/bytes": {do: inReplica("*.log", 0, besides("00000000000000000000.txnindex")), silent: true},
	}
	for _, file := range []string{"index", "timeindex"} {
		for which, number := range map[string]int{"first": 0, "last": -1} {
			for name, f := range map[string]func(*testing.T, string){"missing": remove, "empty": empty, "cut": halve, "garbage": garble, "flipped": flip} {
				cases[file+"/"+name+"_"+which] = damage{do: inReplica("*."+file, number, f), silent: true}
			}
		}
	}
	w.run(t, cases)
}

// Issue 3: the same after kill -9, where what lies above the recovery point is read through: a bad batch there ends the log.
func TestDamagedSegmentsAfterKill(t *testing.T) {
	w := prepare(t, false)
	w.run(t, map[string]damage{
		"nothing":             {do: undamaged, silent: true},
		"torn_tail":           {do: inReplica("*.log", -1, cutBytes(1)), victim: "299", says: []string{"cut at its last whole batch", "ROOT/d2/", "logEndOffset=299"}},
		"garbage_behind":      {do: inReplica("*.log", -1, appendBytes), says: []string{"cut at its last whole batch", "bytesTruncated=7", "logEndOffset=300"}},
		"zeros_behind":        {do: inReplica("*.log", -1, appendZeros), says: []string{"cut at its last whole batch", "bytesTruncated=4096", "logEndOffset=300"}},
		"flipped_above":       {do: inReplica("*.log", -1, flip), victim: "265", says: []string{"cut at its last whole batch", "ROOT/d2/", "logEndOffset=265"}},
		"flipped_below":       {do: inReplica("*.log", 0, flip), victim: rotten(57)},
		"index_below_missing": {do: inReplica("*.index", 0, remove), silent: true},
		"meta/torn_tail":      {do: inMeta("*.log", appendBytes), says: []string{"raft: cut a torn tail off the metadata log", "bytes=7"}},
		"meta/flipped": {do: inMeta("*.log", flip), stops: true,
			says: []string{"the metadata log is damaged: ROOT/d1/__cluster_metadata-0/00000000000000000000.log, byte", "wrong checksum", "Nothing was changed", "backup"}},
	})
}

// Issue 3, "Any damaged file": the metadata log's files. A single voter's are in no other place, so what cannot be a torn tail
// stops the node (K-13, K-70, K-71, K-73, J-21).
func TestDamagedMetadata(t *testing.T) {
	w := prepare(t, true)
	boot := func(f func(*testing.T, string)) edit {
		return func(t *testing.T, _ *prepared, n *harness.Node) {
			f(t, filepath.Join(n.LogDirs[0], "bootstrap.checkpoint"))
		}
	}
	file := "ROOT/d1/__cluster_metadata-0/00000000000000000000.log"
	vote := []string{"ROOT/d1/__cluster_metadata-0/quorum-state is damaged", "restore it from a backup"}
	w.run(t, map[string]damage{
		"log/flipped":            {do: inMeta("*.log", flip), stops: true, says: []string{"the metadata log is damaged: " + file + ", byte", "wrong checksum", "Nothing was changed", "backup"}},
		"log/cut_tail":           {do: inMeta("*.log", cutBytes(3)), stops: true, says: []string{"the metadata log is damaged: " + file, "was closed at offset", "backup"}},
		"log/empty":              {do: inMeta("*.log", empty), stops: true, says: []string{"ends at offset 0", "acknowledged", "backup"}},
		"log/missing":            {do: inMeta("*.log", remove), stops: true, says: []string{"quorum-state", "metadata log was lost", "not started empty"}},
		"log/garbage_behind":     {do: inMeta("*.log", appendBytes), says: []string{"raft: cut a torn tail off the metadata log", "bytes=7"}},
		"index/missing":          {do: inMeta("*.index", remove), silent: true},
		"index/garbage":          {do: inMeta("*.index", garble), silent: true},
		"quorum_state/garbage":   {do: inMeta("quorum-state", garble), stops: true, says: vote},
		"quorum_state/empty":     {do: inMeta("quorum-state", empty), stops: true, says: vote},
		"quorum_state/missing":   {do: inMeta("quorum-state", remove), says: []string{"stored quorum epoch is older than the log"}},
		"checkpoint/missing":     {do: inMeta("*.checkpoint", remove)},
		"checkpoint/flipped":     {do: inMeta("*.checkpoint", flip), stops: true, says: []string{"0000000000.checkpoint is damaged", "checksum", "backup"}},
		"checkpoint/empty":       {do: inMeta("*.checkpoint", empty), stops: true, says: []string{"0000000000.checkpoint is damaged", "without a footer", "backup"}},
		"bootstrap/missing":      {do: boot(remove)},
		"bootstrap/garbage":      {do: boot(garble)},
		"directory/in_other_dir": {do: inDir("__cluster_metadata-0", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o755)) }), stops: true, says: []string{"Found unexpected metadata location", "ROOT/d2/__cluster_metadata-0", "ROOT/d1"}},
	})
}

const lastSegment = "230" // a segment holds 115 records of one batch each

func rotten(n int) string { return fmt.Sprintf("%d of %d, then a corrupt batch", n, damagedRecords) }

func cutBytes(n int64) func(*testing.T, string) {
	return func(t *testing.T, path string) { must(t, os.Truncate(path, size(t, path)-n)) }
}

func appendTo(t *testing.T, path string, data []byte) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.Write(data)
	must(t, err)
	must(t, f.Close())
}

func appendBytes(t *testing.T, path string) { appendTo(t, path, []byte("garbage")) }
func appendZeros(t *testing.T, path string) { appendTo(t, path, make([]byte, 4096)) }

// besides writes a file next to path.
func besides(name string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		overwrite("sixteen bytes...")(t, filepath.Join(filepath.Dir(path), name))
	}
}

// leftovers are files of a cleaning or a deletion that a crash ended.
var leftovers = inReplica("*.log", 0, func(t *testing.T, path string) {
	for _, suffix := range []string{".cleaned", ".deleted"} {
		besides("00000000000000000000.log"+suffix)(t, path)
		besides("00000000000000000000.index"+suffix)(t, path)
	}
})
