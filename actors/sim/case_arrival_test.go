package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// Cases of arrival: what others did wrong between the decision to move a player and the moment
// at which the player stands somewhere. The number is that of the case in our list.

// village is a network without a front: three backends, each with a dispatcher of its own.
// Players connect to game servers, and so can go where nobody sends them.
func village(t *testing.T, body func(s *scene)) {
	t.Helper()
	simulate(t, events.KindDirect, func(r *rig) {
		s := &scene{rig: r}
		for _, id := range []events.HostID{"a", "b", "c"} {
			r.direct("d-"+id, id)
		}
		s.a, s.b, s.c = r.backend("a", 0), r.backend("b", 8), r.backend("c", 2)
		r.settle()
		s.player = r.net.AddClient("Steve", 767)
		s.joinsDirectly("a")
		body(s)
	})
}

// joinsDirectly connects the player to a server, and waits until the log knows.
func (s *scene) joinsDirectly(server events.HostID) {
	s.t.Helper()
	if err := s.player.JoinDirect(server); err != nil {
		s.t.Fatal(err)
	}
	s.standsOn(server)
}

func (s *scene) standsOn(server events.HostID) {
	s.t.Helper()
	s.until("session on "+string(server), 5*time.Second, func() bool {
		x, ok := s.observer().View().Session(s.player.ID)
		return ok && x.Open && x.Server == server
	})
}

// unplaced demands that a player stands where players appear, and was put nowhere.
func (s *scene) unplaced(server events.HostID) {
	s.t.Helper()
	if v := s.player.Look(); v.Server != server || v.Position != sim.Spawn {
		s.t.Errorf("player is on %q at %v, want %s at spawn\n%s", v.Server, v.Position, server, s.story())
	}
}

// placements counts how often the player was put somewhere, over all servers.
func (s *scene) placements() int {
	n := 0
	for _, w := range []*sim.World{s.a, s.b, s.c} {
		for at, times := range w.Placements() {
			if at.Player == s.player.ID {
				n += times
			}
		}
	}
	return n
}

// sends counts how often the player was sent away, over all servers.
func (s *scene) sends() int {
	n := 0
	for _, w := range []*sim.World{s.a, s.b, s.c} {
		for _, x := range w.Sent() {
			if x.Player == s.player.ID {
				n++
			}
		}
	}
	return n
}

func isConsumed(f events.Fact) bool  { _, ok := f.(*events.Consumed); return ok }
func isRequested(f events.Fact) bool { _, ok := f.(*events.Requested); return ok }
func isReserved(f events.Fact) bool  { _, ok := f.(*events.Reserved); return ok }

// TestCase001_TokenForAnotherServer: a player who came up on another server than the one the
// delivery was meant for was put on its coordinates there. Here a token is for one life of one
// server: whoever else asks gets nothing, the token ends once, and its place goes back.
func TestCase001_TokenForAnotherServer(t *testing.T) {
	for name, to := range map[string]events.HostID{"back on the origin": "a", "on a third server": "c"} {
		t.Run(name, func(t *testing.T) {
			village(t, func(s *scene) {
				s.sentAway()
				s.joinsDirectly(to)
				s.pass(5 * time.Second)
				s.unplaced(to)
				got := s.outcome(s.player, forever)
				s.ended(s.player, got, projections.Failed, events.NotArrived, messages.Text("failed.NOT_ARRIVED", nil))
				if age := got.Seen.Last.Sub(got.Seen.Reserved); age < 29*time.Second {
					t.Errorf("the token ended after %s, want its time: the player may still come", age)
				}
				s.unplaced(to)
				s.conserved("b")
				if n := s.count(isConsumed); n != 0 {
					t.Errorf("%d arrivals, want none\n%s", n, s.story())
				}
			})
		})
	}
	t.Run("on a server that claims to hold the promise", func(t *testing.T) {
		village(t, func(s *scene) {
			token := s.sentAway()
			a := s.dispatchers["d-c"].actor
			q := events.ArrivedAsk{Player: s.player.ID, Name: "Steve", Join: streamtest.NewID[events.JoinID](), Incarnation: s.backends["c"].actor.Incarnation(), Held: []events.Token{token}}
			if answer := askAs[events.ArrivedAnswer](s, "c", events.VerbArrived, q); answer.Code != events.NoPlace {
				t.Errorf("c was told %+v, want nothing", answer)
			}
			if x := a.View().Player(s.player.ID).Active; x == nil || x.Phase != projections.Claimed {
				t.Errorf("the transfer is %+v, want CLAIMED", x)
			}
			s.joinsDirectly("b")
			s.completed(s.player, s.outcome(s.player, forever), "b")
		})
	})
	t.Run("too late on the right server", func(t *testing.T) {
		village(t, func(s *scene) {
			s.sentAway()
			got := s.outcome(s.player, forever)
			s.joinsDirectly("b")
			s.pass(5 * time.Second)
			s.unplaced("b")
			s.ended(s.player, got, projections.Failed, events.NotArrived, messages.Text("failed.NOT_ARRIVED", nil))
			s.conserved("b")
		})
	})
	t.Run("on another life of the right server", func(t *testing.T) {
		village(t, func(s *scene) {
			s.sentAway()
			s.b.Restart()
			s.pass(3 * time.Second)
			s.joinsDirectly("b")
			s.ended(s.player, s.outcome(s.player, forever), projections.Failed, events.PromiseGone, messages.Text("failed.PROMISE_GONE", nil))
			s.unplaced("b")
		})
	})
}

