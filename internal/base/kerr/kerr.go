// Package kerr holds Kafka's error codes as Go errors.
//
// Kind: pure. Inner packages return their own classes of error, or one of these where
// Kafka's rule itself names the code; only the edge writes codes on the wire.
//
//	return kerr.InvalidConfig.With("retention.ms is %d, below -1", v)
//	...
//	code := kerr.Code(err) // 40; 0 for nil, -1 for an error that holds no code
package kerr

import (
	"errors"
	"fmt"
)

// Error is one code of the protocol. The variables of this package are the only values;
// compare them with errors.Is.
type Error struct {
	Code      int16
	Name      string // Kafka's own name, as its logs and tools print it
	Text      string // what it means, for people
	Retriable bool   // whether a client may try the same request again
}

// Error is the meaning in words: what goes into an error message field when nothing more
// specific is known.
func (e *Error) Error() string { return e.Text }

// With says what happened in particular. errors.Is and errors.As still find e behind it, and
// the message is the formatted text alone, ready for an error message field.
func (e *Error) With(format string, args ...any) error {
	return &detailed{e, fmt.Sprintf(format, args...), nil}
}

// Wrap gives err the code e and keeps its message and its chain.
func (e *Error) Wrap(err error) error {
	if err == nil {
		return nil
	}
	return &detailed{e, err.Error(), err}
}

type detailed struct {
	kerr  *Error
	text  string
	cause error
}

func (d *detailed) Error() string { return d.text }

func (d *detailed) Unwrap() []error {
	if d.cause == nil {
		return []error{d.kerr}
	}
	return []error{d.kerr, d.cause}
}

// ForCode is the error with that code: nil for 0, UnknownServerError for codes that 4.4 does not know.
func ForCode(code int16) *Error {
	switch {
	case code == 0:
		return nil
	case code > 0 && int(code) <= len(all):
		return all[code-1]
	}
	return UnknownServerError
}

// Of finds the code in err's chain: nil for nil, UnknownServerError when there is none.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) && e != nil {
		return e
	}
	return UnknownServerError
}

// Code is the number of Of(err), 0 for nil.
func Code(err error) int16 {
	if e := Of(err); e != nil {
		return e.Code
	}
	return 0
}
