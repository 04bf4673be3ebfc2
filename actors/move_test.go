package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
)

func moveFor(claim uint64) events.MoveAsk {
	return events.MoveAsk{Player: steve, Name: "Steve", Token: tokenOne, Claim: claim, How: events.HowTransfer, Address: "play:25565"}
}

// TestMoveAnswers: each code of an origin, and whether the player was sent.
func TestMoveAnswers(t *testing.T) {
	rows := []struct {
		name string
		with func(s *site, q *events.MoveAsk)
		want events.Code
		sent int
	}{
		{"sent", func(*site, *events.MoveAsk) {}, events.Sent, 1},
		{"not here", func(s *site, _ *events.MoveAsk) { s.present = map[events.PlayerID]*presence{} }, events.NotHere, 0},
		{"an address of somebody else", func(_ *site, q *events.MoveAsk) { q.Address = "evil:25565" }, events.Refused, 0},
		{"no address", func(_ *site, q *events.MoveAsk) { q.Address = "" }, events.Refused, 0},
		{"claim no longer the latest", func(s *site, _ *events.MoveAsk) {
			s.state = func(events.StateAsk) events.StateAnswer {
				return events.StateAnswer{Code: events.OK, Token: tokenOne, Claim: 6}
			}
		}, events.TooOld, 0},
		{"no claim stands", func(s *site, _ *events.MoveAsk) {
			s.state = func(events.StateAsk) events.StateAnswer { return events.StateAnswer{Code: events.OK} }
		}, events.TooOld, 0},
		{"another token", func(s *site, _ *events.MoveAsk) {
			s.state = func(events.StateAsk) events.StateAnswer {
				return events.StateAnswer{Code: events.OK, Token: events.Token{Transfer: second, Attempt: 1}, Claim: 5}
			}
		}, events.TooOld, 0},
		{"the log is away", func(s *site, _ *events.MoveAsk) {
			s.state = func(events.StateAsk) events.StateAnswer { return events.StateAnswer{Code: events.TransportDown} }
		}, events.Refused, 0},
		{"gone while sending", func(s *site, _ *events.MoveAsk) { s.ground.send = sendFails(ErrNotHere) }, events.NotHere, 1},
		{"the server refuses", func(s *site, _ *events.MoveAsk) { s.ground.send = sendFails(ErrNotSent) }, events.Refused, 1},
		{"nobody knows", func(s *site, _ *events.MoveAsk) { s.ground.send = sendFails(ErrUnknown) }, events.NotKnown, 1},
		{"another error: nobody knows", func(s *site, _ *events.MoveAsk) { s.ground.send = sendFails(errors.New("broken pipe")) }, events.NotKnown, 1},
		{"a local move", func(_ *site, q *events.MoveAsk) { q.How, q.Address = events.HowLocal, "" }, events.Sent, 0},
		{"a redirect, which the front carries out", func(_ *site, q *events.MoveAsk) { q.How, q.Address = events.HowRedirect, "" }, events.Sent, 0},
		{"a redirect for an older claim", func(s *site, q *events.MoveAsk) {
			q.How, q.Address = events.HowRedirect, ""
			s.state = func(events.StateAsk) events.StateAnswer {
				return events.StateAnswer{Code: events.OK, Token: tokenOne, Claim: 6}
			}
		}, events.TooOld, 0},
		{"a query for a claim never seen", func(_ *site, q *events.MoveAsk) { q.Query = true }, events.NotSent, 0},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			onSite(t, func(t *testing.T, ctx context.Context, s *site) {
				s.comes()
				q := moveFor(5)
				row.with(s, &q)
				a := s.answerMove(ctx, s.life, q)
				if a.Code != row.want || s.ground.sends() != row.sent {
					t.Fatalf("answer %+v, sent %d times; want %s, %d", a, s.ground.sends(), row.want, row.sent)
				}
				if again := s.answerMove(ctx, s.life, q); again != a || s.ground.sends() != row.sent {
					t.Errorf("the same claim again: %+v, sent %d times; want the same answer and no act", again, s.ground.sends())
				}
			})
		})
	}
}

