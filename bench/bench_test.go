package main

import (
	"errors"
	"testing"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// The load looks at fixed places of the answers: they are where the encoder puts things.
func TestPlacesInAnswers(t *testing.T) {
	pr := protocol.Make[protocol.ProduceResponse]()
	part := protocol.Make[protocol.ProduceResponsePartitionProduceResponse]()
	part.Index, part.ErrorCode, part.BaseOffset = 5, kerr.NotLeaderOrFollower.Code, 7
	pr.Responses = []protocol.ProduceResponseTopicProduceResponse{{TopicId: model.RandomUUID(), PartitionResponses: []protocol.ProduceResponsePartitionProduceResponse{part}}}
	answer, err := pr.Append(protocol.AppendResponseHeader(nil, protocol.KeyProduce, produceVersion, 0), produceVersion)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkProduced(answer); !errors.Is(err, kerr.NotLeaderOrFollower) {
		t.Errorf("the error in a produce answer is read as %v", err)
	}

	fetch := func(top, code int16, records []byte) []byte {
		fr := protocol.Make[protocol.FetchResponse]()
		d := protocol.Make[protocol.FetchResponsePartitionData]()
		d.ErrorCode, d.Records = code, records
		fr.ErrorCode = top
		fr.Responses = []protocol.FetchResponseFetchableTopicResponse{{TopicId: model.RandomUUID(), Partitions: []protocol.FetchResponsePartitionData{d}}}
		answer, err := fr.Append(protocol.AppendResponseHeader(nil, protocol.KeyFetch, fetchVersion, 0), fetchVersion)
		if err != nil {
			t.Fatal(err)
		}
		return append(answer, make([]byte, fetchHead)...)[:fetchHead]
	}
	if n, err := fetched(fetch(0, 0, make([]byte, 300))); n != 300 || err != nil {
		t.Errorf("300 bytes of records are read as %d, %v", n, err)
	}
	if n, err := fetched(fetch(0, 0, []byte{})); n != 0 || err != nil {
		t.Errorf("no records are read as %d, %v", n, err)
	}
	if _, err := fetched(fetch(0, kerr.OffsetOutOfRange.Code, nil)); !errors.Is(err, kerr.OffsetOutOfRange) {
		t.Errorf("a partition's error is read as %v", err)
	}
	if _, err := fetched(fetch(kerr.UnknownTopicId.Code, 0, nil)); !errors.Is(err, kerr.UnknownTopicId) {
		t.Errorf("the error at the top is read as %v", err)
	}

	topic := topic{id: model.RandomUUID(), partitions: 3}
	frame := fetchFrame(topic, 2, 0x0102030405060708, fetchBytes, 0)
	if at := offsetAt(topic, 2); frame[at] != 1 || frame[at+7] != 8 {
		t.Errorf("the offset is not at %d", at)
	}
}

func TestBatchesFit(t *testing.T) {
	for _, l := range []struct{ value, limit, least int }{{1024, 64 << 10, 60}, {100, 16 << 10, 140}, {100, 0, 1}} {
		batch, n := newBatch(l.value, l.limit)
		if len(batch) > max(l.limit, 200) || n < l.least || !batch.ValidCRC() || int(batch.Count()) != n {
			t.Errorf("%d records in %d bytes for %+v", n, len(batch), l)
		}
	}
}

func TestFigures(t *testing.T) {
	if m := median([]float64{9, 1, 5}); m != 5 {
		t.Errorf("median %v", m)
	}
	var d []time.Duration
	for i := range 1000 {
		d = append(d, time.Duration(1000-i)*time.Millisecond)
	}
	if p := quantile(d, 0.99); p != 991 {
		t.Errorf("p99 %v", p)
	}
	if _, err := contenderByName("redpanda"); err == nil {
		t.Error("an unknown contender is taken")
	}
}
