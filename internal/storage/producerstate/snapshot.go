package producerstate

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

const (
	snapshotVersion = 1
	windowVersion   = 0
	snapshotHeader  = 2 + 4 + 4
	snapshotEntry   = 46
	windowHeader    = 2 + 4 + 4 + 4
	windowProducer  = 8 + 2 + 1
	windowBatch     = 4 + 8 + 4 + 8
	crcOffset       = 2
	crcStart        = 6 // the checksum covers everything from here on
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot encodes the content of a .snapshot file.
func (s *State) AppendSnapshot(dst []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, snapshotVersion)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s.producers)))
	for _, p := range s.Producers() {
		last := BatchMetadata{LastSequence: none, LastOffset: none}
		if n := len(p.Batches); n > 0 {
			last = p.Batches[n-1]
		}
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.ID))
		dst = binary.BigEndian.AppendUint16(dst, uint16(p.Epoch))
		dst = binary.BigEndian.AppendUint32(dst, uint32(last.LastSequence))
		dst = binary.BigEndian.AppendUint64(dst, uint64(last.LastOffset))
		dst = binary.BigEndian.AppendUint32(dst, uint32(last.OffsetDelta))
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.LastTimestamp))
		dst = binary.BigEndian.AppendUint32(dst, uint32(p.CoordinatorEpoch))
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.TxnFirstOffset))
	}
	seal(dst[start:])
	return dst
}

// ReadSnapshot decodes a .snapshot file. Each producer has at most one batch.
func ReadSnapshot(b []byte) ([]Producer, error) {
	if err := check(b, snapshotVersion, snapshotHeader); err != nil {
		return nil, err
	}
	count := int64(int32(binary.BigEndian.Uint32(b[crcStart:])))
	body := b[snapshotHeader:]
	if count < 0 || count > int64(len(body)/snapshotEntry) {
		return nil, fmt.Errorf("count is %d, but %d bytes follow", count, len(body))
	}
	producers := make([]Producer, 0, count)
	for ; count > 0; count-- {
		p := Producer{
			ID:               int64(binary.BigEndian.Uint64(body)),
			Epoch:            int16(binary.BigEndian.Uint16(body[8:])),
			LastTimestamp:    int64(binary.BigEndian.Uint64(body[26:])),
			CoordinatorEpoch: int32(binary.BigEndian.Uint32(body[34:])),
			TxnFirstOffset:   int64(binary.BigEndian.Uint64(body[38:])),
		}
		last := BatchMetadata{
			LastSequence: int32(binary.BigEndian.Uint32(body[10:])),
			LastOffset:   int64(binary.BigEndian.Uint64(body[14:])),
			OffsetDelta:  int32(binary.BigEndian.Uint32(body[22:])),
			Timestamp:    p.LastTimestamp,
		}
		if last.LastOffset >= 0 {
			p.Batches = []BatchMetadata{last}
		}
		if p.TxnFirstOffset < 0 {
			p.TxnFirstOffset = none
		}
		producers = append(producers, p)
		body = body[snapshotEntry:]
	}
	return producers, nil
}

// AppendWindow encodes the .window file that goes with snapshot, which AppendSnapshot made of the same state. It is
// empty when the snapshot says everything, as it does of producers with one batch: then there is to be no file.
func (s *State) AppendWindow(dst, snapshot []byte) []byte {
	start := len(dst)
	count := uint32(0)
	for _, p := range s.Producers() {
		n := len(p.Batches)
		if n == 0 || n == 1 && p.Batches[0].Timestamp == p.LastTimestamp {
			continue
		}
		if count == 0 {
			dst = append(dst, make([]byte, windowHeader)...)
		}
		count++
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.ID))
		dst = binary.BigEndian.AppendUint16(dst, uint16(p.Epoch))
		dst = append(dst, byte(n))
		for _, b := range p.Batches {
			dst = binary.BigEndian.AppendUint32(dst, uint32(b.LastSequence))
			dst = binary.BigEndian.AppendUint64(dst, uint64(b.LastOffset))
			dst = binary.BigEndian.AppendUint32(dst, uint32(b.OffsetDelta))
			dst = binary.BigEndian.AppendUint64(dst, uint64(b.Timestamp))
		}
	}
	if count == 0 {
		return dst
	}
	h := dst[start:]
	binary.BigEndian.PutUint16(h, windowVersion)
	copy(h[crcStart:], snapshot[crcOffset:crcOffset+4])
	binary.BigEndian.PutUint32(h[crcStart+4:], count)
	seal(h)
	return dst
}

