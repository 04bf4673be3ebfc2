package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Cases of waiting in line.

// lineUp lets players ask one after the other, and waits until all of them are in line.
func (c *crowd) lineUp(players ...*sim.Client) {
	c.t.Helper()
	for _, p := range players {
		c.ask(p)
		c.waiting(p)
	}
}

func (c *crowd) place(p *sim.Client) uint64 {
	c.t.Helper()
	t := c.view().Player(p.ID).Active
	if t == nil {
		c.t.Fatalf("%s has no transfer\n%s", p.Name, c.story())
	}
	return t.Place
}

// arrives demands that a player is served on b, at the place of the request.
func (c *crowd) arrives(p *sim.Client, place uint64, within time.Duration) {
	c.t.Helper()
	got := c.outcome(p, within)
	c.completed(p, got, "b")
	if got.Place != place {
		c.t.Errorf("place %d of %s became %d", place, p.Name, got.Place)
	}
}

func toReserve(server events.HostID) func(string) bool {
	return func(subject string) bool { return subject == events.ToBackend(server, events.VerbReserve) }
}

// TestCase022_TheHeadKeepsItsPlace: the first in line could not be sent, and was put at the end.
// Here a fault of the target costs nobody the place: the head waits a moment, the next ones go.
func TestCase022_TheHeadKeepsItsPlace(t *testing.T) {
	for name, fault := range map[string]func(c *crowd, w *sim.World){
		"no answer":       func(c *crowd, _ *sim.World) { c.mem.DropRequest(toReserve("b"), 1) },
		"a lost answer":   func(c *crowd, _ *sim.World) { c.mem.LoseAnswer(toReserve("b"), 1) },
		"unsafe places":   func(c *crowd, w *sim.World) { c.later(30*time.Millisecond, w.Spoil) },
		"the move failed": func(c *crowd, _ *sim.World) { c.a.Set(onceRefused(c.players[0])) },
		"the token expired": func(c *crowd, _ *sim.World) {
			h := c.dispatchers["e1"].client.hold("claimed")
			c.wg.Go(func() {
				<-h.reached
				c.later(40*time.Second, h.release)
			})
		},
		"the target went away again": func(c *crowd, w *sim.World) { // as it is asked: nobody has been moved yet
			again := sync.OnceFunc(w.Restart)
			for _, id := range crowdEdges {
				h := c.dispatchers[id].client.hold("b.reserve")
				c.wg.Go(func() {
					select {
					case <-h.reached:
						again()
						h.release()
					case <-c.ctx.Done():
					}
				})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			gather(t, 3, nil, func(c *crowd) {
				w := c.down("b", 100, 8)
				c.lineUp(c.players...)
				head := c.place(c.players[0])
				others := []uint64{c.place(c.players[1]), c.place(c.players[2])}
				fault(c, w)
				w.Restart()
				for i, p := range c.players[1:] {
					c.arrives(p, others[i], 15*time.Second)
				}
				c.arrives(c.players[0], head, 2*time.Minute)
			})
		})
	}
}

// onceRefused makes a server refuse to send a player away, once.
func onceRefused(p *sim.Client) func(*sim.Faults) {
	refused := false
	return func(f *sim.Faults) {
		f.Send = func(x actors.Player, _ string) (bool, error) {
			if x.ID == p.ID && !refused {
				refused = true
				return false, actors.ErrNotSent
			}
			return true, nil
		}
	}
}

