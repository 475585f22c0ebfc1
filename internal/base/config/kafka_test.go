package config

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"samsa/test/peers"
)

// peer runs a Java program of testdata with Kafka's jars and returns its lines of fields.
func peer(t *testing.T, program, input string) [][]*string {
	t.Helper()
	jars := peers.Kafka(t)
	cmd := exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", filepath.Join(jars, "*"), filepath.Join("testdata", program))
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, stderr.String())
	}
	var rows [][]*string
	scan := bufio.NewScanner(bytes.NewReader(out))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var row []*string
		for _, f := range strings.Split(scan.Text(), "\t") {
			if f == "-" {
				row = append(row, nil)
				continue
			}
			b, err := base64.StdEncoding.DecodeString(f[1:])
			if err != nil {
				t.Fatalf("%s: field %q: %v", program, f, err)
			}
			s := string(b)
			row = append(row, &s)
		}
		rows = append(rows, row)
	}
	return rows
}

func str(p *string) string {
	if p == nil {
		return "<null>"
	}
	return *p
}

// kinds are the tables as Kafka names them in the dump.
var kinds = map[string]*Def{"broker": Broker, "dynamic": DynamicOnly, "topic": Topics, "group": Groups}

// D-204, D-205, D-206, T-133: every key of Kafka 4.4 with type, default, importance, visibility, update
// mode, synonyms and rule, as Kafka's own classes give them; and nothing else but samsa's own.
// Then what Kafka answers to thousands of values, good and bad, word for word.
func TestTablesAreKafkas(t *testing.T) {
	var questions strings.Builder
	type asked struct{ kind, name, value string }
	var all []asked
	for kind, def := range kinds {
		for _, name := range def.Names() {
			k, _ := def.Key(name)
			if k.Samsa {
				continue
			}
			for _, v := range probes(k) {
				all = append(all, asked{kind, name, v})
				fmt.Fprintf(&questions, "%s\t%s\t=%s\n", kind, name, base64.StdEncoding.EncodeToString([]byte(v)))
			}
		}
	}
	rows := peer(t, "Dump.java", questions.String())
	seen := map[string]int{}
	answers := 0
	for _, r := range rows {
		kind, name := str(r[1]), str(r[2])
		k, ok := kinds[kind].Key(name)
		if !ok {
			t.Errorf("%s key %s is missing", kind, name)
			continue
		}
		if str(r[0]) == "answer" {
			answers++
			compareAnswer(t, k, kind, str(r[3]), str(r[4]), str(r[5]))
			continue
		}
		seen[kind]++
		compareKey(t, k, kind, r)
	}
	for kind, def := range kinds {
		want := 0
		for _, name := range def.Names() {
			if k, _ := def.Key(name); !k.Samsa {
				want++
			}
		}
		if seen[kind] != want {
			t.Errorf("%s: Kafka has %d keys, we have %d", kind, seen[kind], want)
		}
	}
	if answers != len(all) {
		t.Errorf("%d answers to %d questions", answers, len(all))
	}
	t.Logf("%v keys, %d values compared", seen, answers)
}

func compareKey(t *testing.T, k *Key, kind string, r []*string) {
	t.Helper()
	eq := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s %s: %s is %q, Kafka says %q", kind, k.Name, what, got, want)
		}
	}
	eq("type", k.Type.String(), str(r[3]))
	dflt := Text(k.defaultValue())
	switch {
	case k.Required:
		dflt = "(required)"
	case k.Null:
		dflt = "<null>"
	}
	eq("default", dflt, str(r[4]))
	eq("importance", k.Importance.String(), str(r[5]))
	eq("internal", strconv.FormatBool(k.Internal), str(r[6]))
	if kind == "broker" || kind == "dynamic" {
		eq("update mode", k.Update.String(), str(r[7]))
	}
	synonyms := strings.Join(k.Synonyms, " ")
	if kind == "broker" {
		synonyms = strings.Join(brokerSynonyms(k.Name, true), " ")
	}
	eq("synonyms", synonyms, str(r[8]))
	if k.Check == nil {
		eq("rule", "<null>", str(r[9]))
		return
	}
	eq("rule", k.Check.String(), str(r[10]))
	if l, ok := k.Check.(listRule); ok {
		var flags []string
		if l.flags&emptyOK != 0 {
			flags = append(flags, "isEmptyAllowed")
		}
		if l.flags&nullOK != 0 {
			flags = append(flags, "isNullAllowed")
		}
		eq("list rule", strings.Join(flags, " "), str(r[11]))
	}
}

func compareAnswer(t *testing.T, k *Key, kind, value, verdict, text string) {
	t.Helper()
	v, err := k.Parse(value)
	if err != nil {
		if verdict != "bad" || text != err.Error() {
			t.Errorf("%s %s = %q: refused with %q, Kafka: %s %q", kind, k.Name, value, err, verdict, text)
		}
		return
	}
	if verdict != "ok" || text != Text(v) && k.Type != Password {
		t.Errorf("%s %s = %q: taken as %q, Kafka: %s %q", kind, k.Name, value, Text(v), verdict, text)
	}
}

// probes are values around everything a key's type and rule know.
func probes(k *Key) []string {
	if k.Type == Class {
		return nil // Kafka loads the class; samsa has none
	}
	out := []string{"", " ", "a", "a,b", "a,,b", "a,a", " x , y ", ",", "true", " TRUE ", "False", "-1", "0", "1", "2", "*", "1:2,3:4",
		"+7", "0x10", "1_0", "1.5", "1e3", "-1e400", "NaN", "Infinity", "1.0f", ".5", "5.", "1e", "\u00a05",
		"32767", "32768", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "\t12\n"}
	switch c := k.Check.(type) {
	case bounds:
		for _, edge := range []float64{c.min, c.max} {
			for _, d := range []float64{-1, 0, 1} {
				out = append(out, plain(edge+d))
			}
		}
	case words:
		for _, w := range c.list {
			out = append(out, w, strings.ToUpper(w), strings.ToLower(w), " "+w)
		}
	case listRule:
		for _, w := range c.words.list {
			out = append(out, w, w+","+w, strings.ToUpper(w), w+",zzz")
		}
		out = append(out, strings.Join(c.words.list, " , "))
	case gzipLevel:
		out = append(out, "9", "10", "-2")
	case quorumVoters:
		out = append(out, "1@h:1", "1@h:1,2@[::1]:2", "1@h", "x@h:1", "1@:1", "1@h:x", "1@a@b:1", "@h:1", "-1@h:1", "1@0.0.0.0:9", "1@h:70000", "1@ho st:1", "1@PLAINTEXT://h:1")
	case bootstrapServers:
		out = append(out, "h:1", "h:1,[::1]:2", "h", ":1", "h:x", "h:70000", "PLAINTEXT://h:1", "h:1x", "a b:1")
	case throttledReplicas:
		out = append(out, "1:1", "1:1, 2:2", "1", "1:", "1:a", "*,1:1", "-1:1")
	case shareOffsetReset:
		out = append(out, "latest", "earliest", "none", "Latest", "by_duration:P1D", "by_duration:PT1H30M", "by_duration:-P1D", "by_duration:P", "by_duration:PT",
			"by_duration:PT0.5S", "by_duration:pt1s", "by_duration:P-1D", "by_duration:P1DT-1H", "by_duration:1d", "by_duration:", "by_duration:PT-0.5S", "by_duration:P1Y")
	}
	return out
}
