package record

import (
	"math"
	"strconv"
	"sync"

	"samsa/internal/base/kerr"
)

// Origin is who appends to a leader's log.
type Origin int8

const (
	FromClient      Origin = iota
	FromCoordinator        // batches of this node's own: not checked for D-14, D-17, D-18, D-19 (D-24)
)

// ProduceConfig is the part of a topic's configuration that decides about produced
// batches. Start from DefaultProduceConfig.
type ProduceConfig struct {
	Target                      Codec
	TargetProducer              bool // compression.type=producer: keep the codec; Target is not looked at
	Levels                      Levels
	TimestampType               TimestampType
	TimestampBeforeMaxMs        int64
	TimestampAfterMaxMs         int64
	MaxMessageBytes             int
	MaxDecompressedMessageBytes int // of one record of a compressed batch (D-216)
	Compacted                   bool

	// MaxUnpackedBytes is samsa's own bound on the sum of what a compressed batch unpacks to (D-09). 0 is none.
	MaxUnpackedBytes int64

	// TrustPayload leaves the payload of a batch alone that needs no rewriting: only header and
	// checksum are looked at, records are not counted, and the maximum timestamp is taken from the header. Not what
	// Kafka does; for clusters that trust their producers. It has no effect on compacted topics.
	TrustPayload bool
}

// DefaultProduceConfig are Kafka's topic defaults.
func DefaultProduceConfig() ProduceConfig {
	return ProduceConfig{TargetProducer: true, Levels: DefaultLevels(), TimestampType: CreateTime,
		TimestampBeforeMaxMs: math.MaxInt64, TimestampAfterMaxMs: 3600000, MaxMessageBytes: 1048588,
		MaxDecompressedMessageBytes: maxRecordBody, MaxUnpackedBytes: 4 << 30}
}

// Produce is one partition's part of a produce request.
type Produce struct {
	Records    []byte // nil is a null record set; changed in place by ValidateProduce
	Origin     Origin
	APIVersion int16 // of the produce request; 7 and up may carry zstd. Not looked at FromCoordinator.
	NowMs      int64
	Topic      string // for messages
	Partition  int32
}

// Validated is a batch ready to be appended once it has an offset.
type Validated struct {
	Batch             Batch // aliases Produce.Records unless Rebuilt
	MaxTimestamp      int64
	MaxTimestampDelta int32 // offset delta of the first record that has it
	LogAppendTime     int64 // -1 unless the topic is LogAppendTime
	Rebuilt           bool  // recompressed: Batch is memory of its own
	Stats             ConversionStats
}

// ConversionStats feed Kafka's message conversion metrics.
type ConversionStats struct {
	TemporaryMemoryBytes int64
	RecordsConverted     int32
}

// Assign gives the batch its place in the log; the checksum stays valid (D-01, D-20).
func (v *Validated) Assign(baseOffset int64, leaderEpoch int32) {
	v.Batch.SetBaseOffset(baseOffset)
	v.Batch.SetLeaderEpoch(leaderEpoch)
}

// ValidateProduce checks and rewrites what a client or a coordinator sent (sections 1 to 3): all
// that can be done without knowing the offset, so that it need not happen under the log's
// lock. Errors are *Rejected, and are the ones of Kafka 4.4.0 in its order of checks, except that any
// offset delta that is not the record's number is kerr.InvalidRecord (D-17), and so is a payload that does not decompress (D-37).
//
// Records are looked at one by one but neither copied nor kept: a batch that needs no rewriting costs one pass over
// its bytes, and without a codec no allocation.
func ValidateProduce(p Produce, cfg *ProduceConfig) (Validated, error) {
	v := validators.Get().(*validator)
	defer v.release()
	v.p, v.cfg = p, cfg
	b, err := v.checkBatch()
	if err != nil {
		return Validated{}, err
	}
	return v.checkRecords(b)
}

// validators are pooled because the compiler cannot see that their parts do not outlive a call.
var validators = sync.Pool{New: func() any { return &validator{} }}

func (v *validator) release() {
	v.s.stop()
	*v = validator{}
	validators.Put(v)
}

type validator struct {
	p      Produce
	cfg    *ProduceConfig
	errors []RecordError
	onTime bool // one of them is about a timestamp

	source  Codec
	target  Codec
	builder *Builder // nil when the batch stays as it is

	maxTime      int64
	maxTimeDelta int32
	size         int64 // of all records without a codec

	s stream
	t tail
}

// where names the partition in messages.
func (v *validator) where() string {
	return v.p.Topic + "-" + strconv.FormatInt(int64(v.p.Partition), 10)
}

