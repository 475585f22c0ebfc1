package wire

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
	"samsa/test/harness"
)

// D-25, T-66: acks=0 has no answer; a partition that cannot be written to closes the connection, and nothing is stored.
func TestAcksZero(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "quiet", 1)
	for v, req := range map[int16]protocol.Request{12: produceByName("quiet", 0, 0, batch("by name")), 13: produceByID(id, 0, 0, batch("by id"))} {
		before := end(t, c, id)
		if err := c.Send(v, req); err != nil {
			t.Fatal(err)
		}
		apiVersions(t, c, 4, nil) // the next answer is that of the next request
		if got := end(t, c, id); got != before+1 {
			t.Errorf("v%d: the log ends at %d, before at %d", v, got, before)
		}
	}
	stale := id
	remove(t, c, id)
	id = create(t, c, "quiet", 1)
	for what, bad := range map[string]struct {
		version int16
		req     *protocol.ProduceRequest
	}{
		"unknown_topic": {9, produceByName("nowhere", 0, 0, batch("x"))}, "unknown_partition": {9, produceByName("quiet", 7, 0, batch("x"))},
		"old_id": {13, produceByID(stale, 0, 0, batch("x"))}, "damaged": {9, produceByName("quiet", 0, 0, damaged(batch("x")))},
	} {
		c := harness.Dial(t, n.Addr)
		if err := c.Send(bad.version, bad.req); err != nil {
			t.Fatal(err)
		}
		if got, err := c.AnswerBody(protocol.KeyProduce, bad.version); !errors.Is(err, harness.ErrClosed) {
			t.Errorf("%s: answer %x, %v; want a closed connection", what, got, err)
		}
	}
	if got := end(t, harness.Dial(t, n.Addr), id); got != 0 {
		t.Errorf("the log ends at %d, expected nothing in it", got)
	}
}

func damaged(b record.Batch) record.Batch {
	b[len(b)-1] ^= 1
	return b
}

// end is the high watermark of partition 0.
func end(t *testing.T, c *harness.Conn, id model.UUID) int64 {
	t.Helper()
	p := ask[protocol.FetchResponse](t, c, 17, fetchByID(id, 0)).Responses[0].Partitions[0]
	if p.ErrorCode != 0 {
		t.Fatalf("fetch: error %d", p.ErrorCode)
	}
	return p.HighWatermark
}

