package actors

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// destination is a backend that passes every filter, with one region "wild".
func destination(id events.HostID, kept int) *projections.Backend {
	return &projections.Backend{
		BackendBeat: events.BackendBeat{
			Server: id, Incarnation: lifeOf(id), State: events.Ready, Accepting: true, Schema: events.SchemaVersion,
			ProtocolMin: 767, ProtocolMax: 770, Advertise: string(id) + ":25565", MaxPlayers: 100,
			Regions: []events.RegionBeat{{Name: "wild", World: "minecraft:overworld", Kept: kept, Size: 8}},
		},
		Seq: 50, Seen: t0, Since: t0.Add(-time.Hour), Live: true,
	}
}

func fleetOf(backends ...*projections.Backend) *projections.Fleet {
	return &projections.Fleet{Seq: 60, Live: true, Since: t0.Add(-time.Hour), Backends: backends}
}

// anywhere is the weakest question.
func anywhere() question {
	return question{
		drained: func(events.HostID) bool { return false }, pledged: func(*projections.Backend, string) int { return 0 },
		now: t0, stale: 3 * time.Second,
	}
}

func served(ranked []choice) (out []string) {
	for _, c := range ranked {
		out = append(out, string(c.backend.Server)+"/"+c.region)
	}
	return out
}

// TestChooseFilters: each reason that keeps a destination out, with its code.
func TestChooseFilters(t *testing.T) {
	rows := []struct {
		name     string
		backend  func(b *projections.Backend)
		question func(q *question)
		want     events.Code // "" when it passes
	}{
		{"all well", nil, nil, ""},
		{"not the pinned one", nil, func(q *question) { q.wish.Pin = "z" }, events.Excluded},
		{"the pinned one", nil, func(q *question) { q.wish.Pin = "b" }, ""},
		{"tried before", nil, func(q *question) { q.exclude = map[events.HostID]events.Code{"b": events.NoCoordinate} }, events.NoCoordinate},
		{"paused", nil, func(q *question) { q.paused = func(s events.HostID, r string) bool { return s == "b" && r == "wild" } }, events.Paused},
		{"others paused", nil, func(q *question) { q.paused = func(s events.HostID, r string) bool { return s == "c" || r == "calm" } }, ""},
		{"cooling down", nil, func(q *question) { q.exclude = map[events.HostID]events.Code{"b": events.OnCooldown} }, events.OnCooldown},
		{"stale", func(b *projections.Backend) { b.Seen = t0.Add(-3*time.Second - 1) }, nil, events.Stale},
		{"as old as allowed", func(b *projections.Backend) { b.Seen = t0.Add(-3 * time.Second) }, nil, ""},
		{"starting", func(b *projections.Backend) { b.State = events.Starting }, nil, events.NotReady},
		{"degraded", func(b *projections.Backend) { b.State = events.Degraded }, nil, events.NotReady},
		{"shutting down", func(b *projections.Backend) { b.State = events.ShuttingDown }, nil, events.NotReady},
		{"closed by its operator", func(b *projections.Backend) { b.Accepting = false }, nil, events.NotAccepting},
		{"names another address", func(b *projections.Backend) { b.Claimed = 1 }, nil, events.AddressChanged},
		{"drained", nil, func(q *question) { q.drained = func(id events.HostID) bool { return id == "b" } }, events.Drained},
		{"another wire version", func(b *projections.Backend) { b.Schema++ }, nil, events.SchemaRange},
		{"client too old for it", nil, func(q *question) { q.protocol = 766 }, events.ProtocolAbsent},
		{"client too new for it", nil, func(q *question) { q.protocol = 771 }, events.ProtocolAbsent},
		{"client at its lower end", nil, func(q *question) { q.protocol = 767 }, ""},
		{"client at its upper end", nil, func(q *question) { q.protocol = 770 }, ""},
		{"client unknown", nil, func(q *question) { q.protocol = 0 }, ""},
		{"its versions unknown", func(b *projections.Backend) { b.ProtocolMin, b.ProtocolMax = 0, 0 }, func(q *question) { q.protocol = 5 }, ""},
		{"no such region", nil, func(q *question) { q.wish.Region = "nether" }, events.RegionMissing},
		{"no such world", nil, func(q *question) { q.wish.World = "minecraft:the_end" }, events.RegionMissing},
		{"that region in another world", nil, func(q *question) { q.wish = events.Wish{Region: "wild", World: "x"} }, events.RegionMissing},
		{"a lobby", func(b *projections.Backend) { b.Regions = nil }, nil, events.RegionMissing},
		{"nothing kept", func(b *projections.Backend) { b.Regions[0].Kept = 0 }, nil, events.NoneKept},
		{"all kept ones promised since", nil, func(q *question) { q.pledged = func(*projections.Backend, string) int { return 4 } }, events.NoneKept},
		{"one left beside the promised ones", nil, func(q *question) { q.pledged = func(*projections.Backend, string) int { return 3 } }, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			b, q := destination("b", 4), anywhere()
			if row.backend != nil {
				row.backend(b)
			}
			if row.question != nil {
				row.question(&q)
			}
			ranked, d := choose(q, fleetOf(b))
			if row.want == "" {
				if len(ranked) != 1 || len(d.Filtered) != 0 || len(d.Candidates) != 1 {
					t.Fatalf("ranked %v, filtered %+v; want it chosen", served(ranked), d.Filtered)
				}
				return
			}
			want := events.Filtered{Code: row.want, Count: 1, Examples: []string{"b"}}
			if len(ranked) != 0 || len(d.Filtered) != 1 || d.Filtered[0].Code != want.Code || d.Filtered[0].Count != 1 || !slices.Equal(d.Filtered[0].Examples, want.Examples) {
				t.Fatalf("ranked %v, filtered %+v; want %+v", served(ranked), d.Filtered, want)
			}
		})
	}
}