func sendFails(err error) func(context.Context, Player, string) error {
	return func(context.Context, Player, string) error { return fmt.Errorf("send: %w", err) }
}

// TestMoveFence: a claim below the newest one seen is never acted on, also when that newest
// one was only asked about.
func TestMoveFence(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		if a := s.answerMove(ctx, s.life, moveFor(5)); a.Code != events.Sent {
			t.Fatalf("claim 5: %+v", a)
		}
		if a := s.answerMove(ctx, s.life, moveFor(4)); a.Code != events.TooOld {
			t.Errorf("claim 4 after 5: %+v, want TOO_OLD", a)
		}
		query := moveFor(5)
		query.Query = true
		if a := s.answerMove(ctx, s.life, query); a.Code != events.Sent {
			t.Errorf("what became of claim 5: %+v, want SENT", a)
		}
		query.Claim = 4
		if a := s.answerMove(ctx, s.life, query); a.Code != events.TooOld {
			t.Errorf("what became of claim 4: %+v, want TOO_OLD", a)
		}
		if n := s.ground.sends(); n != 1 {
			t.Errorf("sent %d times, want once", n)
		}
	})
}

// TestMoveQueryFences: "not sent" is a promise: the move that comes later is refused.
func TestMoveQueryFences(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		query := moveFor(5)
		query.Query = true
		if a := s.answerMove(ctx, s.life, query); a.Code != events.NotSent {
			t.Fatalf("query: %+v", a)
		}
		if a := s.answerMove(ctx, s.life, moveFor(5)); a.Code != events.NotSent || s.ground.sends() != 0 {
			t.Errorf("the slow move: %+v, sent %d times; want NOT_SENT and nothing", a, s.ground.sends())
		}
	})
}

// TestMoveUnderWay: whoever asks about a move that is being carried out waits for its answer,
// or learns that nobody knows yet.
func TestMoveUnderWay(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		open := make(chan struct{})
		s.ground.send = func(context.Context, Player, string) error { <-open; return nil }
		answers := make(chan events.Answer, 2)
		go func() { answers <- s.answerMove(ctx, s.life, moveFor(5)) }()
		synctest.Wait()
		query := moveFor(5)
		query.Query = true
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if a := s.answerMove(short, s.life, query); a.Code != events.NotKnown {
			t.Errorf("a query without patience: %+v, want UNKNOWN", a)
		}
		go func() { answers <- s.answerMove(ctx, s.life, query) }()
		synctest.Wait()
		close(open)
		for range 2 {
			if a := <-answers; a.Code != events.Sent {
				t.Errorf("answer %+v, want SENT", a)
			}
		}
	})
}

// TestMovePlayersApart: the fence is a player's own.
func TestMovePlayersApart(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		alex := events.OfflinePlayer("Alex")
		s.present[alex] = &presence{Player: Player{ID: alex, Name: "Alex"}}
		s.answerMove(ctx, s.life, moveFor(5))
		s.state = func(events.StateAsk) events.StateAnswer {
			return events.StateAnswer{Code: events.OK, Token: tokenOne, Claim: 3}
		}
		q := moveFor(3)
		q.Player = alex
		if a := s.answerMove(ctx, s.life, q); a.Code != events.Sent {
			t.Errorf("another player's lower claim: %+v, want SENT", a)
		}
	})
}

// TestMoveSlept: an answer that this process slept over is asked for again, and the second
// one counts.
func TestMoveSlept(t *testing.T) {
	for _, slept := range []string{"after the answer", "before it was read"} {
		t.Run(slept, func(t *testing.T) {
			onSite(t, func(t *testing.T, ctx context.Context, s *site) {
				s.comes()
				var asked, clock atomic.Int64 // clock counts the looks at it since the first answer
				s.state = func(events.StateAsk) events.StateAnswer {
					clock.Store(0)
					if asked.Add(1) == 1 {
						return events.StateAnswer{Code: events.OK, Token: tokenOne, Claim: 5}
					}
					return events.StateAnswer{Code: events.OK, Token: tokenOne, Claim: 6}
				}
				s.life.Now = func() time.Time {
					if asked.Load() != 1 {
						return time.Now()
					}
					look := clock.Add(1) // the first is for "answered", the second for "now"
					switch {
					case slept == "before it was read":
						return time.Now().Add(10 * time.Second)
					case look > 1:
						return time.Now().Add(stateFresh)
					}
					return time.Now()
				}
				if a := s.answerMove(ctx, s.life, moveFor(5)); a.Code != events.TooOld || s.ground.sends() != 0 {
					t.Errorf("answer %+v, sent %d times; want TOO_OLD: the claim was replaced meanwhile", a, s.ground.sends())
				}
				if n := asked.Load(); n != 2 {
					t.Errorf("asked %d times, want 2", n)
				}
			})
		})
	}
}

