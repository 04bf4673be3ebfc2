package actors

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// Kinds of policy. "fixed:<serverId>" is the fourth.
const (
	Weighted     = "weighted"     // the lowest weighted sum of terms
	RoundRobin   = "roundRobin"   // the one that this dispatcher has not picked for longest
	LeastPlayers = "leastPlayers" // the fewest players, online or promised a place

	fixedPrefix = "fixed:"
)

// PolicyConfig says how a destination is chosen among those that pass the filters. Keys in
// errors are those of network.yml.
type PolicyConfig struct {
	Kind string // weighted when empty
	// Terms of a weighted policy, nil for the shipped ones. Those of weight 0 are left out;
	// without any other the policy is a roundRobin.
	Terms []TermConfig
	// Weights divide the scores of weighted and leastPlayers: a backend of 2 is preferred
	// to one of 1, which is what a backend not named here has.
	Weights map[events.HostID]float64
	// PreferHome serves a request that names no server where the player stands, if it can be
	// served there. Else other servers are preferred, and home is the last resort.
	PreferHome bool
}

// TermConfig is one summand of the score.
type TermConfig struct {
	Name      string // in decisions; the input when empty
	Input     Input
	Weight    float64
	Normalize *Range // replaces the input's own scale
	Curve     Curve
	// HalfLife and Shared are of recentPicks: the time in which a pick loses half its weight
	// (10 s when 0), and whether the claims of other dispatchers count too.
	HalfLife time.Duration
	Shared   bool
}

// Range is a scale: Min counts as best and Max as worst, or the other way round for an input
// of which more is better (tps, keptCount, keptRegion, stickyRegion).
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// Bounds of a policy.
const (
	maxWeight        = 1000
	minBackendWeight = 0.01
	maxTerms         = 16 // with a weight: a decision must hold them
	maxScale         = 1e9

	shippedHalfLife = 10 * time.Second
	minHalfLife     = 100 * time.Millisecond
	maxHalfLife     = time.Hour
)

// ShippedTerms is how destinations are scored unless the operator says otherwise.
func ShippedTerms() []TermConfig {
	return []TermConfig{
		{Input: MSPT, Weight: 1, Curve: Curve{Shape: Sigmoid, K: 8, X0: 0.6}},
		{Input: QueueDepth, Weight: 1, Curve: Curve{Shape: Exponential, K: 3}},
		{Input: HeapUsed, Weight: 5, Curve: Curve{Shape: Step, Threshold: 0.85}},
		{Input: KeptRegion, Weight: 5, Curve: Curve{Shape: Step, Threshold: 0.95}}, // fires when the pool is nearly empty
		{Input: KeptCount, Weight: 0.25, Curve: Curve{Shape: Logarithmic, K: 9}},
		{Input: RecentPicks, Weight: 0.5, HalfLife: shippedHalfLife},
	}
}

// Policy is a checked PolicyConfig, ready for use and never changed. The zero Policy stands
// for the shipped one.
type Policy struct{ p *policy }

// NewPolicy refuses parameters that cannot be meant, naming the key and what is allowed.
func NewPolicy(cfg PolicyConfig) (Policy, error) {
	if err := cfg.Validate(); err != nil {
		return Policy{}, err
	}
	return Policy{p: cfg.build()}, nil
}

// Name is kind and hash, as decisions record it: the same name is the same policy.
func (p Policy) Name() string { return p.rules().name }

// rules are those of the shipped policy for a Policy that was not made.
func (p Policy) rules() *policy {
	if p.p == nil {
		return shipped()
	}
	return p.p
}

var shipped = sync.OnceValue(func() *policy { return PolicyConfig{}.build() })

// policy is a Policy at work.
type policy struct {
	kind     string
	fixed    events.HostID // of fixed:<serverId>
	name     string
	terms    []term // of weighted
	weights  map[events.HostID]float64
	home     bool
	halfLife time.Duration
	counts   bool // recent picks
	shared   bool // and those of others
}

func (p *policy) divisor(id events.HostID) float64 {
	if w, ok := p.weights[id]; ok {
		return max(minBackendWeight, w)
	}
	return 1
}

// Validate reports the first parameter that is out of bounds.
func (c PolicyConfig) Validate() error {
	if err := c.checkKind(); err != nil {
		return err
	}
	seen, weighted, picks := map[string]bool{}, 0, ""
	for _, t := range c.Terms {
		key := "loadBalancer.terms." + t.label()
		if err := t.check(); err != nil {
			return fmt.Errorf("%s.%w", key, err)
		}
		switch {
		case seen[t.label()]:
			return fmt.Errorf("%s: is given twice; allowed: once", key)
		case t.Input == RecentPicks && t.Weight > 0 && picks != "":
			return fmt.Errorf("%s: recentPicks is counted by %s already; allowed: one term of it with a weight", key, picks)
		case t.Input == RecentPicks && t.Weight > 0:
			picks = t.label()
		}
		seen[t.label()] = true
		if t.Weight > 0 {
			weighted++
		}
	}
	if weighted > maxTerms {
		return fmt.Errorf("loadBalancer.terms: %d terms have a weight; allowed: at most %d", weighted, maxTerms)
	}
	for id, w := range c.Weights {
		if err := within("weight", w, minBackendWeight, maxWeight); err != nil {
			return fmt.Errorf("loadBalancer.backends.%s.%w", id, err)
		}
	}
	return nil
}

