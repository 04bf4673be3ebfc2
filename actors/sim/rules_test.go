package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// The happy path, killed between each pair of its steps: one test for each cell of a table
// whose row is the last step that happened and whose column is who dies.

// scene is two edges, a lobby "a" where the player stands, and two destinations: "b", which
// keeps more and is chosen first, and "c".
type scene struct {
	*rig
	a, b, c *sim.World
	player  *sim.Client
}

func play(t *testing.T, body func(s *scene)) {
	t.Helper()
	simulate(t, events.KindEdge, func(r *rig) {
		s := &scene{rig: r}
		r.dispatcher("e1")
		r.dispatcher("e2")
		s.a, s.b, s.c = r.backend("a", 0), r.backend("b", 8), r.backend("c", 2)
		r.settle()
		s.player = r.player("Steve", "e1", "a")
		body(s)
	})
}

func (s *scene) e1() *gate { return s.dispatchers["e1"].client }

// askAndHold asks for a move and waits until e1 stands before a step.
func (s *scene) askAndHold(step string) *hold {
	s.t.Helper()
	h := s.e1().hold(step)
	s.player.Ask("")
	s.until("e1 before "+step, 10*time.Second, h.isReached)
	return h
}

// returns makes the player log in again through e2 once the connection is gone.
func (s *scene) returns() {
	s.t.Helper()
	s.player.Quit()
	if err := s.player.Join(s.ctx, "e2", events.Token{}); err != nil {
		s.t.Fatalf("login through e2: %v\n%s", err, s.story())
	}
}

// followsLater lets the player be sent away without reconnecting, and gives the token.
func (s *scene) sentAway() events.Token {
	s.t.Helper()
	s.player.Follow(false)
	s.player.Ask("")
	var token events.Token
	s.until("player sent away", 10*time.Second, func() bool {
		p := s.observer().View().Player(s.player.ID)
		if p.Active == nil || p.Active.Phase != projections.Claimed || s.player.Look().Server != "" {
			return false
		}
		token = p.Active.Token
		return true
	})
	return token
}

func (s *scene) comesWith(token events.Token, edge events.HostID) {
	s.t.Helper()
	if err := s.player.Join(s.ctx, edge, token); err != nil {
		s.t.Fatalf("login through %s: %v\n%s", edge, err, s.story())
	}
}

// conserved demands that every coordinate of a backend's life is accounted for and none is
// still promised.
func (s *scene) conserved(id events.HostID) {
	s.t.Helper()
	s.until("promises of "+string(id)+" ended", time.Minute, func() bool { return s.backends[id].actor.Tally().Promised == 0 })
	if n := s.backends[id].actor.Tally(); n.Found != n.Ready+n.Promised+n.Placed+n.Dropped {
		s.t.Errorf("coordinates of %s lost or doubled: %+v", id, n)
	}
}

func (s *scene) consumedOnce(t projections.Transfer) {
	s.t.Helper()
	n := 0
	for _, e := range s.facts(events.Transfers) {
		if _, ok := e.Fact.(*events.Consumed); ok && e.Correlation == t.ID {
			n++
		}
	}
	if n != 1 {
		s.t.Errorf("%d consumed facts, want 1\n%s", n, s.story())
	}
}

const forever = 3 * time.Minute // longer than every deadline

// --- after `requested` ---

func TestRequestedHolderDiesPlayerReturns(t *testing.T) {
	play(t, func(s *scene) {
		s.askAndHold(".reserve")
		s.killDispatcher("e1")
		s.returns()
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		if got.Claim.Dispatcher != "e2" {
			t.Errorf("claimed by %s, want e2", got.Claim.Dispatcher)
		}
	})
}

func TestRequestedHolderDiesPlayerGone(t *testing.T) {
	play(t, func(s *scene) {
		s.askAndHold(".reserve")
		s.killDispatcher("e1")
		s.ended(s.player, s.outcome(s.player, forever), projections.Cancelled, events.GraceOver)
	})
}

