package logdir

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// retain deletes old segments of the current and future logs of one directory (D-74, J-153).
func (m *Manager) retain(d *Directory) {
	for _, r := range m.allIn(d) {
		if !d.Online() || m.closed.Load() {
			return
		}
		now := m.nowMs()
		due, err := r.Log.DeletableSegments(now)
		if err == nil && len(due.Segments) > 0 {
			due, err = r.Log.DeleteOldSegments(due, now)
			if n := len(due.Segments); n > 0 {
				m.log.Info("old segments deleted", "path", r.Log.Dir(), "topicID", r.Partition.Topic, "segments", n,
					"logStartOffset", due.Segments[n-1].Next, "why", reasonText(due.Segments[n-1].Reason))
			}
		}
		m.note(r.Log, "retention", err)
	}
}

func reasonText(r partlog.DeleteReason) string {
	switch r {
	case partlog.BelowLogStart:
		return "below the log start"
	case partlog.RetentionBytes:
		return "retention.bytes"
	case partlog.RetentionMs:
		return "retention.ms"
	}
	return fmt.Sprint(r)
}

// flushDue flushes the logs whose flush.ms has passed (D-79).
func (m *Manager) flushDue(d *Directory) {
	for _, r := range m.allIn(d) {
		if !d.Online() || m.closed.Load() {
			return
		}
		if now := m.nowMs(); r.Log.FlushDue(now) {
			m.note(r.Log, "flush", r.Log.Flush(now))
		}
	}
}

// expireProducers forgets idle producers (D-94).
func (m *Manager) expireProducers(d *Directory) {
	for _, r := range m.allIn(d) {
		r.Log.ExpireProducers(m.nowMs())
	}
}

// watch writes high watermarks that changed, and looks whether an idle directory is still there:
// with a replica in it a directory that went away is noticed within one interval (J-115).
func (m *Manager) watch(d *Directory) {
	m.checkpointHighWatermarks(d)
	d.fs.Stat(filepath.Join(d.path, MetaPropertiesFile)) // the seam judges what it meets
	if s, err := d.fs.Space(d.path); err == nil {
		d.free.Store(s.Free)
	}
}

// hungAfter is when a file call counts as hanging.
const hungAfter = 10 * time.Second

// oldestCall is the age of the oldest file call still running in a directory.
func (d *Directory) oldestCall(now time.Time) (op vfs.Op, age time.Duration) {
	if d.calls == nil {
		return op, 0
	}
	op, since, ok := d.calls.Oldest()
	if !ok {
		return op, 0
	}
	return op, now.Sub(since)
}

// noteHung logs calls that hang, once each; nothing else is done about them (J-130). It runs on the
// scheduler's goroutine, which a disk cannot hold up.
func (m *Manager) noteHung(now time.Time) {
	for _, d := range m.dirs {
		op, age := d.oldestCall(now)
		if age < hungAfter {
			continue
		}
		if began := now.Add(-age); !began.Equal(d.hung) {
			d.hung = began
			m.log.Error("a file call hangs; the log directory is neither failed nor usable", "dir", d.path, "call", op, "age", age)
		}
	}
}

// note logs what a background job met. A closed log was deleted meanwhile; a failed directory was
// noticed by its seam and is logged once, by the failure handler.
func (m *Manager) note(l *partlog.Log, what string, err error) {
	var dir *vfs.DirError
	if err == nil || errors.Is(err, kerr.KafkaStorageError) || errors.As(err, &dir) {
		return
	}
	m.log.Error("background work on a log failed", "work", what, "path", l.Dir(), "err", err)
}

// allIn lists current and future replicas of one directory.
func (m *Manager) allIn(d *Directory) []*Replica {
	out := m.currentIn(d)
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, r := range m.future {
		if r.Dir == d {
			out = append(out, r)
		}
	}
	return out
}
