package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/test/harness"
)

// shown is the number of records in a topic of these tests.
const shown = 600

// franzTopics writes the topics that the other clients read: one per codec, named franz-<codec>.
func franzTopics(t *testing.T, node *harness.Node) {
	t.Helper()
	for _, codec := range codecs {
		createTopic(t, node, "franz-"+codec, partitions, nil)
		franzProduce(t, node, "franz-"+codec, shown, kgo.ProducerBatchCompression(franzCodecs[codec]))
	}
}

// stranger runs a client's script: it writes the topics <client>-<codec> and <client>-acks1, reads the
// topics of franzTopics in groups and prints what it saw of them, and administrates.
func stranger(t *testing.T, client string, run func(t testing.TB, limit time.Duration, input, script string, args ...string) harness.Result, script string) {
	node := serve(t)
	franzTopics(t, node)
	r := run(t, 2*time.Minute, "", script, node.Addr, "600")
	if r.Code != 0 || !strings.HasSuffix(r.Stdout, "done\n") {
		t.Fatalf("%s: exit code %d\n%s\n%s", script, r.Code, r.Stdout, r.Stderr)
	}
	read := map[string]string{}
	for line := range strings.Lines(r.Stdout) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "digest" {
			read[f[1]] = f[2]
		}
	}
	for _, codec := range codecs {
		if got, want := read["franz-"+codec], wantDigests(shown); got != want {
			t.Errorf("%s read of franz-%s %q, expected %q", client, codec, got, want)
		}
	}
	for _, name := range append([]string{"acks1"}, codecs[1:]...) { // the one without a codec has lost records to DeleteRecords
		wantTopic(t, node, client+"-"+name, shown)
	}
}

func TestConfluentKafka(t *testing.T) {
	t.Parallel()
	stranger(t, "confluent", harness.Python, "testdata/confluent.py")
}

func TestKafkaPython(t *testing.T) {
	t.Parallel()
	stranger(t, "kafkapython", harness.Python, "testdata/kafka_python.py")
}

func TestKafkaJS(t *testing.T) {
	t.Parallel()
	stranger(t, "kafkajs", harness.NodeJS, "testdata/kafkajs.js")
}