func TestRequestedOriginDies(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold(".reserve")
		s.a.Kill()
		s.until("close", 5*time.Second, func() bool { x, _ := s.observer().View().Session(s.player.ID); return !x.Open })
		h.release()
		s.ended(s.player, s.outcome(s.player, forever), projections.Cancelled, events.GraceOver)
		s.conserved("b")
	})
}

func TestRequestedPlayerQuits(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold(".reserve")
		s.player.Quit()
		h.release()
		s.ended(s.player, s.outcome(s.player, forever), projections.Cancelled, events.GraceOver)
		s.conserved("b")
	})
}

func TestRequestedPlayerReturnsThroughOtherEdge(t *testing.T) {
	play(t, func(s *scene) {
		s.askAndHold(".reserve")
		place := s.observer().View().Player(s.player.ID).Active.Place
		s.returns()
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		if got.Place != place {
			t.Errorf("place %d became %d", place, got.Place)
		}
	})
}

// --- after the destination was asked, without an answer ---

func TestReserveUnansweredHolderDies(t *testing.T) {
	play(t, func(s *scene) {
		s.mem.LoseAnswer(func(subject string) bool { return subject == events.ToBackend("b", events.VerbReserve) }, 1)
		s.player.Ask("")
		s.until("promise at b", 5*time.Second, func() bool { return s.backends["b"].actor.Tally().Promised == 1 })
		s.killDispatcher("e1")
		s.returns()
		s.completed(s.player, s.outcome(s.player, forever), "b")
		s.conserved("b")
	})
}

func TestReserveUnansweredDestinationDies(t *testing.T) {
	play(t, func(s *scene) {
		s.mem.LoseAnswer(func(subject string) bool { return subject == events.ToBackend("b", events.VerbReserve) }, 1)
		s.player.Ask("")
		s.until("promise at b", 5*time.Second, func() bool { return s.backends["b"].actor.Tally().Promised == 1 })
		s.b.Kill()
		s.completed(s.player, s.outcome(s.player, forever), "c")
	})
}

func TestReserveUnansweredOriginDies(t *testing.T) {
	play(t, func(s *scene) {
		s.mem.LoseAnswer(func(subject string) bool { return subject == events.ToBackend("b", events.VerbReserve) }, 1)
		s.player.Ask("")
		s.until("promise at b", 5*time.Second, func() bool { return s.backends["b"].actor.Tally().Promised == 1 })
		s.a.Kill()
		s.ended(s.player, s.outcome(s.player, forever), projections.Cancelled, events.GraceOver)
		s.conserved("b")
		s.conserved("c")
	})
}

func TestReserveUnansweredPlayerReturns(t *testing.T) {
	play(t, func(s *scene) {
		s.mem.LoseAnswer(func(subject string) bool { return subject == events.ToBackend("b", events.VerbReserve) }, 1)
		s.player.Ask("")
		s.until("promise at b", 5*time.Second, func() bool { return s.backends["b"].actor.Tally().Promised == 1 })
		s.returns()
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, got.Destination())
		s.conserved("b")
		s.conserved("c")
	})
}

// --- after `reserved` ---

func TestReservedHolderDies(t *testing.T) {
	play(t, func(s *scene) {
		s.askAndHold("claimed")
		s.killDispatcher("e1")
		s.returns()
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		if got.Claim.Dispatcher != "e2" {
			t.Errorf("claimed by %s, want e2", got.Claim.Dispatcher)
		}
		s.consumedOnce(got)
	})
}

func TestReservedDestinationDies(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold("claimed")
		s.b.Restart()
		s.until("token ended by the new beat", 10*time.Second, func() bool {
			for _, e := range s.facts(events.Transfers) {
				if f, ok := e.Fact.(*events.Expired); ok {
					return f.Reason == events.NewIncarnation
				}
			}
			return false
		})
		h.release()
		got := s.outcome(s.player, forever)
		if got.Attempts < 2 {
			t.Errorf("%d attempts, want a next one", got.Attempts)
		}
		s.completed(s.player, got, got.Destination())
	})
}

