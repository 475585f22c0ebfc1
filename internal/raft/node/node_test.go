package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/record"
)

// K-17, K-24, K-25, K-93: a single voter leads at once; its first batch holds LeaderChange, KRaftVersion and Voters, and the listener hears of its
// leadership only behind it. K-61: data version 1 follows the bootstrap checkpoint's kraft.version.
func TestSingleVoter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		format(t, fs, voterSet(t, 1), frame("bootstrap"))
		n, r := lead(t, options(fs, 1))
		want := []string{"leader -1 epoch=1", "commit 0-2 epoch=1 control=true", "leader 1 epoch=1"}
		if got := r.log(); !reflect.DeepEqual(got[len(got)-2:], want[1:]) {
			t.Fatalf("calls %q", got)
		}
		data, err := vfs.ReadFile(fs, "/d/__cluster_metadata-0/quorum-state")
		must(t, err)
		if got, want := string(data), `{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`; got != want {
			t.Fatalf("quorum-state %s\nwant         %s", got, want)
		}
		commit(t, n, r, "a", "b")
		commit(t, n, r, "c")
		stop(t, n)
		if calls := r.log(); calls[len(calls)-1] != "shutdown" {
			t.Fatalf("last call %q", calls[len(calls)-1])
		}
		n, r = lead(t, options(fs, 1))
		if texts, _, l := r.state(); l.Epoch != 2 || !reflect.DeepEqual(texts, []string{"a", "b", "c"}) {
			t.Fatalf("after the restart: %q, epoch %d", texts, l.Epoch)
		}
		if s := n.State(); s.LogEnd != 7 || s.HighWatermark != 7 { // 3 control, 3 data, 1 control
			t.Fatalf("after the restart: %+v", s)
		}
		stop(t, n)
		log, err := vfs.ReadFile(fs, "/d/__cluster_metadata-0/00000000000000000000.log")
		must(t, err)
		first, _, err := record.Next(log)
		must(t, err)
		var types []string
		for rec, err := range record.Records(first) {
			must(t, err)
			types = append(types, fmt.Sprintf("%d:%x", rec.Offset, rec.Key))
		}
		if got := strings.Join(types, " "); got != "0:00000002 1:00000005 2:00000006" {
			t.Fatalf("records of the first batch: %s", got)
		}
	})
}

// K-60, K-78: with static voters the state has version 0, and the first batch is the leader change alone.
func TestStaticSingleVoter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		must(t, fs.MkdirAll("/d", 0o755))
		o := options(fs, 3)
		v := testVoter(3)
		v.Directory = [16]byte{}
		o.StaticVoters = kraft.VoterSet{v}
		n, r := lead(t, o)
		commit(t, n, r, "x")
		data, err := vfs.ReadFile(fs, "/d/__cluster_metadata-0/quorum-state")
		must(t, err)
		if got, want := string(data), `{"clusterId":"","leaderId":3,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":3}],"data_version":0}`; got != want {
			t.Fatalf("quorum-state %s\nwant         %s", got, want)
		}
		meta, err := vfs.ReadFile(fs, "/d/__cluster_metadata-0/partition.metadata")
		must(t, err)
		if string(meta) != "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ" { // K-59, D-44
			t.Fatalf("partition.metadata %q", meta)
		}
		log, err := vfs.ReadFile(fs, "/d/__cluster_metadata-0/00000000000000000000.log")
		must(t, err)
		first, _, err := record.Next(log)
		must(t, err)
		for rec, err := range record.Records(first) {
			must(t, err)
			if got, want := hex.EncodeToString(rec.Value), "000000000003"+"02"+"00000003"+"00"+"02"+"00000003"+"00"+"00"; got != want {
				t.Fatalf("leader change %s, want %s", got, want)
			}
		}
		stop(t, n)
	})
}

// K-75: a data batch byte for byte, apart from its time and checksum.
func TestDataBatchBytes(t *testing.T) {
	b, err := encodeData([]Record{{1, 20, 0, 0}}, 5, 0x0102030405)
	must(t, err)
	batch := record.Batch(b.Data)
	batch.SetBaseOffset(77)
	got := hex.EncodeToString(b.Data)
	want := "000000000000004d" + fmt.Sprintf("%08x", len(b.Data)-12) + "00000005" + "02" + fmt.Sprintf("%08x", batch.CRC()) + "0000" + "00000000" +
		"0000000102030405" + "0000000102030405" + "ffffffffffffffff" + "ffff" + "ffffffff" + "00000001" +
		"14" + "00" + "00" + "00" + "01" + "08" + "01140000" + "00"
	if got != want || !batch.ValidCRC() {
		t.Fatalf("batch %s\nwant  %s", got, want)
	}
}

// K-13: an idle single voter has nothing to wake up for.
func TestIdleSingleVoterSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		format(t, fs, voterSet(t, 1))
		n, _ := lead(t, options(fs, 1))
		synctest.Wait()
		n.mu.Lock()
		d := n.core.Deadline()
		n.mu.Unlock()
		if !d.IsZero() {
			t.Fatalf("the core wants to be woken at %v", d)
		}
		stop(t, n)
	})
}

