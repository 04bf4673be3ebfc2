package sim_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// anywhere moves whoever joins, wherever it dials.
var anywhere = actors.JoinTriggers{Enabled: true, Regions: map[string]string{"": ""}}

// joinable plays a network with an edge whose joins are moved, and two servers with places.
func joinable(t *testing.T, rules actors.Routing, body func(r *rig)) {
	t.Helper()
	byRule(t, rules, func(r *rig) {
		r.joins = anywhere
		r.dispatcher("e1")
		r.backend("a", 4)
		r.backend("b", 4)
		r.settle()
		body(r)
	})
}

// transfersOf gives a player's transfers, oldest first.
func (r *rig) transfersOf(c *sim.Client) []projections.Transfer {
	p := r.observer().View().Player(c.ID)
	out := append([]projections.Transfer(nil), p.Done...)
	if p.Active != nil {
		out = append(out, *p.Active)
	}
	return out
}

// visits lists the servers that let a player in, one by one.
func visits(c *sim.Client) (out []events.HostID) {
	for _, m := range c.History() {
		if m.Server != "" && m.Text == "" {
			out = append(out, m.Server)
		}
	}
	return out
}

// step lists the facts of a player's transfers by their kinds.
func (r *rig) steps(c *sim.Client) string {
	var kinds []string
	for _, e := range r.facts(events.Transfers) {
		if strings.HasPrefix(e.Key, c.ID.String()) {
			kinds = append(kinds, strings.TrimSuffix(strings.TrimPrefix(events.TypeName(e.Fact), "landfall.transfer."), ".v1"))
		}
	}
	return strings.Join(kinds, " ")
}

// TestTheFirstJoinLandsAtAPlace: it is reserved and claimed before the player is let in, and the player
// is let in once. Later joins get only a server, unless the player may more.
func TestTheFirstJoinLandsAtAPlace(t *testing.T) {
	joinable(t, actors.Routing{}, func(r *rig) {
		p := r.net.AddClient("Steve", 765) // which could not be moved to another server
		p.Host = "play.example.net"
		server := r.comes(p)
		first := r.outcome(p, 5*time.Second)
		r.completed(p, first, server)
		if q := first.Request; q.Trigger != events.TriggerJoin || q.Via != "" || q.Origin != "" || first.Attempts != 1 {
			t.Errorf("requested %+v, %d attempts", q, first.Attempts)
		}
		if got, want := r.steps(p), "requested reserved claimed consumed completed"; got != want {
			t.Errorf("facts: %s, want %s", got, want)
		}
		if len(visits(p)) != 1 {
			t.Errorf("let in by %v, want one server once", visits(p))
		}
		r.leaves(p)
		r.comes(p)
		r.pass(10 * time.Second)
		if n := len(r.transfersOf(p)); n != 1 || p.Look().Position != sim.Spawn {
			t.Fatalf("the second join: %d transfers, the player stands at %+v", n, p.Look().Position)
		}
		r.leaves(p)
		r.dispatchers["e1"].actor.SetPermissions(actors.NewPermissions(actors.PermissionsConfig{Groups: []actors.PermissionGroup{{
			Grant: []string{actors.NodeJoin}, Names: []string{"steve"},
		}}}))
		server = r.comes(p)
		r.until("another transfer", 5*time.Second, func() bool { return len(r.transfersOf(p)) == 2 })
		later := r.outcome(p, 5*time.Second)
		r.completed(p, later, server)
		if later.Claim.From != "" || later.Claim.Session != 0 {
			t.Errorf("claimed for %+v: the server of the last visit has no part in it", later.Claim)
		}
	})
}

