package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// eachVersion runs f for every message at every version of its schema.
func eachVersion(t *testing.T, f func(t *testing.T, s schemaMessage, version int16)) {
	for _, s := range schemaMessages {
		for v := s.lo; v <= s.hi; v++ {
			f(t, s, v)
			if t.Failed() {
				t.Fatalf("at %s version %d", s.name, v)
			}
		}
	}
}

// same compares deeply and takes nil and empty slices for equal.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.IsNil() || same(a.Elem(), b.Elem()))
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		for i := 0; a.Len() == b.Len() && i < a.Len(); i++ {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return a.Len() == b.Len()
	}
	return a.Equal(b)
}

// What is written is read back, and written again the same; what stands in front of it and
// behind it is untouched.
func TestRoundTrip(t *testing.T) {
	f := newFiller(1)
	f.tags = true
	eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
		for range 20 {
			m := f.message(s, v)
			b, err := m.Append([]byte("head"), v)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(b, []byte("head")) {
				t.Fatal("the head is gone")
			}
			again := s.make()
			rest, err := again.Read(append(b[4:len(b):len(b)], "tail"...), v)
			if err != nil || string(rest) != "tail" {
				t.Fatalf("rest %q, %v", rest, err)
			}
			if !same(reflect.ValueOf(m), reflect.ValueOf(again)) {
				t.Fatal(cmp.Diff(m, again, cmpopts.EquateEmpty()))
			}
			twice, err := again.Append(nil, v)
			if err != nil || !bytes.Equal(twice, b[4:]) {
				t.Fatalf("%x written again gives %x, %v", b[4:], twice, err)
			}
		}
	})
}

// Null and empty stay apart where a version has null.
func TestNullIsNotEmpty(t *testing.T) {
	eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
		for _, d := range schemaFields[s.name] {
			if v < d.nullLo || v > d.nullHi || v < d.lo || v > d.hi {
				continue
			}
			for _, null := range []bool{true, false} {
				m := s.make()
				m.Default()
				g := reflect.ValueOf(m).Elem().FieldByName(d.name)
				switch {
				case null:
					g.SetZero()
				case g.Kind() == reflect.Slice:
					g.Set(reflect.MakeSlice(g.Type(), 0, 0))
				default:
					g.Set(reflect.New(g.Type().Elem()))
				}
				b, err := m.Append(nil, v)
				if err != nil {
					t.Fatal(err)
				}
				again := s.make()
				if _, err := again.Read(b, v); err != nil {
					t.Fatal(err)
				}
				if got := reflect.ValueOf(again).Elem().FieldByName(d.name).IsNil(); got != null {
					t.Fatalf("%s: null %v was read as %v", d.name, null, got)
				}
			}
		}
	})
}

// Every cut makes a message malformed, and Read then leaves nothing half consumed.
func TestTruncation(t *testing.T) {
	f := newFiller(2)
	eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
		m := f.message(s, v)
		b, err := m.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			again := s.make()
			if rest, err := again.Read(b[:n:n], v); !errors.Is(err, ErrMalformed) || len(rest) != n {
				t.Fatalf("cut after %d of %d bytes: %d left, %v", n, len(b), len(rest), err)
			}
		}
	})
}

func TestVersionsOutsideTheSchema(t *testing.T) {
	for _, s := range schemaMessages {
		for _, v := range []int16{s.lo - 1, s.hi + 1} {
			m := s.make()
			if b, err := m.Append([]byte("x"), v); !errors.Is(err, ErrVersion) || string(b) != "x" {
				t.Errorf("%s: wrote version %d: %q, %v", s.name, v, b, err)
			}
			if _, err := m.Read(make([]byte, 100), v); !errors.Is(err, ErrVersion) {
				t.Errorf("%s: read version %d: %v", s.name, v, err)
			}
		}
	}
}

// What a version cannot carry is refused, unless the schema lets it be dropped.
func TestFieldsTheVersionLacks(t *testing.T) {
	f := newFiller(3)
	checked := 0
	eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
		for _, d := range schemaFields[s.name] {
			if v >= d.lo && v <= d.hi || d.hi < d.lo {
				continue
			}
			m := s.make()
			m.Default()
			g := reflect.ValueOf(m).Elem().FieldByName(d.name)
			before := fmt.Sprint(g.Interface())
			for fmt.Sprint(g.Interface()) == before || g.Kind() == reflect.Slice && g.Len() == 0 || g.Kind() == reflect.Pointer && g.Elem().Kind() == reflect.String && g.Elem().Len() == 0 {
				f.value(d.typ, g, d.lo, true)
			}
			_, err := m.Append(nil, v)
			if d.ignorable != (err == nil) || err != nil && !errors.Is(err, ErrVersion) {
				t.Fatalf("%s set to %v, ignorable %v: %v", d.name, g, d.ignorable, err)
			}
			checked++
		}
	})
	if checked < 300 {
		t.Errorf("only %d fields checked", checked)
	}
}

