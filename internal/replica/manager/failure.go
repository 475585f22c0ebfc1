package manager

import (
	"samsa/internal/base/model"
	"samsa/internal/storage/logdir"
)

// dirFailed takes the replicas of a failed directory out of service, and nothing else (J-120, J-124, J-125). It runs on
// logdir's failure goroutine: it takes no lock that is held across I/O, since the disk may hang.
//
// logdir has made the directory offline before, in one step: no metadata change creates these replicas anew elsewhere, because
// they stay in the map, offline, until their topic id is deleted (J-110, J-121).
func (m *Manager) dirFailed(e logdir.DirFailed) {
	m.log.Error("stopping serving replicas in dir", "dir", e.Path, "directoryID", e.ID, "replicas", len(e.Partitions), "err", e.Err)
	if m.o.Fetchers != nil {
		m.o.Fetchers.Unfollow(e.Partitions...)
	}
	for _, tp := range e.Partitions {
		if r := m.hosted.get(tp); r != nil {
			m.takeOffline(r)
		}
	}
	m.log.Error("stopped serving replicas in dir", "dir", e.Path, "directoryID", e.ID)
	// Coordinators of partitions led there move away (J-126).
	m.telling.Go(func() { m.tellOffline(e.Partitions) })
}

// tellOffline waits for a metadata change under way: listeners are told one thing after the other.
func (m *Manager) tellOffline(tps []model.TopicIDPartition) {
	m.publishing.Lock()
	defer m.publishing.Unlock()
	for _, tp := range tps {
		if r := m.hosted.get(tp); r != nil {
			m.tellLeader(r)
		}
	}
}

// takeOffline answers everything that waits for a replica with KAFKA_STORAGE_ERROR, now and later.
func (m *Manager) takeOffline(r *replica) {
	waiting, watchers := r.close(errOffline)
	m.abandon(r, errOffline, waiting, watchers)
	m.wake(r.tp)
}

// abandon tells those who wait for a high watermark that it will not come.
func (m *Manager) abandon(r *replica, err error, waiting []hwWaiter, watchers []PartitionListener) {
	for _, w := range waiting {
		w.done(err)
	}
	for _, w := range watchers {
		w.Gone(r.tp, err)
	}
}
