package protocol

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"samsa/test/peers"
)

// oracle is a running testdata/oracle/Oracle.java.
type oracle struct {
	questions []string
	labels    []string
}

func (o *oracle) ask(label, name string, version int16, b []byte, rest string) {
	o.questions = append(o.questions, fmt.Sprintf("%s\t%d\t%s\t%s", name, version, hex.EncodeToString(b), rest))
	o.labels = append(o.labels, label)
}

// run gives Java's answers, in the order of the questions.
func (o *oracle) run(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("java", "-XX:+UseSerialGC", "-Xmx512m", "-cp", filepath.Join(peers.Kafka(t), "*"), "testdata/oracle/Oracle.java")
	cmd.Stdin = strings.NewReader(strings.Join(o.questions, "\n") + "\n")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers []string
	for sc := bufio.NewScanner(strings.NewReader(string(out))); sc.Scan(); {
		answers = append(answers, sc.Text())
	}
	if len(answers) != len(o.questions) {
		t.Fatalf("%d answers to %d questions", len(answers), len(o.questions))
	}
	return answers
}

// Every message and version, filled at random: Kafka's own classes read our bytes, write them
// again the same, and write the same bytes from the message's JSON.
func TestJavaOracle(t *testing.T) {
	peers.Kafka(t)
	o := &oracle{}
	f := newFiller(5)
	eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
		for i := range 12 {
			f.tags = i >= 8 // JSON knows no unknown tags
			m := f.message(s, v)
			b, err := m.Append(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if !f.tags {
				j, err := json.Marshal(toJSON(s.name, reflect.ValueOf(m).Elem(), v))
				if err != nil {
					t.Fatal(err)
				}
				text = string(j)
			}
			o.ask(fmt.Sprintf("%s version %d", s.name, v), s.name, v, b, text)
		}
	})
	wrong := 0
	for i, a := range o.run(t) {
		if a == "ok" {
			continue
		}
		if wrong++; wrong <= 10 {
			t.Errorf("%s: %s\n%s", o.labels[i], a, o.questions[i])
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d differ", wrong, len(o.questions))
	}
	t.Logf("%d messages compared", len(o.questions))
}

// Mutated messages: what we accept, Kafka accepts, and what Kafka refuses, we refuse. The other
// way round we are stricter in a few named ways.
func TestJavaOracleRefusals(t *testing.T) {
	peers.Kafka(t)
	o := &oracle{}
	var ours []error
	f := newFiller(6)
	f.tags = true
	eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
		for range 10 {
			b, err := f.message(s, v).Append(nil, v)
			if err != nil || len(b) == 0 {
				continue
			}
			for range 1 + f.IntN(3) {
				b[f.IntN(len(b))] = []byte{0, 1, 2, 0x7f, 0x80, 0xff}[f.IntN(6)]
			}
			_, err = s.make().Read(b, v)
			o.ask(fmt.Sprintf("%s version %d", s.name, v), s.name, v, b, "?")
			ours = append(ours, err)
		}
	})
	laxer, stricter := 0, map[string]int{}
	for i, a := range o.run(t) {
		switch accepted := a == "yes"; {
		case !accepted && ours[i] == nil:
			if laxer++; laxer <= 10 {
				t.Errorf("%s is read, Kafka says %s\n%s", o.labels[i], a, o.questions[i])
			}
		case accepted && ours[i] != nil:
			_, reason, _ := strings.Cut(ours[i].Error(), "bytes: ")
			reason, _, _ = strings.Cut(reason, ",")
			stricter[reason]++
			if !strings.Contains(reason, "tag") && !strings.Contains(reason, "ends early") && !strings.Contains(reason, "does not fit") {
				t.Errorf("%s: Kafka accepts what is refused here: %v\n%s", o.labels[i], ours[i], o.questions[i])
			}
		}
	}
	t.Logf("%d mutated messages; refused here and not by Kafka: %v", len(ours), stricter)
}
