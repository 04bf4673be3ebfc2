package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// Cases of choice: which server, and when it is enough.

// TestCase041_NoBouncing: a player was thrown to and fro between two servers that took and kicked
// at once, dozens of times a second. Here a transfer sends a player once, a login tries a few
// servers and then says why it ends, and who was kicked is not sent again by anybody.
func TestCase041_NoBouncing(t *testing.T) {
	kick := func(f *sim.Faults) { f.Kick = func(actors.Player) bool { return true } }
	t.Run("both kick at the door", func(t *testing.T) {
		play(t, func(s *scene) {
			s.b.Set(kick)
			s.c.Set(kick)
			s.player.Ask("")
			s.until("kicked", 20*time.Second, func() bool { return len(s.player.Look().Lost) > 0 })
			s.pass(time.Minute)
			visits := 0
			for _, m := range s.player.History() {
				if m.Server == "b" || m.Server == "c" {
					visits++
				}
			}
			if visits != 1 || s.sends() != 1 {
				t.Errorf("%d visits, sent %d times\n%s", visits, s.sends(), s.story())
			}
			got := s.outcome(s.player, forever)
			s.comesWith(events.Token{}, "e2")
			s.ended(s.player, got, projections.Failed, events.NotArrived, messages["failed.NOT_ARRIVED"])
		})
	})
	t.Run("both refuse the connection", func(t *testing.T) {
		play(t, func(s *scene) {
			token := s.sentAway()
			s.b.Set(func(f *sim.Faults) { f.Closed = true })
			s.c.Set(func(f *sim.Faults) { f.Closed = true })
			s.comesWith(token, "e2")
			got := s.outcome(s.player, forever)
			s.ended(s.player, got, projections.Failed, events.Unreachable, messages["failed.UNREACHABLE"])
			if got.Attempts > 3 || s.player.Look().Server != "a" {
				t.Errorf("%d attempts, player on %q", got.Attempts, s.player.Look().Server)
			}
		})
	})
	t.Run("nobody takes the connection", func(t *testing.T) {
		play(t, func(s *scene) {
			s.player.Quit()
			for _, w := range []*sim.World{s.a, s.b, s.c} {
				w.Set(func(f *sim.Faults) { f.Closed = true })
			}
			began := time.Now()
			err := s.player.Join(s.ctx, "e1", events.Token{})
			if err == nil || time.Since(began) > 30*time.Second {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		})
	})
	t.Run("those who come next go elsewhere", func(t *testing.T) {
		play(t, func(s *scene) {
			s.b.Set(func(f *sim.Faults) { f.Closed = true })
			for i := range 3 { // who was on b last
				p := s.net.AddClient(fmt.Sprint("Player", i), 767)
				s.pinned(p, "b")
				if err := p.Join(s.ctx, "e1", events.Token{}); err != nil {
					t.Fatal(err)
				}
				if at := p.Look().Server; at == "b" || at == "" {
					t.Errorf("%s is on %q", p.Name, at)
				}
			}
			next := s.net.AddClient("Next", 767)
			s.pinned(next, "b")
			r := s.dispatchers["e1"].actor.Route(s.ctx, actors.Login{Player: next.ID, Name: next.Name, Protocol: 767})
			if r.Server == "b" || r.Server == "" {
				t.Errorf("routed to %q, where three in a row were not taken", r.Server)
			}
			s.player.Ask("")
			s.completed(s.player, s.outcome(s.player, forever), "c")
			s.b.Set(func(f *sim.Faults) { f.Closed = false })
			s.pass(31 * time.Second)
			if r := s.dispatchers["e1"].actor.Route(s.ctx, actors.Login{Player: next.ID, Name: next.Name, Protocol: 767}); r.Server != "b" {
				t.Errorf("routed to %q, long after", r.Server)
			}
		})
	})
}

// TestCase043_ARestartedServer: a server was restarted under the same name, and nobody ever went
// there again. Here the next life is known by its first heartbeat, the old one is refused, and the
// line moves on without anybody's doing.
func TestCase043_ARestartedServer(t *testing.T) {
	const beat = 1100 * time.Millisecond
	for name, restart := range map[string]func(c *crowd, w *sim.World){
		"the game server":             func(_ *crowd, w *sim.World) { w.Restart() },
		"its process beside it":       func(c *crowd, w *sim.World) { c.killBackend("b"); c.attach("b", w, 8) },
		"both":                        func(c *crowd, w *sim.World) { c.killBackend("b"); w.Restart(); c.attach("b", w, 8) },
		"its process, the old one on": func(c *crowd, w *sim.World) { c.attach("b", w, 8) },
	} {
		t.Run(name, func(t *testing.T) {
			gather(t, 3, nil, func(c *crowd) {
				w := c.server("b", 100, 8)
				c.pass(3 * time.Second)
				old := c.backends["b"]
				before := old.actor.Incarnation()
				asked := func() {
					for _, p := range c.players {
						c.ask(p)
					}
				}
				var held []*hold
				onWay := name != "its process, the old one on"
				if onWay {
					for _, id := range crowdEdges {
						held = append(held, c.dispatchers[id].client.hold("b.reserve"))
					}
					asked()
				}
				restart(c, w)
				for _, h := range held {
					h.release()
				}
				c.until("the next life", 2*beat, func() bool {
					b := c.view().Fleet().Backend("b")
					return b.Incarnation != before && b.State == events.Ready
				})
				if !onWay {
					asked()
				}
				for _, p := range c.players {
					c.arrives(p, c.placeOf(p), 2*beat+2*time.Second)
				}
				if name == "its process, the old one on" {
					c.until("the old process ends", 5*time.Second, func() bool {
						select {
						case err := <-old.err:
							return errors.Is(err, actors.ErrDuplicateID)
						default:
							return false
						}
					})
				}
			})
		})
	}
}

// TestCase044_WhereIsThePlayer: the answer to "where is this player" was an hour old. Here every
// answer is a fold at a known sequence, and who wants it no older than a sequence can wait for it:
// on whichever proxy one asks.
func TestCase044_WhereIsThePlayer(t *testing.T) {
	simulate(t, events.KindEdge, func(r *rig) {
		r.dispatcher("e1")
		r.dispatcher("e2")
		r.backend("a", 4)
		r.backend("b", 4)
		r.settle()
		p := r.player("Steve", "e1", "a")
		for i, want := range []events.HostID{"b", "a", "b", "a"} {
			p.Ask("")
			r.until("another transfer", 5*time.Second, func() bool {
				x := r.observer().View().Player(p.ID)
				return x.Active != nil || len(x.Done) > i
			})
			r.completed(p, r.outcome(p, 20*time.Second), want)
			r.until("session", 5*time.Second, func() bool {
				s, _ := r.dispatchers["e1"].actor.View().Session(p.ID)
				return s.Open && s.Server == want
			})
			s, _ := r.dispatchers["e1"].actor.View().Session(p.ID)
			v := r.dispatchers["e2"].actor.View()
			ctx, cancel := context.WithTimeout(r.ctx, time.Second)
			if err := v.WaitFolded(ctx, events.Sessions, s.Last); err != nil {
				t.Fatalf("move %d: %v", i, err)
			}
			cancel()
			if got, _ := v.Session(p.ID); got.Last < s.Last || got.Server != want {
				t.Errorf("move %d: e2 says %s at %d, e1 %s at %d", i, got.Server, got.Last, s.Server, s.Last)
			}
		}
		sc := &scene{rig: r}
		a := askAs[events.StateAnswer](sc, "a", events.VerbState, events.StateAsk{Player: p.ID})
		if records := r.mem.Records(events.Transfers); a.Code != events.OK || a.Last != records[len(records)-1].Seq || a.Folded < a.Last {
			t.Errorf("%+v, want the last sequence of the player", a)
		}
	}, streamtest.WithLatency(20*time.Millisecond))
}

// TestCase046_WhyNobody: "none available" was said while there was room. Here the reasons are kept
// apart, each with how many and which, and what is known of the servers is never so old that it
// could not be mended by waiting for their next heartbeat.
func TestCase046_WhyNobody(t *testing.T) {
	reasons := func(s *scene, want map[events.Code]int) {
		s.t.Helper()
		for _, e := range s.facts(events.Transfers) {
			f, ok := e.Fact.(*events.Waitlisted)
			if !ok {
				continue
			}
			got := map[events.Code]int{}
			for _, x := range f.Decision.Filtered {
				got[x.Code] += x.Count
				if len(x.Examples) != x.Count {
					s.t.Errorf("%s: %d examples for %d", x.Code, len(x.Examples), x.Count)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				s.t.Errorf("reasons %v, want %v", got, want)
			}
			return
		}
		s.t.Errorf("nobody was told to wait\n%s", s.story())
	}
	t.Run("no server", func(t *testing.T) {
		play(t, func(s *scene) {
			s.b.Kill()
			s.killBackend("c")
			s.pass(5 * time.Second)
			s.player.Ask("")
			s.reads("transfer.waiting")
			reasons(s, map[events.Code]int{events.RegionMissing: 1, events.NotReady: 1, events.Stale: 1})
		})
	})
	t.Run("all full", func(t *testing.T) {
		gather(t, 2, nil, func(c *crowd) {
			c.server("b", 1, 4)
			c.pass(3 * time.Second)
			c.ask(c.players[0])
			c.completed(c.players[0], c.outcome(c.players[0], forever), "b")
			c.pass(3 * time.Second)
			c.ask(c.players[1])
			c.waiting(c.players[1])
			reasons(&scene{rig: c.rig}, map[events.Code]int{events.RegionMissing: 1, events.Full: 1})
		})
	})
	t.Run("nothing kept", func(t *testing.T) {
		gather(t, 1, nil, func(c *crowd) {
			w := c.server("b", 100, 4)
			w.Set(func(f *sim.Faults) { f.Barren = true })
			c.pass(3 * time.Second)
			w.Spoil()
			c.ask(c.players[0])
			c.until("an end or a wait", 30*time.Second, func() bool { return c.view().Player(c.players[0].ID).Active.Waitlisted })
			c.pass(5 * time.Second)
		})
	})
	t.Run("all cooling", func(t *testing.T) {
		play(t, func(s *scene) {
			s.mem.DropRequest(toReserve("b"), 1)
			s.mem.DropRequest(toReserve("c"), 1)
			s.player.Ask("")
			s.reads("transfer.waiting")
			reasons(s, map[events.Code]int{events.RegionMissing: 1, events.NoAnswer: 2})
			other := s.rig.player("Other", "e1", "a")
			if a := (&crowd{rig: s.rig}).open(other, events.RequestAsk{Wish: events.Wish{Pin: "b"}}); a.Code != events.Accepted {
				t.Fatal(a)
			}
			got := s.outcome(other, 5*time.Second)
			for _, e := range s.facts(events.Transfers) {
				if f, ok := e.Fact.(*events.Failed); ok && e.Correlation == got.ID {
					if x := f.Decision.Filtered; !slices.ContainsFunc(x, func(f events.Filtered) bool { return f.Code == events.OnCooldown }) {
						t.Errorf("reasons %+v, want ON_COOLDOWN", x)
					}
				}
			}
			got = s.outcome(s.player, forever)
			s.completed(s.player, got, got.Destination())
		})
	})
	for name, lose := range map[string]func(s *scene){
		"the heartbeats are lost": func(s *scene) { s.mem.Recreate(events.Fleet) },
		"the end of them is lost": func(s *scene) { s.mem.Truncate(events.Fleet, 3) },
		"the proxy slept a while": func(s *scene) { s.e1().Stop(); s.pass(20 * time.Second); s.e1().Resume() },
		"the store was away for while": func(s *scene) {
			s.mem.Outage()
			s.pass(20 * time.Second)
			s.mem.Restore()
			s.pass(500 * time.Millisecond)
		},
	} {
		t.Run("an old view: "+name, func(t *testing.T) {
			play(t, func(s *scene) {
				lose(s)
				c := &crowd{rig: s.rig}
				s.until("taken", 10*time.Second, func() bool { // a server by name, which does not wait in line
					q := events.RequestAsk{Player: s.player.ID, Name: "Steve", Trigger: events.TriggerAPI, Wish: events.Wish{Pin: "c"}, Transfer: streamtest.NewID[events.TransferID]()}
					code := s.dispatchers["e1"].actor.Open(c.ctx, q, "").Code
					return code == events.Accepted || code == events.Active
				})
				s.completed(s.player, s.outcome(s.player, time.Minute), "c")
			})
		})
	}
}

// TestCase052_NobodyWaitsForTheAnswer: the search went on after the one who had asked was gone.
// Here who leaves, or takes the wish back, is looked for no longer: what is being asked is given
// up at once, no further server is asked, and what was promised goes back.
func TestCase052_NobodyWaitsForTheAnswer(t *testing.T) {
	stops := map[string]func(s *scene){
		"the player leaves":              func(s *scene) { s.player.Quit() },
		"the player takes the wish back": func(s *scene) { s.player.Cancel() },
		"the player asks for another":    func(s *scene) { s.player.Ask("c:default") },
	}
	for name, stop := range stops {
		t.Run(name+" while a server is silent", func(t *testing.T) {
			play(t, func(s *scene) {
				asked := (&crowd{rig: s.rig}).recordOf("c", "e1")
				s.mem.DropRequest(toReserve("b"), 1)
				s.player.Ask("")
				s.until("asked", 5*time.Second, func() bool { return s.observer().View().Player(s.player.ID).Active != nil })
				first := s.observer().View().Player(s.player.ID).Active.ID
				s.pass(50 * time.Millisecond)
				stop(s)
				s.pass(3 * time.Second)
				asked.mu.Lock()
				for _, x := range asked.asks {
					if x.transfer == first {
						t.Errorf("c was asked all the same, at %s", x.from.Format("05.000"))
					}
				}
				asked.mu.Unlock()
				for _, e := range s.facts(events.Transfers) {
					if isReserved(e.Fact) && e.Correlation == first {
						t.Errorf("a token for who is gone\n%s", s.story())
					}
				}
				s.outcome(s.player, forever)
				s.conserved("b")
				s.conserved("c")
			})
		})
		for row, step := range steps {
			t.Run(name+", "+row, func(t *testing.T) {
				play(t, func(s *scene) {
					h := s.askAndHold(step)
					stop(s)
					s.pass(100 * time.Millisecond)
					h.release()
					s.outcome(s.player, forever)
					s.pass(time.Minute)
					s.conserved("b")
					s.conserved("c")
					if n := s.placements(); n > 1 {
						t.Errorf("put somewhere %d times\n%s", n, s.story())
					}
				})
			})
		}
	}
}
