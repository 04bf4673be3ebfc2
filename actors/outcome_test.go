package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// absentFor runs a test for each way in which a dispatcher does not hold what the log does:
// it began after it, or has forgotten it.
func absentFor(t *testing.T, facts []events.TransferFact, body func(t *testing.T, ctx context.Context, s *seer)) {
	t.Helper()
	t.Run("began later", func(t *testing.T) {
		bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
			for _, f := range facts {
				putFor(t, mem, steve, first, f)
			}
			body(t, ctx, newSeer(t, ctx, mem, "e1"))
		})
	})
	t.Run("has forgotten", func(t *testing.T) {
		mutating(t, facts, func(t *testing.T, ctx context.Context, s *seer) {
			s.view.Forget(time.Now().Add(time.Hour))
			body(t, ctx, s)
		})
	})
}

var (
	unserved = []events.TransferFact{requested(), &events.Failed{Code: events.NoCandidate}}
	arrived  = []events.TransferFact{requested(), reserved(1), claimed(1, "e1"), consumed(1), &events.Completed{Attempt: 1, At: events.Position{World: "w", X: 1}}}
)

// A request whose id has ended gets its outcome, wherever the player is now and whatever is
// under way, and is not begun again under its old key.
func TestOutcomeOfAnIDThatIsNotHeld(t *testing.T) {
	rows := map[string]struct {
		facts  []events.TransferFact
		active *events.Requested // of another transfer, under way
		want   events.RequestAnswer
	}{
		"failed":    {unserved, nil, events.RequestAnswer{Code: events.Active, Transfer: first, State: string(projections.Failed), Detail: string(events.NoCandidate)}},
		"completed": {arrived, nil, events.RequestAnswer{Code: events.Active, Transfer: first, State: string(projections.Completed), Detail: string(events.OK)}},
		"another wish under way": {
			unserved, &events.Requested{Trigger: events.TriggerCommand, Wish: events.Wish{Region: "desert"}, Origin: "a", Name: "Steve"},
			events.RequestAnswer{Code: events.Active, Transfer: first, State: string(projections.Failed), Detail: string(events.NoCandidate)},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			absentFor(t, row.facts, func(t *testing.T, ctx context.Context, s *seer) {
				if s.view.Player(steve).Find(first) != nil {
					t.Fatal("the transfer is held")
				}
				if row.active != nil {
					putFor(t, s.mem, steve, second, row.active)
					synctest.Wait()
				}
				before := len(s.mem.Records(events.Transfers))
				q := events.RequestAsk{Player: steve, Name: "Steve", Transfer: first, Trigger: events.TriggerCommand, Wish: events.Wish{Region: "wild"}}
				for _, origin := range []events.HostID{"", "nowhere"} {
					if a := s.Open(ctx, q, origin); a != row.want {
						t.Errorf("answered %+v, want %+v", a, row.want)
					}
				}
				if n := len(s.mem.Records(events.Transfers)); n != before {
					t.Errorf("%d facts, want the %d there were", n, before)
				}
			})
		})
	}
}

// An id that the log knows only by garbage, or not at all, begins.
func TestNoOutcomeWithoutAnEnd(t *testing.T) {
	absentFor(t, unserved, func(t *testing.T, ctx context.Context, s *seer) {
		s.mem.Inject(events.Transfers, events.TransferKey(steve, second), events.Header{"KV-Operation": "DEL"}, nil)
		synctest.Wait()
		if a := s.Open(ctx, events.RequestAsk{Player: steve, Name: "Steve", Transfer: second, Trigger: events.TriggerCommand}, ""); a.Code != events.Accepted {
			t.Errorf("answered %+v, want ACCEPTED", a)
		}
	})
}

// Who cannot ask the log says so, and begins nothing.
func TestOutcomeUnknown(t *testing.T) {
	absentFor(t, unserved, func(t *testing.T, ctx context.Context, s *seer) {
		s.log.Cut()
		if a := s.Open(ctx, events.RequestAsk{Player: steve, Transfer: first, Trigger: events.TriggerCommand}, ""); a.Code != events.TransportDown {
			t.Errorf("answered %+v, want TRANSPORT_DOWN", a)
		}
	})
}

// A refusal for a player of whom nothing is held any more is an answer at once.
func TestRefusalForAForgottenPlayer(t *testing.T) {
	absentFor(t, unserved, func(t *testing.T, ctx context.Context, s *seer) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		a := s.Open(ctx, events.RequestAsk{Player: steve, Transfer: second, Trigger: events.TriggerCommand}, "a")
		if a.Code != events.NotHere {
			t.Errorf("answered %+v, want NOT_HERE", a)
		}
	})
}

// The token of a transfer that has ended is spent, and its login is not held for it.
func TestSpentTokenThatIsNotHeld(t *testing.T) {
	absentFor(t, arrived, func(t *testing.T, ctx context.Context, s *seer) {
		s.tasks.begin(ctx)
		for player, want := range map[events.PlayerID]events.Code{steve: events.TokenSpent, events.OfflinePlayer("Alex"): events.TokenUnknown} {
			began := time.Now()
			s.Route(ctx, Login{Player: player, Name: "Steve", Token: tokenOne, Protocol: 767})
			if took := time.Since(began); want == events.TokenSpent && took != 0 || want == events.TokenUnknown && took != s.timing.Load().LoginHold {
				t.Errorf("%s: held for %s", want, took)
			}
			synctest.Wait()
			var subjects []string
			for _, e := range stored(t, s.mem, events.Audit) {
				if r, ok := e.Fact.(*events.Rejected); ok && r.Code == want {
					subjects = append(subjects, r.Subject)
				}
			}
			if about := events.Transfers.Subject(events.TransferKey(player, first)); len(subjects) != 1 || subjects[0] != about {
				t.Errorf("%s: audited for %v, want once, for %s", want, subjects, about)
			}
		}
	})
}

// A backend whose report was recorded hears so from whoever answers it now.
func TestPlacedAgainAfterTheEnd(t *testing.T) {
	absentFor(t, arrived, func(t *testing.T, ctx context.Context, s *seer) {
		for token, want := range map[events.Token]events.Code{tokenOne: events.OK, {Transfer: first, Attempt: 2}: events.TokenSpent, {Transfer: second, Attempt: 1}: events.TokenSpent} {
			q := events.PlacedAsk{Player: steve, Token: token, Code: events.OK}
			if a := s.answerPlaced(ctx, "b", q); a.Code != want {
				t.Errorf("%s: answered %+v, want %s", token, a, want)
			}
		}
	})
}