// TestCase023_TheHeadIsNotWanted: the first in line was banned where it was to go, and everybody
// else waited for it. Here who is refused for good leaves the line with a reason, who may be taken
// later is passed over, and the others are served in the meantime.
func TestCase023_TheHeadIsNotWanted(t *testing.T) {
	never := func(p *sim.Client) func(*sim.Faults) {
		return func(f *sim.Faults) {
			f.Send = func(x actors.Player, _ string) (bool, error) {
				if x.ID == p.ID {
					return false, fmt.Errorf("%w: not with that cape", actors.ErrNotSent)
				}
				return true, nil
			}
		}
	}
	for name, row := range map[string]struct {
		prepare func(c *crowd, head *sim.Client)
		code    events.Code
	}{
		"the origin does not send the player": {func(c *crowd, head *sim.Client) { c.a.Set(never(head)) }, events.MoveRefused},
		"the target kicks the player at the door": {func(c *crowd, head *sim.Client) {
			c.net.World("b").Set(func(f *sim.Faults) { f.Kick = func(p actors.Player) bool { return p.ID == head.ID } })
		}, events.NotArrived},
		"nobody speaks the client's version any more": {func(c *crowd, head *sim.Client) { c.net.World("b").Speak(768, 770) }, events.ProtocolAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			gather(t, 4, nil, func(c *crowd) {
				w := c.down("b", 100, 4) // a place that is kept for the head is not there for the others
				head := c.players[0]
				for _, p := range c.players[1:] {
					p.Protocol = 768
				}
				c.rejoin(c.players[1:]...)
				c.lineUp(c.players...)
				row.prepare(c, head)
				w.Restart()
				for _, p := range c.players[1:] {
					c.arrives(p, c.placeOf(p), 15*time.Second)
				}
				got := c.outcome(head, time.Minute)
				if head.Look().Server == "" {
					if err := head.Join(c.ctx, "e2", events.Token{}); err != nil {
						t.Fatal(err)
					}
				}
				c.ended(head, got, projections.Failed, row.code, messages["failed."+string(row.code)])
				if c.view().Ahead(1<<62) != 0 {
					t.Errorf("somebody is still in line\n%s", c.story())
				}
			})
		})
	}
	t.Run("the target takes nobody for a while", func(t *testing.T) {
		gather(t, 3, nil, func(c *crowd) {
			w := c.down("b", 100, 8)
			c.lineUp(c.players...)
			places := []uint64{c.place(c.players[0]), c.place(c.players[1]), c.place(c.players[2])}
			c.mem.DropRequest(toReserve("b"), 12)
			w.Restart()
			for i, p := range c.players {
				c.arrives(p, places[i], 2*time.Minute)
			}
		})
	})
}

// placeOf is the place of a transfer under way, or of the last one.
func (c *crowd) placeOf(p *sim.Client) uint64 {
	x := c.view().Player(p.ID)
	if x.Active != nil {
		return x.Active.Place
	}
	return x.Done[len(x.Done)-1].Place
}

// rejoin lets players log in again, which tells the network what their clients are now.
func (c *crowd) rejoin(players ...*sim.Client) {
	c.t.Helper()
	for _, p := range players {
		if err := p.Join(c.ctx, "e2", events.Token{}); err != nil {
			c.t.Fatal(err)
		}
		c.until("session of "+p.Name, 5*time.Second, func() bool {
			s, ok := c.view().Session(p.ID)
			return ok && s.Open && s.Protocol == p.Protocol
		})
	}
}

// TestCase025_AShortLossOfConnection: a short loss of connection cost the place. Here grace is
// measured between the close and the open as the store has them, whatever the clocks of the
// proxies say: within it the place stands, beyond it the player is told that it fell.
func TestCase025_AShortLossOfConnection(t *testing.T) {
	const grace = time.Minute
	for away, keeps := range map[time.Duration]bool{
		0: true, 20 * time.Second: true, grace - time.Millisecond: true, grace + time.Millisecond: false, grace + 20*time.Second: false, 10 * time.Minute: false,
	} {
		t.Run(away.String(), func(t *testing.T) {
			prepare := func(r *rig) {
				r.clocks.set(map[events.HostID]time.Duration{"e1": -4 * time.Hour, "e2": time.Hour, "e3": 90 * time.Second})
			}
			gather(t, 6, prepare, func(c *crowd) {
				w := c.down("b", 100, 8)
				c.lineUp(c.players...)
				p := c.players[4]
				place := c.place(p)
				p.Quit()
				c.pass(away)
				if err := p.Join(c.ctx, "e3", events.Token{}); err != nil {
					t.Fatal(err)
				}
				c.pass(5 * time.Second)
				if !keeps {
					if n := c.position(p); n != 0 {
						t.Fatalf("still in line at %d", n)
					}
					c.ended(p, c.outcome(p, time.Second), projections.Cancelled, events.GraceOver, messages["failed.GRACE_OVER"])
					return
				}
				if n := c.position(p); n != 5 || c.place(p) != place {
					t.Errorf("position %d, want 5", n)
				}
				w.Restart()
				for _, p := range c.players {
					c.arrives(p, c.placeOf(p), time.Minute)
				}
			})
		})
	}
}