// K-49: an fsync of the log comes before its records count; appends that gather share one.
func TestGroupCommit(t *testing.T) {
	fs := vfs.NewMem()
	format(t, fs, voterSet(t, 1))
	var syncs atomic.Int64
	gate := make(chan struct{})
	var gated atomic.Bool
	entered := make(chan struct{}, 1)
	slow := vfs.Inject(fs, func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Path, ".log") {
			syncs.Add(1)
			if gated.Load() {
				select {
				case entered <- struct{}{}:
				default:
				}
				<-gate
			}
		}
		return nil
	})
	n, r := lead(t, options(slow, 1))
	defer stop(t, n)
	_, base, l := r.state()
	before := syncs.Load()
	gated.Store(true)
	var last int64
	for i := range 500 {
		var err error
		last, err = n.Append(l.Epoch, [][]Record{{frame("t%d", i)}})
		must(t, err)
		if i == 0 {
			<-entered // the first one is being synced; the others gather behind it
		}
	}
	if hw, _ := n.HighWatermark(); hw != base {
		t.Fatalf("high watermark %d before any sync was done, want %d", hw, base)
	}
	gated.Store(false)
	close(gate)
	eventually(t, "commit", func() bool { _, next, _ := r.state(); return next == last+1 })
	if got := syncs.Load() - before; got > 4 {
		t.Fatalf("%d fsyncs for 500 appends", got)
	}
	if texts, _, _ := r.state(); len(texts) != 500 || texts[499] != "t499" {
		t.Fatalf("%d texts", len(texts))
	}
}

// K-57, K-58: what Append refuses, and that one call's records lie in one batch each.
func TestAppendRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		format(t, fs, voterSet(t, 1))
		n, r := lead(t, options(fs, 1))
		_, next, l := r.state()
		for name, c := range map[string]struct {
			epoch   int32
			batches [][]Record
			want    error
		}{
			"old_epoch":    {l.Epoch - 1, [][]Record{{frame("x")}}, kerr.NotLeaderOrFollower},
			"future_epoch": {l.Epoch + 1, [][]Record{{frame("x")}}, kerr.NotLeaderOrFollower},
			"too_large":    {l.Epoch, [][]Record{{make(Record, 5<<20), make(Record, 5<<20)}}, ErrBatchTooLarge},
		} {
			if _, err := n.Append(c.epoch, c.batches); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		if _, err := n.AppendAt(l.Epoch, next+1, [][]Record{{frame("x")}}); !errors.Is(err, ErrMoved) {
			t.Errorf("moved: %v", err)
		}
		if last, err := n.AppendAt(l.Epoch, next, [][]Record{{frame("a"), frame("b")}, {frame("c")}}); err != nil || last != next+2 {
			t.Errorf("AppendAt: %d, %v", last, err)
		}
		eventually(t, "commit", func() bool { _, n, _ := r.state(); return n == next+3 })
		calls := r.log()
		if got := calls[len(calls)-2:]; got[0] != fmt.Sprintf("commit %d-%d epoch=1 control=false", next, next+1) || got[1] != fmt.Sprintf("commit %d-%d epoch=1 control=false", next+2, next+2) {
			t.Errorf("commits %q", got)
		}
		stop(t, n)
		if _, err := n.Append(l.Epoch, [][]Record{{frame("x")}}); err == nil {
			t.Error("an append after Stop was accepted")
		}
	})
}

// K-128, K-27, K-17: a renounced single voter leads again in a later epoch after its timeout; listeners hear of both.
func TestResign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		format(t, fs, voterSet(t, 1))
		n, r := lead(t, options(fs, 1))
		commit(t, n, r, "a")
		n.Resign(1)
		eventually(t, "resignation", func() bool { return n.State().Role == kraft.Resigned })
		if _, err := n.Append(1, [][]Record{{frame("x")}}); !errors.Is(err, kerr.NotLeaderOrFollower) {
			t.Errorf("append of a resigned leader: %v", err)
		}
		eventually(t, "a new epoch", func() bool { _, _, l := r.state(); return l.Leader == 1 && l.Epoch > 1 })
		commit(t, n, r, "b")
		if texts, _, _ := r.state(); !reflect.DeepEqual(texts, []string{"a", "b"}) {
			t.Fatalf("texts %q", texts)
		}
		stop(t, n)
	})
}

// A late listener gets everything from the beginning; one that was removed gets nothing more.
func TestRegisterAndUnregister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		format(t, fs, voterSet(t, 1))
		n, r := lead(t, options(fs, 1))
		commit(t, n, r, "a")
		late := &recorder{}
		n.Register(late)
		eventually(t, "catching up", func() bool { texts, _, l := late.state(); return len(texts) == 1 && l.Leader == 1 })
		n.Unregister(late)
		commit(t, n, r, "b")
		if texts, _, _ := late.state(); len(texts) != 1 {
			t.Fatalf("an unregistered listener got %q", texts)
		}
		stop(t, n)
	})
}

