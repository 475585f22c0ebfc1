package image

import "slices"

// vectorChunk partitions share a chunk: a change copies one chunk and the table of chunks. A
// topic of 10,000 partitions so copies 256 bytes of chunk and 8 KB of table, not 80 KB.
const vectorChunk = 32

// maxPartitionIndex bounds the index a record may name: the table of chunks is sized by it.
const maxPartitionIndex = 1 << 20

// vector is an immutable list of partitions by index. Holes read as nil: records of a snapshot
// may come in any order.
type vector struct {
	chunks [][]*Partition
	count  int // one more than the highest index
}

func (v vector) get(i int32) *Partition {
	if i < 0 || int(i) >= v.count {
		return nil
	}
	c := v.chunks[i/vectorChunk]
	if int(i%vectorChunk) >= len(c) {
		return nil
	}
	return c[i%vectorChunk]
}

func (v vector) each(yield func(int32, *Partition) bool) {
	for c, chunk := range v.chunks {
		for i, p := range chunk {
			if p != nil && !yield(int32(c*vectorChunk+i), p) {
				return
			}
		}
	}
}

// vectorEditor changes a copy of a vector. Chunks in fresh are its own.
type vectorEditor struct {
	v      vector
	shared bool // the table of chunks is the original's
	fresh  map[int]bool
}

func (v vector) edit() vectorEditor { return vectorEditor{v: v, shared: true} }

func (e *vectorEditor) get(i int32) *Partition { return e.v.get(i) }

// set stores p at index i, 0 <= i <= maxPartitionIndex.
func (e *vectorEditor) set(i int32, p *Partition) {
	c := int(i) / vectorChunk
	if e.shared {
		e.v.chunks = slices.Clone(e.v.chunks)
		e.shared = false
		e.fresh = map[int]bool{}
	}
	for len(e.v.chunks) <= c {
		e.v.chunks = append(e.v.chunks, nil)
	}
	chunk, at := e.v.chunks[c], int(i)%vectorChunk
	if !e.fresh[c] {
		chunk = append(make([]*Partition, 0, max(len(chunk), at+1)), chunk...)
		e.fresh[c] = true
	}
	for len(chunk) <= at {
		chunk = append(chunk, nil)
	}
	chunk[at] = p
	e.v.chunks[c] = chunk
	e.v.count = max(e.v.count, int(i)+1)
}
