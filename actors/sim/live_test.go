package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// TestDeadlinesChangeLive: who waits already goes by the new lengths, without a restart.
func TestDeadlinesChangeLive(t *testing.T) {
	gather(t, 2, nil, func(c *crowd) {
		c.down("b", 100, 8)
		away, waits := c.players[0], c.players[1]
		for _, p := range c.players {
			c.ask(p)
			c.waiting(p)
		}
		away.Quit()
		c.pass(30 * time.Second)
		if p := c.observer().View().Player(away.ID); p.Active == nil {
			t.Fatal("the place was lost within grace")
		}
		c.retime(actors.Timing{Grace: 5 * time.Second})
		c.ended(away, c.outcome(away, 3*time.Second), projections.Cancelled, events.GraceOver)
		c.retime(actors.Timing{MaxAge: 10 * time.Second})
		c.ended(waits, c.outcome(waits, 3*time.Second), projections.Cancelled, events.AgedOut)
	})
}

// retime gives every host other lengths of its deadlines.
func (r *rig) retime(t actors.Timing) {
	for _, h := range r.dispatchers {
		h.actor.SetTiming(t)
	}
	for _, h := range r.backends {
		h.actor.SetTiming(t)
	}
}
