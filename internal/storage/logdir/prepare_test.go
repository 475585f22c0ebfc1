package logdir

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
)

func prepare(fsys vfs.FS, dirs []string, metadataDir string, out *logs) (*Ensemble, error) {
	if out == nil {
		out = &logs{}
	}
	return Prepare(PrepareOptions{FS: fsys, Dirs: dirs, MetadataDir: metadataDir, NodeID: 1, Now: testClock, Random: sequence(), Log: out.logger()})
}

// J-18, J-19, J-20, J-21, D-40: every condition of a directory at start has its outcome and Kafka's text.
func TestPrepareConditions(t *testing.T) {
	props := func(cluster string, node int, id string) string {
		return fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\n%s", cluster, node, id)
	}
	id := func(n byte) string { return "directory.id=" + dirID(n).String() + "\n" }
	good := props("c", 1, id(1))
	for name, c := range map[string]struct {
		d1, d2   string // contents; "-" is no file
		metadata string
		setup    func(t *testing.T, m *vfs.Mem)
		inject   func(vfs.Op) bool // EIO
		err      []string          // parts of the error; nil: starts
		offline  []string
	}{
		"both_good":            {d1: good, d2: props("c", 1, id(2)), metadata: "/d1"},
		"missing_file":         {d1: good, d2: "-", metadata: "/d1", err: []string{"No `meta.properties` found in /d2 (have you run `kafka-storage.sh` to format the directory?)"}},
		"missing_metadata_dir": {d1: good, d2: "-", metadata: "/d2", err: []string{"No `meta.properties` found in /d2"}},
		"unreadable":           {d1: good, d2: good, metadata: "/d1", inject: under("/d2"), offline: []string{"/d2"}},
		"unreadable_metadata":  {d1: good, d2: good, metadata: "/d2", inject: under("/d2"), err: []string{"Encountered I/O error in metadata log directory /d2. Cannot continue."}},
		"all_unreadable": {d1: good, d2: good, metadata: "/d1", inject: func(op vfs.Op) bool { return true },
			err: []string{"No readable meta.properties files found.", "/d1/meta.properties", "/d2/meta.properties"}},
		"dir_is_a_file":    {d1: good, d2: "-", metadata: "/d1", offline: []string{"/d2"}, setup: func(t *testing.T, m *vfs.Mem) { put(t, m, "/d2", "x") }},
		"version_2":        {d1: good, d2: "version=2\ncluster.id=c\nnode.id=1\n", metadata: "/d1", offline: []string{"/d2"}},
		"no_cluster":       {d1: good, d2: "version=1\nnode.id=1\n", metadata: "/d1", offline: []string{"/d2"}},
		"no_node":          {d1: good, d2: "version=1\ncluster.id=c\n", metadata: "/d1", offline: []string{"/d2"}},
		"node_text":        {d1: good, d2: "version=1\ncluster.id=c\nnode.id=x\n", metadata: "/d1", offline: []string{"/d2"}},
		"dir_id_21":        {d1: good, d2: props("c", 1, "directory.id=Rr22P56NSji_e-5OsqeU5\n"), metadata: "/d1", offline: []string{"/d2"}},
		"dir_id_26":        {d1: good, d2: props("c", 1, "directory.id=Rr22P56NSji_e-5OsqeU5AAAAA\n"), metadata: "/d1", offline: []string{"/d2"}},
		"garbage_metadata": {d1: good, d2: "version=zwei\n", metadata: "/d2", err: []string{"Encountered I/O error in metadata log directory /d2"}},
		"empty_file":       {d1: good, d2: "", metadata: "/d1", offline: []string{"/d2"}},
		"scrambled":        {d1: good, d2: "\x00\xff garbage =\n:", metadata: "/d1", offline: []string{"/d2"}},
		"huge_file":        {d1: good, d2: strings.Repeat("#", 70000), metadata: "/d1", offline: []string{"/d2"}},
		"other_cluster":    {d1: good, d2: props("d", 1, id(2)), metadata: "/d1", err: []string{"Invalid cluster.id in: /d2/meta.properties. Expected c, but read d"}},
		"other_node":       {d1: good, d2: props("c", 7, id(2)), metadata: "/d1", err: []string{"Stored node id 7 doesn't match previous node id 1 in /d2/meta.properties. If you moved your data,"}},
		"reserved_id":      {d1: good, d2: props("c", 1, "directory.id=AAAAAAAAAAAAAAAAAAAAAg\n"), metadata: "/d1", err: []string{"Invalid reserved directory ID AAAAAAAAAAAAAAAAAAAAAg found in /d2"}},
		"duplicate_id":     {d1: good, d2: good, metadata: "/d1", err: []string{"Duplicate directory ID Optional[" + dirID(1).String() + "] found. It was the ID of /d1, but also of /d2"}},
		"v0_no_broker_id":  {d1: good, d2: "cluster.id=c\n", metadata: "/d1", err: []string{"Error: node ID not found in /d2"}},
		"v0_no_cluster":    {d1: good, d2: "broker.id=1\n", metadata: "/d1", err: []string{"Error: cluster ID not found in /d2"}},
		"v0_mixed":         {d1: good, d2: "broker.id=1\ncluster.id=c\n", metadata: "/d1"},
		"metadata_elsewhere": {d1: good, d2: props("c", 1, id(2)), metadata: "/d1",
			setup: func(t *testing.T, m *vfs.Mem) {
				put(t, m, "/d2/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint", "")
			},
			err: []string{"Found unexpected metadata location in data directory `/d2/__cluster_metadata-0` (the configured metadata directory is /d1)."}},
		"stray_checkpoint_file": {d1: good, d2: props("c", 1, id(2)), metadata: "/d1",
			setup: func(t *testing.T, m *vfs.Mem) { put(t, m, "/d2/bootstrap.checkpoint", "") }},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			for dir, text := range map[string]string{"/d1": c.d1, "/d2": c.d2} {
				if text != "-" {
					put(t, mem, dir+"/meta.properties", text)
				}
			}
			if c.setup != nil {
				c.setup(t, mem)
			}
			var fsys vfs.FS = mem
			if c.inject != nil {
				fsys = failing(mem, errDisk, c.inject)
			}
			out := &logs{}
			e, err := prepare(fsys, []string{"/d1", "/d2"}, c.metadata, out)
			if c.err != nil {
				mustContain(t, "error", errText(err), c.err...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := e.in(Unreadable); strings.Join(got, " ") != strings.Join(c.offline, " ") {
				t.Errorf("offline: %v, want %v", got, c.offline)
			}
			for _, d := range c.offline {
				mustContain(t, "log", out.String(), "Error while reading meta.properties file "+d+"/meta.properties")
			}
		})
	}
}

