package partlog_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// message is one message of format 0 or 1.
func message(magic byte, offset, ts int64, value string) []byte {
	body := []byte{magic, 0}
	if magic == 1 {
		body = binary.BigEndian.AppendUint64(body, uint64(ts))
	}
	body = binary.BigEndian.AppendUint32(body, 0xffffffff)
	body = binary.BigEndian.AppendUint32(body, uint32(len(value)))
	body = append(body, value...)
	b := binary.BigEndian.AppendUint64(nil, uint64(offset))
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)+4))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(body))
	return append(b, body...)
}

// TestOldMessages: D-08: a segment of old messages is recovered, indexed, searched by offset and time, and served as it is; new
// batches go behind it.
func TestOldMessages(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, fs)
	r.cfg.IndexIntervalBytes = 50
	var old []byte
	for i := range int64(20) {
		old = append(old, message(byte(i/10), i, 1000+i, "value")...)
	}
	f, err := fs.OpenFile(dir+"/00000000000000000000.log", 0x42, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(append(bytes.Clone(old), 1, 2, 3), 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	r.open(t, false)
	if r.log.LogEndOffset() != 20 || r.info.BytesTruncated != 3 {
		t.Fatalf("log end %d, %+v", r.log.LogEndOffset(), r.info)
	}
	b := batchOf(2, 5000, "x", 10)
	r.append(t, b)
	for _, how := range []string{"recovered", "clean"} {
		if !bytes.Equal(r.all(t), append(bytes.Clone(old), b...)) {
			t.Fatalf("%s: read back differs", how)
		}
		res, err := r.log.Read(partlog.ReadRequest{Offset: 13, UpTo: 22, MaxBytes: 1, MinOneBatch: true})
		if err != nil || res.Records.Len() != len(message(1, 13, 1013, "value")) {
			t.Fatalf("%s: %+v %v", how, res, err)
		}
		res.Records.Release()
		if got, ok, err := r.log.OffsetForTimestamp(1015); err != nil || !ok || got.Offset != 15 || got.Timestamp != 1015 || got.Epoch != -1 {
			t.Fatalf("%s: by time %+v %t %v", how, got, ok, err)
		}
		if err := r.log.Close(r.now); err != nil {
			t.Fatal(err)
		}
		r.open(t, true, 22)
	}
}
