package actors

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

func policyOf(t testing.TB, cfg PolicyConfig) Policy {
	t.Helper()
	p, err := NewPolicy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// scoreOf is the score of one backend, filters aside.
func scoreOf(q question, backends ...*projections.Backend) []float64 {
	var r ranking
	for _, b := range backends {
		all := 0
		for _, x := range b.Regions {
			all += x.Kept
		}
		c := choice{backend: b, region: b.Regions[0].Name, kept: b.Regions[0].Kept, all: all, rtt: math.NaN(), row: len(r.cands)}
		r.cands = append(r.cands, c)
	}
	r.score(q.policy.rules(), &q)
	var out []float64
	for _, c := range r.cands {
		out = append(out, c.score)
	}
	return out
}

// reporting is a backend with everything measured.
func reporting(id events.HostID, mspt float64, queue, limit int, heap float64, kept int) *projections.Backend {
	b := destination(id, kept)
	b.MSPT, b.QueueDepth, b.SoftCap = &mspt, &queue, &limit
	b.HeapUsed, b.HeapMax = new(int64(heap*1000)), new(int64(1000))
	return b
}

// TestScoreGolden: the shipped table, worked out by hand.
func TestScoreGolden(t *testing.T) {
	rows := []struct {
		b    *projections.Backend
		want float64
	}{
		{reporting("b", 20, 0, 100, .5, 32), 0.352849},
		{reporting("b", 45, 0, 100, .5, 64), 0.953807},
		{reporting("b", 20, 10, 50, .9, 64), 5.210834},
		{reporting("b", 10, 0, 100, .2, 3), 5.277863},
		{reporting("b", 10, 0, 100, .2, 4), 0.276258},
		{reporting("b", 0, 0, 0, 0, 0), 5.25}, // all zeros, and measured: the heap's limit is known
	}
	for _, row := range rows {
		got := scoreOf(anywhere(), row.b)[0]
		if math.Abs(got-row.want) > 5e-7 {
			t.Errorf("mspt %v, queue %v of %v, heap %v, kept %v: %.6f, want %.6f",
				*row.b.MSPT, *row.b.QueueDepth, *row.b.SoftCap, *row.b.HeapUsed, row.b.Kept(), got, row.want)
		}
	}
}

// TestRegionGate fires when a pool is nearly empty: at three coordinates, not at four.
func TestRegionGate(t *testing.T) {
	for kept := 1; kept <= 70; kept++ {
		_, d := choose(anywhere(), fleetOf(destination("b", kept)))
		if fires := termOf(t, d.Candidates[0], "keptRegion").Score == 5; fires != (kept <= 3) {
			t.Errorf("%d kept: fires %v", kept, fires)
		}
	}
}

// TestHeapWithoutALimit: a limit of 0 is unknown; it is neither ideal nor the worst while
// nobody reports one, and the worst as soon as somebody does.
func TestHeapWithoutALimit(t *testing.T) {
	a, b := destination("a", 20), destination("b", 20)
	a.HeapUsed, a.HeapMax = new(int64(10)), new(int64(0))
	_, d := choose(anywhere(), fleetOf(a, b))
	if d.Unreported != "mspt,queueDepth,heapUsed" || d.Candidates[0].Server != "a" || d.Candidates[0].Score != d.Candidates[1].Score {
		t.Errorf("nobody reports a heap: %+v", d)
	}
	b.HeapUsed, b.HeapMax = new(int64(10)), new(int64(100))
	_, d = choose(anywhere(), fleetOf(a, b))
	x := termOf(t, d.Candidates[1], "heapUsed")
	if d.Unreported != "mspt,queueDepth" || d.Candidates[0].Server != "b" || !x.Missing || x.Score != 5 || x.Raw != 0 {
		t.Errorf("b reports a heap: %+v", d)
	}
}

// TestMissingIsWorst: for every input, who does not report it comes after who reports the
// worst that is not the worst. NaN and negative numbers are no reports.
func TestMissingIsWorst(t *testing.T) {
	rows := []struct {
		input Input
		bad   func(b *projections.Backend) // reports something bad, but not the worst
		none  []func(b *projections.Backend)
	}{
		{MSPT, func(b *projections.Backend) { b.MSPT = new(49.0) }, []func(b *projections.Backend){
			func(b *projections.Backend) {}, func(b *projections.Backend) { b.MSPT = new(math.NaN()) },
			func(b *projections.Backend) { b.MSPT = new(-1.0) }, func(b *projections.Backend) { b.MSPT = new(math.Inf(1)) },
			func(b *projections.Backend) { b.MSPT = new(math.Inf(-1)) },
		}},
		{TPS, func(b *projections.Backend) { b.TPS = new(1.0) }, []func(b *projections.Backend){
			func(b *projections.Backend) {}, func(b *projections.Backend) { b.TPS = new(math.NaN()) },
		}},
		{QueueDepth, func(b *projections.Backend) { b.QueueDepth, b.SoftCap = new(9), new(10) }, []func(b *projections.Backend){
			func(b *projections.Backend) {}, func(b *projections.Backend) { b.SoftCap = new(100) },
			func(b *projections.Backend) { b.QueueDepth = new(-3) }, func(b *projections.Backend) { b.QueueDepth = new(1) }, // one without a cap is full
		}},
		{HeapUsed, func(b *projections.Backend) { b.HeapUsed, b.HeapMax = new(int64(99)), new(int64(100)) }, []func(b *projections.Backend){
			func(b *projections.Backend) {}, func(b *projections.Backend) { b.HeapUsed = new(int64(0)) },
			func(b *projections.Backend) { b.HeapMax = new(int64(100)) }, func(b *projections.Backend) { b.HeapUsed, b.HeapMax = new(int64(0)), new(int64(0)) },
		}},
		{HeapFree, func(b *projections.Backend) { b.HeapUsed, b.HeapMax = new(int64(99)), new(int64(100)) }, []func(b *projections.Backend){func(b *projections.Backend) {}}},
		{PipelineMs, func(b *projections.Backend) { b.PipelineMs = new(1999.0) }, []func(b *projections.Backend){
			func(b *projections.Backend) {}, func(b *projections.Backend) { b.PipelineMs = new(math.NaN()) },
		}},
	}
	for _, row := range rows {
		q := anywhere()
		q.policy = policyOf(t, PolicyConfig{Terms: []TermConfig{{Input: row.input, Weight: 1}}})
		for i, none := range row.none {
			a, b := destination("a", 20), destination("b", 20) // a would win a tie
			none(a)
			row.bad(b)
			if ranked, d := choose(q, fleetOf(a, b)); ranked[0].backend != b || d.Unreported != "" || d.Candidates[1].Score != 1 {
				t.Errorf("%s, case %d: %v, %+v", row.input, i, served(ranked), d)
			}
		}
		_, d := choose(q, fleetOf(destination("a", 20), destination("b", 20)))
		if d.Unreported != string(row.input) || len(d.Candidates[0].Terms) != 0 || d.Candidates[0].Server != "a" {
			t.Errorf("%s reported by nobody: %+v", row.input, d)
		}
	}
}

// TestTPS is worked out from mspt where a server does not report it.
func TestTPS(t *testing.T) {
	q := anywhere()
	q.policy = policyOf(t, PolicyConfig{Terms: []TermConfig{{Input: TPS, Weight: 1}}})
	for mspt, want := range map[float64]float64{0: 0, 20: 0, 50: 0, 100: 0.5, 200: 0.75} {
		b := destination("b", 9)
		b.MSPT = &mspt
		if got := scoreOf(q, b)[0]; math.Abs(got-want) > 1e-9 {
			t.Errorf("mspt %v: %v, want %v", mspt, got, want)
		}
		b.TPS = new(15.0)
		if got := scoreOf(q, b)[0]; math.Abs(got-0.25) > 1e-9 {
			t.Errorf("15 tps reported beside mspt %v: %v", mspt, got)
		}
	}
}

// TestScales: each input from its best to its worst, and what lies beyond.
func TestScales(t *testing.T) {
	for _, row := range []struct {
		input Input
		want  map[float64]float64
	}{
		{MSPT, map[float64]float64{0: 0, 25: .5, 50: 1, 500: 1}},
		{TPS, map[float64]float64{0: 1, 10: .5, 20: 0, 25: 0}},
		{QueueDepth, map[float64]float64{0: 0, .5: .5, 1: 1, 40: 1}},
		{HeapUsed, map[float64]float64{0: 0, .5: .5, 1: 1}},
		{HeapFree, map[float64]float64{0: 0, .9: .9}},
		{PlayerCount, map[float64]float64{0: 0, 50: .5, 100: 1, 900: 1}},
		{KeptCount, map[float64]float64{0: 1, 32: .5, 64: 0, 100: 0}},
		{KeptRegion, map[float64]float64{0: 1, 3: .953125, 4: .9375, 64: 0}},
		{RecentPicks, map[float64]float64{0: 0, 2: .25, 8: 1, 80: 1}},
		{PipelineMs, map[float64]float64{0: 0, 1000: .5, 2000: 1}},
		{ProxyRTT, map[float64]float64{0: 0, 50: .25, 200: 1}},
		{StickyRegion, map[float64]float64{1: 0, 0: 1}},
	} {
		m, ok := measureOf(row.input)
		if !ok {
			t.Fatalf("no measure of %s", row.input)
		}
		for raw, want := range row.want {
			if got := m.of(raw); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s %v: %v, want %v", row.input, raw, got, want)
			}
		}
	}
	if len(measures) != 12 {
		t.Errorf("%d inputs, tested 12", len(measures))
	}
}

