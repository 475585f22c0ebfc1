package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// allocated is how many bytes f allocates. Nothing else may run meanwhile.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// bound is what one Read of n bytes may allocate, with the error it may make.
func bound(n int) int { return ReadFactor*n + ReadFloor + 1024 }

type readable interface {
	Message
	read(*reader, int16)
}

// booked reads b without a budget and gives what the reader charged for.
func booked(m Message, b []byte, v int16) int {
	r := reader{b: b, budget: 1 << 60}
	m.(readable).read(&r, v)
	if !r.ok() {
		panic(r.reason)
	}
	return 1<<60 - r.budget
}

// packed gives, for every array of structs in the message, the message with that array full of
// the smallest elements the version has, about size bytes of them: the worst a sender can do.
func packed(s schemaMessage, v int16, size int) map[string][]byte {
	all := map[string][]byte{}
	var walk func(path []int, name, label string)
	walk = func(path []int, name, label string) {
		for _, d := range schemaFields[name] {
			if v < d.lo || v > d.hi {
				continue
			}
			typ, isArray := strings.CutPrefix(d.typ, "[]")
			isStruct := schemaFields[typ] != nil
			if !isArray && !isStruct {
				continue
			}
			i := fieldIndex(name, d.name)
			here := append(append([]int{}, path...), i)
			if isArray {
				all[label+"."+d.name] = pack(s, v, here, size)
			}
			if isStruct {
				walk(here, typ, label+"."+d.name)
			}
		}
	}
	walk(nil, s.name, s.name)
	return all
}

func fieldIndex(name, field string) int {
	for i, d := range schemaFields[name] {
		if d.name == field {
			return i
		}
	}
	panic(field)
}

// pack encodes s with the array at path long enough.
func pack(s schemaMessage, v int16, path []int, size int) []byte {
	encode := func(n int) []byte {
		m := s.make()
		bare(reflect.ValueOf(m).Elem(), s.name, v)
		g, name := reflect.ValueOf(m).Elem(), s.name
		for k, i := range path {
			d := schemaFields[name][i]
			typ, isArray := strings.CutPrefix(d.typ, "[]")
			g, name = g.FieldByName(d.name), typ
			if isArray {
				l := 1
				if k == len(path)-1 {
					l = n
				}
				g.Set(reflect.MakeSlice(g.Type(), l, l))
				if l == 0 {
					break
				}
				if schemaFields[typ] != nil {
					bare(g.Index(0), typ, v)
					for j := 1; j < l; j++ {
						g.Index(j).Set(g.Index(0))
					}
				}
				g = g.Index(0)
			} else if g.Kind() == reflect.Pointer {
				g.Set(reflect.New(g.Type().Elem()))
				g = g.Elem()
				bare(g, typ, v)
			}
		}
		b, err := m.Append(nil, v)
		if err != nil {
			panic(fmt.Sprintf("%s version %d: %v", s.name, v, err))
		}
		return b
	}
	one := max(len(encode(2))-len(encode(1)), 1)
	return encode(size / one)
}

// bare sets the fields of a struct to what takes least room on the wire.
func bare(g reflect.Value, name string, v int16) {
	g.Addr().Interface().(interface{ Default() }).Default()
	for _, d := range schemaFields[name] {
		if v >= d.lo && v <= d.hi && d.tag < 0 && v >= d.nullLo && v <= d.nullHi {
			g.FieldByName(d.name).SetZero()
		}
	}
}

// no message made of the smallest elements makes Read allocate more than its bound. The
// log names the worst that the schemas allow when no budget stops them.
func TestPackedMessagesStayInBounds(t *testing.T) {
	const size = 48 << 10
	worst, worstName, worstReal, refused, tried := 0.0, "", 0.0, 0, 0
	eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
		if v != s.lo && v != s.hi {
			return
		}
		for label, b := range packed(s, v, size) {
			tried++
			if x := float64(booked(s.make(), b, v)) / float64(len(b)); x > worst {
				worst, worstName = x, fmt.Sprintf("%s version %d", label, v)
			}
			m := s.make()
			var err error
			n := allocated(func() { _, err = m.Read(b, v) })
			if n > bound(len(b)) {
				t.Errorf("%s: %d bytes allocated for %d", label, n, len(b))
			}
			worstReal = max(worstReal, float64(n)/float64(len(b)))
			if err != nil {
				refused++
			}
		}
	})
	// The same with four megabytes of the worst of them, where the budget has to step in.
	b := packed(messageNamed(t, "MetadataRequest"), 0, 4<<20)["MetadataRequest.Topics"]
	var err error
	n := allocated(func() { _, err = new(MetadataRequest).Read(b, 0) })
	if n > bound(len(b)) || err == nil {
		t.Errorf("%d bytes allocated for %d, %v", n, len(b), err)
	}
	if worst > 34 {
		t.Errorf("%.1f times the input: the package doc promises 34", worst)
	}
	t.Logf("%d arrays; without a budget at worst %.1f times the input (%s), with it %.1f; %d refused", tried, worst, worstName, worstReal, refused)
}

