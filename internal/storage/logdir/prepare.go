package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
)

// metadataLogDir is the sub-directory that holds the metadata log (J-21).
const metadataLogDir = "__cluster_metadata-0"

// PrepareOptions is what Prepare needs; a node of any role has them.
type PrepareOptions struct {
	FS          vfs.FS
	Dirs        []string // log.dirs
	MetadataDir string   // metadata.log.dir, or the first of log.dirs; never ""
	NodeID      model.NodeID
	Now         func() time.Time  // nil: time.Now
	Random      func() model.UUID // nil: model.RandomUUID
	Log         *slog.Logger      // nil: silent
}

// Prepare reads and checks the meta.properties of a node that starts, gives ids to formatted
// directories without one, and refreshes directory.ids (J-11..J-22). Files that hold
// everything are not touched.
//
// It is the first step of a start, for controllers too. Directories that cannot be read are
// Unreadable in the result and the start goes on without them; every other trouble of J-18 is
// an error that ends the start, with Kafka's text and the next step.
func Prepare(o PrepareOptions) (*Ensemble, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = model.RandomUUID
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := ReadEnsemble(o.FS, o.Dirs, o.MetadataDir)
	for i := range e.Dirs {
		d := &e.Dirs[i]
		if d.State == Formatted && d.Props.NodeID == nil && d.Props.ClusterID == nil {
			// Empty or scrambled. Kafka takes it for a file of version 0 and does not start at all.
			d.State = Unreadable
			d.Err = fmt.Errorf("Error while reading meta.properties file %s: it holds neither node.id nor cluster.id", filepath.Join(d.Path, MetaPropertiesFile))
		}
		if d.State == Unreadable {
			o.Log.Error("log directory is offline: its meta.properties cannot be read", "dir", d.Path, "err", d.Err, "next",
				"check the disk; a damaged file is restored from a backup, or from another directory's with this one's own directory.id; then restart")
		}
	}
	if err := e.Verify(nil, o.NodeID, true); err != nil {
		var mismatch *Mismatch
		if errors.As(err, &mismatch) {
			return nil, fmt.Errorf("%w. %s", err, mismatch.Next)
		}
		return nil, err
	}
	if err := refuseForeignMetadata(o.FS, e); err != nil {
		return nil, err
	}
	for _, d := range e.Dirs {
		switch {
		case d.State == Unformatted:
			return nil, fmt.Errorf("No `meta.properties` found in %s (have you run `kafka-storage.sh` to format the directory?)"+
				" Check that the disk is mounted; a new disk is formatted with `samsa storage format -g`.", d.Path)
		case d.State == Formatted && d.Props.NodeID == nil:
			return nil, fmt.Errorf("Error: node ID not found in %s. %s/%s has no node.id: restore the file from a backup, or add the line node.id=%d if the directory is this node's.",
				d.Path, d.Path, MetaPropertiesFile, o.NodeID)
		case d.State == Formatted && d.Props.ClusterID == nil:
			return nil, fmt.Errorf("Error: cluster ID not found in %s. %s/%s has no cluster.id: restore the file from a backup, or copy the line from another directory of this node.",
				d.Path, d.Path, MetaPropertiesFile)
		}
	}
	if err := refuseSameDir(o.FS, e, o.Dirs); err != nil {
		return nil, err
	}
	return e, fillIDs(o, e)
}

// refuseForeignMetadata finds a metadata log in a directory that is not the metadata directory (J-21).
func refuseForeignMetadata(fsys vfs.FS, e *Ensemble) error {
	for _, d := range e.Dirs {
		if d.State != Formatted || d.Path == e.MetadataDir {
			continue
		}
		path := filepath.Join(d.Path, metadataLogDir)
		if _, err := fsys.Stat(path); err == nil {
			return fmt.Errorf("Found unexpected metadata location in data directory `%s` (the configured metadata directory is %s)."+
				" Set metadata.log.dir back to %s, or move that directory.", path, e.MetadataDir, d.Path)
		}
	}
	return nil
}

// refuseSameDir finds two entries that are one directory under two names (J-22). Where the
// directory has an id already Verify has found it as a duplicate.
func refuseSameDir(fsys vfs.FS, e *Ensemble, dirs []string) error {
	type seen struct{ path, real string }
	var all []seen
	for _, d := range e.Dirs {
		if d.State != Formatted {
			continue
		}
		real, ok := realPath(fsys, d.Path)
		if !ok {
			continue
		}
		for _, s := range all {
			if s.real == real {
				return fmt.Errorf("Duplicate log directory found: %s (%s and %s are the same directory)", strings.Join(dirs, ", "), s.path, d.Path)
			}
		}
		all = append(all, seen{d.Path, real})
	}
	return nil
}

// fillIDs gives ids and the list of ids to the files that lack them.
func fillIDs(o PrepareOptions, e *Ensemble) error {
	fresh := map[string]bool{}
	for i := range e.Dirs {
		d := &e.Dirs[i]
		if d.State == Formatted && !d.Props.HasDirectoryID {
			d.Props.DirectoryID, d.Props.HasDirectoryID = e.NewDirectoryID(o.Random), true
			fresh[d.Path] = true
		}
	}
	ids := e.DirectoryIDs()
	for i := range e.Dirs {
		d := &e.Dirs[i]
		if d.State != Formatted {
			continue
		}
		listed := ids == nil || slices.Equal(ids, d.Props.DirectoryIDs)
		if !fresh[d.Path] && listed {
			continue
		}
		old := d.Props.DirectoryIDs
		if ids != nil {
			d.Props.DirectoryIDs = ids
		}
		if err := WriteMetaProperties(o.FS, d.Path, d.Props, o.Now()); err != nil {
			if !fresh[d.Path] {
				// The list is a help for the next start, no more: a directory that cannot be
				// written shows it when its lock file is taken.
				d.Props.DirectoryIDs = old
				o.Log.Warn("cannot refresh directory.ids", "dir", d.Path, "err", err)
				continue
			}
			return fmt.Errorf("Error while writing %s: %w", filepath.Join(d.Path, MetaPropertiesFile), err)
		}
		o.Log.Info("meta.properties rewritten", "dir", d.Path, "directoryID", d.Props.DirectoryID, "newID", fresh[d.Path])
	}
	return nil
}

// isNotExist is for places where a file that is not there is an answer.
func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
