package config

import (
	"encoding/base64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var propertyTexts = []string{
	"", "a=b", "a:b", "a b", "a\t=\tb", " a = b ", "a", "a=", "=b", ":", "a==b", "a=:b", "a : = b", "a\\ b=c", "a\\=b=c", "a\\:b c",
	"#c\na=b", " ! c\na=b", "a=b\\\n  c", "a=b\\\r\n\tc\r\nd=e", "a=b\\\n#c\nd=e", "a=b\\\\\nc=d", "a=b\\\\\\\nc", "a\\\n=b", "\\\na=b", "a=b\\", "a=\\u0041\\u00e9",
	"a=\\uD83D\\uDE00", "a=\\u004", "a=\\u00zz", "\\u0061=b", "a=\\t\\n\\r\\f\\q\\\\", "a=b\ra=c\r\na=d", "\fa\f=\fb", "a=\xe9\xff", "a=${b}\nb=1",
	"log.dirs=/a,\\\n   /b,\\\n\n/c", "\\", "\\\n", "\\\n\n\\\na=b", "# c \\\na=b", "a=b # no comment", "\x00=1", "a\\", "a = \\\n\\\n b", "listeners=PLAINTEXT://:9092",
}

func propertyMap(t *testing.T, data []byte) (map[string]string, bool) {
	settings, err := ParseProperties("f", data)
	if err != nil {
		return nil, false
	}
	m := map[string]string{}
	for _, s := range settings {
		m[s.Key] = s.Value
	}
	return m, true
}

// D-206: the file is read as java.util.Properties reads it; asked of Java for fixed and random texts.
func TestPropertiesAsJava(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	texts := slices.Clone(propertyTexts)
	alphabet := []string{"a", "b", "=", ":", " ", "\t", "\f", "\\", "\n", "\r", "\r\n", "#", "!", "\\u0041", "\\u", "0", "\xe9", "$"}
	for range 3000 {
		var b strings.Builder
		for range rng.IntN(16) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		texts = append(texts, b.String())
	}
	var in strings.Builder
	for _, s := range texts {
		in.WriteString(base64.StdEncoding.EncodeToString([]byte(s)) + "\n")
	}
	rows := peer(t, "Props.java", in.String())
	if len(rows) != len(texts) {
		t.Fatalf("%d answers to %d texts", len(rows), len(texts))
	}
	for i, row := range rows {
		got, ok := propertyMap(t, []byte(texts[i]))
		if str(row[0]) == "bad" {
			if ok {
				t.Errorf("%q: taken as %q, Java refuses it", texts[i], got)
			}
			continue
		}
		want := map[string]string{}
		for j := 1; j+1 < len(row); j += 2 {
			want[str(row[j])] = str(row[j+1])
		}
		// A lone backslash at the end of the text is an empty key to Java, now and then; it means nothing.
		delete(got, "")
		delete(want, "")
		if !ok || !cmp.Equal(got, want) {
			t.Errorf("%q: %q, Java has %q", texts[i], got, want)
		}
	}
}

func TestPropertiesLines(t *testing.T) {
	settings, err := ParseProperties("server.properties", []byte("# one\n\na=1\nb=2\\\n  3\n\rc=4\r\nd=5"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Setting{
		{"a", "1", Origin{File: "server.properties", Line: 3}},
		{"b", "23", Origin{File: "server.properties", Line: 4}},
		{"c", "4", Origin{File: "server.properties", Line: 7}},
		{"d", "5", Origin{File: "server.properties", Line: 8}},
	}
	if diff := cmp.Diff(want, settings); diff != "" {
		t.Error(diff)
	}
	if _, err := ParseProperties("f", []byte("a=1\nb=\\u12")); err == nil || !strings.Contains(err.Error(), "f:2") {
		t.Errorf("a malformed escape: %v", err)
	}
}

func FuzzParseProperties(f *testing.F) {
	for _, s := range propertyTexts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, err := ParseProperties("f", data)
		if err != nil {
			return
		}
		lines := 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r")
		last := 0
		for _, s := range settings {
			if s.Origin.Line <= last || s.Origin.Line > lines || !utf8.ValidString(s.Key) {
				t.Fatalf("setting %+v after line %d of %d", s, last, lines)
			}
			last = s.Origin.Line
		}
	})
}