// WindowExpected says whether a snapshot of these producers should have a window beside it: some have written more
// than the batch it names. Right but for rare cases (a producer whose first batch here is not its first).
func WindowExpected(producers []Producer) bool {
	for i := range producers {
		p := &producers[i]
		if p.CoordinatorEpoch >= 0 || len(p.Batches) > 0 && p.Batches[0].BaseSequence() > 0 {
			return true
		}
	}
	return false
}

// MergeWindow gives producers, which came from snapshot, the batches in window. An error leaves producers as they are:
// the window is damaged or belongs to another snapshot.
func MergeWindow(producers []Producer, snapshot, window []byte) error {
	if err := check(window, windowVersion, windowHeader); err != nil {
		return err
	}
	if len(snapshot) < snapshotHeader || string(window[crcStart:crcStart+4]) != string(snapshot[crcOffset:crcOffset+4]) {
		return fmt.Errorf("it belongs to another snapshot")
	}
	byID := make(map[int64]*Producer, len(producers))
	for i := range producers {
		byID[producers[i].ID] = &producers[i]
	}
	type remembered struct {
		of      *Producer
		batches []BatchMetadata
	}
	var all []remembered
	count := binary.BigEndian.Uint32(window[crcStart+4:])
	body := window[windowHeader:]
	for ; count > 0; count-- {
		if len(body) < windowProducer {
			return fmt.Errorf("it ends in the middle of a producer")
		}
		id, epoch, n := int64(binary.BigEndian.Uint64(body)), int16(binary.BigEndian.Uint16(body[8:])), int(body[10])
		body = body[windowProducer:]
		if n > WindowSize || len(body) < n*windowBatch {
			return fmt.Errorf("producer %d has %d batches, but %d bytes follow", id, n, len(body))
		}
		p := byID[id]
		if p == nil || p.Epoch != epoch || len(p.Batches) != min(n, 1) {
			return fmt.Errorf("producer %d is not the snapshot's", id)
		}
		batches := make([]BatchMetadata, 0, n)
		for range n {
			batches = append(batches, BatchMetadata{
				LastSequence: int32(binary.BigEndian.Uint32(body)),
				LastOffset:   int64(binary.BigEndian.Uint64(body[4:])),
				OffsetDelta:  int32(binary.BigEndian.Uint32(body[12:])),
				Timestamp:    int64(binary.BigEndian.Uint64(body[16:])),
			})
			body = body[windowBatch:]
		}
		if n == 0 {
			continue
		}
		if last, want := batches[n-1], p.Batches[0]; last.LastSequence != want.LastSequence || last.LastOffset != want.LastOffset {
			return fmt.Errorf("the newest batch of producer %d is not the snapshot's", id)
		}
		all = append(all, remembered{p, batches})
	}
	for _, w := range all {
		w.of.Batches = w.batches
	}
	return nil
}

func seal(b []byte) {
	binary.BigEndian.PutUint32(b[crcOffset:], crc32.Checksum(b[crcStart:], castagnoli))
}

func check(b []byte, version uint16, header int) error {
	if len(b) < header {
		return fmt.Errorf("it has %d bytes, expected at least %d", len(b), header)
	}
	if len(b) > math.MaxInt32 {
		return fmt.Errorf("it has %d bytes, more than any snapshot", len(b))
	}
	if v := binary.BigEndian.Uint16(b); v != version {
		return fmt.Errorf("version is %d, expected %d", v, version)
	}
	if want, got := binary.BigEndian.Uint32(b[crcOffset:]), crc32.Checksum(b[crcStart:], castagnoli); want != got {
		return fmt.Errorf("checksum is %08x, expected %08x", got, want)
	}
	return nil
}
