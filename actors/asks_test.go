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

func arrivedAsk(join byte, held ...events.Token) events.ArrivedAsk {
	return events.ArrivedAsk{Player: steve, Name: "Steve", Join: num[events.JoinID](join), Incarnation: lifeOf("b"), Held: held}
}

// TestAnswerArrived: what a backend is told for each state in which a player may arrive.
func TestAnswerArrived(t *testing.T) {
	token2 := events.Token{Transfer: first, Attempt: 2}
	claim := []events.TransferFact{requested(), reserved(1), claimed(1, "e1")}
	sent := &events.Transferred{Attempt: 1, How: events.HowTransfer, Result: events.MoveSent}
	rows := []struct {
		name  string
		facts []events.TransferFact
		from  events.HostID
		ask   events.ArrivedAsk
		want  events.Code
		phase projections.Phase // what the transfer is afterwards
	}{
		{"no transfer", nil, "b", arrivedAsk(9), events.NoPlace, ""},
		{"claimed", claim, "b", arrivedAsk(9, tokenOne), events.Place, projections.Consumed},
		{"claimed and sent", append(claim[:3:3], sent), "b", arrivedAsk(9, tokenOne), events.Place, projections.Consumed},
		{"reopened", append(claim[:3:3], &events.Reopened{Attempt: 1, Claim: 3}), "b", arrivedAsk(9, tokenOne), events.Place, projections.Consumed},
		{"the same join again", append(claim[:3:3], consumed(1)), "b", arrivedAsk(9, tokenOne), events.Place, projections.Consumed},
		{"another join", append(claim[:3:3], consumed(1)), "b", arrivedAsk(10, tokenOne), events.NoPlace, projections.Consumed},
		{"not claimed yet", claim[:2], "b", arrivedAsk(9, tokenOne), events.WaitABit, projections.Pending},
		{"not claimed yet, nothing held", claim[:2], "b", arrivedAsk(9), events.NoPlace, projections.Pending},
		{"another server", claim, "c", arrivedAsk(9, tokenOne), events.NoPlace, projections.Claimed},
		{"promise not held", claim, "b", arrivedAsk(9, token2), events.PromiseGone, projections.Failed},
		{"token ended", append(claim[:2:2], &events.Expired{Attempt: 1, Reason: events.TTLPassed}), "b", arrivedAsk(9, tokenOne), events.NoPlace, projections.Requested},
		{"transfer ended", append(claim[:3:3], &events.Failed{Code: events.NotArrived}), "b", arrivedAsk(9, tokenOne), events.NoPlace, projections.Failed},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			mutating(t, row.facts, func(t *testing.T, ctx context.Context, s *seer) {
				a := s.answerArrived(ctx, row.from, row.ask)
				if a.Code != row.want {
					t.Fatalf("answer %+v, want %s", a, row.want)
				}
				if a.Code == events.Place && (a.Token != tokenOne || a.At != reserved(1).At) {
					t.Errorf("sent to %+v for %s", a.At, a.Token)
				}
				if a.Code == events.WaitABit && (a.WaitMs <= 0 || a.WaitMs > s.timing.Load().ArrivalWindow.Milliseconds()) {
					t.Errorf("to wait %d ms", a.WaitMs)
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

// TestAnswerArrivedAnotherLife: a destination that lost its promises with its life says so.
func TestAnswerArrivedAnotherLife(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), reserved(1), claimed(1, "e1")}, func(t *testing.T, ctx context.Context, s *seer) {
		q := arrivedAsk(9, tokenOne)
		q.Incarnation = lifeOf("b again")
		if a := s.answerArrived(ctx, "b", q); a.Code != events.PromiseGone {
			t.Errorf("answer %+v, want PROMISE_GONE", a)
		}
		if now := s.view.Player(steve).Find(first); now.Phase != projections.Failed || now.Code != events.PromiseGone {
			t.Errorf("the transfer is %s (%s)", now.Phase, now.Code)
		}
	})
}

// TestEarlyAfterItsEnd: the transfer may end between the refusal and the look at it.
func TestEarlyAfterItsEnd(t *testing.T) {
	mutating(t, nil, func(t *testing.T, _ context.Context, s *seer) {
		if a := s.early(arrivedAsk(9, tokenOne), Standing{}); a.Code != events.NoPlace {
			t.Errorf("answer %+v, want NONE", a)
		}
	})
}

// TestAnswerPlaced: a report is taken once, from the destination, and may be repeated.
func TestAnswerPlaced(t *testing.T) {
	done := []events.TransferFact{requested(), reserved(1), claimed(1, "e1"), consumed(1)}
	at := events.Position{World: "w", X: 1, Y: 2, Z: 3}
	report := func(code events.Code, token events.Token) events.PlacedAsk {
		return events.PlacedAsk{Player: steve, Token: token, At: at, Code: code, Detail: "why"}
	}
	rows := []struct {
		name  string
		facts []events.TransferFact
		from  events.HostID
		ask   events.PlacedAsk
		want  events.Code
		phase projections.Phase
	}{
		{"placed", done, "b", report(events.OK, tokenOne), events.OK, projections.Completed},
		{"placed, again", append(done[:4:4], &events.Completed{Attempt: 1}), "b", report(events.OK, tokenOne), events.OK, projections.Completed},
		{"not confirmed", done, "b", report(events.PlacementUnconfirmed, tokenOne), events.OK, projections.Failed},
		{"by another server", done, "c", report(events.OK, tokenOne), events.WrongServer, projections.Consumed},
		{"not confirmed, by another server", done, "c", report(events.PlacementUnconfirmed, tokenOne), events.WrongServer, projections.Consumed},
		{"another token", done, "b", report(events.OK, events.Token{Transfer: first, Attempt: 2}), events.TokenSpent, projections.Consumed},
		{"before the arrival", done[:3], "b", report(events.OK, tokenOne), events.TokenSpent, projections.Claimed},
		{"failure before the arrival", done[:3], "b", report(events.PlacementUnconfirmed, tokenOne), events.TokenSpent, projections.Claimed},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			mutating(t, row.facts, func(t *testing.T, ctx context.Context, s *seer) {
				if a := s.answerPlaced(ctx, row.from, row.ask); a.Code != row.want {
					t.Errorf("answer %+v, want %s", a, row.want)
				}
				if now := s.view.Player(steve).Find(first); now.Phase != row.phase {
					t.Errorf("the transfer is %s, want %s", now.Phase, row.phase)
				}
			})
		})
	}
}