// TestNormalize replaces an input's scale and keeps its direction.
func TestNormalize(t *testing.T) {
	q := anywhere()
	q.policy = policyOf(t, PolicyConfig{Terms: []TermConfig{
		{Input: MSPT, Weight: 1, Normalize: &Range{Min: 20, Max: 120}},
		{Name: "pool", Input: KeptCount, Weight: 10, Normalize: &Range{Min: 10, Max: 20}},
	}})
	for _, row := range []struct {
		mspt float64
		kept int
		want float64
	}{{20, 20, 0}, {10, 30, 0}, {70, 20, .5}, {120, 20, 1}, {20, 15, 5}, {20, 10, 10}, {20, 1, 10}} {
		b := destination("b", row.kept)
		b.MSPT = &row.mspt
		if got := scoreOf(q, b)[0]; math.Abs(got-row.want) > 1e-9 {
			t.Errorf("mspt %v, kept %d: %v, want %v", row.mspt, row.kept, got, row.want)
		}
	}
}

// TestBackendWeight divides a score; the record says so, and its terms add up all the same.
func TestBackendWeight(t *testing.T) {
	q := anywhere()
	a, b := destination("a", 8), destination("b", 8)
	q.policy = policyOf(t, PolicyConfig{Weights: map[events.HostID]float64{"a": 0.5, "b": 2}})
	ranked, d := choose(q, fleetOf(a, b))
	if got := served(ranked); !slices.Equal(got, []string{"b/wild", "a/wild"}) {
		t.Errorf("order %v", got)
	}
	if ratio := d.Candidates[1].Score / d.Candidates[0].Score; math.Abs(ratio-4) > 1e-9 {
		t.Errorf("half against double weight: ratio %v", ratio)
	}
	for _, c := range d.Candidates {
		sum := 0.0
		for _, x := range c.Terms {
			sum += x.Score
		}
		if math.Abs(sum-c.Score) > 1e-12 || termOf(t, c, "backendWeight").Raw != map[events.HostID]float64{"a": 0.5, "b": 2}[c.Server] {
			t.Errorf("%s: terms add up to %v of %v: %+v", c.Server, sum, c.Score, c.Terms)
		}
	}
}

