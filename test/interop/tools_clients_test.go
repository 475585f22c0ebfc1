package interop

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"samsa/test/harness"
)

// Kafka's console producer and consumer, with every codec, by themselves and in a group.
func TestKafkaConsole(t *testing.T) {
	t.Parallel()
	node := serve(t)
	want := lines(1000)
	for _, codec := range codecs {
		topic := "console-" + codec
		createTopic(t, node, topic, 1, nil)
		r := harness.QuickTool(t, "console-producer", want, "--bootstrap-server", node.Addr, "--topic", topic, "--compression-codec", codec,
			"--reader-property", "parse.key=true")
		if r.Code != 0 || strings.Contains(r.Stderr, "ERROR") {
			t.Fatalf("kafka-console-producer: exit code %d\n%s\n%s", r.Code, r.Stdout, r.Stderr)
		}
		got := tool(t, node, "console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "1000", "--formatter-property", "print.key=true")
		if got != want {
			t.Errorf("%s: %d bytes came back, expected %d", codec, len(got), len(want))
		}
		wantKcat := kcat(t, node, "", "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%k\t%s\n")
		if wantKcat != want {
			t.Errorf("%s: kcat reads %d bytes, expected %d", codec, len(wantKcat), len(want))
		}
	}
	// Without idempotence and with synchronous sends, to a topic that is made on the way.
	r := harness.QuickTool(t, "console-producer", "one\ntwo\n", "--bootstrap-server", node.Addr, "--topic", "console-new", "--sync",
		"--command-property", "enable.idempotence=false", "--command-property", "acks=1")
	if r.Code != 0 {
		t.Fatalf("kafka-console-producer: exit code %d\n%s\n%s", r.Code, r.Stdout, r.Stderr)
	}
	if got := tool(t, node, "console-consumer", "--topic", "console-new", "--partition", "0", "--offset", "1", "--max-messages", "1",
		"--formatter-property", "print.offset=true", "--formatter-property", "print.partition=true"); got != "Partition:0\tOffset:1\ttwo\n" {
		t.Errorf("the second record is %q", got)
	}
	// A group goes on where it was; the real process, so that its end by itself is seen too.
	for _, part := range []string{want[:len(lines(400))], want[len(lines(400)):]} {
		max := strings.Count(part, "\n")
		got := harness.MustTool(t, "console-consumer", "", "--bootstrap-server", node.Addr, "--topic", "console-zstd", "--group", "console",
			"--from-beginning", "--max-messages", jsonText(max), "--formatter-property", "print.key=true")
		if got != part {
			t.Errorf("the group read %d records, expected %d, or others", strings.Count(got, "\n"), max)
		}
	}
	has(t, "the group", tool(t, node, "consumer-groups", "--describe", "--group", "console", "--offsets"), row("console", "console-zstd", "0", "1000", "1000", "0", "-", "-", "-"))
	has(t, "what a console consumer says of the coordinator's topic",
		tool(t, node, "console-consumer", "--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "3000",
			"--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"), `"group":"console","topic":"console-zstd","partition":0.*"offset":1000`)
}

func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// Kafka's perf tests and verifiable clients.
func TestKafkaPerfAndVerifiable(t *testing.T) {
	t.Parallel()
	node := serve(t)
	createTopic(t, node, "perf", 2, nil)
	has(t, "kafka-producer-perf-test", harness.MustTool(t, "producer-perf-test", "", "--topic", "perf", "--num-records", "20000", "--record-size", "200", "--throughput", "-1",
		"--bootstrap-server", node.Addr, "--command-property", "compression.type=lz4", "acks=all"), `^20000 records sent, [\d.]+ records/sec`)
	out := tool(t, node, "consumer-perf-test", "--topic", "perf", "--num-records", "20000", "--timeout", "20000")
	has(t, "kafka-consumer-perf-test", out, `^start\.time, end\.time, data\.consumed\.in\.MB, MB\.sec, data\.consumed\.in\.nMsg`, `, 3\.8147, [\d.]+, 20000, `)

	createTopic(t, node, "verifiable", 2, nil)
	produced := jsonLines(t, harness.MustTool(t, "verifiable-producer", "", "--bootstrap-server", node.Addr, "--topic", "verifiable", "--max-messages", "5000", "--acks", "-1", "--value-prefix", "7"))
	if data := last(produced, "tool_data"); data["sent"] != 5000.0 || data["acked"] != 5000.0 {
		t.Errorf("kafka-verifiable-producer: %v", data)
	}
	consumed := jsonLines(t, tool(t, node, "verifiable-consumer", "--topic", "verifiable", "--group-id", "verifiable", "--max-messages", "5000", "--verbose", "--reset-policy", "earliest"))
	total, values := 0.0, map[string]bool{}
	for _, e := range consumed {
		switch e["name"] {
		case "records_consumed":
			total += e["count"].(float64)
		case "record_data":
			values[e["value"].(string)] = true
		}
	}
	if total != 5000 || len(values) != 5000 || !values["7.0"] || !values["7.4999"] {
		t.Errorf("kafka-verifiable-consumer: %v records, %d values", total, len(values))
	}
	if last(consumed, "partitions_assigned") == nil || last(consumed, "offsets_committed")["success"] != true || last(consumed, "shutdown_complete") == nil {
		t.Errorf("kafka-verifiable-consumer: events are missing: %v", consumed[:min(3, len(consumed))])
	}
}

// jsonLines are the events of a verifiable client.
func jsonLines(t *testing.T, out string) (events []map[string]any) {
	t.Helper()
	in := bufio.NewScanner(strings.NewReader(out))
	for in.Scan() {
		var e map[string]any
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, in.Text())
		}
		events = append(events, e)
	}
	return events
}

func last(events []map[string]any, name string) (found map[string]any) {
	for _, e := range events {
		if e["name"] == name {
			found = e
		}
	}
	return found
}
