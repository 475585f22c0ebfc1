package logdir

import (
	"samsa/internal/base/model"
)

// DirStatus describes one entry of log.dirs, for DescribeLogDirs and metrics (J-156..J-160).
type DirStatus struct {
	Path     string // absolute
	ID       model.DirectoryID
	Err      error // why it is offline, nil while online
	Cordoned bool  // false where offline
	// TotalBytes and UsableBytes are those of the file system; -1 where offline or unknown.
	TotalBytes, UsableBytes int64
	Logs                    []LogStatus
	// Remaining is the number of logs Load has still to open (remainingLogsToRecover).
	Remaining int
}

// LogStatus describes one log in a DirStatus.
type LogStatus struct {
	Partition model.TopicIDPartition
	Topic     string
	Bytes     int64
	// OffsetLag is how far a current log's end lies behind its high watermark, or a future log
	// behind the current one; -1 where there is no current log (J-159).
	OffsetLag int64
	Future    bool
}

// Dirs describes every entry of log.dirs, in configured order, with its logs.
func (m *Manager) Dirs() []DirStatus {
	byDir := map[*Directory][]LogStatus{}
	m.mu.RLock()
	for tp, r := range m.current {
		hw, end := r.Log.HighWatermark(), r.Log.LogEndOffset()
		byDir[r.Dir] = append(byDir[r.Dir], LogStatus{Partition: tp, Topic: r.Topic, Bytes: r.Log.Size(), OffsetLag: max(hw-end, 0)})
	}
	for tp, r := range m.future {
		s := LogStatus{Partition: tp, Topic: r.Topic, Bytes: r.Log.Size(), OffsetLag: -1, Future: true}
		if c := m.current[tp]; c != nil && c.Dir.Online() {
			s.OffsetLag = c.Log.LogEndOffset() - r.Log.LogEndOffset()
		}
		byDir[r.Dir] = append(byDir[r.Dir], s)
	}
	m.mu.RUnlock()
	out := make([]DirStatus, 0, len(m.dirs))
	for _, d := range m.dirs {
		s := DirStatus{Path: d.path, ID: d.id, Err: d.Err(), TotalBytes: -1, UsableBytes: -1, Remaining: int(d.remaining.Load())}
		if s.Err == nil {
			if space, err := d.fs.Space(d.path); err == nil {
				s.TotalBytes, s.UsableBytes = space.Total, space.Free
			}
			s.Err = d.Err()
		}
		if s.Err == nil {
			s.Logs, s.Cordoned = byDir[d], m.cordoned(d)
		}
		out = append(out, s)
	}
	return out
}
