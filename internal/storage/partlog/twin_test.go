package partlog_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/wire/record"
)

// twin is a log that does everything the slow, obvious way: a list of batches.
type twin struct {
	batches    []stored
	start, end int64
}

// from is the index of the first batch that ends at or after offset.
func (w *twin) from(offset int64) int {
	for i, b := range w.batches {
		if b.last >= offset {
			return i
		}
	}
	return len(w.batches)
}

func (w *twin) truncate(offset int64) {
	if offset >= w.end {
		return
	}
	if i := w.from(offset); i < len(w.batches) {
		offset = min(offset, w.batches[i].base)
		w.batches = w.batches[:i]
	}
	w.end = offset
	w.start = min(w.start, offset)
}

// restart: where the log ends is known from its batches and its last segment alone, and a log that ends below its start begins again (D-69).
func (w *twin) restart(active int64) {
	w.end = active
	if n := len(w.batches); n > 0 {
		w.end = max(active, w.batches[n-1].last+1)
	}
	if w.end < w.start {
		w.batches, w.end = nil, w.start
	}
}

// timestamp finds the first record with a time of at least ts.
func (w *twin) timestamp(ts int64) (partlog.TimestampOffset, bool) {
	for _, b := range w.batches[w.from(w.start):] {
		for r, err := range record.Records(record.Batch(b.bytes)) {
			if err != nil {
				panic(err)
			}
			if r.Offset >= w.start && r.Timestamp >= ts {
				return partlog.TimestampOffset{Timestamp: r.Timestamp, Offset: r.Offset, Epoch: model.LeaderEpoch(record.Batch(b.bytes).LeaderEpoch())}, true
			}
		}
	}
	return partlog.TimestampOffset{}, false
}

func (w *twin) maxTimestamp() (partlog.TimestampOffset, bool) {
	best, ok := partlog.TimestampOffset{Timestamp: -1}, false
	for _, b := range w.batches {
		for r, err := range record.Records(record.Batch(b.bytes)) {
			if err != nil {
				panic(err)
			}
			if r.Timestamp > best.Timestamp {
				best, ok = partlog.TimestampOffset{Timestamp: r.Timestamp, Offset: r.Offset, Epoch: model.LeaderEpoch(record.Batch(b.bytes).LeaderEpoch())}, true
			}
		}
	}
	return best, ok
}

// TestTwin: D-46, D-47, D-59, D-60, D-61, D-68, D-70, D-71, D-78, D-95, D-131, D-134, D-135: a log and its twin answer alike, with gaps in the
// offsets, through truncations, restarts of both kinds, and whatever the indexes have been through.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { twinRun(t, rt) })
}

func twinRun(t *testing.T, rt *rapid.T) {
	r, w := newRig(t, vfs.NewMem()), &twin{}
	r.cfg.SegmentBytes = rapid.Int64Range(300, 6000).Draw(rt, "segment.bytes")
	r.cfg.IndexIntervalBytes = rapid.Int32Range(0, 1000).Draw(rt, "index.interval.bytes")
	r.cfg.RetentionMs, r.cfg.RetentionBytes = -1, -1
	r.cfg.Compact = true // gaps are normal
	r.open(t, false)
	epoch := int32(0)
	for range rapid.IntRange(1, 60).Draw(rt, "steps") {
		switch op := rapid.IntRange(0, 19).Draw(rt, "op"); op {
		case 0: // restart
			clean := rapid.Bool().Draw(rt, "clean")
			if clean {
				if err := r.log.Close(r.now); err != nil {
					rt.Fatal(err)
				}
			} else {
				r.log.Abandon()
			}
			bases := r.bases(t)
			r.open(t, clean, r.log.RecoveryPoint(), w.start, r.log.HighWatermark())
			w.restart(bases[len(bases)-1])
		case 1:
			to := rapid.Int64Range(max(0, w.end-40), w.end+2).Draw(rt, "truncate")
			before := r.bases(t)[0]
			if _, err := r.log.TruncateTo(to, r.now); err != nil {
				rt.Fatal(err)
			}
			if to < w.end {
				if to <= before {
					w.batches, w.start, w.end = nil, to, to
				} else {
					w.truncate(to)
				}
			}
		case 2:
			to := rapid.Int64Range(w.start, w.end).Draw(rt, "log start")
			r.log.SetHighWatermark(w.end)
			if _, err := r.log.IncrementLogStartOffset(to); err != nil {
				rt.Fatal(err)
			}
			w.start = max(w.start, to)
			d, err := r.log.DeletableSegments(r.now)
			if err != nil {
				rt.Fatal(err)
			}
			if _, err := r.log.DeleteOldSegments(d, r.now); err != nil {
				rt.Fatal(err)
			}
			first := r.bases(t)[0]
			for len(w.batches) > 0 && w.batches[0].last < first {
				w.batches = w.batches[1:]
			}
		case 3:
			epoch++
			if err := r.log.AssignEpoch(model.LeaderEpoch(epoch), w.end); err != nil {
				rt.Fatal(err)
			}
		case 4:
			if err := r.log.Flush(r.now); err != nil {
				rt.Fatal(err)
			}
		case 5:
			if rapid.IntRange(0, 9).Draw(rt, "fully") == 0 {
				to := w.end + rapid.Int64Range(0, 5).Draw(rt, "ahead")
				if err := r.log.TruncateFullyAndStartAt(to, r.now); err != nil {
					rt.Fatal(err)
				}
				w.batches, w.start, w.end = nil, to, to
			}
		default:
			n := rapid.IntRange(1, 5).Draw(rt, "records")
			o := record.NewBatchOptions()
			o.Codec = record.Codec(rapid.IntRange(0, 4).Draw(rt, "codec"))
			b := record.NewBuilder(o)
			for range n {
				b.Append(rapid.Int64Range(0, 300).Draw(rt, "timestamp"), nil, make([]byte, rapid.IntRange(0, 60).Draw(rt, "size")), nil)
			}
			bytes := b.Build(nil)
			base := w.end + rapid.SampledFrom([]int64{0, 0, 0, 3}).Draw(rt, "gap")
			record.Batch(bytes).SetBaseOffset(base)
			record.Batch(bytes).SetLeaderEpoch(epoch)
			if _, err := r.log.AppendAsFollower(partlog.FollowerAppend{Records: bytes, Epoch: -1, Now: r.now}); err != nil {
				rt.Fatal(err)
			}
			w.batches = append(w.batches, stored{base, base + int64(n) - 1, bytes})
			w.end = base + int64(n)
		}
		compareTwin(t, rt, r, w)
	}
}

