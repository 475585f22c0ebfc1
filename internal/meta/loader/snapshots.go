package loader

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/meta/image"
	"samsa/internal/raft/kraft"
	"samsa/internal/raft/node"
)

// SnapshotLog makes snapshots; *node.Node is one.
type SnapshotLog interface {
	// CreateSnapshot returns nil without an error when the snapshot exists.
	CreateSnapshot(id kraft.SnapshotID, lastContainedTimestamp int64) (*node.SnapshotWriter, error)
}

// SnapshotOptions say when a snapshot is due (K-68).
type SnapshotOptions struct {
	Log         SnapshotLog
	MaxBytes    int64         // metadata.log.max.record.bytes.between.snapshots
	MaxInterval time.Duration // metadata.log.max.snapshot.interval.ms; 0 is never
	// Faulty reports whether records had to be left out: then the image is not the cluster's and
	// nothing may be built on it.
	Faulty func() bool
	Logger *slog.Logger
	Now    func() time.Time
}

// Snapshots is a Publisher that writes the image as a snapshot when enough was logged since the last.
// Writing runs on a goroutine of its own, one at a time; images are immutable, so nothing waits.
type Snapshots struct {
	opts SnapshotOptions

	// Owned by the loader's goroutine.
	bytes   int64
	last    time.Time
	started bool

	writing atomic.Bool
	done    sync.WaitGroup
	closed  atomic.Bool

	// LastBytes and LastAt describe the newest snapshot written by this process.
	LastBytes atomic.Int64
	LastAt    atomic.Int64 // ms
	Written   atomic.Int64
}

// NewSnapshots makes the publisher; add it after all others.
func NewSnapshots(o SnapshotOptions) *Snapshots {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Snapshots{opts: o}
}

// Name of the publisher.
func (s *Snapshots) Name() string { return "snapshots" }

func (s *Snapshots) addBytes(n int) {
	if s.started { // the replay at start does not count
		s.bytes += int64(n)
	}
}

// Publish starts a snapshot if one is due.
func (s *Snapshots) Publish(delta *image.Delta, img *image.Image) error {
	now := s.opts.Now()
	if !s.started || delta.Snapshot {
		s.started, s.bytes, s.last = true, 0, now
		return nil
	}
	if s.bytes < s.opts.MaxBytes && (s.opts.MaxInterval <= 0 || now.Sub(s.last) < s.opts.MaxInterval) {
		return nil
	}
	switch {
	case !img.Provenance().BatchAligned: // no place where a log could begin (K-67)
		return nil
	case s.opts.Faulty != nil && s.opts.Faulty():
		return nil
	case s.closed.Load() || !s.writing.CompareAndSwap(false, true):
		return nil
	}
	why := fmt.Sprintf("%d bytes of records since the last", s.bytes)
	if s.bytes < s.opts.MaxBytes {
		why = fmt.Sprintf("%v since the last", now.Sub(s.last).Round(time.Millisecond))
	}
	s.bytes, s.last = 0, now
	s.done.Go(func() {
		defer s.writing.Store(false)
		if err := s.write(img, why); err != nil {
			s.opts.Logger.Error("metadata snapshot failed", "offset", img.Offset(), "err", err)
		}
	})
	return nil
}

// snapshotChunk records are handed to the writer at once.
const snapshotChunk = 1000

func (s *Snapshots) write(img *image.Image, why string) error {
	p := img.Provenance()
	id := kraft.SnapshotID{Offset: p.Offset + 1, Epoch: int32(p.Epoch)}
	w, err := s.opts.Log.CreateSnapshot(id, p.TimestampMs)
	if err != nil || w == nil {
		return err
	}
	defer w.Close()
	begin := s.opts.Now()
	chunk := make([]node.Record, 0, snapshotChunk)
	var size int64
	flush := func() error {
		err := w.Append(chunk)
		clear(chunk)
		chunk = chunk[:0]
		return err
	}
	err = img.WriteSnapshot(func(v image.Versioned) error {
		frame, err := image.AppendFrame(nil, v)
		if err != nil {
			return err
		}
		size += int64(len(frame))
		chunk = append(chunk, frame)
		if len(chunk) == snapshotChunk {
			return flush()
		}
		return nil
	})
	if err == nil && len(chunk) > 0 {
		err = flush()
	}
	if err == nil {
		err = w.Freeze()
	}
	if err != nil {
		return err
	}
	now := s.opts.Now()
	s.LastBytes.Store(size)
	s.LastAt.Store(now.UnixMilli())
	s.Written.Add(1)
	s.opts.Logger.Info("metadata snapshot written", "snapshot", id.String(), "bytes", size, "took", now.Sub(begin), "because", why)
	return nil
}

// Close waits for a snapshot that is being written.
func (s *Snapshots) Close() {
	s.closed.Store(true)
	s.done.Wait()
}