// gaps is the longest time that a player went without hearing a position, from the first one on.
func gaps(p *sim.Client, until time.Time) time.Duration {
	var last time.Time
	most := time.Duration(0)
	for _, m := range p.History() {
		if m.Text == "" || !matches(m.Text, messages["transfer.position"]) || m.At.After(until) {
			continue
		}
		if !last.IsZero() {
			most = max(most, m.At.Sub(last))
		}
		last = m.At
	}
	if last.IsZero() {
		return time.Hour
	}
	return max(most, until.Sub(last))
}

// TestCase026_ToldOrQueued: a player was dropped from the line without a word and waited for
// hours. Here who waits hears the position every few seconds, through whichever proxy, and who is
// in line no more is told so, however late the player comes back.
func TestCase026_ToldOrQueued(t *testing.T) {
	const every = 5 * time.Second
	wait := func(t *testing.T, body func(c *crowd, p *sim.Client)) {
		gather(t, 4, func(r *rig) { r.line.Notify = every }, func(c *crowd) {
			c.down("b", 100, 8)
			c.lineUp(c.players...)
			body(c, c.players[0]) // held by e1
		})
	}
	t.Run("nothing happens for ten minutes", func(t *testing.T) {
		wait(t, func(c *crowd, p *sim.Client) {
			c.pass(10 * time.Minute)
			if g := gaps(p, time.Now()); g > every+time.Second {
				t.Errorf("no word for %s", g)
			}
		})
	})
	t.Run("the proxy dies, the player comes back through another", func(t *testing.T) {
		wait(t, func(c *crowd, p *sim.Client) {
			place := c.place(p)
			c.pass(time.Minute)
			c.killDispatcher("e1")
			c.pass(10 * time.Second)
			if err := p.Join(c.ctx, "e2", events.Token{}); err != nil {
				t.Fatal(err)
			}
			c.pass(time.Minute)
			if g := gaps(p, time.Now()); c.place(p) != place || g > 10*time.Second+every+time.Second {
				t.Errorf("place %d, no word for %s", c.place(p), g)
			}
		})
	})
	for name, away := range map[string]time.Duration{"soon after the place fell": 75 * time.Second, "long after": 8 * time.Minute} {
		t.Run("the proxy dies, the player comes back "+name, func(t *testing.T) {
			wait(t, func(c *crowd, p *sim.Client) {
				c.killDispatcher("e1")
				c.pass(away)
				c.rejoin(p)
				c.ended(p, c.outcome(p, time.Second), projections.Cancelled, events.GraceOver, messages["failed.GRACE_OVER"])
				c.pass(time.Minute)
				c.rejoin(p)
				c.pass(time.Minute)
				if n := heard(p, "failed.GRACE_OVER"); n != 1 {
					t.Errorf("told %d times", n)
				}
			})
		})
		t.Run("the player comes back "+name, func(t *testing.T) {
			wait(t, func(c *crowd, p *sim.Client) {
				p.Quit()
				c.pass(away)
				c.rejoin(p)
				c.ended(p, c.outcome(p, time.Second), projections.Cancelled, events.GraceOver, messages["failed.GRACE_OVER"])
				c.pass(time.Minute)
				c.rejoin(p)
				c.pass(time.Minute)
				if n := heard(p, "failed.GRACE_OVER"); n != 1 {
					t.Errorf("told %d times", n)
				}
			})
		})
	}
	t.Run("the place on the way fell while the player was away", func(t *testing.T) {
		play(t, func(s *scene) {
			s.sentAway()
			got := s.outcome(s.player, forever)
			s.pass(5 * time.Minute)
			s.comesWith(events.Token{}, "e2")
			s.ended(s.player, got, projections.Failed, events.NotArrived, messages["failed.NOT_ARRIVED"])
		})
	})
}

