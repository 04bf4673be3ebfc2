package actors

import (
	"cmp"
	"math"
	"slices"

	"github.com/landfall/landfall/events"
)

// Rescored is a recorded choice under another policy.
type Rescored struct {
	// Candidates are those that were recorded, best first under the policy, each with the terms
	// that could be worked out.
	Candidates []events.Candidate
	// Unknown names what the policy wants to know and the record does not tell: it counts for
	// nothing in the scores.
	Unknown []string
}

// Rescore ranks the recorded candidates of a decision under this policy, by the values that
// were recorded. It sees only the best ones, as they were under the policy of that time, and of
// their inputs only those that it gave a weight.
func (p Policy) Rescore(d events.Decision) Rescored {
	rules := p.rules()
	out := Rescored{Candidates: make([]events.Candidate, len(d.Candidates))}
	for i, c := range d.Candidates {
		out.Candidates[i] = events.Candidate{Server: c.Server, Region: c.Region}
	}
	switch rules.kind {
	case Weighted:
		out.weigh(rules, d)
	case LeastPlayers:
		out.count(rules, d)
	case RoundRobin:
		out.Unknown = []string{termTurn}
	}
	order := make([]int, len(d.Candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(rules.recordedTier(d.Candidates[a]), rules.recordedTier(d.Candidates[b])),
			cmp.Compare(out.Candidates[a].Score, out.Candidates[b].Score),
		) // then as they stood
	})
	ranked := make([]events.Candidate, len(order))
	for place, i := range order {
		ranked[place] = out.Candidates[i]
	}
	out.Candidates = ranked
	return out
}

// recordedTier puts the server of a fixed policy first, and home first or last.
func (p *policy) recordedTier(c events.Candidate) int {
	tier := 0
	if p.fixed != "" && p.fixed != c.Server {
		tier = 2
	}
	if _, home := recorded(c, termHome); home != p.home {
		tier++
	}
	return tier
}

// weigh gives each candidate the sum of the terms whose values were recorded.
func (r *Rescored) weigh(p *policy, d events.Decision) {
	for i := range p.terms {
		t := &p.terms[i]
		if !r.weighTerm(t, d) {
			r.Unknown = append(r.Unknown, t.name)
		}
	}
	for i := range r.Candidates {
		c := &r.Candidates[i]
		divisor := p.divisor(c.Server)
		for k := range c.Terms {
			c.Terms[k].Score /= divisor
			c.Score += c.Terms[k].Score
		}
		if divisor != 1 {
			c.Terms = append(c.Terms, events.Term{Name: termWeight, Raw: divisor})
		}
	}
}

// weighTerm adds a term to the candidates; false when no candidate tells its value.
func (r *Rescored) weighTerm(t *term, d events.Decision) bool {
	raws, told := make([]float64, len(d.Candidates)), false
	for i, c := range d.Candidates {
		raw, ok := recorded(c, t.name, string(t.input))
		if !ok {
			raw = missing
		}
		raws[i], told = raw, told || !math.IsNaN(raw)
	}
	if !told {
		return false
	}
	for i, raw := range raws {
		x := events.Term{Name: t.name, Raw: raw, Score: t.of(raw)}
		if math.IsNaN(raw) {
			x.Raw, x.Missing = 0, true
		}
		r.Candidates[i].Terms = append(r.Candidates[i].Terms, x)
	}
	return true
}

// count ranks by players, where they were recorded.
func (r *Rescored) count(p *policy, d events.Decision) {
	for i, c := range d.Candidates {
		players, ok := recorded(c, termPlayers, string(PlayerCount))
		if !ok {
			r.Unknown = []string{termPlayers}
			return
		}
		r.Candidates[i].Terms = []events.Term{{Name: termPlayers, Raw: players, Score: players / p.divisor(c.Server)}}
	}
	for i := range r.Candidates {
		r.Candidates[i].Score = r.Candidates[i].Terms[0].Score
	}
}

// recorded is the raw value of the first of these terms that a candidate has; NaN when it is
// recorded as missing.
func recorded(c events.Candidate, names ...string) (float64, bool) {
	for _, name := range names {
		i := slices.IndexFunc(c.Terms, func(t events.Term) bool { return t.Name == name })
		switch {
		case i < 0:
		case c.Terms[i].Missing:
			return missing, true
		default:
			return c.Terms[i].Raw, true
		}
	}
	return 0, false
}
