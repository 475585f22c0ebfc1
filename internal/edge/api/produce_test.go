package api

import (
	"errors"
	"fmt"
	"testing"

	"samsa/internal/base/kerr"
	"samsa/internal/wire/record"
)

// D-10: of several entries for one partition the last one counts, however many there are.
func TestProduceLastOfEach(t *testing.T) {
	part := func(topic string, partition int32) producePart {
		return producePart{topic: []byte(topic), partition: partition}
	}
	if last := lastOfEach([]producePart{part("a", 0), part("a", 1), part("b", 0)}); last != nil {
		t.Errorf("nothing is named twice, got %v", last)
	}
	twice := []producePart{part("a", 0), part("b", 0), part("a", 0)}
	if last := lastOfEach(twice); last[twice[0].key()] != 2 || last[twice[1].key()] != 1 {
		t.Errorf("got %v", last)
	}
	var many []producePart
	for i := range 100 {
		many = append(many, part(fmt.Sprint(i/10), int32(i%10)))
	}
	if last := lastOfEach(many); last != nil {
		t.Errorf("nothing of many is named twice, got %v", last)
	}
	many = append(many, part("0", 0))
	if last := lastOfEach(many); last[many[0].key()] != 100 || last[many[1].key()] != 1 {
		t.Errorf("got %d and %d", last[many[0].key()], last[many[1].key()])
	}
}

// D-10: a batch of a transaction and a batch with broken framing fail the request, others do not.
func TestProduceUnfit(t *testing.T) {
	batch := func(transactional bool) []byte {
		opt := record.NewBatchOptions()
		opt.Transactional, opt.ProducerID, opt.ProducerEpoch, opt.BaseSequence = transactional, 1, 0, 0
		b := record.NewBuilder(opt)
		b.Append(1, nil, []byte("v"), nil)
		return b.Build(nil)
	}
	magic := batch(false)
	magic[16] = 3
	length := batch(false)
	length[11] = 5
	length[10] = 0
	for _, c := range []struct {
		name    string
		id      []byte
		records []byte
		want    error
	}{
		{"plain", nil, batch(false), nil},
		{"null records", nil, nil, nil},
		{"cut in the header", nil, batch(true)[:16], nil},
		{"transaction without an id", nil, batch(true), kerr.TransactionalIdAuthorizationFailed},
		{"transaction with an id", []byte("tx"), batch(true), kerr.InvalidTxnState},
		{"id without a transaction", []byte("tx"), batch(false), nil},
		{"magic 3", nil, magic, kerr.CorruptMessage},
		{"length 5", nil, length, kerr.CorruptMessage},
	} {
		p := &produce{named: []producePart{{records: batch(false)}, {records: c.records}}}
		if err := p.unfit(c.id); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, err, c.want)
		}
	}
}
