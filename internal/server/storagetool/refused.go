package storagetool

import "fmt"

// Refused is why nothing, or no more, was done: exit code 1, the text on standard error.
type Refused struct {
	Text string
	err  error
}

func (r *Refused) Error() string { return r.Text }
func (r *Refused) Unwrap() error { return r.err }

func refuse(format string, args ...any) error { return &Refused{Text: fmt.Sprintf(format, args...)} }

// refuseFor keeps err behind the text.
func refuseFor(err error, format string, args ...any) error {
	return &Refused{Text: fmt.Sprintf(format, args...), err: err}
}