// TestCase002_OneSwitch: a switch that was answered slowly was repeated, or two proxies acted
// upon one decision, and the player went twice. Here a move is fenced by its claim: whatever is
// repeated, the player is sent once, put somewhere once, and stays.
func TestCase002_OneSwitch(t *testing.T) {
	toMove := func(subject string) bool { return subject == events.ToBackend("a", events.VerbMove) }
	for name, disturb := range map[string]func(s *scene){
		"the answer is lost":   func(s *scene) { s.mem.LoseAnswer(toMove, 1); s.player.Ask("") },
		"two answers are lost": func(s *scene) { s.mem.LoseAnswer(toMove, 2); s.player.Ask("") },
		"the answer comes after the arrival": func(s *scene) {
			s.a.Set(func(f *sim.Faults) {
				f.Send = func(actors.Player, string) (bool, error) { <-time.After(3 * time.Second); return true, nil }
			})
			s.player.Ask("")
		},
		"the acknowledgement of the claim is lost": func(s *scene) {
			h := s.askAndHold("claimed")
			s.e1().LoseNextAck(1)
			h.release()
		},
		"another proxy holds the player meanwhile": func(s *scene) {
			h := s.askAndHold("claimed")
			s.returns()
			h.release()
		},
		"the claimer goes on after the player was served": func(s *scene) {
			h := s.askAndHold(".move")
			s.returns()
			s.until("player at b", time.Minute, func() bool { return s.player.Look().Server == "b" })
			s.pass(3 * time.Second)
			h.release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				disturb(s)
				got := s.outcome(s.player, forever)
				s.completed(s.player, got, "b")
				s.pass(time.Minute)
				s.completed(s.player, got, "b")
				if n := s.sends(); n > 1 {
					t.Errorf("sent %d times\n%s", n, s.story())
				}
				if n := s.placements(); n != 1 {
					t.Errorf("put somewhere %d times, want once\n%s", n, s.story())
				}
				s.consumedOnce(got)
			})
		})
	}
}