// J-11, J-13, J-16: a missing id is given once; complete files are not touched; unknown keys stay.
func TestPrepareGivesIDs(t *testing.T) {
	mem := vfs.NewMem()
	put(t, mem, "/d1/meta.properties", "version=1\ncluster.id=c\nnode.id=1\nx.y=1\n")
	put(t, mem, "/d2/meta.properties", "broker.id=1\ncluster.id=c\n")
	if _, err := prepare(mem, []string{"/d1", "/d2"}, "/d1", nil); err != nil {
		t.Fatal(err)
	}
	one, two := get(t, mem, "/d1/meta.properties"), get(t, mem, "/d2/meta.properties")
	mustContain(t, "d1", one, "directory.id="+idOf(1).String(), "x.y=1", "version=1\n")
	mustContain(t, "d2", two, "directory.id="+idOf(2).String(), "version=0\n", "broker.id=1\n")
	tr := &trace{}
	e, err := prepare(tr.wrap(mem), []string{"/d1", "/d2"}, "/d1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tr.take(); got != "" {
		t.Errorf("the second start wrote:\n%s", got)
	}
	if id, ok := e.DirectoryID("/d1"); !ok || id != idOf(1) {
		t.Errorf("d1 has %v %v", id, ok)
	}
}

// J-14, J-15: the list of all ids is written everywhere while all can be read, and names an offline id when it can be trusted.
func TestDirectoryIDsList(t *testing.T) {
	mem := vfs.NewMem()
	dirs := formatN(t, mem, 3)
	if _, err := prepare(mem, dirs, "/d1", nil); err != nil {
		t.Fatal(err)
	}
	want := "directory.ids=" + dirID(1).String() + "," + dirID(2).String() + "," + dirID(3).String() + "\n"
	for _, d := range dirs {
		mustContain(t, d, get(t, mem, d+"/meta.properties"), want)
	}
	broken := failing(mem, errDisk, under("/d2"))
	e, err := prepare(broken, dirs, "/d1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if ids, trusted, why := e.KnownOffline(); !trusted || len(ids) != 1 || ids[0] != dirID(2) {
		t.Errorf("known offline: %v %v %q", ids, trusted, why)
	}
	for name, edit := range map[string]func(string) string{
		"one_copy_differs": func(s string) string { return strings.Replace(s, ","+dirID(3).String(), "", 1) },
		"own_id_missing": func(s string) string {
			return strings.Replace(s, "directory.id="+dirID(3).String(), "directory.id="+dirID(9).String(), 1)
		},
		"no_list": func(s string) string { return strings.Replace(s, want, "", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			clone := mem.CrashClone(rand.New(rand.NewPCG(1, 1)))
			put(t, clone, "/d3/meta.properties", edit(get(t, clone, "/d3/meta.properties")))
			before := get(t, clone, "/d1/meta.properties")
			e, err := prepare(failing(clone, errDisk, under("/d2")), dirs, "/d1", nil)
			if err != nil {
				t.Fatal(err)
			}
			if ids, trusted, why := e.KnownOffline(); trusted || why == "" {
				t.Errorf("trusted: %v %q", ids, why)
			}
			if get(t, clone, "/d1/meta.properties") != before {
				t.Error("the list was rewritten although a directory could not be read")
			}
		})
	}
}

