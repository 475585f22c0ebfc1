package logdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// Sub-directories that are not replicas and never were (J-40, T-115).
const remoteIndexCache = "remote-log-index-cache"

// Found is a replica's directory that Load came across.
type Found struct {
	Partition model.TopicIDPartition
	Topic     string // from the directory's name
	Future    bool
	Stray     bool // set aside at an earlier start; only Gone of the Verdict counts
	Dir       *Directory
	Path      string
}

// Verdict is what the metadata image says about a Found (T-98).
type Verdict struct {
	// Stray, where not "", is why the replica belongs to nobody: it is renamed and left alone.
	Stray string
	// Gone says that the image knows no topic of this id: such a stray may be removed after
	// delete.stale.topic.delay.ms, if that is set (T-109).
	Gone bool
	// Config is the topic's configuration; nil: Options.DefaultConfig.
	Config *partlog.Config
	// Directory is where the metadata has the replica. It decides between two copies (J-45).
	Directory model.DirectoryID
}

// LoadOptions is how Load asks about what it finds.
type LoadOptions struct {
	// Decide is called once for each replica, from several goroutines. nil keeps everything.
	Decide func(Found) Verdict
}

// found is a replica that will be opened.
type found struct {
	Found
	verdict Verdict
}

// Load opens every log of every online directory (D-63). It is called once, with the first metadata
// image at hand, and returns when all are open; the background work begins then.
//
// Per directory, and directories side by side: read and remove the clean marker, read the
// checkpoints, look at each sub-directory, set strays aside, queue what waits for deletion;
// then open the logs on num.recovery.threads.per.data.dir goroutines.
//
// A storage error, or a damaged checkpoint or partition.metadata, takes that directory offline
// and the others go on (J-39, T-23, D-220). A single log that cannot be opened is left out,
// with one line of log. Load fails when ctx ends, when no directory is left, and when
// two directories hold the same replica and the metadata names neither (J-45).
func (m *Manager) Load(ctx context.Context, o LoadOptions) error {
	begin := m.opts.Now()
	if o.Decide == nil {
		o.Decide = func(Found) Verdict { return Verdict{} }
	}
	lists := make([][]found, len(m.dirs))
	m.eachDir(func(i int, d *Directory) { lists[i] = m.scan(d, o.Decide) })
	if err := m.settleDuplicates(lists); err != nil {
		return err
	}
	m.eachDir(func(i int, d *Directory) { m.openLogs(ctx, d, lists[i]) })
	if ctx.Err() != nil {
		return fmt.Errorf("loading of logs was stopped: %w", context.Cause(ctx))
	}
	if len(m.OnlineIDs()) == 0 {
		return m.errAllFailed()
	}
	m.mu.RLock()
	n := len(m.current) + len(m.future)
	m.mu.RUnlock()
	m.log.Info("logs loaded", "logs", n, "took", m.opts.Now().Sub(begin).Round(time.Millisecond))
	m.sched.start()
	return nil
}

func (m *Manager) errAllFailed() error {
	var causes []error
	for _, d := range m.dirs {
		causes = append(causes, d.Err())
	}
	return fmt.Errorf("Shutdown broker because all log dirs have failed: %w", errors.Join(causes...))
}

// eachDir runs f for every online directory, side by side, and waits.
func (m *Manager) eachDir(f func(i int, d *Directory)) {
	var wg sync.WaitGroup
	for i, d := range m.dirs {
		if d.Online() {
			wg.Go(func() { f(i, d) })
		}
	}
	wg.Wait()
}

// readMarkers reads the clean marker of every directory and says what broker epoch they agree on (J-43).
func (m *Manager) readMarkers() int64 {
	epoch, agreed := NoBrokerEpoch, true
	for i, d := range m.dirs {
		e := NoBrokerEpoch
		if d.Online() {
			text, err := readBounded(d.fs, filepath.Join(d.path, CleanShutdownFile), maxMarkerBytes)
			d.clean = err == nil || errors.Is(err, errTooLarge)
			if err == nil {
				e = parseCleanMarker(text)
			}
		}
		if i == 0 {
			epoch = e
		}
		agreed = agreed && e == epoch && d.clean
	}
	for _, d := range m.dirs {
		if d.started == nil && !d.Online() {
			d.started = d.Err() // failed before anybody could register it
		}
	}
	if !agreed || m.HasOffline() {
		return NoBrokerEpoch
	}
	return epoch
}

