package logdir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
)

const hex1 = "0123456789abcdef0123456789abcdef"

func metadataText(n byte) string { return "version: 0\ntopic_id: " + topicID(n).String() }

// withLogs makes a cleanly stopped pair of directories with foo-0 (3 records) in each: foo-0 in /d1, foo-1 in /d2.
func withLogs(t *testing.T) (*vfs.Mem, setup) {
	t.Helper()
	mem := vfs.NewMem()
	s := setup{fs: mem, dirs: formatN(t, mem, 2)}
	m := s.start(t)
	for i := range int32(2) {
		r, err := m.Create(tip(1, i), "foo", dirID(byte(i+1)), nil, true)
		if err != nil {
			t.Fatal(err)
		}
		appendTo(t, r, 3)
	}
	mustClose(t, m, 3)
	return mem, s
}

// D-41, D-220: a damaged checkpoint takes its directory offline, alone, and the message says what to do.
func TestDamagedCheckpoint(t *testing.T) {
	for _, name := range checkpointFiles {
		for fault, text := range map[string]string{"garbage": "garbage", "wrong_version": "7\n0\n", "wrong_count": "0\n5\nfoo 1 2\n", "zero_bytes": "\x00\x00\x00\x00"} {
			t.Run(name+"/"+fault, func(t *testing.T) {
				mem, s := withLogs(t)
				put(t, mem, "/d2/"+name, text)
				s.out = &logs{}
				m := s.start(t)
				d, _ := m.DirectoryAt("/d2")
				if d.Online() {
					t.Fatal("the directory is online")
				}
				mustContain(t, "why", errText(d.Err()), "damaged file /d2/"+name, "Delete the file and restart")
				if r, ok := m.Get(tip(1, 0)); !ok || r.Log.LogEndOffset() != 3 {
					t.Error("/d1 does not serve")
				}
				mustClose(t, m, 4)
				if get(t, mem, "/d2/"+name) != text {
					t.Error("the damaged file was written over")
				}
				if err := mem.Remove("/d2/" + name); err != nil {
					t.Fatal(err)
				}
				m = s.start(t)
				if r, ok := m.Get(tip(1, 1)); !ok || r.Log.LogEndOffset() != 3 {
					t.Error("after the cure /d2 does not serve")
				}
			})
		}
	}
}

// An empty checkpoint file stands for no entries (D-41).
func TestEmptyCheckpoint(t *testing.T) {
	mem, s := withLogs(t)
	for _, name := range checkpointFiles {
		put(t, mem, "/d2/"+name, "")
	}
	m := s.start(t)
	if r, ok := m.Get(tip(1, 1)); !ok || r.Log.LogEndOffset() != 3 {
		t.Error("/d2 does not serve")
	}
}

// T-23: a damaged partition.metadata takes its directory offline; it is neither rewritten nor made stray.
func TestDamagedPartitionMetadata(t *testing.T) {
	for fault, text := range map[string]string{
		"empty": "", "one_line": "version: 0", "zero_id": "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "negative": "version: -1\ntopic_id: " + topicIDText,
		"bad_base64": "version: 0\ntopic_id: ????????", "huge": strings.Repeat("x", 5000),
	} {
		t.Run(fault, func(t *testing.T) {
			mem, s := withLogs(t)
			put(t, mem, "/d2/foo-1/partition.metadata", text)
			m := s.start(t)
			d, _ := m.DirectoryAt("/d2")
			if d.Online() {
				t.Fatal("the directory is online")
			}
			mustContain(t, "why", errText(d.Err()), "/d2/foo-1/partition.metadata", "Restore the file")
			if _, ok := m.Get(tip(1, 0)); !ok {
				t.Error("/d1 does not serve")
			}
			if get(t, mem, "/d2/foo-1/partition.metadata") != text {
				t.Error("the file was rewritten")
			}
		})
	}
}

