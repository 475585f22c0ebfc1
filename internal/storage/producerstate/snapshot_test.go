package producerstate

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestSnapshotBytes: D-50.
func TestSnapshotBytes(t *testing.T) {
	var s State
	if got := s.AppendSnapshot(nil); len(got) != 10 {
		t.Fatalf("no producers: %d bytes, expected 10", len(got))
	}
	if err := s.append(t, txnData(7, 2, 10, 5, 100), OriginReplication); err != nil {
		t.Fatal(err)
	}
	got := s.AppendSnapshot([]byte("x"))
	want := "78" + "0001" + hex.EncodeToString(got[3:7]) + "00000001" +
		"0000000000000007" + "0002" + "0000000e" + "0000000000000068" + "00000004" + "000000000000044c" + "ffffffff" + "0000000000000064"
	if hex.EncodeToString(got) != want {
		t.Fatalf("got  %x\nwant %s", got, want)
	}
	// A producer that only a marker named.
	s.Reset(0)
	if err := s.append(t, marker(7, 2, 5, false, 3, 0), OriginReplication); err != nil {
		t.Fatal(err)
	}
	p, err := ReadSnapshot(s.AppendSnapshot(nil))
	if err != nil || len(p) != 1 || len(p[0].Batches) != 0 || p[0].CoordinatorEpoch != 3 || p[0].TxnFirstOffset != -1 {
		t.Fatalf("%+v, %v", p, err)
	}
}

// TestSnapshotRoundTrip: D-50, D-71, D-223: with the window all batches survive, without it the newest.
func TestSnapshotRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s State
		offset := int64(0)
		seq := map[int64]int32{}
		for range rapid.IntRange(0, 30).Draw(rt, "batches") {
			id := rapid.Int64Range(0, 4).Draw(rt, "producer")
			n := rapid.Int32Range(1, 5).Draw(rt, "records")
			b := txnData(id, 0, seq[id], n, offset)
			b.Transactional = id > 2
			if id > 2 && rapid.Bool().Draw(rt, "marker") {
				b = marker(id, 0, offset, true, 1, 0)
			} else {
				seq[id] = incrementSequence(seq[id], n)
			}
			if err := s.append(t, b, OriginReplication); err != nil {
				rt.Fatal(err)
			}
			offset = b.LastOffset + 1
		}
		snapshot := s.AppendSnapshot(nil)
		window := s.AppendWindow(nil, snapshot)
		producers, err := ReadSnapshot(snapshot)
		if err != nil {
			rt.Fatal(err)
		}
		if len(window) > 0 {
			if err := MergeWindow(producers, snapshot, window); err != nil {
				rt.Fatal(err)
			}
		}
		var back State
		back.Load(producers, offset, 0, 1<<40)
		if !reflect.DeepEqual(s.Producers(), back.Producers()) {
			rt.Fatalf("got  %+v\nwant %+v", back.Producers(), s.Producers())
		}
		if s.FirstUndecided() != back.FirstUndecided() || !bytes.Equal(back.AppendSnapshot(nil), snapshot) {
			rt.Fatal("transactions or bytes differ")
		}
	})
}

// TestDamagedSnapshots: D-50, D-71.
func TestDamagedSnapshots(t *testing.T) {
	var s State
	for i := range int32(3) {
		if err := s.append(t, data(1, 0, i, 1, int64(i)), OriginClient); err != nil {
			t.Fatal(err)
		}
	}
	good := s.AppendSnapshot(nil)
	window := s.AppendWindow(nil, good)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x40
		if _, err := ReadSnapshot(bad); err == nil {
			t.Errorf("a flipped byte %d of the snapshot went unseen", i)
		}
		if _, err := ReadSnapshot(good[:i]); err == nil {
			t.Errorf("a snapshot cut at %d went unseen", i)
		}
	}
	for i := range window {
		bad := bytes.Clone(window)
		bad[i] ^= 0x40
		p, _ := ReadSnapshot(good)
		if err := MergeWindow(p, good, bad); err == nil || len(p[0].Batches) != 1 {
			t.Errorf("a flipped byte %d of the window went unseen", i)
		}
		if err := MergeWindow(p, good, window[:i]); err == nil {
			t.Errorf("a window cut at %d went unseen", i)
		}
	}
	// The window of another snapshot: Kafka wrote a newer one under the same name.
	if err := s.append(t, data(1, 0, 3, 1, 3), OriginClient); err != nil {
		t.Fatal(err)
	}
	newer := s.AppendSnapshot(nil)
	p, _ := ReadSnapshot(newer)
	if err := MergeWindow(p, newer, window); err == nil {
		t.Error("a window of another snapshot was taken")
	}
}

// TestLoadLeavesExpiredOut: D-94.
func TestLoadLeavesExpiredOut(t *testing.T) {
	var s State
	s.Load([]Producer{{ID: 1, LastTimestamp: 0, TxnFirstOffset: -1}, {ID: 2, LastTimestamp: 0, TxnFirstOffset: 5}, {ID: 3, LastTimestamp: 90, TxnFirstOffset: -1}}, 10, 100, 50)
	if _, ok := s.Producer(1); ok || s.Len() != 2 || s.FirstUnstable() != 5 {
		t.Fatalf("%+v", s.Producers())
	}
}

func FuzzSnapshot(f *testing.F) {
	var s State
	for i := range int32(3) {
		if err := s.append(f, data(1, 0, i, 1, int64(i)), OriginClient); err != nil {
			f.Fatal(err)
		}
	}
	snapshot := s.AppendSnapshot(nil)
	f.Add(snapshot, s.AppendWindow(nil, snapshot))
	f.Fuzz(func(t *testing.T, snapshot, window []byte) {
		// With the checksum right, so that what is behind it is reached.
		if len(snapshot) > crcStart {
			seal(snapshot)
		}
		p, err := ReadSnapshot(snapshot)
		if err != nil {
			return
		}
		if len(window) > crcStart+4 {
			copy(window[crcStart:], snapshot[crcOffset:crcOffset+4])
			seal(window)
		}
		if MergeWindow(p, snapshot, window) == nil {
			for _, q := range p {
				if len(q.Batches) > WindowSize {
					t.Fatal("too many batches")
				}
			}
		}
		var back State
		back.Load(p, 0, 0, 1<<62)
		back.AppendWindow(nil, back.AppendSnapshot(nil))
	})
}
