// Package peers says where the strangers are that tests talk to. `make peers` brings them.
//
// Kind: quiet. A peer that is missing fails a test when CI is set, and skips it otherwise.
package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Missing ends a test whose peer is not installed.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing: make peers installs it", what)
	}
	t.Skipf("%s is missing: make peers installs it", what)
}

// Kafka is the directory of Apache Kafka's jars: SAMSA_PEERS, or where `make peers` puts them. Java is there too.
func Kafka(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SAMSA_PEERS")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(home, ".cache", "samsa-peers", "kafka-4.4.0")
	}
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		Missing(t, "Apache Kafka (its jars, in "+dir+")")
	}
	if _, err := exec.LookPath("java"); err != nil {
		Missing(t, "java")
	}
	return dir
}

// Beside is the directory next to the jars that holds the peers of another language: python, node.
func Beside(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(Kafka(t)), name)
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		Missing(t, "the clients in "+dir)
	}
	return dir
}