// TestCase004_EitherOrder: on an empty server the delivery came now before the player and now
// after, and the move was dropped. Here the arriving server asks, and asks again while it holds
// a promise: in either order the player is put on the coordinate once.
func TestCase004_EitherOrder(t *testing.T) {
	for _, lag := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 1999 * time.Millisecond, 2 * time.Second, 5 * time.Second} {
		t.Run("arrival before the claim by "+lag.String(), func(t *testing.T) {
			village(t, func(s *scene) {
				claim := s.dispatchers["d-a"].client.hold("claimed")
				others := s.dispatchers["d-b"].client.hold("claimed") // who holds the player at b claims as well
				s.player.Ask("")
				s.until("reserved", 5*time.Second, claim.isReached)
				s.player.Quit()
				s.joinsDirectly("b")
				s.pass(lag)
				s.unplaced("b")
				others.release()
				got := s.outcome(s.player, forever)
				claim.release() // too late: somebody has claimed
				s.pass(time.Minute)
				s.completed(s.player, got, "b")
				if n := s.placements(); n != 1 {
					t.Errorf("put somewhere %d times\n%s", n, s.story())
				}
				s.consumedOnce(got)
				s.conserved("b")
			})
		})
		t.Run("arrival after the claim by "+lag.String(), func(t *testing.T) {
			village(t, func(s *scene) {
				s.sentAway()
				s.pass(lag)
				s.joinsDirectly("b")
				got := s.outcome(s.player, forever)
				s.completed(s.player, got, "b")
				if n := s.placements(); n != 1 {
					t.Errorf("put somewhere %d times\n%s", n, s.story())
				}
				s.consumedOnce(got)
			})
		})
	}
	t.Run("the first question is lost", func(t *testing.T) {
		village(t, func(s *scene) {
			s.mem.DropRequest(func(subject string) bool { return subject == events.AskOf("b", events.VerbArrived) }, 2)
			s.player.Ask("")
			s.completed(s.player, s.outcome(s.player, forever), "b")
			if n := s.placements(); n != 1 {
				t.Errorf("put somewhere %d times\n%s", n, s.story())
			}
		})
	})
	t.Run("nobody claims", func(t *testing.T) {
		village(t, func(s *scene) {
			claim := s.dispatchers["d-a"].client.hold("claimed")
			s.dispatchers["d-b"].client.hold("claimed")
			s.player.Ask("")
			s.until("reserved", 5*time.Second, claim.isReached)
			s.player.Quit()
			s.joinsDirectly("b")
			s.pass(forever)
			s.unplaced("b") // it does not wait for ever, and the place goes back
			s.conserved("b")
		})
	})
}

// replaced puts another machine behind the name of a server: another world, another backend.
func (s *scene) replaced(id events.HostID, kept int) *sim.World {
	s.t.Helper()
	old := s.net.World(id)
	s.killBackend(id)
	old.Kill()
	w := s.backend(id, kept)
	s.until("another life of "+string(id), 10*time.Second, func() bool {
		b := s.observer().View().Fleet().Backend(id)
		return b != nil && b.State == events.Ready && b.Incarnation == s.backends[id].actor.Incarnation() && b.Kept() == kept
	})
	return w
}

// TestCase005_TheNameLeadsElsewhere: between the decision and the switch the name of the server
// came to mean another machine, and the player landed there. Here a token is bound to a life of
// the server: what takes its name meanwhile is never taken for it, and the player gets another
// place or is told why not.
func TestCase005_TheNameLeadsElsewhere(t *testing.T) {
	for row, step := range steps {
		t.Run(row, func(t *testing.T) {
			play(t, func(s *scene) {
				h := s.askAndHold(step)
				place := s.observer().View().Player(s.player.ID).Active.Place
				fresh := s.replaced("b", 8)
				h.release()
				got := s.outcome(s.player, forever)
				s.completed(s.player, got, got.Destination())
				if got.Place != place {
					t.Errorf("place %d became %d", place, got.Place)
				}
				if got.Destination() == "b" && fresh.Placed(sim.Placement{Player: s.player.ID, At: got.Reserved.At}) != 1 {
					t.Errorf("not put where the new machine promised\n%s", s.story())
				}
				s.conserved("b")
				s.conserved("c")
			})
		})
	}
	t.Run("on the way", func(t *testing.T) {
		play(t, func(s *scene) {
			token := s.sentAway()
			s.replaced("b", 8)
			s.comesWith(token, "e2")
			got := s.outcome(s.player, forever)
			s.completed(s.player, got, got.Destination())
			if got.Attempts != 2 || s.sends() != 1 {
				t.Errorf("%d attempts, sent %d times; want a second place for the same way\n%s", got.Attempts, s.sends(), s.story())
			}
		})
	})
	t.Run("on the way, and nobody has a place", func(t *testing.T) {
		play(t, func(s *scene) {
			token := s.sentAway()
			s.c.Kill()
			s.replaced("b", 0)
			s.comesWith(token, "e2")
			got := s.outcome(s.player, forever)
			s.ended(s.player, got, projections.Failed, events.Unreachable, messages.Text("failed.UNREACHABLE", nil))
		})
	})
	t.Run("by hand, later", func(t *testing.T) {
		play(t, func(s *scene) {
			s.sentAway()
			s.replaced("b", 8)
			s.comesWith(events.Token{}, "e2")
			got := s.outcome(s.player, forever)
			s.ended(s.player, got, projections.Failed, events.PromiseGone, messages.Text("failed.PROMISE_GONE", nil))
		})
	})
}

