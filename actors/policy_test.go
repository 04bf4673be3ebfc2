package actors

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// TestRoundRobin rotates, whatever the servers report, and goes on rotating when one comes
// or leaves.
func TestRoundRobin(t *testing.T) {
	q := anywhere()
	q.memories = &memories{}
	q.memories.init()
	q.policy = policyOf(t, PolicyConfig{Kind: RoundRobin})
	pick := func(f *projections.Fleet, times int) string {
		var got strings.Builder
		for range times {
			ranked, _ := choose(q, f)
			got.WriteString(string(ranked[0].backend.Server))
			q.memories.picked(ranked[0].backend.Server, q.now, shippedHalfLife)
		}
		return got.String()
	}
	a, b, c := destination("a", 1), reporting("b", 49, 9, 10, .99, 64), destination("c", 30)
	if got := pick(fleetOf(a, b, c), 7); got != "abcabca" {
		t.Errorf("rotation %s", got)
	}
	if got := pick(fleetOf(a, c), 3); got != "cac" {
		t.Errorf("without b: %s", got)
	}
	if got := pick(fleetOf(a, b, c), 4); got != "bacb" {
		t.Errorf("b came back: %s", got)
	}
	_, d := choose(q, fleetOf(a, b, c))
	if !strings.HasPrefix(d.Policy, "roundRobin/") || termOf(t, d.Candidates[0], "turn").Raw == 0 || d.Candidates[0].Score != termOf(t, d.Candidates[0], "turn").Raw {
		t.Errorf("recorded %+v", d)
	}
}

// TestNoWeightIsARoundRobin: a weighted policy that weighs nothing does not send all players
// to the lowest id.
func TestNoWeightIsARoundRobin(t *testing.T) {
	var zero []TermConfig
	for _, x := range ShippedTerms() {
		x.Weight = 0
		zero = append(zero, x)
	}
	for _, terms := range [][]TermConfig{zero, {}} {
		if got := policyOf(t, PolicyConfig{Terms: terms}).Name(); got != policyOf(t, PolicyConfig{Kind: RoundRobin}).Name() {
			t.Errorf("%d terms: %s", len(terms), got)
		}
	}
}

// TestRegionsOfOneServer: where the score says nothing of regions, the fuller pool is taken.
func TestRegionsOfOneServer(t *testing.T) {
	b := destination("b", 3)
	b.Regions = append(b.Regions, events.RegionBeat{Name: "wood", World: "w", Kept: 9}, events.RegionBeat{Name: "xeric", World: "w", Kept: 9})
	for _, kind := range []string{RoundRobin, LeastPlayers, "fixed:b"} {
		q := anywhere()
		q.policy = policyOf(t, PolicyConfig{Kind: kind})
		if ranked, _ := choose(q, fleetOf(b)); !slices.Equal(served(ranked), []string{"b/wood", "b/xeric", "b/wild"}) {
			t.Errorf("%s: %v", kind, served(ranked))
		}
	}
}

// TestLeastPlayers counts who is there, and who has been promised a place.
func TestLeastPlayers(t *testing.T) {
	q := anywhere()
	q.policy = policyOf(t, PolicyConfig{Kind: LeastPlayers, Weights: map[events.HostID]float64{"d": 10}})
	a, b, c, d := destination("a", 9), destination("b", 9), destination("c", 9), destination("d", 9)
	a.Players, b.Players, c.Players, d.Players = 5, 3, 3, 30
	b.Outstanding = 1
	q.pledged = func(x *projections.Backend, _ string) int { return map[events.HostID]int{"c": 2}[x.Server] }
	ranked, rec := choose(q, fleetOf(a, b, c, d))
	if got := served(ranked); !slices.Equal(got, []string{"d/wild", "b/wild", "a/wild", "c/wild"}) {
		t.Errorf("order %v", got)
	}
	if x := rec.Candidates[0]; x.Score != 3 || termOf(t, x, "players").Raw != 30 || termOf(t, x, "backendWeight").Raw != 10 {
		t.Errorf("recorded %+v", x)
	}
}

// TestFixed sends everybody to one server and nobody elsewhere; a pin is a wish of its own.
func TestFixed(t *testing.T) {
	q := anywhere()
	q.policy = policyOf(t, PolicyConfig{Kind: "fixed:b"})
	f := fleetOf(destination("a", 60), destination("b", 1), destination("c", 60))
	ranked, d := choose(q, f)
	if !slices.Equal(served(ranked), []string{"b/wild"}) || !strings.HasPrefix(d.Policy, "fixed:b/") || d.Filtered[0].Code != events.Excluded || d.Filtered[0].Count != 2 {
		t.Errorf("%v, %+v", served(ranked), d)
	}
	f.Backends[1].Accepting = false
	if ranked, d = choose(q, f); len(ranked) != 0 || permanent(d) {
		t.Errorf("closed: %v, %+v", served(ranked), d)
	}
	q.wish.Pin = "c"
	if ranked, _ = choose(q, f); !slices.Equal(served(ranked), []string{"c/wild"}) {
		t.Errorf("pinned: %v", served(ranked))
	}
}

