// Package pmap is a persistent sorted map: a copy-on-write B-tree whose versions share structure.
//
// A Map is immutable. With and Without return a new Map that shares every untouched node with
// the old one, so keeping many versions costs only their differences. Edit opens a transient
// Editor that changes nodes it made itself in place: a batch of n changes copies each node at
// most once.
//
// Sorted order makes iteration deterministic, which snapshots, answers and tests want, and lets a
// walk start anywhere. A hash trie would look up strings a little faster and give neither.
//
// Kind: pure. A Map may be read from any goroutine; an Editor belongs to one.
package pmap
