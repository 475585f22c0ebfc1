package record

import "samsa/internal/base/kerr"

// Rejected is why a produced batch was refused; errors.Is finds the Kafka error.
type Rejected struct {
	Kerr *kerr.Error
	// Detail is for logs. Kafka keeps it from clients, except when Records is not empty:
	// then it is the ErrorMessage of the response.
	Detail  string
	Records []RecordError
}

func (r *Rejected) Error() string { return r.Detail }
func (r *Rejected) Unwrap() error { return r.Kerr }

// ClientMessage is the ErrorMessage of a produce response: null for most refusals (D-21).
func (r *Rejected) ClientMessage() *string {
	if len(r.Records) == 0 {
		return nil
	}
	return &r.Detail
}
