package partlog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
	"samsa/internal/wire/record"
)

// scene is a log driven by the text files in testdata/scenes. Commands:
//
//	open [clean] [recovery-point=N] [log-start=N] [hw=N]     config key=value ...
//	append [n=N] [ts=N] [size=N] [pid=N seq=N epoch=N] [txn]  follow base=N [epoch=N] [n=N]     marker pid=N [abort]
//	roll   flush   close   kill   truncate to=N   start-over at=N   log-start to=N   hw to=N   assign-epoch epoch=N
//	retention now=N                                           replace cleaned=(N,...) old=(N,...)
//	read offset=N [up-to=N] [max=N] [committed]               segments   epochs   producers   offsets
//	ls   touch NAME ...   rm NAME ...   mv OLD NEW   damage NAME at=N     cut NAME at=N   pad NAME bytes=N
//
// With the argument "ops" a command shows the file operations it made that change something, in order (style 25).
type scene struct {
	t    *testing.T
	r    *rig
	disk *vfs.Mem
	ops  []string
}

func TestScenes(t *testing.T) {
	datadriven.Walk(t, "testdata/scenes", func(t *testing.T, path string) {
		s := &scene{t: t, disk: vfs.NewMem()}
		s.r = newRig(t, vfs.Inject(s.disk, func(op vfs.Op) error {
			switch op.Kind {
			case vfs.OpRead, vfs.OpStat, vfs.OpSize, vfs.OpReadDir, vfs.OpOpen, vfs.OpClose:
			default:
				s.ops = append(s.ops, strings.ReplaceAll(op.String(), dir+"/", ""))
			}
			return nil
		}))
		s.r.now = 10_000
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.ops = nil
			out := s.run(d)
			if d.HasArg("ops") {
				out += strings.Join(s.ops, "\n") + "\n"
			}
			return out
		})
	})
}

// num is an argument's number.
func num(d *datadriven.TestData, key string, def int64) int64 {
	v := def
	d.MaybeScanArgs(nil2t, key, &v)
	return v
}

var nil2t = new(testing.T)

func (s *scene) run(d *datadriven.TestData) string {
	r, l := s.r, s.r.log
	say := func(err error) string {
		if err != nil {
			return err.Error() + "\n"
		}
		return ""
	}
	switch d.Cmd {
	case "config":
		for key, to := range map[string]*int64{"segment.bytes": &r.cfg.SegmentBytes, "retention.ms": &r.cfg.RetentionMs,
			"retention.bytes": &r.cfg.RetentionBytes, "flush.messages": &r.cfg.FlushMessages, "flush.ms": &r.cfg.FlushMs, "segment.ms": &r.cfg.SegmentMs} {
			*to = num(d, key, *to)
		}
		r.cfg.IndexIntervalBytes = int32(num(d, "index.interval.bytes", int64(r.cfg.IndexIntervalBytes)))
		r.cfg.Compact = d.HasArg("compact")
		r.cfg.Delete = !d.HasArg("compact")
		return ""
	case "open":
		if err := r.tryOpen(d.HasArg("clean"), num(d, "recovery-point", 0), num(d, "log-start", 0), num(d, "hw", 0)); err != nil {
			return say(err)
		}
		return fmt.Sprintf("%+v\n", r.info) + s.offsets()
	case "append":
		n, ts := int(num(d, "n", 1)), num(d, "ts", r.now)
		b := batchOf(n, ts, "v", int(num(d, "size", 1)))
		if d.HasArg("pid") {
			b = producerBatch(n, ts, num(d, "pid", 0), int16(num(d, "epoch", 0)), int32(num(d, "seq", 0)), d.HasArg("txn"))
		}
		info, err := r.tryAppend(b)
		if err != nil {
			return say(err)
		}
		dup := ""
		if info.Duplicate {
			dup = " duplicate"
		}
		return fmt.Sprintf("[%d, %d]%s\n", info.BaseOffset, info.LastOffset, dup)
	case "follow":
		b := batchOf(int(num(d, "n", 1)), num(d, "ts", r.now), "v", 1)
		record.Batch(b).SetBaseOffset(num(d, "base", 0))
		record.Batch(b).SetLeaderEpoch(int32(num(d, "epoch", 0)))
		info, err := l.AppendAsFollower(partlog.FollowerAppend{Records: b, Epoch: -1, Now: r.now})
		if err != nil {
			return say(err)
		}
		return fmt.Sprintf("[%d, %d]\n", info.BaseOffset, info.LastOffset)
	case "marker":
		info := r.marker(s.t, num(d, "pid", 0), int16(num(d, "epoch", 0)), !d.HasArg("abort"))
		return fmt.Sprintf("[%d, %d]\n", info.BaseOffset, info.LastOffset)
	case "roll":
		return say(l.Roll(r.now))
	case "flush":
		return say(l.Flush(r.now)) + fmt.Sprintf("recovery point %d\n", l.RecoveryPoint())
	case "close":
		return say(l.Close(r.now))
	case "kill":
		l.Abandon()
		return ""
	case "truncate":
		dropped, err := l.TruncateTo(num(d, "to", 0), r.now)
		return say(err) + fmt.Sprintf("dropped %t\n", dropped) + s.offsets()
	case "start-over":
		return say(l.TruncateFullyAndStartAt(num(d, "at", 0), r.now)) + s.offsets()
	case "log-start":
		moved, err := l.IncrementLogStartOffset(num(d, "to", 0))
		return say(err) + fmt.Sprintf("moved %t\n", moved) + s.offsets()
	case "hw":
		hw, lso := l.SetHighWatermark(num(d, "to", l.LogEndOffset()))
		return fmt.Sprintf("high watermark %d, last stable %d\n", hw, lso)
	case "assign-epoch":
		return say(l.AssignEpoch(model.LeaderEpoch(num(d, "epoch", 0)), l.LogEndOffset()))
	case "retention":
		now := num(d, "now", r.now)
		list, err := l.DeletableSegments(now)
		out := say(err)
		list, err = l.DeleteOldSegments(list, now)
		for _, x := range list.Segments {
			out += fmt.Sprintf("%d, %d bytes: %v\n", x.Base, x.Bytes, x.Reason)
		}
		return out + say(err) + s.offsets()
	case "replace":
		var cleaned, old []int64
		d.ScanArgs(s.t, "cleaned", &cleaned)
		d.ScanArgs(s.t, "old", &old)
		return say(l.ReplaceSegments(cleaned, old)) + s.segments()
	case "read":
		req := partlog.ReadRequest{Offset: num(d, "offset", 0), UpTo: num(d, "up-to", 1<<60), MaxBytes: int(num(d, "max", 1<<20)), MinOneBatch: !d.HasArg("no-min"), Aborted: d.HasArg("committed")}
		return s.read(req)
	case "segments":
		return s.segments()
	case "offsets":
		return s.offsets()
	case "epochs":
		return fmt.Sprintln(l.Epochs())
	case "producers":
		out := ""
		for _, p := range l.Producers() {
			out += fmt.Sprintf("%+v\n", p)
		}
		return out
	case "stats":
		st := &r.env.Stats
		return fmt.Sprintf("indexes rebuilt %d, segments recovered %d, bytes truncated %d, snapshots damaged %d, epoch files rebuilt %d\n",
			st.IndexesRebuilt.Load(), st.SegmentsRecovered.Load(), st.BytesTruncated.Load(), st.SnapshotsDamaged.Load(), st.EpochFilesRebuilt.Load())
	}
	return s.files(d)
}

