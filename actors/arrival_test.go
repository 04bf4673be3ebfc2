package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// arrives lets a player come, promised or not, and gives what the dispatcher was asked.
func (s *site) arrivesWith(ctx context.Context, promised bool) (p presence, at events.Position) {
	if promised {
		s.stock(1)
		at = s.reserve(ctx, 1).At
	}
	return s.comes(), at
}

// TestArrivalPlaced: PLACE is obeyed once, reported, and settles the promise.
func TestArrivalPlaced(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		p, at := s.arrivesWith(ctx, true)
		var asked events.ArrivedAsk
		s.arrived = func(q events.ArrivedAsk) events.ArrivedAnswer {
			asked = q
			return events.ArrivedAnswer{Code: events.Place, Token: tokenOne, At: at}
		}
		var reports []events.PlacedAsk
		s.placed = func(q events.PlacedAsk) events.Answer {
			reports = append(reports, q)
			return events.Answer{Code: events.OK}
		}
		s.arrive(ctx, p)
		synctest.Wait()
		if len(asked.Held) != 1 || asked.Held[0] != tokenOne || asked.Join != p.join || asked.Incarnation != s.life.Source.Incarnation {
			t.Errorf("asked %+v", asked)
		}
		want := events.PlacedAsk{Player: steve, Token: tokenOne, At: at, Code: events.OK}
		if len(s.ground.placed) != 1 || s.ground.placed[0] != at || len(reports) != 1 || reports[0] != want {
			t.Errorf("placed at %v, reported %+v; want %+v", s.ground.placed, reports, want)
		}
		if n := s.Tally(); n.Placed != 1 || n.Promised != 0 || s.life.pool.outstanding() != 0 || len(s.ground.forgot) != 1 {
			t.Errorf("coordinates %+v, %d outstanding, %d let go", n, s.life.pool.outstanding(), len(s.ground.forgot))
		}
		if texts := s.ground.texts(); len(texts) != 1 || texts[0] != ShippedMessages()["transfer.arrived"] {
			t.Errorf("told %q", texts)
		}
	})
}

// TestArrivalUnconfirmed: a teleport that failed is reported as such, not as a success.
func TestArrivalUnconfirmed(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		p, at := s.arrivesWith(ctx, true)
		s.arrived = func(events.ArrivedAsk) events.ArrivedAnswer {
			return events.ArrivedAnswer{Code: events.Place, Token: tokenOne, At: at}
		}
		s.ground.place = func(Player, events.Position) (events.Position, error) { return events.Position{}, ErrUnknown }
		var report events.PlacedAsk
		s.placed = func(q events.PlacedAsk) events.Answer { report = q; return events.Answer{Code: events.OK} }
		s.arrive(ctx, p)
		if report.Code != events.PlacementUnconfirmed || report.Detail == "" || report.Token != tokenOne {
			t.Errorf("reported %+v", report)
		}
		if n := s.Tally(); n.Placed != 1 || n.Ready != 0 {
			t.Errorf("coordinates %+v: nobody else may get a place where somebody may stand", n)
		}
		if texts := s.ground.texts(); len(texts) != 0 {
			t.Errorf("told %q", texts)
		}
	})
}

// TestArrivalReportRepeated: the report goes on until a dispatcher has taken it, but not for ever.
func TestArrivalReportRepeated(t *testing.T) {
	for name, row := range map[string]struct{ fails, want int32 }{"taken at last": {fails: 3, want: 4}, "never taken": {fails: 1 << 30, want: 0}} {
		t.Run(name, func(t *testing.T) {
			onSite(t, func(t *testing.T, ctx context.Context, s *site) {
				p, at := s.arrivesWith(ctx, true)
				s.arrived = func(events.ArrivedAsk) events.ArrivedAnswer {
					return events.ArrivedAnswer{Code: events.Place, Token: tokenOne, At: at}
				}
				var n atomic.Int32
				s.placed = func(events.PlacedAsk) events.Answer {
					if n.Add(1) <= row.fails {
						return events.Answer{Code: events.TransportDown}
					}
					return events.Answer{Code: events.OK}
				}
				start := time.Now()
				s.arrive(ctx, p)
				if row.want != 0 && n.Load() != row.want {
					t.Errorf("reported %d times, want %d", n.Load(), row.want)
				}
				if took := time.Since(start); took > s.timing.Load().Placement+time.Second {
					t.Errorf("gave up after %s, want about %s", took, s.timing.Load().Placement)
				}
			})
		})
	}
}

