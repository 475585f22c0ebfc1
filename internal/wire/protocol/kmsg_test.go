package protocol

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type kmsgMessage interface {
	SetVersion(int16)
	MaxVersion() int16
	AppendTo([]byte) []byte
	ReadFrom([]byte) error
}

// kmsgPairs calls f for every request and response, ours and kmsg's, at every version both have.
func kmsgPairs(t *testing.T, f func(t *testing.T, s schemaMessage, v int16, theirs func() kmsgMessage)) {
	for _, s := range schemaMessages {
		var theirs func() kmsgMessage
		switch s.kind {
		case "request":
			if kmsg.RequestForKey(int16(s.key)) == nil {
				continue
			}
			theirs = func() kmsgMessage { return kmsg.RequestForKey(int16(s.key)) }
		case "response":
			if kmsg.ResponseForKey(int16(s.key)) == nil {
				continue
			}
			theirs = func() kmsgMessage { return kmsg.ResponseForKey(int16(s.key)) }
		default:
			continue
		}
		for v := s.lo; v <= min(s.hi, theirs().MaxVersion()); v++ {
			f(t, s, v, func() kmsgMessage { m := theirs(); m.SetVersion(v); return m })
			if t.Failed() {
				t.Fatalf("at %s version %d", s.name, v)
			}
		}
	}
}

// Our random messages through kmsg come back byte for byte.
func TestKmsgReadsOurs(t *testing.T) {
	f := newFiller(7)
	f.tags = true
	pairs := 0
	kmsgPairs(t, func(t *testing.T, s schemaMessage, v int16, theirs func() kmsgMessage) {
		pairs++
		for range 25 {
			b, err := f.message(s, v).Append(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			k := theirs()
			if err := k.ReadFrom(b); err != nil {
				t.Fatalf("%x: %v", b, err)
			}
			if again := k.AppendTo(nil); !bytes.Equal(again, b) {
				t.Fatalf("ours %x\nkmsg %x", b, again)
			}
		}
	})
	if pairs < 400 {
		t.Errorf("only %d messages compared", pairs)
	}
}

// kmsg's random messages through ours come back byte for byte. kmsg writes known tags at any
// flexible version; Kafka and we refuse those at versions before the field, and they are passed over.
// So is null for the records of a ShareFetch response, which only its version 0 had.
func TestKmsgReadByOurs(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 4))
	same, refused := 0, 0
	kmsgPairs(t, func(t *testing.T, s schemaMessage, v int16, theirs func() kmsgMessage) {
		for range 25 {
			k := theirs()
			fillKmsg(rng, reflect.ValueOf(k).Elem())
			k.SetVersion(v)
			b := k.AppendTo(nil)
			m := s.make()
			rest, err := m.Read(b, v)
			if err != nil && (strings.Contains(err.Error(), "a tag this version does not have") ||
				s.name == "ShareFetchResponse" && strings.Contains(err.Error(), "null for bytes")) {
				refused++
				continue
			}
			if err != nil || len(rest) != 0 {
				t.Fatalf("%x: %d bytes left, %v", b, len(rest), err)
			}
			again, err := m.Append(nil, v)
			if err != nil || !bytes.Equal(again, b) {
				t.Fatalf("kmsg %x\nours %x, %v", b, again, err)
			}
			same++
		}
	})
	if same < 10*refused {
		t.Errorf("%d messages compared, %d passed over", same, refused)
	}
}

func fillKmsg(rng *rand.Rand, v reflect.Value) {
	if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
		d.Default()
	}
	for i := range v.NumField() {
		g := v.Field(i)
		if name := v.Type().Field(i).Name; name == "Version" || name == "UnknownTags" || !g.CanSet() || rng.IntN(4) == 0 {
			continue
		}
		fillKmsgValue(rng, g)
	}
}

func fillKmsgValue(rng *rand.Rand, g reflect.Value) {
	f := filler{Rand: rng}
	switch g.Kind() {
	case reflect.Bool:
		g.SetBool(rng.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		g.SetInt(int64(rng.Uint64()) >> (64 - g.Type().Bits()))
	case reflect.Uint16, reflect.Uint32:
		g.SetUint(rng.Uint64() >> (64 - g.Type().Bits()))
	case reflect.Float64:
		g.SetFloat(rng.Float64())
	case reflect.String:
		g.SetString(f.text())
	case reflect.Array:
		for i := range g.Len() {
			g.Index(i).SetUint(uint64(rng.IntN(256)))
		}
	case reflect.Pointer:
		g.Set(reflect.New(g.Type().Elem()))
		fillKmsgValue(rng, g.Elem())
	case reflect.Slice:
		if g.Type().Elem().Kind() == reflect.Uint8 {
			g.SetBytes(f.data(rng.IntN(30)))
			return
		}
		n := rng.IntN(4)
		g.Set(reflect.MakeSlice(g.Type(), n, n))
		for i := range n {
			fillKmsgValue(rng, g.Index(i))
		}
	case reflect.Struct:
		fillKmsg(rng, g)
	}
}
