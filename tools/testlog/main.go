// Command testlog turns the JSON of `go test -json` on standard input into the lines a person
// wants: one per package, the whole output of what failed, and a closing count.
//
// Kind: driver. It exits 1 when anything failed, or when no test ran at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of `go test -json`.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

type counts struct{ passed, failed, skipped int }

func main() {
	c, err := summarize(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
	if c.failed > 0 || c.passed == 0 {
		os.Exit(1)
	}
}

// summarize copies what matters from r to w. Lines that are not JSON (a build that failed) pass unchanged.
func summarize(r io.Reader, w io.Writer) (counts, error) {
	var c counts
	output := map[string][]string{} // package + " " + test -> its lines
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(w, line)
			} else {
				c.add(e, output, w)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return c, fmt.Errorf("reading the test output: %w", err)
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", c.passed, c.failed, c.skipped)
	return c, nil
}

func (c *counts) add(e event, output map[string][]string, w io.Writer) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		output[key] = append(output[key], e.Output)
	case "build-output":
		fmt.Fprint(w, e.Output)
	case "build-fail":
		c.failed++
	case "pass", "fail", "skip":
		if e.Test == "" {
			if e.Action == "fail" {
				c.failed++
				fmt.Fprint(w, strings.Join(output[key], ""))
			} else {
				fmt.Fprintf(w, "%-5s %s %.1fs\n", map[string]string{"pass": "ok", "skip": "-"}[e.Action], e.Package, e.Elapsed)
			}
			delete(output, key)
			return
		}
		switch e.Action {
		case "pass":
			c.passed++
		case "skip":
			c.skipped++
			fmt.Fprintf(w, "SKIP  %s %s\n%s", e.Package, e.Test, strings.Join(output[key], ""))
		case "fail":
			c.failed++
			fmt.Fprintf(w, "FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(output[key], ""))
		}
		delete(output, key)
	}
}
