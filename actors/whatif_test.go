package actors

import (
	"slices"
	"testing"

	"github.com/landfall/landfall/events"
)

func servers(r Rescored) (out []events.HostID) {
	for _, c := range r.Candidates {
		out = append(out, c.Server)
	}
	return out
}

// TestRescoreWithItsOwnPolicy gives the recorded order and scores again.
func TestRescoreWithItsOwnPolicy(t *testing.T) {
	f := measuredFleet(40)
	q := asDispatched(f)
	_, d := choose(q, f)
	r := q.policy.Rescore(d)
	if len(r.Unknown) > 0 || len(r.Candidates) != len(d.Candidates) {
		t.Fatalf("unknown %v, %d of %d candidates", r.Unknown, len(r.Candidates), len(d.Candidates))
	}
	for i, c := range r.Candidates {
		if want := d.Candidates[i]; c.Server != want.Server || c.Region != want.Region || c.Score != want.Score {
			t.Errorf("place %d: %s %s %v, recorded %s %s %v", i, c.Server, c.Region, c.Score, want.Server, want.Region, want.Score)
		}
	}
}

func TestRescore(t *testing.T) {
	d := events.Decision{Candidates: []events.Candidate{
		{Server: "a", Region: "x", Score: 1, Terms: []events.Term{{Name: "mspt", Raw: 10}, {Name: "playerCount", Raw: 50}}},
		{Server: "b", Region: "x", Score: 2, Terms: []events.Term{{Name: "mspt", Raw: 40}, {Name: "playerCount", Raw: 10}}},
		{Server: "c", Region: "x", Score: 3, Terms: []events.Term{{Name: "mspt", Missing: true}, {Name: "playerCount", Raw: 30}, {Name: "home", Raw: 1}}},
	}}
	for _, c := range []struct {
		name    string
		policy  PolicyConfig
		want    []events.HostID
		unknown []string
	}{
		{"ticks", PolicyConfig{Terms: []TermConfig{{Input: MSPT, Weight: 1}}}, []events.HostID{"a", "b", "c"}, nil},
		{"players", PolicyConfig{Terms: []TermConfig{{Input: PlayerCount, Weight: 1}}}, []events.HostID{"b", "a", "c"}, nil},
		{"home first", PolicyConfig{PreferHome: true, Terms: []TermConfig{{Input: MSPT, Weight: 1}}}, []events.HostID{"c", "a", "b"}, nil},
		{"a heavier server", PolicyConfig{
			Terms: []TermConfig{{Input: MSPT, Weight: 1}}, Weights: map[events.HostID]float64{"b": 8},
		}, []events.HostID{"b", "a", "c"}, nil},
		{"fewest players", PolicyConfig{Kind: LeastPlayers}, []events.HostID{"b", "a", "c"}, nil},
		{"fixed", PolicyConfig{Kind: "fixed:b"}, []events.HostID{"b", "a", "c"}, nil},
		{"an input that was not recorded", PolicyConfig{Terms: []TermConfig{{Input: MSPT, Weight: 1}, {Input: ProxyRTT, Weight: 5}}}, []events.HostID{"a", "b", "c"}, []string{"proxyRtt"}},
		{"turns", PolicyConfig{Kind: RoundRobin}, []events.HostID{"a", "b", "c"}, []string{"turn"}},
	} {
		r := policyOf(t, c.policy).Rescore(d)
		if !slices.Equal(servers(r), c.want) || !slices.Equal(r.Unknown, c.unknown) {
			t.Errorf("%s: %v, unknown %v, want %v, unknown %v", c.name, servers(r), r.Unknown, c.want, c.unknown)
		}
	}
	if r := policyOf(t, PolicyConfig{}).Rescore(events.Decision{}); len(r.Candidates) != 0 {
		t.Errorf("of nobody: %+v", r)
	}
}
