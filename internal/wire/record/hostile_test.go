package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"samsa/internal/base/kerr"
)

// allocated is how many bytes f takes from the heap, once pools are warm.
func allocated(f func()) uint64 {
	f()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// bomb is a batch of one record whose value is size zeros.
func bomb(codec Codec, size int) Batch {
	b := make(Batch, HeaderSize)
	c := compress(codec, DefaultLevels(), b)
	body := append([]byte{0, 0, 0, 1}, appendVarint(nil, int64(size))...)
	c.write(appendVarint(nil, int64(len(body)+size+1)))
	c.write(body)
	zeros := make([]byte, 1<<20)
	for n := size; n > 0; n -= len(zeros) {
		c.write(zeros[:min(n, len(zeros))])
	}
	c.write([]byte{0})
	return rawBatch(None, 1, c.close()[HeaderSize:], or16(int16(codec)))
}

func TestBombIsNotHeldInMemory(t *testing.T) { // D-09: a 64 MB record in a batch that passes max.message.bytes
	for _, codec := range codecs[1:] {
		size := 64 << 20
		if codec == Snappy || codec == LZ4 {
			size = 16 << 20 // they do not shrink zeros as much
		}
		sent := bomb(codec, size)
		if len(sent) > 1048588 {
			t.Fatalf("%v: %d bytes", codec, len(sent))
		}
		for _, target := range []Codec{codec, None} {
			cfg := DefaultProduceConfig()
			cfg.TargetProducer, cfg.Target = false, target
			var err error
			n := allocated(func() { _, err = produce(bytes.Clone(sent), cfg) })
			if n > 8<<20 && !raced {
				t.Errorf("%v to %v: %d bytes allocated", codec, target, n)
			}
			if target == codec && err != nil {
				t.Errorf("%v: %v", codec, err)
			}
			if target == None {
				rejected(t, err, kerr.MessageTooLarge)
			}
		}
		cfg := DefaultProduceConfig()
		cfg.MaxUnpackedBytes = 1 << 20
		_, err := produce(bytes.Clone(sent), cfg)
		rejected(t, err, kerr.InvalidRecord)
		cfg = DefaultProduceConfig()
		cfg.MaxDecompressedMessageBytes = 1 << 20
		_, err = produce(bytes.Clone(sent), cfg)
		rejected(t, err, kerr.InvalidRecord) // D-216, before anything is unpacked
	}
}

func TestClaimsDoNotAllocate(t *testing.T) { // D-09: lengths that promise more than comes
	zstdFrame := func(head ...byte) []byte { return append([]byte{0x28, 0xb5, 0x2f, 0xfd}, head...) }
	rle := []byte{0x03, 0, 0, 7} // the last block: 0 bytes
	cases := map[string]struct {
		codec   Codec
		payload []byte
	}{
		"zstd_window_128MB":        {Zstd, append(zstdFrame(0, 17<<3), rle...)},
		"zstd_window_128MB_single": {Zstd, append(zstdFrame(0xa0, 0, 0, 0, 8), rle...)},
		"zstd_content_2GB":         {Zstd, append(zstdFrame(0xa0, 255, 255, 255, 127), rle...)},
		"zstd_window_huge":         {Zstd, append(zstdFrame(0, 0xff), rle...)},
		"snappy_claims_2GB":        {Snappy, []byte{0xff, 0xff, 0xff, 0xff, 7, 0, 'x'}},
		"snappy_block_2GB":         {Snappy, append([]byte(xerialHeader), 0x7f, 255, 255, 255)},
		"snappy_xerial_claims_2GB": {Snappy, append([]byte(xerialHeader), 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 7, 0, 'x')},
		"lz4_4MB_blocks":           {LZ4, append(lz4Head(0x60, 0x70), 3, 0, 0, 0, 0x10, 'x', 0, 0, 0, 0, 0)},
	}
	for name, c := range cases {
		b := rawBatch(None, 1, c.payload, or16(int16(c.codec)))
		var err error
		if n := allocated(func() { _, err = produce(bytes.Clone(b), DefaultProduceConfig()) }); n > 300<<10 && !raced {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
		rejected(t, err, kerr.InvalidRecord)
	}
	// A record that claims 2 GB, read by Records.
	b := rawBatch(Gzip, 1, append(appendVarint(nil, math.MaxInt32-8), 0, 0, 0), nil)
	var err error
	if n := allocated(func() { _, err = list(b) }); n > 100<<10 && !raced || err == nil {
		t.Errorf("record length: %d bytes allocated, %v", n, err)
	}
}

func lz4Head(flags, bd byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, lz4Magic), flags, bd, byte(xxh32([]byte{flags, bd})>>8))
}

