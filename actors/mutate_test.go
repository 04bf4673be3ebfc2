package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// mutating runs a test body with one dispatcher, whose player's first transfer holds these facts.
func mutating(t *testing.T, facts []events.TransferFact, body func(t *testing.T, ctx context.Context, s *seer)) {
	t.Helper()
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		s := newSeer(t, ctx, mem, "e1")
		s.put(t, facts...)
		synctest.Wait()
		body(t, ctx, s)
	})
}

var waitlist = Waitlist{Transfer: first}

func ids(messages []events.Message) (out []string) {
	for _, m := range messages {
		out = append(out, m.Header[events.HeaderID])
	}
	return out
}

// holdsSession lets e1 hold the player's session.
func (s *seer) holdsSession(t *testing.T) {
	t.Helper()
	open := events.SessionOpened{Session: events.Session{Holder: "e1", HolderIncarnation: lifeOf("e1"), Kind: events.KindEdge, Server: "a", Name: "Steve"}}
	if _, err := s.mem.Client("somebody else").Append(t.Context(), streamtest.FactBy(t, edge("e1"), steve.String(), 0, &open)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "session folded", func() bool { x, _ := s.view.Session(steve); return x.Open })
}

// TestWriteDecidesAgain (P2): what came between the guard and the append is seen, and the
// decision that was taken without it never lands.
func TestWriteDecidesAgain(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.log.before = func(try int, _ events.Message) {
			if try == 1 {
				s.put(t, reserved(1))
			}
		}
		_, refusal, err := s.write(ctx, steve, waitlist)
		if err != nil || refusal == nil || refusal.Code != events.TokenSpent {
			t.Fatalf("refusal %v, error %v; want TOKEN_SPENT, since the transfer is PENDING now", refusal, err)
		}
		if n := len(s.log.tries()); n != 1 {
			t.Errorf("%d appends, want 1: the second decision was a refusal", n)
		}
		if n := len(stored(t, s.mem, events.Transfers)); n != 2 {
			t.Errorf("%d facts, want 2", n)
		}
	})
}

// TestWriteOnTopOfOthers: when the command still means the same, it lands on the new guard.
func TestWriteOnTopOfOthers(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		var foreign uint64
		s.log.before = func(try int, _ events.Message) {
			if try == 1 {
				foreign = s.put(t, &events.Waitlisted{})
			}
		}
		done, refusal, err := s.write(ctx, steve, Cancel{Transfer: first, Code: events.GraceOver})
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		sent := s.log.tries()
		if len(sent) != 2 || sent[1].Prev != foreign || done.seq != foreign+1 {
			t.Errorf("%d appends, the last on %d, landed at %d; want 2, on %d", len(sent), sent[len(sent)-1].Prev, done.seq, foreign)
		}
		if id := ids(sent); id[0] != id[1] {
			t.Error("an equal fact took another id on its retry")
		}
	})
}

// TestWriteAnotherFactAnotherID: a decision that comes out differently is another event.
func TestWriteAnotherFactAnotherID(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		s.log.before = func(try int, _ events.Message) {
			if try == 1 { // somebody's attempt came and went
				s.put(t, reserved(1), &events.Expired{Attempt: 1, Reason: events.NewIncarnation})
			}
		}
		done, refusal, err := s.write(ctx, steve, Reserve{Transfer: first, Fact: *reserved(0), By: s.Source})
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		if f, ok := done.fact.(*events.Reserved); !ok || f.Attempt != 2 {
			t.Fatalf("landed %+v, want attempt 2", done.fact)
		}
		if id := ids(s.log.tries()); len(id) != 2 || id[0] == id[1] {
			t.Errorf("ids %v, want two that differ", id)
		}
	})
}

// TestWriteRereadsKill (P3): a kill between two attempts stops the second.
func TestWriteRereadsKill(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		s.log.before = func(try int, _ events.Message) {
			if try == 1 {
				s.put(t, &events.Waitlisted{})
				s.kill(t)
			}
		}
		_, refusal, err := s.write(ctx, steve, Reserve{Transfer: first, Fact: *reserved(0), By: s.Source})
		if err != nil || refusal == nil || refusal.Code != events.KillSwitch {
			t.Fatalf("refusal %v, error %v; want KILL_SWITCH", refusal, err)
		}
	})
}

