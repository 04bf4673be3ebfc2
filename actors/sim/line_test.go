package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// crowd is three edges, a lobby "a" with players, and destinations that are down until the
// test brings them back.
type crowd struct {
	*rig
	a       *sim.World
	players []*sim.Client
}

var crowdEdges = []events.HostID{"e1", "e2", "e3"}

func gather(t *testing.T, players int, prepare func(r *rig), body func(c *crowd), options ...streamtest.Option) {
	t.Helper()
	simulate(t, events.KindEdge, func(r *rig) {
		r.quiet = true
		r.line = actors.ShippedLineRules()
		if prepare != nil {
			prepare(r)
		}
		c := &crowd{rig: r}
		for _, id := range crowdEdges {
			r.dispatcher(id)
		}
		c.a = c.server("a", 1000, 0)
		r.settle()
		for i := range players {
			name := fmt.Sprintf("Player%03d", i+1)
			c.players = append(c.players, r.player(name, crowdEdges[i%len(crowdEdges)], "a"))
		}
		body(c)
	}, options...)
}

// server starts a game server with so many seats, and its backend.
func (c *crowd) server(id events.HostID, seats, keep int) *sim.World {
	w := sim.NewWorld(id, seats, 0)
	c.net.AddWorld(w)
	c.attach(id, w, keep)
	return w
}

// down starts a server that is down.
func (c *crowd) down(id events.HostID, seats, keep int) *sim.World {
	w := c.server(id, seats, keep)
	w.Kill()
	c.pass(2 * time.Second)
	return w
}

// ask lets a player ask, and waits until the log has a place for the player.
func (c *crowd) ask(p *sim.Client) {
	c.t.Helper()
	p.Ask("")
	c.until("request of "+p.Name, 5*time.Second, func() bool { return c.view().Player(p.ID).Active != nil })
}

func (c *crowd) view() *projections.View { return c.observer().View() }

// open asks for a player as an API would.
func (c *crowd) open(p *sim.Client, q events.RequestAsk) events.RequestAnswer {
	q.Player, q.Name, q.Trigger, q.Transfer = p.ID, p.Name, events.TriggerAPI, streamtest.NewID[events.TransferID]()
	return c.observer().Open(c.ctx, q, "")
}

func (c *crowd) position(p *sim.Client) int {
	t := c.view().Player(p.ID).Active
	if t == nil {
		return 0
	}
	return c.view().Position(t.Place)
}

func (c *crowd) waiting(p *sim.Client) {
	c.t.Helper()
	c.until(p.Name+" in line", 5*time.Second, func() bool {
		t := c.view().Player(p.ID).Active
		return t != nil && t.Phase == projections.Waiting
	})
}

// grant is one place that was given.
type grant struct {
	player events.PlayerID
	place  uint64
	seq    uint64
	at     time.Time
}

// grants lists the places that a server gave, in the order of its promises.
func (c *crowd) grants(server events.HostID) []grant {
	places := map[events.TransferID]uint64{}
	byPromise := map[uint64]grant{}
	var order []uint64
	for _, e := range c.facts(events.Transfers) {
		switch f := e.Fact.(type) {
		case *events.Requested:
			places[e.Correlation] = e.Seq
		case *events.Reserved:
			if f.Server == server {
				player, _, _ := events.ParseTransferKey(e.Key)
				byPromise[f.Promise] = grant{player: player, place: places[e.Correlation], seq: e.Seq, at: e.Stored}
				order = append(order, f.Promise)
			}
		default: // nothing of places
		}
	}
	slices.Sort(order)
	out := make([]grant, 0, len(order))
	for _, n := range order {
		out = append(out, byPromise[n])
	}
	return out
}

