package record

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

// golden reads testdata/golden.txt, which Kafka's classes wrote (testdata/Oracle.java).
func golden(t testing.TB) map[string]Batch {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]Batch{}
	for line := range strings.Lines(string(data)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "|")
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		m[name] = b
	}
	return m
}

// goldenRecords are what Oracle.fill appends.
func goldenRecords(first int64, seq int32, old bool) (want []rec) {
	for i := range int64(10) {
		r := rec{offset: first + i, time: 1000 + i*7, seq: NoSequence, headers: "[]"}
		if seq >= 0 {
			r.seq = AddSequence(seq, int32(i))
		}
		if r.nulls[0] = i%3 == 1; !r.nulls[0] {
			r.key = fmt.Sprintf("key-%d", i)
		}
		if r.nulls[1] = i%4 == 2; !r.nulls[1] {
			r.value = strings.Repeat(fmt.Sprintf("value-%d-", i), int(i)*8)
		}
		if i%5 == 3 && !old {
			r.headers = fmt.Sprintf("%q", []Header{{"hé", fmt.Appendf(nil, "x%d", i)}, {"", nil}})
		}
		want = append(want, r)
	}
	return want
}

func compare(t *testing.T, name string, b Batch, want []rec) {
	t.Helper()
	if !b.ValidCRC() || b.SizeInBytes() != len(b) {
		t.Fatalf("%s: bad checksum or size: %v", name, b)
	}
	got, err := list(b)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", name, len(got), len(want))
	}
	for i := range want {
		if want[i].headers == "[]" && got[i].headers == "[]" {
			want[i].headers = got[i].headers
		}
		if got[i] != want[i] {
			t.Fatalf("%s: record %d\n got %+v\nwant %+v", name, i, got[i], want[i])
		}
	}
}

// D-01, D-05, D-06, D-33..D-36: batches of Kafka's own builder.
func TestGoldenBatchesOfJava(t *testing.T) {
	all := golden(t)
	for _, codec := range codecs {
		b := all["v2-"+codec.String()]
		compare(t, codec.String(), b, goldenRecords(100, 2147483640, false))
		if b.BaseOffset() != 100 || b.LastOffset() != 109 || b.LeaderEpoch() != 17 || b.Magic() != 2 || b.Compression() != codec ||
			b.TimestampType() != CreateTime || b.BaseTimestamp() != 1000 || b.MaxTimestamp() != 1063 || b.ProducerID() != 4242 ||
			b.ProducerEpoch() != 3 || b.BaseSequence() != 2147483640 || b.LastSequence() != 1 || !b.IsTransactional() || b.IsControl() || b.Count() != 10 {
			t.Errorf("%v: %v", codec, b)
		}
		b = all["v2-append-time-"+codec.String()]
		want := goldenRecords(0, -1, false)
		for i := range want {
			want[i].time = 5555
		}
		compare(t, "append time "+codec.String(), b, want)
		if b.TimestampType() != LogAppendTime || b.HasProducerID() || b.LeaderEpoch() != NoLeaderEpoch || b.LastSequence() != NoSequence {
			t.Errorf("%v: %v", codec, b)
		}
	}
}

// The builder makes the very bytes Java makes, where no compressor is in between.
func TestBuilderMakesJavaBytes(t *testing.T) { // D-01, D-02, D-03, D-07
	all := golden(t)
	opt := NewBatchOptions()
	opt.BaseOffset, opt.LeaderEpoch = 100, 17
	opt.ProducerID, opt.ProducerEpoch, opt.BaseSequence, opt.Transactional = 4242, 3, 2147483640, true
	b := NewBuilder(opt)
	for r, err := range Records(all["v2-gzip"]) {
		if err != nil {
			t.Fatal(err)
		}
		b.AppendRecord(r)
	}
	if got := b.Build([]byte("prefix")); string(got[:6]) != "prefix" || !bytes.Equal(got[6:], all["v2-none"]) {
		t.Errorf("got  %x\nwant %x", got[6:], all["v2-none"])
	}
	if got := AppendEndTxnMarker(nil, 9, 5, 123456789, 77, 2, true, 11); !bytes.Equal(got, all["marker-commit"]) || len(got) != 78 {
		t.Errorf("commit: got %x\nwant %x", got, all["marker-commit"])
	}
	if got := AppendEndTxnMarker(nil, 10, 5, 123456790, 77, 2, false, 12); !bytes.Equal(got, all["marker-abort"]) {
		t.Errorf("abort: got %x\nwant %x", got, all["marker-abort"])
	}
	opt = NewBatchOptions()
	opt.BaseOffset, opt.LastOffset, opt.LeaderEpoch, opt.MaxTimestamp = 500, 509, 6, 999
	opt.ProducerID, opt.ProducerEpoch, opt.BaseSequence, opt.Transactional = 77, 2, 40, true
	for _, codec := range codecs { // an empty batch is never compressed
		opt.Codec = codec
		if got := NewBuilder(opt).Build(nil); !bytes.Equal(got, all["empty"]) {
			t.Errorf("empty %v: got %x\nwant %x", codec, got, all["empty"])
		}
	}
}

