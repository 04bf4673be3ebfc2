package actors

import (
	"context"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// TestADispatchKeepsItsTiming: what is changed while a dispatch asks holds from the next one on.
func TestADispatchKeepsItsTiming(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, _ *quay) {
		berth(ctx, s.mem, "p", func(events.ReserveAsk) *events.ReserveAnswer {
			s.SetTiming(Timing{TTL: time.Minute, AttemptTimeout: time.Hour, Cooldown: time.Hour, MaxRetries: 1})
			return nil // it never answers
		})
		berth(ctx, s.mem, "q", func(q events.ReserveAsk) *events.ReserveAnswer {
			if q.TTLMs != 30_000 {
				t.Errorf("asked for %d ms", q.TTLMs)
			}
			return promisedBy(q, "q")
		})
		s.beatOf(t, ctx, "p", 30)
		s.beatOf(t, ctx, "q", 20)
		began := time.Now()
		if won, ok := s.best(ctx); !won || !ok {
			t.Fatalf("won %v, ok %v", won, ok)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("took %s: the dispatch waits as long as it did when it began", took)
		}
		if got := s.view.Player(steve).Active.Reserved.TTLMs; got != 30_000 {
			t.Errorf("the token lives %d ms", got)
		}
		if cooling := s.runs.excluded(&run{}, s.Now().Add(3*time.Second)); cooling["p"] != "" {
			t.Error("p cools down for longer than the dispatch was told")
		}
		if again := s.runs.get(first, *s.timing.Load(), s.view.Fleet(), s.Now()); again.timing.TTL != 30*time.Second {
			t.Errorf("the dispatch has another timing: %+v", again.timing)
		}
		s.runs.end(first)
		if next := s.runs.get(first, *s.timing.Load(), s.view.Fleet(), s.Now()); next.timing.TTL != time.Minute || next.timing.MaxRetries != 1 {
			t.Errorf("the next dispatch goes by %+v", next.timing)
		}
	})
}

// TestTimingsChange: the next decision goes by the new lengths, and zero is the default again.
func TestTimingsChange(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, _ context.Context, s *seer) {
		s.holdsSession(t)
		later := func() act {
			w := s.watch()
			w.now = w.now.Add(20 * time.Second)
			heard := *w.fleet
			heard.Heard = w.now
			w.fleet = &heard
			return plan(s.standing(steve), w)
		}
		if got := say(later()); got != "dispatch" {
			t.Fatalf("without an end: %s", got)
		}
		s.SetTiming(Timing{MaxAge: 10 * time.Second})
		if got := say(later()); got != "cancel "+string(events.AgedOut) {
			t.Errorf("with an end after 10 s: %s", got)
		}
		s.SetTiming(Timing{})
		if got := say(later()); got != "dispatch" {
			t.Errorf("without an end again: %s", got)
		}
		if got, want := *s.timing.Load(), (Timing{}).WithDefaults(); got != want {
			t.Errorf("timing %+v, want %+v", got, want)
		}
	})
}

// TestABackendGoesByANewTiming: what is not given is the default.
func TestABackendGoesByANewTiming(t *testing.T) {
	b, err := NewBackend(backendConfig(t, streamtest.NewMemory()))
	if err != nil {
		t.Fatal(err)
	}
	b.SetTiming(Timing{Stale: time.Minute})
	if got := b.timing.Load(); got.Stale != time.Minute || got.TTL != 30*time.Second {
		t.Errorf("timing %+v", got)
	}
}