// Messages as real traffic has them, with short names in long lists, stay below the budget.
func TestHonestMessagesStayUnderTheBudget(t *testing.T) {
	f := newFiller(11)
	f.honest = true
	worst, worstName := 0.0, ""
	check := func(name string, m Message, b []byte, v int16) {
		n := booked(m, b, v)
		if x := float64(n) / float64(len(b)); x > worst && len(b) > 1000 {
			worst, worstName = x, fmt.Sprintf("%s version %d, %d bytes", name, v, len(b))
		}
		if budget := ReadFactor*len(b) + ReadFloor; n > budget*9/10 {
			t.Errorf("%s version %d, %d bytes: %d of %d used", name, v, len(b), n, budget)
		}
	}
	eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
		for range 2 {
			b, err := f.message(s, v).Append(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			check(s.name, s.make(), b, v)
		}
	})
	// Somebody who asks for 100,000 topics by name has names of at least six characters.
	for _, v := range []int16{0, 8, 9, 13} {
		m := Make[MetadataRequest]()
		for i := range 100_000 {
			name := fmt.Sprintf("t%05d", i)
			m.Topics = append(m.Topics, MetadataRequestMetadataRequestTopic{Name: &name})
		}
		b, err := m.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		check("MetadataRequest", new(MetadataRequest), b, v)
	}
	t.Logf("at most %.1f times the input (%s)", worst, worstName)
}

// ten megabytes of zeros as the topics of a produce request. The broker uses the walk, which
// allocates nothing.
func TestZerosAsTopics(t *testing.T) {
	const size = 10 << 20
	for v := int16(3); v <= 13; v++ {
		b := binary.AppendUvarint([]byte{0, 0, 1, 0, 0, 0, 0}, size/3)
		if v < 9 {
			b = binary.BigEndian.AppendUint32([]byte{255, 255, 0, 1, 0, 0, 0, 0}, size/6)
		}
		b = append(b, make([]byte, size)...)
		var m ProduceRequest
		var err error
		n := allocated(func() { _, err = m.Read(b, v) })
		switch {
		case v < 9: // here six zeros are an honest topic without a name
			if n > bound(size) {
				t.Errorf("version %d: %d bytes allocated, %v", v, n, err)
			}
		case n > 1<<20 || v < 13 && err == nil:
			t.Errorf("version %d: %d bytes allocated, %v", v, n, err)
		}
		if n := allocated(func() { WalkProduce(b, v) }); n > 4096 {
			t.Errorf("version %d: the walk allocates %d bytes", v, n)
		}
	}
}

// a declared count of tags far beyond what is left is not looped over: not in any flexible
// message, not behind any prefix of one. Some 25,000 bombs, each good for 90 seconds if it were; the
// deadline is only there to end a failing test.
func TestTagBombs(t *testing.T) {
	f := newFiller(12)
	bomb := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	done := make(chan struct{})
	go func() {
		defer close(done)
		eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
			if v < s.flex {
				return
			}
			b, err := f.message(s, v).Append(nil, v)
			if err != nil {
				t.Error(err)
			}
			for range 64 {
				s.make().Read(append(b[:f.IntN(len(b)):len(b)][:f.IntN(len(b))], bomb...), v)
			}
		})
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a count of tags is looped over")
	}
	for _, body := range []string{"0261 0261 ffffffff0f", "01 01 ffffffff0f"} {
		if _, err := new(ApiVersionsRequest).Read(unhex(t, body), 3); err == nil {
			t.Error("the bomb is accepted")
		}
	}
	if _, _, _, err := ReadRequestHeader(unhex(t, "0012 0003 00000001 ffff ffffffff0f")); err == nil {
		t.Error("the bomb in a header is accepted")
	}
}

// Random bytes and mutated messages, every message and version: no panic, no more memory than
// the bound, and what is accepted is written and read again the same.
func TestHostileBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 4))
	f := newFiller(14)
	f.tags = true
	eachVersion(t, func(t *testing.T, s schemaMessage, v int16) {
		var inputs [][]byte
		for range 12 {
			inputs = append(inputs, f.data(rng.IntN(64)), bytes.Repeat([]byte{[]byte{0, 1, 2, 0x7f}[rng.IntN(4)]}, rng.IntN(4096)))
			b, err := f.message(s, v).Append(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			inputs = append(inputs, mutate(rng, b), mutate(rng, mutate(rng, b)))
		}
		sum, n := 0, 0
		n = allocated(func() {
			for _, b := range inputs {
				sum += bound(len(b))
				s.make().Read(b, v)
			}
		})
		if n > sum {
			t.Fatalf("%d bytes allocated, the bound is %d", n, sum)
		}
		for _, b := range inputs {
			checkStable(t, s.make, b, v)
		}
	})
}

// checkStable: a message that is accepted can be written, is then shorter or as long, and reads the same.
func checkStable(t *testing.T, make func() Message, b []byte, v int16) {
	t.Helper()
	m := make()
	rest, err := m.Read(b, v)
	if err != nil {
		if len(rest) != len(b) {
			t.Fatalf("%x: an error consumed %d bytes", b, len(b)-len(rest))
		}
		return
	}
	once, err := m.Append(nil, v)
	if err != nil {
		if strings.Contains(err.Error(), "UnknownTags are not in ascending order") {
			return // read, as Kafka does; neither writes it
		}
		t.Fatalf("%x is read and cannot be written: %v", b, err)
	}
	again := make()
	if rest, err := again.Read(once, v); err != nil || len(rest) != 0 {
		t.Fatalf("%x, written again as %x: %d bytes left, %v", b, once, len(rest), err)
	}
	twice, err := again.Append(nil, v)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("%x, then %x, then %x, %v", b, once, twice, err)
	}
}

func mutate(rng *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) == 0 {
		return b
	}
	switch at := rng.IntN(len(b)); rng.IntN(5) {
	case 0:
		b[at] ^= 1 << rng.IntN(8)
	case 1:
		return b[:at]
	case 2:
		return append(b[:at], b[at+1:]...)
	case 3:
		return append(b[:at:at], append([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, b[at:]...)...)
	case 4:
		b[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[rng.IntN(5)]
	}
	return b
}