func (v *validator) reject(code *kerr.Error, detail string) error {
	return &Rejected{Kerr: code, Detail: detail}
}

func (v *validator) invalid(detail string) error {
	return v.reject(kerr.InvalidRecord, detail+" in topic partition "+v.where())
}

// checkBatch looks at framing and header: ProduceRequest.validateRecords first, then the log's own checks.
func (v *validator) checkBatch() (Batch, error) {
	p, cfg := &v.p, v.cfg
	version := strconv.Itoa(int(p.APIVersion))
	if len(p.Records) >= HeaderUpToMagic && Batch(p.Records).i32(posLength) > math.MaxInt32-LogOverhead {
		return nil, v.reject(kerr.UnknownServerError, "batch length overflows in topic partition "+v.where()) // D-09
	}
	b, rest, err := Next(p.Records)
	if err != nil {
		return nil, v.reject(kerr.CorruptMessage, err.Error())
	}
	if b == nil {
		return nil, v.reject(kerr.InvalidRecord, "Produce requests with version "+version+" must have at least one record batch per partition")
	}
	if b.Magic() != 2 {
		return nil, v.reject(kerr.InvalidRecord, "Produce requests with version "+version+
			" are only allowed to contain record batches with magic version 2")
	}
	if p.Origin == FromClient && p.APIVersion < 7 && b.Compression() == Zstd {
		return nil, v.reject(kerr.UnsupportedCompressionType, "Produce requests with version "+version+
			" are not allowed to use ZStandard compression")
	}
	second, _, err := Next(rest)
	if err != nil {
		return nil, v.reject(kerr.CorruptMessage, err.Error())
	}
	if second != nil {
		return nil, v.reject(kerr.InvalidRecord, "Produce requests with version "+version+
			" are only allowed to contain exactly one record batch per partition")
	}

	client := p.Origin == FromClient
	if client && b.BaseOffset() != 0 {
		return nil, v.reject(kerr.InvalidRecord, "The baseOffset of the record batch in the append to "+v.where()+
			" should be 0, but it is "+strconv.FormatInt(b.BaseOffset(), 10))
	}
	if len(b) > cfg.MaxMessageBytes {
		return nil, v.tooLarge(len(b))
	}
	if !b.ValidCRC() {
		return nil, v.reject(kerr.CorruptMessage, "Record is corrupt (stored crc = "+
			strconv.FormatUint(uint64(b.CRC()), 10)+") in topic partition "+v.where()+".")
	}
	if !b.Compression().Valid() {
		return nil, v.reject(kerr.UnknownServerError, "Unknown compression type id: "+strconv.Itoa(int(b.Compression())))
	}
	if !client {
		return b, nil
	}
	n := int64(b.LastOffsetDelta()) + 1
	switch {
	case n <= 0:
		return nil, v.invalid("Batch has an invalid offset range: [0, " + strconv.FormatInt(b.LastOffset(), 10) + "]")
	case b.Count() <= 0:
		return nil, v.invalid("Invalid reported count for record batch: " + strconv.Itoa(int(b.Count())))
	case n != int64(b.Count()):
		return nil, v.invalid("Inconsistent batch offset range [0, " + strconv.FormatInt(b.LastOffset(), 10) +
			"] and count of records " + strconv.Itoa(int(b.Count())))
	case b.IsControl():
		return nil, v.invalid("Clients are not allowed to write control records")
	case b.HasProducerID() && b.BaseSequence() < 0:
		return nil, v.invalid("Invalid sequence number " + strconv.Itoa(int(b.BaseSequence())) +
			" in record batch with producerId " + strconv.FormatInt(b.ProducerID(), 10))
	}
	return b, nil
}

func (v *validator) tooLarge(size int) error {
	return v.reject(kerr.MessageTooLarge, "The record batch size in the append to "+v.where()+" is "+strconv.Itoa(size)+
		" bytes which exceeds the maximum configured value of "+strconv.Itoa(v.cfg.MaxMessageBytes)+".")
}