// D-30, A-05: produces sent without waiting are applied and answered in their order, with other requests between them.
func TestPipeline(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "pipeline", 1)
	const count = 100
	for i := range count {
		if err := c.Send(13, produceByID(id, 0, []int16{1, -1}[i%2], batch(fmt.Sprint(i)))); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			if err := c.Send(17, fetchByID(id, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.Rewind(count + count/10)
	next := int64(0)
	for i := range count {
		resp, err := c.Answer(protocol.KeyProduce, 13)
		if err != nil {
			t.Fatalf("produce %d: %v", i, err)
		}
		c.Forward()
		if p := resp.(*protocol.ProduceResponse).Responses[0].PartitionResponses[0]; p.ErrorCode != 0 || p.BaseOffset != next {
			t.Fatalf("produce %d: error %d, offset %d", i, p.ErrorCode, p.BaseOffset)
		}
		next++
		if i%10 == 9 {
			resp, err := c.Answer(protocol.KeyFetch, 17)
			if err != nil {
				t.Fatalf("fetch behind produce %d: %v", i, err)
			}
			c.Forward()
			if got := len(values(t, resp.(*protocol.FetchResponse).Responses[0].Partitions[0].Records)); got < i+1 {
				t.Errorf("fetch behind produce %d sees %d records", i, got)
			}
		}
	}
}

// D-20, D-32, D-62, D-130: what is stored is what was sent but for offset, epoch and times, and what is fetched is the file,
// byte for byte, for every codec: nothing on the way back opens a batch.
func TestFetchIsTheFile(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "verbatim", 1)
	var sent []record.Batch
	for codec := record.None; codec <= record.Zstd; codec++ {
		o := record.NewBatchOptions()
		o.Codec = codec
		b := record.NewBuilder(o)
		for i := range 200 {
			b.Append(time.Now().UnixMilli(), fmt.Appendf(nil, "key %d", i), bytes.Repeat([]byte{byte(i)}, 300), []record.Header{{Key: "h", Value: []byte("v")}})
		}
		batch := record.Batch(b.Build(nil))
		sent = append(sent, bytes.Clone(batch))
		if p := ask[protocol.ProduceResponse](t, c, 13, produceByID(id, 0, -1, batch)).Responses[0].PartitionResponses[0]; p.ErrorCode != 0 {
			t.Fatalf("%s: error %d", codec, p.ErrorCode)
		}
	}
	file, err := os.ReadFile(filepath.Join(n.LogDirs[0], "verbatim-0", "00000000000000000000.log"))
	if err != nil {
		t.Fatal(err)
	}
	for v := int16(4); v <= 18; v++ {
		req := fetchByID(id, 0)
		if v < 13 {
			req = fetchByName("verbatim", 0)
		}
		if got := ask[protocol.FetchResponse](t, c, v, req).Responses[0].Partitions[0].Records; !bytes.Equal(got, file) {
			t.Errorf("fetch v%d: %d bytes, the file has %d, or others", v, len(got), len(file))
		}
	}
	i := 0
	for stored, err := range record.Split(file) {
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(stored[61:], sent[i][61:]) || !bytes.Equal(stored[16:35], sent[i][16:35]) || !stored.ValidCRC() || stored.BaseOffset() != int64(200*i) || stored.LeaderEpoch() != 0 {
			t.Errorf("batch %d (%s) was changed on its way to the file", i, sent[i].Compression())
		}
		i++
	}
	if i != len(sent) {
		t.Errorf("%d batches in the file", i)
	}
	// A limit below the first batch still gets it whole; limits count bytes as stored (D-118, D-130).
	req := fetchByID(id, 0)
	req.Topics[0].Partitions[0].PartitionMaxBytes = 1
	if got := ask[protocol.FetchResponse](t, c, 17, req).Responses[0].Partitions[0].Records; !bytes.Equal(got, file[:len(sent[0])]) {
		t.Errorf("limit 1: %d bytes, the first batch has %d", len(got), len(sent[0]))
	}
	req.Topics[0].Partitions[0].PartitionMaxBytes = int32(len(sent[0]) + len(sent[1]) + 5)
	if got := ask[protocol.FetchResponse](t, c, 17, req).Responses[0].Partitions[0].Records; !bytes.HasPrefix(file, got) || len(got) < len(sent[0])+len(sent[1]) || len(got) > int(req.Topics[0].Partitions[0].PartitionMaxBytes) {
		t.Errorf("a limit within the third batch: %d bytes", len(got))
	}
}

// T-54, T-55, D-222, D-125: where the error of a whole fetch stands, by version.
func TestFetchErrorsAsAWhole(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "whole", 1)
	fetch := func(v int16) *protocol.FetchRequest {
		if v >= 13 {
			return fetchByID(id, 0)
		}
		return fetchByName("whole", 0)
	}
	for v := int16(7); v <= 18; v++ {
		for what, s := range map[string]struct {
			id, epoch int32
			code      int16
		}{"no_such_session": {12345, 1, 70}, "epoch_without_session": {0, 5, 70}} {
			req := fetch(v)
			req.SessionId, req.SessionEpoch = s.id, s.epoch
			if resp := ask[protocol.FetchResponse](t, c, v, req); resp.ErrorCode != s.code || len(resp.Responses) != 0 || resp.SessionId != 0 {
				t.Errorf("v%d, %s: %+v", v, what, resp)
			}
		}
		req := fetch(v)
		req.SessionEpoch = 0
		opened := ask[protocol.FetchResponse](t, c, v, req)
		if opened.ErrorCode != 0 || opened.SessionId == 0 {
			t.Fatalf("v%d: opening a session: %+v", v, opened)
		}
		req.SessionId, req.SessionEpoch = opened.SessionId, 7
		if resp := ask[protocol.FetchResponse](t, c, v, req); resp.ErrorCode != 71 || len(resp.Responses) != 0 || resp.SessionId != 0 {
			t.Errorf("v%d, wrong epoch: %+v", v, resp)
		}
		// The other family of versions (T-55), then the session goes on as it was.
		family := int16(12)
		if v < 13 {
			family = 13
		}
		other := fetch(family)
		other.SessionId, other.SessionEpoch = opened.SessionId, 1
		if resp := ask[protocol.FetchResponse](t, c, family, other); resp.ErrorCode != 106 || len(resp.Responses) != 0 {
			t.Errorf("v%d continued at v%d: %+v", v, family, resp)
		}
		req.SessionEpoch = 1
		if resp := ask[protocol.FetchResponse](t, c, v, req); resp.ErrorCode != 0 || resp.SessionId != opened.SessionId {
			t.Errorf("v%d continued: %+v", v, resp)
		}
	}
	code := int16(42) // samsa says what is wrong, Kafka fails inside
	if onKafka {
		code = -1
	}
	for v := int16(4); v <= 18; v++ {
		req := fetch(v)
		req.IsolationLevel = 2
		resp := ask[protocol.FetchResponse](t, c, v, req)
		if v >= 7 && resp.ErrorCode != code || v < 7 && resp.ErrorCode != 0 {
			t.Errorf("v%d, isolation level 2: error %d at the top", v, resp.ErrorCode)
		}
		switch {
		case v >= 13 && len(resp.Responses) != 0:
			t.Errorf("v%d, isolation level 2: %+v", v, resp.Responses)
		case v < 13 && (len(resp.Responses) != 1 || resp.Responses[0].Partitions[0].ErrorCode != code):
			t.Errorf("v%d, isolation level 2: %+v", v, resp.Responses)
		}
	}
}

// D-124, D-143: who claims to be a replica says so in ReplicaId up to v14 and in a tagged field from v15, and is looked up.
func TestFetchOfAStranger(t *testing.T) {
	n := serve(t, 1)
	c := harness.Dial(t, n.Addr)
	id := create(t, c, "strange", 1)
	put(t, c, id, 0, "x")
	for v := int16(4); v <= 18; v++ {
		req := fetchByID(id, 0)
		if v < 13 {
			req = fetchByName("strange", 0)
		}
		req.Topics[0].Partitions[0].LogStartOffset = -1
		if v < 15 {
			req.ReplicaId = 77
		} else {
			req.ReplicaState.ReplicaId, req.ReplicaState.ReplicaEpoch = 77, 5
		}
		if v >= 17 {
			req.Topics[0].Partitions[0].ReplicaDirectoryId = model.UUID{1}
		}
		if v >= 18 {
			req.Topics[0].Partitions[0].HighWatermark = 1
		}
		p := ask[protocol.FetchResponse](t, c, v, req).Responses[0].Partitions[0]
		if p.ErrorCode != 6 || len(p.Records) > 0 {
			t.Errorf("v%d: error %d with %d bytes, want 6", v, p.ErrorCode, len(p.Records))
		}
		if v >= 9 {
			req.Topics[0].Partitions[0].CurrentLeaderEpoch = 0
			if p := ask[protocol.FetchResponse](t, c, v, req).Responses[0].Partitions[0]; p.ErrorCode != 75 {
				t.Errorf("v%d with a leader epoch: error %d, want 75", v, p.ErrorCode)
			}
		}
	}
}
