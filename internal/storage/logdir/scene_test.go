package logdir

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/datadriven"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// world is what a scene acts on: disks that outlive the node, and at most one node.
type world struct {
	mem     *vfs.Mem
	dirs    []string
	broken  atomic.Pointer[string] // the directory every call to which fails
	m       *Manager
	topics  map[model.TopicID]string // what the metadata knows
	random  func() model.UUID
	events  chan DirFailed
	details bool
}

// TestScenes plays testdata/*. Commands:
//
//	disks N                          N formatted directories /d1 ..
//	start                            open and load; strays are judged by the topics of `topic`
//	topic NAME ID | forget NAME      what the metadata knows
//	create NAME P [dir=/dN] [old]    make a log
//	append NAME P N                  N records
//	delete NAME P                    delete a replica
//	break DIR | repair               every call below DIR fails, or none
//	move FROM TO                     rename behind the node's back
//	stop EPOCH | kill                a clean stop; the node is gone without one
//	ls                               directories and replicas on the disks
//	dirs                             what DescribeLogDirs is told
func TestScenes(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &world{mem: vfs.NewMem(), topics: map[model.TopicID]string{}, random: sequence(), events: make(chan DirFailed, 9)}
		defer w.kill()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.do(t, d) })
	})
}

func (w *world) do(t *testing.T, d *datadriven.TestData) string {
	arg := func(i int) string { return d.CmdArgs[i].String() }
	num := func(i int) int {
		n, err := strconv.Atoi(arg(i))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return n
	}
	tp := func() model.TopicIDPartition {
		for id, name := range w.topics {
			if name == arg(0) {
				return model.TopicIDPartition{Topic: id, Partition: int32(num(1))}
			}
		}
		d.Fatalf(t, "no topic %s", arg(0))
		return model.TopicIDPartition{}
	}
	switch d.Cmd {
	case "disks":
		w.dirs = formatN(t, w.mem, num(0))
	case "topic":
		w.topics[topicID(byte(num(1)))] = arg(0)
	case "forget":
		for id, name := range w.topics {
			if name == arg(0) {
				delete(w.topics, id)
			}
		}
	case "start":
		return w.start()
	case "create":
		r := CreateRequest{Partition: tp(), Topic: arg(0), Dir: model.DirUnassigned, IsNew: true}
		for _, a := range d.CmdArgs[2:] {
			switch a.Key {
			case "dir":
				dir, _ := w.m.DirectoryAt(a.Vals[0])
				r.Dir = dir.ID()
			case "old":
				r.IsNew = false
			}
		}
		res := w.m.CreateAll([]CreateRequest{r})[0]
		if res.Err != nil {
			return w.said(res.Err.Error())
		}
		return w.said("in " + res.Replica.Dir.Path())
	case "append":
		r, ok := w.m.Get(tp())
		if !ok {
			return w.said("offline")
		}
		info, err := r.Log.AppendAsLeader(partlog.LeaderAppend{Records: batchOf(num(2), "r"), Now: 1})
		if err == nil {
			err = r.Log.Flush(1)
		}
		if err != nil {
			return w.said(err.Error())
		}
		return w.said(fmt.Sprintf("log end %d", info.LogEndOffset))
	case "delete":
		if err := w.m.Delete(tp()); err != nil {
			return w.said(err.Error())
		}
		return w.said("")
	case "break":
		dir := arg(0)
		w.broken.Store(&dir)
	case "repair":
		w.broken.Store(nil)
	case "move":
		if err := w.mem.Rename(arg(0), arg(1)); err != nil {
			d.Fatalf(t, "%v", err)
		}
	case "stop":
		err := w.m.Close(context.Background(), int64(num(0)))
		w.m = nil
		if err != nil {
			return w.said(err.Error())
		}
	case "kill":
		w.kill()
	case "ls":
		return w.list(t)
	case "dirs":
		return w.describe()
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return ""
}

// said adds the failures told since the last command.
func (w *world) said(text string) string {
	if text != "" {
		text += "\n"
	}
	if w.m == nil {
		return text
	}
	for _, d := range w.m.dirs {
		if d.Online() || d.started != nil || d.reported.Load() && len(w.events) == 0 {
			continue
		}
		e := <-w.events
		text += fmt.Sprintf("failed: %s (%d replicas, last=%v, metadata=%v)\n", e.Path, len(e.Partitions), e.Last, e.Metadata)
	}
	return text
}

func (w *world) start() string {
	fsys := failing(w.mem, errDisk, func(op vfs.Op) bool {
		dir := w.broken.Load()
		return dir != nil && under(*dir)(op)
	})
	m, err := Open(Options{FS: fsys, Dirs: w.dirs, NodeID: 1, Now: testClock, Random: w.random})
	if err != nil {
		return err.Error() + "\n"
	}
	w.m = m
	m.OnOffline(func(e DirFailed) { w.events <- e })
	err = m.Load(context.Background(), LoadOptions{Decide: func(f Found) Verdict {
		switch name := w.topics[f.Partition.Topic]; name {
		case f.Topic:
			return Verdict{}
		case "":
			return Verdict{Stray: "unknown id", Gone: true}
		default:
			return Verdict{Stray: "the id is that of " + name}
		}
	}})
	if err != nil {
		return err.Error() + "\n"
	}
	return w.said(fmt.Sprintf("%d replicas, previous broker epoch %d", len(m.Replicas()), m.PreviousBrokerEpoch()))
}

// kill lets the node vanish: the goroutines end, nothing is written, locks are free again.
func (w *world) kill() {
	if w.m == nil {
		return
	}
	all := "/"
	for _, d := range w.m.dirs {
		if d.fs != nil {
			d.fs.TakeOffline(vfs.OpClose, all, errDisk)
		}
	}
	w.m.Close(context.Background(), 0)
	w.m = nil
	for len(w.events) > 0 {
		<-w.events
	}
}

func (w *world) list(t *testing.T) string {
	var b strings.Builder
	for _, dir := range w.dirs {
		if _, err := w.mem.ReadDir(dir); err != nil {
			fmt.Fprintf(&b, "%s: not a directory\n", dir)
			continue
		}
		fmt.Fprintf(&b, "%s:", dir)
		if slices.Contains(list(t, w.mem, dir), CleanShutdownFile) {
			b.WriteString(" clean")
		}
		b.WriteString("\n")
		for _, name := range list(t, w.mem, dir) {
			if _, _, err := ParseLogName(name); err != nil {
				continue
			}
			size := int64(0)
			for _, f := range list(t, w.mem, filepath.Join(dir, name)) {
				if strings.HasSuffix(f, ".log") {
					info, _ := w.mem.Stat(filepath.Join(dir, name, f))
					size += info.Size()
				}
			}
			fmt.Fprintf(&b, "  %s (%d bytes)\n", name, size)
		}
	}
	return b.String()
}

func (w *world) describe() string {
	var b strings.Builder
	for _, d := range w.m.Dirs() {
		state := "online"
		if d.Err != nil {
			state = "offline"
		}
		fmt.Fprintf(&b, "%s %s", d.Path, state)
		slices.SortFunc(d.Logs, func(a, c LogStatus) int {
			return strings.Compare(a.Topic, c.Topic)*10 + int(a.Partition.Partition-c.Partition.Partition)
		})
		for _, l := range d.Logs {
			fmt.Fprintf(&b, " %s-%d", l.Topic, l.Partition.Partition)
		}
		b.WriteString("\n")
	}
	return b.String()
}