// Producers of high zstd levels ask for big windows; what they send must be read, and not
// keep a window per decoder.
func TestZstdWindows(t *testing.T) { // D-36
	plain := plainRecords(20000)
	for _, window := range []int{1 << 10, 64 << 10, 128 << 10, 256 << 10, 8 << 20, 128 << 20} {
		for _, sum := range []bool{false, true} {
			for _, once := range []bool{false, true} {
				var out sliceWriter
				z, err := zstd.NewWriter(&out, zstd.WithWindowSize(window), zstd.WithEncoderCRC(sum), zstd.WithSingleSegment(once))
				if err != nil {
					t.Fatal(err)
				}
				payload := out.b
				if once {
					payload = z.EncodeAll(plain, nil)
				} else {
					z.Write(plain[:30000])
					z.Flush()
					z.Write(plain[30000:])
					z.Close()
					payload = out.b
				}
				b := rawBatch(None, 20000, payload, or16(int16(Zstd)))
				if n := allocated(func() { _, err = produce(bytes.Clone(b), DefaultProduceConfig()) }); n > 3<<20 && !raced || err != nil {
					t.Errorf("window %d once=%t: %d bytes allocated, %v", window, once, n, err)
				}
			}
		}
	}
}

func TestZstdFrames(t *testing.T) { // D-36: several frames, skippable ones, damage
	one := func(p []byte) []byte { c := compress(Zstd, DefaultLevels(), nil); c.write(p); return c.close() }
	skip := []byte{0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}
	p := plainRecords(2)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		payload []byte
		good    bool
	}{
		"two_frames":        {join(one(p[:9]), one(p[9:])), true},
		"skippable":         {join(skip, one(p), skip), true},
		"empty_frame":       {join(one(nil), one(p), one(nil)), true},
		"garbage_behind":    {join(one(p), []byte("garbage")), false},
		"cut_magic_behind":  {join(one(p), []byte{0x28, 0xb5}), false},
		"skippable_cut":     {join(one(p), skip[:10]), false},
		"only_skippable":    {skip, false},
		"checksum_cut":      {one(p)[:len(one(p))-1], false},
		"bad_block_type":    {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0, 7, 0, 0}, false},
		"header_cut":        {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0, 0, 0, 0}, false},
		"block_header_cut":  {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0, 1, 0}, false},
		"no_payload_at_all": {nil, false},
	} {
		_, err := produce(rawBatch(None, 2, c.payload, or16(int16(Zstd))), DefaultProduceConfig())
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLZ4Frames(t *testing.T) { // D-35: what Kafka's own reader takes and refuses
	p := plainRecords(1)
	stored := binary.LittleEndian.AppendUint32(nil, uint32(len(p))|lz4Stored)
	stored = append(stored, p...)
	sum := binary.LittleEndian.AppendUint32(nil, xxh32(p))
	end := []byte{0, 0, 0, 0}
	head := func(flags, bd byte, extra ...byte) []byte {
		h := append([]byte{flags, bd}, extra...)
		return append(append(binary.LittleEndian.AppendUint32(nil, lz4Magic), h...), byte(xxh32(h)>>8))
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		payload []byte
		good    bool
	}{
		"stored":               {join(head(0x60, 0x40), stored, end), true},
		"4MB_blocks":           {join(head(0x60, 0x70), stored, end), true},
		"content_size":         {join(head(0x68, 0x40, 1, 2, 3, 4, 5, 6, 7, 8), stored, end), true},
		"content_checksum":     {join(head(0x64, 0x40), stored, end, []byte("any!")), true},
		"content_checksum_cut": {join(head(0x64, 0x40), stored, end, []byte("any")), false},
		"block_checksum":       {join(head(0x70, 0x40), stored, sum, end), true},
		"block_checksum_bad":   {join(head(0x70, 0x40), stored, []byte("xxxx"), end), false},
		"bytes_behind":         {join(head(0x60, 0x40), stored, end, []byte("more")), true},
		"no_end_mark":          {join(head(0x60, 0x40), stored), false},
		"dependent_blocks":     {join(head(0x40, 0x40), stored, end), false},
		"version_2":            {join(head(0xa0, 0x40), stored, end), false},
		"reserved_flag":        {join(head(0x62, 0x40), stored, end), false},
		"block_size_3":         {join(head(0x60, 0x30), stored, end), false},
		"bd_reserved":          {join(head(0x60, 0x41), stored, end), false},
		"block_beyond_max":     {join(head(0x60, 0x40), []byte{1, 0, 1, 0x80}, make([]byte, 65537), end), false},
		"header_checksum":      {join(head(0x60, 0x40)[:6], []byte{0}, stored, end), false},
		"magic":                {join([]byte("LZ4!"), head(0x60, 0x40)[4:], stored, end), false},
		"short":                {[]byte{4, 0x22, 0x4d, 0x18, 0x60}, false},
	} {
		_, err := produce(rawBatch(None, 1, c.payload, or16(int16(LZ4))), DefaultProduceConfig())
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, want := range map[string]uint32{"": 0x02cc5d05, "a": 0x550d7456, "abc": 0x32d153ff,
		"Nobody inspects the spammish repetition": 0xe2293b2f} {
		if got := xxh32([]byte(text)); got != want {
			t.Errorf("xxh32(%q) = %#x, want %#x", text, got, want)
		}
	}
}

func TestSnappyStreams(t *testing.T) { // D-34
	p := plainRecords(1) // fewer than 60 bytes: one literal
	raw := append([]byte{byte(len(p)), byte((len(p) - 1) << 2)}, p...)
	block := append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	header := []byte(xerialHeader)
	other := append([]byte(xerialMagic), 0, 0, 0, 2, 0, 0, 0, 1)
	for name, c := range map[string]struct {
		payload []byte
		good    bool
	}{
		"raw":                  {raw, true},
		"xerial":               {join(header, block), true},
		"xerial_twice":         {join(header, []byte{0, 0, 0, 1, 0}, header, block), true},
		"newer_version":        {join(other, block), true},
		"version_0":            {join([]byte(xerialMagic), make([]byte, 8), block), false},
		"block_cut":            {join(header, block[:len(block)-1]), false},
		"length_cut":           {join(header, block, []byte{0, 0}), false},
		"length_negative":      {join(header, []byte{255, 255, 255, 255}, raw), false},
		"garbage_behind_block": {append(bytes.Clone(raw), 0), false},
		"claim_too_long":       {append([]byte{byte(len(p) + 1)}, raw[1:]...), false},
		"claim_too_short":      {append([]byte{byte(len(p) - 1)}, raw[1:]...), false},
		"s2_repeat":            {[]byte{10, 4, 'a', 'b', 1, 0}, false},
		"copy_before_start":    {[]byte{10, 4, 'a', 'b', 1 | 4<<2, 9}, false},
		"literal_cut":          {[]byte{100, 60 << 2, 99}, false},
		"literal_length_cut":   {[]byte{100, 63 << 2, 99}, false},
		"copies_cut":           {[]byte{100, 2, 1}, false},
		"copy4_zero":           {[]byte{100, 0, 'a', 3, 0, 0, 0, 0}, false},
	} {
		_, err := produce(rawBatch(None, 1, c.payload, or16(int16(Snappy))), DefaultProduceConfig())
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSplit(t *testing.T) { // D-09, D-60
	a, b := build(None, 2, nil), build(Gzip, 3, nil)
	both := append(bytes.Clone(a), b...)
	for cut := range len(both) + 1 {
		var got []Batch
		for batch, err := range Split(both[:cut]) {
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			got = append(got, batch)
		}
		want := 0
		if cut >= len(a) {
			want++
		}
		if cut == len(both) {
			want++
		}
		if len(got) != want || want == 2 && (!bytes.Equal(got[0], a) || !bytes.Equal(got[1], b)) {
			t.Fatalf("cut at %d: %d batches, want %d", cut, len(got), want)
		}
		if want == 1 && cap(got[0]) != len(a) {
			t.Fatal("a batch reaches into the next one")
		}
	}
	for length, bad := range map[int32]bool{0: true, -1: true, 13: true, math.MinInt32: true, 14: true, 48: true, 49: false, 1 << 30: false,
		math.MaxInt32 - 12: false, math.MaxInt32 - 11: true, math.MaxInt32: true} {
		h := bytes.Clone(a)
		set32(posLength, length)(h)
		batch, rest, err := Next(h)
		if (err != nil) != bad || err != nil && !errors.Is(err, kerr.CorruptMessage) {
			t.Errorf("length %d: %v", length, err)
		}
		if !bad && length > 49 && (batch != nil || len(rest) != len(h)) {
			t.Errorf("length %d: got a batch", length)
		}
	}
	for magic := range 256 {
		h := bytes.Clone(a)
		h[posMagic] = byte(magic)
		if _, _, err := Next(h); (err == nil) != (magic <= 2) {
			t.Errorf("magic %d: %v", int8(magic), err)
		}
	}
}

func TestAttributes(t *testing.T) { // D-02: all 256 low bytes
	for low := range 256 {
		b := Batch(rawBatch(None, 1, nil, set16(posAttributes, int16(low)|0x7f00)))
		horizon, ok := b.DeleteHorizon()
		if int(b.Compression()) != low&7 || (b.TimestampType() == LogAppendTime) != (low&8 != 0) || b.IsTransactional() != (low&16 != 0) ||
			b.IsControl() != (low&32 != 0) || ok != (low&64 != 0) || ok && horizon != 1000 || b.Compression().Valid() != (low&7 < 5) {
			t.Errorf("%08b: %v", low, b)
		}
		if b.SetMaxTimestamp(LogAppendTime, 9); b.Attributes() != int16(low&0x77|8) || !b.ValidCRC() {
			t.Errorf("%08b became %016b", low, b.Attributes())
		}
	}
}

func TestSequencesWrap(t *testing.T) { // D-06
	for _, c := range [][3]int32{{0, 0, 0}, {5, 4, 9}, {math.MaxInt32, 0, math.MaxInt32}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 2, 5, 2},
		{math.MaxInt32, math.MaxInt32, math.MaxInt32 - 1}} {
		if got := AddSequence(c[0], c[1]); got != c[2] {
			t.Errorf("%d + %d = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestEmptyBatches(t *testing.T) { // D-04
	for _, codec := range codecs {
		b := rawBatch(codec, 0, nil, set32(posLastDelta, 9))
		got, err := list(b)
		if len(got) != 0 || err != nil || Batch(b).LastOffset() != 9 {
			t.Errorf("%v: %v %v", codec, got, err)
		}
	}
	if _, err := list(rawBatch(None, 0, []byte{0}, nil)); !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("bytes in an empty batch: %v", err)
	}
}

func TestRecordsStopsEarlyAndReportsDamage(t *testing.T) {
	for _, codec := range codecs {
		b := build(codec, 5000, nil)
		n := 0
		for range Records(b) {
			if n++; n == 3 {
				break
			}
		}
		cut := bytes.Clone(b[:len(b)-20])
		set32(posLength, int32(len(cut)-LogOverhead))(cut)
		got, err := list(cut)
		if len(got) >= 5000 || err == nil {
			t.Errorf("%v: %d records of a cut batch, %v", codec, len(got), err)
		}
		if _, err := list(b[:len(b)-1]); !errors.Is(err, kerr.CorruptMessage) {
			t.Errorf("%v: not whole: %v", codec, err)
		}
	}
	if _, err := list(rawBatch(None, 1, nil, or16(5))); !errors.Is(err, kerr.CorruptMessage) {
		t.Error(err)
	}
	if _, err := list(rawBatch(None, 1, nil, set32(posCount, -1))); !errors.Is(err, kerr.InvalidRecord) {
		t.Error(err)
	}
}

func TestOutOfStepDeltasAreRefused(t *testing.T) { // D-17: stricter than Kafka, documented
	p := append(plainRecord(0, 0, []byte("k")), plainRecord(2, 0, []byte("k"))...)
	for _, codec := range codecs {
		_, err := produce(rawBatch(codec, 2, p, nil), DefaultProduceConfig())
		rejected(t, err, kerr.InvalidRecord)
	}
}

func TestCoordinatorsAreTrusted(t *testing.T) { // D-24
	opt := NewBatchOptions()
	opt.BaseOffset = 40
	b := NewBuilder(opt)
	b.AppendAt(41, 1, nil, []byte("v"), nil)
	b.AppendAt(45, 1<<60, nil, []byte("v"), nil)
	cfg := DefaultProduceConfig()
	cfg.Compacted = true
	v, err := ValidateProduce(Produce{Records: b.Build(nil), Origin: FromCoordinator, NowMs: 2000, Topic: "t"}, &cfg)
	if err != nil || v.MaxTimestamp != 1<<60 {
		t.Fatalf("%+v %v", v, err)
	}
	marker := AppendEndTxnMarker(nil, 0, 5, 123, 77, 2, true, 11)
	want := bytes.Clone(marker)
	cfg.TargetProducer, cfg.Target = false, Zstd
	v, err = ValidateProduce(Produce{Records: marker, Origin: FromCoordinator, NowMs: 2000, Topic: "t"}, &cfg)
	if err != nil || v.Rebuilt || !bytes.Equal(v.Batch, want) {
		t.Fatalf("a marker is never compressed: %+v %v", v, err)
	}
	big := build(None, 2000, nil)
	cfg.MaxMessageBytes = 1000
	_, err = ValidateProduce(Produce{Records: big, Origin: FromCoordinator, NowMs: 2000, Topic: "t"}, &cfg)
	rejected(t, err, kerr.MessageTooLarge)
}

func TestNullRecordSet(t *testing.T) { // D-11
	_, err := ValidateProduce(Produce{APIVersion: 9, Topic: "t"}, &ProduceConfig{})
	rejected(t, err, kerr.InvalidRecord)
}

func TestTrustedPayloadIsNotUnpacked(t *testing.T) {
	cfg := DefaultProduceConfig()
	cfg.TrustPayload = true
	lie := rawBatch(None, 3, []byte("not gzip at all"), all(or16(int16(Gzip)), set64(posMaxTime, 1002)))
	v, err := produce(bytes.Clone(lie), cfg)
	if err != nil || v.MaxTimestamp != 1002 || !bytes.Equal(v.Batch, lie) {
		t.Fatalf("%+v %v", v, err)
	}
	cfg.TimestampType = LogAppendTime
	if v, err = produce(bytes.Clone(lie), cfg); err != nil || v.Batch.MaxTimestamp() != 2000 || v.LogAppendTime != 2000 || !v.Batch.ValidCRC() {
		t.Fatalf("%+v %v", v, err)
	}
	for name, change := range map[string]func(*ProduceConfig){
		"compacted": func(c *ProduceConfig) { c.Compacted = true },
		"before":    func(c *ProduceConfig) { c.TimestampType, c.TimestampBeforeMaxMs = CreateTime, 10 },
		"other":     func(c *ProduceConfig) { c.TargetProducer = false },
	} {
		cfg := cfg
		change(&cfg)
		if _, err = produce(bytes.Clone(lie), cfg); err == nil {
			t.Errorf("%s: the payload must be looked at", name)
		}
	}
}

func TestAllocations(t *testing.T) { // decision 12: nothing is allocated for a batch that stays as it is
	for _, codec := range codecs {
		sent := build(codec, 100, nil)
		p := Produce{Records: sent, APIVersion: 11, NowMs: 2000, Topic: "t"}
		cfg := DefaultProduceConfig()
		got := testing.AllocsPerRun(200, func() {
			v, err := ValidateProduce(p, &cfg)
			if err != nil {
				t.Fatal(err)
			}
			v.Assign(5, 6)
			v.Batch.SetBaseOffset(0)
		})
		// klauspost's decoders take a little for each stream.
		if limit := map[Codec]float64{None: 0, Gzip: 1, Snappy: 0, LZ4: 0, Zstd: 3}[codec]; got > limit && !raced {
			t.Errorf("%v: %v allocations", codec, got)
		}
	}
	b := build(None, 100, nil)
	if n := testing.AllocsPerRun(100, func() {
		for batch := range Split(b) {
			_ = batch.ValidCRC()
		}
	}); n != 0 {
		t.Errorf("Split: %v allocations", n)
	}
}

func TestManyAtOnce(t *testing.T) { // the pools are the only thing batches share
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				from, to := codecs[(i+j)%5], codecs[(i*j)%5]
				cfg := DefaultProduceConfig()
				cfg.TargetProducer, cfg.Target = false, to
				v, err := produce(build(from, 200+i, nil), cfg)
				if err != nil {
					t.Errorf("%v to %v: %v", from, to, err)
					return
				}
				if got, err := list(v.Batch); len(got) != 200+i || err != nil {
					t.Errorf("%v to %v: %d records, %v", from, to, len(got), err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkValidate(b *testing.B) {
	for _, codec := range codecs {
		opt := NewBatchOptions()
		opt.Codec = codec
		bl := NewBuilder(opt)
		for i := range 600 {
			bl.Append(1000, fmt.Appendf(nil, "key-%d", i), bytes.Repeat(fmt.Appendf(nil, "value %d ", i*7919), 8), nil)
		}
		sent := bl.Build(nil)
		b.Run(codec.String(), func(b *testing.B) {
			b.SetBytes(int64(bl.UncompressedBytes()))
			b.ReportAllocs()
			cfg := DefaultProduceConfig()
			for b.Loop() {
				if _, err := ValidateProduce(Produce{Records: sent, APIVersion: 11, NowMs: 2000, Topic: "t"}, &cfg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