func TestReservedOriginDies(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold("claimed")
		s.a.Kill()
		s.until("close", 5*time.Second, func() bool { x, _ := s.observer().View().Session(s.player.ID); return !x.Open })
		h.release()
		s.ended(s.player, s.outcome(s.player, forever), projections.Cancelled, events.GraceOver)
		s.conserved("b")
	})
}

func TestReservedPlayerQuits(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold("claimed")
		s.player.Quit()
		s.until("close", 5*time.Second, func() bool { x, _ := s.observer().View().Session(s.player.ID); return !x.Open })
		h.release()
		got := s.outcome(s.player, forever)
		s.ended(s.player, got, projections.Cancelled, events.GraceOver)
		if got.Attempts != 1 {
			t.Errorf("%d attempts for a player who is away, want 1", got.Attempts)
		}
		s.conserved("b")
	})
}

func TestReservedPlayerReturns(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold("claimed")
		s.returns()
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		if got.Claim.Dispatcher != "e2" {
			t.Errorf("claimed by %s, want e2", got.Claim.Dispatcher)
		}
		h.release()
		s.consumedOnce(got)
	})
}

// --- after `claimed`, before the move ---

func TestClaimedHolderDiesPlayerReturns(t *testing.T) {
	play(t, func(s *scene) {
		s.askAndHold(".move")
		s.killDispatcher("e1")
		s.returns()
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		s.consumedOnce(got)
	})
}

// The claimer dies, the player's session goes on (in direct mode it is the game server's),
// and the next life of the dispatcher takes the claim back. The old life then wakes up.
func TestClaimedHolderDiesSessionLives(t *testing.T) {
	simulate(t, events.KindDirect, func(r *rig) {
		old := r.direct("d-a", "a")
		r.direct("d-b", "b")
		s := &scene{rig: r}
		s.a, s.b = r.backend("a", 0), r.backend("b", 4)
		r.settle()
		s.player = r.net.AddClient("Alex", 767)
		if err := s.player.JoinDirect("a"); err != nil {
			t.Fatal(err)
		}
		r.until("session", 5*time.Second, func() bool {
			x, ok := r.observer().View().Session(s.player.ID)
			return ok && x.Open && x.Server == "a"
		})
		sleeper := r.dispatchers["d-a"]
		h := sleeper.client.hold(".move")
		s.player.Ask("")
		r.until("claimed", 5*time.Second, h.isReached)
		sleeper.client.Stop()

		// the supervisor starts another life under the same id, on its own connection
		r.dispatchers["d-a-old"] = sleeper
		r.startDispatcherOn("d-a2", "d-a", events.SourceDirect, actors.DispatcherConfig{Kind: events.KindDirect, Local: "a"})
		r.until("claim taken back and claimed anew", time.Minute, func() bool {
			p := r.dispatchers["d-b"].actor.View().Player(s.player.ID)
			return len(p.Done) == 1 || p.Active != nil && p.Active.Claim != nil && p.Active.Claim.Incarnation != old.Source.Incarnation
		})
		sleeper.client.Resume()
		h.release()
		got := r.outcome(s.player, forever)
		r.completed(s.player, got, "b")
		s.consumedOnce(got)
		reopened := false
		for _, e := range r.facts(events.Transfers) {
			if f, ok := e.Fact.(*events.Reopened); ok {
				reopened = true
				if f.Evidence != events.NewIncarnation {
					t.Errorf("evidence %s, want NEW_INCARNATION", f.Evidence)
				}
			}
		}
		if !reopened {
			t.Errorf("the claim was not taken back\n%s", r.story())
		}
	})
}

func TestClaimedDestinationDies(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold(".move")
		s.b.Restart()
		s.until("new life of b", 5*time.Second, func() bool {
			b := s.observer().View().Fleet().Backend("b")
			t := s.observer().View().Player(s.player.ID).Active
			return b != nil && t != nil && b.Incarnation != t.Reserved.Incarnation
		})
		h.release()
		got := s.outcome(s.player, forever)
		if got.Attempts < 2 {
			t.Errorf("%d attempts, want a next one", got.Attempts)
		}
		s.completed(s.player, got, got.Destination())
	})
}

