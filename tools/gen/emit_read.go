package main

import "fmt"

func emitRead(o *out, s *structType) {
	o.p("func (m *%s) read(r *reader, v int16) {", s.name)
	if s.usesFlex() {
		cond, _, _ := test(s.flex, s.versions)
		o.p("flex := %s", cond)
	}
	for _, f := range s.fields {
		if f.tag < 0 {
			continue
		}
		if l := f.literal(); l != "" {
			o.p("m.%s = %s", f.name, l)
		} else if f.strct != nil && !f.array && !f.nullDefault() {
			if f.isNullable() {
				o.p("m.%s = new(%s)", f.name, f.strct.name)
			}
			if hasDefaults(f.strct) {
				o.p("m.%s.Default()", f.name)
			}
		}
	}
	for _, f := range s.fields {
		if f.tag >= 0 {
			continue
		}
		cond, all, never := test(f.versions, s.versions)
		if all {
			s.emitReadValue(o, f, f.versions)
			continue
		}
		absent := ""
		if l := f.literal(); l != "" {
			absent = fmt.Sprintf("m.%s = %s", f.name, l)
		} else if f.strct != nil && !f.array && !f.nullDefault() {
			if f.isNullable() {
				panic("nullable struct that is not null by default: " + f.name)
			}
			if hasDefaults(f.strct) {
				absent = fmt.Sprintf("m.%s.Default()", f.name)
			}
		}
		if never {
			o.p("%s", absent)
			continue
		}
		o.p("if %s {", cond)
		s.emitReadValue(o, f, f.versions)
		if absent != "" {
			o.p("} else {\n%s\n}", absent)
		} else {
			o.p("}")
		}
	}
	if s.flex.empty() {
		o.p("}\n")
		return
	}
	if s.usesFlex() {
		o.p("if flex {")
	}
	tags := s.byTag()
	if len(tags) == 0 {
		o.p("m.UnknownTags = r.tags()")
	} else {
		o.p("for n := r.tagCount(); n > 0 && r.ok(); n-- {")
		o.p("tag, rest := r.openTag()")
		o.p("switch tag {")
		for _, f := range tags {
			o.p("case %d:", f.tag)
			if _, all, _ := test(f.versions, s.flex); !all {
				o.p("if %s {\nr.fail(\"a tag this version does not have\")\nreturn\n}", notTest(f.versions, s.flex))
			}
			if f.strct != nil && !f.array && f.isNullable() {
				o.p("if r.uvarint() == 0 {\nm.%s = nil\n} else {", f.name)
				o.p("m.%s = newStruct[%s](r)\nm.%s.read(r, v)\n}", f.name, f.strct.name, f.name)
			} else {
				if f.strct != nil && !f.array {
					o.p("m.%s = %s{}", f.name, f.strct.name)
				} else if f.array && f.strct != nil {
					o.p("m.%s = nil", f.name)
				}
				s.emitReadValue(o, f, f.versions)
			}
		}
		o.p("default:\nm.UnknownTags = r.rawTag(m.UnknownTags, tag)\n}")
		o.p("r.closeTag(rest)\n}")
	}
	if s.usesFlex() {
		o.p("}")
	}
	o.p("}\n")
}

// emitReadValue reads the value of f, present in all of vs.
func (s *structType) emitReadValue(o *out, f *field, vs versions) {
	x := "m." + f.name
	flex := s.flexArg(f, vs)
	nullable := f.isNullable()
	switch {
	case f.array && f.strct != nil:
		at := f.strct.versions.and(vs)
		least := fmt.Sprint(f.strct.minSize(at, flex == "true"))
		if flex == "flex" {
			a, b := f.strct.minSize(at.and(s.flex), true), f.strct.minSize(at.minus(s.flex), false)
			least = fmt.Sprint(a)
			if a != b {
				least = fmt.Sprintf("pick(flex, %d, %d)", a, b)
			}
		}
		loop := fmt.Sprintf("for i := 0; i < n; i++ {\ne := extend(r, &%s, n)\nif e == nil {\nreturn\n}\ne.read(r, v)\n}", x)
		if nullable {
			o.p("if n := r.ncount(%s, %s); n >= 0 {", flex, least)
			o.p("%s = %s{}", x, f.goType())
			o.p("%s\n}", loop)
		} else {
			o.p("for i, n := 0, r.count(%s, %s); i < n; i++ {", flex, least)
			o.p("e := extend(r, &%s, n)\nif e == nil {\nreturn\n}\ne.read(r, v)\n}", x)
		}
	case f.array:
		o.p("%s = r.%ss(%s, %t)", x, helper(f.typ), flex, nullable)
	case f.strct != nil && nullable:
		o.p("if r.int8() >= 0 {\n%s = newStruct[%s](r)\n%s.read(r, v)\n}", x, f.strct.name, x)
	case f.strct != nil:
		o.p("%s.read(r, v)", x)
	case f.typ == "string" && nullable:
		o.p("%s = r.nstr(%s)", x, flex)
	case f.typ == "string":
		o.p("%s = r.str(%s)", x, flex)
	case f.typ == "bytes" || f.typ == "records":
		o.p("%s = r.bytes(%s, %t)", x, flex, nullable)
	default:
		o.p("%s = r.%s()", x, f.typ)
	}
	if nullable && f.nullable != vs {
		o.p("if %s && %s == nil {\nr.fail(\"null where this version has none\")\n}", notTest(f.nullable, vs), x)
	}
}
