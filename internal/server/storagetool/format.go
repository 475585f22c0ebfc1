package storagetool

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/logdir"
)

// Checkpoint says which releases' readers find the first metadata records (K-105).
type Checkpoint uint8

const (
	// CheckpointAll4x writes them to bootstrap.checkpoint and keeps the control records in the
	// 0-0 checkpoint: read by every Kafka 4.x and by samsa.
	CheckpointAll4x Checkpoint = iota
	// Checkpoint44 writes everything into the 0-0 checkpoint, as Kafka 4.4 itself does; older ones do not
	// find the records there.
	Checkpoint44
)

// Options is what Format needs: the flags, and the facts of the configuration file.
type Options struct {
	FS        vfs.FS
	Out       io.Writer // what the tool prints
	ClusterID string    // any text, even empty, is stored
	NodeID    model.NodeID
	// Controller: the node has the controller role, so its metadata directory gets the checkpoint.
	Controller  bool
	Dirs        []string // log.dirs
	MetadataDir string   // metadata.log.dir, or the first of Dirs

	// StaticVoters: controller.quorum.voters is set. Then neither Standalone nor InitialControllers may be.
	StaticVoters         bool
	Standalone           bool    // -s
	NoInitialControllers bool    // -N
	InitialControllers   *string // -I; nil: not given
	// ControllerListener is the first of controller.listener.names; Advertised is where this
	// controller is reached by it, for Standalone; its host "" is localhost.
	ControllerListener string
	AdvertisedHost     string
	AdvertisedPort     int32

	IgnoreFormatted  bool     // -g
	RequireAllDirs   bool     // --require-all-dirs: refuse where Kafka skips (J-27)
	Release          string   // -r
	Features         []string // -f name=level
	Scram            []string // -S
	UnstableFeatures bool     // unstable.feature.versions.enable
	Checkpoint       Checkpoint

	Now    func() time.Time  // nil: time.Now
	Random func() model.UUID // nil: model.RandomUUID
}

// kind is what a directory is formatted as (J-25).
type kind uint8

const (
	dataDir kind = iota
	staticMetadataDir
	dynamicMetadataDir
	voterMetadataDir
)

func (k kind) String() string {
	return [...]string{"data directory", "metadata directory", "dynamic metadata directory", "dynamic metadata voter directory"}[k]
}

// plan is everything decided before anything is written.
type plan struct {
	version metadataVersion
	levels  map[string]int16
	records bootstrapRecords
	voters  []Voter // empty: none known
}

// Format formats the directories of one node that are not formatted yet.
//
// Nothing is written unless everything asked for makes sense and the directories that can be read agree
// with it. Directories are written in order of their paths, meta.properties last; an error
// leaves those before it formatted, and a second run with IgnoreFormatted completes the job (J-28).
// Errors are *Refused.
func Format(o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = model.RandomUUID
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	p, err := o.decide()
	if err != nil {
		return err
	}
	e := logdir.ReadEnsemble(o.FS, o.Dirs, o.MetadataDir)
	todo, err := o.check(e)
	if err != nil {
		return err
	}
	if len(todo) == 0 {
		fmt.Fprintln(o.Out, "All of the log directories are already formatted.")
		return o.refreshLists(e)
	}
	fmt.Fprintf(o.Out, "Bootstrap metadata: %s\n", p.records)
	return o.write(e, p, todo)
}

// decide checks the flags against each other, in the order Kafka's tool does (J-29, K-102..K-104, K-108).
func (o *Options) decide() (*plan, error) {
	asked, err := parseFeatures(o.Features)
	if err != nil {
		return nil, err
	}
	if o.Release != "" {
		if _, err := parseRelease(o.Release, o.UnstableFeatures); err != nil {
			return nil, err
		}
	}
	p := &plan{}
	if o.StaticVoters && (o.InitialControllers != nil || o.Standalone) {
		return nil, refuse("You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. " +
			"If you want to use dynamic quorum, please remove controller.quorum.voters and specify controller.quorum.bootstrap.servers instead.")
	}
	if o.InitialControllers != nil {
		if p.voters, err = ParseVoters(*o.InitialControllers); err != nil {
			return nil, err
		}
	}
	if o.Standalone {
		if !o.Controller {
			return nil, refuse("You can only use --standalone on a controller.")
		}
		host := o.AdvertisedHost
		if host == "" {
			host = "localhost"
		}
		p.voters = []Voter{{ID: o.NodeID, Host: host, Port: uint16(o.AdvertisedPort), Directory: o.newVoterID()}}
	}
	if !o.NoInitialControllers && o.Controller && !o.StaticVoters && len(p.voters) == 0 {
		return nil, refuse("Because controller.quorum.voters is not set on this controller, you must specify one of the following: " +
			"--standalone, --initial-controllers, or --no-initial-controllers.")
	}
	if o.NodeID < 0 {
		return nil, refuse("You must specify a valid non-negative node ID.")
	}
	if len(o.Dirs) == 0 {
		return nil, refuse("You must specify at least one directory to format")
	}
	if p.version, err = effectiveVersion(o.Release, asked, o.UnstableFeatures); err != nil {
		return nil, err
	}
	if p.levels, err = effectiveLevels(p.version, asked, !o.StaticVoters); err != nil {
		return nil, err
	}
	if len(o.Scram) > 0 && p.version.level < scramSince {
		v, _ := levelOf(scramSince)
		return nil, refuse("SCRAM is only supported in metadata.version %s or later.", v)
	}
	scram, err := parseScram(o.Scram)
	if err != nil {
		return nil, err
	}
	p.records = newBootstrapRecords(p.version, p.levels, scram)
	return p, nil
}

