package group

import (
	"testing"

	"pgregory.net/rapid"
)

// Timers fire when they are due, whatever was set, moved and stopped before, and next never comes late.
func TestTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ts timers
		all := make([]*timer, 5)
		due := make([]int64, 5) // the plain twin: 0 is off
		for i := range all {
			all[i] = &timer{}
		}
		now := int64(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, 4).Draw(t, "timer")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				due[i] = now + rapid.Int64Range(0, 20).Draw(t, "in")
				ts.set(all[i], due[i])
			case 1:
				due[i] = 0
				ts.stop(all[i])
			case 2:
				now += rapid.Int64Range(0, 20).Draw(t, "pass")
				for {
					fired := ts.due(now)
					if fired == nil {
						break
					}
					for k := range all {
						if all[k] == fired {
							if due[k] == 0 || due[k] > now {
								t.Fatalf("timer %d fired at %d, due %d", k, now, due[k])
							}
							due[k] = 0
						}
					}
				}
				for k, d := range due {
					if d != 0 && d <= now {
						t.Fatalf("timer %d, due %d, did not fire at %d", k, d, now)
					}
				}
			}
			next := ts.next()
			for k, d := range due {
				if d != 0 && next > d {
					t.Fatalf("next is %d, timer %d is due at %d", next, k, d)
				}
			}
		}
		for i := range all {
			ts.stop(all[i])
		}
		if ts.next() != NoDeadline || len(ts.heap) != 0 {
			t.Fatalf("all timers are off, and the heap holds %d entries", len(ts.heap))
		}
	})
}
