package protocol

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"

	"samsa/internal/base/model"
)

// filler makes messages that are legal at a version, from the schema tables in schema_gen_test.go.
type filler struct {
	*rand.Rand
	depth  int
	tags   bool // add unknown tagged fields
	honest bool // as real traffic: no empty names, 400 elements in arrays at the top, few below
}

func newFiller(seed uint64) *filler { return &filler{Rand: rand.New(rand.NewPCG(seed, 4))} }

// message fills a new message of the schema for the version.
func (f *filler) message(s schemaMessage, version int16) Message {
	m := s.make()
	f.fill(s.name, reflect.ValueOf(m).Elem(), version, version >= s.flex)
	return m
}

func (f *filler) fill(name string, v reflect.Value, version int16, flex bool) {
	f.depth++
	defer func() { f.depth-- }()
	v.Addr().Interface().(interface{ Default() }).Default()
	for _, d := range schemaFields[name] {
		if version < d.lo || version > d.hi || !f.honest && f.IntN(4) == 0 {
			continue
		}
		nullable := version >= d.nullLo && version <= d.nullHi
		g := v.FieldByName(d.name)
		if nullable && f.IntN(4) == 0 {
			g.SetZero()
			continue
		}
		f.value(d.typ, g, version, flex)
	}
	if f.tags && flex && f.IntN(3) == 0 {
		if g := v.FieldByName("UnknownTags"); g.IsValid() {
			g.Set(reflect.ValueOf(f.rawTags()))
		}
	}
}

func (f *filler) rawTags() []RawTag {
	var tags []RawTag
	tag := uint32(20)
	for range f.IntN(3) {
		tag += 1 + uint32(f.IntN(200))
		tags = append(tags, RawTag{tag, f.data(f.IntN(300))})
	}
	return tags
}

func (f *filler) value(typ string, g reflect.Value, version int16, flex bool) {
	if elem, ok := strings.CutPrefix(typ, "[]"); ok {
		n := f.IntN(4)
		if f.honest {
			n = pick(f.depth <= 1, 400, 1+f.IntN(3))
		}
		g.Set(reflect.MakeSlice(g.Type(), n, n))
		for i := range n {
			f.value(elem, g.Index(i), version, flex)
		}
		return
	}
	if g.Kind() == reflect.Pointer {
		g.Set(reflect.New(g.Type().Elem()))
		g = g.Elem()
	}
	switch typ {
	case "bool":
		g.SetBool(f.IntN(2) == 0)
	case "int8", "int16", "int32", "int64":
		g.SetInt(f.integer() >> (64 - g.Type().Bits()) << f.IntN(2))
	case "uint16", "uint32":
		g.SetUint(f.Uint64() >> (64 - g.Type().Bits()))
	case "float64":
		g.SetFloat(math.Trunc(f.NormFloat64()*1e6) / 64)
	case "uuid":
		var u model.UUID
		for i := range u {
			u[i] = byte(f.Uint32())
		}
		g.Set(reflect.ValueOf(u))
	case "string":
		g.SetString(f.text())
	case "bytes", "records":
		g.SetBytes(f.data(f.IntN(40)))
	default:
		f.fill(typ, g, version, flex)
	}
}

func (f *filler) integer() int64 {
	switch f.IntN(6) {
	case 0:
		return math.MaxInt64
	case 1:
		return math.MinInt64
	}
	return int64(f.Uint64())
}

func (f *filler) text() string {
	if f.honest {
		return "t1234-orders"[:5+f.IntN(8)]
	}
	switch f.IntN(12) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("Kafka–Строка☕𝄞", 1+f.IntN(8))
	case 2:
		return strings.Repeat("x", 110+f.IntN(40))
	}
	return strconv.FormatUint(f.Uint64(), 36)[:1+f.IntN(8)]
}

func (f *filler) data(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.Uint32())
	}
	return b
}

// toJSON gives a message in the form of Kafka's JSON converters.
func toJSON(name string, v reflect.Value, version int16) map[string]any {
	o := map[string]any{}
	for _, d := range schemaFields[name] {
		if version >= d.lo && version <= d.hi {
			o[strings.ToLower(d.name[:1])+d.name[1:]] = jsonValue(d.typ, v.FieldByName(d.name), version, version >= d.nullLo && version <= d.nullHi)
		}
	}
	return o
}

func jsonValue(typ string, g reflect.Value, version int16, nullable bool) any {
	if nullable && (g.Kind() == reflect.Pointer || g.Kind() == reflect.Slice) && g.IsNil() {
		return nil
	}
	if elem, ok := strings.CutPrefix(typ, "[]"); ok {
		list := []any{}
		for i := range g.Len() {
			list = append(list, jsonValue(elem, g.Index(i), version, false))
		}
		return list
	}
	if g.Kind() == reflect.Pointer {
		g = g.Elem()
	}
	switch typ {
	case "uuid":
		return g.Interface().(model.UUID).String()
	case "bytes", "records":
		return base64.StdEncoding.EncodeToString(g.Bytes())
	case "float64":
		s := strconv.FormatFloat(g.Float(), 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return json.RawMessage(s)
	case "bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "string":
		return g.Interface()
	}
	return toJSON(typ, g, version)
}
