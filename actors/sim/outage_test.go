package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// steps are the points between two facts at which e1 can be held up, by what it is about to do.
var steps = map[string]string{
	"requested":             ".reserve",
	"reserve sent":          "reserved",
	"reserved":              "claimed",
	"claimed, not yet sent": ".move",
}

// A second request, whatever the transfer has come to, gets the active one.
func TestSecondRequestGetsTheActiveOne(t *testing.T) {
	for row, step := range steps {
		t.Run(row, func(t *testing.T) {
			play(t, func(s *scene) {
				h := s.askAndHold(step)
				s.player.Ask("")
				s.reads("transfer.active")
				h.release()
				got := s.outcome(s.player, forever)
				s.completed(s.player, got, "b")
				if n := s.count(func(f events.Fact) bool { _, ok := f.(*events.Requested); return ok }); n != 1 {
					t.Errorf("%d transfers opened, want 1\n%s", n, s.story())
				}
			})
		})
	}
}

// Another wish replaces the transfer before it is claimed, and is refused after.
func TestOtherWish(t *testing.T) {
	for row, step := range steps {
		t.Run(row, func(t *testing.T) {
			play(t, func(s *scene) {
				h := s.askAndHold(step)
				s.player.Ask("default")
				if row != "claimed, not yet sent" {
					s.reads("transfer.replaced")
					h.release()
					got := s.outcome(s.player, forever)
					s.completed(s.player, got, "b")
					if got.Request.Wish.Region != "default" {
						t.Errorf("arrived for %+v, want the later wish", got.Request.Wish)
					}
				} else {
					s.reads("refused.ALREADY_MOVING")
					h.release()
					s.completed(s.player, s.outcome(s.player, forever), "b")
				}
				s.conserved("b")
			})
		})
	}
}

// While the store is away nothing is decided and no deadline runs; then everything goes on.
func TestStoreOutageAtEachStep(t *testing.T) {
	for row, step := range steps {
		t.Run(row, func(t *testing.T) {
			play(t, func(s *scene) {
				h := s.askAndHold(step)
				facts := len(s.mem.Records(events.Transfers))
				s.mem.Outage()
				h.release()
				s.pass(20 * time.Second) // less than the token's time, more than staleness
				if n := len(s.mem.Records(events.Transfers)); n != facts {
					t.Errorf("%d facts during the outage", n-facts)
				}
				s.mem.Restore()
				got := s.outcome(s.player, forever)
				s.completed(s.player, got, got.Destination())
				s.consumedOnce(got)
			})
		})
	}
}

func TestStoreOutageAfterTheMove(t *testing.T) {
	play(t, func(s *scene) {
		token := s.sentAway()
		s.mem.Outage()
		s.pass(2 * time.Second)
		s.comesWith(token, "e2") // doors stay open; the fold still shows the way
		s.pass(5 * time.Second)
		s.mem.Restore()
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		s.consumedOnce(got)
	})
}

// The store is away for half a minute while one player is between two servers and others ask:
// nobody decides out of a memory of its own. Who asks is told that it is unavailable, who comes
// back is led as the last fold says, and what that means is written once the store is back.
func TestCase116_NoLocalStandInForTheStore(t *testing.T) {
	play(t, func(s *scene) {
		alex := s.rig.player("Alex", "e2", "a")
		token := s.sentAway()
		s.mem.Outage()
		facts := len(s.mem.Records(events.Transfers))
		s.pass(time.Second)
		alex.Ask("")
		s.comesWith(token, "e2")
		s.pass(29 * time.Second)
		if heard := alex.Look().Texts; !has(heard, expand("refused.TRANSPORT_DOWN")) {
			t.Errorf("who asked was told %q", heard)
		}
		if n := len(s.mem.Records(events.Transfers)); n != facts {
			t.Errorf("%d facts during the outage", n-facts)
		}
		s.mem.Restore()
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		s.consumedOnce(got)
		if s.count(func(f events.Fact) bool { _, asked := f.(*events.Requested); return asked }) != 1 {
			t.Error("what was refused was asked for all the same")
		}
	})
}

func TestStoreOutageRefusesRequests(t *testing.T) {
	play(t, func(s *scene) {
		s.mem.Outage()
		s.pass(time.Second)
		s.player.Ask("")
		s.reads("refused.TRANSPORT_DOWN")
		s.mem.Restore()
		s.settle()
		s.player.Ask("")
		end := s.outcome(s.player, forever)
		s.completed(s.player, end, end.Destination()) // the lobby may have asked when one server had not been heard of again
	})
}

