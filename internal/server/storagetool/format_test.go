package storagetool

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/logdir"
)

func sequence() func() model.UUID {
	var mu sync.Mutex
	n := byte(0)
	return func() model.UUID {
		mu.Lock()
		defer mu.Unlock()
		n++
		return model.UUID{0: 0x10, 15: n}
	}
}

func idOf(n byte) string { return model.UUID{0: 0x10, 15: n}.String() }

// node is a combined node over /d1 (metadata) and /d2.
func node3(fsys vfs.FS, out *bytes.Buffer) Options {
	return Options{FS: fsys, Out: out, ClusterID: "c", NodeID: 3, Controller: true, Dirs: []string{"/d1", "/d2"}, MetadataDir: "/d1",
		ControllerListener: "controller", AdvertisedPort: 9093, Standalone: true,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }, Random: sequence()}
}

func put(t *testing.T, fsys vfs.FS, path, text string) {
	t.Helper()
	fsys.MkdirAll(filepath.Dir(path), 0o755)
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte(text), 0)
	f.Sync()
	f.Close()
	fsys.SyncDir(filepath.Dir(path))
	fsys.SyncDir("/")
}

func get(t *testing.T, fsys vfs.FS, path string) string {
	t.Helper()
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tree lists all files below a directory.
func tree(t *testing.T, fsys vfs.FS, dir string) (files []string) {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			files = append(files, tree(t, fsys, path)...)
		} else {
			files = append(files, path)
		}
	}
	return files
}