// TestWhoIsMovedByJoining: by the host name that was dialled, by permission, and never who is there already.
func TestWhoIsMovedByJoining(t *testing.T) {
	byRow := map[string]string{"wild.example.net": "default", "odd.example.net": "nowhere"}
	for name, c := range map[string]struct {
		joins  actors.JoinTriggers
		deny   []string
		host   string
		moved  bool
		reads  string
		before func(r *rig, p *sim.Client)
	}{
		"switched off":       {joins: actors.JoinTriggers{Regions: anywhere.Regions}},
		"another host name":  {joins: actors.JoinTriggers{Enabled: true, Regions: byRow}, host: "play.example.net"},
		"a host name":        {joins: actors.JoinTriggers{Enabled: true, Regions: byRow}, host: "wild.example.net", moved: true},
		"no such region":     {joins: actors.JoinTriggers{Enabled: true, Regions: byRow}, host: "odd.example.net", reads: "failed.REGION_MISSING"},
		"without permission": {joins: anywhere, deny: []string{actors.NodeFirstJoin}},
		"transfers stopped":  {joins: anywhere, reads: "refused.KILL_SWITCH", before: func(r *rig, _ *sim.Client) { r.operator(events.KillKey, 0, &events.KillSet{On: true, Who: "op"}) }},
		"the line stands still": {joins: anywhere, reads: "transfer.waiting", before: func(r *rig, _ *sim.Client) {
			r.operator(events.PauseKey(events.PauseLine, ""), 0, &events.PauseSet{What: events.PauseLine, On: true, Who: "op"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			byRule(t, actors.Routing{Queue: true}, func(r *rig) {
				r.joins = c.joins
				d := r.dispatcher("e1")
				d.SetPermissions(actors.NewPermissions(actors.PermissionsConfig{Groups: []actors.PermissionGroup{{Deny: c.deny, Names: []string{"Steve"}}}}))
				r.backend("a", 4)
				r.settle()
				p := r.net.AddClient("Steve", 767)
				p.Host = c.host
				if c.before != nil {
					c.before(r, p)
				}
				r.comes(p)
				r.pass(3 * time.Second)
				if moved := p.Look().Position != sim.Spawn; moved != c.moved {
					t.Errorf("moved: %v\n%s", moved, r.story())
				}
				if c.reads != "" && !has(p.Look().Texts, strings.ReplaceAll(messages[c.reads], "{region}", "nowhere")) {
					t.Errorf("read %q, want %s", p.Look().Texts, c.reads)
				}
			})
		})
	}
}

// TestANameThatIsTakenIsNotMoved: whoever logs in under the name of somebody who plays opens nothing for that
// player, whatever the player may.
func TestANameThatIsTakenIsNotMoved(t *testing.T) {
	joinable(t, actors.Routing{}, func(r *rig) {
		r.dispatchers["e1"].actor.SetPermissions(actors.NewPermissions(actors.PermissionsConfig{Defaults: []events.Permit{{Node: actors.NodeJoin, Granted: true}}}))
		p := r.net.AddClient("Steve", 767)
		r.comes(p)
		r.completed(p, r.outcome(p, 5*time.Second), p.Look().Server)
		if got := r.dispatchers["e1"].actor.Route(r.ctx, actors.Login{Player: p.ID, Name: p.Name}); got.Server == "" {
			t.Errorf("routed %+v", got)
		}
		if n := len(r.transfersOf(p)); n != 1 {
			t.Errorf("%d transfers", n)
		}
	})
}

// TestTheDestinationOfAJoinDies between the promise and the login: the login goes on to another place.
func TestTheDestinationOfAJoinDies(t *testing.T) {
	joinable(t, actors.Routing{}, func(r *rig) {
		for _, id := range []events.HostID{"a", "b"} {
			r.net.World(id).Set(func(f *sim.Faults) { f.Closed = id == "a" })
		}
		for i := range 3 {
			p := r.net.AddClient(fmt.Sprintf("P%d", i), 767)
			r.comes(p)
			r.completed(p, r.outcome(p, 5*time.Second), "b")
		}
	})
}

// TestTheEdgeOfAJoinDies at each step: the player comes again over another edge, and is put at one place,
// once; or never comes again, and everything is given back.
func TestTheEdgeOfAJoinDies(t *testing.T) {
	for _, step := range []string{"landfall.transfer.requested", ".reserve", "landfall.transfer.reserved", "landfall.transfer.claimed", "on the way"} {
		for _, again := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, comes again %v", strings.TrimPrefix(step, "landfall.transfer."), again), func(t *testing.T) {
				joinable(t, actors.Routing{Queue: true}, func(r *rig) {
					r.dispatcher("e2")
					r.settle()
					p := r.net.AddClient("Steve", 767)
					h := r.dispatchers["e1"].client.hold(step)
					r.wg.Go(func() { // what it comes to does not matter: the edge is gone
						if step != "on the way" {
							_ = p.Join(r.ctx, "e1", events.Token{})
							return
						}
						r.dispatchers["e1"].actor.Route(r.ctx, actors.Login{Player: p.ID, Name: p.Name, Protocol: 767})
						h.once.Do(func() { close(h.reached) })
					})
					r.until("step "+step, 10*time.Second, h.isReached)
					r.killDispatcher("e1")
					r.pass(time.Second)
					if again {
						if err := p.Join(r.ctx, "e2", events.Token{}); err != nil {
							t.Fatalf("%v\n%s", err, r.story())
						}
						r.completed(p, r.outcome(p, 10*time.Second), p.Look().Server)
						if len(visits(p)) != 1 {
							t.Errorf("let in by %v", visits(p))
						}
					}
					r.until("end of all transfers", 2*time.Minute, func() bool { return len(r.observer().View().Active()) == 0 })
					r.pass(45 * time.Second) // as long as a promise lasts that nobody gave back
					for _, id := range []events.HostID{"a", "b"} {
						if b := r.observer().View().Fleet().Backend(id); b.Regions[0].Kept != 4 || b.Outstanding != 0 {
							t.Errorf("%s keeps %d, with %d promised: want all 4\n%s", id, b.Regions[0].Kept, b.Outstanding, r.story())
						}
					}
				})
			})
		}
	}
}

