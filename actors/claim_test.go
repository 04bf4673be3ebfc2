package actors

import (
	"context"
	"testing"

	"github.com/landfall/landfall/events"
)

// origin answers for server a what a test says of a move.
func origin(ctx context.Context, s *seer, answer func(q events.MoveAsk) events.Code) {
	who, client := identity(events.SourceBackend, "a"), s.mem.Client("a")
	go func() {
		_ = client.Serve(ctx, events.ToBackend("a", events.VerbMove), "", func() {}, answerWith(who, fromDispatcher, refusePlain,
			func(_ context.Context, _ events.HostID, q events.MoveAsk) events.Answer {
				return events.Answer{Code: answer(q)}
			}))
	}()
}

// newest is the last fact of the player's transfers.
func (s *seer) newest(t *testing.T) events.Fact {
	t.Helper()
	all := stored(t, s.mem, events.Transfers)
	return all[len(all)-1].Fact
}

// TestRefusedMoveIsReleasedOnceTheStoreIsBack: the origin could not check the claim, and the
// store cannot hear of it. Nobody else knows that the player was not sent.
func TestRefusedMoveIsReleasedOnceTheStoreIsBack(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), reserved(1)}, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		s.tasks.begin(ctx)
		origin(ctx, s, func(events.MoveAsk) events.Code {
			s.log.FailAppend(events.Unavailable, 3)
			return events.Refused
		})
		passTime(0)
		if !s.claimAndMove(ctx, s.standing(steve), *s.timing.Load()) {
			t.Error("not released")
		}
		if f, ok := s.newest(t).(*events.Released); !ok || f.Reason != events.MoveRefused {
			t.Errorf("the last fact is %T, want Released", s.newest(t))
		}
	})
}

// TestEnquire: a claim whose time is over is freed when the origin says that it sent nobody,
// whatever kept it, and taken back when its claimer is gone.
func TestEnquire(t *testing.T) {
	for code, want := range map[events.Code]struct{ over, reopened events.Fact }{
		events.NotSent:  {&events.Expired{}, &events.Reopened{}},
		events.Refused:  {&events.Expired{}, &events.Reopened{}},
		events.NotHere:  {&events.Expired{}, &events.Reopened{}},
		events.Sent:     {&events.Failed{}, &events.Claimed{}},
		events.NotKnown: {&events.Failed{}, &events.Claimed{}},
		events.TooOld:   {&events.Failed{}, &events.Claimed{}},
	} {
		for name, reopens := range map[string]bool{"over": false, "reopened": true} {
			t.Run(string(code)+", "+name, func(t *testing.T) {
				mutating(t, []events.TransferFact{requested(), reserved(1), claimed(1, "e2")}, func(t *testing.T, ctx context.Context, s *seer) {
					s.holdsSession(t)
					s.tasks.begin(ctx)
					origin(ctx, s, func(q events.MoveAsk) events.Code {
						if !q.Query {
							t.Error("asked to move")
						}
						return code
					})
					passTime(0)
					now := s.standing(steve)
					var reopen *Reopen
					last := want.over
					if reopens {
						last = want.reopened
						reopen = &Reopen{Token: now.Active.Token, By: s.Source, Claim: now.Active.ClaimSeq, Evidence: events.Stale, SilenceMs: 4000}
					}
					s.enquire(ctx, now, *s.timing.Load(), reopen)
					if got := events.TypeName(s.newest(t)); got != events.TypeName(last) {
						t.Errorf("the last fact is %s, want %s", got, events.TypeName(last))
					}
				})
			})
		}
	}
}
