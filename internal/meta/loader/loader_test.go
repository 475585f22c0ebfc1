package loader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/meta/image"
	"samsa/internal/raft/kraft"
	"samsa/internal/raft/node"
	"samsa/internal/wire/protocol"
)

// feed hands batches of records to a loader as the node does.
type feed struct {
	t   *testing.T
	l   *Loader
	hw  int64
	end int64
}

func (f *feed) highWatermark() (int64, bool) { return f.hw, f.hw >= 0 }

func (f *feed) frames(records ...image.Record) []node.Record {
	var out []node.Record
	for _, r := range records {
		_, version, _ := protocol.MetadataRecordVersions(r.RecordKey())
		b, err := image.AppendFrame(nil, image.Versioned{Record: r, Version: version})
		if err != nil {
			f.t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func (f *feed) batch(records ...image.Record) node.Batch {
	b := node.Batch{BaseOffset: f.end, LastOffset: f.end + int64(max(len(records), 1)) - 1, Epoch: 1, AppendTimestamp: 7, SizeInBytes: 1000, Records: f.frames(records...), Control: len(records) == 0}
	f.end = b.LastOffset + 1
	return b
}

func (f *feed) commit(batches ...node.Batch) {
	f.hw = max(f.hw, f.end)
	f.l.HandleCommit(batches)
	synctest.Wait()
}

// watcher writes down what it is told, and checks that no delta is missing.
type watcher struct {
	t      *testing.T
	name   string
	mu     *sync.Mutex
	calls  *[]string
	last   *image.Image
	fail   error
	panics bool
	block  chan struct{}
}

func (w *watcher) Name() string { return w.name }

func (w *watcher) Publish(d *image.Delta, img *image.Image) error {
	if w.block != nil {
		<-w.block
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.last == nil && d.From.Offset() != -1:
		w.t.Errorf("%s: the first delta starts at %d", w.name, d.From.Offset())
	case w.last != nil && d.From != w.last:
		w.t.Errorf("%s: the delta starts at %d, the last ended at %d", w.name, d.From.Offset(), w.last.Offset())
	case d.To != img:
		w.t.Errorf("%s: the delta ends elsewhere", w.name)
	}
	w.last = img
	var topics []string
	for _, c := range d.Topics {
		sign := "+"
		if c.New == nil {
			sign = "-"
		}
		topics = append(topics, sign+c.Name())
	}
	*w.calls = append(*w.calls, fmt.Sprintf("%s@%d%v", w.name, img.Offset(), topics))
	if w.panics {
		w.panics = false
		panic("out of order")
	}
	return w.fail
}

func (w *watcher) LeaderChange(l node.LeaderAndEpoch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*w.calls = append(*w.calls, fmt.Sprintf("%s leader %d epoch %d", w.name, l.Leader, l.Epoch))
}

type stage struct {
	*feed
	mu    sync.Mutex
	calls []string
}

func newStage(t *testing.T, opts func(*Options)) *stage {
	s := &stage{feed: &feed{t: t, hw: -1}}
	o := Options{HighWatermark: s.highWatermark}
	if opts != nil {
		opts(&o)
	}
	s.l = New(o)
	s.l.Start()
	return s
}

func (s *stage) watcher(name string) *watcher {
	return &watcher{t: s.t, name: name, mu: &s.mu, calls: &s.calls}
}

func (s *stage) expect(want ...string) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.calls, want) {
		s.t.Fatalf("calls:\n got %q\nwant %q", s.calls, want)
	}
	s.calls = nil
}

func topic(name string) *protocol.TopicRecord {
	var id model.UUID
	copy(id[:], name)
	id[15] = 200
	return &protocol.TopicRecord{Name: name, TopicId: id}
}

// K-172, K-174, K-175, T-18: nothing before the node has caught up; then the whole image, then deltas
// without gaps, publishers in order; a later publisher starts with the whole image too.
func TestPublishersGetTheWholeThenDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer s.l.Close()
		s.l.Add(s.watcher("a"), s.watcher("b"))
		s.l.HandleLeaderChange(node.LeaderAndEpoch{Leader: 3, Epoch: 4})
		s.expect("a leader 3 epoch 4", "b leader 3 epoch 4")
		first, second := s.batch(topic("x")), s.batch(topic("y"))
		s.hw = 3
		s.l.HandleCommit([]node.Batch{first})
		s.expect() // the high watermark is further on
		if s.l.Image().Offset() != -1 || s.l.Stats().LastAppliedOffset.Load() != -1 {
			t.Fatal("a partial replay is visible")
		}
		s.l.HandleCommit([]node.Batch{second, s.batch()})
		s.expect("a@2[+x +y]", "b@2[+x +y]")
		if err := s.l.WaitReady(context.Background()); err != nil || s.l.Image().Topics().Len() != 2 {
			t.Fatalf("ready: %v", err)
		}
		late := s.watcher("late")
		s.l.Add(late)
		s.expect("late leader 3 epoch 4", "late@2[+x +y]")
		s.commit(s.batch(&protocol.RemoveTopicRecord{TopicId: topic("x").TopicId}))
		s.expect("a@3[-x]", "b@3[-x]", "late@3[-x]")
		s.l.Remove(late)
		s.commit(s.batch()) // a control batch moves the offset
		s.expect("a@4[]", "b@4[]")
		if st := s.l.Stats(); st.LastAppliedOffset.Load() != 4 || st.CurrentControllerID.Load() != 3 || st.Publications.Load() != 3 {
			t.Fatalf("stats: offset %d, controller %d, %d publications", st.LastAppliedOffset.Load(), st.CurrentControllerID.Load(), st.Publications.Load())
		}
	})
}

