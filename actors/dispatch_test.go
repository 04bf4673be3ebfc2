package actors

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// quay answers for destination b: the same promise for the same attempt, as a backend does.
type quay struct {
	mu       sync.Mutex
	asked    int
	released []events.ReleaseAsk
	before   func(asked int) // the answer leaves
}

func (q *quay) serve(ctx context.Context, mem *streamtest.Memory) {
	who, client := identity(events.SourceBackend, "b"), mem.Client("b")
	go func() {
		_ = client.Serve(ctx, events.ToBackend("b", events.VerbReserve), "", func() {}, answerWith(who, fromDispatcher, refuseReserve,
			func(_ context.Context, _ events.HostID, a events.ReserveAsk) events.ReserveAnswer {
				q.mu.Lock()
				q.asked++
				n := q.asked
				q.mu.Unlock()
				if q.before != nil {
					q.before(n)
				}
				return events.ReserveAnswer{
					Code: events.Promised, Server: "b", Incarnation: who.Source.Incarnation, Promise: uint64(a.Attempt), Region: "wild", //nolint:gosec // small
					At: reserved(1).At,
				}
			}))
	}()
	go func() {
		_ = client.Serve(ctx, events.ToBackend("b", events.VerbRelease), "", func() {}, answerWith(who, fromDispatcher, refusePlain,
			func(_ context.Context, _ events.HostID, a events.ReleaseAsk) events.Answer {
				q.mu.Lock()
				defer q.mu.Unlock()
				q.released = append(q.released, a)
				return events.Answer{Code: events.OK}
			}))
	}()
}

func (q *quay) releases() []events.ReleaseAsk {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.released)
}

// dispatching runs a test body with a dispatcher that holds the player, and destination b.
func dispatching(t *testing.T, body func(t *testing.T, ctx context.Context, s *seer, q *quay)) {
	t.Helper()
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		s.tasks.begin(ctx)
		q := &quay{}
		q.serve(ctx, s.mem)
		beat := destination("b", 4).BackendBeat
		if _, err := s.mem.Client("b").Append(ctx, streamtest.Fact(t, events.BackendKey("b"), 0, &beat)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "heartbeat folded", func() bool { return s.view.Fleet().Backend("b") != nil })
		body(t, ctx, s, q)
	})
}

// best reserves for the player's transfer as the dispatcher does.
func (s *seer) best(ctx context.Context) (won, ok bool) {
	st := s.standing(steve)
	won, _, ok = s.reserveBest(ctx, st, s.runs.get(first, *s.timing.Load(), s.view.Fleet(), s.Now()), false)
	return won, ok
}

func TestReserveBest(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, q *quay) {
		if won, ok := s.best(ctx); !won || !ok {
			t.Fatalf("won %v, ok %v", won, ok)
		}
		now := s.view.Player(steve).Active
		if now.Phase != projections.Pending || now.Reserved.Server != "b" || now.Reserved.Answer == "" || now.Reserved.TTLMs != 30_000 {
			t.Errorf("reserved %+v", now.Reserved)
		}
		if d := now.Reserved.Decision; len(d.Candidates) != 1 || d.Candidates[0].Server != "b" {
			t.Errorf("decision %+v", d)
		}
		synctest.Wait()
		if len(q.releases()) != 0 {
			t.Errorf("given back: %+v", q.releases())
		}
	})
}

// TestReserveLosesToAnotherServer: of two reserves at once one lands, and the other
// coordinate goes back.
func TestReserveLosesToAnotherServer(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, q *quay) {
		q.before = func(int) {
			f := reserved(1)
			f.Server, f.Incarnation = "c", lifeOf("c")
			s.put(t, f)
		}
		if won, ok := s.best(ctx); won || ok {
			t.Errorf("won %v, ok %v", won, ok)
		}
		synctest.Wait()
		want := events.ReleaseAsk{Player: steve, Transfer: first, Attempt: 1, Incarnation: lifeOf("b"), Promise: 1, Reason: events.LostRace}
		if got := q.releases(); len(got) != 1 || got[0] != want {
			t.Errorf("given back %+v, want %+v", got, want)
		}
	})
}

// TestReserveLosesToTheSamePromise: another dispatcher got the same promise for the same
// attempt and was faster: giving "ours" back would take it from the one that stands.
func TestReserveLosesToTheSamePromise(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, q *quay) {
		q.before = func(int) { s.put(t, reserved(1)) }
		if won, ok := s.best(ctx); won || ok {
			t.Errorf("won %v, ok %v", won, ok)
		}
		synctest.Wait()
		if got := q.releases(); len(got) != 0 {
			t.Errorf("the promise that stands in the log was given back: %+v", got)
		}
	})
}

// TestReserveRefusedGivesBack: a promise that was got just before a kill is not kept.
func TestReserveRefusedGivesBack(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, q *quay) {
		q.before = func(int) { s.kill(t) }
		if won, ok := s.best(ctx); won || ok {
			t.Errorf("won %v, ok %v", won, ok)
		}
		synctest.Wait()
		if got := q.releases(); len(got) != 1 {
			t.Errorf("given back %+v, want the promise", got)
		}
	})
}

