package system

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
	"samsa/test/harness"
)

const (
	damagedTopic      = "damaged"
	damagedPartitions = 4
	damagedRecords    = 300 // per partition, of about 9 kB: three segments of 1 MiB
	damagedSynced     = 200 // of them were there at the last clean stop
)

// prepared is a node with two directories and a topic of four partitions, two in each, with three segments each. It was stopped
// cleanly once, and at the end it was stopped cleanly again, or killed.
type prepared struct {
	node *harness.Node
	dirs [damagedPartitions]int // which directory a partition is in
}

func prepare(t *testing.T, clean bool) *prepared {
	t.Helper()
	n := harness.NewNode(t, 2, "log.segment.bytes=1048576", "log.index.interval.bytes=4096")
	n.Format()
	n.Start()
	harness.CreateTopic(t, n, damagedTopic, damagedPartitions)
	fill(t, n, 0, damagedSynced)
	n.Stop()
	n.Start() // a second leader epoch
	fill(t, n, damagedSynced, damagedRecords)
	if clean {
		n.Stop()
	} else {
		n.Kill()
	}
	w := &prepared{node: n}
	w.find(t)
	return w
}

// find notes in which directory each partition is.
func (w *prepared) find(t *testing.T) {
	t.Helper()
	n := w.node
	for p := range w.dirs {
		w.dirs[p] = slices.IndexFunc(n.LogDirs, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, partitionName(p)))
			return err == nil
		})
		if w.dirs[p] < 0 {
			t.Fatalf("partition %d is in no directory", p)
		}
	}
	if w.in(0) == nil || w.in(1) == nil {
		t.Fatalf("all partitions are in one directory: %v", w.dirs)
	}
}

