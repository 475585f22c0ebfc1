package api

import (
	"strconv"
	"sync/atomic"
	"time"

	"samsa/internal/base/metric"
	"samsa/internal/edge/network"
	"samsa/internal/wire/protocol"
)

// requestMetrics counts and times requests under Kafka's names (kafka.network:type=RequestMetrics).
// What is counted per version costs one atomic add; histograms exist once a request of their kind came.
type requestMetrics struct {
	registry *metric.Registry
	kinds    [128]atomic.Pointer[requestKind]
	versions [128][32]atomic.Int64
}

type requestKind struct {
	total, local, remote, size *metric.Histogram
}

func (m *requestMetrics) init(r *metric.Registry) {
	m.registry = r
	r.Counters("kafka.network:type=RequestMetrics,name=RequestsPerSec", []string{"request", "version"}, func(emit metric.Emit) {
		for key := range m.versions {
			for version := range m.versions[key] {
				if n := m.versions[key][version].Load(); n > 0 {
					emit(float64(n), kindName(key), strconv.Itoa(version))
				}
			}
		}
	})
}

// kindName is Kafka's name of a kind of request.
func kindName(kind int) string {
	if int16(kind) == protocol.KeyFetch {
		return "FetchConsumer" // followers fetch as FetchFollower, once there are any
	}
	return protocol.ApiName(int16(kind))
}

func (m *requestMetrics) of(kind int) *requestKind {
	if k := m.kinds[kind].Load(); k != nil {
		return k
	}
	name := kindName(kind)
	histogram := func(what string) *metric.Histogram {
		return m.registry.Histogram("kafka.network:type=RequestMetrics,name="+what, "request", name)
	}
	k := &requestKind{total: histogram("TotalTimeMs"), local: histogram("LocalTimeMs"), remote: histogram("RemoteTimeMs"), size: histogram("RequestBytes")}
	if !m.kinds[kind].CompareAndSwap(nil, k) {
		return m.kinds[kind].Load()
	}
	return k
}

// began counts a request that is about to be served.
func (m *requestMetrics) began(kind int, version int16) {
	if version >= 0 && int(version) < len(m.versions[kind]) {
		m.versions[kind][version].Add(1)
	}
}

// Answered takes the time of a request that has its answer: network.Options.Answered. The local time
// is that on the read loop; what follows is waiting for others (replicas, bytes, the metadata log).
func (s *Server) Answered(r *network.Request, took time.Duration) {
	if r.Key < 0 || int(r.Key) >= len(s.metrics.kinds) {
		return
	}
	k := s.metrics.of(int(r.Key))
	k.total.ObserveDuration(took)
	k.size.Observe(float64(r.Size))
	if local := r.Local(); local > 0 {
		k.local.ObserveDuration(local)
		k.remote.ObserveDuration(took - local)
	} else {
		k.local.ObserveDuration(took)
		k.remote.ObserveDuration(0)
	}
}