// TestNamesOutOfThinAirTakeFewPlaces: logins from one address that no server confirms.
func TestNamesOutOfThinAirTakeFewPlaces(t *testing.T) {
	byRule(t, actors.Routing{}, func(r *rig) {
		r.joins = anywhere
		d := r.dispatcher("e1")
		r.backend("a", 64)
		r.settle()
		login := func(i int, address string) actors.Route {
			name := fmt.Sprintf("Ghost%d", i)
			return d.Route(r.ctx, actors.Login{Player: events.OfflinePlayer(name), Name: name, Protocol: 767, Address: netip.MustParseAddr(address)})
		}
		for i := range 40 {
			if got := login(i, fmt.Sprintf("2001:db8::%x", i)); got.Server != "a" {
				t.Fatalf("login %d: %+v", i, got)
			}
		}
		if n := len(d.View().Active()); n != 16 {
			t.Errorf("%d places for forty names of one customer, want 16", n)
		}
		if login(40, "2001:db8:0:1::1"); len(d.View().Active()) != 17 {
			t.Error("a login from elsewhere gets no place")
		}
		r.until("end of what nobody came for", 2*time.Minute, func() bool { return len(d.View().Active()) == 0 })
		if login(41, "2001:db8::1"); len(d.View().Active()) != 1 {
			t.Error("no place for the same customer when the others are given back")
		}
	})
}

// TestNoPlaceForAJoin: without a lobby the login is turned away in words, or the player waits in line on a server
// that has a seat.
func TestNoPlaceForAJoin(t *testing.T) {
	for _, queue := range []bool{false, true} {
		byRule(t, actors.Routing{Queue: queue}, func(r *rig) {
			r.joins = anywhere
			r.dispatcher("e1")
			w := r.backend("a", 1)
			r.settle()
			w.Set(func(f *sim.Faults) { f.Barren = true })
			first := r.net.AddClient("First", 767)
			r.comes(first)
			r.completed(first, r.outcome(first, 5*time.Second), "a")
			r.pass(2 * time.Second)
			p := r.net.AddClient("Steve", 767)
			err := p.Join(r.ctx, "e1", events.Token{})
			if !queue {
				if err == nil || err.Error() != "edge e1 refuses: login.none" {
					t.Errorf("login: %v", err)
				}
				if end := r.outcome(p, 0); end.Phase != projections.Failed || end.Code != events.NoCandidate {
					t.Errorf("the transfer is %s %s", end.Phase, end.Code)
				}
				return
			}
			if err != nil || p.Look().Server != "a" || p.Look().Position != sim.Spawn {
				t.Fatalf("login: %v, the player is at %+v", err, p.Look())
			}
			r.until("the words", 2*time.Second, func() bool { return hasMessage(p, "transfer.waiting") })
			r.pass(3 * time.Minute) // longer than anybody may be away
			w.Set(func(f *sim.Faults) { f.Barren = false })
			r.completed(p, r.outcome(p, 2*time.Minute), "a") // a server that found nothing for long looks seldom
		})
	}
}

// TestALobbyTakesWhoFindsNoPlace, whatever becomes of others: that is what it is for.
func TestALobbyTakesWhoFindsNoPlace(t *testing.T) {
	byRule(t, actors.Routing{}, func(r *rig) {
		r.joins = anywhere
		r.dispatcher("e1")
		r.backend("hub", 0)
		w := r.backend("a", 1)
		r.settle()
		w.Set(func(f *sim.Faults) { f.Barren = true })
		first := r.net.AddClient("First", 767)
		if r.comes(first) != "a" {
			t.Error("a place is ready, and the first join leads to the lobby")
		}
		r.completed(first, r.outcome(first, 5*time.Second), "a")
		r.pass(2 * time.Second)
		p := r.net.AddClient("Steve", 767)
		if got := r.comes(p); got != "hub" {
			t.Errorf("taken by %s, want the lobby", got)
		}
		w.Set(func(f *sim.Faults) { f.Barren = false })
		r.completed(p, r.outcome(p, 20*time.Second), "a")
	})
}

