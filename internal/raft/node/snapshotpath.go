package node

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
)

// Names in the log's directory (K-63):
//
//	00000000000000001234-0000000007.checkpoint            a snapshot that ends before offset 1234, last epoch 7
//	00000000000000001234-0000000007-<x>.checkpoint.part   being written
//	00000000000000001234-0000000007.checkpoint.deleted    being removed
const (
	checkpointSuffix = ".checkpoint"
	partSuffix       = ".checkpoint.part"
	deletedSuffix    = ".checkpoint.deleted"
	// legacyBootstrap is what Kafka 4.0 to 4.3 wrote in the root of every log directory (K-105).
	legacyBootstrap = "bootstrap.checkpoint"
)

func snapshotName(id kraft.SnapshotID) string { return id.String() + checkpointSuffix }

type snapshotFile struct {
	id            kraft.SnapshotID
	name          string
	part, deleted bool
}

// parseSnapshotName recognizes the three forms.
func parseSnapshotName(name string) (snapshotFile, bool) {
	f := snapshotFile{name: name}
	rest, ok := strings.CutSuffix(name, checkpointSuffix)
	if !ok {
		if rest, ok = strings.CutSuffix(name, partSuffix); ok {
			f.part = true
		} else if rest, ok = strings.CutSuffix(name, deletedSuffix); ok {
			f.deleted = true
		}
	}
	if !ok || len(rest) < 31 || rest[20] != '-' || len(rest) > 31 && (!f.part || rest[31] != '-') {
		return f, false
	}
	offset, err1 := strconv.ParseInt(rest[:20], 10, 64)
	epoch, err2 := strconv.ParseInt(rest[21:31], 10, 32)
	if err1 != nil || err2 != nil || offset < 0 || epoch < 0 {
		return f, false
	}
	f.id = kraft.SnapshotID{Offset: offset, Epoch: int32(epoch)}
	return f, true
}

// listSnapshots reads the directory: finished snapshots ascending, and what is left over of others.
func listSnapshots(fsys vfs.FS, dir string) (done []snapshotFile, leftovers []snapshotFile, err error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		f, ok := parseSnapshotName(e.Name())
		switch {
		case !ok || e.IsDir():
		case f.part || f.deleted:
			leftovers = append(leftovers, f)
		default:
			done = append(done, f)
		}
	}
	sort.Slice(done, func(i, j int) bool { return done[i].id.Less(done[j].id) })
	return done, leftovers, nil
}

func join(dir, name string) string { return filepath.Join(dir, name) }
