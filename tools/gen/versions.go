package main

import (
	"fmt"
	"strconv"
	"strings"
)

// versions is a closed range; lo > hi is none. An open end is maxVersion.
type versions struct{ lo, hi int }

const maxVersion = 32767

var none = versions{0, -1}

func parseVersions(s string) (versions, error) {
	s = strings.TrimSpace(s)
	if s == "" || s == "none" {
		return none, nil
	}
	if lo, ok := strings.CutSuffix(s, "+"); ok {
		n, err := strconv.Atoi(lo)
		return versions{n, maxVersion}, err
	}
	from, to, isRange := strings.Cut(s, "-")
	lo, err := strconv.Atoi(from)
	if err != nil {
		return none, fmt.Errorf("versions %q: %w", s, err)
	}
	if !isRange {
		return versions{lo, lo}, nil
	}
	hi, err := strconv.Atoi(to)
	return versions{lo, hi}, err
}

func (v versions) empty() bool { return v.lo > v.hi }

func (v versions) and(o versions) versions {
	r := versions{max(v.lo, o.lo), min(v.hi, o.hi)}
	if r.empty() {
		return none
	}
	return r
}

// minus is v without o, which must leave one range; schemas only ever cut off an end.
func (v versions) minus(o versions) versions {
	o = v.and(o)
	switch {
	case o.empty():
		return v
	case o == v:
		return none
	case o.lo == v.lo:
		return versions{o.hi + 1, v.hi}
	case o.hi == v.hi:
		return versions{v.lo, o.lo - 1}
	}
	panic(fmt.Sprintf("%v minus %v leaves two ranges", v, o))
}

// test is the Go condition for "v lies in want, given that it lies in within".
// all and never report the trivial cases.
func test(want, within versions) (cond string, all, never bool) {
	want = want.and(within)
	switch {
	case want.empty():
		return "false", false, true
	case want == within:
		return "true", true, false
	case want.lo == want.hi:
		return fmt.Sprintf("v == %d", want.lo), false, false
	case want.lo == within.lo:
		return fmt.Sprintf("v <= %d", want.hi), false, false
	case want.hi == within.hi:
		return fmt.Sprintf("v >= %d", want.lo), false, false
	}
	return fmt.Sprintf("v >= %d && v <= %d", want.lo, want.hi), false, false
}

// notTest is the negation of test in the same, readable form.
func notTest(want, within versions) string {
	want = want.and(within)
	switch {
	case want.empty():
		return "true"
	case want == within:
		return "false"
	case want.lo == want.hi:
		return fmt.Sprintf("v != %d", want.lo)
	case want.lo == within.lo:
		return fmt.Sprintf("v > %d", want.hi)
	case want.hi == within.hi:
		return fmt.Sprintf("v < %d", want.lo)
	}
	return fmt.Sprintf("(v < %d || v > %d)", want.lo, want.hi)
}