// T-22, T-24, T-28, T-98, T-99, T-106, J-44, D-55: what is stray, and that it stays what it is.
func TestStrays(t *testing.T) {
	mem := vfs.NewMem()
	s := setup{fs: mem, dirs: formatN(t, mem, 1)}
	m := s.start(t)
	for i, name := range []string{"kept", "noid", "gone", "shrunk", "moved", "renamed", "renumbered"} {
		appendTo(t, mustCreate(t, m, tip(byte(i+1), 0), name), 1)
	}
	mustClose(t, m, 1)
	mem.Remove("/d1/noid-0/partition.metadata")
	mem.Rename("/d1/renamed-0", "/d1/other-0")
	put(t, mem, "/d1/other-0/partition.metadata", metadataText(6)+"\ntopic: renamed\npartition: 0\n")
	mem.Rename("/d1/renumbered-0", "/d1/renumbered-7")
	put(t, mem, "/d1/renumbered-7/partition.metadata", metadataText(7)+"\ntopic: renumbered\npartition: 0\n")
	put(t, mem, "/d1/fut-0."+hex1+"-future/partition.metadata", metadataText(9))
	s.decide = func(f Found) Verdict {
		switch f.Topic {
		case "gone", "fut":
			return Verdict{Stray: "the topic id does not exist in the metadata image", Gone: true}
		case "shrunk":
			return Verdict{Stray: "the topic has no such partition"}
		case "moved":
			return Verdict{Stray: "this broker is not one of the partition's replicas"}
		}
		return Verdict{}
	}
	s.out = &logs{}
	m = s.start(t)
	if got := m.Replicas(); len(got) != 1 || got[0].Topic != "kept" {
		t.Errorf("served: %v", got)
	}
	var strays []string
	for _, name := range list(t, mem, "/d1") {
		tp, role, err := ParseLogName(name)
		if err == nil && role == StrayLog {
			strays = append(strays, tp.String())
		}
	}
	slices.Sort(strays)
	if got := strings.Join(strays, " "); got != "fut-0 gone-0 moved-0 noid-0 other-0 renumbered-7 shrunk-0" {
		t.Errorf("strays: %s", got)
	}
	mustContain(t, "log", s.out.String(), "it has no partition.metadata", "does not exist in the metadata image",
		"the directory is named other-0, but its partition.metadata says renamed-0", "level=WARN")
	mustClose(t, m, 2)
	before := strings.Join(list(t, mem, "/d1"), " ")
	// T-100: noise inside a stray, and a partition.metadata that makes no sense, hurt nobody.
	for _, name := range list(t, mem, "/d1") {
		if strings.HasSuffix(name, "-stray") {
			put(t, mem, "/d1/"+name+"/00000000000000000000.log", "noise")
			put(t, mem, "/d1/"+name+"/partition.metadata", "noise")
		}
	}
	for range 2 {
		s.out = &logs{}
		m = s.start(t)
		mustClose(t, m, 3)
		if got := strings.Join(list(t, mem, "/d1"), " "); got != before {
			t.Errorf("a restart changed the names:\n%s\nwas\n%s", got, before)
		}
		if n := strings.Count(s.out.String(), "stray replica"); n != 7 {
			t.Errorf("%d of 7 strays are named again", n)
		}
	}
}

// T-114: a cut name is only for people.
func TestCutNames(t *testing.T) {
	mem := vfs.NewMem()
	s := setup{fs: mem, dirs: formatN(t, mem, 1), change: func(o *Options) { o.MetadataDetails = true; o.Live.FileDeleteDelay = 1 << 40 }}
	m := s.start(t)
	long := strings.Repeat("x", 249)
	mustCreate(t, m, tip(1, 0), long)
	if err := m.Delete(tip(1, 0)); err != nil {
		t.Fatal(err)
	}
	appendTo(t, mustCreate(t, m, tip(2, 0), long[:213]), 2)
	mustClose(t, m, 1)
	m = s.start(t)
	if r, ok := m.Get(tip(2, 0)); !ok || r.Log.LogEndOffset() != 2 {
		t.Error("the live topic was touched")
	}
	for _, name := range list(t, mem, "/d1") {
		if len(name) > 255 {
			t.Errorf("%s has %d bytes", name, len(name))
		}
		if strings.HasSuffix(name, "-delete") {
			mustContain(t, "metadata of the deleted", get(t, mem, "/d1/"+name+"/partition.metadata"), "topic: "+long+"\n")
		}
	}
}

// J-40, T-115, D-53: directories that are no replicas are skipped with one warning; files silently.
func TestForeignDirectories(t *testing.T) {
	mem, s := withLogs(t)
	for _, name := range []string{"lost+found", "foo", ".snapshot", "remote-log-index-cache", "foo-01"} {
		put(t, mem, "/d1/"+name+"/x", "x")
	}
	put(t, mem, "/d1/some-file-7", "x")
	s.out = &logs{}
	m := s.start(t)
	if len(m.Replicas()) != 2 || m.HasOffline() {
		t.Errorf("%d replicas, offline %v", len(m.Replicas()), m.HasOffline())
	}
	if n := strings.Count(s.out.String(), "skipped a directory that is not a replica"); n != 4 {
		t.Errorf("%d warnings, want one each for lost+found, foo, .snapshot and foo-01:\n%s", n, s.out)
	}
	for _, name := range []string{"lost+found", "foo", ".snapshot", "remote-log-index-cache", "foo-01"} {
		get(t, mem, "/d1/"+name+"/x")
	}
}

