package main

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"testing"

	"samsa/internal/base/vfs"
	"samsa/internal/storage/logdir"

	"samsa/test/peers"
)

// javaLock starts a Java process that tries the lock of a directory, says what it got, and holds it until release.
func javaLock(t *testing.T, dir string) (said string, release func()) {
	t.Helper()
	cmd := exec.Command("java", "-XX:TieredStopAtLevel=1", "testdata/TryLock.java", dir+"/.lock")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err = bufio.NewReader(out).ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return said, func() {
		in.Close()
		cmd.Wait()
	}
}

// D-39, J-41: samsa and a Java process keep each other out of a directory.
func TestLockAgainstJava(t *testing.T) {
	peers.Kafka(t)
	dir := t.TempDir()
	lock, err := logdir.Lock(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	said, release := javaLock(t, dir)
	release()
	if said != "refused\n" {
		t.Errorf("Java %q a directory samsa uses", said)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	said, release = javaLock(t, dir)
	if said != "locked\n" {
		t.Errorf("Java was %q after samsa let go", said)
	}
	if _, err := logdir.Lock(vfs.OS(), dir); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("samsa took a directory Java uses: %v", err)
	}
	release()
	if lock, err = logdir.Lock(vfs.OS(), dir); err != nil {
		t.Fatal(err)
	}
	lock.Close()
}
