package actors

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

func crew(ctx context.Context, attend func(context.Context, events.PlayerID)) (*workers, chan error) {
	w := &workers{}
	w.init()
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx, attend) }()
	return w, ended
}

// TestWorkersOneAtATime: a player is attended to by one goroutine at a time; different
// players do not wait for each other.
func TestWorkersOneAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, _ *streamtest.Memory) {
		var mu sync.Mutex
		at, most, visits := map[events.PlayerID]int{}, 0, 0
		w, _ := crew(ctx, func(_ context.Context, p events.PlayerID) {
			mu.Lock()
			at[p]++
			visits++
			if at[p] > 1 {
				t.Error("two attend to one player")
			}
			most = max(most, len(at))
			mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			if at[p]--; at[p] == 0 {
				delete(at, p)
			}
			mu.Unlock()
		})
		for range 20 {
			for n := range 8 {
				w.add(num[events.PlayerID](byte(n))) //nolint:gosec // small
			}
			time.Sleep(time.Millisecond)
		}
		eventually(t, "all done", func() bool { return w.busy() == 0 })
		if most != 8 {
			t.Errorf("%d players at once, want 8", most)
		}
		if visits < 16 || visits > 8*4 {
			t.Errorf("%d visits", visits)
		}
	})
}

// TestWorkersAgain: what is added while a player is attended to leads to one more visit, not
// to as many as were added.
func TestWorkersAgain(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, _ *streamtest.Memory) {
		var visits atomic.Int32
		open := make(chan struct{})
		w, _ := crew(ctx, func(context.Context, events.PlayerID) {
			if visits.Add(1) == 1 {
				<-open
			}
		})
		w.add(steve)
		synctest.Wait()
		for range 5 {
			w.add(steve)
		}
		synctest.Wait()
		if n := visits.Load(); n != 1 || w.busy() != 1 {
			t.Errorf("%d visits under way, %d busy", n, w.busy())
		}
		close(open)
		synctest.Wait()
		if n := visits.Load(); n != 2 || w.busy() != 0 {
			t.Errorf("%d visits, %d busy; want 2 and none", n, w.busy())
		}
	})
}

// TestWorkersEnd: run returns when the last attendance has, with its context's error.
func TestWorkersEnd(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, _ *streamtest.Memory) {
		ctx, cancel := context.WithCancel(ctx)
		open := make(chan struct{})
		w, ended := crew(ctx, func(context.Context, events.PlayerID) { <-open })
		w.add(steve)
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("run returned while somebody was attended to")
		default:
		}
		close(open)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		w.add(steve) // nobody is there any more: it must not block
	})
}

// TestWorkersBound: no more than maxWorkers at once; the rest waits, and is not lost.
func TestWorkersBound(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, _ *streamtest.Memory) {
		var now, most, all atomic.Int32
		w, _ := crew(ctx, func(context.Context, events.PlayerID) {
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(time.Second)
			now.Add(-1)
			all.Add(1)
		})
		for n := range maxWorkers + 100 {
			w.add(events.PlayerID{byte(n), byte(n >> 8)}) //nolint:gosec // the two halves of a number
		}
		eventually(t, "all done", func() bool { return w.busy() == 0 })
		if most.Load() != maxWorkers || all.Load() != maxWorkers+100 {
			t.Errorf("%d at once, %d in all; want %d and %d", most.Load(), all.Load(), maxWorkers, maxWorkers+100)
		}
	})
}

// TestWakers: a wait ends with the fold that makes its condition true, at once when it is
// true already, and with its context; nothing is left behind.
func TestWakers(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, _ *streamtest.Memory) {
		w := &wakers{}
		w.init()
		if !w.until(ctx, steve, func() bool { return true }) {
			t.Error("a true condition is waited for")
		}
		var level atomic.Int32
		results := make(chan bool, 3)
		for want := range int32(3) {
			go func() { results <- w.until(ctx, steve, func() bool { return level.Load() > want }) }()
		}
		synctest.Wait()
		w.wake(events.OfflinePlayer("Alex"))
		for n := range int32(3) {
			level.Store(n + 1)
			w.wake(steve)
			synctest.Wait()
			if len(results) != int(n+1) {
				t.Errorf("%d waits ended at level %d", len(results), n+1)
			}
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if w.until(short, steve, func() bool { return false }) {
			t.Error("a false condition held")
		}
		if len(w.chans) != 0 {
			t.Errorf("%d waits are left", len(w.chans))
		}
	})
}

// TestWakersLastLook: what became true together with the end of the context counts.
func TestWakersLastLook(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, _ *streamtest.Memory) {
		w := &wakers{}
		w.init()
		ended, cancel := context.WithCancel(ctx)
		looks := 0
		if !w.until(ended, steve, func() bool { looks++; cancel(); return looks > 1 }) {
			t.Error("the last look was not taken")
		}
	})
}
