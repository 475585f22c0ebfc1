package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"samsa/test/harness"
)

// handoverProperties are for both programs.
var handoverProperties = []string{
	"metadata.log.max.record.bytes.between.snapshots=4000", // a snapshot every few topics
	"log.index.interval.bytes=1024",
	"log.retention.ms=-1",              // the records are old
	"log.initial.task.delay.ms=900000", // and what is below the log start stays where it is
	"transaction.state.log.num.partitions=4",
	"group.max.session.timeout.ms=3600000",
	"log.cleaner.backoff.ms=100",
	"log.segment.delete.delay.ms=1000",
}

// relay is a node whose directories go from one program to the other.
type relay struct {
	t     *testing.T
	node  *harness.Node
	*work          // what is done to the cluster, whoever serves it
	last  picture  // of the moment before the last stop
	runs  string   // the program that runs, or ran last
	clean bool     // how it was stopped
	from  int      // where its log begins
	says  []string // repairs, when it had started
	steps []string
}

func newRelay(t *testing.T) *relay {
	n := harness.NewNode(t, 2, handoverProperties...)
	r := &relay{t: t, node: n, work: newWork(t, n)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("steps: %s\nthe end of the log:\n%s", strings.Join(r.steps, ", "), tail(n.Log(), 15))
		}
	})
	return r
}

func (r *relay) start(program string, flags ...string) {
	r.t.Helper()
	r.steps = append(r.steps, program)
	r.work.narrow = program == "kafka" && r.runs != "" || r.runs == "kafka" && r.clean
	r.runs, r.from = program, len(r.node.Log())
	if program == "kafka" {
		r.node.StartKafka("INFO")
	} else {
		r.node.Start(flags...)
	}
	r.work.connect(program)
}

// takeOver starts a program on what the other left, and wants all of it.
func (r *relay) takeOver(program string, flags ...string) {
	r.t.Helper()
	snapshot := r.newestSnapshot()
	r.start(program, flags...)
	r.says = r.repairs()
	if !regexp.MustCompile(`(Successfully loaded snapshot |metadata snapshot loaded" snapshot=)` + snapshot).MatchString(r.log()) {
		r.t.Errorf("%s did not begin with the metadata snapshot %s", program, snapshot)
	}
	step := strings.Join(r.steps, " → ")
	now := r.work.picture()
	if diff := r.last.changes(now); diff != "" {
		r.t.Fatalf("%s: what was there before the stop is not what is there now:\n%s", step, diff)
	}
	r.work.holds(step, now)
	r.work.continues(step)
	if r.work.open != nil {
		r.work.committed()
	}
}

// sweeps waits until the directories of deleted topics are gone.
func (r *relay) sweeps() {
	r.t.Helper()
	r.node.Eventually("nothing is left of deleted topics", 30*time.Second, func() error {
		for _, dir := range r.node.LogDirs {
			if left, _ := filepath.Glob(filepath.Join(dir, "*-delete")); len(left) > 0 {
				return fmt.Errorf("there are %s", left)
			}
		}
		return nil
	})
}

// stop takes a picture and ends the process, in an orderly way or by kill -9.
func (r *relay) stop(clean bool) {
	r.t.Helper()
	r.work.create("deleted-at-last", 2)
	r.work.mustProduce("deleted-at-last", 0, r.work.batch(batchOptions{records: 1, size: 10, time: r.work.base}))
	r.last, r.clean = r.work.picture(), clean
	r.work.holds(strings.Join(r.steps, " → ")+", before its stop", r.last) // nothing that was sent again is there twice
	r.work.delete("deleted-at-last")
	r.last.without("deleted-at-last")
	r.work.disconnect()
	if clean {
		r.node.Stop()
	} else {
		r.node.Kill()
		r.steps[len(r.steps)-1] += " †"
	}
	if r.runs == "samsa" {
		for _, line := range strings.Split(r.log(), "\n") {
			// A kill may come before the directories of a deleted topic have been renamed; a slow machine is not samsa's.
			expected := regexp.MustCompile(`stray.*deleted-at-last|not completed in time`).MatchString(line)
			if !expected && regexp.MustCompile(`level=(WARN|ERROR)|^panic:|^fatal error:`).MatchString(line) {
				r.t.Errorf("samsa logged: %s", line)
			}
		}
	}
}