// TestChooseOrder: the lowest score first, then the lower server id, then the lower region.
func TestChooseOrder(t *testing.T) {
	b := destination("b", 5)
	b.Regions = append(b.Regions, events.RegionBeat{Name: "wood", World: "minecraft:overworld", Kept: 5})
	a := destination("a", 5)
	a.Regions = append(a.Regions, events.RegionBeat{Name: "wood", World: "minecraft:overworld", Kept: 5})
	f := fleetOf(a, b, destination("c", 11), destination("d", 1))
	ranked, d := choose(anywhere(), f)
	want := []string{"c/wild", "a/wild", "a/wood", "b/wild", "b/wood", "d/wild"}
	if got := served(ranked); !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if d.Snapshot != f.Seq || d.Policy != (Policy{}).Name() || d.Candidates[0].Server != "c" || d.Candidates[0].Score >= d.Candidates[1].Score {
		t.Errorf("recorded %+v", d)
	}
	for range 10 {
		again, d2 := choose(anywhere(), f)
		if !slices.Equal(served(again), want) || fmt.Sprint(d2) != fmt.Sprint(d) {
			t.Fatal("the same question was answered differently")
		}
	}
	if f.Backends[0].Server != "a" {
		t.Error("choose changed the snapshot")
	}
}

// TestChoosePledges: what was promised since the heartbeat counts for its server and region alone.
func TestChoosePledges(t *testing.T) {
	q := anywhere()
	q.pledged = func(b *projections.Backend, region string) int {
		if b.Server == "a" && region == "wild" {
			return 4
		}
		return 0
	}
	ranked, d := choose(q, fleetOf(destination("a", 6), destination("b", 5)))
	if got := served(ranked); !slices.Equal(got, []string{"b/wild", "a/wild"}) {
		t.Errorf("order %v, want b before a", got)
	}
	if raw := termOf(t, d.Candidates[1], "keptRegion").Raw; raw != 2 {
		t.Errorf("a is recorded with %v kept, want 2", raw)
	}
}

// TestChooseRegions: only the regions that fit the wish are candidates.
func TestChooseRegions(t *testing.T) {
	b := destination("b", 2)
	b.Regions = append(b.Regions, events.RegionBeat{Name: "wood", World: "minecraft:overworld", Kept: 5}, events.RegionBeat{Name: "worn", World: "minecraft:the_nether", Kept: 9})
	for wish, want := range map[events.Wish][]string{
		{}:                              {"b/wood", "b/worn", "b/wild"}, // wild is nearly empty; the others are alike
		{Region: "wild"}:                {"b/wild"},
		{World: "minecraft:overworld"}:  {"b/wood", "b/wild"},
		{World: "minecraft:the_nether"}: {"b/worn"},
	} {
		q := anywhere()
		q.wish = wish
		if ranked, _ := choose(q, fleetOf(b)); !slices.Equal(served(ranked), want) {
			t.Errorf("%+v: %v, want %v", wish, served(ranked), want)
		}
	}
}