// TestServedAtHome: who names no server goes elsewhere first, or home first, and in either
// case where there is room; a pin means what it says.
func TestServedAtHome(t *testing.T) {
	a, b := destination("a", 2), destination("b", 40)
	f := fleetOf(a, b, destination("c", 1))
	for _, row := range []struct {
		name string
		home bool
		at   events.HostID
		wish events.Wish
		want []string
	}{
		{"network, from the best", false, "b", events.Wish{}, []string{"a/wild", "c/wild", "b/wild"}},
		{"network, from the worst", false, "c", events.Wish{}, []string{"b/wild", "a/wild", "c/wild"}},
		{"network, a region", false, "b", events.Wish{Region: "wild"}, []string{"a/wild", "c/wild", "b/wild"}},
		{"network, home pinned", false, "b", events.Wish{Pin: "b"}, []string{"b/wild"}},
		{"network, from a lobby", false, "hub", events.Wish{}, []string{"b/wild", "a/wild", "c/wild"}},
		{"network, from nowhere", false, "", events.Wish{}, []string{"b/wild", "a/wild", "c/wild"}},
		{"local, from the worst", true, "c", events.Wish{}, []string{"c/wild", "b/wild", "a/wild"}},
		{"local, from the best", true, "b", events.Wish{}, []string{"b/wild", "a/wild", "c/wild"}},
		{"local, another pinned", true, "c", events.Wish{Pin: "a"}, []string{"a/wild"}},
		{"local, from a lobby", true, "hub", events.Wish{}, []string{"b/wild", "a/wild", "c/wild"}},
	} {
		q := anywhere()
		q.home, q.wish, q.policy = row.at, row.wish, policyOf(t, PolicyConfig{PreferHome: row.home})
		ranked, d := choose(q, f)
		if got := served(ranked); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
		for _, c := range d.Candidates {
			shown := slices.ContainsFunc(c.Terms, func(x events.Term) bool { return x.Name == "home" })
			if shown != (c.Server == row.at && row.wish.Pin == "") {
				t.Errorf("%s: %s recorded as home: %v", row.name, c.Server, shown)
			}
		}
	}
	q := anywhere()
	q.home = "b"
	if ranked, _ := choose(q, fleetOf(b)); !slices.Equal(served(ranked), []string{"b/wild"}) {
		t.Errorf("nobody else is there: %v, want home", served(ranked))
	}
	q.policy = policyOf(t, PolicyConfig{PreferHome: true})
	b.Regions[0].Kept = 0
	if ranked, _ := choose(q, f); !slices.Equal(served(ranked), []string{"a/wild", "c/wild"}) {
		t.Errorf("no room at home: %v", served(ranked))
	}
}

