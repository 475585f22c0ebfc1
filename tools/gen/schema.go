package main

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// jars that hold schemas, and the name their records go by in file names and the registry.
var jars = []struct{ artifact, family string }{
	{"kafka-clients", "data"},
	{"kafka-metadata", "record"},
	{"kafka-raft", "raft"},
	{"kafka-group-coordinator", "group"},
	{"kafka-transaction-coordinator", "txn"},
	{"kafka-share-coordinator", "share"},
	{"kafka-storage", "storage"},
}

type schema struct {
	family        string
	Name          string     `json:"name"`
	Type          string     `json:"type"`
	ApiKey        *int16     `json:"apiKey"`
	ValidVersions string     `json:"validVersions"`
	Flexible      string     `json:"flexibleVersions"`
	Unstable      bool       `json:"latestVersionUnstable"`
	Listeners     []string   `json:"listeners"`
	Fields        []rawField `json:"fields"`
	Common        []struct {
		Name     string     `json:"name"`
		Versions string     `json:"versions"`
		Fields   []rawField `json:"fields"`
	} `json:"commonStructs"`
}

type rawField struct {
	Name      string          `json:"name"`
	Type      string          `json:"type"`
	Versions  string          `json:"versions"`
	Nullable  string          `json:"nullableVersions"`
	Tagged    string          `json:"taggedVersions"`
	Tag       *int            `json:"tag"`
	Flexible  *string         `json:"flexibleVersions"`
	Default   json.RawMessage `json:"default"`
	Ignorable bool            `json:"ignorable"`
	Fields    []rawField      `json:"fields"`
}

var schemaPath = regexp.MustCompile(`^(common/)?(message|metadata)/[A-Za-z0-9]+\.json$`)

// loadSchemas reads every schema of the jars, sorted by name, and the jars' version.
func loadSchemas(dir string) (version string, all []*schema, err error) {
	for _, j := range jars {
		found, err := filepath.Glob(filepath.Join(dir, j.artifact+"-[0-9]*.jar"))
		if err != nil {
			return "", nil, err
		}
		if len(found) != 1 {
			return "", nil, fmt.Errorf("%d files %s-<version>.jar in %s, want one", len(found), j.artifact, dir)
		}
		v := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), j.artifact+"-"), ".jar")
		if version != "" && v != version {
			return "", nil, fmt.Errorf("jars of versions %s and %s in %s", version, v, dir)
		}
		version = v
		some, err := readJar(found[0], j.family)
		if err != nil {
			return "", nil, err
		}
		all = append(all, some...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return version, all, nil
}

func readJar(path, family string) ([]*schema, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var all []*schema
	for _, f := range z.File {
		if !schemaPath.MatchString(f.Name) {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, f.Name, err)
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, f.Name, err)
		}
		s := &schema{family: family}
		if err := json.Unmarshal(stripComments(b), s); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, f.Name, err)
		}
		if s.ValidVersions == "none" || s.Name == "ControlRecordTypeSchema" {
			continue // a key retired by Kafka 4.0, or a type that is only a bare int16
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no schemas", path)
	}
	return all, nil
}

// stripComments blanks // comments outside of strings.
func stripComments(b []byte) []byte {
	out := make([]byte, 0, len(b))
	inString := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			out = append(out, c, b[i+1])
			i++
			continue
		case c == '"':
			inString = !inString
		case !inString && c == '/' && i+1 < len(b) && b[i+1] == '/':
			for i < len(b) && b[i] != '\n' {
				i++
			}
			out = append(out, '\n')
			continue
		}
		out = append(out, b[i])
	}
	return out
}
