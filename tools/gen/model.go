package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// pkg is everything that will be written, in Go's terms.
type pkg struct {
	messages []*message
	structs  map[string]*structType // by Go name, to refuse a name given twice
}

type message struct {
	*schema
	valid, flex versions
	root        *structType
	structs     []*structType // root first, then in order of first use
}

type structType struct {
	name       string // Go name
	versions   versions
	flex       versions
	fields     []*field
	needsIsDef bool
}

type field struct {
	name     string // Go name
	typ      string // Kafka's type, without []
	array    bool
	strct    *structType
	versions versions
	nullable versions
	tagged   versions
	tag      int
	flex     *versions // overrides the message's
	def      string
	ignore   bool
}

func build(schemas []*schema) (*pkg, error) {
	p := &pkg{structs: map[string]*structType{}}
	for _, s := range schemas {
		m := &message{schema: s}
		var err error
		if m.valid, err = parseVersions(s.ValidVersions); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		if m.flex, err = parseVersions(s.Flexible); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		if err := p.buildMessage(m); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		p.messages = append(p.messages, m)
	}
	return p, nil
}

func (p *pkg) buildMessage(m *message) error {
	common := map[string]int{}
	for i, c := range m.Common {
		common[c.Name] = i
	}
	known := map[string]*structType{}
	var strct func(name string, v versions, raw []rawField) (*structType, error)
	build := func(f rawField, within versions) (*field, error) {
		g, err := newField(f, within)
		if err != nil || primitive[g.typ] != "" || g.typ == "string" || g.typ == "bytes" || g.typ == "records" {
			return g, err
		}
		raw, v := f.Fields, g.versions
		if i, ok := common[g.typ]; ok {
			raw = m.Common[i].Fields
			if v, err = parseVersions(m.Common[i].Versions); err != nil {
				return nil, err
			}
			v = v.and(m.valid)
		}
		if s, ok := known[g.typ]; ok {
			g.strct = s
			return g, nil
		}
		if len(raw) == 0 {
			return nil, fmt.Errorf("%s: type %s is not known", f.Name, f.Type)
		}
		g.strct, err = strct(m.Name+g.typ, v, raw)
		known[g.typ] = g.strct
		return g, err
	}
	strct = func(name string, v versions, raw []rawField) (*structType, error) {
		if p.structs[name] != nil {
			return nil, fmt.Errorf("two structs are called %s", name)
		}
		s := &structType{name: name, versions: v, flex: m.flex.and(v)}
		p.structs[name] = s
		m.structs = append(m.structs, s)
		for _, f := range raw {
			g, err := build(f, v)
			if err != nil {
				return nil, err
			}
			s.fields = append(s.fields, g)
		}
		return s, nil
	}
	var err error
	m.root, err = strct(m.Name, m.valid, m.Fields)
	if err != nil {
		return err
	}
	for _, s := range m.structs {
		for _, f := range s.fields {
			if f.strct != nil && !f.array && (f.tag >= 0 || f.versions != s.versions) {
				markIsDefault(f.strct)
			}
		}
	}
	return nil
}

func markIsDefault(s *structType) {
	s.needsIsDef = true
	for _, f := range s.fields {
		if f.strct != nil && !f.array {
			markIsDefault(f.strct)
		}
	}
}

func newField(f rawField, within versions) (*field, error) {
	g := &field{name: strings.ToUpper(f.Name[:1]) + f.Name[1:], tag: -1, ignore: f.Ignorable}
	g.typ, g.array = strings.TrimPrefix(f.Type, "[]"), strings.HasPrefix(f.Type, "[]")
	var errs [4]error
	if f.Versions == "" {
		f.Versions = f.Tagged
	}
	g.versions, errs[0] = parseVersions(f.Versions)
	g.nullable, errs[1] = parseVersions(f.Nullable)
	g.tagged, errs[2] = parseVersions(f.Tagged)
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	g.versions = g.versions.and(within)
	g.nullable = g.nullable.and(g.versions)
	g.tagged = g.tagged.and(g.versions)
	if f.Tag != nil && !g.tagged.empty() {
		g.tag = *f.Tag
		if g.tagged != g.versions {
			return nil, fmt.Errorf("%s: tagged in some of its versions only", f.Name)
		}
	}
	if f.Flexible != nil {
		v, err := parseVersions(*f.Flexible)
		if err != nil {
			return nil, err
		}
		g.flex = &v
	}
	// A JSON null is no default at all: only the text "null" makes null the default.
	if len(f.Default) > 0 && string(f.Default) != "null" {
		if f.Default[0] == '"' {
			if err := json.Unmarshal(f.Default, &g.def); err != nil {
				return nil, err
			}
		} else {
			g.def = string(f.Default)
		}
	}
	if g.typ == "records" && !g.array {
		g.def = "null"
	}
	if g.def == "" && primitive[g.typ] != "" && !g.array {
		switch g.typ {
		case "bool":
			g.def = "false"
		case "uuid":
		default:
			g.def = "0"
		}
	}
	return g, nil
}

// primitive maps Kafka's fixed-size types to Go's; fixedSize is their size on the wire.
var primitive = map[string]string{
	"bool": "bool", "int8": "int8", "int16": "int16", "uint16": "uint16", "int32": "int32", "uint32": "uint32",
	"int64": "int64", "float64": "float64", "uuid": "model.UUID",
}

var fixedSize = map[string]int{
	"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16,
}

// isNullable: whether Go needs to tell null apart, in any version the message has.
func (f *field) isNullable() bool { return !f.nullable.empty() }

func (f *field) goType() string {
	base := primitive[f.typ]
	switch {
	case f.strct != nil:
		base = f.strct.name
	case f.typ == "string":
		base = "string"
	case f.typ == "bytes" || f.typ == "records":
		base = "[]byte"
	}
	switch {
	case f.array:
		return "[]" + base
	case f.isNullable() && (f.strct != nil || f.typ == "string"):
		return "*" + base
	}
	return base
}

func (f *field) nullDefault() bool { return f.def == "null" }

// minSize is the least number of bytes a value of s can take in any of the given versions.
func (s *structType) minSize(vs versions, flex bool) int {
	least := -1
	for v := vs.lo; v <= vs.hi; v++ {
		at := versions{v, v}
		n := 0
		for _, f := range s.fields {
			if f.versions.and(at).empty() || f.tag >= 0 {
				continue
			}
			fflex := flex
			if f.flex != nil {
				fflex = !f.flex.and(at).empty()
			}
			switch {
			case f.array || f.typ == "bytes" || f.typ == "records":
				n += pick(fflex, 1, 4)
			case f.typ == "string":
				n += pick(fflex, 1, 2)
			case f.strct != nil && !f.nullable.and(at).empty():
				n++
			case f.strct != nil:
				n += f.strct.minSize(at, flex)
			default:
				n += fixedSize[f.typ]
			}
		}
		if flex {
			n++
		}
		if least < 0 || n < least {
			least = n
		}
	}
	return max(least, 0)
}

func pick[T any](cond bool, a, b T) T {
	if cond {
		return a
	}
	return b
}

// byTag is the tagged fields in the order they are written.
func (s *structType) byTag() []*field {
	var t []*field
	for _, f := range s.fields {
		if f.tag >= 0 {
			t = append(t, f)
		}
	}
	sort.Slice(t, func(i, j int) bool { return t[i].tag < t[j].tag })
	return t
}
