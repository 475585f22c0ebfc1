// Package purgatory keeps operations that cannot be answered yet: a produce that waits for its
// replicas, a fetch that waits for bytes. An operation is watched under keys (a partition, a
// group); whoever changes something under a key calls Check, and operations that have become
// ready complete there and then, on the caller's goroutine. One that does not become ready
// completes at its deadline.
//
// Kind: driver. It owns one goroutine per Timer.
//
// # Exactly once
//
// Three sides may want to complete an operation: Add itself, any number of Checks, and the
// deadline. Each Waiter has a lock, under which TryComplete runs, and a state that leaves
// "waiting" once; whoever moves it calls Complete, outside the lock. Complete therefore runs
// exactly once, and TryComplete never runs concurrently with itself or after Complete began.
//
// A change that happens while an operation is being added is not lost: Add tries, then watches
// all keys, then tries once more.
//
// # Cost
//
// A waiting operation is one Waiter, one heap entry and one map entry per key; there is no
// goroutine per operation and nothing ticks. The timer goroutine exists only while something
// waits, sleeps until the earliest deadline, and is woken when an earlier one arrives.
//
// # Locks
//
// Order: nothing is held while calling TryComplete or Complete but the Waiter's own lock
// (TryComplete only). An operation may therefore call Check of other keys from Complete. From
// TryComplete it must not: two operations checking each other would wait for each other.
package purgatory
