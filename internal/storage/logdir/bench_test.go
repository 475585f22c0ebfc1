package logdir

import (
	"context"
	"fmt"
	"os"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/storage/partlog"
)

// BenchmarkCreate makes 4,000 logs in two directories of a real disk.
func BenchmarkCreate(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		m, _ := benchManager(b, b.TempDir())
		var requests []CreateRequest
		for i := range int32(4000) {
			requests = append(requests, CreateRequest{Partition: tip(byte(i%4), i), Topic: fmt.Sprint("topic", i%4), Dir: model.DirUnassigned, IsNew: true})
		}
		b.StartTimer()
		for _, r := range m.CreateAll(requests) {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
		}
		b.StopTimer()
		m.Close(context.Background(), 1)
		b.StartTimer()
	}
}

// BenchmarkRestart stops and loads 5,000 small logs: clean, and as after a crash.
func BenchmarkRestart(b *testing.B) {
	for _, clean := range []bool{true, false} {
		b.Run(fmt.Sprintf("clean=%v", clean), func(b *testing.B) {
			root := b.TempDir()
			m, dirs := benchManager(b, root)
			var requests []CreateRequest
			for i := range int32(5000) {
				requests = append(requests, CreateRequest{Partition: tip(byte(i%5), i), Topic: fmt.Sprint("topic", i%5), Dir: model.DirUnassigned, IsNew: true})
			}
			for _, r := range m.CreateAll(requests) {
				if r.Err != nil {
					b.Fatal(r.Err)
				}
				r.Replica.Log.AppendAsLeader(partlog.LeaderAppend{Records: batchOf(3, "x"), Now: 1})
			}
			if err := m.Close(context.Background(), 1); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				if !clean {
					for _, d := range dirs {
						os.Remove(d + "/" + CleanShutdownFile)
					}
				}
				b.StartTimer()
				m, err := Open(Options{FS: vfs.OS(), Dirs: dirs, NodeID: 1})
				if err != nil {
					b.Fatal(err)
				}
				if err := m.Load(context.Background(), LoadOptions{}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if n := len(m.Replicas()); n != 5000 {
					b.Fatalf("%d logs", n)
				}
				if err := m.Close(context.Background(), 1); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkCleanStop closes 5,000 logs with a little in each.
func BenchmarkCleanStop(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		m, _ := benchManager(b, b.TempDir())
		var requests []CreateRequest
		for i := range int32(5000) {
			requests = append(requests, CreateRequest{Partition: tip(byte(i%5), i), Topic: fmt.Sprint("topic", i%5), Dir: model.DirUnassigned, IsNew: true})
		}
		for _, r := range m.CreateAll(requests) {
			r.Replica.Log.AppendAsLeader(partlog.LeaderAppend{Records: batchOf(3, "x"), Now: 1})
		}
		b.StartTimer()
		if err := m.Close(context.Background(), 1); err != nil {
			b.Fatal(err)
		}
	}
}

func benchManager(b *testing.B, root string) (*Manager, []string) {
	var dirs []string
	for i := range 2 {
		d := fmt.Sprintf("%s/d%d", root, i+1)
		dirs = append(dirs, d)
		os.MkdirAll(d, 0o755)
		os.WriteFile(d+"/meta.properties", fmt.Appendf(nil, "version=1\ncluster.id=c\nnode.id=1\ndirectory.id=%s\n", dirID(byte(i+1))), 0o644)
	}
	m, err := Open(Options{FS: vfs.OS(), Dirs: dirs, NodeID: 1, MetadataDetails: true})
	if err != nil {
		b.Fatal(err)
	}
	if err := m.Load(context.Background(), LoadOptions{}); err != nil {
		b.Fatal(err)
	}
	return m, dirs
}
