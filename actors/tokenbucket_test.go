package actors

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
)

// passing is how many of n acts pass at once.
func (b *tokenBucket) passing(now time.Time, n int) (passed int) {
	for range n {
		if b.take(now) {
			passed++
		}
	}
	return passed
}

// TestTokenBucket: the first ones pass up to its size, then as many as the rate lets in.
func TestTokenBucket(t *testing.T) {
	var b tokenBucket
	if n := b.passing(t0, 1000); n != 1000 {
		t.Errorf("%d pass without a limit", n)
	}
	b.set(t0, 5, 10)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 10}, {0, 0}, {199 * time.Millisecond, 0}, {200 * time.Millisecond, 1}, {time.Second, 4}, {time.Second, 0}, {time.Hour, 10}, {time.Hour, 0}, {0, 0}, {time.Hour + 200*time.Millisecond, 10}} {
		if n := b.passing(t0.Add(step.after), 100); n != step.want {
			t.Errorf("%d pass after %s, want %d", n, step.after, step.want)
		}
	}
}

// TestTokenBucketChanges while it is in use: nobody gets a full one for it.
func TestTokenBucketChanges(t *testing.T) {
	var b tokenBucket
	b.set(t0, 1, 4)
	b.passing(t0, 3)
	b.set(t0, 100, 50)
	if n := b.passing(t0, 100); n != 1 {
		t.Errorf("%d pass after a wider bucket", n)
	}
	if n := b.passing(t0.Add(time.Second), 100); n != 50 {
		t.Errorf("%d pass a second later", n)
	}
	b.set(t0.Add(2*time.Second), 1, 2)
	if n := b.passing(t0.Add(2*time.Second), 100); n != 2 {
		t.Errorf("%d pass after a narrower bucket", n)
	}
	b.set(t0.Add(2*time.Second), 0, 0)
	if n := b.passing(t0.Add(2*time.Second), 100); n != 100 {
		t.Errorf("%d pass without a limit", n)
	}
	b.set(t0.Add(2*time.Second), 1, 0)
	if n := b.passing(t0.Add(2*time.Second), 100); n != 1 {
		t.Errorf("%d pass a bucket without a size", n)
	}
}

// TestTokenBucketIsShared: it never lets one too many through.
func TestTokenBucketIsShared(t *testing.T) {
	var b tokenBucket
	b.set(t0, 1, 7)
	var all sync.WaitGroup
	var passed atomic.Int64
	for range 8 {
		all.Go(func() { passed.Add(int64(b.passing(t0, 10))) })
	}
	all.Wait()
	if passed.Load() != 7 {
		t.Errorf("%d passed of 7", passed.Load())
	}
}

// TestRequestsOfABackend are bounded: who is too many is told so, and nobody else is asked.
func TestRequestsOfABackend(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		var asked atomic.Int64
		client := s.mem.Client("e1")
		go func() {
			_ = client.Serve(ctx, events.AskOf("b", events.VerbRequest), dispatcherQueue, func() {}, answerWith(identity(events.SourceEdge, "e1"), fromBackend(events.VerbRequest), refuseRequest,
				func(context.Context, events.HostID, events.RequestAsk) events.RequestAnswer {
					asked.Add(1)
					return events.RequestAnswer{Code: events.Accepted, Place: 1}
				}))
		}()
		synctest.Wait()
		ask := func(n int) (refused int) {
			before := len(s.ground.texts())
			for range n {
				s.Asked(s.comes().Player, "")
			}
			synctest.Wait()
			for _, text := range s.ground.texts()[before:] {
				if strings.HasPrefix(text, "Too much is asked for") {
					refused++
				}
			}
			return refused
		}
		if n := ask(20); n != 0 || asked.Load() != 20 {
			t.Errorf("%d refused without a limit", n)
		}
		s.SetRequestRate(1, 3)
		if n := ask(5); n != 2 || asked.Load() != 23 {
			t.Errorf("%d of 5 refused, %d asked", n, asked.Load()-20)
		}
		passTime(2 * time.Second)
		s.Asked(s.comes().Player, "no:such:place") // is no request
		synctest.Wait()
		if n := ask(3); n != 1 {
			t.Errorf("%d of 3 refused two seconds later", n)
		}
		if !slices.ContainsFunc(s.ground.texts(), func(text string) bool { return strings.Contains(text, "no:such:place") }) {
			t.Error("a place that is none is not named")
		}
	})
}