func compareTwin(t *testing.T, rt *rapid.T, r *rig, w *twin) {
	off := r.log.Offsets()
	if off.LogStart != w.start || off.LogEnd != w.end {
		rt.Fatalf("bounds are %+v, expected [%d, %d]", off, w.start, w.end)
	}
	offset := rapid.Int64Range(w.start-1, w.end+1).Draw(rt, "offset")
	upTo := rapid.Int64Range(w.start, w.end).Draw(rt, "up to")
	maxBytes := rapid.IntRange(0, 2000).Draw(rt, "max bytes")
	res, err := r.log.Read(partlog.ReadRequest{Offset: offset, UpTo: upTo, MaxBytes: maxBytes, MinOneBatch: true})
	if offset < w.start || offset > w.end {
		if !errors.Is(err, kerr.OffsetOutOfRange) {
			rt.Fatalf("reading at %d of [%d, %d]: %v", offset, w.start, w.end, err)
		}
	} else {
		compareRead(rt, r, w, offset, upTo, maxBytes, res, err)
	}
	ts := rapid.Int64Range(0, 320).Draw(rt, "time")
	want, wantOK := w.timestamp(ts)
	if got, ok, err := r.log.OffsetForTimestamp(ts); err != nil || ok != wantOK || ok && got != want {
		rt.Fatalf("time %d: %+v %t %v, expected %+v %t", ts, got, ok, err, want, wantOK)
	}
	want, wantOK = w.maxTimestamp()
	if got, ok, err := r.log.MaxTimestamp(); err != nil || ok != wantOK || ok && got != want {
		rt.Fatalf("max time: %+v %t %v, expected %+v %t", got, ok, err, want, wantOK)
	}
	for _, b := range w.batches {
		if e := r.log.EpochForOffset(b.last); b.last >= w.start && int32(e) != record.Batch(b.bytes).LeaderEpoch() {
			rt.Fatalf("offset %d is of epoch %d, got %d: %v", b.last, record.Batch(b.bytes).LeaderEpoch(), e, r.log.Epochs())
		}
	}
	from, to := rapid.Int64Range(w.start, w.end).Draw(rt, "from"), rapid.Int64Range(w.start, w.end).Draw(rt, "to")
	n, err := r.log.BytesBetween(from, to)
	sum := int64(0)
	for _, b := range w.batches[w.from(from):] {
		if b.last < to {
			sum += int64(len(b.bytes))
		}
	}
	if err != nil || n != sum {
		rt.Fatalf("bytes between %d and %d: %d, %v, expected %d", from, to, n, err, sum)
	}
}

// compareRead: what is returned starts at the batch that holds the offset, has whole batches below the bound, cut at maxBytes but for
// the first, and ends no later than a segment.
func compareRead(rt *rapid.T, r *rig, w *twin, offset, upTo int64, maxBytes int, res partlog.ReadResult, err error) {
	if err != nil {
		rt.Fatalf("reading at %d: %v", offset, err)
	}
	var all []byte
	first := 0
	for i, b := range w.batches[w.from(offset):] {
		if b.last >= upTo {
			break
		}
		if i == 0 {
			first = len(b.bytes)
		}
		all = append(all, b.bytes...)
	}
	if offset >= upTo {
		all = nil
	}
	if res.Records == nil {
		if len(all) > 0 {
			rt.Fatalf("reading at %d up to %d: nothing, expected %d bytes", offset, upTo, len(all))
		}
		return
	}
	defer res.Records.Release()
	var got bytes.Buffer
	if n, err := res.Records.WriteTo(&got); err != nil || n != int64(res.Records.Len()) {
		rt.Fatal(n, err)
	}
	if !bytes.HasPrefix(all, got.Bytes()) {
		rt.Fatalf("reading at %d up to %d: %d bytes that are not the log's", offset, upTo, got.Len())
	}
	if limit := max(maxBytes, first); got.Len() > limit || got.Len() < min(first, len(all)) {
		rt.Fatalf("reading at %d: %d bytes, limit %d, first batch %d", offset, got.Len(), limit, first)
	}
	if got.Len() < min(len(all), maxBytes) { // cut at a segment's end
		segments, _ := r.log.Segments()
		at, edge := int64(0), false
		for _, s := range segments {
			at += s.Bytes
			var pos int64
			for _, b := range w.batches[:w.from(offset)] {
				pos += int64(len(b.bytes))
			}
			edge = edge || at == pos+int64(got.Len())
		}
		if !edge {
			rt.Fatalf("reading at %d: %d of %d bytes, which is no segment's end", offset, got.Len(), len(all))
		}
	}
}