// TestCase016_OnlyTheNewestWish: a player who stood in several lines was pulled out of a game
// when one of them came up. Here a player has one wish: the newer ends the older, with a reason,
// and nothing that was under way for the older moves anybody.
func TestCase016_OnlyTheNewestWish(t *testing.T) {
	waitsFor := func(s *scene, server events.HostID) {
		s.t.Helper()
		c := &crowd{rig: s.rig}
		if a := c.open(s.player, events.RequestAsk{Wish: events.Wish{Pin: server}, Wait: true}); a.Code != events.Accepted {
			t.Fatal(a)
		}
		c.waiting(s.player)
	}
	t.Run("the line comes up when the player plays elsewhere", func(t *testing.T) {
		play(t, func(s *scene) {
			s.c.Kill()
			s.pass(2 * time.Second)
			waitsFor(s, "c")
			s.player.Ask("b:default")
			got := s.outcome(s.player, forever)
			s.completed(s.player, got, "b")
			s.c.Restart()
			s.pass(2 * time.Minute)
			s.completed(s.player, got, "b")
			done := s.observer().View().Player(s.player.ID).Done
			if len(done) != 2 || done[0].Phase != projections.Superseded || s.sends() != 1 {
				t.Errorf("sent %d times; %s", s.sends(), s.story())
			}
			s.reads("transfer.replaced")
		})
	})
	t.Run("the place for the older wish comes too late", func(t *testing.T) {
		play(t, func(s *scene) {
			held := s.e1().hold("c.reserve")
			if a := (&crowd{rig: s.rig}).open(s.player, events.RequestAsk{Wish: events.Wish{Pin: "c"}}); a.Code != events.Accepted {
				t.Fatal(a)
			}
			s.until("c is about to be asked", 5*time.Second, held.isReached)
			s.player.Ask("b:default")
			s.reads("transfer.replaced")
			held.release()
			got := s.outcome(s.player, forever)
			s.completed(s.player, got, "b")
			s.pass(time.Minute)
			s.completed(s.player, got, "b")
			s.conserved("c")
		})
	})
	t.Run("the same wish again is no newer one", func(t *testing.T) {
		play(t, func(s *scene) {
			s.c.Kill()
			s.pass(2 * time.Second)
			waitsFor(s, "c")
			place := s.observer().View().Player(s.player.ID).Active.Place
			s.player.Ask("")
			s.reads("transfer.active")
			s.c.Restart()
			got := s.outcome(s.player, forever)
			s.completed(s.player, got, "c")
			if got.Place != place {
				t.Errorf("place %d became %d", place, got.Place)
			}
		})
	})
	t.Run("who has taken the wish back is not moved", func(t *testing.T) {
		play(t, func(s *scene) {
			s.c.Kill()
			s.pass(2 * time.Second)
			waitsFor(s, "c")
			s.player.Cancel()
			s.ended(s.player, s.outcome(s.player, forever), projections.Cancelled, events.Cancel)
			s.c.Restart()
			s.pass(time.Minute)
			if s.sends() != 0 {
				t.Errorf("sent all the same\n%s", s.story())
			}
		})
	})
}

