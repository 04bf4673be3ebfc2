package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// switches writes an operator's decisions, each on top of the one before it.
type switches struct {
	*rig
	last map[string]uint64
}

func (r *rig) switches() *switches { return &switches{rig: r, last: map[string]uint64{}} }

func (w *switches) put(key string, f events.Fact) {
	w.t.Helper()
	w.last[key] = w.operator(key, w.last[key], f)
}

func (w *switches) kill(on bool) {
	w.t.Helper()
	w.put(events.KillKey, &events.KillSet{On: on, Who: "op", Why: "a test"})
}

func (w *switches) pause(what events.PauseWhat, name string, on bool) {
	w.t.Helper()
	w.put(events.PauseKey(what, name), &events.PauseSet{What: what, Name: name, On: on, Who: "op", Why: "a test"})
}

// times counts how often a client has read a message.
func times(c *sim.Client, key string) int {
	n := 0
	for _, text := range c.Look().Texts {
		if matches(text, expand(key)) {
			n++
		}
	}
	return n
}

// toldOnce waits until a client has read a message, and demands that it does so once.
func (c *crowd) toldOnce(p *sim.Client, key string) {
	c.t.Helper()
	c.until(p.Name+" reads "+key, 5*time.Second, func() bool { return times(p, key) == 1 })
	c.pass(12 * time.Second)
	if n := times(p, key); n != 1 {
		c.t.Errorf("%s has read %s %d times: %q", p.Name, key, n, p.Look().Texts)
	}
}

// reserves counts the places that were given since the log began.
func (c *crowd) reserves() int {
	n := 0
	for _, e := range c.facts(events.Transfers) {
		if _, ok := e.Fact.(*events.Reserved); ok {
			n++
		}
	}
	return n
}

// While the line stands still everybody keeps the place and is told so, once; who does not
// wait is served all the same, and so are proxies obeyed that start later.
func TestPausedLine(t *testing.T) {
	gather(t, 3, nil, func(c *crowd) {
		w, b := c.switches(), c.down("b", 100, 1)
		for _, p := range c.players {
			c.ask(p)
			c.waiting(p)
		}
		w.pause(events.PauseLine, "", true)
		for i, p := range c.players {
			c.toldOnce(p, "transfer.paused")
			if got := c.position(p); got != i+1 {
				t.Errorf("%s stands at %d, want %d", p.Name, got, i+1)
			}
		}
		b.Restart()
		c.pass(10 * time.Second)
		if n := c.reserves(); n != 0 {
			t.Fatalf("%d places were given while the line was paused\n%s", n, c.story())
		}
		if p := c.players[2]; !has(p.Look().Texts, "You are number 3 in line (wait: unknown).") {
			t.Errorf("the last has read %q", p.Look().Texts)
		}

		c.dispatcher("late")
		late := c.player("Late", "late", "a")
		c.ask(late)
		c.waiting(late)
		c.toldOnce(late, "transfer.paused")
		if why := c.view().Player(late.ID).Active; why.Waitlisted != true || c.position(late) != 4 {
			t.Errorf("who came later: %+v at %d", why, c.position(late))
		}

		quick := c.player("Quick", "e1", "a")
		if a := c.open(quick, events.RequestAsk{Bypass: true}); a.Code != events.Accepted {
			t.Fatalf("bypass: %+v", a)
		}
		c.completed(quick, c.outcome(quick, 5*time.Second), "b")

		w.pause(events.PauseLine, "", false)
		for _, p := range append(c.players, late) {
			c.completed(p, c.outcome(p, 10*time.Second), "b")
		}
		if n := overtaken(c.grants("b")[1:]); n != 0 {
			t.Errorf("somebody was overtaken %d times", n)
		}
	})
}