// TestArrivalWaits: WAIT asks again after the time that was named; NONE is a plain join.
func TestArrivalWaits(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		p, at := s.arrivesWith(ctx, true)
		var when []time.Duration
		start := time.Now()
		s.arrived = func(events.ArrivedAsk) events.ArrivedAnswer {
			when = append(when, time.Since(start))
			if len(when) < 3 {
				return events.ArrivedAnswer{Code: events.WaitABit, WaitMs: 250}
			}
			return events.ArrivedAnswer{Code: events.Place, Token: tokenOne, At: at}
		}
		s.arrive(ctx, p)
		if len(when) != 3 || when[1] != 250*time.Millisecond || when[2] != 500*time.Millisecond || len(s.ground.placed) != 1 {
			t.Errorf("asked at %v, placed %d times", when, len(s.ground.placed))
		}
	})
}

// TestArrivalPlain: every answer but PLACE and WAIT ends it, and nobody is teleported.
func TestArrivalPlain(t *testing.T) {
	for _, code := range []events.Code{events.NoPlace, events.PromiseGone, events.AuthFailed, events.BadRequest} {
		t.Run(string(code), func(t *testing.T) {
			onSite(t, func(t *testing.T, ctx context.Context, s *site) {
				p, _ := s.arrivesWith(ctx, true)
				n := 0
				s.arrived = func(events.ArrivedAsk) events.ArrivedAnswer { n++; return events.ArrivedAnswer{Code: code} }
				s.arrive(ctx, p)
				if n != 1 || len(s.ground.placed) != 0 || s.Tally().Promised != 1 {
					t.Errorf("asked %d times, placed %d, %+v", n, len(s.ground.placed), s.Tally())
				}
			})
		})
	}
}

// TestArrivalNobodyReachable: a promised player is told once and tried again until somebody
// answers.
func TestArrivalNobodyReachable(t *testing.T) {
	for _, how := range []string{"no dispatcher", "no log"} {
		t.Run(how, func(t *testing.T) {
			onSite(t, func(t *testing.T, ctx context.Context, s *site) {
				p, at := s.arrivesWith(ctx, true)
				var away atomic.Bool
				away.Store(true)
				s.arrived = func(events.ArrivedAsk) events.ArrivedAnswer {
					if away.Load() {
						return events.ArrivedAnswer{Code: events.TransportDown}
					}
					return events.ArrivedAnswer{Code: events.Place, Token: tokenOne, At: at}
				}
				if how == "no dispatcher" {
					s.mem.Client("e1").Cut()
				}
				done := make(chan struct{})
				go func() { s.arrive(ctx, p); close(done) }()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if texts := s.ground.texts(); len(texts) != 1 || texts[0] != ShippedMessages()["transfer.unconfirmed"] {
					t.Fatalf("told %q, want once", texts)
				}
				away.Store(false)
				s.mem.Client("e1").Heal()
				<-done
				if len(s.ground.placed) != 1 {
					t.Errorf("placed %d times", len(s.ground.placed))
				}
			})
		})
	}
}

// TestArrivalWithoutPromise: somebody who only joins is not bothered, and not asked about for ever.
func TestArrivalWithoutPromise(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		p, _ := s.arrivesWith(ctx, false)
		s.arrived = func(events.ArrivedAsk) events.ArrivedAnswer { return events.ArrivedAnswer{Code: events.TransportDown} }
		start := time.Now()
		s.arrive(ctx, p)
		if took := time.Since(start); took > 10*time.Second || len(s.ground.texts()) != 0 {
			t.Errorf("took %s, told %q", took, s.ground.texts())
		}
	})
}

// TestArrivalOfSomebodyGone: who has left, or has joined again, is no longer asked about.
func TestArrivalOfSomebodyGone(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		p, _ := s.arrivesWith(ctx, true)
		n := 0
		s.arrived = func(events.ArrivedAsk) events.ArrivedAnswer {
			n++
			s.mu.Lock()
			defer s.mu.Unlock()
			s.present[steve] = &presence{Player: p.Player, join: num[events.JoinID](10)}
			return events.ArrivedAnswer{Code: events.WaitABit, WaitMs: 100}
		}
		s.arrive(ctx, p)
		if n != 1 {
			t.Errorf("asked %d times about an old join", n)
		}
	})
}