// checkRecords walks the records and finishes the batch.
func (v *validator) checkRecords(b Batch) (Validated, error) {
	cfg, now := v.cfg, v.p.NowMs
	v.source, v.target = b.Compression(), cfg.Target
	if cfg.TargetProducer {
		v.target = v.source
	}
	inPlace := v.source == v.target || v.source == None && b.IsControl()
	out := Validated{Batch: b, LogAppendTime: -1}
	if inPlace && cfg.TrustPayload && !cfg.Compacted && b.TimestampType() == CreateTime && v.headerTimesFit(b) {
		out.MaxTimestamp, out.MaxTimestampDelta = b.MaxTimestamp(), b.LastOffsetDelta()
		v.stampAppendTime(&out)
		return out, nil
	}
	if !inPlace {
		v.builder = builders.Get().(*Builder)
		defer v.builder.recycle()
		opt := NewBatchOptions()
		opt.Codec, opt.Levels = v.target, cfg.Levels
		opt.TimestampType, opt.AppendTime = cfg.TimestampType, now
		opt.ProducerID, opt.ProducerEpoch, opt.BaseSequence = b.ProducerID(), b.ProducerEpoch(), b.BaseSequence()
		opt.Transactional, opt.Control = b.IsTransactional(), b.IsControl()
		v.builder.Reset(opt)
		v.builder.limit = cfg.MaxMessageBytes
	}
	v.maxTime = NoTimestamp
	if !v.skim(b) {
		if err := v.walk(b); err != nil {
			return Validated{}, err
		}
	}
	if len(v.errors) > 0 {
		return Validated{}, v.recordErrors()
	}
	out.MaxTimestamp, out.MaxTimestampDelta = v.maxTime, v.maxTimeDelta
	if v.source != None || v.target != None {
		out.Stats.TemporaryMemoryBytes = HeaderSize + v.size
	}
	if v.builder != nil {
		built := v.builder.finish()
		if v.builder.over || len(built) > cfg.MaxMessageBytes {
			return Validated{}, v.tooLarge(len(built))
		}
		out.Batch, out.Rebuilt = append(Batch(nil), built...), true
		out.Stats.TemporaryMemoryBytes += int64(v.builder.UncompressedBytes())
		out.Stats.RecordsConverted = int32(v.builder.Count())
	}
	if cfg.TimestampType == LogAppendTime {
		v.stampAppendTime(&out)
	} else if !out.Rebuilt {
		b.SetMaxTimestamp(CreateTime, v.maxTime)
	}
	return out, nil
}

// stampAppendTime makes the batch one of LogAppendTime if the topic is.
func (v *validator) stampAppendTime(out *Validated) {
	if v.cfg.TimestampType != LogAppendTime {
		return
	}
	out.LogAppendTime = v.p.NowMs
	out.MaxTimestamp, out.MaxTimestampDelta = v.p.NowMs, 0
	out.Batch.SetMaxTimestamp(LogAppendTime, v.p.NowMs)
}

// headerTimesFit says whether the header alone shows that no record is out of range.
func (v *validator) headerTimesFit(b Batch) bool {
	return v.cfg.TimestampType == LogAppendTime ||
		v.cfg.TimestampBeforeMaxMs == math.MaxInt64 && v.timeFits(b.MaxTimestamp())
}

// walk reads all records: structure first, then each record's own checks, which are collected.
func (v *validator) walk(b Batch) error {
	s := &v.s
	if err := s.start(b, v.cfg.MaxUnpackedBytes); err != nil {
		return v.badRecord(-1, err)
	}
	bodyMax := int32(maxRecordBody)
	if v.source != None {
		bodyMax = int32(min(v.cfg.MaxDecompressedMessageBytes, maxRecordBody))
	}
	base, stamped := b.BaseTimestamp(), b.TimestampType() == LogAppendTime
	// A coordinator's batch may have gaps; nobody else's.
	gaps := v.p.Origin != FromClient
	var f fields
	count := b.Count()
	for i := range count {
		size, n, err := s.length()
		if err != nil {
			return v.badRecord(i, err)
		}
		if size < 0 {
			return v.badRecord(i, errRecord)
		}
		if size > bodyMax {
			return v.invalid("Record " + strconv.Itoa(int(i)) + " is larger than max.decompressed.message.bytes")
		}
		v.size += int64(n) + int64(size)
		var time int64
		if int(size) <= len(s.buf) {
			body := s.buf[:size]
			if err := f.parse(body); err != nil {
				return v.badRecord(i, err)
			}
			s.buf = s.buf[size:]
			time = base + f.timeDelta
			if stamped {
				time = b.MaxTimestamp()
			}
			if err := v.record(i, &f, f.key != nil, len(f.key), len(f.value), f.value != nil, time, stamped, gaps); err != nil {
				return err
			}
			if v.builder != nil && len(v.errors) == 0 {
				v.builder.beginBody(time, len(body)-f.keyAt)
				v.builder.write(body[f.keyAt:])
			}
		} else if err := v.longRecord(b, i, int(size), base, stamped, gaps); err != nil {
			return err
		}
	}
	if count == 0 {
		return nil
	}
	if err := s.drained(); err != nil {
		return v.badRecord(count, err)
	}
	return nil
}

