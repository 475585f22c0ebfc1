package invariant

import (
	"errors"
	"testing"
)

func violation(f func()) (v *Violation) {
	defer func() {
		if r := recover(); r != nil {
			errors.As(r.(error), &v)
		}
	}()
	f()
	return nil
}

func TestCheckPanicsWithViolation(t *testing.T) {
	if v := violation(func() { Check(true, "x") }); v != nil {
		t.Fatalf("a true condition panicked: %v", v)
	}
	if v := violation(func() { Check(false, "offsets") }); v == nil || v.What != "offsets" {
		t.Fatalf("got %v", v)
	}
	if v := violation(func() { Checkf(false, "offset %d", 7) }); v == nil || v.What != "offset 7" {
		t.Fatalf("got %v", v)
	}
	if v := violation(func() { Unreachable("here") }); v == nil {
		t.Fatal("no panic")
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Check(true, "x") }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestSometimesFollowsTheBuildTag(t *testing.T) {
	hits := 0
	for range 10000 {
		if Sometimes(30) {
			hits++
		}
	}
	if !Enabled && hits != 0 {
		t.Fatalf("%d hits in a normal build", hits)
	}
	if Enabled && (hits < 2500 || hits > 3500) {
		t.Fatalf("%d hits of 10000 at 30%%", hits)
	}
}