// scan looks at everything in one directory and returns the replicas to open.
func (m *Manager) scan(d *Directory, decide func(Found) Verdict) []found {
	if d.clean {
		marker := filepath.Join(d.path, CleanShutdownFile)
		// The removal must be on disk before any log changes: a marker that came back after a
		// power loss would vouch for files it knows nothing of.
		if err := d.fs.Remove(marker); err != nil && !isNotExist(err) {
			return nil
		}
		if err := d.fs.SyncDir(d.path); err != nil {
			return nil
		}
	}
	if !m.readCheckpoints(d) {
		return nil
	}
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != remoteIndexCache && e.Name() != metadataLogDir {
			names = append(names, e.Name())
		}
	}
	results := make([]*found, len(names))
	renamed := make([]bool, len(names))
	parallel(len(names), m.live.Load().RecoveryThreadsPerDir, func(i int) bool {
		results[i], renamed[i] = m.look(d, names[i], decide)
		return d.Online()
	})
	for _, r := range renamed {
		if r {
			if d.fs.SyncDir(d.path) != nil {
				return nil
			}
			break
		}
	}
	var out []found
	for _, f := range results {
		if f != nil {
			out = append(out, *f)
		}
	}
	how := "logs are trusted, the last stop was clean"
	switch {
	case len(out) == 0:
		how = "there are none"
	case !d.clean:
		how = "logs are recovered, there is no clean shutdown marker"
	}
	m.log.Info("loading logs", "dir", d.path, "directoryID", d.id, "logs", len(out), "how", how)
	return out
}

// look judges one sub-directory; renamed says that it was set aside.
func (m *Manager) look(d *Directory, name string, decide func(Found) Verdict) (f *found, renamed bool) {
	path := filepath.Join(d.path, name)
	tp, role, err := ParseLogName(name)
	if err != nil {
		m.log.Warn("skipped a directory that is not a replica", "path", path, "why", err)
		return nil, false
	}
	if role == Deleted {
		m.sched.removeDir(d, path)
		return nil, false
	}
	meta, err := readPartitionMetadata(d.fs, path)
	in := Found{Partition: model.TopicIDPartition{Topic: meta.TopicID, Partition: tp.Partition},
		Topic: tp.Topic, Future: role == Future, Stray: role == StrayLog, Dir: d, Path: path}
	if role == StrayLog {
		if err == nil {
			m.strayAgain(in, meta, decide)
		}
		m.log.Warn("stray replica", "path", path, "topicID", meta.TopicID)
		return nil, false
	}
	verdict := Verdict{}
	var damage *Damage
	switch {
	case isNotExist(err):
		verdict.Stray = "it has no " + PartitionMetadataFile
	case errors.As(err, &damage):
		d.fs.TakeOffline(vfs.OpRead, damage.Path, damage)
		return nil, false
	case err != nil:
		return nil, false // the seam has taken the directory offline, if it was a storage error
	case meta.Partition != nil && *meta.Partition != tp:
		verdict.Stray = fmt.Sprintf("the directory is named %s, but its %s says %s", tp, PartitionMetadataFile, *meta.Partition)
	default:
		verdict = decide(in)
	}
	if verdict.Stray == "" {
		return &found{in, verdict}, false
	}
	to, err := m.renameAside(d, path, tp, StrayLog)
	if err != nil {
		return nil, false
	}
	m.log.Warn("replica set aside as stray", "path", path, "to", to, "topicID", meta.TopicID, "topic", tp.Topic,
		"partition", tp.Partition, "why", verdict.Stray)
	if verdict.Gone {
		m.sched.removeStale(d, to)
	}
	return nil, true
}

// strayAgain lets the timer of T-109 run anew for a stray of an earlier start.
func (m *Manager) strayAgain(in Found, meta PartitionMetadata, decide func(Found) Verdict) {
	if m.opts.DeleteStaleTopicDelay <= 0 {
		return
	}
	if meta.Partition != nil {
		in.Topic = meta.Partition.Topic
	}
	if decide(in).Gone {
		m.sched.removeStale(in.Dir, in.Path)
	}
}

// readPartitionMetadata reads a replica's partition.metadata. fs.ErrNotExist where there is none, *Damage where it makes no sense.
func readPartitionMetadata(fsys vfs.FS, dir string) (PartitionMetadata, error) {
	path := filepath.Join(dir, PartitionMetadataFile)
	text, err := readBounded(fsys, path, maxMarkerBytes)
	if err != nil && !errors.Is(err, errTooLarge) {
		return PartitionMetadata{}, err
	}
	if err == nil {
		var meta PartitionMetadata
		if meta, err = ParsePartitionMetadata(string(text)); err == nil {
			return meta, nil
		}
	}
	return PartitionMetadata{}, &Damage{Path: path, What: err,
		Next: "Restore the file with the topic's id (kafka-topics --describe shows it), or move the replica's directory away and let it be copied from the leader; then restart."}
}

// renameAside gives a replica's directory a name of another role in the same log directory. The caller syncs the log directory.
func (m *Manager) renameAside(d *Directory, path string, tp model.TopicPartition, role Role) (string, error) {
	name, _ := LogName(tp, role, m.opts.Random())
	to := filepath.Join(d.path, name)
	return to, d.fs.Rename(path, to)
}

