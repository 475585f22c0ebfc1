package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// controller is a scripted controller: it notes what it is sent and answers as reply says.
type controller struct {
	mu    sync.Mutex
	start time.Time
	log   []string
	reply func(n int, req protocol.Request) (protocol.Response, error)
	n     int
	last  protocol.Request
}

func (c *controller) Send(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	if v, ok := req.(interface {
		At(int16) protocol.Request
	}); ok {
		req = v.At(4)
	}
	c.mu.Lock()
	c.n++
	n := c.n
	c.last = req
	at := time.Since(c.start).Milliseconds()
	switch r := req.(type) {
	case *protocol.BrokerRegistrationRequest:
		c.log = append(c.log, fmt.Sprintf("%d register prev=%d dirs=%d", at, r.PreviousBrokerEpoch, len(r.LogDirs)))
	case *protocol.BrokerHeartbeatRequest:
		s := fmt.Sprintf("%d beat epoch=%d offset=%d", at, r.BrokerEpoch, r.CurrentMetadataOffset)
		if r.WantFence {
			s += " fence"
		}
		if r.WantShutDown {
			s += " shutdown"
		}
		if len(r.OfflineLogDirs) > 0 {
			s += fmt.Sprintf(" offline=%d", len(r.OfflineLogDirs))
		}
		if r.CordonedLogDirs != nil {
			s += fmt.Sprintf(" cordoned=%d", len(r.CordonedLogDirs))
		}
		c.log = append(c.log, s)
	}
	reply := c.reply
	c.mu.Unlock()
	resp, err := reply(n, req)
	if err == errSilent {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return resp, err
}

var errSilent = errors.New("no answer")

func (c *controller) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := strings.Join(c.log, "\n")
	c.log = nil
	return s
}

