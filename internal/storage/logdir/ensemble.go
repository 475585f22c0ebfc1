package logdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
)

// maxMetaPropertiesBytes bounds what is read of a meta.properties; Kafka's has some 150.
const maxMetaPropertiesBytes = 64 << 10

// DirState says what was found where a meta.properties should be (J-18).
type DirState uint8

const (
	// Formatted: the file is there and was understood.
	Formatted DirState = iota
	// Unformatted: the file, or the whole directory, is not there.
	Unformatted
	// Unreadable: something is there that cannot be read or understood.
	Unreadable
)

// DirMeta is one directory of an Ensemble.
type DirMeta struct {
	Path  string
	State DirState
	Props MetaProperties // where Formatted
	Err   error          // where Unreadable; names the file
}

// Ensemble is the meta.properties files of all directories of a node: log.dirs and the
// metadata directory, de-duplicated by their text and in order of their paths (J-17).
type Ensemble struct {
	MetadataDir string
	Dirs        []DirMeta
}

// ReadEnsemble reads every meta.properties. It never fails as a whole: what is wrong with a
// directory stands in its DirMeta.
func ReadEnsemble(fsys vfs.FS, dirs []string, metadataDir string) *Ensemble {
	all := append([]string{}, dirs...)
	if metadataDir != "" {
		all = append(all, metadataDir)
	}
	sort.Strings(all)
	e := &Ensemble{MetadataDir: metadataDir}
	for _, path := range slices.Compact(all) {
		d := DirMeta{Path: path}
		file := filepath.Join(path, MetaPropertiesFile)
		text, err := readBounded(fsys, file, maxMetaPropertiesBytes)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			d.State = Unformatted
		case err != nil:
			d.State, d.Err = Unreadable, fmt.Errorf("Error while reading meta.properties file %s: %w", file, err)
		default:
			if d.Props, err = ParseMetaProperties(string(text)); err != nil {
				d.State, d.Err = Unreadable, fmt.Errorf("Error while reading meta.properties file %s: %w", file, err)
			}
		}
		e.Dirs = append(e.Dirs, d)
	}
	return e
}

// readBounded reads a whole file that must not be larger than limit.
func readBounded(fsys vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%w: it holds %d bytes; expected at most %d", errTooLarge, size, limit)
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if n < len(b) && err != nil && err != io.EOF {
		return nil, err
	}
	return b[:n], nil
}

var errTooLarge = errors.New("the file is too large")

// find returns the directory of that path.
func (e *Ensemble) find(path string) *DirMeta {
	for i := range e.Dirs {
		if e.Dirs[i].Path == path {
			return &e.Dirs[i]
		}
	}
	return nil
}

// Dir returns what was found in the directory of that path.
func (e *Ensemble) Dir(path string) (DirMeta, bool) {
	if d := e.find(path); d != nil {
		return *d, true
	}
	return DirMeta{}, false
}

// in lists the paths of the directories in one state.
func (e *Ensemble) in(state DirState) []string {
	var out []string
	for _, d := range e.Dirs {
		if d.State == state {
			out = append(out, d.Path)
		}
	}
	return out
}

// ClusterID is that of the first formatted directory that has one, or "".
func (e *Ensemble) ClusterID() string {
	for _, d := range e.Dirs {
		if d.State == Formatted && d.Props.ClusterID != nil {
			return *d.Props.ClusterID
		}
	}
	return ""
}

// DirectoryID is the id of the directory of that path; false where it has none or is not formatted.
func (e *Ensemble) DirectoryID(path string) (model.DirectoryID, bool) {
	d := e.find(path)
	if d == nil || d.State != Formatted || !d.Props.HasDirectoryID {
		return model.DirectoryID{}, false
	}
	return d.Props.DirectoryID, true
}

// Mismatch says that directories do not belong together, or not to this node.
type Mismatch struct {
	Text string // Kafka's, naming the file or directory
	Next string // what the operator can do
}

func (e *Mismatch) Error() string { return e.Text }

