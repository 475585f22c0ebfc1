package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/raft/node"
	"samsa/internal/storage/logdir"
	"samsa/internal/wire/protocol"

	"samsa/test/peers"
)

// ran is the outcome of one run of a storage tool.
type ran struct {
	code     int
	out, err string
}

// runKafka runs Kafka's storage tool once per entry, all in one virtual machine.
func runKafka(t *testing.T, runs [][]string) []ran {
	t.Helper()
	var in strings.Builder
	for _, args := range runs {
		in.WriteString(strings.Join(args, "\x1f") + "\n")
	}
	cmd := exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", peers.Kafka(t)+"/*", "testdata/StorageRuns.java")
	cmd.Stdin = strings.NewReader(in.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var results []ran
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		fields := strings.Split(sc.Text()+"  ", " ")
		code, err := strconv.Atoi(fields[0])
		if err != nil {
			t.Fatalf("line %q: %v", sc.Text(), err)
		}
		o, _ := base64.StdEncoding.DecodeString(fields[1])
		e, _ := base64.StdEncoding.DecodeString(fields[2])
		results = append(results, ran{code, string(o), string(e)})
	}
	if len(results) != len(runs) {
		t.Fatalf("%d results of %d runs\n%s", len(results), len(runs), &stderr)
	}
	return results
}

func runSamsa(args []string) ran {
	var out, err bytes.Buffer
	code := run(append([]string{"storage"}, args...), &out, &err)
	return ran{code, out.String(), err.String()}
}

// storageRun is one run in a scene; R in an argument or file stands for the scene's root.
type storageRun struct {
	args []string
	// do, before the run, changes files.
	do func(t *testing.T, root string)
	// own: the texts differ for a reason, only code and files are compared.
	own bool
}

// configs of a scene.
var storageConfigs = map[string]string{
	"c": "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n" +
		"listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\ncontroller.listener.names=CONTROLLER\nlog.dirs=R/d1,R/d2\n",
	"m": "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n" +
		"listeners=PLAINTEXT://localhost:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\nlog.dirs=R/d1,R/d2\nmetadata.log.dir=R/m\n",
	"b": "process.roles=broker\nnode.id=2\ncontroller.quorum.bootstrap.servers=localhost:9093\nlisteners=PLAINTEXT://localhost:9094\ncontroller.listener.names=CONTROLLER\nlog.dirs=R/d1\n",
	"s": "process.roles=controller\nnode.id=3\ncontroller.quorum.voters=3@localhost:9093\nlisteners=CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\nlog.dirs=R/d1\n",
}

func write(path, text string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		t.Helper()
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// args splits a command line; -c X names the config X of the scene, an empty argument is written ”.
func args(line string) []string {
	var out []string
	for _, a := range strings.Fields(line) {
		out = append(out, strings.Trim(a, "'"))
	}
	for i, a := range out {
		if a == "-c" && i+1 < len(out) {
			out[i+1] = "R/" + out[i+1] + ".properties"
		}
	}
	return out
}

func storageScenes() map[string][]storageRun {
	scene := func(lines ...string) (runs []storageRun) {
		for _, l := range lines {
			runs = append(runs, storageRun{args: args(l)})
		}
		return runs
	}
	scenes := map[string][]storageRun{}
	one := func(name, line string) { scenes[name] = scene(line) }
	scenes["standalone_twice"] = scene("info -c c", "format -c c -t x -s", "info -c c", "format -c c -t x -s", "format -c c -t x -s -g", "format -c c -t y -s -g")
	scenes["separate_metadata_dir"] = scene("format -c m -t x -s", "info -c m")
	scenes["broker"] = scene("format -c b -t x", "info -c b")
	scenes["static"] = scene("format -c s -t x", "format -c s -t x -N -g")
	one("static_N", "format -c s -t x -N")
	one("no_initial", "format -c c -t x -N")
	one("empty_cluster_id", "format -c b -t ''")
	one("initial_own", "format -c c -t x -I 1@localhost:9093:G17bGhh9Sru1Dn1MBMTScQ,2@[::1]:9095:JEXY6aqzQY-32P5TStzaFg")
	one("initial_other", "format -c c -t x -I 2@localhost:9093:G17bGhh9Sru1Dn1MBMTScQ")
	one("initial_on_broker", "format -c b -t x -I 1@localhost:9093:G17bGhh9Sru1Dn1MBMTScQ")
	one("broker_N", "format -c b -t x -N")
	one("release_40", "format -c c -t x -s -r 4.0")
	one("release_33", "format -c c -t x -s -r 3.3-IV3")
	one("release_380", "format -c c -t x -s --release-version 3.8.0")
	one("feature_off", "format -c c -t x -s -f group.version=0 -f share.version=1")
	one("feature_last_counts", "format -c c -t x -s -f group.version=7 -f group.version=0")
	one("feature_level", "format -c c -t x -s -f metadata.version=21")
	one("elr", "format -c c -t x -s -r 4.0 -f eligible.leader.replicas.version=1 -f streams.version=1")
	one("scram", `format -c c -t x -s -S SCRAM-SHA-256=[name=a,salt="c2FsdA==",saltedpassword="YCE="] --add-scram SCRAM-SHA-512=[name=b,password=pw,salt="N3E=",iterations=8192]`)
	for i, line := range []string{
		"format -c c -t x", "format -c c -t x -s -r 5.0", "format -c c -t x -s -r 4.5", "format -c c -t x -s -r 4.0 -f metadata.version=22",
		"format -c c -t x -s -f metadata.version=34", "format -c c -t x -s -f metadata.version=99", "format -c c -t x -s -f foo=1", "format -c c -t x -s -f foo",
		"format -c c -t x -s -f foo=z", "format -c c -t x -s -f group.version=7", "format -c c -t x -s -r 3.9 -f eligible.leader.replicas.version=1",
		"format -c c -t x -s -f kraft.version=0", "format -c s -t x -f kraft.version=1", "format -c s -t x -s", "format -c s -t x -I 3@h:1:G17bGhh9Sru1Dn1MBMTScQ",
		"format -c b -t x -s", "format -c c -t x -I 1", "format -c c -t x -I ''", "format -c c -t x -I 1@h:9:x", "format -c c -t x -I 1@h:9:G17bGhh9Sru1Dn1MBMTScQ,1@h:9:G17bGhh9Sru1Dn1MBMTScQ",
		"format -c c -t x -s -S foo", "format -c c -t x -s -S SCRAM-SHA-256=[name=a]", "format -c c -t x -s -S SCRAM-SHA-256=[name=a,password=b,iterations=10]",
		"format -c c -t x -s -S SCRAM-SHA-1=[name=a,password=b]", "format -c c -t x -s -S SCRAM-SHA-256=[name=a,password=b,foo=1]",
		"format -c c -t x -s -r 3.4 -S SCRAM-SHA-256=[name=a,password=b]",
		"version-mapping", "version-mapping -r 4.0", "version-mapping -r 3.6-IV1", "version-mapping -r 9", "version-mapping -r 4.5", "version-mapping -r 3.9.1",
		"feature-dependencies -f group.version=1", "feature-dependencies -f eligible.leader.replicas.version=1 -f metadata.version=33", "feature-dependencies -f x=1",
		"feature-dependencies -f group.version=9", "feature-dependencies -f transaction.version=2 -f share.version=3", "feature-dependencies -f metadata.version=99",
		"feature-dependencies -f z", "feature-dependencies -f group.version=zz", "feature-dependencies -f kraft.version=0",
	} {
		one(fmt.Sprintf("text_%02d_%s", i, strings.ReplaceAll(line, " ", "_")), line)
	}
	for i, line := range []string{"", "bogus", "format", "format -c c -t x --nope", "format -c c -t x -s -N", "format -c c -t x -s -I x", "info", "info -c nonexistent",
		"random-uuid x", "feature-dependencies", "format -h", "-h", "random-uuid"} {
		scenes[fmt.Sprintf("usage_%02d_%s", i, strings.ReplaceAll(line, " ", "_"))] = []storageRun{{args: args(line), own: true}}
	}
	v1 := func(cluster string, id int, more string) string {
		return fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\n%s", cluster, id, more)
	}
	dir := "directory.id=G17bGhh9Sru1Dn1MBMTScQ\n"
	for name, s := range map[string]struct {
		d1, d2 string
		files  bool
	}{
		"half":          {d1: v1("x", 1, dir)},
		"no_dir_id":     {d1: v1("x", 1, "")},
		"v0":            {d1: "broker.id=1\ncluster.id=x\n", d2: v1("x", 1, dir)},
		"v0_no_cluster": {d1: "broker.id=1\n", d2: v1("x", 1, dir)},
		"v0_empty":      {d1: "#\n", d2: v1("x", 1, dir)},
		"version_2":     {d1: "version=2\n", d2: v1("x", 1, dir)},
		"version_2_all": {d1: "version=2\n", d2: "version=2\n"},
		"no_node":       {d1: "version=1\ncluster.id=x\n", d2: v1("x", 1, dir)},
		"no_cluster":    {d1: "version=1\nnode.id=1\n", d2: v1("x", 1, dir)},
		"bad_node":      {d1: "version=1\ncluster.id=x\nnode.id=z\n", d2: v1("x", 1, dir)},
		"short_dir_id":  {d1: v1("x", 1, "directory.id=abc\n"), d2: v1("x", 1, dir)},
		"other_cluster": {d1: v1("y", 1, dir), d2: v1("x", 1, "")},
		"other_node":    {d1: v1("x", 4, dir), d2: v1("x", 1, "")},
		"reserved":      {d1: v1("x", 1, "directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n")},
		"duplicate":     {d1: v1("x", 1, dir), d2: v1("x", 1, dir)},
		"escapes":       {d1: "version: 1\ncluster.\\\n  id = x\nnode.id 1\n" + dir, d2: v1("x", 1, "")},
	} {
		files := func(t *testing.T, root string) {
			for path, text := range map[string]string{"d1": s.d1, "d2": s.d2} {
				if text != "" {
					write(path+"/meta.properties", text)(t, root)
				}
			}
		}
		scenes["state_"+name] = []storageRun{{args: args("info -c c"), do: files}, {args: args("format -c c -t x -s")}, {args: args("format -c c -t x -s -g")}, {args: args("info -c c")}}
	}
	return scenes
}

var (
	anyID     = regexp.MustCompile(`[A-Za-z0-9_-]{22}`)
	secrets   = regexp.MustCompile(`(salt|storedKey|serverKey)=(\[[-0-9, ]*\]|\(hidden\))`)
	ownBlock  = regexp.MustCompile(`Directory IDs?:\n(  .*\n)+\n`)
	formatted = regexp.MustCompile(`R/d[12] is already formatted`)
	uuidFault = regexp.MustCompile(`as a Uuid: .*`)
	traceLine = regexp.MustCompile(`(?m)^(java\.|org\.|kafka\.|\tat |Caused by:|\t\.\.\. ).*\n`)
)

// mask takes out what differs between two right runs: the root, ids, secrets, samsa's own block, Java's stack traces.
func mask(text, root string) string {
	text = strings.ReplaceAll(text, root, "R")
	text = traceLine.ReplaceAllString(text, "")
	text = formatted.ReplaceAllString(text, "R/d is already formatted") // Kafka names the first in hash order
	text = uuidFault.ReplaceAllString(text, "as a Uuid: ")
	text = ownBlock.ReplaceAllString(text, "")
	text = secrets.ReplaceAllString(text, "$1=")
	return anyID.ReplaceAllString(text, "ID")
}

// J-25..J-33, K-101..K-109: the same runs of Kafka's tool and of samsa's: exit code, both outputs, and every file left behind.
func TestStorageAgainstKafka(t *testing.T) {
	scenes := storageScenes()
	var names []string
	for name := range scenes {
		names = append(names, name)
	}
	slices.Sort(names)
	// A scene's runs depend on files, so all scenes go forward together, one virtual machine for each position.
	roots := map[string][2]string{}
	for _, name := range names {
		var pair [2]string
		for i, who := range []string{"k", "s"} {
			pair[i] = filepath.Join(t.TempDir(), who)
			for file, text := range storageConfigs {
				write(file+".properties", strings.ReplaceAll(text, "R/", pair[i]+"/"))(t, pair[i])
			}
		}
		roots[name] = pair
	}
	for step := 0; ; step++ {
		var batch []string
		var kafkaRuns [][]string
		fill := func(args []string, root string) (out []string) {
			for _, a := range args {
				if strings.HasPrefix(a, "R/") {
					a = root + a[1:]
				}
				out = append(out, a)
			}
			return out
		}
		for _, name := range names {
			if step >= len(scenes[name]) {
				continue
			}
			r := scenes[name][step]
			if r.do != nil {
				r.do(t, roots[name][0])
				r.do(t, roots[name][1])
			}
			batch = append(batch, name)
			kafkaRuns = append(kafkaRuns, fill(r.args, roots[name][0]))
		}
		if len(batch) == 0 {
			return
		}
		for i, kafka := range runKafka(t, kafkaRuns) {
			name := batch[i]
			r := scenes[name][step]
			line := fill(r.args, roots[name][1])
			if len(line) > 0 && line[0] == "format" && !slices.Contains(line, "-h") {
				line = append(line, "--checkpoint-form", "4.4")
			}
			samsa := runSamsa(line)
			what := fmt.Sprintf("%s, run %d: %s", name, step, strings.Join(r.args, " "))
			if kafka.code != samsa.code {
				t.Errorf("%s: exit code %d, Kafka's %d\n%s%s\nKafka: %s%s", what, samsa.code, kafka.code, samsa.out, samsa.err, kafka.out, kafka.err)
			}
			if (kafka.out == "") != (samsa.out == "") {
				t.Errorf("%s: one of them writes to standard output, the other does not:\n%s\nKafka: %s", what, samsa.out, kafka.out)
			}
			if !r.own {
				// Two directories are formatted in hash order by Kafka.
				if d := cmp.Diff(sortedLines(mask(kafka.out, roots[name][0])), sortedLines(mask(samsa.out, roots[name][1]))); d != "" {
					t.Errorf("%s: standard output (-Kafka +samsa)\n%s", what, d)
				}
				k, s := strings.TrimSpace(mask(kafka.err, roots[name][0])), strings.TrimSpace(mask(samsa.err, roots[name][1]))
				if k != s {
					t.Errorf("%s: standard error\n%s\nKafka's\n%s", what, s, k)
				}
			}
			compareTrees(t, what, roots[name][0], roots[name][1])
		}
	}
}

func sortedLines(s string) []string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return lines
}

// compareTrees compares the files two runs left, by what they mean.
func compareTrees(t *testing.T, what, kafka, samsa string) {
	t.Helper()
	files := func(root string) (out []string) {
		filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && path != root && !strings.HasSuffix(path, ".properties") || strings.HasSuffix(path, "meta.properties") {
				out = append(out, strings.TrimPrefix(path, root))
			}
			return nil
		})
		return out
	}
	a, b := files(kafka), files(samsa)
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("%s: files (-Kafka +samsa)\n%s", what, d)
		return
	}
	for _, f := range a {
		switch {
		case strings.HasSuffix(f, "meta.properties"):
			if d := cmp.Diff(properties(t, kafka+f), properties(t, samsa+f)); d != "" {
				t.Errorf("%s: %s (-Kafka +samsa)\n%s", what, f, d)
			}
		case strings.HasSuffix(f, ".checkpoint"):
			if d := cmp.Diff(checkpointText(t, kafka+f), checkpointText(t, samsa+f)); d != "" {
				t.Errorf("%s: %s (-Kafka +samsa)\n%s", what, f, d)
			}
			for _, root := range []string{kafka, samsa} {
				if info, err := os.Stat(root + f); err == nil && info.Mode().Perm() != 0o400 {
					t.Errorf("%s: mode %v of %s", what, info.Mode(), root+f)
				}
			}
		}
	}
}

// properties is a meta.properties with drawn ids masked, and without samsa's own key.
func properties(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := logdir.ParseMetaProperties(string(text))
	if err != nil {
		return "unreadable: " + string(text)
	}
	known := m.Known()
	if _, ok := known["directory.id"]; ok && !slices.Contains([]string{"G17bGhh9Sru1Dn1MBMTScQ", "JEXY6aqzQY-32P5TStzaFg"}, known["directory.id"]) {
		known["directory.id"] = "ID"
	}
	return fmt.Sprint(known)
}

// checkpointText is everything a checkpoint holds, with drawn ids, times and secrets of drawn salts masked.
func checkpointText(t *testing.T, file string) string {
	t.Helper()
	r, err := node.OpenSnapshot(vfs.OS(), file, kraft.SnapshotID{})
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "kraft.version %d\n", r.KRaftVersion())
	for _, v := range r.Voters() {
		fmt.Fprintf(&b, "voter %d %s %v %v\n", v.ID, v.Directory, []kraft.Endpoint(v.Endpoints), v.Versions)
	}
	for {
		batch, err := r.Next()
		if err != nil {
			fmt.Fprintln(&b, err)
			break
		}
		for _, value := range batch.Records {
			_, version, m, err := protocol.ReadMetadataRecord(value)
			fmt.Fprintf(&b, "%d %T %+v %v\n", version, m, m, err)
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		return err.Error()
	}
	text := anyID.ReplaceAllString(b.String(), "ID")
	return fmt.Sprintf("%s%d bytes", text, info.Size())
}
