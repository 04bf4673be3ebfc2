package actors

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// inTime is a request of somebody with a place in line, whose dispatcher waits as long as
// dispatchers do.
func (s *site) inTime(ctx context.Context, place uint64, change func(*events.ReserveAsk)) events.ReserveAnswer {
	ctx, cancel := context.WithTimeout(ctx, s.timing.Load().AttemptTimeout)
	defer cancel()
	q := events.ReserveAsk{
		Player: num[events.PlayerID](byte(place)), Name: "Somebody", Transfer: num[events.TransferID](byte(place)), Attempt: 1, Place: place,
		Region: "wild", TTLMs: 30_000, Incarnation: s.life.Source.Incarnation,
	}
	if change != nil {
		change(&q)
	}
	return s.answerReserve(ctx, s.life, q)
}

func fresh(q *events.ReserveAsk) { q.Fresh = true }

// A destination gives places at its pace, to the lowest place first; who would have to wait
// too long is told so in time, and who does not wait is not kept back.
func TestReserveAtAPace(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.stock(4)
		s.SetPace(1)
		if a := s.inTime(ctx, 9, nil); a.Code != events.Promised {
			t.Fatalf("the first slot: %+v", a)
		}
		began := time.Now()
		answers := make(chan events.ReserveAnswer, 2)
		go func() { answers <- s.inTime(ctx, 8, nil) }()
		synctest.Wait()
		go func() { answers <- s.inTime(ctx, 7, nil) }()
		synctest.Wait()
		if a := s.inTime(ctx, 20, fresh); a.Code != events.Promised || time.Since(began) > 0 {
			t.Errorf("who does not wait: %s after %s", a.Code, time.Since(began))
		}
		early, late := <-answers, <-answers
		if s.life.pool.promises[events.Token{Transfer: num[events.TransferID](7), Attempt: 1}] == nil || early.Code != events.Promised {
			t.Errorf("the next slot did not go to the lower place: %+v", early)
		}
		if took := time.Since(began); late.Code != events.Paced || took >= s.timing.Load().AttemptTimeout || late.Kept != 1 {
			t.Errorf("%+v after %s, want PACED before the dispatcher gives up", late, took)
		}
	})
}

// A slot that leads to no place goes to the next who asks.
func TestReserveGivesTheSlotBack(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.SetPace(0.001)
		s.stock(2)
		s.ground.health = func() (Health, error) { return Health{Players: 5, MaxPlayers: 5}, nil }
		if a := s.inTime(ctx, 1, nil); a.Code != events.Full {
			t.Errorf("%+v, want FULL", a)
		}
		s.ground.health = nil
		if a := s.inTime(ctx, 2, nil); a.Code != events.Promised {
			t.Errorf("%+v: the slot is gone", a)
		}
	})
}

// A place is looked for when none is kept, for who does not wait only.
func TestReserveFresh(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		if a := s.inTime(ctx, 1, nil); a.Code != events.NoCoordinate {
			t.Errorf("in line: %+v", a)
		}
		if a := s.inTime(ctx, 2, fresh); a.Code != events.Promised || a.Region != "wild" || a.Kept != 0 {
			t.Errorf("fresh: %+v", a)
		}
		if n := s.Tally(); n.Found != 1 || n.Promised != 1 || n.Ready != 0 {
			t.Errorf("coordinates %+v", n)
		}
		for code, change := range map[string]func(*events.ReserveAsk){
			"no such region": func(q *events.ReserveAsk) { q.Fresh, q.Region = true, "wood" },
			"another world":  func(q *events.ReserveAsk) { q.Fresh, q.World = true, "x" },
		} {
			if a := s.inTime(ctx, 3, change); a.Code != events.NoCoordinate {
				t.Errorf("%s: %+v", code, a)
			}
		}
		s.ground.find = func(Region) (events.Position, error) { return events.Position{}, errors.New("only sea") }
		if a := s.inTime(ctx, 4, fresh); a.Code != events.NoCoordinate || a.Detail != "only sea" {
			t.Errorf("nothing found: %+v", a)
		}
	})
}

// TestCancelFor: leaving works from wherever a transfer is not under way yet, for who asks
// from the server where the player stands.
func TestCancelFor(t *testing.T) {
	claim := []events.TransferFact{requested(), reserved(1), claimed(1, "e1")}
	rows := map[string]struct {
		facts []events.TransferFact
		from  events.HostID
		want  events.Code
		phase projections.Phase
	}{
		"nothing under way": {nil, "a", events.NotKnown, ""},
		"requested":         {claim[:1], "a", events.OK, projections.Cancelled},
		"waiting":           {append(claim[:1:1], &events.Waitlisted{}), "a", events.OK, projections.Cancelled},
		"with a token":      {claim[:2], "a", events.OK, projections.Cancelled},
		"by the API":        {claim[:1], "", events.OK, projections.Cancelled},
		"claimed":           {claim, "a", events.AlreadyMoving, projections.Claimed},
		"arrived":           {append(claim[:3:3], consumed(1)), "a", events.AlreadyMoving, projections.Consumed},
		"from elsewhere":    {claim[:1], "b", events.NotHere, projections.Requested},
		"ended":             {append(claim[:1:1], &events.Failed{Code: events.NoCandidate}), "a", events.NotKnown, projections.Failed},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			mutating(t, row.facts, func(t *testing.T, ctx context.Context, s *seer) {
				s.holdsSession(t)
				if a := s.CancelFor(ctx, steve, row.from); a.Code != row.want {
					t.Errorf("answer %+v, want %s", a, row.want)
				}
				phase := projections.Phase("")
				if now := s.view.Player(steve).Find(first); now != nil {
					phase = now.Phase
				}
				if phase != row.phase {
					t.Errorf("the transfer is %q, want %q", phase, row.phase)
				}
			})
		})
	}
}
