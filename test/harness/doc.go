// Package harness runs samsa and its peers as real processes for the tests in test/: it builds the
// binary once, gives every node its own directory and ports, waits for conditions, and calls Apache
// Kafka's tools and other people's clients.
//
// Kind: driver. A peer that is missing makes a test fail when CI is set and skip otherwise.
package harness
