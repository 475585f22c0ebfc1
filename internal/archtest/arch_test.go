package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// floors, from the ground up: a package imports its own floor and the ones before it.
// Why: produce, deletion and disk failure each cross many packages; without an order they
// soon import each other (docs/architecture.md).
var floors = []string{"base", "wire", "storage", "raft", "meta", "replica", "coord", "edge", "server"}

// banned is what a kind of package must not import, and why.
var banned = map[string]map[string]string{
	"pure": {
		"os":           "a pure package has no I/O: a quiet one is handed a vfs.FS",
		"net":          "a pure package has no sockets: let the driver carry bytes",
		"sync":         "a pure package has one owner and no locks",
		"sync/atomic":  "a pure package has one owner and no shared state",
		"math/rand":    "randomness is an argument, so that a seed replays it",
		"math/rand/v2": "randomness is an argument, so that a seed replays it",
		"log/slog":     "a pure package returns what happened; its driver logs it",
	},
	"quiet": {
		"net": "a quiet package reaches the world only through the seam it was handed",
	},
}

// allowed are exceptions to banned, each with its reason.
var allowed = map[string]string{
	"internal/wire/record sync":             "pools of compressors, invisible from outside",
	"internal/base/invariant sync/atomic":   "the call counter of Sometimes, in test builds only",
	"internal/base/model crypto/rand":       "ids are drawn from the operating system",
	"internal/meta/controller math/rand/v2": "the type *rand.Rand of an argument",
	"internal/raft/kraft math/rand/v2":      "the type *rand.Rand of an argument",
}

// bannedCalls are calls that a pure or quiet package must not make.
var bannedCalls = map[string]string{
	"time.Now":       "the time is an argument",
	"time.Sleep":     "waiting is for drivers",
	"time.After":     "timers are for drivers",
	"time.AfterFunc": "timers are for drivers",
	"time.NewTimer":  "timers are for drivers",
	"time.NewTicker": "timers are for drivers",
	"time.Tick":      "timers are for drivers",
	"time.Since":     "the time is an argument",
	"time.Until":     "the time is an argument",

	"context.WithTimeout":  "a deadline is a timer: its owner is a driver",
	"context.WithDeadline": "a deadline is a timer: its owner is a driver",

	"os.Open":      seam,
	"os.OpenFile":  seam,
	"os.Create":    seam,
	"os.ReadFile":  seam,
	"os.WriteFile": seam,
	"os.ReadDir":   seam,
	"os.Stat":      seam,
	"os.Lstat":     seam,
	"os.Mkdir":     seam,
	"os.MkdirAll":  seam,
	"os.Remove":    seam,
	"os.RemoveAll": seam,
	"os.Rename":    seam,
	"os.Getenv":    "the environment is an argument",
	"os.Environ":   "the environment is an argument",
	"os.Exit":      "only a command ends the process",
}

const seam = "files are reached through the vfs.FS that was handed in"

// isSeam: the one package in which that seam is made.
func isSeam(path, why string) bool { return path == "internal/base/vfs" && why == seam }

var kindLine = regexp.MustCompile(`(?m)^Kind: (pure|quiet|driver)\b`)

type pkg struct {
	path, kind string // path from the root of the module
	imports    map[string]token.Position
	goes       []token.Position
	calls      map[string]token.Position
}

func load(t *testing.T) []*pkg {
	t.Helper()
	root := "../.."
	byPath := map[string]*pkg{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		p := byPath[dir]
		if p == nil {
			p = &pkg{path: filepath.ToSlash(dir), imports: map[string]token.Position{}, calls: map[string]token.Position{}}
			byPath[dir] = p
		}
		if m := kindLine.FindStringSubmatch(file.Doc.Text()); m != nil {
			p.kind = m[1]
		}
		for _, i := range file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			p.imports[name] = fset.Position(i.Pos())
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				p.goes = append(p.goes, fset.Position(n.Pos()))
			case *ast.CallExpr: // a WaitGroup's or errgroup's Go
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
					p.goes = append(p.goes, fset.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					p.calls[x.Name+"."+n.Sel.Name] = fset.Position(n.Pos())
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []*pkg
	for _, p := range byPath {
		all = append(all, p)
	}
	return all
}

// floor is the index of a package's floor, or -1 for what stands beside the building.
func floor(path string) int {
	path = strings.TrimPrefix(path, "samsa/")
	rest, ok := strings.CutPrefix(path, "internal/")
	if !ok {
		return -1
	}
	name, _, _ := strings.Cut(rest, "/")
	for i, f := range floors {
		if f == name {
			return i
		}
	}
	return -1
}

func TestImportsGoDown(t *testing.T) {
	for _, p := range load(t) {
		from := floor(p.path)
		if from < 0 {
			continue
		}
		for name, pos := range p.imports {
			if !strings.HasPrefix(name, "samsa/") {
				continue
			}
			if to := floor(name); to > from {
				t.Errorf("%v: %s (floor %s) imports %s (floor %s): imports go down only", pos, p.path, floors[from], name, floors[to])
			} else if to < 0 {
				t.Errorf("%v: %s imports %s, which stands on no floor", pos, p.path, name)
			}
		}
	}
}

func TestEveryPackageSaysItsKind(t *testing.T) {
	for _, p := range load(t) {
		if p.kind == "" {
			t.Errorf("%s: its package comment has no line `Kind: pure|quiet|driver`", p.path)
		}
	}
}

func TestKindsKeepTheirPromise(t *testing.T) {
	all := load(t)
	kinds := map[string]string{}
	for _, p := range all {
		kinds["samsa/"+p.path] = p.kind
	}
	for _, p := range all {
		if p.kind != "pure" && p.kind != "quiet" {
			continue
		}
		for name, pos := range p.imports {
			if allowed[p.path+" "+name] != "" {
				continue
			}
			if why := banned[p.kind][name]; why != "" {
				t.Errorf("%v: %s is %s and imports %s: %s", pos, p.path, p.kind, name, why)
			}
			if k := kinds[name]; p.kind == "pure" && k != "" && k != "pure" || p.kind == "quiet" && k == "driver" {
				t.Errorf("%v: %s is %s and imports %s, which is %s", pos, p.path, p.kind, name, k)
			}
		}
		for _, pos := range p.goes {
			t.Errorf("%v: %s is %s and starts a goroutine", pos, p.path, p.kind)
		}
		for call, why := range bannedCalls {
			if pos, ok := p.calls[call]; ok && !isSeam(p.path, why) {
				t.Errorf("%v: %s is %s and calls %s: %s", pos, p.path, p.kind, call, why)
			}
		}
	}
}