// TestDecisionIsBounded: however large the fleet, a decision names eight candidates and eight
// examples for each reason, counts all, and stays under 4 KB.
func TestDecisionIsBounded(t *testing.T) {
	var backends []*projections.Backend
	const each = 100
	codes := []func(b *projections.Backend){
		func(*projections.Backend) {},
		func(b *projections.Backend) { b.State = events.Degraded },
		func(b *projections.Backend) { b.Accepting = false },
		func(b *projections.Backend) { b.Seen = t0.Add(-time.Minute) },
		func(b *projections.Backend) { b.Schema = 99 },
		func(b *projections.Backend) { b.ProtocolMax = 1 },
		func(b *projections.Backend) { b.Regions = nil },
		func(b *projections.Backend) { b.Regions[0].Kept = 0 },
	}
	for i := range each * len(codes) {
		b := destination(events.HostID(fmt.Sprintf("survival-%s-%04d", "europe-west-frankfurt", i)), 3)
		codes[i%len(codes)](b)
		backends = append(backends, b)
	}
	q := anywhere()
	q.protocol = 767
	ranked, d := choose(q, fleetOf(backends...))
	if len(ranked) != events.MaxCandidates || len(d.Candidates) != events.MaxCandidates {
		t.Errorf("%d ranked, %d recorded; want the best %d", len(ranked), len(d.Candidates), events.MaxCandidates)
	}
	if len(d.Filtered) != len(codes)-1 {
		t.Errorf("%d reasons, want %d", len(d.Filtered), len(codes)-1)
	}
	for _, f := range d.Filtered {
		if f.Count != each || len(f.Examples) > events.MaxExamples || len(f.Examples) == 0 {
			t.Errorf("%s: count %d with %d examples, want %d with at most %d", f.Code, f.Count, len(f.Examples), each, events.MaxExamples)
		}
	}
	if !slices.IsSortedFunc(d.Filtered, func(a, b events.Filtered) int {
		if a.Code < b.Code {
			return -1
		}
		return 1
	}) {
		t.Errorf("reasons are not sorted: %+v", d.Filtered)
	}
	body, err := events.Marshal(&d)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 4096 {
		t.Errorf("a decision of %d bytes, want at most 4096", len(body))
	}
}

// TestDecisionAge is the age of the newest heartbeat in the snapshot, never negative.
func TestDecisionAge(t *testing.T) {
	a, b := destination("a", 1), destination("b", 1)
	a.Seen, b.Seen = t0.Add(-900*time.Millisecond), t0.Add(-250*time.Millisecond)
	if _, d := choose(anywhere(), fleetOf(a, b)); d.AgeMs != 250 {
		t.Errorf("age %d ms, want 250", d.AgeMs)
	}
	b.Seen = t0.Add(time.Second)
	if _, d := choose(anywhere(), fleetOf(a, b)); d.AgeMs != 0 {
		t.Errorf("age %d ms, want 0", d.AgeMs)
	}
	if _, d := choose(anywhere(), fleetOf()); d.AgeMs != 0 || d.Candidates == nil || d.Filtered == nil {
		t.Errorf("an empty fleet gives %+v", d)
	}
}

