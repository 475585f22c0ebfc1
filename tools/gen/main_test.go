package main

import (
	"go/format"
	"os"
	"path/filepath"
	"testing"

	"samsa/test/peers"
)

// The committed files are what the jars give, byte for byte, and no generated file is left over.
func TestCommittedFilesAreReproduced(t *testing.T) {
	dir := peers.Kafka(t)
	version, schemas, err := loadSchemas(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := build(schemas)
	if err != nil {
		t.Fatal(err)
	}
	files := p.emit(version)
	out := filepath.Join("..", "..", "internal", "wire", "protocol")
	for name, text := range files {
		want, err := format.Source([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the schemas give: run make generate (%v)", name, err)
		}
	}
	committed, err := filepath.Glob(filepath.Join(out, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range committed {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > len(mark) && string(b[:len(mark)]) == mark && files[filepath.Base(path)] == "" {
			t.Errorf("%s is generated, and no schema gives it any more", path)
		}
	}
}

func TestVersionConditions(t *testing.T) {
	for name, c := range map[string]struct {
		want, within versions
		cond, not    string
	}{
		"all":      {versions{0, maxVersion}, versions{3, 9}, "true", "false"},
		"never":    {versions{0, 2}, versions{3, 9}, "false", "true"},
		"from":     {versions{5, maxVersion}, versions{3, 9}, "v >= 5", "v < 5"},
		"to":       {versions{0, 5}, versions{3, 9}, "v <= 5", "v > 5"},
		"one":      {versions{4, 4}, versions{3, 9}, "v == 4", "v != 4"},
		"last_one": {versions{9, maxVersion}, versions{3, 9}, "v == 9", "v != 9"},
		"between":  {versions{4, 6}, versions{3, 9}, "v >= 4 && v <= 6", "(v < 4 || v > 6)"},
	} {
		if cond, _, _ := test(c.want, c.within); cond != c.cond {
			t.Errorf("%s: %s, want %s", name, cond, c.cond)
		}
		if not := notTest(c.want, c.within); not != c.not {
			t.Errorf("%s: not %s, want %s", name, not, c.not)
		}
	}
}

func TestStripComments(t *testing.T) {
	in := "{ // c\n\"a\": \"http://x\\\"//y\", \"b\": 1 } // d"
	want := "{ \n\"a\": \"http://x\\\"//y\", \"b\": 1 } \n"
	if got := string(stripComments([]byte(in))); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
