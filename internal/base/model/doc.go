// Package model holds the identifiers every floor shares: topic ids, directory
// ids, node ids, epochs, and pairs of them.
//
// Kind: pure. It imports the standard library only and knows no I/O.
//
// Offsets and timestamps (milliseconds since 1970) are plain int64 and carry
// their meaning in the name of the variable or field; everything a reader could
// confuse with them has a type of its own here.
package model
