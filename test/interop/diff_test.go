package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

// A question is one request sent to a samsa and to an Apache Kafka that hold the same topics; their answers have
// to be the same in every field. What may differ is written at the question, by the number of its row in
// docs/conformance/differences.md; what is written there and does not differ fails too.
type question struct {
	name     string // named after what is wrong with it
	key      int16
	versions string // "0-13", "3,7" or "5"
	body     string // the request in JSON, see fill; "hex:" and bytes for one that is not a request
	differs  map[string]string
	at       listener
	silent   bool // Kafka never answers
}

type listener int

const (
	broker listener = iota
	controller
)

// side is one of the two programs.
type side struct {
	name  string
	node  *harness.Node
	ids   map[string]model.UUID // topic ids by name
	names map[model.UUID]string
	sent  map[model.UUID]bool // ids of no topic that the question asks for

	quorum bool // the question is about the metadata log, whose offsets and epochs are the program's own
}

// pair starts both programs with the same settings.
func pair(t *testing.T, extra ...string) (samsa, kafka *side) {
	t.Helper()
	sides := []*side{{name: "samsa"}, {name: "kafka"}}
	for _, s := range sides {
		s.node = harness.NewNode(t, 1, extra...) // with more, Kafka's choice of directory follows the order of its hash tables
	}
	var starting sync.WaitGroup
	sides[1].node.FormatKafka()
	starting.Go(func() { sides[1].node.StartKafka("ERROR") })
	start(t, sides[0].node, "samsa")
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return sides[0], sides[1]
}

// learn asks for the ids of all topics.
func (s *side) learn(t *testing.T) {
	t.Helper()
	resp, err := harness.Dial(t, s.node.Addr).Ask(12, &protocol.MetadataRequest{})
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	s.ids, s.names = map[string]model.UUID{}, map[model.UUID]string{}
	for _, topic := range resp.(*protocol.MetadataResponse).Topics {
		s.ids[*topic.Name], s.names[topic.TopicId] = topic.TopicId, *topic.Name
	}
}

// answer sends the question and returns the answer as sorted lines "path = value".
func (s *side) answer(t *testing.T, q question, version int16) []string {
	t.Helper()
	addr := s.node.Addr
	if q.at == controller {
		addr = s.node.Controller
	}
	c := harness.Dial(t, addr)
	defer c.Close()
	if q.silent && s.name == "kafka" {
		c.Limit = time.Second
	}
	s.sent, s.quorum = map[model.UUID]bool{}, q.key == protocol.KeyDescribeQuorum
	if hex, ok := strings.CutPrefix(q.body, "hex:"); ok {
		var body []byte
		if _, err := fmt.Sscanf(strings.ReplaceAll(hex, " ", ""), "%x", &body); err != nil && hex != "" {
			t.Fatalf("%s: %v", q.name, err)
		}
		if err := c.SendBody(q.key, version, body); err != nil {
			t.Fatal(err)
		}
	} else {
		req := protocol.NewRequest(q.key)
		req.Default()
		var body any
		if err := json.Unmarshal([]byte(q.body), &body); err != nil {
			t.Fatalf("%s: %v", q.name, err)
		}
		if err := s.fill(reflect.ValueOf(req).Elem(), body); err != nil {
			t.Fatalf("%s: %v", q.name, err)
		}
		if err := c.Send(version, req); err != nil {
			t.Fatalf("%s: %v", q.name, err)
		}
	}
	layout := version
	if _, max, _ := protocol.Versions(q.key); q.key == protocol.KeyApiVersions && version > max {
		layout = 0
	}
	resp, err := c.Answer(q.key, layout)
	switch {
	case errors.Is(err, harness.ErrClosed):
		return []string{"the connection = closed"}
	case err != nil:
		return []string{"the answer = " + err.Error()}
	}
	lines := s.render(nil, "", reflect.ValueOf(resp).Elem())
	slices.Sort(lines)
	return lines
}

