package image

import (
	"errors"
	"fmt"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// Assembler turns committed batches into images (K-172). Records of an open metadata transaction
// stay invisible until it ends; those before it, in its own batch too, are visible at once.
//
// It belongs to one goroutine.
type Assembler struct {
	stable *Image   // up to here nothing is open
	b      *Builder // what came since, nil if nothing
	prov   Provenance
	// txnStart is the offset of the record that began the open transaction, -1 if none is open.
	txnStart int64
	// since is the image the next delta starts from; segments counts the builders since then.
	since    *Image
	segments int
}

// NewAssembler starts from an image.
func NewAssembler(from *Image) *Assembler {
	return &Assembler{stable: from, prov: from.prov, txnStart: -1, since: from}
}

// TransactionStart is the offset at which the open metadata transaction began, -1 if none is open.
func (a *Assembler) TransactionStart() int64 { return a.txnStart }

// Offset is the last offset taken in, an open transaction included.
func (a *Assembler) Offset() int64 { return a.prov.Offset }

func (a *Assembler) builder() *Builder {
	if a.b == nil {
		a.b = NewBuilder(a.stable)
	}
	return a.b
}

// settle makes what came so far the stable image.
func (a *Assembler) settle(p Provenance) *Delta {
	if a.b == nil {
		if a.stable.prov != p {
			a.stable = a.stable.at(p)
		}
		return nil
	}
	var delta *Delta
	a.stable, delta = a.b.Build(p)
	a.b = nil
	a.segments++
	return delta
}

// Batch takes in one committed batch. records are record values (K-76), nil in a control batch. All
// faults are returned joined; a record at fault is left out and the rest is taken.
func (a *Assembler) Batch(records [][]byte, base, last int64, epoch model.LeaderEpoch, timestampMs int64) error {
	var faults []error
	for i, value := range records {
		offset := base + int64(i)
		v, err := ReadFrame(value)
		if err == nil {
			err = a.record(v.Record, i, Provenance{Offset: offset, Epoch: epoch, TimestampMs: timestampMs})
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("metadata offset %d: %w", offset, err))
		}
	}
	a.prov = Provenance{Offset: last, Epoch: epoch, TimestampMs: timestampMs, BatchAligned: true}
	return errors.Join(faults...)
}

func (a *Assembler) record(r Record, index int, p Provenance) error {
	switch r := r.(type) {
	case *protocol.BeginTransactionRecord:
		if a.txnStart >= 0 {
			return fmt.Errorf("a transaction begins inside the one begun at offset %d", a.txnStart)
		}
		before := a.prov
		if index > 0 {
			before = Provenance{Offset: p.Offset - 1, Epoch: p.Epoch, TimestampMs: p.TimestampMs}
		}
		a.settle(before)
		a.txnStart = p.Offset
		return nil
	case *protocol.EndTransactionRecord:
		if a.txnStart < 0 {
			return errors.New("a transaction ends that did not begin")
		}
		a.txnStart = -1
		return nil
	case *protocol.AbortTransactionRecord:
		if a.txnStart < 0 {
			return errors.New("a transaction is aborted that did not begin")
		}
		a.b, a.txnStart = nil, -1
		return nil
	default:
		return a.builder().Replay(r, p.Offset)
	}
}

// Stable is the newest image without anything open.
func (a *Assembler) Stable() *Image {
	if a.txnStart < 0 {
		a.settle(a.prov)
	}
	return a.stable
}

// Publish returns the newest image without anything open, and what changed since the last Publish.
// delta is nil if the image ends where the last one did.
func (a *Assembler) Publish() (*Image, *Delta) {
	var delta *Delta
	if a.txnStart < 0 {
		delta = a.settle(a.prov)
	}
	from := a.since
	if a.stable.prov == from.prov {
		return a.stable, nil
	}
	switch {
	case a.segments == 0:
		delta = &Delta{From: from, To: a.stable}
	case a.segments > 1 || delta == nil: // several steps, or one whose delta Stable let go
		delta = Diff(from, a.stable)
		delta.Snapshot = false
	default:
		delta.From = from // the same content
	}
	a.since, a.segments = a.stable, 0
	return a.stable, delta
}

// Replace jumps to an image loaded from a snapshot. The next Publish gives the difference to what was
// published last.
func (a *Assembler) Replace(img *Image) {
	a.stable, a.b, a.txnStart, a.prov = img, nil, -1, img.prov
	a.segments = 2 // so that Publish compares
}

// SnapshotLoader builds an image from the batches of a snapshot.
type SnapshotLoader struct {
	b    *Builder
	prov Provenance
}

// NewSnapshotLoader starts a snapshot.
//
//	last         the last offset the snapshot contains, one below the offset in its name
//	epoch        the epoch in its name
//	timestampMs  from its header
func NewSnapshotLoader(last int64, epoch model.LeaderEpoch, timestampMs int64) *SnapshotLoader {
	return &SnapshotLoader{b: NewBuilder(Empty()), prov: Provenance{Offset: last, Epoch: epoch, TimestampMs: timestampMs, BatchAligned: true}}
}

// Batch takes in the record values of one batch. Any fault is final: half a snapshot is no image.
func (l *SnapshotLoader) Batch(records [][]byte) error {
	for _, value := range records {
		v, err := ReadFrame(value)
		if err != nil {
			return err
		}
		switch v.Record.(type) {
		case *protocol.BeginTransactionRecord, *protocol.EndTransactionRecord, *protocol.AbortTransactionRecord:
			return fmt.Errorf("%w: a snapshot holds a %s", ErrFrame, RecordName(v.Record))
		}
		if err := l.b.Replay(v.Record, l.prov.Offset); err != nil {
			return err
		}
	}
	return nil
}

// Image is the whole snapshot.
func (l *SnapshotLoader) Image() *Image {
	img, _ := l.b.Build(l.prov)
	return img
}