// What comes while publishers work is one step, and one whose traces cancel out leaves none (T-16).
func TestBehindIsCaughtUpInOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer s.l.Close()
		w := s.watcher("a")
		w.block = make(chan struct{})
		s.l.Add(w)
		s.commit(s.batch(topic("x")))
		for range 5 {
			s.commit(s.batch(topic("y")))
			s.commit(s.batch(&protocol.RemoveTopicRecord{TopicId: topic("y").TopicId}))
		}
		s.commit(s.batch(topic("z")))
		close(w.block)
		s.expect("a@0[+x]", "a@11[+z]")
	})
}

// K-84, K-172: an open transaction holds publication back; what precedes it comes out.
func TestTransactionsAreWholeOrAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer s.l.Close()
		s.l.Add(s.watcher("a"))
		s.commit(s.batch(topic("x"), &protocol.BeginTransactionRecord{}, topic("y")))
		s.expect("a@0[+x]")
		if s.l.Image().Provenance().BatchAligned {
			t.Fatal("an image in the middle of a batch says that it is aligned")
		}
		s.commit(s.batch(topic("z")))
		s.expect()
		s.commit(s.batch(&protocol.EndTransactionRecord{}))
		s.expect("a@4[+y +z]")
		s.commit(s.batch(&protocol.BeginTransactionRecord{}, topic("w"), &protocol.AbortTransactionRecord{}))
		s.expect("a@7[]")
	})
}

// K-176: one publisher fails, another panics; the rest go on and nobody misses a delta.
func TestAFailingPublisherStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer s.l.Close()
		bad, wild := s.watcher("bad"), s.watcher("wild")
		bad.fail, wild.panics = errors.New("no"), true
		s.l.Add(bad, wild, s.watcher("good"), Func("f", func(*image.Delta, *image.Image) error { return nil }))
		s.commit(s.batch(topic("x")))
		s.expect("bad@0[+x]", "wild@0[+x]", "good@0[+x]")
		bad.fail = nil
		s.commit(s.batch(topic("y")))
		s.expect("bad@1[+y]", "wild@1[+y]", "good@1[+y]")
		if n := s.l.Stats().ApplyErrors.Load(); n != 2 {
			t.Fatalf("%d apply errors", n)
		}
	})
}