func TestClaimedOriginDies(t *testing.T) {
	play(t, func(s *scene) {
		s.askAndHold(".move")
		s.a.Kill()
		s.comesWith(events.Token{}, "e2")
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		s.consumedOnce(got)
	})
}

func TestClaimedPlayerQuits(t *testing.T) {
	play(t, func(s *scene) {
		h := s.askAndHold(".move")
		s.player.Quit()
		h.release()
		got := s.outcome(s.player, forever)
		s.ended(s.player, got, projections.Cancelled, events.GraceOver)
		s.conserved("b")
	})
}

func TestClaimedPlayerReturns(t *testing.T) {
	play(t, func(s *scene) {
		s.askAndHold(".move")
		s.returns()
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		s.consumedOnce(got)
	})
}

// --- after the move was sent, or may have been ---

func TestMovedHolderDies(t *testing.T) {
	play(t, func(s *scene) {
		token := s.sentAway()
		s.killDispatcher("e1")
		s.pass(12 * time.Second) // long enough for anyone who would reopen
		s.comesWith(token, "e2")
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		s.consumedOnce(got)
		for _, e := range s.facts(events.Transfers) {
			if _, ok := e.Fact.(*events.Reopened); ok {
				t.Errorf("reopened after the move was sent\n%s", s.story())
			}
		}
	})
}

func TestMovedDestinationDiesNextAttemptInLogin(t *testing.T) {
	play(t, func(s *scene) {
		token := s.sentAway()
		s.b.Kill()
		s.comesWith(token, "e2")
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "c")
		s.consumedOnce(got)
	})
}

func TestMovedDestinationDiesNobodyElse(t *testing.T) {
	play(t, func(s *scene) {
		token := s.sentAway()
		s.b.Kill()
		s.c.Kill()
		s.comesWith(token, "e2")
		got := s.outcome(s.player, forever)
		s.ended(s.player, got, projections.Failed, events.Unreachable, messages.Text("failed.UNREACHABLE", nil))
		if at := s.player.Look().Server; at != "a" {
			t.Errorf("player is on %q, want the fallback a", at)
		}
	})
}

func TestMovedOriginDies(t *testing.T) {
	play(t, func(s *scene) {
		token := s.sentAway()
		s.a.Kill()
		s.comesWith(token, "e1")
		s.completed(s.player, s.outcome(s.player, forever), "b")
	})
}

func TestMovedPlayerGone(t *testing.T) {
	play(t, func(s *scene) {
		s.sentAway()
		got := s.outcome(s.player, forever)
		s.ended(s.player, got, projections.Failed, events.NotArrived)
		s.comesWith(events.Token{}, "e1")
		s.ended(s.player, got, projections.Failed, events.NotArrived, messages.Text("failed.NOT_ARRIVED", nil))
		s.conserved("b")
	})
}

func TestMoveUnknownButHappened(t *testing.T) {
	play(t, func(s *scene) {
		s.mem.LoseAnswer(func(subject string) bool { return subject == events.ToBackend("a", events.VerbMove) }, 1)
		s.player.Ask("")
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		s.consumedOnce(got)
	})
}

func TestMoveUnknownAndDidNotHappen(t *testing.T) {
	play(t, func(s *scene) {
		s.mem.DropRequest(func(subject string) bool { return subject == events.ToBackend("a", events.VerbMove) }, 1)
		s.player.Ask("")
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, got.Destination()) // the origin, asked again, knew nothing of it
		s.consumedOnce(got)
	})
}

func TestMoveUnknownForGood(t *testing.T) {
	play(t, func(s *scene) {
		s.mem.DropRequest(func(subject string) bool { return subject == events.ToBackend("a", events.VerbMove) }, 2)
		s.player.Ask("")
		got := s.outcome(s.player, forever)
		s.ended(s.player, got, projections.Failed, events.NotArrived, messages.Text("failed.NOT_ARRIVED", nil))
		if at := s.player.Look().Server; at != "a" {
			t.Errorf("player is on %q, want a", at)
		}
	})
}

// --- after the arrival, before `consumed` ---