// overtaken is how many grants went before one of a lower place, at most, for one player.
func overtaken(list []grant) int {
	most := 0
	for i := range list {
		n := 0
		for _, earlier := range list[:i] {
			if earlier.place > list[i].place {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// asking is one request for a place, as its dispatcher saw it.
type asking struct {
	place       uint64
	transfer    events.TransferID
	from, until time.Time
	granted     bool
}

// recorder writes down who asked a server for a place, and when it answered.
type recorder struct {
	c      *crowd
	server events.HostID

	mu   sync.Mutex
	asks []asking
}

func (c *crowd) record(server events.HostID) *recorder {
	return c.recordOf(server, crowdEdges...)
}

// recordOf writes down what some proxies ask.
func (c *crowd) recordOf(server events.HostID, proxies ...events.HostID) *recorder {
	r := &recorder{c: c, server: server}
	hear := r.hear
	for _, id := range proxies {
		c.dispatchers[id].client.answered.Store(&hear)
	}
	return r
}

func (r *recorder) hear(asked time.Time, subject string, q, a events.Wire) {
	if subject != events.ToBackend(r.server, events.VerbReserve) {
		return
	}
	var ask events.ReserveAsk
	var answer events.ReserveAnswer
	if events.Unmarshal(q.Body, &ask) != nil || events.Unmarshal(a.Body, &answer) != nil {
		r.c.t.Error("a request for a place that cannot be read")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks = append(r.asks, asking{place: ask.Place, transfer: ask.Transfer, from: asked, until: time.Now(), granted: answer.Code == events.Promised})
}

func (r *recorder) of(place uint64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out strings.Builder
	for _, x := range r.asks {
		if x.place == place {
			out.WriteString(fmt.Sprintf(" %s-%s %v", x.from.Format("05.000"), x.until.Format("05.000"), x.granted))
		}
	}
	return out.String()
}

// inOrder demands the order that the line claims: at the moment of a grant nobody with a
// lower place has been asking for one.
func (r *recorder) inOrder() {
	r.c.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.asks {
		for _, x := range r.asks {
			if g.granted && x.place < g.place && x.from.Before(g.until) && g.until.Before(x.until) {
				r.c.t.Errorf("place %d was given at %s, and place %d had been asking since %s, until %s",
					g.place, g.until.Format("05.000"), x.place, x.from.Format("05.000"), x.until.Format("05.000"))
			}
		}
	}
}

// The scenario of docs/line.md: 500 players, room for 100, and a server that comes back. The
// line empties in order, at the pace that is set; nobody is lost, and everybody is told.
func TestFiveHundredPlayersAndAServerThatReturns(t *testing.T) {
	const pace = 20
	prepare := func(r *rig) { r.pace, r.line.DrainPerSecond = pace, pace }
	gather(t, 500, prepare, func(c *crowd) {
		c.server("b", 100, 50)
		returning := c.down("c", 500, 100)
		for _, p := range c.players {
			p.Ask("")
			synctest.Wait()
		}
		c.pass(30 * time.Second)
		if list := c.grants("b"); len(list) != 100 || overtaken(list) > 2*pace {
			t.Errorf("b gave %d places, overtaken %d times", len(list), overtaken(list))
		}
		for _, p := range c.players {
			if v := c.view().Player(p.ID); v.Active != nil && !hasPosition(p) {
				t.Errorf("%s waits and has heard no position: %q", p.Name, p.Look().Texts)
			}
		}
		asked := c.record("c")
		returning.Restart()
		back := time.Now()
		for _, p := range c.players {
			if got := c.outcome(p, time.Minute); got.Phase != projections.Completed {
				t.Errorf("%s: %s (%s)", p.Name, got.Phase, got.Code)
			}
		}
		list := c.grants("c")
		if len(list) != 400 {
			t.Fatalf("c gave %d places", len(list))
		}
		asked.inOrder()
		t.Logf("overtaken by requests that had come earlier: %d", overtaken(list))
		if n := overtaken(list); n > 2*pace { // those who were there first for the slots that had been saved up
			t.Errorf("somebody was overtaken %d times", n)
		}
		took := list[399].at.Sub(back)
		if least := (400 - pace) * time.Second / pace; took < least || took > least+3*time.Second {
			t.Errorf("the line emptied in %s, want %s and a little", took, least)
		}
		for i := pace; i+pace < len(list); i++ {
			if d := list[i+pace].at.Sub(list[i].at); d < time.Second-50*time.Millisecond {
				for k := i; k <= i+pace; k++ {
					t.Logf("grant %d place %d at %s seq %d: %s", k, list[k].place, list[k].at.Format("05.000"), list[k].seq, asked.of(list[k].place))
				}
				t.Fatalf("%d places within %s", pace, d)
			}
		}
		eta := 0
		for _, p := range c.players {
			if slices.ContainsFunc(p.Look().Texts, func(s string) bool { return strings.Contains(s, "in line (wait: ") && !strings.Contains(s, "unknown") }) {
				eta++
			}
		}
		if eta < 100 {
			t.Errorf("%d players were told how long", eta)
		}
	})
}

func hasPosition(p *sim.Client) bool {
	return slices.ContainsFunc(p.Look().Texts, func(s string) bool { return matches(s, messages["transfer.position"]) })
}

// Three proxies, one destination that gives slowly: in the order of places, whoever holds
// the player. Only who has not arrived when a slot is granted may be overtaken.
func TestOrderUnderContention(t *testing.T) {
	prepare := func(r *rig) { r.pace, r.line.DrainPerSecond = 2, 2 }
	gather(t, 30, prepare, func(c *crowd) {
		w := c.down("b", 100, 5)
		asked := c.record("b")
		for i := range c.players { // not in the order in which they joined
			c.ask(c.players[(i*7)%len(c.players)])
		}
		for _, p := range c.players {
			c.waiting(p)
		}
		w.Restart()
		for _, p := range c.players {
			c.completed(p, c.outcome(p, time.Minute), "b")
		}
		asked.inOrder()
		if n := overtaken(c.grants("b")); n > 4 {
			t.Errorf("somebody was overtaken %d times", n)
		}
	})
}

// A line without coordinates moves as they are found, one by one.
func TestOrderWithoutPace(t *testing.T) {
	gather(t, 12, nil, func(c *crowd) {
		w := c.down("b", 100, 1)
		for i := range c.players {
			c.ask(c.players[(i*5)%len(c.players)])
		}
		w.Restart()
		for _, p := range c.players {
			c.completed(p, c.outcome(p, time.Minute), "b")
		}
		if n := overtaken(c.grants("b")); n > 0 {
			t.Errorf("somebody was overtaken %d times\n%s", n, c.story())
		}
	})
}

// A new request does not overtake those who wait.
func TestNewRequestGoesToTheEnd(t *testing.T) {
	prepare := func(r *rig) { r.pace, r.line.DrainPerSecond = 0.5, 0.5 }
	gather(t, 4, prepare, func(c *crowd) {
		c.server("b", 100, 8)
		c.pass(2 * time.Second)
		for _, p := range c.players {
			c.ask(p)
			c.pass(300 * time.Millisecond)
		}
		for _, p := range c.players {
			c.completed(p, c.outcome(p, time.Minute), "b")
		}
		if list := c.grants("b"); overtaken(list) > 0 || list[3].at.Sub(list[0].at) < 5*time.Second {
			t.Errorf("%+v", list)
		}
	})
}

// Nobody waits for more than so many who do not wait.
func TestBypassBound(t *testing.T) {
	prepare := func(r *rig) { r.pace, r.line.DrainPerSecond, r.line.MaxBypass = 0.01, 0.01, 2 }
	gather(t, 6, prepare, func(c *crowd) {
		c.server("b", 100, 8)
		c.pass(2 * time.Second)
		c.ask(c.players[0])
		c.completed(c.players[0], c.outcome(c.players[0], forever), "b")
		c.ask(c.players[1]) // the next slot is a hundred seconds away
		for i, want := range []projections.Phase{projections.Completed, projections.Completed, projections.Failed} {
			p := c.players[2+i]
			if a := c.open(p, events.RequestAsk{Bypass: true}); a.Code != events.Accepted {
				t.Fatalf("bypass %d: %s %s", i, a.Code, a.Detail)
			}
			got := c.outcome(p, 5*time.Second)
			if got.Phase != want {
				t.Fatalf("bypass %d ended %s (%s)\n%s", i, got.Phase, got.Code, c.story())
			}
			if want == projections.Failed {
				c.ended(p, got, want, events.BypassBound, messages.Text("failed.BYPASS_BOUND", nil))
			}
		}
		c.completed(c.players[1], c.outcome(c.players[1], 3*time.Minute), "b")
		c.open(c.players[5], events.RequestAsk{Bypass: true})
		c.completed(c.players[5], c.outcome(c.players[5], forever), "b") // nobody waits any more
	})
}

// Who does not wait gets a place that is looked for freshly, or an answer at once.
func TestBypassLooksForAFreshPlace(t *testing.T) {
	gather(t, 2, nil, func(c *crowd) {
		w := c.server("b", 100, 1)
		c.pass(2 * time.Second)
		w.Set(func(f *sim.Faults) { f.Barren = true })
		c.ask(c.players[0])
		c.completed(c.players[0], c.outcome(c.players[0], forever), "b")
		c.pass(2 * time.Second)
		c.open(c.players[1], events.RequestAsk{Bypass: true})
		if got := c.outcome(c.players[1], 2*time.Second); got.Phase != projections.Failed || got.Code != events.NoCandidate {
			t.Fatalf("%s (%s)\n%s", got.Phase, got.Code, c.story())
		}
	})
}

// An absent player keeps the place, counts in everybody's position, and may come back
// through any proxy; the others are not kept back.
func TestAbsentHeadKeepsThePlace(t *testing.T) {
	gather(t, 3, nil, func(c *crowd) {
		w := c.down("b", 100, 8)
		for _, p := range c.players {
			c.ask(p)
			c.waiting(p)
		}
		head := c.players[0]
		head.Quit()
		c.pass(20 * time.Second)
		if got := []int{c.position(head), c.position(c.players[1]), c.position(c.players[2])}; !slices.Equal(got, []int{1, 2, 3}) {
			t.Errorf("positions %v", got)
		}
		w.Restart()
		c.completed(c.players[1], c.outcome(c.players[1], forever), "b")
		if c.position(head) != 1 {
			t.Errorf("position %d while away", c.position(head))
		}
		if err := head.Join(c.ctx, "e3", events.Token{}); err != nil {
			t.Fatal(err)
		}
		c.completed(head, c.outcome(head, forever), "b")
	})
}

// The place falls when the player is away for longer than grace.
func TestAbsentTooLong(t *testing.T) {
	gather(t, 2, nil, func(c *crowd) {
		c.down("b", 100, 8)
		for _, p := range c.players {
			c.ask(p)
			c.waiting(p)
		}
		head := c.players[0]
		head.Quit()
		c.pass(70 * time.Second)
		if got := c.outcome(head, time.Second); got.Phase != projections.Cancelled || got.Code != events.GraceOver || c.position(c.players[1]) != 1 {
			t.Errorf("%s (%s), the next is at %d", got.Phase, got.Code, c.position(c.players[1]))
		}
	})
}

// The dispatcher of the first in line does not act, although it lives: the others are not
// kept back for long.
func TestSilentHeadIsPassedOver(t *testing.T) {
	gather(t, 2, nil, func(c *crowd) {
		w := c.down("b", 100, 1)
		for _, p := range c.players {
			c.ask(p)
			c.waiting(p)
		}
		stuck := c.dispatchers["e1"].client.hold("b.reserve")
		w.Restart()
		c.completed(c.players[1], c.outcome(c.players[1], 15*time.Second), "b")
		stuck.release()
		c.completed(c.players[0], c.outcome(c.players[0], forever), "b")
	})
}

// A lane that nobody serves keeps nobody else back.
func TestLanesAreIsolated(t *testing.T) {
	gather(t, 2, nil, func(c *crowd) {
		c.down("c", 100, 8)
		c.server("b", 100, 8)
		c.pass(2 * time.Second)
		if a := c.open(c.players[0], events.RequestAsk{Wish: events.Wish{Pin: "c"}, Wait: true}); a.Code != events.Accepted {
			t.Fatal(a)
		}
		c.waiting(c.players[0])
		c.ask(c.players[1])
		c.completed(c.players[1], c.outcome(c.players[1], 5*time.Second), "b")
		if c.position(c.players[0]) != 1 {
			t.Errorf("position %d", c.position(c.players[0]))
		}
	})
}

// Over the cap a new request is refused; who is in line already never is.
func TestLineIsFull(t *testing.T) {
	prepare := func(r *rig) { r.line.MaxSize = 2 }
	gather(t, 4, prepare, func(c *crowd) {
		w := c.down("b", 100, 8)
		for _, p := range c.players[:2] {
			c.ask(p)
			c.waiting(p)
		}
		late := c.players[2]
		late.Ask("")
		c.until("refused", 5*time.Second, func() bool { return has(late.Look().Texts, messages.Text("refused.LINE_FULL", nil)) })
		c.players[1].Ask("")
		c.until("active", 5*time.Second, func() bool { return hasMessage(c.players[1], "transfer.active") })
		w.Restart()
		for _, p := range c.players[:2] {
			c.completed(p, c.outcome(p, forever), "b")
		}
		late.Ask("")
		c.completed(late, c.outcome(late, forever), "b")
	})
}

func hasMessage(p *sim.Client, key string) bool {
	return slices.ContainsFunc(p.Look().Texts, func(s string) bool { return matches(s, messages[key]) })
}

func TestNobodyWaitsForEver(t *testing.T) {
	prepare := func(r *rig) { r.timing.MaxAge = 10 * time.Second }
	gather(t, 1, prepare, func(c *crowd) {
		c.down("b", 100, 8)
		p := c.players[0]
		c.ask(p)
		c.ended(p, c.outcome(p, 12*time.Second), projections.Cancelled, events.AgedOut, messages.Text("failed.AGED_OUT", nil))
	})
}

func TestNobodyWaitsWithoutALine(t *testing.T) {
	prepare := func(r *rig) { r.line.Enabled = false }
	gather(t, 1, prepare, func(c *crowd) {
		c.down("b", 100, 8)
		p := c.players[0]
		p.Ask("")
		c.ended(p, c.outcome(p, triedOn), projections.Failed, events.NoCandidate, messages.Text("failed.NO_CANDIDATE", nil))
	})
}

// While transfers are switched off everybody keeps the place.
func TestLineSleepsWhileSwitchedOff(t *testing.T) {
	gather(t, 4, nil, func(c *crowd) {
		w := c.down("b", 100, 8)
		for _, p := range c.players {
			c.ask(p)
			c.waiting(p)
		}
		seq := c.operator("kill", 0, &events.KillSet{On: true, Who: "op"})
		w.Restart()
		c.pass(time.Minute)
		for i, p := range c.players {
			if c.position(p) != i+1 {
				t.Errorf("%s: position %d", p.Name, c.position(p))
			}
		}
		c.operator("kill", seq, &events.KillSet{On: false, Who: "op"})
		for _, p := range c.players {
			c.completed(p, c.outcome(p, forever), "b")
		}
	})
}

// Leaving always works, and everybody behind moves up.
func TestLeavingTheLine(t *testing.T) {
	gather(t, 3, nil, func(c *crowd) {
		c.down("b", 100, 8)
		for _, p := range c.players {
			c.ask(p)
			c.waiting(p)
		}
		leaver := c.players[1]
		leaver.Cancel()
		c.ended(leaver, c.outcome(leaver, 5*time.Second), projections.Cancelled, events.Cancel, messages.Text("failed.CANCELLED_BY_PLAYER", nil))
		if got := []int{c.position(c.players[0]), c.position(c.players[2])}; !slices.Equal(got, []int{1, 2}) {
			t.Errorf("positions %v", got)
		}
		leaver.Cancel()
		c.until("told", 5*time.Second, func() bool { return has(leaver.Look().Texts, messages.Text("transfer.none", nil)) })
	})
}
