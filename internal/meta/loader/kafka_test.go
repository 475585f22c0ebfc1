package loader

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"samsa/internal/base/vfs"
	"samsa/internal/meta/image"
	"samsa/internal/raft/kraft"
	"samsa/internal/raft/node"
)

// A snapshot written by Apache Kafka 4.4.0 is read, and the image written again: the same records,
// byte for byte, kinds in the same order. K-76, K-173, K-175, K-205.
func TestSnapshotOfKafkaComesBackByteForByte(t *testing.T) {
	data, err := os.ReadFile("testdata/kafka-4.4.0-546-2.checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewMem()
	id := kraft.SnapshotID{Offset: 546, Epoch: 2}
	path := "/" + id.String() + ".checkpoint"
	if err := vfs.WriteFileAtomic(fs, path, data); err != nil {
		t.Fatal(err)
	}
	open := func() *node.SnapshotReader {
		r, err := node.OpenSnapshot(fs, path, id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open()
	img, err := ReadSnapshot(r)
	if err != nil {
		t.Fatal(err)
	}
	if img.Offset() != 545 || img.Epoch() != 2 || img.Provenance().TimestampMs != r.LastContainedTimestamp() || !img.Provenance().BatchAligned {
		t.Fatalf("provenance %+v", img.Provenance())
	}
	r.Close()

	var theirs, ours, theirKinds, ourKinds []string
	add := func(frames, kinds *[]string, frame []byte) {
		v, err := image.ReadFrame(frame)
		if err != nil {
			t.Fatal(err)
		}
		kind := image.RecordName(v.Record)
		*frames = append(*frames, fmt.Sprintf("%s %x", kind, frame))
		if k := *kinds; len(k) == 0 || k[len(k)-1] != kind {
			*kinds = append(k, kind)
		}
	}
	r = open()
	defer r.Close()
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, frame := range b.Records {
			add(&theirs, &theirKinds, frame)
		}
	}
	err = img.WriteSnapshot(func(v image.Versioned) error {
		frame, err := image.AppendFrame(nil, v)
		if err == nil {
			add(&ours, &ourKinds, frame)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(theirKinds, ourKinds); d != "" {
		t.Errorf("kinds in order:\n%s", d)
	}
	if len(theirs) < 10 || theirs[0] != ours[0] {
		t.Errorf("%d records, the first is %s", len(theirs), theirs[0])
	}
	// Within a kind Kafka's order is that of a hash map.
	slices.Sort(theirs)
	slices.Sort(ours)
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("records:\n%s", d)
	}
}
