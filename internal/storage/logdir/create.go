package logdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// CreateRequest is one log to make.
type CreateRequest struct {
	Partition model.TopicIDPartition
	Topic     string
	// Dir is the directory the metadata names: an ordinary id, or DirUnassigned, DirMigrating, DirLost.
	Dir model.DirectoryID
	// Config is the topic's configuration; nil: Options.DefaultConfig.
	Config *partlog.Config
	// IsNew says that the partition, or this broker's part in it, is new since the last start, or was never
	// placed (J-105): only then it may be made while some directory is offline.
	IsNew bool
}

// CreateResult answers one CreateRequest, at the same index. Where Err is nil Replica is the log, made now
// or there already; Replica.Dir may differ from the directory asked for and is to be reported then.
type CreateResult struct {
	Replica *Replica
	Err     error // kerr.KafkaStorageError, kerr.InconsistentTopicId, kerr.InvalidTopicException
}

// createWorkers is how many logs one directory makes at a time. Most of that is waiting for fsync,
// which the file system does for all waiting at once; 2,000 logs took 1.0 s with 8 and not less with 32.
const createWorkers = 8

// Create makes one log; see CreateAll.
func (m *Manager) Create(tp model.TopicIDPartition, topic string, dir model.DirectoryID, cfg *partlog.Config, isNew bool) (*Replica, error) {
	r := m.CreateAll([]CreateRequest{{tp, topic, dir, cfg, isNew}})[0]
	return r.Replica, r.Err
}

// CreateAll makes many logs, in parallel in each directory. On return the name and the
// partition.metadata of every log made are durable, before any record can be (T-21).
//
// Steps for each log, in this order:
//
//	mkdir DIR/t-0; partition.metadata.tmp: create, write, sync; rename; sync DIR/t-0
//	once per directory: sync DIR
//	open the log, which makes its first segment
//
// A directory that fails on the way is offline and the logs that were to go there are placed
// again, unless the metadata named that directory (J-108).
func (m *Manager) CreateAll(requests []CreateRequest) []CreateResult {
	results := make([]CreateResult, len(requests))
	todo := m.claim(requests, results)
	for len(todo) > 0 {
		byDir := m.assign(requests, results, todo)
		var wg sync.WaitGroup
		for d, indexes := range byDir {
			wg.Go(func() { m.createIn(d, requests, results, indexes) })
		}
		wg.Wait()
		todo = todo[:0]
		for d, indexes := range byDir {
			for _, i := range indexes {
				if results[i].Err == nil {
					continue
				}
				m.mu.Lock()
				d.logs--
				m.mu.Unlock()
				if !d.Online() && requests[i].Dir != d.id {
					todo = append(todo, i)
				}
			}
		}
	}
	m.mu.Lock()
	for i, r := range results {
		if r.Err == nil || requests[i].claimed(r.Err) {
			delete(m.creating, requests[i].Partition)
		}
	}
	m.mu.Unlock()
	return results
}

// errCreating is returned when two callers make one log at the same time.
var errCreating = kerr.KafkaStorageError.With("the log is being created by another caller")

// claimed says whether this call, and not another, holds the claim on the request's partition.
func (r CreateRequest) claimed(err error) bool { return err != errCreating }

// claim sorts out what is there already and what somebody else is making, and returns the rest.
func (m *Manager) claim(requests []CreateRequest, results []CreateResult) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	var todo []int
	for i, r := range requests {
		if have := m.current[r.Partition]; have != nil {
			if have.Dir.Online() {
				results[i].Replica = have
			} else {
				results[i].Err = kerr.KafkaStorageError.With("%s-%d is in log directory %s, which is offline", r.Topic, r.Partition.Partition, have.Dir.path)
			}
			continue
		}
		if err := m.broken[r.Partition]; err != nil {
			results[i].Err = kerr.KafkaStorageError.With("%s-%d could not be loaded: %v", r.Topic, r.Partition.Partition, err)
			continue
		}
		if m.creating[r.Partition] || m.closed.Load() {
			results[i].Err = errCreating
			continue
		}
		m.creating[r.Partition] = true
		todo = append(todo, i)
	}
	return todo
}

// assign places the logs and counts them where they will be, so that a batch spreads evenly.
func (m *Manager) assign(requests []CreateRequest, results []CreateResult, todo []int) map[*Directory][]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	seats := make([]seat, len(m.dirs))
	for i, d := range m.dirs {
		seats[i] = seat{id: d.id, online: d.Online(), cordoned: m.cordoned(d), logs: d.logs}
	}
	byDir := map[*Directory][]int{}
	for _, i := range todo {
		p := place(seats, requests[i].Dir, requests[i].IsNew)
		if p.seat < 0 {
			results[i].Err = kerr.KafkaStorageError.With("can not create log for %s-%d: %s", requests[i].Topic, requests[i].Partition.Partition, p.why)
			continue
		}
		results[i].Err = nil
		seats[p.seat].logs++
		d := m.dirs[p.seat]
		d.logs++
		byDir[d] = append(byDir[d], i)
	}
	return byDir
}

