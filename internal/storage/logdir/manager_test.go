package logdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/wire/record"
)

func topicID(n byte) model.TopicID { return model.TopicID{0: 0x70, 15: n} }

func tip(n byte, partition int32) model.TopicIDPartition {
	return model.TopicIDPartition{Topic: topicID(n), Partition: partition}
}

func batchOf(n int, tag string) []byte {
	b := record.NewBuilder(record.NewBatchOptions())
	for i := range n {
		b.Append(int64(1000+i), nil, fmt.Appendf(nil, "%s-%d", tag, i), nil)
	}
	return b.Build(nil)
}

func appendTo(t testing.TB, r *Replica, n int) {
	t.Helper()
	if _, err := r.Log.AppendAsLeader(partlog.LeaderAppend{Records: batchOf(n, "r"), Epoch: 0, Now: epoch.UnixMilli()}); err != nil {
		t.Fatal(err)
	}
}

type setup struct {
	fs     vfs.FS
	dirs   []string
	out    *logs
	change func(*Options)
	decide func(Found) Verdict
}

func (s setup) open() (*Manager, error) {
	if s.out == nil {
		s.out = &logs{}
	}
	o := Options{FS: s.fs, Dirs: s.dirs, NodeID: 1, Now: testClock, Random: sequence(), Log: s.out.logger()}
	if s.change != nil {
		s.change(&o)
	}
	return Open(o)
}

// start opens and loads, and ends what it started with the test.
func (s setup) start(t testing.TB) *Manager {
	t.Helper()
	m, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(context.Background(), 9) })
	if err := m.Load(context.Background(), LoadOptions{Decide: s.decide}); err != nil {
		t.Fatal(err)
	}
	return m
}

