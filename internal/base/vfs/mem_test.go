package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Mem and the operating system do the same (a dumb twin).
func TestPropertyMemIsLikeOS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "vfs")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		mem := NewMem()
		if err := mem.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		twins := []FS{OS(), mem}
		open := map[string][2]File{}
		names := []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f"}
		same := func(what string, errs [2]error) bool {
			if (errs[0] == nil) != (errs[1] == nil) || !errors.Is(errs[1], errnoOf(errs[0])) {
				t.Fatalf("%s: OS says %v, Mem says %v", what, errs[0], errs[1])
			}
			return errs[0] == nil
		}
		both := func(what string, f func(FS) error) bool {
			var errs [2]error
			for i, fsys := range twins {
				errs[i] = f(fsys)
			}
			return same(what, errs)
		}
		name := func() string { return root + "/" + rapid.SampledFrom(names).Draw(t, "name") }
		t.Repeat(map[string]func(*rapid.T){
			"mkdir":     func(*rapid.T) { n := name(); both("mkdir "+n, func(f FS) error { return f.Mkdir(n, 0o755) }) },
			"mkdirall":  func(*rapid.T) { n := name(); both("mkdirall "+n, func(f FS) error { return f.MkdirAll(n, 0o755) }) },
			"remove":    func(*rapid.T) { n := name(); both("remove "+n, func(f FS) error { return f.Remove(n) }) },
			"removeall": func(*rapid.T) { n := name(); both("removeall "+n, func(f FS) error { return f.RemoveAll(n) }) },
			"rename": func(*rapid.T) {
				from, to := name(), name()
				both("rename "+from+" "+to, func(f FS) error { return f.Rename(from, to) })
			},
			"open": func(t *rapid.T) {
				n := name()
				flag := os.O_RDWR | rapid.SampledFrom([]int{0, os.O_CREATE, os.O_CREATE | os.O_EXCL, os.O_TRUNC}).Draw(t, "flag")
				var files [2]File
				i := 0
				if both("open "+n, func(f FS) (err error) { files[i], err = f.OpenFile(n, flag, 0o644); i++; return err }) {
					key := fmt.Sprint(len(open), n)
					open[key] = files
				}
			},
			"write": func(t *rapid.T) {
				for key, files := range open {
					off := rapid.Int64Range(0, 20000).Draw(t, "off")
					b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
					b = bytes.Repeat(b, rapid.IntRange(0, 100).Draw(t, "times"))
					i := 0
					both("write "+key, func(FS) error { _, err := files[i].WriteV([][]byte{b, b}, off); i++; return err })
					return
				}
			},
			"truncate": func(t *rapid.T) {
				for key, files := range open {
					size := rapid.Int64Range(0, 20000).Draw(t, "size")
					i := 0
					both("truncate "+key, func(FS) error { i++; return files[i-1].Truncate(size) })
					return
				}
			},
			"sync": func(*rapid.T) {
				for _, files := range open {
					files[1].Sync()
					return
				}
			},
			"close": func(*rapid.T) {
				for key, files := range open {
					files[0].Close()
					files[1].Close()
					delete(open, key)
					return
				}
			},
			"": func(t *rapid.T) {
				var trees [2]string
				for i, fsys := range twins {
					trees[i] = tree(t, fsys, root)
				}
				if trees[0] != trees[1] {
					t.Fatalf("OS:\n%s\nMem:\n%s", trees[0], trees[1])
				}
			},
		})
		for _, files := range open {
			files[0].Close()
		}
	})
}