// fill sets a message's fields from JSON. A topic id is given by the topic's name or as text; bytes by
// $name, see batches, or as text; "repeat:N:x" is N times x.
func (s *side) fill(v reflect.Value, x any) error {
	if v.CanAddr() {
		if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
	}
	if text, ok := x.(string); ok {
		if rest, ok := strings.CutPrefix(text, "repeat:"); ok {
			n, unit, _ := strings.Cut(rest, ":")
			count, _ := strconv.Atoi(n)
			x = strings.Repeat(unit, count)
		}
	}
	if v.Type() == reflect.TypeFor[model.UUID]() {
		text, _ := x.(string)
		if id, ok := s.ids[text]; ok {
			v.Set(reflect.ValueOf(id))
			return nil
		}
		id, err := model.ParseUUID(text)
		s.sent[id] = true
		v.Set(reflect.ValueOf(id))
		return err
	}
	if v.Type() == reflect.TypeFor[[]byte]() {
		if text, ok := x.(string); ok {
			if name, ok := strings.CutPrefix(text, "$"); ok {
				b, known := batches[name]
				if !known {
					return fmt.Errorf("no batch %q", name)
				}
				v.SetBytes(b)
			} else {
				v.SetBytes([]byte(text))
			}
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		if x == nil {
			v.SetZero()
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return s.fill(v.Elem(), x)
	case reflect.Slice:
		if x == nil {
			v.SetZero()
			return nil
		}
		items, ok := x.([]any)
		if !ok {
			return fmt.Errorf("%v is no list", x)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			if err := s.fill(v.Index(i), item); err != nil {
				return err
			}
		}
	case reflect.Struct:
		fields, ok := x.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no struct", x)
		}
		for name, value := range fields {
			f := v.FieldByName(name)
			if !f.IsValid() {
				return fmt.Errorf("%s has no field %s", v.Type(), name)
			}
			if err := s.fill(f, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	case reflect.String:
		v.SetString(x.(string))
	case reflect.Bool:
		v.SetBool(x.(bool))
	default:
		n, ok := x.(float64)
		if !ok {
			return fmt.Errorf("%v is no number", x)
		}
		v.SetInt(int64(n))
	}
	return nil
}

// labels are the fields that tell the elements of a list apart; the order of a list means nothing.
var labels = []string{"Name", "TopicName", "Topic", "ResourceName", "GroupId", "Key", "LogDir", "ConfigName", "MemberId", "ApiKey", "PartitionIndex", "Partition", "Index", "NodeId", "BrokerId", "ReplicaId", "PartitionId", "Feature"}

// ours are fields whose value is the program's own choice: an id, a moment, an offset of the metadata log.
var ours = map[string]bool{
	"FinalizedFeaturesEpoch": true, "SessionId": true, "UsableBytes": true, "TotalBytes": true, "LogEndOffset": true, "HighWatermark metadata": true,
	"LastFetchTimestamp": true, "LastCaughtUpTimestamp": true, "ProducerId": true, "LastTimestamp": true, "LogAppendTimeMs": true, "MemberId": true, "Leader": true,
}

// render writes a value as lines, with everything that is the program's own choice replaced.
func (s *side) render(lines []string, path string, v reflect.Value) []string {
	add := func(format string, args ...any) []string {
		return append(lines, path+" = "+fmt.Sprintf(format, args...))
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case v.Type() == reflect.TypeFor[model.UUID]():
		id := v.Interface().(model.UUID)
		name, known := s.names[id]
		switch {
		case id.IsZero():
			return add("ZERO")
		case known:
			return add("the id of %s", name)
		case s.sent[id]:
			return add("%s", id)
		}
		return add("an id")
	case v.Type() == reflect.TypeFor[[]byte]():
		if v.IsNil() {
			return add("null")
		}
		return add("%x", v.Bytes())
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return add("null")
		}
		return s.render(lines, path, v.Elem())
	case reflect.Slice:
		if v.IsNil() || v.Len() == 0 {
			return add("empty")
		}
		elements := map[string][]string{} // by label
		for i := range v.Len() {
			e := v.Index(i)
			label := s.label(e, i)
			elements[label] = append(elements[label], strings.Join(s.render(nil, "", e), "\n"))
		}
		for label, same := range elements {
			slices.Sort(same)
			for i, text := range same {
				prefix := path + "[" + label + "]"
				if i > 0 {
					prefix = path + "[" + label + "#" + strconv.Itoa(i+1) + "]"
				}
				for line := range strings.SplitSeq(text, "\n") {
					if !strings.HasPrefix(line, " = ") && !strings.HasPrefix(line, "[") {
						line = "." + line
					}
					lines = append(lines, prefix+line)
				}
			}
		}
		return lines
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if name == "UnknownTags" && v.Field(i).Len() == 0 {
				continue
			}
			lines = s.render(lines, strings.TrimPrefix(path+"."+name, "."), v.Field(i))
		}
		return lines
	case reflect.String:
		if ours[last] && v.String() != "" {
			return add("<%s>", last)
		}
		return add("%q", s.plain(v.String()))
	case reflect.Bool:
		return add("%t", v.Bool())
	case reflect.Uint16:
		if last == "Port" {
			return add("%s", s.port(v.Uint()))
		}
		return add("%d", v.Uint())
	case reflect.Float64:
		return add("%g", v.Float())
	}
	n := v.Int()
	switch {
	case s.quorum && (last == "HighWatermark" || last == "LeaderEpoch"):
		return add("<%s>", last)
	case last == "Port":
		return add("%s", s.port(uint64(n)))
	case last == "ErrorCode":
		if e := kerr.ForCode(int16(n)); e != nil {
			return add("%d %s", n, e.Name)
		}
	case ours[last] && n > 0:
		return add("<%s>", last)
	}
	return add("%d", n)
}

// port says whose port it is.
func (s *side) port(n uint64) string {
	switch fmt.Sprintf("127.0.0.1:%d", n) {
	case s.node.Addr:
		return "the broker's"
	case s.node.Controller:
		return "the controller's"
	}
	return strconv.FormatUint(n, 10)
}

func (s *side) label(e reflect.Value, i int) string {
	if e.Kind() == reflect.Struct {
		for _, name := range labels {
			f := e.FieldByName(name)
			if f.IsValid() && f.Kind() == reflect.Pointer {
				f = f.Elem()
			}
			if !f.IsValid() || ours[name] {
				continue
			}
			if text := s.plain(fmt.Sprint(f.Interface())); text != "" || !e.FieldByName("TopicId").IsValid() || e.FieldByName("TopicId").IsZero() {
				return text
			}
		}
		if f := e.FieldByName("TopicId"); f.IsValid() {
			id := f.Interface().(model.UUID)
			if name, ok := s.names[id]; ok {
				return name
			}
			if s.sent[id] {
				return id.String()
			}
		}
	}
	return strconv.Itoa(i)
}

// spans are ranges of timestamps around now.
var spans = regexp.MustCompile(`\[-?\d{13,}, -?\d{13,}\]`)

// plain replaces what only this program's node has: its directory, its ports, its ids.
func (s *side) plain(text string) string {
	for _, r := range [][2]string{{s.node.Dir, "$DIR"}, {s.node.Addr, "$BROKER"}, {s.node.Controller, "$CONTROLLER"}, {s.node.HTTP, "$HTTP"}} {
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	text = spans.ReplaceAllString(text, "[from, to]")
	for id, name := range s.names {
		text = strings.ReplaceAll(text, id.String(), "$"+name)
	}
	return text
}

// ask asks both and compares, at every version of the question.
func (q question) ask(t *testing.T, samsa, kafka *side) {
	t.Helper()
	for _, version := range versionsOf(t, q.versions) {
		t.Run(fmt.Sprintf("%s/%s/v%d", protocol.ApiName(q.key), q.name, version), func(t *testing.T) {
			var theirs []string
			var asking sync.WaitGroup
			asking.Go(func() { theirs = kafka.answer(t, q, version) })
			mine := samsa.answer(t, q, version)
			asking.Wait()
			if os.Getenv("SAMSA_INTEROP_SHOW") != "" {
				t.Logf("Kafka's answer:\n%s", strings.Join(theirs, "\n"))
			}
			compare(t, q.differs, mine, theirs)
		})
	}
}

// compare wants the same lines, but for those whose path matches a pattern of differs.
func compare(t *testing.T, differs map[string]string, mine, theirs []string) {
	t.Helper()
	values := func(lines []string) map[string]string {
		m := map[string]string{}
		for _, l := range lines {
			path, value, _ := strings.Cut(l, " = ")
			m[path] = value
		}
		return m
	}
	a, b := values(mine), values(theirs)
	used := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(merged(a, b))) {
		x, y := a[path], b[path]
		if x == y || strings.Contains(path, "[samsa.") { // settings Kafka does not know
			continue
		}
		listed := false
		for pattern, row := range differs {
			if regexp.MustCompile("^(?:" + pattern + ")$").MatchString(path) {
				used[pattern], listed = true, true
				wantRow(t, row)
			}
		}
		if !listed {
			t.Errorf("%s: samsa %s | Kafka %s", path, orAbsent(x), orAbsent(y))
		}
	}
	for pattern, row := range differs {
		if !used[pattern] {
			t.Errorf("%s (%s of differences.md) does not differ", pattern, row)
		}
	}
}

func merged(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

func orAbsent(s string) string {
	if s == "" {
		return "(absent)"
	}
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}

var differences = sync.OnceValue(func() string {
	root, err := harness.Root()
	if err != nil {
		return err.Error()
	}
	text, _ := os.ReadFile(filepath.Join(root, "docs/conformance/differences.md"))
	return string(text)
})

// wantRow fails unless docs/conformance/differences.md has the row.
func wantRow(t *testing.T, row string) {
	t.Helper()
	if !strings.Contains(differences(), "| "+row+" |") {
		t.Errorf("docs/conformance/differences.md has no row %s", row)
	}
}

// versionsOf reads "0-3,7".
func versionsOf(t *testing.T, text string) (versions []int16) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		if part == "-1" {
			versions = append(versions, -1)
			continue
		}
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			t.Fatalf("versions %q", text)
		}
		for v := a; v <= b; v++ {
			versions = append(versions, int16(v))
		}
	}
	return versions
}

// both asks both sides to do something, as a stage for the questions.
func both(t *testing.T, samsa, kafka *side, key, version int16, body string) {
	t.Helper()
	for _, s := range []*side{samsa, kafka} {
		lines := s.answer(t, question{name: "stage", key: key, body: body}, version)
		for _, l := range lines {
			if strings.Contains(l, "ErrorCode = ") && !strings.HasSuffix(l, "= 0") || strings.HasPrefix(l, "the ") {
				t.Fatalf("%s: %s", s.name, strings.Join(lines, "\n"))
			}
		}
	}
}

// settled waits until both know the topics of the last both.
func settled(t *testing.T, samsa, kafka *side, topics ...string) {
	t.Helper()
	for _, s := range []*side{samsa, kafka} {
		s.node.Eventually("the topics are there", 20*time.Second, func() error {
			s.learn(t)
			for _, topic := range topics {
				if _, ok := s.ids[topic]; !ok {
					return fmt.Errorf("%s is missing", topic)
				}
			}
			return nil
		})
	}
}
