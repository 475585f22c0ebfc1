package loader

import (
	"errors"
	"fmt"
	"io"

	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/raft/node"
)

// ReadSnapshot builds the image of a snapshot.
func ReadSnapshot(r *node.SnapshotReader) (*image.Image, error) {
	id := r.ID()
	l := image.NewSnapshotLoader(id.Offset-1, model.LeaderEpoch(id.Epoch), r.LastContainedTimestamp())
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return l.Image(), nil
		}
		if err == nil && !b.Control {
			err = l.Batch(b.Records)
		}
		if err != nil {
			return nil, fmt.Errorf("metadata snapshot %s: %w", id, err)
		}
	}
}
