package dirassign

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	t1 = model.TopicID{1}
	d1 = model.DirectoryID{1}
	d2 = model.DirectoryID{2}
)

func part(n int32) model.TopicIDPartition { return model.TopicIDPartition{Topic: t1, Partition: n} }

// controller is a scripted controller.
type controller struct {
	mu    sync.Mutex
	start time.Time
	sent  []sent
	code  func(tp model.TopicIDPartition, dir model.DirectoryID) int16 // per report; -2: left out
	top   int16
	err   error
	gate  chan struct{}
}

type sent struct {
	at      time.Duration
	epoch   int64
	reports []answerKey
}

func (c *controller) Send(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	r := req.(*protocol.AssignReplicasToDirsRequest)
	c.mu.Lock()
	s := sent{at: time.Since(c.start), epoch: r.BrokerEpoch}
	resp := &protocol.AssignReplicasToDirsResponse{ErrorCode: c.top}
	for _, d := range r.Directories {
		rd := protocol.AssignReplicasToDirsResponseDirectoryData{Id: d.Id}
		for _, t := range d.Topics {
			rt := protocol.AssignReplicasToDirsResponseTopicData{TopicId: t.TopicId}
			for _, p := range t.Partitions {
				k := answerKey{model.TopicIDPartition{Topic: model.TopicID(t.TopicId), Partition: p.PartitionIndex}, model.DirectoryID(d.Id)}
				s.reports = append(s.reports, k)
				code := int16(0)
				if c.code != nil {
					code = c.code(k.tp, k.dir)
				}
				if code != -2 {
					rt.Partitions = append(rt.Partitions, protocol.AssignReplicasToDirsResponsePartitionData{PartitionIndex: p.PartitionIndex, ErrorCode: code})
				}
			}
			rd.Topics = append(rd.Topics, rt)
		}
		resp.Directories = append(resp.Directories, rd)
	}
	c.sent = append(c.sent, s)
	gate := c.gate
	c.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (c *controller) take() []sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sent
	c.sent = nil
	return s
}

func begin(c *controller, change func(*Options)) *Assigner {
	c.start = time.Now()
	o := Options{NodeID: 1, Channel: c, Epoch: func() int64 { return 9 }, Wanted: func(model.TopicIDPartition) bool { return true }}
	if change != nil {
		change(&o)
	}
	return New(o)
}

// J-88, J-89, J-94: 100 ms of batching, then one request at a time with at most 2250 reports, more at once.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		a := begin(c, nil)
		defer a.Close()
		a.Report(part(0), d1, false, nil)
		time.Sleep(50 * time.Millisecond)
		a.Report(part(1), d2, false, nil)
		if err := a.WaitIdle(t.Context()); err != nil { // J-62
			t.Fatal(err)
		}
		s := c.take()
		if len(s) != 1 || s[0].at != linger || len(s[0].reports) != 2 || s[0].epoch != 9 {
			t.Fatalf("%+v", s)
		}
		for i := range int32(6000) {
			a.Report(part(i), d1, false, nil)
		}
		if n := a.Pending(); n < 6000-2*maxReports || n > 6000 { // J-66
			t.Error(n)
		}
		if err := a.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s = c.take()
		total := 0
		for _, r := range s {
			if total += len(r.reports); len(r.reports) > maxReports {
				t.Errorf("a request of %d reports", len(r.reports))
			}
		}
		if len(s) < 3 || total != 6000 || s[0].at != linger || s[1].at > 2*linger { // more than a request full: at once
			t.Errorf("%d requests, %d reports, %v", len(s), total, s[0].at)
		}
	})
}

// J-88, J-93: the newest report of a partition wins and every owner is told exactly once.
func TestNewestWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{gate: make(chan struct{})}
		a := begin(c, nil)
		var mu sync.Mutex
		got := map[string]error{}
		owner := func(name string) func(error) {
			return func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if _, twice := got[name]; twice {
					t.Errorf("%s was told twice", name)
				}
				got[name] = err
			}
		}
		a.Report(part(0), d1, false, owner("first"))
		a.Report(part(0), d2, false, owner("second"))
		time.Sleep(time.Second) // the second is on its way
		a.Report(part(0), d1, false, owner("third"))
		a.Report(part(1), d1, false, owner("other"))
		c.mu.Lock()
		c.err = errors.New("lost") // the second has to give way to the third
		c.mu.Unlock()
		close(c.gate)
		synctest.Wait()
		c.mu.Lock()
		c.err = nil
		c.mu.Unlock()
		if err := a.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.Close()
		a.Report(part(5), d1, false, owner("late"))
		mu.Lock()
		defer mu.Unlock()
		want := map[string]error{"first": ErrSuperseded, "second": ErrSuperseded, "third": nil, "other": nil, "late": context.Canceled}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	})
}

