package controller

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
)

// Draft is one decision in the making: the newest image and the records added on top of it.
type Draft struct {
	base    *image.Image
	nowMs   int64
	next    int64 // the offset the first record will have
	records []image.Versioned
	atomic  bool
	user    bool // bounded by MaxRecordsPerUserOp

	img     *image.Image // base with records[:applied]
	applied int
	err     error
}

// NewDraft starts a decision.
//
//	next  the offset the first record will have
func NewDraft(base *image.Image, next, nowMs int64) *Draft {
	return &Draft{base: base, nowMs: nowMs, next: next, img: base}
}

// Records are the records decided on. Atomic ones must go into one batch.
func (d *Draft) Records() (records []image.Versioned, atomic bool) { return d.records, d.atomic }

// Image is the base with all records so far. If a record does not fit, the error is in Err and the
// image is without it.
func (d *Draft) Image() *image.Image {
	if d.err != nil || d.applied == len(d.records) {
		return d.img
	}
	b := image.NewBuilder(d.img)
	for ; d.applied < len(d.records); d.applied++ {
		if d.err = b.Replay(d.records[d.applied].Record, d.next+int64(d.applied)); d.err != nil {
			return d.img
		}
	}
	p := d.base.Provenance()
	p.Offset = d.end()
	d.img, _ = b.Build(p)
	return d.img
}

// Err is set when the records do not fit the image, which is a fault of this package.
func (d *Draft) Err() error { return d.err }

// end is the offset of the last record so far, or of what was there before.
func (d *Draft) end() int64 { return d.next + int64(len(d.records)) - 1 }

func (d *Draft) add(r image.Record, version int16) {
	d.records = append(d.records, image.Versioned{Record: r, Version: version})
}

func (d *Draft) append(v ...image.Versioned) { d.records = append(d.records, v...) }

// mark and undo take back what one item of a request added.
func (d *Draft) mark() int { return len(d.records) }

func (d *Draft) undo(mark int) {
	d.records = d.records[:mark]
	if d.applied > mark {
		d.applied, d.img = 0, d.base
	}
}

// discard drops all records: a request that only validates.
func (d *Draft) discard() { d.undo(0) }

// tooLarge reports whether a user's operation grew past its bound (K-123); it then has no effect.
func (d *Draft) tooLarge() bool {
	if len(d.records) <= MaxRecordsPerUserOp {
		return false
	}
	d.discard()
	return true
}

// errTooLarge is the answer to an operation that would need too many records.
var errTooLarge = kerr.PolicyViolation.With("Unable to perform excessively large batch operation.")

// message is the text of an error field: null when there is no error.
func message(err error) *string {
	if err == nil || err == kerr.RequestTimedOut {
		return nil
	}
	s := err.Error()
	return &s
}

// ownMessage is an error's message if it has one of its own.
func ownMessage(err error) *string {
	if _, bare := err.(*kerr.Error); bare {
		return nil
	}
	return message(err)
}

// checkBrokerEpoch is the fencing test of all requests that brokers send (K-133).
func checkBrokerEpoch(img *image.Image, id int32, epoch int64) (*image.Broker, error) {
	b, ok := img.Brokers().ByID(model.NodeID(id))
	if !ok {
		return nil, kerr.StaleBrokerEpoch.With("No broker registration found for broker id %d", id)
	}
	if b.Epoch != epoch {
		return nil, kerr.StaleBrokerEpoch.With("Expected broker epoch %d, but got broker epoch %d", b.Epoch, epoch)
	}
	return b, nil
}
