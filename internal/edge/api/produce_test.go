package api

import (
	"fmt"
	"testing"
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
