package logdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// Manager owns the log directories of one node. Its methods may be called from any goroutine.
type Manager struct {
	opts Options
	log  *slog.Logger
	env  *partlog.Env
	dirs []*Directory // in configured order, without repeated entries; never changes

	// previousEpoch is what the clean markers said at Open (J-43).
	previousEpoch int64
	ensemble      *Ensemble
	live          atomic.Pointer[Live]

	mu       sync.RWMutex
	current  map[model.TopicIDPartition]*Replica // guarded by mu
	future   map[model.TopicIDPartition]*Replica // guarded by mu
	creating map[model.TopicIDPartition]bool     // guarded by mu: being made by CreateAll right now
	broken   map[model.TopicIDPartition]error    // guarded by mu: could not be opened by Load

	failures  chan *Directory // one slot per directory, so that sending never blocks
	listeners listeners
	sched     scheduler
	closed    atomic.Bool
}

// Replica is one log and the directory it is in.
type Replica struct {
	Log       *partlog.Log
	Dir       *Directory
	Partition model.TopicIDPartition
	Topic     string
}

// Name is the partition by name.
func (r *Replica) Name() model.TopicPartition {
	return model.TopicPartition{Topic: r.Topic, Partition: r.Partition.Partition}
}

// Directory is one entry of log.dirs.
type Directory struct {
	path    string // absolute
	written string // as configured
	id      model.DirectoryID
	fs      *vfs.DirFS    // nil where the directory was offline before it had a seam
	started error         // why it was offline at start
	calls   *vfs.Observer // below fs
	hung    time.Time     // when the hanging call began that was logged last; owned by the scheduler

	lockMu   sync.Mutex
	lock     io.Closer   // guarded by lockMu
	clean    bool        // its last stop was clean
	loaded   atomic.Bool // all logs were loaded, so a clean marker may be written
	logs     int         // current and future logs; guarded by Manager.mu
	reported atomic.Bool // its failure was handled

	recovery, logStart, highWatermark, cleaner Checkpoint // as read at Load; cleaner is kept up
	saved                                      savedCheckpoints
	remaining                                  atomic.Int32 // logs still to be loaded
	free                                       atomic.Int64 // bytes free on its disk, as of the last watch
	work, slow                                 worker       // checkpoints; everything that may take long
}

// Path is the absolute path of the directory.
func (d *Directory) Path() string { return d.path }

// ID is the directory id from meta.properties; zero where it could not be read.
func (d *Directory) ID() model.DirectoryID { return d.id }

// Err is why the directory is offline, or nil while it is online.
func (d *Directory) Err() error {
	if d.started != nil {
		return d.started
	}
	if err := d.fs.Offline(); err != nil {
		return err
	}
	return nil
}

// Online says whether the directory may be used. It turns false once, at the first storage error.
func (d *Directory) Online() bool { return d.Err() == nil }

// FS is the seam every file call of this directory must go through; nil where it was offline at start.
func (d *Directory) FS() vfs.FS {
	if d.fs == nil {
		return nil
	}
	return d.fs
}

// Open checks, locks and lists the log directories. It opens no log: registration may begin,
// and Load follows with the first metadata image (J-35).
//
// Directories that cannot be used are offline and the others go on (J-18, J-36, J-182). It is
// an error when none is left (J-37), when another process uses one of them (J-41), or
// when meta.properties files contradict each other (J-18).
func Open(o Options) (*Manager, error) {
	o = o.withDefaults()
	if len(o.Dirs) == 0 {
		return nil, errors.New("log.dirs names no directory; set log.dirs in the configuration")
	}
	e := o.Ensemble
	if e == nil {
		var err error
		e, err = Prepare(PrepareOptions{FS: o.FS, Dirs: o.Dirs, MetadataDir: o.MetadataDir, NodeID: o.NodeID,
			Now: o.Now, Random: o.Random, Log: o.Log})
		if err != nil {
			return nil, err
		}
	}
	m := &Manager{
		opts: o, log: o.Log, ensemble: e,
		current:  map[model.TopicIDPartition]*Replica{},
		future:   map[model.TopicIDPartition]*Replica{},
		creating: map[model.TopicIDPartition]bool{},
		broken:   map[model.TopicIDPartition]error{},
		failures: make(chan *Directory, len(o.Dirs)),
	}
	m.live.Store(&o.Live)
	m.env = &partlog.Env{Files: o.Files, Log: o.Log, Rolled: m.rolled, Discard: m.discard}
	m.env.ProducerExpirationMs.Store(o.ProducerExpiration.Milliseconds())
	m.sched.init(m)
	if err := m.openDirs(); err != nil {
		m.unlock()
		return nil, err
	}
	m.previousEpoch = m.readMarkers()
	m.warnAboutOffline()
	m.register(o.Metrics)
	m.sched.startFailures()
	return m, nil
}