func errnoOf(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

type fataler interface{ Fatal(...any) }

// tree prints everything below root.
func tree(t fataler, fsys FS, root string) string {
	var out strings.Builder
	var walk func(string)
	walk = func(dir string) {
		list, err := fsys.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			name := dir + "/" + e.Name()
			rel, _ := filepath.Rel(root, name)
			if e.IsDir() {
				fmt.Fprintf(&out, "%s/\n", rel)
				walk(name)
				continue
			}
			b, err := ReadFile(fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s %d %x\n", rel, len(b), b)
		}
	}
	walk(root)
	return out.String()
}

// crashes runs f on many crash clones of m, and returns how often it gave each answer.
func crashes(m *Mem, f func(*Mem) string) map[string]int {
	seen := map[string]int{}
	for seed := range uint64(400) {
		seen[f(m.CrashClone(rand.New(rand.NewPCG(seed, 1))))]++
	}
	return seen
}

func content(m *Mem, name string) string {
	b, err := ReadFile(m, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "gone"
	}
	return string(b)
}

// outcomes are exactly those wanted, each reached (habit 28).
func outcomes(t *testing.T, got map[string]int, want ...string) {
	t.Helper()
	for _, w := range want {
		if got[w] == 0 {
			t.Errorf("%q was never reached", w)
		}
		delete(got, w)
	}
	for g, n := range got {
		t.Errorf("%q %d times", g, n)
	}
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	m := NewMem()
	must(t, m.MkdirAll("/d/t-0", 0o755))
	must(t, m.SyncDir("/"))
	must(t, m.SyncDir("/d"))
	f := create(t, m, "/d/t-0/log", "synced")
	must(t, f.Sync())
	must(t, m.SyncDir("/d/t-0"))
	outcomes(t, crashes(m, func(m *Mem) string { return content(m, "/d/t-0/log") }), "synced")
	f.WriteAt([]byte("XX"), 2)
	outcomes(t, crashes(m, func(m *Mem) string { return content(m, "/d/t-0/log") }), "synced", "syXXed")
	must(t, f.Sync())
	f.WriteAt([]byte("!!"), 6)
	outcomes(t, crashes(m, func(m *Mem) string { return content(m, "/d/t-0/log") }),
		"syXXed", "syXXed!", "syXXed!!", "syXXed\x00", "syXXed\x00\x00")
	if content(m, "/d/t-0/log") != "syXXed!!" {
		t.Error("the crash changed the original")
	}
}

func TestCrashLosesUnsyncedNames(t *testing.T) {
	m := NewMem()
	must(t, m.MkdirAll("/d", 0o755))
	outcomes(t, crashes(m, func(m *Mem) string { ok, _ := Exists(m, "/d"); return fmt.Sprint(ok) }), "true", "false")
	must(t, m.SyncDir("/"))
	f := create(t, m, "/d/a", "data")
	must(t, f.Sync())
	outcomes(t, crashes(m, func(m *Mem) string { return content(m, "/d/a") }), "data", "gone")
	must(t, m.SyncDir("/d"))
	must(t, m.Remove("/d/a"))
	outcomes(t, crashes(m, func(m *Mem) string { return content(m, "/d/a") }), "data", "gone")
	must(t, m.SyncDir("/d"))
	outcomes(t, crashes(m, func(m *Mem) string { return content(m, "/d/a") }), "gone")
}

func TestCrashAroundRenames(t *testing.T) {
	m := NewMem()
	must(t, m.MkdirAll("/d", 0o755))
	must(t, m.SyncDir("/"))
	state := func(m *Mem) string { return content(m, "/d/a") + " " + content(m, "/d/a.tmp") }
	must(t, WriteFileAtomic(m, "/d/a", []byte("old")))
	outcomes(t, crashes(m, state), "old gone")
	// Not quite atomic: without the sync of the directory any prefix survives.
	f := create(t, m, "/d/a.tmp", "new")
	must(t, f.Sync())
	must(t, m.Rename("/d/a.tmp", "/d/a"))
	outcomes(t, crashes(m, state), "old gone", "old new", "new gone")
	must(t, m.SyncDir("/d"))
	outcomes(t, crashes(m, state), "new gone")
	// Without the sync of the file the name may be new and the content not.
	f = create(t, m, "/d/a.tmp", "fresh")
	must(t, m.Rename("/d/a.tmp", "/d/a"))
	must(t, m.SyncDir("/d"))
	got := crashes(m, state)
	if got[" gone"] == 0 || got["fresh gone"] == 0 || got["new gone"] != 0 {
		t.Errorf("%v", got)
	}
	f.Close()
}

func TestCrashRenameBetweenDirectories(t *testing.T) {
	for _, sync := range []string{"", "/d/x", "/d/y"} {
		m := NewMem()
		must(t, m.MkdirAll("/d/x", 0o755))
		must(t, m.MkdirAll("/d/y", 0o755))
		must(t, m.SyncDir("/"))
		must(t, m.SyncDir("/d"))
		f := create(t, m, "/d/x/tmp", "data")
		must(t, f.Sync())
		must(t, m.Rename("/d/x/tmp", "/d/x/a"))
		must(t, m.Rename("/d/x/a", "/d/y/b"))
		want := []string{"gone gone gone", "data gone gone", "gone data gone", "gone gone data"}
		if sync != "" {
			must(t, m.SyncDir(sync)) // one side makes the whole rename durable
			want = want[3:]
		}
		outcomes(t, crashes(m, func(m *Mem) string {
			return content(m, "/d/x/tmp") + " " + content(m, "/d/x/a") + " " + content(m, "/d/y/b")
		}), want...)
	}
}

func TestCrashTearsPages(t *testing.T) {
	m := NewMem()
	f := create(t, m, "/log", string(bytes.Repeat([]byte("a"), 3*pageSize)))
	must(t, f.Sync())
	must(t, m.SyncDir("/"))
	f.WriteAt(bytes.Repeat([]byte("b"), 3*pageSize), 0)
	torn, mixed := 0, 0
	for seed := range uint64(200) {
		got := content(m.CrashClone(rand.New(rand.NewPCG(seed, 2))), "/log")
		if len(got) != 3*pageSize {
			t.Fatal(len(got))
		}
		for i := 0; i < len(got); i += sectorSize {
			if s := got[i : i+sectorSize]; strings.Count(s, s[:1]) != sectorSize {
				t.Fatal("a sector is torn")
			}
		}
		for p := range 3 {
			if page := got[p*pageSize : (p+1)*pageSize]; strings.Contains(page, "ab") || strings.Contains(page, "ba") {
				torn++
			}
		}
		if got[:pageSize] == strings.Repeat("a", pageSize) && got[2*pageSize:] == strings.Repeat("b", pageSize) {
			mixed++ // the later page made it, the earlier one not
		}
	}
	if torn == 0 || mixed == 0 {
		t.Errorf("torn pages %d, pages out of order %d", torn, mixed)
	}
}

func TestCrashAfterTruncate(t *testing.T) {
	m := NewMem()
	f := create(t, m, "/log", "0123456789")
	must(t, f.Sync())
	must(t, m.SyncDir("/"))
	must(t, f.Truncate(4))
	outcomes(t, crashes(m, func(m *Mem) string { return content(m, "/log") }), "0123456789", "0123")
	f.WriteAt([]byte("abc"), 4)
	got := crashes(m, func(m *Mem) string { return content(m, "/log") })
	outcomes(t, got, "0123456789", "0123", "0123abc", "0123\x00\x00\x00", "0123a", "0123ab", "0123\x00", "0123\x00\x00")
	must(t, f.Sync())
	outcomes(t, crashes(m, func(m *Mem) string { return content(m, "/log") }), "0123abc")
}

// The invariant everything above stands on: an append-only log with a sync point never loses or changes a byte below it,
// and a clone is stable: nothing more is lost when it crashes again.
func TestPropertyCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMem()
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(m.MkdirAll("/d", 0o755))
		must(m.SyncDir("/"))
		f, err := m.OpenFile("/d/log", os.O_RDWR|os.O_CREATE, 0o644)
		must(err)
		must(m.SyncDir("/d"))
		var all []byte // what was ever appended since the last cut
		synced := 0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				b := bytes.Repeat([]byte{byte(1 + len(all)%250)}, rapid.IntRange(1, 9000).Draw(t, "size"))
				_, err := f.WriteAt(b, int64(len(all)))
				must(err)
				all = append(all, b...)
			case 3:
				must(f.Sync())
				synced = len(all)
			case 4:
				size := rapid.IntRange(synced, len(all)).Draw(t, "cut")
				must(f.Truncate(int64(size)))
				all = all[:size]
			case 5:
				must(WriteFileAtomic(m, "/d/point", fmt.Append(nil, synced)))
			}
			c := m.CrashClone(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
			got, err := ReadFile(c, "/d/log")
			must(err)
			if len(got) < synced || !bytes.Equal(got[:synced], all[:synced]) {
				t.Fatalf("synced bytes lost: %d of %d", len(got), synced)
			}
			if ok, _ := Exists(m, "/d/point"); ok {
				var n int
				b, err := ReadFile(c, "/d/point")
				must(err)
				if _, err := fmt.Sscan(string(b), &n); err != nil || n > synced {
					t.Fatalf("atomic file is %q", b)
				}
			}
			again := c.CrashClone(rand.New(rand.NewPCG(7, 7)))
			if tree(t, c, "/") != tree(t, again, "/") {
				t.Fatal("a clone lost something on its own crash")
			}
		}
		if got, _ := ReadFile(m, "/d/log"); !bytes.Equal(got, all) {
			t.Fatal("crash clones changed the original")
		}
	})
}