// TestMoveNobodyToAsk: without a dispatcher to confirm the claim nobody is moved.
func TestMoveNobodyToAsk(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		s.mem.Client("e1").Cut()
		start := time.Now()
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if a := s.answerMove(ctx, s.life, moveFor(5)); a.Code != events.Refused || s.ground.sends() != 0 {
			t.Errorf("answer %+v, sent %d times; want REFUSED", a, s.ground.sends())
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// TestMoveHangingDispatcher: one that does not answer is asked again, so that another may.
func TestMoveHangingDispatcher(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		s.mem.LoseAnswer(func(subject string) bool { return strings.HasSuffix(subject, ".state") }, 1)
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if a := s.answerMove(ctx, s.life, moveFor(5)); a.Code != events.Sent {
			t.Errorf("answer %+v, want SENT", a)
		}
	})
}

// TestMoveForgetsOldWorlds: a restarted game server begins anew; its claims are the log's.
func TestMoveForgetsOldWorlds(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		s.answerMove(ctx, s.life, moveFor(5))
		s.Up("another life")
		if len(s.present) != 0 || len(s.moves) != 0 {
			t.Errorf("%d players and %d moves outlived their server", len(s.present), len(s.moves))
		}
		select {
		case <-s.reborn:
		default:
			t.Error("no new life was asked for")
		}
		s.Down(ErrDown)
		if st := s.Backend.state(s.life, nil); st != events.Degraded {
			t.Errorf("state %s while the server is down", st)
		}
		s.Up("another life")
		select {
		case <-s.reborn:
			t.Error("the same server answering again is no new life")
		default:
		}
	})
}

// TestMoveOfAnotherLife: only the life that was asked to act knows what became of a claim.
func TestMoveOfAnotherLife(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		q := moveFor(5)
		other := lifeOf("before")
		for _, q.Query = range []bool{false, true} {
			q.FromIncarnation = &other
			if a := s.answerMove(ctx, s.life, q); a != (events.Answer{}) || s.ground.sends() != 0 {
				t.Errorf("query %t: answer %+v, sent %d times; want silence", q.Query, a, s.ground.sends())
			}
		}
		q.FromIncarnation, q.Query = &s.life.Source.Incarnation, false
		if a := s.answerMove(ctx, s.life, q); a.Code != events.Sent || s.ground.sends() != 1 {
			t.Errorf("answer %+v, sent %d times; want one", a, s.ground.sends())
		}
	})
}

// TestMoveOfASleeper: a process that slept may have been replaced, and moves nobody before
// its own heartbeat has landed again.
func TestMoveOfASleeper(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		long := time.Now().Add(-s.timing.Load().Stale - time.Millisecond)
		s.life.beaten.Store(&long)
		once, cancel := context.WithTimeout(ctx, s.timing.Load().MoveTimeout)
		defer cancel()
		if a := s.answerMove(once, s.life, moveFor(5)); a != (events.Answer{}) || s.ground.sends() != 0 {
			t.Errorf("answer %+v, sent %d times; want silence", a, s.ground.sends())
		}
		s.state = func(events.StateAsk) events.StateAnswer {
			return events.StateAnswer{Code: events.OK, Token: tokenOne, Claim: 6}
		}
		time.AfterFunc(time.Second, func() {
			now := time.Now()
			s.life.beaten.Store(&now)
		})
		if a := s.answerMove(ctx, s.life, moveFor(6)); a.Code != events.Sent || s.ground.sends() != 1 {
			t.Errorf("answer %+v, sent %d times; want one", a, s.ground.sends())
		}
	})
}