func TestMarkers(t *testing.T) { // D-07
	all := golden(t)
	if commit, epoch, err := EndTxnMarker(all["marker-commit"]); !commit || epoch != 11 || err != nil {
		t.Error(commit, epoch, err)
	}
	if commit, epoch, err := EndTxnMarker(all["marker-abort"]); commit || epoch != 12 || err != nil {
		t.Error(commit, epoch, err)
	}
	if _, _, err := EndTxnMarker(all["v2-none"]); err == nil {
		t.Error("a data batch was taken for a marker")
	}
	opt := NewBatchOptions()
	opt.Control = true
	for name, record := range map[string][2][]byte{
		"short_key": {{0, 0, 0}, make([]byte, 6)}, "null_key": {nil, make([]byte, 6)}, "short_value": {ControlKey(ControlAbort), make([]byte, 5)},
		"other_type": {ControlKey(ControlKRaftVoters), make([]byte, 6)}, "negative_version": {{255, 255, 0, 0}, make([]byte, 6)},
	} {
		b := NewBuilder(opt)
		b.Append(0, record[0], record[1], nil)
		if _, _, err := EndTxnMarker(b.Build(nil)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	b := NewBuilder(opt)
	b.Append(0, ControlKey(99), nil, nil)
	if typ, err := ControlTypeOf(b.Build(nil)); typ != 99 || err != nil {
		t.Errorf("an unknown type must be readable, to be skipped: %v %v", typ, err)
	}
}

func TestOldFormats(t *testing.T) { // D-08, D-35
	all := golden(t)
	for magic := range int8(2) {
		for _, codec := range codecs[:4] {
			name := fmt.Sprintf("v%d-%v", magic, codec)
			b := all[name]
			var got []rec
			count := 0
			for batch, err := range Split(b) {
				if err != nil {
					t.Fatal(err)
				}
				count++
				if !batch.ValidCRC() || batch.Magic() != magic || batch.Compression() != codec || batch.LeaderEpoch() != NoLeaderEpoch ||
					batch.HasProducerID() || batch.IsTransactional() || batch.IsControl() || batch.TimestampType() != CreateTime {
					t.Fatalf("%s: %v", name, batch)
				}
				if first, err := FirstOffset(batch); err != nil || codec != None && first != 100 {
					t.Fatalf("%s: first offset %d, %v", name, first, err)
				}
				l, err := list(batch)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got = append(got, l...)
			}
			if codec != None && count != 1 || codec == None && count != 10 || Batch(b).Count() != map[bool]int32{true: 1, false: -1}[codec == None] {
				t.Fatalf("%s: %d messages", name, count)
			}
			want := goldenRecords(100, -1, true)
			for i := range want {
				if magic == 0 {
					want[i].time = NoTimestamp
				}
				got[i].headers = "[]"
				if got[i] != want[i] {
					t.Fatalf("%s: record %d\n got %+v\nwant %+v", name, i, got[i], want[i])
				}
			}
		}
	}
	for _, codec := range codecs[1:4] {
		got, err := list(all["v1-append-time-"+codec.String()])
		if err != nil || len(got) != 10 || got[3].time != 5555 || got[3].offset != 103 {
			t.Errorf("v1 append time %v: %v %v", codec, got, err)
		}
	}
}