// Verify checks that the formatted directories belong together (J-18, J-19, J-20).
//
//	clusterID     what they must hold; nil takes that of the first directory
//	nodeID        the configured node.id
//	needOne       at least one formatted directory must exist
//
// The errors have Kafka's texts; each names the file or directory.
func (e *Ensemble) Verify(clusterID *string, nodeID model.NodeID, needOne bool) error {
	if needOne && len(e.in(Formatted)) == 0 {
		err := errors.New("No readable meta.properties files found.")
		for _, d := range e.Dirs {
			if d.State == Unreadable {
				err = fmt.Errorf("%w %w", err, d.Err)
			}
		}
		return err
	}
	seen := map[model.DirectoryID]string{}
	for _, d := range e.Dirs {
		if d.State != Formatted {
			continue
		}
		path := filepath.Join(d.Path, MetaPropertiesFile)
		p := d.Props
		if p.ClusterID != nil {
			if clusterID == nil {
				clusterID = p.ClusterID
			} else if *p.ClusterID != *clusterID {
				return &Mismatch{fmt.Sprintf("Invalid cluster.id in: %s. Expected %s, but read %s", path, *clusterID, *p.ClusterID),
					fmt.Sprintf("%s belongs to another cluster: mount the right disk there, or take it out of log.dirs.", d.Path)}
			}
		}
		if p.NodeID != nil && *p.NodeID != nodeID {
			return fmt.Errorf("Stored node id %d doesn't match previous node id %d in %s. If you moved your data, make sure"+
				" your configured node id matches. If you intend to create a new node, you should remove all data in your"+
				" data directories.", *p.NodeID, nodeID, path)
		}
		if !p.HasDirectoryID {
			continue
		}
		if p.DirectoryID.Reserved() {
			return &Mismatch{fmt.Sprintf("Invalid reserved directory ID %s found in %s", p.DirectoryID, d.Path),
				fmt.Sprintf("Remove the line directory.id from %s: the directory then gets an id of its own.", path)}
		}
		if other, ok := seen[p.DirectoryID]; ok {
			return &Mismatch{fmt.Sprintf("Duplicate directory ID Optional[%s] found. It was the ID of %s, but also of %s", p.DirectoryID, other, d.Path),
				"One of them is a copy of the other, or both are the same disk: take one out of log.dirs."}
		}
		seen[p.DirectoryID] = d.Path
	}
	if d := e.find(e.MetadataDir); d != nil && d.State == Unreadable {
		return fmt.Errorf("Encountered I/O error in metadata log directory %s. Cannot continue. %w", e.MetadataDir, d.Err)
	}
	return nil
}

// NewDirectoryID draws an id that no directory of the ensemble has and that is not reserved (J-04).
func (e *Ensemble) NewDirectoryID(random func() model.UUID) model.DirectoryID {
	for {
		id := model.DirectoryID(random())
		taken := slices.ContainsFunc(e.Dirs, func(d DirMeta) bool {
			return d.State == Formatted && d.Props.HasDirectoryID && d.Props.DirectoryID == id
		})
		if !taken && !id.Reserved() && !strings.HasPrefix(id.String(), "-") {
			return id
		}
	}
}

// DirectoryIDs is the value of directory.ids: the sorted ids of all directories, or nil while
// not every directory is formatted and has one (J-14).
func (e *Ensemble) DirectoryIDs() []string {
	var ids []string
	for _, d := range e.Dirs {
		if d.State != Formatted || !d.Props.HasDirectoryID {
			return nil
		}
		ids = append(ids, d.Props.DirectoryID.String())
	}
	sort.Strings(ids)
	return ids
}

// KnownOffline lists the ids of directories that could not be read, as far as directory.ids
// can be trusted to name them: every formatted directory holds the same list, it contains
// all ids just read, and it has as many ids as there are directories (J-15). why says, where
// it cannot be trusted although some directory has a list, what spoke against it.
func (e *Ensemble) KnownOffline() (ids []model.DirectoryID, trusted bool, why string) {
	var list []string
	some := false
	for _, d := range e.Dirs {
		if d.State != Formatted {
			continue
		}
		some = some || len(d.Props.DirectoryIDs) > 0
		if list == nil {
			list = d.Props.DirectoryIDs
		}
	}
	if !some {
		return nil, false, ""
	}
	offline := map[string]bool{}
	for _, id := range list {
		offline[id] = true
	}
	if len(offline) != len(e.Dirs) {
		return nil, false, fmt.Sprintf("directory.ids names %d directories, but %d are configured", len(offline), len(e.Dirs))
	}
	for _, d := range e.Dirs {
		if d.State != Formatted {
			continue
		}
		if !slices.Equal(list, d.Props.DirectoryIDs) {
			return nil, false, "directory.ids of " + d.Path + " differs from the others"
		}
		id := d.Props.DirectoryID.String()
		if !d.Props.HasDirectoryID || !offline[id] {
			return nil, false, "directory.ids does not contain the id of " + d.Path
		}
		delete(offline, id)
	}
	for _, text := range slices.Sorted(maps.Keys(offline)) {
		id, err := model.ParseUUID(text)
		if err != nil {
			return nil, false, "directory.ids: " + err.Error()
		}
		ids = append(ids, model.DirectoryID(id))
	}
	return ids, true, ""
}

// WriteMetaProperties writes one directory's file: DIR/meta.properties.tmp, fsync, rename, fsync
// of the directory. After a failure the temporary file is removed, if that is still possible (J-12). The error names the
// file that could not be written.
func WriteMetaProperties(fsys vfs.FS, dir string, p MetaProperties, now time.Time) error {
	name := filepath.Join(dir, MetaPropertiesFile)
	err := vfs.WriteFileAtomic(fsys, name, p.Append(nil, now))
	if err != nil {
		fsys.Remove(name + ".tmp")
	}
	return err
}

// Set puts the content a directory has, or is about to get, into the ensemble.
func (e *Ensemble) Set(path string, p MetaProperties) {
	if d := e.find(path); d != nil {
		d.State, d.Props, d.Err = Formatted, p, nil
	}
}
