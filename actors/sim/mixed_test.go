package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// mixed is a network of two fronts and two backends, each of which has a dispatcher beside it
// for players who connect straight to it.
type mixed struct{ *rig }

func mix(t *testing.T, body func(m *mixed)) {
	t.Helper()
	simulate(t, events.KindEdge, func(r *rig) {
		m := &mixed{r}
		r.dispatcher("e1")
		r.dispatcher("e2")
		for _, id := range []events.HostID{"a", "b"} {
			r.direct("d-"+id, id)
			r.backend(id, 8)
		}
		r.settle()
		body(m)
	})
}

// straight lets a player join a server without a front.
func (m *mixed) straight(name string, server events.HostID) *sim.Client {
	m.t.Helper()
	c := m.net.AddClient(name, 767)
	if err := c.JoinDirect(server); err != nil {
		m.t.Fatal(err)
	}
	return c
}

// heldBy waits until a player is held by a dispatcher.
func (m *mixed) heldBy(c *sim.Client, holder events.HostID, within time.Duration) projections.Session {
	m.t.Helper()
	var got projections.Session
	m.until(fmt.Sprintf("%s is held by %s", c.Name, holder), within, func() bool {
		s, ok := m.dispatchers["d-b"].actor.View().Session(c.ID) // it is disturbed by no test
		got = s
		return ok && s.Open && s.Holder == holder
	})
	return got
}

// oneSessionEach demands that no join has been held twice, and gives how many there were.
func (m *mixed) oneSessionEach() int {
	m.t.Helper()
	joins := map[string][]string{}
	for _, e := range m.facts(events.Sessions) {
		if f, ok := e.Fact.(*events.SessionOpened); ok && f.Session.Holder != "before" {
			key := e.Key + " " + f.Session.Join.String()
			joins[key] = append(joins[key], string(f.Session.Holder))
		}
	}
	for join, holders := range joins {
		if len(holders) != 1 {
			m.t.Errorf("join %s was held by %s\n%s", join, strings.Join(holders, ", "), m.story())
		}
	}
	return len(joins)
}

// TestMixedNetworkMovesBothKinds: who came through a front is moved through the fronts, who did
// not by the address of the server.
func TestMixedNetworkMovesBothKinds(t *testing.T) {
	mix(t, func(m *mixed) {
		alex := m.straight("Alex", "a")
		m.heldBy(alex, "d-a", time.Second)
		steve := m.player("Steve", "e1", "a")
		if s := m.heldBy(steve, "e1", time.Second); s.Kind != events.KindEdge {
			t.Errorf("Steve's session is %s", s.Kind)
		}
		for _, c := range []*sim.Client{alex, steve} {
			c.Ask("")
			m.completed(c, m.outcome(c, 10*time.Second), "b")
		}
		if s := m.heldBy(alex, "d-b", time.Second); s.Kind != events.KindDirect {
			t.Errorf("Alex's session on b is %s", s.Kind)
		}
		s, _ := m.observer().View().Session(steve.ID)
		if s.Kind != events.KindEdge || s.Holder != "e1" && s.Holder != "e2" {
			t.Errorf("Steve is held by %s (%s)", s.Holder, s.Kind)
		}
		m.pass(25 * time.Second) // both are announced again
		if n := m.oneSessionEach(); n != 4 {
			t.Errorf("%d sessions, want 4\n%s", n, m.story())
		}
	})
}

// TestTheOutermostHolds: whatever is lost or late (but not for so long that the front is judged dead), a player who came through a front is held by
// it and never by the dispatcher beside the server, and the other way round.
func TestTheOutermostHolds(t *testing.T) {
	holds := func(subject string) bool { return strings.HasSuffix(subject, "."+string(events.VerbHolds)) }
	joined := func(subject string) bool { return subject == events.NewsOf("a", events.VerbJoined) }
	for name, disturb := range map[string]func(m *mixed) (undo func()){
		"nothing": func(*mixed) func() { return func() {} },
		"the front writes late": func(m *mixed) func() {
			h := m.dispatchers["e1"].client.hold("session.opened")
			return func() { m.pass(3 * time.Second); h.release() }
		},
		"the one beside the server asks late": func(m *mixed) func() {
			h := m.dispatchers["d-a"].client.hold("." + string(events.VerbHolds))
			return func() { m.pass(3 * time.Second); h.release() }
		},
		"the question is lost":   func(m *mixed) func() { m.mem.DropRequest(holds, 2); return func() {} },
		"the answer is lost":     func(m *mixed) func() { m.mem.LoseAnswer(holds, 2); return func() {} },
		"the news is lost":       func(m *mixed) func() { m.mem.DropRequest(joined, 1); return func() { m.pass(10 * time.Second) } },
		"the store is away":      func(m *mixed) func() { m.mem.Outage(); return func() { m.pass(5 * time.Second); m.mem.Restore() } },
		"the front hears late":   func(m *mixed) func() { return m.deaf("e1", 800*time.Millisecond) },
		"the front is cut off":   func(m *mixed) func() { return m.cut("e1", 800*time.Millisecond) },
		"the backend is cut off": func(m *mixed) func() { return m.cut("a", 12*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			mix(t, func(m *mixed) {
				steve := m.net.AddClient("Steve", 767)
				m.pinned(steve, "a")
				undo := disturb(m)
				if err := steve.Join(m.ctx, "e1", events.Token{}); err != nil {
					t.Fatal(err)
				}
				alex := m.straight("Alex", "a")
				undo()
				m.heldBy(steve, "e1", 15*time.Second)
				m.heldBy(alex, "d-a", 15*time.Second)
				m.pass(30 * time.Second)
				m.heldBy(steve, "e1", time.Second)
				m.heldBy(alex, "d-a", time.Second)
				if n := m.oneSessionEach(); n != 2 {
					t.Errorf("%d sessions, want 2\n%s", n, m.story())
				}
			})
		})
	}
}

