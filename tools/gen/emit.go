package main

import (
	"fmt"
	"strings"
	"unicode"
)

// out is the text of one file, with fmt's verbs.
type out struct{ strings.Builder }

func (o *out) p(format string, args ...any) {
	fmt.Fprintf(&o.Builder, format, args...)
	o.WriteByte('\n')
}

// emit gives every generated file by name.
func (p *pkg) emit(version string) map[string]string {
	files := map[string]*out{}
	for _, m := range p.messages {
		name := m.fileName()
		o := files[name]
		if o == nil {
			o = &out{}
			files[name] = o
		}
		for _, s := range m.structs {
			p.emitType(o, m, s)
			emitDefault(o, s)
			if s.needsIsDef {
				emitIsDefault(o, s)
			}
			emitAppend(o, s)
			emitRead(o, s)
		}
	}
	files["registry_gen.go"] = p.registry()
	files["schema_gen_test.go"] = p.testSchema()
	texts := map[string]string{}
	for name, o := range files {
		body := o.String()
		head := mark + version + "; DO NOT EDIT.\n\npackage protocol\n\n"
		if strings.Contains(body, "model.") {
			head += "import \"samsa/internal/base/model\"\n\n"
		}
		texts[name] = head + body
	}
	return texts
}

// fileName puts the two messages of an API key, or the key and value of a coordinator record, into one file.
func (m *message) fileName() string {
	switch m.Type {
	case "request", "response":
		stem := strings.TrimSuffix(strings.TrimSuffix(m.Name, "Request"), "Response")
		return fmt.Sprintf("%02d_%s.go", *m.ApiKey, snake(stem))
	case "coordinator-key", "coordinator-value":
		stem := strings.TrimSuffix(strings.TrimSuffix(m.Name, "Key"), "Value")
		return fmt.Sprintf("%s_%02d_%s.go", m.family, *m.ApiKey, snake(stem))
	case "metadata":
		return fmt.Sprintf("%s_%02d_%s.go", m.family, *m.ApiKey, snake(strings.TrimSuffix(m.Name, "Record")))
	case "header":
		return "header_gen.go"
	}
	return fmt.Sprintf("%s_%s.go", m.family, snake(m.Name))
}

func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.ReplaceAll(b.String(), "k_raft", "kraft")
}

func (p *pkg) emitType(o *out, m *message, s *structType) {
	if s == m.root {
		o.p("// %s is %s, versions %s.", s.name, describe(m), span(m))
	} else {
		o.p("// %s is part of %s.", s.name, m.Name)
	}
	o.p("type %s struct {", s.name)
	for _, f := range s.fields {
		o.p("%s %s%s", f.name, f.goType(), fieldNote(f, s))
	}
	if !s.flex.empty() {
		o.p("UnknownTags []RawTag")
	}
	o.p("}\n")
	if s != m.root {
		return
	}
	if m.ApiKey != nil && (m.Type == "request" || m.Type == "response") {
		o.p("func (*%s) ApiKey() int16 { return %d }\n", s.name, *m.ApiKey)
	} else if m.ApiKey != nil {
		o.p("func (*%s) RecordKey() int16 { return %d }\n", s.name, *m.ApiKey)
	}
	o.p("// Append writes m at version v behind dst.")
	o.p("func (m *%s) Append(dst []byte, v int16) ([]byte, error) {", s.name)
	o.p("w := writer{b: dst}")
	o.p("if w.version(v, %d, %d) {\nm.append(&w, v)\n}", m.valid.lo, m.valid.hi)
	o.p("return w.done(dst, %q, v)\n}\n", s.name)
	o.p("// Read replaces m by the message at the head of src.")
	o.p("func (m *%s) Read(src []byte, v int16) ([]byte, error) {", s.name)
	o.p("r := newReader(src)")
	o.p("*m = %s{}", s.name)
	o.p("if r.version(v, %d, %d) {\nm.read(&r, v)\n}", m.valid.lo, m.valid.hi)
	o.p("return r.done(src, %q, v)\n}\n", s.name)
}

func describe(m *message) string {
	switch m.Type {
	case "request", "response":
		return fmt.Sprintf("the %s of key %d", m.Type, *m.ApiKey)
	case "metadata":
		return fmt.Sprintf("record %d of the %s", *m.ApiKey, pick(m.family == "record", "metadata log", "remote log metadata topic"))
	case "coordinator-key":
		return fmt.Sprintf("the key of %s coordinator record %d", familyName[m.family], *m.ApiKey)
	case "coordinator-value":
		return fmt.Sprintf("the value of %s coordinator record %d", familyName[m.family], *m.ApiKey)
	case "header":
		return "a header"
	}
	return "a structure of its own"
}

var familyName = map[string]string{"group": "group", "txn": "transaction", "share": "share"}

func span(m *message) string {
	s := fmt.Sprint(m.valid.lo)
	if m.valid.hi != m.valid.lo {
		s += fmt.Sprintf("-%d", m.valid.hi)
	}
	if f := m.flex.and(m.valid); !f.empty() {
		s += fmt.Sprintf(", flexible from %d", f.lo)
	}
	if m.Unstable {
		s += ", the last one unstable"
	}
	return s
}

