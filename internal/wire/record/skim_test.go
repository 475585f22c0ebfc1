package record

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// skim takes a batch only if walk finds nothing, and comes to the same greatest timestamp (D-03, D-17, D-18, D-19).
func TestSkimAgreesWithWalk(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	taken, left := 0, 0
	for range 20000 {
		bl := NewBuilder(NewBatchOptions())
		for range 1 + random.IntN(5) {
			var headers []Header
			if random.IntN(4) == 0 {
				headers = []Header{{Key: "h", Value: randomBytes(random, 3)}}
			}
			bl.Append(1000+random.Int64N(300)-100, randomBytes(random, 300), randomBytes(random, 20000), headers)
		}
		b := Batch(bl.Build(nil))
		if payload := b.Payload(); random.IntN(3) > 0 { // damage, mostly near the front, where the numbers are
			at := random.IntN(len(payload))
			if random.IntN(2) == 0 {
				at = random.IntN(min(len(payload), 12))
			}
			payload[at] = byte(random.IntN(256))
		}
		cfg := DefaultProduceConfig()
		cfg.Compacted = random.IntN(3) == 0
		cfg.TimestampBeforeMaxMs = []int64{50, cfg.TimestampBeforeMaxMs}[random.IntN(2)]
		p := Produce{Records: b, APIVersion: 11, NowMs: 1000, Topic: "t"}
		fast := validator{p: p, cfg: &cfg, maxTime: NoTimestamp}
		slow := validator{p: p, cfg: &cfg, maxTime: NoTimestamp}
		ok, err := fast.skim(b), slow.walk(b)
		slow.s.stop()
		switch {
		case ok != (err == nil && len(slow.errors) == 0):
			t.Fatalf("skim says %v, walk %v and %v\n%x", ok, err, slow.errors, b.Payload()[:min(len(b.Payload()), 40)])
		case ok && (fast.maxTime != slow.maxTime || fast.maxTimeDelta != slow.maxTimeDelta || fast.size != slow.size):
			t.Fatalf("skim finds %d at %d and %d bytes, walk %d at %d and %d", fast.maxTime, fast.maxTimeDelta, fast.size, slow.maxTime, slow.maxTimeDelta, slow.size)
		case !ok && (fast.maxTime != NoTimestamp || fast.size != 0):
			t.Fatal("skim changed something")
		}
		if ok {
			taken++
		} else {
			left++
		}
	}
	if taken < 5000 || left < 5000 {
		t.Errorf("%d taken, %d left: not much of a test", taken, left)
	}
}

// randomBytes is null, empty, small or up to most.
func randomBytes(random *rand.Rand, most int) []byte {
	switch random.IntN(4) {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return bytes.Repeat([]byte{7}, random.IntN(70))
	}
	return bytes.Repeat([]byte{9}, random.IntN(most))
}