// J-45, T-108: one replica in two directories.
func TestDuplicateReplica(t *testing.T) {
	for name, c := range map[string]struct {
		assigned model.DirectoryID
		kept     string // "": no start
	}{
		"metadata_names_d1":      {dirID(1), "/d1"},
		"metadata_names_d2":      {dirID(2), "/d2"},
		"metadata_names_neither": {dirID(9), ""},
	} {
		t.Run(name, func(t *testing.T) {
			mem, s := withLogs(t)
			for _, f := range list(t, mem, "/d1/foo-0") {
				put(t, mem, "/d2/foo-0/"+f, get(t, mem, "/d1/foo-0/"+f))
			}
			s.decide = func(f Found) Verdict { return Verdict{Directory: c.assigned} }
			m, err := s.open()
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close(context.Background(), 1)
			err = m.Load(context.Background(), LoadOptions{Decide: s.decide})
			if c.kept == "" {
				mustContain(t, "error", errText(err), "Duplicate log directories for foo-0 are found in both /d1/foo-0 and /d2/foo-0")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := m.Get(tip(1, 0)); !ok || r.Dir.Path() != c.kept || r.Log.LogEndOffset() != 3 {
				t.Errorf("foo-0: %v", ok)
			}
			if m.HasOffline() || len(m.Replicas()) != 2 {
				t.Errorf("%d replicas", len(m.Replicas()))
			}
		})
	}
}

// T-93: what waits for deletion is not opened, whatever it holds, and goes after the delay.
func TestDeletedAtStart(t *testing.T) {
	mem, s := withLogs(t)
	put(t, mem, "/d1/old-0."+hex1+"-delete/00000000000000000000.log", "noise")
	put(t, mem, "/d1/old-0."+hex1+"-delete/partition.metadata", "")
	m := s.start(t)
	if m.HasOffline() || len(m.Replicas()) != 2 {
		t.Error("a deleted replica disturbed the start")
	}
	if st := m.Dirs(); len(st[0].Logs) != 1 {
		t.Errorf("%+v", st[0].Logs)
	}
	if m.sched.removals.Len() != 1 {
		t.Errorf("%d removals are queued", m.sched.removals.Len())
	}
}

// J-39: an I/O error while one log is loaded takes its directory offline, and Load goes on.
func TestLoadError(t *testing.T) {
	mem, s := withLogs(t)
	s.fs = failing(mem, errDisk, func(op vfs.Op) bool { return strings.HasPrefix(op.Path, "/d2/foo-1/00000") })
	m, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background(), 1)
	events := make(chan DirFailed, 1)
	m.OnOffline(func(e DirFailed) { events <- e })
	if err := m.Load(context.Background(), LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Path != "/d2" || e.ID != dirID(2) || e.Last || e.Metadata {
		t.Errorf("%+v", e)
	}
	if _, ok := m.Get(tip(1, 0)); !ok {
		t.Error("/d1 does not serve")
	}
}

// One log that cannot be opened, on a healthy disk, leaves the others alone; it is not made anew elsewhere.
func TestUnopenableLog(t *testing.T) {
	mem, s := withLogs(t)
	mem.Remove("/d2/foo-1/00000000000000000000.log")
	put(t, mem, "/d2/foo-1/00000000000000000000.log/x", "a directory where a segment should be")
	s.out = &logs{}
	m := s.start(t)
	if _, ok := m.Get(tip(1, 1)); ok {
		t.Skip("the log opens")
	}
	if m.HasOffline() || len(m.Replicas()) != 1 {
		t.Errorf("offline %v, %d replicas", m.HasOffline(), len(m.Replicas()))
	}
	mustContain(t, "log", s.out.String(), "a log cannot be opened and is left out", "/d2/foo-1")
	if _, err := m.Create(tip(1, 1), "foo", model.DirUnassigned, nil, true); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("it was made anew: %v", err)
	}
	mustClose(t, m, 5)
	if slices.Contains(list(t, mem, "/d2"), CleanShutdownFile) {
		t.Error("an incomplete load was marked clean (D-72)")
	}
}

// J-37: every directory fails while logs are loaded.
func TestLoadAllFail(t *testing.T) {
	mem, s := withLogs(t)
	s.fs = failing(mem, errDisk, func(op vfs.Op) bool { return strings.Contains(op.Path, "/foo-") })
	m, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background(), 1)
	mustContain(t, "error", errText(m.Load(context.Background(), LoadOptions{})), "all log dirs have failed", "/d1", "/d2")
}

// A stop during recovery ends Load, and no marker is written.
func TestLoadStopped(t *testing.T) {
	mem, s := withLogs(t)
	m, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fmt.Errorf("SIGTERM"))
	mustContain(t, "error", errText(m.Load(ctx, LoadOptions{})), "SIGTERM")
	m.Close(context.Background(), 1)
	if slices.Contains(list(t, mem, "/d1"), CleanShutdownFile) {
		t.Error("an incomplete load was marked clean")
	}
}
