// Package invariant states what must be true.
//
// Kind: pure. It imports the standard library only.
//
// Check is for cheap tests and is always on. Dear ones, which cost more than the
// work they guard, stand behind the constant Enabled, which the build tag
// "invariants" sets:
//
//	invariant.Check(base <= next, "offsets go backwards")
//	if invariant.Enabled {
//		invariant.Check(slices.IsSorted(entries), "index is not sorted")
//	}
//
// A broken invariant panics with *Violation: the state cannot be trusted, so the
// replica that owns it stops instead of writing it to disk. Input from a disk or
// a network is never an invariant; it is an error.
package invariant
