package partlog_test

import (
	"fmt"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/storage/producerstate"
	"samsa/internal/wire/record"
)

const dir = "/data/t-0"

// bench is a log on a file system, with a clock that tests move by hand.
type rig struct {
	fs   vfs.FS
	env  *partlog.Env
	cfg  *partlog.Config
	now  int64
	opts partlog.Options
	log  *partlog.Log
	info partlog.LoadInfo
}

func newRig(tb testing.TB, fs vfs.FS) *rig {
	tb.Helper()
	r := &rig{fs: fs, env: &partlog.Env{Files: partlog.NewFiles(64)}, cfg: partlog.DefaultConfig(), now: 1_000_000}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	return r
}

func (r *rig) tryOpen(clean bool, points ...int64) error {
	r.opts = partlog.Options{FS: r.fs, Dir: dir, Partition: model.TopicPartition{Topic: "t"}, Env: r.env, Config: r.cfg, Clean: clean, Now: r.now}
	if len(points) > 0 {
		r.opts.RecoveryPoint = points[0]
	}
	if len(points) > 1 {
		r.opts.LogStartOffset = points[1]
	}
	if len(points) > 2 {
		r.opts.HighWatermark = points[2]
	}
	var err error
	r.log, r.info, err = partlog.Open(r.opts)
	return err
}

func (r *rig) open(tb testing.TB, clean bool, points ...int64) {
	tb.Helper()
	if err := r.tryOpen(clean, points...); err != nil {
		tb.Fatal(err)
	}
}

// batchOf builds a batch of n records at timestamp ts whose values say who they are.
func batchOf(n int, ts int64, tag string, size int) []byte {
	b := record.NewBuilder(record.NewBatchOptions())
	for i := range n {
		v := fmt.Sprintf("%s-%d", tag, i)
		b.Append(ts+int64(i), []byte("k"), append([]byte(v), make([]byte, max(0, size-len(v)))...), nil)
	}
	return b.Build(nil)
}

func producerBatch(n int, ts int64, pid int64, epoch int16, seq int32, txn bool) []byte {
	o := record.NewBatchOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = pid, epoch, seq, txn
	b := record.NewBuilder(o)
	for i := range n {
		b.Append(ts+int64(i), nil, []byte("v"), nil)
	}
	return b.Build(nil)
}

func (r *rig) append(tb testing.TB, b []byte) partlog.AppendInfo {
	tb.Helper()
	info, err := r.tryAppend(b)
	if err != nil {
		tb.Fatal(err)
	}
	return info
}

func (r *rig) tryAppend(b []byte) (partlog.AppendInfo, error) {
	epoch := r.log.LatestEpoch()
	if epoch < 0 {
		epoch = 3
	}
	return r.log.AppendAsLeader(partlog.LeaderAppend{Records: b, Epoch: epoch, Origin: producerstate.OriginClient, Now: r.now})
}

func (r *rig) marker(tb testing.TB, pid int64, epoch int16, commit bool) partlog.AppendInfo {
	tb.Helper()
	b := record.AppendEndTxnMarker(nil, 0, 0, r.now, pid, epoch, commit, 1)
	info, err := r.log.AppendAsLeader(partlog.LeaderAppend{Records: b, Epoch: 3, Origin: producerstate.OriginCoordinator, Now: r.now})
	if err != nil {
		tb.Fatal(err)
	}
	return info
}

// all reads the whole log, batch by batch, through Read.
func (r *rig) all(tb testing.TB) []byte {
	tb.Helper()
	off := r.log.Offsets()
	var out []byte
	buf := make([]byte, 0, 1<<16)
	for at := off.LogStart; at < off.LogEnd; {
		b, next, err := r.log.ReadBatches(buf, at, off.LogEnd)
		if err != nil {
			tb.Fatal(err)
		}
		if len(b) == 0 {
			break
		}
		out = append(out, b...)
		at = next
	}
	return out
}
