package logdir

import "fmt"

// Damage is a file at the root of a log directory, or a partition.metadata, that cannot be
// understood. It counts as a failure of the whole directory (T-23, D-220): what the
// file stood for is not known, and guessing would serve wrong offsets or a wrong topic.
type Damage struct {
	Path string
	What error  // what was found and what was expected
	Next string // what the operator can do
}

func (e *Damage) Error() string {
	return fmt.Sprintf("damaged file %s: %v. %s", e.Path, e.What, e.Next)
}

func (e *Damage) Unwrap() error { return e.What }
