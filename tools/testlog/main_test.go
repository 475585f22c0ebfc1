package main

import (
	"strings"
	"testing"
)

func TestSummarize(t *testing.T) {
	in := `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestB","Output":"why it broke\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0.1}
not json at all
{"Action":"fail","Package":"p","Elapsed":0.3}
{"Action":"pass","Package":"q","Elapsed":0.3}
`
	var out strings.Builder
	c, err := summarize(strings.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	if want := (counts{passed: 1, failed: 2}); c != want {
		t.Errorf("counted %+v, want %+v", c, want)
	}
	for _, want := range []string{"why it broke", "not json at all", "ok    q", "1 passed, 2 failed, 0 skipped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "quiet") {
		t.Error("output of a test that passed was printed")
	}
}
