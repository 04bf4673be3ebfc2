package actors

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// berth answers for one destination with what a test says; nil keeps silent for as
// long as the test runs.
func berth(ctx context.Context, mem *streamtest.Memory, id events.HostID, answer func(a events.ReserveAsk) *events.ReserveAnswer) {
	who, client := identity(events.SourceBackend, id), mem.Client(string(id))
	go func() {
		_ = client.Serve(ctx, events.ToBackend(id, events.VerbReserve), "", func() {}, answerWith(who, fromDispatcher, refuseReserve,
			func(_ context.Context, _ events.HostID, q events.ReserveAsk) events.ReserveAnswer {
				if a := answer(q); a != nil {
					return *a
				}
				<-ctx.Done()
				return events.ReserveAnswer{Code: events.NotReady}
			}))
	}()
}

// beatOf puts a destination's heartbeat into the log and waits until it is folded.
func (s *seer) beatOf(t *testing.T, ctx context.Context, id events.HostID, kept int) {
	t.Helper()
	beat := destination(id, kept).BackendBeat
	if _, err := s.mem.Client(string(id)).Append(ctx, streamtest.Fact(t, events.BackendKey(id), 0, &beat)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "heartbeat of "+string(id), func() bool { return s.view.Fleet().Backend(id) != nil })
}

func promisedBy(q events.ReserveAsk, id events.HostID) *events.ReserveAnswer {
	return &events.ReserveAnswer{
		Code: events.Promised, Server: id, Incarnation: lifeOf(id), Promise: uint64(q.Attempt), Region: "wild", At: reserved(1).At, //nolint:gosec // small
	}
}

// TestRetryChain: who refuses or keeps silent is followed by the next of the same snapshot; a
// server that came meanwhile is not looked at, and the one at fault cools down.
func TestRetryChain(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		s.tasks.begin(ctx)
		var mu sync.Mutex
		var order []events.HostID
		asked := func(id events.HostID) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, id)
		}
		berth(ctx, s.mem, "p", func(events.ReserveAsk) *events.ReserveAnswer {
			asked("p")
			s.beatOf(t, ctx, "late", 64) // the best of all, too late for this dispatch
			return &events.ReserveAnswer{Code: events.NotReady}
		})
		berth(ctx, s.mem, "q", func(events.ReserveAsk) *events.ReserveAnswer {
			asked("q")
			return nil
		})
		berth(ctx, s.mem, "r", func(q events.ReserveAsk) *events.ReserveAnswer {
			asked("r")
			return promisedBy(q, "r")
		})
		s.beatOf(t, ctx, "p", 30)
		s.beatOf(t, ctx, "q", 20)
		s.beatOf(t, ctx, "r", 10)
		began := time.Now()
		if won, ok := s.best(ctx); !won || !ok {
			t.Fatalf("won %v, ok %v", won, ok)
		}
		if took := time.Since(began); took < s.timing.Load().AttemptTimeout || took > s.timing.Load().AttemptTimeout+time.Second {
			t.Errorf("took %s: the silent one is given up after %s", took, s.timing.Load().AttemptTimeout)
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(order, []events.HostID{"p", "q", "r"}) {
			t.Errorf("asked %v", order)
		}
		d := s.view.Player(steve).Active.Reserved.Decision
		if len(d.Candidates) != 1 || d.Candidates[0].Server != "r" {
			t.Errorf("decided %+v", d)
		}
		for code, id := range map[events.Code]events.HostID{events.NotReady: "p", events.NoAnswer: "q"} {
			if !slices.ContainsFunc(d.Filtered, func(f events.Filtered) bool { return f.Code == code && slices.Contains(f.Examples, string(id)) }) {
				t.Errorf("the decision does not say %s of %s: %+v", code, id, d.Filtered)
			}
		}
		cooling := s.runs.excluded(&run{}, s.Now())
		if cooling["p"] != events.OnCooldown || cooling["q"] != events.OnCooldown || cooling["r"] != "" {
			t.Errorf("cooling down: %v", cooling)
		}
	})
}

// TestRetriesEnd: after maxRetries reservations that came to nothing a dispatch asks nobody any more.
func TestRetriesEnd(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, q *quay) {
		r := s.runs.get(first, *s.timing.Load(), s.view.Fleet(), s.Now())
		r.attempts = s.timing.Load().MaxRetries
		s.dispatch(ctx, s.standing(steve), *s.timing.Load())
		if q.asked != 0 {
			t.Errorf("asked %d times after the last attempt", q.asked)
		}
		if now := s.view.Player(steve).Active; now == nil || now.Attempts != 0 || !now.Waitlisted {
			t.Errorf("the transfer waits in line: %+v", now)
		}
	})
}

// TestCooldownEndsWithTheLifeThatFailed: a server that has begun anew is not what failed.
func TestCooldownEndsWithTheLifeThatFailed(t *testing.T) {
	var r runs
	r.init()
	until := t0.Add(time.Minute)
	r.coolDown("a", cooldown{until: until, life: lifeOf("old")})
	r.coolDown("b", cooldown{until: until})
	for _, id := range []events.HostID{"a", "b"} {
		r.beats(id, lifeOf("old"))
		if got := r.excluded(&run{}, t0)[id]; got != events.OnCooldown {
			t.Errorf("%s, the same life: %q", id, got)
		}
		r.beats(id, lifeOf("new"))
	}
	if got := r.excluded(&run{}, t0); got["a"] != "" || got["b"] != events.OnCooldown {
		t.Errorf("another life: %v", got)
	}
}
