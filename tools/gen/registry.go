package main

import (
	"fmt"
	"sort"
	"strings"
)

// registry is the table of API keys, metadata records and coordinator records.
func (p *pkg) registry() *out {
	o := &out{}
	type api struct{ req, resp *message }
	apis := map[int16]*api{}
	var keys []int16
	for _, m := range p.messages {
		if m.Type != "request" && m.Type != "response" {
			continue
		}
		a := apis[*m.ApiKey]
		if a == nil {
			a = &api{}
			apis[*m.ApiKey] = a
			keys = append(keys, *m.ApiKey)
		}
		if m.Type == "request" {
			a.req = m
		} else {
			a.resp = m
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	name := func(k int16) string { return strings.TrimSuffix(apis[k].req.Name, "Request") }

	o.p("// The API keys of Kafka's requests; keys 4 to 7 are gone since 4.0.\nconst (")
	for _, k := range keys {
		o.p("Key%s int16 = %d", name(k), k)
	}
	o.p(")\n")
	o.p("// apis is indexed by API key.\nvar apis = [...]api{")
	for _, k := range keys {
		a := apis[k]
		unstable := -1
		if a.req.Unstable {
			unstable = a.req.valid.hi
		}
		o.p("%d: {%q, %d, %d, %d, %d, %d, %d, func() Request { return new(%s) }, func() Response { return new(%s) }},",
			k, name(k), listeners(a.req.Listeners), a.req.valid.lo, a.req.valid.hi, unstable, flexFrom(a.req), flexFrom(a.resp), a.req.Name, a.resp.Name)
	}
	o.p("}\n")

	o.records(p, "metadata", "record", "metadataRecords", "The keys of the records of the metadata log.", "Record%s", "Record")
	o.records(p, "metadata", "storage", "remoteRecords", "The keys of the records of the remote log metadata topic.", "Tiered%s", "Record")
	for _, f := range []string{"group", "txn", "share"} {
		long := strings.ToUpper(familyName[f][:1]) + familyName[f][1:]
		o.records(p, "coordinator-key", f, f+"Keys", "The types of the "+familyName[f]+" coordinator's records.", long+"Record%s", "Key")
		o.records(p, "coordinator-value", f, f+"Values", "", "", "Value")
	}

	o.p("// standalone gives every message that is found by name only.\nvar standalone = map[string]record{")
	for _, m := range p.messages {
		if m.ApiKey == nil {
			o.p("%q: %s,", m.Name, entry(m))
		}
	}
	o.p("}\n")
	return o
}

func listeners(ls []string) int {
	n := 0
	for _, l := range ls {
		switch l {
		case "broker":
			n |= 1
		case "controller":
			n |= 2
		}
	}
	return n
}

func flexFrom(m *message) int {
	if f := m.flex.and(m.valid); !f.empty() {
		return f.lo
	}
	return maxVersion
}

func entry(m *message) string {
	return fmt.Sprintf("{%q, %d, %d, func() Message { return new(%s) }}", m.Name, m.valid.lo, m.valid.hi, m.Name)
}

func (o *out) records(p *pkg, typ, family, table, doc, constant, suffix string) {
	var ms []*message
	for _, m := range p.messages {
		if m.Type == typ && m.family == family {
			ms = append(ms, m)
		}
	}
	sort.Slice(ms, func(i, j int) bool { return *ms[i].ApiKey < *ms[j].ApiKey })
	if constant != "" {
		o.p("// %s\nconst (", doc)
		for _, m := range ms {
			o.p("%s int16 = %d", fmt.Sprintf(constant, strings.TrimSuffix(m.Name, suffix)), *m.ApiKey)
		}
		o.p(")\n")
	}
	o.p("var %s = map[int16]record{", table)
	for _, m := range ms {
		o.p("%d: %s,", *m.ApiKey, entry(m))
	}
	o.p("}\n")
}

// testSchema describes every struct for the package's tests, which fill messages at random and
// must know what a version allows.
func (p *pkg) testSchema() *out {
	o := &out{}
	o.p("// schemaFields describes every struct: per field its name, its versions, the versions it may be null in,\n" +
		"// its tag (-1: none), whether it may be dropped, and its type.")
	o.p("var schemaFields = map[string][]schemaField{")
	for _, m := range p.messages {
		for _, s := range m.structs {
			o.p("%q: {", s.name)
			for _, f := range s.fields {
				t := f.typ
				if f.strct != nil {
					t = f.strct.name
				}
				if f.array {
					t = "[]" + t
				}
				o.p("{%q, %q, %d, %d, %d, %d, %d, %t, %t},", f.name, t, f.versions.lo, f.versions.hi, f.nullable.lo, f.nullable.hi, f.tag, f.ignore, f.nullDefault())
			}
			o.p("},")
		}
	}
	o.p("}\n")
	o.p("// schemaMessages names every message with its family, versions and first flexible version.")
	o.p("var schemaMessages = []schemaMessage{")
	for _, m := range p.messages {
		key := -1
		if m.ApiKey != nil {
			key = int(*m.ApiKey)
		}
		o.p("{%q, %q, %q, %d, %d, %d, %d, func() Message { return new(%s) }},", m.Name, m.Type, m.family, key, m.valid.lo, m.valid.hi, flexFrom(m), m.Name)
	}
	o.p("}")
	return o
}