func mustCreate(t testing.TB, m *Manager, tp model.TopicIDPartition, topic string) *Replica {
	t.Helper()
	r, err := m.Create(tp, topic, model.DirUnassigned, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustClose(t testing.TB, m *Manager, brokerEpoch int64) {
	t.Helper()
	if err := m.Close(context.Background(), brokerEpoch); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, fsys vfs.FS, dir string) (names []string) {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// J-183, D-42, D-45, D-54, J-42, J-43, T-21: logs made in two directories are there again after a clean stop.
func TestCleanRestart(t *testing.T) {
	mem := vfs.NewMem()
	s := setup{fs: mem, dirs: formatN(t, mem, 2)}
	m := s.start(t)
	for _, name := range checkpointFiles {
		if got := get(t, mem, "/d2/"+name); got != "" {
			t.Errorf("%s is created as %q", name, got)
		}
	}
	for i := range 10 {
		r := mustCreate(t, m, tip(1, int32(i)), "foo")
		appendTo(t, r, i+1)
		r.Log.SetHighWatermark(int64(i))
	}
	for _, d := range m.Dirs() {
		if len(d.Logs) != 5 {
			t.Errorf("%s holds %d logs of 10, want 5", d.Path, len(d.Logs))
		}
	}
	if m.PreviousBrokerEpoch() != NoBrokerEpoch {
		t.Error("a first start knows a broker epoch")
	}
	mustClose(t, m, 42)
	for _, d := range s.dirs {
		if got := get(t, mem, d+"/.kafka_cleanshutdown"); got != `{"version":0,"brokerEpoch":42}` {
			t.Errorf("marker of %s: %q", d, got)
		}
		if slices.Contains(list(t, mem, d), ".lock") {
			t.Errorf("%s is still locked", d)
		}
		for _, name := range []string{RecoveryPointFile, HighWatermarkFile} {
			c, err := ParseCheckpoint([]byte(get(t, mem, d+"/"+name)))
			if err != nil || len(c) != 5 {
				t.Errorf("%s of %s: %v, %v", name, d, c, err)
			}
		}
		if got := get(t, mem, d+"/"+LogStartOffsetFile); got != "0\n0\n" {
			t.Errorf("log starts of %s: %q", d, got)
		}
	}
	m = s.start(t)
	if got := m.PreviousBrokerEpoch(); got != 42 {
		t.Errorf("previous broker epoch %d, want 42", got)
	}
	for i := range 10 {
		r, ok := m.Get(tip(1, int32(i)))
		if !ok {
			t.Fatalf("foo-%d is gone", i)
		}
		if o := r.Log.Offsets(); o.LogEnd != int64(i+1) || o.HighWatermark != int64(i) {
			t.Errorf("foo-%d: %+v", i, o)
		}
		if hw, ok := m.HighWatermark(tip(1, int32(i))); !ok || hw != int64(i) {
			t.Errorf("foo-%d: high watermark %d %v", i, hw, ok)
		}
	}
	if n := m.Env().Stats.SegmentsRecovered.Load(); n != 0 {
		t.Errorf("%d segments were recovered after a clean stop", n)
	}
	if slices.Contains(list(t, mem, "/d1"), CleanShutdownFile) {
		t.Error("the marker outlives the start")
	}
}

// J-42, J-43: one directory without a marker is recovered, the other is not.
func TestUncleanDirectory(t *testing.T) {
	mem := vfs.NewMem()
	s := setup{fs: mem, dirs: formatN(t, mem, 2)}
	m := s.start(t)
	for i := range 4 {
		appendTo(t, mustCreate(t, m, tip(1, int32(i)), "foo"), 3)
	}
	mustClose(t, m, 7)
	if err := mem.Remove("/d2/" + CleanShutdownFile); err != nil {
		t.Fatal(err)
	}
	out := &logs{}
	s.out = out
	m = s.start(t)
	if m.PreviousBrokerEpoch() != NoBrokerEpoch {
		t.Error("one missing marker must hide the epoch of the other")
	}
	if n := m.Env().Stats.SegmentsRecovered.Load(); n != 2 {
		t.Errorf("%d segments recovered, want the 2 of /d2", n)
	}
	mustContain(t, "log", out.String(), "dir=/d1 directoryID="+dirID(1).String()+" logs=2 how=\"logs are trusted",
		"dir=/d2 directoryID="+dirID(2).String()+" logs=2 how=\"logs are recovered")
	for i := range 4 {
		if r, ok := m.Get(tip(1, int32(i))); !ok || r.Log.LogEndOffset() != 3 {
			t.Errorf("foo-%d: %v", i, ok)
		}
	}
}

// D-39, J-41: a second user of a directory is refused, with the directory named.
func TestLockedDirectory(t *testing.T) {
	root := t.TempDir()
	dirs := []string{root + "/d1", root + "/d2"}
	format(t, vfs.OS(), dirs[0], dirID(1))
	format(t, vfs.OS(), dirs[1], dirID(2))
	s := setup{fs: vfs.OS(), dirs: dirs}
	m := s.start(t)
	_, err := setup{fs: vfs.OS(), dirs: dirs[1:]}.open()
	mustContain(t, "second", errText(err), "Failed to acquire lock on file .lock in "+dirs[1]+". A Kafka instance in another process or thread is using this directory.")
	if !errors.Is(err, vfs.ErrLocked) {
		t.Error("the error is no vfs.ErrLocked")
	}
	mustClose(t, m, 1)
	m = setup{fs: vfs.OS(), dirs: dirs[1:]}.start(t)
	mustClose(t, m, 1)
	if _, err := os.Stat(dirs[1] + "/.lock"); !os.IsNotExist(err) {
		t.Errorf("the lock file: %v", err)
	}
}

// J-36, J-37, J-38, J-182: what is offline at start, and that some directory must be left.
func TestOfflineAtStart(t *testing.T) {
	for name, c := range map[string]struct {
		match func(vfs.Op) bool
		dead  bool // every directory
	}{
		"meta_properties": {match: func(op vfs.Op) bool { return op.Path == "/d2/meta.properties" }},
		"lock":            {match: func(op vfs.Op) bool { return op.Kind == vfs.OpLock && op.Path == "/d2/.lock" }},
		"new_checkpoint":  {match: func(op vfs.Op) bool { return op.Kind == vfs.OpCreate && op.Path == "/d2/"+RecoveryPointFile }},
		"marker":          {match: func(op vfs.Op) bool { return op.Path == "/d2/"+CleanShutdownFile }},
		"all_locks":       {match: func(op vfs.Op) bool { return op.Kind == vfs.OpLock }, dead: true},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			s := setup{dirs: formatN(t, mem, 2), fs: failing(mem, errDisk, c.match)}
			m, err := s.open()
			if c.dead {
				mustContain(t, "error", errText(err), "Shutdown broker because none of the specified log dirs from /d1, /d2 can be created or validated", "/d1", "/d2")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close(context.Background(), 1)
			events := 0
			m.OnOffline(func(DirFailed) { events++ })
			if got := m.OnlineIDs(); len(got) != 1 || got[0] != dirID(1) {
				t.Errorf("online: %v", got)
			}
			if err := m.Load(context.Background(), LoadOptions{}); err != nil {
				t.Fatal(err)
			}
			st := m.Dirs()
			if len(st) != 2 || st[1].Err == nil || st[1].TotalBytes != -1 || st[0].Err != nil || !m.HasOffline() {
				t.Errorf("status: %+v", st)
			}
			if _, err := m.Create(tip(1, 0), "foo", model.DirUnassigned, nil, true); err != nil {
				t.Error(err)
			}
			if events != 0 {
				t.Error("a directory offline since the start was reported as failing")
			}
		})
	}
}

// J-105 P8', P9, P13; J-108; T-105: what is not made while a directory is offline.
func TestCreateWithOfflineDirectory(t *testing.T) {
	mem := vfs.NewMem()
	s := setup{dirs: formatN(t, mem, 3), fs: failing(mem, errDisk, func(op vfs.Op) bool { return op.Path == "/d2/.lock" })}
	m := s.start(t)
	for name, c := range map[string]struct {
		dir   model.DirectoryID
		isNew bool
		want  model.DirectoryID
	}{
		"new_unassigned":      {model.DirUnassigned, true, dirID(1)},
		"new_online":          {dirID(3), true, dirID(3)},
		"new_in_the_dead_one": {dirID(2), true, model.DirectoryID{}},
		"not_new_online":      {dirID(3), false, model.DirectoryID{}},
		"not_new_unassigned":  {model.DirUnassigned, false, model.DirectoryID{}},
		"not_new_lost":        {model.DirLost, false, model.DirectoryID{}},
	} {
		tp := tip(byte(len(m.Replicas())+50), 0)
		r, err := m.Create(tp, name, c.dir, nil, c.isNew)
		switch {
		case c.want.IsZero() && !errors.Is(err, kerr.KafkaStorageError):
			t.Errorf("%s: %v, %v", name, r, err)
		case !c.want.IsZero() && err != nil:
			t.Errorf("%s: %v", name, err)
		case err == nil && c.dir == dirID(3) && r.Dir.ID() != c.want:
			t.Errorf("%s: in %s", name, r.Dir.Path())
		}
		if c.want.IsZero() && !strings.Contains(errText(err), "can not create log for "+name) {
			t.Errorf("%s: %v does not say what and why", name, err)
		}
	}
}

// J-108: a directory that fails while a log is made is offline and another takes the log, unless the metadata
// named it; the other logs of the batch are made.
func TestCreateOnFailingDirectory(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpMkdir, vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpSyncDir} {
		t.Run(kind.String(), func(t *testing.T) {
			mem := vfs.NewMem()
			armed := false
			fsys := failing(mem, errDisk, func(op vfs.Op) bool { return armed && op.Kind == kind && under("/d1")(op) })
			m := setup{dirs: formatN(t, mem, 2), fs: fsys}.start(t)
			armed = true
			var requests []CreateRequest
			for i := range 20 {
				requests = append(requests, CreateRequest{Partition: tip(1, int32(i)), Topic: "foo", Dir: model.DirUnassigned, IsNew: true})
			}
			requests = append(requests, CreateRequest{Partition: tip(2, 0), Topic: "fixed", Dir: dirID(1), IsNew: true})
			results := m.CreateAll(requests)
			for i, r := range results[:20] {
				if r.Err != nil || r.Replica.Dir.Path() != "/d2" {
					t.Errorf("foo-%d: %v, %v", i, r.Replica, r.Err)
				}
			}
			if !errors.Is(results[20].Err, kerr.KafkaStorageError) {
				t.Errorf("fixed: %v", results[20].Err)
			}
			if d, _ := m.DirectoryAt("/d1"); d.Online() {
				t.Error("/d1 is still online")
			}
			if st := m.Dirs(); len(st[1].Logs) != 20 {
				t.Errorf("%d logs", len(st[1].Logs))
			}
		})
	}
}

// D-44, T-95, J-106: a name that is in the way.
func TestCreateNameTaken(t *testing.T) {
	mem := vfs.NewMem()
	m := setup{fs: mem, dirs: formatN(t, mem, 1)}.start(t)
	put(t, mem, "/d1/foo-0/leftover", "of a creation that failed")
	r := mustCreate(t, m, tip(1, 0), "foo")
	if again := mustCreate(t, m, tip(1, 0), "foo"); again != r {
		t.Error("creating a log that is there gave another one")
	}
	if _, err := m.Create(tip(2, 0), "foo", model.DirUnassigned, nil, true); !errors.Is(err, kerr.InconsistentTopicId) {
		t.Errorf("another topic of the same name: %v", err)
	}
	appendTo(t, r, 3)
	if err := m.Delete(tip(1, 0)); err != nil {
		t.Fatal(err)
	}
	fresh := mustCreate(t, m, tip(2, 0), "foo")
	if fresh.Log.LogEndOffset() != 0 || fresh.Log.TopicID() != topicID(2) {
		t.Error("the new incarnation is not empty")
	}
	mustContain(t, "partition.metadata", get(t, mem, "/d1/foo-0/partition.metadata"), topicID(2).String())
	var kinds []string
	for _, name := range list(t, mem, "/d1") {
		if _, role, err := ParseLogName(name); err == nil {
			kinds = append(kinds, role.String())
		}
	}
	slices.Sort(kinds)
	if got := strings.Join(kinds, " "); got != "current delete stray" {
		t.Errorf("directories: %s", got)
	}
	if _, err := m.Create(tip(3, 1234567), strings.Repeat("x", 249), model.DirUnassigned, nil, true); !errors.Is(err, kerr.InvalidTopicException) {
		t.Errorf("a name too long for the file system: %v", err)
	}
	if m.HasOffline() {
		t.Error("a directory went offline")
	}
}

// T-89, T-90, J-94: the order of disk operations of a creation, a deletion and a clean stop.
func TestDiskOrder(t *testing.T) {
	mem, tr := vfs.NewMem(), &trace{}
	m := setup{fs: tr.wrap(mem), dirs: formatN(t, mem, 1), change: func(o *Options) { o.MetadataDetails = true }}.start(t)
	tr.take()
	golden := func(what, want string) {
		t.Helper()
		var got []string
		for line := range strings.SplitSeq(tr.take(), "\n") {
			if !strings.Contains(line, "/foo-0/0") && !strings.Contains(line, "leader-epoch-checkpoint") { // partlog's own
				got = append(got, line)
			}
		}
		if g := strings.Join(got, "\n"); g != strings.TrimSpace(want) {
			t.Errorf("%s:\n%s\nwant\n%s", what, g, want)
		}
	}
	mustCreate(t, m, tip(1, 0), "foo")
	golden("create", `
mkdir /d1/foo-0
create /d1/foo-0/partition.metadata.tmp
write /d1/foo-0/partition.metadata.tmp
sync /d1/foo-0/partition.metadata.tmp
rename /d1/foo-0/partition.metadata.tmp /d1/foo-0/partition.metadata
syncdir /d1/foo-0
syncdir /d1`)
	if got, want := get(t, mem, "/d1/foo-0/partition.metadata"), "version: 0\ntopic_id: "+topicID(1).String()+"\ntopic: foo\npartition: 0\n"; got != want {
		t.Errorf("partition.metadata: %q", got)
	}
	if err := m.Delete(tip(1, 0)); err != nil {
		t.Fatal(err)
	}
	golden("delete", `
rename /d1/foo-0 /d1/foo-0.10000000000000000000000000000001-delete
syncdir /d1
create /d1/recovery-point-offset-checkpoint.tmp
write /d1/recovery-point-offset-checkpoint.tmp
sync /d1/recovery-point-offset-checkpoint.tmp
rename /d1/recovery-point-offset-checkpoint.tmp /d1/recovery-point-offset-checkpoint
syncdir /d1
create /d1/log-start-offset-checkpoint.tmp
write /d1/log-start-offset-checkpoint.tmp
sync /d1/log-start-offset-checkpoint.tmp
rename /d1/log-start-offset-checkpoint.tmp /d1/log-start-offset-checkpoint
syncdir /d1`)
	mustClose(t, m, 5)
	golden("close", `
create /d1/recovery-point-offset-checkpoint.tmp
write /d1/recovery-point-offset-checkpoint.tmp
sync /d1/recovery-point-offset-checkpoint.tmp
rename /d1/recovery-point-offset-checkpoint.tmp /d1/recovery-point-offset-checkpoint
syncdir /d1
create /d1/log-start-offset-checkpoint.tmp
write /d1/log-start-offset-checkpoint.tmp
sync /d1/log-start-offset-checkpoint.tmp
rename /d1/log-start-offset-checkpoint.tmp /d1/log-start-offset-checkpoint
syncdir /d1
create /d1/.kafka_cleanshutdown
write /d1/.kafka_cleanshutdown
sync /d1/.kafka_cleanshutdown
syncdir /d1
remove /d1/.lock`)
}