// TestWriteRereadsSession (P3): a session that moved between two attempts stops the second.
func TestWriteRereadsSession(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), reserved(1)}, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		s.log.before = func(try int, _ events.Message) {
			if try != 1 {
				return
			}
			now, _ := s.view.Session(steve)
			moved := events.SessionOpened{Session: events.Session{Holder: "e2", HolderIncarnation: lifeOf("e2"), Kind: events.KindEdge, Server: "a", Name: "Steve"}}
			if _, err := s.mem.Client("somebody else").Append(ctx, streamtest.FactBy(t, edge("e2"), steve.String(), now.Last, &moved)); err != nil {
				t.Error(err)
			}
			s.put(t, claimed(1, "e1"), &events.Reopened{Attempt: 1, Claim: 3})
			eventually(t, "session folded", func() bool { x, _ := s.view.Session(steve); return x.Holder == "e2" })
		}
		_, refusal, err := s.write(ctx, steve, Claim{Token: events.Token{Transfer: first, Attempt: 1}, By: s.Source})
		if err != nil || refusal == nil || refusal.Code != events.NotHere {
			t.Fatalf("refusal %v, error %v; want NOT_HERE", refusal, err)
		}
	})
}

// TestWriteLostAck (P6): an acknowledgement that is lost costs no second fact.
func TestWriteLostAck(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.log.LoseNextAck(2)
		done, refusal, err := s.write(ctx, steve, waitlist)
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		all := stored(t, s.mem, events.Transfers)
		if len(all) != 2 || all[1].Seq != done.seq {
			t.Errorf("%d facts, landed at %d; want 2", len(all), done.seq)
		}
		for _, id := range ids(s.log.tries()) {
			if id != all[1].ID.String() {
				t.Error("the retry took another id")
			}
		}
	})
}

// TestWriteUnknown: an append that nobody answered and that did not land is repeated.
func TestWriteUnknown(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.log.FailAppend(events.Unknown, 3)
		if _, refusal, err := s.write(ctx, steve, waitlist); err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		if n := len(stored(t, s.mem, events.Transfers)); n != 2 {
			t.Errorf("%d facts, want 2", n)
		}
	})
}

// TestWriteUnknownForEver: a time-out is never "failed": the caller learns that nobody knows.
func TestWriteUnknownForEver(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.log.FailAppend(events.Unknown, 1000)
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, refusal, err := s.write(ctx, steve, waitlist)
		var failed *events.AppendError
		if refusal != nil || !errors.As(err, &failed) || failed.Reason != events.Unknown {
			t.Fatalf("refusal %v, error %v; want an unknown outcome", refusal, err)
		}
	})
}

// TestWriteInFlight: an append beside another one under way looks again.
func TestWriteInFlight(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.log.FailAppend(events.InFlight, 2)
		done, refusal, err := s.write(ctx, steve, waitlist)
		if err != nil || refusal != nil || done.seq != 2 {
			t.Fatalf("landed at %d, refusal %v, error %v", done.seq, refusal, err)
		}
		if n := s.count.conflicts.Load(); n != 2 {
			t.Errorf("%d conflicts counted, want 2", n)
		}
	})
}

// TestWriteRefusals: what the store refuses for good becomes a refusal or an error, at once.
func TestWriteRefusals(t *testing.T) {
	rows := []struct {
		reason events.AppendReason
		want   events.Code // "": an error
	}{
		{events.KeyIsFull, events.KeyFull},
		{events.StreamIsFull, events.LogFull},
		{events.Unavailable, ""},
		{events.NotAllowed, ""},
	}
	for _, row := range rows {
		t.Run(string(row.reason), func(t *testing.T) {
			mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
				s.log.FailAppend(row.reason, 1)
				_, refusal, err := s.write(ctx, steve, waitlist)
				switch {
				case row.want == "" && (err == nil || refusal != nil):
					t.Errorf("refusal %v, error %v; want an error", refusal, err)
				case row.want != "" && (err != nil || refusal == nil || refusal.Code != row.want):
					t.Errorf("refusal %v, error %v; want %s", refusal, err, row.want)
				}
				if n := len(s.log.tries()); n != 1 {
					t.Errorf("%d appends, want 1", n)
				}
			})
		})
	}
}

