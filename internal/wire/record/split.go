package record

import (
	"iter"
	"math"

	"samsa/internal/base/kerr"
)

// CheckHeader says whether the header of a batch is sound: length and magic in
// range. b holds at least HeaderUpToMagic bytes; the rest of the batch need not be there.
// The error is kerr.CorruptMessage (D-09).
func CheckHeader(b []byte) error {
	h := Batch(b)
	length := h.i32(posLength)
	if length < minLength {
		return kerr.CorruptMessage.With("Record size %d is less than the minimum record overhead (%d)", length, minLength)
	}
	if length > math.MaxInt32-LogOverhead {
		return kerr.CorruptMessage.With("Record size %d is not possible", length)
	}
	if m := h.Magic(); m < 0 || m > 2 {
		return kerr.CorruptMessage.With("Invalid magic found in record: %d", m)
	}
	if h.SizeInBytes() < h.minSize() {
		return kerr.CorruptMessage.With("Record batch is corrupt (the size %d is smaller than the minimum allowed overhead %d)",
			h.SizeInBytes(), h.minSize())
	}
	return nil
}

// Next cuts the first whole batch off b. A nil batch without an error means that b
// ends before the batch does: the tail of a fetch response, or the end.
// The batch aliases b and is exactly its length; its checksum was not looked at.
func Next(b []byte) (batch Batch, rest []byte, err error) {
	if len(b) < HeaderUpToMagic {
		if len(b) >= LogOverhead {
			if length := Batch(b).i32(posLength); length < minLength {
				return nil, b, kerr.CorruptMessage.With("Record size %d is less than the minimum record overhead (%d)", length, minLength)
			}
		}
		return nil, b, nil
	}
	if err := CheckHeader(b); err != nil {
		return nil, b, err
	}
	n := Batch(b).SizeInBytes()
	if n > len(b) {
		return nil, b, nil
	}
	return Batch(b[:n:n]), b[n:], nil
}

// Split iterates the whole batches at the start of b. It stops at a cut batch, as readers of a
// fetch response do, and after the first error.
func Split(b []byte) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for {
			batch, rest, err := Next(b)
			if err != nil {
				yield(nil, err)
				return
			}
			if batch == nil || !yield(batch, nil) {
				return
			}
			b = rest
		}
	}
}
