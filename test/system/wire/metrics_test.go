package wire

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"samsa/internal/wire/protocol"
	"samsa/test/harness"
)

// D-207, K-190, K-191, K-192: what is counted, when, and under which name, on a running node.
func TestMetricsFollowTheLoad(t *testing.T) {
	n := harness.NewNode(t, 2)
	n.Format()
	n.Start()
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "counted", 3)
	scrape := func() map[string]float64 {
		t.Helper()
		out := map[string]float64{}
		for line := range strings.Lines(n.Metrics()) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			name, text, ok := strings.Cut(strings.TrimSpace(line), " ")
			if i := strings.LastIndex(strings.TrimSpace(line), " "); ok && i > 0 {
				name, text = strings.TrimSpace(line)[:i], strings.TrimSpace(line)[i+1:]
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			out[name] = v
		}
		return out
	}
	before := scrape()
	size := 0
	for i := range 10 {
		b := batch("one", "two", "three")
		size += len(b)
		if p := ask[protocol.ProduceResponse](t, c, 13, produceByID(id, int32(i%3), -1, b)).Responses[0].PartitionResponses[0]; p.ErrorCode != 0 {
			t.Fatal(p.ErrorCode)
		}
	}
	refused := damaged(batch("four"))
	for range 2 {
		if p := ask[protocol.ProduceResponse](t, c, 13, produceByID(id, 0, -1, refused)).Responses[0].PartitionResponses[0]; p.ErrorCode != 2 {
			t.Fatal(p.ErrorCode)
		}
	}
	based := batch("five")
	based.SetBaseOffset(7)
	if p := ask[protocol.ProduceResponse](t, c, 13, produceByID(id, 0, -1, based)).Responses[0].PartitionResponses[0]; p.ErrorCode != 87 {
		t.Fatal(p.ErrorCode)
	}
	read := 0
	for i := range int32(3) {
		req := fetchByID(id, 0)
		req.Topics[0].Partitions[0].Partition = i
		read += len(ask[protocol.FetchResponse](t, c, 17, req).Responses[0].Partitions[0].Records)
	}
	beyond := ask[protocol.FetchResponse](t, c, 17, fetchByID(id, 99)).Responses[0].Partitions[0]
	if beyond.ErrorCode != 1 {
		t.Fatal(beyond.ErrorCode)
	}
	if read != size {
		t.Fatalf("%d bytes went in and %d came out", size, read)
	}
	after := scrape()
	grew := func(name string, want float64) {
		t.Helper()
		if got := after[name] - before[name]; got != want {
			t.Errorf("%s grew by %v, want %v", name, got, want)
		}
	}
	const topics = "kafka_server_brokertopicmetrics_"
	for _, of := range []string{"", `{topic="counted"}`} {
		grew(topics+"messagesin_total"+of, 30)
		grew(topics+"bytesin_total"+of, float64(size))
		grew(topics+"bytesout_total"+of, float64(read))
		grew(topics+"totalproducerequests_total"+of, 13)
		grew(topics+"failedproducerequests_total"+of, 1) // a wrong CRC is no failure of the broker, a refused record is
		grew(topics+"totalfetchrequests_total"+of, 4)
		grew(topics+"failedfetchrequests_total"+of, 0)
	}
	grew(topics+"invalidmessagecrcrecords_total", 2)
	grew(topics+"replicationbytesin_total", 0)
	is := func(name string, want float64) {
		t.Helper()
		if got, ok := after[name]; !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, want)
		}
	}
	for name, want := range map[string]float64{"partitioncount": 3, "leadercount": 3, "underreplicatedpartitions": 0, "underminisrpartitioncount": 0, "atminisrpartitioncount": 3, "offlinereplicacount": 0} {
		is("kafka_server_replicamanager_"+name, want)
	}
	for name, want := range map[string]float64{"activecontrollercount": 1, "activebrokercount": 1, "fencedbrokercount": 0, "globaltopiccount": 1, "globalpartitioncount": 3, "offlinepartitionscount": 0, "metadataerrorcount": 0} {
		is("kafka_controller_kafkacontroller_"+name, want)
	}
	for name, want := range map[string]float64{"current_leader": 1, "current_vote": 1, "current_epoch": 1, "number_of_voters": 1, `current_state{state="leader"}`: 1} {
		is("kafka_server_raft_metrics_"+name, want)
	}
	for name, want := range map[string]float64{"metadata_load_error_count": 0, "metadata_apply_error_count": 0} {
		is("kafka_server_broker_metadata_metrics_"+name, want)
	}
	if hw, applied := after["kafka_server_raft_metrics_high_watermark"], after["kafka_server_broker_metadata_metrics_last_applied_record_offset"]; hw < 10 || applied < hw-3 || applied > hw {
		t.Errorf("high watermark %v, applied up to %v", hw, applied)
	}
	for i := range 3 {
		is(fmt.Sprintf(`kafka_log_log_logendoffset{topic="counted",partition="%d"}`, i), []float64{12, 9, 9}[i])
	}
}
