package metric

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

type fakeClock struct{ t time.Time }

func (c *fakeClock) now() time.Time { return c.t }

func newRegistry() (*Registry, *fakeClock) {
	c := &fakeClock{time.Unix(1000, 0)}
	return New(c.now), c
}

// scrape reads the output with Prometheus' own parser.
func scrape(t *testing.T, r *Registry) map[string]*dto.MetricFamily {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(&b)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// D-207, K-190 .. K-192: names as the usual JMX-exporter rules make them.
func TestName(t *testing.T) {
	for object, want := range map[string]string{
		"kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions":                 "kafka_server_replicamanager_underreplicatedpartitions",
		"kafka.server:type=ReplicaManager,name=IsrShrinksPerSec":                          "kafka_server_replicamanager_isrshrinks_total",
		"kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec":                         "kafka_server_brokertopicmetrics_bytesin_total",
		"kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent":     "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
		"kafka.network:type=Processor,name=IdlePercent":                                   "kafka_network_processor_idle_percent",
		"kafka.network:type=RequestMetrics,name=TotalTimeMs":                              "kafka_network_requestmetrics_totaltimems",
		"kafka.log:type=LogCleanerManager,name=max-dirty-percent":                         "kafka_log_logcleanermanager_max_dirty_percent",
		"kafka.log:type=Log,name=LogEndOffset":                                            "kafka_log_log_logendoffset",
		"kafka.controller:type=KafkaController,name=ActiveControllerCount":                "kafka_controller_kafkacontroller_activecontrollercount",
		"kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups":                "kafka_coordinator_group_groupmetadatamanager_numgroups",
		"kafka.server:type=raft-metrics,attribute=current-epoch":                          "kafka_server_raft_metrics_current_epoch",
		"kafka.server:type=broker-metadata-metrics,attribute=last-applied-record-offset":  "kafka_server_broker_metadata_metrics_last_applied_record_offset",
		"kafka.server:type=socket-server-metrics,attribute=connection-count":              "kafka_server_socket_server_metrics_connection_count",
		"kafka.server:type=AddPartitionsToTxnManager,name=VerificationFailureRate":        "kafka_server_addpartitionstotxnmanager_verificationfailurerate",
		"kafka.server:type=group-coordinator-metrics,attribute=event-queue-time-ms-p99":   "kafka_server_group_coordinator_metrics_event_queue_time_ms_p99",
		"process_resident_memory_bytes":                                                   "process_resident_memory_bytes",
		"samsa:type=LogDir,name=FreeBytes":                                                "samsa_logdir_freebytes",
		"kafka.server:type=ForwardingManager,attribute=QueueTimeMs.p99":                   "kafka_server_forwardingmanager_queuetimems_p99",
		"kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec": "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
		"kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize":                  "kafka_server_delayedoperationpurgatory_purgatorysize",
		"kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs":                         "kafka_log_logflushstats_logflushrateandtimems",
	} {
		if got := Name(object); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}

// Two objects that are not the same must not meet in one family with one set of labels. The list
// is the one captured from a running Kafka 4.4.0; every line of it can be expressed.
func TestEveryKafkaMetricHasAName(t *testing.T) {
	f, err := os.Open("testdata/kafka-4.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, _ := newRegistry()
	valid := regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	seen := map[string]string{}
	n := 0
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		line := strings.TrimSpace(scan.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, object, ok := strings.Cut(line, " ")
		object, tags, _ := strings.Cut(object, " ")
		if !ok {
			t.Fatalf("line %q", line)
		}
		var labels []string
		for _, tag := range strings.Fields(tags) {
			labels = append(labels, tag, "x")
		}
		name, extra := place(object, strings.Fields(tags))
		if !valid.MatchString(name) {
			t.Errorf("%s: name %q", object, name)
		}
		key := name + " " + strings.Join(extra, ",") + " " + tags
		if old := seen[key]; old != "" {
			t.Errorf("%s and %s are both %s", old, object, key)
		}
		seen[key] = object
		n++
		switch kind {
		case "M", "C":
			r.Meter(object, labels...).Inc()
		case "G":
			r.Gauge(object, labels...).Set(1)
		case "H", "T":
			r.Histogram(object, labels...).Observe(1)
		default:
			t.Fatalf("line %q", line)
		}
		if v, ok := r.Value(object, labels...); !ok || v != 1 {
			t.Errorf("%s: %v, %v", object, v, ok)
		}
	}
	if n < 300 {
		t.Errorf("only %d metrics in the list", n)
	}
	scrape(t, r)
}

func TestScrape(t *testing.T) {
	r, _ := newRegistry()
	const bytesIn = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec"
	r.Meter(bytesIn).Add(10)
	r.Meter(bytesIn, "topic", "a\"b\\c\nd\xff").Add(3)
	r.Gauge("kafka.server:type=ReplicaManager,name=PartitionCount").Set(-4)
	r.GaugeFunc("kafka.log:type=LogManager,name=OfflineLogDirectoryCount", func() float64 { return 1.5 })
	r.GaugeFunc("kafka.log:type=LogManager,name=OfflineLogDirectoryCount", func() float64 { return 2.5 })
	r.Gauges("kafka.log:type=Log,name=Size", []string{"topic", "partition"}, func(emit Emit) {
		emit(7, "t", "0")
		emit(math.Inf(1), "t", "1")
	})
	quota := func(bean string) string { return "kafka.server:type=" + bean + ",attribute=byte-rate" }
	r.Gauges(quota("Produce"), []string{"user", "client-id"}, func(emit Emit) { emit(1, "u", "c") })
	r.Gauges(quota("Fetch"), []string{"user", "client-id"}, func(emit Emit) { emit(2, "u", "c") })
	got := scrape(t, r)
	in := got["kafka_server_brokertopicmetrics_bytesin_total"]
	if in.GetType() != dto.MetricType_COUNTER || len(in.Metric) != 2 || in.Metric[0].Counter.GetValue() != 10 {
		t.Errorf("bytes in: %v", in)
	}
	if topic := in.Metric[1].Label[0].GetValue(); topic != "a\"b\\c\nd\uFFFD" {
		t.Errorf("label value %q", topic)
	}
	for name, want := range map[string]float64{
		"kafka_server_replicamanager_partitioncount":    -4,
		"kafka_log_logmanager_offlinelogdirectorycount": 2.5,
	} {
		f := got[name]
		if f == nil || f.GetType() != dto.MetricType_GAUGE || f.Metric[0].Gauge.GetValue() != want {
			t.Errorf("%s: %v", name, f)
		}
	}
	if size := got["kafka_log_log_size"]; len(size.Metric) != 2 || !math.IsInf(size.Metric[1].Gauge.GetValue(), 1) {
		t.Errorf("size: %v", size)
	}
	rates := got["kafka_server_quota_byte_rate"]
	if len(rates.Metric) != 2 || rates.Metric[0].Label[0].GetName() != "resource" || rates.Metric[0].Label[2].GetName() != "client_id" {
		t.Errorf("quota: %v", rates)
	}
	if v, ok := r.Value(quota("Fetch"), "user", "u", "client-id", "c"); !ok || v != 2 {
		t.Errorf("value of a walked series: %v, %v", v, ok)
	}
}

func TestSameMetricAgain(t *testing.T) {
	r, _ := newRegistry()
	const object = "kafka.network:type=RequestMetrics,name=RequestsPerSec"
	a := r.Meter(object, "request", "Produce", "version", "12")
	if r.Meter(object, "request", "Produce", "version", "12") != a {
		t.Error("the same name and labels give another counter")
	}
	if r.Meter(object, "request", "Produce", "version", "11") == a {
		t.Error("other labels give the same counter")
	}
	r.Remove(object, "version", "12")
	if _, ok := r.Value(object, "request", "Produce", "version", "12"); ok {
		t.Error("a removed series is shown")
	}
	if _, ok := r.Value(object, "request", "Produce", "version", "11"); !ok {
		t.Error("another series went with it")
	}
	defer func() {
		if recover() == nil {
			t.Error("a counter became a gauge")
		}
	}()
	r.Gauge(object)
}

func TestHistogram(t *testing.T) {
	r, clock := newRegistry()
	const object = "kafka.network:type=RequestMetrics,name=TotalTimeMs"
	h := r.Histogram(object, "request", "Produce")
	for i := range 1000 {
		h.Observe(float64(i + 1))
	}
	h.Observe(-5)
	h.Observe(math.NaN())
	h.ObserveDuration(1500 * time.Microsecond)
	got := scrape(t, r)
	q := map[string]float64{}
	for _, m := range got["kafka_network_requestmetrics_totaltimems"].Metric {
		q[m.Label[1].GetValue()] = m.Gauge.GetValue()
	}
	for label, want := range map[string]float64{"0.50": 500, "0.75": 750, "0.95": 950, "0.98": 980, "0.99": 990, "0.999": 999} {
		if math.Abs(q[label]-want) > want*0.07 {
			t.Errorf("quantile %s is %v, want %v", label, q[label], want)
		}
	}
	if n := got["kafka_network_requestmetrics_totaltimems_count"].Metric[0].Counter.GetValue(); n != 1003 {
		t.Errorf("count %v", n)
	}
	if sum := got["kafka_network_requestmetrics_totaltimems_sum"].Metric[0].Counter.GetValue(); sum != 500501.5 {
		t.Errorf("sum %v", sum)
	}
	// The newest two windows count: the old values are gone after the second scrape from now.
	median := func() float64 {
		return scrape(t, r)["kafka_network_requestmetrics_totaltimems"].Metric[0].Gauge.GetValue()
	}
	clock.t = clock.t.Add(window)
	median()
	h.Observe(8)
	if m := median(); m < 400 {
		t.Errorf("median %v: the last window is forgotten too early", m)
	}
	clock.t = clock.t.Add(window)
	median()
	if m := median(); math.Abs(m-8) > 1 {
		t.Errorf("median %v, want about 8", m)
	}
	clock.t = clock.t.Add(window)
	median()
	if m := median(); m != 0 {
		t.Errorf("median %v of nothing", m)
	}
}

func TestBuckets(t *testing.T) {
	last := -1
	for v := 1e-6; v < 1e15; v *= 1.01 {
		i := bucketOf(v)
		if i < last || i >= bucketCount {
			t.Fatalf("bucket %d of %v comes after %d", i, v, last)
		}
		last = i
		if v > 1e-3 && v < 1e13 && math.Abs(middle(i)-v) > v*0.07 {
			t.Fatalf("%v is shown as %v", v, middle(i))
		}
	}
	if bucketOf(0) != 0 || bucketOf(math.MaxFloat64) != bucketCount-1 {
		t.Error("the ends")
	}
}

func TestNilRegistry(t *testing.T) {
	var r *Registry
	r.Meter("a:type=b,name=c").Inc()
	r.Gauge("a:type=b,name=d").Set(1)
	r.Histogram("a:type=b,name=e").Observe(1)
	r.GaugeFunc("a:type=b,name=f", nil)
	r.Gauges("a:type=b,name=g", nil, nil)
	r.Remove("a:type=b,name=c")
	if _, ok := r.Value("a:type=b,name=c"); ok {
		t.Error("nothing has a value")
	}
	if err := r.WriteText(&bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

func TestHandler(t *testing.T) {
	r, _ := newRegistry()
	r.Meter("kafka.server:type=ReplicaManager,name=IsrExpandsPerSec").Inc()
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405} {
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest(method, "/metrics", nil))
		if w.Code != want {
			t.Errorf("%s: %d", method, w.Code)
		}
		if method == http.MethodGet && w.Body.String() != "# TYPE kafka_server_replicamanager_isrexpands_total counter\nkafka_server_replicamanager_isrexpands_total 1\n" {
			t.Errorf("body %q", w.Body)
		}
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	r, _ := newRegistry()
	c, g, h := r.Meter("a:type=b,name=c"), r.Gauge("a:type=b,name=d"), r.Histogram("a:type=b,name=e")
	h.Observe(1)
	if n := testing.AllocsPerRun(100, func() { c.Inc(); g.Set(2); h.Observe(3.5) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// 5,000 partitions: nothing between scrapes, and a scrape's memory does not grow with them.
func TestPartitionsCostNothingBetweenScrapes(t *testing.T) {
	r, _ := newRegistry()
	walks, live := 0, 5000
	topics := make([]string, 50)
	for i := range topics {
		topics[i] = fmt.Sprintf("topic-%d", i)
	}
	r.Gauges("kafka.cluster:type=Partition,name=UnderReplicated", []string{"topic", "partition"}, func(emit Emit) {
		walks++
		for i := range live {
			emit(0, topics[i%50], "7")
		}
	})
	if walks != 0 {
		t.Error("walked although nobody scraped")
	}
	var sink discard
	measure := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := r.WriteText(&sink); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	measure()
	if many := measure(); many > 256<<10 {
		t.Errorf("a scrape of 5,000 partitions allocates %d bytes", many)
	}
	if sink == 0 || walks != 2 {
		t.Errorf("%d bytes, %d walks", sink, walks)
	}
}

type discard int

func (d *discard) Write(p []byte) (int, error) { *d += discard(len(p)); return len(p), nil }

func TestConcurrentUse(t *testing.T) {
	r, _ := newRegistry()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 200 {
				topic := fmt.Sprint("t", i%7)
				r.Meter("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec", "topic", topic).Inc()
				r.Histogram("kafka.network:type=RequestMetrics,name=LocalTimeMs", "request", topic).Observe(float64(i))
				if i%50 == 0 {
					r.Remove("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec", "topic", topic)
				}
				if w == 0 && i%20 == 0 {
					var b bytes.Buffer
					if err := r.WriteText(&b); err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
	wg.Wait()
	scrape(t, r)
}

func TestFamiliesAreSorted(t *testing.T) {
	r, _ := newRegistry()
	for _, n := range []string{"z", "a", "m"} {
		r.Gauge("k:type=t,name=" + n)
	}
	var b bytes.Buffer
	r.WriteText(&b)
	var types []string
	for _, l := range strings.Split(b.String(), "\n") {
		if strings.HasPrefix(l, "# TYPE") {
			types = append(types, l)
		}
	}
	if !slices.IsSorted(types) || len(types) != 3 {
		t.Errorf("%q", types)
	}
}
