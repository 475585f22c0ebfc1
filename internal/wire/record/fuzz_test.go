package record

import (
	"bytes"
	"errors"
	"testing"

	"samsa/internal/base/kerr"
)

func seeds(f *testing.F) {
	for _, b := range golden(f) {
		f.Add([]byte(b))
	}
	for _, codec := range codecs {
		f.Add([]byte(build(codec, 3, nil)))
	}
	f.Add([]byte{})
}

// Properties: batches lie back to back from the start of the input, each as long as it says; what
// follows is too short for another or bad; nothing panics.
func FuzzSplit(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		at := 0
		for b, err := range Split(in) {
			if err != nil {
				if !errors.Is(err, kerr.CorruptMessage) {
					t.Fatal(err)
				}
				return
			}
			if &b[0] != &in[at] || len(b) != b.SizeInBytes() || len(b) < b.minSize() {
				t.Fatalf("batch at %d: %v", at, b)
			}
			at += len(b)
			_ = b.String()
			b.ValidCRC()
		}
		if rest, _, err := Next(in[at:]); rest != nil || err != nil {
			t.Fatalf("stopped at %d of %d", at, len(in))
		}
	})
}

// Properties: no panic; an error is one of two; without an error there are as many records as the header says,
// and a batch built of them holds them.
func FuzzRecords(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		b, _, err := Next(in)
		if b == nil || err != nil {
			for _, err := range Records(in) {
				if err == nil {
					t.Fatal("a record of half a batch")
				}
			}
			return
		}
		got, err := list(b)
		if err != nil {
			if !errors.Is(err, kerr.InvalidRecord) && !errors.Is(err, kerr.CorruptMessage) {
				t.Fatal(err)
			}
			return
		}
		if b.Magic() < 2 {
			return
		}
		if len(got) != int(b.Count()) {
			t.Fatalf("%d records, count %d", len(got), b.Count())
		}
		for i := 1; i < len(got); i++ {
			if got[i].offset <= got[i-1].offset {
				return // the builder takes ascending offsets only
			}
		}
		if len(got) == 0 || got[0].offset < b.BaseOffset() || got[len(got)-1].offset-b.BaseOffset() < 0 {
			return
		}
		opt := NewBatchOptions()
		opt.BaseOffset, opt.Codec = b.BaseOffset(), LZ4
		if b.BaseSequence() >= 0 {
			opt.BaseSequence = b.BaseSequence()
		}
		nb := NewBuilder(opt)
		for r := range Records(b) {
			nb.AppendRecord(r)
		}
		again, err := list(nb.Build(nil))
		if err != nil || len(again) != len(got) {
			t.Fatalf("%d records again, %v", len(again), err)
		}
		for i := range got {
			if got[i] != again[i] {
				t.Fatalf("record %d\n got %+v\nwant %+v", i, again[i], got[i])
			}
		}
	})
}

// Properties: no panic; what is accepted is a batch whose checksum holds, with the records that were sent, at
// the offsets 0 to n-1, and is accepted again as it is.
func FuzzValidate(f *testing.F) {
	for _, codec := range codecs {
		f.Add([]byte(build(codec, 3, nil)), int8(-1), false, true)
		f.Add([]byte(build(codec, 3, nil)), int8(codec+1)%5, true, false)
		f.Add([]byte(bomb(codec%4+1, 100000)), int8(2), false, false)
	}
	f.Fuzz(func(t *testing.T, in []byte, target int8, appendTime, fix bool) {
		if b, _, err := Next(in); fix && b != nil && err == nil && b.Magic() == 2 {
			b.UpdateCRC() // else hardly anything gets past the checksum
		}
		cfg := DefaultProduceConfig()
		cfg.TargetProducer = target < 0 || target > 4
		cfg.Target = Codec(max(target, 0) % 5)
		cfg.MaxUnpackedBytes = 16 << 20
		if appendTime {
			cfg.TimestampType = LogAppendTime
		}
		sent := bytes.Clone(in)
		v, err := ValidateProduce(Produce{Records: in, APIVersion: 11, NowMs: 2000, Topic: "t"}, &cfg)
		if err != nil {
			var r *Rejected
			if !errors.As(err, &r) || r.Kerr == nil {
				t.Fatalf("not a *Rejected: %v", err)
			}
			return
		}
		want, err := list(Batch(sent[:Batch(sent).SizeInBytes()]))
		if err != nil {
			t.Fatalf("accepted, but cannot be read: %v", err)
		}
		v.Assign(0, 3)
		if !v.Batch.ValidCRC() || v.Batch.SizeInBytes() != len(v.Batch) || int(v.Batch.Count()) != len(want) {
			t.Fatalf("%v", v.Batch)
		}
		got, err := list(v.Batch)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d records of %d, %v", len(got), len(want), err)
		}
		for i := range got {
			if got[i].offset != int64(i) || got[i].key != want[i].key || got[i].value != want[i].value || got[i].nulls != want[i].nulls ||
				got[i].headers != want[i].headers || appendTime && got[i].time != 2000 {
				t.Fatalf("record %d\n got %+v\nwant %+v", i, got[i], want[i])
			}
		}
		if v.MaxTimestamp != v.Batch.MaxTimestamp() {
			t.Fatalf("max timestamp %d, in the batch %d", v.MaxTimestamp, v.Batch.MaxTimestamp())
		}
		first := bytes.Clone(v.Batch)
		cfg.TimestampAfterMaxMs, cfg.TimestampType = 1<<62, CreateTime
		if appendTime || cfg.MaxMessageBytes < len(first) {
			return // a stamped batch is refused from a client
		}
		again, err := ValidateProduce(Produce{Records: v.Batch, APIVersion: 11, NowMs: 2000, Topic: "t"}, &cfg)
		if err != nil || again.Rebuilt || !bytes.Equal(again.Batch, first) {
			t.Fatalf("not accepted again: %v", err)
		}
	})
}

// A hostile batch may not blow up what follows it in the same pools.
func TestPoolsSurviveDamage(t *testing.T) { // D-37
	for _, codec := range codecs[1:] {
		good := build(codec, 500, nil)
		for cut := range 60 {
			bad := bytes.Clone(good)
			bad = bad[:len(bad)-1-cut*7]
			set32(posLength, int32(len(bad)-LogOverhead))(bad)
			Batch(bad).UpdateCRC()
			for _, target := range []Codec{codec, None, Gzip} {
				cfg := DefaultProduceConfig()
				cfg.TargetProducer, cfg.Target = false, target
				_, err := produce(bytes.Clone(bad), cfg)
				rejected(t, err, kerr.InvalidRecord)
				if _, err := produce(bytes.Clone(good), cfg); err != nil {
					t.Fatalf("%v to %v after damage: %v", codec, target, err)
				}
			}
		}
	}
}
