package actors

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Names of what a decision records beside the terms of a weighted policy.
const (
	termTurn    = "turn"          // roundRobin: number of the server's last pick
	termPlayers = "players"       // leastPlayers: online or promised a place
	termKept    = "kept"          // fixed: ready in the region
	termHome    = "home"          // the player stands there
	termWeight  = "backendWeight" // divides the score
	termLobby   = "lobby"         // of a join: lobbies go first
	termSick    = "degraded"      // of a join: degraded servers go last
)

// record is why the ranking is as it is.
func (r *ranking) record(q *question, f *projections.Fleet) events.Decision {
	p := q.policy.rules()
	d := events.Decision{
		Policy: p.name, Snapshot: f.Seq, Candidates: make([]events.Candidate, 0, len(r.best)), Filtered: r.filtered(),
		Unreported: r.unreported(p), Collision: collisionOf(q.wish, f),
	}
	if !r.newest.IsZero() {
		d.AgeMs = max(q.now.Sub(r.newest).Milliseconds(), 0)
	}
	for i := range r.best {
		c := &r.best[i]
		d.Candidates = append(d.Candidates, events.Candidate{Server: c.backend.Server, Region: c.region, Score: c.score, Terms: r.terms(p, q, c)})
	}
	fit(&d)
	return d
}

// terms are a candidate's raw values and their shares in its score.
func (r *ranking) terms(p *policy, q *question, c *choice) []events.Term {
	out := make([]events.Term, 0, len(p.terms)+2)
	divisor := p.divisor(c.backend.Server)
	switch p.kind {
	case Weighted:
		n := len(p.terms)
		for t, raw := range r.raws[c.row*n : c.row*n+n] {
			if r.bits&(1<<t) == 0 {
				continue
			}
			x := events.Term{Name: p.terms[t].name, Raw: raw, Score: p.terms[t].of(raw) / divisor}
			if math.IsNaN(raw) {
				x.Raw, x.Missing = 0, true
			}
			out = append(out, x)
		}
	case RoundRobin:
		out = append(out, events.Term{Name: termTurn, Raw: float64(c.turn), Score: c.score})
	case LeastPlayers:
		out = append(out, events.Term{Name: termPlayers, Raw: float64(c.bound()), Score: c.score})
	default:
		out = append(out, events.Term{Name: termKept, Raw: float64(c.kept), Score: c.score})
	}
	if divisor != 1 {
		out = append(out, events.Term{Name: termWeight, Raw: divisor})
	}
	if q.wish.Pin == "" && q.home == c.backend.Server {
		out = append(out, events.Term{Name: termHome, Raw: 1})
	}
	if q.join && q.isLobby(c.backend) {
		out = append(out, events.Term{Name: termLobby, Raw: 1})
	}
	if c.backend.State == events.Degraded {
		out = append(out, events.Term{Name: termSick, Raw: 1})
	}
	return out
}

// unreported names the inputs that count for nothing here, since no candidate reports them.
func (r *ranking) unreported(p *policy) string {
	if len(r.cands) == 0 {
		return ""
	}
	var names []string
	for t := range p.terms {
		if r.bits&(1<<t) == 0 {
			names = append(names, p.terms[t].name)
		}
	}
	return strings.Join(names, ",")
}

// decided is a decision as it stands in a log line.
type decided events.Decision

// LogValue implements slog.LogValuer.
func (d decided) LogValue() slog.Value {
	var best, out []string
	for _, c := range d.Candidates {
		best = append(best, fmt.Sprintf("%s %.4g", c.Server, c.Score))
	}
	for _, f := range d.Filtered {
		out = append(out, fmt.Sprintf("%s %d", f.Code, f.Count))
	}
	return slog.GroupValue(slog.String("policy", d.Policy), slog.String("best", strings.Join(best, ", ")), slog.String("filtered", strings.Join(out, ", ")))
}

func (r *ranking) filtered() []events.Filtered {
	out := make([]events.Filtered, 0, len(r.out))
	for i := range r.out {
		x := &r.out[i]
		f := events.Filtered{Code: x.code, Count: x.count, Examples: make([]string, min(x.count, len(x.examples)))}
		for j := range f.Examples {
			f.Examples[j] = string(x.examples[j])
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b events.Filtered) int { return cmp.Compare(a.Code, b.Code) })
	return out
}

// maxDecision is how many bytes a decision may take on the wire.
const maxDecision = 4096

// fit leaves out what a decision has least use for until it is small enough: examples of
// reasons (the counts stay), then candidates, the worst first.
func fit(d *events.Decision) {
	for most := events.MaxExamples - 1; most >= 1 && encoded(d) > maxDecision; most-- {
		for i := range d.Filtered {
			f := &d.Filtered[i]
			f.Examples = f.Examples[:min(len(f.Examples), most)]
		}
	}
	for len(d.Candidates) > 1 && encoded(d) > maxDecision {
		d.Candidates = d.Candidates[:len(d.Candidates)-1]
	}
}

// encoded is at least the length of a decision's body.
func encoded(d *events.Decision) int {
	const head, candidate, term, filtered, text = 96, 48, 46, 32, 3
	n := head + len(d.Policy) + len(d.Unreported) + len(d.Collision)
	for i := range d.Candidates {
		c := &d.Candidates[i]
		n += candidate + len(c.Server) + len(c.Region)
		for j := range c.Terms {
			n += term + len(c.Terms[j].Name)
		}
	}
	for i := range d.Filtered {
		n += filtered + len(d.Filtered[i].Code)
		for _, e := range d.Filtered[i].Examples {
			n += text + len(e)
		}
	}
	return n
}