// The reason of a place that was not given stands in the decision.
func TestPauseStandsInTheDecision(t *testing.T) {
	for name, pause := range map[string]func(w *switches){
		"line":   func(w *switches) { w.pause(events.PauseLine, "", true) },
		"server": func(w *switches) { w.pause(events.PauseServer, "b", true) },
		"region": func(w *switches) { w.pause(events.PauseRegion, "default", true) },
	} {
		t.Run(name, func(t *testing.T) {
			gather(t, 1, nil, func(c *crowd) {
				c.server("b", 100, 8)
				c.settle()
				pause(c.switches())
				c.ask(c.players[0])
				c.waiting(c.players[0])
				for _, e := range c.facts(events.Transfers) {
					f, ok := e.Fact.(*events.Waitlisted)
					if ok && (len(f.Decision.Filtered) == 0 || f.Decision.Filtered[0].Code != events.Paused || f.Decision.Filtered[0].Examples[0] != "b") {
						t.Errorf("decision %+v", f.Decision)
					}
				}
			})
		})
	}
}

// A token that is out when the pause begins is honoured.
func TestTokensOutWhenAPauseBegins(t *testing.T) {
	for _, what := range []events.PauseWhat{events.PauseLine, events.PauseServer, events.PauseRegion} {
		t.Run(string(what), func(t *testing.T) {
			play(t, func(s *scene) {
				h := s.askAndHold("claimed")
				name := map[events.PauseWhat]string{events.PauseServer: "b", events.PauseRegion: "default"}[what]
				s.switches().pause(what, name, true)
				h.release()
				s.completed(s.player, s.outcome(s.player, forever), "b")
			})
		})
	}
}

// A paused server gives nobody a place, also not to who does not wait; others serve.
func TestPausedServer(t *testing.T) {
	gather(t, 4, nil, func(c *crowd) {
		w := c.switches()
		c.server("b", 100, 8)
		c.server("c", 100, 2)
		c.settle()
		w.pause(events.PauseServer, "b", true)
		anywhere, waits, bypass, pinned := c.players[0], c.players[1], c.players[2], c.players[3]
		anywhere.Ask("")
		c.completed(anywhere, c.outcome(anywhere, forever), "c")
		for p, q := range map[*sim.Client]events.RequestAsk{
			bypass: {Bypass: true, Wish: events.Wish{Pin: "b"}}, pinned: {Wish: events.Wish{Pin: "b"}},
		} {
			if a := c.open(p, q); a.Code != events.Accepted {
				t.Fatalf("%+v", a)
			}
			c.ended(p, c.outcome(p, 5*time.Second), projections.Failed, events.Paused, expand("failed.PAUSED"))
		}
		c.open(waits, events.RequestAsk{Wait: true, Wish: events.Wish{Pin: "b"}})
		c.waiting(waits)
		c.toldOnce(waits, "transfer.paused")
		w.pause(events.PauseServer, "b", false)
		c.completed(waits, c.outcome(waits, 5*time.Second), "b")
	})
}

// A paused region gives nobody a place on any server. Who would go anywhere waits for it
// when there is no other, and is told.
func TestPausedRegion(t *testing.T) {
	gather(t, 1, nil, func(c *crowd) {
		w, p := c.switches(), c.players[0]
		c.server("b", 100, 8)
		c.server("c", 100, 2)
		c.settle()
		w.pause(events.PauseRegion, "default", true)
		c.ask(p)
		c.waiting(p)
		c.toldOnce(p, "transfer.paused")
		w.pause(events.PauseRegion, "default", false)
		if got := c.outcome(p, 5*time.Second); got.Phase != projections.Completed {
			t.Errorf("%s %s", got.Phase, got.Code)
		}
	})
}

// Where nobody waits, nobody is kept for the end of a pause.
func TestPausedWithoutALine(t *testing.T) {
	gather(t, 1, func(r *rig) { r.line = actors.LineRules{MaxSize: 1, Notify: time.Second} }, func(c *crowd) {
		c.server("b", 100, 8)
		c.settle()
		c.switches().pause(events.PauseServer, "b", true)
		c.players[0].Ask("")
		c.ended(c.players[0], c.outcome(c.players[0], triedOn), projections.Failed, events.Paused, expand("failed.PAUSED"))
	})
}