// files are the commands that touch files behind the log's back.
func (s *scene) files(d *datadriven.TestData) string {
	path := func(i int) string { return dir + "/" + d.CmdArgs[i].Key }
	file := func(name string) vfs.File {
		f, err := s.disk.OpenFile(name, 0x42, 0o644) // O_RDWR|O_CREATE
		if err != nil {
			s.t.Fatal(err)
		}
		return f
	}
	switch d.Cmd {
	case "ls":
		entries, err := s.disk.ReadDir(dir)
		if err != nil {
			s.t.Fatal(err)
		}
		out := ""
		for _, e := range entries {
			info, _ := e.Info()
			out += fmt.Sprintf("%s %d\n", e.Name(), info.Size())
		}
		return out
	case "touch":
		for i := range d.CmdArgs {
			file(path(i)).Close()
		}
	case "rm":
		for i := range d.CmdArgs {
			if err := s.disk.Remove(path(i)); err != nil {
				return err.Error()
			}
		}
	case "mv", "cp":
		b, err := vfs.ReadFile(s.disk, path(0))
		if err != nil {
			return err.Error()
		}
		f := file(path(1))
		_, _ = f.WriteAt(b, 0)
		f.Close()
		if d.Cmd == "mv" {
			_ = s.disk.Remove(path(0))
		}
	case "damage":
		f := file(path(0))
		defer f.Close()
		b, at := make([]byte, 1), num(d, "at", 0)
		if _, err := f.ReadAt(b, at); err != nil {
			return err.Error()
		}
		b[0] ^= 0x55
		_, _ = f.WriteAt(b, at)
	case "cut":
		f := file(path(0))
		defer f.Close()
		_ = f.Truncate(num(d, "at", 0))
	case "pad":
		f := file(path(0))
		defer f.Close()
		size, _ := f.Size()
		_ = f.Truncate(size + num(d, "bytes", 0))
	default:
		s.t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return ""
}

func (s *scene) offsets() string {
	o := s.r.log.Offsets()
	return fmt.Sprintf("log start %d, last stable %d, high watermark %d, log end %d, recovery point %d\n", o.LogStart, o.LastStable, o.HighWatermark, o.LogEnd, s.r.log.RecoveryPoint())
}

func (s *scene) segments() string {
	all, _ := s.r.log.Segments()
	out := ""
	for _, x := range all {
		out += fmt.Sprintf("[%d, %d) %d bytes, max time %d\n", x.Base, x.Next, x.Bytes, x.MaxTimestamp)
	}
	return out
}

func (s *scene) read(req partlog.ReadRequest) string {
	res, err := s.r.log.Read(req)
	if err != nil {
		return err.Error() + "\n"
	}
	out := ""
	if res.Records == nil {
		out = "nothing\n"
	} else {
		b := make([]byte, res.Records.Len())
		_, _ = res.Records.ReadAt(b, 0)
		whole := 0
		for x, err := range record.Split(b) {
			if err != nil {
				out += err.Error() + "\n"
				break
			}
			out += fmt.Sprintf("[%d, %d]", x.BaseOffset(), x.LastOffset())
			whole += len(x)
		}
		if whole < len(b) {
			out += fmt.Sprintf(" and %d bytes of a batch", len(b)-whole)
		}
		out += "\n"
		res.Records.Release()
	}
	if res.FirstBatchIncomplete {
		out += "first batch incomplete\n"
	}
	if req.Aborted {
		out += fmt.Sprintf("aborted %v\n", res.Aborted)
	}
	return out
}
