package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
)

const testCluster = "MkU3OEVBNTcwNTJENDM2Qg"

func testDir(id model.NodeID) model.DirectoryID { return model.DirectoryID{0: byte(id), 15: 200} }

func testVoter(id model.NodeID) kraft.Voter {
	return kraft.Voter{ReplicaKey: kraft.ReplicaKey{ID: id, Directory: testDir(id)}, Versions: kraft.VersionRange{Min: 0, Max: 1},
		Endpoints: kraft.Endpoints{{Name: "CONTROLLER", Host: fmt.Sprintf("n%d", id), Port: 9093}}}
}

func voterSet(t testing.TB, ids ...model.NodeID) kraft.VoterSet {
	t.Helper()
	var vs []kraft.Voter
	for _, id := range ids {
		vs = append(vs, testVoter(id))
	}
	s, err := kraft.NewVoterSet(vs...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// frame is a NoOp-like framed record with a text in it; raft never looks inside.
func frame(format string, args ...any) Record {
	topic := fmt.Sprintf(format, args...)
	b, err := protocol.AppendMetadataRecord(nil, 2, 0, &protocol.TopicRecord{Name: topic, TopicId: model.UUID{1}})
	if err != nil {
		panic(err)
	}
	return b
}

func text(t testing.TB, r Record) string {
	t.Helper()
	_, _, m, err := protocol.ReadMetadataRecord(r)
	if err != nil {
		t.Fatalf("record %x: %v", r, err)
	}
	return m.(*protocol.TopicRecord).Name
}

func options(fs vfs.FS, id model.NodeID) Options {
	return Options{Dir: "/d", FS: fs, ClusterID: testCluster, NodeID: id, Directory: testDir(id), Controller: true,
		Listeners: testVoter(id).Endpoints, Config: DefaultConfig(), Log: slog.New(slog.DiscardHandler)}
}

// format writes what `storage format --standalone` leaves behind for the raft layer.
func format(t testing.TB, fs vfs.FS, voters kraft.VoterSet, records ...Record) {
	t.Helper()
	must(t, fs.MkdirAll("/d/"+LogDirName, 0o755))
	w, err := NewCheckpoint(fs, "/d/"+LogDirName, kraft.BootstrapSnapshotID, CheckpointOptions{KRaftVersion: 1, Voters: voters})
	must(t, err)
	must(t, w.Append(records))
	must(t, w.Freeze())
	must(t, fs.SyncDir("/d"))
	must(t, fs.SyncDir("/"))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// recorder is a listener that keeps everything.
type recorder struct {
	mu       sync.Mutex
	calls    []string // short forms, in order
	next     int64
	texts    []string
	leader   LeaderAndEpoch
	snapshot kraft.SnapshotID
	ended    bool
	gap      string
}

func (r *recorder) HandleCommit(batches []Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range batches {
		if b.BaseOffset != r.next {
			r.gap = fmt.Sprintf("commit at %d, want %d", b.BaseOffset, r.next)
		}
		r.next = b.LastOffset + 1
		r.calls = append(r.calls, fmt.Sprintf("commit %d-%d epoch=%d control=%t", b.BaseOffset, b.LastOffset, b.Epoch, b.Control))
		for _, rec := range b.Records {
			_, _, m, err := protocol.ReadMetadataRecord(rec)
			if err != nil {
				r.gap = err.Error()
				continue
			}
			if t, ok := m.(*protocol.TopicRecord); ok {
				r.texts = append(r.texts, t.Name)
			}
		}
	}
}

func (r *recorder) HandleSnapshot(s *SnapshotReader) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = nil
	for {
		b, err := s.Next()
		if isEOF(err) {
			break
		}
		if err != nil {
			return err
		}
		for _, rec := range b.Records {
			_, _, m, _ := protocol.ReadMetadataRecord(rec)
			r.texts = append(r.texts, m.(*protocol.TopicRecord).Name)
		}
	}
	r.next, r.snapshot = s.ID().Offset, s.ID()
	r.calls = append(r.calls, "snapshot "+s.ID().String())
	return nil
}

func (r *recorder) HandleLeaderChange(l LeaderAndEpoch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leader = l
	r.calls = append(r.calls, fmt.Sprintf("leader %d epoch=%d", l.Leader, l.Epoch))
}

func (r *recorder) BeginShutdown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.calls = append(r.calls, "shutdown")
}

func (r *recorder) state() (texts []string, next int64, leader LeaderAndEpoch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gap != "" {
		panic(r.gap)
	}
	return slices.Clone(r.texts), r.next, r.leader
}

func (r *recorder) log() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// eventually waits for a condition; within synctest the time is virtual.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func isLeader(n *Node) bool { return n.State().Role == kraft.Leader }

// lead opens and starts a single voter and waits until its listener leads.
func lead(t testing.TB, opts Options) (*Node, *recorder) {
	t.Helper()
	n, err := Open(opts)
	must(t, err)
	r := &recorder{}
	n.Register(r)
	n.Start()
	eventually(t, "leadership", func() bool { _, _, l := r.state(); return l.Leader == opts.NodeID })
	return n, r
}

func stop(t testing.TB, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must(t, n.Stop(ctx))
}

func commit(t testing.TB, n *Node, r *recorder, texts ...string) {
	t.Helper()
	var records []Record
	for _, s := range texts {
		records = append(records, frame("%s", s))
	}
	_, _, l := r.state()
	last, err := n.Append(l.Epoch, [][]Record{records})
	must(t, err)
	eventually(t, "commit", func() bool { _, next, _ := r.state(); return next > last })
}
