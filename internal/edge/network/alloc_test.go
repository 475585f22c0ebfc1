package network

import (
	"bytes"
	"io"
	"testing"
)

// A small request answered on the spot costs its own memory and nothing else worth counting.
func TestAllocations(t *testing.T) {
	answer := []byte("answer")
	_, _, dial := start(t, Options{Handler: HandlerFunc(func(r *Request) { r.ReplyEncoded(answer) })})
	c := dial()
	request := frame(barrier, 3, 1, bytes.Repeat([]byte("x"), 100))
	got := make([]byte, 4+4+len(answer))
	n := testing.AllocsPerRun(300, func() {
		c.Write(request)
		if _, err := io.ReadFull(c, got); err != nil {
			t.Fatal(err)
		}
	})
	if n > 3 { // one, and what the race detector takes from the pools
		t.Errorf("%v allocations per request", n)
	}
}