// Who waits when transfers are switched off keeps the place and is told so, once, and again
// when they are on; that they were waitlisted does not matter.
func TestWaitingPlayersAreToldOfTheKillSwitch(t *testing.T) {
	gather(t, 3, nil, func(c *crowd) {
		w, b := c.switches(), c.down("b", 100, 8)
		for _, p := range c.players[:2] {
			c.ask(p)
			c.waiting(p)
		}
		held := c.dispatchers["e3"].client.hold("waitlisted")
		c.players[2].Ask("")
		c.until("not waitlisted", 5*time.Second, held.isReached)
		w.kill(true)
		held.release()
		for i, p := range c.players {
			c.toldOnce(p, "transfer.stopped")
			if got := c.position(p); got != i+1 {
				t.Errorf("%s stands at %d, want %d", p.Name, got, i+1)
			}
		}
		b.Restart()
		c.pass(10 * time.Second)
		if n := c.reserves(); n != 0 {
			t.Fatalf("%d places were given\n%s", n, c.story())
		}
		b.Kill()
		c.pass(5 * time.Second)
		w.kill(false)
		for _, p := range c.players {
			c.toldOnce(p, "transfer.resumed")
		}
		b.Restart()
		for _, p := range c.players {
			c.completed(p, c.outcome(p, 10*time.Second), "b")
		}
	})
}

// A drained proxy answers no backend, in this life and the next, and serves the players it has.
func TestDrainedProxyServesItsOwn(t *testing.T) {
	play(t, func(s *scene) {
		w := s.switches()
		w.put("drain.e1", &events.DrainSet{Host: "e1", On: true, Who: "op"})
		if drain, _ := s.dispatchers["e1"].actor.Drained(); drain == nil || drain.Who != "op" {
			t.Fatalf("e1 is drained: %+v", drain)
		}
		if drain, _ := s.dispatchers["e2"].actor.Drained(); drain != nil {
			t.Fatalf("e2 is drained: %+v", drain)
		}
		s.until("a heartbeat that says so", 3*time.Second, func() bool { return s.observer().View().Fleet().Proxy("e1").Drained })

		s.player.Ask("")
		got := s.outcome(s.player, forever)
		s.completed(s.player, got, "b")
		if got.Claim.Dispatcher != "e1" {
			t.Errorf("moved by %s, want the one that holds the player", got.Claim.Dispatcher)
		}

		other := s.rig.player("Other", "e1", "a")
		s.dispatchers["e2"].client.Cut()
		other.Ask("")
		s.until("nobody answers", 20*time.Second, func() bool { return times(other, "refused.TRANSPORT_DOWN") == 1 })
		w.put("drain.e1", &events.DrainSet{Host: "e1", Who: "op"})
		other.Ask("")
		if got := s.outcome(other, forever); got.Phase != projections.Completed {
			t.Errorf("after it was put back: %s %s", got.Phase, got.Code)
		}

		w.put("drain.e1", &events.DrainSet{Host: "e1", On: true, Who: "op"})
		s.killDispatcher("e1")
		s.pass(5 * time.Second)
		s.dispatcher("e1")
		s.settle()
		if drain, _ := s.dispatchers["e1"].actor.Drained(); drain == nil {
			t.Error("e1 starts open although it is drained")
		}
	})
}

// Who moves the players of one server without a front is not taken out with it: the server is.
func TestDrainWithoutAFront(t *testing.T) {
	simulate(t, events.KindDirect, func(r *rig) {
		r.direct("d-a", "a")
		r.direct("d-b", "b")
		r.backend("a", 0)
		r.backend("b", 8)
		r.settle()
		r.operator("drain.d-a", 0, &events.DrainSet{Host: "d-a", On: true, Who: "op"})
		if drain, _ := r.dispatchers["d-a"].actor.Drained(); drain != nil {
			t.Errorf("d-a is drained: %+v", drain)
		}
	})
}
