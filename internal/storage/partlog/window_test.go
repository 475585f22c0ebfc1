package partlog_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// D-223, issue 3 acceptance 3: Apache Kafka had the directory, and removed a snapshot but not the window beside it.
// That is no damage: the window goes without a word.
func TestWindowOfASnapshotThatKafkaRemoved(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, fs)
	var said bytes.Buffer
	r.env.Log = slog.New(slog.NewTextHandler(&said, nil))
	r.open(t, true)
	for i := range 3 {
		r.append(t, producerBatch(1, r.now, 7, 0, int32(i), false))
	}
	if err := r.log.Close(r.now); err != nil {
		t.Fatal(err)
	}
	window := fmt.Sprintf("%s/%020d.window", dir, 3)
	if _, err := fs.Stat(window); err != nil {
		t.Fatal(err)
	}
	if err := fs.Remove(fmt.Sprintf("%s/%020d.snapshot", dir, 3)); err != nil {
		t.Fatal(err)
	}
	said.Reset()
	r.open(t, true)
	if _, err := fs.Stat(window); err == nil {
		t.Error("the window is still there")
	}
	if r.info != (partlog.LoadInfo{LeftoversRemoved: 1}) || said.Len() > 0 {
		t.Errorf("loading took %+v and said %s", r.info, &said)
	}
}
