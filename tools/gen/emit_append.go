package main

import "fmt"

// flexArg is the Go expression "this version uses the flexible encoding" for a field present in vs.
func (s *structType) flexArg(f *field, vs versions) string {
	flex := s.flex
	if f.flex != nil {
		flex = f.flex.and(s.versions)
	}
	_, all, never := test(flex, vs)
	switch {
	case all:
		return "true"
	case never:
		return "false"
	}
	return "flex"
}

// usesFlex: whether the methods of s need the variable flex.
func (s *structType) usesFlex() bool {
	_, all, never := test(s.flex, s.versions)
	return !all && !never
}

func emitAppend(o *out, s *structType) {
	o.p("func (m *%s) append(w *writer, v int16) {", s.name)
	if s.usesFlex() {
		cond, _, _ := test(s.flex, s.versions)
		o.p("flex := %s", cond)
	}
	for _, f := range s.fields {
		cond, all, never := test(f.versions, s.versions)
		if never {
			continue
		}
		lost := fmt.Sprintf("if %s {\nw.lacks(%q)\n}", f.differs(true), s.name+"."+f.name)
		if f.tag >= 0 {
			if !all && !f.ignore {
				o.p("if %s && (%s) {\nw.lacks(%q)\n}", notTest(f.versions, s.versions), f.differs(true), s.name+"."+f.name)
			}
			continue
		}
		if all {
			s.emitWrite(o, f, f.versions)
			continue
		}
		o.p("if %s {", cond)
		s.emitWrite(o, f, f.versions)
		if f.ignore {
			o.p("}")
		} else {
			o.p("} else %s", lost)
		}
	}
	if s.flex.empty() {
		o.p("}\n")
		return
	}
	closeIf := ""
	if s.usesFlex() {
		o.p("if flex {")
		closeIf = "} else if len(m.UnknownTags) != 0 {\nw.lacks(" + fmt.Sprintf("%q", s.name+".UnknownTags") + ")\n}"
	}
	tags := s.byTag()
	if len(tags) == 0 {
		o.p("w.tags(m.UnknownTags)")
	} else {
		o.p("t := w.openTags(m.UnknownTags)")
		for _, f := range tags {
			cond, all, _ := test(f.versions, s.flex)
			differs := f.differs(false)
			if !all {
				differs = fmt.Sprintf("%s && (%s)", cond, differs)
			}
			o.p("if %s {", differs)
			o.p("at := t.open(w, %d)", f.tag)
			if f.strct != nil && !f.array && f.isNullable() {
				if f.nullDefault() {
					o.p("w.uvarint(1)\nm.%s.append(w, v)", f.name)
				} else {
					o.p("if m.%s == nil {\nw.uvarint(0)\n} else {\nw.uvarint(1)\nm.%s.append(w, v)\n}", f.name, f.name)
				}
			} else {
				s.emitWrite(o, f, f.versions)
			}
			o.p("t.close(w, at)\n}")
		}
		o.p("t.end(w)")
	}
	if closeIf != "" {
		o.p("%s", closeIf)
	}
	o.p("}\n")
}

// emitWrite writes the value of f, present in all of vs.
func (s *structType) emitWrite(o *out, f *field, vs versions) {
	x := "m." + f.name
	flex := s.flexArg(f, vs)
	nullable := f.isNullable()
	if nullable && f.nullable != vs {
		cond := notTest(f.nullable, vs)
		o.p("if %s && %s == nil {\nw.null(%q)\n}", cond, x, s.name+"."+f.name)
	}
	switch {
	case f.array:
		if f.strct != nil {
			if nullable {
				o.p("w.ncount(len(%s), %s == nil, %s)", x, x, flex)
			} else {
				o.p("w.count(len(%s), %s)", x, flex)
			}
			o.p("for i := range %s {\n%s[i].append(w, v)\n}", x, x)
			return
		}
		o.p("w.%ss(%s, %s, %t)", helper(f.typ), x, flex, nullable)
	case f.strct != nil && nullable:
		o.p("if %s == nil {\nw.int8(-1)\n} else {\nw.int8(1)\n%s.append(w, v)\n}", x, x)
	case f.strct != nil:
		o.p("%s.append(w, v)", x)
	case f.typ == "string" && nullable:
		o.p("w.nstr(%s, %s)", x, flex)
	case f.typ == "string":
		o.p("w.str(%s, %s)", x, flex)
	case f.typ == "bytes" || f.typ == "records":
		o.p("w.%s(%s, %s, %t)", f.typ, x, flex, nullable)
	default:
		o.p("w.%s(%s)", f.typ, x)
	}
}

func helper(typ string) string {
	if typ == "string" {
		return "str"
	}
	return typ
}