// Two dispatchers believe that they hold the player: one guard, one lands, the other
// coordinate goes back.
func TestTwoReservesAtOnce(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold("reserved")
		s.returns() // e2 holds the session now and dispatches
		got := s.outcome(s.player, forever)
		h.release()
		s.completed(s.player, got, got.Destination())
		s.conserved("b")
		s.conserved("c")
		if n := s.count(func(f events.Fact) bool { _, ok := f.(*events.Reserved); return ok }); n != 1 {
			t.Errorf("%d tokens, want 1\n%s", n, s.story())
		}
	})
}

// --- the door ---

func TestStolenToken(t *testing.T) {
	play(t, func(s *scene) {
		token := s.sentAway()
		thief := s.net.AddClient("Mallory", 767)
		if err := thief.Join(s.ctx, "e2", token); err != nil {
			t.Fatal(err)
		}
		s.until("thief somewhere", 5*time.Second, func() bool { return thief.Look().Server != "" })
		s.pass(2 * time.Second)
		if v := thief.Look(); v.Position != sim.Spawn {
			t.Errorf("the thief was put at %v", v.Position)
		}
		s.until("audit entry", time.Second, func() bool { return s.audited(events.WrongPlayer) == 1 })
		s.comesWith(token, "e1")
		s.completed(s.player, s.outcome(s.player, forever), "b")
	})
}

func TestExpiredToken(t *testing.T) {
	play(t, func(s *scene) {
		token := s.sentAway()
		got := s.outcome(s.player, forever)
		s.ended(s.player, got, projections.Failed, events.NotArrived)
		s.comesWith(token, "e2")
		s.ended(s.player, got, projections.Failed, events.NotArrived, messages.Text("failed.NOT_ARRIVED", nil))
		if at := s.player.Look().Server; at != "a" {
			t.Errorf("player is on %q, want a, where the last session was", at)
		}
		s.until("audit entry", time.Second, func() bool { return s.audited(events.TokenSpent) == 1 })
	})
}

// The reconnect may reach an edge before the facts do: the login is held.
func TestLoginHeldForUnknownToken(t *testing.T) {
	play(t, func(s *scene) {
		token := events.Token{Transfer: streamtest.NewID[events.TransferID](), Attempt: 1}
		done := make(chan error, 1)
		s.player.Quit()
		go func() { done <- s.player.Join(s.ctx, "e2", token) }()
		s.pass(2 * time.Second)
		select {
		case err := <-done:
			t.Fatalf("login was not held: %v", err)
		default:
		}
		src := s.dispatchers["e1"].actor.Source
		key := events.TransferKey(s.player.ID, token.Transfer)
		prev := uint64(0)
		for _, f := range []events.Fact{
			&events.Requested{Trigger: events.TriggerCommand, Origin: "a", Name: s.player.Name},
			&events.Reserved{Attempt: 1, Server: "b", Incarnation: s.backends["b"].actor.Incarnation(), Promise: 9, Region: "default", TTLMs: 30000, Decision: behindDecision},
			&events.Claimed{Attempt: 1, Dispatcher: src.ID, Incarnation: src.Incarnation, From: "a"},
		} {
			m := streamtest.Seal(t, events.Envelope{ID: streamtest.NewID[events.EventID](), Source: src, Time: time.Now(), Key: key, Correlation: token.Transfer, Prev: prev}, f)
			seq, err := s.mem.Client("tester").Append(s.ctx, m)
			if err != nil {
				t.Fatal(err)
			}
			prev = seq
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if at := s.player.Look().Server; at != "b" {
			t.Errorf("player is on %q, want b\n%s", at, s.story())
		}
	})
}

var behindDecision = events.Decision{Policy: "test", Candidates: []events.Candidate{}, Filtered: []events.Filtered{}}

func TestLoginHeldNoLongerThanAllowed(t *testing.T) {
	play(t, func(s *scene) {
		s.player.Quit()
		began := time.Now()
		s.comesWith(events.Token{Transfer: streamtest.NewID[events.TransferID](), Attempt: 1}, "e2")
		if took := time.Since(began); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("held for %s, want 5 s", took)
		}
		if at := s.player.Look().Server; at != "a" {
			t.Errorf("player is on %q, want a", at)
		}
		s.until("audit entry", time.Second, func() bool { return s.audited(events.TokenUnknown) == 1 })
	})
}

func TestClientTooOld(t *testing.T) {
	play(t, func(s *scene) {
		old := s.net.AddClient("Oldie", 765)
		s.pinned(old, "a")
		if err := old.Join(s.ctx, "e1", events.Token{}); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Second)
		old.Ask("")
		s.ended(old, s.outcome(old, forever), projections.Failed, events.ClientTooOld, messages.Text("failed.CLIENT_TOO_OLD", nil))
		if at := old.Look().Server; at != "a" {
			t.Errorf("player is on %q, want a", at)
		}
	})
}