// K-176: a fault in the log is counted and left out on a broker, fatal on a controller.
func TestAFaultInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, controller := range []bool{false, true} {
			var fatal []error
			s := newStage(t, func(o *Options) {
				if controller {
					o.Fatal = func(err error) { fatal = append(fatal, err) }
				}
			})
			s.l.Add(s.watcher("a"))
			s.commit(s.batch(&protocol.RemoveTopicRecord{TopicId: model.UUID{7}}, topic("x")))
			if n := s.l.Stats().LoadErrors.Load(); n != 1 || (len(fatal) == 1) != controller {
				t.Fatalf("controller %v: %d errors, fatal %v", controller, n, fatal)
			}
			s.expect("a@1[+x]")
			s.l.Close()
		}
	})
}

func TestCloseAndWaitReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.l.WaitReady(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		s.l.Close()
		s.l.Close()
		if err := s.l.WaitReady(context.Background()); err == nil {
			t.Fatal("a closed loader is ready")
		}
		s.l.Remove(s.watcher("a"))
		s.l.HandleCommit(nil)
	})
}

// openNode runs a single voter over a memory disk.
func openNode(t *testing.T, fs vfs.FS, format bool) *node.Node {
	t.Helper()
	voter := kraft.Voter{ReplicaKey: kraft.ReplicaKey{ID: 1, Directory: model.DirectoryID{0: 1, 15: 200}}, Versions: kraft.VersionRange{Max: 1},
		Endpoints: kraft.Endpoints{{Name: "CONTROLLER", Host: "h", Port: 9093}}}
	voters, err := kraft.NewVoterSet(voter)
	if err != nil {
		t.Fatal(err)
	}
	if format {
		if err := fs.MkdirAll("/d/"+node.LogDirName, 0o755); err != nil {
			t.Fatal(err)
		}
		w, err := node.NewCheckpoint(fs, "/d/"+node.LogDirName, kraft.BootstrapSnapshotID, node.CheckpointOptions{KRaftVersion: 1, Voters: voters})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	n, err := node.Open(node.Options{Dir: "/d", FS: fs, ClusterID: "MkU3OEVBNTcwNTJENDM2Qg", NodeID: 1, Directory: voter.Directory, Controller: true,
		Listeners: voter.Endpoints, Config: node.DefaultConfig(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	synctest.Wait()
	return n
}

// K-67, K-68, K-175: a snapshot is written when enough was logged, it is the image, and a node that
// starts on it has the image again, as one whole.
func TestSnapshotsAreWrittenAndLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		n := openNode(t, fs, true)
		snapshots := NewSnapshots(SnapshotOptions{Log: n, MaxBytes: 4000, MaxInterval: time.Hour})
		l := New(Options{HighWatermark: n.HighWatermark, Fatal: func(err error) { t.Error(err) }})
		l.Add(snapshots)
		l.Start()
		n.Register(l)
		synctest.Wait()
		f := &feed{t: t}
		appendAll := func(records ...image.Record) {
			if _, err := n.Append(n.LeaderAndEpoch().Epoch, [][]node.Record{f.frames(records...)}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		appendAll(&protocol.FeatureLevelRecord{Name: image.FeatureMetadataVersion, FeatureLevel: 33})
		if snapshots.Written.Load() != 0 {
			t.Fatal("a snapshot before anything was logged")
		}
		for i := range 100 {
			appendAll(topic(fmt.Sprintf("topic-%d", i)), &protocol.NoOpRecord{})
		}
		if w := snapshots.Written.Load(); w < 2 || w > 6 {
			t.Fatalf("%d snapshots of some 12 kB of records at 4000", w)
		}
		before := snapshots.Written.Load()
		time.Sleep(time.Hour) // the time limit, seen at the next record
		appendAll(topic("last"))
		if snapshots.Written.Load() != before+1 {
			t.Fatal("no snapshot after an hour")
		}
		image1 := l.Image()
		if id, ok := n.LatestSnapshotID(); !ok || id.Offset != image1.Offset()+1 {
			t.Fatalf("snapshot %v, image at %d", id, image1.Offset())
		}
		if err := n.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		l.Close()
		snapshots.Close()

		n = openNode(t, fs, false)
		s := &stage{feed: &feed{t: t}}
		l = New(Options{HighWatermark: n.HighWatermark, Fatal: func(err error) { t.Error(err) }})
		l.Add(s.watcher("a"))
		l.Start()
		n.Register(l)
		synctest.Wait()
		if d := image.Diff(image1, l.Image()); len(d.Topics) != 0 || d.Features || l.Image().Topics().Len() != 101 || l.Stats().SnapshotsLoaded.Load() != 1 {
			t.Fatalf("after the restart: %d topics, %d snapshots loaded, %+v", l.Image().Topics().Len(), l.Stats().SnapshotsLoaded.Load(), d)
		}
		published := slices.DeleteFunc(s.calls, func(c string) bool { return strings.Contains(c, "leader") })
		if len(published) != 1 || !strings.Contains(published[0], "+topic-99") {
			t.Errorf("calls: %q", published)
		}
		if err := n.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
}

// A faulty image and one in the middle of a batch are no snapshot (K-67, K-68).
func TestNoSnapshotOfADoubtfulImage(t *testing.T) {
	log := &refusingLog{}
	faulty := true
	s := NewSnapshots(SnapshotOptions{Log: log, MaxBytes: 1, Faulty: func() bool { return faulty }})
	defer s.Close()
	aligned := image.Empty().At(image.Provenance{Offset: 5, BatchAligned: true})
	step := func(img *image.Image) {
		s.addBytes(10)
		if err := s.Publish(&image.Delta{From: img, To: img}, img); err != nil {
			t.Fatal(err)
		}
		s.done.Wait()
	}
	step(aligned) // the first publication only starts the count
	step(aligned)
	faulty = false
	step(image.Empty().At(image.Provenance{Offset: 6}))
	if log.asked != 0 {
		t.Fatalf("%d snapshots were begun", log.asked)
	}
	step(aligned)
	if log.asked != 1 {
		t.Fatalf("%d snapshots were begun", log.asked)
	}
}

type refusingLog struct{ asked int }

func (r *refusingLog) CreateSnapshot(kraft.SnapshotID, int64) (*node.SnapshotWriter, error) {
	r.asked++
	return nil, nil
}

// Whoever waits for an offset goes on when every publisher has been given it, not before.
func TestWaitApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		slow := s.watcher("slow")
		slow.block = make(chan struct{})
		s.l.Add(slow)
		done := make(chan error, 2)
		go func() { done <- s.l.WaitApplied(t.Context(), 0) }()
		s.commit(s.batch(topic("x")))
		select {
		case err := <-done:
			t.Fatalf("the wait ended while a publisher was still at work: %v", err)
		default:
		}
		close(slow.block)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := s.l.WaitApplied(t.Context(), 0); err != nil {
			t.Fatalf("waiting for what has been applied: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.l.WaitApplied(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("waiting for an offset that does not come: %v", err)
		}
		go func() { done <- s.l.WaitApplied(t.Context(), 1) }()
		synctest.Wait()
		s.l.Close()
		if err := <-done; !errors.Is(err, node.ErrStopped) {
			t.Fatalf("waiting for a loader that is closed: %v", err)
		}
		if err := s.l.WaitApplied(t.Context(), 1); !errors.Is(err, node.ErrStopped) {
			t.Fatalf("waiting for a closed loader: %v", err)
		}
	})
}
