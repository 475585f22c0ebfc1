package group

import "slices"

// maxBatchBytes is where a long series of tombstones goes on in the next batch: far below what a partition accepts.
const maxBatchBytes = 256 << 10

// writing gathers removals of many offsets, which need not be one batch.
type writing struct {
	batches []removal
	bytes   int
}

// removal is one batch of a writing.
type removal struct {
	records []Record
	keys    []offsetID
}

func (w *writing) put(r Record) *removal {
	size := len(r.Key) + len(r.Value) + 16
	if len(w.batches) == 0 || w.bytes+size > maxBatchBytes {
		w.batches = append(w.batches, removal{})
		w.bytes = 0
	}
	w.bytes += size
	b := &w.batches[len(w.batches)-1]
	b.records = append(b.records, r)
	return b
}

// tombstone removes an offset.
func (w *writing) tombstone(k offsetID) {
	b := w.put(tombstone(offsetKey(k)))
	b.keys = append(b.keys, k)
}

// tombstones removes offsets, in an order that does not depend on chance.
func (w *writing) tombstones(ids []offsetID) {
	slices.SortFunc(ids, compareIDs)
	for _, k := range ids {
		w.tombstone(k)
	}
}

// group adds the tombstone of a group, behind those of its offsets.
func (w *writing) group(r Record) { w.put(r) }

// flush writes what was gathered; done, if not nil, hears once all of it is settled, of the first error if there is one.
func (c *Core) flush(now int64, w *writing, done func(now int64, err error)) {
	left := len(w.batches)
	var first error
	for i := range w.batches {
		b := &w.batches[i]
		p := c.write(now, b.records, func(now int64, err error) {
			if err != nil && first == nil {
				first = err
			}
			if left--; left == 0 && done != nil {
				done(now, first)
			}
		})
		for _, k := range b.keys {
			s := c.offsets.slot(k)
			c.offsets.change(s, c.lastID(), nil)
			p.slots = append(p.slots, s)
		}
	}
	if left == 0 && done != nil {
		done(now, nil)
	}
}