// openDirs makes a Directory of every entry of log.dirs.
func (m *Manager) openDirs() error {
	seen := map[string]bool{}
	real := map[string]string{}
	for _, written := range m.opts.Dirs {
		if seen[written] {
			m.log.Warn("log.dirs names a directory twice; the second entry is ignored", "dir", written)
			continue
		}
		seen[written] = true
		path, err := filepath.Abs(written)
		if err != nil {
			return fmt.Errorf("log directory %s: %w", written, err)
		}
		d := &Directory{path: path, written: written}
		d.work.init(m)
		d.slow.init(m)
		m.dirs = append(m.dirs, d)
		meta, ok := m.ensemble.Dir(written)
		if !ok || meta.State != Formatted {
			d.started = meta.Err
			if d.started == nil {
				d.started = fmt.Errorf("log directory %s has no %s", path, MetaPropertiesFile)
			}
			continue
		}
		d.id = meta.Props.DirectoryID
		if key, ok := realPath(m.opts.FS, path); ok {
			if other, taken := real[key]; taken {
				return fmt.Errorf("Duplicate log directory found: %s (%s and %s are the same directory)", strings.Join(m.opts.Dirs, ", "), other, written)
			}
			real[key] = written
		}
		d.calls = vfs.Observe(m.opts.FS, m.opts.Now, hungAfter, func(op vfs.Op, took time.Duration) {
			m.log.Warn("a disk was slow", "dir", path, "call", op, "took", took)
		})
		d.fs = vfs.Dir(d.calls, path, func(*vfs.DirError) { m.failures <- d })
		if err := m.lockDir(d); err != nil {
			return err
		}
	}
	for _, d := range m.dirs {
		if d.Online() {
			return nil
		}
	}
	var causes []error
	for _, d := range m.dirs {
		causes = append(causes, d.Err())
	}
	return fmt.Errorf("Shutdown broker because none of the specified log dirs from %s can be created or validated: %w",
		strings.Join(m.opts.Dirs, ", "), errors.Join(causes...))
}

// warnAboutOffline names the ids of directories that are offline, where directory.ids knows them (J-15).
func (m *Manager) warnAboutOffline() {
	if !m.HasOffline() {
		return
	}
	for _, d := range m.dirs {
		if err := d.Err(); err != nil {
			m.log.Error("log directory is offline", "dir", d.path, "err", err)
		}
	}
	ids, trusted, why := m.ensemble.KnownOffline()
	switch {
	case trusted && len(ids) > 0:
		m.log.Error("ids of offline log directories, from directory.ids of the others", "directoryIDs", ids)
	case why != "":
		m.log.Warn("the ids of offline log directories are unknown", "why", why)
	}
}

// Get returns the replica of a partition. A replica in a directory that is offline is not
// returned, from the very moment the directory fails.
func (m *Manager) Get(tp model.TopicIDPartition) (*Replica, bool) {
	m.mu.RLock()
	r := m.current[tp]
	m.mu.RUnlock()
	if r == nil || !r.Dir.Online() {
		return nil, false
	}
	return r, true
}

// Future returns the copy of a partition that is on its way into another directory.
func (m *Manager) Future(tp model.TopicIDPartition) (*Replica, bool) {
	m.mu.RLock()
	r := m.future[tp]
	m.mu.RUnlock()
	if r == nil || !r.Dir.Online() {
		return nil, false
	}
	return r, true
}

