package actors

import (
	"math"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Input is something that is known of a destination.
type Input string

// Inputs of a score.
const (
	MSPT         Input = "mspt"         // milliseconds a tick takes
	TPS          Input = "tps"          // ticks a second, worked out from mspt where only that is reported
	QueueDepth   Input = "queueDepth"   // the server's own queue, as a share of its soft cap
	HeapUsed     Input = "heapUsed"     // share of the heap in use
	HeapFree     Input = "heapFree"     // another name for heapUsed, not its opposite
	PlayerCount  Input = "playerCount"  // players online
	KeptCount    Input = "keptCount"    // coordinates ready in all regions, less those promised since
	KeptRegion   Input = "keptRegion"   // coordinates ready in this region, less those promised since
	RecentPicks  Input = "recentPicks"  // how often it was chosen a moment ago, fading
	PipelineMs   Input = "pipelineMs"   // milliseconds from arrival to placed
	ProxyRTT     Input = "proxyRtt"     // milliseconds this dispatcher's edge needs to connect
	StickyRegion Input = "stickyRegion" // 1 for the place of the player's last transfer, else 0
)

// measure is how an input counts before its curve: from 0, the best, to 1, the worst.
type measure struct {
	input      Input
	low, high  float64 // these count as best and worst, or as worst and best:
	moreBetter bool
}

// measures are the inputs with their own scales; a term may bring another one.
var measures = []measure{
	{MSPT, 0, 50, false}, // a tick has 50 ms
	{TPS, 0, 20, true},
	{QueueDepth, 0, 1, false},
	{HeapUsed, 0, 1, false},
	{HeapFree, 0, 1, false},
	{PlayerCount, 0, 100, false},
	{KeptCount, 0, 64, true},
	{KeptRegion, 0, 64, true},
	{RecentPicks, 0, 8, false},
	{PipelineMs, 0, 2000, false},
	{ProxyRTT, 0, 200, false},
	{StickyRegion, 0, 1, true},
}

func measureOf(in Input) (measure, bool) {
	for _, m := range measures {
		if m.input == in {
			return m, true
		}
	}
	return measure{}, false
}

// of scales a raw value; what lies outside the scale counts as its end.
func (m *measure) of(raw float64) float64 {
	x := (raw - m.low) / (m.high - m.low)
	if m.moreBetter {
		x = 1 - x
	}
	return min(max(x, 0), 1)
}

// missing stands for an input that a destination does not report.
var missing = math.NaN()

// reported is a value as it came: what is no measurement is missing, not zero.
func reported(x *float64) float64 {
	if x == nil || !(*x >= 0) || math.IsInf(*x, 0) {
		return missing
	}
	return *x
}

// raw reads one input of a candidate.
func (q *question) raw(in Input, c *choice) float64 {
	b := c.backend
	if q.join && (in == KeptCount || in == KeptRegion || in == StickyRegion) {
		return missing // of places, and none is wanted
	}
	switch in {
	case MSPT:
		return reported(b.MSPT)
	case TPS:
		return tps(b)
	case QueueDepth:
		return queueShare(&b.BackendBeat)
	case HeapUsed, HeapFree:
		return heapShare(&b.BackendBeat)
	case PlayerCount:
		return count(b.Players) + float64(c.joined)
	case KeptCount:
		return float64(c.all)
	case KeptRegion:
		return float64(c.kept)
	case RecentPicks:
		return c.picks
	case PipelineMs:
		return reported(b.PipelineMs)
	case ProxyRTT:
		return c.rtt
	case StickyRegion:
		return q.sticks(c)
	}
	return missing
}

func count(n int) float64 {
	if n < 0 {
		return missing
	}
	return float64(n)
}

func tps(b *projections.Backend) float64 {
	if b.TPS != nil {
		return reported(b.TPS)
	}
	switch mspt := reported(b.MSPT); {
	case mspt > 0:
		return min(20, 1000/mspt)
	case mspt == 0:
		return 20
	}
	return missing
}

// queueShare is 1 or more for any queue where no soft cap is known.
func queueShare(b *events.BackendBeat) float64 {
	if b.QueueDepth == nil || *b.QueueDepth < 0 {
		return missing
	}
	limit := 1
	if b.SoftCap != nil {
		limit = max(limit, *b.SoftCap)
	}
	return float64(*b.QueueDepth) / float64(limit)
}

// heapShare is missing where the limit is 0 or unknown.
func heapShare(b *events.BackendBeat) float64 {
	if b.HeapUsed == nil || *b.HeapUsed < 0 || b.HeapMax == nil || *b.HeapMax <= 0 {
		return missing
	}
	return float64(*b.HeapUsed) / float64(*b.HeapMax)
}

func (q *question) sticks(c *choice) float64 {
	switch {
	case q.last.server == "":
		return missing
	case q.last.server == c.backend.Server && q.last.region == c.region:
		return 1
	}
	return 0
}

// term is one summand of a score, ready for use.
type term struct {
	name    string
	input   Input
	weight  float64
	measure measure
	bend    bend
}

// of is the term's share in the score of a candidate that reports raw. A value that is
// missing while others report it is the worst.
func (t *term) of(raw float64) float64 {
	x := 1.0
	if !math.IsNaN(raw) {
		x = t.measure.of(raw)
	}
	return t.weight * t.bend.at(x)
}

// known tells which terms, one bit for each, at least one candidate reports. The others are
// left out of every score.
func (r *ranking) known(terms []term) (bits uint32) {
	n := len(terms)
	for i, raw := range r.raws {
		if !math.IsNaN(raw) {
			bits |= 1 << (i % n)
		}
	}
	return bits
}

// weigh gives each candidate the sum of its terms, over the weight of its backend.
func (r *ranking) weigh(p *policy, q *question) {
	n := len(p.terms)
	for i := range r.cands {
		c := &r.cands[i]
		for t := range p.terms {
			r.raws = append(r.raws, q.raw(p.terms[t].input, c))
		}
	}
	r.bits = r.known(p.terms)
	for i := range r.cands {
		c, sum := &r.cands[i], 0.0
		for t, raw := range r.raws[i*n : i*n+n] {
			if r.bits&(1<<t) != 0 {
				sum += p.terms[t].of(raw)
			}
		}
		c.score = sum / p.divisor(c.backend.Server)
		if p.counts {
			c.tired = c.picks // beyond the end of its scale a term no longer tells them apart
		}
	}
}
