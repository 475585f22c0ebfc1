package system

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"samsa/test/harness"
)

// markers reads the clean-shutdown marker of every directory; those without one are nil.
func markers(t *testing.T, n *harness.Node) (all []map[string]any) {
	t.Helper()
	for _, dir := range n.LogDirs {
		text, err := os.ReadFile(filepath.Join(dir, ".kafka_cleanshutdown"))
		if os.IsNotExist(err) {
			all = append(all, nil)
			continue
		}
		must(t, err)
		var m map[string]any
		must(t, json.Unmarshal(text, &m))
		all = append(all, m)
	}
	return all
}

func clean(t *testing.T, n *harness.Node) bool {
	for _, m := range markers(t, n) {
		if m == nil {
			return false
		}
	}
	return true
}

// Issue 3, item 8; D-72, J-42, K-183: SIGTERM under load is a controlled stop: exit code 0, Kafka's marker with the broker epoch in every
// directory, no lock file left; the next start recovers nothing, and all that was acknowledged is there.
func TestCleanStop(t *testing.T) {
	n := harness.NewNode(t, 3, "log.segment.bytes=1048576")
	n.Format()
	n.Start()
	harness.CreateTopic(t, n, "stopped", 12)
	client, err := kgo.NewClient(kgo.SeedBrokers(n.Addr), kgo.DefaultProduceTopic("stopped"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
		kgo.RetryBackoffFn(func(int) time.Duration { return 5 * time.Millisecond }), kgo.MetadataMinAge(20*time.Millisecond))
	must(t, err)
	var acked atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			client.Produce(ctx, &kgo.Record{Value: fmt.Appendf(nil, "%01000d", i)}, func(_ *kgo.Record, err error) {
				if err == nil {
					acked.Add(1)
				}
			})
		}
	}()
	const rounds = 3
	for round := range rounds {
		want := acked.Load() + 2000
		n.Eventually("records are acknowledged", 30*time.Second, func() error {
			if got := acked.Load(); got < want {
				return fmt.Errorf("%d of %d", got, want)
			}
			return nil
		})
		if round == rounds-1 {
			cancel()
			<-ended
			client.Close()
		}
		n.Stop()
		for i, m := range markers(t, n) {
			if epoch, ok := m["brokerEpoch"].(float64); !ok || epoch < 0 || m["version"] != 0.0 {
				t.Errorf("marker in directory %d: %v", i+1, m)
			}
			if _, err := os.Stat(filepath.Join(n.LogDirs[i], ".lock")); !os.IsNotExist(err) {
				t.Errorf("the lock file is left in directory %d: %v", i+1, err)
			}
		}
		mark := n.Mark()
		n.Start()
		if v := n.Metric("samsa_log_segmentsrecovered"); v != 0 {
			t.Errorf("%v segments were recovered", v)
		}
		if got := warnings(n.LogSince(mark)); len(got) > 0 {
			t.Errorf("warnings after a clean stop: %q", got)
		}
		if clean(t, n) {
			t.Error("the markers were not taken away by the start")
		}
	}
	total := 0
	for p := range int32(12) {
		total += len(harness.ReadAll(t, n, "stopped", p))
	}
	if total < int(acked.Load()) {
		t.Errorf("%d records, %d were acknowledged", total, acked.Load())
	}
}

// A second signal ends the process at once, whatever the first one waits for: here a controller that does not answer.
func TestSecondSignal(t *testing.T) {
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(second.String(), func(t *testing.T) {
			controller, broker := harness.NewPair(t, 1)
			controller.Start()
			broker.Start()
			controller.Signal(syscall.SIGSTOP)
			defer controller.Signal(syscall.SIGCONT)
			mark := broker.Mark()
			broker.Signal(syscall.SIGTERM)
			broker.Eventually("it is stopping", 10*time.Second, func() error {
				if !strings.Contains(broker.LogSince(mark), "PENDING_CONTROLLED_SHUTDOWN") {
					return fmt.Errorf("no line of log")
				}
				return nil
			})
			broker.Signal(second)
			if code := broker.Wait(2 * time.Second); code != 1 {
				t.Errorf("exit code %d", code)
			}
			if !saysAll(broker.LogSince(mark), []string{"stopping at once", second.String()}) {
				t.Errorf("it does not say so:\n%s", broker.LogSince(mark))
			}
			if clean(t, broker) {
				t.Error("a clean marker after a stop that was not")
			}
		})
	}
}

// K-183: nobody is left to be asked: the controlled shutdown gives up, and the logs are closed cleanly all the same.
func TestStopWithoutController(t *testing.T) {
	controller, broker := harness.NewPair(t, 2)
	controller.Start()
	broker.Start()
	controller.Kill()
	broker.Stop()
	if !clean(t, broker) {
		t.Error("no clean marker")
	}
	controller.Start()
	mark := broker.Mark()
	broker.Start()
	if got := lines(broker.LogSince(mark), "recover"); len(got) > 0 {
		t.Errorf("something was recovered: %q", got)
	}
}

// A start that waits, here for a controller that is not there, ends at the first SIGTERM.
func TestStopDuringRegistration(t *testing.T) {
	_, broker := harness.NewPair(t, 1)
	broker.Launch()
	broker.Eventually("it waits for the controller", 10*time.Second, func() error {
		if !strings.Contains(broker.Log(), "broker is STARTING") {
			return fmt.Errorf("no line of log")
		}
		return nil
	})
	broker.Signal(syscall.SIGTERM)
	if code := broker.Wait(10 * time.Second); code != 0 {
		t.Errorf("exit code %d\n%s", code, broker.Log())
	}
}

// A stop at any moment of a start, before or while logs are recovered, harms nothing.
func TestStopDuringStart(t *testing.T) {
	w := prepare(t, false)
	n := w.node
	for round := range 25 {
		mark := n.Mark()
		n.Launch()
		time.Sleep(time.Duration(round*7) * time.Millisecond) // the moment is what varies, nothing is waited for
		n.Signal(syscall.SIGTERM)
		code := n.Wait(20 * time.Second)
		text := n.LogSince(mark)
		if code != 0 && !(code == -1 && text == "") { // -1: the signal came before there was anybody to handle it
			t.Fatalf("round %d: exit code %d\n%s", round, code, text)
		}
		if strings.Contains(text, "panic") || strings.Contains(text, "level=ERROR") {
			t.Errorf("round %d:\n%s", round, text)
		}
	}
	n.Start()
	if got, want := w.picture(t, n), w.want(damage{}); got != want {
		t.Errorf("served: %q", got)
	}
}