// TestAnswerState: a claim is named only while it may be carried out.
func TestAnswerState(t *testing.T) {
	claim := []events.TransferFact{requested(), reserved(1), claimed(1, "e1")}
	rows := map[string]struct {
		facts []events.TransferFact
		with  func(t *testing.T, s *seer)
		want  uint64
	}{
		"no transfer":       {nil, nil, 0},
		"pending":           {claim[:2], nil, 0},
		"claimed":           {claim, nil, 3},
		"sent":              {append(claim[:3:3], &events.Transferred{Attempt: 1, How: events.HowTransfer, Result: events.MoveSent}), nil, 0},
		"reopened":          {append(claim[:3:3], &events.Reopened{Attempt: 1, Claim: 3}), nil, 0},
		"claimed, reopened": {append(claim[:3:3], &events.Reopened{Attempt: 1, Claim: 3}, claimed(1, "e2")), nil, 5},
		"killed":            {claim, func(t *testing.T, s *seer) { s.kill(t) }, 0},
		"the destination lives anew": {claim, func(t *testing.T, s *seer) {
			beat := &events.BackendBeat{Server: "b", Incarnation: lifeOf("b again"), State: events.Ready, Schema: events.SchemaVersion, Regions: []events.RegionBeat{}}
			for range 60 { // beyond the snapshot of the reservation
				s.mem.Inject(events.Fleet, "backend.x", events.Header{}, nil)
			}
			m := streamtest.Fact(t, events.BackendKey("b"), 0, beat)
			if _, err := s.mem.Client("b").Append(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			eventually(t, "beat folded", func() bool { return s.view.Fleet().Backend("b") != nil })
		}, 0},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			mutating(t, row.facts, func(t *testing.T, ctx context.Context, s *seer) {
				if row.with != nil {
					row.with(t, s)
				}
				a := s.answerState(ctx, "a", events.StateAsk{Player: steve})
				if a.Code != events.OK || a.Claim != row.want {
					t.Errorf("answer %+v, want claim %d", a, row.want)
				}
				if want := uint64(len(row.facts)); a.Last != want || a.Folded < want {
					t.Errorf("last %d, folded %d; want %d", a.Last, a.Folded, want)
				}
			})
		})
	}
}

