package logdir

import (
	"errors"
	"path/filepath"
	"sync"

	"samsa/internal/base/model"
)

// Delete takes replicas out of service and renames their directories -delete (T-89, T-90); their files go
// after log.segment.delete.delay.ms. Partitions that are not here are passed over, and so
// are those of offline directories: their files become stray at the start after the repair (J-111).
//
// Per directory: rename each, sync the directory once, rewrite the checkpoints once without them.
// Callers are to delete before they create a topic of the same name, and to give many at once.
// The error joins the directories' own; what could not be renamed is out of service all the same.
func (m *Manager) Delete(tps ...model.TopicIDPartition) error { return m.setAside(Deleted, "", tps) }

// Stray is Delete for replicas that belong to nobody although nobody deleted them: their
// directories are renamed -stray and left alone (T-99). why is for the log.
func (m *Manager) Stray(why string, tps ...model.TopicIDPartition) error {
	return m.setAside(StrayLog, why, tps)
}

func (m *Manager) setAside(role Role, why string, tps []model.TopicIDPartition) error {
	byDir := map[*Directory][]*Replica{}
	m.mu.Lock()
	for _, tp := range tps {
		for _, logs := range []map[model.TopicIDPartition]*Replica{m.current, m.future} {
			r := logs[tp]
			if r == nil || !r.Dir.Online() {
				continue
			}
			delete(logs, tp)
			r.Dir.logs--
			byDir[r.Dir] = append(byDir[r.Dir], r)
		}
		delete(m.broken, tp)
	}
	m.mu.Unlock()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for d, replicas := range byDir {
		wg.Go(func() {
			if err := m.setAsideIn(d, role, why, replicas); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (m *Manager) setAsideIn(d *Directory, role Role, why string, replicas []*Replica) error {
	var renamed, names = []string{}, []model.TopicPartition{}
	var failed error
	for _, r := range replicas {
		from := r.Log.Dir()
		// Closed first: whoever is in the middle of a flush or a roll meets a closed log, not a
		// directory that has gone, and readers keep the files they hold (T-94, T-96).
		r.Log.SetAside()
		to, err := m.renameAside(d, from, r.Name(), role)
		if isNotExist(err) {
			continue // gone already
		}
		if err != nil {
			failed = err
			break
		}
		renamed, names = append(renamed, to), append(names, r.Name())
		if role == StrayLog {
			m.log.Warn("replica set aside as stray", "path", from, "to", to, "topicID", r.Partition.Topic, "topic", r.Topic,
				"partition", r.Partition.Partition, "why", why)
		} else {
			m.log.Info("replica is to be deleted", "path", from, "to", to, "topicID", r.Partition.Topic)
		}
	}
	for _, r := range replicas {
		r.Log.Abandon()
	}
	if failed == nil {
		failed = d.fs.SyncDir(d.path)
	}
	if failed == nil {
		failed = errors.Join(m.checkpointRecoveryPoints(d), m.checkpointLogStarts(d), m.forgetCleaned(d, names))
	}
	if role == Deleted {
		for _, path := range renamed {
			m.sched.removeDir(d, path)
		}
	}
	return failed
}

// removeNow deletes a directory whose delay is over. A file already gone is no error.
func (m *Manager) removeNow(d *Directory, path string) {
	if !d.Online() {
		return
	}
	if err := d.fs.RemoveAll(path); err != nil {
		m.log.Error("cannot remove a deleted replica", "path", path, "err", err)
		return
	}
	m.log.Info("deleted replica removed", "path", path)
}

// expireStray renames a stray whose topic is gone to -delete, when delete.stale.topic.delay.ms is over (T-109).
func (m *Manager) expireStray(d *Directory, path string) {
	tp, _, err := ParseLogName(filepath.Base(path))
	if err != nil || !d.Online() {
		return
	}
	to, err := m.renameAside(d, path, tp, Deleted)
	if err == nil {
		err = d.fs.SyncDir(d.path)
	}
	if err != nil {
		if !isNotExist(err) {
			m.log.Error("cannot rename a stray replica", "path", path, "err", err)
		}
		return
	}
	m.log.Warn("stray replica of a deleted topic is to be removed", "path", path, "to", to)
	m.sched.removeDir(d, to)
}

// removeFiles deletes segment files whose delay is over (partlog.Env.Discard). Their names are stale where the
// replica's directory was renamed meanwhile: then they go with it.
func (m *Manager) removeFiles(d *Directory, files []string) {
	for _, f := range files {
		if !d.Online() {
			return
		}
		if err := d.fs.Remove(f); err != nil && !isNotExist(err) {
			m.log.Error("cannot remove a deleted segment file", "path", f, "err", err)
		}
	}
}
