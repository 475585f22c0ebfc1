package record

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

type draft struct {
	time       int64
	key, value []byte
	headers    []Header
}

var bytesGen = rapid.Custom(func(t *rapid.T) []byte {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2: // spans pieces and blocks
		return bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "unit"), rapid.IntRange(1, 9000).Draw(t, "times"))
	default:
		return rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "bytes")
	}
})

var draftGen = rapid.Custom(func(t *rapid.T) draft {
	d := draft{time: rapid.Int64Range(-1, 1<<45).Draw(t, "time"), key: bytesGen.Draw(t, "key"), value: bytesGen.Draw(t, "value")}
	for range rapid.IntRange(0, 3).Draw(t, "headers") {
		d.headers = append(d.headers, Header{rapid.String().Draw(t, "header"), bytesGen.Draw(t, "header value")})
	}
	return d
})

// What goes into a builder comes out of Records and of franz-go's decoder, through every codec and rebuild.
func TestPropertyRoundTrip(t *testing.T) { // D-01, D-03, D-05, D-32
	rapid.Check(t, func(t *rapid.T) {
		drafts := rapid.SliceOfN(draftGen, 1, 12).Draw(t, "records")
		opt := NewBatchOptions()
		opt.Codec = rapid.SampledFrom(codecs).Draw(t, "codec")
		opt.ProducerID, opt.ProducerEpoch = rapid.Int64Range(0, 1<<40).Draw(t, "producer"), 3
		opt.BaseSequence = rapid.Int32Range(0, 1<<31-1).Draw(t, "sequence")
		opt.Transactional = rapid.Bool().Draw(t, "transactional")
		b := NewBuilder(opt)
		var want []rec
		maxTime := NoTimestamp
		for i, d := range drafts {
			b.Append(d.time, d.key, d.value, d.headers)
			want = append(want, rec{int64(i), d.time, AddSequence(opt.BaseSequence, int32(i)), string(d.key), string(d.value),
				[2]bool{d.key == nil, d.value == nil}, fmt.Sprintf("%q", d.headers)})
			maxTime = max(maxTime, d.time)
		}
		plain := b.UncompressedBytes()
		sent := Batch(b.Build(nil))
		check := func(what string, batch Batch, base int64) {
			got, err := list(batch)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s: %d records, %v", what, len(got), err)
			}
			for i := range want {
				w := want[i]
				w.offset += base
				if got[i] != w {
					t.Fatalf("%s: record %d\n got %.200v\nwant %.200v", what, i, got[i], w)
				}
			}
			if !batch.ValidCRC() || batch.MaxTimestamp() != maxTime {
				t.Fatalf("%s: %v", what, batch)
			}
			var k kmsg.RecordBatch
			if err := k.ReadFrom(batch); err != nil {
				t.Fatalf("%s: kmsg: %v", what, err)
			}
			if k.FirstOffset != batch.BaseOffset() || int(k.Length)+12 != len(batch) || k.PartitionLeaderEpoch != batch.LeaderEpoch() ||
				k.Magic != 2 || uint32(k.CRC) != batch.CRC() || k.Attributes != batch.Attributes() || k.LastOffsetDelta != batch.LastOffsetDelta() ||
				k.FirstTimestamp != batch.BaseTimestamp() || k.MaxTimestamp != batch.MaxTimestamp() || k.ProducerID != batch.ProducerID() ||
				k.ProducerEpoch != batch.ProducerEpoch() || k.FirstSequence != batch.BaseSequence() || k.NumRecords != batch.Count() {
				t.Fatalf("%s: kmsg reads %+v", what, k)
			}
			if batch.Compression() == None {
				checkKmsgRecords(t, k.Records, drafts)
			}
		}
		check("built", sent, 0)
		if opt.Codec == None && len(sent) != plain {
			t.Fatalf("uncompressed size %d, really %d", plain, len(sent))
		}
		cfg := DefaultProduceConfig()
		cfg.TimestampAfterMaxMs = 1 << 62
		cfg.TargetProducer, cfg.Target = false, rapid.SampledFrom(codecs).Draw(t, "target")
		cfg.MaxMessageBytes = 1 << 30
		cfg.Levels = Levels{rapid.IntRange(-1, 9).Draw(t, "gzip"), rapid.IntRange(1, 17).Draw(t, "lz4"), rapid.IntRange(-10, 22).Draw(t, "zstd")}
		v, err := produce(bytes.Clone(sent), cfg)
		if err != nil {
			t.Fatal(err)
		}
		v.Assign(1<<40, 9)
		check("validated", v.Batch, 1<<40)
		if v.MaxTimestamp != maxTime || maxTime >= 0 && drafts[v.MaxTimestampDelta].time != maxTime {
			t.Fatalf("max timestamp %d at %d", v.MaxTimestamp, v.MaxTimestampDelta)
		}
	})
}

