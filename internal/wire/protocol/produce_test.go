package protocol

import (
	"bytes"
	"errors"
	"testing"
)

// the walk sees what the generated reader sees, at every version, also in cut and mutated requests.
func TestWalkProduceAgreesWithRead(t *testing.T) {
	f := newFiller(9)
	s := messageNamed(t, "ProduceRequest")
	accepted := 0
	for v := s.lo; v <= s.hi; v++ {
		for i := range 300 {
			f.tags = i%2 == 0
			b, err := f.message(s, v).Append(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, "rest"...)
			switch i % 3 {
			case 1:
				b[f.IntN(len(b))] ^= 1 << f.IntN(8)
			case 2:
				b = b[:f.IntN(len(b))]
			}
			var m ProduceRequest
			wantRest, wantErr := m.Read(b, v)
			w, rest, err := WalkProduce(b, v)
			if (err == nil) != (wantErr == nil) || !bytes.Equal(rest, wantRest) {
				t.Fatalf("version %d, %x: walk %q, %v; read %q, %v", v, b, rest, err, wantRest, wantErr)
			}
			if err != nil {
				if w.Next() {
					t.Fatal("a failed walk goes on")
				}
				continue
			}
			accepted++
			compareWalk(t, &w, &m, b, v)
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d requests accepted", accepted)
	}
}

func compareWalk(t *testing.T, w *ProduceWalk, m *ProduceRequest, b []byte, v int16) {
	t.Helper()
	if (w.TransactionalId == nil) != (m.TransactionalId == nil) || m.TransactionalId != nil && string(w.TransactionalId) != *m.TransactionalId {
		t.Fatalf("transactional id %q, want %v", w.TransactionalId, m.TransactionalId)
	}
	if w.Acks != m.Acks || w.TimeoutMs != m.TimeoutMs || w.Topics != len(m.TopicData) {
		t.Fatalf("head %+v, want %+v", w, m)
	}
	if acks, ok := ProduceAcks(b, v); !ok || acks != m.Acks {
		t.Fatalf("acks %d, %v", acks, ok)
	}
	n := 0
	for _, topic := range m.TopicData {
		for i, p := range topic.PartitionData {
			if !w.Next() {
				t.Fatal("the walk ends early")
			}
			n++
			if string(w.Topic) != topic.Name || w.TopicId != topic.TopicId || w.FirstOf != (i == 0) ||
				w.Partition != p.Index || !bytes.Equal(w.Records, p.Records) || (w.Records == nil) != (p.Records == nil) {
				t.Fatalf("walk at %q %v %d %x, want %+v", w.Topic, w.TopicId, w.Partition, w.Records, p)
			}
		}
	}
	if w.Next() || n != w.Partitions {
		t.Fatalf("the walk counts %d partitions, there are %d", w.Partitions, n)
	}
}

func messageNamed(t *testing.T, name string) schemaMessage {
	t.Helper()
	for _, s := range schemaMessages {
		if s.name == name {
			return s
		}
	}
	t.Fatal("no message " + name)
	return schemaMessage{}
}

// Decision 12: nothing is allocated on the way to the record sets.
func TestWalkProduceAllocatesNothing(t *testing.T) {
	m := ProduceRequest{Acks: -1, TopicData: []ProduceRequestTopicProduceData{{
		PartitionData: []ProduceRequestPartitionProduceData{{Index: 1, Records: make([]byte, 1000)}, {Index: 2, Records: make([]byte, 1000)}},
	}}}
	b, err := m.Append(nil, 13)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		w, _, err := WalkProduce(b, 13)
		if err != nil {
			t.Fatal(err)
		}
		for w.Next() {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// a response written around its records, with the records put back, is the response.
func TestAppendAroundRecords(t *testing.T) {
	f := newFiller(10)
	for _, name := range []string{"FetchResponse", "ShareFetchResponse", "FetchSnapshotResponse"} {
		s := messageNamed(t, name)
		for v := s.lo; v <= s.hi; v++ {
			for range 200 {
				m := f.message(s, v)
				want, err := m.Append([]byte("head"), v)
				if err != nil {
					t.Fatal(err)
				}
				sets := recordSets(m)
				var sizes []int
				for _, p := range sets {
					n := len(*p)
					if *p == nil && (name != "ShareFetchResponse" && name != "FetchSnapshotResponse") {
						n = -1
					}
					sizes = append(sizes, n)
				}
				var filed [][]byte
				for _, p := range sets {
					filed = append(filed, *p)
					*p = []byte("must not be looked at")
				}
				around, cuts, err := appendAround([]byte("head"), m, v, sizes, nil)
				if err != nil || len(cuts) != len(sets) {
					t.Fatalf("%d cuts for %d record sets, %v", len(cuts), len(sets), err)
				}
				var got []byte
				at := 0
				for i, c := range cuts {
					got = append(append(got, around[at:c]...), filed[i]...)
					at = c
				}
				got = append(got, around[at:]...)
				if !bytes.Equal(got, want) {
					t.Fatalf("%s version %d:\n%x, want\n%x", name, v, got, want)
				}
				if _, _, err := appendAround(nil, m, v, append(sizes, 0), nil); !errors.Is(err, ErrVersion) {
					t.Fatalf("a size too many: %v", err)
				}
				if len(sizes) > 0 {
					if _, _, err := appendAround(nil, m, v, sizes[1:], nil); !errors.Is(err, ErrVersion) {
						t.Fatalf("a size too few: %v", err)
					}
				}
			}
		}
	}
}

func appendAround(dst []byte, m Message, v int16, sizes, cuts []int) ([]byte, []int, error) {
	switch m := m.(type) {
	case *FetchResponse:
		return AppendFetchResponse(dst, m, v, sizes, cuts)
	case *ShareFetchResponse:
		return AppendShareFetchResponse(dst, m, v, sizes, cuts)
	case *FetchSnapshotResponse:
		return AppendFetchSnapshotResponse(dst, m, v, sizes, cuts)
	}
	panic("not a response with records")
}

// recordSets points at the records of a response, in the order they are written.
func recordSets(m Message) (sets []*[]byte) {
	switch m := m.(type) {
	case *FetchResponse:
		for i := range m.Responses {
			for j := range m.Responses[i].Partitions {
				sets = append(sets, &m.Responses[i].Partitions[j].Records)
			}
		}
	case *ShareFetchResponse:
		for i := range m.Responses {
			for j := range m.Responses[i].Partitions {
				sets = append(sets, &m.Responses[i].Partitions[j].Records)
			}
		}
	case *FetchSnapshotResponse:
		for i := range m.Topics {
			for j := range m.Topics[i].Partitions {
				sets = append(sets, &m.Topics[i].Partitions[j].UnalignedRecords)
			}
		}
	}
	return sets
}