// TestPolicyNames: the same rules have the same name on every host; a difference that
// counts makes another one, a difference that does not makes none.
func TestPolicyNames(t *testing.T) {
	name := func(change func(c *PolicyConfig)) string {
		c := PolicyConfig{Terms: ShippedTerms()}
		change(&c)
		return policyOf(t, c).Name()
	}
	base := Policy{}.Name()
	if !regexp.MustCompile(`^weighted/[0-9a-f]{8}$`).MatchString(base) {
		t.Errorf("name %q", base)
	}
	for what, same := range map[string]func(c *PolicyConfig){
		"shipped terms spelt out": func(*PolicyConfig) {},
		"kind spelt out":          func(c *PolicyConfig) { c.Kind = Weighted },
		"another order":           func(c *PolicyConfig) { slices.Reverse(c.Terms) },
		"a term without a weight": func(c *PolicyConfig) {
			c.Terms = append(c.Terms, TermConfig{Input: PlayerCount, Curve: Curve{Shape: Power, P: 3}})
		},
		"a parameter of another shape": func(c *PolicyConfig) { c.Terms[2].Curve.K = 7 },
		"a backend of weight 1":        func(c *PolicyConfig) { c.Weights = map[events.HostID]float64{"a": 1} },
		"its scale spelt out":          func(c *PolicyConfig) { c.Terms[0].Normalize = &Range{Min: 0, Max: 50} },
		"its half-life left out":       func(c *PolicyConfig) { c.Terms[5].HalfLife = 0 },
	} {
		if got := name(same); got != base {
			t.Errorf("%s: %s, want %s", what, got, base)
		}
	}
	seen := map[string]string{base: "shipped"}
	for what, differs := range map[string]func(c *PolicyConfig){
		"weight":         func(c *PolicyConfig) { c.Terms[0].Weight = 2 },
		"curve":          func(c *PolicyConfig) { c.Terms[0].Curve.X0 = 0.5 },
		"scale":          func(c *PolicyConfig) { c.Terms[0].Normalize = &Range{Min: 0, Max: 100} },
		"half-life":      func(c *PolicyConfig) { c.Terms[5].HalfLife = time.Second },
		"shared":         func(c *PolicyConfig) { c.Terms[5].Shared = true },
		"backend weight": func(c *PolicyConfig) { c.Weights = map[events.HostID]float64{"a": 2} },
		"home":           func(c *PolicyConfig) { c.PreferHome = true },
		"kind":           func(c *PolicyConfig) { c.Kind = LeastPlayers },
		"fixed a":        func(c *PolicyConfig) { c.Kind = "fixed:a" },
		"fixed b":        func(c *PolicyConfig) { c.Kind = "fixed:b" },
		"one term less":  func(c *PolicyConfig) { c.Terms = c.Terms[1:] },
	} {
		got := name(differs)
		if seen[got] != "" {
			t.Errorf("%s has the name of %s: %s", what, seen[got], got)
		}
		seen[got] = what
	}
}

// TestPolicyRefusals: bad parameters are refused by the name of their key; none is clamped.
func TestPolicyRefusals(t *testing.T) {
	term := func(change func(x *TermConfig)) PolicyConfig {
		x := TermConfig{Input: MSPT, Weight: 1}
		change(&x)
		return PolicyConfig{Terms: []TermConfig{x}}
	}
	var many []TermConfig
	for i := range maxTerms + 1 {
		many = append(many, TermConfig{Name: fmt.Sprintf("t%d", i), Input: MSPT, Weight: 1})
	}
	for _, row := range []struct {
		cfg  PolicyConfig
		want string
	}{
		{PolicyConfig{Kind: "random"}, `loadBalancer.policy: "random" is not allowed; allowed: weighted, roundRobin, leastPlayers, fixed:<serverId>`},
		{PolicyConfig{Kind: "fixed:"}, `loadBalancer.policy: "fixed:" is not allowed`},
		{PolicyConfig{Kind: "fixed:a b"}, `loadBalancer.policy: "fixed:a b" is not allowed`},
		{term(func(x *TermConfig) { x.Input = "lag" }), `loadBalancer.terms.lag.input: "lag" is not an input; allowed: mspt, tps,`},
		{term(func(x *TermConfig) { x.Name = "a b" }), `loadBalancer.terms.a b.name: "a b"; allowed: [A-Za-z0-9_-]{1,63}`},
		{term(func(x *TermConfig) { x.Weight = -1 }), "loadBalancer.terms.mspt.weight: -1 is not allowed; allowed: 0..1000"},
		{term(func(x *TermConfig) { x.Weight = math.NaN() }), "loadBalancer.terms.mspt.weight: NaN is not allowed"},
		{term(func(x *TermConfig) { x.Weight = math.Inf(1) }), "loadBalancer.terms.mspt.weight: +Inf is not allowed"},
		{term(func(x *TermConfig) { x.Normalize = &Range{Min: 5, Max: 5} }), "loadBalancer.terms.mspt.normalize: 5 to 5 is not allowed; allowed: min < max"},
		{term(func(x *TermConfig) { x.Normalize = &Range{Max: math.Inf(1)} }), "loadBalancer.terms.mspt.normalize: 0 to +Inf is not allowed"},
		{term(func(x *TermConfig) { x.Curve = Curve{Shape: Sigmoid, K: 999, X0: .5} }), "loadBalancer.terms.mspt.curve.k: 999 is not allowed; allowed: 0.1..20"},
		{term(func(x *TermConfig) { x.HalfLife = time.Millisecond }), "loadBalancer.terms.mspt.halfLifeSeconds: 0.001 is not allowed; allowed: 0.1..3600"},
		{PolicyConfig{Terms: []TermConfig{{Input: MSPT}, {Input: MSPT}}}, "loadBalancer.terms.mspt: is given twice"},
		{PolicyConfig{Terms: []TermConfig{{Input: RecentPicks, Weight: 1}, {Name: "more", Input: RecentPicks, Weight: 1}}}, "loadBalancer.terms.more: recentPicks is counted by recentPicks already"},
		{PolicyConfig{Terms: many}, "loadBalancer.terms: 17 terms have a weight; allowed: at most 16"},
		{PolicyConfig{Weights: map[events.HostID]float64{"a": 0}}, "loadBalancer.backends.a.weight: 0 is not allowed; allowed: 0.01..1000"},
	} {
		if _, err := NewPolicy(row.cfg); err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("got %v, want %s", err, row.want)
		}
	}
}