// TestWriteFullKey: a key that holds 64 messages takes no more, whatever they are, and does
// not block its player.
func TestWriteFullKey(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		key := events.TransferKey(steve, first)
		for range events.MaxKeyFacts - 1 {
			s.mem.Inject(events.Transfers, key, events.Header{"KV-Operation": "DEL"}, nil)
		}
		synctest.Wait()
		if _, refusal, err := s.write(ctx, steve, waitlist); err != nil || refusal == nil {
			t.Errorf("refusal %v, error %v; want a refusal", refusal, err)
		}
		if ended := s.view.Player(steve).Find(first); ended == nil || ended.Phase != projections.Failed || ended.Code != events.KeyFull {
			t.Errorf("the fold says %+v, want FAILED(KEY_FULL)", ended)
		}
		if _, refusal, err := s.write(ctx, steve, Request{Transfer: second, Fact: *requested()}); err != nil || refusal != nil {
			t.Errorf("the next request: refusal %v, error %v", refusal, err)
		}
	})
}

// TestWriteAfterRetention: retention takes facts that the fold still holds; the guard is 0
// again, and the store's word on that counts.
func TestWriteAfterRetention(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.mem.Expire(events.Transfers, 1)
		done, refusal, err := s.write(ctx, steve, waitlist)
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		if sent := s.log.tries(); len(sent) != 2 || sent[1].Prev != 0 {
			t.Errorf("%d appends, want a second one on guard 0", len(sent))
		}
		if n := len(stored(t, s.mem, events.Transfers)); n != 1 || done.seq != 2 {
			t.Errorf("%d facts, landed at %d", n, done.seq)
		}
	})
}

// TestWriteAfterForgetting: the fold lets go of players who were idle for long; the store
// names their guard.
func TestWriteAfterForgetting(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), &events.Failed{Code: events.NoCandidate}}, func(t *testing.T, ctx context.Context, s *seer) {
		s.view.Forget(time.Now().Add(time.Hour))
		if g := s.view.Player(steve).Guard; g != 0 {
			t.Fatalf("guard %d is still held", g)
		}
		done, refusal, err := s.write(ctx, steve, Request{Transfer: second, Fact: *requested()})
		if err != nil || refusal != nil {
			t.Fatalf("refusal %v, error %v", refusal, err)
		}
		if sent := s.log.tries(); len(sent) != 2 || sent[1].Prev != 2 || done.seq != 3 {
			t.Errorf("%d appends, landed at %d; want a second one on guard 2", len(sent), done.seq)
		}
		if a := s.view.Player(steve).Active; a == nil || a.ID != second {
			t.Errorf("the fold holds %+v, want the new transfer", a)
		}
	})
}

// TestWriteAfterForgettingMeetsOthers: a guard that the store names is no licence to ignore
// what others wrote meanwhile.
func TestWriteAfterForgettingMeetsOthers(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), &events.Failed{Code: events.NoCandidate}}, func(t *testing.T, ctx context.Context, s *seer) {
		s.view.Forget(time.Now().Add(time.Hour))
		s.log.before = func(try int, _ events.Message) {
			if try == 2 {
				putFor(t, s.mem, steve, second, requested())
			}
		}
		third := num[events.TransferID](3)
		_, refusal, err := s.write(ctx, steve, Request{Transfer: third, Fact: *requested()})
		if err != nil || refusal == nil || refusal.Code != events.AlreadyActive {
			t.Fatalf("refusal %v, error %v; want ALREADY_ACTIVE", refusal, err)
		}
	})
}

// TestWriteBlind: a process that cannot see the log decides nothing.
func TestWriteBlind(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.log.Cut()
		synctest.Wait()
		_, refusal, err := s.write(ctx, steve, waitlist)
		if !errors.Is(err, errBlind) || refusal != nil {
			t.Errorf("refusal %v, error %v; want %v", refusal, err, errBlind)
		}
		if n := len(s.log.tries()); n != 0 {
			t.Errorf("%d appends, want none", n)
		}
	})
}

