package logdir

import (
	"sync"

	"samsa/internal/base/model"
)

// DirFailed tells that a log directory went offline while the node runs.
type DirFailed struct {
	Dir  *Directory
	ID   model.DirectoryID
	Path string
	Err  error
	// Partitions and Futures are the current and future replicas that were in it.
	Partitions, Futures []model.TopicIDPartition
	// Metadata: it is the metadata directory, so the node must end at once (J-122).
	Metadata bool
	// Last: no log directory is left, so the broker must end at once (J-37, J-123).
	Last bool
}

type listeners struct {
	mu   sync.Mutex
	list []func(DirFailed)
}

// OnOffline registers f, which is called once for each directory that fails from now on, in
// order of registration, on the failure goroutine: it may take locks but must not wait for
// disks or for the network. When it runs the directory is offline already: Get does not return its
// replicas, and calls into them fail. Their files are closed after all listeners have returned (J-120).
func (m *Manager) OnOffline(f func(DirFailed)) {
	m.listeners.mu.Lock()
	defer m.listeners.mu.Unlock()
	m.listeners.list = append(m.listeners.list, f)
}

// handleFailures is the failure goroutine. It is apart from the scheduler so that a failure is
// told at once whatever the disks are doing (J-189). It ends when stop is closed.
func (m *Manager) handleFailures(stop <-chan struct{}) {
	for {
		select {
		case d := <-m.failures:
			m.handleFailure(d)
		case <-stop:
			return
		}
	}
}

func (m *Manager) handleFailure(d *Directory) {
	if d.started != nil || !d.reported.CompareAndSwap(false, true) {
		return // offline since the start: never registered, so there is nobody to tell (J-38)
	}
	m.log.Error("stopping serving logs in dir", "dir", d.path, "directoryID", d.id, "err", d.Err())
	event := DirFailed{Dir: d, ID: d.id, Path: d.path, Err: d.Err(), Metadata: m.isMetadataDir(d), Last: len(m.OnlineIDs()) == 0}
	var lost []*Replica
	m.mu.Lock()
	for tp, r := range m.current {
		if r.Dir == d {
			event.Partitions = append(event.Partitions, tp)
			lost = append(lost, r)
		}
	}
	for tp, r := range m.future {
		if r.Dir == d {
			event.Futures = append(event.Futures, tp)
			lost = append(lost, r)
			delete(m.future, tp)
			d.logs--
		}
	}
	m.mu.Unlock()
	m.log.Warn("logs are offline due to failure of their log directory", "dir", d.path, "logs", len(event.Partitions), "futureLogs", len(event.Futures))
	m.listeners.mu.Lock()
	list := m.listeners.list
	m.listeners.mu.Unlock()
	for _, f := range list {
		f(event)
	}
	// Closing may meet a call that hangs on the dead disk: nobody waits for it.
	m.sched.aside.Go(func() {
		for _, r := range lost {
			r.Log.Abandon()
		}
		d.unlock()
	})
}

func (m *Manager) isMetadataDir(d *Directory) bool {
	return d.written == m.opts.MetadataDir || d.path == m.opts.MetadataDir
}