// createIn makes logs in one directory. What fails has its Err set.
func (m *Manager) createIn(d *Directory, requests []CreateRequest, results []CreateResult, indexes []int) {
	parallel(len(indexes), createWorkers, func(n int) bool {
		i := indexes[n]
		results[i].Err = m.makeDir(d, requests[i])
		return true
	})
	if err := d.fs.SyncDir(d.path); err != nil {
		for _, i := range indexes {
			if results[i].Err == nil {
				results[i].Err = m.createError(d, requests[i], err)
			}
		}
		return
	}
	parallel(len(indexes), createWorkers, func(n int) bool {
		i := indexes[n]
		if results[i].Err == nil {
			results[i].Replica, results[i].Err = m.openNew(d, requests[i])
		}
		return true
	})
}

// makeDir makes a replica's directory and its partition.metadata, both durable but for the
// name in the log directory.
func (m *Manager) makeDir(d *Directory, r CreateRequest) error {
	tp := model.TopicPartition{Topic: r.Topic, Partition: r.Partition.Partition}
	name, ok := LogName(tp, Current, model.UUID{})
	if !ok {
		return kerr.InvalidTopicException.With("the directory name %s would be longer than %d bytes", name, maxNameBytes)
	}
	dir := filepath.Join(d.path, name)
	err := d.fs.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		err = m.makeRoom(d, dir, tp)
		if err == nil {
			err = d.fs.Mkdir(dir, 0o755)
		}
	}
	if err == nil {
		meta := PartitionMetadata{TopicID: r.Partition.Topic}
		if m.opts.MetadataDetails {
			meta.Partition = &tp
		}
		err = vfs.WriteFileAtomic(d.fs, filepath.Join(dir, PartitionMetadataFile), meta.Append(nil))
	}
	if err != nil {
		return m.createError(d, r, err)
	}
	return nil
}

// makeRoom sets aside a directory that is in the way of a new log and belongs to no replica:
// what a failed creation left behind. A live replica of that name is an error.
func (m *Manager) makeRoom(d *Directory, dir string, tp model.TopicPartition) error {
	m.mu.RLock()
	for _, have := range m.current {
		if have.Dir == d && have.Name() == tp {
			m.mu.RUnlock()
			return kerr.InconsistentTopicId.With("%s holds topic id %s, which must be deleted before %s is created anew", dir, have.Partition.Topic, tp)
		}
	}
	m.mu.RUnlock()
	to, err := m.renameAside(d, dir, tp, StrayLog)
	if err == nil {
		m.log.Warn("a directory in the way of a new log was set aside as stray", "path", dir, "to", to)
	}
	return err
}

// openNew opens a log whose directory was made just now, and takes it into the map.
func (m *Manager) openNew(d *Directory, r CreateRequest) (*Replica, error) {
	cfg := r.Config
	if cfg == nil {
		cfg = m.opts.DefaultConfig
	}
	tp := model.TopicPartition{Topic: r.Topic, Partition: r.Partition.Partition}
	log, _, err := partlog.Open(partlog.Options{FS: d.fs, Dir: filepath.Join(d.path, tp.String()), Partition: tp, TopicID: r.Partition.Topic,
		Env: m.env, Config: cfg, Clean: true, New: true, Now: m.nowMs()})
	if err != nil {
		return nil, m.createError(d, r, err)
	}
	replica := &Replica{Log: log, Dir: d, Partition: r.Partition, Topic: r.Topic}
	m.mu.Lock()
	m.current[r.Partition] = replica
	m.mu.Unlock()
	m.log.Debug("log created", "topicID", r.Partition.Topic, "topic", r.Topic, "partition", r.Partition.Partition, "dir", d.path)
	return replica, nil
}

// createError puts the partition and the directory around an error that has no protocol error of its own.
func (m *Manager) createError(d *Directory, r CreateRequest, err error) error {
	var k *kerr.Error
	if errors.As(err, &k) {
		return err
	}
	if errors.Is(err, os.ErrClosed) {
		return kerr.KafkaStorageError.With("the log directories are closed")
	}
	return kerr.KafkaStorageError.With("error while creating log for %s-%d in dir %s: %v", r.Topic, r.Partition.Partition, d.path, err)
}
