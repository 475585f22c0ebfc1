// Command conformance keeps the ledger docs/conformance true.
//
// Every requirement of the specification pages has one row:
//
//	| D-01 | what it asks, in a few words | partlog.TestAppend, edge/api.TestProduce |
//	| D-02 | …                             | open |
//	| D-03 | …                             | differs: why, and the test that shows it |
//	| D-04 | …                             | later: which step |
//
// A test is named by the tail of its package path and its function. The command fails when a row
// names a test that does not exist, when a row has no known form, or, given the output of
// `go test -json`, when a named test did not pass. It prints the count of each page.
//
// Kind: driver.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"go/ast"
)

func main() {
	root := flag.String("root", ".", "the checkout")
	results := flag.String("results", "", "output of `go test -json`; named tests must have passed in it")
	flag.Parse()
	mistakes, err := run(*root, *results)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
	for _, m := range mistakes {
		fmt.Fprintln(os.Stderr, "conformance:", m)
	}
	if len(mistakes) > 0 {
		os.Exit(1)
	}
}

type row struct {
	page, id, state string
	line            int
}

var rowPattern = regexp.MustCompile(`^\| *([JTKDASZ]-\d+[a-z]?) *\|(.*)\| *([^|]*?) *\|$`)

// parsePage reads the rows of one ledger page; lines that are no rows are prose.
func parsePage(name, text string) []row {
	var rows []row
	for i, line := range strings.Split(text, "\n") {
		if m := rowPattern.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			rows = append(rows, row{page: name, id: m[1], state: m[3], line: i + 1})
		}
	}
	return rows
}

var testPattern = regexp.MustCompile(`([\w/-]+)\.((?:Test|Fuzz|Example)\w*)`)

func run(root, results string) (mistakes []string, err error) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/conformance/*.md"))
	if err != nil {
		return nil, err
	}
	known, err := testFunctions(root)
	if err != nil {
		return nil, err
	}
	outcome, err := readResults(results)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		rows := parsePage(filepath.Base(page), string(text))
		if len(rows) == 0 {
			continue
		}
		count := map[string]int{}
		seen := map[string]bool{}
		for _, r := range rows {
			where := fmt.Sprintf("%s:%d %s", r.page, r.line, r.id)
			if seen[r.id] {
				mistakes = append(mistakes, where+": this number has a row already")
			}
			seen[r.id] = true
			kind, wrong := judge(r, known, outcome)
			count[kind]++
			for _, w := range wrong {
				mistakes = append(mistakes, where+": "+w)
			}
		}
		fmt.Printf("%-14s %3d rows: %3d proven, %3d differ, %3d later, %3d open\n",
			strings.TrimSuffix(filepath.Base(page), ".md"), len(rows), count["proven"], count["differs"], count["later"], count["open"])
	}
	return mistakes, nil
}

// judge tells what a row claims and what is wrong with the claim.
func judge(r row, known map[string][]string, outcome map[string]string) (kind string, wrong []string) {
	tests := testPattern.FindAllStringSubmatch(r.state, -1)
	switch {
	case r.state == "open":
		return "open", nil
	case strings.HasPrefix(r.state, "later: "):
		return "later", nil
	case strings.HasPrefix(r.state, "differs: "):
		kind = "differs"
	case len(tests) > 0:
		kind = "proven"
	default:
		return "open", []string{fmt.Sprintf("%q is neither a test nor open, later: or differs:", r.state)}
	}
	for _, t := range tests {
		pkg := ""
		for _, p := range known[t[2]] {
			if p == t[1] || strings.HasSuffix(p, "/"+t[1]) {
				pkg = p
			}
		}
		if pkg == "" {
			wrong = append(wrong, fmt.Sprintf("no test %s.%s in the tree", t[1], t[2]))
			continue
		}
		if outcome == nil {
			continue
		}
		if got := outcome["samsa/"+pkg+" "+t[2]]; got != "pass" {
			if got == "" {
				got = "not run"
			}
			wrong = append(wrong, fmt.Sprintf("test %s.%s: %s", t[1], t[2], got))
		}
	}
	return kind, wrong
}

// testFunctions maps the name of each test function to the package directories that hold one.
func testFunctions(root string) (map[string][]string, error) {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				found[f.Name.Name] = append(found[f.Name.Name], filepath.ToSlash(rel))
			}
		}
		return nil
	})
	for _, dirs := range found {
		sort.Strings(dirs)
	}
	return found, err
}

// readResults gives the last outcome of every top-level test, or nil without a file.
func readResults(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	outcome := map[string]string{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e struct{ Action, Package, Test string }
		if json.Unmarshal(in.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		switch e.Action {
		case "pass", "fail", "skip":
			outcome[e.Package+" "+e.Test] = e.Action
		}
	}
	return outcome, in.Err()
}