func checkKmsgRecords(t *rapid.T, payload []byte, drafts []draft) {
	for i, d := range drafts {
		size, n := readVarint(payload)
		var k kmsg.Record
		if err := k.ReadFrom(payload[:n+int(size)]); err != nil {
			t.Fatalf("kmsg record %d: %v", i, err)
		}
		payload = payload[n+int(size):]
		if int(k.OffsetDelta) != i || !bytes.Equal(k.Key, d.key) || !bytes.Equal(k.Value, d.value) || len(k.Headers) != len(d.headers) {
			t.Fatalf("kmsg record %d: %+v", i, k)
		}
	}
}

// franz-go's encoder is the other way round.
func TestKmsgBatchesAreRead(t *testing.T) { // D-01, D-03
	var payload []byte
	for i := range 3 {
		k := kmsg.Record{TimestampDelta64: int64(i * 5), OffsetDelta: int32(i), Key: []byte("k"), Value: nil}
		k.Headers = append(k.Headers, kmsg.Header{Key: "h", Value: []byte("x")})
		k.Length = int32(len(k.AppendTo(nil)) - 1)
		payload = k.AppendTo(payload)
	}
	k := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: 2, FirstTimestamp: 1000, MaxTimestamp: 1010, ProducerID: -1,
		ProducerEpoch: -1, FirstSequence: -1, NumRecords: 3, Records: payload}
	k.Length = int32(len(k.AppendTo(nil)) - 12)
	b := Batch(k.AppendTo(nil))
	b.UpdateCRC()
	v, err := produce(b, DefaultProduceConfig())
	if err != nil || v.MaxTimestamp != 1010 || v.MaxTimestampDelta != 2 {
		t.Fatalf("%+v %v", v, err)
	}
	got, err := list(b)
	if err != nil || len(got) != 3 || got[2].time != 1010 || got[2].key != "k" || !got[2].nulls[1] || got[2].headers != `[{"h" "x"}]` {
		t.Fatalf("%+v %v", got, err)
	}
}

func TestBuilderKeepsGapsAndHorizon(t *testing.T) { // D-04, KIP-534: what compaction writes
	for _, codec := range codecs {
		opt := NewBatchOptions()
		opt.BaseOffset, opt.LastOffset, opt.Codec, opt.DeleteHorizon, opt.BaseSequence, opt.ProducerID = 100, 130, codec, 999999, 7, 5
		b := NewBuilder(opt)
		b.AppendAt(105, 1000, []byte("a"), nil, nil)
		b.AppendAt(120, 900, []byte("b"), []byte("v"), nil)
		if b.NextOffset() != 121 || b.MaxTimestamp() != 1000 || b.Count() != 2 {
			t.Fatal(b.NextOffset(), b.MaxTimestamp(), b.Count())
		}
		batch := Batch(b.Build(nil))
		horizon, ok := batch.DeleteHorizon()
		if batch.BaseOffset() != 100 || batch.LastOffset() != 130 || batch.Count() != 2 || horizon != 999999 || !ok ||
			batch.MaxTimestamp() != 1000 || batch.LastSequence() != 37 || !batch.ValidCRC() {
			t.Fatalf("%v", batch)
		}
		got, err := list(batch)
		if err != nil || len(got) != 2 || got[0].offset != 105 || got[0].time != 1000 || got[0].seq != 12 || got[1].offset != 120 || got[1].time != 900 {
			t.Fatalf("%+v %v", got, err)
		}
	}
}