// deaf stops a host for a while: nothing reaches it and it does nothing.
func (m *mixed) deaf(id events.HostID, length time.Duration) (undo func()) {
	c := m.dispatchers[id].client
	return func() { c.Stop(); m.pass(length); c.Resume() }
}

// cut takes a host's connection to the log away for a while.
func (m *mixed) cut(id events.HostID, length time.Duration) (undo func()) {
	var client *gate
	if h, ok := m.dispatchers[id]; ok {
		client = h.client
	} else {
		client = m.backends[id].client
	}
	return func() { client.Cut(); m.pass(length); client.Heal() }
}

// TestAFrontThatIsGone is not waited for longer than it takes to judge it.
func TestAFrontThatIsGone(t *testing.T) {
	mix(t, func(m *mixed) {
		steve := m.player("Steve", "e1", "a")
		m.killDispatcher("e1")
		m.until("Steve has lost the connection", time.Second, func() bool { return steve.Look().Server == "" })
		if err := steve.JoinDirect("a"); err != nil {
			t.Fatal(err)
		}
		m.heldBy(steve, "d-a", 5*time.Second)
		steve.Ask("")
		m.completed(steve, m.outcome(steve, 10*time.Second), "b")
		m.oneSessionEach()
	})
}

// TestAFrontThatSlept: while it is stopped the player goes on beside the server, and stays
// there when it wakes: nobody is passed to and fro.
func TestAFrontThatSlept(t *testing.T) {
	mix(t, func(m *mixed) {
		steve := m.net.AddClient("Steve", 767)
		m.pinned(steve, "a")
		h := m.dispatchers["e1"].client.hold("session.opened")
		if err := steve.Join(m.ctx, "e1", events.Token{}); err != nil {
			t.Fatal(err)
		}
		m.until("the front is about to write", 5*time.Second, h.isReached)
		m.dispatchers["e1"].client.Stop()
		m.heldBy(steve, "d-a", 15*time.Second)
		m.dispatchers["e1"].client.Resume()
		h.release()
		m.pass(30 * time.Second)
		m.heldBy(steve, "d-a", time.Second)
		m.oneSessionEach()
		steve.Ask("")
		m.completed(steve, m.outcome(steve, 10*time.Second), "b")
	})
}

// TestTheOneBesideAServerBeginsAnew: players whom a front holds stay there, the others go on.
func TestTheOneBesideAServerBeginsAnew(t *testing.T) {
	mix(t, func(m *mixed) {
		steve, alex := m.player("Steve", "e1", "a"), m.straight("Alex", "a")
		m.heldBy(alex, "d-a", time.Second)
		old := m.dispatchers["d-a"]
		old.client.Cut()
		old.cancel()
		again := m.startDispatcherOn("d-a2", "d-a", events.SourceDirect, actors.DispatcherConfig{Kind: events.KindDirect, Local: "a"})
		m.until("Alex is held by the new life", 15*time.Second, func() bool {
			s, _ := m.observer().View().Session(alex.ID)
			return s.Open && s.HolderIncarnation == again.Source.Incarnation
		})
		m.heldBy(steve, "e1", time.Second)
		alex.Ask("")
		m.completed(alex, m.outcome(alex, 10*time.Second), "b")
	})
}

// TestOneProcessWithFrontAndServer: one dispatcher holds both kinds.
func TestOneProcessWithFrontAndServer(t *testing.T) {
	simulate(t, events.KindEdge, func(r *rig) {
		m := &mixed{r}
		r.startDispatcher("e1", events.SourceEdge, actors.DispatcherConfig{Kind: events.KindEdge, Local: "a", Domain: "play.example.net", Port: 25565})
		r.backend("a", 8)
		r.direct("d-b", "b")
		r.backend("b", 8)
		r.settle()
		steve, alex := r.player("Steve", "e1", "a"), m.straight("Alex", "a")
		if s := m.heldBy(alex, "e1", time.Second); s.Kind != events.KindDirect {
			t.Errorf("Alex's session is %s", s.Kind)
		}
		if s := m.heldBy(steve, "e1", time.Second); s.Kind != events.KindEdge {
			t.Errorf("Steve's session is %s", s.Kind)
		}
		for _, c := range []*sim.Client{alex, steve} {
			c.Ask("")
			m.completed(c, m.outcome(c, 10*time.Second), "b")
		}
		m.heldBy(alex, "d-b", time.Second)
		m.heldBy(steve, "e1", time.Second)
		m.oneSessionEach()
		kinds := r.observer().View().Fleet().Proxy("e1").Kinds
		if fmt.Sprint(kinds) != "[direct edge]" {
			t.Errorf("its heartbeat says %v", kinds)
		}
	})
}
