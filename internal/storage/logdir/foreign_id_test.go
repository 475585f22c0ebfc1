package logdir

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"samsa/internal/base/metric"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
)

// T-05: an id that is no version 4 and whose text begins with '-' is read from disk as any other.
func TestForeignTopicID(t *testing.T) {
	mem := vfs.NewMem()
	s := setup{fs: mem, dirs: formatN(t, mem, 1)}
	tp := model.TopicIDPartition{Topic: model.TopicID{0xf8, 6: 0x16, 15: 1}}
	if text := tp.Topic.String(); text[0] != '-' {
		t.Fatal(text)
	}
	m := s.start(t)
	appendTo(t, mustCreate(t, m, tp, "old"), 3)
	mustClose(t, m, 1)
	m = s.start(t)
	if r, ok := m.Get(tp); !ok || r.Log.LogEndOffset() != 3 || r.Log.TopicID() != tp.Topic {
		t.Error("the topic is not served after a restart")
	}
}

// D-63: directories are loaded side by side, each by num.recovery.threads.per.data.dir goroutines; what remains is
// shown meanwhile and gone afterwards.
func TestLoadSideBySide(t *testing.T) {
	mem := vfs.NewMem()
	s := setup{fs: mem, dirs: formatN(t, mem, 2)}
	m := s.start(t)
	for i := range 12 {
		appendTo(t, mustCreate(t, m, tip(1, int32(i)), "foo"), 3)
	}
	mustClose(t, m, 1)

	var mu sync.Mutex
	at := map[string]bool{} // the replicas whose log is being opened
	all := make(chan struct{})
	reg := metric.New(testClock)
	remaining := map[string]float64{}
	s.fs = vfs.Inject(mem, func(op vfs.Op) error {
		if !strings.HasSuffix(op.Path, ".log") || op.Kind != vfs.OpOpen {
			return nil
		}
		mu.Lock()
		at[op.Path] = true
		if len(at) == 6 { // 2 directories of 3 goroutines: nobody goes on before all are there
			for _, dir := range s.dirs {
				remaining[dir], _ = reg.Value("kafka.log:type=LogManager,name=remainingLogsToRecover", "dir", dir)
			}
			close(all)
		}
		mu.Unlock()
		<-all
		return nil
	})
	s.change = func(o *Options) { o.Metrics, o.Live.RecoveryThreadsPerDir = reg, 3 }
	m, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(context.Background(), 9) })
	if err := m.Load(context.Background(), LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range s.dirs {
		if remaining[dir] != 6 {
			t.Errorf("%s: %v logs remained with the first three half open", dir, remaining[dir])
		}
		if v, ok := reg.Value("kafka.log:type=LogManager,name=remainingLogsToRecover", "dir", dir); ok {
			t.Errorf("%s: %v logs remain after loading", dir, v)
		}
	}
	var names []string
	for _, r := range m.Replicas() {
		names = append(names, fmt.Sprint(r.Topic, "-", r.Partition.Partition))
	}
	if slices.Sort(names); len(names) != 12 {
		t.Errorf("replicas %v", names)
	}
}
