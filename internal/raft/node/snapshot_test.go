package node

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/record"
)

// K-63: names.
func TestSnapshotNames(t *testing.T) {
	id := kraft.SnapshotID{Offset: 1234, Epoch: 7}
	if got := snapshotName(id); got != "00000000000000001234-0000000007.checkpoint" {
		t.Fatal(got)
	}
	for name, want := range map[string]string{
		"00000000000000001234-0000000007.checkpoint":              "done",
		"00000000000000001234-0000000007.checkpoint.deleted":      "deleted",
		"00000000000000001234-0000000007-0.checkpoint.part":       "part",
		"00000000000000001234-0000000007-8472394.checkpoint.part": "part",
		"00000000000000001234-0000000007-x.checkpoint":            "",
		"00000000000000001234-0000000007.checkpoint.tmp":          "",
		"0000000000000001234-0000000007.checkpoint":               "",
		"-0000000000000001234-000000007.checkpoint":               "",
		"00000000000000001234-9999999999.checkpoint":              "",
		"bootstrap.checkpoint":                                    "",
		"quorum-state":                                            "",
	} {
		f, ok := parseSnapshotName(name)
		got := ""
		switch {
		case !ok:
		case f.part:
			got = "part"
		case f.deleted:
			got = "deleted"
		default:
			got = "done"
		}
		if got != want || ok && f.id != id {
			t.Errorf("%s: %q %v, want %q", name, got, f.id, want)
		}
	}
}

// K-65, K-66: a snapshot byte for byte: header batch, data, footer; with kraft.version 0 neither version nor voters.
func TestSnapshotBytes(t *testing.T) {
	fs := vfs.NewMem()
	must(t, fs.MkdirAll("/d", 0o755))
	write := func(id kraft.SnapshotID, o CheckpointOptions, records ...Record) []record.Batch {
		w, err := NewCheckpoint(fs, "/d", id, o)
		must(t, err)
		must(t, w.Append(records))
		must(t, w.Freeze())
		data, err := vfs.ReadFile(fs, "/d/"+snapshotName(id))
		must(t, err)
		var batches []record.Batch
		for b, err := range record.Split(data) {
			must(t, err)
			batches = append(batches, b)
		}
		return batches
	}
	show := func(b record.Batch) (lines []string) {
		for r, err := range record.Records(b) {
			must(t, err)
			lines = append(lines, fmt.Sprintf("%d %s %s", r.Offset, hex.EncodeToString(r.Key), hex.EncodeToString(r.Value)))
		}
		return lines
	}
	batches := write(kraft.SnapshotID{Offset: 50, Epoch: 6}, CheckpointOptions{}, Record{1, 20, 0, 0})
	var got []string
	for _, b := range batches {
		got = append(got, fmt.Sprintf("control=%t epoch=%d", b.IsControl(), b.LeaderEpoch()))
		got = append(got, show(b)...)
	}
	want := []string{
		"control=true epoch=6", "0 00000003 " + "0000" + "0000000000000000" + "00",
		"control=false epoch=6", "1  01140000",
		"control=true epoch=6", "2 00000004 " + "000000",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("kraft.version 0: %q", got)
	}
	batches = write(kraft.SnapshotID{Offset: 51, Epoch: 6}, CheckpointOptions{LastContainedTimestamp: 99, KRaftVersion: 1, Voters: voterSet(t, 1)})
	first := show(batches[0])
	if len(batches) != 2 || len(first) != 3 || !strings.HasPrefix(first[0], "0 00000003 0000"+"0000000000000063") || first[1] != "1 00000005 0000000100" || !strings.HasPrefix(first[2], "2 00000006 0000"+"02"+"00000001") {
		t.Errorf("kraft.version 1: %q", first)
	}
	batches = write(kraft.SnapshotID{Offset: 52, Epoch: 6}, CheckpointOptions{KRaftVersion: 1})
	if first := show(batches[0]); len(first) != 2 {
		t.Errorf("no initial controllers: %q", first)
	}
	many := slices.Repeat([]Record{{1, 20, 0, 0}}, 2500)
	batches = write(kraft.SnapshotID{Offset: 53, Epoch: 6}, CheckpointOptions{}, many...)
	if len(batches) != 5 || batches[1].Count() != 1024 || batches[3].Count() != 2500-2048 || batches[4].BaseOffset() != 2501 {
		t.Errorf("%d batches for 2500 records", len(batches))
	}
	large := slices.Repeat([]Record{make(Record, 1<<20)}, 20)
	for _, b := range write(kraft.SnapshotID{Offset: 54, Epoch: 6}, CheckpointOptions{}, large...) {
		if b.SizeInBytes() > maxBatchBytes {
			t.Errorf("a batch of %d bytes", b.SizeInBytes())
		}
	}
}

