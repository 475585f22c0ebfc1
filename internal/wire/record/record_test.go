package record

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"samsa/internal/base/kerr"
)

var codecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

// build makes a client's batch of n records.
func build(codec Codec, n int, change func(*BatchOptions)) Batch {
	opt := NewBatchOptions()
	opt.Codec = codec
	if change != nil {
		change(&opt)
	}
	b := NewBuilder(opt)
	for i := range n {
		b.Append(1000+int64(i), fmt.Appendf(nil, "key-%d", i), bytes.Repeat([]byte{byte(i)}, 50), []Header{{"h", []byte("v")}})
	}
	return b.Build(nil)
}

// rec is a record that is kept.
type rec struct {
	offset, time int64
	seq          int32
	key, value   string
	nulls        [2]bool
	headers      string
}

func list(b Batch) (got []rec, err error) {
	for r, err := range Records(b) {
		if err != nil {
			return got, err
		}
		got = append(got, rec{r.Offset, r.Timestamp, r.Sequence, string(r.Key), string(r.Value),
			[2]bool{r.Key == nil, r.Value == nil}, fmt.Sprintf("%q", r.Headers)})
	}
	return got, nil
}

func TestBuildAndReadEveryCodec(t *testing.T) { // D-03, D-32..D-36
	for _, codec := range codecs {
		for _, n := range []int{1, 3, 1000, 20000} {
			b := build(codec, n, func(o *BatchOptions) { o.BaseOffset, o.BaseSequence, o.ProducerID = 77, 5, 9 })
			if !b.ValidCRC() || b.SizeInBytes() != len(b) || b.Compression() != codec || int(b.Count()) != n || b.LastOffset() != 76+int64(n) {
				t.Fatalf("%v %d: %v", codec, n, b)
			}
			got, err := list(b)
			if err != nil || len(got) != n {
				t.Fatalf("%v: %d records of %d, %v", codec, len(got), n, err)
			}
			for i, r := range got {
				want := rec{77 + int64(i), 1000 + int64(i), 5 + int32(i), fmt.Sprintf("key-%d", i), string(bytes.Repeat([]byte{byte(i)}, 50)),
					[2]bool{}, `[{"h" "v"}]`}
				if r != want {
					t.Fatalf("%v record %d: %+v", codec, i, r)
				}
			}
			if codec != None && n >= 1000 && len(b) > b.sizeOf(n) {
				t.Errorf("%v: %d bytes, nothing was compressed", codec, len(b))
			}
		}
	}
}

func (b Batch) sizeOf(n int) int { return n * 60 }

func TestNullAndEmptyAreDifferent(t *testing.T) { // D-03
	for _, codec := range codecs {
		opt := NewBatchOptions()
		opt.Codec = codec
		b := NewBuilder(opt)
		b.Append(NoTimestamp, nil, []byte{}, []Header{{"", nil}, {"x", []byte{}}})
		b.Append(NoTimestamp, []byte{}, nil, nil)
		for r, err := range Records(b.Build(nil)) {
			if err != nil {
				t.Fatal(err)
			}
			if first := r.Offset == 0; (r.Key == nil) != first || (r.Value == nil) == first || r.Timestamp != NoTimestamp {
				t.Fatalf("%v: %+v", codec, r)
			} else if first && (len(r.Headers) != 2 || r.Headers[0].Value != nil || r.Headers[1].Value == nil) {
				t.Fatalf("%v: %+v", codec, r.Headers)
			}
		}
	}
}

func produce(b Batch, cfg ProduceConfig) (Validated, error) {
	return ValidateProduce(Produce{Records: b, APIVersion: 11, NowMs: 2000, Topic: "t", Partition: 0}, &cfg)
}

func TestEveryCodecIntoEveryCodec(t *testing.T) { // D-32
	for _, from := range codecs {
		for _, to := range codecs {
			for _, n := range []int{1, 3000} {
				sent := build(from, n, func(o *BatchOptions) {
					o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = 9, 2, 40, true
				})
				copied := bytes.Clone(sent)
				cfg := DefaultProduceConfig()
				cfg.Target, cfg.TargetProducer = to, false
				v, err := produce(sent, cfg)
				if err != nil {
					t.Fatalf("%v to %v: %v", from, to, err)
				}
				v.Assign(500, 7)
				if v.Rebuilt != (from != to) || !v.Batch.ValidCRC() || v.Batch.Compression() != to {
					t.Fatalf("%v to %v: %v", from, to, v.Batch)
				}
				b := v.Batch
				if b.BaseOffset() != 500 || b.LeaderEpoch() != 7 || b.ProducerID() != 9 || b.ProducerEpoch() != 2 || b.BaseSequence() != 40 ||
					!b.IsTransactional() || v.MaxTimestamp != 1000+int64(n)-1 || b.MaxTimestamp() != v.MaxTimestamp || v.MaxTimestampDelta != int32(n)-1 {
					t.Fatalf("%v to %v: %v %+v", from, to, b, v)
				}
				if from == to && !bytes.Equal(b[posMagic:], copied[posMagic:]) {
					t.Fatalf("%v: bytes changed", from)
				}
				want, _ := list(copied)
				got, err := list(b)
				if err != nil || len(got) != len(want) {
					t.Fatalf("%v to %v: %d records, %v", from, to, len(got), err)
				}
				for i := range want {
					want[i].offset += 500
					if got[i] != want[i] {
						t.Fatalf("%v to %v: record %d is %+v, want %+v", from, to, i, got[i], want[i])
					}
				}
			}
		}
	}
}

func rejected(t *testing.T, err error, code *kerr.Error) *Rejected {
	t.Helper()
	var r *Rejected
	if !errors.As(err, &r) || r.Kerr != code || !errors.Is(err, code) {
		t.Fatalf("got %v, want %v", err, code.Name)
	}
	return r
}
