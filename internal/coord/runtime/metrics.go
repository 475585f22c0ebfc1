package runtime

import (
	"samsa/internal/base/metric"
	"samsa/internal/coord/group"
)

// show registers what the coordinator counts under Kafka's names. Counting walks the shards at scrape time; each holds
// the numbers of its last turn.
func (g *Groups) show(r *metric.Registry) {
	const object = "kafka.coordinator.group:type=GroupMetadataManager,name="
	sum := func(f func(*group.Tally) int) func() float64 {
		return func() float64 {
			n := 0
			for _, s := range g.all() {
				if t := s.tally.Load(); t != nil {
					n += f(t)
				}
			}
			return float64(n)
		}
	}
	r.GaugeFunc(object+"NumOffsets", sum(func(t *group.Tally) int { return t.Offsets }))
	r.GaugeFunc(object+"NumGroups", sum(func(t *group.Tally) int { return t.Groups() }))
	for s := group.Empty; s <= group.Dead; s++ {
		r.GaugeFunc(object+"NumGroups"+s.String(), sum(func(t *group.Tally) int { return t.States[s] }))
	}
	r.Gauges("kafka.server:type=group-coordinator-metrics,attribute=num-partitions", []string{"state"}, func(emit metric.Emit) {
		counts := map[string]int{"active": 0, "failed": 0, "loading": 0}
		for _, s := range g.all() {
			counts[s.phase()]++
		}
		for _, state := range []string{"active", "failed", "loading"} {
			emit(float64(counts[state]), state)
		}
	})
}

// phase is the shard's state in Kafka's words.
func (s *shard) phase() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case loading:
		return "loading"
	case active:
		return "active"
	}
	return "failed"
}