// length reads the length before a record, from the piece at hand if it is in it.
func (s *stream) length() (int32, int, error) {
	if size, n := readVarint(s.buf); n > 0 {
		s.buf = s.buf[n:]
		return size, n, nil
	}
	return s.varint()
}

// record makes the checks of one record (D-17, D-18, D-19). Only an offset that is out of step is an
// error at once.
func (v *validator) record(i int32, f *fields, hasKey bool, keyLen, valueLen int, hasValue bool, time int64, stamped, gaps bool) error {
	if f.delta != i && !gaps {
		return v.invalid("Record " + strconv.Itoa(int(i)) + " has offset delta " + strconv.Itoa(int(f.delta)))
	}
	if v.p.Origin == FromClient {
		switch {
		case v.cfg.Compacted && !hasKey:
			v.fail(i, "Compacted topic cannot accept message without key in topic partition "+v.where())
			return nil
		case v.cfg.TimestampType == CreateTime && time != NoTimestamp:
			if !v.timeFits(time) {
				v.onTime = true
				now := v.p.NowMs
				v.fail(i, "Timestamp "+strconv.FormatInt(time, 10)+" of message with offset "+strconv.Itoa(int(f.delta))+
					" is out of range. The timestamp should be within ["+strconv.FormatInt(now-v.cfg.TimestampBeforeMaxMs, 10)+
					", "+strconv.FormatInt(now+v.cfg.TimestampAfterMaxMs, 10)+"]")
				return nil
			}
		case stamped:
			v.onTime = true
			if !hasKey {
				keyLen = -1
			}
			if !hasValue {
				valueLen = -1
			}
			v.fail(i, v.stampedMessage(f, keyLen, valueLen, time))
			return nil
		}
		if v.builder != nil && time < NoTimestamp {
			// Kafka's builder throws IllegalArgumentException.
			return v.reject(kerr.UnknownServerError, "Invalid negative timestamp "+strconv.FormatInt(time, 10))
		}
	}
	if time > v.maxTime {
		v.maxTime, v.maxTimeDelta = time, f.delta
	}
	return nil
}

// timeFits computes as Kafka does, overflow included.
func (v *validator) timeFits(time int64) bool {
	diff := v.p.NowMs - time
	return diff <= v.cfg.TimestampBeforeMaxMs && -diff <= v.cfg.TimestampAfterMaxMs
}

// stampedMessage is Kafka's message with its record printed as Kafka prints it.
func (v *validator) stampedMessage(f *fields, keyLen, valueLen int, time int64) string {
	class := "DefaultRecord"
	if v.source != None && v.builder == nil {
		class = "PartialDefaultRecord"
	} else {
		keyLen, valueLen = max(keyLen, 0), max(valueLen, 0)
	}
	return "Invalid timestamp type in message " + class + "(offset=" + strconv.Itoa(int(f.delta)) +
		", timestamp=" + strconv.FormatInt(time, 10) + ", key=" + strconv.Itoa(keyLen) + " bytes, value=" +
		strconv.Itoa(valueLen) + " bytes). Producer should not set timestamp type to LogAppendTime."
}

func (v *validator) fail(i int32, message string) {
	v.errors = append(v.errors, RecordError{BatchIndex: i, Message: message})
}

// recordErrors is the refusal of a batch for its records, in Kafka's words (D-18, D-19).
func (v *validator) recordErrors() error {
	r := &Rejected{Records: v.errors}
	if v.onTime {
		r.Kerr = kerr.InvalidTimestamp
		r.Detail = "One or more records have been rejected due to invalid timestamp"
		return r
	}
	r.Kerr = kerr.InvalidRecord
	r.Detail = "One or more records have been rejected due to " + strconv.Itoa(len(v.errors)) +
		" record errors in total, and only showing the first three errors at most: ["
	for i, e := range v.errors[:min(len(v.errors), 3)] {
		if i > 0 {
			r.Detail += ", "
		}
		r.Detail += "RecordError(batchIndex=" + strconv.Itoa(int(e.BatchIndex)) + ", message='" + e.Message + "')"
	}
	r.Detail += "]"
	return r
}

func (v *validator) badRecord(i int32, err error) error {
	if i < 0 {
		return v.invalid(err.Error())
	}
	return v.invalid(err.Error() + " (record " + strconv.Itoa(int(i)) + ")")
}

// RecordError is one entry of RecordErrors in a produce response (v8 and up).
type RecordError struct {
	BatchIndex int32
	Message    string
}
