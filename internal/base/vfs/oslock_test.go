package vfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain is also the other process: it takes the lock as Java does and holds it until its input ends.
func TestMain(m *testing.M) {
	if name := os.Getenv("VFS_TEST_LOCK"); name != "" {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
		if err == nil {
			lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET}
			err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lk)
		}
		if err != nil {
			fmt.Println("refused")
			os.Exit(0)
		}
		fmt.Println("locked")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// javaLock starts a process that takes the lock the way FileChannel.tryLock does.
func javaLock(t *testing.T, name string) (answer string, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "VFS_TEST_LOCK="+name)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	answer, err = bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return answer[:len(answer)-1], func() { in.Close(); cmd.Wait() }
}

func TestLockExcludesJava(t *testing.T) { // D-39
	name := t.TempDir() + "/.lock"
	l, err := OS().Lock(name)
	must(t, err)
	// Opening and closing the file elsewhere in this process must not drop the lock.
	f, err := os.Open(name)
	must(t, err)
	f.Close()
	if _, err := OS().Lock(name); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	if answer, end := javaLock(t, name); answer != "refused" {
		t.Error("another process got the lock we hold")
	} else {
		end()
	}
	must(t, l.Close())
	answer, end := javaLock(t, name)
	if answer != "locked" {
		t.Fatal("our lock outlived Close")
	}
	if _, err := OS().Lock(name); !errors.Is(err, ErrLocked) {
		t.Errorf("we got the lock another process holds: %v", err)
	}
	end()
	l, err = OS().Lock(name)
	must(t, err)
	must(t, l.Close())
}
