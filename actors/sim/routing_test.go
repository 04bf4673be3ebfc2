package sim_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// byRule plays a network whose logins are routed by the given rules alone.
func byRule(t *testing.T, rules actors.Routing, body func(r *rig)) {
	t.Helper()
	simulate(t, events.KindEdge, func(r *rig) {
		r.byRule = &rules
		body(r)
	})
}

// comes logs a player in through e1 and gives the server that took the player.
func (r *rig) comes(c *sim.Client) events.HostID {
	r.t.Helper()
	if err := c.Join(r.ctx, "e1", events.Token{}); err != nil {
		r.t.Fatalf("login of %s: %v", c.Name, err)
	}
	server := c.Look().Server
	r.until("session of "+c.Name, 5*time.Second, func() bool {
		s, ok := r.observer().View().Session(c.ID)
		return ok && s.Open && s.Server == server
	})
	return server
}

// leaves ends a player's connection, and waits until the log says so.
func (r *rig) leaves(c *sim.Client) {
	r.t.Helper()
	c.Quit()
	r.until("end of the session of "+c.Name, 5*time.Second, func() bool {
		s, _ := r.observer().View().Session(c.ID)
		return !s.Open
	})
}

// TestJoinStormSpreads: a crowd that comes before the next heartbeat is spread over servers
// that are alike, whatever the policy.
func TestJoinStormSpreads(t *testing.T) {
	const crowd, servers = 200, 5
	for _, kind := range []string{actors.Weighted, actors.RoundRobin, actors.LeastPlayers} {
		t.Run(kind, func(t *testing.T) {
			byRule(t, actors.Routing{}, func(r *rig) {
				policy, err := actors.NewPolicy(actors.PolicyConfig{Kind: kind})
				if err != nil {
					t.Fatal(err)
				}
				r.quiet = true
				d := r.dispatcher("e1")
				d.SetPolicy(policy)
				for i := range servers {
					r.backend(events.HostID(fmt.Sprintf("s%d", i)), 1)
				}
				r.settle()
				var wg sync.WaitGroup
				var all []*sim.Client
				for i := range crowd {
					c := r.net.AddClient(fmt.Sprintf("P%d", i), 767)
					all = append(all, c)
					wg.Go(func() {
						if err := c.Join(r.ctx, "e1", events.Token{}); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				on := map[events.HostID]int{}
				for _, c := range all {
					on[c.Look().Server]++
				}
				for i := range servers {
					n := on[events.HostID(fmt.Sprintf("s%d", i))]
					if most, least := crowd/servers*11/10, crowd/servers*9/10; n > most || n < least {
						t.Errorf("the servers took %v, want %d to %d each", on, least, most)
						break
					}
				}
			})
		})
	}
}

// TestJoinsGoToLobbiesFirst, and elsewhere only when no lobby can take anybody.
func TestJoinsGoToLobbiesFirst(t *testing.T) {
	byRule(t, actors.Routing{Lobbies: []events.HostID{"hub"}}, func(r *rig) {
		r.dispatcher("e1")
		r.backend("a", 4)
		r.backend("hub", 4) // named, although it has a region
		small := sim.NewWorld("lobby", 1, 0)
		r.net.AddWorld(small)
		r.attach("lobby", small, 0) // has none
		r.settle()
		took := map[events.HostID]int{}
		for i := range 4 {
			took[r.comes(r.net.AddClient(fmt.Sprintf("P%d", i), 767))]++
		}
		if took["hub"] != 3 || took["lobby"] != 1 {
			t.Errorf("four players were taken by %v, want one by the lobby with one seat, and three by hub", took)
		}
		r.killBackend("hub")
		r.settle()
		if got := r.comes(r.net.AddClient("Late", 767)); got != "a" {
			t.Errorf("taken by %s, want a: no lobby can take anybody", got)
		}
	})
}

// TestALobbyIsNoDestination: what it keeps is for nobody, not even by name.
func TestALobbyIsNoDestination(t *testing.T) {
	byRule(t, actors.Routing{Lobbies: []events.HostID{"hub"}}, func(r *rig) {
		r.dispatcher("e1")
		r.backend("a", 1)
		r.backend("hub", 16)
		r.settle()
		p := r.net.AddClient("Steve", 767)
		r.comes(p)
		p.Ask("")
		end := r.outcome(p, 20*time.Second)
		r.completed(p, end, "a")
		if out := end.Reserved.Decision.Filtered; len(out) != 1 || out[0].Code != events.LobbyOnly || out[0].Examples[0] != "hub" {
			t.Errorf("decided %+v", end.Reserved.Decision)
		}
		a := r.observer().Open(r.ctx, events.RequestAsk{
			Player: p.ID, Name: p.Name, Transfer: streamtest.NewID[events.TransferID](), Trigger: events.TriggerAPI, Wish: events.Wish{Pin: "hub"},
		}, "")
		if a.Code != events.Accepted {
			t.Fatal(a)
		}
		r.until("end of the wish for a lobby", 20*time.Second, func() bool {
			done := r.observer().View().Player(p.ID).Done
			return len(done) == 2 && done[1].Code == events.RegionMissing
		})
	})
}

// TestReturns: by choice, or to the server of the last session where that can take the player.
func TestReturns(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		byRule(t, actors.Routing{Sticky: sticky}, func(r *rig) {
			r.dispatcher("e1")
			r.backend("a", 1)
			r.backend("b", 1)
			r.settle()
			p := r.net.AddClient("Steve", 767)
			was := r.comes(p)
			r.leaves(p)
			if got := r.comes(p); (got == was) != sticky {
				t.Errorf("sticky %v: from %s the player came back to %s", sticky, was, got)
			}
			was = p.Look().Server
			r.leaves(p)
			r.killBackend(was)
			r.settle()
			if got := r.comes(p); got == was {
				t.Errorf("sticky %v: sent to %s, which is gone", sticky, got)
			}
		})
	}
}

// TestALineIsKeptOverAReturn: who waits and comes back is let in where the wait began, at the
// same place, without a rule for returns.
func TestALineIsKeptOverAReturn(t *testing.T) {
	byRule(t, actors.Routing{}, func(r *rig) {
		r.dispatcher("e1")
		r.backend("a", 0)
		r.backend("b", 0)
		w := r.backend("c", 1)
		r.settle()
		w.Set(func(f *sim.Faults) { f.Barren = true })
		first := r.net.AddClient("First", 767)
		r.comes(first)
		first.Ask("") // takes what c has
		r.outcome(first, 20*time.Second)
		p := r.net.AddClient("Steve", 767)
		was := r.comes(p)
		p.Ask("")
		r.until("in line", 10*time.Second, func() bool {
			t := r.observer().View().Player(p.ID).Active
			return t != nil && t.Waitlisted
		})
		place := r.observer().View().Player(p.ID).Active.Place
		r.leaves(p)
		if got := r.comes(p); got != was {
			t.Errorf("waited on %s, came back to %s", was, got)
		}
		w.Set(func(f *sim.Faults) { f.Barren = false })
		end := r.outcome(p, time.Minute)
		r.completed(p, end, "c")
		if end.Place != place {
			t.Errorf("place %d became %d", place, end.Place)
		}
	})
}

// TestNobodyCanHoldALogin: it is refused in words, for its reason.
func TestNobodyCanHoldALogin(t *testing.T) {
	byRule(t, actors.Routing{}, func(r *rig) {
		d := r.dispatcher("e1")
		full := sim.NewWorld("a", 1, 0)
		r.net.AddWorld(full)
		r.attach("a", full, 1)
		r.settle()
		r.comes(r.net.AddClient("First", 767))
		late := r.net.AddClient("Late", 767)
		if got := d.Route(r.ctx, actors.Login{Player: late.ID, Name: late.Name}); got != (actors.Route{Message: "login.none", Code: events.NoCandidate}) {
			t.Errorf("routed %+v", got)
		}
	})
}
