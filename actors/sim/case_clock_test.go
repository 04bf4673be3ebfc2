package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Cases of clocks, and of processes that stood still.

func isCancelled(f events.Fact) bool { _, ok := f.(*events.Cancelled); return ok }
func isReopened(f events.Fact) bool  { _, ok := f.(*events.Reopened); return ok }

// ends counts how often each transfer gave up a token or ended.
func (r *rig) ends() map[events.Token]int {
	out := map[events.Token]int{}
	attempt := map[events.TransferID]int{}
	for _, e := range r.facts(events.Transfers) {
		switch f := e.Fact.(type) {
		case *events.Reserved:
			attempt[e.Correlation] = f.Attempt
		case *events.Expired, *events.Released, *events.Failed, *events.Cancelled:
			out[events.Token{Transfer: e.Correlation, Attempt: attempt[e.Correlation]}]++
		default:
		}
	}
	return out
}

// TestCase058_AProcessThatSlept: a process was stopped for a while, and on waking took everybody
// else for silent, or ended once more what others had ended meanwhile. Here whoever slept looks
// again before it judges: nobody is absent because of its own sleep, and a token ends once.
func TestCase058_AProcessThatSlept(t *testing.T) {
	for _, nap := range []time.Duration{4 * time.Second, 40 * time.Second, 70 * time.Second, 10 * time.Minute} {
		t.Run("others' players wait meanwhile, "+nap.String(), func(t *testing.T) {
			gather(t, 6, nil, func(c *crowd) {
				w := c.down("b", 100, 8)
				c.lineUp(c.players[1], c.players[2], c.players[4], c.players[5]) // held by e2 and e3
				c.dispatchers["e1"].client.Stop()
				c.pass(nap)
				c.dispatchers["e1"].client.Resume()
				c.pass(10 * time.Second)
				n := 0
				for _, e := range c.facts(events.Transfers) {
					if isCancelled(e.Fact) {
						n++
					}
				}
				if n > 0 {
					t.Fatalf("%d players lost their places\n%s", n, c.story())
				}
				w.Restart()
				for _, p := range []*sim.Client{c.players[1], c.players[2], c.players[4], c.players[5]} {
					c.arrives(p, c.placeOf(p), time.Minute)
				}
			})
		})
		t.Run("others move meanwhile, "+nap.String(), func(t *testing.T) {
			play(t, func(s *scene) {
				h := s.askAndHold(".move") // claimed by e1, which takes its time
				s.dispatchers["e2"].client.Stop()
				s.pass(min(nap, 20*time.Second))
				s.dispatchers["e2"].client.Resume()
				s.pass(2 * time.Second)
				if n := s.count(isReopened); n > 0 {
					t.Errorf("the claim of a living proxy was taken back\n%s", s.story())
				}
				h.release()
				s.completed(s.player, s.outcome(s.player, forever), "b")
			})
		})
	}
	t.Run("a token ended meanwhile", func(t *testing.T) {
		play(t, func(s *scene) {
			h := s.askAndHold("claimed")
			s.player.Quit()
			s.until("close", 5*time.Second, func() bool { x, _ := s.observer().View().Session(s.player.ID); return !x.Open })
			s.e1().Stop()
			h.release()
			s.pass(50 * time.Second) // e2 ends the token
			s.e1().Resume()
			s.ended(s.player, s.outcome(s.player, forever), projections.Cancelled, events.GraceOver)
			s.pass(time.Minute)
			for token, n := range s.ends() {
				if n > 2 { // the token, and then the transfer
					t.Errorf("%s ended %d times\n%s", token, n, s.story())
				}
			}
			if n := s.count(func(f events.Fact) bool { _, ok := f.(*events.Expired); return ok }); n != 1 {
				t.Errorf("%d expiries\n%s", n, s.story())
			}
			s.conserved("b")
		})
	})
	t.Run("everybody sleeps", func(t *testing.T) {
		gather(t, 3, nil, func(c *crowd) {
			w := c.down("b", 100, 8)
			c.lineUp(c.players...)
			for _, id := range crowdEdges {
				c.dispatchers[id].client.Stop()
			}
			c.pass(2 * time.Minute)
			for _, id := range crowdEdges {
				c.dispatchers[id].client.Resume()
			}
			c.pass(10 * time.Second)
			w.Restart()
			for _, p := range c.players {
				c.arrives(p, c.placeOf(p), time.Minute)
			}
		})
	})
}