func (o *Options) newVoterID() model.DirectoryID {
	e := logdir.Ensemble{}
	return e.NewDirectoryID(o.Random)
}

// check verifies what is there and lists the directories to format (J-26, J-27).
func (o *Options) check(e *logdir.Ensemble) ([]string, error) {
	if err := e.Verify(&o.ClusterID, o.NodeID, false); err != nil && !o.onlyMetadataUnreadable(e, err) {
		return nil, refuseFor(err, "%v", err)
	}
	var formatted, unreadable, empty []logdir.DirMeta
	for _, d := range e.Dirs {
		switch d.State {
		case logdir.Formatted:
			formatted = append(formatted, d)
		case logdir.Unreadable:
			unreadable = append(unreadable, d)
		default:
			empty = append(empty, d)
		}
	}
	if len(formatted) > 0 && !o.IgnoreFormatted {
		return nil, refuse("Log directory %s is already formatted. Use --ignore-formatted to ignore this directory and format the others.", formatted[0].Path)
	}
	if len(unreadable) > 0 && o.RequireAllDirs {
		return nil, refuseFor(unreadable[0].Err, "Cannot read log directory %s, and --require-all-dirs is given: nothing was formatted. %v", unreadable[0].Path, unreadable[0].Err)
	}
	for _, d := range unreadable {
		fmt.Fprintf(o.Out, "I/O error trying to read log directory %s. Ignoring...\n", d.Path)
	}
	if len(unreadable) > 0 && len(empty) == 0 && len(formatted) == 0 {
		return nil, refuse("No available log directories to format.")
	}
	var todo []string
	for _, d := range empty {
		todo = append(todo, d.Path)
	}
	return todo, nil
}

// onlyMetadataUnreadable: the tool, unlike the server, goes on without a metadata directory it
// cannot read (J-27).
func (o *Options) onlyMetadataUnreadable(e *logdir.Ensemble, err error) bool {
	d, ok := e.Dir(o.MetadataDir)
	return ok && d.State == logdir.Unreadable && errors.Is(err, d.Err)
}

// write formats the directories and then refreshes directory.ids in those formatted before.
func (o *Options) write(e *logdir.Ensemble, p *plan, todo []string) error {
	node := o.NodeID
	kinds := make([]kind, len(todo))
	for i, path := range todo {
		kinds[i] = o.kindOf(path, p.voters)
		props := logdir.MetaProperties{Version: 1, ClusterID: &o.ClusterID, NodeID: &node, HasDirectoryID: true}
		if kinds[i] == voterMetadataDir {
			at := slices.IndexFunc(p.voters, func(v Voter) bool { return v.ID == o.NodeID })
			props.DirectoryID = p.voters[at].Directory
		} else {
			props.DirectoryID = e.NewDirectoryID(o.Random)
		}
		e.Set(path, props)
	}
	ids := e.DirectoryIDs()
	for i, path := range todo {
		fmt.Fprintf(o.Out, "Formatting %s %s with metadata.version %s.\n", kinds[i], path, p.version)
		d, _ := e.Dir(path)
		d.Props.DirectoryIDs = ids
		if err := o.writeDir(path, kinds[i], d.Props, p); err != nil {
			return refuseFor(err, "Error while writing meta.properties file %s: %v", path, err)
		}
		e.Set(path, d.Props)
	}
	return o.refreshLists(e)
}

func (o *Options) kindOf(path string, voters []Voter) kind {
	switch {
	case path != o.MetadataDir:
		return dataDir
	case len(voters) == 0:
		return staticMetadataDir
	case slices.ContainsFunc(voters, func(v Voter) bool { return v.ID == o.NodeID }):
		return voterMetadataDir
	}
	return dynamicMetadataDir
}

// writeDir formats one directory; everything is durable on return.
func (o *Options) writeDir(path string, k kind, props logdir.MetaProperties, p *plan) error {
	if err := makeDir(o.FS, path); err != nil {
		return err
	}
	if o.Controller && k != dataDir {
		if err := o.writeCheckpoint(path, p); err != nil {
			return err
		}
	}
	return logdir.WriteMetaProperties(o.FS, path, props, o.Now())
}

// makeDir makes a directory with its parents, and makes the names of the new ones durable.
func makeDir(fsys vfs.FS, path string) error {
	var made []string
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		ok, err := vfs.Exists(fsys, p)
		if err != nil {
			return err
		}
		if ok || p == filepath.Dir(p) {
			break
		}
		made = append(made, p)
	}
	if len(made) == 0 {
		return nil
	}
	if err := fsys.MkdirAll(path, 0o755); err != nil {
		return err
	}
	for _, p := range made {
		if err := fsys.SyncDir(filepath.Dir(p)); err != nil {
			return err
		}
	}
	return nil
}

// refreshLists writes directory.ids where it differs, as long as every directory is readable (J-14). Files
// formatted earlier change in nothing else. A directory whose id is missing gets none here (J-26).
func (o *Options) refreshLists(e *logdir.Ensemble) error {
	ids := e.DirectoryIDs()
	if ids == nil {
		return nil
	}
	for _, d := range e.Dirs {
		if slices.Equal(d.Props.DirectoryIDs, ids) {
			continue
		}
		d.Props.DirectoryIDs = ids
		if err := logdir.WriteMetaProperties(o.FS, d.Path, d.Props, o.Now()); err != nil {
			return refuseFor(err, "Error while writing meta.properties file %s: %v", d.Path, err)
		}
	}
	return nil
}

// listenerName is how listener names are compared and stored.
func listenerName(name string) string { return strings.ToUpper(name) }
