package kerr

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samsa/test/peers"
)

// Codes, names and retriability are those of Kafka's own table.
func TestJavaOracle(t *testing.T) {
	dir := peers.Kafka(t)
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