// K-64: read-only, atomic, readable while deleted.
func TestSnapshotFile(t *testing.T) {
	dir := t.TempDir()
	id := kraft.SnapshotID{Offset: 5, Epoch: 1}
	w, err := NewCheckpoint(vfs.OS(), dir, id, CheckpointOptions{})
	must(t, err)
	must(t, w.Append([]Record{{1, 20, 0, 0}}))
	path := filepath.Join(dir, snapshotName(id))
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal("visible before Freeze")
	}
	must(t, w.Freeze())
	must(t, w.Close())
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o400 {
		t.Errorf("mode %v", info.Mode())
	}
	r, err := OpenSnapshot(vfs.OS(), path, id)
	must(t, err)
	defer r.Close()
	must(t, os.Remove(path))
	if b, err := r.Next(); err != nil || len(b.Records) != 1 {
		t.Errorf("reading a deleted snapshot: %v, %v", b, err)
	}
	if _, err := r.Next(); !isEOF(err) {
		t.Errorf("end: %v", err)
	}
	w, err = NewCheckpoint(vfs.OS(), dir, id, CheckpointOptions{})
	must(t, err)
	must(t, w.Close())
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("a dropped snapshot left %v", left)
	}
}

// K-67: what CreateSnapshot refuses.
func TestCreateSnapshotRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		format(t, fs, voterSet(t, 1))
		n, r := lead(t, options(fs, 1))
		commit(t, n, r, "a", "b") // offsets 3 and 4 in one batch
		commit(t, n, r, "c")
		for name, c := range map[string]struct {
			id   kraft.SnapshotID
			want string
		}{
			"above_the_high_watermark": {kraft.SnapshotID{Offset: 7, Epoch: 1}, "high watermark"},
			"inside_a_batch":           {kraft.SnapshotID{Offset: 4, Epoch: 1}, "between two batches"},
			"another_epoch":            {kraft.SnapshotID{Offset: 5, Epoch: 2}, "another epoch"},
			"at_the_start":             {kraft.SnapshotID{Offset: 0, Epoch: 1}, "another epoch"},
		} {
			if w, err := n.CreateSnapshot(c.id, 0); w != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, %v", name, w, err)
			}
		}
		id := kraft.SnapshotID{Offset: 5, Epoch: 1}
		w, err := n.CreateSnapshot(id, 0)
		must(t, err)
		if again, err := n.CreateSnapshot(id, 0); again != nil || err != nil {
			t.Errorf("twice at once: %v, %v", again, err)
		}
		must(t, w.Append([]Record{frame("a"), frame("b")}))
		must(t, w.Freeze())
		if again, err := n.CreateSnapshot(id, 0); again != nil || err != nil {
			t.Errorf("once more: %v, %v", again, err)
		}
		if got, ok := n.LatestSnapshotID(); !ok || got != id {
			t.Errorf("latest %v", got)
		}
		stop(t, n)
		// The next life begins with it, then the log behind it.
		n, r = lead(t, options(fs, 1))
		if texts, _, _ := r.state(); r.snapshot != id || !reflect.DeepEqual(texts, []string{"a", "b", "c"}) {
			t.Errorf("after a restart: snapshot %v, %q", r.snapshot, texts)
		}
		stop(t, n)
	})
}