// J-89, J-91: whole requests that fail are tried again after 100 ms, 200 ms, … 10 s.
func TestBackoff(t *testing.T) {
	for name, fail := range map[string]func(*controller){
		"stale epoch":    func(c *controller) { c.top = kerr.StaleBrokerEpoch.Code },
		"unknown code":   func(c *controller) { c.top = 999 },
		"no connection":  func(c *controller) { c.err = errors.New("refused") },
		"not controller": func(c *controller) { c.top = kerr.NotController.Code },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &controller{}
			fail(c)
			a := begin(c, nil)
			defer a.Close()
			a.Report(part(0), d1, false, nil)
			time.Sleep(45 * time.Second)
			s := c.take()
			want := []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000}
			if len(s) < len(want) {
				t.Fatalf("%s: %d requests", name, len(s))
			}
			for i, w := range want {
				w *= time.Millisecond
				if got := s[i+1].at - s[i].at; got < w*97/100 || got > w*103/100 {
					t.Errorf("%s: wait %d was %v, want about %v", name, i, got, w)
				}
			}
			c.mu.Lock()
			c.top, c.err = 0, nil
			c.mu.Unlock()
			if err := a.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.take()
			begun := time.Since(c.start)
			a.Report(part(1), d1, false, nil)
			a.WaitIdle(t.Context())
			if s := c.take(); len(s) != 1 || s[0].at-begun != linger {
				t.Errorf("%s: the back-off outlives a success: %+v", name, s)
			}
		})
	}
}

// J-92: one report refused or forgotten is tried again; the directory not known: looked at again; not wanted: dropped.
func TestSingleReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rejected []model.TopicIDPartition
		wanted := map[int32]bool{0: true, 1: true, 2: true, 3: true}
		c := &controller{code: func(tp model.TopicIDPartition, _ model.DirectoryID) int16 {
			switch tp.Partition {
			case 1:
				return kerr.UnknownTopicOrPartition.Code
			case 2:
				return -2
			case 3:
				return kerr.LogDirNotFound.Code
			}
			return 0
		}}
		a := begin(c, func(o *Options) {
			o.Wanted = func(tp model.TopicIDPartition) bool { return wanted[tp.Partition] }
			o.NotFound = func(tp model.TopicIDPartition) { rejected = append(rejected, tp) }
		})
		got := make([]error, 5)
		for i := range got {
			got[i] = errors.New("not told")
			a.Report(part(int32(i)), d1, false, func(err error) { got[i] = err })
		}
		time.Sleep(450 * time.Millisecond)
		if s := c.take(); len(s) != 4 || len(s[0].reports) != 4 || len(s[3].reports) != 2 {
			t.Errorf("%+v", s)
		}
		if len(rejected) != 1 || rejected[0] != part(3) {
			t.Error(rejected)
		}
		delete(wanted, 1)
		delete(wanted, 2)
		if err := a.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.Close()
		want := []error{nil, ErrUnwanted, ErrUnwanted, kerr.LogDirNotFound, ErrUnwanted}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("report %d: %v, want %v", i, got[i], want[i])
			}
		}
	})
}

// J-90: reports about a failed directory go first and at once, in front of 5000 others.
func TestFailedDirGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{gate: make(chan struct{})}
		a := begin(c, nil)
		defer a.Close()
		for i := range int32(5000) {
			a.Report(part(i), d1, false, nil)
		}
		synctest.Wait()
		for i := range int32(3) {
			a.Report(part(6000+i), d2, false, nil)
		}
		a.DirFailed(d2)
		close(c.gate)
		synctest.Wait()
		s := c.take()
		if len(s) < 2 {
			t.Fatal(len(s))
		}
		for i := range 3 {
			if s[1].reports[i].dir != d2 {
				t.Error(s[1].reports[i])
			}
		}
	})
}

func TestUrgentSkipsBatching(t *testing.T) { // J-90
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		a := begin(c, nil)
		defer a.Close()
		a.Report(part(0), model.DirLost, true, nil)
		synctest.Wait()
		if s := c.take(); len(s) != 1 || s[0].at != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// J-72: a controller that never answers: the broker has to stop, 30 s after the directory failed.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{gate: make(chan struct{})}
		stuck := make(chan error, 9)
		a := begin(c, func(o *Options) { o.Stuck = func(err error) { stuck <- err } })
		defer a.Close()
		a.Report(part(0), d1, false, nil)
		a.Report(part(1), d2, false, nil)
		time.Sleep(time.Second)
		a.DirFailed(d2)
		failed := time.Now()
		<-stuck
		if d := time.Since(failed); d != 30*time.Second {
			t.Error(d)
		}
		time.Sleep(10 * time.Minute)
		if len(stuck) > 0 {
			t.Error("told twice")
		}
	})
}

// J-72: acknowledged in time, nothing happens. A directory without reports arms nothing.
func TestNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		a := begin(c, func(o *Options) { o.Stuck = func(err error) { t.Error(err) } })
		defer a.Close()
		a.Report(part(0), d1, false, nil)
		a.DirFailed(d1)
		a.DirFailed(d2)
		time.Sleep(10 * time.Minute)
	})
}

// J-96: what is queued ends with the process, and its owners hear of it.
func TestCloseDropsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{gate: make(chan struct{})}
		a := begin(c, nil)
		told := 0
		a.Report(part(0), d1, false, func(err error) { told++ })
		time.Sleep(time.Second)
		a.Report(part(1), d1, false, func(err error) { told++ })
		a.Close()
		if told != 2 || a.Pending() != 0 {
			t.Error(told, a.Pending())
		}
		if err := a.WaitIdle(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
