// Package archtest keeps the layout true: which floor may import which, and what a pure or quiet
// package must not do. It holds tests only.
//
// Kind: pure.
package archtest