// TestBackendRequest: what a player reads for each answer to /trigger rtp; one id for all tries.
func TestBackendRequest(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		s := newSite(t, ctx, mem)
		who, client := identity(events.SourceEdge, "e1"), mem.Client("e1")
		var answer events.RequestAnswer
		var seen []events.TransferID
		go func() {
			_ = client.Serve(ctx, events.AskOf("b", events.VerbRequest), dispatcherQueue, func() {},
				answerWith(who, fromBackend(events.VerbRequest), refuseRequest, func(_ context.Context, from events.HostID, q events.RequestAsk) events.RequestAnswer {
					seen = append(seen, q.Transfer)
					if from != "b" || q.Player != steve || q.Wish.Region != "wild" || q.Trigger != events.TriggerCommand {
						t.Errorf("asked %+v by %s", q, from)
					}
					return answer
				}))
		}()
		synctest.Wait()
		for code, want := range map[events.Code]string{
			events.Accepted: "transfer.accepted", events.Active: "transfer.active", events.KillSwitch: "refused.KILL_SWITCH", events.BadRequest: "refused.BAD_REQUEST",
		} {
			answer = events.RequestAnswer{Code: code, State: "PENDING"}
			if key, _ := s.request(ctx, Player{ID: steve, Name: "Steve"}, events.Wish{Region: "wild"}); key != want {
				t.Errorf("%s is told as %q, want %q", code, key, want)
			}
		}
		seen = nil
		answer = events.RequestAnswer{Code: events.Active, State: "REQUESTED"}
		mem.LoseAnswer(func(string) bool { return true }, 2)
		if key, _ := s.request(ctx, Player{ID: steve, Name: "Steve"}, events.Wish{Region: "wild"}); key != "transfer.active" {
			t.Errorf("told %q after two lost answers", key)
		}
		if len(seen) != 3 || seen[0] != seen[1] || seen[1] != seen[2] {
			t.Errorf("ids of the tries: %v, want one three times", seen)
		}
		client.Cut()
		if key, _ := s.request(ctx, Player{ID: steve, Name: "Steve"}, events.Wish{Region: "wild"}); key != "refused.TRANSPORT_DOWN" {
			t.Errorf("told %q while nobody answers", key)
		}
	})
}

// TestTellAnswers: a message is shown to who is here, in the words of the file.
func TestTellAnswers(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		q := events.TellAsk{Player: steve, Name: "Steve", Message: "failed.REGION_MISSING", Args: []events.Arg{{Name: "region", Value: "moon"}}}
		if a := s.answerTell(ctx, q); a.Code != events.NotHere {
			t.Errorf("answer %+v, want NOT_HERE", a)
		}
		s.comes()
		if a := s.answerTell(ctx, q); a.Code != events.OK {
			t.Errorf("answer %+v, want OK", a)
		}
		if texts := s.ground.texts(); len(texts) != 1 || texts[0] != `There is no place called "moon" on this network.` {
			t.Errorf("told %q", texts)
		}
	})
}

// TestArrivalPlacedOnce: an arrival that is asked about twice (a local move, just after the
// join) puts the player on the coordinate once, and one whose coordinate went back puts
// nobody there.
func TestArrivalPlacedOnce(t *testing.T) {
	for name, row := range map[string]struct {
		gone   bool
		placed int
		code   events.Code
	}{"answered twice": {false, 1, events.OK}, "given back meanwhile": {true, 0, events.PlacementUnconfirmed}} {
		t.Run(name, func(t *testing.T) {
			onSite(t, func(t *testing.T, ctx context.Context, s *site) {
				p, at := s.arrivesWith(ctx, true)
				answer := make(chan struct{})
				s.arrived = func(events.ArrivedAsk) events.ArrivedAnswer {
					<-answer
					return events.ArrivedAnswer{Code: events.Place, Token: tokenOne, At: at}
				}
				var reports []events.PlacedAsk
				s.placed = func(q events.PlacedAsk) events.Answer {
					reports = append(reports, q)
					return events.Answer{Code: events.OK}
				}
				var both sync.WaitGroup
				both.Go(func() { s.arrive(ctx, p) })
				if row.gone {
					takeBack(s.life.pool, tokenOne)
				} else {
					both.Go(func() { s.arrive(ctx, p) })
				}
				synctest.Wait()
				close(answer)
				both.Wait()
				if len(s.ground.placed) != row.placed || len(reports) == 0 || reports[0].Code != row.code {
					t.Errorf("placed at %v, reported %+v; want %d and %s", s.ground.placed, reports, row.placed, row.code)
				}
			})
		})
	}
}
