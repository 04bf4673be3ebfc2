package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
)

// triedOn is how long a lobby looks for a place where nobody waits, at most.
const triedOn = 20 * time.Second

// inLobby plays a player in a lobby, and one server that keeps a place.
func inLobby(t *testing.T, line actors.LineRules, body func(r *rig, p *sim.Client, w *sim.World)) {
	t.Helper()
	byRule(t, actors.Routing{}, func(r *rig) {
		r.line = line
		r.dispatcher("e1")
		r.backend("hub", 0)
		w := r.backend("a", 1)
		r.settle()
		p := r.net.AddClient("Steve", 767)
		if got := r.comes(p); got != "hub" {
			t.Fatalf("taken by %s", got)
		}
		body(r, p, w)
	})
}

// TestALobbyTriesOn: the player reads at once what is in the way, and goes on when that is gone in a moment.
func TestALobbyTriesOn(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"it passes": 10 * time.Second, "it lasts": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inLobby(t, actors.LineRules{}, func(r *rig, p *sim.Client, _ *sim.World) {
				seq := r.operator(events.KillKey, 0, &events.KillSet{On: true, Who: "op"})
				p.Ask("")
				r.until("the reason", time.Second, func() bool { return hasMessage(p, "refused.KILL_SWITCH") })
				r.pass(lasts)
				r.operator(events.KillKey, seq, &events.KillSet{Who: "op"})
				if lasts < 15*time.Second {
					r.completed(p, r.outcome(p, 20*time.Second), "a")
				} else if r.pass(20 * time.Second); len(r.transfersOf(p)) != 0 {
					t.Error("tried on for too long")
				}
				if n := heard(p, "refused.KILL_SWITCH"); n != 1 {
					t.Errorf("told %d times", n)
				}
			})
		})
	}
}

// TestWhatALobbyTriesIsTakenBack by the player, or by another wish.
func TestWhatALobbyTriesIsTakenBack(t *testing.T) {
	inLobby(t, actors.LineRules{}, func(r *rig, p *sim.Client, _ *sim.World) {
		seq := r.operator(events.KillKey, 0, &events.KillSet{On: true, Who: "op"})
		p.Ask("nowhere")
		r.pass(time.Second)
		p.Ask("")
		r.pass(time.Second)
		r.operator(events.KillKey, seq, &events.KillSet{Who: "op"})
		r.completed(p, r.outcome(p, 20*time.Second), "a")
		if n := len(r.transfersOf(p)); n != 1 {
			t.Errorf("%d transfers", n)
		}
	})
	inLobby(t, actors.LineRules{}, func(r *rig, p *sim.Client, _ *sim.World) {
		seq := r.operator(events.KillKey, 0, &events.KillSet{On: true, Who: "op"})
		p.Ask("")
		r.pass(time.Second)
		p.Cancel()
		r.until("the word", 5*time.Second, func() bool { return hasMessage(p, "failed.CANCELLED_BY_PLAYER") })
		r.operator(events.KillKey, seq, &events.KillSet{Who: "op"})
		r.pass(20 * time.Second)
		if n := len(r.transfersOf(p)); n != 0 {
			t.Errorf("%d transfers", n)
		}
	})
}

// TestALobbyWithoutALine: nobody waits on this network, and those in a lobby only for a moment.
func TestALobbyWithoutALine(t *testing.T) {
	for name, comes := range map[string]bool{"a place comes": true, "none comes": false} {
		t.Run(name, func(t *testing.T) {
			inLobby(t, actors.LineRules{Notify: 5 * time.Second, MaxSize: 1}, func(r *rig, p *sim.Client, w *sim.World) {
				w.Set(func(f *sim.Faults) { f.Barren = true })
				first := r.net.AddClient("First", 767)
				r.comes(first)
				first.Ask("")
				r.completed(first, r.outcome(first, 20*time.Second), "a")
				r.pass(2 * time.Second)
				p.Ask("")
				if comes {
					r.later(5*time.Second, func() { w.Set(func(f *sim.Faults) { f.Barren = false }) })
					r.completed(p, r.outcome(p, 20*time.Second), "a")
					return
				}
				began := time.Now()
				if end := r.outcome(p, 20*time.Second); end.Code != events.NoCandidate || time.Since(began) < 14*time.Second {
					t.Errorf("ended %s %s after %s", end.Phase, end.Code, time.Since(began))
				}
				r.until("the reason", 5*time.Second, func() bool { return hasMessage(p, "failed.NO_CANDIDATE") })
			})
		})
	}
}