func TestAppendRefusals(t *testing.T) {
	long := string(make([]byte, 32768))
	name := "n"
	for fault, c := range map[string]struct {
		m Message
		v int16
	}{
		"string_too_long":       {&TopicRecord{Name: long}, 0},
		"null_topics_before_v1": {&MetadataRequest{}, 0},
		"null_name_before_v10":  {&MetadataRequest{Topics: []MetadataRequestMetadataRequestTopic{{}}, AllowAutoTopicCreation: true}, 9},
		"unknown_tags_in_v8":    {&ProduceRequest{UnknownTags: []RawTag{{Tag: 1}}}, 8},
		"unknown_tag_twice":     {&ProduceRequest{UnknownTags: []RawTag{{Tag: 1}, {Tag: 1}}}, 9},
		"unknown_tags_unsorted": {&ProduceRequest{UnknownTags: []RawTag{{Tag: 2}, {Tag: 1}}}, 9},
		"known_tag_as_unknown":  {&BeginTransactionRecord{Name: &name, UnknownTags: []RawTag{{Tag: 0}}}, 0},
	} {
		if b, err := c.m.Append([]byte("x"), c.v); !errors.Is(err, ErrVersion) || string(b) != "x" {
			t.Errorf("%s: wrote %d bytes, %v", fault, len(b), err)
		}
	}
}

// A tagged section with many or long fields needs more than one byte for its numbers.
func TestLongTags(t *testing.T) {
	m := RegisterBrokerRecord{}
	m.Default()
	for i := range 200 {
		m.UnknownTags = append(m.UnknownTags, RawTag{uint32(5 + i), make([]byte, i)})
	}
	for range 20 {
		m.LogDirs = append(m.LogDirs, [16]byte{1})
	}
	b, err := m.Append(nil, 4)
	if err != nil {
		t.Fatal(err)
	}
	var again RegisterBrokerRecord
	if rest, err := again.Read(b, 4); err != nil || len(rest) != 0 {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, again, cmpopts.EquateEmpty()); d != "" {
		t.Fatal(d)
	}
}

// Faults in what is read that are not cuts.
func TestReadRefusals(t *testing.T) {
	for fault, c := range map[string]struct {
		hex string
		v   int16
		m   Message
	}{
		"api_versions_bomb":          {"0261 0261 ffffffff0f", 3, &ApiVersionsRequest{}},
		"null_string":                {"00 0000", 0, &FeatureLevelRecord{}},
		"null_array":                 {"00 00", 0, &BeginQuorumEpochResponse{}},
		"varint_of_six_bytes":        {"808080808001", 0, &FeatureLevelRecord{}},
		"string_over_32767":          {"818002", 0, &FeatureLevelRecord{}},
		"tag_of_another_version":     {fetchV12WithTag1, 12, &FetchRequest{}},
		"known_tag_too_long":         {"01 00 03 02 61 ff", 0, &BeginTransactionRecord{}},
		"known_tag_too_short":        {"01 00 01 02 61", 0, &BeginTransactionRecord{}},
		"tag_size_past_the_end":      {"01 09 05 00", 0, &NoOpRecord{}},
		"more_tags_than_bytes_allow": {"03 05 00 06 00", 0, &NoOpRecord{}},
	} {
		if _, err := c.m.Read(unhex(t, c.hex), c.v); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", fault, c.m, err)
		}
	}
}

const fetchV12WithTag1 = "ffffffff 00000000 00000000 00000000 00 00000000 00000000 01 01 01 01 01 00"

// As in Kafka, tags may come in any order and the last of two wins.
func TestTagsInAnyOrder(t *testing.T) {
	var m BeginTransactionRecord
	if _, err := m.Read(unhex(t, "03 09 01 ff 00 02 02 61 00 02 02 62"), 0); err != nil || *m.Name != "b" || len(m.UnknownTags) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
}
