package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// each runs a test on every file system there is.
func each(t *testing.T, f func(t *testing.T, fsys FS, root string)) {
	mem := func() FS {
		m := NewMem()
		if err := m.MkdirAll("/disk", 0o755); err != nil {
			t.Fatal(err)
		}
		return m
	}
	pass := func(Op) error { return nil }
	for name, make := range map[string]func(root string) FS{
		"OS":      func(string) FS { return OS() },
		"Mem":     func(string) FS { return mem() },
		"Inject":  func(string) FS { return Inject(mem(), pass) },
		"Count":   func(string) FS { return Count(OS()) },
		"Observe": func(string) FS { return Observe(OS(), time.Now, time.Hour, nil) },
		"Dir":     func(root string) FS { return Dir(OS(), root, nil) },
		"DirMem":  func(root string) FS { return Dir(mem(), "/disk", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			fsys := make(root)
			if _, err := fsys.Stat(root); err != nil {
				root = "/disk"
			}
			f(t, fsys, root)
			if d, ok := fsys.(*DirFS); ok && d.Offline() != nil {
				t.Errorf("went offline: %v", d.Offline())
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, fsys FS, name string, content string) File {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	if content != "" {
		_, err = f.WriteAt([]byte(content), 0)
		must(t, err)
	}
	return f
}

func TestReadAndWrite(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, root string) {
		f := create(t, fsys, root+"/a", "hello")
		if f.Name() != root+"/a" {
			t.Error(f.Name())
		}
		n, err := f.WriteAt([]byte("world"), 10000) // a hole
		if n != 5 || err != nil {
			t.Fatal(n, err)
		}
		if size, err := f.Size(); size != 10005 || err != nil {
			t.Fatal(size, err)
		}
		b := make([]byte, 10010)
		n, err = f.ReadAt(b, 0)
		if n != 10005 || err != io.EOF || string(b[:5]) != "hello" || string(b[10000:10005]) != "world" || len(bytes.Trim(b[5:10000], "\x00")) != 0 {
			t.Fatal(n, err)
		}
		if n, err = f.ReadAt(b[:5], 10000); n != 5 || err != nil {
			t.Fatal("a read that ends at the end is not cut:", n, err)
		}
		if n, err = f.ReadAt(b, 20000); n != 0 || err != io.EOF {
			t.Fatal(n, err)
		}
		if _, err = f.ReadAt(b, -1); !errors.Is(err, syscall.EINVAL) {
			t.Error(err)
		}
		if _, err = f.WriteAt(b, -1); !errors.Is(err, syscall.EINVAL) {
			t.Error(err)
		}
		must(t, f.Truncate(3))
		must(t, f.Truncate(6))
		if n, err = f.ReadAt(b, 0); n != 6 || string(b[:6]) != "hel\x00\x00\x00" {
			t.Fatalf("%q %v", b[:n], err)
		}
		must(t, f.Sync())
		must(t, f.Close())
		for what, call := range map[string]func() error{
			"read": func() error { _, err := f.ReadAt(b, 0); return err }, "write": func() error { _, err := f.WriteAt(b, 0); return err },
			"writev": func() error { _, err := f.WriteV([][]byte{b, b}, 0); return err }, "sync": f.Sync, "close": f.Close,
			"truncate": func() error { return f.Truncate(0) }, "size": func() error { _, err := f.Size(); return err },
		} {
			if err := call(); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("%s after Close: %v", what, err)
			}
		}
		if f.Hold() {
			t.Error("Hold after Close")
		}
	})
}

func TestWriteV(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, root string) {
		f := create(t, fsys, root+"/a", "")
		defer f.Close()
		var bufs [][]byte
		var want []byte
		for i := range 3000 { // more than one system call takes
			b := bytes.Repeat([]byte{byte(i)}, i%7) // some are empty
			bufs = append(bufs, b)
			want = append(want, b...)
		}
		n, err := f.WriteV(bufs, 5)
		if n != len(want) || err != nil || len(bufs) != 3000 || len(bufs[1]) != 1 {
			t.Fatal(n, err)
		}
		got := make([]byte, len(want))
		if _, err := f.ReadAt(got, 5); err != nil || !bytes.Equal(got, want) {
			t.Fatal("content differs", err)
		}
		for _, none := range [][][]byte{nil, {}, {nil}, {nil, {}, nil}} {
			if n, err := f.WriteV(none, 0); n != 0 || err != nil {
				t.Fatal(n, err)
			}
		}
	})
}