// settleDuplicates finds replicas that are in two directories and keeps the copy where the
// metadata has it; the other is set aside (J-45, T-108). Where the metadata names neither, a copy without
// records gives way: a directory that failed while the log was being made leaves one behind.
func (m *Manager) settleDuplicates(lists [][]found) error {
	type key struct {
		tp     model.TopicIDPartition
		future bool
	}
	first := map[key]*found{}
	for i := range lists {
		for j := range lists[i] {
			f := &lists[i][j]
			k := key{f.Partition, f.Future}
			other, ok := first[k]
			if !ok {
				first[k] = f
				continue
			}
			keep, drop := other, f
			switch {
			case f.Dir.id == f.verdict.Directory:
				keep, drop = f, other
			case other.Dir.id == f.verdict.Directory || isEmptyLog(f):
			case isEmptyLog(other):
				keep, drop = f, other
			default:
				return fmt.Errorf("Duplicate log directories for %s-%d are found in both %s and %s, and the metadata has the replica in neither."+
					" Move one of the two away (the one on the disk that failed recently) and restart.", f.Topic, f.Partition.Partition, other.Path, f.Path)
			}
			if !drop.Dir.Online() || !keep.Dir.Online() {
				continue
			}
			tp := model.TopicPartition{Topic: drop.Topic, Partition: drop.Partition.Partition}
			to, err := m.renameAside(drop.Dir, drop.Path, tp, StrayLog)
			if err == nil {
				err = drop.Dir.fs.SyncDir(drop.Dir.path)
			}
			m.log.Warn("second copy of a replica set aside as stray", "path", drop.Path, "to", to, "kept", keep.Path, "err", err)
			drop.Path = "" // not opened
			first[k] = keep
		}
	}
	return nil
}

// isEmptyLog says that a replica's directory holds no record.
func isEmptyLog(f *found) bool {
	entries, err := f.Dir.fs.ReadDir(f.Path)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".log" {
			continue
		}
		if info, err := f.Dir.fs.Stat(filepath.Join(f.Path, e.Name())); err != nil || info.Size() > 0 {
			return false
		}
	}
	return true
}

// openLogs opens the replicas of one directory.
func (m *Manager) openLogs(ctx context.Context, d *Directory, list []found) {
	threads := m.live.Load().RecoveryThreadsPerDir
	if d.clean {
		threads = max(threads, runtime.GOMAXPROCS(0)) // nothing to recover: only many small files
	}
	var mu sync.Mutex
	complete := true
	d.remaining.Store(int32(len(list)))
	parallel(len(list), threads, func(i int) bool {
		ok := list[i].Path == "" || m.openLog(d, list[i])
		d.remaining.Add(-1)
		if !ok {
			mu.Lock()
			complete = false
			mu.Unlock()
		}
		return d.Online() && ctx.Err() == nil
	})
	if complete && ctx.Err() == nil && d.Online() {
		d.loaded.Store(true)
	}
}

// openLog opens one log and takes it into the maps.
func (m *Manager) openLog(d *Directory, f found) bool {
	cfg := f.verdict.Config
	if cfg == nil {
		cfg = m.opts.DefaultConfig
	}
	tp := model.TopicPartition{Topic: f.Topic, Partition: f.Partition.Partition}
	log, info, err := partlog.Open(partlog.Options{FS: d.fs, Dir: f.Path, Partition: tp, TopicID: f.Partition.Topic, Env: m.env, Config: cfg,
		LogStartOffset: d.logStart[tp], RecoveryPoint: d.recovery[tp], HighWatermark: d.highWatermark[tp], Clean: d.clean, Now: m.nowMs()})
	if err != nil {
		if d.Online() {
			m.log.Error("a log cannot be opened and is left out", "path", f.Path, "topicID", f.Partition.Topic, "err", err)
			m.mu.Lock()
			m.broken[f.Partition] = err
			m.mu.Unlock()
		}
		return false
	}
	if info.BytesTruncated > 0 || info.SegmentsDropped > 0 {
		m.log.Warn("a log was cut at its last whole batch", "path", f.Path, "bytesTruncated", info.BytesTruncated,
			"segmentsDropped", info.SegmentsDropped, "logEndOffset", log.LogEndOffset())
	}
	if known := max(d.recovery[tp], d.highWatermark[tp]); log.LogEndOffset() < known {
		m.log.Warn("a log ends before what its checkpoints say was there: records are lost unless another replica has them", "path", f.Path,
			"topicID", f.Partition.Topic, "logEndOffset", log.LogEndOffset(), "recoveryPoint", d.recovery[tp], "highWatermark", d.highWatermark[tp],
			"next", "look for missing or empty .log files; to get them back, stop the node, restore them from a backup, and start it")
	}
	r := &Replica{Log: log, Dir: d, Partition: f.Partition, Topic: f.Topic}
	m.mu.Lock()
	defer m.mu.Unlock()
	d.logs++
	if f.Future {
		m.future[f.Partition] = r
	} else {
		m.current[f.Partition] = r
	}
	return true
}

// parallel runs f(0) .. f(n-1) on so many goroutines and waits; when one returns false the rest is left out.
func parallel(n, workers int, f func(i int) bool) {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			if !f(i) {
				return
			}
		}
		return
	}
	next := make(chan int)
	stop := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				if !f(i) {
					once.Do(func() { close(stop) })
				}
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-stop:
			break feed
		}
	}
	close(next)
	wg.Wait()
}

// createEmpty makes an empty file where there is none.
func createEmpty(fsys vfs.FS, name string) error {
	ok, err := vfs.Exists(fsys, name)
	if ok || err != nil {
		return err
	}
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
