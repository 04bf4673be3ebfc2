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

// TestCase055_AWrongClock: a host whose clock was hours behind counted as silent, and was dropped.
// Here silence is what the reader itself did not hear; a clock that is off is told once, and that
// it is right again.
func TestCase055_AWrongClock(t *testing.T) {
	const behind, ahead = -(4*time.Hour + 26*time.Minute), 10 * time.Minute
	for name, skew := range map[string]map[events.HostID]time.Duration{
		"the destination": {"b": behind}, "the origin": {"a": ahead}, "the proxy that acts": {"e1": behind}, "another proxy": {"e2": ahead},
		"everybody": {"a": ahead, "b": behind, "e1": behind, "e2": ahead},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, events.KindEdge, func(r *rig) {
				r.clocks.set(skew)
				r.ear = &ear{text: "the clock of a host"}
				r.dispatcher("e1")
				r.dispatcher("e2")
				r.backend("a", 0)
				r.backend("b", 4)
				r.settle()
				p := r.player("Steve", "e1", "a")
				p.Ask("")
				r.completed(p, r.outcome(p, 10*time.Second), "b")
				r.pass(time.Minute)
				fleet, now := r.observer().View().Fleet(), r.clocks.now("e1")
				for _, b := range fleet.Backends {
					if silent := fleet.Silence(b.Seen, now); silent > 3*time.Second {
						t.Errorf("%s counts as silent for %s", b.Server, silent)
					}
				}
				if n := r.ear.count("is off"); n != 2*len(skew) {
					t.Errorf("%d warnings, want one from each proxy for each of %d hosts", n, len(skew))
				}
				r.clocks.set(nil)
				r.pass(10 * time.Second)
				if n := r.ear.count("is right again"); n != 2*len(skew) {
					t.Errorf("told %d times that it is right again, want %d", n, 2*len(skew))
				}
			})
		})
	}
}

// TestCase059_TheClockJumps: a jump of the clock broke the state of a cluster for good. Here
// lengths are measured by a clock that does not jump, and order is the sequence: whatever the
// clock of the store does, and however those of the hosts differ, nothing ends twice, nothing
// ends early that somebody waits for, and nothing lasts for ever.
func TestCase059_TheClockJumps(t *testing.T) {
	for name, by := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour back": -time.Hour} {
		t.Run("the store's goes "+name+" under way", func(t *testing.T) {
			for row, step := range steps {
				play(t, func(s *scene) {
					h := s.askAndHold(step)
					s.mem.StepClock(by)
					s.pass(time.Second)
					h.release()
					got := s.outcome(s.player, forever)
					s.completed(s.player, got, "b")
					if n := s.count(isReserved); n != 1 {
						t.Errorf("%s: %d tokens\n%s", row, n, s.story())
					}
					s.consumedOnce(got)
				})
			}
		})
		t.Run("the store's goes "+name+" and nobody comes", func(t *testing.T) {
			play(t, func(s *scene) {
				s.sentAway()
				began := time.Now()
				s.mem.StepClock(by)
				got := s.outcome(s.player, forever)
				if took := time.Since(began); got.Code != events.NotArrived || took < 28*time.Second || took > 40*time.Second {
					t.Errorf("%s after %s, want NOT_ARRIVED after 30 s", got.Code, took)
				}
				for token, n := range s.ends() {
					if n != 1 {
						t.Errorf("%s ended %d times", token, n)
					}
				}
				s.conserved("b")
			})
		})
		t.Run("the store's goes "+name+" in line", func(t *testing.T) {
			gather(t, 3, nil, func(c *crowd) {
				w := c.down("b", 100, 8)
				c.lineUp(c.players...)
				p := c.players[1]
				place := c.place(p)
				p.Quit()
				c.pass(5 * time.Second)
				c.mem.StepClock(by)
				c.pass(5 * time.Second)
				c.rejoin(p)
				c.pass(30 * time.Second)
				c.mem.StepClock(by)
				c.pass(30 * time.Second)
				if c.position(p) != 2 || c.place(p) != place {
					t.Errorf("position %d\n%s", c.position(p), c.story())
				}
				w.Restart()
				for _, p := range c.players {
					c.arrives(p, c.placeOf(p), time.Minute)
				}
			})
		})
	}
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