func TestNames(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, root string) {
		d := root + "/dir"
		must(t, fsys.Mkdir(d, 0o755))
		must(t, fsys.MkdirAll(d+"/x/y", 0o755))
		must(t, fsys.MkdirAll(d+"/x/y", 0o755))
		create(t, fsys, d+"/b", "b").Close()
		create(t, fsys, d+"/a", "aa").Close()
		list, err := fsys.ReadDir(d)
		must(t, err)
		var names string
		for _, e := range list {
			info, err := e.Info()
			must(t, err)
			names += fmt.Sprint(e.Name(), e.IsDir(), " ")
			if e.Name() == "a" && (info.Size() != 2 || info.IsDir()) {
				t.Error(info)
			}
		}
		if names != "afalse bfalse xtrue " {
			t.Fatal(names)
		}
		must(t, fsys.Rename(d+"/a", d+"/b"))
		if b, err := ReadFile(fsys, d+"/b"); string(b) != "aa" || err != nil {
			t.Fatalf("%q %v", b, err)
		}
		must(t, fsys.Rename(d+"/x", d+"/z"))
		if ok, err := Exists(fsys, d+"/z/y"); !ok || err != nil {
			t.Fatal(ok, err)
		}
		must(t, fsys.SyncDir(d))
		must(t, fsys.Remove(d+"/b"))
		must(t, fsys.RemoveAll(d+"/z"))
		must(t, fsys.RemoveAll(d+"/z"))
		must(t, fsys.Remove(d))
		if ok, err := Exists(fsys, d); ok || err != nil {
			t.Fatal(ok, err)
		}
		if s, err := fsys.Space(root); err != nil || s.Total <= 0 || s.Free < 0 || s.Free > s.Total {
			t.Fatal(s, err)
		}
	})
}

func TestFaultsOfTheCaller(t *testing.T) { // J-116: none of these takes a directory offline
	each(t, func(t *testing.T, fsys FS, root string) {
		create(t, fsys, root+"/file", "x").Close()
		must(t, fsys.MkdirAll(root+"/full/sub", 0o755))
		read, err := fsys.OpenFile(root+"/file", os.O_RDONLY, 0)
		must(t, err)
		defer read.Close()
		open := func(name string, flag int) error {
			f, err := fsys.OpenFile(root+name, flag, 0o644)
			if err == nil {
				f.Close()
			}
			return err
		}
		_, list := fsys.ReadDir(root + "/none")
		_, stat := fsys.Stat(root + "/none")
		_, write := read.WriteAt([]byte("x"), 0)
		_, space := fsys.Space(root + "/none")
		for name, c := range map[string]struct{ got, want error }{
			"open_missing":     {open("/none", os.O_RDWR), fs.ErrNotExist},
			"create_exclusive": {open("/file", os.O_RDWR|os.O_CREATE|os.O_EXCL), fs.ErrExist},
			"open_dir_rw":      {open("/full", os.O_RDWR), syscall.EISDIR},
			"append":           {open("/file", os.O_RDWR|os.O_APPEND), errAppend},
			"mkdir_exists":     {fsys.Mkdir(root+"/full", 0o755), fs.ErrExist},
			"remove_missing":   {fsys.Remove(root + "/none"), fs.ErrNotExist},
			"remove_full":      {fsys.Remove(root + "/full"), syscall.ENOTEMPTY},
			"rename_missing":   {fsys.Rename(root+"/none", root+"/other"), fs.ErrNotExist},
			"readdir_missing":  {list, fs.ErrNotExist},
			"stat_missing":     {stat, fs.ErrNotExist},
			"space_missing":    {space, fs.ErrNotExist},
			"syncdir_missing":  {fsys.SyncDir(root + "/none"), fs.ErrNotExist},
			"write_read_only":  {write, syscall.EBADF},
			"name_too_long":    {open("/"+string(bytes.Repeat([]byte("n"), 300)), os.O_RDWR|os.O_CREATE), syscall.ENAMETOOLONG},
			"rename_into_self": {fsys.Rename(root+"/full", root+"/full/sub/x"), syscall.EINVAL},
		} {
			if !errors.Is(c.got, c.want) {
				t.Errorf("%s: %v, want %v", name, c.got, c.want)
			}
		}
	})
}