// TestProxyRTT is what this dispatcher's own edge measured.
func TestProxyRTT(t *testing.T) {
	q := anywhere()
	q.policy = policyOf(t, PolicyConfig{Terms: []TermConfig{{Input: ProxyRTT, Weight: 1}}})
	q.memories = &memories{}
	q.memories.init()
	q.memories.measured("b", 20*time.Millisecond)
	q.memories.measured("c", 60*time.Millisecond)
	ranked, d := choose(q, fleetOf(destination("a", 9), destination("b", 9), destination("c", 9)))
	if got := served(ranked); !slices.Equal(got, []string{"b/wild", "c/wild", "a/wild"}) {
		t.Errorf("order %v", got)
	}
	if x := termOf(t, d.Candidates[0], "proxyRtt"); x.Raw != 20 || x.Score != 0.1 || !termOf(t, d.Candidates[2], "proxyRtt").Missing {
		t.Errorf("recorded %+v", d.Candidates)
	}
}

// TestStickyRegion prefers the place of the player's last transfer.
func TestStickyRegion(t *testing.T) {
	q := anywhere()
	q.policy = policyOf(t, PolicyConfig{Terms: []TermConfig{{Input: StickyRegion, Weight: 1, Curve: Curve{Shape: Step, Threshold: 0.5}}}})
	f := fleetOf(destination("a", 9), destination("b", 9))
	if ranked, d := choose(q, f); ranked[0].backend.Server != "a" || d.Unreported != "stickyRegion" {
		t.Errorf("a newcomer: %v, %+v", served(ranked), d)
	}
	for last, want := range map[place]events.HostID{{"b", "wild"}: "b", {"b", "wood"}: "a", {"z", "wild"}: "a"} {
		q.last = last
		if ranked, _ := choose(q, f); ranked[0].backend.Server != want {
			t.Errorf("last in %v: %v", last, served(ranked))
		}
	}
}