// TestCase020_OneAccountOneServer: one account came to be on two servers, and its things were
// doubled. Here the newest session is the only one: the older one's holder claims nothing for
// it, its server asks in vain, and its late goodbye changes nothing.
func TestCase020_OneAccountOneServer(t *testing.T) {
	t.Run("a claim of the older session", func(t *testing.T) {
		play(t, func(s *scene) {
			h := s.askAndHold("claimed")
			s.returns()
			h.release()
			got := s.outcome(s.player, forever)
			s.completed(s.player, got, "b")
			if got.Claim.Dispatcher != "e2" {
				t.Errorf("claimed by %s, which holds the player no longer", got.Claim.Dispatcher)
			}
			s.consumedOnce(got)
		})
	})
	t.Run("a second login while the first stands", func(t *testing.T) {
		village(t, func(s *scene) {
			second := s.net.AddClient("Steve", 767)
			if err := second.JoinDirect("c"); err != nil {
				t.Fatal(err)
			}
			s.standsOn("c")
			s.player.Ask("") // the client on a, of the older session
			s.reads("refused.NOT_HERE")
			if x := s.observer().View().Player(s.player.ID); x.Active != nil {
				t.Errorf("a transfer was opened for the older session\n%s", s.story())
			}
			second.Ask("")
			got := s.outcome(second, forever)
			s.completed(second, got, "b")
			if n := len(s.a.Sent()); n != 0 {
				t.Errorf("a sent its copy of the player away\n%s", s.story())
			}
		})
	})
	t.Run("an arrival of the older session", func(t *testing.T) {
		village(t, func(s *scene) {
			s.player.Ask("")
			got := s.outcome(s.player, forever)
			s.completed(s.player, got, "b")
			s.mem.DropRequest(func(subject string) bool { return subject == events.NewsOf("b", events.VerbLeft) }, 1)
			s.joinsDirectly("a")
			answer := askAs[events.ArrivedAnswer](s, "b", events.VerbArrived, events.ArrivedAsk{
				Player: s.player.ID, Name: "Steve", Join: got.Consumed.Join, Incarnation: got.Consumed.Incarnation, Held: []events.Token{got.Token},
			})
			if answer.Code != events.NoPlace {
				t.Errorf("b was told %+v for a token that is spent", answer)
			}
			s.pass(5 * time.Second)
			s.unplaced("a")
		})
	})
	t.Run("a late goodbye of the older session", func(t *testing.T) {
		village(t, func(s *scene) {
			s.mem.DropRequest(func(subject string) bool { return subject == events.NewsOf("a", events.VerbLeft) }, 1)
			old, _ := s.observer().View().Session(s.player.ID)
			s.joinsDirectly("b")
			before, _ := s.observer().View().Session(s.player.ID)
			s.announces("a", events.VerbLeft, events.Left{Player: s.player.ID, Name: "Steve", Join: old.Join, Reason: "at last"})
			s.pass(time.Second)
			if now, _ := s.observer().View().Session(s.player.ID); !now.Open || now.Number != before.Number {
				t.Errorf("session %+v became %+v", before, now)
			}
		})
	})
}

// called is a call in the name of a backend.
func (s *scene) called(server events.HostID, subject string, body any) events.Wire {
	s.t.Helper()
	src := events.Source{Kind: events.SourceBackend, ID: server, Incarnation: s.backends[server].actor.Incarnation()}
	w, err := events.SealCall(streamtest.Keyring(), events.Call{ID: streamtest.NewID[events.RequestID](), Source: src, Deadline: 3 * time.Second}, time.Now(), subject, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// askAs lets a backend ask the dispatchers, whatever its own state.
func askAs[A any](s *scene, server events.HostID, verb events.Verb, body any) (answer A) {
	s.t.Helper()
	subject := events.AskOf(server, verb)
	back, err := s.mem.Client("a hand at "+string(server)).Ask(s.ctx, subject, s.called(server, subject, body))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, refusal := events.OpenCall(streamtest.Keyring(), subject, back, &answer); refusal != nil {
		s.t.Fatal(refusal)
	}
	return answer
}

// announces lets a backend say something, whatever its own state.
func (s *scene) announces(server events.HostID, verb events.Verb, body any) {
	s.t.Helper()
	subject := events.NewsOf(server, verb)
	if err := s.mem.Client("a hand at "+string(server)).Announce(s.ctx, subject, s.called(server, subject, body)); err != nil {
		s.t.Fatal(err)
	}
}