func (s *scene) arrivesUnheard() {
	s.t.Helper()
	s.mem.DropRequest(func(subject string) bool { return subject == events.AskOf("b", events.VerbArrived) }, 1)
	s.player.Ask("")
	s.until("player at b", 10*time.Second, func() bool { return s.player.Look().Server == "b" })
}

func TestArrivedHolderDies(t *testing.T) {
	play(t, func(s *scene) {
		s.net.ChooseEdge(func(*sim.Client, []events.HostID) events.HostID { return "e2" })
		s.arrivesUnheard()
		s.killDispatcher("e1")
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		s.consumedOnce(got)
	})
}

func TestArrivedDestinationDies(t *testing.T) {
	play(t, func(s *scene) {
		s.arrivesUnheard()
		s.b.Restart()
		s.pass(3 * time.Second)
		s.comesWith(events.Token{}, "e2")
		got := s.outcome(s.player, forever)
		s.ended(s.player, got, projections.Failed, events.PromiseGone, messages.Text("failed.PROMISE_GONE", nil))
		if v := s.player.Look(); v.Server != "b" || v.Position != sim.Spawn {
			t.Errorf("player is on %q at %v, want b at spawn", v.Server, v.Position)
		}
	})
}

func TestArrivedPlayerGone(t *testing.T) {
	play(t, func(s *scene) {
		s.arrivesUnheard()
		s.player.Quit()
		got := s.outcome(s.player, forever)
		s.ended(s.player, got, projections.Failed, events.NotArrived)
		s.conserved("b")
	})
}

// --- after `consumed` ---

func (s *scene) consumedUnplaced() {
	s.t.Helper()
	s.mem.DropRequest(func(subject string) bool { return subject == events.AskOf("b", events.VerbPlaced) }, 1000)
	s.net.ChooseEdge(func(*sim.Client, []events.HostID) events.HostID { return "e2" })
	s.player.Ask("")
	s.until("consumed", 10*time.Second, func() bool {
		t := s.observer().View().Player(s.player.ID).Active
		x, _ := s.observer().View().Session(s.player.ID)
		return t != nil && t.Phase == projections.Consumed && x.Open && x.Server == "b"
	})
}

func TestConsumedHolderDies(t *testing.T) {
	play(t, func(s *scene) {
		s.net.ChooseEdge(func(*sim.Client, []events.HostID) events.HostID { return "e2" })
		s.mem.DropRequest(func(subject string) bool { return subject == events.AskOf("b", events.VerbPlaced) }, 1)
		s.player.Ask("")
		s.until("consumed", 10*time.Second, func() bool {
			t := s.observer().View().Player(s.player.ID).Active
			return t != nil && t.Phase == projections.Consumed
		})
		s.killDispatcher("e1")
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		s.consumedOnce(got)
	})
}

func TestConsumedDestinationDies(t *testing.T) {
	play(t, func(s *scene) {
		s.consumedUnplaced()
		s.b.Restart()
		s.ended(s.player, s.outcome(s.player, forever), projections.Failed, events.PlayerLeft)
	})
}

func TestConsumedBackendProcessDies(t *testing.T) {
	play(t, func(s *scene) {
		s.consumedUnplaced()
		s.killBackend("b")
		s.attach("b", s.b, 4)
		s.ended(s.player, s.outcome(s.player, forever), projections.Failed, events.PlacementUnconfirmed,
			messages.Text("failed.PLACEMENT_UNCONFIRMED", nil))
	})
}

func TestConsumedNeverPlaced(t *testing.T) {
	play(t, func(s *scene) {
		s.consumedUnplaced()
		s.ended(s.player, s.outcome(s.player, forever), projections.Failed, events.PlacementUnconfirmed,
			messages.Text("failed.PLACEMENT_UNCONFIRMED", nil))
	})
}

func TestConsumedPlayerLeaves(t *testing.T) {
	play(t, func(s *scene) {
		s.consumedUnplaced()
		s.player.Quit()
		s.ended(s.player, s.outcome(s.player, forever), projections.Failed, events.PlayerLeft)
	})
}