// TestPicksSpread: a hundred choices in one snapshot interval over equal servers come out
// even, and the decision shows what held each of them back.
func TestPicksSpread(t *testing.T) {
	q := anywhere()
	q.memories = &memories{}
	q.memories.init()
	f := fleetOf(destination("a", 64), destination("b", 64), destination("c", 64), destination("d", 64))
	got := map[events.HostID]int{}
	var last events.Decision
	for range 100 {
		ranked, d := choose(q, f)
		got[ranked[0].backend.Server]++
		q.memories.picked(ranked[0].backend.Server, q.now, shippedHalfLife)
		q.now, last = q.now.Add(5*time.Millisecond), d
	}
	for id, n := range got {
		if n < 23 || n > 27 {
			t.Errorf("%s was picked %d times of 100", id, n)
		}
	}
	if x := termOf(t, last.Candidates[0], "recentPicks"); x.Raw == 0 || x.Score == 0 {
		t.Errorf("the decision does not show the picks: %+v", last.Candidates[0])
	}
}

// TestSharedPicks: the claims of others count only where the policy says so.
func TestSharedPicks(t *testing.T) {
	q := anywhere()
	q.memories = &memories{}
	q.memories.init()
	q.memories.pickedElsewhere("a", t0, shippedHalfLife)
	f := fleetOf(destination("a", 64), destination("b", 64))
	if ranked, _ := choose(q, f); ranked[0].backend.Server != "a" {
		t.Errorf("local picks: %v", served(ranked))
	}
	terms := ShippedTerms()
	for i := range terms {
		terms[i].Shared = true
	}
	q.policy = policyOf(t, PolicyConfig{Terms: terms})
	if ranked, d := choose(q, f); ranked[0].backend.Server != "b" || termOf(t, d.Candidates[1], "recentPicks").Raw != 1 {
		t.Errorf("shared picks: %v", served(ranked))
	}
}

// TestScoresAreNumbers: whatever is reported, every score is a finite number.
func TestScoresAreNumbers(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, math.MaxFloat64, math.SmallestNonzeroFloat64, 50}
	var terms []TermConfig
	for _, m := range measures {
		terms = append(terms, TermConfig{Input: m.input, Weight: maxWeight, Curve: Curve{Shape: Sigmoid, K: maxK, X0: 1}})
	}
	q := anywhere()
	q.policy = policyOf(t, PolicyConfig{Terms: terms, Weights: map[events.HostID]float64{"b": minBackendWeight}})
	for _, x := range odd {
		for _, n := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
			b := destination("b", 1)
			b.MSPT, b.TPS, b.PipelineMs, b.HeapUsed, b.HeapMax = &x, &x, &x, &n, new(int64(1))
			b.QueueDepth, b.SoftCap, b.Players = new(int(n)), new(int(n)), int(n)
			_, d := choose(q, fleetOf(b, reporting("c", 1, 1, 1, 1, 1)))
			for _, c := range d.Candidates {
				values := []float64{c.Score}
				for _, x := range c.Terms {
					values = append(values, x.Raw, x.Score)
				}
				for _, v := range values {
					if !(v >= 0) || math.IsInf(v, 0) {
						t.Fatalf("%v, %d: %+v", x, n, c)
					}
				}
			}
		}
	}
}

// TestChoiceTables shows what the shipped policy makes of typical fleets.
func TestChoiceTables(t *testing.T) {
	busy := []*projections.Backend{
		reporting("calm", 20, 0, 100, .5, 32), reporting("slow", 45, 0, 100, .5, 64),
		reporting("full-heap", 20, 10, 50, .9, 64), reporting("nearly-empty", 10, 0, 100, .2, 3), reporting("small", 10, 0, 100, .2, 4),
	}
	silent := reporting("silent", 0, 0, 0, 0, 32)
	silent.MSPT, silent.HeapMax, silent.QueueDepth = nil, new(int64(0)), nil
	stock := []*projections.Backend{destination("stock-1", 16), destination("stock-2", 12), destination("stock-3", 2)}
	var out strings.Builder
	for _, x := range []struct {
		name  string
		fleet *projections.Fleet
	}{{"measured", fleetOf(busy...)}, {"one measures nothing", fleetOf(append(busy, silent)...)}, {"nobody measures", fleetOf(stock...)}} {
		_, d := choose(anywhere(), x.fleet)
		fmt.Fprintf(&out, "# %s: %s, left out: %q\n", x.name, d.Policy, d.Unreported)
		for _, c := range d.Candidates {
			fmt.Fprintf(&out, "%-14s %9.6f ", c.Server, c.Score)
			for _, x := range c.Terms {
				fmt.Fprintf(&out, " %s=%g:%.6f%s", x.Name, x.Raw, x.Score, map[bool]string{true: "(missing)"}[x.Missing])
			}
			out.WriteByte('\n')
		}
	}
	golden(t, "choose/shipped.txt", out.String())
}
