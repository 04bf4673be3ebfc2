package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
)

// TestCooldownAcrossEdges: who arrived through one edge rests at the other one too, reads for
// how long, and goes on when the rest is over.
func TestCooldownAcrossEdges(t *testing.T) {
	simulate(t, events.KindEdge, func(r *rig) {
		for _, id := range []events.HostID{"e1", "e2"} {
			r.dispatcher(id).SetLimits(actors.Limits{"rtp": {Cooldown: 2 * time.Minute}})
		}
		r.backend("a", 8)
		r.backend("b", 8)
		r.settle()
		p := r.player("Steve", "e1", "a")
		p.Ask("")
		r.completed(p, r.outcome(p, 20*time.Second), "b")
		r.rests(p, "2 min")
		p.Quit()
		r.killDispatcher("e1")
		r.pass(time.Minute)
		if err := p.Join(r.ctx, "e2", events.Token{}); err != nil {
			t.Fatal(err)
		}
		r.pass(2 * time.Second)
		r.rests(p, "60 s")
		r.pass(time.Minute)
		p.Ask("")
		r.until("another journey", 20*time.Second, func() bool { return len(r.observer().View().Player(p.ID).Done) == 2 })
		r.completed(p, r.outcome(p, 0), "a")
	})
}

// rests demands that a request of a player is refused, for so long.
func (r *rig) rests(p *sim.Client, long string) {
	r.t.Helper()
	told := func() (texts []string) {
		for _, text := range p.Look().Texts {
			if strings.HasPrefix(text, "You have only just been moved.") {
				texts = append(texts, text)
			}
		}
		return texts
	}
	before := len(told())
	p.Ask("")
	r.until("refusal", 5*time.Second, func() bool { return len(told()) > before })
	if got, want := told()[before], "You have only just been moved. Please try again in "+long+"."; got != want {
		r.t.Errorf("told %q, want %q", got, want)
	}
}