// J-17, J-24: a metadata directory of its own is read and listed; one that is among log.dirs is read once.
func TestPrepareMetadataDir(t *testing.T) {
	mem := vfs.NewMem()
	formatN(t, mem, 3)
	e, err := prepare(mem, []string{"/d1", "/d2"}, "/d3", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Dirs) != 3 || len(e.DirectoryIDs()) != 3 {
		t.Errorf("%d directories, ids %v", len(e.Dirs), e.DirectoryIDs())
	}
	e, err = prepare(mem, []string{"/d2", "/d1", "/d2"}, "/d1", nil)
	if err != nil || len(e.Dirs) != 2 {
		t.Errorf("%v, %v", e, err)
	}
}

// J-22: two names of one directory that has no id yet; J-23: a copied file under two paths.
func TestPrepareSameDirectoryTwice(t *testing.T) {
	root := t.TempDir()
	os.MkdirAll(root+"/d1", 0o755)
	os.WriteFile(root+"/d1/meta.properties", []byte("version=1\ncluster.id=c\nnode.id=1\n"), 0o644)
	if err := os.Symlink(root+"/d1", root+"/d2"); err != nil {
		t.Fatal(err)
	}
	_, err := prepare(vfs.OS(), []string{root + "/d1", root + "/d2"}, root+"/d1", nil)
	mustContain(t, "symlink", errText(err), "Duplicate log directory found: "+root+"/d1, "+root+"/d2")
	mem := vfs.NewMem()
	format(t, mem, "/d1", dirID(1))
	format(t, mem, "/d9", dirID(1))
	_, err = prepare(mem, []string{"/d1", "/d9"}, "/d1", nil)
	mustContain(t, "copy", errText(err), "Duplicate directory ID")
}

// J-12: the golden order of a rewrite, and what every crash and every failing call leaves behind.
func TestMetaPropertiesRewrite(t *testing.T) {
	begin := func() *vfs.Mem {
		mem := vfs.NewMem()
		put(t, mem, "/d1/meta.properties", "version=1\ncluster.id=c\nnode.id=1\n")
		return mem
	}
	mem, tr := begin(), &trace{}
	if _, err := prepare(tr.wrap(mem), []string{"/d1"}, "/d1", nil); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{"create /d1/meta.properties.tmp", "write /d1/meta.properties.tmp", "sync /d1/meta.properties.tmp",
		"rename /d1/meta.properties.tmp /d1/meta.properties", "syncdir /d1"}, "\n")
	if got := tr.take(); got != want {
		t.Errorf("order:\n%s\nwant\n%s", got, want)
	}
	for step := range 5 {
		for seed := range uint64(20) {
			mem, n := begin(), 0
			var crashed *vfs.Mem
			fsys := vfs.Inject(mem, func(op vfs.Op) error {
				switch op.Kind {
				case vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpSyncDir:
					if n == step {
						crashed = mem.CrashClone(rand.New(rand.NewPCG(seed, uint64(step))))
					}
					n++
				}
				return nil
			})
			if _, err := prepare(fsys, []string{"/d1"}, "/d1", nil); err != nil {
				t.Fatal(err)
			}
			if _, err := ParseMetaProperties(get(t, crashed, "/d1/meta.properties")); err != nil {
				t.Fatalf("crash before step %d, seed %d: %v", step, seed, err)
			}
			if e, err := prepare(crashed, []string{"/d1"}, "/d1", nil); err != nil || len(e.DirectoryIDs()) != 1 {
				t.Fatalf("crash before step %d, seed %d: start: %v", step, seed, err)
			}
		}
		mem, n := begin(), 0
		fsys := failing(mem, errDisk, func(op vfs.Op) bool {
			switch op.Kind {
			case vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpSyncDir:
				n++
				return n == step+1
			}
			return false
		})
		_, err := prepare(fsys, []string{"/d1"}, "/d1", nil)
		mustContain(t, fmt.Sprintf("failing step %d", step), errText(err), "/d1/meta.properties")
		if _, err := ParseMetaProperties(get(t, mem, "/d1/meta.properties")); err != nil {
			t.Errorf("failing step %d: %v", step, err)
		}
	}
}

// J-04: new ids are never reserved, taken, or begin with a dash.
func TestNewDirectoryID(t *testing.T) {
	taken := model.UUID{0: 0x20, 15: 1}
	draws := []model.UUID{{}, {15: 99}, taken, {0: 0xf8}, {0: 0x30}}
	e := &Ensemble{Dirs: []DirMeta{{Path: "/d1", Props: MetaProperties{DirectoryID: dirID(1), HasDirectoryID: true}}}}
	id := e.NewDirectoryID(func() model.UUID {
		u := draws[0]
		draws = draws[1:]
		return u
	})
	if id != (model.DirectoryID{0: 0x30}) || len(draws) != 0 {
		t.Errorf("drew %v with %d left", id, len(draws))
	}
	if !strings.HasPrefix(model.UUID{0: 0xf8}.String(), "-") {
		t.Error("the vector for a leading dash is wrong")
	}
}