// newestSnapshot is the name of the newest snapshot of the metadata.
func (r *relay) newestSnapshot() string {
	r.t.Helper()
	all, _ := filepath.Glob(filepath.Join(r.node.LogDirs[0], "__cluster_metadata-0", "*.checkpoint"))
	slices.Sort(all)
	if len(all) < 2 { // the first is of the format
		r.t.Fatalf("the metadata's snapshots are %s", all)
	}
	return strings.TrimSuffix(filepath.Base(all[len(all)-1]), ".checkpoint")
}

// listing is the files of all partitions, with their sizes where both programs have to come to the same.
func (r *relay) listing() (lines []string) {
	for _, dir := range r.node.LogDirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
		for _, path := range files {
			partition, name := filepath.Base(filepath.Dir(path)), filepath.Base(path)
			info, err := os.Stat(path)
			if err != nil {
				r.t.Fatal(err)
			}
			line := fmt.Sprintf("%s/%s %d", partition, name, info.Size())
			switch {
			case partition == "__cluster_metadata-0", strings.HasSuffix(partition, "-delete"):
				continue
			case name == "partition.metadata", name == "leader-epoch-checkpoint", strings.HasPrefix(partition, "__"), strings.HasPrefix(partition, "stored-"):
				line = fmt.Sprintf("%s/%s", partition, name)
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// log is what the process of now has written.
func (r *relay) log() string { return r.node.Log()[r.from:] }

// repairs are the lines of a start that are warnings, or speak of what is not as it should be, without what differs from
// node to node.
func (r *relay) repairs() []string {
	var out []string
	for _, line := range strings.Split(r.log(), "\n") {
		m := leveled.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		warns := m[1] == "WARN" || m[1] == "ERROR" || m[1] == "FATAL"
		if text := r.normal(m[2]); warns && !slow.MatchString(text) || telling.MatchString(text) && storage.MatchString(text) {
			out = append(out, m[1]+" "+text)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var (
	leveled = regexp.MustCompile(`^\[[^]]*\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) (.*)$`)
	telling = regexp.MustCompile(`(?i)recover|rebuil|corrupt|sanity|truncat|missing|unflushed|orphan|stray|deleted|deleting|invalid|unable|failed`)
	storage = regexp.MustCompile(`\((kafka\.log|org\.apache\.kafka\.storage|org\.apache\.kafka\.raft|org\.apache\.kafka\.snapshot|kafka\.server\.ReplicaManager)\b[^)]*\)$`)
	slow    = regexp.MustCompile(`EventPerformanceMonitor|CONTROLLER_REGISTRATION|TimeoutException|timed out|Disconnecting from node`)
	ids     = regexp.MustCompile(`leaderRecoveryState=RECOVERED|\b[A-Za-z0-9_-]{22}\b|\b[0-9a-f]{32}\b`)
	numbers = regexp.MustCompile(`\d+`)
)

func (r *relay) normal(line string) string {
	line = ids.ReplaceAllString(strings.ReplaceAll(line, r.node.Dir, "DIR"), "ID")
	return numbers.ReplaceAllString(line, "N")
}

// anyTopic are lines without the names of topics.
func anyTopic(lines []string) (out []string) {
	topic := regexp.MustCompile(`(partition=|DIR/dN/|topic=|new partition )([a-z._]+-)*(N-|ID-)*N?\b`)
	for _, line := range lines {
		if !strings.Contains(line, "__cluster_metadata") {
			line = topic.ReplaceAllString(line, "${1}T-N")
		}
		out = append(out, line)
	}
	return out
}

// onlyIn are the lines of a that b lacks.
func onlyIn(a, b []string) (out []string) {
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, line)
		}
	}
	return out
}

// dump has Kafka's tool read what both programs have written.
func (r *relay) dump() {
	// Kafka leaves the indexes of a deleted topic as they were preallocated, and the tool stumbles over them.
	d := dump(r.t, r.node, strings.Join(r.steps, " → "), "-delete", "-stray")
	wants(r.t, "transactions", d.transactions, `"transactionalId":"open"`, `"transactionalId":"ended"`)
	wants(r.t, "groups", d.offsets, `"group":"modern"`, `"group":"simple"`, "endTxnMarker: COMMIT")
	wants(r.t, "data", d.deep, "endTxnMarker: ABORT", "endTxnMarker: COMMIT", "lastStableOffset")
	wants(r.t, "metadata", d.metadata, `"type":"CLIENT_QUOTA_RECORD"`, `"type":"USER_SCRAM_CREDENTIAL_RECORD"`, `"name":"consumer.session.timeout.ms"`)
}

func (r *relay) keep(what string) {
	if dir := os.Getenv("SAMSA_KEEP"); dir != "" {
		os.CopyFS(filepath.Join(dir, what), os.DirFS(r.node.Dir))
	}
}

func TestHandover(t *testing.T) {
	var own, taken, takenLater []string // what Kafka says when it starts on its own directories, on samsa's
	var kafkas, samsas []string         // files after the same work
	t.Run("chains", func(t *testing.T) {
		t.Run("samsa begins", func(t *testing.T) {
			t.Parallel()
			r := newRelay(t)
			r.node.Format()
			r.start("samsa")
			r.do(1)
			r.stop(true)
			r.keep("a1")
			samsas = r.listing()

			r.takeOver("kafka")
			taken = r.says
			r.do(2)
			r.doKafka()
			r.stop(false)
			r.keep("a2")

			r.takeOver("samsa")
			r.do(3)
			r.stop(false)
			r.keep("a3")

			r.takeOver("kafka")
			r.do(4)
			r.finishKafka()
			r.stop(true)

			r.takeOver("samsa", "--set", "log.initial.task.delay.ms=0")
			r.sweeps()
			r.stop(true)
			r.keep("a5")
			r.dump()
		})
		t.Run("kafka begins", func(t *testing.T) {
			t.Parallel()
			r := newRelay(t)
			r.node.FormatKafka()
			r.start("kafka")
			r.do(1)
			r.stop(true)
			r.keep("b1")
			kafkas = r.listing()

			r.takeOver("kafka")
			own = r.says
			r.do(2)
			r.doKafka()
			r.stop(true)
			r.keep("b2")

			r.takeOver("samsa")
			r.do(3)
			r.stop(true)
			r.keep("b3")

			r.takeOver("kafka")
			takenLater = r.says
			r.do(4)
			r.finishKafka()
			r.stop(false)
			r.keep("b4")

			r.takeOver("samsa", "--set", "log.initial.task.delay.ms=0")
			r.sweeps()
			r.stop(true)
			r.keep("b5")
			r.dump()
		})
	})
	if extra := onlyIn(taken, own); len(extra) > 0 {
		t.Errorf("Kafka starting on samsa's cleanly stopped directories says what it does not say on its own:\n%s", strings.Join(extra, "\n"))
	}
	if extra := onlyIn(anyTopic(takenLater), anyTopic(own)); len(extra) > 0 { // a longer history, more topics
		t.Errorf("Kafka starting on samsa's cleanly stopped directories, once its own, says what it does not say on its own:\n%s", strings.Join(extra, "\n"))
	}
	// The same files for the same work, but for the wider memory of producers, and what Kafka makes of empty logs.
	extra, missing := onlyIn(samsas, kafkas), onlyIn(kafkas, samsas)
	extra = slices.DeleteFunc(extra, regexp.MustCompile(`\.window \d+$|^cut-1/0*125.snapshot 10$`).MatchString)
	missing = slices.DeleteFunc(missing, regexp.MustCompile(`\.timeindex( 0)?$|/leader-epoch-checkpoint$`).MatchString)
	if len(extra) > 0 || len(missing) > 0 {
		t.Errorf("after the same work samsa has the files %q which Kafka has not, and Kafka has %q", extra, missing)
	}
	if t.Failed() {
		t.Logf("Kafka on its own directories says:\n%s", strings.Join(own, "\n"))
	}
}