// fieldNote says, in the schemas' own short form, where a field differs from the plain case.
func fieldNote(f *field, s *structType) string {
	var n []string
	if f.versions != s.versions {
		n = append(n, short(f.versions, s.versions))
	}
	if f.isNullable() {
		if f.nullable == f.versions {
			n = append(n, "nullable")
		} else {
			n = append(n, "nullable "+short(f.nullable, f.versions))
		}
	}
	if f.tag >= 0 {
		n = append(n, fmt.Sprintf("tag %d", f.tag))
	}
	if f.def != "" && f.def != "0" && f.def != "false" && !(f.typ == "records") {
		n = append(n, "default "+f.def)
	}
	if f.ignore && f.versions != s.versions {
		n = append(n, "ignorable")
	}
	if len(n) == 0 {
		return ""
	}
	return " // " + strings.Join(n, ", ")
}

func short(v, within versions) string {
	switch {
	case v.empty():
		return "in no version"
	case v.hi == within.hi:
		return fmt.Sprintf("v%d+", v.lo)
	case v.lo == v.hi:
		return fmt.Sprintf("v%d", v.lo)
	}
	return fmt.Sprintf("v%d-%d", v.lo, v.hi)
}

// literal is the Go value of f's default, or "" when it is Go's zero value.
func (f *field) literal() string {
	switch {
	case f.array:
		return pick(f.isNullable() && !f.nullDefault(), f.goType()+"{}", "")
	case f.strct != nil:
		return ""
	case f.typ == "string" && f.isNullable():
		if f.nullDefault() {
			return ""
		}
		if f.def != "" {
			panic("nullable string with a default text: " + f.name)
		}
		return "new(string)"
	case f.typ == "string":
		return pick(f.def == "", "", fmt.Sprintf("%q", f.def))
	case f.typ == "bytes" || f.typ == "records":
		return pick(f.isNullable() && !f.nullDefault(), "[]byte{}", "")
	case f.typ == "uuid":
		if f.def != "" {
			panic("uuid with a default: " + f.name)
		}
		return ""
	case f.typ == "float64":
		return pick(f.def == "0" || f.def == "0.0", "", f.def)
	}
	return pick(f.def == "0" || f.def == "false", "", f.def)
}

func emitDefault(o *out, s *structType) {
	o.p("// Default resets m to the schema's defaults.")
	o.p("func (m *%s) Default() {", s.name)
	var set []string
	for _, f := range s.fields {
		if l := f.literal(); l != "" {
			set = append(set, f.name+": "+l)
		} else if f.strct != nil && !f.array && f.isNullable() && !f.nullDefault() {
			set = append(set, fmt.Sprintf("%s: new(%s)", f.name, f.strct.name))
		}
	}
	o.p("*m = %s{%s}", s.name, strings.Join(set, ", "))
	for _, f := range s.fields {
		if f.strct != nil && !f.array && !f.nullDefault() && hasDefaults(f.strct) {
			o.p("m.%s.Default()", f.name)
		}
	}
	o.p("}\n")
}

// hasDefaults: whether Default gives anything but the zero value.
func hasDefaults(s *structType) bool {
	for _, f := range s.fields {
		if f.literal() != "" {
			return true
		}
		if f.strct != nil && !f.array && (f.isNullable() && !f.nullDefault() || !f.isNullable() && hasDefaults(f.strct)) {
			return true
		}
	}
	return false
}

// differs is the condition that f holds something other than its default. With lost set the
// question is only whether leaving it out would lose something: null and empty are then the same.
func (f *field) differs(lost bool) string {
	x := "m." + f.name
	nullable := f.isNullable()
	switch {
	case f.array || f.typ == "bytes" || f.typ == "records":
		switch {
		case nullable && f.nullDefault() || f.typ == "records" && f.nullDefault():
			return x + " != nil"
		case nullable && !lost:
			return fmt.Sprintf("%s == nil || len(%s) != 0", x, x)
		}
		return fmt.Sprintf("len(%s) != 0", x)
	case f.strct != nil:
		switch {
		case nullable && f.nullDefault():
			return x + " != nil"
		case nullable && lost:
			return fmt.Sprintf("%s != nil && !%s.isDefault()", x, x)
		case nullable:
			return fmt.Sprintf("%s == nil || !%s.isDefault()", x, x)
		}
		return fmt.Sprintf("!%s.isDefault()", x)
	case f.typ == "string" && nullable:
		switch {
		case f.nullDefault():
			return x + " != nil"
		case lost:
			return fmt.Sprintf("%s != nil && *%s != \"\"", x, x)
		}
		return fmt.Sprintf("%s == nil || *%s != \"\"", x, x)
	case f.typ == "string":
		return fmt.Sprintf("%s != %q", x, f.def)
	case f.typ == "uuid":
		return x + " != (model.UUID{})"
	case f.typ == "bool":
		return pick(f.def == "true", "!"+x, x)
	}
	return fmt.Sprintf("%s != %s", x, f.def)
}

func emitIsDefault(o *out, s *structType) {
	o.p("func (m *%s) isDefault() bool {", s.name)
	var conds []string
	for _, f := range s.fields {
		conds = append(conds, f.differs(false))
	}
	if !s.flex.empty() {
		conds = append(conds, "len(m.UnknownTags) != 0")
	}
	o.p("return !(%s)\n}\n", strings.Join(conds, " || "))
}
