package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// evacuate orders a server to be emptied, or not any more.
func (w *switches) evacuate(host events.HostID, on bool, perSecond float64) {
	w.t.Helper()
	w.put(events.EvacuateKey(host), &events.EvacuateSet{Host: host, On: on, PerSecond: perSecond, Who: "op", Why: "a test"})
}

// asked are the requests of evacuations, in their order.
func (c *crowd) asked() (out []events.Event) {
	for _, e := range c.facts(events.Transfers) {
		if f, ok := e.Fact.(*events.Requested); ok && f.Trigger == events.TriggerEvacuate {
			out = append(out, e)
		}
	}
	return out
}

// inPace demands that no two players were asked within less than the time between two.
func (c *crowd) inPace(perSecond float64) {
	c.t.Helper()
	list := c.asked()
	for i := 1; i < len(list); i++ {
		if d := list[i].Stored.Sub(list[i-1].Stored); d < time.Duration(float64(time.Second)/perSecond)-20*time.Millisecond {
			c.t.Errorf("two were asked within %s\n%s", d, c.story())
		}
	}
}

// gone waits until nobody is left on a server, and demands that all are on another.
func (c *crowd) gone(to events.HostID, within time.Duration) {
	c.t.Helper()
	for _, p := range c.players {
		c.until(p.Name+" on "+string(to), within, func() bool { return p.Look().Server == to && c.view().Player(p.ID).Active == nil })
	}
}

// Everybody is moved, at the pace and in the order of the sessions; who comes later too; and
// the server is not chosen until it is put back.
func TestEvacuation(t *testing.T) {
	gather(t, 6, nil, func(c *crowd) {
		w := c.switches()
		c.server("b", 100, 16)
		c.settle()
		w.evacuate("a", true, 4)
		began := time.Now()
		c.gone("b", 20*time.Second)
		if took := time.Since(began); took < 1250*time.Millisecond || took > 6*time.Second {
			t.Errorf("six at four a second took %s", took)
		}
		c.inPace(4)
		var order []events.PlayerID
		for _, e := range c.asked() {
			id, _, _ := events.ParseTransferKey(e.Key)
			order = append(order, id)
		}
		for i, p := range c.players { // in the order in which they joined
			if len(order) != len(c.players) || order[i] != p.ID {
				t.Fatalf("asked in the order %v\n%s", order, c.story())
			}
			if times(p, "transfer.leaving") != 1 {
				t.Errorf("%s has read %q", p.Name, p.Look().Texts)
			}
		}
		// Nobody should come; who does is moved too.
		late := c.net.AddClient("Late", 767)
		c.pinned(late, "a")
		if err := late.Join(c.ctx, "e1", events.Token{}); err != nil {
			t.Fatal(err)
		}
		c.until("Late elsewhere", 20*time.Second, func() bool { return late.Look().Server == "b" })

		w.evacuate("b", true, 4)
		w.evacuate("a", false, 4)
		c.pass(5 * time.Second)
		n := len(c.asked())
		w.evacuate("b", false, 4)
		c.pass(time.Minute)
		if got := len(c.asked()); got != n {
			t.Errorf("%d were asked after it was put back", got-n)
		}
	})
}

// Who cannot go anywhere plays on, is told so, waits, and is moved when there is room; the
// size of the line holds nobody back.
func TestEvacuationWaits(t *testing.T) {
	gather(t, 4, func(r *rig) { r.line.MaxSize = 2 }, func(c *crowd) {
		w, b := c.switches(), c.down("b", 100, 8)
		w.evacuate("a", true, 10)
		for _, p := range c.players {
			c.waiting(p)
			c.until(p.Name+" is told", 5*time.Second, func() bool { return times(p, "transfer.staying") == 1 && p.Look().Server == "a" })
		}
		c.pass(time.Minute)
		if n := len(c.asked()); n != 4 {
			t.Errorf("%d were asked, want each once", n)
		}
		b.Restart()
		c.gone("b", 20*time.Second)
	})
}

// The death of the one that drives it does not end an evacuation.
func TestEvacuationOutlivesItsDriver(t *testing.T) {
	gather(t, 9, nil, func(c *crowd) {
		c.server("b", 100, 16)
		c.settle()
		c.switches().evacuate("a", true, 1)
		c.until("one is asked", 5*time.Second, func() bool { return len(c.asked()) == 1 })
		driver := c.asked()[0].Source.ID
		c.killDispatcher(driver)
		for _, p := range c.players { // its players come back through another one, to where they were
			if c.outside(p) {
				c.returnsVia(p, driver)
			}
		}
		c.gone("b", 2*time.Minute)
		drivers := map[events.HostID]bool{}
		for _, e := range c.asked() {
			drivers[e.Source.ID] = true
		}
		if len(drivers) != 2 {
			t.Errorf("asked by %v, want the dead one and one other", drivers)
		}
		c.inPace(1)
	})
}

