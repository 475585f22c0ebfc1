package logdir

import (
	"strconv"

	"samsa/internal/base/metric"
)

// register shows the metrics of the log directories and their logs (Kafka's LogManager and Log).
func (m *Manager) register(r *metric.Registry) {
	count := func(f func(*Directory) bool) func() float64 {
		return func() float64 {
			n := 0
			for _, d := range m.dirs {
				if f(d) {
					n++
				}
			}
			return float64(n)
		}
	}
	offline := func(d *Directory) bool { return !d.Online() }
	r.GaugeFunc("kafka.log:type=LogManager,name=OfflineLogDirectoryCount", count(offline))
	r.GaugeFunc("kafka.log:type=LogManager,name=CordonedLogDirectoryCount", count(m.cordoned))
	perDir := func(object, label string, f func(*Directory) (float64, bool)) {
		r.Gauges(object, []string{label}, func(emit metric.Emit) {
			for _, d := range m.dirs {
				if v, ok := f(d); ok {
					emit(v, d.path)
				}
			}
		})
	}
	flag := func(f func(*Directory) bool) func(*Directory) (float64, bool) {
		return func(d *Directory) (float64, bool) {
			if f(d) {
				return 1, true
			}
			return 0, true
		}
	}
	perDir("kafka.log:type=LogManager,name=LogDirectoryOffline", "logDirectory", flag(offline))
	perDir("kafka.log:type=LogManager,name=LogDirectoryCordoned", "logDirectory", flag(m.cordoned))
	perDir("kafka.log:type=LogManager,name=remainingLogsToRecover", "dir", func(d *Directory) (float64, bool) {
		n := d.remaining.Load()
		return float64(n), n > 0
	})
	perDir("samsa:type=LogDirectory,name=FreeBytes", "logDirectory", func(d *Directory) (float64, bool) {
		return float64(d.free.Load()), d.Online()
	})
	perDir("samsa:type=LogDirectory,name=OldestCallSeconds", "logDirectory", func(d *Directory) (float64, bool) {
		_, age := d.oldestCall(m.opts.Now())
		return age.Seconds(), d.Online()
	})
	perLog := func(name string, f func(*Replica) (float64, bool)) {
		r.Gauges("kafka.log:type=Log,name="+name, []string{"topic", "partition"}, func(emit metric.Emit) {
			for _, l := range m.Replicas() {
				if v, ok := f(l); ok {
					emit(v, l.Topic, strconv.Itoa(int(l.Partition.Partition)))
				}
			}
		})
	}
	perLog("Size", func(l *Replica) (float64, bool) { return float64(l.Log.Size()), true })
	perLog("LogStartOffset", func(l *Replica) (float64, bool) { return float64(l.Log.LogStartOffset()), true })
	perLog("LogEndOffset", func(l *Replica) (float64, bool) { return float64(l.Log.LogEndOffset()), true })
	perLog("NumLogSegments", func(l *Replica) (float64, bool) {
		s, err := l.Log.Segments()
		return float64(len(s)), err == nil
	})
	perLog("RetentionSizeInPercent", func(l *Replica) (float64, bool) {
		c := l.Log.Config()
		if !c.Delete || c.RetentionBytes <= 0 {
			return 0, true
		}
		return float64(l.Log.Size()) * 100 / float64(c.RetentionBytes), true
	})
	stats := &m.env.Stats
	r.CounterFunc("samsa:type=Log,name=IndexesRebuilt", func() float64 { return float64(stats.IndexesRebuilt.Load()) })
	r.CounterFunc("samsa:type=Log,name=SegmentsRecovered", func() float64 { return float64(stats.SegmentsRecovered.Load()) })
	r.CounterFunc("samsa:type=Log,name=BytesTruncated", func() float64 { return float64(stats.BytesTruncated.Load()) })
	r.CounterFunc("samsa:type=Log,name=Flushes", func() float64 { return float64(stats.Flushes.Load()) })
}
