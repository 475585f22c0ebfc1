package kerr

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Codes, names and retriability are those of Kafka's own table.
func TestJavaOracle(t *testing.T) {
	dir := os.Getenv("SAMSA_PEERS")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(home, ".cache", "samsa-peers", "kafka-4.4.0")
	}
	found, _ := filepath.Glob(filepath.Join(dir, "kafka-clients-4.4.0.jar"))
	if _, err := exec.LookPath("java"); err != nil || len(found) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("java (%v) or Kafka's jars in %s are missing: run make peers, or set SAMSA_PEERS", err, dir)
		}
		t.Skipf("java or Kafka's jars in %s are missing: run make peers, or set SAMSA_PEERS", dir)
	}
	out, err := exec.Command("java", "-cp", filepath.Join(dir, "*"), "testdata/Errors.java").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	fmt.Fprintln(&got, UnknownServerError.Code, UnknownServerError.Name, UnknownServerError.Retriable)
	fmt.Fprintln(&got, 0, "NONE", false)
	for _, e := range all {
		fmt.Fprintln(&got, e.Code, e.Name, e.Retriable)
	}
	if got.String() != string(out) {
		t.Errorf("ours:\n%s\nKafka's:\n%s", got.String(), out)
	}
}
