package invariant

import (
	"fmt"
	"sync/atomic"
)

// Violation is the value a broken invariant panics with.
type Violation struct {
	What string
}

func (v *Violation) Error() string { return "invariant broken: " + v.What }

// Check panics with *Violation unless ok. It does not allocate when ok.
func Check(ok bool, what string) {
	if !ok {
		panic(&Violation{What: what})
	}
}

// Checkf is Check with a formatted message. Its arguments may be moved to the
// heap by the caller even when ok, so hot paths use Check.
func Checkf(ok bool, format string, args ...any) {
	if !ok {
		panic(&Violation{What: fmt.Sprintf(format, args...)})
	}
}

// Unreachable panics: control never gets here.
func Unreachable(what string) {
	panic(&Violation{What: "unreachable: " + what})
}

var turns atomic.Uint64

// Sometimes is false in a normal build. With the build tag "invariants" it is
// true for about percent of its calls, so that tests take the rare but always
// correct path (grow by one page, flush early, read from disk). The sequence is
// a hash of a call counter, not a clock or a random source.
func Sometimes(percent int) bool {
	if !Enabled {
		return false
	}
	// splitmix64: consecutive counters give unrelated values.
	x := turns.Add(1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return x%100 < uint64(max(percent, 0))
}
