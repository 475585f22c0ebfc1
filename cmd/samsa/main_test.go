package main

import (
	"bytes"
	"strings"
	"testing"
)

// Design 3: exit codes 0 done, 1 refused or failed, 2 wrong usage; storage exits 1 for wrong usage too (J-33).
func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"help":            {[]string{"--help"}, 0, "storage", ""},
		"unknown_command": {[]string{"frobnicate"}, 2, "", `unknown command "frobnicate"`},
		"unknown_flag":    {[]string{"--frobnicate"}, 2, "", "samsa: error: unknown flag: --frobnicate"},
		"storage_alone":   {[]string{"storage"}, 1, "", "invalid choice: '' (choose from"},
		"storage_unknown": {[]string{"storage", "frobnicate"}, 1, "", "invalid choice: 'frobnicate'"},
		"storage_flag":    {[]string{"storage", "info", "--frobnicate"}, 1, "", "samsa storage info: error: unknown flag: --frobnicate"},
		"storage_help":    {[]string{"storage", "format", "-h"}, 0, "--cluster-id", ""},
		"random_uuid":     {[]string{"storage", "random-uuid"}, 0, "\n", ""},
		"missing_file":    {[]string{"storage", "info", "-c", "/nonexistent"}, 1, "", "/nonexistent"},
	} {
		var out, err bytes.Buffer
		if code := run(c.args, &out, &err); code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s", name, code, c.code, &err)
		}
		if !strings.Contains(out.String(), c.out) || !strings.Contains(err.String(), c.err) {
			t.Errorf("%s: output %q, errors %q", name, &out, &err)
		}
		if c.err == "" && err.Len() > 0 || c.out == "" && out.Len() > 0 {
			t.Errorf("%s: output %q, errors %q", name, &out, &err)
		}
	}
}

// J-33: 1,000 ids, none twice.
func TestRandomUUID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		var out, err bytes.Buffer
		if code := run([]string{"storage", "random-uuid"}, &out, &err); code != 0 || out.Len() != 23 || seen[out.String()] || strings.HasPrefix(out.String(), "-") {
			t.Fatalf("%d %q", code, &out)
		}
		seen[out.String()] = true
	}
}