// TestWriteIsBounded: contention without end is an error, not a loop.
func TestWriteIsBounded(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		s.log.FailAppend(events.Conflict, 1000)
		start := time.Now()
		_, refusal, err := s.write(ctx, steve, waitlist)
		if err == nil || refusal != nil {
			t.Fatalf("refusal %v, error %v; want an error", refusal, err)
		}
		if n := len(s.log.tries()); n != maxAttempts+1 {
			t.Errorf("%d appends, want %d", n, maxAttempts+1)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// TestWriteWaitsUntilFolded: who wrote a fact reads it.
func TestWriteWaitsUntilFolded(t *testing.T) {
	mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
		release := s.log.hold(events.Transfers)
		done := make(chan landed, 1)
		go func() {
			l, _, _ := s.write(ctx, steve, waitlist)
			done <- l
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("write returned before its fact was folded")
		default:
		}
		release()
		<-done
		if p := s.view.Player(steve).Active.Phase; p != projections.Waiting {
			t.Errorf("the fold says %s", p)
		}
	})
}

// TestWriteFreshWaits: a refusal that rests on an old fold is not an answer.
func TestWriteFreshWaits(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), reserved(1)}, func(t *testing.T, ctx context.Context, s *seer) {
		release := s.log.hold(events.Transfers)
		s.put(t, claimed(1, "e1"))
		type answer struct {
			refusal *events.Refusal
			err     error
		}
		c := Consume{Server: "b", Incarnation: lifeOf("b"), Join: num[events.JoinID](9), Held: []events.Token{{Transfer: first, Attempt: 1}}}
		fresh := make(chan answer, 1)
		go func() {
			_, refusal, err := s.writeFresh(ctx, steve, c)
			fresh <- answer{refusal, err}
		}()
		synctest.Wait()
		if _, refusal, _ := s.write(ctx, steve, c); refusal == nil || refusal.Code != events.WaitABit {
			t.Errorf("the old fold refuses with %v, want WAIT", refusal)
		}
		select {
		case a := <-fresh:
			t.Errorf("answered %v from an old fold", a)
		default:
		}
		release()
		if a := <-fresh; a.refusal != nil || a.err != nil {
			t.Errorf("refusal %v, error %v; want the arrival recorded", a.refusal, a.err)
		}
	})
}

// TestWriteRace: many dispatchers, each believing that it holds the session, claim one
// token; one wins.
func TestWriteRace(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		const racers = 8
		var all []*seer
		for i := range racers {
			all = append(all, newSeer(t, ctx, mem, events.HostID("e"+string(rune('1'+i)))))
		}
		all[0].put(t, requested(), reserved(1))
		synctest.Wait()
		won := make(chan bool, racers)
		for _, s := range all {
			go func() {
				_, refusal, err := s.write(ctx, steve, Claim{Token: events.Token{Transfer: first, Attempt: 1}, By: s.Source, InLogin: true})
				won <- err == nil && refusal == nil
			}()
		}
		n := 0
		for range racers {
			if <-won {
				n++
			}
		}
		if n != 1 || len(stored(t, mem, events.Transfers)) != 3 {
			t.Errorf("%d winners, %d facts; want 1 and 3", n, len(stored(t, mem, events.Transfers)))
		}
	})
}

// TestAppendInDoubt: a try that did not leave says nothing of the one before it, which may
// have landed: it goes on until the store has answered.
func TestAppendInDoubt(t *testing.T) {
	mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
		c := s.log.Client
		c.LoseNextAck(1)
		s.log.before = func(try int, _ events.Message) {
			if try == 2 {
				c.Cut()
				time.AfterFunc(10*time.Second, c.Heal)
			}
		}
		key := events.TransferKey(steve, first)
		m := streamtest.Seal(t, events.Envelope{ID: streamtest.NewID[events.EventID](), Source: edge("e1"), Time: time.Now(), Key: key, Correlation: first}, requested())
		seq, err := s.appendSurely(ctx, m)
		if err != nil || seq != 1 || len(stored(t, s.mem, events.Transfers)) != 1 {
			t.Errorf("sequence %d, error %v, %d facts; want the one that landed first", seq, err, len(stored(t, s.mem, events.Transfers)))
		}
		s.log.before = nil
		c.Cut()
		if _, err := s.appendSurely(ctx, m); !strings.Contains(fmt.Sprint(err), string(events.Unavailable)) {
			t.Errorf("what never left: %v", err)
		}
	})
}