// full plays a network whose one server has a single seat, which is taken.
func full(t *testing.T, joins actors.JoinTriggers, body func(r *rig, seated *sim.Client)) {
	t.Helper()
	byRule(t, actors.Routing{Queue: true}, func(r *rig) {
		r.joins = joins
		r.dispatcher("e1")
		r.dispatcher("e2")
		w := sim.NewWorld("a", 1, 0)
		r.net.AddWorld(w)
		r.attach("a", w, 1)
		r.settle()
		seated := r.net.AddClient("Seated", 767)
		r.comes(seated)
		r.pass(5 * time.Second)
		body(r, seated)
	})
}

// TestALoginWaitsForASeat, in the order of the logins, with a place of its own or without; in the end it is told
// where it stands.
func TestALoginWaitsForASeat(t *testing.T) {
	for name, joins := range map[string]actors.JoinTriggers{"with a place": anywhere, "without": {}} {
		t.Run(name, func(t *testing.T) {
			full(t, joins, func(r *rig, seated *sim.Client) {
				p := r.net.AddClient("Steve", 767)
				began := time.Now()
				r.later(7*time.Second, seated.Quit)
				server := r.comes(p)
				if took := time.Since(began); took < 7*time.Second || took > 11*time.Second {
					t.Errorf("let in after %s", took)
				}
				if joins.Enabled {
					r.completed(p, r.outcome(p, 5*time.Second), server)
				}
				late := r.net.AddClient("Late", 767)
				began = time.Now()
				err := late.Join(r.ctx, "e1", events.Token{})
				want := "edge e1 refuses: login.none"
				if joins.Enabled {
					want = "edge e1 refuses: login.waiting"
				}
				if err == nil || err.Error() != want || time.Since(began) < 14*time.Second || time.Since(began) > 16*time.Second {
					t.Errorf("after %s: %v, want %s", time.Since(began), err, want)
				}
			})
		})
	}
}

// TestAPlaceInLineIsKeptBetweenLogins: who is turned away while waiting keeps the place over another edge.
func TestAPlaceInLineIsKeptBetweenLogins(t *testing.T) {
	full(t, anywhere, func(r *rig, seated *sim.Client) {
		d := r.dispatchers["e1"].actor
		route := func(name string) actors.Route {
			return d.Route(r.ctx, actors.Login{Player: events.OfflinePlayer(name), Name: name, Protocol: 767})
		}
		if got := route("Other"); got.Message != "login.waiting" || got.Code != events.Waiting || got.Position != 1 || got.Keep != time.Minute {
			t.Errorf("the first in line is told %+v", got)
		}
		if got := route("Steve"); got.Position != 2 {
			t.Errorf("the second in line is told %+v", got)
		}
		p := r.net.AddClient("Steve", 767)
		place := r.transfersOf(p)[0].Place
		for range 5 { // much longer than a place is kept for who does not come
			r.pass(40 * time.Second)
			if err := p.Join(r.ctx, "e2", events.Token{}); err == nil || err.Error() != "edge e2 refuses: login.waiting" {
				t.Fatalf("%v\n%s", err, r.story())
			}
		}
		r.pass(20 * time.Second)
		r.later(5*time.Second, seated.Quit)
		if err := p.Join(r.ctx, "e2", events.Token{}); err != nil {
			t.Fatal(err)
		}
		end := r.outcome(p, 5*time.Second)
		r.completed(p, end, "a")
		if end.Place != place || len(r.transfersOf(p)) != 1 {
			t.Errorf("place %d, had %d, of %d transfers", end.Place, place, len(r.transfersOf(p)))
		}
		other := r.net.AddClient("Other", 767)
		r.until("end of who never came again", 2*time.Minute, func() bool { return len(r.observer().View().Active()) == 0 })
		if end := r.outcome(other, 0); end.Code != events.GraceOver {
			t.Errorf("who never came again ended %s %s", end.Phase, end.Code)
		}
	})
}

// TestAClientThatLeavesTheLogin leaves nothing behind.
func TestAClientThatLeavesTheLogin(t *testing.T) {
	joinable(t, actors.Routing{Queue: true}, func(r *rig) {
		d := r.dispatchers["e1"]
		h := d.client.hold("landfall.transfer.claimed")
		ctx, leave := context.WithCancel(r.ctx)
		p := r.net.AddClient("Steve", 767)
		done := make(chan actors.Route, 1)
		go func() { done <- d.actor.Route(ctx, actors.Login{Player: p.ID, Name: p.Name, Protocol: 767}) }()
		r.until("the claim", 5*time.Second, h.isReached)
		leave()
		<-done
		r.until("end of the transfer", 10*time.Second, func() bool { return len(d.actor.View().Active()) == 0 })
		r.pass(3 * time.Second)
		for _, id := range []events.HostID{"a", "b"} {
			if b := r.observer().View().Fleet().Backend(id); b.Regions[0].Kept != 4 {
				t.Errorf("%s keeps %d\n%s", id, b.Regions[0].Kept, r.story())
			}
		}
	})
}