// heard counts how often a player read a message.
func heard(p *sim.Client, key string) int {
	n := 0
	for _, text := range p.Look().Texts {
		if matches(text, messages[key]) {
			n++
		}
	}
	return n
}

// TestCase028_AMemberIsNeverRefused: the first in line asked once more and read "queue is full".
// Here joining again changes nothing, whatever the cap: who is in line is never refused by it.
func TestCase028_AMemberIsNeverRefused(t *testing.T) {
	full := func(t *testing.T, body func(c *crowd, w *sim.World)) {
		gather(t, 4, func(r *rig) { r.line.MaxSize = 3 }, func(c *crowd) {
			w := c.down("b", 100, 8)
			c.lineUp(c.players[:3]...)
			late := c.players[3]
			late.Ask("")
			c.until("refused", 5*time.Second, func() bool { return heard(late, "refused.LINE_FULL") == 1 })
			body(c, w)
			for _, p := range c.players[:3] {
				if heard(p, "refused.LINE_FULL")+heard(p, "failed.LINE_FULL") > 0 {
					t.Errorf("%s was refused", p.Name)
				}
			}
			w.Restart()
			for _, p := range c.players[:3] {
				c.arrives(p, c.placeOf(p), time.Minute)
			}
		})
	}
	again := func(c *crowd, p *sim.Client) {
		c.t.Helper()
		at, n := c.position(p), heard(p, "transfer.active")
		p.Ask("")
		c.until(p.Name+" is told", 5*time.Second, func() bool { return heard(p, "transfer.active") == n+1 })
		if c.position(p) != at {
			c.t.Errorf("%s was at %d and is at %d", p.Name, at, c.position(p))
		}
	}
	t.Run("asks again", func(t *testing.T) {
		full(t, func(c *crowd, _ *sim.World) {
			for range 5 {
				for _, p := range c.players[:3] {
					again(c, p)
				}
			}
		})
	})
	t.Run("asks again through another proxy", func(t *testing.T) {
		full(t, func(c *crowd, _ *sim.World) {
			c.rejoin(c.players[0])
			again(c, c.players[0])
		})
	})
	t.Run("asks for something else", func(t *testing.T) {
		full(t, func(c *crowd, _ *sim.World) {
			p := c.players[0]
			p.Ask("default")
			c.until("replaced", 5*time.Second, func() bool { return heard(p, "transfer.replaced") == 1 })
			c.waiting(p)
		})
	})
	t.Run("the cap is lowered", func(t *testing.T) {
		full(t, func(c *crowd, _ *sim.World) {
			rules := c.line
			rules.MaxSize = 1
			for _, id := range crowdEdges {
				c.dispatchers[id].actor.SetLine(rules)
			}
			c.pass(10 * time.Second)
			for _, p := range c.players[:3] {
				again(c, p)
			}
		})
	})
	t.Run("a token came to nothing", func(t *testing.T) {
		full(t, func(c *crowd, w *sim.World) {
			c.a.Set(func(f *sim.Faults) {
				f.Send = func(actors.Player, string) (bool, error) { return false, actors.ErrNotHere }
			})
			w.Restart()
			c.until("a try", 10*time.Second, func() bool { return len(c.grants("b")) > 0 })
			w.Kill()
			c.a.Set(func(f *sim.Faults) { f.Send = nil })
			c.pass(5 * time.Second)
		})
	})
}