// Replicas lists all current replicas in online directories, in no order.
func (m *Manager) Replicas() []*Replica {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]*Replica, 0, len(m.current))
	for _, r := range m.current {
		if r.Dir.Online() {
			out = append(out, r)
		}
	}
	return out
}

// HighWatermark is a hosted partition's high watermark: what the checkpoint said, and what was
// set since (partlog.Log.SetHighWatermark).
func (m *Manager) HighWatermark(tp model.TopicIDPartition) (int64, bool) {
	r, ok := m.Get(tp)
	if !ok {
		return 0, false
	}
	return r.Log.HighWatermark(), true
}

// ClusterID is the cluster id the directories hold.
func (m *Manager) ClusterID() string { return m.ensemble.ClusterID() }

// MetadataDirectoryID is the id of the metadata directory, which is the node's voter directory id (J-24).
func (m *Manager) MetadataDirectoryID() (model.DirectoryID, bool) {
	return m.ensemble.DirectoryID(m.opts.MetadataDir)
}

// Env is what all logs of this node share: its Stats are for metrics.
func (m *Manager) Env() *partlog.Env { return m.env }

// Directory finds a directory by id, online or not.
func (m *Manager) Directory(id model.DirectoryID) (*Directory, bool) {
	for _, d := range m.dirs {
		if d.id == id && !id.IsZero() {
			return d, true
		}
	}
	return nil, false
}

// DirectoryAt finds a directory by path, absolute or as written in log.dirs.
func (m *Manager) DirectoryAt(path string) (*Directory, bool) {
	for _, d := range m.dirs {
		if d.path == path || d.written == path {
			return d, true
		}
	}
	return nil, false
}

// OnlineIDs lists the ids of the directories that are online, in configured order: what a
// broker registers with (J-38).
func (m *Manager) OnlineIDs() []model.DirectoryID {
	var out []model.DirectoryID
	for _, d := range m.dirs {
		if d.Online() {
			out = append(out, d.id)
		}
	}
	return out
}

// OnlineID says whether id names a directory that is online.
func (m *Manager) OnlineID(id model.DirectoryID) bool {
	d, ok := m.Directory(id)
	return ok && d.Online()
}

// HasOffline says whether some configured directory is offline.
func (m *Manager) HasOffline() bool {
	return slices.ContainsFunc(m.dirs, func(d *Directory) bool { return !d.Online() })
}

// KnownOffline lists the ids of directories that were offline at start, where directory.ids could
// name them with certainty (J-15); trusted is false where it could not.
func (m *Manager) KnownOffline() (ids []model.DirectoryID, trusted bool) {
	ids, trusted, _ = m.ensemble.KnownOffline()
	return ids, trusted
}

// PreviousBrokerEpoch is the broker epoch of the last stop if that was clean in every
// configured directory, else NoBrokerEpoch (J-43).
func (m *Manager) PreviousBrokerEpoch() int64 { return m.previousEpoch }

// Reconfigure replaces what may change while the node runs.
func (m *Manager) Reconfigure(l Live) {
	l = l.withDefaults()
	m.live.Store(&l)
	m.sched.wake()
}

// Cordoned says whether a directory gets no new logs.
func (m *Manager) cordoned(d *Directory) bool {
	l := m.live.Load()
	return slices.ContainsFunc(l.Cordoned, func(c string) bool { return c == "*" || c == d.written || c == d.path })
}

func (m *Manager) nowMs() int64 { return m.opts.Now().UnixMilli() }

// Close stops the background work, flushes and closes every log, in parallel in each
// directory, and writes the checkpoints and the clean marker (D-72). See closeDir for the order.
//
// When ctx ends first, the logs not yet closed are left as they are and their directories get
// no clean marker: the next start recovers them. The error joins those of all directories.
func (m *Manager) Close(ctx context.Context, brokerEpoch int64) error {
	return m.close(ctx, brokerEpoch)
}
