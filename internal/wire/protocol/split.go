package protocol

// A response that carries records can be written without them, so that they go from the file
// to the socket uncopied. The bytes around the record sets are written in one slice, and cuts
// says where the record sets belong in it:
//
//	b:      | header … length of set 0 | … length of set 1 | … end |
//	cuts:                              ^cuts[0]            ^cuts[1]
//	send:   b[:cuts[0]], set 0, b[cuts[0]:cuts[1]], set 1, b[cuts[1]:]
//
// sizes holds the length of each record set in the order of the message's partitions, -1 for
// null; there is a cut for each, also for those that are null or empty. The Records fields of
// the message are not looked at.
type split struct {
	sizes []int
	cuts  []int
}

func (s *split) cut(w *writer, flex, nullable bool) {
	if len(s.sizes) == 0 {
		w.fail("Records", "has no size given")
		return
	}
	n := s.sizes[0]
	s.sizes = s.sizes[1:]
	w.ncount(max(n, 0), nullable && n < 0, flex)
	s.cuts = append(s.cuts, len(w.b))
}

func appendSplit(dst []byte, key int16, name string, v int16, sizes, cuts []int, body func(*writer)) ([]byte, []int, error) {
	w := writer{b: dst, split: &split{sizes: sizes, cuts: cuts}}
	if w.version(v, apis[key].min, apis[key].max) {
		body(&w)
		if len(w.split.sizes) != 0 {
			w.fail("Records", "has more sizes than partitions")
		}
	}
	b, err := w.done(dst, name, v)
	if err != nil {
		return b, cuts, err
	}
	return b, w.split.cuts, nil
}

// AppendFetchResponse writes m behind dst without its records. It appends to cuts the positions,
// in the returned slice, at which the records belong.
func AppendFetchResponse(dst []byte, m *FetchResponse, v int16, sizes, cuts []int) ([]byte, []int, error) {
	return appendSplit(dst, KeyFetch, "FetchResponse", v, sizes, cuts, func(w *writer) { m.append(w, v) })
}

// AppendShareFetchResponse is AppendFetchResponse for share groups.
func AppendShareFetchResponse(dst []byte, m *ShareFetchResponse, v int16, sizes, cuts []int) ([]byte, []int, error) {
	return appendSplit(dst, KeyShareFetch, "ShareFetchResponse", v, sizes, cuts, func(w *writer) { m.append(w, v) })
}

// AppendFetchSnapshotResponse is AppendFetchResponse for the bytes of a metadata snapshot.
func AppendFetchSnapshotResponse(dst []byte, m *FetchSnapshotResponse, v int16, sizes, cuts []int) ([]byte, []int, error) {
	return appendSplit(dst, KeyFetchSnapshot, "FetchSnapshotResponse", v, sizes, cuts, func(w *writer) { m.append(w, v) })
}