func TestCrashIsDeterministic(t *testing.T) {
	m := NewMem()
	for i := range 50 {
		f := create(t, m, fmt.Sprintf("/f%d", i), string(bytes.Repeat([]byte("x"), 9000)))
		if i%2 == 0 {
			f.Sync()
			f.WriteAt([]byte("yy"), 5000)
		}
	}
	clone := func(seed uint64) string { return tree(t, m.CrashClone(rand.New(rand.NewPCG(seed, 0))), "/") }
	if clone(1) != clone(1) {
		t.Error("the same seed gives another crash")
	}
	if clone(1) == clone(2) {
		t.Error("another seed gives the same crash")
	}
}

func TestCloneAndOriginalDoNotShare(t *testing.T) {
	m := NewMem()
	f := create(t, m, "/a", "original")
	must(t, f.Sync())
	must(t, m.SyncDir("/"))
	c := m.CrashClone(rand.New(rand.NewPCG(1, 1)))
	g := create(t, c, "/a", "")
	g.WriteAt([]byte("CLONE"), 0)
	f.WriteAt([]byte("first"), 0)
	if content(m, "/a") != "firstnal" || content(c, "/a") != "CLONEnal" {
		t.Error(content(m, "/a"), content(c, "/a"))
	}
	if _, err := c.Lock("/.lock"); err != nil {
		t.Error("a lock survived the crash", err)
	}
}

