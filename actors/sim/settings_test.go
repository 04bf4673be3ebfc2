package sim_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// obedience is what one host of the rig was told to go by.
type obedience struct {
	mu      sync.Mutex
	refuses string // a text that this host does not understand
	now     actors.Pushed
	refused uint64
	heard   []uint64 // the versions, each once
}

func (o *obedience) settings() actors.Settings {
	return actors.Settings{Adopt: o.adopt, Beat: func() events.ConfigBeat {
		o.mu.Lock()
		defer o.mu.Unlock()
		return events.ConfigBeat{Pushed: o.now.Seq, Refused: o.refused}
	}}
}

func (o *obedience) adopt(p actors.Pushed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.heard) == 0 || o.heard[len(o.heard)-1] != p.Seq {
		o.heard = append(o.heard, p.Seq)
	}
	if p.Text != "" && p.Text == o.refuses {
		o.refused = p.Seq
		return
	}
	o.now, o.refused = p, 0
}

func (o *obedience) obeys() actors.Pushed {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

// configured is a rig of two edges and two backends, each of which can be told.
type configured struct {
	*rig
	of map[events.HostID]*obedience
}

func tellable(t *testing.T, body func(c *configured)) {
	t.Helper()
	simulate(t, events.KindEdge, func(r *rig) {
		c := &configured{rig: r, of: map[events.HostID]*obedience{}}
		r.settings = func(id events.HostID) actors.Settings {
			if c.of[id] == nil {
				c.of[id] = &obedience{}
			}
			return c.of[id].settings()
		}
		body(c)
	})
}

// push writes a version and waits until all hosts obey it.
func (c *configured) push(prev uint64, text string) uint64 {
	c.t.Helper()
	seq := c.operator(events.ConfigKey, prev, &events.ConfigSet{Text: text, Who: "op", Why: "test"})
	for id, o := range c.of {
		c.until(string(id)+" obeys "+text, 2*time.Second, func() bool {
			return o.obeys() == actors.Pushed{Seq: seq, Text: text, Who: "op", Why: "test"} || text != "" && text == o.refuses
		})
	}
	return seq
}

// TestPushedConfigurationReachesEveryHost: dispatchers find it in the log, backends, which do
// not see the log, are told; those that start later obey before they serve.
func TestPushedConfigurationReachesEveryHost(t *testing.T) {
	tellable(t, func(c *configured) {
		c.dispatcher("e1")
		c.dispatcher("e2")
		c.backend("a", 0)
		c.backend("b", 4)
		c.settle()
		first := c.push(0, "one")
		second := c.push(first, "two")

		c.dispatcher("e3")
		c.backend("late", 4)
		for _, id := range []events.HostID{"e3", "late"} {
			c.until(string(id)+" is ready", 10*time.Second, func() bool {
				f := c.observer().View().Fleet()
				p, b := f.Proxy(id), f.Backend(id)
				ready := p != nil && p.State == events.Ready || b != nil && b.State == events.Ready
				if ready && c.of[id].obeys().Seq != second {
					t.Errorf("%s serves and obeys %d, not %d", id, c.of[id].obeys().Seq, second)
				}
				return ready
			})
		}
		off := c.push(second, "")
		for id, want := range map[events.HostID][]uint64{"e1": {0, first, second, off}, "b": {0, first, second, off}, "e3": {second, off}, "late": {second, off}} {
			if got := c.of[id].heard; !slices.Equal(got, want) {
				t.Errorf("%s was told of %d, want %d", id, got, want)
			}
		}
	})
}

// TestPushedConfigurationThatOneHostRefuses: it is told once, goes on with what it has, and is
// told of the next one.
func TestPushedConfigurationThatOneHostRefuses(t *testing.T) {
	tellable(t, func(c *configured) {
		c.dispatcher("e1")
		c.of["a"] = &obedience{refuses: "new"}
		c.backend("a", 0)
		c.settle()
		old := c.push(0, "old")
		c.push(old, "new")
		c.pass(10 * time.Second)
		if got := c.of["a"].obeys().Text; got != "old" {
			t.Errorf("a goes by %q", got)
		}
		b := c.observer().View().Fleet().Backend("a")
		if b.Config.Pushed != old || b.Config.Refused == 0 {
			t.Errorf("its heartbeat says %+v", b.Config)
		}
		if n := len(c.of["a"].heard); n != 3 {
			t.Errorf("told of %d", c.of["a"].heard)
		}
	})
}

// TestPushedConfigurationSurvivesLostWord: the hint may be lost, and its sender may die.
func TestPushedConfigurationSurvivesLostWord(t *testing.T) {
	tellable(t, func(c *configured) {
		for _, id := range []events.HostID{"e1", "e2", "e3"} {
			c.dispatcher(id)
		}
		c.backend("a", 0)
		c.settle()
		c.mem.DropRequest(func(subject string) bool { return subject == events.ToBackend("a", events.VerbConfig) }, 3)
		c.operator(events.ConfigKey, 0, &events.ConfigSet{Text: "one", Who: "op"})
		c.until("a obeys", 6*time.Second, func() bool { return c.of["a"].obeys().Text == "one" })
	})
}

// TestABackendServesWithoutWord: dispatchers that know nothing of it do not keep a backend away.
func TestABackendServesWithoutWord(t *testing.T) {
	tellable(t, func(c *configured) {
		c.dispatcher("e1")
		c.mem.DropRequest(func(subject string) bool { return subject == events.AskOf("a", events.VerbSettings) }, 1<<20)
		c.operator(events.ConfigKey, 0, &events.ConfigSet{Text: "one", Who: "op"})
		began := time.Now()
		c.backend("a", 0)
		c.until("a is ready", 8*time.Second, func() bool {
			b := c.observer().View().Fleet().Backend("a")
			return b != nil && b.State == events.Ready
		})
		if took := time.Since(began); took < 4*time.Second {
			t.Errorf("it served after %s, without asking for longer", took)
		}
	})
}