func (c *controller) script(f func(n int, req protocol.Request) (protocol.Response, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reply = f
}

// kind answers every registration with epoch 7 and every heartbeat with the flags given.
func kind(caughtUp, fenced, leave bool) func(int, protocol.Request) (protocol.Response, error) {
	return func(_ int, req protocol.Request) (protocol.Response, error) {
		if _, ok := req.(*protocol.BrokerRegistrationRequest); ok {
			return &protocol.BrokerRegistrationResponse{BrokerEpoch: 7}, nil
		}
		r := req.(*protocol.BrokerHeartbeatRequest)
		return &protocol.BrokerHeartbeatResponse{IsCaughtUp: caughtUp, IsFenced: fenced || r.WantFence, ShouldShutDown: leave && r.WantShutDown}, nil
	}
}

var d1, d2, d3 = model.DirectoryID{0x80, 1}, model.DirectoryID{2}, model.DirectoryID{3}

func begin(c *controller) *Lifecycle {
	c.start = time.Now()
	return Start(Options{NodeID: 1, ClusterID: "c", PreviousEpoch: -1, Channel: c,
		OnlineDirs:     func() []model.DirectoryID { return []model.DirectoryID{d2, d1} },
		MetadataOffset: func() int64 { return 42 }})
}

func running(t *testing.T, c *controller) *Lifecycle {
	t.Helper()
	c.script(kind(true, false, true))
	l := begin(c)
	l.Ready()
	if err := l.WaitUnfenced(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.take()
	return l
}

// K-178, K-179, K-180: register, heartbeats every 10 ms until caught up, every 2 s until ready, at once when ready.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		c.script(func(n int, req protocol.Request) (protocol.Response, error) {
			return kind(n >= 4, false, false)(n, req)
		})
		l := begin(c)
		defer l.Close()
		if l.State() != Starting || l.Epoch() != -1 {
			t.Error(l.State(), l.Epoch())
		}
		if err := l.WaitCaughtUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.State() != Recovery || l.Epoch() != 7 {
			t.Error(l.State(), l.Epoch())
		}
		time.Sleep(3 * time.Second)
		l.Ready()
		if err := l.WaitUnfenced(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.State() != Running {
			t.Error(l.State())
		}
		time.Sleep(5 * time.Second)
		want := `0 register prev=-1 dirs=2
0 beat epoch=7 offset=42 fence
10 beat epoch=7 offset=42 fence
20 beat epoch=7 offset=42 fence
30 beat epoch=7 offset=42 fence
2030 beat epoch=7 offset=42 fence
3020 beat epoch=7 offset=42
5020 beat epoch=7 offset=42
7020 beat epoch=7 offset=42`
		if got := c.take(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// J-49: ids are sorted as signed numbers. K-131: an old controller does not see features whose minimum is 0.
func TestRegistrationContent(t *testing.T) {
	l := &Lifecycle{o: Options{NodeID: 3, OnlineDirs: func() []model.DirectoryID { return []model.DirectoryID{d3, d1, d2} },
		Features:  []Feature{{"metadata.version", 7, 33}, {"group.version", 0, 1}},
		Listeners: []Listener{{"PLAINTEXT", "h", 9092, 0}}, PreviousEpoch: 5}}
	r := &registration{l.registrationRequest()}
	if !slices.Equal(r.LogDirs, []model.UUID{model.UUID(d1), model.UUID(d2), model.UUID(d3)}) {
		t.Error(r.LogDirs)
	}
	if n := len(r.At(4).(*protocol.BrokerRegistrationRequest).Features); n != 2 {
		t.Errorf("%d features at version 4", n)
	}
	old := r.At(3).(*protocol.BrokerRegistrationRequest)
	if len(old.Features) != 1 || old.Features[0].Name != "metadata.version" || old.PreviousBrokerEpoch != 5 {
		t.Errorf("%+v", old)
	}
	if _, err := old.Append(nil, 3); err != nil {
		t.Error(err)
	}
}

// J-53, K-181: every refusal is retried after the interval, without back-off; 60 s without success is fatal.
func TestRegistrationRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		c.script(func(int, protocol.Request) (protocol.Response, error) {
			return &protocol.BrokerRegistrationResponse{ErrorCode: kerr.DuplicateBrokerRegistration.Code, BrokerEpoch: -1}, nil
		})
		l := begin(c)
		defer l.Close()
		err := <-l.Fatal()
		if d := time.Since(c.start); d != time.Minute {
			t.Errorf("fatal after %v: %v", d, err)
		}
		if got := strings.Count(c.take(), "register"); got < 30 || got > 31 {
			t.Errorf("%d attempts", got)
		}
		// It goes on trying while the process is on its way out, and is told nothing twice.
		c.script(kind(true, false, false))
		l.Ready()
		if err := l.WaitUnfenced(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// K-181: a broker that was unregistered goes on with its epoch, every interval.
func TestHeartbeatErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		l := running(t, c)
		defer l.Close()
		c.script(func(int, protocol.Request) (protocol.Response, error) {
			return &protocol.BrokerHeartbeatResponse{ErrorCode: kerr.StaleBrokerEpoch.Code, IsFenced: true}, nil
		})
		time.Sleep(7 * time.Second)
		if got := c.take(); strings.Count(got, "beat epoch=7") != 3 || strings.Contains(got, "register") {
			t.Error(got)
		}
		if l.State() != Running {
			t.Error(l.State())
		}
		// K-117, J-51: the same incarnation, on demand; J-50: the directories of now.
		c.script(kind(true, false, false))
		l.Reregister()
		synctest.Wait()
		if got := c.take(); !strings.Contains(got, "register prev=-1 dirs=2") || !strings.Contains(got, "beat") {
			t.Error(got)
		}
	})
}

// J-67..J-70, J-77, K-182: failed directories are told at once, then in every heartbeat, and count as told only when a
// heartbeat that listed them was answered.
func TestDirFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		l := running(t, c)
		defer l.Close()
		time.Sleep(500 * time.Millisecond)
		gate := make(chan struct{})
		c.script(func(n int, req protocol.Request) (protocol.Response, error) {
			<-gate
			return kind(true, false, false)(n, req)
		})
		l.DirFailed(d2)
		synctest.Wait()
		if got := c.take(); !strings.Contains(got, "offline=1") {
			t.Error("not told at once:", got)
		}
		l.DirFailed(d3) // while the heartbeat is on its way
		l.DirFailed(d3)
		close(gate)
		synctest.Wait()
		if got := c.take(); !strings.Contains(got, "offline=2") {
			t.Error("the second one is not told right after:", got)
		}
		time.Sleep(5 * time.Second)
		if got := c.take(); strings.Count(got, "offline=2") != 2 {
			t.Error("the list is cumulative:", got)
		}
		select {
		case err := <-l.Fatal():
			t.Fatal(err)
		case <-time.After(time.Minute):
		}
	})
}

// J-70, J-71: a directory that failed while a heartbeat was on its way is not told by that one; nobody hears of it.
func TestDirFailureUntold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		l := running(t, c)
		defer l.Close()
		first := true
		c.script(func(n int, req protocol.Request) (protocol.Response, error) {
			if first {
				first = false
				time.Sleep(1500 * time.Millisecond)
				return kind(true, false, false)(n, req)
			}
			return nil, errSilent
		})
		l.DirFailed(d2)
		time.Sleep(time.Second)
		l.DirFailed(d3)
		failed := time.Now()
		err := <-l.Fatal()
		var untold *DirUntoldError
		if !errors.As(err, &untold) || untold.Dir != d3 {
			t.Fatal(err)
		}
		if d := time.Since(failed); d < 30*time.Second || d > 33*time.Second {
			t.Errorf("fatal after %v", d)
		}
	})
}