// J-25, J-30, J-31, K-104, K-105: what each kind of node gets, and what is said.
func TestFormat(t *testing.T) {
	const checkpoint = "/d1/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
	other := fmt.Sprintf("7@host:9093:%s", idOf(99))
	own := fmt.Sprintf("3@host:9093:%s,%s", idOf(98), other)
	for name, c := range map[string]struct {
		change func(*Options)
		kind   string // of the metadata directory
		id     string // of the metadata directory
		files  []string
	}{
		"standalone":        {func(o *Options) {}, "dynamic metadata voter directory", idOf(1), []string{checkpoint, "/d1/bootstrap.checkpoint"}},
		"standalone_44":     {func(o *Options) { o.Checkpoint = Checkpoint44 }, "dynamic metadata voter directory", idOf(1), []string{checkpoint}},
		"initial_own":       {func(o *Options) { o.Standalone, o.InitialControllers = false, &own }, "dynamic metadata voter directory", idOf(98), []string{checkpoint, "/d1/bootstrap.checkpoint"}},
		"initial_other":     {func(o *Options) { o.Standalone, o.InitialControllers = false, &other }, "dynamic metadata directory", idOf(1), []string{checkpoint, "/d1/bootstrap.checkpoint"}},
		"no_initial":        {func(o *Options) { o.Standalone, o.NoInitialControllers = false, true }, "metadata directory", idOf(1), []string{checkpoint, "/d1/bootstrap.checkpoint"}},
		"static":            {func(o *Options) { o.Standalone, o.StaticVoters = false, true }, "metadata directory", idOf(1), []string{checkpoint, "/d1/bootstrap.checkpoint"}},
		"static_and_N":      {func(o *Options) { o.Standalone, o.StaticVoters, o.NoInitialControllers = false, true, true }, "metadata directory", idOf(1), []string{checkpoint, "/d1/bootstrap.checkpoint"}},
		"broker":            {func(o *Options) { o.Standalone, o.Controller = false, false }, "metadata directory", idOf(1), nil},
		"broker_initial":    {func(o *Options) { o.Standalone, o.Controller, o.InitialControllers = false, false, &other }, "dynamic metadata directory", idOf(1), nil},
		"empty_cluster_id":  {func(o *Options) { o.ClusterID = "" }, "dynamic metadata voter directory", idOf(1), []string{checkpoint, "/d1/bootstrap.checkpoint"}},
		"deep_directories":  {func(o *Options) { o.Dirs = []string{"/d1", "/a/b/c"} }, "dynamic metadata voter directory", idOf(1), []string{checkpoint, "/d1/bootstrap.checkpoint"}},
		"separate_metadata": {func(o *Options) { o.Dirs = []string{"/d2", "/d3"} }, "dynamic metadata voter directory", idOf(1), []string{checkpoint, "/d1/bootstrap.checkpoint"}},
	} {
		t.Run(name, func(t *testing.T) {
			mem, out := vfs.NewMem(), &bytes.Buffer{}
			o := node3(mem, out)
			c.change(&o)
			if err := Format(o); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if !strings.HasPrefix(lines[0], "Bootstrap metadata: BootstrapMetadata(records=[") {
				t.Errorf("first line %q", lines[0])
			}
			if !slices.Contains(lines, "Formatting "+c.kind+" /d1 with metadata.version 4.4-IV2.") {
				t.Errorf("output:\n%s", out)
			}
			e := logdir.ReadEnsemble(mem, o.Dirs, o.MetadataDir)
			if err := e.Verify(&o.ClusterID, 3, true); err != nil {
				t.Error(err)
			}
			if len(lines) != 1+len(e.Dirs) || len(e.DirectoryIDs()) != len(e.Dirs) {
				t.Errorf("%d lines for %d directories:\n%s", len(lines), len(e.Dirs), out)
			}
			if id, _ := e.DirectoryID("/d1"); id.String() != c.id {
				t.Errorf("the metadata directory has id %s, want %s", id, c.id)
			}
			for _, d := range e.Dirs {
				if d.Props.Version != 1 || !slices.Equal(d.Props.DirectoryIDs, e.DirectoryIDs()) {
					t.Errorf("%s: %+v", d.Path, d.Props)
				}
			}
			var others []string
			for _, f := range tree(t, mem, "/") {
				if filepath.Base(f) != "meta.properties" {
					others = append(others, f)
				}
			}
			if !slices.Equal(others, c.files) {
				t.Errorf("files: %v, want %v", others, c.files)
			}
			// J-26: a second time.
			out.Reset()
			err := Format(o)
			if want := "Log directory " + e.Dirs[0].Path + " is already formatted. Use --ignore-formatted to ignore this directory and format the others."; errText(err) != want {
				t.Errorf("second run: %v", err)
			}
			o.IgnoreFormatted = true
			if err := Format(o); err != nil || out.String() != "All of the log directories are already formatted.\n" {
				t.Errorf("with -g: %v\n%s", err, out)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// J-26, J-28, J-30, K-109: with -g formatted directories keep every key, and the rest is formatted.
func TestFormatTheRest(t *testing.T) {
	mem, out := vfs.NewMem(), &bytes.Buffer{}
	put(t, mem, "/d1/meta.properties", "broker.id=3\ncluster.id=c\nx.y=1\n")
	o := node3(mem, out)
	o.IgnoreFormatted = true
	if err := Format(o); err != nil {
		t.Fatal(err)
	}
	if got := get(t, mem, "/d1/meta.properties"); got != "broker.id=3\ncluster.id=c\nx.y=1\n" {
		t.Errorf("the formatted directory now has\n%s", got)
	}
	if strings.Contains(out.String(), "/d1") || !strings.Contains(out.String(), "Formatting data directory /d2 ") {
		t.Errorf("output:\n%s", out)
	}
	mem, out = vfs.NewMem(), &bytes.Buffer{}
	o = node3(mem, out)
	if err := Format(o); err != nil {
		t.Fatal(err)
	}
	o.Dirs, o.IgnoreFormatted, o.Random = []string{"/d1", "/d2", "/d3"}, true, func() model.UUID { return model.UUID{0: 0x66} }
	if err := Format(o); err != nil {
		t.Fatal(err)
	}
	e := logdir.ReadEnsemble(mem, o.Dirs, "/d1")
	if id, _ := e.DirectoryID("/d1"); id.String() != idOf(1) {
		t.Errorf("the id of /d1 changed to %s", id)
	}
	for _, d := range e.Dirs {
		if len(d.Props.DirectoryIDs) != 3 {
			t.Errorf("directory.ids of %s: %v", d.Path, d.Props.DirectoryIDs)
		}
	}
}

// J-26, J-27, J-29, K-101..K-104, K-108: what is refused, with Kafka's text and nothing written.
func TestFormatRefusals(t *testing.T) {
	s := func(v string) *string { return &v }
	id := idOf(99)
	for name, c := range map[string]struct {
		change func(*Options)
		files  map[string]string
		want   string
	}{
		"no_flag":              {func(o *Options) { o.Standalone = false }, nil, "Because controller.quorum.voters is not set on this controller, you must specify one of the following: --standalone, --initial-controllers, or --no-initial-controllers."},
		"standalone_on_broker": {func(o *Options) { o.Controller = false }, nil, "You can only use --standalone on a controller."},
		"static_standalone":    {func(o *Options) { o.StaticVoters = true }, nil, "You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify controller.quorum.bootstrap.servers instead."},
		"static_initial":       {func(o *Options) { o.Standalone, o.StaticVoters, o.InitialControllers = false, true, s("x") }, nil, "You cannot specify controller.quorum.voters and format"},
		"zero_directory_id":    {func(o *Options) { o.Standalone, o.InitialControllers = false, s("3@h:1:AAAAAAAAAAAAAAAAAAAAAA") }, nil, "is reserved"},
		"no_voters":            {func(o *Options) { o.Standalone, o.InitialControllers = false, s("") }, nil, "No voters given."},
		"voter_twice":          {func(o *Options) { o.Standalone, o.InitialControllers = false, s("3@h:1:"+id+",3@h:2:"+id) }, nil, "Node id 3 was specified more than once."},
		"negative_node":        {func(o *Options) { o.NodeID = -1 }, nil, "You must specify a valid non-negative node ID."},
		"release_and_feature":  {func(o *Options) { o.Release, o.Features = "4.0", []string{"metadata.version=22"} }, nil, "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."},
		"unknown_release":      {func(o *Options) { o.Release = "5.0" }, nil, "Unknown metadata.version '5.0'. Supported metadata.version are: 3.3-IV3, 3.4-IV0,"},
		"unstable_release":     {func(o *Options) { o.Release = "4.5" }, nil, "Unknown metadata.version '4.5'."},
		"unstable_level":       {func(o *Options) { o.Features = []string{"metadata.version=34"} }, nil, "metadata.version 4.5-IV0 is not yet stable."},
		"unknown_level":        {func(o *Options) { o.Features = []string{"metadata.version=99"} }, nil, "No MetadataVersion with feature level 99. Valid feature levels are from 7 to 34."},
		"unknown_feature":      {func(o *Options) { o.Features = []string{"foo=1"} }, nil, "Unsupported feature: foo. Supported features are: eligible.leader.replicas.version, group.version, kraft.version, share.version, streams.version, transaction.version"},
		"feature_level":        {func(o *Options) { o.Features = []string{"group.version=7"} }, nil, "No feature:group.version with feature level 7"},
		"feature_negative":     {func(o *Options) { o.Features = []string{"group.version=-1"} }, nil, "No feature:group.version with feature level -1"},
		"feature_needs":        {func(o *Options) { o.Release, o.Features = "3.9", []string{"eligible.leader.replicas.version=1"} }, nil, "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23"},
		"kraft_0_dynamic":      {func(o *Options) { o.Features = []string{"kraft.version=0"} }, nil, "Cannot set kraft.version to 0 if controller.quorum.voters is empty"},
		"kraft_1_static":       {func(o *Options) { o.Standalone, o.StaticVoters, o.Features = false, true, []string{"kraft.version=1"} }, nil, "Cannot set kraft.version to 1 unless controller.quorum.voters is empty"},
		"scram_too_early":      {func(o *Options) { o.Release, o.Scram = "3.4", []string{"SCRAM-SHA-256=[name=a,password=b]"} }, nil, "SCRAM is only supported in metadata.version 3.5-IV2 or later."},
		"no_directory":         {func(o *Options) { o.Dirs = nil }, nil, "You must specify at least one directory to format"},
		"already":              {func(o *Options) {}, map[string]string{"/d2/meta.properties": "version=1\ncluster.id=c\nnode.id=3\n"}, "Log directory /d2 is already formatted. Use --ignore-formatted to ignore this directory and format the others."},
		"other_cluster":        {func(o *Options) { o.IgnoreFormatted = true }, map[string]string{"/d2/meta.properties": "version=1\ncluster.id=x\nnode.id=3\n"}, "Invalid cluster.id in: /d2/meta.properties. Expected c, but read x"},
		"other_node":           {func(o *Options) { o.IgnoreFormatted = true }, map[string]string{"/d2/meta.properties": "version=1\ncluster.id=c\nnode.id=4\n"}, "Stored node id 4 doesn't match previous node id 3 in /d2/meta.properties."},
		"reserved_id":          {func(o *Options) { o.IgnoreFormatted = true }, map[string]string{"/d2/meta.properties": "version=1\ncluster.id=c\nnode.id=3\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\n"}, "Invalid reserved directory ID AAAAAAAAAAAAAAAAAAAAAA found in /d2"},
		"require_all":          {func(o *Options) { o.RequireAllDirs = true }, map[string]string{"/d2/meta.properties": "version=2\n"}, "Cannot read log directory /d2, and --require-all-dirs is given"},
		"nothing_usable":       {func(o *Options) {}, map[string]string{"/d1/meta.properties": "version=2\n", "/d2/meta.properties": "version=2\n"}, "No available log directories to format."},
	} {
		t.Run(name, func(t *testing.T) {
			mem, out := vfs.NewMem(), &bytes.Buffer{}
			for f, text := range c.files {
				put(t, mem, f, text)
			}
			before := tree(t, mem, "/")
			o := node3(mem, out)
			c.change(&o)
			err := Format(o)
			var refused *Refused
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := tree(t, mem, "/"); !slices.Equal(before, after) {
				t.Errorf("written: %v", after)
			}
		})
	}
}

// J-27: directories that cannot be read are skipped with a line, the metadata directory too.
func TestFormatSkipsUnreadable(t *testing.T) {
	for bad, other := range map[string]string{"/d1": "/d2", "/d2": "/d1"} {
		mem, out := vfs.NewMem(), &bytes.Buffer{}
		put(t, mem, bad+"/meta.properties", "version=2\n")
		if err := Format(node3(mem, out)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "I/O error trying to read log directory "+bad+". Ignoring...\n") || !strings.Contains(out.String(), other+" with metadata.version") {
			t.Errorf("output:\n%s", out)
		}
		if get(t, mem, bad+"/meta.properties") != "version=2\n" {
			t.Error("the unreadable file was touched")
		}
	}
}

// J-28 and the golden order: each directory's meta.properties comes last; a failing call names the file and leaves
// a state that a second run with -g completes.
func TestFormatEveryCallFails(t *testing.T) {
	var order []string
	changes := func(op vfs.Op) bool {
		switch op.Kind {
		case vfs.OpCreate, vfs.OpMkdir, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpSyncDir:
			return true
		}
		return false
	}
	count := 0
	if err := Format(node3(vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if changes(op) {
			count++
			if strings.Contains(op.Path, "meta.properties") || op.Kind == vfs.OpMkdir || op.Kind == vfs.OpSyncDir || op.Kind == vfs.OpRename {
				order = append(order, op.String())
			}
		}
		return nil
	}), &bytes.Buffer{})); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, line := range order {
		if !strings.Contains(line, ".part") { // how a checkpoint is made is the raft node's own
			if i := strings.Index(line, "meta.properties.tmp "); i >= 0 && strings.HasPrefix(line, "write") {
				line = line[:i] + "meta.properties.tmp"
			}
			kept = append(kept, line)
		}
	}
	want := `mkdir /d1
syncdir /
syncdir /d1
rename /d1/00000000000000000000-0000000000.checkpoint /d1/bootstrap.checkpoint
syncdir /d1
mkdir /d1/__cluster_metadata-0
syncdir /d1
syncdir /d1/__cluster_metadata-0
create /d1/meta.properties.tmp
write /d1/meta.properties.tmp
sync /d1/meta.properties.tmp
rename /d1/meta.properties.tmp /d1/meta.properties
syncdir /d1
mkdir /d2
syncdir /
create /d2/meta.properties.tmp
write /d2/meta.properties.tmp
sync /d2/meta.properties.tmp
rename /d2/meta.properties.tmp /d2/meta.properties
syncdir /d2`
	if got := strings.Join(kept, "\n"); got != want {
		t.Errorf("order:\n%s\nwant\n%s", got, want)
	}
	for at := range count {
		mem, n := vfs.NewMem(), 0
		o := node3(vfs.Inject(mem, func(op vfs.Op) error {
			if changes(op) {
				if n++; n == at+1 {
					return &os.PathError{Op: op.Kind.String(), Path: op.Path, Err: syscall.ENOSPC}
				}
			}
			return nil
		}), &bytes.Buffer{})
		err := Format(o)
		if err == nil {
			t.Fatalf("call %d failed and nobody noticed", at)
		}
		if !strings.HasPrefix(err.Error(), "Error while writing meta.properties file /d") || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("call %d: %v", at, err)
		}
		o.FS, o.IgnoreFormatted, o.Random = mem, true, sequence2()
		if err := Format(o); err != nil {
			t.Fatalf("call %d: second run: %v", at, err)
		}
		usable(t, mem, fmt.Sprintf("call %d", at))
	}
}

// sequence2 draws other ids than sequence.
func sequence2() func() model.UUID {
	next := sequence()
	return func() model.UUID { u := next(); u[1] = 1; return u }
}

// usable checks that a formatted pair of directories could be started.
func usable(t *testing.T, fsys vfs.FS, what string) {
	t.Helper()
	e, err := logdir.Prepare(logdir.PrepareOptions{FS: fsys, Dirs: []string{"/d1", "/d2"}, MetadataDir: "/d1", NodeID: 3})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if len(e.DirectoryIDs()) != 2 {
		t.Errorf("%s: ids %v", what, e.DirectoryIDs())
	}
	for _, f := range []string{"/d1/bootstrap.checkpoint", "/d1/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"} {
		if ok, err := vfs.Exists(fsys, f); !ok || err != nil {
			t.Errorf("%s: %s is missing (%v)", what, f, err)
		}
	}
}

// A power loss at any moment of a format leaves directories that are formatted, or not, and a second run completes them.
func TestFormatCrash(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		mem := vfs.NewMem()
		at, n := rng.IntN(90), 0
		var crashed *vfs.Mem
		if err := Format(node3(vfs.Inject(mem, func(op vfs.Op) error {
			if n == at {
				crashed = mem.CrashClone(rng)
			}
			n++
			return nil
		}), &bytes.Buffer{})); err != nil {
			t.Fatal(err)
		}
		whole := crashed == nil
		if whole {
			crashed = mem.CrashClone(rng)
			usable(t, crashed, fmt.Sprintf("seed %d, after the format", seed))
		}
		o := node3(crashed, &bytes.Buffer{})
		o.IgnoreFormatted, o.Random = true, sequence2()
		if err := Format(o); err != nil {
			t.Fatalf("seed %d, call %d: second run: %v", seed, at, err)
		}
		usable(t, crashed, fmt.Sprintf("seed %d, call %d", seed, at))
	}
}

// J-34: update-directories.
func TestUpdateDirectories(t *testing.T) {
	mem, out := vfs.NewMem(), &bytes.Buffer{}
	put(t, mem, "/d1/meta.properties", "version=1\ncluster.id=c\nnode.id=3\n")
	o := node3(mem, out)
	if err := UpdateDirectories(out, o); !strings.Contains(errText(err), "/d2 is not formatted") {
		t.Errorf("%v", err)
	}
	put(t, mem, "/d2/meta.properties", "version=1\ncluster.id=c\nnode.id=3\ndirectory.id="+idOf(50)+"\n")
	lock, err := logdir.Lock(mem, "/d2")
	if err != nil {
		t.Fatal(err)
	}
	if err := UpdateDirectories(out, o); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("%v", err)
	}
	lock.Close()
	before := get(t, mem, "/d1/meta.properties")
	if before != "version=1\ncluster.id=c\nnode.id=3\n" {
		t.Error("a refused run changed something")
	}
	if err := UpdateDirectories(out, o); err != nil {
		t.Fatal(err)
	}
	e := logdir.ReadEnsemble(mem, o.Dirs, "/d1")
	if ids := e.DirectoryIDs(); len(ids) != 2 || !slices.Equal(e.Dirs[0].Props.DirectoryIDs, ids) || !slices.Equal(e.Dirs[1].Props.DirectoryIDs, ids) {
		t.Errorf("%+v", e.Dirs)
	}
	out.Reset()
	if err := UpdateDirectories(out, o); err != nil || out.String() != "All of the log directories are already up to date.\n" {
		t.Errorf("%v %s", err, out)
	}
}