// TestReserveUnknownKeepsThePromise: a fact that may have landed must find its promise.
func TestReserveUnknownKeepsThePromise(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, q *quay) {
		short, cancel := context.WithCancel(ctx)
		defer cancel()
		s.log.before = func(int, events.Message) {
			s.log.FailAppend(events.Unknown, 1)
			cancel()
		}
		if won, ok := s.best(short); won || ok {
			t.Errorf("won %v, ok %v", won, ok)
		}
		synctest.Wait()
		if got := q.releases(); len(got) != 0 {
			t.Errorf("given back %+v while nobody knows whether it stands", got)
		}
	})
}

// TestRunCooldown: a destination with a fault of its own cools down, one without a coordinate
// does not; either is not asked again in the same dispatch.
func TestRunCooldown(t *testing.T) {
	dispatching(t, func(t *testing.T, _ context.Context, s *seer, _ *quay) {
		b := choice{backend: &projections.Backend{BackendBeat: events.BackendBeat{Server: "b"}}, region: "x"}
		for code, cools := range map[events.Code]bool{
			events.Paced: false, events.NoCoordinate: false, events.Full: false, events.NoAnswer: true, events.NotReady: true, events.Unsafe: true, events.WrongIncarnation: false,
		} {
			s.runs.init()
			r := s.runs.get(first, *s.timing.Load(), s.view.Fleet(), s.Now())
			s.noteRefusal(r, b, events.ReserveAnswer{}, code)
			if got := s.runs.excluded(r, s.Now())["b"]; got != code {
				t.Errorf("%s: excluded as %q in its own dispatch", code, got)
			}
			s.runs.end(first)
			next := s.runs.get(first, *s.timing.Load(), s.view.Fleet(), s.Now())
			if got := s.runs.excluded(next, s.Now())["b"]; (got == events.OnCooldown) != cools {
				t.Errorf("%s: the next dispatch sees %q", code, got)
			}
			if got := s.runs.excluded(next, s.Now().Add(s.timing.Load().Cooldown))["b"]; got != "" {
				t.Errorf("%s: after the cooldown %q", code, got)
			}
		}
	})
}

// goesTo lets another dispatcher hold the player's session.
func (s *seer) goesTo(t *testing.T, id events.HostID) {
	t.Helper()
	c := s.mem.Client("somebody else")
	last, _, err := c.Last(t.Context(), events.Sessions, steve.String())
	if err != nil {
		t.Fatal(err)
	}
	open := events.SessionOpened{Session: events.Session{Holder: id, HolderIncarnation: lifeOf(id), Kind: events.KindEdge, Server: "a", Name: "Steve"}}
	if _, err := c.Append(t.Context(), streamtest.FactBy(t, edge(id), steve.String(), last.Seq, &open)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "session folded", func() bool { x, _ := s.view.Session(steve); return x.Holder == id })
}

// TestReserveOfAnotherHolder: who holds the player no longer does not give back a promise
// that the new holder may be about to record.
func TestReserveOfAnotherHolder(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, q *quay) {
		q.before = func(int) { s.goesTo(t, "e2") }
		if won, ok := s.best(ctx); won || ok {
			t.Errorf("won %v, ok %v", won, ok)
		}
		synctest.Wait()
		if got := q.releases(); len(got) != 0 {
			t.Fatalf("given back %+v before the attempt was decided", got)
		}
		f := reserved(1)
		f.Server, f.Incarnation = "c", lifeOf("c")
		s.put(t, f)
		synctest.Wait()
		if got := q.releases(); len(got) != 1 {
			t.Errorf("given back %+v once the attempt was another one's, want the promise", got)
		}
	})
}

// TestReserveOfTheHolderAgain: who lost the player and holds the player again asks for the same
// attempt again, and gets the same promise: that one is not given back for the first try.
func TestReserveOfTheHolderAgain(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, q *quay) {
		q.before = func(int) { s.goesTo(t, "e2") }
		if won, ok := s.best(ctx); won || ok {
			t.Errorf("won %v, ok %v", won, ok)
		}
		q.before = nil
		s.goesTo(t, "e1")
		synctest.Wait()
		if got := q.releases(); len(got) != 0 {
			t.Fatalf("given back %+v, and the next try is to get it", got)
		}
		if won, _ := s.best(ctx); !won {
			t.Error("the second try did not win")
		}
		synctest.Wait()
		if got := q.releases(); len(got) != 0 {
			t.Errorf("given back %+v, which stands in the log", got)
		}
	})
}

// TestReserveLandsTooLate: a reservation that the store took only when the promise had aged
// (an outage came between) frees its token again: nobody is sent to a place that is gone.
func TestReserveLandsTooLate(t *testing.T) {
	for name, row := range map[string]struct {
		took time.Duration
		want []string
	}{
		"in time":  {4 * time.Second, []string{"reserved"}},
		"too late": {6 * time.Second, []string{"reserved", "expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			dispatching(t, func(t *testing.T, ctx context.Context, s *seer, q *quay) {
				s.log.before = func(int, events.Message) {
					s.log.before = nil
					time.Sleep(row.took)
				}
				won, _ := s.best(ctx)
				synctest.Wait()
				var facts []string
				for _, e := range stored(t, s.mem, events.Transfers)[1:] {
					facts = append(facts, strings.TrimSuffix(strings.TrimPrefix(events.TypeName(e.Fact), "landfall.transfer."), ".v1"))
				}
				late := len(row.want) == 2
				if !slices.Equal(facts, row.want) || won == late || (len(q.releases()) == 1) != late {
					t.Errorf("won %t, facts %v, given back %+v; want %v", won, facts, q.releases(), row.want)
				}
			})
		})
	}
}