// A disk that fails takes the node down: nothing is committed any more, the process is asked to end (K-34), and what was committed is there
// after a restart on the good disk.
func TestDiskErrors(t *testing.T) {
	for name, match := range map[string]func(vfs.Op) bool{
		"fsync_of_the_log":    func(o vfs.Op) bool { return o.Kind == vfs.OpSync && strings.HasSuffix(o.Path, ".log") },
		"write_of_the_log":    func(o vfs.Op) bool { return o.Kind == vfs.OpWrite && strings.HasSuffix(o.Path, ".log") },
		"write_of_the_vote":   func(o vfs.Op) bool { return o.Kind == vfs.OpWrite && strings.HasSuffix(o.Path, "quorum-state.tmp") },
		"rename_of_the_vote":  func(o vfs.Op) bool { return o.Kind == vfs.OpRename && strings.HasSuffix(o.To, "quorum-state") },
		"dirsync_of_the_vote": func(o vfs.Op) bool { return o.Kind == vfs.OpSyncDir },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := vfs.NewMem()
				format(t, mem, voterSet(t, 1))
				var broken atomic.Bool
				o := options(vfs.Inject(mem, func(op vfs.Op) error {
					if broken.Load() && match(op) {
						return syscall.EIO
					}
					return nil
				}), 1)
				fatal := make(chan error, 1)
				o.Fatal = func(err error) { fatal <- err }
				n, r := lead(t, o)
				commit(t, n, r, "kept")
				broken.Store(true)
				_, before, _ := r.state()
				if _, err := n.Append(1, [][]Record{{frame("lost")}}); err != nil {
					t.Fatal(err)
				}
				n.Resign(1) // needs quorum-state, sooner or later
				if err := <-fatal; !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "/d/__cluster_metadata-0") {
					t.Fatalf("fatal error %v", err)
				}
				if strings.HasPrefix(name, "fsync") || strings.HasPrefix(name, "write_of_the_log") {
					if hw, _ := n.HighWatermark(); hw != before {
						t.Fatalf("high watermark %d moved from %d without a sync", hw, before)
					}
				}
				if _, err := n.Append(1, [][]Record{{frame("x")}}); !errors.Is(err, ErrStopped) {
					t.Fatalf("append on a failed node: %v", err)
				}
				stop(t, n)
				broken.Store(false)
				n, r = lead(t, options(mem, 1))
				if texts, _, _ := r.state(); len(texts) == 0 || texts[0] != "kept" {
					t.Fatalf("after the restart %q", texts)
				}
				stop(t, n)
			})
		})
	}
}

// K-09: two nodes on one directory.
func TestDirectoryLock(t *testing.T) {
	fs := vfs.NewMem()
	format(t, fs, voterSet(t, 1))
	o := options(fs, 1)
	o.Lock = true
	n, err := Open(o)
	must(t, err)
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "/d is in use by another process") {
		t.Fatalf("second open: %v", err)
	}
	stop(t, n)
	n, err = Open(o)
	must(t, err)
	stop(t, n)
}

// K-07.
func TestOpenNeedsADirectoryID(t *testing.T) {
	o := options(vfs.NewMem(), 1)
	o.Directory = [16]byte{}
	if _, err := Open(o); err == nil {
		t.Fatal("opened without a directory id")
	}
}

// K-34: Stop of a leader is quick even when it is called twice, or before Start.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		format(t, fs, voterSet(t, 1))
		n, err := Open(options(fs, 1))
		must(t, err)
		stop(t, n)
		n, _ = lead(t, options(fs, 1))
		begin := time.Now()
		stop(t, n)
		must(t, n.Stop(context.Background()))
		if took := time.Since(begin); took > time.Second {
			t.Fatalf("stopping took %v", took)
		}
		if _, err := n.DescribeQuorum(context.Background(), 2, nil2()); !errors.Is(err, ErrStopped) {
			t.Fatalf("a request after Stop: %v", err)
		}
	})
}

// K-105, K-106: where the first activation's records come from.
func TestBootstrapRecords(t *testing.T) {
	fs := vfs.NewMem()
	format(t, fs, voterSet(t, 1), frame("in-0-0"))
	legacy := func(fs vfs.FS, text string) {
		w, err := NewLegacyBootstrap(fs, "/d", CheckpointOptions{})
		must(t, err)
		must(t, w.Append([]Record{frame("%s", text)}))
		must(t, w.Freeze())
	}
	check := func(fs vfs.FS, want, source string) {
		t.Helper()
		n, err := Open(options(fs, 1))
		must(t, err)
		defer stop(t, n)
		records, src, err := n.Bootstrap()
		must(t, err)
		got := ""
		for _, r := range records {
			got += text(t, r)
		}
		if got != want || !strings.HasSuffix(src, source) {
			t.Fatalf("bootstrap %q from %q, want %q from %q", got, src, want, source)
		}
	}
	legacy(fs, "in-legacy")
	check(fs, "in-0-0", "00000000000000000000-0000000000.checkpoint")
	fs = vfs.NewMem()
	format(t, fs, voterSet(t, 1))
	check(fs, "", "")
	legacy(fs, "in-legacy")
	check(fs, "in-legacy", "/d/bootstrap.checkpoint")
}