func (c *crowd) outside(p *sim.Client) bool { return p.Look().Server == "" }

// returnsVia lets a player whose proxy has died log in again through another one.
func (c *crowd) returnsVia(p *sim.Client, dead events.HostID) {
	c.t.Helper()
	other := crowdEdges[(slices.Index(crowdEdges, dead)+1)%len(crowdEdges)]
	if err := p.Join(c.ctx, other, events.Token{}); err != nil {
		c.t.Fatalf("login of %s: %v", p.Name, err)
	}
}

// Two that believe they drive it do no harm: nobody is asked twice.
func TestTwoDriversOfAnEvacuation(t *testing.T) {
	gather(t, 6, nil, func(c *crowd) {
		c.server("b", 100, 16)
		c.settle()
		c.switches().evacuate("a", true, 0.5)
		c.until("one is asked", 5*time.Second, func() bool { return len(c.asked()) == 1 })
		first := c.asked()[0].Source.ID
		c.dispatchers[first].client.Stop() // longer than its lease
		c.pass(20 * time.Second)
		c.dispatchers[first].client.Resume()
		c.pass(2 * time.Minute)
		if n := len(c.asked()); n != len(c.players) {
			t.Errorf("%d were asked, want each of %d once\n%s", n, len(c.players), c.story())
		}
		c.gone("b", time.Second)
	})
}

// Who cannot be moved is left alone: a client that is too old for good, others for a while.
func TestEvacuationLeavesAloneWhoCannotGo(t *testing.T) {
	gather(t, 1, nil, func(c *crowd) {
		c.server("b", 100, 16)
		c.settle()
		old := c.net.AddClient("Old", 765)
		c.pinned(old, "a")
		if err := old.Join(c.ctx, "e2", events.Token{}); err != nil {
			t.Fatal(err)
		}
		c.settle()
		held := c.players[0]
		c.a.Set(func(f *sim.Faults) {
			f.Send = func(actors.Player, string) (bool, error) { return false, actors.ErrNotSent }
		})
		w := c.switches()
		w.evacuate("a", true, 2)
		c.ended(old, c.outcome(old, 5*time.Second), projections.Failed, events.ClientTooOld, expand("failed.CLIENT_TOO_OLD"))
		if got := c.outcome(held, 20*time.Second); got.Code != events.MoveRefused {
			t.Fatalf("%s %s", got.Phase, got.Code)
		}
		c.pass(20 * time.Second)
		if n := len(c.asked()); n != 2 {
			t.Errorf("%d were asked within the first seconds, want two\n%s", n, c.story())
		}
		c.a.Set(func(f *sim.Faults) { f.Send = nil })
		c.pass(2 * time.Minute)
		if held.Look().Server != "b" || old.Look().Server != "a" {
			t.Errorf("who could go is on %q, who cannot on %q", held.Look().Server, old.Look().Server)
		}
		if n := len(c.asked()); n != 3 {
			t.Errorf("%d were asked, want who could be moved later twice and the other once", n)
		}
		w.evacuate("a", true, 3)
		c.until("asked by the next order", 5*time.Second, func() bool { return len(c.asked()) == 4 })
		c.pass(time.Minute)
		if n := len(c.asked()); n != 4 {
			t.Errorf("%d were asked, want one more by another order", n)
		}
	})
}

// While transfers are off nobody is asked, and who starts later drives it, also where the
// servers move their own players.
func TestEvacuationIsObeyedLate(t *testing.T) {
	simulate(t, events.KindDirect, func(r *rig) {
		w := r.switches()
		r.direct("d-a", "a")
		r.backend("a", 0)
		r.direct("d-b", "b")
		r.backend("b", 8)
		r.settle()
		p := r.net.AddClient("Steve", 767)
		if err := p.JoinDirect("a"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		w.kill(true)
		w.evacuate("a", true, 2)
		r.pass(20 * time.Second)
		if r.observer().View().Player(p.ID).Active != nil {
			t.Fatal("asked while transfers are off")
		}
		r.killDispatcher("d-a")
		r.killDispatcher("d-b")
		r.pass(5 * time.Second)
		w.kill(false)
		r.direct("d-a", "a")
		r.until("moved", time.Minute, func() bool { return p.Look().Server == "b" })
	})
}
