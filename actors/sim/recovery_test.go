package sim_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// What a store that was away leaves to be done when it is back.

// outages are shorter than, about as long as, and longer than every deadline of a token.
var outages = []time.Duration{5 * time.Second, 20 * time.Second, 29 * time.Second, 31 * time.Second, 36 * time.Second, time.Minute, 10 * time.Minute}

// recovered is the longest time from the return of the store until what waited for it is done.
const recovered = 5 * time.Second

// TestWhoArrivesDuringAnOutageIsPlaced: no deadline runs while the store is away, so nobody fails
// because of it. Who came meanwhile waits at spawn, and is put into place once it is back.
func TestWhoArrivesDuringAnOutageIsPlaced(t *testing.T) {
	for _, outage := range outages {
		t.Run("arrives, "+outage.String(), func(t *testing.T) {
			play(t, func(s *scene) {
				token := s.sentAway()
				s.mem.Outage()
				s.pass(2 * time.Second)
				s.comesWith(token, "e2")
				s.pass(outage)
				s.mem.Restore()
				s.doneSoon("b")
			})
		})
		t.Run("is being placed, "+outage.String(), func(t *testing.T) {
			play(t, func(s *scene) {
				h := s.backends["b"].client.hold(".placed")
				s.player.Ask("")
				s.until("placed", 10*time.Second, h.isReached)
				s.mem.Outage()
				h.release()
				s.pass(outage)
				s.mem.Restore()
				s.doneSoon("b")
			})
		})
		t.Run("is promised a place, "+outage.String(), func(t *testing.T) {
			play(t, func(s *scene) {
				h := s.askAndHold("claimed")
				s.mem.Outage()
				h.release()
				s.pass(outage)
				s.mem.Restore()
				got := s.outcome(s.player, time.Minute)
				s.completed(s.player, got, got.Destination())
			})
		})
	}
}

// doneSoon demands that the player's transfer is completed on a server, soon after the store is back.
func (s *scene) doneSoon(on events.HostID) {
	s.t.Helper()
	back := time.Now()
	got := s.outcome(s.player, time.Minute)
	s.completed(s.player, got, on)
	if took := time.Since(back); took > recovered {
		s.t.Errorf("done %s after the store was back, want %s", took, recovered)
	}
	s.consumedOnce(got)
	s.conserved(on)
}

// TestRecoveryIsNoStampede: a hundred who came during an outage are all in place soon after it, and
// their server asks no more for it than it does for as many who come one by one.
func TestRecoveryIsNoStampede(t *testing.T) {
	const players = 100
	gather(t, players, func(r *rig) { r.pace = 1000 }, func(c *crowd) {
		c.server("b", 500, 200)
		c.pass(20 * time.Second)
		for _, p := range c.players {
			p.Follow(false)
			p.Ask("")
		}
		tokens := map[events.PlayerID]events.Token{}
		c.until("everybody sent away", 20*time.Second, func() bool {
			for _, p := range c.players {
				if t := c.view().Player(p.ID).Active; t != nil && t.Phase == projections.Claimed && p.Look().Server == "" {
					tokens[p.ID] = t.Token
				}
			}
			return len(tokens) == players
		})
		c.mem.Outage()
		for i, p := range c.players {
			if err := p.Join(c.ctx, crowdEdges[i%len(crowdEdges)], tokens[p.ID]); err != nil {
				t.Fatal(err)
			}
		}
		c.pass(time.Minute)

		var asked atomic.Int64
		count := func(_ time.Time, subject string, _, _ events.Wire) {
			if subject == events.AskOf("b", events.VerbArrived) || subject == events.AskOf("b", events.VerbPlaced) {
				asked.Add(1)
			}
		}
		c.backends["b"].client.answered.Store(&count)
		c.mem.Restore()
		back, latest := time.Now(), time.Duration(0)
		for _, p := range c.players {
			got := c.outcome(p, time.Minute)
			c.completed(p, got, "b")
			latest = max(latest, time.Since(back))
		}
		t.Logf("%d players in place within %s of the return of the store, by %d reports", players, latest, asked.Load())
		if latest > recovered {
			t.Errorf("the last was in place %s after the return, want %s", latest, recovered)
		}
		if n := asked.Load(); n > 3*players {
			t.Errorf("%d reports of %d players, want two of each and few more", n, players)
		}
	})
}
