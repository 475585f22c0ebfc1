package partlog

import (
	"encoding/binary"
	"os"

	"samsa/internal/base/vfs"
	"samsa/internal/storage/producerstate"
)

// AbortedTxn is one entry of a transaction index (D-48): 34 bytes,
// int16 version 0 | int64 producerId | int64 firstOffset | int64 lastOffset | int64 lastStableOffset.
type AbortedTxn struct {
	ProducerID       int64
	FirstOffset      int64
	LastOffset       int64 // of the marker
	LastStableOffset int64
}

const txnEntry = 34

func appendTxn(dst []byte, t AbortedTxn) []byte {
	dst = binary.BigEndian.AppendUint16(dst, 0)
	for _, v := range [...]int64{t.ProducerID, t.FirstOffset, t.LastOffset, t.LastStableOffset} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}

func parseTxn(e []byte) AbortedTxn {
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(e[2+8*i:])) }
	return AbortedTxn{at(0), at(1), at(2), at(3)}
}

// writeTxns appends aborted transactions to the segment's index; under write. It returns how many there are now; the caller
// publishes it under mu.
func (l *Log) writeTxns(s *segment, completed []producerstate.Completed) (int32, error) {
	n := s.txns
	var b []byte
	for _, c := range completed {
		if c.Abort {
			b = appendTxn(b, AbortedTxn{c.ProducerID, c.FirstOffset, c.LastOffset, c.LastStableOffset})
		}
	}
	if len(b) == 0 {
		return n, nil
	}
	flag := os.O_RDWR
	if !s.txnMade {
		flag |= os.O_CREATE | os.O_TRUNC
	}
	f := s.txn.hold()
	if f == nil {
		var err error
		if f, err = l.env.Files.open(&s.txn, l.fs, s.path(l.Dir(), txnSuffix), flag); err != nil {
			return n, err
		}
		if !s.txnMade {
			s.txnMade, l.dirDirty = true, true
		}
	}
	defer f.Release()
	if _, err := f.WriteAt(b, int64(n)*txnEntry); err != nil {
		return n, err
	}
	s.unsynced |= dirtyTxn
	return n + int32(len(b)/txnEntry), nil
}

// readTxns reads the first n entries.
func readTxns(f vfs.File, n int32) ([]AbortedTxn, error) {
	b := make([]byte, int(n)*txnEntry)
	got, err := readFull(f, b, 0)
	if err != nil {
		return nil, err
	}
	all := make([]AbortedTxn, 0, got/txnEntry)
	for ; got >= txnEntry; got -= txnEntry {
		all = append(all, parseTxn(b))
		b = b[txnEntry:]
	}
	return all, nil
}

// saneTxns is Kafka's check of a transaction index: version 0, first <= last, last offsets within the segment.
func saneTxns(entries []AbortedTxn, raw []byte, base int64) bool {
	for i, t := range entries {
		if binary.BigEndian.Uint16(raw[i*txnEntry:]) != 0 || t.LastOffset < base || t.FirstOffset > t.LastOffset || t.FirstOffset < 0 {
			return false
		}
	}
	return true
}

// txnView is a segment's transaction index as it was under mu.
type txnView struct {
	*segment
	n int32
}

// abortedIn collects the aborted transactions that overlap [from, to), from the given segments on. It stops at an entry
// that says nothing later can overlap (D-99).
func (l *Log) abortedIn(views []txnView, from, to int64) ([]AbortedTxn, error) {
	found := []AbortedTxn{}
	for _, v := range views {
		if v.n == 0 {
			continue
		}
		f, err := l.open(v.segment, &v.txn, txnSuffix)
		if err != nil {
			return nil, err
		}
		entries, err := readTxns(f, v.n)
		f.Release()
		if err != nil {
			return nil, err
		}
		for _, t := range entries {
			if t.LastOffset >= from && t.FirstOffset < to {
				found = append(found, t)
			}
			if t.LastStableOffset >= to {
				return found, nil
			}
		}
	}
	return found, nil
}