// fill produces the records of [from, to) to every partition.
func fill(t *testing.T, n *harness.Node, from, to int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(n.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(10000),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := from; i < to; i++ {
		for p := range int32(damagedPartitions) {
			client.Produce(ctx, &kgo.Record{Topic: damagedTopic, Partition: p, Value: value(p, i)}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		if i%10 == 9 {
			if err := client.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func value(p int32, i int) []byte { return fmt.Appendf(nil, "%d %d %09000d", p, i, i) }

func partitionName(p int) string { return fmt.Sprintf("%s-%d", damagedTopic, p) }

// in lists the partitions of a directory.
func (w *prepared) in(dir int) (ps []int) {
	for p, d := range w.dirs {
		if d == dir {
			ps = append(ps, p)
		}
	}
	return ps
}

// picture is what a client finds of each partition: a number of whole records from 0 on, or an error.
func (w *prepared) picture(t *testing.T, n *harness.Node) (picture [damagedPartitions]string) {
	t.Helper()
	conn := harness.Dial(t, n.Addr)
	defer conn.Close()
	for p := range int32(damagedPartitions) {
		picture[p] = read(t, conn, p)
	}
	return picture
}

// read counts the records of a partition that follow one another from offset 0 to the log end.
func read(t *testing.T, conn *harness.Conn, p int32) string {
	t.Helper()
	list := protocol.Make[protocol.ListOffsetsRequest]()
	list.ReplicaId = -1
	list.Topics = []protocol.ListOffsetsRequestListOffsetsTopic{{Name: damagedTopic, Partitions: []protocol.ListOffsetsRequestListOffsetsPartition{{PartitionIndex: p, CurrentLeaderEpoch: -1, Timestamp: -1}}}}
	resp, err := conn.Ask(1, &list)
	if err != nil {
		t.Fatal(err)
	}
	got := resp.(*protocol.ListOffsetsResponse).Topics[0].Partitions[0]
	if e := kerr.ForCode(got.ErrorCode); e != nil {
		return e.Name
	}
	end, next := got.Offset, int64(0)
	for next < end {
		fetch := protocol.Make[protocol.FetchRequest]()
		fetch.ReplicaId, fetch.MaxWaitMs, fetch.MinBytes, fetch.MaxBytes = -1, 0, 1, 1<<20
		part := protocol.Make[protocol.FetchRequestFetchPartition]()
		part.Partition, part.CurrentLeaderEpoch, part.FetchOffset, part.PartitionMaxBytes = p, -1, next, 1<<20
		fetch.Topics = []protocol.FetchRequestFetchTopic{{Topic: damagedTopic, Partitions: []protocol.FetchRequestFetchPartition{part}}}
		resp, err := conn.Ask(11, &fetch)
		if err != nil {
			t.Fatal(err)
		}
		got := resp.(*protocol.FetchResponse).Responses[0].Partitions[0]
		if e := kerr.ForCode(got.ErrorCode); e != nil {
			return fmt.Sprintf("%d of %d, then %s", next, end, e.Name)
		}
		before := next
		for batch, err := range record.Split(got.Records) {
			if err != nil || !batch.ValidCRC() {
				return fmt.Sprintf("%d of %d, then a corrupt batch", next, end)
			}
			for r, err := range record.Records(batch) {
				if err != nil {
					return fmt.Sprintf("%d of %d, then %v", next, end, err)
				}
				if r.Offset < next {
					continue // the batch begins before what was asked for
				}
				if r.Offset != next || string(r.Value) != string(value(p, int(next))) {
					return fmt.Sprintf("%d of %d, then offset %d with %.20q", next, end, r.Offset, r.Value)
				}
				next++
			}
		}
		if next == before {
			return fmt.Sprintf("%d of %d, then nothing", next, end)
		}
	}
	return fmt.Sprint(end)
}

// edit does something to the files of a node that does not run.
type edit = func(t *testing.T, w *prepared, n *harness.Node)

// inDir edits a file in the second directory.
func inDir(file string, f func(t *testing.T, path string)) edit {
	return func(t *testing.T, w *prepared, n *harness.Node) { f(t, filepath.Join(n.LogDirs[1], file)) }
}

// inMeta edits a file of the metadata log.
func inMeta(file string, f func(t *testing.T, path string)) edit {
	return func(t *testing.T, w *prepared, n *harness.Node) {
		f(t, glob(t, filepath.Join(n.LogDirs[0], "__cluster_metadata-0", file)))
	}
}

// inReplica edits a file of the first partition in the second directory: which one of those that match, from 0 on, -1 is the last.
func inReplica(file string, which int, f func(t *testing.T, path string)) edit {
	return func(t *testing.T, w *prepared, n *harness.Node) {
		all, err := filepath.Glob(filepath.Join(n.LogDirs[1], partitionName(w.in(1)[0]), file))
		if err != nil || len(all) == 0 {
			t.Fatalf("no %s: %v", file, err)
		}
		if which < 0 {
			which += len(all)
		}
		f(t, all[which])
	}
}

func glob(t *testing.T, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return all[0]
}

func overwrite(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) { must(t, os.Remove(path)) }

func garble(t *testing.T, path string) {
	must(t, os.WriteFile(path, []byte("\x00\xff garbage \x80\n\n=:"), 0o644))
}
func empty(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }

func size(t *testing.T, path string) int64 {
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}

// halve cuts the second half of a file off, and not at an even place.
func halve(t *testing.T, path string) { must(t, os.Truncate(path, size(t, path)/2|1)) }

// flip changes a byte in the middle.
func flip(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	must(t, err)
	data[len(data)/2] ^= 0x55
	must(t, os.WriteFile(path, data, 0o644))
}

// replace changes text of a file.
func replace(from, to string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		data, err := os.ReadFile(path)
		must(t, err)
		if !strings.Contains(string(data), from) {
			t.Fatalf("no %q in %s:\n%s", from, path, data)
		}
		must(t, os.WriteFile(path, []byte(strings.Replace(string(data), from, to, 1)), 0o644))
	}
}
