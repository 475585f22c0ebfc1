package storagetool

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/logdir"
)

// UpdateDirectories is `update-directories`: it gives ids to the directories that lack one and
// writes the list of all ids into each (J-34). Nothing is changed unless every directory can be
// read and no server uses any of them.
func UpdateDirectories(out io.Writer, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = model.RandomUUID
	}
	e := logdir.ReadEnsemble(o.FS, o.Dirs, o.MetadataDir)
	for _, d := range e.Dirs {
		switch d.State {
		case logdir.Unformatted:
			return refuse("%s is not formatted. Nothing was changed; format it first with `samsa storage format -g`.", d.Path)
		case logdir.Unreadable:
			return refuseFor(d.Err, "%s cannot be read. Nothing was changed. %v", d.Path, d.Err)
		}
	}
	if err := e.Verify(nil, o.NodeID, true); err != nil {
		return refuseFor(err, "%v", err)
	}
	for _, d := range e.Dirs {
		lock, err := logdir.Lock(o.FS, d.Path)
		if errors.Is(err, vfs.ErrLocked) {
			return refuseFor(err, "%s is in use. Nothing was changed; stop the server first. (%v)", d.Path, err)
		}
		if err != nil {
			return refuseFor(err, "%v", err)
		}
		defer lock.Close()
	}
	for i, d := range e.Dirs {
		if !d.Props.HasDirectoryID {
			e.Dirs[i].Props.DirectoryID, e.Dirs[i].Props.HasDirectoryID = e.NewDirectoryID(o.Random), true
		}
	}
	ids := e.DirectoryIDs()
	changed := 0
	for i, d := range e.Dirs {
		before, err := vfs.ReadFile(o.FS, filepath.Join(d.Path, logdir.MetaPropertiesFile))
		if err != nil {
			return refuseFor(err, "%v", err)
		}
		old, err := logdir.ParseMetaProperties(string(before))
		if err == nil && old.HasDirectoryID && slices.Equal(old.DirectoryIDs, ids) {
			continue
		}
		e.Dirs[i].Props.DirectoryIDs = ids
		if err := logdir.WriteMetaProperties(o.FS, d.Path, e.Dirs[i].Props, o.Now()); err != nil {
			return refuseFor(err, "Error while writing meta.properties file %s: %v", d.Path, err)
		}
		changed++
		fmt.Fprintf(out, "Updated %s (directory.id %s).\n", d.Path, e.Dirs[i].Props.DirectoryID)
	}
	if changed == 0 {
		fmt.Fprintln(out, "All of the log directories are already up to date.")
	}
	return nil
}