func TestFullDisk(t *testing.T) { // J-193, D-23
	m := NewMem()
	must(t, m.MkdirAll("/d1", 0o755))
	must(t, m.MkdirAll("/d2", 0o755))
	create(t, m, "/d1/before", string(make([]byte, 2*pageSize))).Close()
	must(t, m.Limit("/d1", 10*pageSize))
	if s, _ := m.Space("/d1/before"); s != (Space{Total: 10 * pageSize, Free: 8 * pageSize}) {
		t.Fatal(s)
	}
	f := create(t, m, "/d1/log", "")
	n, err := f.WriteAt(make([]byte, 9*pageSize), 0)
	if n != 8*pageSize || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(n, err)
	}
	if s, _ := m.Space("/d1"); s.Free != 0 {
		t.Fatal(s)
	}
	if _, err := f.WriteAt([]byte("in place"), 100); err != nil {
		t.Fatal("a full disk takes writes that need no room:", err)
	}
	create(t, m, "/d2/log", string(make([]byte, 50*pageSize))).Close() // another disk
	if err := m.Rename("/d1/log", "/d2/x"); !errors.Is(err, syscall.EXDEV) {
		t.Error(err)
	}
	must(t, f.Truncate(pageSize))
	if s, _ := m.Space("/d1"); s.Free != 7*pageSize {
		t.Fatal(s)
	}
	c := m.CrashClone(rand.New(rand.NewPCG(3, 3)))
	if s, _ := c.Space("/"); s.Total != 1<<40 {
		t.Fatal(s)
	}
	must(t, m.Remove("/d1/before"))
	if s, _ := m.Space("/d1"); s.Free != 9*pageSize {
		t.Fatal(s)
	}
	must(t, m.Remove("/d1/log"))
	if s, _ := m.Space("/d1"); s.Free != 9*pageSize {
		t.Fatal("an open file keeps its room", s)
	}
	must(t, f.Close())
	if s, _ := m.Space("/d1"); s.Free != 10*pageSize {
		t.Fatal(s)
	}
}

func TestManyUnsyncedChangesStayBounded(t *testing.T) {
	m := NewMem()
	for i := range 5 * maxPending {
		must(t, WriteNothing(m, fmt.Sprintf("/f%d", i%10)))
	}
	if n := len(m.root.dir.pending); n > maxPending {
		t.Errorf("%d pending changes", n)
	}
}

// WriteNothing creates and removes a name.
func WriteNothing(m *Mem, name string) error {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	f.Close()
	return m.Remove(name)
}

func TestMemClock(t *testing.T) {
	m := NewMem()
	now := time.UnixMilli(5000)
	m.SetClock(func() time.Time { return now })
	create(t, m, "/a", "x").Close()
	if info, _ := m.Stat("/a"); info.ModTime() != now {
		t.Error(info.ModTime())
	}
}

func BenchmarkMemCreateThousand(b *testing.B) {
	for b.Loop() {
		m := NewMem()
		for i := range 1000 {
			dir := fmt.Sprintf("/d/t-%d", i)
			m.MkdirAll(dir, 0o755)
			f, _ := m.OpenFile(dir+"/0.log", os.O_RDWR|os.O_CREATE, 0o644)
			f.WriteAt([]byte("x"), 0)
			f.Sync()
			f.Close()
			m.SyncDir(dir)
		}
	}
}