// TestPermanent: no wait can help only when hosts are known and none of them has the region.
func TestPermanent(t *testing.T) {
	f := func(code events.Code, n int) events.Filtered { return events.Filtered{Code: code, Count: n} }
	rows := []struct {
		name     string
		filtered []events.Filtered
		found    int
		want     bool
	}{
		{"nobody is known", nil, 0, false},
		{"all lack it", []events.Filtered{f(events.RegionMissing, 3)}, 0, true},
		{"all but a stale one lack it", []events.Filtered{f(events.RegionMissing, 3), f(events.Stale, 1)}, 0, false},
		{"one has it, nothing kept", []events.Filtered{f(events.RegionMissing, 3), f(events.NoneKept, 1)}, 0, false},
		{"a pin, and the pinned one lacks it", []events.Filtered{f(events.Excluded, 5), f(events.RegionMissing, 1)}, 0, true},
		{"a pin that nobody answers to", []events.Filtered{f(events.Excluded, 5)}, 0, false},
		{"one has it", []events.Filtered{f(events.RegionMissing, 3)}, 1, false},
	}
	for _, row := range rows {
		d := events.Decision{Filtered: row.filtered, Candidates: make([]events.Candidate, row.found)}
		if got := permanent(d); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// aSeat is what a login without a transfer wants.
func aSeat() question {
	q := anywhere()
	q.join = true
	return q
}

// TestJoinFilters: a join needs a door and a seat, not a region.
func TestJoinFilters(t *testing.T) {
	for name, row := range map[string]struct {
		backend  func(b *projections.Backend)
		question func(q *question)
		want     events.Code
	}{
		"all well":                       {nil, nil, ""},
		"nothing kept":                   {func(b *projections.Backend) { b.Regions[0].Kept = 0 }, nil, ""},
		"no regions":                     {func(b *projections.Backend) { b.Regions = nil }, nil, ""},
		"a named lobby":                  {nil, func(q *question) { q.lobbies = map[events.HostID]bool{"b": true} }, ""},
		"degraded":                       {func(b *projections.Backend) { b.State = events.Degraded }, nil, ""},
		"an unknown limit is none":       {func(b *projections.Backend) { b.MaxPlayers, b.Players = 0, 500 }, nil, ""},
		"one seat left":                  {func(b *projections.Backend) { b.Players, b.Outstanding = 90, 9 }, nil, ""},
		"full":                           {func(b *projections.Backend) { b.Players = 100 }, nil, events.Full},
		"full with those who are due":    {func(b *projections.Backend) { b.Players, b.Outstanding = 90, 10 }, nil, events.Full},
		"full with what is promised":     {func(b *projections.Backend) { b.Players = 99 }, func(q *question) { q.pledged = func(*projections.Backend, string) int { return 1 } }, events.Full},
		"without a door":                 {func(b *projections.Backend) { b.Advertise = "" }, nil, events.Unreachable},
		"not to be dialled":              {nil, func(q *question) { q.exclude = map[events.HostID]events.Code{"b": events.Unreachable} }, events.Unreachable},
		"starting":                       {func(b *projections.Backend) { b.State = events.Starting }, nil, events.NotReady},
		"shutting down":                  {func(b *projections.Backend) { b.State = events.ShuttingDown }, nil, events.NotReady},
		"stale":                          {func(b *projections.Backend) { b.Seen = t0.Add(-time.Minute) }, nil, events.Stale},
		"closed by its operator":         {func(b *projections.Backend) { b.Accepting = false }, nil, events.NotAccepting},
		"drained":                        {nil, func(q *question) { q.drained = func(events.HostID) bool { return true } }, events.Drained},
		"another protocol":               {nil, func(q *question) { q.protocol = 5 }, events.ProtocolAbsent},
		"another wire version":           {func(b *projections.Backend) { b.Schema++ }, nil, events.SchemaRange},
		"fixed elsewhere, none but this": {nil, func(q *question) { q.policy = policyOf(t, PolicyConfig{Kind: "fixed:z"}) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, q := destination("b", 4), aSeat()
			if row.backend != nil {
				row.backend(b)
			}
			if row.question != nil {
				row.question(&q)
			}
			ranked, d := choose(q, fleetOf(b))
			got := events.Code("")
			if len(d.Filtered) > 0 {
				got = d.Filtered[0].Code
			}
			if got != row.want || (len(ranked) == 1) != (row.want == "") {
				t.Fatalf("ranked %d, filtered %+v; want %q", len(ranked), d.Filtered, row.want)
			}
		})
	}
}

// TestJoinOrder: the policy ranks whole servers; lobbies first, degraded servers last.
func TestJoinOrder(t *testing.T) {
	lobby := func(id events.HostID) *projections.Backend {
		b := destination(id, 0)
		b.Regions = []events.RegionBeat{}
		return b
	}
	sick := func(b *projections.Backend) *projections.Backend { b.State = events.Degraded; return b }
	busy := func(b *projections.Backend, mspt float64, players int) *projections.Backend {
		b.MSPT, b.Players = &mspt, players
		return b
	}
	for name, row := range map[string]struct {
		policy  PolicyConfig
		named   events.HostID // a lobby by its name
		cooling events.HostID
		fleet   *projections.Fleet
		want    string
	}{
		"ties in the order of ids":         {fleet: fleetOf(destination("a", 0), destination("b", 9), destination("c", 0)), want: "abc"},
		"by the policy's terms":            {fleet: fleetOf(busy(destination("a", 9), 45, 0), busy(destination("b", 0), 10, 0)), want: "ba"},
		"by players":                       {policy: PolicyConfig{Kind: LeastPlayers}, fleet: fleetOf(busy(destination("a", 9), 1, 30), busy(destination("b", 0), 45, 20)), want: "ba"},
		"lobbies first":                    {fleet: fleetOf(destination("a", 9), busy(lobby("b"), 49, 99), busy(lobby("c"), 10, 9)), want: "cba"},
		"a named lobby is one":             {named: "b", fleet: fleetOf(destination("a", 9), destination("b", 9)), want: "ba"},
		"degraded last, be it a lobby":     {fleet: fleetOf(sick(lobby("a")), sick(destination("b", 1)), destination("c", 0)), want: "cab"},
		"a stalled one last":               {cooling: "a", fleet: fleetOf(destination("a", 0), sick(destination("b", 9))), want: "ba"},
		"the fixed one first":              {policy: PolicyConfig{Kind: "fixed:c"}, fleet: fleetOf(destination("a", 9), destination("b", 9), destination("c", 9)), want: "cab"},
		"after the lobbies, the fixed one": {policy: PolicyConfig{Kind: "fixed:c"}, fleet: fleetOf(destination("a", 9), lobby("b"), destination("c", 9)), want: "bca"},
	} {
		t.Run(name, func(t *testing.T) {
			q := aSeat()
			q.policy = policyOf(t, row.policy)
			q.lobbies = map[events.HostID]bool{row.named: true}
			q.cooling = map[events.HostID]events.Code{row.cooling: events.OnCooldown}
			ranked, d := choose(q, row.fleet)
			var got strings.Builder
			for i, c := range ranked {
				got.WriteString(string(c.backend.Server))
				if c.region != "" || d.Candidates[i].Server != c.backend.Server || d.Candidates[i].Region != "" {
					t.Errorf("%s: region %q, recorded %+v", c.backend.Server, c.region, d.Candidates[i])
				}
			}
			if got.String() != row.want {
				t.Errorf("%q, want %q", got.String(), row.want)
			}
		})
	}
}

// TestJoinRecord: what a join does not ask for is left out and named, and why one is before
// another although it scores worse.
func TestJoinRecord(t *testing.T) {
	mspt := 49.0
	a, b := destination("a", 9), destination("b", 9)
	b.Regions, b.MSPT, b.State = []events.RegionBeat{}, &mspt, events.Degraded
	q := aSeat()
	q.memories = &memories{}
	q.memories.init()
	q.memories.letIn("a", a.Seq)
	q.memories.letIn("a", a.Seq)
	q.memories.letIn("b", b.Seq-1)
	q.policy = policyOf(t, PolicyConfig{Terms: append(ShippedTerms(), TermConfig{Input: PlayerCount, Weight: 1}, TermConfig{Input: StickyRegion, Weight: 1})})
	ranked, d := choose(q, fleetOf(a, b))
	if len(ranked) != 2 || ranked[0].backend != a {
		t.Fatalf("ranked %v", served(ranked))
	}
	if d.Unreported != "queueDepth,heapUsed,keptCount,keptRegion,stickyRegion" {
		t.Errorf("unreported %q", d.Unreported)
	}
	if raw := termOf(t, d.Candidates[0], "playerCount").Raw; raw != 2 {
		t.Errorf("a has %v players, want the 2 who are on the way", raw)
	}
	if raw := termOf(t, d.Candidates[1], "playerCount").Raw; raw != 0 {
		t.Errorf("b has %v players, want none: a newer heartbeat counts them", raw)
	}
	for _, name := range []string{termLobby, termSick} {
		if termOf(t, d.Candidates[1], name).Raw != 1 {
			t.Errorf("%s is not recorded", name)
		}
	}
}

// TestLobbiesAreNoDestination: a lobby by its name has regions for nobody, itself included.
func TestLobbiesAreNoDestination(t *testing.T) {
	q := anywhere()
	q.lobbies, q.home = map[events.HostID]bool{"a": true}, "a"
	ranked, d := choose(q, fleetOf(destination("a", 9), destination("b", 1)))
	if got := served(ranked); !slices.Equal(got, []string{"b/wild"}) || len(d.Filtered) != 1 || d.Filtered[0].Code != events.LobbyOnly {
		t.Errorf("ranked %v, filtered %+v", got, d.Filtered)
	}
	q.wish.Pin = "a"
	if _, d := choose(q, fleetOf(destination("a", 9), destination("b", 1))); !permanent(d) {
		t.Errorf("a wait for %+v would help", d.Filtered)
	}
	f := fleetOf(destination("a", 9))
	for _, row := range []struct {
		fleet   *projections.Fleet
		lobbies map[events.HostID]bool
		want    events.Code
	}{{f, nil, ""}, {f, q.lobbies, events.RegionMissing}, {fleetOf(), q.lobbies, ""}} {
		if got := hopeless(events.Wish{}, 0, row.fleet, row.lobbies); got != row.want {
			t.Errorf("of %d hosts, lobbies %v: %q, want %q", len(row.fleet.Backends), row.lobbies, got, row.want)
		}
	}
}

// termOf gives a candidate's term, which must be there.
func termOf(t *testing.T, c events.Candidate, name string) events.Term {
	t.Helper()
	for _, x := range c.Terms {
		if x.Name == name {
			return x
		}
	}
	t.Fatalf("%s/%s has no term %s: %+v", c.Server, c.Region, name, c.Terms)
	return events.Term{}
}
