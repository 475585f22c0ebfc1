package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/meta/image"
	"samsa/internal/meta/loader"
	"samsa/internal/raft/kraft"
	"samsa/internal/raft/node"
	"samsa/internal/wire/protocol"
)

// whole is one node: log, controller and loader over a memory disk.
type whole struct {
	n *node.Node
	c *Controller
	l *loader.Loader
}

func startWhole(t *testing.T, fs vfs.FS, format bool) *whole {
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
		if err := w.Append([]node.Record{frame(t, &protocol.FeatureLevelRecord{Name: image.FeatureMetadataVersion, FeatureLevel: 33}), frame(t, &protocol.FeatureLevelRecord{Name: image.FeatureELR, FeatureLevel: 1})}); err != nil {
			t.Fatal(err)
		}
		if err := w.Freeze(); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"/d", "/"} {
			if err := fs.SyncDir(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	n, err := node.Open(node.Options{Dir: "/d", FS: fs, ClusterID: "cluster", NodeID: 1, Directory: voter.Directory, Controller: true,
		Listeners: voter.Endpoints, Config: node.DefaultConfig(), Log: slog.New(slog.DiscardHandler), Fatal: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := newController(t, nil, func(o *Options) { o.Log = n })
	l := loader.New(loader.Options{HighWatermark: n.HighWatermark, Fatal: func(err error) { t.Error(err) }})
	l.Start()
	n.Register(l)
	n.Register(c)
	n.Start()
	synctest.Wait()
	return &whole{n, c, l}
}

func (w *whole) stop(t *testing.T) {
	t.Helper()
	if err := w.n.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.c.Close()
	w.l.Close()
}

func (w *whole) broker(t *testing.T, id int32) {
	t.Helper()
	addBroker(t, w.c, &fakeLog{}, id)
}

// The whole road on a real log: bootstrap, registration, a thousand pipelined creations, restart. The
// loader's image equals the controller's, before and after. K-107, K-110, K-119, K-172, T-04, T-12.
func TestAThousandTopicsOverARealLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		w := startWhole(t, fs, true)
		if !w.c.Active() || w.c.Image().Features().MetadataVersion() != 33 {
			t.Fatalf("active %v, metadata.version %v", w.c.Active(), w.c.Image().Features().MetadataVersion())
		}
		w.broker(t, 1)
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				resp, _ := w.c.CreateTopics(context.Background(), Caller{Version: 7}, topics(fmt.Sprintf("topic-%d", i)))
				if resp.Topics[0].ErrorCode != 0 {
					t.Error(kerr.ForCode(resp.Topics[0].ErrorCode))
				}
				if got, ok := w.c.Image().Topics().ByName(resp.Topics[0].Name); !ok || model.UUID(got.ID) != resp.Topics[0].TopicId {
					t.Errorf("topic %d was answered before its image is there", i)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		before := w.c.Image()
		if before.Topics().Len() != 1000 || !image.Diff(before, w.l.Image()).Empty() {
			t.Fatalf("%d topics, loader %d", before.Topics().Len(), w.l.Image().Topics().Len())
		}
		w.stop(t)
		w = startWhole(t, fs, false)
		d := image.Diff(before, w.c.Image())
		if len(d.Topics) != 0 || len(d.Brokers) != 0 || len(d.Configs) != 0 || !image.Diff(w.c.Image(), w.l.Image()).Empty() {
			t.Fatalf("after the restart: %+v", d)
		}
		resp, _ := w.c.CreateTopics(context.Background(), Caller{Version: 7}, topics("topic-7", "one more"))
		if resp.Topics[0].ErrorCode != kerr.TopicAlreadyExists.Code || resp.Topics[1].ErrorCode != kerr.InvalidTopicException.Code {
			t.Fatalf("after the restart: %+v", resp.Topics)
		}
		w.stop(t)
	})
}

// What was answered is there after a crash that loses whatever was not synced.
func TestAnsweredMeansDurable(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			fs := vfs.NewMem()
			w := startWhole(t, fs, true)
			w.broker(t, 1)
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					w.c.CreateTopics(context.Background(), Caller{Version: 7}, topics(fmt.Sprintf("topic-%d", i)))
				})
			}
			wg.Wait()
			crashed := fs.CrashClone(rand.New(rand.NewPCG(seed, 1)))
			w.stop(t)
			w = startWhole(t, crashed, false)
			for i := range 20 {
				if _, ok := w.c.Image().Topics().ByName(fmt.Sprintf("topic-%d", i)); !ok {
					t.Errorf("seed %d: topic %d was answered and is gone", seed, i)
				}
			}
			w.stop(t)
		})
	}
}
