package interop

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/test/harness"
)

// million is how many records each codec gets: a million in all, or with SAMSA_MILLION=1 a million each.
func million() int {
	if os.Getenv("SAMSA_MILLION") != "" {
		return 1_000_000
	}
	return 40_000
}

// longRecord is record i of a long run: a key, and a value of 0 to 1000 bytes, now and then 8000, that has every
// byte but the ones that end lines and fields on a client's standard output.
func longRecord(i int) (key, value []byte) {
	x := uint64(i)*0x9e3779b97f4a7c15 + 1
	next := func() uint64 { // xorshift
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return x
	}
	size := int(next() % 300)
	switch i % 100 {
	case 7:
		size = 8000
	case 8:
		size = 0
	case 9:
		size = 1000
	}
	value = make([]byte, 0, size) // empty, not null
	run := byte(next())           // halves that compress and halves that do not
	for len(value) < size {
		if len(value)%64 < 32 {
			value = append(value, plainByte(run))
		} else {
			value = append(value, plainByte(byte(next())))
		}
	}
	return strconv.AppendInt(nil, int64(i), 10), value
}

func plainByte(b byte) byte {
	if b == '\n' || b == '\t' || b == '\r' {
		return 'x'
	}
	return b
}

// running is a checksum over records in the order they come.
type running struct {
	hash.Hash
	count int
}

func (r *running) add(offset int64, key, value []byte) {
	var head [16]byte
	binary.BigEndian.PutUint64(head[:], uint64(offset))
	binary.BigEndian.PutUint32(head[8:], uint32(len(key)))
	binary.BigEndian.PutUint32(head[12:], uint32(len(value)))
	r.Write(head[:])
	r.Write(key)
	r.Write(value)
	r.count++
}

func (r *running) text() string { return fmt.Sprintf("%d:%x", r.count, r.Sum(nil)) }

// A million records of mixed sizes and every codec come back bit for bit and in order over three clients:
// franz-go, kcat (librdkafka) and Kafka's console consumer. Acceptance 2 of one node.
func TestMillionRecords(t *testing.T) {
	node := serve(t)
	n := million()
	for _, codec := range codecs {
		t.Run(codec, func(t *testing.T) {
			topic := "million-" + codec
			createTopic(t, node, topic, 1, nil)
			want := produceMillion(t, node, topic, codec, n)
			for name, read := range map[string]func(*testing.T, *harness.Node, string, int) string{
				"franz-go": millionByFranz, "kcat": millionByKcat, "Kafka's console consumer": millionByConsole,
			} {
				begin := time.Now()
				got := read(t, node, topic, n)
				if got != want {
					t.Errorf("%s reads %s, expected %s", name, got, want)
				}
				t.Logf("%s: %d records in %s", name, n, time.Since(begin).Round(time.Millisecond))
			}
		})
	}
}

func produceMillion(t *testing.T, node *harness.Node, topic, codec string, n int) string {
	t.Helper()
	cl := franz(t, node, kgo.ProducerBatchCompression(franzCodecs[codec]), kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(20_000))
	defer cl.Close()
	ctx := within(t, 10*time.Minute)
	begin := time.Now()
	sum := running{Hash: sha256.New()}
	failed := make(chan error, 1)
	for i := range n {
		key, value := longRecord(i)
		sum.add(int64(i), key, value)
		cl.Produce(ctx, &kgo.Record{Key: key, Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	t.Logf("%d records produced in %s", n, time.Since(begin).Round(time.Millisecond))
	return sum.text()
}

func millionByFranz(t *testing.T, node *harness.Node, topic string, n int) string {
	t.Helper()
	cl := franz(t, node, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	ctx := within(t, 10*time.Minute)
	sum := running{Hash: sha256.New()}
	for sum.count < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d records: %v", sum.count, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { sum.add(r.Offset, r.Key, r.Value) })
	}
	return sum.text()
}

func millionByKcat(t *testing.T, node *harness.Node, topic string, n int) string {
	t.Helper()
	return millionLines(t, exec.CommandContext(within(t, 10*time.Minute), "kcat", "-b", node.Addr, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q",
		"-X", "check.crcs=true", "-f", "%o\t%k\t%s\n"))
}

func millionByConsole(t *testing.T, node *harness.Node, topic string, n int) string {
	t.Helper()
	return millionLines(t, harness.ToolCommand(within(t, 10*time.Minute), t, "console-consumer", "--bootstrap-server", node.Addr, "--topic", topic,
		"--from-beginning", "--max-messages", strconv.Itoa(n), "--formatter-property", "print.key=true", "--formatter-property", "print.offset=true"))
}

// millionLines runs a client that prints offset, key and value of each record on a line.
func millionLines(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sum := running{Hash: sha256.New()}
	in := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		if err != nil {
			t.Fatalf("after %d records: %v", sum.count, err)
		}
		fields := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"), 3)
		if len(fields) != 3 {
			t.Fatalf("after %d records: %.100q", sum.count, line)
		}
		offset, err := strconv.ParseInt(string(bytes.TrimPrefix(fields[0], []byte("Offset:"))), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum.add(offset, fields[1], fields[2])
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd.Path, err, stderr.String())
	}
	return sum.text()
}