// K-69: by size, by age, never the last one; the log start is a retained snapshot's offset; files go a minute later.
func TestSnapshotRetention(t *testing.T) {
	for name, c := range map[string]struct {
		tune func(*Config)
		gone int // of the three real snapshots
	}{
		"neither":     {func(c *Config) {}, 0},
		"size":        {func(c *Config) { c.MaxRetentionBytes = 1 }, 2},
		"size_off":    {func(c *Config) { c.MaxRetentionBytes = -1 }, 0},
		"age":         {func(c *Config) { c.MaxRetention = time.Hour }, 2},
		"age_not_yet": {func(c *Config) { c.MaxRetention = 365 * 100 * 24 * time.Hour }, 0},
		"age_off":     {func(c *Config) { c.MaxRetention = -1 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := vfs.NewMem()
				format(t, fs, voterSet(t, 1))
				o := options(fs, 1)
				o.Config.SegmentBytes = 1024
				if name != "age" {
					o.Config.MaxRetention = -1
				}
				c.tune(&o.Config)
				n, r := lead(t, o)
				var ids []kraft.SnapshotID
				for i := range 3 {
					for j := range 20 {
						commit(t, n, r, fmt.Sprintf("t%d-%d", i, j))
					}
					texts, next, l := r.state()
					id := kraft.SnapshotID{Offset: next, Epoch: l.Epoch}
					w, err := n.CreateSnapshot(id, time.Now().UnixMilli()) // now
					must(t, err)
					for _, s := range texts {
						must(t, w.Append([]Record{frame("%s", s)}))
					}
					must(t, w.Freeze())
					ids = append(ids, id)
				}
				time.Sleep(2*time.Hour + 2*time.Minute)
				n.mu.Lock()
				snaps := n.core.Snapshots()
				n.mu.Unlock()
				kept := 4 - c.gone // with the bootstrap checkpoint
				start := int64(0)
				if c.gone > 0 {
					kept, start = 1, ids[2].Offset
				}
				if len(snaps) != kept || n.store.log.LogStartOffset() != start {
					t.Errorf("%d snapshots, log start %d; want %d and %d", len(snaps), n.store.log.LogStartOffset(), kept, start)
				}
				names := strings.Join(listDir(t, fs, "/d/__cluster_metadata-0"), " ")
				if strings.Contains(names, ".deleted") || strings.Count(names, ".checkpoint") != kept {
					t.Errorf("files %s", names)
				}
				if c.gone > 0 && strings.Contains(names, "00000000000000000000.log") {
					t.Errorf("the first segment is still there: %s", names)
				}
				late := &recorder{}
				n.Register(late)
				eventually(t, "a late listener", func() bool { texts, _, _ := late.state(); return len(texts) == 60 })
				stop(t, n)
				n, r = lead(t, o)
				if texts, _, _ := r.state(); len(texts) != 60 || texts[59] != "t2-19" {
					t.Errorf("after a restart: %d texts", len(texts))
				}
				stop(t, n)
			})
		})
	}
}

// A snapshot that does not load stops the node with a message that says what to do (K-128).
func TestDamagedSnapshotStopsTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		format(t, fs, voterSet(t, 1))
		n, r := lead(t, options(fs, 1))
		commit(t, n, r, "a", "b")
		id := snapshotNow(t, n, r)
		stop(t, n)
		path := "/d/__cluster_metadata-0/" + snapshotName(id)
		data, err := vfs.ReadFile(fs, path)
		must(t, err)
		for name, damage := range map[string]func([]byte) []byte{
			"no_footer":     func(b []byte) []byte { return b[:len(b)-75] },
			"cut":           func(b []byte) []byte { return b[:len(b)-3] },
			"flipped":       func(b []byte) []byte { b[len(b)-100] ^= 4; return b },
			"bytes_follow":  func(b []byte) []byte { return append(b, 1, 2, 3) },
			"other_content": func(b []byte) []byte { return []byte("something else entirely, long enough") },
		} {
			must(t, fs.Remove(path))
			must(t, vfs.WriteFileAtomic(fs, path, damage(slices.Clone(data))))
			o := options(fs, 1)
			fatal := make(chan error, 1)
			o.Fatal = func(err error) { fatal <- err }
			n, err := Open(o)
			if err == nil {
				n.Register(&recorder{})
				n.Start()
				err = <-fatal
				stop(t, n)
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), "copy the same file from another node") {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, fs.Remove(path)) // the log is whole: nothing is lost without it
		n, r = lead(t, options(fs, 1))
		if texts, _, _ := r.state(); len(texts) != 2 {
			t.Errorf("without the snapshot: %q", texts)
		}
		stop(t, n)
	})
}

func FuzzSnapshotReader(f *testing.F) {
	fs := vfs.NewMem()
	fs.MkdirAll("/d", 0o755)
	w, _ := NewCheckpoint(fs, "/d", kraft.BootstrapSnapshotID, CheckpointOptions{KRaftVersion: 1, Voters: kraft.VoterSet{testVoter(1)}})
	w.Append([]Record{frame("x")})
	w.Freeze()
	seed, _ := vfs.ReadFile(fs, "/d/"+snapshotName(kraft.BootstrapSnapshotID))
	f.Add(seed)
	f.Add(seed[:len(seed)-10])
	f.Fuzz(func(t *testing.T, b []byte) {
		fs := vfs.NewMem()
		must(t, vfs.WriteFileAtomic(fs, "/f", b))
		r, err := OpenSnapshot(fs, "/f", kraft.BootstrapSnapshotID)
		if err != nil {
			return
		}
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
		r.Close()
	})
}