func TestUnknownRegion(t *testing.T) {
	play(t, func(s *scene) {
		s.player.Ask("atlantis")
		s.ended(s.player, s.outcome(s.player, forever), projections.Failed, events.RegionMissing)
	})
}

// A server that is away says nothing of a place that it never had: nobody waits for it.
func TestUnknownRegionWhileAServerIsAway(t *testing.T) {
	play(t, func(s *scene) {
		s.c.Kill()
		s.pass(2 * time.Second)
		s.player.Ask("atlantis")
		s.ended(s.player, s.outcome(s.player, forever), projections.Failed, events.RegionMissing, expand("failed.REGION_MISSING"))
	})
}

// A message that could not be shown follows its player to another server and another edge.
func TestToldElsewhere(t *testing.T) {
	play(t, func(s *scene) {
		s.mem.DropRequest(func(subject string) bool { return subject == events.ToBackend("a", events.VerbTell) }, 1000)
		s.player.Ask("atlantis")
		got := s.outcome(s.player, forever)
		s.killBackend("a")
		s.pass(6 * time.Second) // nobody takes e1, which holds the player, for dead
		s.returns()
		if at := s.player.Look().Server; at == "a" {
			t.Fatal("the player is still on a")
		}
		s.ended(s.player, got, projections.Failed, events.RegionMissing, expand("failed.REGION_MISSING"))
	})
}

// --- stopping things ---

func TestKillSwitch(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold("claimed")
		seq := s.operator("kill", 0, &events.KillSet{On: true, Who: "op", Why: "maintenance"})
		h.release()
		s.until("token released", 5*time.Second, func() bool {
			return s.count(func(f events.Fact) bool { _, ok := f.(*events.Released); return ok }) == 1
		})
		other := s.rig.player("Late", "e2", "a")
		other.Ask("")
		s.until("refused", 5*time.Second, func() bool { return has(other.Look().Texts, messages.Text("refused.KILL_SWITCH", nil)) })
		s.operator("kill", seq, &events.KillSet{On: false, Who: "op"})
		s.completed(s.player, s.outcome(s.player, forever), "b")
	})
}

func TestDrainedBackendIsNotChosen(t *testing.T) {
	play(t, func(s *scene) {
		s.operator("drain.b", 0, &events.DrainSet{Host: "b", On: true, Who: "op"})
		s.player.Ask("")
		s.completed(s.player, s.outcome(s.player, forever), "c")
	})
}

// --- the line ---

func TestWaitingPlayersAreServedInOrder(t *testing.T) {
	play(t, func(s *scene) {
		s.b.Kill()
		s.c.Kill()
		s.settle()
		players := []*sim.Client{s.player}
		for _, name := range []string{"Second", "Third", "Fourth"} {
			players = append(players, s.rig.player(name, "e1", "a"))
		}
		for _, p := range players {
			p.Ask("")
			s.until("in line", 5*time.Second, func() bool { return has(p.Look().Texts, messages.Text("transfer.waiting", nil)) })
		}
		s.b.Restart()
		var order []events.PlayerID
		for _, p := range players {
			s.completed(p, s.outcome(p, forever), "b")
		}
		for _, e := range s.facts(events.Transfers) {
			if _, ok := e.Fact.(*events.Reserved); ok {
				id, _, _ := events.ParseTransferKey(e.Key)
				order = append(order, id)
			}
		}
		for i, p := range players {
			if order[i] != p.ID {
				t.Errorf("%d. served is %s, want %s\n%s", i+1, order[i], p.Name, s.story())
			}
		}
	})
}

// --- unsafe and failing places ---

func TestUnsafeCoordinatesAreReplaced(t *testing.T) {
	play(t, func(s *scene) {
		s.b.Spoil()
		s.player.Ask("")
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, got.Destination())
		s.conserved("b")
	})
}

// --- helps ---

func (s *scene) reads(key string) {
	s.t.Helper()
	s.until("message "+key, 10*time.Second, func() bool { return has(s.player.Look().Texts, expand(key)) })
}

func has(texts []string, want string) bool {
	for _, text := range texts {
		if matches(text, want) {
			return true
		}
	}
	return false
}

func (s *scene) count(is func(events.Fact) bool) int {
	n := 0
	for _, e := range s.facts(events.Transfers) {
		if is(e.Fact) {
			n++
		}
	}
	return n
}

func (s *scene) audited(code events.Code) int {
	n := 0
	for _, e := range s.facts(events.Audit) {
		if f, ok := e.Fact.(*events.Rejected); ok && f.Code == code {
			n++
		}
	}
	return n
}
