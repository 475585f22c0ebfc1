//go:build race

package record

// raced: under the race detector pools lose things at random, so allocations cannot be counted.
const raced = true
