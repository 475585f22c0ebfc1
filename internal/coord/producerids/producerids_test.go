package producerids

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"samsa/internal/base/kerr"
)

// K-171: ids of consecutive blocks, each once, and the next block is asked for before the first is used up.
func TestIDsAreUniqueAcrossBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := 0
		ids := New(Options{Allocate: func(context.Context) (Block, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return Block{First: int64(asked) * 10_000, Length: 1000}, nil
		}})
		defer ids.Close()
		seen := map[int64]bool{}
		for range 2500 {
			ids.Next(func(id int64, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[id] {
					t.Errorf("id %d, %v, seen before: %v", id, err, seen[id])
				}
				seen[id] = true
			})
			synctest.Wait()
		}
		if len(seen) != 2500 || asked != 3 {
			t.Errorf("%d ids from %d blocks", len(seen), asked)
		}
	})
}

// A controller that is away makes callers wait, not fail, until their time is up.
func TestControllerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		ids := New(Options{Allocate: func(context.Context) (Block, error) {
			if away.Load() {
				return Block{}, errors.New("nobody there")
			}
			return Block{First: 5, Length: 10}, nil
		}, Timeout: 10 * time.Second})
		defer ids.Close()
		var first, second error
		var id int64
		ids.Next(func(_ int64, err error) { first = err })
		time.Sleep(9 * time.Second)
		ids.Next(func(got int64, err error) { id, second = got, err })
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if !errors.Is(first, kerr.CoordinatorLoadInProgress) {
			t.Errorf("after 12 s the first caller has %v", first)
		}
		away.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if second != nil || id != 5 {
			t.Errorf("the second caller has %d, %v", id, second)
		}
	})
}

func TestCloseAnswersWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := New(Options{Allocate: func(ctx context.Context) (Block, error) {
			<-ctx.Done()
			return Block{}, context.Cause(ctx)
		}})
		var got error
		ids.Next(func(_ int64, err error) { got = err })
		ids.Close()
		if !errors.Is(got, kerr.CoordinatorNotAvailable) {
			t.Errorf("got %v", got)
		}
	})
}

func TestABadBlockIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		ids := New(Options{Allocate: func(context.Context) (Block, error) {
			return Block{First: 7, Length: n.Add(1) - 1}, nil
		}})
		defer ids.Close()
		var got int64
		ids.Next(func(id int64, err error) { got = id })
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got != 7 || n.Load() < 2 {
			t.Errorf("id %d after %d allocations", got, n.Load())
		}
	})
}
