package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// chosen plays a network of a lobby "a" and two destinations under a policy.
func chosen(t *testing.T, cfg actors.PolicyConfig, body func(r *rig)) {
	t.Helper()
	policy, err := actors.NewPolicy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	simulate(t, events.KindEdge, func(r *rig) {
		r.startDispatcher("e1", events.SourceEdge, actors.DispatcherConfig{Kind: events.KindEdge, Domain: "play.example.net", Port: 25565, Policy: policy})
		r.backend("a", 0)
		r.backend("b", 16)
		r.backend("c", 12)
		r.settle()
		body(r)
	})
}

// TestPoliciesMove: what each policy chooses is where the player ends up, and why stands in
// the fact.
func TestPoliciesMove(t *testing.T) {
	for _, row := range []struct {
		cfg  actors.PolicyConfig
		want events.HostID
	}{
		{actors.PolicyConfig{}, "b"},
		{actors.PolicyConfig{Weights: map[events.HostID]float64{"b": 0.5}}, "c"},
		{actors.PolicyConfig{Kind: actors.RoundRobin}, "b"},
		{actors.PolicyConfig{Kind: "fixed:c"}, "c"},
	} {
		chosen(t, row.cfg, func(r *rig) {
			p := r.player("Steve", "e1", "a")
			p.Ask("")
			end := r.outcome(p, 20*time.Second)
			r.completed(p, end, row.want)
			d := end.Reserved.Decision
			if d.Candidates[0].Server != row.want || !strings.Contains(d.Policy, "/") || d.Snapshot == 0 {
				t.Errorf("%+v: decided %+v", row.cfg, d)
			}
		})
	}
}

// TestRoundRobinMoves: one player after the other.
func TestRoundRobinMoves(t *testing.T) {
	chosen(t, actors.PolicyConfig{Kind: actors.RoundRobin}, func(r *rig) {
		for i, want := range []events.HostID{"b", "c", "b", "c"} {
			p := r.player("Steve"+string(rune('1'+i)), "e1", "a")
			p.Ask("")
			r.completed(p, r.outcome(p, 20*time.Second), want)
		}
	})
}

// TestHomeInTheNetwork: from b the network comes first and home last, or the other way
// round; the move at home is a teleport.
func TestHomeInTheNetwork(t *testing.T) {
	for prefer, want := range map[bool]events.HostID{false: "c", true: "b"} {
		chosen(t, actors.PolicyConfig{PreferHome: prefer}, func(r *rig) {
			p := r.player("Steve", "e1", "b")
			p.Ask("")
			r.completed(p, r.outcome(p, 20*time.Second), want)
		})
	}
	chosen(t, actors.PolicyConfig{}, func(r *rig) {
		r.killBackend("c")
		r.settle()
		p := r.player("Steve", "e1", "b")
		p.Ask("default")
		r.completed(p, r.outcome(p, 20*time.Second), "b")
	})
}

// TestPinByCommand: a server is named with its region, by who may; what is not a place is
// refused at once, in words, and opens nothing.
func TestPinByCommand(t *testing.T) {
	chosen(t, actors.PolicyConfig{Kind: "fixed:b"}, func(r *rig) {
		p := r.player("Steve", "e1", "a")
		for _, text := range []string{"c:default:x", "region=default", ":default"} {
			p.Ask(text)
			r.until("refusal of "+text, 5*time.Second, func() bool {
				for _, got := range p.Look().Texts {
					if strings.HasPrefix(got, "There is no such place: ") && strings.Contains(got, text) {
						return true
					}
				}
				return false
			})
		}
		r.observer().SetPermissions(nil)
		p.Ask("c:default")
		r.until("refusal for want of a permission", 5*time.Second, func() bool {
			return slices.Contains(p.Look().Texts, "You may not do that here (you lack rtp.servers.c).")
		})
		if s := r.observer().View().Player(p.ID); s.Active != nil || len(s.Done) > 0 {
			t.Fatalf("a transfer was opened: %+v", s)
		}
		r.observer().SetPermissions(actors.NewPermissions(actors.PermissionsConfig{
			Groups: []actors.PermissionGroup{{Grant: []string{"rtp.servers.*"}, Names: []string{"STEVE"}}},
		}))
		p.Ask(" c : default ")
		r.completed(p, r.outcome(p, 20*time.Second), "c")
		p.Ask("nowhere:default")
		r.until("end of a pin to nobody", 20*time.Second, func() bool {
			done := r.observer().View().Player(p.ID).Done
			return len(done) == 2 && done[1].Phase == projections.Failed && done[1].Code == events.NoCandidate
		})
	})
}