// TestAnswerStateAtTheLeader: a fold that lags behind is waited for.
func TestAnswerStateAtTheLeader(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), reserved(1), claimed(1, "e1")}, func(t *testing.T, ctx context.Context, s *seer) {
		release := s.log.hold(events.Transfers)
		s.put(t, &events.Reopened{Attempt: 1, Claim: 3})
		got := make(chan events.StateAnswer, 1)
		go func() { got <- s.answerState(ctx, "a", events.StateAsk{Player: steve}) }()
		synctest.Wait()
		select {
		case a := <-got:
			t.Errorf("answered %+v from an old fold", a)
		default:
		}
		release()
		if a := <-got; a.Claim != 0 || a.Last != 4 {
			t.Errorf("answer %+v, want no claim at 4", a)
		}
	})
}

// TestAnswersWithoutLog: nothing is decided, and that is said.
func TestAnswersWithoutLog(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), reserved(1), claimed(1, "e1")}, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		s.log.Cut()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if a := s.answerArrived(ctx, "b", arrivedAsk(9, tokenOne)); a.Code != events.TransportDown {
			t.Errorf("arrived: %+v", a)
		}
		if a := s.answerPlaced(ctx, "b", events.PlacedAsk{Player: steve, Token: tokenOne, Code: events.OK}); a.Code != events.TransportDown {
			t.Errorf("placed: %+v", a)
		}
		if a := s.answerState(ctx, "a", events.StateAsk{Player: steve}); a.Code != events.TransportDown {
			t.Errorf("state: %+v", a)
		}
		if a := s.answerRequest(ctx, "a", events.RequestAsk{Player: steve, Transfer: second, Trigger: events.TriggerCommand}); a.Code != events.TransportDown {
			t.Errorf("request: %+v", a)
		}
	})
}

// TestAnswerRequest: a first wish, the same one, another one, and one that comes too late.
func TestAnswerRequest(t *testing.T) {
	wild, nether := events.Wish{Region: "wild"}, events.Wish{Region: "nether"}
	rows := []struct {
		name   string
		facts  []events.TransferFact
		id     events.TransferID
		from   events.HostID
		wish   events.Wish
		want   events.Code
		of     events.TransferID // whose state is told
		active events.TransferID
	}{
		{"first", nil, second, "a", wild, events.Accepted, second, second},
		{"the same id", []events.TransferFact{requested()}, first, "a", wild, events.Active, first, first},
		{"the same wish", []events.TransferFact{requested()}, second, "a", wild, events.Active, first, first},
		{"the outcome of an id", []events.TransferFact{requested(), &events.Failed{Code: events.NoCandidate}}, first, "a", wild, events.Active, first, events.TransferID{}},
		{"another wish", []events.TransferFact{requested(), reserved(1)}, second, "a", nether, events.Accepted, second, second},
		{"another wish, too late", []events.TransferFact{requested(), reserved(1), claimed(1, "e1")}, second, "a", nether, events.AlreadyMoving, events.TransferID{}, first},
		{"not there", nil, second, "b", wild, events.NotHere, events.TransferID{}, events.TransferID{}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			mutating(t, row.facts, func(t *testing.T, ctx context.Context, s *seer) {
				s.holdsSession(t)
				a := s.answerRequest(ctx, row.from, events.RequestAsk{Player: steve, Name: "Steve", Transfer: row.id, Trigger: events.TriggerCommand, Wish: row.wish})
				if a.Code != row.want || a.Transfer != row.of {
					t.Fatalf("answer %+v, want %s of %s", a, row.want, row.of)
				}
				if (a.Place != 0) != (row.of != events.TransferID{}) {
					t.Errorf("place %d", a.Place)
				}
				active := events.TransferID{}
				if now := s.view.Player(steve).Active; now != nil {
					active = now.ID
				}
				if active != row.active {
					t.Errorf("active is %s, want %s", active, row.active)
				}
				if row.name == "another wish" {
					if old := s.view.Player(steve).Find(first); old == nil || old.Phase != projections.Superseded {
						t.Errorf("the first transfer is %+v, want SUPERSEDED", old)
					}
				}
			})
		})
	}
}