func (c PolicyConfig) checkKind() error {
	switch c.Kind {
	case "", Weighted, RoundRobin, LeastPlayers:
		return nil
	}
	if id, ok := strings.CutPrefix(c.Kind, fixedPrefix); ok {
		if _, err := events.ParseHostID(id); err == nil {
			return nil
		}
	}
	return fmt.Errorf("loadBalancer.policy: %q is not allowed; allowed: weighted, roundRobin, leastPlayers, fixed:<serverId>", c.Kind)
}

func (t TermConfig) label() string { return cmp.Or(t.Name, string(t.Input)) }

// check gives an error that begins with the key under the term.
func (t TermConfig) check() error {
	if _, ok := measureOf(t.Input); !ok {
		return fmt.Errorf("input: %q is not an input; allowed: %s", t.Input, inputNames())
	}
	if _, err := events.ParseHostID(t.label()); err != nil {
		return fmt.Errorf("name: %q; allowed: [A-Za-z0-9_-]{1,63}", t.label())
	}
	if err := within("weight", t.Weight, 0, maxWeight); err != nil {
		return err
	}
	if n := t.Normalize; n != nil && !(n.Min < n.Max && math.Abs(n.Min) <= maxScale && math.Abs(n.Max) <= maxScale) {
		return fmt.Errorf("normalize: %v to %v is not allowed; allowed: min < max, each -1e9..1e9", n.Min, n.Max)
	}
	if t.HalfLife != 0 && (t.HalfLife < minHalfLife || t.HalfLife > maxHalfLife) {
		return fmt.Errorf("halfLifeSeconds: %v is not allowed; allowed: 0.1..3600", t.HalfLife.Seconds())
	}
	if err := t.Curve.Validate(); err != nil {
		return fmt.Errorf("curve.%w", err)
	}
	return nil
}

func inputNames() string {
	names := make([]string, len(measures))
	for i, m := range measures {
		names[i] = string(m.input)
	}
	return strings.Join(names, ", ")
}

// build makes the rules of a valid configuration.
func (c PolicyConfig) build() *policy {
	p := &policy{kind: cmp.Or(c.Kind, Weighted), home: c.PreferHome, halfLife: shippedHalfLife, weights: map[events.HostID]float64{}}
	if id, ok := strings.CutPrefix(p.kind, fixedPrefix); ok {
		p.kind, p.fixed = fixedPrefix, events.HostID(id)
	}
	if c.Terms == nil {
		c.Terms = ShippedTerms()
	}
	if p.kind == Weighted {
		p.take(c.Terms)
	}
	for id, w := range c.Weights {
		if w != 1 && (p.kind == Weighted || p.kind == LeastPlayers) {
			p.weights[id] = w
		}
	}
	p.name = p.kind + string(p.fixed) + "/" + p.hash()
	return p
}

// take makes the terms of those that have a weight, in the order of the inputs.
func (p *policy) take(terms []TermConfig) {
	for _, t := range terms {
		if t.Weight == 0 {
			continue
		}
		m, _ := measureOf(t.Input)
		if t.Normalize != nil {
			m.low, m.high = t.Normalize.Min, t.Normalize.Max
		}
		if t.Input == RecentPicks {
			p.counts, p.halfLife, p.shared = true, cmp.Or(t.HalfLife, shippedHalfLife), t.Shared
		}
		p.terms = append(p.terms, term{name: t.label(), input: t.Input, weight: t.Weight, measure: m, bend: t.Curve.bend()})
	}
	if len(p.terms) == 0 {
		p.kind = RoundRobin
	}
	order := func(t term) int {
		return slices.IndexFunc(measures, func(m measure) bool { return m.input == t.input })
	}
	slices.SortFunc(p.terms, func(a, b term) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.name, b.name))
	})
}

// hash is the first 8 hex digits over everything that makes a difference.
func (p *policy) hash() string {
	type summand struct {
		Name, Input string
		Weight      float64
		Scale       Range
		Curve       Curve
	}
	what := struct {
		Kind, Fixed string
		Terms       []summand
		Weights     map[events.HostID]float64
		Home        bool
		HalfLife    time.Duration
		Shared      bool
	}{Kind: p.kind, Fixed: string(p.fixed), Weights: p.weights, Home: p.home}
	for _, t := range p.terms {
		what.Terms = append(what.Terms, summand{t.name, string(t.input), t.weight, Range{t.measure.low, t.measure.high}, t.bend.Curve})
		if t.input == RecentPicks {
			what.HalfLife, what.Shared = p.halfLife, p.shared
		}
	}
	text, err := json.Marshal(what)
	if err != nil {
		panic("policy: " + err.Error()) // numbers are within bounds: no NaN
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

// SetPolicy replaces the policy: choices from now on follow it.
func (d *Dispatcher) SetPolicy(p Policy) { d.policy.Store(&p) }