// TestCase031_AllProxiesDie: every proxy was killed, and after the restart the stale members of
// the line were tried one by one, each for a whole time-out. Here nobody is asked for who is not
// there: as soon as the new proxies have watched long enough to judge it the first place goes to
// somebody who is, those who come back in time have kept their places, and the others leave the
// line together. (Nobody is judged absent by a proxy that has just begun to look, so a line whose
// first members are all gone moves after a few seconds, not after one.)
func TestCase031_AllProxiesDie(t *testing.T) {
	const players, absent = 300, 100 // every third stays away, the head among them
	gather(t, players, func(r *rig) { r.pace, r.line.DrainPerSecond = 50, 50 }, func(c *crowd) {
		w := c.down("b", players, 100)
		for _, p := range c.players {
			c.ask(p)
		}
		c.pass(time.Second)
		places := map[events.PlayerID]uint64{}
		for _, p := range c.players {
			places[p.ID] = c.place(p)
		}
		for _, id := range crowdEdges {
			c.killDispatcher(id)
		}
		c.pass(time.Minute)
		w.Restart()
		for _, id := range crowdEdges {
			c.dispatcher(id)
		}
		c.pass(2 * time.Second)
		began := time.Now()
		for i, p := range c.players {
			if i%3 == 0 {
				continue
			}
			if err := p.Join(c.ctx, crowdEdges[i%len(crowdEdges)], events.Token{}); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range c.players {
			if i%3 == 0 {
				continue
			}
			c.arrives(p, places[p.ID], time.Minute)
		}
		list := c.grants("b")
		if first := list[0].at.Sub(began); first > 5*time.Second {
			t.Errorf("the first place was given after %s", first)
		}
		if took := list[len(list)-1].at.Sub(list[0].at); len(list) != players-absent || took > 6*time.Second {
			t.Errorf("%d places in %s, want %d at their pace", len(list), took, players-absent)
		}
		c.pass(2 * time.Minute)
		var ends []time.Time
		for _, e := range c.facts(events.Transfers) {
			if f, ok := e.Fact.(*events.Cancelled); ok && f.Code == events.GraceOver {
				ends = append(ends, e.Stored)
			}
		}
		if len(ends) != absent || ends[absent-1].Sub(ends[0]) > 3*time.Second {
			t.Errorf("%d left the line, within %s; want %d, together", len(ends), ends[len(ends)-1].Sub(ends[0]), absent)
		}
	})
}

// TestCase032_TheSameWaitEverywhere: only the master proxy could say how long the line takes. Here
// each proxy reads it off the log, the same one, and "unknown" where nothing was measured yet.
func TestCase032_TheSameWaitEverywhere(t *testing.T) {
	gather(t, 30, func(r *rig) { r.pace, r.line.DrainPerSecond = 1, 1 }, func(c *crowd) {
		w := c.down("b", 100, 20)
		for _, p := range c.players {
			c.ask(p)
		}
		c.pass(10 * time.Second)
		etas := func() (out []time.Duration) {
			for _, id := range crowdEdges {
				if h := c.dispatchers[id]; h.actor.Ready() {
					eta, known := h.actor.View().ETA(events.Wish{}, 5, time.Now())
					if !known {
						eta = -1
					}
					out = append(out, eta)
				}
			}
			return out
		}
		if got := etas(); !slices.Equal(got, []time.Duration{-1, -1, -1}) {
			t.Errorf("before anybody was served: %v, want unknown", got)
		}
		for _, p := range c.players {
			for _, text := range p.Look().Texts {
				if matches(text, messages["transfer.position"]) && !strings.HasSuffix(text, "(wait: unknown).") {
					t.Errorf("%s read %q", p.Name, text)
				}
			}
		}
		w.Restart()
		c.pass(10 * time.Second)
		got := etas()
		if len(got) != 3 || got[0] != got[1] || got[1] != got[2] || got[0] < 4*time.Second || got[0] > 7*time.Second {
			t.Errorf("at one a second, position 5: %v", got)
		}
		c.killDispatcher("e1")
		c.pass(time.Millisecond)
		if after := etas(); len(after) != 2 || after[0] != after[1] || after[0].Round(time.Second) != got[0].Round(time.Second) {
			t.Errorf("when a proxy has died: %v, before: %v", after, got)
		}
	})
}

// TestCase034_AllAtOnce: a server came back, everybody was released at once, and a part of them
// was kicked. Here a destination gives so many places in a second, each to the lowest that asks,
// after what it had saved up while nobody asked; who cannot be moved keeps the place.
func TestCase034_AllAtOnce(t *testing.T) {
	const pace = 10
	gather(t, 200, func(r *rig) { r.pace, r.line.DrainPerSecond = pace, pace }, func(c *crowd) {
		w := c.down("b", 200, 200)
		for _, p := range c.players {
			c.ask(p)
		}
		c.pass(2 * time.Second)
		failed := map[events.PlayerID]int{}
		c.a.Set(func(f *sim.Faults) {
			f.Send = func(p actors.Player, _ string) (bool, error) {
				if len(failed) < 20 && failed[p.ID] == 0 {
					failed[p.ID]++
					return false, fmt.Errorf("%w: a hiccup", actors.ErrNotSent)
				}
				return true, nil
			}
		})
		w.Restart()
		places := map[events.PlayerID]uint64{}
		for _, p := range c.players {
			places[p.ID] = c.place(p)
		}
		for _, p := range c.players {
			c.arrives(p, places[p.ID], 2*time.Minute)
			if lost := p.Look().Lost; len(lost) > 0 {
				t.Errorf("%s was kicked: %q", p.Name, lost)
			}
		}
		var at []time.Time
		for _, p := range c.players {
			for _, m := range p.History() {
				if m.Server == "b" && m.Text == "" {
					at = append(at, m.At)
				}
			}
		}
		slices.SortFunc(at, time.Time.Compare)
		for i := range at {
			n := 0
			for _, x := range at[i:] {
				if x.Sub(at[i]) < time.Second {
					n++
				}
			}
			most := pace + 1
			if at[i].Sub(at[0]) < time.Second {
				most += pace // saved up while nobody asked
			}
			if n > most {
				t.Errorf("%d connects in a second, %s after the first; want at most %d", n, at[i].Sub(at[0]), most)
				break
			}
		}
	})
}

// TestCase035_WaitingWithoutThePlane: players who waited for more than half a minute were cut off
// when nobody answered. Here waiting asks nothing of the network: the player stays, is told once
// that something is wrong, and goes on in the same place.
func TestCase035_WaitingWithoutThePlane(t *testing.T) {
	gather(t, 3, nil, func(c *crowd) {
		w := c.down("b", 100, 8)
		c.lineUp(c.players[:2]...)
		idle := c.players[2]
		places := []uint64{c.place(c.players[0]), c.place(c.players[1])}
		c.mem.Outage()
		began := time.Now()
		c.pass(20 * time.Second)
		for _, p := range c.players[:2] {
			if n := heard(p, "transfer.interrupted"); n != 1 {
				t.Errorf("%s was told %d times", p.Name, n)
			}
		}
		c.pass(100 * time.Second)
		for _, p := range c.players {
			if v := p.Look(); v.Server != "a" || len(v.Lost) > 0 {
				t.Errorf("%s is on %q, lost %q", p.Name, v.Server, v.Lost)
			}
		}
		if n := heard(c.players[0], "transfer.interrupted"); n != 1 || heard(idle, "transfer.interrupted") != 0 {
			t.Errorf("told %d times; somebody who does not wait %d times", n, heard(idle, "transfer.interrupted"))
		}
		c.mem.Restore()
		c.pass(10 * time.Second)
		for i, p := range c.players[:2] {
			h := p.History()
			at := slices.IndexFunc(h, func(m sim.Moment) bool {
				return m.At.Sub(began) > 2*time.Minute && matches(m.Text, messages["transfer.position"])
			})
			if at < 0 || c.place(p) != places[i] {
				t.Errorf("%s hears nothing any more, or has lost the place", p.Name)
			}
		}
		w.Restart()
		for i, p := range c.players[:2] {
			c.arrives(p, places[i], time.Minute)
		}
	})
	t.Run("a process that slept does not cry wolf", func(t *testing.T) {
		gather(t, 1, nil, func(c *crowd) {
			c.down("b", 100, 8)
			c.lineUp(c.players...)
			c.backends["a"].client.Stop()
			c.pass(4 * time.Second)
			c.backends["a"].client.Resume()
			c.pass(time.Minute)
			if n := heard(c.players[0], "transfer.interrupted"); n != 0 {
				t.Errorf("told %d times", n)
			}
		})
	})
}

// TestCase037_FullAfterAll: the first in line was let go, the target had become full, and back in
// the hub the player heard nothing more. Here who meets a full target is where the player was,
// hears the position again, and is served when there is room.
func TestCase037_FullAfterAll(t *testing.T) {
	gather(t, 3, nil, func(c *crowd) {
		w := c.down("b", 3, 8)
		c.lineUp(c.players...)
		places := []uint64{c.place(c.players[0]), c.place(c.players[1]), c.place(c.players[2])}
		asked := c.record("b")
		w.Restart()
		var strangers []*sim.Client
		for i := range 3 { // they come past us, before anybody has been let go
			p := c.net.AddClient(fmt.Sprint("Stranger", i), 767)
			if err := p.JoinDirect("b"); err != nil {
				t.Fatal(err)
			}
			strangers = append(strangers, p)
		}
		c.pass(30 * time.Second)
		for i, p := range c.players {
			if c.position(p) != i+1 || c.place(p) != places[i] || gaps(p, time.Now()) > 7*time.Second {
				t.Errorf("%s is at %d, last word %s ago", p.Name, c.position(p), gaps(p, time.Now()))
			}
		}
		asked.mu.Lock()
		n := len(asked.asks)
		asked.mu.Unlock()
		if n > 10 {
			t.Errorf("a full server was asked %d times", n)
		}
		for i, p := range c.players {
			strangers[i].Quit()
			c.arrives(p, places[i], 10*time.Second)
		}
	})
	t.Run("at the door", func(t *testing.T) {
		// Nobody is moved twice: who was sent, and meets a full server, gets a place elsewhere in
		// the same login, or comes back to where room is and is told.
		play(t, func(s *scene) {
			token := s.sentAway()
			s.b.Set(func(f *sim.Faults) { f.Closed = true })
			s.comesWith(token, "e2")
			s.completed(s.player, s.outcome(s.player, forever), "c")
		})
	})
}

// TestCase038_GraceAndBypass: who came back in time lost to staff who went past the line, for as
// long as they came. Here it does not matter whether the first in line was away: at most so many
// go past, and the log shows who.
func TestCase038_GraceAndBypass(t *testing.T) {
	const bound = 3
	prepare := func(r *rig) { r.pace, r.line.DrainPerSecond, r.line.MaxBypass = 0.01, 0.01, bound }
	gather(t, 12, prepare, func(c *crowd) {
		w := c.server("b", 6, 6)
		c.pass(2 * time.Second)
		first := c.players[0]
		c.ask(first)
		c.completed(first, c.outcome(first, time.Minute), "b")
		p := c.players[1] // the next slot is a hundred seconds away
		c.ask(p)
		place := c.place(p)
		past := func(x *sim.Client) projections.Transfer {
			if a := c.open(x, events.RequestAsk{Bypass: true}); a.Code != events.Accepted {
				t.Fatalf("%s: %+v", x.Name, a)
			}
			return c.outcome(x, 5*time.Second)
		}
		p.Quit()
		for _, x := range c.players[2:5] {
			c.completed(x, past(x), "b")
		}
		for _, x := range c.players[5:8] { // while the head is away, and when it has come back
			if got := past(x); got.Code != events.BypassBound {
				t.Errorf("%s: %s (%s), want BYPASS_BOUND", x.Name, got.Phase, got.Code)
			}
			if x == c.players[6] {
				c.rejoin(p)
			}
		}
		if n := c.position(p); n != 1 || c.place(p) != place {
			t.Errorf("position %d", n)
		}
		c.arrives(p, place, 3*time.Minute)
		if got := past(c.players[8]); got.Phase != projections.Completed {
			t.Errorf("nobody waits any more: %s (%s)", got.Phase, got.Code)
		}
		if w.Players() != 6 {
			t.Errorf("%d players", w.Players())
		}
		var ahead []string
		for _, g := range c.grants("b") {
			if g.place > place {
				ahead = append(ahead, fmt.Sprint(g.place))
			}
		}
		if len(ahead) != bound+1 { // the last one came when nobody waited
			t.Errorf("the log shows %v ahead of %d", ahead, place)
		}
	})
}