// TestDecisionFits: the longest names, the largest policy and every reason to be ruled out
// still make a decision of 4 KB.
func TestDecisionFits(t *testing.T) {
	long := func(i int) events.HostID { return events.HostID(fmt.Sprintf("%s-%04d", strings.Repeat("x", 58), i)) }
	var terms []TermConfig
	for i := range maxTerms {
		terms = append(terms, TermConfig{Name: string(long(i)), Input: KeptCount, Weight: 1})
	}
	q := anywhere()
	q.wish.Region = string(long(0))
	q.policy = policyOf(t, PolicyConfig{Terms: terms, Weights: map[events.HostID]float64{long(3): 2}})
	q.exclude = map[events.HostID]events.Code{}
	var all []*projections.Backend
	for i := range 200 {
		b := destination(long(i), i%5)
		b.Regions[0].Name, b.Regions[0].World = string(long(0)), strings.Repeat("w", i)
		if i%2 == 0 {
			q.exclude[b.Server] = events.Code(fmt.Sprintf("REASON_%d", i%12))
		}
		all = append(all, b)
	}
	_, d := choose(q, fleetOf(all...))
	body, err := events.Marshal(&d)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > maxDecision || encoded(&d) < len(body) || len(d.Candidates) == 0 || d.Collision == "" || len(d.Collision) > maxCollision {
		t.Errorf("%d bytes, thought %d; %d candidates, collision %q", len(body), encoded(&d), len(d.Candidates), d.Collision)
	}
	for _, f := range d.Filtered {
		if len(f.Examples) == 0 || f.Count < 10 {
			t.Errorf("%+v", f)
		}
	}
}

// TestPolicyOfADispatcher: the dispatcher's own policy chooses, its picks are remembered, and
// the claims of others that the log shows are too.
func TestPolicyOfADispatcher(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, _ *quay) {
		s.SetPolicy(policyOf(t, PolicyConfig{Kind: LeastPlayers}))
		if won, ok := s.best(ctx); !won || !ok {
			t.Fatalf("won %v, ok %v", won, ok)
		}
		if d := s.view.Player(steve).Active.Reserved.Decision; !strings.HasPrefix(d.Policy, "leastPlayers/") {
			t.Errorf("decided by %s", d.Policy)
		}
		now := func() memory { return s.memories.look("b", s.Now(), shippedHalfLife) }
		if m := now(); m.turn != 1 || m.picks < 0.9 || m.others != 0 {
			t.Errorf("after a pick: %+v", m)
		}
		s.put(t, claimed(1, "e2"))
		eventually(t, "claim folded", func() bool { return s.view.Player(steve).Active.Phase == projections.Claimed })
		if m := now(); m.others < 0.9 {
			t.Errorf("after the claim of another: %+v", m)
		}
	})
}

// TestOwnClaimsCountOnce: what this dispatcher picked is not counted again when it claims.
func TestOwnClaimsCountOnce(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, _ *quay) {
		s.best(ctx)
		s.put(t, claimed(1, s.Source.ID))
		eventually(t, "claim folded", func() bool { return s.view.Player(steve).Active.Phase == projections.Claimed })
		if m := s.memories.look("b", s.Now(), shippedHalfLife); m.others != 0 {
			t.Errorf("%+v", m)
		}
	})
}

// TestLastPlace is that of the newest transfer that arrived.
func TestLastPlace(t *testing.T) {
	to := func(server events.HostID, p projections.Phase) projections.Transfer {
		return projections.Transfer{Phase: p, Reserved: &events.Reserved{Server: server, Region: "wild"}}
	}
	for _, row := range []struct {
		done []projections.Transfer
		want place
	}{
		{nil, place{}},
		{[]projections.Transfer{to("a", projections.Completed), to("b", projections.Completed), to("c", projections.Failed)}, place{"b", "wild"}},
		{[]projections.Transfer{{Phase: projections.Failed}}, place{}},
	} {
		if got := lastPlace(row.done); got != row.want {
			t.Errorf("%v, want %v", got, row.want)
		}
	}
}