// K-180, K-183: a controlled shutdown asks again 50 ms after the first "wait", then four times a second.
func TestControlledShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		l := running(t, c)
		defer l.Close()
		n0 := c.n
		c.script(func(n int, req protocol.Request) (protocol.Response, error) {
			return kind(true, false, n > n0+3)(n, req)
		})
		start := time.Now()
		if err := l.ControlledShutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 550*time.Millisecond {
			t.Errorf("took %v\n%s", d, c.take())
		}
		if l.State() != ShuttingDown {
			t.Error(l.State())
		}
		if err := l.ControlledShutdown(t.Context()); err != nil { // again: nothing to ask for
			t.Error(err)
		}
	})
}

// Nobody left to say yes: all nodes of a combined cluster stop at once. Kafka waits for five minutes.
func TestControlledShutdownWithoutController(t *testing.T) {
	for name, answer := range map[string]error{"silent": errSilent, "refused": errors.New("connection refused")} {
		synctest.Test(t, func(t *testing.T) {
			c := &controller{}
			l := running(t, c)
			defer l.Close()
			c.script(func(int, protocol.Request) (protocol.Response, error) { return nil, answer })
			start := time.Now()
			err := l.ControlledShutdown(context.Background())
			if d := time.Since(start); err == nil || d < noControllerGrace || d > noControllerGrace+3*time.Second {
				t.Errorf("%s: %v after %v", name, err, d)
			}
		})
	}
}

// The controller says wait for ever: five minutes, or as long as the caller gives.
func TestControlledShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		l := running(t, c)
		defer l.Close()
		c.script(kind(true, false, false))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.ControlledShutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		start := time.Now()
		if err := l.ControlledShutdown(t.Context()); err == nil || time.Since(start) > 5*time.Minute {
			t.Error(err, time.Since(start))
		}
	})
}

// K-183: any other state skips the wait; a stop while starting ends at once.
func TestStopWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		c.script(func(int, protocol.Request) (protocol.Response, error) { return nil, errSilent })
		l := begin(c)
		synctest.Wait()
		start := time.Now()
		if err := l.ControlledShutdown(t.Context()); err != nil {
			t.Error(err)
		}
		l.Close()
		if time.Since(start) != 0 {
			t.Error(time.Since(start))
		}
		if err := l.WaitUnfenced(context.Background()); err == nil {
			t.Error("unfenced after the end")
		}
		if l.State() != ShuttingDown {
			t.Error(l.State())
		}
	})
}

// J-174, J-181: cordoned directories are in every heartbeat once caught up, as an empty list mostly.
func TestCordoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		c.script(kind(true, false, false))
		c.start = time.Now()
		supported := false
		l := Start(Options{Channel: c, OnlineDirs: func() []model.DirectoryID { return nil }, MetadataOffset: func() int64 { return 1 },
			CordonedDirs: func() ([]model.DirectoryID, bool) { return []model.DirectoryID{}, supported }})
		defer l.Close()
		if err := l.WaitCaughtUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.take(); strings.Contains(got, "cordoned") {
			t.Error(got)
		}
		supported = true
		l.CordonChanged()
		synctest.Wait()
		if got := c.take(); !strings.Contains(got, "cordoned=0") {
			t.Error(got)
		}
	})
}

// J-62, J-64: the first unfencing waits for the reports of directories; later ones do not matter.
func TestUnfencingWaitsForReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{start: time.Now()}
		c.script(kind(true, false, false))
		var unreported atomic.Int32
		unreported.Store(5)
		l := Start(Options{Channel: c, OnlineDirs: func() []model.DirectoryID { return nil }, MetadataOffset: func() int64 { return 1 },
			Unreported: func() int { return int(unreported.Load()) }})
		defer l.Close()
		l.Ready()
		time.Sleep(10 * time.Second)
		if l.State() != Recovery {
			t.Fatal(l.State())
		}
		c.take()
		unreported.Store(0)
		at := time.Now()
		if err := l.WaitUnfenced(t.Context()); err != nil || time.Since(at) > 100*time.Millisecond {
			t.Fatal(err, time.Since(at))
		}
		unreported.Store(1)
		c.take()
		time.Sleep(5 * time.Second)
		if got := c.take(); strings.Contains(got, "fence") {
			t.Error(got)
		}
	})
}
