package partlog

import "errors"

// ErrOffsetOrder is returned when a follower's records begin below the log end, or leave a gap where none may be:
// the fetcher must truncate or start over.
var ErrOffsetOrder = errors.New("records do not continue the log")

var (
	errShortIndex = errors.New("the index file is shorter than it was")
	errDamaged    = errors.New("damaged index")
	errGone       = errors.New("the segment is gone")
)