func TestOpenFilesOutliveTheirNames(t *testing.T) { // J-117: deletion under a reader
	each(t, func(t *testing.T, fsys FS, root string) {
		must(t, fsys.Mkdir(root+"/t-0", 0o755))
		f := create(t, fsys, root+"/t-0/log", "content")
		must(t, fsys.Rename(root+"/t-0", root+"/t-0.x-delete"))
		must(t, fsys.RemoveAll(root+"/t-0.x-delete"))
		b := make([]byte, 7)
		if _, err := f.ReadAt(b, 0); err != nil || string(b) != "content" {
			t.Fatalf("%q %v", b, err)
		}
		if _, err := f.WriteAt([]byte("more"), 7); err != nil {
			t.Fatal(err)
		}
		must(t, f.Sync())
		must(t, f.Close())
		// And somebody who only has the name, after it was taken away by us:
		_, err := fsys.OpenFile(root+"/t-0/log.index", os.O_RDWR|os.O_CREATE, 0o644)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := WriteFileAtomic(fsys, root+"/t-0/leader-epoch-checkpoint", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	})
}

func TestLock(t *testing.T) { // D-39, within one process
	each(t, func(t *testing.T, fsys FS, root string) {
		name := root + "/.lock"
		l, err := fsys.Lock(name)
		must(t, err)
		if _, err := fsys.Lock(name); !errors.Is(err, ErrLocked) {
			t.Fatalf("locked twice: %v", err)
		}
		must(t, l.Close())
		must(t, l.Close())
		l, err = fsys.Lock(name)
		must(t, err)
		must(t, l.Close())
		if info, err := fsys.Stat(name); err != nil || info.Size() != 0 {
			t.Fatal(info, err)
		}
	})
}

func TestHoldKeepsTheDescriptor(t *testing.T) { // a sendfile under a concurrent Close
	each(t, func(t *testing.T, fsys FS, root string) {
		f := create(t, fsys, root+"/a", "0123456789")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				b := make([]byte, 10)
				for f.Hold() {
					fd, ok := f.Descriptor()
					if ok {
						if n, err := syscall.Pread(int(fd), b, 0); n != 10 || err != nil {
							t.Errorf("held descriptor: %d %v", n, err)
						}
					}
					f.Release()
				}
			})
		}
		for i := range 50 { // other descriptors come and go, to be mistaken for
			create(t, fsys, fmt.Sprintf("%s/b%d", root, i), "x").Close()
		}
		must(t, f.Close())
		wg.Wait()
	})
}

func TestWriteFileAtomic(t *testing.T) { // D-41: the order of disk operations
	each(t, func(t *testing.T, fsys FS, root string) {
		name := root + "/recovery-point-offset-checkpoint"
		var trace []string
		traced := Inject(fsys, func(op Op) error {
			rel, _ := filepath.Rel(root, op.Path)
			trace = append(trace, op.Kind.String()+" "+rel)
			return nil
		})
		must(t, WriteFileAtomic(traced, name, []byte("0\n0\n")))
		must(t, WriteFileAtomic(fsys, name, []byte("0\n1\nt 0 5\n")))
		if b, err := ReadFile(fsys, name); string(b) != "0\n1\nt 0 5\n" || err != nil {
			t.Fatalf("%q %v", b, err)
		}
		tmp := "recovery-point-offset-checkpoint.tmp"
		want := fmt.Sprint([]string{"create " + tmp, "write " + tmp, "sync " + tmp, "close " + tmp, "rename " + tmp, "syncdir ."})
		if fmt.Sprint(trace) != want {
			t.Errorf("got  %v\nwant %v", trace, want)
		}
		if ok, _ := Exists(fsys, name+".tmp"); ok {
			t.Error("the temporary file is left")
		}
	})
}

func TestReadFileOfMissingAndEmpty(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, root string) {
		if _, err := ReadFile(fsys, root+"/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		create(t, fsys, root+"/empty", "").Close()
		if b, err := ReadFile(fsys, root+"/empty"); len(b) != 0 || err != nil {
			t.Error(b, err)
		}
	})
}

func TestTruncateOnOpen(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, root string) {
		create(t, fsys, root+"/a", "old content").Close()
		f, err := fsys.OpenFile(root+"/a", os.O_RDWR|os.O_TRUNC, 0)
		must(t, err)
		defer f.Close()
		if size, _ := f.Size(); size != 0 {
			t.Error(size)
		}
	})
}
