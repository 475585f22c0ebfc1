package logdir

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// J-08: Java's properties text.
func TestParseProperties(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []property
	}{
		"empty":              {"", nil},
		"only_comments":      {"# a=b\n ! c=d\n\n", nil},
		"separators":         {"a=1\nb: 2\nc 3\nd\t=\t4\ne   :  5", []property{{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}, {"e", "5"}}},
		"no_value":           {"a\nb=\n", []property{{"a", ""}, {"b", ""}}},
		"second_separator":   {"a==1\nb=:2\n", []property{{"a", "=1"}, {"b", ":2"}}},
		"escaped_separators": {"a\\:b=c\\:d\\=e\n", []property{{"a:b", "c:d=e"}}},
		"escaped_blank_key":  {"a\\ b = c\n", []property{{"a b", "c"}}},
		"escapes":            {`a=\t\n\r\f\\x\q` + "\n", []property{{"a", "\t\n\r\f\\xq"}}},
		"unicode":            {`a=\u00e4\ud83d\ude00!` + "\n", []property{{"a", "ä😀!"}}},
		"continuation":       {"cluster.\\\n   id=ab\\\r\n\t  cd\n", []property{{"cluster.id", "abcd"}}},
		"even_backslashes":   {"a=b\\\\\nc=d\n", []property{{"a", "b\\"}, {"c", "d"}}},
		"continued_at_end":   {"a=b\\", []property{{"a", "b"}}},
		"comment_continues":  {"#x\\\na=b\n", []property{{"a", "b"}}},
		"last_one_counts":    {"a=1\nb=2\na=3\n", []property{{"a", "3"}, {"b", "2"}}},
		"trailing_blanks":    {"a=1  \n", []property{{"a", "1  "}}},
		"carriage_returns":   {"a=1\rb=2\r\nc=3", []property{{"a", "1"}, {"b", "2"}, {"c", "3"}}},
	} {
		got, err := parseProperties(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(property{})); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
	for name, text := range map[string]string{
		"short_unicode": `a=\u12`,
		"bad_unicode":   `a=\u12g4`,
	} {
		if got, err := parseProperties(text); err == nil {
			t.Errorf("%s: accepted as %v", name, got)
		}
	}
}

// What is written is read back, whatever it is.
func FuzzProperties(f *testing.F) {
	f.Add("cluster.id", "MkU3OEVBNTcwNTJENDM2Qg")
	f.Add(" a:b=#! ", "\tx\\y\n\r\f \xff\xc0ü")
	f.Fuzz(func(t *testing.T, key, value string) {
		parseProperties(value) // never panics
		text := appendProperty(nil, property{key, value})
		got, err := parseProperties(string(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if key == "" {
			return // an empty key is possible in Java but nobody has one
		}
		if len(got) != 1 || got[0].key != key || got[0].value != value {
			t.Fatalf("%q=%q came back as %q through %q", key, value, got, text)
		}
	})
}
